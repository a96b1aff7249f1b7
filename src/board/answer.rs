//! What a call is answered with.

use std::ops::Deref;

use serde::Serialize;
use serde_json::Value;

/// The reply of an operation, and what the board says beside it.
#[derive(Debug)]
pub struct Answer<R> {
    /// The reply, whose fields can be read from the answer itself, too.
    pub reply: R,
    json: Value,
}

impl<R> Answer<R> {
    pub(crate) fn new(reply: R, json: Value) -> Self {
        Self { reply, json }
    }

    /// A reply that was made here, without asking a board.
    pub(crate) fn of(reply: R) -> serde_json::Result<Self>
    where
        R: Serialize,
    {
        let json = serde_json::to_value(&reply)?;
        Ok(Self { reply, json })
    }

    /// The reply as clients get it, with all that is said beside it: `agent_id`, `unread_messages`,
    /// `stop_requested`, `warning`, what git says of the worktree, and the results of the steps
    /// of a batch.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Takes the JSON out of the answer.
    pub fn into_json(self) -> Value {
        self.json
    }

    /// A warning, although the call was done.
    pub fn warning(&self) -> Option<&str> {
        self.json["warning"].as_str()
    }

    /// The agent that the call acted for.
    pub fn agent_id(&self) -> Option<&str> {
        self.json["agent_id"].as_str()
    }
}

impl<R> Deref for Answer<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.reply
    }
}
