//! A connection whose end for reading is noticed while it is used.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Interval at which a stream is looked at whose next request has come already.
const NEXT_LOOK: Duration = Duration::from_millis(100);

/// A stream that is read and written through a shared reference, so that it can be watched.
#[derive(Clone)]
pub(super) struct Shared(Arc<Watched>);

struct Watched {
    stream: TcpStream,
    /// Tells that something was read, so that the end may be next.
    taken: Notify,
}

impl Shared {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(Watched { stream, taken: Notify::new() }))
    }

    /// Returns once the peer has closed the connection or its half of it, which look the same.
    pub(super) async fn ended(&self) {
        loop {
            match self.0.stream.peek(&mut [0]).await {
                Ok(0) | Err(_) => return,
                Ok(_) => _ = timeout(NEXT_LOOK, self.0.taken.notified()).await,
            }
        }
    }
}

impl AsyncRead for Shared {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.stream.poll_read_ready(context))?;
            match self.0.stream.try_read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(read) => {
                    buffer.advance(read);
                    self.0.taken.notify_one();
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Shared {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.stream.poll_write_ready(context))?;
            match self.0.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.stream.poll_write_ready(context))?;
            match self.0.stream.try_write_vectored(parts) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&self.0.stream, Shutdown::Write).map_err(Into::into))
    }
}
