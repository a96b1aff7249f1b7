//! A WebSocket's bytes from the client, of which every frame must be masked: a server closes the
//! connection when one is not (RFC 6455, section 5.1). soketto reads such frames as any other.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const MASKED: u8 = 0x80;
const MASK: u64 = 4;

/// The stream, and where the next bytes lie in a frame.
pub(super) struct Masked<S> {
    stream: S,
    next: Next,
}

#[derive(Clone, Copy)]
enum Next {
    Opcode,
    Length,
    /// Bytes of a longer length that are still to come, and its value so far.
    Longer(u8, u64),
    /// Bytes of mask and content that are still to come.
    Content(u64),
}

impl<S> Masked<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, next: Next::Opcode }
    }
}

impl Next {
    /// What comes after `bytes`; an error if a frame among them is not masked.
    fn after(mut self, mut bytes: &[u8]) -> io::Result<Self> {
        while let [byte, rest @ ..] = bytes {
            bytes = rest;
            self = match self {
                Self::Opcode => Self::Length,
                Self::Length if byte & MASKED == 0 => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "a frame of the client is not masked",
                    ));
                }
                Self::Length => match byte & !MASKED {
                    126 => Self::Longer(2, 0),
                    127 => Self::Longer(8, 0),
                    length => Self::Content(MASK + u64::from(length)),
                },
                Self::Longer(left, value) => {
                    let value = value << 8 | u64::from(*byte);
                    if left == 1 {
                        Self::Content(value.saturating_add(MASK))
                    } else {
                        Self::Longer(left - 1, value)
                    }
                }
                Self::Content(left) => {
                    let here = left.min(bytes.len() as u64 + 1);
                    bytes = &bytes[here as usize - 1..];
                    if here == left { Self::Opcode } else { Self::Content(left - here) }
                }
            };
        }
        Ok(self)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Masked<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.next = self.next.after(&buffer.filled()[before..])?;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Masked<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame of so many bytes.
    fn frame(length: usize) -> Vec<u8> {
        let mut frame = match length {
            0..126 => vec![0x81, MASKED | length as u8],
            126..65_536 => [&[0x82, MASKED | 126], &(length as u16).to_be_bytes()[..]].concat(),
            _ => [&[0x82, MASKED | 127], &(length as u64).to_be_bytes()[..]].concat(),
        };
        // Content that would be an unmasked frame.
        frame.extend(vec![0; 4 + length]);
        frame
    }

    #[test]
    fn frames_are_followed_however_they_are_cut() {
        let sizes = [0, 1, 125, 126, 300, 65_535, 65_536, 70_000, 5];
        let all = sizes.map(frame).concat();
        for step in [1, 2, 3, 7, 1_000, all.len()] {
            let read =
                all.chunks(step).try_fold(Next::Opcode, Next::after).expect("all are masked");
            assert!(matches!(read, Next::Opcode), "{step}");
            let mut wrong = all.clone();
            wrong.extend([0x81, 1, b'x']);
            let read = wrong.chunks(step).try_fold(Next::Opcode, Next::after);
            assert!(read.is_err(), "{step}");
        }
    }
}
