//! Rules for the source that no compiler checks.

mod circles;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const LONGEST_FILE: usize = 950;
const LONGEST_README: usize = 150;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Name and text of every Rust file below `dir`.
fn sources(dir: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![root().join(dir)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn all_sources() -> Vec<(String, String)> {
    ["src", "tests", "examples"].into_iter().flat_map(sources).collect()
}

/// `file:line: text` of each line that has one of `words`.
fn lines_with(words: &[&str], sources: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in sources {
        for (index, line) in text.lines().enumerate() {
            if words.iter().any(|word| has_word(line, word)) {
                found.push(format!("{name}:{}: {}", index + 1, line.trim()));
            }
        }
    }
    found
}

/// Whether `word` is in `line`, and not only as part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let inside =
        |c: Option<char>, edge: Option<char>| c.is_some_and(is_name) && edge.is_some_and(is_name);
    line.match_indices(word).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + word.len()..]);
        !inside(before.chars().next_back(), word.chars().next())
            && !inside(after.chars().next(), word.chars().last())
    })
}

/// Modules of this crate that a file names by `crate::…`.
fn modules_named(text: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for (start, path) in text.match_indices("crate::") {
        if text[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &text[start + path.len()..];
        match rest.strip_prefix('{') {
            Some(group) => modules.extend(members(group)),
            None => modules.extend(first_name(rest)),
        }
    }
    modules
}

/// First names of the paths in a `{…}` group, without its opening brace.
fn members(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = vec![String::new()];
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(String::new()),
            _ if depth == 0 => names.last_mut().unwrap().push(c),
            _ => {}
        }
    }
    names.iter().filter_map(|path| first_name(path.trim_start())).collect()
}

fn first_name(path: &str) -> Option<String> {
    let name: String = path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

#[test]
fn the_core_does_no_input_or_output_and_reads_no_clock() {
    let words =
        ["tokio", "std::fs", "fs_err", "std::net", "std::env", "async fn", "Instant", "SystemTime"];
    let core = sources("src/state");
    assert!(core.len() > 5, "where is the core?");
    let found = lines_with(&words, &core);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn imports_go_one_way() {
    let shell = [
        "bom",
        "clock",
        "config",
        "failpoint",
        "filesystem",
        "git",
        "harmless",
        "location",
        "memory",
        "private",
        "redact",
        "sealed",
        "signal",
        "strict",
        "worktree",
    ];
    let rules: [(&str, Vec<&str>); 19] = [
        ("state", vec![]),
        ("view", vec!["state", "harmless"]),
        ("ui", vec!["state", "view", "ops", "harmless", "failpoint"]),
        ("plan", vec!["state", "bom", "harmless", "redact"]),
        ("exchange", vec!["state", "plan"]),
        ("ops", vec!["state", "view", "plan", "harmless", "redact", "strict"]),
        ("journal", [&["state"], &shell[..]].concat()),
        ("statefile", [&["state"], &shell[..]].concat()),
        ("snapshot", [&["state"], &shell[..]].concat()),
        ("bundle", [&["state"], &shell[..]].concat()),
        ("artifact", [&["state"], &shell[..]].concat()),
        (
            "participant",
            [
                &["state", "ops", "journal", "statefile", "snapshot", "bundle", "artifact"],
                &shell[..],
            ]
            .concat(),
        ),
        ("board", [&["state", "ops", "statefile", "participant"], &shell[..]].concat()),
        ("mcp", [&["state", "ops", "participant"], &shell[..]].concat()),
        ("notify", [&["state", "ops", "participant"], &shell[..]].concat()),
        ("user", vec!["notify", "state", "config"]),
        ("rpc", [&["state", "ops", "participant"], &shell[..]].concat()),
        ("web", [&["state", "view", "ops", "participant"], &shell[..]].concat()),
        ("http", [&["state", "ops", "participant", "mcp", "rpc", "web"], &shell[..]].concat()),
    ];
    let mut wrong = Vec::new();
    for (layer, allowed) in &rules {
        for (name, text) in sources("src").iter().filter(|(name, _)| is_of(name, layer)) {
            let others = modules_named(text);
            let bad =
                others.iter().filter(|other| other != layer && !allowed.contains(&other.as_str()));
            wrong.extend(bad.map(|other| format!("{name} imports {other}")));
        }
    }
    for (name, text) in
        sources("src").iter().filter(|(name, _)| shell.iter().any(|module| is_of(name, module)))
    {
        let bad = modules_named(text)
            .into_iter()
            .filter(|other| other != "state" && !shell.contains(&other.as_str()));
        wrong.extend(bad.map(|other| format!("{name} imports {other}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn is_of(file: &str, module: &str) -> bool {
    file.starts_with(&format!("src/{module}/")) || file == format!("src/{module}.rs")
}

#[test]
fn modules_are_read_from_every_form_of_import() {
    let text = "use crate::state::{State, id};\nuse crate::{config, journal::{self, sqlite}};\nlet x = crate::ops::all();";
    let found: Vec<_> = modules_named(text).into_iter().collect();
    assert_eq!(found, ["config", "journal", "ops", "state"]);
}

#[test]
fn nothing_is_silenced_or_left_open() {
    // Composed, so that this file itself contains none of them.
    let words =
        [["#[all", "ow("], ["#![all", "ow("], ["to", "do!"], ["unimplem", "ented!"], ["db", "g!"]];
    let words = words.map(|parts| parts.concat());
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let found = lines_with(&words, &all_sources());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_file_is_too_long() {
    let sizes = sources("src").into_iter().map(|(name, text)| (name, text.lines().count()));
    let long: Vec<_> = sizes.filter(|(_, lines)| *lines > LONGEST_FILE).collect();
    assert!(long.is_empty(), "over {LONGEST_FILE} lines: {long:?}");
    let readme = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(readme <= LONGEST_README, "README.md has {readme} lines of {LONGEST_README}");
}
