//! The system says when another process has touched the board's directory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use notify::{Event, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};

use super::directory::JOURNAL;
use super::feed::Feed;
use super::writer::Message;
use crate::statefile;

/// While nobody waits for what happens, one hint in so long is enough: each commit brings two, to every process.
const UNAWAITED: Duration = Duration::from_millis(50);

/// Tells the writer that the state file was replaced, or the journal removed. `parked` says whether calls wait for that.
pub fn watch(
    dir: &Path,
    writer: SyncSender<Message>,
    feed: Arc<Feed>,
    parked: Arc<AtomicBool>,
) -> notify::Result<RecommendedWatcher> {
    let mut last: Option<Instant> = None;
    let hint = move |event: notify::Result<Event>| {
        let Ok(event) = event else { return };
        let is_of = |name: &str| event.paths.iter().any(|path| path.ends_with(name));
        let is_removal = event.kind.is_remove();
        let is_due = is_removal
            || last.is_none_or(|last| last.elapsed() >= UNAWAITED)
            || parked.load(Ordering::Relaxed)
            || feed.is_heard();
        if is_due && !event.kind.is_access() && (is_of(statefile::FILE_NAME) || is_removal && is_of(JOURNAL)) {
            last = Some(Instant::now());
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
