//! The feed: every event, once and in order, for all listeners in this process.
//!
//! The newest events are in a ring that all listeners share; a listener that falls behind it reads
//! from the journal, page by page. A page that was read is kept for a while for the others, and one
//! listener reads at a time, so a thousand of them that start at the beginning cost the writer as
//! much as one. The feed keeps nothing per listener, which knows its own position, so a slow one
//! costs nobody anything.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::state::event::{Event, Recorded};

/// Limits of the ring, in bytes of JSON and in events.
const RING_BYTES: usize = 4 << 20;
const RING_EVENTS: usize = 4_096;
/// Most events that a listener takes at once, and that are read from the journal together.
pub(super) const PAGE: usize = 128;
/// Most bytes of JSON that the kept pages have together, unless a single page has more.
const PAGES_BYTES: usize = 4 << 20;

/// One event, and its JSON, written once for all listeners.
pub struct Item {
    pub recorded: Recorded,
    pub json: Box<RawValue>,
}

impl Item {
    /// `None` for an event that cannot be written as JSON, of which there is none.
    pub fn new(recorded: Recorded) -> Option<Arc<Self>> {
        let json = serde_json::value::to_raw_value(&recorded).ok()?;
        Some(Arc::new(Self { recorded, json }))
    }
}

pub(super) struct Feed {
    /// The `seq` of the newest event that was published.
    head: watch::Sender<u64>,
    ring: Mutex<Ring>,
    pages: Mutex<Pages>,
    /// Held by the listener that is reading from the journal.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// Events without a gap, the newest last.
#[derive(Default)]
struct Ring {
    items: VecDeque<Arc<Item>>,
    bytes: usize,
}

/// Pages of the history, each without a gap and not empty; the one that was read last is at the
/// end.
#[derive(Default)]
pub(super) struct Pages {
    pages: VecDeque<Vec<Arc<Item>>>,
    bytes: usize,
}

impl Feed {
    pub(super) fn new() -> Self {
        Self {
            head: watch::Sender::new(0),
            ring: Mutex::default(),
            pages: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn is_heard(&self) -> bool {
        self.head.receiver_count() > 0
    }

    pub(super) fn head(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// Publishes everything up to `head`, which is durable now. `events` are those after what was
    /// published before.
    pub(super) fn publish(&self, events: Vec<Recorded>, head: u64) {
        if *self.head.borrow() >= head {
            return;
        }
        {
            let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
            if events.iter().any(|one| matches!(one.event, Event::Purged { .. })) {
                // Earlier events may have the text that was purged.
                *ring = Ring::default();
                *self.pages() = Pages::default();
            }
            let complete = events.last().is_some_and(|last| last.seq == head);
            if self.is_heard() && complete {
                events.into_iter().filter_map(Item::new).for_each(|item| ring.push(item));
            } else {
                *ring = Ring::default();
            }
        }
        if !self.is_heard() {
            *self.pages() = Pages::default();
        }
        self.head.send_replace(head);
    }

    pub(super) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Some of the events after `seq`, if they are in the ring or in a kept page.
    pub(super) fn after(&self, seq: u64) -> Option<Vec<Arc<Item>>> {
        self.newest_after(seq).or_else(|| self.pages().after(seq))
    }

    /// The events after `seq` if the ring still has the first of them.
    fn newest_after(&self, seq: u64) -> Option<Vec<Arc<Item>>> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ring.items.front()?.recorded.seq;
        let skipped = usize::try_from((seq + 1).checked_sub(first)?).ok()?;
        Some(ring.items.iter().skip(skipped).take(PAGE).cloned().collect())
    }
}

impl Ring {
    fn push(&mut self, item: Arc<Item>) {
        if self.items.back().is_some_and(|last| last.recorded.seq + 1 != item.recorded.seq) {
            *self = Self::default();
        }
        self.bytes += item.json.get().len();
        self.items.push_back(item);
        while self.items.len() > RING_EVENTS || self.bytes > RING_BYTES {
            let Some(oldest) = self.items.pop_front() else { return };
            self.bytes -= oldest.json.get().len();
        }
    }
}

impl Pages {
    pub(super) fn after(&self, seq: u64) -> Option<Vec<Arc<Item>>> {
        let has_next = |page: &&Vec<Arc<Item>>| {
            let (Some(first), Some(last)) = (page.first(), page.last()) else { return false };
            (first.recorded.seq..=last.recorded.seq).contains(&(seq + 1))
        };
        let page = self.pages.iter().rev().find(has_next)?;
        Some(page.iter().filter(|item| item.recorded.seq > seq).cloned().collect())
    }

    pub(super) fn keep(&mut self, page: Vec<Arc<Item>>) {
        let Some(first) = page.first() else { return };
        let size =
            |page: &[Arc<Item>]| page.iter().map(|item| item.json.get().len()).sum::<usize>();
        // A longer copy of the journal's last page replaces the shorter one.
        let known = |known: &Vec<Arc<Item>>| {
            known.first().is_some_and(|item| item.recorded.seq == first.recorded.seq)
        };
        if let Some(shorter) =
            self.pages.iter().position(known).and_then(|index| self.pages.remove(index))
        {
            self.bytes -= size(&shorter);
        }
        self.bytes += size(&page);
        self.pages.push_back(page);
        while self.bytes > PAGES_BYTES && self.pages.len() > 1 {
            let Some(oldest) = self.pages.pop_front() else { return };
            self.bytes -= size(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::event::Event;
    use crate::state::id::ParticipantId;
    use crate::state::time::Timestamp;

    fn event(seq: u64, text: usize) -> Recorded {
        let event = Event::Paused { reason: Some("x".repeat(text)) };
        let participant = ParticipantId::trusted("p-test");
        Recorded {
            seq,
            at: Timestamp::default(),
            participant,
            actor: None,
            idempotency: None,
            event,
        }
    }

    fn seqs(feed: &Feed, after: u64) -> Option<Vec<u64>> {
        feed.after(after).map(|items| items.iter().map(|item| item.recorded.seq).collect())
    }

    #[test]
    fn ring_gives_what_follows_and_knows_what_it_has_not() {
        let feed = Feed::new();
        let _listens = feed.head();
        feed.publish((5..=9).map(|seq| event(seq, 1)).collect(), 9);
        assert_eq!(seqs(&feed, 3), None);
        assert_eq!(seqs(&feed, 4), Some(vec![5, 6, 7, 8, 9]));
        assert_eq!(seqs(&feed, 8), Some(vec![9]));
        assert_eq!(seqs(&feed, 9), Some(vec![]));
    }

    #[test]
    fn ring_never_has_a_gap() {
        let feed = Feed::new();
        let _listens = feed.head();
        feed.publish(vec![event(1, 1)], 1);
        feed.publish(vec![event(4, 1)], 4);
        assert_eq!(seqs(&feed, 0), None);
        assert_eq!(seqs(&feed, 3), Some(vec![4]));
    }

    #[test]
    fn ring_is_bounded_in_bytes_and_in_events() {
        let feed = Feed::new();
        let _listens = feed.head();
        feed.publish((1..=20).map(|seq| event(seq, 1 << 20)).collect(), 20);
        assert_eq!(seqs(&feed, 17), Some(vec![18, 19, 20]));
        assert_eq!(seqs(&feed, 16), None);
        feed.publish(vec![event(21, 5 << 20)], 21);
        assert_eq!(
            seqs(&feed, 20),
            None,
            "one event larger than the ring is read from the journal"
        );
        feed.publish((22..=9_000).map(|seq| event(seq, 1)).collect(), 9_000);
        assert_eq!(feed.ring.lock().unwrap().items.len(), RING_EVENTS);
    }

    fn page(seqs: std::ops::RangeInclusive<u64>, text: usize) -> Vec<Arc<Item>> {
        seqs.filter_map(|seq| Item::new(event(seq, text))).collect()
    }

    #[test]
    fn pages_are_for_all_who_come_by_until_others_take_their_place() {
        let feed = Feed::new();
        let listens = feed.head();
        feed.pages().keep(page(1..=4, 1));
        feed.pages().keep(page(5..=6, 1));
        assert_eq!(seqs(&feed, 0), Some(vec![1, 2, 3, 4]));
        assert_eq!(seqs(&feed, 2), Some(vec![3, 4]));
        assert_eq!((seqs(&feed, 4), seqs(&feed, 6)), (Some(vec![5, 6]), None));
        feed.pages().keep(page(5..=8, 1));
        feed.pages().keep(Vec::new());
        assert_eq!((seqs(&feed, 6), feed.pages().pages.len()), (Some(vec![7, 8]), 2));
        feed.pages().keep(page(9..=12, 1 << 20));
        assert_eq!((seqs(&feed, 0), seqs(&feed, 10)), (None, Some(vec![11, 12])));
        {
            let pages = feed.pages();
            let held: usize = pages.pages.iter().flatten().map(|item| item.json.get().len()).sum();
            assert_eq!((pages.pages.len(), pages.bytes), (1, held));
        }
        drop(listens);
        feed.publish(Vec::new(), 20);
        assert_eq!((seqs(&feed, 10), feed.pages().bytes), (None, 0));
    }

    #[test]
    fn nothing_is_kept_while_nobody_listens() {
        let feed = Feed::new();
        feed.publish(vec![event(1, 1)], 1);
        assert_eq!(seqs(&feed, 0), None);
        assert_eq!(*feed.head().borrow(), 1);
    }
}
