//! Where time comes from. The pure core never asks for it; a participant does, and passes it in.

mod board;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::state::time::Timestamp;

pub use board::{BoardClock, Mark};

/// The clock that people read and set, and the one that runs from the start of the machine on.
pub trait Clock: Send {
    /// The time of day as this process sees it, right or wrong.
    fn wall(&self) -> Timestamp;
    /// The time of day as the kernel sees it: right or wrong, the same for all processes.
    fn kernel_wall(&self) -> Timestamp;
    /// Milliseconds since the machine booted, including those in which it slept.
    fn since_boot(&self) -> i64;
    /// How many of these milliseconds it slept.
    fn slept(&self) -> i64;
    /// The ID of the present boot; empty where the system has none.
    fn boot(&self) -> &str;
}

#[derive(Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(millis(since_epoch))
    }

    fn kernel_wall(&self) -> Timestamp {
        Timestamp::from_millis(millis(kernel::wall()))
    }

    fn since_boot(&self) -> i64 {
        millis(kernel::since_boot())
    }

    fn slept(&self) -> i64 {
        millis(kernel::since_boot().saturating_sub(kernel::awake()))
    }

    fn boot(&self) -> &str {
        boot()
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// The ID of the present boot, where the system has one.
pub fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.chars().filter(char::is_ascii_hexdigit).take(16).collect()
    })
}

/// On Linux rustix asks the kernel itself, so that no library that is loaded before libc can fake
/// these clocks.
#[cfg(not(target_vendor = "apple"))]
mod kernel {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn wall() -> Duration {
        read(ClockId::Realtime)
    }

    pub(super) fn since_boot() -> Duration {
        #[cfg(target_os = "linux")]
        return read(ClockId::Boottime);
        #[cfg(not(target_os = "linux"))]
        awake()
    }

    pub(super) fn awake() -> Duration {
        read(ClockId::Monotonic)
    }

    fn read(clock: ClockId) -> Duration {
        Duration::try_from(clock_gettime(clock)).unwrap_or_default()
    }
}

#[cfg(target_vendor = "apple")]
mod kernel {
    use std::time::Duration;

    pub(super) fn wall() -> Duration {
        read(libc::CLOCK_REALTIME)
    }

    pub(super) fn since_boot() -> Duration {
        read(libc::CLOCK_MONOTONIC_RAW)
    }

    pub(super) fn awake() -> Duration {
        read(libc::CLOCK_UPTIME_RAW)
    }

    fn read(clock: libc::clockid_t) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a time, and is not kept.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    }
}

/// A clock that stands still until it is moved: for tests and simulation. A clone shows the same
/// time.
#[derive(Clone, Default)]
pub struct ManualClock(Arc<Mutex<Times>>);

#[derive(Default)]
struct Times {
    wall: Timestamp,
    since_boot: Duration,
    slept: Duration,
    /// Whether this is the boot of the machine that the test runs on.
    is_real_boot: bool,
}

impl ManualClock {
    pub fn at(wall: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(Times { wall, ..Times::default() })))
    }

    /// The clock of this machine as it will be after `span`.
    pub fn after(span: Duration) -> Self {
        let (wall, since_boot) = (SystemClock.wall(), kernel::since_boot());
        let now = Self(Arc::new(Mutex::new(Times {
            wall,
            since_boot,
            slept: Duration::ZERO,
            is_real_boot: true,
        })));
        now.advance(span);
        now
    }

    /// Time passes.
    pub fn advance(&self, span: Duration) {
        self.step(span);
        self.times().since_boot += span;
    }

    /// The wall clock is set forward.
    pub fn step(&self, span: Duration) {
        let mut times = self.times();
        times.wall = times.wall + millis(span);
    }

    /// The wall clock is set back.
    pub fn set_back(&self, span: Duration) {
        let mut times = self.times();
        times.wall = times.wall - millis(span);
    }

    /// The machine sleeps.
    pub fn sleep(&self, span: Duration) {
        self.advance(span);
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

    fn kernel_wall(&self) -> Timestamp {
        self.wall()
    }

    fn since_boot(&self) -> i64 {
        millis(self.times().since_boot)
    }

    fn slept(&self) -> i64 {
        millis(self.times().slept)
    }

    fn boot(&self) -> &str {
        if self.times().is_real_boot { boot() } else { "manual" }
    }
}
