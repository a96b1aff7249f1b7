//! What people type first for a command that has another name: the answer names the right one.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::line::parser;

/// Words that people try as commands, and what to type instead.
const GUESSES: &[(&[&str], &str)] = &[
    (
        &["rm", "delete", "remove", "drop", "abort", "del"],
        "`callboard cancel TASK` ends a task that is not to be done; `callboard agents forget ID` \
         takes an agent off the list",
    ),
    (
        &["kill", "halt", "interrupt", "terminate"],
        "`callboard stop AGENT` asks an agent to stop, and with --now releases its task at once",
    ),
    (
        &["restart", "redo", "reopen", "rerun"],
        "`callboard retry TASK` makes a failed task available again, `callboard reset TASK` one \
         that is done",
    ),
    (&["todo", "ready", "queue", "open"], "`callboard tasks --ready` lists what can be claimed"),
    (
        &["next"],
        "`callboard tasks --ready` lists what comes next, `callboard --agent NAME claim` takes it",
    ),
    (&["blocked"], "`callboard tasks --blocked` lists what waits for other tasks"),
    (&["failed", "errors"], "`callboard tasks --failed` lists them; `callboard retry` too"),
    (
        &["stat", "progress", "summary", "overview", "dashboard"],
        "`callboard status` shows how far the board is; `callboard show TASK` is about one task",
    ),
    (
        &["top", "monitor", "live"],
        "`callboard ui` shows the board live and takes keys, `callboard watch` prints its events",
    ),
    (&["open-board", "server"], "`callboard serve` serves the board over HTTP"),
    (
        &["prio", "priority", "prioritize", "bump"],
        "`callboard edit TASK --priority 1` (1 is first)",
    ),
    (
        &["block", "depend", "depends", "link"],
        "`callboard edit TASK --depends OTHER` lets a task wait for another",
    ),
    (
        &["unblock", "undepend", "unlink"],
        "`callboard edit TASK --no-depends` lets a task wait for nothing; `callboard explain TASK` \
         says what it waits for",
    ),
    (&["rename", "title"], "`callboard edit TASK --title TEXT`"),
    (&["tag"], "`callboard edit TASK --tag TAG`"),
    (&["graph", "dot", "mermaid"], "`callboard export mermaid`, or `callboard tasks --tree`"),
    (&["search", "find", "grep"], "`callboard tasks --search WORDS`"),
    (&["note", "comment"], "`callboard heartbeat --task TASK --note TEXT`"),
    (&["events", "audit"], "`callboard history` lists events, `callboard watch` shows them live"),
    (
        &["ask", "tell", "say", "msg", "message", "write"],
        "`callboard send AGENT TEXT` sends a message; `callboard messages` lists yours",
    ),
    (&["agent"], "`callboard agents` lists them, `callboard log AGENT` says what one did"),
    (
        &["register", "join", "login"],
        "`callboard --agent NAME claim` acts as an agent; `callboard connect` configures a client",
    ),
    (&["version"], "`callboard --version`"),
    (
        &["config", "configure", "settings", "setup"],
        "`callboard connect CLIENT` configures a client, `callboard init` makes a board; \
         `callboard man` describes config.toml",
    ),
    (&["logs"], "`callboard log` says what happened"),
    (
        &["exit", "quit", "logout", "shutdown", "down"],
        "nothing runs in the background: `callboard pause` stops claims, `callboard stop AGENT` \
         asks an agent to stop",
    ),
    (
        &["up", "daemon", "run-server", "launch"],
        "nothing has to be started; `callboard serve` serves HTTP, `callboard work` runs a command \
         for each task",
    ),
    (&["lock", "unlock"], "agents hold files by `callboard call reserve_files`"),
    (&["fix", "repair", "check", "health"], "`callboard doctor` checks the board"),
    (&["save", "load"], "`callboard snapshot` keeps states, `callboard backup` writes one file"),
];

/// The error, with the right command if an unknown one was typed and another is meant.
pub(super) fn corrected(error: clap::Error) -> clap::Error {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::InvalidSubcommand => {
            match meant(word) {
                Some(meant) => parser().error(
                    ErrorKind::InvalidSubcommand,
                    format!("there is no command `{word}`; {meant}"),
                ),
                None => error,
            }
        }
        _ => error,
    }
}

fn meant(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let mut known = GUESSES.iter().filter(|(words, _)| words.contains(&word.as_str()));
    known.next().map(|(_, meant)| *meant)
}

#[cfg(test)]
mod tests {
    use super::super::line::command;
    use super::*;

    /// The commands that a text names: the words behind `callboard` in backquotes.
    fn named(text: &str) -> impl Iterator<Item = &str> {
        let quoted = text.split('`').skip(1).step_by(2);
        let lines = quoted.filter_map(|quoted| quoted.strip_prefix("callboard "));
        lines.filter_map(|line| {
            line.split(' ').find(|word| !word.starts_with('-') && *word != "NAME")
        })
    }

    #[test]
    fn guesses_are_no_commands_and_name_those_that_exist() {
        let command = command();
        let is_one = |word: &str| command.find_subcommand(word).is_some();
        for (words, meant) in GUESSES {
            for word in *words {
                assert!(!is_one(word), "{word} is a command");
            }
            assert!(meant.contains("callboard "), "{meant}");
            for one in named(meant) {
                assert!(is_one(one), "`{meant}` names `{one}`, which does not exist");
            }
        }
    }

    #[test]
    fn no_word_has_two_meanings() {
        let mut words: Vec<_> = GUESSES.iter().flat_map(|(words, _)| *words).collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
    }
}
