//! How the help is laid out: commands in groups, options that all commands have once, in the help
//! of `callboard`, and examples in each command's.

use clap::Command;

use super::report::exit_codes;
use super::topics;

/// Commands by what they are for. Every command that is shown is in one of them.
pub(super) const GROUPS: [(&str, &[&str]); 8] = [
    ("Start", &["init", "add", "plan", "import", "connect", "work"]),
    (
        "See",
        &[
            "status", "ui", "tasks", "tree", "agents", "show", "log", "diff", "results", "explain",
            "watch", "history", "report", "runs", "run", "sessions", "state",
        ],
    ),
    (
        "Steer",
        &[
            "edit", "answer", "assign", "pause", "resume", "stop", "cancel", "approve", "reject",
            "retry", "reset", "undo",
        ],
    ),
    ("Work", &["claim", "start", "heartbeat", "complete", "fail", "release", "checkpoint"]),
    ("Share", &["send", "messages", "reply", "discoveries", "artifact", "bundle"]),
    ("Keep", &["snapshot", "backup", "restore", "purge", "export", "verify", "doctor"]),
    ("Connect", &["mcp", "hook", "guard", "call", "completions", "man", "uninstall"]),
    ("Serve", &["serve", "web", "notify", "token", "bench"]),
];

/// The help of `callboard`: the commands, then the options, which all commands take.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}\
                        Options of all commands:\n{options}{after-help}";

const ELSEWHERE: &str =
    "Options of all commands, such as --json, --agent ID and --dir DIR: `callboard --help`";

/// How tasks are named, in the help of `callboard`.
pub(super) const NAMES: &str = "\
A TASK is named by its number (12 or #12; an id that is just 12 comes first), its id or 3 or more
letters of its beginning or end, its path (P1.M2.T3), or its title or the beginning of that.";

/// Examples of commands whose own files have none.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("tree", &["tree", "tree 12", "tree P1.M2"]),
    ("approve", &["approve 12 13", "approve 12 --message 'well tested'"]),
    ("reject", &["reject 12 'names with dots are lost'", "reject P1.M2.T3 'no tests'"]),
    (
        "work",
        &["work --agents 3 --exec './do-one.sh'", "work --scope P1 -- claude -p 'do the task'"],
    ),
    ("init", &["init 'Port the parser to Rust'", "init --help"]),
    (
        "add",
        &[
            "add 'Write the lexer' --title Lexer --priority 1",
            "add 'Test the lexer' --after 1 --tag tests",
            "add --batch tasks.json",
        ],
    ),
    ("agents", &["agents", "agents --json"]),
    ("show", &["show 12", "show P1.M2.T3", "show 'Write the lexer'"]),
    (
        "claim",
        &["--agent bob claim", "--agent bob claim 12", "--agent bob claim --scope P1 --wait 30"],
    ),
    ("start", &["--agent bob start 12", "--agent bob start lexer"]),
    (
        "complete",
        &[
            "--agent bob complete 12 'names are parsed'",
            "--agent bob complete 12 - --file src/lexer.rs --commit 1a2b3c4",
        ],
    ),
    (
        "fail",
        &[
            "--agent bob fail 12 'the fixture is missing'",
            "--agent bob fail 12 'no such API' --permanent",
        ],
    ),
    ("release", &["--agent bob release 12", "--agent bob release", "release --all"]),
    ("reset", &["reset 12", "reset --scope P1.M2"]),
    ("explain", &["explain 12", "explain P1.M2.T3"]),
    ("plan", &["plan import PLAN.md", "plan export", "plan list"]),
    (
        "heartbeat",
        &["--agent bob heartbeat", "--agent bob heartbeat --note 'half of the tests pass'"],
    ),
    ("watch", &["watch", "watch --json"]),
    (
        "discoveries",
        &["discoveries", "discoveries --search lexer", "discoveries add 'cargo test needs -j1'"],
    ),
    ("messages", &["messages", "--agent bob messages --all"]),
    ("send", &["send bob 'please look at #12'", "send task:12 'how far are you?' --request"]),
    ("reply", &["reply msg-7f3k 'yes'", "--agent bob reply msg-7f3k -"]),
    ("runs", &["runs", "runs --json"]),
    ("run", &["run run-7f3k", "run run-7f3k --stop"]),
    ("sessions", &["sessions", "sessions --json"]),
    ("history", &["history --task 12", "history --since 2h --kind completed"]),
    ("state", &["state", "state --at 2h"]),
    ("snapshot", &["snapshot create --label before-the-merge", "snapshot list"]),
    ("bundle", &["bundle list", "bundle load"]),
    ("checkpoint", &["checkpoint list nightly", "checkpoint show nightly"]),
    ("artifact", &["artifact attach 12 report.html", "artifact list 12"]),
    ("backup", &["backup board.backup", "backup --help"]),
    ("restore", &["restore board.backup", "restore --help"]),
    ("purge", &["purge", "purge --help"]),
    ("doctor", &["doctor", "doctor --repair"]),
    ("mcp", &["mcp", "mcp --agent auto"]),
    ("serve", &["serve", "serve --help"]),
    ("token", &["token list", "token add --agent bob"]),
    ("call", &["call", "call get_status", "call get_task '{\"task_id\": \"task-7f3k\"}'"]),
    ("guard", &["--agent bob guard src/lexer.rs", "guard --help"]),
    ("hook", &["hook session-start", "hook guard"]),
    ("connect", &["connect claude", "connect claude --hooks"]),
    ("completions", &["completions bash", "completions zsh"]),
    ("uninstall", &["uninstall --dry-run", "uninstall"]),
    ("man", &["man", "man tasks", "man --out man1"]),
];

/// Lays out the help of `command`, which is `callboard` with all its commands.
pub(super) fn laid_out(command: Command) -> Command {
    let globals = command.get_arguments().filter(|one| one.is_global_set());
    let globals: Vec<_> = globals.map(|one| one.clone().hide(true)).collect();
    let text = listed(&command);
    let after = format!("{NAMES}\n\n{}\n\n{}", topics::listed(), exit_codes());
    let command = command.before_help(text).after_help(after).help_template(TEMPLATE);
    command.mut_subcommands(|one| {
        let examples = EXAMPLES.iter().find(|(name, _)| *name == one.get_name());
        let one = match examples {
            Some((_, examples)) => with_examples(one, examples),
            None => one,
        };
        without_globals(one, &globals)
    })
}

/// The commands in their groups, each with its first line of help.
fn listed(command: &Command) -> String {
    let shown = |name: &str| command.find_subcommand(name).filter(|one| !one.is_hide_set());
    let of_group = |names: &[&str]| {
        let lines = names.iter().filter_map(|name| shown(name)).map(|one| {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<_> = one.get_visible_aliases().collect();
            let also = if aliases.is_empty() {
                String::new()
            } else {
                format!(" [also: {}]", aliases.join(", "))
            };
            format!("  {:<12} {about}{also}\n", one.get_name())
        });
        lines.collect::<String>()
    };
    let groups = GROUPS.iter().map(|(name, names)| format!("{name}:\n{}", of_group(names)));
    groups.collect::<Vec<_>>().join("\n")
}

fn with_examples(command: Command, examples: &[&str]) -> Command {
    let lines: Vec<_> = examples.iter().map(|line| format!("\n  callboard {line}")).collect();
    let examples = format!("Examples:{}", lines.concat());
    let text = match command.get_after_help() {
        Some(more) => format!("{examples}\n\n{more}"),
        None => examples,
    };
    command.after_help(text)
}

/// Hides the options of all commands in the help of this one and those below it.
fn without_globals(command: Command, globals: &[clap::Arg]) -> Command {
    let own: Vec<_> = command.get_arguments().map(|one| one.get_id().clone()).collect();
    let hidden = globals.iter().filter(|one| !own.contains(one.get_id())).cloned();
    let command = command.args(hidden.collect::<Vec<_>>());
    let text = match command.get_after_help() {
        Some(more) => format!("{ELSEWHERE}\n\n{more}"),
        None => ELSEWHERE.to_owned(),
    };
    command.after_help(text).mut_subcommands(|one| without_globals(one, globals))
}

#[cfg(test)]
mod tests {
    use super::super::line::{command, parser};
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_has_examples_that_can_be_typed() {
        let command = command();
        let shown: Vec<_> = command.get_subcommands().filter(|one| !one.is_hide_set()).collect();
        for one in &shown {
            let name = one.get_name();
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name)).count();
            assert_eq!(groups, 1, "{name} is in {groups} groups");
            let help = one.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines = help.lines().filter_map(|line| line.strip_prefix("  callboard "));
            let examples: Vec<_> = lines.collect();
            assert!(examples.len() > 1, "{name} has {} examples", examples.len());
            for line in examples {
                let line = line.split(" | ").next().unwrap_or_default();
                let line = line.split(" > ").next().unwrap_or_default();
                let words = shlex::split(&format!("callboard {line}")).expect("a line of a shell");
                if let Err(error) = parser().try_get_matches_from(words) {
                    assert!(!error.use_stderr(), "{line}: {error}");
                }
            }
        }
        for (group, names) in GROUPS {
            for name in names {
                assert!(shown.iter().any(|one| one.get_name() == *name), "{group}: {name}");
            }
        }
        for (name, _) in EXAMPLES {
            assert!(shown.iter().any(|one| one.get_name() == *name), "{name}");
        }
    }

    #[test]
    fn options_of_all_commands_are_in_the_help_of_callboard_alone_and_last() {
        let help = command().render_help().to_string();
        let (commands, options) = help.split_once("Options of all commands:").expect("options");
        assert!(options.contains("--dir") && !commands.contains("--dir"), "{help}");
        let mut command = command();
        command.build();
        let of_show = command.find_subcommand_mut("show").expect("a command").render_help();
        assert!(!of_show.to_string().contains("--dir DIR>"), "{of_show}");
        assert!(!of_show.to_string().contains("--log-format"), "{of_show}");
    }
}
