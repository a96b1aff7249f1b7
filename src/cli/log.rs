//! The log on standard error: one line per event, whatever line breaks clients' texts contain.

use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use super::print::harmless_json;

/// Bytes written at once: a pipe that is writable at all takes this many without blocking.
const AT_ONCE: usize = 4_000;

/// Whether standard error takes more now. Nobody may wait for a reader of the log, perhaps with the
/// board's lock held, so what cannot be written is dropped.
fn takes_more(stderr: &impl AsFd) -> bool {
    let mut asked = [PollFd::new(stderr, PollFlags::OUT)];
    // If it cannot be polled, the write itself will show the error.
    let found = retry_on_intr(|| poll(&mut asked, Some(&Timespec::default())));
    found.is_err() || !asked[0].revents().is_empty()
}

/// A writer that takes each event in one piece, as the subscriber writes it.
pub(super) struct Lines;

impl Write for Lines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let mut line = harmless_json(text.strip_suffix('\n').unwrap_or(&text)).replace('\n', "\\n");
        line.push('\n');
        let mut stderr = io::stderr().lock();
        for part in line.as_bytes().chunks(AT_ONCE) {
            if !takes_more(&stderr) {
                break;
            }
            stderr.write_all(part)?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
