//! How this process notices hand edits of the state file, and what it does about them.

use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use super::archive::BoardArchive;
use super::board::Board;
use super::edits::{Examined, Outcome, SETTLED, Verdict, examine, is_old, let_file_settle, reject};
use super::message::Message;
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
    /// Whether an edit is being read or decided on.
    is_busy: bool,
    retry_at: Option<Instant>,
    settled_at_start: usize,
}

impl Edits {
    /// Looks at the file in the state file's place, and at those that are kept. Returns whether the
    /// state file is to be put in its place again, which keeps the strange one.
    pub(super) fn look(
        &mut self,
        board: &Board,
        now: Timestamp,
        sender: &SyncSender<Message>,
    ) -> bool {
        let due = self.last_look.is_none_or(|last| last.elapsed() >= SETTLED);
        let later = self.retry_at.is_some_and(|at| Instant::now() < at);
        self.watching = !due;
        if self.is_busy || later || !due {
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

    /// Reads the first kept file, if there is one. Blocks, so it is only for a process that has
    /// nothing else to do.
    pub(super) fn read_next(&mut self, board: &Board, now: Timestamp) -> Option<Examined> {
        let path = all_waiting(board.dir()).into_iter().next()?;
        if self.settled_at_start == AT_START {
            return None;
        }
        self.settled_at_start += 1;
        let_file_settle(&path);
        self.is_busy = true;
        Some(examine(&board.archive(now), path))
    }

    /// Carries out a verdict that is durable: the file has served and is removed, or it is kept as
    /// rejected.
    pub(super) fn conclude(
        &mut self,
        examined: &Examined,
        verdict: &Verdict,
        dir: &Home,
        now: Timestamp,
    ) {
        (self.is_busy, self.watching) = (false, true);
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
            Verdict::Rejected(reasons) => reject(dir, &examined.path, reasons, now),
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
        self.is_busy = started.is_ok();
    }
}
