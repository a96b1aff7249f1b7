use std::process::ExitCode;

use callboard::cli;
use mimalloc::MiMalloc;

/// Calls are made of many small texts that one thread makes and another drops, which the system's allocator does at twice
/// the price. Without huge pages, of which a small process would use a fraction.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
