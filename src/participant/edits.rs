//! Hand edits of the state file: noticed, set aside, read, and adopted or rejected.
//!
//! Every file that a projection leaves is noted in `lock`. If another file is found in the state file's place, somebody
//! else put it there: the next projection exchanges it for the true one and keeps it, so that the board never waits for
//! an editor and nothing that was saved is lost. Kept files are read one after another, without the lock and once they
//! no longer change, and compared with the state at their own `seq`. What becomes of an edit is decided under the lock,
//! in the same commit that records it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant, SystemTime};

use super::archive::{BoardArchive, state_at};
use super::board::{Board, BoardError};
use super::directory::BoardLock;
use super::writer::Message;
use crate::journal::Journal;
use crate::journal::sqlite::SqliteJournal;
use crate::ops::hand_edit;
use crate::state::State;
use crate::state::edit::Edit;
use crate::state::event::Event;
use crate::state::time::Timestamp;
use crate::statefile::displaced::{self, all_waiting};
use crate::statefile::edit::{self, Edited};
use crate::statefile::{self, FileIdentity, Found, Home, Projection, identity};

/// A file that has not changed for this long is no longer being written.
const SETTLED: Duration = Duration::from_millis(60);
/// A file that was last modified this long ago had settled before anybody looked.
const LONG_AGO: Duration = Duration::from_secs(2);
/// The longest that a start waits for a file to settle.
const START_PATIENCE: Duration = Duration::from_millis(600);
/// Pause before another look, after an edit could not be compared with the journal or its file could not be put away.
const NEXT_TRY: Duration = Duration::from_secs(2);
const READ_AT_ONCE: usize = 4_096;
/// Most edits that a start deals with before it answers.
const AT_START: usize = 32;

/// What this process knows of files that no projection has left.
#[derive(Default)]
pub struct Edits {
    /// The file that was looked at last, and since when it has been unchanged.
    seen: Option<(FileIdentity, Instant)>,
    /// Whether to look again soon: a file has not settled, or it was too early to look.
    watching: bool,
    last_look: Option<Instant>,
    /// Whether a thread is reading an edit.
    reading: bool,
    examined: Option<Examined>,
    retry_at: Option<Instant>,
    settled_at_start: usize,
}

/// An edited file that was read.
pub(crate) struct Examined {
    path: PathBuf,
    identity: Option<FileIdentity>,
    outcome: Outcome,
}

enum Outcome {
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
    /// Not decided now: somebody else has dealt with the file or is still writing it, or it could not be compared.
    Left,
}

impl Edits {
    /// Whether an edit has been read, which the next commit adopts or rejects.
    pub fn is_to_be_decided(&self) -> bool {
        self.examined.is_some()
    }

    /// Looks at the file in the state file's place, and at those that are kept. Returns whether the lock is needed.
    pub fn look(&mut self, board: &Board, now: Timestamp, sender: &SyncSender<Message>) -> bool {
        if self.examined.is_some() {
            return true;
        }
        let due = self.last_look.is_none_or(|last| last.elapsed() >= SETTLED);
        let later = self.retry_at.is_some_and(|at| Instant::now() < at);
        self.watching = !due;
        if self.reading || later || !due {
            return false;
        }
        self.last_look = Some(Instant::now());
        if let Some(path) = all_waiting(board.dir()).into_iter().next() {
            if self.has_settled(identity(&path).ok().flatten()) {
                self.read_apart(path, board.archive(now), sender);
            }
            return false;
        }
        is_strange(board) && self.has_settled(FileIdentity::of(board.dir()).ok().flatten())
    }

    /// How soon to look again, if before the next regular look.
    pub fn patience(&self) -> Option<Duration> {
        self.watching.then_some(SETTLED)
    }

    pub fn take(&mut self, examined: Examined) {
        self.reading = false;
        self.examined = Some(examined);
    }

    /// Reads the first kept file, if there is one, and returns whether it did. Blocks, so it is only for a process that
    /// has nothing else to do.
    pub fn read_next(&mut self, board: &Board, now: Timestamp) -> bool {
        let Some(path) = all_waiting(board.dir()).into_iter().next() else { return false };
        if self.settled_at_start == AT_START {
            return false;
        }
        self.settled_at_start += 1;
        let_file_settle(&path);
        self.examined = Some(examine(&board.archive(now), path));
        true
    }

    /// Decides what becomes of the edit that was read last. The caller holds the lock and has caught up.
    pub fn decide(&self, state: &State) -> Option<Verdict> {
        let examined = self.examined.as_ref()?;
        let is_there = identity(&examined.path).is_ok_and(|found| found.is_some() && found == examined.identity);
        Some(match &examined.outcome {
            _ if !is_there => Verdict::Left,
            Outcome::Later => Verdict::Left,
            Outcome::Wrong(reasons) => Verdict::Rejected(reasons.clone()),
            Outcome::Edit(edit) => match hand_edit::decide(edit, state) {
                Ok(Some(event)) => Verdict::Adopted(Box::new(event)),
                Ok(None) => Verdict::Nothing,
                Err(reasons) => Verdict::Rejected(reasons),
            },
        })
    }

    /// Carries out a verdict that is durable: the file has served and is removed, or it is kept as rejected.
    pub fn conclude(&mut self, verdict: Verdict, dir: &Home, now: Timestamp) {
        let Some(examined) = self.examined.take() else { return };
        self.watching = true;
        let concluded = match verdict {
            Verdict::Left => {
                let journal_failed = matches!(examined.outcome, Outcome::Later);
                self.retry_at = journal_failed.then(|| Instant::now() + NEXT_TRY);
                return;
            }
            Verdict::Nothing => fs_err::remove_file(&examined.path),
            Verdict::Adopted(_) => {
                tracing::info!("a hand edit of the state file was taken over");
                fs_err::remove_file(&examined.path)
            }
            Verdict::Rejected(reasons) => reject(dir, &examined.path, &reasons, now),
        };
        if let Err(error) = concluded {
            tracing::warn!(%error, "an edited state file could not be put away");
            self.retry_at = Some(Instant::now() + NEXT_TRY);
        }
    }

    fn has_settled(&mut self, file: Option<FileIdentity>) -> bool {
        let Some(file) = file else { return false };
        let since = self.seen.filter(|(seen, _)| *seen == file).map_or_else(Instant::now, |(_, since)| since);
        self.seen = Some((file, since));
        let settled = since.elapsed() >= SETTLED || is_old(&file);
        self.watching = !settled;
        settled
    }

    fn read_apart(&mut self, path: PathBuf, archive: BoardArchive, sender: &SyncSender<Message>) {
        let sender = sender.clone();
        let started = std::thread::Builder::new().name("edit".to_owned()).spawn(move || {
            // If this cannot be sent, the writer has ended.
            drop(sender.send(Message::Examined(examine(&archive, path))));
        });
        self.reading = started.is_ok();
    }
}

/// Replaces the state file by `state`. A file in its place that no projection has left is kept. The caller holds the
/// state file's lock.
pub fn write(projection: &mut Projection, state: &mut State, lock: &BoardLock) -> io::Result<()> {
    let kept = projection.write_keeping(state, lock.left(), |left| lock.leave(left))?;
    say_kept(kept);
    Ok(())
}

pub fn say_kept(kept: Option<PathBuf>) {
    if let Some(kept) = kept {
        tracing::info!(kept = %kept.display(), "somebody has changed the state file; it is looked at");
    }
}

/// Whether there is a file in the state file's place that no projection has left there.
pub fn is_strange(board: &Board) -> bool {
    let left = board.lock.left();
    FileIdentity::of(board.dir()).is_ok_and(|found| found.is_some_and(|file| !left.has(&file)))
}

/// Waits until a foreign file in the state file's place has settled: before a start calls it damaged, because somebody
/// may be saving it.
pub fn let_settle(dir: &Path, lock: &BoardLock) {
    let path = Home::of(dir).file();
    if identity(&path).is_ok_and(|found| found.is_some_and(|file| !lock.left().files.contains(&file))) {
        let_file_settle(&path);
    }
}

/// Whether a file that is not sound was edited rather than damaged. If it is as a projection left it, nobody has
/// written to it since, so its content has decayed.
pub fn is_edit(dir: &Path, lock: &BoardLock, journal: &SqliteJournal) -> bool {
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
    let may_be_mixed = edited.is_of_another_boot() || left.files.iter().all(|file| file.dev != found.dev);
    is_of_board(&edited.board_id, edited.seq) && !(may_be_mixed && is_mixed(dir, &edited, journal))
}

/// Whether `bytes` is a complete text, as an editor leaves one in which somebody has forgotten a comma.
fn is_whole(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| {
        text.lines().rfind(|line| !line.trim().is_empty()) == Some("}")
            && !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
    })
}

/// Whether a file that a power loss may have left has parts of different times. Signs of that are a change that nobody
/// may make by hand, and a text that the board itself had at another time: taken for an edit, it would undo what was
/// done since. An edit from before the last boot that only returns to such a text cannot be told from that; it is set
/// aside and not lost.
fn is_mixed(dir: &Path, edited: &Edited, journal: &SqliteJournal) -> bool {
    let base = state_at(dir, edited.seq).map(|base| base.to_document());
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
            if was_said || tasks.iter().any(|task| state.task(&task.id).is_some_and(|then| **then == *task)) {
                return true;
            }
        }
        if events.len() < READ_AT_ONCE {
            return false;
        }
    }
}

fn let_file_settle(path: &Path) {
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

fn is_old(file: &FileIdentity) -> bool {
    let modified = SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(file.mtime_ns).unwrap_or_default());
    modified.elapsed().is_ok_and(|age| age >= LONG_AGO)
}

/// Reads and compares the file, which may take as long as replaying the journal up to the file's `seq`. If the edit is
/// going to be adopted, takes a snapshot of the state before it.
fn examine(archive: &BoardArchive, path: PathBuf) -> Examined {
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
            let reason = format!("seq: it says event {}, but the journal ends at {head}", edited.seq);
            return Outcome::Wrong(vec![reason]);
        }
        _ => {}
    }
    // A copy of what the board itself once wrote says nothing that the journal does not.
    if edited.is_sound {
        return Outcome::Edit(Edit { base_seq: edited.seq, ..Edit::default() });
    }
    if edited.is_of_another_boot() && SqliteJournal::open(dir).is_ok_and(|journal| is_mixed(dir, edited, &journal)) {
        let reason =
            "layout: it was written before the machine was last started, and a loss of power may have left it so";
        return Outcome::Wrong(vec![reason.to_owned()]);
    }
    let base = match edited.seq {
        seq if seq == state.seq() => Ok(state.to_document()),
        seq => state_at(dir, seq).map(|base| base.to_document()),
    };
    match base.map(|base| edited.compare(&base)) {
        Ok(Ok(edit)) => Outcome::Edit(edit),
        Ok(Err(reasons)) => Outcome::Wrong(reasons),
        // Another attempt would not find it either.
        Err(error @ BoardError::NotInThePast { .. }) => Outcome::Wrong(vec![format!("seq: {error}")]),
        Err(error) => {
            tracing::warn!(%error, "the journal could not be read to compare an edited state file with it");
            Outcome::Later
        }
    }
}

fn reject(dir: &Home, path: &Path, reasons: &[String], now: Timestamp) -> io::Result<()> {
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
