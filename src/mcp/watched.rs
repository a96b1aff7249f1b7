//! Response bodies that end on cancellation, and notice when nobody reads them any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

/// A body whose reader is watched: when the reader leaves, whatever still works for it is
/// cancelled. After a normal end, that is nothing, or what a closed session has left without a way
/// to answer. A stream that is still open when `over` is cancelled ends.
pub struct Watched {
    body: Body,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
    _reader: DropGuard,
}

impl Watched {
    pub fn new(body: Body, over: CancellationToken, reader: DropGuard) -> Self {
        Self { body, over: Box::pin(over.cancelled_owned()), _reader: reader }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.over.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => Pin::new(&mut self.body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
