//! A reader of the feed, which reads what the feed no longer has from the journal.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;

use super::error::CallError;
use super::feed::{Item, PAGE};
use super::handle::Handle;
use crate::ops::EventFilter;

/// One reader of the feed.
pub struct Listener {
    handle: Handle,
    head: watch::Receiver<u64>,
    /// The seq of the last event that this listener examined.
    seq: u64,
    filter: EventFilter,
    page: VecDeque<Arc<Item>>,
}

impl Handle {
    /// Listens for events after `since`, or from now on, for as long as the listener is asked.
    pub async fn listen(
        &self,
        since: Option<u64>,
        filter: EventFilter,
    ) -> Result<Listener, CallError> {
        Listener::new(self.clone(), since, filter).await
    }
}

impl Listener {
    /// Listens for what comes after `since`, or from now on.
    pub(super) async fn new(
        handle: Handle,
        since: Option<u64>,
        filter: EventFilter,
    ) -> Result<Self, CallError> {
        // Subscribes before the head is asked for, so that nothing is missed between the two.
        let head = handle.feed.head();
        let newest = {
            let _turn = handle.feed.turn.lock().await;
            handle.history(u64::MAX, 0).await?.head
        };
        Ok(Self {
            seq: since.unwrap_or(newest).min(newest),
            handle,
            head,
            filter,
            page: VecDeque::new(),
        })
    }

    /// The seq up to which every event was returned or filtered out.
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
                None => self.read().await?.into(),
            };
            if self.page.is_empty() {
                let seq = self.seq;
                // The sender lives as long as the handle.
                drop(self.head.wait_for(|head| *head > seq).await);
            }
        }
    }

    /// Reads a page from the journal; pages begin at the same seqs for all listeners.
    async fn read(&self) -> Result<Vec<Arc<Item>>, CallError> {
        let feed = &self.handle.feed;
        let _turn = feed.turn.lock().await;
        if let Some(items) = feed.after(self.seq) {
            return Ok(items);
        }
        let before = self.seq - self.seq % PAGE as u64;
        let page = self.handle.history(before, PAGE).await?.items;
        let items = page.iter().filter(|item| item.recorded.seq > self.seq).cloned().collect();
        feed.pages().keep(page);
        Ok(items)
    }
}
