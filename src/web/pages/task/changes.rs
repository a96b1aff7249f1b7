//! What the work on a task changed, as git says it.

use maud::{Markup, html};

use super::Sheet;
use crate::git::change::Diff;
use crate::state::task::Task;
use crate::web::parts::{command, heading, task_href};

/// Most lines that are shown of all files, and most files of which all are open at first.
const LINES: usize = 3_000;
const OPEN: usize = 20;

/// One file of a diff.
struct File<'d> {
    name: &'d str,
    lines: Vec<Line<'d>>,
    plus: usize,
    minus: usize,
}

/// One line, with its number in the new file, or in the old one if it is not in the new.
struct Line<'d> {
    text: &'d str,
    number: Option<usize>,
}

/// Stands for the changes until the page has them: git is asked once, and not at every event.
pub(super) fn waiting(sheet: &Sheet) -> Markup {
    let address = format!("{}/diff", task_href(sheet.task.id.as_str()));
    html! {
        section #changes aria-labelledby="changes-title" data-load=(address) {
            (heading("changes-title", "Changes", None, ""))
            p.note { a href=(address) { "Show what its work changed" } }
        }
    }
}

/// `is_reviewed` says whether there is a field for what to do better, which lines can be named in.
pub(super) fn section(task: &Task, diff: &Diff, is_reviewed: bool) -> Markup {
    html! {
        section #changes aria-labelledby="changes-title" {
            @match diff {
                Diff::Change(change) => {
                    (heading("changes-title", "Changes", None, &change.what))
                    (files(&change.text, task.id.as_str(), is_reviewed))
                }
                Diff::Nothing(why) => {
                    (heading("changes-title", "Changes", None, ""))
                    p.empty { (why) }
                }
            }
        }
    }
}

fn files(text: &str, id: &str, is_reviewed: bool) -> Markup {
    let files = parsed(text);
    let sum = |of: fn(&File<'_>) -> usize| files.iter().map(of).sum::<usize>();
    let is_whole = sum(|file| file.lines.len()) <= LINES;
    html! {
        @if files.is_empty() { p.empty { "Nothing is changed." } }
        @else {
            p.status {
                span { (files.len()) @if files.len() == 1 { " file" } @else { " files" } }
                (counts(sum(|file| file.plus), sum(|file| file.minus)))
            }
        }
        @for (file, shown) in files.iter().zip(rooms(&files)) {
            (one(file, shown, files.len() <= OPEN, is_reviewed))
        }
        @if !is_whole { (command(&format!("callboard diff {id} | less"))) }
    }
}

fn counts(plus: usize, minus: usize) -> Markup {
    html! { span.mono { span.plus { "+" (plus) } " " span.minus { "−" (minus) } } }
}

/// How many lines are shown of each file.
fn rooms(files: &[File<'_>]) -> Vec<usize> {
    let mut room = LINES;
    let shown = |file: &File<'_>| {
        let shown = file.lines.len().min(room);
        room -= shown;
        shown
    };
    files.iter().map(shown).collect()
}

fn one(file: &File<'_>, shown: usize, is_open: bool, is_reviewed: bool) -> Markup {
    html! {
        details.diff open[is_open] {
            summary { span.mono { (file.name) } " " (counts(file.plus, file.minus)) }
            pre tabindex="0" { @for one in &file.lines[..shown] { (line(file, one, is_reviewed)) } }
            @if shown < file.lines.len() { p.row.note { (file.lines.len() - shown) " more lines" } }
        }
    }
}

fn line(file: &File<'_>, line: &Line<'_>, is_reviewed: bool) -> Markup {
    let text = line.text;
    let number = number(file, line, is_reviewed);
    html! {
        @match text.as_bytes().first() {
            Some(b'+') => ins { (number) (text) },
            Some(b'-') => del { (number) (text) },
            Some(b'@') => span.at { (text) },
            _ => span { (number) (text) },
        }
    }
}

/// The number of a line. A click on it writes the place into the field `reason`; without a script it
/// leads there.
fn number(file: &File<'_>, line: &Line<'_>, is_reviewed: bool) -> Markup {
    let removed = if line.text.starts_with('-') { " (removed)" } else { "" };
    html! {
        @match line.number {
            Some(number) if is_reviewed => {
                // Not in the order of Tab: there may be thousands, and what is written can be typed.
                a.at-line href="#reason" tabindex="-1" data-line={ (file.name) ":" (number) (removed) } { (number) }
            },
            Some(number) => span.at-line { (number) },
            None => span.at-line {},
        }
    }
}

/// The files of a diff as git writes it. Lines before the first hunk of a file say only its name.
fn parsed(text: &str) -> Vec<File<'_>> {
    let mut files: Vec<File<'_>> = Vec::new();
    let mut places = None;
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let name = names.rsplit_once(" b/").map_or(names, |(_, name)| name);
            files.push(File { name, lines: Vec::new(), plus: 0, minus: 0 });
            places = None;
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if line.starts_with("@@") {
            places = Some(begun(line));
            file.lines.push(Line { text: line, number: None });
        } else if let Some(places) = &mut places {
            file.plus += usize::from(line.starts_with('+'));
            file.minus += usize::from(line.starts_with('-'));
            file.lines.push(Line { text: line, number: numbered(line, places) });
        } else if line.starts_with("Binary files") || line.starts_with("rename") {
            file.lines.push(Line { text: line, number: None });
        }
    }
    files
}

/// The first line of a hunk in the old file and in the new, of `@@ -1,2 +3,4 @@`.
fn begun(head: &str) -> (usize, usize) {
    let place = |sign: char| {
        let word = head.split(' ').find_map(|word| word.strip_prefix(sign))?;
        word.split(',').next()?.parse().ok()
    };
    (place('-').unwrap_or_default(), place('+').unwrap_or_default())
}

/// The number of a line of a hunk, whose place in both files is moved on.
fn numbered(line: &str, (old, new): &mut (usize, usize)) -> Option<usize> {
    let sign = line.as_bytes().first();
    if sign == Some(&b'\\') {
        return None;
    }
    let number = if sign == Some(&b'-') { *old } else { *new };
    *old += usize::from(sign != Some(&b'+'));
    *new += usize::from(sign != Some(&b'-'));
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_diff_are_counted() {
        let text = "diff --git a/src/a b.rs b/src/a b.rs\nindex 1..2 100644\n--- a/src/a b.rs\n+++ b/src/a b.rs\n@@ -1,2 +1,3 @@ fn\n one\n-two\n+2\n+++ no header\ndiff --git a/x b/y\nrename from x\nrename to y\ndiff --git a/p.png b/p.png\nBinary files a/p.png and b/p.png differ\n";
        let told: Vec<_> = parsed(text)
            .iter()
            .map(|file| (file.name, file.plus, file.minus, file.lines.len()))
            .collect();
        assert_eq!(told, [("src/a b.rs", 2, 1, 5), ("y", 0, 0, 2), ("p.png", 0, 0, 1)]);
        assert!(parsed("").is_empty());
        assert!(parsed("no diff at all\n+x").is_empty());
    }

    #[test]
    fn lines_have_the_numbers_of_the_file_that_has_them() {
        let text = "diff --git a/x b/x\n@@ -7,4 +7,4 @@ fn\n one\n-two\n-three\n+2\n+3\n four\n\\ No newline\n@@ -40 +41,2 @@\n+new\n\nlast\n";
        let files = parsed(text);
        let numbers: Vec<_> = files[0].lines.iter().map(|line| line.number).collect();
        let expected =
            [0, 7, 8, 9, 8, 9, 10, 0, 0, 41, 42, 43].map(|one| Some(one).filter(|one| *one > 0));
        assert_eq!(numbers, expected);
        let shown = |is_reviewed| one(&files[0], 12, true, is_reviewed).into_string();
        assert!(shown(true).contains(r#"data-line="x:8 (removed)""#), "{}", shown(true));
        assert!(shown(true).contains(r#"data-line="x:8">8</a>+2"#), "{}", shown(true));
        assert!(!shown(false).contains("data-line"), "{}", shown(false));
    }
}
