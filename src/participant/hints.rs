//! Hints by the operating system that another process has changed something in the board's
//! directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use notify::{Event, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};

use super::attendance::is_past;
use super::board::Board;
use super::directory::JOURNAL;
use super::message::Message;
use crate::statefile::Home;

/// Whether a hint is in the writer's queue: one says as much as many, and many would take the
/// places of calls.
#[derive(Clone, Default)]
pub(super) struct Hint(Arc<AtomicBool>);

impl Hint {
    fn give(&self, writer: &SyncSender<Message>) {
        if !self.0.swap(true, Ordering::AcqRel) && writer.try_send(Message::Changed).is_err() {
            // If the queue is full, the writer will look at it soon anyway.
            self.0.store(false, Ordering::Release);
        }
    }

    /// Clears the hint before anything is looked at, so that later changes are hinted at again.
    pub(super) fn take(&self) {
        self.0.swap(false, Ordering::AcqRel);
    }
}

/// How this process notices what others do: the system's hints while a caller waits for that, and
/// polling.
#[derive(Default)]
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    hint: Hint,
    /// The board's lock file when the watch began: with another, the directory may be another.
    generation: u64,
    /// When a parked call or a feed listener was last waiting.
    listened_at: Option<Instant>,
    /// When others' changes were last looked for without a call that needed them.
    pub polled_at: Option<Instant>,
    /// Why others' changes are found by polling only, if the directory cannot be watched.
    pub unwatched: Option<String>,
}

impl Watch {
    pub(super) fn take_hint(&self) {
        self.hint.take();
    }

    /// Watches the directory while a caller waits, so that other processes' commits wake this one;
    /// returns whether it has just begun to. Only then, because a committing process pays for each
    /// one that it wakes. The notifications are hints only: there is a poll behind them.
    pub(super) fn follow(
        &mut self,
        is_listened_to: bool,
        board: Option<&Board>,
        sender: &SyncSender<Message>,
    ) -> bool {
        if !is_listened_to {
            if is_past(self.listened_at) {
                self.watcher = None;
            }
            return false;
        }
        self.listened_at = Some(Instant::now());
        let Some(board) = board else { return false };
        if self.generation != board.lock_generation {
            (self.watcher, self.unwatched) = (None, None);
            self.generation = board.lock_generation;
        }
        if self.watcher.is_some() || self.unwatched.is_some() {
            return false;
        }
        match watch(board.dir(), sender.clone(), self.hint.clone()) {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => {
                tracing::warn!(%error, "changes are found by polling only");
                self.unwatched = Some(error.to_string());
            }
        }
        self.watcher.is_some()
    }
}

/// Starts to watch `dir`: tells the writer that the state file was replaced, or the journal
/// removed.
fn watch(
    dir: &Home,
    writer: SyncSender<Message>,
    given: Hint,
) -> notify::Result<RecommendedWatcher> {
    let name = dir.name().to_owned();
    let hint = move |event: notify::Result<Event>| {
        let Ok(event) = event else { return };
        let is_of = |name: &str| event.paths.iter().any(|path| path.ends_with(name));
        let is_removal = event.kind.is_remove();
        if !event.kind.is_access() && (is_of(&name) || is_removal && is_of(JOURNAL)) {
            given.give(&writer);
        }
    };
    // Not writes: a commit makes many here, and each would wake every process. A file that is
    // edited in place is soon found by the poll.
    let names = EventKindMask::CREATE | EventKindMask::REMOVE | EventKindMask::MODIFY_NAME;
    let mut watcher =
        RecommendedWatcher::new(hint, notify::Config::default().with_event_kinds(names))?;
    watcher.watch(dir, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn many_changes_take_one_place_in_the_queue_until_the_writer_has_heard_of_them() {
        let (writer, queue) = sync_channel(3);
        let hint = Hint::default();
        for _ in 0..2 {
            (0..10).for_each(|_| hint.give(&writer));
            assert_eq!(queue.try_iter().count(), 1);
            hint.take();
        }
    }

    #[test]
    fn hint_for_which_there_was_no_room_is_given_with_the_next_change() {
        let (writer, queue) = sync_channel(1);
        let hint = Hint::default();
        writer.try_send(Message::Settled).unwrap();
        hint.give(&writer);
        assert!(matches!(queue.try_recv(), Ok(Message::Settled)));
        hint.give(&writer);
        assert!(matches!(queue.try_recv(), Ok(Message::Changed)));
    }
}
