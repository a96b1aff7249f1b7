//! What happened last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::card::begun;
use super::told::Told;
use super::{Names, Tone, is_noise};
use crate::state::State;
use crate::state::event::Recorded;
use crate::state::id::{AgentId, TaskId};
use crate::state::time::Timestamp;
use crate::state::undo::can_undo;

/// An event in a word and a line.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Latest {
    pub seq: u64,
    pub at: Timestamp,
    /// Who did it; none if it came about by itself
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AgentId>,
    pub word: String,
    pub tone: Tone,
    /// What it was done to
    pub text: String,
    /// The task that it is about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// True if `undo` may take it back
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoable: bool,
}

/// What of `events` is worth to be told, in their order; they are as their reader may see them.
pub fn latest(state: &State, events: &[Value]) -> Vec<Latest> {
    let mut names = Names::default();
    for recorded in events.iter().filter_map(|event| Recorded::deserialize(event).ok()) {
        names.note(&recorded);
        for id in recorded.event.tasks() {
            names.set_task(id, recorded.seq, state.task(id).map(AsRef::as_ref));
        }
    }
    let told = events.iter().filter(|event| !is_noise(event, &names));
    told.filter_map(|event| Latest::of(event, names.told(event))).collect()
}

impl Latest {
    /// None if it has no number or time: no build writes such an event.
    fn of(event: &Value, told: Told) -> Option<Self> {
        let recorded = Recorded::deserialize(event).ok();
        let tasks = recorded.as_ref().map(|one| one.event.tasks()).unwrap_or_default();
        Some(Self {
            seq: event["seq"].as_u64()?,
            at: Timestamp::deserialize(&event["at"]).ok()?,
            actor: AgentId::deserialize(&event["actor"]).ok(),
            word: told.word.to_owned(),
            tone: told.tone,
            text: begun(&told.text),
            task: tasks.first().map(|id| (*id).clone()),
            undoable: recorded.as_ref().is_some_and(|one| can_undo(&one.event)),
        })
    }
}
