//! What a person reads, on narrow terminals: no line is wider than the terminal, and no word is
//! broken.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use unicode_width::UnicodeWidthStr;

use crate::harness::{available, example_program};
use crate::people::Running;

const COMMANDS: [&str; 18] = [
    "status",
    "status --all",
    "tasks",
    "tasks --blocked",
    "tree",
    "tree 28",
    "agents",
    "log",
    "log claude-2",
    "history",
    "show 12",
    "show claude-2",
    "explain 26",
    "explain 12",
    "results",
    "results 11",
    "report",
    "runs",
];
const WIDTHS: [usize; 3] = [40, 60, 80];
/// What lists say that do not fit, and words beside numbers of minutes, which change.
const MORE: &str = " of (the first all: callboard status --all) --all tasks --ready --blocked more: \
     just now now, now: s min h ago ago, ago: ago;";
/// Wide enough for everything in one line.
const WIDE: usize = 5_000;

/// A lively board in a directory of its own, with one more task.
fn lively() -> TempDir {
    let home = TempDir::new().unwrap();
    let made = Command::new(example_program("scene")).arg(home.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let add = "add 'Lasting: weigh the parser against its predecessors and write down what was gained by \
               the change, in the end'";
    assert!(terminal(home.path(), WIDE, add).output().unwrap().status.success());
    home
}

/// `callboard …` on a terminal with so many columns.
fn terminal(home: &Path, columns: usize, line: &str) -> Command {
    let own = env!("CARGO_BIN_EXE_callboard");
    let typed = format!("stty cols {columns} rows 24; exec '{own}' --color never {line}");
    let mut command = Command::new("script");
    command
        .args(["-qec", &typed, "/dev/null"])
        .env("HOME", home.join("nobody"))
        .env("TERM", "xterm")
        .env_remove("COORDINATION_DIR")
        .env_remove("COLUMNS")
        .current_dir(home)
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn shown(home: &Path, columns: usize, line: &str) -> String {
    let output = terminal(home, columns, line).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap().replace('\r', "");
    assert!(output.status.success(), "{line}: {text}");
    text
}

/// Words that do not change from one second to the next.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_of_time = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    let is_bar = |word: &str| word.bytes().all(|byte| b"#-[]".contains(&byte));
    text.split_whitespace().filter(move |word| !is_of_time(word) && !is_bar(word))
}

/// Whether the word is a whole one, or one that says itself that it was cut.
fn is_whole(word: &str, known: &BTreeSet<&str>) -> bool {
    match word.strip_suffix('…') {
        Some(cut) => known.iter().any(|known| known.starts_with(cut)),
        None => known.contains(word),
    }
}

/// What is wrong with the text for a terminal of so many columns.
fn faults(text: &str, columns: usize, wide: &str) -> Vec<String> {
    let known: BTreeSet<&str> = wide.split_whitespace().collect();
    let is_over = |line: &&str| UnicodeWidthStr::width(*line) > columns;
    let over = text.lines().filter(is_over).map(|line| format!("too wide: {line:?}"));
    let broken = words(text).filter(|word| !is_whole(word, &known));
    over.chain(broken.map(|word| format!("broken: {word:?}"))).collect()
}

fn has_script() -> bool {
    let error = Command::new("script").arg("--version").output().err();
    available("script", error.map(|error| error.to_string()).as_deref())
}

#[test]
fn no_line_runs_over_a_narrow_terminal_and_no_word_is_broken() {
    if !has_script() {
        return;
    }
    let home = lively();
    let mut found = Vec::new();
    for line in COMMANDS {
        // Lists that do not fit name the command that has all.
        let wide = shown(home.path(), WIDE, line) + MORE;
        for columns in WIDTHS {
            let text = shown(home.path(), columns, line);
            let faults = faults(&text, columns, &wide);
            if !faults.is_empty() {
                found.push(format!("{line} at {columns}: {}\n{text}", faults.join("\n  ")));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_event_that_is_watched_runs_over_a_narrow_terminal() {
    if !has_script() {
        return;
    }
    let home = lively();
    let watched = |columns: usize| {
        let watch = Running::start(&mut terminal(home.path(), columns, "watch --since 0"));
        let mut text = String::new();
        while !text.contains("Lasting:") {
            // What says that it waits is wiped away before the first event.
            let line = watch.line();
            text.push_str(
                line.rsplit("\u{1b}[2K").next().unwrap_or_default().trim_end_matches('\r'),
            );
            text.push('\n');
        }
        text
    };
    let wide = watched(WIDE);
    for columns in WIDTHS {
        let text = watched(columns);
        assert_eq!(faults(&text, columns, &wide), Vec::<String>::new(), "at {columns}:\n{text}");
    }
}
