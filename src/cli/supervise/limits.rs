//! Limits on memory and open files of the command. Each of its processes has them, and what it
//! starts, too.

use std::io;
use std::process::{Child, Command};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::cli) struct Limits {
    /// Bytes of memory that a process may have for itself to write to.
    pub memory: Option<u64>,
    pub open_files: Option<u64>,
}

impl Limits {
    /// Starts the command within these limits, which only the superuser can raise. This process has that of open
    /// files for a moment, so that the command has it from its first instruction on. That of memory
    /// it could exceed itself, so the command gets it once it is there.
    pub(super) fn start(self, command: &mut Command) -> io::Result<Child> {
        let (memory, files) = (getrlimit(Resource::Data), getrlimit(Resource::Nofile));
        if let Some(most) = self.open_files {
            setrlimit(Resource::Nofile, Rlimit { current: lower(most, files), ..files })?;
        }
        let started = command.spawn();
        if self.open_files.is_some() {
            setrlimit(Resource::Nofile, files)?;
        }
        let child = started?;
        let asked =
            [(Resource::Data, self.memory, memory), (Resource::Nofile, self.open_files, files)];
        for (resource, most, own) in asked {
            if let Some(most) = most {
                fasten(&child, resource, lower(most, own));
            }
        }
        Ok(child)
    }
}

/// The limit asked for, or that of this process if it is lower.
fn lower(most: u64, own: Rlimit) -> Option<u64> {
    [Some(most), own.current, own.maximum].into_iter().flatten().min()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn fasten(child: &Child, resource: Resource, most: Option<u64>) {
    use rustix::process::{Pid, prlimit};

    // It may have ended already.
    let _ =
        prlimit(Some(Pid::from_child(child)), resource, Rlimit { current: most, maximum: most });
}

/// Only Linux sets the limits of another process.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn fasten(_: &Child, _: Resource, _: Option<u64>) {}
