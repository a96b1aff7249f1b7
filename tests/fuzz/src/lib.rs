//! What the targets share: directories, boards, and waiting for what is to be read.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::time::Duration;

use callboard::clock::SystemClock;
use callboard::participant::{self, Handle, Options, Stay};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use tempfile::TempDir;

/// Inputs that one board sees, so that it stays small.
pub const INPUTS_PER_BOARD: usize = 1_000;
/// Nothing here takes that long unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory can be made")
}

/// A process's way to a board of its own.
pub fn board(stay: Stay) -> (TempDir, Handle) {
    let dir = directory();
    let handle = participant::spawn(Options {
        dir: dir.path().to_owned(),
        state_file: None,
        stay,
        unwritable: None,
        forbidden: None,
        unasked: None,
        clock: Box::new(SystemClock),
        seed: 1,
        worktree: None,
    });
    (dir, handle)
}

/// Appends what is there to read; `false` at the end.
pub fn read_some(from: &mut (impl Read + AsFd), into: &mut Vec<u8>) -> bool {
    assert!(is_readable(from, PATIENCE), "no answer; so far: {}", String::from_utf8_lossy(into));
    let mut block = [0; 16 << 10];
    match from.read(&mut block) {
        Ok(read) => {
            into.extend_from_slice(&block[..read]);
            read > 0
        }
        // The other side has not read all that it was sent.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
        Err(error) => panic!("{error}"),
    }
}

/// Whether there is something to read, or an end, before that time is over.
pub fn is_readable(from: &impl AsFd, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).expect("so long is no time");
    // The fuzzer's own alarm comes once a second.
    let ready = retry_on_intr(|| poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&patience)));
    ready.expect("descriptors can be polled") > 0
}

/// Both ends of a pipe: what is written to the second is read from the first.
pub fn pipe() -> (File, File) {
    let (read, write) = rustix::pipe::pipe().expect("a pipe can be made");
    (File::from(read), File::from(write))
}
