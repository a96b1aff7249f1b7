//! Messages between agents, and between agents and the board's owner. The recipients are decided
//! when a message is sent; it stays unread by each until that one acknowledges it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{AgentId, MessageId, TaskId};
use super::record::Record;
use super::table::Ordinal;
use super::time::Timestamp;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    #[default]
    Inform,
    /// An answer is wanted
    Request,
    Reply,
}

impl MessageKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inform => "inform",
            Self::Request => "request",
            Self::Reply => "reply",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    pub id: MessageId,
    pub from: AgentId,
    /// Name of the person who wrote it, if `from` is `human`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// Address as given: an agent, `role:…`, `task:…`, `all` or `human`
    pub to: String,
    pub kind: MessageKind,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    pub sent_at: Timestamp,
    /// Agents that the address stood for when the message was sent
    pub recipients: BTreeSet<AgentId>,
    /// Number of a question to the board's owner, which people call `Q3`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<u64>,
    /// Answers that it offers
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Recipients that have not acknowledged it
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unread_by: BTreeSet<AgentId>,
}

impl Message {
    /// Who wrote it, as people call them.
    pub fn author(&self) -> &str {
        self.person.as_deref().unwrap_or(self.from.as_str())
    }

    /// What people call it: `Q3`, or its id.
    pub fn name(&self) -> String {
        self.question.map_or_else(|| self.id.to_string(), |number| format!("Q{number}"))
    }

    /// The number in `Q3` or `q3`.
    pub fn number_of(name: &str) -> Option<u64> {
        let digits = name.strip_prefix(['Q', 'q'])?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    }
}

impl Record for Message {
    const FIELD: &'static str = "messages";
    type Id = MessageId;
    type All = Vec<Arc<Self>>;

    fn id(&self) -> Option<&MessageId> {
        Some(&self.id)
    }
}

/// The inboxes, which follow from the messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Mail {
    pub(super) boxes: HashMap<AgentId, Mailbox>,
    pub(super) read_by_all: BTreeSet<Ordinal>,
    pub(super) ordinals: HashMap<MessageId, Ordinal>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Mailbox {
    pub(super) unread: BTreeSet<Ordinal>,
    pub(super) read: BTreeSet<Ordinal>,
}

impl Mail {
    pub(super) fn ordinal(&self, id: &MessageId) -> Option<Ordinal> {
        self.ordinals.get(id).copied()
    }

    pub(super) fn add(&mut self, ordinal: Ordinal, message: &Message) {
        self.ordinals.insert(message.id.clone(), ordinal);
        if message.unread_by.is_empty() {
            self.read_by_all.insert(ordinal);
        }
        for id in &message.recipients {
            let mailbox = self.boxes.entry(id.clone()).or_default();
            let list = if message.unread_by.contains(id) {
                &mut mailbox.unread
            } else {
                &mut mailbox.read
            };
            list.insert(ordinal);
        }
    }

    pub(super) fn remove(&mut self, ordinal: Ordinal, message: &Message) {
        self.ordinals.remove(&message.id);
        self.read_by_all.remove(&ordinal);
        for id in &message.recipients {
            let Some(mailbox) = self.boxes.get_mut(id) else { continue };
            mailbox.unread.remove(&ordinal);
            mailbox.read.remove(&ordinal);
            if mailbox.unread.is_empty() && mailbox.read.is_empty() {
                self.boxes.remove(id);
            }
        }
    }
}
