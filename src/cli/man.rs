use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use fs_err as fs;

use super::Outcome;
use crate::http::TOKEN_FILE;

#[derive(clap::Args)]
pub struct Arguments {
    /// Write a page for `callboard` and one for each command into this directory instead
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

const ENVIRONMENT: [(&str, &str); 7] = [
    ("COORDINATION_DIR", "The board's directory, where --dir names none."),
    (
        "CALLBOARD_SERVER",
        "The URL of a server whose board commands use, where neither --server nor --dir is given. Commands that are \
         about this machine (such as mcp, serve, work, doctor, connect, hook, backup) do not look at it.",
    ),
    ("CALLBOARD_TOKEN", "The server's token, where --token-file names no file."),
    (
        "CALLBOARD_LOG",
        "What is logged on standard error, such as `debug` or `callboard=info`: a list of targets and levels.",
    ),
    (
        "CALLBOARD_ALLOW_NETWORK_FILESYSTEM",
        "If it is true, what --allow-network-filesystem says, for commands that others start.",
    ),
    ("NO_COLOR", "If it is set and not empty, no colours unless --color asks for them."),
    (
        "WORKSPACE_FOLDER_PATHS",
        "The folder that an editor has open; replaces a start directory that is the home directory.",
    ),
];

const FILES: [(&str, &str); 6] = [
    (
        ".coordination/",
        "The board: the nearest one upwards from the current directory, else that of the git repository's main \
         worktree. A directory that only its owner may use.",
    ),
    (
        "mcp-state.json",
        "In it: the whole state as JSON, replaced with every change. To be read; to \
         change something, prefer the commands.",
    ),
    ("journal.db", "In it: every event since the board was made, as an SQLite database with its -wal and -shm files."),
    (
        "config.toml",
        "In it: the policy, for a board that is to differ from the defaults, and \
         `allow_network_filesystem`.",
    ),
    (
        "lock, state-lock",
        "In it: held by the process that writes to the journal, and the one that replaces the state file.",
    ),
    (TOKEN_FILE, "In it: what `callboard serve` wants to see of its clients. Whoever can read it can use the board."),
];

pub fn run(arguments: &Arguments) -> Outcome {
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    match &arguments.out {
        None => io::stdout().lock().write_all(&page(&command)?)?,
        Some(dir) => {
            fs::create_dir_all(dir)?;
            for command in pages(&command) {
                fs::write(dir.join(Man::new(command.clone()).get_filename()), page(command)?)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The command and all below it.
fn pages(command: &clap::Command) -> Vec<&clap::Command> {
    let below = command.get_subcommands().filter(|one| !one.is_hide_set()).flat_map(pages);
    std::iter::once(command).chain(below).collect()
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).manual("callboard");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let is_root = command.has_subcommands() && command.get_name() == "callboard";
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    let codes = super::EXIT_CODES.map(|(code, meaning)| (code.to_string(), meaning));
    section(&mut roff, "EXIT STATUS", codes.iter().map(|(code, meaning)| (code.as_str(), *meaning)));
    if is_root {
        section(&mut roff, "ENVIRONMENT", ENVIRONMENT.into_iter());
        section(&mut roff, "FILES", FILES.into_iter());
        man.render_version_section(&mut page)?;
    } else {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold("callboard"), roman("(1)")]);
    }
    roff.to_writer(&mut page)?;
    Ok(ascii(&String::from_utf8_lossy(&page)).into_bytes())
}

/// Formatters differ in which encoding they expect, not in how they read this.
fn ascii(page: &str) -> String {
    let escaped = page.chars().map(|c| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) });
    escaped.collect()
}

fn section<'a>(roff: &mut Roff, name: &str, entries: impl Iterator<Item = (&'a str, &'a str)>) {
    roff.control("SH", [name]);
    for (term, meaning) in entries {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(meaning)]);
    }
}
