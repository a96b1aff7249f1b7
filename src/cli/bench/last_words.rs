//! The last output of a program: why it does not start, or has ended.

use std::io::Read;
use std::thread::{self, JoinHandle};

/// Bytes of output that are kept.
const KEPT: usize = 8 << 10;
const LINES: usize = 5;

/// A thread that reads along, so that the program never blocks on its pipe.
pub(super) struct LastWords(Option<JoinHandle<Vec<u8>>>);

impl LastWords {
    pub(super) fn of(output: impl Read + Send + 'static) -> Self {
        Self(Some(thread::spawn(|| tail(output))))
    }

    /// The last lines, after every process that may write some has ended.
    pub(super) fn lines(&mut self) -> String {
        let text = self.0.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

fn tail(mut output: impl Read) -> Vec<u8> {
    let mut text = Vec::new();
    let mut read = [0; 4_096];
    while let Ok(size @ 1..) = output.read(&mut read) {
        text.extend_from_slice(&read[..size]);
        text.drain(..text.len().saturating_sub(KEPT));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_of_however_much() {
        let said: String = (1..=9_999).map(|number| format!("line {number}\n\n")).collect();
        let mut last = LastWords::of(std::io::Cursor::new(said));
        assert_eq!(last.lines(), "line 9995\nline 9996\nline 9997\nline 9998\nline 9999");
        assert_eq!(LastWords::of(std::io::empty()).lines(), "");
    }
}
