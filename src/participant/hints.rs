//! The system says when another process has touched the board's directory.

use std::path::Path;
use std::sync::mpsc::SyncSender;

use notify::{Event, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};

use super::directory::JOURNAL;
use super::writer::Message;
use crate::statefile;

/// Tells the writer that the state file was replaced, or the journal removed.
pub fn watch(dir: &Path, writer: SyncSender<Message>) -> notify::Result<RecommendedWatcher> {
    let hint = move |event: notify::Result<Event>| {
        let Ok(event) = event else { return };
        let is_of = |name: &str| event.paths.iter().any(|path| path.ends_with(name));
        let is_removal = event.kind.is_remove();
        if !event.kind.is_access() && (is_of(statefile::FILE_NAME) || is_removal && is_of(JOURNAL)) {
            // A full queue is looked at soon anyway.
            drop(writer.try_send(Message::Changed));
        }
    };
    // A commit touches many files here, and each touch would wake every process. What is saved in place is found soon.
    let names = EventKindMask::CREATE | EventKindMask::REMOVE | EventKindMask::MODIFY_NAME;
    let mut watcher = RecommendedWatcher::new(hint, notify::Config::default().with_event_kinds(names))?;
    watcher.watch(dir, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}
