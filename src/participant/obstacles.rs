//! What keeps calls from being written although this process can do nothing about it: looked for
//! once a second, so that health says so before a call has waited in vain.

use std::path::Path;
use std::time::{Duration, Instant};

use super::attendance::is_past;
use super::directory::LOCKS;
use super::files::seq_of;
use super::holder::Holder;
use super::lock;
use crate::ops::health_check::{Kind, Trouble};

/// How long a lock is held, or the state file is behind, before that is worth a word. A stopped
/// process is at once.
const NOTEWORTHY: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Obstacles {
    locks: [Option<Held>; LOCKS.len()],
    behind: Option<Behind>,
    looked_at: Option<Instant>,
}

/// A lock that was found held whenever it was looked for, by the same process, while nothing was
/// recorded.
#[derive(Clone, Copy)]
struct Held {
    holder: Holder,
    seq: Option<u64>,
    since: Instant,
}

/// The state file was found to show less than the journal has.
#[derive(Clone, Copy)]
struct Behind {
    shown: u64,
    since: Instant,
}

impl Obstacles {
    /// Looks at the board in `dir`, of which this process has read the events up to `seq`.
    pub(super) fn look(&mut self, dir: &Path, seq: Option<u64>, now: Instant) {
        if !is_past(self.looked_at) {
            return;
        }
        for (name, held) in LOCKS.into_iter().zip(&mut self.locks) {
            let holder = lock::held(dir, name).filter(|holder| !holder.is_this_process());
            *held =
                holder.map(|holder| Held { since: since(*held, holder, seq, now), holder, seq });
        }
        let shown = seq.and_then(|seq| seq_of(dir).filter(|shown| *shown < seq));
        let before = self.behind;
        let unmoved = |shown| before.filter(|behind| behind.shown == shown);
        self.behind = shown.map(|shown| Behind {
            shown,
            since: unmoved(shown).map_or(now, |behind| behind.since),
        });
        self.looked_at = Some(now);
    }

    pub(super) fn troubles(&self) -> Vec<Trouble> {
        let Some(now) = self.looked_at else { return Vec::new() };
        let lasts = |since| now.duration_since(since) >= NOTEWORTHY;
        let held = LOCKS.into_iter().zip(&self.locks);
        let held = held.filter_map(|(name, held)| {
            let Held { holder, since, .. } = (*held)?;
            let seconds = now.duration_since(since).as_secs();
            let text = format!(
                "the board's `{name}` has been held by {holder} for {seconds} s, so that calls \
                 wait: {}",
                holder.remedy()
            );
            (holder.is_stopped || lasts(since)).then(|| Trouble::new(Kind::LockHeld, text))
        });
        let behind = self.behind.filter(|behind| lasts(behind.since)).map(|behind| {
            let text = format!(
                "the state file has shown event {} and no later one for {} s; operations are safe \
                 in the journal; `callboard doctor` says why it is behind",
                behind.shown,
                now.duration_since(behind.since).as_secs()
            );
            Trouble::new(Kind::StateFileBehind, text)
        });
        held.chain(behind).collect()
    }
}

/// Since when the lock has been held as it is now.
fn since(before: Option<Held>, holder: Holder, seq: Option<u64>, now: Instant) -> Instant {
    let same = before.filter(|before| before.holder.pid == holder.pid && before.seq == seq);
    same.map_or(now, |before| before.since)
}
