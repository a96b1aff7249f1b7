//! How this process notices hand edits of the state file, and what it does about them.

use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use super::archive::BoardArchive;
use super::board::Board;
use super::edits::{Examined, Outcome, SETTLED, Verdict, examine, is_old, let_file_settle, reject};
use super::message::Message;
use crate::ops::hand_edit;
use crate::state::State;
use crate::state::time::Timestamp;
use crate::statefile::displaced::all_waiting;
use crate::statefile::{FileIdentity, Home, identity};

/// Pause before another look, after an edit could not be compared with the journal or its file
/// could not be put away.
const NEXT_TRY: Duration = Duration::from_secs(2);

/// Most edits that a start deals with before it answers.
const AT_START: usize = 32;

/// What this process knows of files that no projection has left.
#[derive(Default)]
pub(super) struct Edits {
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

impl Edits {
    /// Looks at the file in the state file's place, and at those that are kept. Returns whether the
    /// lock is needed.
    pub(super) fn look(
        &mut self,
        board: &Board,
        now: Timestamp,
        sender: &SyncSender<Message>,
    ) -> bool {
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
        board.is_strange() && self.has_settled(FileIdentity::of(board.dir()).ok().flatten())
    }

    /// How soon to look again, if before the next regular look.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.watching.then_some(SETTLED)
    }

    pub(super) fn take(&mut self, examined: Examined) {
        self.reading = false;
        self.examined = Some(examined);
    }

    /// Reads the first kept file, if there is one, and returns whether it did. Blocks, so it is
    /// only for a process that has nothing else to do.
    pub(super) fn read_next(&mut self, board: &Board, now: Timestamp) -> bool {
        let Some(path) = all_waiting(board.dir()).into_iter().next() else { return false };
        if self.settled_at_start == AT_START {
            return false;
        }
        self.settled_at_start += 1;
        let_file_settle(&path);
        self.examined = Some(examine(&board.archive(now), path));
        true
    }

    /// Decides what becomes of the edit that was read last. The caller holds the lock and has
    /// caught up.
    pub(super) fn decide(&self, state: &State) -> Option<Verdict> {
        let examined = self.examined.as_ref()?;
        let is_there = identity(&examined.path)
            .is_ok_and(|found| found.is_some() && found == examined.identity);
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

    /// Carries out a verdict that is durable: the file has served and is removed, or it is kept as
    /// rejected.
    pub(super) fn conclude(&mut self, verdict: Verdict, dir: &Home, now: Timestamp) {
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
        let since = self
            .seen
            .filter(|(seen, _)| *seen == file)
            .map_or_else(Instant::now, |(_, since)| since);
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
