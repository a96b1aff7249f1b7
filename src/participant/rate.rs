//! How many calls a caller may make: a bucket that fills as time passes and that each call takes
//! from. A full one has the calls of one second.

use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::state::refusal::Refusal;

#[derive(Debug)]
pub struct Rate {
    per_second: f64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    calls: f64,
    at: Instant,
}

impl Rate {
    pub fn new(per_second: NonZeroU32, now: Instant) -> Self {
        let per_second = f64::from(per_second.get());
        Self { per_second, bucket: Mutex::new(Bucket { calls: per_second, at: now }) }
    }

    /// Takes one call, refused if none is left.
    pub fn take(&self, now: Instant) -> Result<(), Refusal> {
        let mut bucket = self.filled(now);
        self.check(&bucket)?;
        bucket.calls -= 1.0;
        Ok(())
    }

    /// Refuses what [`Self::take`] would refuse, and takes nothing.
    pub fn has_one(&self, now: Instant) -> Result<(), Refusal> {
        self.check(&self.filled(now))
    }

    fn check(&self, bucket: &Bucket) -> Result<(), Refusal> {
        if bucket.calls >= 1.0 {
            return Ok(());
        }
        let seconds = ((1.0 - bucket.calls) / self.per_second).ceil().max(1.0);
        Err(Refusal::RateLimited { rate: self.per_second as u32, retry_after: seconds as u64 })
    }

    fn filled(&self, now: Instant) -> MutexGuard<'_, Bucket> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.calls = (bucket.calls + passed * self.per_second).min(self.per_second);
        bucket.at = now.max(bucket.at);
        bucket
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_second_of_calls_at_once_and_then_as_many_as_time_brings() {
        let start = Instant::now();
        let rate = Rate::new(NonZeroU32::new(2).expect("two"), start);
        let at = |millis| start + Duration::from_millis(millis);
        let takes = [0, 0, 0, 400, 600, 600, 1_100, 60_000, 60_000, 60_000].map(at);
        let taken = takes.map(|now| (rate.has_one(now).is_ok(), rate.take(now).is_ok()));
        let expected = [true, true, false, false, true, false, true, true, true, false];
        assert_eq!(taken, expected.map(|is| (is, is)));
        let refused = rate.take(at(60_001)).expect_err("there is none left");
        assert_eq!(refused, Refusal::RateLimited { rate: 2, retry_after: 1 });
    }
}
