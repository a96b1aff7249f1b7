//! The feed: every event once and in order, for whoever listens in this process.
//!
//! The newest events stand in a ring that all listeners share; who falls behind it reads on in the journal. Nothing is
//! kept per listener but the place where it is, so a slow one costs nobody anything.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::watch;

use super::{CallError, Handle};
use crate::ops::EventFilter;
use crate::state::event::Recorded;

/// What the ring holds at most, in bytes of JSON and in events.
const RING_BYTES: usize = 4 << 20;
const RING_EVENTS: usize = 4_096;
/// Events that one listener takes at once.
const PAGE: usize = 128;

/// One event, and its JSON, written once for all listeners.
pub struct Item {
    pub recorded: Recorded,
    pub json: Box<RawValue>,
}

impl Item {
    /// None for what no JSON can hold, which no event is.
    pub fn new(recorded: Recorded) -> Option<Arc<Self>> {
        let json = serde_json::value::to_raw_value(&recorded).ok()?;
        Some(Arc::new(Self { recorded, json }))
    }
}

pub(super) struct Feed {
    /// The `seq` of the newest event that the replica knows.
    head: watch::Sender<u64>,
    ring: Mutex<Ring>,
}

/// Events without a gap, the newest last.
#[derive(Default)]
struct Ring {
    items: VecDeque<Arc<Item>>,
    bytes: usize,
}

impl Feed {
    pub fn new() -> Self {
        Self { head: watch::Sender::new(0), ring: Mutex::default() }
    }

    pub fn is_heard(&self) -> bool {
        self.head.receiver_count() > 0
    }

    pub fn head(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// The replica is at `head` now; `events` led there from what was published before.
    pub fn publish(&self, events: Vec<Recorded>, head: u64) {
        if *self.head.borrow() == head {
            return;
        }
        {
            let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
            let complete = events.last().is_some_and(|last| last.seq == head);
            if self.is_heard() && complete {
                events.into_iter().filter_map(Item::new).for_each(|item| ring.push(item));
            } else {
                *ring = Ring::default();
            }
        }
        self.head.send_replace(head);
    }

    /// The events after `seq` if the ring still has the first of them.
    fn after(&self, seq: u64) -> Option<Vec<Arc<Item>>> {
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

/// One reader of the feed.
pub struct Listener {
    handle: Handle,
    head: watch::Receiver<u64>,
    /// Of the last event that was looked at.
    seq: u64,
    filter: EventFilter,
    page: VecDeque<Arc<Item>>,
}

impl Listener {
    /// Listens for what comes after `since`, or from now on.
    pub(super) async fn new(handle: Handle, since: Option<u64>, filter: EventFilter) -> Result<Self, CallError> {
        // Before the head is asked for, so that nothing is missed between the two.
        let head = handle.feed.head();
        let newest = handle.history(u64::MAX, 0).await?.head;
        Ok(Self { seq: since.unwrap_or(newest).min(newest), handle, head, filter, page: VecDeque::new() })
    }

    /// The `seq` up to which everything was given, or was not wanted.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The next event that the filter wants. Cancel safe.
    pub async fn next(&mut self) -> Result<Arc<Item>, CallError> {
        loop {
            while let Some(item) = self.page.pop_front() {
                self.seq = item.recorded.seq;
                if self.filter.wants(&item.recorded) {
                    return Ok(item);
                }
            }
            self.page = match self.handle.feed.after(self.seq) {
                Some(items) => items.into(),
                None => self.handle.history(self.seq, PAGE).await?.items.into(),
            };
            if self.page.is_empty() {
                let seq = self.seq;
                // The sender lives as long as the handle.
                drop(self.head.wait_for(|head| *head > seq).await);
            }
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
        Recorded { seq, at: Timestamp::default(), participant, actor: None, idempotency: None, event }
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
        assert_eq!(seqs(&feed, 20), None, "one event larger than the ring is read from the journal");
        feed.publish((22..=9_000).map(|seq| event(seq, 1)).collect(), 9_000);
        assert_eq!(feed.ring.lock().unwrap().items.len(), RING_EVENTS);
    }

    #[test]
    fn nothing_is_kept_while_nobody_listens() {
        let feed = Feed::new();
        feed.publish(vec![event(1, 1)], 1);
        assert_eq!(seqs(&feed, 0), None);
        assert_eq!(*feed.head().borrow(), 1);
    }
}
