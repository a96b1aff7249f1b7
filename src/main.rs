use std::process::ExitCode;

use callboard::cli;
use mimalloc::MiMalloc;

/// mimalloc, because calls consist of many small texts that one thread allocates and another frees,
/// which costs twice as much with the system's allocator. Huge pages are off, as a small process
/// would use only a fraction of one.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
