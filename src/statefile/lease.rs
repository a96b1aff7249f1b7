//! Write leases, which tell whether anybody else has a file open or mapped into memory: the kernel
//! grants one only on a file that nobody else has, and whoever opens it during the lease waits
//! until that is given back.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::io;

/// The answer to a request for a write lease.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the answer is always the last"))]
pub(super) enum Asked<'a> {
    Granted(Lease<'a>),
    /// Somebody has the file open.
    Busy,
    /// The system or file system has no leases.
    Unsupported,
}

/// A write lease, given back when it is dropped, unless it is kept.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "none is granted"))]
pub(super) struct Lease<'a>(&'a File);

impl Lease<'_> {
    /// Keeps the lease until [`give_back`] is called or the file is closed.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

/// Gives back the lease on the file, if there is one that was kept.
#[cfg(target_os = "linux")]
pub(super) fn give_back(file: &File) {
    // Without a lease this fails.
    drop(command(file, libc::F_SETLEASE, libc::F_UNLCK));
}

#[cfg(not(target_os = "linux"))]
pub(super) fn give_back(_: &File) {}

#[cfg(target_os = "linux")]
pub(super) fn ask(file: &File) -> Asked<'_> {
    // When somebody opens the file meanwhile, the kernel says so by SIGIO, which would end this
    // process; SIGURG is ignored.
    let granted = command(file, F_SETSIG, libc::SIGURG)
        .and_then(|()| command(file, libc::F_SETLEASE, libc::F_WRLCK));
    match granted {
        Ok(()) => Asked::Granted(Lease(file)),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Asked::Busy,
        Err(_) => Asked::Unsupported,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn ask(_: &File) -> Asked<'_> {
    Asked::Unsupported
}

/// Linux's value, on every architecture; libc does not have it for all of them.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;

#[cfg(target_os = "linux")]
fn command(file: &File, command: libc::c_int, argument: libc::c_int) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // SAFETY: the descriptor stays open while `file` is borrowed, and these commands take a number
    // and no pointer.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        give_back(self.0);
    }
}
