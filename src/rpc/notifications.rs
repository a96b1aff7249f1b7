//! Notifications on a WebSocket: done, and not answered. The library leaves them undone. A request whose id is no string and
//! no whole number from 0 is one to it, too.

use std::sync::Arc;

use jsonrpsee::MethodResponse;
use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::types::{Params, Request};
use serde_json::value::RawValue;
use tower::Layer;

use super::call;
use crate::ops;
use crate::participant::Handle;

#[derive(Clone)]
pub struct Notifications(pub Arc<Handle>);

impl<S> Layer<S> for Notifications {
    type Service = Heeding<S>;

    fn layer(&self, inner: S) -> Heeding<S> {
        Heeding { inner, handle: Arc::clone(&self.0) }
    }
}

#[derive(Clone)]
pub struct Heeding<S> {
    inner: S,
    handle: Arc<Handle>,
}

async fn heed(handle: &Handle, notification: &Notification<'_>) {
    let Some(entry) = ops::find(&notification.method) else { return };
    let params = Params::new(notification.params.as_deref().map(RawValue::get));
    // Nobody waits for what comes of it.
    if let Err(error) = call(entry.name, &params, handle, &notification.extensions).await {
        tracing::debug!(operation = entry.name, error = error.message(), "a notification was refused");
    }
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
