//! Rates of calls, one for each token. The token's own goes before that of the board's
//! `config.toml`; without either, tokens that were handed out have a generous one, and the owner's
//! has none.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::config::Followed;
use crate::ops::Principal;
use crate::participant::Rate;
use crate::state::limit::RATE;

/// The rates of a server, as its board's configuration says.
#[derive(Default)]
pub struct Rates(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// Directory of the board; `None` for a server without limits.
    dir: Option<PathBuf>,
    config: Followed,
    /// By the name of the token, `None` for the owner's, with the calls per second.
    used: HashMap<Option<String>, (NonZeroU32, Arc<Rate>)>,
}

impl Rates {
    pub fn of(dir: &Path) -> Self {
        let config = Followed::load(dir).unwrap_or_else(|error| {
            tracing::warn!(%error, "the rate of calls is the default");
            Followed::default()
        });
        Self(Mutex::new(Known { dir: Some(dir.to_owned()), config, ..Known::default() }))
    }

    /// Reads the configuration again if it has changed.
    pub(super) fn look(&self) {
        let mut known = self.known();
        let Some(dir) = known.dir.clone() else { return };
        if let Err(error) = known.config.look(&dir) {
            tracing::warn!(%error, "the rate of calls stays as it is");
        }
    }

    pub(super) fn get(&self, principal: Option<&Principal>) -> Option<Arc<Rate>> {
        let mut known = self.known();
        known.dir.as_ref()?;
        let own = principal.and_then(|principal| principal.rate).or(known.config.rate());
        let wanted = own.or_else(|| principal.and(NonZeroU32::new(RATE)))?;
        let name = principal.map(|principal| principal.token.clone());
        match known.used.get(&name) {
            Some((per_second, rate)) if *per_second == wanted => Some(Arc::clone(rate)),
            _ => {
                let rate = Arc::new(Rate::new(wanted, Instant::now()));
                known.used.insert(name, (wanted, Arc::clone(&rate)));
                Some(rate)
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
