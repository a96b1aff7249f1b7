use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use fs_err as fs;

use super::help::{GROUPS, NAMES};
use super::{Outcome, say, usage_error};
use crate::http::TOKEN_FILE;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The command whose page is shown, such as `tasks` or `plan import` [default: callboard itself]
    #[arg(value_name = "COMMAND")]
    of: Vec<String>,
    /// Write one page for `callboard` and one for each command into this directory, instead of
    /// printing one
    #[arg(long, value_name = "DIR", conflicts_with = "of")]
    out: Option<PathBuf>,
}

const ENVIRONMENT: [(&str, &str); 17] = [
    ("COORDINATION_DIR", "The board's directory, where --dir names none."),
    ("CALLBOARD_STATE_FILE", "The same as --state-file."),
    (
        "CALLBOARD_SERVER",
        "The URL of a server whose board commands use, where neither --server nor --dir is given. \
         Commands that are about this machine (such as mcp, serve, work, doctor, connect, guard, \
         hook, backup) do not look at it.",
    ),
    ("CALLBOARD_TOKEN", "The server's token, where --token-file names no file."),
    (
        "CALLBOARD_AGENT",
        "The agent that hooks and `guard` ask for, where --agent names none. `work` sets it for \
         what it runs.",
    ),
    (
        "CALLBOARD_TASK_ID, CALLBOARD_ATTEMPT",
        "What `checkpoint` is about, where --task and --attempt name nothing. `work` sets them \
         for what it runs.",
    ),
    ("CALLBOARD_MODEL_ID, CALLBOARD_BASE_URL", "The same as --model-id and --base-url of `work`."),
    (
        "CALLBOARD_LOG",
        "What is logged on standard error, such as `debug` or `callboard=info`: a list of targets \
         and levels.",
    ),
    (
        "CALLBOARD_ALLOW_NETWORK_FILESYSTEM",
        "If it is true, what --allow-network-filesystem says, for commands that others start.",
    ),
    (
        "CALLBOARD_WHOLE_FILES",
        "If it is set and not empty, the state file is written as a whole each time, which costs \
         more the larger it is.",
    ),
    (
        "CALLBOARD_ME",
        "Your name in history, reviews and answers; replaces `me` of your own configuration and the \
         system's user.",
    ),
    (
        "CLAUDE_CONFIG_DIR, CODEX_HOME, XDG_CONFIG_HOME",
        "Where the clients have their own configuration, for `connect`.",
    ),
    ("TMPDIR", "Where `bench` makes its boards, if that is on a disk."),
    ("NO_COLOR", "If it is set and not empty, no colours unless --color asks for them."),
    (
        "WORKSPACE_FOLDER_PATHS",
        "The folder that an editor has open; replaces a start directory in which no board is made.",
    ),
    (
        "CLAUDE_PROJECT_DIR",
        "The project's directory, for `mcp` and hooks; replaces the start directory.",
    ),
    ("PLUGIN_ROOT, CLAUDE_PLUGIN_ROOT", "A plugin's own directory, in which no board is made."),
];

const FILES: [(&str, &str); 13] = [
    (
        ".coordination/",
        "The board: the nearest one upwards from the current directory, within the git \
         repository, else that of its main worktree. A directory that only its owner may use.",
    ),
    (
        "mcp-state.json",
        "In it: the whole state as JSON, replaced with every change. To be read; to change \
         something, prefer the commands. `state_file` in config.toml names it otherwise.",
    ),
    (
        "journal.db",
        "In it: every event since the board was made, as an SQLite database with its -wal and \
         -shm files.",
    ),
    (
        "config.toml",
        "In it: the policy, for a board that is to differ from the defaults, \
         `allow_network_filesystem`, and the state file's name, `state_file`. Another name there \
         renames the file at the next start, when no process lives on the board.",
    ),
    (
        "lock, state-lock",
        "In it: held by the process that writes to the journal, and the one that replaces the \
         state file.",
    ),
    (
        TOKEN_FILE,
        "In it: what `callboard serve` wants to see of its clients. Whoever can read it can use \
         the board.",
    ),
    ("tokens.toml", "In it: hashes of the tokens that `callboard token add` has made."),
    ("recovery.log", "In it: what was found damaged, and what became of it."),
    (
        "snapshots/, bundles/, artifacts/",
        "In it: earlier states, context bundles, and files of tasks. In no backup.",
    ),
    (
        "logs/, worktrees/",
        "In it: what the commands of `callboard work` printed, and where they work.",
    ),
    ("run/", "In it: a locked file for every process that lives on the board."),
    (
        "mcp-state.json.*, *.quarantined-N, before-restore-*.backup",
        "In it: what was moved aside, such as a rejected edit with its reason in .txt. Never read \
         again; yours to delete.",
    ),
    (
        ".mcp-state.json.spare",
        "In it: the state file before the last, into which the next one is written.",
    ),
];

/// Start of the last paragraph of a command's help if its exit codes are not the common ones.
const OWN_CODES: &str = "\n\nExit codes: ";

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    match &arguments.out {
        None => {
            let name = arguments.of.join(" ");
            let found =
                arguments.of.iter().try_fold(&command, |found, name| found.find_subcommand(name));
            let Some(found) = found else {
                usage_error(format!(
                    "there is no command `{name}`; `callboard help` lists all commands"
                ))
            };
            shown(&page(found)?)?;
        }
        Some(dir) => {
            fs::create_dir_all(dir)?;
            for command in pages(&command) {
                fs::write(dir.join(Man::new(command.clone()).get_filename()), page(command)?)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the page, or lets `man` show it on a terminal.
fn shown(page: &[u8]) -> anyhow::Result<()> {
    if !io::stdout().is_terminal() {
        return Ok(io::stdout().lock().write_all(page)?);
    }
    let started = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn();
    let Ok(mut man) = started else {
        say(
            "callboard: there is no program `man` here to show the page with; `callboard help` and \
             `callboard help COMMAND` say the same, and `callboard man > callboard.1` keeps the page",
        );
        return Ok(());
    };
    if let Some(mut input) = man.stdin.take() {
        // The reader may have seen enough.
        _ = input.write_all(page);
    }
    man.wait()?;
    Ok(())
}

/// The command and all subcommands below it.
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
    if is_root {
        groups(command).to_writer(&mut page)?;
    } else if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    // The root's text after the options lists the exit codes, which have a section of their own.
    let notes =
        command.get_after_help().filter(|_| !is_root).map(ToString::to_string).unwrap_or_default();
    let (notes, own_codes) = notes.split_once(OWN_CODES).unwrap_or((&notes, ""));
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]);
        paragraphs(&mut roff, notes);
    }
    if own_codes.is_empty() {
        let codes = super::report::EXIT_CODES.map(|(code, meaning)| (code.to_string(), meaning));
        section(
            &mut roff,
            "EXIT STATUS",
            codes.iter().map(|(code, meaning)| (code.as_str(), *meaning)),
        );
    } else {
        roff.control("SH", ["EXIT STATUS"]);
        paragraphs(&mut roff, own_codes);
    }
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

/// The commands in their groups, as `--help` has them.
fn groups(command: &clap::Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SUBCOMMANDS"]);
    for (group, names) in GROUPS {
        roff.control("SS", [group]);
        for one in names.iter().filter_map(|name| command.find_subcommand(name)) {
            roff.control("TP", []);
            roff.text([bold(format!("callboard-{}(1)", one.get_name()))]);
            roff.text([roman(one.get_about().map(ToString::to_string).unwrap_or_default())]);
        }
    }
    roff.control("SH", ["NAMES OF TASKS"]);
    paragraphs(&mut roff, NAMES);
    roff
}

/// Writes paragraphs; indented lines keep their line breaks.
fn paragraphs(roff: &mut Roff, text: &str) {
    for paragraph in text.trim().split("\n\n") {
        roff.control("PP", []);
        for line in paragraph.lines() {
            if line.starts_with(' ') {
                roff.control("br", []);
            }
            roff.text([roman(line)]);
        }
    }
}

/// Escapes characters beyond ASCII: formatters expect different encodings, but all of them read
/// these escapes.
fn ascii(page: &str) -> String {
    let escaped = page
        .chars()
        .map(|c| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) });
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
