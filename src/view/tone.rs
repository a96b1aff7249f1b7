use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::task::TaskStatus;

/// Meaning of a word, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    Plain,
    Good,
    Busy,
    Waiting,
    Bad,
    Over,
}

impl Tone {
    pub fn of(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Available => Self::Waiting,
            TaskStatus::Claimed | TaskStatus::InProgress | TaskStatus::Review => Self::Busy,
            TaskStatus::Done => Self::Good,
            TaskStatus::Failed => Self::Bad,
            TaskStatus::Cancelled | TaskStatus::Obsolete => Self::Over,
        }
    }
}
