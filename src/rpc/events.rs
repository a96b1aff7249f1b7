//! `subscribe_events`: the board's events as they happen. Each subscriber gets every event after
//! its `since_seq` once and in order. One that reads too slowly is told where to continue, and its
//! subscription ends.

use std::time::Duration;

use jsonrpsee::core::SubscriptionError;
use jsonrpsee::core::server::{SubscriptionCloseResponse, SubscriptionMessage};
use jsonrpsee::server::{PendingSubscriptionSink, RegisterMethodError, SendTimeoutError};
use jsonrpsee::types::Params;
use jsonrpsee::{Extensions, RpcModule};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tokio::select;

use super::{arguments, bad_arguments, error_object};
use crate::ops::{EventFilter, without_texts};
use crate::participant::{CallError, Caller, Handle, Item, Listener};

pub(super) const SUBSCRIBE: &str = "subscribe_events";
pub(super) const UNSUBSCRIBE: &str = "unsubscribe_events";
/// The arguments as refusals list them.
pub(super) const ARGUMENTS: &str = "since_seq?, kinds?, task_id?";
/// Method of the notifications.
pub(super) const EVENT: &str = "event";

/// Longest time that a subscriber's buffer may stay full.
const READER_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribeParams {
    /// Events after this one; from now on if left out
    since_seq: Option<u64>,
    /// Only these kinds
    #[serde(default)]
    kinds: Vec<String>,
    /// Only of this task
    task_id: Option<String>,
}

pub(super) fn register(module: &mut RpcModule<Handle>) -> Result<(), RegisterMethodError> {
    module.register_subscription(SUBSCRIBE, EVENT, UNSUBSCRIBE, subscribe).map(drop)
}

async fn subscribe(
    params: Params<'static>,
    pending: PendingSubscriptionSink,
    handle: Arc<Handle>,
    extensions: Extensions,
) -> SubscriptionCloseResponse {
    match listener(&params, &handle).await {
        Ok(listener) => {
            let caller = extensions.get::<Caller>().cloned().unwrap_or_default();
            feed(pending, listener, &caller).await
        }
        Err(error) => {
            pending.reject(error_object(&error)).await;
            SubscriptionCloseResponse::None
        }
    }
}

async fn listener(params: &Params<'_>, handle: &Handle) -> Result<Listener, CallError> {
    let arguments = arguments(SUBSCRIBE, params)?;
    let wanted: SubscribeParams = serde_json::from_value(arguments)
        .map_err(|error| bad_arguments(SUBSCRIBE, error.to_string()))?;
    let filter = EventFilter::checked(&wanted.kinds, wanted.task_id.as_deref())?;
    handle.listen(wanted.since_seq, filter).await
}

async fn feed(
    pending: PendingSubscriptionSink,
    mut listener: Listener,
    caller: &Caller,
) -> SubscriptionCloseResponse {
    let Ok(sink) = pending.accept().await else { return SubscriptionCloseResponse::None };
    loop {
        let item = select! {
            () = caller.gone.cancelled() => return ended(CallError::Gone.data()),
            () = sink.closed() => return SubscriptionCloseResponse::None,
            item = listener.next() => item,
        };
        let item = match item {
            Ok(item) => item,
            Err(error) => return ended(error.data()),
        };
        match sink.send_timeout(message(&item, caller), READER_PATIENCE).await {
            Ok(()) => {}
            Err(SendTimeoutError::Closed(_)) => return SubscriptionCloseResponse::None,
            Err(SendTimeoutError::Timeout(_)) => {
                let before = item.recorded.seq - 1;
                tracing::info!(next_seq = before, "a subscriber was too slow");
                return ended(json!({
                    "code": "too_slow",
                    "message": format!("events were not read in time; subscribe again with since_seq {before}"),
                    "next_seq": before,
                }));
            }
        }
    }
}

/// The event as the caller may read it.
fn message(item: &Item, caller: &Caller) -> SubscriptionMessage {
    let hidden = without_texts(&item.recorded, caller.principal.as_deref());
    let hidden = hidden.and_then(|event| serde_json::value::to_raw_value(&event).ok());
    SubscriptionMessage::from(hidden.unwrap_or_else(|| item.json.clone()))
}

/// The last notification of a subscription.
fn ended(why: serde_json::Value) -> SubscriptionCloseResponse {
    match serde_json::value::to_raw_value(&why) {
        Ok(why) => SubscriptionCloseResponse::NotifErr(SubscriptionError::from_json(why)),
        Err(_) => SubscriptionCloseResponse::None,
    }
}
