use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, Toolset, WRITE, input};
use crate::state::event::Event;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, Chance, MessageId, TaskId};
use crate::state::inbox::Address;
use crate::state::limit;
use crate::state::message::{Message, MessageKind};
use crate::state::refusal::Refusal;
use crate::state::{Created, State};

pub struct SendMessage;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Agent id, `role:leader`, `role:worker`, `task:ID` for the holder of a task, `all` or
    /// `human`; default in a reply: the sender of that message
    pub to: Option<String>,
    pub text: String,
    /// `request` if you want an answer
    pub kind: Option<MessageKind>,
    /// Id of the message that you answer
    pub reply_to: Option<String>,
    /// Task that the message is about; default in a reply: that of the message
    pub task_id: Option<String>,
    pub idempotency_key: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub message_id: MessageId,
    /// Whom it is for, as `to` has it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Number of agents it was sent to
    pub recipients: usize,
    /// Agents that did not get it because their inboxes are full
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub full: Vec<AgentId>,
}

/// Most agents with full inboxes that are named.
const FULL_NAMED: usize = 20;

impl Operation for SendMessage {
    const NAME: &'static str = "send_message";
    const DESCRIPTION: &'static str = "Tell or ask an agent, a role, who holds a task, everybody, \
                                       or the person whose board it is.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn idempotency_key(params: &Params) -> Option<&str> {
        params.idempotency_key.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let Params { to, text, kind, reply_to, task_id, .. } = params;
        let draft = Draft {
            to: to.clone(),
            text,
            what: "text",
            kind: *kind,
            reply_to: reply_to.as_deref(),
            task_id: task_id.clone(),
            options: Vec::new(),
        };
        sent(draft, state, call)
    }
    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let sent = call.created.iter().find_map(|created| match created {
            Created::Message(id) => Some(id.clone()),
            _ => None,
        });
        let message_id = sent.ok_or(Refusal::Missing { what: "what the call created" })?;
        // When a call is repeated, everybody may have read the message, so that it is no longer
        // kept.
        let message = state.message(&message_id);
        let recipients = message.map_or(0, |message| message.recipients.len());
        let to = message.map(|message| message.to.clone()).or_else(|| params.to.clone());
        let full = left_out(params, state, call, &message_id);
        Ok(Reply { success: true, message_id, to, recipients, full })
    }
}

/// A message before it is sent.
pub(super) struct Draft<'a> {
    pub to: Option<String>,
    pub text: &'a str,
    /// Name of the argument that has the text.
    pub what: &'static str,
    pub kind: Option<MessageKind>,
    pub reply_to: Option<&'a str>,
    pub task_id: Option<String>,
    pub options: Vec<String>,
}

/// The events by which the message is sent.
pub(super) fn sent(draft: Draft, state: &State, call: &Call) -> Decision {
    let from = call.agent()?.clone();
    state.known_agent(&from)?;
    let text = input::checked_text(draft.what, &limit::MESSAGE, draft.text)?;
    let asked = draft.reply_to.map(|id| answered(id, &from, state)).transpose()?;
    let task_id = draft.task_id.as_deref().map(TaskId::checked).transpose()?;
    if let Some(id) = &task_id
        && state.status_of(id).is_none()
    {
        return Err(Refusal::UnknownTask { task: id.clone() }.into());
    }
    let to = draft.to.or_else(|| asked.map(|asked| asked.from.to_string()));
    let to = to.ok_or(Refusal::Empty { what: "to" })?;
    let address = Address::checked(&to)?;
    let kind = draft.kind.unwrap_or(if asked.is_some() {
        MessageKind::Reply
    } else {
        MessageKind::Inform
    });
    let is_question = address == Address::Human && kind == MessageKind::Request;
    let room = state.room_for_message(call.now)?;
    let message = Message {
        id: MessageId::trusted(format!("msg-{}", Chance::new(call.seed).base32(8))),
        to,
        kind,
        text,
        reply_to: asked.map(|asked| asked.id.clone()),
        task_id: task_id.or_else(|| asked?.task_id.clone()),
        sent_at: call.now,
        recipients: state.recipients(&address, &from, call.now)?.reached,
        unread_by: BTreeSet::new(),
        question: is_question.then(|| state.board().questions + 1),
        options: draft.options,
        person: by_name(&from, call),
        from,
    };
    Ok(room.into_iter().chain([Event::MessageSent { message: Box::new(message) }]).collect())
}

/// The name of the person who writes: of the token, or the board's owner.
fn by_name(from: &AgentId, call: &Call) -> Option<String> {
    let name = call.principal.map(|principal| principal.token.as_str()).or(call.person);
    name.filter(|_| from.as_str() == HUMAN).map(str::to_owned)
}

/// Agents that the message was for but that did not get it.
fn left_out(params: &Params, state: &State, call: &Call, sent: &MessageId) -> Vec<AgentId> {
    let address = params.to.as_deref().map(Address::checked);
    let (Some(Ok(address)), Some(message)) = (address, state.message(sent)) else {
        return Vec::new();
    };
    let Ok(found) = state.recipients(&address, &message.from, call.now) else { return Vec::new() };
    found.full.into_iter().filter(|id| !message.recipients.contains(id)).take(FULL_NAMED).collect()
}

/// The message to answer. Only its recipients may answer it, and the board's owner any. A question
/// has one answer.
fn answered<'s>(id: &str, from: &AgentId, state: &'s State) -> Result<&'s Message, Refusal> {
    let numbered = Message::number_of(id).and_then(|number| state.question(number));
    let message = match numbered {
        Some(message) => Some(message),
        None => state.message(&MessageId::checked(id)?).map(AsRef::as_ref),
    };
    let message = message.filter(|one| one.recipients.contains(from) || from.as_str() == HUMAN);
    let message =
        message.ok_or_else(|| Refusal::UnknownMessage { message: MessageId::trusted(id) })?;
    match state.answer_to(&message.id) {
        Some(answer) if message.question.is_some() => Err(Refusal::Answered {
            question: message.name(),
            by: answer.author().to_owned(),
            answer: answer.text.clone(),
        }),
        _ => Ok(message),
    }
}
