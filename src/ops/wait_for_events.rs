use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::page::{Part, Shown};
use super::telling::{self, told};
use super::{Annotations, Call, Operation, READ, Reader, Toolset};
use crate::state::State;
use crate::state::event::{KINDS, Recorded};
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;

pub struct WaitForEvents;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// `next_seq` of the last reply; default now, 0: all
    pub since_seq: Option<u64>,
    #[serde(default)]
    pub kinds: Vec<String>,
    pub task_id: Option<String>,
    /// 0 to 50
    #[serde(default)]
    pub wait_seconds: u64,
    /// Default 50
    pub limit: Option<NonZeroU32>,
    /// Seq up to which no event matched, so that a waiting call, which is looked at again after
    /// each event, does not search the same events twice.
    #[serde(skip)]
    pub unwanted: AtomicU64,
    /// Head of the board when a call without `since_seq` was first looked at: what comes after it
    /// has come since.
    #[serde(skip)]
    pub entered_at: OnceLock<u64>,
}

impl Params {
    fn since(&self, state: &State) -> u64 {
        // A seq from before the board was rebuilt may lie beyond its head.
        let unwanted =
            Some(self.unwanted.load(Ordering::Relaxed)).filter(|seq| *seq <= state.seq());
        let asked = self.since_seq.unwrap_or_else(|| *self.entered_at.get_or_init(|| state.seq()));
        asked.min(state.seq()).max(unwanted.unwrap_or_default())
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    /// If there are more events now; `next` is `next_seq`
    #[serde(flatten)]
    pub part: Option<Part<u64>>,
    /// Large events are shortened and marked `shortened`
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub events: Vec<Shown<Value>>,
    pub next_seq: u64,
    /// There are more events after `next_seq` now
    pub more: bool,
}

/// Which events somebody wants to hear of.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Any kind if empty.
    kinds: Vec<String>,
    task: Option<TaskId>,
}

impl EventFilter {
    pub fn checked(kinds: &[String], task: Option<&str>) -> Result<Self, Refusal> {
        if let Some(unknown) = kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            let kind = unknown.chars().take(LONGEST_KIND).collect();
            return Err(Refusal::UnknownKind { kind, known: &KINDS });
        }
        Ok(Self { kinds: kinds.to_vec(), task: task.map(TaskId::checked).transpose()? })
    }

    pub fn wants(&self, recorded: &Recorded) -> bool {
        let kind =
            self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == recorded.event.kind());
        kind && self.task.as_ref().is_none_or(|task| recorded.event.tasks().contains(&task))
    }
}

/// Most events that one call reads, so that a rare kind does not make it read the whole journal.
const LOOKED_AT: usize = 5_000;

/// Most characters of an unknown kind that a refusal repeats.
const LONGEST_KIND: usize = 64;

impl Operation for WaitForEvents {
    const NAME: &'static str = "wait_for_events";
    const DESCRIPTION: &'static str =
        "Leaders: wait for news, or read it since a seq. Workers wait in claim_task.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn wait_seconds(params: &Params) -> u64 {
        params.wait_seconds
    }

    fn waits(params: &Params, state: &State, call: &Call) -> bool {
        // An invalid filter is refused at once, without waiting.
        if EventFilter::checked(&params.kinds, params.task_id.as_deref()).is_err() {
            return false;
        }
        // A seq from before the board was rebuilt: the caller must start from the board's own head.
        if params.since_seq.is_some_and(|since| since > state.seq()) {
            return false;
        }
        if params.since(state) == state.seq() {
            return true;
        }
        Self::reply(params, state, call).is_ok_and(|reply| reply.events.is_empty() && !reply.more)
    }

    // It reads events, which may be large.
    fn is_long(params: &Params, _: Reader) -> bool {
        params.wait_seconds == 0
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        limit::WAIT.check(params.wait_seconds as usize)?;
        let mut page = telling::page(call, params.limit)?;
        let filter = EventFilter::checked(&params.kinds, params.task_id.as_deref())?;
        let since = params.since(state);
        let mut next_seq = since;
        let looked_at = call.history.each_after(since, LOOKED_AT, &mut |recorded| {
            if filter.wants(&recorded)
                && (page.is_full() || !page.add(told(&recorded, call.principal)))
            {
                return ControlFlow::Break(());
            }
            next_seq = recorded.seq;
            ControlFlow::Continue(())
        });
        looked_at.map_err(|detail| Refusal::HistoryUnread { detail })?;
        if page.len() == 0 {
            params.unwanted.store(next_seq, Ordering::Relaxed);
        }
        if next_seq == since {
            // A board that was restored from a state has no events up to it.
            next_seq = state.seq();
        }
        let more = next_seq < state.seq();
        let is_plain = params.kinds.is_empty() && params.task_id.is_none();
        let total = is_plain
            .then(|| usize::try_from(state.seq() - since.min(state.seq())).unwrap_or(usize::MAX));
        let part = page.part(total, false, more.then_some(next_seq));
        Ok(Reply { part, events: page.into_entries(), next_seq, more })
    }
}
