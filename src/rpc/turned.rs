//! The body of a rejected request's response, which jsonrpsee's client discards.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, to_bytes};
use hyper::body::Incoming;
use jsonrpsee::core::http_helpers::HttpError;
use jsonrpsee::http_client::transport::Error as TransportError;
use jsonrpsee::http_client::{HttpRequest, HttpResponse};
use jsonrpsee::types::ErrorObjectOwned;
use serde::Deserialize;
use tower::{Layer, Service};

/// Most bytes that are read: a reason is a sentence or two, and a proxy's page contains none.
const LONGEST: usize = 64 * 1024;

/// A response with an error status, and the error in its body if a callboard server wrote it.
#[derive(Debug, thiserror::Error)]
#[error("HTTP status {status}")]
pub(super) struct Turned {
    pub status: u16,
    pub error: Option<ErrorObjectOwned>,
}

#[derive(Deserialize)]
struct Message {
    error: ErrorObjectOwned,
}

/// A layer that turns such responses into errors.
#[derive(Clone)]
pub(super) struct Reasons;

impl<S> Layer<S> for Reasons {
    type Service = Hearing<S>;

    fn layer(&self, inner: S) -> Hearing<S> {
        Hearing(inner)
    }
}

#[derive(Clone)]
pub(super) struct Hearing<S>(S);

impl<S> Service<HttpRequest> for Hearing<S>
where
    S: Service<HttpRequest, Response = HttpResponse<Incoming>, Error = TransportError>,
    S::Future: Send + 'static,
{
    type Response = HttpResponse<Incoming>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, TransportError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: HttpRequest) -> Self::Future {
        let answering = self.0.call(request);
        Box::pin(async move {
            let response = answering.await?;
            if response.status().is_success() {
                return Ok(response);
            }
            let status = response.status().as_u16();
            let body = to_bytes(Body::new(response.into_body()), LONGEST).await.unwrap_or_default();
            let error = serde_json::from_slice::<Message>(&body).ok().map(|message| message.error);
            Err(TransportError::Http(HttpError::Stream(Box::new(Turned { status, error }))))
        })
    }
}
