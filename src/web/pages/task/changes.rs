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
    lines: Vec<&'d str>,
    plus: usize,
    minus: usize,
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

pub(super) fn section(task: &Task, diff: &Diff) -> Markup {
    html! {
        section #changes aria-labelledby="changes-title" {
            @match diff {
                Diff::Change(change) => {
                    (heading("changes-title", "Changes", None, &change.what))
                    (files(&change.text, task.id.as_str()))
                }
                Diff::Nothing(why) => {
                    (heading("changes-title", "Changes", None, ""))
                    p.empty { (why) }
                }
            }
        }
    }
}

fn files(text: &str, id: &str) -> Markup {
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
        @for (file, shown) in files.iter().zip(rooms(&files)) { (one(file, shown, files.len() <= OPEN)) }
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

fn one(file: &File<'_>, shown: usize, is_open: bool) -> Markup {
    html! {
        details.diff open[is_open] {
            summary { span.mono { (file.name) } " " (counts(file.plus, file.minus)) }
            pre tabindex="0" { @for text in &file.lines[..shown] { (line(text)) } }
            @if shown < file.lines.len() { p.row.note { (file.lines.len() - shown) " more lines" } }
        }
    }
}

fn line(text: &str) -> Markup {
    html! {
        @match text.as_bytes().first() {
            Some(b'+') => ins { (text) },
            Some(b'-') => del { (text) },
            Some(b'@') => span.at { (text) },
            _ => span { (text) },
        }
    }
}

/// The files of a diff as git writes it. Lines before the first hunk of a file say only its name.
fn parsed(text: &str) -> Vec<File<'_>> {
    let mut files: Vec<File<'_>> = Vec::new();
    let mut in_hunk = false;
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let name = names.rsplit_once(" b/").map_or(names, |(_, name)| name);
            files.push(File { name, lines: Vec::new(), plus: 0, minus: 0 });
            in_hunk = false;
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        in_hunk |= line.starts_with("@@");
        if in_hunk || line.starts_with("Binary files") || line.starts_with("rename") {
            file.plus += usize::from(in_hunk && line.starts_with('+'));
            file.minus += usize::from(in_hunk && line.starts_with('-'));
            file.lines.push(line);
        }
    }
    files
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
}
