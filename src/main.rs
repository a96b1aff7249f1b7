use std::process::ExitCode;

use callboard::cli;

fn main() -> ExitCode {
    cli::main()
}
