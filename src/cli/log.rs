//! The log on standard error: one line for each event, whatever clients wrote into it.

use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::print::harmless_json;

/// In bytes: a pipe that takes more at all takes so many.
const LONGEST: usize = 4_000;

/// Nobody may wait for whoever reads the log, perhaps with the board's lock held: what cannot be written is left out.
fn takes_more(stderr: &impl AsFd) -> bool {
    let mut asked = [PollFd::new(stderr, PollFlags::OUT)];
    // Of what cannot be asked, the writing tells.
    poll(&mut asked, Some(&Timespec::default())).is_err() || !asked[0].revents().is_empty()
}

/// Takes each event in one piece, as the subscriber writes it.
pub struct Lines;

impl Write for Lines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let mut line = harmless_json(text.strip_suffix('\n').unwrap_or(&text)).replace('\n', "\\n");
        line.truncate(line.floor_char_boundary(LONGEST));
        line.push('\n');
        let mut stderr = io::stderr().lock();
        if takes_more(&stderr) {
            stderr.write_all(line.as_bytes())?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
