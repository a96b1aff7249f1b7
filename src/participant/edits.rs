//! Hand edits of the state file: read, compared, and judged.
//!
//! Every file that a projection leaves is noted in `lock`. If another file is found in the state
//! file's place, somebody else put it there: the next projection exchanges it for the true one and
//! keeps it, so that the board never waits for an editor and nothing that was saved is lost. Kept
//! files are read one after another, without the lock and once they no longer change, and compared
//! with the state at their own `seq`. What becomes of an edit is decided under the lock,
//! in the same commit that records it.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::archive::{BoardArchive, state_at};
use super::error::BoardError;
use super::lock::BoardLock;
use crate::journal::sqlite::SqliteJournal;
use crate::ops::hand_edit;
use crate::state::State;
use crate::state::edit::Edit;
use crate::state::event::Event;
use crate::state::time::Timestamp;
use crate::statefile::displaced;
use crate::statefile::edit::{self, Edited};
use crate::statefile::{self, FileIdentity, Found, Home, Projection, identity};

/// A file that has not changed for this long is no longer being written.
pub(super) const SETTLED: Duration = Duration::from_millis(60);
/// A file that was last modified this long ago had settled before anybody looked.
const LONG_AGO: Duration = Duration::from_secs(2);
/// The longest that a start waits for a file to settle.
const START_PATIENCE: Duration = Duration::from_millis(600);
const READ_AT_ONCE: usize = 4_096;

/// An edited file that was read.
pub struct Examined {
    pub(super) path: PathBuf,
    pub(super) identity: Option<FileIdentity>,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    Edit(Edit),
    Wrong(Vec<String>),
    /// To be read again: the file changed meanwhile, or the journal could not be read.
    Later,
}

/// What becomes of an edited file.
pub enum Verdict {
    Adopted(Box<Event>),
    /// It changes nothing, or nothing any more.
    Nothing,
    Rejected(Vec<String>),
    /// Not decided now: somebody else has dealt with the file or is still writing it, or it could
    /// not be compared.
    Left,
}

/// Replaces the state file by `state`. A file in its place that no projection has left is kept. The
/// caller holds the state file's lock.
pub(super) fn write(
    projection: &mut Projection,
    state: &mut State,
    lock: &BoardLock,
) -> io::Result<()> {
    let kept = projection.write_keeping(state, lock.left(), |left| lock.leave(left))?;
    say_kept(kept);
    Ok(())
}

pub(super) fn say_kept(kept: Option<PathBuf>) {
    if let Some(kept) = kept {
        tracing::info!(kept = %kept.display(), "somebody has changed the state file; it is looked at");
    }
}

/// Waits until a foreign file in the state file's place has settled: before a start calls it
/// damaged, because somebody may be saving it.
pub(super) fn let_settle(dir: &Path, lock: &BoardLock) {
    let path = Home::of(dir).file();
    if identity(&path)
        .is_ok_and(|found| found.is_some_and(|file| !lock.left().files.contains(&file)))
    {
        let_file_settle(&path);
    }
}

/// Whether a file that is not sound was edited rather than damaged. If it is as a projection left
/// it, nobody has written to it since, so its content has decayed.
pub(super) fn is_edit(dir: &Path, lock: &BoardLock, journal: &SqliteJournal) -> bool {
    let path = Home::of(dir).file();
    let Ok(Some(found)) = identity(&path) else { return false };
    let left = lock.left();
    if left.has(&found) {
        return false;
    }
    if displaced::is_irregular(&path) {
        return true;
    }
    let (Ok(Some(board_id)), Ok(head)) = (journal.board_id(), journal.head()) else { return false };
    let Ok(bytes) = displaced::read(&path) else { return false };
    // It is as a projection wrote it, but of another history than the board's.
    if matches!(statefile::recognise(&bytes), Ok(Found::Sound(_))) {
        return false;
    }
    let is_of_board = |id: &str, seq| *id == *board_id && seq <= head;
    let Ok(edited) = edit::read(&bytes) else {
        let says = statefile::seq_of(dir).ok().flatten();
        return left.is_of_this_boot()
            && is_whole(&bytes)
            && says.is_some_and(|says| is_of_board(&says.board_id, says.seq));
    };
    let may_be_mixed =
        edited.is_of_another_boot() || left.files.iter().all(|file| file.dev != found.dev);
    is_of_board(&edited.board_id, edited.seq) && !(may_be_mixed && is_mixed(dir, &edited, journal))
}

/// Whether `bytes` is a complete text, as an editor leaves one in which somebody has forgotten a
/// comma.
fn is_whole(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| {
        text.lines().rfind(|line| !line.trim().is_empty()) == Some("}")
            && !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
    })
}

/// Whether a file that a power loss may have left has parts of different times. Signs of that are a
/// change that nobody may make by hand, and a text that the board itself had at another time: taken
/// for an edit, it would undo what was done since. An edit from before the last boot that only
/// returns to such a text cannot be told from that; it is set aside and not lost.
fn is_mixed(dir: &Path, edited: &Edited, journal: &SqliteJournal) -> bool {
    let base = state_at(dir, edited.seq);
    let Ok(Ok(edit)) = base.map(|base| edited.compare(&base)) else { return true };
    let tasks: Vec<_> = edit.tasks.iter().filter_map(|task| edited.task(&task.id)).collect();
    let texts = [edit.goal, edit.master_plan].map(|text| text.map(|text| text.to));
    let mut state = State::new();
    loop {
        let Ok(events) = journal.read_from(state.seq(), READ_AT_ONCE) else { return true };
        for recorded in &events {
            if state.apply(recorded).is_err() {
                return true;
            }
            state.settle();
            let board = state.board();
            let said = [&board.goal, &board.master_plan].map(|text| &**text);
            let was_said = texts.iter().zip(said).any(|(text, said)| text.as_deref() == Some(said));
            if was_said
                || tasks.iter().any(|task| state.task(&task.id).is_some_and(|then| **then == *task))
            {
                return true;
            }
        }
        if events.len() < READ_AT_ONCE {
            return false;
        }
    }
}

pub(super) fn let_file_settle(path: &Path) {
    let end = Instant::now() + START_PATIENCE;
    let mut last = identity(path).ok().flatten();
    while last.is_some_and(|file| !is_old(&file)) && Instant::now() < end {
        std::thread::sleep(SETTLED);
        let now = identity(path).ok().flatten();
        if now == last {
            return;
        }
        last = now;
    }
}

pub(super) fn is_old(file: &FileIdentity) -> bool {
    let modified = SystemTime::UNIX_EPOCH
        + Duration::from_nanos(u64::try_from(file.mtime_ns).unwrap_or_default());
    modified.elapsed().is_ok_and(|age| age >= LONG_AGO)
}

/// Reads and compares the file, which may take as long as replaying the journal up to the file's
/// `seq`. If the edit is going to be adopted, takes a snapshot of the state before it.
pub(super) fn examine(archive: &BoardArchive, path: PathBuf) -> Examined {
    let before = identity(&path).ok().flatten();
    let outcome = match displaced::read(&path).and_then(|bytes| edit::read(&bytes)) {
        Ok(edited) => compare(&archive.dir, &edited, &archive.present),
        Err(reason) => Outcome::Wrong(vec![reason]),
    };
    if let Outcome::Edit(edit) = &outcome
        && let Ok(Some(_)) = hand_edit::decide(edit, &archive.present)
        && let Err(error) = archive.take_before_edit()
    {
        tracing::warn!(%error, "no snapshot could be written before a hand edit");
    }
    let is_still = identity(&path).is_ok_and(|after| after == before);
    let outcome = if is_still { outcome } else { Outcome::Later };
    Examined { path, identity: before, outcome }
}

fn compare(dir: &Path, edited: &Edited, state: &State) -> Outcome {
    if edited.board_id != state.board().board_id {
        return Outcome::Wrong(vec!["board_id: it is the state of another board".to_owned()]);
    }
    // Others may have appended events that this replica does not know yet.
    match SqliteJournal::open(dir).and_then(|journal| journal.head()) {
        Ok(head) if edited.seq > head => {
            let reason =
                format!("seq: it says event {}, but the journal ends at {head}", edited.seq);
            return Outcome::Wrong(vec![reason]);
        }
        _ => {}
    }
    // A copy of what the board itself once wrote says nothing that the journal does not.
    if edited.is_sound {
        return Outcome::Edit(Edit { base_seq: edited.seq, ..Edit::default() });
    }
    if edited.is_of_another_boot()
        && SqliteJournal::open(dir).is_ok_and(|journal| is_mixed(dir, edited, &journal))
    {
        let reason = "layout: it was written before the machine was last started, and a loss of \
                      power may have left it so";
        return Outcome::Wrong(vec![reason.to_owned()]);
    }
    let base = match edited.seq {
        seq if seq == state.seq() => Ok(Cow::Borrowed(state)),
        seq => state_at(dir, seq).map(Cow::Owned),
    };
    match base.map(|base| edited.compare(&base)) {
        Ok(Ok(edit)) => Outcome::Edit(edit),
        Ok(Err(reasons)) => Outcome::Wrong(reasons),
        // Another attempt would not find it either.
        Err(error @ BoardError::NotInThePast { .. }) => {
            Outcome::Wrong(vec![format!("seq: {error}")])
        }
        Err(error) => {
            tracing::warn!(%error, "the journal could not be read to compare an edited state file with it");
            Outcome::Later
        }
    }
}

/// Decides what becomes of an edit. The caller holds the lock and has caught up.
pub(super) fn decide(examined: &Examined, state: &State) -> Verdict {
    let found = identity(&examined.path);
    let is_there = found.is_ok_and(|found| found.is_some() && found == examined.identity);
    match &examined.outcome {
        _ if !is_there => Verdict::Left,
        Outcome::Later => Verdict::Left,
        Outcome::Wrong(reasons) => Verdict::Rejected(reasons.clone()),
        Outcome::Edit(edit) => match hand_edit::decide(edit, state) {
            Ok(Some(event)) => Verdict::Adopted(Box::new(event)),
            Ok(None) => Verdict::Nothing,
            Err(reasons) => Verdict::Rejected(reasons),
        },
    }
}

pub(super) fn reject(
    dir: &Home,
    path: &Path,
    reasons: &[String],
    now: Timestamp,
) -> io::Result<()> {
    let listed = edit::listed(reasons);
    let text = format!(
        "This edit of {} was not taken over, and nothing of it was:\n\n{listed}\n\nBy hand one can change goal, \
         master_plan, and title, description, priority,\ndependencies, context and tags of unfinished tasks. For \
         everything else there\nis `callboard --help`. Remove both files when you have seen them.\n",
        dir.name()
    );
    let kept = displaced::reject(dir, path, &text, now)?;
    tracing::warn!(kept = %kept.display(), reasons = %listed, "a hand edit of the state file was rejected");
    Ok(())
}
