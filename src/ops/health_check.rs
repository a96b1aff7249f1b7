use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::event::VERSION;
use crate::state::id::ParticipantId;
use crate::state::level::{Living, Older};
use crate::state::refusal::Refusal;
use crate::state::task::TaskStatus;
use crate::state::time::{SECOND, Timestamp};

pub struct HealthCheck;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// How the answering process is doing; everything else is in the state.
#[doc(hidden)]
pub struct Vitals<'a> {
    pub started_at: Timestamp,
    /// What does not work as it should, and what to do about it.
    pub troubles: Vec<Trouble>,
    /// Looks whether calls can write in the board's directory. A function, because only
    /// `health_check` needs it.
    pub room: &'a dyn Fn() -> Option<Trouble>,
    /// Reads the state file's `seq`, if the file can be read. A function, because only
    /// `health_check` needs it.
    pub state_file_seq: &'a dyn Fn() -> Option<u64>,
    /// Looks for the other living processes on the board. A function, because hardly any call
    /// needs it.
    pub living: &'a dyn Fn() -> Vec<Living>,
    /// By how many milliseconds the wall clock is ahead of the board's time, if that is worth a
    /// word.
    pub ahead: Option<i64>,
}

impl Vitals<'_> {
    /// Those of a process that has no troubles and does not look for others.
    pub fn since(started_at: Timestamp) -> Self {
        Self {
            started_at,
            troubles: Vec::new(),
            room: &|| None,
            state_file_seq: &|| None,
            living: &Vec::new,
            ahead: None,
        }
    }
}

/// What does not work as it should, in words for the operator.
#[derive(Clone, Debug)]
pub struct Trouble {
    pub kind: Kind,
    pub text: String,
}

impl Trouble {
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// What a reason is about, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Another process holds a lock of the board, so that calls wait
    LockHeld,
    /// No space is left for what calls write, or the quota is used up
    DiskFull,
    /// Nothing can be written in the board's directory
    Unwritable,
    /// The clock of the answering process differs from the board's time
    WrongClock,
    /// The state file does not show the newest event
    StateFileBehind,
    /// A newer version has written what this process cannot read, so that it writes nothing
    Outdated,
    /// The system tells of no changes, so they are looked for
    Polling,
    /// A limit of the board is nearly reached
    NearlyFull,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::LockHeld,
        Self::DiskFull,
        Self::Unwritable,
        Self::WrongClock,
        Self::StateFileBehind,
        Self::Outdated,
        Self::Polling,
        Self::NearlyFull,
    ];

    /// Whether calls are answered as they should be all the same.
    pub fn is_harmless(self) -> bool {
        matches!(self, Self::Polling | Self::NearlyFull)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::LockHeld => "lock_held",
            Self::DiskFull => "disk_full",
            Self::Unwritable => "unwritable",
            Self::WrongClock => "wrong_clock",
            Self::StateFileBehind => "state_file_behind",
            Self::Outdated => "outdated",
            Self::Polling => "polling",
            Self::NearlyFull => "nearly_full",
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub status: Health,
    /// Whether calls can be answered as they should be; a degraded board may still be ready
    pub ready: bool,
    /// Why the status is degraded
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What each of the reasons is about, in their order
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
    pub version: &'static str,
    pub board_id: String,
    pub seq: u64,
    /// Events by which the state file is behind
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_file_lag: Option<u64>,
    pub uptime_seconds: i64,
    pub queue: Queue,
    pub agents_present: usize,
    /// Living processes that agents act through
    pub participants: usize,
    /// Living processes of an older version; what they cannot read is not written until they are
    /// restarted
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub older_processes: Vec<Older>,
    /// Seconds by which the clock of the answering process is ahead of the board's time (behind,
    /// if negative), if more than a minute. Deadlines go by the board's time
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ahead_seconds: Option<i64>,
    /// Other living processes with such a clock
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrong_clocks: Vec<WrongClock>,
}

#[derive(Serialize, JsonSchema)]
pub struct WrongClock {
    pub participant: ParticipantId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    pub clock_ahead_seconds: i64,
}

impl WrongClock {
    pub fn of(living: &[Living]) -> Vec<Self> {
        let wrong = |one: &Living| {
            let (participant, client) = (one.id.clone(), one.client.clone());
            Some(Self {
                participant,
                pid: one.pid,
                client,
                clock_ahead_seconds: one.ahead? / SECOND,
            })
        };
        living.iter().filter_map(wrong).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    Ok,
    Degraded,
}

#[derive(Serialize, JsonSchema)]
pub struct Queue {
    pub available: usize,
    pub ready: usize,
    pub claimed: usize,
    /// Those in review, too
    pub in_progress: usize,
    pub review: usize,
    pub failed: usize,
    /// Age of the oldest task that could be claimed now
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_ready_seconds: Option<i64>,
}

impl Operation for HealthCheck {
    const NAME: &'static str = "health_check";
    const DESCRIPTION: &'static str = "Whether the board and the process that answers work as \
                                       they should, and how the queue moves.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(_: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let troubles = troubles(state, call);
        let kinds: Vec<_> = troubles.iter().map(|trouble| trouble.kind).collect();
        let living = (call.vitals.living)();
        let oldest = state.oldest_ready().map(|task| call.now.since(task.created_at) / SECOND);
        Ok(Reply {
            status: if troubles.is_empty() { Health::Ok } else { Health::Degraded },
            ready: kinds.iter().all(|kind| kind.is_harmless()),
            reasons: troubles.into_iter().map(|trouble| trouble.text).collect(),
            kinds,
            version: env!("CARGO_PKG_VERSION"),
            board_id: state.board().board_id.clone(),
            seq: state.seq(),
            state_file_lag: (call.vitals.state_file_seq)()
                .map(|shown| state.seq().saturating_sub(shown)),
            uptime_seconds: call.now.since(call.vitals.started_at) / SECOND,
            queue: Queue {
                available: state.count(TaskStatus::Available),
                ready: state.ready_count(),
                claimed: state.count(TaskStatus::Claimed),
                in_progress: state.count(TaskStatus::InProgress) + state.in_review_count(),
                review: state.in_review_count(),
                failed: state.count(TaskStatus::Failed),
                oldest_ready_seconds: oldest,
            },
            agents_present: state.agents().filter(|agent| agent.is_present()).count(),
            participants: state.participants().count(),
            older_processes: state.older(&living, VERSION),
            clock_ahead_seconds: call.vitals.ahead.map(|ahead| ahead / SECOND),
            wrong_clocks: WrongClock::of(&living),
        })
    }
}

fn troubles(state: &State, call: &Call) -> Vec<Trouble> {
    let clock = call.vitals.ahead.map(|ahead| {
        let (seconds, side) = (ahead.abs() / SECOND, if ahead > 0 { "ahead of" } else { "behind" });
        let text = format!(
            "the clock of this process is {seconds} s {side} the board's time, by which deadlines \
             go; set it right, as with NTP, then restart the process"
        );
        Trouble::new(Kind::WrongClock, text)
    });
    let full = state.nearly_full(call.now).into_iter();
    let full = full.map(|text| Trouble::new(Kind::NearlyFull, text));
    let found = call.vitals.troubles.iter().cloned();
    found.chain((call.vitals.room)()).chain(clock).chain(full).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_called_alike_in_replies_and_metrics() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("its name"), kind.name());
        }
    }
}
