use std::io::{self, Write};
use std::process::ExitCode;

use clap_complete::Shell;

use super::Outcome;

#[derive(clap::Args)]
pub struct Arguments {
    /// The shell that is to complete `callboard`
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> Outcome {
    // In memory first: the generator panics when its output is closed.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command(), "callboard", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
