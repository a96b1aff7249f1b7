//! Messages, alone or several in an array, as they come by POST and on WebSockets.
//!
//! jsonrpsee's own server starts each request as if it were a connection, which costs more than
//! everything else; it also treats a request whose id is no whole number from 0 as a notification,
//! and does not carry out notifications.

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use jsonrpsee::core::server::MethodSink;
use jsonrpsee::types::error::{
    ErrorCode, INVALID_REQUEST_CODE, METHOD_NOT_FOUND_CODE, METHOD_NOT_FOUND_MSG,
    reject_too_big_batch_request,
};
use jsonrpsee::types::{ErrorObjectOwned, Params, TwoPointZero};
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::events::{SUBSCRIBE, UNSUBSCRIBE};
use super::subscriptions::Subscriptions;
use super::{DISCOVER, Door, arguments, error_object, read_arguments, refused_as_full};
use crate::ops::{self, ClaimRun, ClaimTask, Operation};
use crate::participant::Caller;
use crate::state::limit;
use crate::state::refusal::Refusal;

#[derive(DeriveDeserialize)]
struct Message<'a> {
    #[serde(rename = "jsonrpc")]
    _version: TwoPointZero,
    /// A notification has none; `null` is an id.
    #[serde(borrow, default, deserialize_with = "given")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Serialize)]
pub(super) struct Reply<'a> {
    jsonrpc: TwoPointZero,
    id: &'a RawValue,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Result(Value),
    Error(ErrorObjectOwned),
}

impl From<ErrorObjectOwned> for Outcome {
    fn from(error: ErrorObjectOwned) -> Self {
        Self::Error(error)
    }
}

/// A WebSocket's subscriptions, and where their messages go.
type Socket<'a> = (&'a Subscriptions, &'a MethodSink);

/// The response to a body, which must be checked for duplicate keys.
pub(super) async fn answer(door: &Door, body: &[u8], caller: &Caller) -> Response {
    match message(door, body, caller, None).await {
        Some(answer) => written(answer),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// The answer to a text, which is one message or a batch; none if it needs none.
pub(super) async fn message(
    door: &Door,
    text: &[u8],
    caller: &Caller,
    socket: Option<Socket<'_>>,
) -> Option<serde_json::Result<Vec<u8>>> {
    if text.trim_ascii_start().starts_with(b"[") {
        return batch(door, text, caller, socket).await;
    }
    one(door, text, caller, socket, 0).await.map(|reply| serde_json::to_vec(&reply))
}

async fn batch(
    door: &Door,
    body: &[u8],
    caller: &Caller,
    socket: Option<Socket<'_>>,
) -> Option<serde_json::Result<Vec<u8>>> {
    let messages: Option<Vec<&RawValue>> = serde_json::from_slice(body).ok();
    let refused = match messages.as_ref().map(Vec::len) {
        None => Some(ErrorCode::ParseError.into()),
        Some(0) => Some(ErrorCode::InvalidRequest.into()),
        Some(length) if length > limit::RPC_BATCH.max => {
            Some(reject_too_big_batch_request(limit::RPC_BATCH.max))
        }
        Some(_) => None,
    };
    if let Some(error) = refused {
        return Some(serde_json::to_vec(&Reply::new(RawValue::NULL, Outcome::Error(error))));
    }
    // Replies are serialized one by one: as values they would take several times the memory.
    let mut replies = Vec::new();
    for message in messages.unwrap_or_default() {
        if let Some(reply) =
            one(door, message.get().as_bytes(), caller, socket, replies.len()).await
        {
            replies.push(if replies.is_empty() { b'[' } else { b',' });
            if let Err(error) = serde_json::to_writer(&mut replies, &reply) {
                return Some(Err(error));
            }
        }
    }
    if replies.is_empty() {
        return None;
    }
    replies.push(b']');
    Some(Ok(replies))
}

/// The reply to one message; none for a notification, which is carried out all the same. `before`
/// is the number of bytes in the replies so far.
async fn one<'a>(
    door: &Door,
    text: &'a [u8],
    caller: &Caller,
    socket: Option<Socket<'_>>,
    before: usize,
) -> Option<Reply<'a>> {
    let Ok(message) = serde_json::from_slice::<Message>(text) else {
        let is_json = serde_json::from_slice::<IgnoredAny>(text).is_ok();
        let code = if is_json { ErrorCode::InvalidRequest } else { ErrorCode::ParseError };
        return Some(Reply::new(RawValue::NULL, Outcome::Error(code.into())));
    };
    let is_id =
        |id: &RawValue| matches!(id.get().as_bytes(), [b'"' | b'-' | b'0'..=b'9' | b'n', ..]);
    if message.id.is_some_and(|id| !is_id(id)) {
        let why = "an id is a string, a number or null";
        let error = ErrorObjectOwned::owned(INVALID_REQUEST_CODE, why, None::<()>);
        return Some(Reply::new(RawValue::NULL, Outcome::Error(error)));
    }
    let Some(id) = message.id else {
        heed(door, &message, caller, socket.is_some()).await;
        return None;
    };
    if let Some(error) = refused_as_full(before) {
        return Some(Reply::new(id, Outcome::Error(error)));
    }
    if let Some((subscriptions, sink)) =
        socket.filter(|_| [SUBSCRIBE, UNSUBSCRIBE].contains(&&*message.method))
    {
        let outcome = subscriptions.call(&message.method, id, message.params, sink).await;
        return outcome.map(|outcome| Reply::new(id, outcome));
    }
    Some(Reply::new(id, outcome(door, &message, caller, socket.is_some()).await))
}

/// Carries out a notification. Once begun, it is finished even if the connection closes. Operations
/// whose only effect is their reply are skipped, and so are claims: the reply is never sent.
async fn heed(door: &Door, message: &Message<'_>, caller: &Caller, is_unchecked: bool) {
    let Some(entry) = ops::find(&message.method).filter(|entry| !is_mute(entry)) else { return };
    let Ok(arguments) = arguments_of(entry.name, message, is_unchecked) else { return };
    let (handle, caller) = (door.handle.clone(), caller.clone());
    let heeded = tokio::spawn(async move {
        // A notification has no answer.
        if let Err(error) = handle.call(entry.name, arguments, &caller).await {
            tracing::debug!(
                operation = entry.name,
                error = error.message(),
                "a notification was refused"
            );
        }
    });
    drop(heeded.await);
}

/// Whether the operation is pointless without its reply.
fn is_mute(entry: &ops::Entry) -> bool {
    entry.annotations.read_only || [ClaimTask::NAME, ClaimRun::NAME].contains(&entry.name)
}

/// The params as arguments. Those of a message on a WebSocket have passed no gate, so they are
/// checked here.
fn arguments_of(
    operation: &'static str,
    message: &Message<'_>,
    is_unchecked: bool,
) -> Result<Value, Refusal> {
    let params = Params::new(message.params.map(RawValue::get));
    if is_unchecked { arguments(operation, &params) } else { read_arguments(operation, &params) }
}

async fn outcome(
    door: &Door,
    message: &Message<'_>,
    caller: &Caller,
    is_unchecked: bool,
) -> Outcome {
    let not_here =
        |why: &str| Outcome::Error(ErrorObjectOwned::owned(METHOD_NOT_FOUND_CODE, why, None::<()>));
    let Some(entry) = ops::find(&message.method) else {
        return match &*message.method {
            DISCOVER => Outcome::Result(Value::clone(&door.document)),
            SUBSCRIBE | UNSUBSCRIBE => {
                not_here("this method is for WebSockets only; open one at this address")
            }
            _ => not_here(METHOD_NOT_FOUND_MSG),
        };
    };
    let answer = match arguments_of(entry.name, message, is_unchecked) {
        Ok(arguments) => door.handle.call(entry.name, arguments, caller).await,
        Err(refusal) => Err(refusal.into()),
    };
    match answer {
        Ok(reply) => Outcome::Result(reply),
        Err(error) => Outcome::Error(error_object(&error)),
    }
}

impl<'a> Reply<'a> {
    pub(super) fn new(id: &'a RawValue, outcome: Outcome) -> Self {
        Self { jsonrpc: TwoPointZero, id, outcome }
    }
}

fn written(reply: serde_json::Result<Vec<u8>>) -> Response {
    match reply {
        Ok(text) => ([(CONTENT_TYPE, "application/json; charset=utf-8")], text).into_response(),
        Err(error) => {
            tracing::warn!(%error, "a reply could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
