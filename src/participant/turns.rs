//! Turns of the long reads that are made beside the writer. The bearer of a token has only some of
//! them at once, so that its reads wait for each other and not others for all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::state::limit::{READING, READING_OF_ONE};

pub(crate) struct Turns {
    all: Arc<Semaphore>,
    /// Of the tokens whose bearers read or wait.
    of_tokens: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A turn, until it is dropped.
pub(crate) struct Turn {
    _of_token: Option<OwnedSemaphorePermit>,
    _of_all: OwnedSemaphorePermit,
}

impl Default for Turns {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(READING.max)), of_tokens: Mutex::default() }
    }
}

impl Turns {
    /// Waits for a turn of the bearer of this token, or of the person. None if there are no more.
    pub(crate) async fn take(&self, token: Option<String>) -> Option<Turn> {
        let of_token = match token.map(|token| self.of(token)) {
            None => None,
            Some(own) => Some(own.acquire_owned().await.ok()?),
        };
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Turn { _of_token: of_token, _of_all: of_all })
    }

    fn of(&self, token: String) -> Arc<Semaphore> {
        let mut known = self.of_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, turns| turns.strong_count() > 0);
        if let Some(turns) = known.get(&token).and_then(Weak::upgrade) {
            return turns;
        }
        let turns = Arc::new(Semaphore::new(READING_OF_ONE.max));
        known.insert(token, Arc::downgrade(&turns));
        turns
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// The turn, if there is one now.
    fn now(turns: &Turns, token: Option<&str>) -> Option<Turn> {
        let mut taken = pin!(turns.take(token.map(str::to_owned)));
        match taken.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => turn,
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_token_leaves_turns_to_others() {
        let turns = Turns::default();
        let mut own: Vec<_> = (0..READING.max).map_while(|_| now(&turns, Some("a"))).collect();
        assert_eq!(own.len(), READING_OF_ONE.max);
        let of_person = now(&turns, None);
        assert!(of_person.is_some());
        own.pop();
        assert!(now(&turns, Some("a")).is_some(), "one has ended");
        drop(own);
        assert!(now(&turns, Some("b")).is_some());
        assert!(turns.of_tokens.lock().unwrap().len() < 2, "those that read nothing are forgotten");
    }
}
