//! What happens on the board, as a stream.

use futures_util::Stream;
use futures_util::stream::try_unfold;

use super::Error;
use crate::participant::Listener;
use crate::state::event::Recorded;

/// Every event once, in order, of all processes on the board.
pub struct Events {
    listener: Listener,
}

impl Events {
    pub(super) fn new(listener: Listener) -> Self {
        Self { listener }
    }

    /// Waits for the next event. Dropping the future loses none.
    ///
    /// # Errors
    ///
    /// Why the board cannot be read.
    pub async fn next(&mut self) -> Result<Recorded, Error> {
        Ok(self.listener.next().await?.recorded.clone())
    }

    /// The number of the last event that was returned or that the filter left out. Subscribing
    /// after it misses no event.
    pub fn seq(&self) -> u64 {
        self.listener.seq()
    }

    /// The events as a stream, which ends after an error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Recorded, Error>> + Send {
        try_unfold(self, |mut events| async { Ok(Some((events.next().await?, events))) })
    }
}
