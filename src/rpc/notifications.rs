//! Notifications on a WebSocket: done, and not answered. The library leaves them undone. A request whose id is no string and
//! no whole number from 0 is one to it, too.

use jsonrpsee::MethodResponse;
use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::types::{Params, Request};
use serde_json::value::RawValue;
use tower::Layer;

use super::call;
use crate::ops::{self, ClaimRun, ClaimTask, Entry, Operation};
use crate::participant::Handle;

#[derive(Clone)]
pub struct Notifications(pub Handle);

impl<S> Layer<S> for Notifications {
    type Service = Heeding<S>;

    fn layer(&self, inner: S) -> Heeding<S> {
        Heeding { inner, handle: self.0.clone() }
    }
}

#[derive(Clone)]
pub struct Heeding<S> {
    inner: S,
    handle: Handle,
}

/// What was begun is done also if the connection is closed meanwhile; of what was not the library lets go. What says nothing
/// but in its reply is left: a request whose id the library does not know would hold a task that nobody hears of.
async fn heed(handle: &Handle, notification: &Notification<'_>) {
    let entry = ops::find(&notification.method);
    let is_mute =
        |entry: &&Entry| entry.annotations.read_only || [ClaimTask::NAME, ClaimRun::NAME].contains(&entry.name);
    let Some(entry) = entry.filter(|entry| !is_mute(entry)) else { return };
    let (handle, extensions) = (handle.clone(), notification.extensions.clone());
    let params = Params::new(notification.params.as_deref().map(RawValue::get)).into_owned();
    let heeded = tokio::spawn(async move {
        // Nobody waits for what comes of it.
        if let Err(error) = call(entry.name, &params, &handle, &extensions).await {
            tracing::debug!(operation = entry.name, error = error.message(), "a notification was refused");
        }
    });
    drop(heeded.await);
}

impl<S> RpcServiceT for Heeding<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            NotificationResponse = MethodResponse,
            BatchResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.inner.call(request)
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let Self { inner, handle } = self.clone();
        async move {
            for entry in batch.iter() {
                if let Ok(BatchEntry::Notification(notification)) = entry {
                    heed(&handle, notification).await;
                }
            }
            inner.batch(batch).await
        }
    }

    fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let Self { inner, handle } = self.clone();
        async move {
            heed(&handle, &notification).await;
            inner.notification(notification).await
        }
    }
}
