//! `snapshots/`: earlier states, each in a file of its own that nobody changes once it is there.
//!
//! A file holds the JSON of a [`Snapshot`], one line; its name begins with the time and ends with the first digits of the
//! file's SHA-256. `prev_sha256` at its head is the whole SHA-256 of the snapshot before it, so that the files form a
//! chain, of which retention takes the oldest. `latest.json` (`{version, path, sha256}`) names the newest. Who writes
//! holds the lock on `snapshots/lock`, not the board's.

mod directory;

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::failpoint;
use crate::state::State;
use crate::state::snapshot::{FORMAT, Head, Listed, Occasion, Problem, Snapshot, SnapshotName, Verification};
use crate::state::time::{MINUTE, Timestamp};
use directory::Directory;

pub const DIRECTORY: &str = "snapshots";
pub const LATEST: &str = "latest.json";
const LATEST_VERSION: u32 = 1;
/// The head of a file lies within this many bytes: a label has 200 at most.
const HEAD_BYTES: u64 = 4_096;
/// No state within the board's limits comes near it.
const MAX_BYTES: u64 = 1 << 30;
/// Problems that one report names.
const PROBLEMS: usize = 100;
/// Who asked for a snapshot waits so long for another that is being written.
const PATIENCE: Duration = Duration::from_secs(20);
const DAY: i64 = 24 * 60 * MINUTE;

#[derive(Debug, Error)]
pub enum SnapshotError {
    #[error("there is no such snapshot")]
    NotFound,
    #[error("{0}")]
    Damaged(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How long snapshots are kept: the newest `count`, and all of the last `days`.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    pub count: usize,
    pub days: u32,
}

/// What a new snapshot is to say of itself.
#[derive(Clone, Debug)]
pub struct Taken {
    pub at: Timestamp,
    pub occasion: Occasion,
    pub label: Option<String>,
    pub journal_bytes: u64,
}

#[derive(Debug, Deserialize, Serialize)]
struct Latest {
    version: u32,
    path: String,
    sha256: String,
}

/// The snapshots of the board in one directory.
pub struct Snapshots {
    /// None when there are none yet.
    directory: Option<Directory>,
}

/// A snapshot's file, read and compared with its name.
struct Sound {
    snapshot: Snapshot,
    sha256: String,
}

impl Snapshots {
    pub fn of(board: &Path) -> io::Result<Self> {
        Ok(Self { directory: Directory::open(board)? })
    }

    /// Oldest first.
    pub fn names(&self) -> io::Result<Vec<SnapshotName>> {
        let Some(directory) = &self.directory else { return Ok(Vec::new()) };
        let names = directory.names()?;
        let mut names: Vec<_> = names.iter().filter_map(|name| SnapshotName::parse(name)).collect();
        names.sort();
        Ok(names)
    }

    /// Oldest first, with what their heads say, unverified.
    pub fn list(&self) -> io::Result<Vec<Listed>> {
        self.names()?.into_iter().map(|name| self.listed(name)).collect()
    }

    pub fn newest(&self) -> io::Result<Option<Listed>> {
        self.names()?.pop().map(|name| self.listed(name)).transpose()
    }

    fn listed(&self, name: SnapshotName) -> io::Result<Listed> {
        let file = self.directory.as_ref().map(|directory| directory.read(name.as_str())).transpose();
        // What is listed may be a link, or pruned meanwhile.
        let Ok(Some(Some(file))) = file else { return Ok(Listed { name, bytes: 0, head: None }) };
        let bytes = file.metadata()?.len();
        let mut text = Vec::new();
        file.take(HEAD_BYTES).read_to_end(&mut text)?;
        Ok(Listed { name, bytes, head: head_of(&text) })
    }

    /// The snapshot of that name, if its file is what was written.
    pub fn load(&self, name: &SnapshotName) -> Result<Snapshot, SnapshotError> {
        self.read(name).map(|sound| sound.snapshot)
    }

    /// The newest sound snapshot of that board whose state is not after `seq`.
    pub fn newest_sound(&self, board_id: &str, seq: u64) -> io::Result<Option<(SnapshotName, Snapshot)>> {
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
        let bytes = self.bytes(name)?;
        let sha256 = sha256(&bytes);
        if !sha256.starts_with(name.hash()) {
            return Err(SnapshotError::Damaged(format!("its SHA-256 begins with {}", &sha256[..8])));
        }
        let snapshot: Snapshot = serde_json::from_slice(&bytes).map_err(|error| {
            SnapshotError::Damaged(format!("it cannot be understood: {error}; it may be of a newer callboard"))
        })?;
        let head = &snapshot.head;
        if head.format > FORMAT {
            return Err(SnapshotError::Damaged(format!("it has format {} of a newer callboard", head.format)));
        }
        let board = &snapshot.state.board;
        if (&head.board_id, head.seq) != (&board.board_id, board.seq) {
            return Err(SnapshotError::Damaged("its head is not that of its state".to_owned()));
        }
        Ok(Sound { snapshot, sha256 })
    }

    fn bytes(&self, name: &SnapshotName) -> Result<Vec<u8>, SnapshotError> {
        let directory = self.directory.as_ref().ok_or(SnapshotError::NotFound)?;
        let file = match directory.read(name.as_str()) {
            Ok(file) => file.ok_or(SnapshotError::NotFound)?,
            // A link, or no file at all.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(SnapshotError::Damaged(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// What `latest.json` says; none when it is missing or says nothing.
    fn latest(&self) -> io::Result<Option<Latest>> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let Ok(Some(file)) = directory.read(LATEST) else { return Ok(None) };
        let mut text = Vec::new();
        file.take(HEAD_BYTES).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Reads every file, compares it with its name and with the chain. Changes nothing.
    pub fn verify(&self) -> io::Result<Verification> {
        let names = self.names()?;
        let mut report = Verification { snapshots: names.len(), ..Verification::default() };
        let mut hashes = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let sound = match self.read(name) {
                Ok(sound) => sound,
                // Pruned since the directory was read.
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
                    let problem = format!("the snapshot before it ({}…) is missing or damaged", short(prev));
                    complain(&mut report, name.as_str(), problem);
                }
                None if index == 0 => {}
                None => complain(&mut report, name.as_str(), "it names none before it, and there are".to_owned()),
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
        let Some(latest) = self.latest()? else {
            return Ok(newest.map(|_| "it is missing or cannot be understood; the next snapshot writes it".to_owned()));
        };
        if latest.version > LATEST_VERSION {
            return Ok(Some("it was written by a newer callboard".to_owned()));
        }
        let Some(named) = names.iter().find(|name| name.as_str() == latest.path) else {
            return Ok(Some("it names a snapshot that is not there".to_owned()));
        };
        let actual = match self.bytes(named) {
            Ok(bytes) => sha256(&bytes),
            Err(error) => return Ok(Some(format!("what it names cannot be read: {error}"))),
        };
        Ok(match () {
            () if actual != latest.sha256 => Some("its sha256 is not that of the file that it names".to_owned()),
            () if Some(named) != newest => Some(format!("it names {named}, which is not the newest")),
            () => None,
        })
    }
}

/// Writes a snapshot of `state` and takes away what need not be kept, `at` being now. `unless` looks at the newest one
/// there is, with nobody else writing, and may find that another is not needed.
pub fn take(
    board: &Path,
    state: &State,
    taken: Taken,
    retention: Retention,
    unless: impl FnOnce(Option<&Listed>) -> bool,
) -> io::Result<Option<Listed>> {
    let directory = Directory::make(board)?;
    let patience = if taken.occasion == Occasion::Growth { Duration::ZERO } else { PATIENCE };
    let Some(_lock) = directory.lock(patience)? else {
        // That other one will do.
        return if taken.occasion == Occasion::Growth { Ok(None) } else { Err(io::ErrorKind::TimedOut.into()) };
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
    let prev_sha256 = names.iter().rev().find_map(|name| snapshots.read(name).ok()).map(|sound| sound.sha256);
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
    let sha256 = sha256(&bytes);
    let name = SnapshotName::new(at, &sha256);
    let Some(directory) = &snapshots.directory else { return Ok(None) };
    directory.clear_unfinished()?;
    directory.place(name.as_str(), &bytes)?;
    failpoint::hit("snapshot")?;
    let latest = Latest { version: LATEST_VERSION, path: name.to_string(), sha256 };
    directory.place(LATEST, &serde_json::to_vec(&latest)?)?;
    prune(directory, names, at, retention)?;
    Ok(Some(Listed { name, bytes: bytes.len() as u64, head: Some(head) }))
}

/// `older` are all but the one just taken.
fn prune(directory: &Directory, older: Vec<SnapshotName>, now: Timestamp, retention: Retention) -> io::Result<()> {
    let age = i64::from(retention.days).saturating_mul(DAY);
    let surplus = older.into_iter().rev().skip(retention.count.saturating_sub(1));
    for name in surplus.filter(|name| now.since(name.at()) > age) {
        directory.remove(name.as_str())?;
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

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
