//! What comes over a WebSocket. Its caller was let in when it was opened, which may be long ago. Notifications are done, and
//! not answered: the library leaves them undone. A request whose id is no string and no whole number from 0 is one to it,
//! too, and its id is lost.

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

/// What was begun is done also if the connection is closed meanwhile; of what was not the library lets go. What says nothing
/// but in its reply is left: a request whose id the library does not know would hold a task that nobody hears of.
async fn heed(handle: &Handle, notification: &Notification<'_>) {
    let Some(entry) = ops::find(&notification.method).filter(|entry| !is_mute(entry)) else { return };
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

/// Says nothing but in its reply.
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
            // The library's own would let go of all replies when they are too many together.
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
                    // It has answered by itself.
                    is_heeded = true;
                    continue;
                }
                length += reply.as_ref().len();
                // It has no limit to be over.
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
