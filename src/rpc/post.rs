//! Messages that come by POST: one, or several in an array.
//!
//! jsonrpsee's own server starts each request as if it were a connection, which costs more than everything else; it
//! also treats a request whose id is no whole number from 0 as a notification, and does not carry out notifications.

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use jsonrpsee::types::error::{
    ErrorCode, INVALID_REQUEST_CODE, METHOD_NOT_FOUND_CODE, METHOD_NOT_FOUND_MSG, reject_too_big_batch_request,
};
use jsonrpsee::types::{ErrorObjectOwned, Params, TwoPointZero};
use serde::de::{Deserialize, Deserializer};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::events::{SUBSCRIBE, UNSUBSCRIBE};
use super::notifications::is_mute;
use super::{DISCOVER, Door, error_object, read_arguments, refused_as_full};
use crate::ops;
use crate::participant::Caller;
use crate::state::limit;

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
struct Reply<'a> {
    jsonrpc: TwoPointZero,
    id: &'a RawValue,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Result(Value),
    Error(ErrorObjectOwned),
}

impl From<ErrorObjectOwned> for Outcome {
    fn from(error: ErrorObjectOwned) -> Self {
        Self::Error(error)
    }
}

/// The response to a body, which must be checked for duplicate keys.
pub async fn answer(door: &Door, body: &[u8], caller: &Caller) -> Response {
    if !body.trim_ascii_start().starts_with(b"[") {
        return match one(door, body, caller, 0).await {
            Some(reply) => written(serde_json::to_vec(&reply)),
            None => StatusCode::NO_CONTENT.into_response(),
        };
    }
    let messages: Vec<&RawValue> = serde_json::from_slice(body).unwrap_or_default();
    let refused = match messages.len() {
        0 => Some(ErrorCode::InvalidRequest.into()),
        length if length > limit::RPC_BATCH.max => Some(reject_too_big_batch_request(limit::RPC_BATCH.max)),
        _ => None,
    };
    if let Some(error) = refused {
        return written(serde_json::to_vec(&Reply::new(RawValue::NULL, Outcome::Error(error))));
    }
    // Replies are serialized one by one: as values they would take several times the memory.
    let mut replies = Vec::new();
    for message in messages {
        if let Some(reply) = one(door, message.get().as_bytes(), caller, replies.len()).await {
            replies.push(if replies.is_empty() { b'[' } else { b',' });
            if let Err(error) = serde_json::to_writer(&mut replies, &reply) {
                return written(Err(error));
            }
        }
    }
    if replies.is_empty() {
        return StatusCode::NO_CONTENT.into_response();
    }
    replies.push(b']');
    written(Ok(replies))
}

/// The reply to one message; none for a notification, which is carried out all the same. `before` is the number of
/// bytes in the replies so far.
async fn one<'a>(door: &Door, text: &'a [u8], caller: &Caller, before: usize) -> Option<Reply<'a>> {
    let Ok(message) = serde_json::from_slice::<Message>(text) else {
        return Some(Reply::new(RawValue::NULL, Outcome::Error(ErrorCode::InvalidRequest.into())));
    };
    let is_id = |id: &RawValue| matches!(id.get().as_bytes(), [b'"' | b'-' | b'0'..=b'9' | b'n', ..]);
    if message.id.is_some_and(|id| !is_id(id)) {
        let why = "an id is a string, a number or null";
        let error = ErrorObjectOwned::owned(INVALID_REQUEST_CODE, why, None::<()>);
        return Some(Reply::new(RawValue::NULL, Outcome::Error(error)));
    }
    // Nobody would hear its reply, or of the task that it claims.
    if message.id.is_none() && ops::find(&message.method).is_some_and(is_mute) {
        return None;
    }
    let outcome = match refused_as_full(before).filter(|_| message.id.is_some()) {
        Some(error) => Outcome::Error(error),
        None => outcome(door, &message, caller).await,
    };
    message.id.map(|id| Reply::new(id, outcome))
}

async fn outcome(door: &Door, message: &Message<'_>, caller: &Caller) -> Outcome {
    let not_here = |why: &str| Outcome::Error(ErrorObjectOwned::owned(METHOD_NOT_FOUND_CODE, why, None::<()>));
    let Some(entry) = ops::find(&message.method) else {
        return match &*message.method {
            DISCOVER => Outcome::Result(Value::clone(&door.document)),
            SUBSCRIBE | UNSUBSCRIBE => not_here("this method is for WebSockets only; open one at this address"),
            _ => not_here(METHOD_NOT_FOUND_MSG),
        };
    };
    let answer = match read_arguments(entry.name, &Params::new(message.params.map(RawValue::get))) {
        Ok(arguments) => door.handle.call(entry.name, arguments, caller).await,
        Err(refusal) => Err(refusal.into()),
    };
    match answer {
        Ok(reply) => Outcome::Result(reply),
        Err(error) => Outcome::Error(error_object(&error)),
    }
}

impl<'a> Reply<'a> {
    fn new(id: &'a RawValue, outcome: Outcome) -> Self {
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
