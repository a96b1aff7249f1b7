//! What actions came to, kept until the page that the browser is sent to says it. The address of
//! that page has a number in it and not the text: anybody can write an address.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::Uri;

use super::Notice;
use super::login::random_letters;

/// Notices that wait for their pages; the oldest make room.
const KEPT: usize = 200;
pub(super) const NAME: &str = "said";
const LETTERS: usize = 12;

#[derive(Default)]
pub(super) struct Said(Mutex<VecDeque<(String, Notice)>>);

impl Said {
    fn kept(&self) -> MutexGuard<'_, VecDeque<(String, Notice)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a notice for the page at `path`. Returns where that page says it.
    pub(super) fn keep(&self, path: &str, notice: Notice) -> String {
        // Without randomness the page says nothing, which does no harm.
        let Ok(name) = random_letters(LETTERS) else { return path.to_owned() };
        let mut kept = self.kept();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((name.clone(), notice));
        let separator = if path.contains('?') { '&' } else { '?' };
        format!("{path}{separator}{NAME}={name}")
    }

    /// The notice that the page at this address says, once.
    pub(super) fn take(&self, uri: &Uri) -> Option<Notice> {
        let query = uri.query()?.as_bytes();
        let (_, wanted) = form_urlencoded::parse(query).find(|(name, _)| name == NAME)?;
        let mut kept = self.kept();
        let place = kept.iter().position(|(name, _)| *name == wanted)?;
        kept.remove(place).map(|(_, notice)| notice)
    }
}
