//! Options that people guess: most are one of the command's own under another name.

use clap::Command;

use super::table::{DATES, MOVE, NOTIFY};
use super::words::{forms, is_one_of, is_task, noun, row};
use super::{Line, Meant, in_shell, is_option, nearest, quoted, strings};
use crate::cli::tasks::is_status;

/// Names for the same, some of which are options of commands.
const SAME: &[&str] = &[
    "limit n max max-count count head number lines num first",
    "reason message m comment because why msg note text body",
    "message m reason comment because why msg note text body",
    "note m message comment text reason",
    "all a everything everyone full l",
    "description body desc details text d b content m message",
    "title name subject heading summary rename t",
    "tag label labels tags add-tag add-label add-labels t l",
    "of assignee owner author by user assigned-to holder agent-id assigned u who member actor",
    "after depends depends-on blocked-by needs requires deps dep waits-for dependency dependencies \
     wait-for blocks-on before-it add-dependency",
    "no-depends no-deps no-dependencies clear-depends unblock",
    "priority p prio importance rank",
    "scope path under in phase milestone epic within",
    "path scope place at",
    "search grep query filter contains text find match g regex",
    "status state s st",
    "changed-since since updated-since modified-since after newer",
    "since after from newer start",
    "sort order order-by sort-by orderby",
    "reverse r desc descending backwards",
    "estimate points effort hours",
    "file f files",
    "watch w live follow f refresh",
    "line short oneline one-line porcelain prompt",
    "minutes for duration min",
    "task t task-id issue",
    "agents n j jobs workers parallel concurrency count",
    "kind type event k",
    "verbose v all full",
    "dry-run n simulate what-if check",
    "format f type from as",
    "hint hints tip",
    "permanent final no-retry",
    "request ask question needs-answer",
    "wait timeout block",
    "done ack mark-read dismiss",
    "label name title m message",
    "expires expiry ttl days",
    "role r rights scope",
    "stop kill abort",
    "out o output",
    "utc gmt",
    "agent as actor act-as",
    "cancelled canceled dropped",
    "ask-owner ask polite graceful",
];

/// Options with a meaning of their own: the commands (`*` is any), the names, and what is meant.
///
/// `= WORDS` stands in its place, `-` leaves it out, `--` its value, too, `+` makes the value the
/// last argument and `^` the first; else it is a meaning as in the tables of words.
pub(super) const OWN: &[(&str, &str, &str)] = &[
    (
        "tasks agents tree",
        "w watch live follow f refresh",
        "`status --watch` shows the board anew with each change; `ui` takes keys, too",
    ),
    ("log history", "author of by user agent-id u task t committer who", "+"),
    ("log", "f follow tail w watch stream live", ">watch {*}"),
    ("log", "since from after kind type verbose before", "@history"),
    (
        "log history diff watch results",
        "oneline short pretty graph stat name-only name-status patch p u decorate no-pager tail cached staged format-patch",
        "-",
    ),
    (
        "show edit cancel approve reject retry explain diff log assign start complete",
        "id task-id task issue number",
        "^",
    ),
    ("show tree log history report explain diff", "a all full everything", "-"),
    ("show", "diff d patch changes", ">diff {1}"),
    ("show", "log l history events follow f", ">log {1}"),
    ("show", "result results output", ">results {1}"),
    ("show", "comments messages web browser w", "-"),
    ("status", "s b branch short brief oneline porcelain summary", "= --line"),
    ("status", "v verbose long l full a u", "= --all"),
    ("tasks history watch log", "mine me my assigned-to-me", "= --of human"),
    ("tasks", "unassigned unclaimed next free claimable", "= --ready"),
    ("tasks", "tree-view hierarchy", "= --tree"),
    ("add", "m message text body-text subject", "+"),
    (
        "add",
        "assignee assign assign-to owner agent-name to for of a",
        "`add {1:TEXT}` adds a task; `assign TASK AGENT` then keeps it for an agent",
    ),
    ("add edit", "due deadline start end date by when remind", DATES),
    (
        "add",
        "parent under in phase milestone epic scope of-task",
        "`add {1:TEXT} --path P1.M1.T1` gives a task its place in the plan",
    ),
    ("add", "status state draft ready open", "-"),
    (
        "edit",
        "status state done close closed complete open reopen",
        "the status follows from the work: `done {1:TASK} TEXT`, `approve {1:TASK}`, `retry {1:TASK}`",
    ),
    (
        "edit",
        "assignee assign owner agent-name to of add-assignee a",
        "`assign {1:TASK} AGENT` keeps a task for an agent",
    ),
    ("edit", "parent path move under scope before milestone phase", MOVE),
    (
        "edit",
        "remove-label remove-tag rm-tag untag remove-labels del-tag",
        "`edit {1:TASK} --no-tags --tag TAG` leaves only that tag",
    ),
    (
        "edit",
        "remove-dependency remove-depends rm-depends",
        "`edit {1:TASK} --no-depends --depends OTHER` leaves only that dependency",
    ),
    (
        "edit",
        "add-comment comment note",
        "`send task:{1:TASK} TEXT` tells the agent that holds the task",
    ),
    (
        "complete fail reject send reply answer discoveries/add",
        "m message reason comment body text note output why error result description c d",
        "+",
    ),
    (
        "stop",
        "f force hard kill 9 immediately hard-stop",
        "`stop {1:AGENT} --now` releases the tasks of an agent at once",
    ),
    (
        "stop",
        "a all everyone",
        "`pause` gives nobody a new task; `stop AGENT` asks an agent to stop what it does",
    ),
    ("pause resume", "a all everyone", "-"),
    (
        "approve",
        "a all everything",
        "`approve` lists what waits for review, and the line that accepts it",
    ),
    ("assign", "to t agent-name assignee a user owner", "+"),
    ("assign", "none nobody unassign clear remove open", "-"),
    ("retry", "failed f", "= --all"),
    ("claim", "next any first", "-"),
    (
        "approve retry cancel stop pause resume assign release claim add edit reject undo snapshot/create token/revoke",
        "y yes f force no-confirm assume-yes confirm",
        "-",
    ),
    (
        "undo",
        "list l show history",
        "`history` lists events; `undo` with the number of one takes back what its command changed",
    ),
    ("export", "format f type to as t", "^"),
    ("export import backup", "o output out file target", "+"),
    ("token/add", "admin leader root owner", "= --role leader"),
    ("token/add", "readonly read-only observer viewer read", "= --role observer"),
    ("doctor", "fix f auto-fix heal", "`doctor --repair` repairs what can be repaired"),
    ("notify", "on off desktop slack email webhook enable disable mute sound", NOTIFY),
    ("messages", "unread u new inbox", "-"),
    ("work", "count scale", "= --agents"),
    ("", "v ver", "= --version"),
    ("*", "l long wide la al full-names detailed details", "-"),
    (
        "*",
        "q quiet silent v verbose vv debug no-pager pager no-input non-interactive interactive i batch-mode no-headers no-header table wide human-readable",
        "-",
    ),
    ("*", "no-color no-colour nocolor no-ansi monochrome plain", "= --color never"),
    ("*", "colour colors", "= --color always"),
    (
        "*",
        "C cwd directory project board repo git-dir root workspace chdir work-dir context namespace",
        "`--dir PROJECT/.coordination status` is about the board of another directory",
    ),
    ("*", "j json-output as-json", "= --json"),
    ("*", "?", "= --help"),
    ("*", "url host remote endpoint", "= --server"),
];

/// Names of the option that chooses a form of the output.
const FORMS: &str = "o output format fmt out template t";

/// Whether the option takes a value, by what the command knows.
pub(super) fn takes_value(root: &Command, command: &Command, word: &str) -> bool {
    if word.contains('=') {
        return false;
    }
    let name = word.trim_start_matches('-');
    let mut known = command.get_arguments().chain(root.get_arguments());
    let found = known.find(|one| {
        let is_long = one.get_long() == Some(name)
            || one.get_all_aliases().is_some_and(|all| all.contains(&name));
        let is_short = one.get_short().is_some_and(|short| name == short.to_string());
        if word.starts_with("--") { is_long } else { is_short }
    });
    found.is_some_and(|one| {
        one.get_action().takes_values()
            && one.get_num_args().is_none_or(|range| range.min_values() > 0)
    })
}

/// Values that mean one of the option's own: `-` leaves the option out.
const VALUES: &[(&str, &str, &str)] = &[
    ("sort", "prio p importance rank urgency", "priority"),
    ("sort", "updated modified update recent last activity", "changed"),
    ("sort", "date age new newest id number time added", "created"),
    ("sort", "state", "status"),
    ("sort", "place plan name title", "path"),
    ("status", "all any everything", "-"),
];

/// The line with a value that the option of this usage takes, for one that it does not.
pub(super) fn value_meant(line: &Line<'_>, usage: &str, value: &str) -> Option<Meant> {
    let name = usage.strip_prefix("--")?.split([' ', '=']).next()?;
    let mut all = line.with(line.words.clone());
    let attached = format!("--{name}={value}");
    let at = all.iter().position(|word| word == value || *word == attached)?;
    let lower = value.trim_start_matches('-').to_lowercase();
    let known = VALUES.iter().find(|(of, words, _)| *of == name && is_one_of(words, &lower));
    let spaced = value.replace(' ', "-");
    let new = match known {
        Some((.., new)) => *new,
        None if value.contains(' ') && name == "status" => spaced.as_str(),
        None if name == "sort" && value.starts_with('-') => &lower,
        None => return None,
    };
    let is_attached = all[at] == attached;
    if new == "-" {
        all.drain(if is_attached { at..at + 1 } else { at - 1..at + 1 });
        return Some(Meant::Whole(all));
    }
    all[at] = if is_attached { format!("--{name}={new}") } else { new.to_owned() };
    if name == "sort" && value.starts_with('-') {
        all.insert(at + 1, "--reverse".to_owned());
    }
    Some(Meant::Whole(all))
}

/// The line without the value of an option that takes none.
pub(super) fn without_value(line: &Line<'_>, usage: &str) -> Option<Meant> {
    let mut all = line.with(line.words.clone());
    let name = usage.split([' ', '=']).next()?;
    let lead = format!("{name}=");
    let at = all.iter().position(|word| word.starts_with(&lead))?;
    all[at] = name.to_owned();
    Some(Meant::Whole(all))
}

/// Whether all commands have the option.
pub(super) fn is_known(root: &Command, word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let has = |one: &clap::Arg| {
        one.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long))
            || one.get_short().is_some_and(|short| name == format!("-{short}"))
    };
    root.get_arguments().any(has) || ["-h", "--help", "-V", "--version"].contains(&name)
}

/// An option that the command does not have, where it stands.
struct Wrong<'l, 'c> {
    line: &'l Line<'c>,
    command: &'c Command,
    path: String,
    /// Its place in the words of the whole line, and what stands there.
    at: usize,
    word: String,
    name: String,
    all: Vec<String>,
}

/// What is meant by the option, which the command does not have.
pub(super) fn meant(line: &Line<'_>, wrong: &str) -> Meant {
    let (mut command, mut path, _) = line.command(&line.words);
    let all = line.with(line.words.clone());
    let is_it = |word: &String| {
        word == wrong || word.strip_prefix(wrong).is_some_and(|rest| rest.starts_with('='))
    };
    let exact = all.iter().position(is_it);
    let cluster = || all.iter().position(|word| word.starts_with(wrong));
    let Some(at) = exact.or_else(cluster) else {
        return Meant::Hint(format!("there is no option {wrong}"));
    };
    if at < line.before.len() && !line.words.is_empty() {
        // It stands before the command, so it can only be an option of all of them.
        (command, path) = (line.root, vec!["*"]);
    }
    let name = wrong.trim_start_matches('-').to_owned();
    let wrong = Wrong { line, command, path: path.join("/"), at, word: all[at].clone(), name, all };
    wrong.meant()
}

impl Wrong<'_, '_> {
    fn meant(&self) -> Meant {
        if let Some(letters) = self.cluster() {
            return self.replaced(&letters, false);
        }
        self.alone()
            .or_else(|| self.form())
            .or_else(|| self.number())
            .or_else(|| self.status())
            .or_else(|| self.own())
            .or_else(|| self.same())
            .or_else(|| self.misspelled())
            .unwrap_or_else(|| self.unknown())
    }

    /// The letters of `-la`, an option each; `-n5` in two words; `-json` with its other dash.
    fn cluster(&self) -> Option<Vec<String>> {
        let letters = self.word.strip_prefix('-').filter(|letters| letters.len() > 1)?;
        let (letter, value) = letters.split_at(letters.chars().next().map_or(0, char::len_utf8));
        if letter.bytes().all(|letter| letter.is_ascii_alphabetic())
            && value.bytes().all(|digit| digit.is_ascii_digit())
        {
            return Some(strings(&[&format!("-{letter}"), value]));
        }
        if self.has(letters) {
            return Some(strings(&[&format!("--{letters}")]));
        }
        let are_letters = letters.bytes().all(|letter| letter.is_ascii_alphabetic());
        let is_cluster = !self.word.starts_with("--") && are_letters;
        is_cluster.then(|| letters.chars().map(|letter| format!("-{letter}")).collect())
    }

    fn value(&self) -> Option<&str> {
        let attached = self.word.split_once('=').map(|(_, value)| value);
        let next = || self.all.get(self.at + 1).filter(|next| !is_option(next)).map(String::as_str);
        attached.or_else(next)
    }

    /// The line with these words for the option, and with its value or without.
    fn replaced(&self, by: &[String], drops_value: bool) -> Meant {
        let attached = self.word.split_once('=').map(|(_, value)| value.to_owned());
        let attached = attached.filter(|_| !drops_value);
        let has_next = !self.word.contains('=') && drops_value && self.value().is_some();
        let rest = self.at + 1 + usize::from(has_next);
        let mut words = self.all[..self.at].to_vec();
        words.extend(by.iter().cloned());
        words.extend(attached);
        words.extend(self.all[rest..].iter().cloned());
        Meant::Whole(words)
    }

    /// `callboard --tasks`: a command that is written as an option. Behind it stands `status`, which
    /// was added because there was no command.
    fn alone(&self) -> Option<Meant> {
        let is_last = self.line.words == ["status"] && self.at + 1 == self.line.before.len();
        let root = self.line.root;
        let is_known = root.find_subcommand(&self.name).is_some_and(|one| !one.is_hide_set())
            || noun(&self.name).is_some()
            || row(&self.name).is_some();
        let words = [self.all[..self.at].to_vec(), vec![self.name.clone()]];
        (is_last && is_known && self.name.len() > 2).then(|| Meant::Whole(words.concat()))
    }

    /// `--format json`, where that is no option of the command itself.
    fn form(&self) -> Option<Meant> {
        if ["csv", "yaml", "yml", "xml", "tsv"].contains(&self.name.as_str()) {
            let (csv, path) = (self.line.quoted("export csv"), self.path.replace('/', " "));
            let json = self.line.quoted(&format!("{path} --json"));
            return Some(Meant::Hint(format!("{json} prints JSON; {csv} writes the tasks as CSV")));
        }
        let is_form =
            is_one_of(FORMS, &self.name) && !["export", "add"].contains(&self.path.as_str());
        let form = self.value().filter(|_| is_form)?.to_lowercase();
        match form.as_str() {
            _ if form.starts_with("json") => Some(self.replaced(&strings(&["--json"]), true)),
            "wide" | "table" | "text" | "plain" | "name" | "long" | "short" | "human" => {
                Some(self.replaced(&[], true))
            }
            "yaml" | "yml" | "csv" | "tsv" | "xml" | "html" | "md" | "markdown" => {
                let csv = self.line.quoted("export csv");
                let json = self.line.quoted(&format!("{} --json", self.path.replace('/', " ")));
                Some(Meant::Hint(format!("{json} prints JSON; {csv} writes the tasks as CSV")))
            }
            _ => None,
        }
    }

    /// `-5`.
    fn number(&self) -> Option<Meant> {
        let has_number = self.value().is_some_and(|value| value.parse::<u32>().is_ok());
        if has_number && is_one_of("tail last lines top recent", &self.name) && self.has("limit") {
            return Some(self.replaced(&strings(&["--limit"]), false));
        }
        let is_number =
            self.name.bytes().all(|digit| digit.is_ascii_digit()) && !self.name.is_empty();
        (is_number && self.has("limit"))
            .then(|| self.replaced(&strings(&["--limit", &self.name]), false))
    }

    /// `tasks --done`.
    fn status(&self) -> Option<Meant> {
        let name = self.name.trim_start_matches("only-");
        (self.path == "tasks" && is_status(name))
            .then(|| self.replaced(&strings(&["--status", name]), false))
    }

    fn has(&self, name: &str) -> bool {
        let has = |one: &clap::Arg| {
            one.get_long() == Some(name)
                || one.get_all_aliases().is_some_and(|all| all.contains(&name))
        };
        self.command.get_arguments().any(has)
    }

    fn own(&self) -> Option<Meant> {
        let is_for = |of: &str| of == "*" || of.split(' ').any(|one| one == self.path);
        let is_own = |names: &str| {
            let is_letter = self.name.chars().count() == 1;
            names.split_whitespace().any(|one| one == self.name)
                || !is_letter && is_one_of(names, &self.name)
        };
        let specific = OWN.iter().filter(|(of, ..)| *of != "*");
        let general = OWN
            .iter()
            .filter(|(of, names, _)| *of == "*" && self.same_name().is_none() && !names.is_empty());
        let (_, _, text) =
            specific.chain(general).find(|(of, names, _)| is_for(of) && is_own(names))?;
        Some(match *text {
            "-" => self.replaced(&[], false),
            "--" => self.replaced(&[], true),
            "+" => self.moved(self.all.len()),
            "^" => self.moved(self.all.len() - self.line.words.len() - self.line.behind.len() + 1),
            "@history" => self.as_history(),
            text => match text.strip_prefix("= ") {
                Some(words) => {
                    self.replaced(&strings(&words.split(' ').collect::<Vec<_>>()), false)
                }
                None => self.hint(text),
            },
        })
    }

    /// The line with the option's value as an argument at this place.
    fn moved(&self, to: usize) -> Meant {
        let Some(value) = self.value().map(str::to_owned) else { return self.replaced(&[], false) };
        let behind = self.line.behind.len();
        let Meant::Whole(mut words) = self.replaced(&[], true) else { return self.unknown() };
        words.insert(to.min(words.len() - behind), value);
        Meant::Whole(words)
    }

    fn hint(&self, text: &str) -> Meant {
        let (_, _, count) = self.line.command(&self.line.words);
        let mut rest = self.line.words[count..].to_vec();
        rest.retain(|word| *word != self.word);
        let (arguments, _) = self.line.parts(self.command, &rest);
        match self.line.meaning("", text, &arguments) {
            Meant::Hint(hint) => {
                let hint = hint.split_once("; ").map_or(hint.as_str(), |(_, hint)| hint);
                let path = self.path.replace('/', " ").replace('*', "");
                Meant::Hint(format!(
                    "{} has no option {}; {hint}",
                    quoted_path(&path),
                    self.shown()
                ))
            }
            line => line,
        }
    }

    fn shown(&self) -> &str {
        self.word.split('=').next().unwrap_or_default()
    }

    /// `log 12 --since 2h`: what `history` has and `log` has not.
    fn as_history(&self) -> Meant {
        let (_, _, count) = self.line.command(&self.line.words);
        let mut words = strings(&["history"]);
        for word in &self.line.words[count..] {
            let is_subject = words.last().is_none_or(|last| !is_option(last));
            if is_subject && !is_option(word) {
                words.push(if is_task(word) { "--task" } else { "--of" }.to_owned());
            }
            words.push(match self.name.as_str() {
                _ if word != &self.word || word.contains('=') => word.clone(),
                "kind" | "type" => "--kind".to_owned(),
                "before" | "verbose" => word.clone(),
                _ => "--since".to_owned(),
            });
        }
        Meant::Line(words)
    }

    /// The command's own option of the same meaning.
    fn same_name(&self) -> Option<&'static str> {
        let forms = forms(&self.name);
        let exact = |word: &&str| {
            *word == self.name || self.name.len() > 1 && forms.iter().any(|form| form == word)
        };
        let groups = SAME.iter().filter(|group| group.split_whitespace().any(|word| exact(&word)));
        groups
            .flat_map(|group| group.split_whitespace())
            .find(|name| name.len() > 1 && self.has(name))
    }

    fn same(&self) -> Option<Meant> {
        let name = self.same_name()?;
        let is_flag = !takes_value(self.line.root, self.command, &format!("--{name}"));
        if is_flag && self.all.contains(&format!("--{name}")) {
            return Some(self.replaced(&[], false));
        }
        Some(self.replaced(&strings(&[&format!("--{name}")]), false))
    }

    fn misspelled(&self) -> Option<Meant> {
        let shown = self.command.get_arguments().chain(self.line.root.get_arguments());
        let names = shown.filter_map(clap::Arg::get_long).filter(|name| name.len() > 3);
        let name = nearest(&self.name, names).filter(|_| self.name.len() > 3)?;
        let Meant::Whole(words) = self.replaced(&strings(&[&format!("--{name}")]), false) else {
            return None;
        };
        let line = format!("`callboard {}`", in_shell(&words[1..]));
        Some(Meant::Hint(format!("there is no option {}; did you mean {line}?", self.shown())))
    }

    fn unknown(&self) -> Meant {
        let path = self.path.replace('/', " ");
        let path = if path == "*" { String::new() } else { path };
        let help = self.line.quoted(format!("help {path}").trim_end());
        let of = if path.is_empty() { "callboard".to_owned() } else { quoted_path(&path) };
        Meant::Hint(format!("{of} has no option {}; {help} lists those it has", self.shown()))
    }
}

fn quoted_path(path: &str) -> String {
    let words: Vec<_> = path.split_whitespace().map(quoted).collect();
    format!("`{}`", [vec!["callboard".to_owned()], words].concat().join(" "))
}
