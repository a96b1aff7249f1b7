//! Who reads what a message says, its text and the answers that it offers: its sender, its
//! recipients, leaders and the person whose board it is. Every way out asks [`may_read`]. Others get
//! the event or the entry without them.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::Principal;
use crate::state::agent::Role;
use crate::state::event::{Event, Recorded};
use crate::state::id::{AgentId, MessageId};
use crate::state::message::Message;

/// Whether the caller may read the text. A token without an agent is none of the recipients; in
/// `get_messages` it reads as the agent that the call names.
pub fn may_read(principal: Option<&Principal>, message: &Message) -> bool {
    principal.is_none_or(|principal| {
        let is_own = |agent: &AgentId| message.from == *agent || message.recipients.contains(agent);
        principal.role == Role::Leader || principal.agent.as_ref().is_some_and(is_own)
    })
}

/// The fields of a message that say something.
const SAID: [&str; 2] = ["text", "options"];

/// Takes out what a message says, for who may not read it.
pub(super) fn withhold(text: &mut String, options: &mut Vec<String>) {
    text.clear();
    options.clear();
}

/// The event as JSON without the texts that the caller may not read. `None` if it has none of them.
pub fn without_texts(recorded: &Recorded, principal: Option<&Principal>) -> Option<Value> {
    let messages: Vec<&Message> = match &recorded.event {
        _ if principal.is_none() => return None,
        Event::MessageSent { message } => vec![message],
        Event::Imported { document, .. }
        | Event::StateRestored { document, .. }
        | Event::Purged { document, .. } => document.messages.iter().map(Arc::as_ref).collect(),
        _ => return None,
    };
    let hidden: HashSet<&MessageId> =
        messages.into_iter().filter(|one| !may_read(principal, one)).map(|one| &one.id).collect();
    if hidden.is_empty() {
        return None;
    }
    let mut told = serde_json::to_value(recorded).ok()?;
    if let Some(message) = told.get_mut("message") {
        strip(message, &hidden);
        // It has the hash of the call's arguments, by which a short text can be guessed.
        told.as_object_mut()?.shift_remove("idempotency");
    } else if let Some(all) = told.pointer_mut("/document/messages") {
        all.as_array_mut()?.iter_mut().for_each(|message| strip(message, &hidden));
    }
    Some(told)
}

fn strip(message: &mut Value, hidden: &HashSet<&MessageId>) {
    if let Some(fields) = message.as_object_mut()
        && fields["id"].as_str().is_some_and(|id| hidden.iter().any(|one| one.as_str() == id))
    {
        fields.retain(|name, _| !SAID.contains(&name.as_str()));
        fields.insert("private".to_owned(), Value::Bool(true));
    }
}
