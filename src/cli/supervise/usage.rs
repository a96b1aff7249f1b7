//! What the processes of one run use at most, as /proc shows it from time to time.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::descendants;

/// First and longest pause between two measurements: most commands end soon, and one that runs for
/// long changes slowly.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(640);

/// The most that was seen, of all processes of the run together; 0 where the system shows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::cli) struct Usage {
    pub memory_bytes: u64,
    pub open_files: u64,
}

/// A thread that measures until this process ends.
#[derive(Clone, Default)]
pub(super) struct Meter(Arc<[AtomicU64; 2]>);

impl Meter {
    pub(super) fn start() -> io::Result<Self> {
        let meter = Self::default();
        let own = meter.clone();
        thread::Builder::new().name("meter".into()).spawn(move || {
            let mut pause = FIRST_PAUSE;
            loop {
                own.measure();
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        })?;
        Ok(meter)
    }

    fn measure(&self) {
        let used = descendants().into_iter().map(of_process);
        let (memory, files) = used.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        self.0[0].fetch_max(memory, Relaxed);
        self.0[1].fetch_max(files, Relaxed);
    }

    pub(super) fn most(&self) -> Usage {
        let memory_bytes = self.0[0].load(Relaxed).max(most_of_one());
        Usage { memory_bytes, open_files: self.0[1].load(Relaxed) }
    }
}

/// Bytes of memory and number of open files of a process.
fn of_process(pid: Pid) -> (u64, u64) {
    let at = |name: &str| format!("/proc/{}/{name}", pid.as_raw_nonzero());
    let memory = fs::read_to_string(at("status")).ok().and_then(|status| resident(&status));
    let files = fs::read_dir(at("fd")).map_or(0, |entries| entries.count() as u64);
    (memory.unwrap_or_default(), files)
}

/// Bytes in the line `VmRSS: N kB` of `/proc/PID/status`.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Most memory of a single process that has ended, as the system counts it; 0 if that is not known.
/// A new process begins as a copy of this one, so a figure up to this one's own size may be that of
/// the copy.
fn most_of_one() -> u64 {
    let (own, ended) = (largest(libc::RUSAGE_SELF), largest(libc::RUSAGE_CHILDREN));
    if ended > own { ended } else { 0 }
}

fn largest(who: libc::c_int) -> u64 {
    // SAFETY: a `rusage` is numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a `rusage`, and is not kept.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1 << 10 };
    u64::try_from(usage.ru_maxrss).unwrap_or_default() * unit
}
