//! What words mean, for screens that colour them.

use crate::state::task::TaskStatus;

/// Meaning of a word, which decides its colour.
#[derive(Clone, Copy, PartialEq, Eq)]
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
