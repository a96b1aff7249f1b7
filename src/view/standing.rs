//! How a task stands, in more detail than its status.

use std::collections::HashMap;

use super::Tone;
use super::told::listed;
use crate::state::State;
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};
use crate::state::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Ready,
    /// By the first tasks that it waits for.
    Blocked(Vec<TaskId>),
    /// For its time.
    Waiting(Timestamp),
    /// Neither ready nor waiting: it has parts, none of which is begun.
    Open,
    Is(TaskStatus),
}

/// Numbers of the tasks that have one.
#[derive(Clone, Debug, Default)]
pub struct Numbers(HashMap<TaskId, u64>);

impl Standing {
    /// Most tasks that are named of those which a task waits for.
    pub const NAMED: usize = 3;

    pub fn of(state: &State, task: &Task) -> Self {
        match task.status {
            TaskStatus::Available if state.is_parent(&task.id) => return Self::Open,
            TaskStatus::Available if state.is_ready(&task.id) => return Self::Ready,
            TaskStatus::Available => {}
            status => return Self::Is(status),
        }
        let by: Vec<_> = state.waits_for(task).take(Self::NAMED).cloned().collect();
        match task.not_before {
            _ if !by.is_empty() => Self::Blocked(by),
            until => until.map_or(Self::Open, Self::Waiting),
        }
    }

    pub fn tone(&self) -> Tone {
        match self {
            Self::Ready => Tone::Waiting,
            Self::Blocked(_) | Self::Waiting(_) | Self::Open => Tone::Over,
            Self::Is(status) => Tone::of(*status),
        }
    }

    /// The word that every list shows for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Blocked(_) => "blocked",
            Self::Waiting(_) => "waiting",
            Self::Open => "open",
            Self::Is(status) => status.as_str(),
        }
    }

    pub fn words(&self, clock: impl Fn(Timestamp) -> String, numbers: &Numbers) -> String {
        match self {
            Self::Ready => "ready".to_owned(),
            Self::Blocked(by) => {
                let by: Vec<_> = by.iter().map(|id| numbers.name(id)).collect();
                format!("blocked by {}", listed(&by))
            }
            Self::Waiting(until) => format!("waiting until {}", clock(*until)),
            Self::Open => "open".to_owned(),
            Self::Is(status) => status.to_string(),
        }
    }
}

impl Numbers {
    pub fn of<'t>(tasks: impl Iterator<Item = (&'t TaskId, Option<u64>)>) -> Self {
        Self(tasks.filter_map(|(id, number)| Some((id.clone(), number?))).collect())
    }

    pub fn knows(&self, id: &TaskId) -> bool {
        self.0.contains_key(id)
    }

    /// What a person calls the task: `#12`, or its id if it has no number.
    pub fn name(&self, id: &TaskId) -> String {
        self.0.get(id).map_or_else(|| id.to_string(), |number| format!("#{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_waits_for_is_called_by_its_number() {
        let ids = ["lexer", "parser", "gone"].map(TaskId::trusted);
        let numbers = Numbers::of(ids.iter().zip([Some(3), Some(12), None]));
        let words = |standing: Standing| standing.words(|at| at.to_string(), &numbers);
        assert_eq!(words(Standing::Blocked(ids[..1].to_vec())), "blocked by #3");
        let all = words(Standing::Blocked(ids.to_vec()));
        assert!(all.contains("#3") && all.contains("#12") && all.contains("gone"), "{all}");
        assert_eq!(words(Standing::Is(TaskStatus::Done)), "done");
    }
}
