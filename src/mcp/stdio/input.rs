//! Standard input, read line by line as a client writes it.
//!
//! A pipe or socket is read where its messages are wanted, as soon as there is something: waking
//! another thread takes longer than reading. A file or terminal cannot be read without blocking, so
//! it is read on a thread of its own. A read on tokio's blocking pool could not be abandoned, and
//! would keep the process from ending.

use std::io::{self, BufRead};
use std::thread;

use rmcp::model::{ClientJsonRpcMessage, JsonRpcError};
use tokio::sync::mpsc;

use super::{invalid_request, parse};
use crate::mcp::skeleton::Skeleton;
use crate::state::limit::LINE;
#[cfg(target_os = "linux")]
use ready::Ready;

/// Messages between the thread and the session. Few, because each may be as long as a line may be.
const QUEUE: usize = 2;
/// Bytes of the line buffer that are kept for the next line.
const ROOM_KEPT: usize = 1 << 20;

/// A message, or the error to answer an invalid line with.
pub(super) type Incoming = Result<ClientJsonRpcMessage, Box<JsonRpcError>>;

pub(super) enum Input {
    #[cfg(target_os = "linux")]
    Ready(Ready),
    Thread(mpsc::Receiver<(Incoming, usize)>),
}

impl Input {
    /// Opens standard input. If it needs a thread, that is not joined: it ends with its input or
    /// with the process.
    pub(super) fn open() -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(ready) = Ready::open() {
            return Ok(Self::Ready(ready));
        }
        let (incoming, input) = mpsc::channel(QUEUE);
        thread::Builder::new().name("mcp-stdin".into()).spawn(move || {
            if let Err(error) = read_all(&mut io::stdin().lock(), &incoming) {
                failed(&error);
            }
        })?;
        Ok(Self::Thread(input))
    }

    /// The next message and the length of its line; none at the end. It can be dropped at any await
    /// without loss.
    pub(super) async fn next(&mut self) -> Option<(Incoming, usize)> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Ready(ready) => ready.next().await.unwrap_or_else(|error| {
                failed(&error);
                None
            }),
            Self::Thread(input) => input.recv().await,
        }
    }
}

fn failed(error: &io::Error) {
    tracing::warn!(%error, "standard input failed");
}

fn read_all(
    input: &mut impl BufRead,
    incoming: &mpsc::Sender<(Incoming, usize)>,
) -> io::Result<()> {
    let mut lines = Lines::default();
    loop {
        let bytes = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let is_end = bytes.is_empty();
        let (taken, message) = if is_end { (0, lines.finish()) } else { lines.take(bytes) };
        input.consume(taken);
        let is_given_up = message.is_some_and(|message| incoming.blocking_send(message).is_err());
        if is_end || is_given_up {
            return Ok(());
        }
    }
}

/// The line that is being read.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    /// The top level of a line that is too long.
    skeleton: Option<Skeleton>,
}

impl Lines {
    /// Consumes at most one line. Returns the number of bytes consumed, and the message if the line
    /// has ended.
    fn take(&mut self, bytes: &[u8]) -> (usize, Option<(Incoming, usize)>) {
        let end = memchr::memchr(b'\n', bytes);
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        let length = self.line.len() + piece.len();
        if let Some(skeleton) = &mut self.skeleton {
            skeleton.see(piece);
        } else if length > LINE.max {
            let mut skeleton = Skeleton::of(&std::mem::take(&mut self.line));
            skeleton.see(piece);
            self.skeleton = Some(skeleton);
        } else {
            if length > ROOM_KEPT {
                // All at once: a growing buffer would be in memory twice at each step.
                self.line.reserve_exact(LINE.max - self.line.len());
            }
            self.line.extend_from_slice(piece);
        }
        match end {
            Some(end) => (end + 1, self.finish()),
            None => (bytes.len(), None),
        }
    }

    /// Finishes the line; the last one may lack a newline.
    fn finish(&mut self) -> Option<(Incoming, usize)> {
        if let Some(skeleton) = self.skeleton.take() {
            let text =
                format!("a message has at most {} bytes; split the call into several", LINE.max);
            return Some((Err(invalid_request(skeleton.request_id(), text)), 0));
        }
        let message = parse(&self.line).map(|message| (message, self.line.len()));
        self.line.clear();
        self.line.shrink_to(ROOM_KEPT);
        message
    }
}

#[cfg(target_os = "linux")]
mod ready {
    use std::io::{self, IoSliceMut};
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{FileType, fstat};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::task::coop::consume_budget;

    use super::super::HERE;
    use super::{Incoming, Lines};

    /// Bytes that are read at once.
    const CHUNK: usize = 16 << 10;

    /// A pipe or socket, which reports when there is something to read.
    pub(crate) struct Ready {
        stdin: AsyncFd<OwnedFd>,
        read: Box<[u8]>,
        /// Range of the last read that does not belong to a line yet.
        left: std::ops::Range<usize>,
        lines: Lines,
        has_ended: bool,
    }

    impl Ready {
        /// None if it is something else, or if the kernel is too old to read it without blocking.
        pub(crate) fn open() -> Option<Self> {
            let kind = FileType::from_raw_mode(fstat(io::stdin()).ok()?.st_mode);
            if !matches!(kind, FileType::Fifo | FileType::Socket) {
                return None;
            }
            let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
            // SAFETY: the descriptor is its own, and nobody else closes it.
            let stdin =
                unsafe { AsyncFd::register_with_interest(stdin, Interest::READABLE) }.ok()?;
            let mut read: Box<[u8]> = vec![0; CHUNK].into();
            let (left, has_ended) = match read_now(stdin.get_ref(), &mut read) {
                Ok(read) => (0..read, read == 0),
                Err(Errno::AGAIN | Errno::INTR) => (0..0, false),
                Err(_) => return None,
            };
            Some(Self { stdin, read, left, lines: Lines::default(), has_ended })
        }

        pub(crate) async fn next(&mut self) -> io::Result<Option<(Incoming, usize)>> {
            loop {
                while !self.left.is_empty() {
                    let (taken, message) = self.lines.take(&self.read[self.left.clone()]);
                    self.left.start += taken;
                    if message.is_some() {
                        return Ok(message);
                    }
                }
                if self.has_ended {
                    return Ok(self.lines.finish());
                }
                // Lines that get no answer may come without end, so other tasks get their turn.
                consume_budget().await;
                let mut ready = self.stdin.readable().await?;
                match read_now(self.stdin.get_ref(), &mut self.read) {
                    Ok(read) => (self.left, self.has_ended) = (0..read, read == 0),
                    Err(Errno::AGAIN) => ready.clear_ready(),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    /// Reads what is available from standard input, without blocking.
    fn read_now(stdin: &OwnedFd, bytes: &mut [u8]) -> Result<usize, Errno> {
        preadv2(stdin, &mut [IoSliceMut::new(bytes)], HERE, ReadWriteFlags::NOWAIT)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::RequestId;

    use super::*;

    /// Results for input in pieces of this length: 0 for a message, or the code and id of an error.
    fn found(input: &[u8], piece: usize) -> Vec<(i32, Option<RequestId>)> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for mut bytes in input.chunks(piece) {
            while !bytes.is_empty() {
                let (taken, message) = lines.take(bytes);
                bytes = &bytes[taken..];
                found.extend(message);
            }
        }
        found.extend(lines.finish());
        let what = |(message, _): (Incoming, usize)| {
            message.map_or_else(|error| (error.error.code.0, error.id), |_| (0, None))
        };
        found.into_iter().map(what).collect()
    }

    const TOO_LONG: i32 = -32600;
    const NO_JSON: i32 = -32700;

    #[test]
    fn lines_are_the_same_in_whatever_pieces_they_come() {
        let ping = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let input = format!("{}\n\n  \r\n{}\r\nnonsense\n{}", ping(1), ping(2), ping(3));
        for piece in [1, 2, 7, 40, input.len()] {
            assert_eq!(
                found(input.as_bytes(), piece),
                [(0, None), (0, None), (NO_JSON, None), (0, None)],
                "{piece}"
            );
        }
        assert_eq!(found(b"", 1), []);
    }

    #[test]
    fn line_of_exactly_the_limit_is_kept_and_a_longer_one_is_read_past() {
        let mut input = vec![b'x'; LINE.max];
        input.push(b'\n');
        input.extend(vec![b'y'; 3 * LINE.max]);
        input.extend(b"\nlast");
        for piece in [8 << 10, input.len()] {
            assert_eq!(
                found(&input, piece),
                [(NO_JSON, None), (TOO_LONG, None), (NO_JSON, None)],
                "{piece}"
            );
        }
    }

    #[test]
    fn a_request_that_is_too_long_is_answered_under_its_id_wherever_that_stands() {
        let long = format!(
            r#"{{"name":"t","arguments":{{"id":9,"text":"}} \"id\":8 {}"}}}}"#,
            "x".repeat(LINE.max)
        );
        let before = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{long}}}"#);
        let behind =
            format!(r#"{{"method":"tools/call","params":{long},"jsonrpc":"2.0","id":"a"}}"#);
        let reply = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{long}}}"#);
        let input = [before, behind, reply].join("\n");
        let ids = [Some(RequestId::Number(7)), Some(RequestId::String("a".into())), None];
        assert_eq!(found(input.as_bytes(), 16 << 10), ids.map(|id| (TOO_LONG, id)));
    }

    #[test]
    fn room_for_a_long_line_is_not_kept() {
        let mut lines = Lines::default();
        lines.take(&vec![b'x'; 2 * ROOM_KEPT]);
        assert!(lines.line.capacity() >= LINE.max, "it would be there twice while it grows");
        lines.take(b"\n");
        assert_eq!(lines.line.capacity(), ROOM_KEPT);
    }
}
