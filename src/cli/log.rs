//! The log on standard error: one line for each event, whatever clients wrote into it.

use std::io::{self, Write};

use super::print::harmless_json;

/// Takes each event in one piece, as the subscriber writes it.
pub struct Lines;

impl Write for Lines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = harmless_json(text.strip_suffix('\n').unwrap_or(&text)).replace('\n', "\\n");
        writeln!(io::stderr().lock(), "{line}")?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
