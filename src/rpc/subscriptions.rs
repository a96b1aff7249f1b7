//! Subscriptions of one WebSocket, which jsonrpsee keeps, under ids of any kind.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::Extensions;
use jsonrpsee::core::server::{
    BoundedSubscriptions, ConnectionId, MethodCallback, MethodSink, Methods, SubscriptionState,
};
use jsonrpsee::server::RandomIntegerIdProvider;
use jsonrpsee::types::error::{
    METHOD_NOT_FOUND_CODE, METHOD_NOT_FOUND_MSG, reject_too_many_subscriptions,
};
use jsonrpsee::types::{ErrorObjectOwned, Id, Params};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::post::{Outcome, Reply};
use super::{Door, LARGEST_REPLY};
use crate::state::limit::SUBSCRIPTIONS;

/// Number of the next connection, by which jsonrpsee tells their subscriptions apart.
static NEXT: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone)]
pub(super) struct Subscriptions {
    methods: Methods,
    connection: ConnectionId,
    places: BoundedSubscriptions,
    extensions: Extensions,
}

/// A response of jsonrpsee, whose id is replaced.
#[derive(Deserialize)]
struct Answered {
    result: Option<Value>,
    error: Option<ErrorObjectOwned>,
}

impl Subscriptions {
    pub(super) fn new(door: &Door, extensions: Extensions) -> Self {
        let connection = ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed));
        let places = BoundedSubscriptions::new(SUBSCRIPTIONS.max as u32);
        Self { methods: door.methods.clone(), connection, places, extensions }
    }

    /// Carries out one of the two methods. The answer to a subscription goes to `sink`, ahead of
    /// its events; that to anything else is returned.
    pub(super) async fn call(
        &self,
        method: &str,
        id: &RawValue,
        params: Option<&RawValue>,
        sink: &MethodSink,
    ) -> Option<Outcome> {
        let params = Params::new(params.map(RawValue::get)).into_owned();
        let extensions = self.extensions.clone();
        match self.methods.method(method) {
            Some(MethodCallback::Subscription(subscribe)) => {
                let Some(permit) = self.places.acquire() else {
                    return Some(Outcome::Error(
                        reject_too_many_subscriptions(self.places.max()).into_owned(),
                    ));
                };
                let (messages, incoming) = mpsc::channel(1);
                tokio::spawn(forward(incoming, id.to_owned(), sink.clone()));
                let own = MethodSink::new_with_limit(messages, LARGEST_REPLY);
                let provider = RandomIntegerIdProvider;
                let state = SubscriptionState {
                    conn_id: self.connection,
                    id_provider: &provider,
                    subscription_permit: permit,
                };
                drop(subscribe(Id::Null, params, own, state, extensions).await);
                None
            }
            Some(MethodCallback::Unsubscription(unsubscribe)) => {
                let answer = unsubscribe(
                    Id::Null,
                    params,
                    self.connection,
                    LARGEST_REPLY as usize,
                    extensions,
                );
                answered(answer.as_ref())
            }
            _ => Some(
                ErrorObjectOwned::owned(METHOD_NOT_FOUND_CODE, METHOD_NOT_FOUND_MSG, None::<()>)
                    .into(),
            ),
        }
    }
}

fn answered(json: &str) -> Option<Outcome> {
    match serde_json::from_str(json).ok()? {
        Answered { error: Some(error), .. } => Some(Outcome::Error(error)),
        Answered { result, .. } => Some(Outcome::Result(result.unwrap_or_default())),
    }
}

/// Passes a subscription's messages on. The first is its answer, which gets the id of the request.
async fn forward(mut incoming: mpsc::Receiver<Box<RawValue>>, id: Box<RawValue>, sink: MethodSink) {
    let mut is_answered = false;
    loop {
        let message = tokio::select! {
            () = sink.closed() => return,
            message = incoming.recv() => message,
        };
        let Some(mut message) = message else { return };
        if !std::mem::replace(&mut is_answered, true)
            && let Some(outcome) = answered(message.get())
            && let Ok(json) = serde_json::value::to_raw_value(&Reply::new(&id, outcome))
        {
            message = json;
        }
        if sink.send(message).await.is_err() {
            return;
        }
    }
}
