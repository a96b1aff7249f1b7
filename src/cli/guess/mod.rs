//! What people type before they know the command line.
//!
//! A line that cannot be parsed, or has words of other tools, is rewritten and parsed again if it
//! is certain what is meant and that only reads, or if the words merely stand in another order.
//! Else the answer is one line, which names the command with the arguments that were given.

mod options;
mod table;
mod words;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, FromArgMatches};

use super::connect::quoted;
use super::line::{Arguments, parser, place_of_subcommand};
use super::number::explained;
use super::offer::{Kind, kind};
use super::report::without_usage;
use super::session::Session;
use super::tasks::is_status;
use crate::ops;
use table::{BEHIND, MISSING, Noun, Row};
use words::{Verb, forms, is_agent, is_one_of, is_path, is_task, is_thing, noun, row};

/// Most changes to a line before it is given up.
const ROUNDS: usize = 16;

/// Commands that a guess of another word never leads to.
const DESTRUCTIVE: [&str; 6] = ["cancel", "reset", "purge", "restore", "uninstall", "fail"];

/// Commands without arguments that only read, which may stand behind `show` or `list`.
const READERS: [&str; 14] = [
    "status", "tasks", "tree", "agents", "log", "diff", "results", "explain", "watch", "history",
    "report", "runs", "sessions", "messages",
];

/// Commands whose arguments are text, so that none of them is the name of a thing.
const OF_TEXT: [&str; 8] =
    ["send", "answer", "reply", "init", "discoveries", "call", "work", "complete"];

/// Words of a question that name nothing.
const SMALL: &str = "a an the is are was were be been has have had do does did done doing to of for on in i we there \
                     it they working changed change";

enum Meant {
    /// The words of the line from the command on.
    Line(Vec<String>),
    /// All words of the line.
    Whole(Vec<String>),
    /// What to type instead.
    Hint(String),
}

/// A command line in its parts.
struct Line<'c> {
    root: &'c Command,
    /// The program's name, and options before the command.
    before: Vec<String>,
    words: Vec<String>,
    /// `--` and what follows.
    behind: Vec<String>,
}

/// Parses a command line. The first word is the program's name.
pub(super) fn parsed(given: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    let root = parser();
    let text: Option<Vec<_>> = given.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let Some(mut words) = text else { return root.try_get_matches_from(given) };
    for _ in 0..ROUNDS {
        let line = Line::of(&root, &words);
        let meant = match line.reworded() {
            Some(meant) => meant,
            None => match root.clone().try_get_matches_from(&words) {
                Ok(matches) => return Ok(matches),
                Err(error) if is_help(&error) => return Err(error),
                Err(error) => line.corrected(&error).ok_or_else(|| plain(&error))?,
            },
        };
        match meant {
            Meant::Line(new) => words = line.with(new),
            Meant::Whole(all) => words = all,
            Meant::Hint(text) => return Err(refused(&text)),
        }
    }
    root.try_get_matches_from(words).map_err(|error| plain(&error))
}

fn is_help(error: &clap::Error) -> bool {
    !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// The error in one paragraph, without the tips and the usage of the parser.
fn plain(error: &clap::Error) -> clap::Error {
    let message = explained(error).unwrap_or_else(|| without_usage(&error.render().to_string()));
    let message = message.split("\n\n  tip:").next().unwrap_or_default();
    clap::Error::raw(error.kind(), format!("{message}\n")).with_cmd(&parser())
}

fn refused(text: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::InvalidSubcommand, format!("{text}\n")).with_cmd(&parser())
}

/// What is meant by a word that cannot stand behind the command.
fn behind(command: &str, word: &str) -> Option<&'static str> {
    let found = BEHIND.iter().find(|(of, words, _)| *of == command && is_one_of(words, word));
    found.map(|(.., text)| *text)
}

/// `how far are we`, `what has failed`, `what did claude-1 do`: the words that name what is asked.
fn asked(first: &str, rest: &[String]) -> Option<Vec<String>> {
    if first == "how" && rest.first().is_none_or(|second| second != "to") {
        return Some(strings(&["status"]));
    }
    if !is_one_of("what whats what's which", first) {
        return None;
    }
    let words: Vec<_> = rest.iter().filter(|word| !is_one_of(SMALL, word)).cloned().collect();
    let named = words.first().filter(|named| !is_option(named))?;
    match is_thing(named) {
        true if words.len() == 1 => Some(strings(&["log", named])),
        true => None,
        false => (noun(named).is_some() || row(named).is_some()).then_some(words),
    }
}

/// The same where a noun is at hand already.
fn noun_at(word: &str) -> Option<&'static Noun> {
    noun(word)
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

impl<'c> Line<'c> {
    fn of(root: &'c Command, all: &[String]) -> Self {
        let (own, behind) =
            all.split_at(all.iter().position(|word| word == "--").unwrap_or(all.len()));
        let own_words = own.get(1..).unwrap_or_default();
        let place =
            place_of_subcommand(own_words).map_or(own.len(), |place| (place + 1).min(own.len()));
        let (before, words) = own.split_at(place);
        Self { root, before: before.to_vec(), words: words.to_vec(), behind: behind.to_vec() }
    }

    fn with(&self, words: Vec<String>) -> Vec<String> {
        [self.before.clone(), words, self.behind.clone()].concat()
    }

    /// The command that these words lead to, the names on the way, and how many words those are.
    fn command(&self, words: &[String]) -> (&'c Command, Vec<&'c str>, usize) {
        let (mut found, mut path) = (self.root, Vec::new());
        for word in words {
            let Some(below) = found.find_subcommand(word) else { break };
            found = below;
            path.push(below.get_name());
        }
        let count = path.len();
        (found, path, count)
    }

    /// Arguments and options behind the command, each option with its value.
    fn parts(&self, command: &Command, words: &[String]) -> (Vec<String>, Vec<String>) {
        let (mut arguments, mut options) = (Vec::new(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !is_option(word) {
                arguments.push(word.clone());
                continue;
            }
            options.push(word.clone());
            if options::takes_value(self.root, command, word) {
                options.extend(words.next().cloned());
            }
        }
        (arguments, options)
    }

    /// What is meant by words that may be parsed, but not as they are meant, or not at all.
    fn reworded(&self) -> Option<Meant> {
        let (first, rest) = self.words.split_first()?;
        // An option before the command may have a value, which is none of its words.
        let mut before = self.before.iter().skip(1).filter(|word| is_option(word));
        if before.any(|word| !options::is_known(self.root, word)) {
            return None;
        }
        if first == "help" {
            return self.helped(rest);
        }
        match self.root.find_subcommand(first) {
            Some(command) => self.known(command, first, rest),
            None => Some(self.unknown(first, rest)),
        }
    }

    fn helped(&self, rest: &[String]) -> Option<Meant> {
        let asked = rest.first().filter(|word| !is_option(word))?;
        if let Some(command) = self.root.find_subcommand(asked) {
            let more = rest.get(1).filter(|below| command.find_subcommand(below).is_none());
            return more.map(|_| Meant::Line(strings(&["help", asked])));
        }
        if asked == "help" {
            return None;
        }
        if ["all", "commands", "topics", "me"].contains(&asked.as_str()) {
            return Some(Meant::Line(strings(&["help"])));
        }
        let as_command = self.spelled(asked);
        let by_meaning = || {
            let text = noun(asked).map(|noun| noun.list).or(row(asked).map(|row| row.alone))?;
            let line = text.strip_prefix('>').or_else(|| text.split('`').nth(1))?;
            line.split(' ')
                .find(|word| self.root.find_subcommand(word).is_some())
                .map(str::to_owned)
        };
        Some(match as_command.or_else(by_meaning) {
            Some(name) => Meant::Line(strings(&["help", &name])),
            None => Meant::Hint(format!(
                "there is no command `{asked}`; {} lists all commands",
                self.quoted("help")
            )),
        })
    }

    /// The command that the word names, in another case or number.
    fn spelled(&self, word: &str) -> Option<String> {
        let shown = |form: &String| {
            self.root.find_subcommand(form).is_some_and(|command| !command.is_hide_set())
        };
        forms(word).into_iter().find(shown)
    }

    fn known(&self, command: &'c Command, first: &str, rest: &[String]) -> Option<Meant> {
        let second = rest.first().filter(|word| !is_option(word))?;
        let name = command.get_name();
        if command.find_subcommand(second).is_some()
            || second == "help" && command.has_subcommands()
        {
            return None;
        }
        if rest.len() == 1 && second == "help" && !OF_TEXT.contains(&name) && name != "add" {
            return Some(Meant::Line(strings(&["help", name])));
        }
        if let Some(text) = behind(name, second) {
            return Some(self.meaning(&format!("{first} {second}"), text, rest));
        }
        let verb = Verb::of(first);
        if verb.is_some_and(Verb::reads)
            && let Some(meant) = self.listed(name, first, rest)
        {
            return Some(meant);
        }
        if let Some(noun) = noun(first).filter(|_| verb.is_none()) {
            return self.noun_first(noun, command, rest);
        }
        if let Some(meant) = self.sibling(command, first, rest) {
            return Some(meant);
        }
        if let (Some(verb), Some(noun)) = (verb, noun(second)) {
            return self.verb_first(verb, noun, first, rest);
        }
        let reader = self.root.find_subcommand(second).map(Command::get_name);
        if verb.is_some_and(Verb::reads) && reader.is_some_and(|name| READERS.contains(&name)) {
            return Some(Meant::Line(rest.to_vec()));
        }
        self.arranged(command, first, rest)
    }

    /// `show me all tasks`, `list open tasks`, `show my tasks`.
    fn listed(&self, name: &str, first: &str, rest: &[String]) -> Option<Meant> {
        let (second, more) = rest.split_first()?;
        let is_of_tasks = |words: &[String]| {
            let mut words = words.iter().filter(|word| !is_option(word));
            words.all(|word| noun(word).is_some_and(|noun| noun.list.starts_with(">tasks {*}")))
        };
        let has_more = more.iter().any(|word| !is_option(word));
        if has_more && ["me", "all"].contains(&second.as_str()) {
            return Some(Meant::Line([strings(&[first]), more.to_vec()].concat()));
        }
        if !is_of_tasks(more) || name != "tasks" && more.is_empty() {
            return None;
        }
        let options = more.iter().filter(|word| is_option(word)).cloned();
        let line = match second.as_str() {
            "my" | "mine" => strings(&["tasks", "--of", "human"]),
            _ if is_status(second) => strings(&["tasks", "--status", second]),
            _ => return None,
        };
        Some(Meant::Line(line.into_iter().chain(options).collect()))
    }

    /// The subcommand beside the one that was guessed, which does the same.
    fn sibling(&self, command: &Command, first: &str, rest: &[String]) -> Option<Meant> {
        let verb = Verb::of(&rest[0])?;
        let does = |one: &&Command| Verb::of(one.get_name()) == Some(verb);
        let found = command.get_subcommands().filter(|one| !one.is_hide_set()).find(does)?;
        let line = [&strings(&[first, found.get_name()])[..], &rest[1..]].concat();
        if verb.reads() {
            return Some(Meant::Line(line));
        }
        Some(self.named(&format!("{first} {}", rest[0]), &line))
    }

    /// `task list`, `agents stop claude-1`.
    fn noun_first(&self, noun: &Noun, command: &Command, rest: &[String]) -> Option<Meant> {
        let (second, more) = rest.split_first()?;
        let typed = format!("{} {second}", self.words[0]);
        let has_more = more.iter().any(|word| !is_option(word));
        let is_of_tasks = noun.list.starts_with(">tasks {*}");
        if command.get_name() == "tasks" && is_path(second) {
            return Some(self.meaning(&typed, ">tasks --scope {*}", rest));
        }
        if is_of_tasks && !has_more && is_status(second) {
            let line = [strings(&["tasks", "--status", second]), more.to_vec()].concat();
            return Some(Meant::Line(line));
        }
        if let Some(verb) = Verb::of(second) {
            let text = match verb {
                Verb::Show if has_more => noun.show,
                Verb::Show | Verb::List => noun.list,
                Verb::Add => noun.add,
                Verb::Remove => noun.remove,
            };
            return Some(self.meaning(&typed, text, more));
        }
        let is_of_agents = noun.list.starts_with(">agents");
        let is_free = is_of_tasks
            || is_of_agents
            || ["review", "question", "message"].iter().any(|word| is_one_of(noun.words, word));
        let spelled = self.spelled(second).filter(|_| noun_at(second).is_none() || second == "log");
        let swapped = self.root.find_subcommand(second).map(Command::get_name);
        let swapped = swapped.map(str::to_owned).or(spelled);
        let swapped = swapped.and_then(|name| self.root.find_subcommand(name));
        if let Some(swapped) = swapped.filter(|_| is_free) {
            let name = swapped.get_name();
            let takes_it = swapped.get_positionals().next().and_then(kind).is_some();
            if takes_it || READERS.contains(&name) || OF_TEXT.contains(&name) {
                let known = self.root.find_subcommand(second).is_some();
                let name = if known { second } else { name };
                return Some(Meant::Line([strings(&[name]), more.to_vec()].concat()));
            }
        }
        if (is_of_tasks || is_of_agents)
            && is_thing(second)
            && more.first().is_some_and(|verb| self.is_verb(verb))
        {
            return Some(self.thing_first(second, more));
        }
        if let Some(other) = noun_at(second).filter(|_| is_of_tasks && has_more) {
            return self.noun_first(other, self.root, more);
        }
        if let Some(row) = row(second).filter(|_| self.root.find_subcommand(second).is_none()) {
            return Some(self.row(&typed, row, more));
        }
        let takes_none = command.get_positionals().next().is_none() && !command.has_subcommands();
        if command.get_name() == "callboard" || takes_none || is_of_agents {
            let is_search = is_of_tasks && !is_thing(second);
            let text = if is_search { ">tasks --search {1..}" } else { noun.show };
            return Some(self.meaning(&typed, text, rest));
        }
        None
    }

    /// Whether the word says what to do with a thing.
    fn is_verb(&self, word: &str) -> bool {
        let command = self.root.find_subcommand(word);
        let takes_it = |one: &Command| one.get_positionals().next().and_then(kind).is_some();
        command.map_or_else(|| row(word).is_some(), takes_it)
    }

    /// `list tasks`, `create task "Write the docs"`.
    fn verb_first(&self, verb: Verb, noun: &Noun, first: &str, rest: &[String]) -> Option<Meant> {
        let more = &rest[1..];
        let arguments: Vec<_> = more.iter().filter(|word| !is_option(word)).collect();
        let is_of_tasks = noun.list.starts_with(">tasks {*}");
        let text = match verb {
            Verb::Show if !arguments.is_empty() => noun.show,
            Verb::Show | Verb::List => noun.list,
            // Words without quotes may begin with a noun.
            Verb::Add if is_of_tasks && arguments.len() != 1 && !more.is_empty() => return None,
            Verb::Add if !is_of_tasks && arguments.len() > 1 && !is_thing(arguments[0]) => {
                return None;
            }
            Verb::Add => noun.add,
            Verb::Remove => noun.remove,
        };
        Some(self.meaning(&format!("{first} {}", rest[0]), text, more))
    }

    /// `stop agent claude-1`, `assign claude-1 12`, `assign 12 to claude-1`.
    fn arranged(&self, command: &Command, first: &str, rest: &[String]) -> Option<Meant> {
        let of = command.get_positionals().next().and_then(kind)?;
        let line = |words: &[String]| Some(Meant::Line([&strings(&[first])[..], words].concat()));
        let (arguments, _) = self.parts(command, rest);
        let noun = noun(&rest[0]).map(|noun| noun.list.split(' ').next().unwrap_or_default());
        let fits = matches!(noun, Some(">tasks" | ">agents"));
        if fits && arguments.len() > 1 {
            return line(&rest[1..]);
        }
        let is_list = |word: &str| word.contains(',') && word.split(',').all(is_task);
        let takes_several = command.get_positionals().next();
        let takes_several =
            takes_several.is_some_and(|one| matches!(one.get_action(), clap::ArgAction::Append));
        if of != Kind::Agent && takes_several && rest.iter().any(|word| is_list(word)) {
            let (lists, others): (Vec<_>, Vec<_>) = rest.iter().partition(|word| is_list(word));
            let split = lists.into_iter().flat_map(|list| list.split(',')).map(str::to_owned);
            return line(&split.chain(others.into_iter().cloned()).collect::<Vec<_>>());
        }
        if command.get_name() == "edit" {
            return edited(command, rest).and_then(|words| line(&words));
        }
        if command.get_name() != "assign" {
            return None;
        }
        if let Some(at) = rest.iter().position(|word| word == "to").filter(|at| *at > 0) {
            return line(&[&rest[..at], &rest[at + 1..]].concat());
        }
        match arguments.as_slice() {
            [agent, task] if !is_task(agent) && is_task(task) => {
                let mut words = rest.to_vec();
                let at =
                    |word: &String| rest.iter().position(|one| one == word).unwrap_or_default();
                words.swap(at(agent), at(task));
                line(&words)
            }
            _ => None,
        }
    }

    fn unknown(&self, first: &str, rest: &[String]) -> Meant {
        let lower = first.to_lowercase();
        let same = self.root.find_subcommand(&lower).filter(|command| !command.is_hide_set());
        if same.is_some() {
            return Meant::Line([vec![lower], rest.to_vec()].concat());
        }
        let has_arguments = rest.iter().any(|word| !is_option(word));
        if let (Some(verb), Some(noun)) =
            (Verb::of(first), rest.first().and_then(|word| noun(word)))
            && let Some(meant) = self.verb_first(verb, noun, first, rest)
        {
            return meant;
        }
        if let Some(line) = asked(&lower, rest) {
            return Meant::Line(line);
        }
        if let Some(row) = row(first).filter(|_| noun(first).is_none()) {
            return self.row(first, row, rest);
        }
        if let Some(noun) = noun(first) {
            let same = self.spelled(first);
            if let (Some(name), Some(second)) = (same, rest.first())
                && let Some(text) = behind(&name, second)
            {
                return self.meaning(&format!("{first} {second}"), text, rest);
            }
            return match self.noun_first(noun, self.root, rest).filter(|_| has_arguments) {
                Some(meant) => meant,
                None => self.meaning(first, noun.list, rest),
            };
        }
        if is_thing(first) {
            return self.thing_first(first, rest);
        }
        if let Some(name) = self.spelled(first) {
            let list = strings(&[&name, "list"]);
            let command = self.root.find_subcommand(&name);
            let lists = command.is_some_and(|command| command.find_subcommand("list").is_some());
            let lists = lists && rest.is_empty() && name != first && self.parses(&list);
            let line = if lists { list } else { [vec![name], rest.to_vec()].concat() };
            return Meant::Line(line);
        }
        if let Some(line) = self.in_parts(first, rest) {
            return Meant::Line(line);
        }
        if !has_arguments && self.is_on_board(first) {
            return Meant::Line([strings(&["show", first]), rest.to_vec()].concat());
        }
        self.misspelled(first, rest)
    }

    /// `add-task` and `get_all_tasks`: the words of a word, or the command of an operation.
    fn in_parts(&self, first: &str, rest: &[String]) -> Option<Vec<String>> {
        if let Some(entry) = ops::find(&first.to_lowercase().replace('-', "_")) {
            let line = ops::subcommand(entry);
            let words = line.split(' ').map(str::to_owned);
            return Some(words.chain(rest.iter().cloned()).collect());
        }
        let lower = first.to_lowercase();
        let words: Vec<_> = lower.split(['-', '_']).map(str::to_owned).collect();
        let is_known = |word: &String| {
            let command = self.root.find_subcommand(word).is_some_and(|one| !one.is_hide_set());
            command || noun(word).is_some() || row(word).is_some() || Verb::of(word).is_some()
        };
        let is_line = words.len() > 1 && words.iter().all(is_known);
        is_line.then(|| [words, rest.to_vec()].concat())
    }

    /// `12`, `12 done`, `50 modify priority:1`.
    fn thing_first(&self, first: &str, rest: &[String]) -> Meant {
        let Some((second, more)) = rest.split_first().filter(|(second, _)| !is_option(second))
        else {
            return Meant::Line([strings(&["show", first]), rest.to_vec()].concat());
        };
        let arguments = [strings(&[first]), more.to_vec()].concat();
        let typed = format!("{first} {second}");
        match (self.root.find_subcommand(second), row(second)) {
            (Some(command), _) if command.get_positionals().next().and_then(kind).is_some() => {
                Meant::Line([strings(&[second]), arguments].concat())
            }
            (None, Some(row)) => self.row(&typed, row, &arguments),
            _ => self.meaning(&typed, "`show {1:TASK}` shows it", &arguments),
        }
    }

    fn row(&self, typed: &str, row: &Row, rest: &[String]) -> Meant {
        let mut rest = rest.to_vec();
        let is_filler = |word: &String| {
            let is_list = Verb::of(word) == Some(Verb::List);
            is_list
                || word == "again"
                || noun(word).is_some_and(|noun| noun.list.ends_with("s {*}"))
        };
        if rest.first().is_some_and(is_filler) {
            rest.remove(0);
        }
        let first = rest.iter().find(|word| !is_option(word));
        let text = row.meaning(first.is_some(), first.is_some_and(|word| self.names_agent(word)));
        self.meaning(typed, text, &rest)
    }

    /// What a text of the tables means with these arguments.
    fn meaning(&self, typed: &str, text: &str, rest: &[String]) -> Meant {
        let template = text.strip_prefix('>').or_else(|| text.split('`').nth(1)).unwrap_or(text);
        let words: Vec<_> = template.split(' ').map(str::to_owned).collect();
        let (arguments, options) = self.parts(self.command(&words).0, rest);
        if let Some(lead) = text.strip_prefix('>').and_then(|text| text.strip_suffix(" {*}")) {
            let lead = lead.split(' ').map(str::to_owned);
            return Meant::Line(lead.chain(rest.iter().cloned()).collect());
        }
        if text.starts_with('>') {
            let mut line: Vec<_> =
                words.iter().flat_map(|word| filled(word, &arguments, true)).collect();
            line.extend(options);
            return Meant::Line(line);
        }
        let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
            0 => part.to_owned(),
            _ => self.quoted(&self.in_shell(part, &arguments)),
        });
        Meant::Hint(format!("there is no command `{typed}`; {}", parts.collect::<String>()))
    }

    /// The template with the arguments, or without if it cannot be parsed with them.
    fn in_shell(&self, template: &str, arguments: &[String]) -> String {
        let line = |arguments: &[String]| -> Vec<String> {
            template.split(' ').flat_map(|word| filled(word, arguments, false)).collect()
        };
        let words = if self.parses(&line(arguments)) { line(arguments) } else { line(&[]) };
        in_shell(&words)
    }

    fn parses(&self, words: &[String]) -> bool {
        let all = [strings(&["callboard"]), words.to_vec()].concat();
        self.root.clone().try_get_matches_from(all).map_or_else(|error| is_help(&error), |_| true)
    }

    /// The line as a person types it, for the same board.
    fn quoted(&self, line: &str) -> String {
        let known = |word: &String| !is_option(word) || options::is_known(self.root, word);
        let before = self.before.iter().skip(1);
        let before: Vec<_> = if before.clone().all(known) {
            before.filter(|word| *word != "--json").map(|word| quoted(word)).collect()
        } else {
            Vec::new()
        };
        let parts = ["callboard", &before.join(" "), line];
        format!(
            "`{}`",
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
        )
    }

    /// A hint that is this line.
    fn named(&self, typed: &str, line: &[String]) -> Meant {
        let line = self.quoted(&in_shell(line));
        Meant::Hint(format!("there is no command `{typed}`; did you mean {line}?"))
    }

    /// The board that the line is about, if there is one.
    fn session(&self) -> Option<Session> {
        let status = self.with(strings(&["status"]));
        let matches = self.root.clone().try_get_matches_from(status).ok()?;
        let arguments = Arguments::from_arg_matches(&matches).ok()?;
        Session::new(&arguments).ok().filter(Session::has_board)
    }

    /// Whether the word is the name of an agent, by its form or on the board.
    fn names_agent(&self, word: &str) -> bool {
        let is_name = !is_task(word) && !word.contains(char::is_whitespace);
        let is_known = || self.session().is_some_and(|session| session.has_agent(word));
        is_agent(word) || is_name && is_known()
    }

    /// Whether the board has an agent or a task of this name.
    fn is_on_board(&self, word: &str) -> bool {
        self.session().is_some_and(|session| {
            let is_title = word.contains(' ');
            let task = session.task(word);
            let task = task.is_ok_and(|task| is_title || task.id.as_str().contains(word));
            task || session.has_agent(word)
        })
    }

    /// A command that is written almost like this.
    fn misspelled(&self, first: &str, rest: &[String]) -> Meant {
        let shown = self.root.get_subcommands().filter(|one| !one.is_hide_set());
        let shown = shown.filter(|one| !DESTRUCTIVE.contains(&one.get_name()));
        let names =
            shown.flat_map(|one| std::iter::once(one.get_name()).chain(one.get_all_aliases()));
        match nearest(first, names.chain(["help"])) {
            Some(name) => {
                let line = [strings(&[name]), rest.to_vec()].concat();
                let line = if self.parses(&line) { line } else { strings(&[name]) };
                self.named(first, &line)
            }
            None => Meant::Hint(format!(
                "there is no command `{first}`; {} lists all commands",
                self.quoted("help")
            )),
        }
    }

    /// What is meant by a line that the parser refuses.
    fn corrected(&self, error: &clap::Error) -> Option<Meant> {
        let given = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.clone()),
            Some(ContextValue::Strings(all)) => all.first().cloned(),
            _ => None,
        };
        match error.kind() {
            ErrorKind::UnknownArgument => {
                let wrong = given(ContextKind::InvalidArg)?;
                let is_option = is_option(&wrong);
                Some(if is_option { options::meant(self, &wrong) } else { self.too_many(&wrong) })
            }
            ErrorKind::InvalidSubcommand => {
                let wrong = given(ContextKind::InvalidSubcommand)?;
                let (command, path, _) = self.command(&self.words);
                if path.is_empty() {
                    return Some(Meant::Line(strings(&["help"])));
                }
                if ["agents", "discoveries"].contains(&path.join(" ").as_str()) {
                    return Some(self.too_many(&wrong));
                }
                let names = command.get_subcommands().filter(|one| !one.is_hide_set());
                let is_told = |name: &&str| {
                    !["help", "delete", "remove", "revoke", "forget"].contains(name)
                        && !DESTRUCTIVE.contains(name)
                };
                let names: Vec<_> = names.map(Command::get_name).filter(is_told).collect();
                let path = path.join(" ");
                Some(Meant::Hint(format!(
                    "`callboard {path}` has no `{wrong}`, but {}; {} has examples",
                    names.join(", "),
                    self.quoted(&format!("help {path}"))
                )))
            }
            ErrorKind::MissingRequiredArgument => self.missing(error),
            ErrorKind::InvalidValue => options::value_meant(
                self,
                &given(ContextKind::InvalidArg)?,
                &given(ContextKind::InvalidValue)?,
            ),
            ErrorKind::TooManyValues => {
                options::without_value(self, &given(ContextKind::InvalidArg)?)
            }
            _ => None,
        }
    }

    /// A word behind a command that takes no more of them.
    fn too_many(&self, wrong: &str) -> Meant {
        let (command, path, count) = self.command(&self.words);
        let (arguments, _) = self.parts(command, &self.words[count..]);
        let text = match path.join(" ").as_str() {
            "tasks" | "status" if is_path(wrong) => ">{command} --scope {1}",
            "tasks" | "status" | "agents" if is_thing(wrong) => ">show {*}",
            "tasks" => ">tasks --search {1..}",
            "agents" => ">show {*}",
            "history" => ">log {*}",
            "discoveries" => ">discoveries --search {1..}",
            "watch" if noun(wrong).is_some() => ">watch",
            "watch" if is_task(wrong) => ">watch --task {1}",
            "watch" => ">watch --of {1}",
            "status" => "`--dir PROJECT/.coordination status` shows another board",
            path => {
                let help = self.quoted(&format!("help {path}"));
                return Meant::Hint(format!(
                    "`callboard {path}` takes no `{wrong}`; {help} has examples"
                ));
            }
        };
        let text = text.replace("{command}", path.first().copied().unwrap_or_default());
        self.meaning(
            &format!("{} {wrong}", self.words[0]),
            &text,
            &[&arguments[..], &self.options(command, count)].concat(),
        )
    }

    fn options(&self, command: &Command, count: usize) -> Vec<String> {
        self.parts(command, &self.words[count..]).1
    }

    /// An argument that the command needs.
    fn missing(&self, error: &clap::Error) -> Option<Meant> {
        let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
            return None;
        };
        let typed = self.words.first()?;
        if let (1, Some((_, text))) =
            (self.words.len(), MISSING.iter().find(|(words, _)| is_one_of(words, typed)))
        {
            return Some(match self.meaning(typed, text, &[]) {
                Meant::Hint(text) => {
                    let told = text.split_once("; ").map_or(text.as_str(), |(_, told)| told);
                    Meant::Hint(told.to_owned())
                }
                line => line,
            });
        }
        let names: Vec<_> = missing.iter().map(|name| bare(name)).collect();
        let (_, path, _) = self.command(&self.words);
        let words: Vec<_> =
            self.words.iter().map(|word| quoted(word)).chain(names.clone()).collect();
        Some(Meant::Hint(format!(
            "{} {} missing: {}; {} has examples",
            names.join(" and "),
            if names.len() == 1 { "is" } else { "are" },
            self.quoted(&words.join(" ")),
            self.quoted(&format!("help {}", path.join(" ")))
        )))
    }
}

/// `50 priority 1`, `50 priority:1` and `50 +urgent`, as options of `edit`.
fn edited(command: &Command, rest: &[String]) -> Option<Vec<String>> {
    let is_own = |name: &str| {
        name.len() > 2 && command.get_arguments().any(|one| one.get_long() == Some(name))
    };
    if let [name, task, value, more @ ..] = rest
        && is_own(&name.to_lowercase())
        && !is_option(task)
    {
        let option = format!("--{}", name.to_lowercase());
        return Some([vec![task.clone(), option, value.clone()], more.to_vec()].concat());
    }
    let place = rest.iter().skip(1).take_while(|word| !is_option(word)).position(|word| {
        let name = word.split([':', '=']).next().unwrap_or_default();
        is_own(&name.to_lowercase()) || word.len() > 1 && word.starts_with('+')
    })? + 1;
    let mut words = rest[..place].to_vec();
    if let Some(tag) = rest[place].strip_prefix('+') {
        words.extend([strings(&["--tag", tag]), rest[place + 1..].to_vec()].concat());
        return Some(words);
    }
    if let Some((name, value)) = rest[place].split_once([':', '=']) {
        words.extend(
            [
                vec![format!("--{}", name.to_lowercase()), value.to_owned()],
                rest[place + 1..].to_vec(),
            ]
            .concat(),
        );
        return Some(words);
    }
    words.push(format!("--{}", rest[place].to_lowercase()));
    let value: Vec<_> =
        rest[place + 1..].iter().take_while(|word| !is_option(word)).cloned().collect();
    words.push(value.join(" "));
    words.extend(rest[place + 1 + value.len()..].iter().cloned());
    Some(words)
}

/// The name of an argument as usage has it, without its brackets and dots.
fn bare(name: &str) -> String {
    let bare = name.trim_end_matches("...").replace(['<', '>', '[', ']'], "");
    bare.split('|').next().unwrap_or_default().to_owned()
}

/// Words as a shell takes them. Names of arguments in capitals stay.
fn in_shell(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word of a template with the arguments in it: none, one or several words.
fn filled(word: &str, arguments: &[String], is_run: bool) -> Vec<String> {
    let Some((lead, inner)) = word.split_once('{') else { return vec![word.to_owned()] };
    let inner = inner.trim_end_matches('}');
    let (which, name) = inner.split_once(':').unwrap_or((inner, ""));
    let from =
        which.trim_end_matches("..").parse::<usize>().map_or(0, |number| number.saturating_sub(1));
    let found = arguments.get(from..).unwrap_or_default();
    let found: Vec<String> = match which {
        "*" => found.to_vec(),
        _ if which.ends_with("..") && !found.is_empty() => vec![found.join(" ")],
        _ => found.iter().take(1).cloned().collect(),
    };
    if found.is_empty() && !is_run && !name.is_empty() {
        return vec![format!("{lead}{name}")];
    }
    found.into_iter().map(|word| format!("{lead}{word}")).collect()
}

/// The one of these names that is nearest to what was typed, if it is a slip of the finger away.
fn nearest<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let typed = typed.to_lowercase();
    let most = if typed.chars().count() > 5 { 2 } else { 1 };
    let found = names.map(|name| (strsim::osa_distance(&typed, name), name));
    let near = found.filter(|(distance, name)| {
        let has_same_start = name.chars().next() == typed.chars().next();
        *distance <= most && name.len() > 2 && (has_same_start || *distance == 1)
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

#[cfg(test)]
mod tests;
