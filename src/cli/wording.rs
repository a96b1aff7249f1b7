//! Rewords messages: the board names its operations, as agents call them; a person at a shell is
//! told commands.

use std::borrow::Cow;
use std::path::{Path, PathBuf, absolute};
use std::sync::LazyLock;
use std::{env, fs};

use regex::Regex;

use super::connect::quoted;
use super::{Arguments, Command, LOCAL};
use crate::location::{Location, Source};
use crate::ops;

/// Arguments that messages name, and the options for them.
const ARGUMENTS: [(&str, &str); 3] = [
    ("give agent_id", "give --agent ID"),
    ("leave agent_id out", "leave --agent out"),
    (
        "give scope, or model_id, base_url and toolset_hash",
        "give --state-scope, or --model-id, --base-url and --toolset-hash",
    ),
];

/// What stands behind a command and belongs into its line, so that the line can be pasted. A
/// [`MARK`] is behind the words of the command.
const INTO_THE_LINE: [(&str, &str); 11] = [
    (r"`((?: again)?) with wait_seconds: (\d+)", " --wait $2`$1"),
    (r"` (?:with |\()scope ([^\s,;()]+)\)?", " --scope $1`"),
    (r"` with status_filter (\w+)", " --status $1`"),
    (r"`((?: again)?) with (all|now): true", " --$2`$1"),
    (r"`((?: again)?) with replace_goal: true", " --replace-goal`$1"),
    (r"\x01( [^\s`]+)` without an agent", "$1`"),
    (r"` \{task_id\}", " TASK`"),
    (r"` \{workflow_id, budget\}", " WORKFLOW --budget WHAT=N`"),
    (r" or `[^`]*snapshot restore\x01` \{[^}]*\}", ""),
    (
        r"no agent `([^`]+)`; call `([^`]+)\x01` first, with agent_id and role",
        r#"no agent `$1`; `$2 '{"agent_id": "$1"}'` registers it"#,
    ),
    (r"\bcall `callboard", "run `callboard"),
];

/// Stands behind the words of a command until what it needs is added.
const MARK: char = '\u{1}';

/// The words that a command needs, for whoever has to fill them in.
const NEEDED: [(&str, &[&str]); 26] = [
    ("add", &["TEXT"]),
    ("add --batch", &["FILE"]),
    ("agents forget", &["AGENT"]),
    ("approve", &["TASK"]),
    ("artifact attach", &["TASK", "FILE"]),
    ("assign", &["TASK", "AGENT"]),
    ("cancel", &["TASK"]),
    ("checkpoint delete", &["WORKFLOW --all"]),
    ("checkpoint save", &["WORKFLOW"]),
    ("complete", &["TASK"]),
    ("discoveries add", &["TEXT"]),
    ("edit", &["TASK"]),
    ("explain", &["TASK"]),
    ("fail", &["TASK", "REASON"]),
    ("init", &["GOAL"]),
    ("plan import", &["FILE"]),
    ("plan remove", &["NAME"]),
    ("reject", &["TASK", "REASON"]),
    ("reset", &["TASK"]),
    ("retry", &["TASK"]),
    ("run", &["RUN"]),
    ("run --stop", &["RUN"]),
    ("send", &["TO", "TEXT"]),
    ("show", &["TASK"]),
    ("snapshot restore", &["SNAPSHOT"]),
    ("start", &["TASK"]),
];

/// Agent and board that the command line names. Commands in messages repeat them, so that they lead
/// to the same board.
#[derive(Clone, Default)]
pub(super) struct Wording {
    agent: Option<String>,
    /// Options that name a server and a directory, each followed by a space.
    server: String,
    dir: String,
    /// Options that say which bundles are meant, for `bundle` only.
    bundles: String,
}

/// How to call callboard for this board in a shell of the project, whose environment need not be
/// this process's.
pub(super) fn in_shell(location: &Location) -> String {
    with_board("callboard", location)
}

/// The same for a shell that may not find callboard by its name.
pub(super) fn in_any_shell(location: &Location) -> String {
    let program =
        program().map_or_else(|| "callboard".to_owned(), |path| quoted(&path.to_string_lossy()));
    with_board(&program, location)
}

fn with_board(program: &str, location: &Location) -> String {
    match location.source {
        Source::Option | Source::Environment => {
            format!("{program} --dir {}", quoted(&location.dir.to_string_lossy()))
        }
        Source::Found | Source::Repository | Source::StartDirectory => program.to_owned(),
    }
}

/// Absolute path of this program, under the name by which it was started: that one stays when an
/// update puts another file behind it.
fn program() -> Option<PathBuf> {
    let this = env::current_exe().ok();
    let name = PathBuf::from(env::args_os().next()?);
    let named = match name.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => absolute(&name).ok(),
        _ => env::split_paths(&env::var_os("PATH")?)
            .map(|dir| dir.join(&name))
            .find(|file| file.is_file()),
    };
    let is_this = |file: &PathBuf| {
        fs::canonicalize(file).ok() == this.as_deref().and_then(|this| fs::canonicalize(this).ok())
    };
    named.filter(|file| file.is_absolute() && is_this(file)).or_else(|| this.clone())
}

impl Wording {
    pub(super) fn of(arguments: &Arguments) -> Self {
        // An absolute path works in any directory.
        let option = |name: &str, path: &Path| {
            let path = absolute(path).unwrap_or_else(|_| path.to_owned());
            format!("{name} {} ", quoted(&path.to_string_lossy()))
        };
        let server = arguments.server.as_ref().map(|url| format!("--server {} ", quoted(url)));
        let token = arguments.token_file.as_deref().map(|file| option("--token-file", file));
        let (state_dir, state_scope) = match &arguments.command {
            Command::Bundle(bundle) => (bundle.state_dir.as_deref(), bundle.state_scope.as_deref()),
            _ => (None, None),
        };
        let state_dir = state_dir.map(|dir| option("--state-dir", dir));
        let state_scope = state_scope.map(|scope| format!("--state-scope {} ", quoted(scope)));
        Self {
            agent: arguments.agent.clone(),
            server: server.unwrap_or_default() + &token.unwrap_or_default(),
            dir: arguments.dir.as_deref().map(|dir| option("--dir", dir)).unwrap_or_default(),
            bundles: state_dir.unwrap_or_default() + &state_scope.unwrap_or_default(),
        }
    }

    pub(super) fn of_agent(&self, agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..self.clone() }
    }

    /// The wording without an agent.
    pub(super) fn of_nobody(&self) -> Self {
        Self { agent: None, ..self.clone() }
    }

    /// The command line for a person; `words` begin with the subcommand.
    pub(super) fn line(&self, words: &str) -> String {
        self.with("", words)
    }

    /// The command line for the agent, if there is one.
    pub(super) fn line_of_agent(&self, words: &str) -> String {
        let agent = self.agent.as_ref().map(|agent| format!("--agent {} ", quoted(agent)));
        self.with(&agent.unwrap_or_default(), words)
    }

    fn with(&self, agent: &str, words: &str) -> String {
        let is_local = words.split(' ').next().is_some_and(|name| LOCAL.contains(&name));
        let server = if is_local { "" } else { &self.server };
        match words.strip_prefix("bundle ") {
            Some(rest) => {
                format!("callboard {server}{}{agent}bundle {}{rest}", self.dir, self.bundles)
            }
            None => format!("callboard {server}{}{agent}{words}", self.dir),
        }
    }

    /// [`line`](Self::line) in backquotes, as messages name commands.
    pub(super) fn command(&self, words: &str) -> String {
        format!("`{}`", self.line(words))
    }

    /// `text` with every operation replaced by its own command, or else by `callboard call`. Text
    /// between backquotes stays: it is a command already, or the name of something.
    pub(super) fn in_commands(&self, text: &str) -> String {
        in_commands(text, self)
    }
}

fn in_commands(text: &str, wording: &Wording) -> String {
    let text = &without_place(text);
    let parts: Vec<&str> = text.split('`').collect();
    let mut told = String::with_capacity(text.len());
    for (index, part) in parts.iter().enumerate() {
        if index % 2 == 0 {
            told.push_str(&plain(part, wording));
            continue;
        }
        if let Some(words) =
            part.strip_prefix("callboard ").filter(|words| !words.contains("--dir"))
        {
            told.push('`');
            told.push_str(&wording.line(words));
            told.push_str(if index + 1 < parts.len() { "`" } else { "" });
            continue;
        }
        // The object of the operation becomes the command's argument.
        match told.strip_suffix("` ").filter(|before| ends_with_own_command(before)).map(str::len) {
            Some(end) => told.replace_range(end.., " "),
            None => told.push('`'),
        }
        told.push_str(part);
        told.push_str(if index + 1 < parts.len() { "`" } else { "" });
    }
    whole_lines(&told)
}

/// `text` without the place of an operation in a batch, of which a person has typed none.
fn without_place(text: &str) -> Cow<'_, str> {
    let named = text.strip_prefix("operations[").and_then(|rest| rest.split_once("): "));
    let is_place = |place: &str| !place.contains(['`', ';', '\n']) && place.contains("] (");
    match named.filter(|(place, _)| is_place(place)) {
        Some((_, said)) => {
            Cow::Owned(said.replace("nothing of the batch was done", "nothing was done"))
        }
        None => Cow::Borrowed(text),
    }
}

/// `text` with all that the lines of its commands need in them.
fn whole_lines(text: &str) -> String {
    if !text.contains(MARK) {
        return text.to_owned();
    }
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let rules = INTO_THE_LINE.into_iter();
        rules.filter_map(|(rule, line)| Some((Regex::new(rule).ok()?, line))).collect()
    });
    let told = RULES
        .iter()
        .fold(text.to_owned(), |told, (rule, line)| rule.replace_all(&told, *line).into_owned());
    let parts = told.split('`').map(|part| match part.split_once(MARK) {
        Some((command, given)) => with_needed(command, given),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The line of a command, with a word in capitals for each that it needs and is not given.
fn with_needed(command: &str, given: &str) -> String {
    let is_of = |(name, _): &&(&str, &[&str])| command.ends_with(&format!(" {name}"));
    let needed = NEEDED.iter().filter(is_of).max_by_key(|(name, _)| name.len());
    let needed = needed.map(|(_, needed)| *needed).unwrap_or_default();
    let (words, options) = match given.find(" --") {
        Some(at) => given.split_at(at),
        None => (given, ""),
    };
    let missing = needed.iter().skip(words.split_whitespace().count());
    let missing: String = missing.map(|word| format!(" {word}")).collect();
    format!("{command}{words}{missing}{options}")
}

/// Whether the text ends with a command other than `callboard call`, whose arguments are JSON.
fn ends_with_own_command(text: &str) -> bool {
    let command = text.rsplit('`').next().unwrap_or_default();
    command.starts_with("callboard ") && !command.split(' ').any(|word| word == "call")
}

fn plain(text: &str, wording: &Wording) -> String {
    let told = ops::in_commands(text, |entry, before| {
        // A clause about what leaders may do to others' tasks.
        let is_a_leaders =
            before.rsplit(';').next().is_some_and(|clause| clause.contains("a leader can"));
        let words = ops::subcommand(entry);
        let is_agents = !is_a_leaders && ops::acts_as_agent(entry);
        let line = if is_agents { wording.line_of_agent(&words) } else { wording.line(&words) };
        Some(format!("`{line}{MARK}`"))
    });
    ARGUMENTS.iter().fold(told, |told, (argument, option)| told.replace(argument, option))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parser;

    #[test]
    fn operations_become_commands() {
        let told = |text| Wording::default().in_commands(text);
        assert_eq!(told("claim another with claim_task"), "claim another with `callboard claim`");
        assert_eq!(
            told("no task `a`; see get_all_tasks for those"),
            "no task `a`; see `callboard tasks` for those"
        );
        let path = "no task `P1`; that is a path; get_all_tasks with scope P1 has it";
        assert_eq!(told(path), "no task `P1`; that is a path; `callboard tasks --scope P1` has it");
        assert_eq!(
            told("call claim_task again with wait_seconds: 50"),
            "run `callboard claim --wait 50` again"
        );
        assert_eq!(told("call register_agent first"), "run `callboard call register_agent` first");
        assert_eq!(
            told("claim it with claim_task {task_id}"),
            "claim it with `callboard claim TASK`"
        );
        assert_eq!(
            told("retry_task `a`, or explain_task"),
            "`callboard retry a`, or `callboard explain TASK`"
        );
        assert_eq!(
            told("operations[0] (approve_task): task `a` is done; nothing of the batch was done"),
            "task `a` is done; nothing was done"
        );
        assert_eq!(told("update_task `a` its text"), "`callboard edit a` its text");
        assert_eq!(told("reject_task `a` ends it"), "`callboard reject a REASON` ends it");
        assert_eq!(told("assign_task `a` without an agent"), "`callboard assign a`");
        assert_eq!(
            told("get_all_tasks with status_filter review; stop_agent `b` with now: true"),
            "`callboard tasks --status review`; `callboard stop b --now`"
        );
        assert_eq!(
            told("no agent `x`; call register_agent first, with agent_id and role"),
            r#"no agent `x`; `callboard call register_agent '{"agent_id": "x"}'` registers it"#
        );
    }

    #[test]
    fn who_acts_is_named_where_it_matters() {
        let wording = Wording { agent: Some("w".to_owned()), ..Wording::default() };
        let told = |text| wording.in_commands(text);
        assert_eq!(told("claim_task"), "`callboard --agent w claim`");
        assert_eq!(told("get_all_tasks"), "`callboard tasks`");
        assert_eq!(
            told("retry_task `a`; claim_task"),
            "`callboard retry a`; `callboard --agent w claim`"
        );
        let told = told("a leader can raise it with save_checkpoint; claim_task another");
        assert_eq!(
            told,
            "a leader can raise it with `callboard checkpoint save WORKFLOW`; `callboard --agent w claim` \
             another"
        );
    }

    #[test]
    fn the_board_is_named_as_it_was() {
        let wording = Wording {
            agent: Some("w".to_owned()),
            server: "--server http://h ".to_owned(),
            dir: "--dir '/a b' ".to_owned(),
            bundles: "--state-dir /b --state-scope s ".to_owned(),
        };
        let told = |text| wording.in_commands(text);
        let everything = "callboard --server http://h --dir '/a b' ";
        assert_eq!(told("claim_task"), format!("`{everything}--agent w claim`"));
        assert_eq!(told("retry_task `a`"), format!("`{everything}retry a`"));
        assert_eq!(told("`callboard status` has all"), format!("`{everything}status` has all"));
        // It is about this machine, so --server is left out.
        assert_eq!(told("`callboard doctor --repair`"), "`callboard --dir '/a b' doctor --repair`");
        assert_eq!(
            told("`callboard connect CLIENT --dir DIR`"),
            "`callboard connect CLIENT --dir DIR`"
        );
        let bundles = "--state-dir /b --state-scope s";
        assert_eq!(told("load_bundle"), format!("`{everything}bundle {bundles} load`"));
        assert_eq!(wording.command("bundle save"), format!("`{everything}bundle {bundles} save`"));
    }

    #[test]
    fn names_and_words_stay() {
        for text in [
            "no agent `claim_task`",
            "pause, resume and heartbeat",
            "claim_tasks",
            "my_claim_task",
            "ünïcode `",
        ] {
            assert_eq!(Wording::default().in_commands(text), text);
        }
    }

    /// The texts of the crate that name an operation or a command, as one is told them.
    fn told_to_people() -> Vec<(String, String)> {
        let literal = Regex::new(r#"(?s)"((?:[^"\\]|\\.)*)""#).unwrap();
        let (broken, hole) =
            (Regex::new(r"\\\n\s*").unwrap(), Regex::new(r"\{[a-z_0-9.]*\}").unwrap());
        let operations: Vec<_> = ops::all().iter().map(|entry| entry.name).collect();
        let mut told = Vec::new();
        for dir in ["state", "ops", "participant", "git", "statefile", "board", "rpc", "http"] {
            for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(dir)) {
                let text = fs::read_to_string(&file).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                let lines = text.lines().filter(|line| {
                    let line = line.trim_start();
                    !line.starts_with("//") && !line.contains("DESCRIPTION")
                });
                let text = lines.collect::<Vec<_>>().join("\n");
                for found in literal.captures_iter(&text) {
                    let text = broken.replace_all(&found[1], "").replace("\\\"", "\"");
                    let text = hole.replace_all(&text, "1").replace("{{", "{").replace("}}", "}");
                    let text = text.replace("--role 1", "--role worker");
                    let is_of = |name: &&str| text.contains(*name) && name.contains('_');
                    if text.contains(' ')
                        && (text.contains("`callboard ") || operations.iter().any(is_of))
                    {
                        let name = file.display().to_string();
                        told.push((name, Wording::default().in_commands(&text)));
                    }
                }
            }
        }
        told
    }

    fn sources(dir: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let found =
            entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
        let is_test = |path: &PathBuf| path.ends_with("tests.rs") || path.ends_with("spoken.rs");
        found.filter(|path| path.extension() == Some("rs".as_ref()) && !is_test(path)).collect()
    }

    /// A word of the kind that a placeholder stands for.
    fn filled(word: String) -> String {
        match word.as_str() {
            "CLIENT" => "claude".to_owned(),
            "N" | "EVENT" => "1".to_owned(),
            "WHAT=N" => "tokens=1".to_owned(),
            _ => word,
        }
    }

    #[test]
    fn every_line_that_a_message_names_can_be_typed() {
        let told = told_to_people();
        assert!(told.len() > 100, "only {} texts name a command", told.len());
        let behind =
            Regex::new(r"^ (with [a-z_]+:|with (scope|status_filter) |--|and --|\{)").unwrap();
        let mut wrong = Vec::new();
        for (file, text) in &told {
            let parts: Vec<&str> = text.split('`').collect();
            for (index, line) in parts.iter().enumerate().skip(1).step_by(2) {
                if !line.starts_with("callboard ") {
                    continue;
                }
                let words = shlex::split(line).unwrap_or_default().into_iter().map(filled);
                let parsed = parser().try_get_matches_from(words);
                if let Err(error) = parsed
                    && error.use_stderr()
                {
                    wrong.push(format!("{file}: {text}\n  {error}"));
                }
                if parts.get(index + 1).is_some_and(|after| behind.is_match(after)) {
                    wrong.push(format!("{file}: {text}\n  an argument stands behind `{line}`"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
