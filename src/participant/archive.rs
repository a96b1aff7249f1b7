//! Earlier states: snapshots, and the state at any past seq, by replaying the journal. That is
//! slow, so it is done off the writer's thread and without the board's lock.

use std::path::{Path, PathBuf};

use super::error::BoardError;
use crate::artifact;
use crate::bundle::{self, Bundles};
use crate::journal::sqlite::SqliteJournal;
use crate::ops::{Archive, Reader};
use crate::snapshot::{self, Retention, SnapshotError, Snapshots, Taken};
use crate::state::State;
use crate::state::artifact::{Artifact, Source};
use crate::state::bundle::{Asked, Told};
use crate::state::document::Document;
use crate::state::event::Recorded;
use crate::state::id::TaskId;
use crate::state::limit::BATCH;
use crate::state::policy::Policy;
use crate::state::refusal::Refusal;
use crate::state::snapshot::{Listed, Occasion, SnapshotName, Verification};
use crate::state::time::Timestamp;
use crate::state::undo::Command;

/// Most events that are read from the journal at once.
const READ_AT_ONCE: u64 = 4_096;
/// Bytes by which the journal must have grown for a snapshot that nobody asked for. It must also
/// have grown by the size of the state.
const GROWTH: u64 = 1 << 20;

/// The archive of one board as one call finds it.
pub struct BoardArchive {
    pub dir: PathBuf,
    pub present: State,
    /// Who reads what is made of the archive.
    pub reader: Reader,
    pub now: Timestamp,
    pub retention: Retention,
    pub journal_bytes: u64,
}

impl BoardArchive {
    fn snapshots(&self) -> Result<Snapshots, Refusal> {
        Snapshots::of(&self.dir).map_err(failed)
    }

    /// Takes a snapshot, unless the newest is new enough.
    pub fn take_if_grown(&self, state_bytes: u64) -> std::io::Result<()> {
        let taken = self.taken(Occasion::Growth, None);
        let newest =
            |newest: Option<&Listed>| newest.and_then(|one| Some(one.head.as_ref()?.journal_bytes));
        let unless =
            |found: Option<&Listed>| !has_grown(self.journal_bytes, newest(found), state_bytes);
        snapshot::take(&self.dir, &self.present, taken, self.retention, unless).map(drop)
    }

    /// Takes a snapshot, unless the newest shows the same event.
    pub fn take_before_edit(&self) -> std::io::Result<()> {
        let seq = self.present.seq();
        let shown = |found: Option<&Listed>| {
            found.is_some_and(|one| one.head.as_ref().is_some_and(|head| head.seq == seq))
        };
        let taken = self.taken(Occasion::BeforeEdit, None);
        snapshot::take(&self.dir, &self.present, taken, self.retention, shown).map(drop)
    }

    fn taken(&self, occasion: Occasion, label: Option<String>) -> Taken {
        Taken { at: self.now, occasion, label, journal_bytes: self.journal_bytes }
    }
}

/// Whether the journal has grown enough for a snapshot since the newest one, when it had `last`
/// bytes. If it was far larger then, that was another journal, before a recovery.
pub fn has_grown(journal_bytes: u64, last: Option<u64>, state_bytes: u64) -> bool {
    let last = last.filter(|last| *last / 2 <= journal_bytes);
    journal_bytes.saturating_sub(last.unwrap_or_default()) > GROWTH.max(state_bytes)
}

pub fn retention(policy: &Policy) -> Retention {
    Retention {
        count: policy.max_checkpoints as usize,
        days: policy.checkpoint_days,
        bytes: u64::from(policy.snapshot_megabytes) << 20,
    }
}

impl Archive for BoardArchive {
    fn reader(&self) -> Reader {
        self.reader
    }

    fn present(&self) -> &State {
        &self.present
    }

    fn list(&self) -> Result<Vec<Listed>, Refusal> {
        self.snapshots()?.list().map_err(failed)
    }

    fn load(&self, name: &SnapshotName) -> Result<Document, Refusal> {
        let snapshots = self.snapshots()?;
        let board_id = &self.present.board().board_id;
        let detail = match snapshots.load(name) {
            Ok(snapshot) if snapshot.head.board_id == *board_id => return Ok(snapshot.state),
            Ok(_) => "it is of another board".to_owned(),
            Err(SnapshotError::NotFound) => {
                return Err(Refusal::UnknownSnapshot { snapshot: name.clone() });
            }
            Err(SnapshotError::Damaged(detail)) => detail,
            Err(SnapshotError::Io(error)) => return Err(failed(error)),
        };
        let sound = snapshots.newest_sound(board_id, u64::MAX).map_err(failed)?;
        Err(Refusal::SnapshotDamaged {
            snapshot: name.clone(),
            detail,
            sound: sound.map(|(name, _)| name),
        })
    }

    fn newest_sound(&self) -> Result<(SnapshotName, Document), Refusal> {
        let sound = self
            .snapshots()?
            .newest_sound(&self.present.board().board_id, u64::MAX)
            .map_err(failed)?;
        sound.map(|(name, snapshot)| (name, snapshot.state)).ok_or(Refusal::NoSnapshot)
    }

    fn at(&self, seq: u64) -> Result<Document, Refusal> {
        let head = self.present.seq();
        match seq {
            _ if seq == 0 || seq > head => Err(Refusal::NotInThePast { seq, head }),
            _ if seq == head => Ok(self.present.to_document()),
            _ => match state_at(&self.dir, seq) {
                Ok(state) => Ok(state.to_document()),
                Err(error) => Err(Refusal::HistoryUnread { detail: error.to_string() }),
            },
        }
    }

    fn command(&self, seq: u64) -> Result<Command, Refusal> {
        let head = self.present.seq();
        if seq == 0 || seq > head {
            return Err(Refusal::NotInThePast { seq, head });
        }
        command(&self.dir, seq)
            .map_err(|error| Refusal::HistoryUnread { detail: error.to_string() })
    }

    fn take(&self, occasion: Occasion, label: Option<String>) -> Result<Listed, Refusal> {
        let taken = self.taken(occasion, label);
        let taken = snapshot::take(&self.dir, &self.present, taken, self.retention, |_| false)
            .map_err(failed)?;
        taken.ok_or(Refusal::NoSnapshot)
    }

    fn verify(&self) -> Result<Verification, Refusal> {
        self.snapshots()?.verify().map_err(failed)
    }

    fn keep_artifact(
        &self,
        task: &TaskId,
        name: &str,
        source: &Source,
    ) -> Result<Artifact, Refusal> {
        artifact::keep(&self.dir, task, name, source, self.now)
    }

    fn bundles(&self, asked: &Asked) -> Result<Told, Refusal> {
        Bundles::at(&self.dir.join(bundle::DIRECTORY)).answer(asked, self.now)
    }
}

fn failed(error: std::io::Error) -> Refusal {
    Refusal::ArchiveFailed { detail: error.to_string() }
}

/// The state at the end of the journal.
pub fn present(dir: &Path) -> Result<State, BoardError> {
    state_at(dir, SqliteJournal::open(dir)?.head()?)
}

/// The state after event `seq`, replayed from the nearest sound snapshot, else from the start.
pub fn state_at(dir: &Path, seq: u64) -> Result<State, BoardError> {
    let journal = SqliteJournal::open(dir)?;
    let head = journal.head()?;
    if seq == 0 || seq > head {
        return Err(BoardError::NotInThePast { seq, first: journal.base() + 1, head });
    }
    let mut state = nearest(dir, &journal, seq)?.unwrap_or_default();
    replay(&mut state, &journal, seq)?;
    Ok(state)
}

/// The command that event `seq` is of.
fn command(dir: &Path, seq: u64) -> Result<Command, BoardError> {
    let journal = SqliteJournal::open(dir)?;
    let from = seq.saturating_sub(BATCH.max as u64).max(journal.base() + 1);
    let near = journal.read_from(from - 1, 2 * BATCH.max + 1)?;
    let place = near.iter().position(|recorded| recorded.seq == seq);
    let place = place.ok_or(BoardError::NotInThePast {
        seq,
        first: journal.base() + 1,
        head: journal.head()?,
    })?;
    let own = &near[place];
    let is_of = |other: &&Recorded| {
        other.participant == own.participant && other.at == own.at && other.actor == own.actor
    };
    let before = near[..place].iter().rev().take_while(is_of).count();
    let after = near[place..].iter().take_while(is_of).count();
    let events = near[place - before..place + after].to_vec();
    let first = events[0].seq;
    let mut state = if first == 1 { State::new() } else { state_at(dir, first - 1)? };
    let before = state.clone();
    for recorded in &events {
        state.apply(recorded)?;
        state.settle();
    }
    Ok(Command { before, after: state, events })
}

/// Applies the journal's events up to `seq`.
pub fn replay(state: &mut State, journal: &SqliteJournal, seq: u64) -> Result<(), BoardError> {
    while state.seq() < seq {
        let missing = usize::try_from((seq - state.seq()).min(READ_AT_ONCE)).unwrap_or(usize::MAX);
        let events = journal.read_from(state.seq(), missing)?;
        // A journal may begin after the events that are asked for.
        if events.first().is_none_or(|first| first.seq > seq) {
            return Err(BoardError::NotInThePast {
                seq,
                first: journal.base() + 1,
                head: journal.head()?,
            });
        }
        for recorded in events.iter().take_while(|recorded| recorded.seq <= seq) {
            state.apply(recorded)?;
            state.settle();
        }
    }
    Ok(())
}

fn nearest(dir: &Path, journal: &SqliteJournal, seq: u64) -> Result<Option<State>, BoardError> {
    let Some(board_id) = journal.board_id()? else { return Ok(None) };
    let found = Snapshots::of(dir).and_then(|snapshots| snapshots.newest_sound(&board_id, seq));
    let (name, snapshot) = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(error) => {
            tracing::warn!(%error, "the snapshots could not be read; replaying from the start");
            return Ok(None);
        }
    };
    // The board may have been restored from elsewhere since, and have another history.
    let last = journal.read_from(snapshot.head.seq.saturating_sub(1), 1)?;
    if last.first().map(|last| last.at) == Some(snapshot.state.board.last_activity) {
        return Ok(Some(State::from_document(snapshot.state)));
    }
    tracing::warn!(%name, "the snapshot is not of this history; replaying from the start");
    Ok(None)
}

/// The seq of the last event that was not after `time`.
pub fn seq_at(dir: &Path, time: Timestamp) -> Result<u64, BoardError> {
    let journal = SqliteJournal::open(dir)?;
    // The times of events never go back.
    let began = journal.base();
    let (mut before, mut after) = (began, journal.head()? + 1);
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        match journal.read_from(middle - 1, 1)?.first() {
            Some(recorded) if recorded.at <= time => before = middle,
            _ => after = middle,
        }
    }
    match journal.read_from(began, 1)?.first() {
        Some(first) if before == began => Err(BoardError::BeforeTheFirst { time, first: first.at }),
        _ => Ok(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_that_is_smaller_than_at_the_last_snapshot_has_grown_since_it_was_begun() {
        for (bytes, last, grown) in [
            (9 * GROWTH, Some(8 * GROWTH), false),
            (9 * GROWTH, Some(7 * GROWTH), true),
            (9 * GROWTH, Some(10 * GROWTH), false),
            (GROWTH, Some(100 * GROWTH), false),
            (2 * GROWTH, Some(100 * GROWTH), true),
            (2 * GROWTH, None, true),
        ] {
            assert_eq!(
                has_grown(bytes, last, 0),
                grown,
                "{bytes} bytes, {last:?} at the last snapshot"
            );
        }
    }
}
