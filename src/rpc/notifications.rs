//! Messages on a WebSocket. Their caller was admitted when it was opened, which may be long ago. Notifications are
//! carried out without an answer, which jsonrpsee would not do. A request whose id is neither a string nor a whole
//! number from 0 also counts as a notification there, and its id is lost.

use jsonrpsee::MethodResponse;
use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::core::server::BatchResponseBuilder;
use jsonrpsee::types::{Params, Request};
use serde_json::value::RawValue;
use tower::Layer;

use super::{Look, call, refused_as_full};
use crate::ops::{self, ClaimRun, ClaimTask, Entry, Operation};
use crate::participant::Handle;

#[derive(Clone)]
pub struct Messages {
    pub handle: Handle,
    pub look: Look,
}

impl<S> Layer<S> for Messages {
    type Service = Heeding<S>;

    fn layer(&self, inner: S) -> Heeding<S> {
        Heeding { inner, messages: self.clone() }
    }
}

#[derive(Clone)]
pub struct Heeding<S> {
    inner: S,
    messages: Messages,
}

/// Carries out a notification. Once begun, it is finished even if the connection closes; jsonrpsee drops what has not
/// begun. Operations that only have a reply are skipped: a request with an id that jsonrpsee rejects would claim a task
/// without anybody hearing of it.
async fn heed(handle: &Handle, notification: &Notification<'_>) {
    let Some(entry) = ops::find(&notification.method).filter(|entry| !is_mute(entry)) else { return };
    let (handle, extensions) = (handle.clone(), notification.extensions.clone());
    let params = Params::new(notification.params.as_deref().map(RawValue::get)).into_owned();
    let heeded = tokio::spawn(async move {
        // Nobody waits for the result.
        if let Err(error) = call(entry.name, &params, &handle, &extensions).await {
            tracing::debug!(operation = entry.name, error = error.message(), "a notification was refused");
        }
    });
    drop(heeded.await);
}

/// Whether the operation is pointless without its reply.
pub fn is_mute(entry: &Entry) -> bool {
    entry.annotations.read_only || [ClaimTask::NAME, ClaimRun::NAME].contains(&entry.name)
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
        (self.messages.look)();
        self.inner.call(request)
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let Self { inner, messages: Messages { handle, look } } = self.clone();
        look();
        async move {
            // With jsonrpsee's own limit, all replies would be dropped if they are too large together.
            let mut replies = BatchResponseBuilder::new_with_limit(usize::MAX);
            let (mut length, mut is_heeded) = (0, false);
            for entry in batch {
                let reply = match entry {
                    Ok(BatchEntry::Notification(notification)) => {
                        heed(&handle, &notification).await;
                        is_heeded = true;
                        continue;
                    }
                    Ok(BatchEntry::Call(request)) => match refused_as_full(length) {
                        Some(error) => MethodResponse::error(request.id, error),
                        None => inner.call(request).await,
                    },
                    Err(wrong) => {
                        let (error, id) = wrong.into_parts();
                        MethodResponse::error(id, error)
                    }
                };
                if reply.is_subscription() {
                    // A subscription has sent its own answer.
                    is_heeded = true;
                    continue;
                }
                length += reply.as_ref().len();
                // There is no limit that it could exceed.
                drop(replies.append(reply));
            }
            if is_heeded && replies.is_empty() {
                return MethodResponse::notification();
            }
            MethodResponse::from_batch(replies.finish())
        }
    }

    fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let Self { inner, messages: Messages { handle, look } } = self.clone();
        look();
        async move {
            heed(&handle, &notification).await;
            inner.notification(notification).await
        }
    }
}
