//! How long work on tasks took, and how long what is left is expected to take.

use schemars::JsonSchema;
use serde::Serialize;

use super::State;
use super::claim::in_scope;
use super::task::Task;
use super::time::MINUTE;

/// Estimates of the unfinished tasks that have no parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Remaining {
    /// Sum of their estimates; what was already spent on them is not subtracted
    pub minutes: u64,
    /// Number of tasks with an estimate
    pub tasks: u64,
}

impl Task {
    /// Minutes from claim to end of the attempts that are kept and have ended, rounded. A task that
    /// came in done without its attempts has the time from its claim to its completion.
    pub fn actual_minutes(&self) -> Option<u64> {
        let ended = |attempt: &super::task::Attempt| {
            let spent = attempt.ended_at?.since(attempt.claimed_at) - attempt.stepped_millis;
            Some(spent.max(0))
        };
        let of_attempts: Vec<i64> = self.attempts.iter().filter_map(ended).collect();
        let of_task = || Some(self.completed_at?.since(self.claimed_at?));
        let millis = if of_attempts.is_empty() { of_task()? } else { of_attempts.iter().sum() };
        u64::try_from((millis + MINUTE / 2) / MINUTE).ok()
    }
}

impl State {
    /// What the estimates say of unfinished tasks in `scope`; `None` if none of them has one.
    pub fn remaining(&self, scope: Option<&str>) -> Option<Remaining> {
        let estimated =
            self.index.estimated().filter_map(|ordinal| self.records.tasks.get(ordinal));
        let leaves = estimated.filter(|task| !self.is_parent(&task.id) && in_scope(task, scope));
        let remaining = leaves.fold(Remaining::default(), |sum, task| Remaining {
            minutes: sum.minutes + u64::from(task.estimated_minutes.unwrap_or_default()),
            tasks: sum.tasks + 1,
        });
        Some(remaining).filter(|sum| sum.tasks > 0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(attempts: serde_json::Value) -> Task {
        let task = json!({"id": "t", "description": "d", "status": "done", "priority": 5, "attempts": attempts,
            "created_at": "2026-03-01T10:00:00.000Z", "claimed_at": "2026-03-01T10:00:00.000Z",
            "completed_at": "2026-03-01T10:07:00.000Z"});
        serde_json::from_value(task).expect("a task")
    }

    #[test]
    fn every_attempt_that_has_ended_counts() {
        let attempt = |number: u32, ended: Option<&str>| {
            json!({"number": number, "agent": "a", "claimed_at": "2026-03-01T10:00:00.000Z",
                "lease_until": "2026-03-01T11:00:00.000Z", "ended_at": ended})
        };
        let [short, long] = ["2026-03-01T10:00:40.000Z", "2026-03-01T10:12:00.000Z"];
        assert_eq!(
            task(json!([attempt(1, Some(short)), attempt(2, Some(long))])).actual_minutes(),
            Some(13)
        );
        assert_eq!(
            task(json!([attempt(1, Some(long)), attempt(2, None)])).actual_minutes(),
            Some(12)
        );
        assert_eq!(task(json!([])).actual_minutes(), Some(7), "from claim to completion");
    }

    #[test]
    fn the_machine_s_sleep_is_not_work() {
        let slept = json!({"number": 1, "agent": "a", "claimed_at": "2026-03-01T10:00:00.000Z",
            "lease_until": "2026-03-01T20:00:00.000Z", "ended_at": "2026-03-01T18:05:00.000Z",
            "stepped_millis": 8 * 60 * MINUTE});
        assert_eq!(task(json!([slept])).actual_minutes(), Some(5));
    }
}
