//! What the owner may set in `config.toml`. `apply` never reads it; what follows from it is
//! recorded in the events.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::aging::Aging;
use super::limit::CHECKPOINTS_KEPT;
use super::review::Review;
use super::time::{DAY, MINUTE, SECOND};

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Minutes that a claim lasts without a call, for an agent without a living process.
    #[serde(deserialize_with = "at_least_one")]
    pub lease_minutes: u32,
    /// Minutes that a claim lasts without a call while the agent's process lives.
    #[serde(deserialize_with = "at_least_one")]
    pub silent_minutes: u32,
    /// Seconds in which an agent whose process died may come back.
    pub grace_seconds: u32,
    /// Seconds before a failed task is first tried again; doubled with every attempt.
    pub retry_seconds: u32,
    /// Most seconds of such a pause.
    pub retry_cap_seconds: u32,
    /// Minutes in which a ready task rises by one priority; 0 for never.
    pub aging_minutes: u32,
    /// Finished tasks kept in the live state; older ones retire to the journal.
    pub keep_finished: u32,
    /// Retired tasks of which a stub is kept in the live state; the journal alone has those that
    /// retired before them.
    pub keep_stubs: u32,
    /// Newest snapshots that are kept, whatever their age.
    pub max_checkpoints: u32,
    /// Days for which every snapshot is kept.
    pub checkpoint_days: u32,
    /// Megabytes that the snapshots kept for their age may take; the oldest go first.
    pub snapshot_megabytes: u32,
    /// Newest checkpoints that are kept of each workflow.
    pub max_checkpoints_per_workflow: u32,
    /// Days for which checkpoints are kept; the newest of a workflow always stays.
    pub workflow_checkpoint_days: u32,
    /// Whether completed tasks wait for a reviewer, where neither task nor plan says so.
    pub review: Review,
}

/// Refuses 0: a living agent's task would go to the next caller at once, and whoever writes 0 may
/// mean the contrary.
fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(D::Error::custom(
            "0 would end every claim at once; the smallest value is 1, and a year has 525600",
        )),
        minutes => Ok(minutes),
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease_minutes: 30,
            silent_minutes: 240,
            grace_seconds: 60,
            retry_seconds: 30,
            retry_cap_seconds: 3_600,
            aging_minutes: 0,
            keep_finished: 2_000,
            keep_stubs: 5_000,
            max_checkpoints: 10,
            checkpoint_days: 7,
            snapshot_megabytes: 100,
            max_checkpoints_per_workflow: 10,
            workflow_checkpoint_days: 7,
            review: Review::None,
        }
    }
}

impl Policy {
    pub fn lease_millis(&self, present: bool) -> i64 {
        i64::from(if present { self.silent_minutes } else { self.lease_minutes }) * MINUTE
    }

    pub fn aging(&self) -> Aging {
        Aging::every(self.aging_minutes)
    }

    pub fn grace_millis(&self) -> i64 {
        i64::from(self.grace_seconds) * SECOND
    }

    pub fn checkpoints_kept(&self) -> usize {
        (self.max_checkpoints_per_workflow as usize).clamp(1, CHECKPOINTS_KEPT)
    }

    pub fn checkpoint_millis(&self) -> i64 {
        i64::from(self.workflow_checkpoint_days) * DAY
    }

    /// Milliseconds before attempt `failed + 1`: `retry_seconds`, doubled with each failure after
    /// the first, capped.
    pub fn backoff_millis(&self, failed: u32) -> i64 {
        let doublings = failed.saturating_sub(1).min(20);
        let seconds =
            (u64::from(self.retry_seconds) << doublings).min(u64::from(self.retry_cap_seconds));
        i64::try_from(seconds).unwrap_or(i64::MAX / SECOND) * SECOND
    }
}
