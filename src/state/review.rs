//! What is said of reviews: who has to approve a result, and what a reviewer said of one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::AgentId;
use super::time::Timestamp;

// Whether a completed task waits for a reviewer, and for which. No doc comments, because every tool
// list would contain them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Review {
    // Whatever is said above: of what the task is a part of, of its plan, of the board.
    #[serde(rename = "default")]
    Unsaid,
    // The task is done at once.
    #[default]
    #[serde(rename = "none")]
    None,
    // Anybody but the agent that did the work.
    #[serde(rename = "required")]
    Required,
    #[serde(rename = "by leader", alias = "leader")]
    ByLeader,
    #[serde(rename = "by worker", alias = "worker")]
    ByWorker,
}

impl Review {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unsaid => "default",
            Self::None => "none",
            Self::Required => "required",
            Self::ByLeader => "by leader",
            Self::ByWorker => "by worker",
        }
    }

    /// Reads what people write: `by leader`, `By: Leader`, `leader`, `required`, `yes`.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        let words = text.split([' ', ':', '-']).filter(|word| !word.is_empty());
        Some(match words.collect::<Vec<_>>().as_slice() {
            ["required" | "yes" | "true"] => Self::Required,
            ["none" | "no" | "false"] => Self::None,
            ["default"] => Self::Unsaid,
            ["by", "leader"] | ["leader"] => Self::ByLeader,
            ["by", "worker"] | ["worker"] => Self::ByWorker,
            _ => return None,
        })
    }

    /// What is said, if anything is.
    pub fn said(self) -> Option<Self> {
        Some(self).filter(|review| *review != Self::Unsaid)
    }
}

impl fmt::Display for Review {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a reviewer said of an attempt's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reviewed {
    pub approved: bool,
    /// The agent, or `human`, that said so
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// What the reviewer said; of a rejection, the reason
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    pub at: Timestamp,
}
