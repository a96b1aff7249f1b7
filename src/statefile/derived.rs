//! What the file shows beside the state, for a person who opens it: `progress`, `attention`, and
//! the title of the task that each agent works on.
//!
//! All of it follows from the state, without the clock, so a reader of the state ignores it.
//! Another build may derive other things, so nothing is computed anew at load: `derived_checksum`
//! tells whether it is as it was written. It is the sum of one number for each of the two fields
//! and each title, as in the state's own checksum.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use foldhash::HashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::rendering::{Rendering, hex, sum_of};
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::attention::{Blocked, ForHuman, InReview, Parked, TEXT_SHOWN};
use crate::state::changed::{Change, Entity};
use crate::state::document::Document;
use crate::state::id::AgentId;
use crate::state::standing::Counts;

pub(super) const CHECKSUM: &str = "derived_checksum";
pub(super) const PROGRESS: &str = "progress";
pub(super) const ATTENTION: &str = "attention";
/// The field of an agent that holds the title, and the one that it stands behind.
pub(super) const TITLE: &str = "current_task_title";
pub(super) const TASK: &str = "current_task";

/// The state file: the state, and what follows from it.
#[derive(Serialize, JsonSchema)]
pub struct Shown {
    #[serde(flatten)]
    document: Document,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<Attention>,
}

#[derive(Serialize, JsonSchema)]
struct Progress {
    /// Tasks by status, retired ones included
    counts: Counts,
    /// Share of the tasks that are done, without cancelled and obsolete ones
    percent: u64,
}

/// What waits for a person
#[derive(Serialize, JsonSchema)]
struct Attention {
    /// Oldest messages that the board's owner has not read
    questions: Vec<ForHuman>,
    /// Tasks that failed, out of attempts or given up for good
    parked: Vec<Parked>,
    /// Tasks whose results wait for a reviewer, the longest first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_review: Vec<InReview>,
    /// Tasks that depend on a task that failed, was cancelled or is obsolete
    stuck: Vec<Blocked>,
}

/// The two fields of one state.
#[derive(Debug)]
pub(super) struct Derived {
    /// The last event in that state.
    seq: u64,
    parked: Vec<Parked>,
    stuck: Vec<Blocked>,
    progress: Rendering,
    attention: Rendering,
}

impl Derived {
    pub(super) fn of(state: &State) -> io::Result<Self> {
        Self::known_or_of(None, state)
    }

    /// The fields of `state`, given those of an earlier one, so that the tasks that wait are only
    /// searched for among all when they may have changed.
    pub(super) fn known_or_of(known: Option<Self>, state: &State) -> io::Result<Self> {
        let (parked, stuck) = match known.filter(|known| state.attention_seq() <= known.seq) {
            Some(Self { parked, stuck, .. }) => (parked, stuck),
            None => (state.parked(None), state.stuck(None)),
        };
        let counts = state.counts();
        let progress = Rendering::of(&Progress { percent: counts.percent(), counts })?;
        let shown = Attention {
            questions: state.questions(),
            parked,
            in_review: state.in_review(None),
            stuck,
        };
        let attention = Rendering::of(&shown)?;
        let Attention { parked, stuck, .. } = shown;
        Ok(Self { seq: state.seq(), parked, stuck, progress, attention })
    }

    /// Their part of the checksum.
    pub(super) fn sum(&self) -> u128 {
        self.progress.sum(PROGRESS, "").wrapping_add(self.attention.sum(ATTENTION, ""))
    }

    pub(super) fn push(&self, text: &mut Vec<u8>) {
        self.progress.push_field(PROGRESS, text);
        self.attention.push_field(ATTENTION, text);
    }

    /// The two fields as a reader finds them.
    pub(super) fn fields(&self) -> io::Result<Map<String, Value>> {
        let progress = (PROGRESS.to_owned(), self.progress.value()?);
        Ok(Map::from_iter([progress, (ATTENTION.to_owned(), self.attention.value()?)]))
    }
}

/// The changes, and those of agents of which the title of their task may have changed.
pub(super) fn with_agents<'a>(
    state: &State,
    changed: &'a HashMap<Entity, Change>,
) -> Cow<'a, HashMap<Entity, Change>> {
    let mut all = Cow::Borrowed(changed);
    for (entity, change) in changed {
        let Entity::Task(id) = entity else { continue };
        let Some(agent) = state.task(id).and_then(|task| state.agent(task.claimed_by.as_ref()?))
        else {
            continue;
        };
        if agent.current_task.as_ref() == Some(id) {
            let entity = Entity::Agent(agent.id.clone());
            let of_agent = all.to_mut().entry(entity).or_insert(Change { anew: false, ..*change });
            of_agent.seq = of_agent.seq.max(change.seq);
        }
    }
    all
}

/// The title of the task that the agent works on.
pub(super) fn title<'s>(state: &'s State, agent: &Agent) -> Option<&'s str> {
    let title = state.task(agent.current_task.as_ref()?)?.headline();
    Some(title.char_indices().nth(TEXT_SHOWN).map_or(title, |(end, _)| &title[..end]))
}

/// The number of a title in the checksum.
pub(super) fn sum_of_title(agent: &str, title: &str) -> io::Result<u128> {
    sum_of(TITLE, agent, &title)
}

#[derive(Deserialize)]
struct Read {
    progress: Option<Value>,
    attention: Option<Value>,
    #[serde(default)]
    agents: BTreeMap<AgentId, Titled>,
    derived_checksum: Option<String>,
}

#[derive(Deserialize)]
struct Titled {
    current_task_title: Option<String>,
}

/// Says why what the file shows beside the state is not what was written. A file of an older build
/// shows nothing.
pub(super) fn fault(file: &[u8]) -> Option<String> {
    titles(file).err()
}

/// The numbers of the titles that the file shows, by agent, or what its fault is.
pub(super) fn titles(file: &[u8]) -> Result<BTreeMap<AgentId, u128>, String> {
    let Ok(Read { progress, attention, agents, derived_checksum }) = serde_json::from_slice(file)
    else {
        return Err("what it shows beside the state is impossible".to_owned());
    };
    let Some(stated) = derived_checksum else {
        return if progress.is_some() || attention.is_some() {
            Err(format!("it has no {CHECKSUM}"))
        } else {
            Ok(BTreeMap::new())
        };
    };
    let titles = agents.into_iter().filter_map(|(id, of)| Some((id, of.current_task_title?)));
    let titles = titles.map(|(id, title)| Ok((id.clone(), sum_of_title(id.as_str(), &title)?)));
    let fields = [(PROGRESS, progress), (ATTENTION, attention)];
    let fields = fields.into_iter().filter_map(|(name, value)| Some(sum_of(name, "", &value?)));
    let sums: io::Result<_> = titles.collect::<io::Result<BTreeMap<_, _>>>().and_then(|titles| {
        let fields = fields.collect::<io::Result<Vec<_>>>()?;
        let sum =
            fields.iter().chain(titles.values()).fold(0, |sum: u128, one| sum.wrapping_add(*one));
        Ok((titles, sum))
    });
    let (titles, sum) = sums.map_err(|error| format!("it cannot be written: {error}"))?;
    if hex(sum) == stated {
        Ok(titles)
    } else {
        Err(format!("its {CHECKSUM} is {stated}, and what it shows beside the state has another"))
    }
}
