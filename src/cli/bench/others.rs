//! The other queues that callboard is compared with, by name. What measures them is in a build with
//! the feature `peers` alone.

use serde::Serialize;

pub(super) const PART: &str = "peers";

pub(super) const BEANSTALKD: &str = "beanstalkd -f 0";
pub(super) const REDIS: &str = "Redis stream, appendfsync always";
pub(super) const POSTGRES: &str = "PostgreSQL, SKIP LOCKED";
pub(super) const NATS: &str = "NATS JetStream, sync always";

/// What became of a queue that was to be compared.
#[derive(Serialize)]
pub(super) struct Found {
    pub name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why it was not measured, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}
