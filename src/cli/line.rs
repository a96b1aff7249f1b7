//! The command line: its options, its commands, and how their words are read.

use std::env;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::builder::{RangedU64ValueParser, TypedValueParser};
use clap::{ColorChoice, CommandFactory, Parser, Subcommand};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::help::laid_out;
use super::{
    add, artifact, assign, backup, bench, bundle, call, cancel, checkpoint, claim, complete,
    completions, connect, diff, discoveries, doctor, edit, exchange, explain, fail, figures,
    forget, guard, heartbeat, history, hook, init, man, mcp, messages, notify, offer, pause, plan,
    purge, release, reset, restore, results, resume, retry, review, runs, serve, show, snapshot,
    start, state, status, stop, story, tasks, token, tree, ui, undo, uninstall, watch, web, work,
};
use crate::board::STATE_FILE;
use crate::config;
use crate::state::limit;

/// Coordination server for AI coding agents: one durable task queue and agent registry over MCP.
#[derive(Parser)]
#[command(name = "callboard", version, max_term_width = 100)]
pub(super) struct Arguments {
    /// Directory of the board [env: COORDINATION_DIR] [default: the nearest .coordination here or
    /// above, within the git repository, else the one of its main worktree, else .coordination
    /// here]
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
    /// Name of the state file in the board's directory, for a board that is made; another must
    /// have it already [default: mcp-state.json]
    #[arg(long, global = true, value_name = "NAME", env = STATE_FILE, hide_env = true, value_parser = state_file)]
    pub(super) state_file: Option<String>,
    /// Use the board of the `callboard serve` at this URL [env: CALLBOARD_SERVER]
    #[arg(long, global = true, value_name = "URL")]
    pub(super) server: Option<String>,
    /// File with the server's token [default: CALLBOARD_TOKEN, else this board's serve.token for a
    /// server on this machine]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Act as this agent; without it, commands are the person's, under the name that `me` in their
    /// configuration or the system gives. `mcp` and `connect` also take `auto`
    #[arg(long, global = true, value_name = "ID")]
    pub(super) agent: Option<String>,
    /// Allow writing to a board on a network file system; safe only if no other machine uses the
    /// board
    #[arg(long, global = true, env = "CALLBOARD_ALLOW_NETWORK_FILESYSTEM", hide_env = true,
        value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    pub(super) allow_network_filesystem: bool,
    /// Print JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Show times in UTC, not in local time
    #[arg(long, global = true)]
    pub(super) utc: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: ColorChoice,
    /// Format of the log on standard error
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value = "text")]
    pub(super) log_format: LogFormat,
    #[command(subcommand)]
    pub(super) command: Command,
    /// Name of the command if it is one of [`LOCAL`].
    #[arg(skip)]
    pub(super) local: Option<&'static str>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Create the board, set its goal, and print how agents use it
    Init(init::Arguments),
    /// Add one or more tasks
    #[command(aliases = ["new", "create"])]
    Add(add::Arguments),
    /// Show what waits for you, who does what, what is next, and what is stuck
    Status(status::Arguments),
    /// Show the board live in this terminal, and act on it by keys
    #[command(visible_alias = "tui")]
    Ui(ui::Arguments),
    /// List the tasks
    #[command(visible_aliases = ["list", "ls"])]
    Tasks(tasks::Arguments),
    /// Show the tasks as a tree of parts, with the progress of each
    Tree(tree::Arguments),
    /// List the agents and what each does
    #[command(visible_alias = "who", alias = "ps")]
    Agents(forget::Arguments),
    /// Show everything about a task
    #[command(aliases = ["view", "get", "task", "describe", "info"])]
    Show(show::Arguments),
    /// Claim a task
    #[command(aliases = ["take", "pick"])]
    Claim(claim::Arguments),
    /// Mark a task that you hold as in progress
    Start(start::Arguments),
    /// Complete your task, with its result
    #[command(visible_alias = "done", aliases = ["finish", "close"])]
    Complete(complete::Arguments),
    /// Fail your task, with the error; it is tried again later while attempts remain
    Fail(fail::Arguments),
    /// Give tasks back to the queue unfinished
    Release(release::Arguments),
    /// Cancel a task that is no longer wanted
    Cancel(cancel::Arguments),
    /// Make failed or cancelled tasks available again
    Retry(retry::Arguments),
    /// Accept the results of tasks in review, which are done then
    Approve(review::Approve),
    /// Send a task in review back, with the reason
    Reject(review::Reject),
    /// Change title, description, priority, dependencies or tags of a task
    #[command(aliases = ["update", "set", "modify", "change"])]
    Edit(edit::Arguments),
    /// Tell what an agent did, or what happened to a task, newest first
    Log(story::Arguments),
    /// Show what git says of the work on a task
    Diff(diff::Arguments),
    /// Show in figures how the work went: done per hour, durations, waiting, tries
    #[command(aliases = ["stats", "metrics"])]
    Report(figures::Arguments),
    /// List the results of tasks that have ended, or show some whole
    #[command(alias = "result")]
    Results(results::Arguments),
    /// Start tasks over, also finished ones; results are dropped, after a snapshot
    Reset(reset::Arguments),
    /// Explain why a task cannot be claimed, who could claim it, and what changed it last
    Explain(explain::Arguments),
    /// Import a plan as tasks, update them when it changes, export it; alone: list plans
    Plan(plan::Arguments),
    /// Bring in tasks from files: a plan, or what another tool keeps
    Import(exchange::import::Arguments),
    /// Write the board's tasks for another tool
    Export(exchange::export::Arguments),
    /// Compare another tool's files with the board: exit code 1 if they differ
    Verify(exchange::verify::Arguments),
    /// Renew your lease, with a note on how far you are
    Heartbeat(heartbeat::Arguments),
    /// Stop all claims, or those of some agents, until `resume`; tasks in work go on
    Pause(pause::Arguments),
    /// Allow claims again, also to agents that were stopped
    #[command(aliases = ["continue", "unpause"])]
    Resume(resume::Arguments),
    /// Keep a task for an agent, which gets it with its next claim
    #[command(aliases = ["give", "reassign"])]
    Assign(assign::Arguments),
    /// Ask an agent to stop what it does
    Stop(stop::Arguments),
    /// Take back what your last command changed, as far as it still stands
    #[command(aliases = ["revert", "rollback"])]
    Undo(undo::Arguments),
    /// Run a command for each task: claim, run, retry, complete
    Work(work::Arguments),
    /// Run one command for `callboard work`, which starts this process
    #[command(hide = true)]
    Supervise,
    /// Show events as they happen
    Watch(watch::Arguments),
    /// List what agents found out, or add a discovery
    Discoveries(discoveries::Arguments),
    /// Show your messages, unread first
    #[command(visible_alias = "inbox")]
    Messages(messages::Arguments),
    /// Send a message to agents, or to the person whose board it is
    Send(messages::Send),
    /// Answer what an agent asks you; alone: show the questions that wait
    Answer(messages::Answer),
    /// Answer a message
    Reply(messages::Reply),
    /// List the runs of agent sessions, newest first
    Runs(runs::Arguments),
    /// Show everything about a run, wait for its end, or stop it
    Run(runs::One),
    /// List the sessions that runs belong to, or show one
    Sessions(runs::Sessions),
    /// List past events, newest first
    History(history::Arguments),
    /// Print the whole state, now or at an earlier event or time
    State(state::Arguments),
    /// Keep states as files, compare them, and go back to them; alone: list them
    Snapshot(snapshot::Arguments),
    /// Keep refined prompts and settings for the next run, and load them; alone: list them
    Bundle(bundle::Arguments),
    /// Keep how far a workflow has come, and what it may spend; alone: list the workflows
    Checkpoint(checkpoint::Arguments),
    /// Keep files with a task: reports, logs, patches; alone: list them
    Artifact(artifact::Arguments),
    /// Write state, history and settings to one file, while other processes use the board
    ///
    /// In it: the journal, the state file and config.toml. Not in it: bundles/ (context bundles),
    /// artifacts/, snapshots/, logs/ and worktrees/, which you copy yourself to move a board,
    /// and tokens and files that were moved aside.
    Backup(backup::Arguments),
    /// Create a board from a backup or a state file, or set a board back to one
    Restore(restore::Arguments),
    /// Take a text, such as a secret, out of everything that the board keeps
    ///
    /// The text is read from standard input or typed unseen. It is taken out of the journal, the
    /// state, snapshots, artifacts, bundles and files that were set aside. History says who purged
    /// and when, not what.
    Purge(purge::Arguments),
    /// Show, test or follow what you are told of: questions, failures, the end
    Notify(notify::Arguments),
    /// Check the board, its files and this machine; changes nothing without --repair
    Doctor(doctor::Arguments),
    /// Measure what operations cost on this machine, on temporary boards
    Bench(bench::Arguments),
    /// Serve MCP over standard input and output, for an IDE or agent that starts it
    Mcp(mcp::Arguments),
    /// Serve MCP and JSON-RPC over HTTP, for agents and scripts
    Serve(serve::Arguments),
    /// Open the board in a browser, or print a link for one
    #[command(visible_alias = "board")]
    Web(web::Arguments),
    /// Create, list and revoke tokens for `callboard serve`; alone: list them
    Token(token::Arguments),
    /// Call any operation by name
    Call(call::Arguments),
    /// Check whether another agent holds files, for hooks: exit code 1 if so
    Guard(guard::Arguments),
    /// Answer the hooks of an agent's client, which `connect CLIENT --hooks` configures
    Hook(hook::Arguments),
    /// Configure a client to use this board: its MCP server, or its hooks
    Connect(connect::ConnectArgs),
    /// Take out of this project what callboard wrote for clients and git; the board stays
    Uninstall(uninstall::Arguments),
    /// List what may stand where the cursor is, for the completion scripts
    #[command(name = "__complete", hide = true)]
    Offer(offer::Arguments),
    /// Print a shell's completion script
    Completions(completions::Arguments),
    /// Print the manual page
    Man(man::Arguments),
}

impl Command {
    /// Whether it shows a task and changes nothing.
    pub(super) fn only_shows(&self) -> bool {
        matches!(
            self,
            Self::Show(_)
                | Self::Log(_)
                | Self::Diff(_)
                | Self::Results(_)
                | Self::Explain(_)
                | Self::Tree(_)
                | Self::Tasks(_)
                | Self::History(_)
        )
    }
}

/// Value of `--agent` for a process that acts as whichever of its agents is free.
pub(super) const AUTO: &str = "auto";

/// Parser of `--state-file`. An empty name is none, as for other variables.
pub(super) fn state_file(name: &str) -> Result<String, String> {
    if !name.is_empty() {
        config::check_state_file(name)?;
    }
    Ok(name.to_owned())
}

/// Parser of `--limit` where a command lists one page.
pub(super) fn page_size() -> impl TypedValueParser<Value = NonZeroU32> {
    clap::value_parser!(u32).range(1..=limit::PAGE.max as i64).try_map(NonZeroU32::try_from)
}

/// What a word means in an enumeration of the board, for options that take its words.
pub(super) fn of_word<T: DeserializeOwned>(word: String) -> serde_json::Result<T> {
    serde_json::from_value(Value::from(word))
}

/// Parser of `--wait`.
pub(super) fn wait_seconds() -> RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(..=limit::WAIT.max as u64)
}

/// Commands that are about this machine and cannot use a server's board.
pub(super) const LOCAL: [&str; 15] = [
    "notify",
    "doctor",
    "work",
    "supervise",
    "bench",
    "mcp",
    "serve",
    "token",
    "connect",
    "hook",
    "guard",
    "state",
    "backup",
    "restore",
    "purge",
];

/// The command line, as it is parsed and documented.
pub(super) fn command() -> clap::Command {
    laid_out(whole())
}

/// The same with the options of all commands in the help of each.
pub(super) fn whole() -> clap::Command {
    let root = Arguments::command();
    let of_servers = root
        .get_arguments()
        .filter(|one| ["server", "token_file"].contains(&one.get_id().as_str()));
    let hidden: Vec<_> = of_servers.map(|one| one.clone().hide(true)).collect();
    super::number::with_negative(root).mut_subcommands(|one| {
        if LOCAL.contains(&one.get_name()) { one.args(hidden.clone()) } else { one }
    })
}

/// The command line, as this process parses it.
pub(super) fn parser() -> clap::Command {
    without_empty_variables(command()).color(colours_of(own_words()))
}

/// The arguments of this process, up to `--`, behind which they belong to another command.
pub(super) fn own_words() -> impl Iterator<Item = String> {
    env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .take_while(|word| word != "--")
}

/// The value of --color in a command line, even one that cannot be parsed.
pub(super) fn colours_of(mut words: impl Iterator<Item = String>) -> ColorChoice {
    let mut found = ColorChoice::Auto;
    while let Some(word) = words.next() {
        let when = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        found = when.and_then(|when| when.parse().ok()).unwrap_or(found);
    }
    found
}

/// Treats empty environment variables as unset.
pub(super) fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty =
        |one: &clap::Arg| one.get_env().and_then(env::var_os).is_some_and(|value| value.is_empty());
    command
        .mut_args(|one| if is_empty(&one) { one.env(None::<&'static str>) } else { one })
        .mut_subcommands(without_empty_variables)
}

/// Index of the subcommand in `words`, the command line without the program's name.
pub(super) fn place_of_subcommand(words: &[String]) -> Option<usize> {
    let command = command();
    let takes_value = |word: &str| {
        let mut known = command.get_arguments().filter(|one| one.get_action().takes_values());
        known.any(|one| one.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long)))
    };
    let mut place = 0;
    while words.get(place)?.starts_with('-') {
        place += if takes_value(&words[place]) { 2 } else { 1 };
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_and_option_has_one_line_of_help() {
        fn check(command: &clap::Command) {
            let helps = command
                .get_arguments()
                .filter(|one| !one.is_hide_set())
                .map(|one| (one.get_id().as_str(), one.get_help()));
            for (name, help) in helps.chain([(command.get_name(), command.get_about())]) {
                let help = help.map(ToString::to_string).unwrap_or_default();
                assert!(
                    !help.is_empty() && !help.contains('\n'),
                    "{} {name}: {help:?}",
                    command.get_name()
                );
            }
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }

    #[test]
    fn no_command_has_an_argument_of_the_name_of_an_option_of_all() {
        fn check(command: &clap::Command, globals: &[clap::Id]) {
            for one in command.get_arguments().filter(|one| !one.is_global_set()) {
                assert!(!globals.contains(one.get_id()), "{} {one}", command.get_name());
            }
            command.get_subcommands().for_each(|one| check(one, globals));
        }
        let root = Arguments::command();
        let globals = root.get_arguments().filter(|one| one.is_global_set());
        let globals: Vec<_> = globals.map(|one| one.get_id().clone()).collect();
        root.get_subcommands().for_each(|one| check(one, &globals));
    }

    #[test]
    fn colours_are_known_before_the_line_is_parsed() {
        let found = |line: &str| colours_of(line.split(' ').map(str::to_owned));
        assert_eq!(found("--color never tasks --nope"), ColorChoice::Never);
        assert_eq!(found("tasks --color=always"), ColorChoice::Always);
        for line in ["tasks", "tasks --color", "--color purple", "--colors always"] {
            assert_eq!(found(line), ColorChoice::Auto, "{line}");
        }
    }
}
