//! Sessions: each is one conversation with an agent. Runs start and resume it; results of its child
//! runs are kept here until a run of it takes them over.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::{Demands, Properties};
use super::id::{SessionId, TaskId};
use super::record::Record;
use super::run::{ChildResult, ExecutionMode};
use super::task::Task;
use super::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: SessionId,
    /// Session whose run started this one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_dir: Option<String>,
    /// Execution mode of the newest run, and of runs that the board creates itself
    pub execution_mode: ExecutionMode,
    /// Where the session was started and so has to continue
    #[serde(default, skip_serializing_if = "Affinity::is_empty")]
    pub affinity: Affinity,
    /// Id of the newest run
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<TaskId>,
    /// Number of runs so far
    #[serde(default)]
    pub runs: u32,
    /// Results of ended child runs that no run of this session has taken over yet, oldest first
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ChildResult>,
    /// True if the run that was to take the results over ended before it began: they wait for a
    /// run that somebody creates, or for another result
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// What the newest run that somebody created asked for; runs that the board creates ask for
    /// the same
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<Asked>>,
    #[serde(default)]
    pub created_at: Timestamp,
}

impl Record for Session {
    const FIELD: &'static str = "sessions";
    type Id = SessionId;
    type All = BTreeMap<SessionId, Self>;

    fn id(&self) -> Option<&SessionId> {
        Some(&self.id)
    }
}

/// What a run asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    #[serde(default, skip_serializing_if = "Demands::is_empty")]
    pub demands: Demands,
    pub priority: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
}

impl Asked {
    pub fn of(run: &Task) -> Self {
        Self {
            demands: Demands::clone(&run.demands),
            priority: run.priority,
            timeout_seconds: run.timeout_seconds,
        }
    }
}

impl Session {
    /// Demands on a runner that resumes the session: where the conversation is takes precedence
    /// over what was asked for.
    pub fn demands(&self) -> Demands {
        let affinity = self.affinity.demands();
        let asked = self.asked.as_deref().map(|asked| asked.demands.clone()).unwrap_or_default();
        Demands {
            hostname: affinity.hostname.or(asked.hostname),
            profile: affinity.profile.or(asked.profile),
            ..asked
        }
    }
}

/// The machine and profile that have the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Affinity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

impl Affinity {
    pub fn of(properties: &Properties) -> Self {
        Self { hostname: properties.hostname.clone(), profile: properties.profile.clone() }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Demands on a runner that resumes the session.
    pub fn demands(&self) -> Demands {
        Demands {
            hostname: self.hostname.clone(),
            profile: self.profile.clone(),
            ..Demands::default()
        }
    }
}

/// What is kept to find sessions: all of it follows from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lineage {
    pub(super) by_creation: BTreeSet<(Timestamp, SessionId)>,
    pub(super) children: BTreeSet<(SessionId, SessionId)>,
    /// Sessions with results that no run has taken over.
    pub(super) owed: BTreeSet<SessionId>,
}

impl Lineage {
    pub(super) fn replace(&mut self, id: &SessionId, old: Option<&Session>, new: Option<&Session>) {
        if let Some(old) = old {
            self.by_creation.remove(&(old.created_at, id.clone()));
            if let Some(parent) = &old.parent_session_id {
                self.children.remove(&(parent.clone(), id.clone()));
            }
            self.owed.remove(id);
        }
        if let Some(new) = new {
            self.by_creation.insert((new.created_at, id.clone()));
            if let Some(parent) = &new.parent_session_id {
                self.children.insert((parent.clone(), id.clone()));
            }
            if !new.results.is_empty() {
                self.owed.insert(id.clone());
            }
        }
    }
}
