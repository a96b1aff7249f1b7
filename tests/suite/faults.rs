//! The fault programme: what the kernel, the disk, the power supply, other processes and strangers
//! can do to a board. Each line is one command. Its size is small by default, and it prints a
//! closing figure (`-- --nocapture`).
//!
//! | line | `cargo test --test suite` and | sizes, by environment | full |
//! |---|---|---|---|
//! | rules | `model::` | `CALLBOARD_CASES` | 100000 |
//! | simulation | `simulation::` | `CALLBOARD_SEEDS`; `CALLBOARD_SEED` runs one alone | 100000 |
//! | histories | `histories::` | `CALLBOARD_HISTORIES`, `CALLBOARD_OPERATIONS` | 100, 2000 |
//! | kill | `crashes::killed` | `CALLBOARD_KILLS` (three in ten aimed behind the commit) | 1000 |
//! | N-th syscall | `faults::syscalls` | `CALLBOARD_SYSCALL_STRIDE` (1 tries every call) | 1 |
//! | power loss | `faults::power` | `CALLBOARD_IMAGES` | 100 |
//! | damage | `faults::damage` | `CALLBOARD_DAMAGE_STRIDE` (1 tries every length and bit) | 1 |
//! | resources | `faults::resources` | `CALLBOARD_ROUNDS`, `CALLBOARD_DESCRIPTOR_STRIDE` | 20, 1 |
//! | connections, slow peers, large bodies | `http::` | `CALLBOARD_NAMES` | 1000000 |
//! | races | `faults::races` | `CALLBOARD_RACES` | 100 |
//! | costs (release) | `costs::` | `CALLBOARD_COSTS` | 10000 |
//! | hand edits | `edits::` | `CALLBOARD_EDIT_ROUNDS` | 100 |
//! | random input | `faults::random` | `CALLBOARD_FUZZ_SECONDS`, `CALLBOARD_SEED` | 600 |
//!
//! Other programmes have tools of their own: `tests/fuzz/run SECONDS [TARGET...]` (guided by
//! coverage; full: an hour altogether), `tests/mutants [K/N]` (breaks `src/state`; full: without
//! K/N), `tests/conformance` and `tests/clients/real` (the wire protocol).
//!
//! If root, strace, Node or Python is missing, what needs it is skipped and the reason printed,
//! unless `CALLBOARD_REQUIRE` names it.

mod damage;
mod power;
mod races;
mod random;
mod resources;
mod syscalls;

use std::path::Path;
use std::process::Command;

use crate::harness::available;

/// Whether `program` runs here; `CALLBOARD_REQUIRE` may require it.
fn has(program: &str, version: &str) -> bool {
    let ran =
        Command::new(program).arg(version).output().is_ok_and(|output| output.status.success());
    available(program, (!ran).then_some(&format!("{program} cannot be run")))
}

/// Output of a command that must succeed.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
