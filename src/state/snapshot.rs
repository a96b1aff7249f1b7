//! What is known of a snapshot: its name, its head, and what a check of all of them finds.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::refusal::Refusal;
use super::time::Timestamp;

pub const FORMAT: u32 = 1;

/// `state-20260301T120000.000Z-1a2b3c4d.json`: the time when it was taken and the first 8 hex
/// digits of the file's SHA-256. The names sort in the order in which they were taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct SnapshotName(String);

const SHAPE: &str = "state-########T######.###Z-xxxxxxxx.json";

impl SnapshotName {
    pub fn new(at: Timestamp, sha256: &str) -> Self {
        let time: String = at.to_string().chars().filter(|c| !matches!(c, '-' | ':')).collect();
        Self(format!("state-{time}-{}.json", sha256.get(..8).unwrap_or_default()))
    }

    /// The name, which is then safe to join to a directory; `None` if it has another form.
    pub fn parse(name: &str) -> Option<Self> {
        let fits = |(found, wanted): (u8, u8)| match wanted {
            b'#' => found.is_ascii_digit(),
            b'x' => matches!(found, b'0'..=b'9' | b'a'..=b'f'),
            exact => found == exact,
        };
        (name.len() == SHAPE.len() && name.bytes().zip(SHAPE.bytes()).all(fits))
            .then(|| Self(name.to_owned()))
    }

    pub fn checked(name: &str) -> Result<Self, Refusal> {
        Self::parse(name).ok_or_else(|| Refusal::BadSnapshotName { given: printable(name) })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Time when the snapshot was taken.
    pub fn at(&self) -> Timestamp {
        let part = |range| self.0.get(range).unwrap_or_default();
        let (date, time, rest) = (part(6..14), part(15..21), part(21..26));
        let date = format!("{}-{}-{}", &date[..4], &date[4..6], &date[6..]);
        let text = format!("{date}T{}:{}:{}{rest}", &time[..2], &time[2..4], &time[4..]);
        serde_json::from_value(text.into()).unwrap_or_default()
    }

    /// First 8 hex digits of the file's SHA-256.
    pub fn hash(&self) -> &str {
        self.0.get(27..35).unwrap_or_default()
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SnapshotName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| serde::de::Error::custom("this is no snapshot's name"))
    }
}

/// What a refusal repeats of a wrong name.
fn printable(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    OnDemand,
    /// The board was about to be restored to an earlier state
    BeforeRestore,
    /// A hand edit of the state file was about to be adopted
    BeforeEdit,
    /// Tasks were about to be reset
    BeforeReset,
    /// The journal had grown
    Growth,
}

impl Occasion {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on demand",
            Self::BeforeRestore => "before a restore",
            Self::BeforeEdit => "before a hand edit",
            Self::BeforeReset => "before a reset",
            Self::Growth => "as the journal grew",
        }
    }
}

/// Head of a snapshot's file, before the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    pub format: u32,
    pub board_id: String,
    /// Last event in its state
    pub seq: u64,
    pub taken_at: Timestamp,
    pub occasion: Occasion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// SHA-256 of the file of the snapshot before it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev_sha256: Option<String>,
    /// Size of the journal at that time, in bytes
    #[serde(default)]
    pub journal_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    pub name: SnapshotName,
    pub bytes: u64,
    /// Null if the file does not begin as a snapshot does
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
}

/// Result of checking every snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Verification {
    /// True if nothing is wrong
    pub sound: bool,
    pub snapshots: usize,
    pub problems: Vec<Problem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_sound: Option<SnapshotName>,
    /// The oldest snapshot, if the one before it was pruned
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned_before: Option<SnapshotName>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Problem {
    pub file: String,
    pub problem: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_when_and_what() {
        let at = Timestamp::from_millis(1_772_366_400_123);
        let name = SnapshotName::new(at, "1a2b3c4d5e6f");
        assert_eq!(name.as_str(), "state-20260301T120000.123Z-1a2b3c4d.json");
        assert_eq!((name.at(), name.hash()), (at, "1a2b3c4d"));
        assert_eq!(SnapshotName::parse(name.as_str()), Some(name));
    }

    #[test]
    fn what_is_no_name_is_no_path() {
        let good = "state-20260301T120000.123Z-1a2b3c4d.json";
        for bad in
            ["", "../x", "/etc/passwd", "latest.json", "state-20260301T120000.123Z-1a2b3c4D.json"]
        {
            assert_eq!(SnapshotName::parse(bad), None, "{bad}");
        }
        for index in 0..good.len() {
            let bad = format!("{}/{}", &good[..index], &good[index + 1..]);
            assert_eq!(SnapshotName::parse(&bad), None, "{bad}");
        }
    }
}
