//! Where time comes from. The pure core never asks for it; a participant does, and passes it in.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
use rustix::time::{ClockId, clock_gettime};

use crate::state::deadline::STEP;
use crate::state::time::Timestamp;

/// Two clocks: the one that people read, and the one in which work gets done.
pub trait Clock: Send {
    fn wall(&self) -> Timestamp;
    /// Time since some fixed moment; stands still while the machine sleeps.
    fn monotonic(&self) -> Duration;
    /// How long the machine has slept since it booted.
    fn slept(&self) -> Duration;
}

pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn slept(&self) -> Duration {
        slept()
    }
}

#[cfg(target_os = "linux")]
fn slept() -> Duration {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    read(ClockId::Boottime).saturating_sub(read(ClockId::Monotonic))
}

#[cfg(target_vendor = "apple")]
fn slept() -> Duration {
    let read = |clock| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a time, and is not kept.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    };
    read(libc::CLOCK_MONOTONIC_RAW).saturating_sub(read(libc::CLOCK_UPTIME_RAW))
}

/// How long the machine has slept is not known here.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn slept() -> Duration {
    Duration::ZERO
}

/// The ID of the present boot, where the system has one.
pub fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.chars().filter(char::is_ascii_hexdigit).take(16).collect()
    })
}

/// A clock that stands still until it is moved: for tests and simulation.
#[derive(Clone, Default)]
pub struct ManualClock(Arc<Mutex<Times>>);

#[derive(Default)]
struct Times {
    wall: Timestamp,
    monotonic: Duration,
    slept: Duration,
}

impl ManualClock {
    pub fn at(wall: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(Times { wall, ..Times::default() })))
    }

    /// Time passes.
    pub fn advance(&self, span: Duration) {
        self.step(span);
        self.times().monotonic += span;
    }

    /// The wall clock is set forward.
    pub fn step(&self, span: Duration) {
        let mut times = self.times();
        times.wall = times.wall + i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    }

    /// The wall clock is set back.
    pub fn set_back(&self, span: Duration) {
        let mut times = self.times();
        times.wall = times.wall + i64::try_from(span.as_millis()).map_or(i64::MIN, |millis| -millis);
    }

    /// The machine sleeps.
    pub fn sleep(&self, span: Duration) {
        self.step(span);
        self.times().slept += span;
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Timestamp {
        self.times().wall
    }

    fn monotonic(&self) -> Duration {
        self.times().monotonic
    }

    fn slept(&self) -> Duration {
        self.times().slept
    }
}

/// The board's time as one participant reads it: never goes back, and notices when wall time jumps ahead.
pub struct BoardClock {
    clock: Box<dyn Clock>,
    monotonic: Duration,
    now: Timestamp,
    stepped: i64,
}

impl BoardClock {
    pub fn new(clock: Box<dyn Clock>) -> Self {
        let (now, monotonic) = (clock.wall(), clock.monotonic());
        Self { clock, monotonic, now, stepped: 0 }
    }

    /// The board's time now, at least `floor`. While the wall clock is behind, time passes as the monotonic clock says.
    pub fn now(&mut self, floor: Timestamp) -> Timestamp {
        let (wall, monotonic) = (self.clock.wall(), self.clock.monotonic());
        let passed = i64::try_from((monotonic.saturating_sub(self.monotonic)).as_millis()).unwrap_or(0);
        let own = self.now + passed;
        // Compared with the board's time, not with the wall clock's last reading: a clock that was set back and is put
        // right jumps no further than from here.
        let gap = wall.since(own);
        if gap > STEP {
            self.stepped += gap;
        }
        let told = wall.max(floor);
        if told > own {
            (self.now, self.monotonic) = (told, monotonic);
        } else {
            self.now = own;
            // The part of it that is less than a millisecond is counted the next time.
            self.monotonic += Duration::from_millis(passed.unsigned_abs());
        }
        self.now
    }

    /// How many milliseconds the machine has slept since it booted.
    pub fn slept(&self) -> i64 {
        i64::try_from(self.clock.slept().as_millis()).unwrap_or(i64::MAX)
    }

    /// By how many milliseconds the wall clock has jumped ahead of the board's time, as far as nobody has recorded it
    /// yet.
    pub fn step(&self) -> Option<i64> {
        (self.stepped > 0).then_some(self.stepped)
    }

    /// Notes that `recorded` milliseconds of the jump are recorded, here or by another participant.
    pub fn forget_step(&mut self, recorded: i64) {
        self.now(Timestamp::default());
        let left = self.stepped - recorded;
        self.stepped = if left > STEP { left } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_000_000_000;

    fn board_clock() -> (ManualClock, BoardClock) {
        let manual = ManualClock::at(Timestamp::from_millis(START));
        (manual.clone(), BoardClock::new(Box::new(manual)))
    }

    #[test]
    fn time_passes_at_its_pace_however_often_it_is_asked_for() {
        let (manual, mut clock) = board_clock();
        let ahead = Timestamp::from_millis(START + 10_000_000);
        let before = clock.now(ahead);
        for _ in 0..10_000 {
            manual.advance(Duration::from_micros(300));
            clock.now(Timestamp::default());
        }
        assert_eq!(clock.now(Timestamp::default()).since(before), 3_000);
    }

    #[test]
    fn a_sleeping_machine_is_a_step_and_passing_time_is_none() {
        let (manual, mut clock) = board_clock();
        manual.advance(Duration::from_secs(3_600));
        clock.now(Timestamp::default());
        assert_eq!(clock.step(), None);
        manual.step(Duration::from_secs(3_600));
        clock.now(Timestamp::default());
        assert_eq!(clock.step(), Some(3_600_000));
        clock.forget_step(3_599_000);
        assert_eq!(clock.step(), None);
    }

    #[test]
    fn wall_clock_that_was_set_back_and_is_put_right_is_no_step() {
        let (manual, mut clock) = board_clock();
        manual.set_back(Duration::from_secs(3_600));
        manual.advance(Duration::from_secs(10));
        assert_eq!(clock.now(Timestamp::default()), Timestamp::from_millis(START + 10_000));
        manual.step(Duration::from_secs(3_600));
        assert_eq!(clock.now(Timestamp::default()), Timestamp::from_millis(START + 10_000));
        assert_eq!(clock.step(), None);
    }

    #[test]
    fn machine_that_sleeps_while_its_wall_clock_is_behind_steps_as_far_as_the_boards_time_does() {
        let (manual, mut clock) = board_clock();
        manual.set_back(Duration::from_secs(3_600));
        let before = clock.now(Timestamp::default());
        manual.sleep(Duration::from_secs(1_800));
        assert_eq!((clock.now(Timestamp::default()), clock.step()), (before, None));
        manual.sleep(Duration::from_secs(5_400));
        assert_eq!(clock.now(Timestamp::default()).since(before), 3_600_000);
        assert_eq!(clock.step(), Some(3_600_000));
    }

    #[test]
    fn time_passes_while_the_wall_clock_is_behind_the_board() {
        let (manual, mut clock) = board_clock();
        let ahead = Timestamp::from_millis(START + 900_000);
        assert_eq!(clock.now(ahead), ahead);
        manual.advance(Duration::from_secs(10));
        assert_eq!(clock.now(ahead), ahead + 10_000);
    }
}
