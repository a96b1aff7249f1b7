//! How far the board is: counts of its tasks by status, retired ones included, and the share that
//! is done. Tasks with parts are not counted: they are as far as their parts.

use schemars::JsonSchema;
use serde::Serialize;

use super::State;
use super::hierarchy::percent;
use super::task::TaskStatus;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    pub available: u64,
    pub claimed: u64,
    pub in_progress: u64,
    /// Of those in progress, the ones that wait for a reviewer
    #[serde(skip_serializing_if = "is_zero")]
    pub review: u64,
    pub done: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub obsolete: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Counts {
    pub fn add(&mut self, status: TaskStatus) {
        let counter = match status {
            TaskStatus::Available => &mut self.available,
            TaskStatus::Claimed => &mut self.claimed,
            TaskStatus::InProgress => &mut self.in_progress,
            TaskStatus::Review => {
                self.review += 1;
                &mut self.in_progress
            }
            TaskStatus::Done => &mut self.done,
            TaskStatus::Failed => &mut self.failed,
            TaskStatus::Cancelled => &mut self.cancelled,
            TaskStatus::Obsolete => &mut self.obsolete,
        };
        *counter += 1;
    }

    /// Number of all tasks.
    pub fn total(&self) -> u64 {
        self.available
            + self.claimed
            + self.in_progress
            + self.done
            + self.failed
            + self.called_off()
    }

    pub fn called_off(&self) -> u64 {
        self.cancelled + self.obsolete
    }

    /// Share of the tasks that are done, without those that were called off.
    pub fn percent(&self) -> u64 {
        percent(self.done, self.total() - self.called_off())
    }
}

impl State {
    pub fn counts(&self) -> Counts {
        let count = |status| self.count(status) as u64;
        let archived = self.board().archived;
        Counts {
            available: count(TaskStatus::Available),
            claimed: count(TaskStatus::Claimed),
            in_progress: count(TaskStatus::InProgress) + count(TaskStatus::Review),
            review: count(TaskStatus::Review),
            done: count(TaskStatus::Done) + archived.done,
            failed: count(TaskStatus::Failed),
            cancelled: count(TaskStatus::Cancelled) + archived.cancelled,
            obsolete: count(TaskStatus::Obsolete) + archived.obsolete,
        }
    }
}
