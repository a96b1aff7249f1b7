//! The fault programme: what the kernel, the disk, the power supply and other processes can do to a board. Each part is one
//! command with a size of its own, small every day, and prints a closing figure.

mod damage;
mod power;
mod random;
mod resources;
mod syscalls;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::available;

/// Whether `program` runs here; `CALLBOARD_REQUIRE` may name it.
fn has(program: &str, version: &str) -> bool {
    let ran = Command::new(program).arg(version).output().is_ok_and(|output| output.status.success());
    available(program, (!ran).then_some(&format!("{program} cannot be run")))
}

/// The output of a command that must succeed.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Tells the threads of a scope to end, also when the test fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
