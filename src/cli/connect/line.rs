//! Command lines of callboard itself, as clients' configurations hold them.

use std::path::Path;

use anyhow::Context;
use clap::ArgMatches;

use super::super::command;

/// Options that `connect` decides in a command line. All others in it are the user's, and stay.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub agent: Choice<'a>,
    /// Directory of the board, if it was named.
    pub dir: Option<&'a Path>,
}

/// What becomes of `--agent` in a command line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice<'a> {
    /// It stays as it is.
    Kept,
    Named(&'a str),
    /// It is removed.
    Dropped,
}

impl Line<'_> {
    /// The words after the program's name: the subcommand `path` and its options, including those
    /// of `before` if that runs the same subcommand.
    pub(super) fn words(&self, path: &[&str], before: &[String]) -> anyhow::Result<Vec<String>> {
        let owned =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let decided = |option: &[String]| match option[0].split('=').next() {
            Some("--dir") => true,
            Some("--agent") => self.agent != Choice::Kept,
            _ => false,
        };
        let mut words = owned(path);
        if let Choice::Named(agent) = self.agent {
            words.extend(owned(&["--agent", agent]));
        }
        let kept =
            options(before, path).unwrap_or_default().into_iter().filter(|option| !decided(option));
        words.extend(kept.flatten());
        if let Some(dir) = self.dir {
            let dir = std::path::absolute(dir).context("cannot resolve --dir")?;
            words.extend(["--dir".to_owned(), text(&dir)?]);
        }
        Ok(words)
    }
}

pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| {
        format!("the path {} is not UTF-8 and cannot be written to a configuration", path.display())
    })
}

/// Whether the words after `callboard` run the subcommand `path`.
pub(super) fn runs(words: &[String], path: &[&str]) -> bool {
    options(words, path).is_some()
}

/// The options, each with its value; none if the line does not run the subcommand `path` of
/// callboard.
fn options(words: &[String], path: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut root = command();
    let line = ["callboard"].into_iter().chain(words.iter().map(String::as_str));
    let matches = root.try_get_matches_from_mut(line).ok()?;
    if names(&matches) != path {
        return None;
    }
    let below = path.iter().scan(&root, |command, name| {
        *command = command.find_subcommand(name)?;
        Some(*command)
    });
    let known: Vec<_> =
        [&root].into_iter().chain(below).flat_map(clap::Command::get_arguments).collect();
    let takes_value = |word: &str| {
        let mut valued = known.iter().filter(|one| one.get_action().takes_values());
        valued.any(|one| one.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long)))
    };
    let (mut options, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        if word.starts_with('-') {
            let value = if takes_value(word) { words.next() } else { None };
            options.push([word].into_iter().chain(value).cloned().collect());
        }
    }
    Some(options)
}

/// Names of the subcommand and of those below it.
fn names(matches: &ArgMatches) -> Vec<&str> {
    std::iter::successors(matches.subcommand(), |(_, below)| below.subcommand())
        .map(|(name, _)| name)
        .collect()
}

/// The words after `callboard` in a shell command that runs it and does nothing else; `|| true` may
/// follow.
pub(super) fn shell_words(command: &str) -> Option<Vec<String>> {
    let command = command.trim();
    let call = command
        .strip_suffix("true")
        .and_then(|rest| rest.trim_end().strip_suffix("||"))
        .unwrap_or(command);
    let mut words = split(call)?;
    let is_callboard = |program: &String| {
        let assigns = program.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
        !assigns && Path::new(program).file_name().is_some_and(|name| name == "callboard")
    };
    words.first().is_some_and(is_callboard).then(|| words.split_off(1))
}

/// Splits plain words as a shell does; none if a shell would do more than that.
fn split(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        if matches!(c, ' ' | '\t') {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        match c {
            '\'' | '"' => {
                let (quoted, behind) = rest.as_str().split_once(c)?;
                if c == '"' && quoted.contains(['$', '`', '\\', '!']) {
                    return None;
                }
                word.push_str(quoted);
                rest = behind.chars();
            }
            '\\' => word.push(rest.next().filter(|c| *c != '\n')?),
            c if c.is_alphanumeric() || "/._-+@%:,=~".contains(c) => word.push(c),
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}

/// The word quoted for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
