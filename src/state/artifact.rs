//! Artifacts: files that work leaves besides its result. The state has their names and hashes; the
//! files lie in the board's directory.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::AgentId;
use super::limit::{self, VERSIONS_KEPT};
use super::refusal::Refusal;
use super::time::Timestamp;

/// Directory of the artifacts, in the board's directory.
pub const DIRECTORY: &str = "artifacts";

/// Source of an artifact's content.
pub enum Source<'a> {
    Text(&'a str),
    /// Path of a file on this machine.
    Path(&'a str),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    pub at: Timestamp,
    /// Versions that this one has replaced, newest first
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Version>,
}

/// What an artifact was before it was replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    pub bytes: u64,
    pub sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    pub at: Timestamp,
}

impl Artifact {
    /// Name of the artifact's file below `artifacts/<task>/`. It contains a hash, so that two
    /// contents of one name never collide.
    pub fn file(&self) -> String {
        format!("{}-{}", self.sha256.get(..8).unwrap_or_default(), self.name)
    }

    /// The versions to list once another artifact replaces this one.
    pub fn versions(&self) -> Vec<Version> {
        let Self { bytes, sha256, agent, attempt, at, earlier, .. } = self.clone();
        let replaced = Version { bytes, sha256, agent, attempt, at };
        std::iter::once(replaced).chain(earlier).take(VERSIONS_KEPT).collect()
    }
}

/// Checks a name: 1 to 100 letters, digits and `. _ -`, beginning with a letter or digit, so that
/// it is safe as a file name.
pub fn checked_name(name: &str) -> Result<String, Refusal> {
    limit::LABEL.check_text(name)?;
    let mut bytes = name.bytes();
    let starts_well = bytes.next().is_some_and(|first| first.is_ascii_alphanumeric());
    if starts_well && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        return Ok(name.to_owned());
    }
    let mut suggestion = String::new();
    for c in name.chars().skip_while(|c| !c.is_ascii_alphanumeric()).take(limit::LABEL.max) {
        let _ = suggestion.write_char(if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        });
    }
    let suggestion = if suggestion.is_empty() { "report.txt".to_owned() } else { suggestion };
    Err(Refusal::BadArtifactName { suggestion })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        for good in ["a", "report.txt", "1-2_3.tar.gz"] {
            assert_eq!(checked_name(good).as_deref(), Ok(good));
        }
        for (bad, suggestion) in [
            ("../x", "x"),
            ("a/b", "a-b"),
            (".hidden", "hidden"),
            ("", "report.txt"),
            ("ä", "report.txt"),
        ] {
            assert_eq!(
                checked_name(bad),
                Err(Refusal::BadArtifactName { suggestion: suggestion.to_owned() }),
                "{bad}"
            );
        }
    }
}
