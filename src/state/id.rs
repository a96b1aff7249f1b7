//! Names of things. An id is data that agents write: it is checked once, here, and never used as a
//! path.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limit;
use super::refusal::Refusal;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(transparent)]
        pub struct $name(#[schemars(with = "String")] Arc<str>);

        impl $name {
            /// An id that came from the board itself: read from the journal or the state file, or made up here.
            pub fn trusted(id: impl AsRef<str>) -> Self {
                Self(Arc::from(id.as_ref()))
            }

            /// Checks an id that somebody wrote: 1 to 64 letters, digits and `. _ : @ + -`, beginning with a letter or
            /// digit.
            pub fn checked(id: &str) -> Result<Self, Refusal> {
                check($what, id)?;
                Ok(Self(Arc::from(id)))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self::trusted(id)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

/// The address of the person whose board it is.
pub const HUMAN: &str = "human";

/// Begins the actor of what a person does, or the bearer of a token: no agent's id begins with it.
const PERSON: char = '~';

impl AgentId {
    /// The actor of what the person or the token of this name does.
    pub fn of_person(name: &str) -> Self {
        Self::trusted(format!("{PERSON}{name}"))
    }

    /// The name of the person or token that acted.
    pub fn person(&self) -> Option<&str> {
        self.as_str().strip_prefix(PERSON)
    }

    /// Whether people call the actor so: by its id or name, or `human` for any person.
    pub fn is_called(&self, name: &str) -> bool {
        match self.person() {
            Some(own) => name == own || name == HUMAN,
            None => name == self.as_str(),
        }
    }

    /// What people call the actor.
    pub fn shown(&self) -> &str {
        self.person().unwrap_or(self.as_str())
    }
}

id!(
    /// Id of a task or run: `task-` or `run-` and lower-case base32 digits, or chosen by the creator
    TaskId,
    "task id"
);
/// Whether a task's name is of digits alone, as its number is. No new task gets such an id.
pub fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

id!(
    /// Id of an agent: chosen by it, or made up, such as `swift-otter`
    AgentId,
    "agent id"
);
id!(DiscoveryId, "discovery id");
id!(MessageId, "message id");
id!(ReservationId, "reservation id");
id!(SessionId, "session id");
id!(
    /// Id of a workflow, chosen by whoever runs it
    WorkflowId,
    "workflow id"
);
id!(
    /// Place of a checkpoint: `<workflow>/<place>`
    CheckpointId,
    "checkpoint id"
);
id!(
    /// Id of a process that takes part in the board: `p-` and ten base32 digits
    ParticipantId,
    "participant id"
);

fn check(what: &'static str, id: &str) -> Result<(), Refusal> {
    limit::ID.check(id.len())?;
    let mut bytes = id.bytes();
    let starts_well = bytes.next().is_some_and(|first| first.is_ascii_alphanumeric());
    if starts_well && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._:@+-".contains(&byte)) {
        return Ok(());
    }
    Err(Refusal::BadId { what, suggestion: cleaned(id) })
}

/// The nearest acceptable id, for the error message.
fn cleaned(id: &str) -> String {
    let kept: String = id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._:@+-".contains(c) { c } else { '-' })
        .take(limit::ID.max)
        .collect();
    let trimmed = kept.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if trimmed.is_empty() { "worker-1".to_owned() } else { trimmed.to_owned() }
}

/// A stream of numbers from one seed (SplitMix64): chance is an argument of the core, and equal
/// seeds give equal ids.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `len` lower-case base32 digits without the ones that are easily misread (i, l, o, u).
    pub fn base32(&mut self, len: usize) -> String {
        const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let bits = self.draw();
        (0..len).map(|i| char::from(DIGITS[(bits >> (5 * i)) as usize & 31])).collect()
    }

    /// A name that people can remember and tell from others.
    pub fn agent_name(&mut self) -> String {
        const FIRST: [&str; 32] = [
            "amber", "brave", "calm", "clear", "cool", "crisp", "deft", "eager", "fair", "fleet",
            "fresh", "glad", "keen", "kind", "light", "lively", "loyal", "lucid", "mellow", "neat",
            "nimble", "noble", "patient", "plucky", "proud", "quick", "quiet", "steady", "sunny",
            "swift", "tidy", "warm",
        ];
        const SECOND: [&str; 32] = [
            "badger", "bison", "crane", "curlew", "dingo", "egret", "falcon", "ferret", "finch",
            "gecko", "heron", "ibis", "jackal", "kestrel", "lark", "lemur", "lynx", "marten",
            "moose", "newt", "ocelot", "osprey", "otter", "panda", "plover", "puffin", "robin",
            "seal", "stoat", "tapir", "vole", "wren",
        ];
        let bits = self.draw();
        format!("{}-{}", FIRST[bits as usize & 31], SECOND[(bits >> 5) as usize & 31])
    }
}
