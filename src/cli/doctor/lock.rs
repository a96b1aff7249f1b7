//! The board's locks, held shared for a moment: meanwhile nobody writes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::Check;
use crate::participant::LOCK_PATIENCE;
use crate::participant::directory::LOCKS;
use crate::participant::holder::Holder;

const NAME: &str = "lock";

/// The locks; nobody writes as long as this value lives.
pub(super) struct Locked(
    #[expect(dead_code, reason = "closing them releases the locks")] Vec<File>,
);

pub(super) fn acquire(dir: &Path) -> (Check, Option<Locked>) {
    let mut locked = Vec::new();
    for name in LOCKS {
        let path = dir.join(name);
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                let fix = format!("make {} a regular file that you own", path.display());
                return (Check::fail(NAME, format!("{name} cannot be opened: {error}"), fix), None);
            }
        };
        match wait(file) {
            Ok(file) => locked.push(file),
            Err(check) => return (check, None),
        }
    }
    let found = if locked.is_empty() { "no process has used the board yet" } else { "free" };
    (Check::ok(NAME, found), Some(Locked(locked)))
}

fn wait(file: File) -> Result<File, Check> {
    let start = Instant::now();
    loop {
        match file.try_lock_shared() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => {
                let fix = "this file system has no file locks; move the board to a local disk";
                return Err(Check::fail(NAME, format!("cannot be locked: {error}"), fix));
            }
            Err(TryLockError::WouldBlock) if start.elapsed() >= LOCK_PATIENCE => {
                return Err(held(&file));
            }
            Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(10)),
        }
    }
}

fn held(file: &File) -> Check {
    let holder = Holder::of(file);
    let found = format!(
        "held by {holder} for {} s, so journal and state file were not looked at",
        LOCK_PATIENCE.as_secs()
    );
    Check::fail(NAME, found, holder.remedy())
}
