//! The process that holds a lock of the board: who it is, whether it can go on, and what to do.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

use super::lock::signer;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// None where neither the system nor the lock's file tells.
    pub pid: Option<u32>,
    /// Whether it was stopped, as by Ctrl-Z or a debugger, and holds the lock until it goes on.
    pub is_stopped: bool,
}

impl Holder {
    /// The holder of the lock of this file. What the system says goes before what is written in the
    /// file, because another program takes the lock without signing it.
    pub fn of(lock: &File) -> Self {
        holder(lock).or_else(|| signer(lock)).map_or_else(Self::default, Self::from_pid)
    }

    fn from_pid(pid: u32) -> Self {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        Self { pid: Some(pid), is_stopped: stat.is_ok_and(|stat| is_stopped(&stat)) }
    }

    pub fn is_this_process(&self) -> bool {
        self.pid == Some(std::process::id())
    }

    /// What frees the lock.
    pub fn remedy(&self) -> String {
        match self.pid {
            Some(pid) if self.is_stopped => {
                format!("`kill -CONT {pid}` lets it go on, and frees the lock")
            }
            Some(pid) => format!(
                "see what it does; if it hangs, end it with `kill {pid}`: the lock goes with it, \
                 and nothing that was acknowledged is lost"
            ),
            None => "`callboard doctor` looks for it".to_owned(),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) if self.is_stopped => write!(formatter, "process {pid} (stopped)"),
            Some(pid) => write!(formatter, "process {pid}"),
            None => write!(formatter, "another process"),
        }
    }
}

/// Whether the state in the line of `/proc/PID/stat` is that of a stopped process.
fn is_stopped(stat: &str) -> bool {
    // The program's own name is in brackets and may hold anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('T' | 't'))
}

/// The process that holds the lock of `file`, where the system tells.
pub(super) fn holder(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    holder_in(
        &std::fs::read_to_string("/proc/locks").ok()?,
        &format!("{major:02x}:{minor:02x}:{}", metadata.ino()),
    )
}

/// Finds the holder in lines such as `1: FLOCK  ADVISORY  WRITE 4242 08:02:131 0 EOF`.
fn holder_in(locks: &str, inode: &str) -> Option<u32> {
    let held = locks.lines().map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>());
    let ours = held
        .filter(|fields| fields.get(4) == Some(&inode))
        .find(|fields| fields.first() == Some(&"FLOCK"));
    ours?.get(3)?.parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_process_with_a_lock_on_that_very_file() {
        let locks = "1: POSIX  ADVISORY  READ 7 08:02:131 128 128\n2: FLOCK  ADVISORY  WRITE 4242 08:02:131 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 4 08:02:131 0 EOF\n3: FLOCK  ADVISORY  WRITE 5 08:02:132 0 EOF\n";
        assert_eq!(holder_in(locks, "08:02:131"), Some(4242));
        assert_eq!(holder_in(locks, "08:02:133"), None);
    }

    #[test]
    fn a_stopped_process_is_known_by_its_state_whatever_its_name() {
        assert!(is_stopped("42 (call (T) S board) T 1 42 42 0 -1"));
        assert!(is_stopped("42 (traced) t 1 42 42 0 -1"));
        assert!(!is_stopped("42 (x) T y) S 1 42 42 0 -1"));
        assert!(!is_stopped(""));
    }
}
