//! Asks the person at the client: the questions of `ask_human`, and before the board loses something
//! for good. Only where the client says that it can ask (elicitation).
//!
//! Up to 2025-11-25 the server sends the client a request of its own. Since 2026-07-28 a question is
//! the answer to the tool call, and the client makes the call again with what the person said.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientResult, InputRequests, InputRequiredResult,
    ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions};
use serde_json::{Value, json};
use tokio::select;

use super::server::{Answer, Request, Server, is_modern};
use crate::ops::{
    AskHuman, DeleteCheckpoints, Door, EventFilter, Operation, Reader, RemovePlan, ResetTasks,
    RestoreSnapshot, SendMessage,
};
use crate::participant::{AgentChoice, CallError, Caller, Handle};
use crate::state::agent::Role;
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::message::Message;
use crate::state::refusal::Refusal;

/// What the board loses by the operation.
const DESTROYS: [(&str, &str); 4] = [
    (ResetTasks::NAME, "begin tasks anew; their results go"),
    (RestoreSnapshot::NAME, "set the whole board back to an earlier state"),
    (RemovePlan::NAME, "take a plan off the board"),
    (DeleteCheckpoints::NAME, "delete checkpoints"),
];

/// Name of the question in an answer to a tool call, and of its form's only field that matters.
const KEY: &str = "person";
const CONFIRM: &str = "confirm";
const CHOICE: &str = "choice";
const WORDS: &str = "answer";

/// Questions that this process has asked at a client. None is asked twice: a person who does not
/// answer there answers elsewhere.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<Mutex<HashSet<u64>>>);

impl Asked {
    fn is_new(&self, question: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(question)
    }
}

/// Whether a call may go on.
pub(super) enum Consent {
    Given,
    /// The client is to ask the person first.
    Wanted(InputRequiredResult),
    Refused(CallError),
}

impl Server {
    /// Whether the client asks its user, and the user may act as the person in charge.
    fn may_ask(&self, request: &Request) -> bool {
        let forms = request.client_capabilities().and_then(|client| client.elicitation);
        let caller = self.caller_of(request);
        forms.is_some_and(|forms| forms.form.is_some() || forms.url.is_none())
            && caller.principal.is_none_or(|principal| principal.role == Role::Leader)
    }

    /// Asks the person whether what destroys is to be done.
    pub(super) async fn consent(
        &self,
        call: &CallToolRequestParams,
        request: &Request,
    ) -> Answer<Consent> {
        let Some((name, loss)) = DESTROYS.iter().find(|(name, _)| *name == call.name) else {
            return Ok(Consent::Given);
        };
        if !self.may_ask(request) {
            return Ok(Consent::Given);
        }
        let said = match said(call) {
            Some(said) => said,
            None => {
                let form = confirmation(loss, call);
                if is_modern(request) {
                    return Ok(Consent::Wanted(required(form)?));
                }
                select! {
                    () = request.ct.cancelled() => return Err(cancelled()),
                    said = ask(&request.peer, form) => said.map_err(failed)?,
                }
            }
        };
        if said["action"] == "accept" && said["content"][CONFIRM] == true {
            return Ok(Consent::Given);
        }
        let refusal = Refusal::NotConfirmed { operation: (*name).to_owned() };
        Ok(Consent::Refused(CallError::Refused(refusal)))
    }

    /// Has the client ask its user what the agent asks, too; who answers first, answers. Returns
    /// what the client is to do before the call goes on.
    pub(super) async fn ask_there(
        &self,
        call: &CallToolRequestParams,
        request: &Request,
    ) -> Answer<Option<CallToolResponse>> {
        if call.name != AskHuman::NAME || !self.may_ask(request) {
            return Ok(None);
        }
        let mut arguments = call.arguments.clone().unwrap_or_default();
        let waits = arguments.insert("wait_seconds".to_owned(), Value::from(0)).is_some_and(waits);
        // A refusal comes again with the call itself.
        let Ok(reply) = self.call(&call.name, Value::Object(arguments), request).await? else {
            return Ok(None);
        };
        let number = reply["question"].as_str().and_then(Message::number_of);
        let Some(number) = number.filter(|_| reply["answer"].is_null()) else { return Ok(None) };
        let person = self.person_at(request);
        if let Some(said) = said(call) {
            pass_on(&self.handle, &person, number, &said).await;
        } else if (waits || !is_modern(request)) && self.asked.is_new(number) {
            let asked = self.look(move |state| state.question(number).cloned()).await?;
            let Some(asked) = asked else { return Ok(None) };
            if is_modern(request) {
                return Ok(Some(required(question(&asked))?.into()));
            }
            let (handle, peer) = (self.handle.clone(), request.peer.clone());
            tokio::spawn(async move {
                if let Some(said) = ask_until_answered(&handle, &peer, &asked, number).await {
                    pass_on(&handle, &person, number, &said).await;
                }
            });
        }
        Ok(None)
    }

    /// The user of the client, as the person in charge.
    fn person_at(&self, request: &Request) -> Caller {
        let agent = AgentChoice::Named(AgentId::trusted(HUMAN));
        let caller = self.caller_of(request);
        let person = caller.person.clone().or_else(|| self.person.clone());
        Caller { agent, door: Door::Person, person, reader: Reader::Program, ..caller }
    }
}

/// Whether the call gives time to wait. Some clients send numbers as text.
fn waits(seconds: Value) -> bool {
    seconds
        .as_f64()
        .or_else(|| seconds.as_str()?.trim().parse().ok())
        .is_some_and(|time| time > 0.0)
}

/// What the person said, if this is a call that is made again with it.
fn said(call: &CallToolRequestParams) -> Option<Value> {
    call.input_responses.as_ref()?.get(KEY).cloned()
}

fn confirmation(loss: &str, call: &CallToolRequestParams) -> Value {
    let mut arguments = call.arguments.clone().unwrap_or_default();
    let agent = arguments.shift_remove("agent_id");
    let agent = agent.as_ref().and_then(Value::as_str).unwrap_or("an agent");
    let details = if arguments.is_empty() {
        String::new()
    } else {
        format!("\n{} {}", call.name, Value::Object(arguments))
    };
    let schema = json!({
        "type": "object", "required": [CONFIRM],
        "properties": {CONFIRM: {"type": "boolean", "title": "Do it"}},
    });
    let message = format!("{agent} wants to {loss}.{details}");
    json!({"message": message, "requestedSchema": schema})
}

fn question(asked: &Message) -> Value {
    let words = |title: &str| json!({"type": "string", "title": title});
    let schema = if asked.options.is_empty() {
        json!({"type": "object", "properties": {WORDS: words("Answer")}, "required": [WORDS]})
    } else {
        let choice = json!({"type": "string", "title": "Answer", "enum": asked.options});
        json!({"type": "object", "properties": {CHOICE: choice, WORDS: words("In other words")}})
    };
    let message = format!("{} ({}): {}", asked.from, asked.name(), asked.text);
    json!({"message": message, "requestedSchema": schema})
}

/// A question as the answer to a tool call.
fn required(form: Value) -> Answer<InputRequiredResult> {
    let asked = json!({KEY: {"method": "elicitation/create", "params": form}});
    let asked: InputRequests = serde_json::from_value(asked).map_err(failed)?;
    Ok(InputRequiredResult::new(Some(asked), None))
}

/// Sends the client a request of the server's own and waits for what the person says.
async fn ask(peer: &Peer<RoleServer>, form: Value) -> anyhow::Result<Value> {
    let request = json!({"method": "elicitation/create", "params": form});
    match peer.send_request(serde_json::from_value(request)?).await? {
        ClientResult::ElicitResult(result) => Ok(serde_json::to_value(result)?),
        other => anyhow::bail!("the client answered {}", serde_json::to_value(other)?),
    }
}

/// Asks at the client until the question has an answer, there or elsewhere; returns what the person
/// said there.
async fn ask_until_answered(
    handle: &Handle,
    peer: &Peer<RoleServer>,
    asked: &Message,
    number: u64,
) -> Option<Value> {
    let request = json!({"method": "elicitation/create", "params": question(asked)});
    let request: ServerRequest = serde_json::from_value(request).ok()?;
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::default()).await;
    let mut sent = sent.inspect_err(|error| tracing::debug!(%error, "not asked")).ok()?;
    select! {
        said = &mut sent.rx => match said.ok()? {
            Ok(ClientResult::ElicitResult(said)) => serde_json::to_value(said).ok(),
            _ => None,
        },
        _ = answered(handle, number) => {
            let why = Some("the question was answered elsewhere".to_owned());
            drop(sent.cancel(why).await);
            None
        }
    }
}

/// Completes when the question has an answer.
async fn answered(handle: &Handle, number: u64) -> Result<(), CallError> {
    let wanted = EventFilter::checked(&["message_sent".to_owned()], None)?;
    let mut messages = handle.listen(None, wanted).await?;
    loop {
        let is_answered = handle.look(move |state| {
            state.question(number).is_none_or(|asked| state.answer_to(&asked.id).is_some())
        });
        if is_answered.await? {
            return Ok(());
        }
        messages.next().await?;
    }
}

/// Answers the question as the person did. Another may have answered it meanwhile.
async fn pass_on(handle: &Handle, person: &Caller, number: u64, said: &Value) {
    let given = |field: &str| said["content"][field].as_str().map(str::trim);
    let given = [given(WORDS), given(CHOICE)].into_iter().flatten().find(|text| !text.is_empty());
    let Some(text) = given.filter(|_| said["action"] == "accept") else { return };
    let answer = json!({"reply_to": format!("Q{number}"), "text": text});
    if let Err(error) = handle.call(SendMessage::NAME, answer, person).await {
        tracing::info!(error = %error.message(), question = number, "the answer came too late");
    }
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(format!("the person could not be asked: {error}"), None)
}

fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled before the person had confirmed it", None)
}
