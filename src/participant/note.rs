//! What each process that stays says of itself in the file of its presence lock: which level of
//! events it knows, and where a person finds it. In no event, because older processes would read
//! that differently.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use crate::state::event::VERSION;
use crate::state::time::SECOND;
use crate::{harmless, redact};

/// Length of a note in bytes, always the same, so that one write replaces all of it.
const BYTES: usize = 512;

/// Most characters of a name in a note.
const NAME: usize = 80;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub(super) level: u32,
    pub(super) pid: u32,
    pub(super) machine: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<String>,
    /// By how many milliseconds the process's wall clock is ahead of the board's time, if that is
    /// worth a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ahead: Option<i64>,
    /// Whether the process has opened the board, or is about to: only then can it know more than
    /// the files. Builds that do not say may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) has_board: Option<bool>,
}

impl Note {
    pub fn of_this_process() -> Self {
        Self {
            level: VERSION,
            pid: std::process::id(),
            machine: machine(),
            client: None,
            ahead: None,
            has_board: Some(false),
        }
    }

    /// Adds the name that the client gives itself. Returns whether that is news.
    pub fn learn(&mut self, client: Option<&str>) -> bool {
        if self.client.is_some() || client.is_none() {
            return false;
        }
        self.client = client.map(name);
        true
    }

    /// Notes how far the wall clock is ahead. Returns whether that is news, to the second.
    pub fn learn_clock(&mut self, ahead: Option<i64>) -> bool {
        let is_same = match (self.ahead, ahead) {
            (Some(before), Some(now)) => (before - now).abs() < SECOND,
            (before, now) => before == now,
        };
        if !is_same {
            self.ahead = ahead;
        }
        !is_same
    }

    pub fn write(&self, file: &File) -> io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.resize(text.len().max(BYTES - 1), b' ');
        text.push(b'\n');
        file.write_all_at(&text, 0)
    }

    /// `None` in the file of a build that writes no note.
    pub(super) fn read(file: &File) -> Option<Self> {
        let mut text = [0; BYTES];
        file.read_exact_at(&mut text, 0).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

pub(super) fn name(given: &str) -> String {
    let clean = harmless::text(given).unwrap_or_else(|| given.to_owned());
    let clean = redact::name(&clean).unwrap_or(clean);
    clean.chars().take(NAME).collect()
}

/// The name of this machine.
pub(super) fn machine() -> String {
    name(&rustix::system::uname().nodename().to_string_lossy())
}
