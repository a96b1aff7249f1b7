//! `snapshots/`: earlier states, each in a file of its own that nobody changes once it is there.
//!
//! A file holds the JSON of a [`Snapshot`], one line; its name begins with the time and ends with
//! the first digits of the file's SHA-256. `prev_sha256` at its head is the whole SHA-256 of the
//! snapshot before it, so that the files form a chain, of which retention takes the oldest.
//! `latest.json` (`{version, path, sha256}`) names the newest. A writer holds the lock on
//! `snapshots/lock`, not the board's. Taking a snapshot compresses the older ones.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::private::Dir;
pub use crate::sealed::ReadError as SnapshotError;
use crate::sealed::{self, LATEST};
use crate::state::State;
use crate::state::digest::sha256;
use crate::state::document::Document;
use crate::state::snapshot::{FORMAT, Head, Listed, Occasion, Problem, SnapshotName, Verification};
use crate::state::time::{MINUTE, Timestamp};

pub const DIRECTORY: &str = "snapshots";
const LATEST_VERSION: u32 = 1;
/// The head of a file lies within this many bytes: a label has 200 at most.
const HEAD_BYTES: u64 = 4_096;
/// The largest snapshot that is read, in bytes, as of state files.
const MAX_BYTES: u64 = 1 << 34;
/// Most snapshots that are compressed when one is taken: all but the first few after an upgrade
/// have been.
const PACKED_AT_ONCE: usize = 4;
/// Most problems that one report names.
const PROBLEMS: usize = 100;
/// How long somebody who asked for a snapshot waits for another that is being written.
const PATIENCE: Duration = Duration::from_secs(20);
const DAY: i64 = 24 * 60 * MINUTE;

/// How long snapshots are kept: the newest `count`, and all of the last `days`, as far as there is
/// room for these in `bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    pub count: usize,
    pub days: u32,
    pub bytes: u64,
}

/// What a new snapshot says of itself.
#[derive(Clone, Debug)]
pub struct Taken {
    pub at: Timestamp,
    pub occasion: Occasion,
    pub label: Option<String>,
    pub journal_bytes: u64,
}

/// A snapshot's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub head: Head,
    pub state: Document,
}

/// The snapshots of the board in one directory.
pub struct Snapshots {
    /// None when there are none yet.
    directory: Option<Dir>,
}

/// A snapshot's file, read and compared with its name.
struct Sound {
    snapshot: Snapshot,
    sha256: String,
}

impl Snapshots {
    pub fn of(board: &Path) -> io::Result<Self> {
        let Some(board) = Dir::open(board)? else { return Ok(Self { directory: None }) };
        Ok(Self { directory: board.dir(DIRECTORY)? })
    }

    /// The names of the snapshots, oldest first.
    pub fn names(&self) -> io::Result<Vec<SnapshotName>> {
        let Some(directory) = &self.directory else { return Ok(Vec::new()) };
        sealed::names(directory)
    }

    /// The snapshots, oldest first, with what their heads say, unverified.
    pub fn list(&self) -> io::Result<Vec<Listed>> {
        self.names()?.into_iter().map(|name| self.listed(name)).collect()
    }

    pub fn newest(&self) -> io::Result<Option<Listed>> {
        self.names()?.pop().map(|name| self.listed(name)).transpose()
    }

    fn listed(&self, name: SnapshotName) -> io::Result<Listed> {
        let opened = self.directory.as_ref().map(|directory| sealed::open(directory, &name));
        // It may be a link, or have been pruned meanwhile.
        let Some(Ok(opened)) = opened else { return Ok(Listed { name, bytes: 0, head: None }) };
        let mut text = Vec::new();
        // What is damaged has no head.
        let head = match opened.content.take(HEAD_BYTES).read_to_end(&mut text) {
            Ok(_) => head_of(&text),
            Err(_) => None,
        };
        Ok(Listed { name, bytes: opened.bytes, head })
    }

    /// The snapshot of that name, if its file is what was written.
    pub fn load(&self, name: &SnapshotName) -> Result<Snapshot, SnapshotError> {
        self.read(name).map(|sound| sound.snapshot)
    }

    /// The newest sound snapshot of that board whose state is not after `seq`.
    pub fn newest_sound(
        &self,
        board_id: &str,
        seq: u64,
    ) -> io::Result<Option<(SnapshotName, Snapshot)>> {
        for listed in self.list()?.into_iter().rev() {
            let fits = |head: &Head| head.board_id == board_id && head.seq <= seq;
            if listed.head.as_ref().is_none_or(fits)
                && let Ok(snapshot) = self.load(&listed.name)
                && fits(&snapshot.head)
            {
                return Ok(Some((listed.name, snapshot)));
            }
        }
        Ok(None)
    }

    fn read(&self, name: &SnapshotName) -> Result<Sound, SnapshotError> {
        let directory = self.directory.as_ref().ok_or(SnapshotError::NotFound)?;
        let (bytes, sha256) = sealed::read(directory, name, MAX_BYTES)?;
        let snapshot: Snapshot = serde_json::from_slice(&bytes).map_err(|error| {
            SnapshotError::Damaged(format!(
                "it cannot be understood: {error}; it may be of a newer callboard"
            ))
        })?;
        let head = &snapshot.head;
        if head.format > FORMAT {
            return Err(SnapshotError::Damaged(format!(
                "it has format {} of a newer callboard",
                head.format
            )));
        }
        let board = &snapshot.state.board;
        if (&head.board_id, head.seq) != (&board.board_id, board.seq) {
            return Err(SnapshotError::Damaged("its head is not that of its state".to_owned()));
        }
        Ok(Sound { snapshot, sha256 })
    }

    /// Reads every file, and compares it with its name and with the chain. Changes nothing.
    pub fn verify(&self) -> io::Result<Verification> {
        let names = self.names()?;
        let mut report = Verification { snapshots: names.len(), ..Verification::default() };
        let mut hashes = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let sound = match self.read(name) {
                Ok(sound) => sound,
                // It was pruned since the directory was read.
                Err(SnapshotError::NotFound) => continue,
                Err(error) => {
                    complain(&mut report, name.as_str(), error.to_string());
                    continue;
                }
            };
            match &sound.snapshot.head.prev_sha256 {
                Some(prev) if hashes.contains(prev) => {}
                Some(_) if index == 0 => report.pruned_before = Some(name.clone()),
                Some(prev) => {
                    let problem =
                        format!("the snapshot before it ({}…) is missing or damaged", short(prev));
                    complain(&mut report, name.as_str(), problem);
                }
                None if index == 0 => {}
                None => complain(
                    &mut report,
                    name.as_str(),
                    "it names none before it, and there are".to_owned(),
                ),
            }
            hashes.push(sound.sha256);
            report.newest_sound = Some(name.clone());
        }
        if let Some(problem) = self.latest_problem(&names)? {
            complain(&mut report, LATEST, problem);
        }
        report.sound = report.problems.is_empty();
        Ok(report)
    }

    fn latest_problem(&self, names: &[SnapshotName]) -> io::Result<Option<String>> {
        let newest = names.last();
        let Some(directory) = &self.directory else { return Ok(None) };
        let Some(latest) = sealed::latest::<u32>(directory) else {
            return Ok(newest.map(|_| {
                "it is missing or cannot be understood; the next snapshot writes it".to_owned()
            }));
        };
        if latest.version > LATEST_VERSION {
            return Ok(Some("it was written by a newer callboard".to_owned()));
        }
        let Some(named) = names.iter().find(|name| name.as_str() == latest.path) else {
            return Ok(Some("it names a snapshot that is not there".to_owned()));
        };
        let actual = match sealed::bytes(directory, named, MAX_BYTES) {
            Ok(bytes) => sha256(&bytes),
            Err(error) => return Ok(Some(format!("what it names cannot be read: {error}"))),
        };
        Ok(match () {
            () if actual != latest.sha256 => {
                Some("its sha256 is not that of the file that it names".to_owned())
            }
            () if Some(named) != newest => {
                Some(format!("it names {named}, which is not the newest"))
            }
            () => None,
        })
    }
}

/// Writes a snapshot of `state`, and removes those that need not be kept at `taken.at`, which is
/// now. `unless` is shown the newest one, while nobody else is writing, and may find that another
/// is not needed.
pub fn take(
    board: &Path,
    state: &State,
    taken: Taken,
    retention: Retention,
    unless: impl FnOnce(Option<&Listed>) -> bool,
) -> io::Result<Option<Listed>> {
    let board = Dir::open(board)?.ok_or(io::ErrorKind::NotFound)?;
    let (directory, _) = board.make_dir(DIRECTORY)?;
    let patience = if taken.occasion == Occasion::Growth { Duration::ZERO } else { PATIENCE };
    let Some(_lock) = directory.lock(patience)? else {
        // The one that is being written will do.
        return if taken.occasion == Occasion::Growth {
            Ok(None)
        } else {
            Err(io::ErrorKind::TimedOut.into())
        };
    };
    let snapshots = Snapshots { directory: Some(directory) };
    let listed = snapshots.newest()?;
    if unless(listed.as_ref()) {
        return Ok(None);
    }
    let names = snapshots.names()?;
    // Later by name than every other, however the clocks of two processes differ.
    let at = names.last().map_or(taken.at, |newest| taken.at.max(newest.at() + 1));
    // The newest may be damaged: then the chain goes on from the newest that is sound.
    let prev_sha256 =
        names.iter().rev().find_map(|name| snapshots.read(name).ok()).map(|sound| sound.sha256);
    let head = Head {
        format: FORMAT,
        board_id: state.board().board_id.clone(),
        seq: state.seq(),
        taken_at: at,
        occasion: taken.occasion,
        label: taken.label,
        prev_sha256,
        journal_bytes: taken.journal_bytes,
    };
    let bytes = serde_json::to_vec(&Snapshot { head: head.clone(), state: state.to_document() })?;
    let Some(directory) = &snapshots.directory else { return Ok(None) };
    let (name, _) = sealed::put(directory, at, &bytes, LATEST_VERSION, "snapshot")?;
    prune(directory, names, at, retention)?;
    Ok(Some(Listed { name, bytes: bytes.len() as u64, head: Some(head) }))
}

/// Removes what need not be kept, and compresses some of the rest; `older` are all snapshots but
/// the one just taken.
fn prune(
    directory: &Dir,
    older: Vec<SnapshotName>,
    now: Timestamp,
    retention: Retention,
) -> io::Result<()> {
    let age = i64::from(retention.days).saturating_mul(DAY);
    let (mut bytes, mut packed) = (0, 0);
    for (place, name) in older.iter().rev().enumerate() {
        if packed < PACKED_AT_ONCE && sealed::pack(directory, name, MAX_BYTES)? {
            packed += 1;
        }
        bytes += sealed::open(directory, name).map_or(0, |opened| opened.bytes);
        let is_old = now.since(name.at()) > age || bytes > retention.bytes;
        if is_old && place + 1 >= retention.count {
            sealed::remove(directory, name)?;
        }
    }
    Ok(())
}

fn complain(report: &mut Verification, file: &str, problem: String) {
    if report.problems.len() < PROBLEMS {
        report.problems.push(Problem { file: file.to_owned(), problem });
    }
}

/// What stands between `{"head":` and the state.
fn head_of(text: &[u8]) -> Option<Head> {
    let rest = text.strip_prefix(b"{\"head\":")?;
    serde_json::Deserializer::from_slice(rest).into_iter().next()?.ok()
}

fn short(sha256: &str) -> String {
    sha256.chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

#[cfg(test)]
mod tests;
