//! Plans as people write them, in `tests/data/plans`: beside each file stands what is read of it.
//! With `CALLBOARD_BLESS=1` the files with what is read are written anew; look at the difference
//! then.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::super::parse;
use crate::state::plan::{Plan, Stated};

fn told(plan: &Plan) -> String {
    let mut text = String::new();
    let mut levels: Vec<usize> = Vec::new();
    let title = |number: usize| &plan.items[number].title;
    for (number, item) in plan.items.iter().enumerate() {
        let level = item.parent.map_or(0, |parent| levels[parent] + 1);
        levels.push(level);
        let mark = match item.status {
            Stated::Open => " ",
            Stated::Done => "x",
            Stated::Failed => "failed",
            Stated::Cancelled => "cancelled",
            Stated::Obsolete => "obsolete",
        };
        write!(text, "{:>3} {}[{mark}] ", item.line, "  ".repeat(level)).unwrap();
        if let Some(path) = &item.path {
            write!(text, "{path} | ").unwrap();
        }
        write!(text, "{}", item.title).unwrap();
        if let Some(priority) = item.priority {
            write!(text, " | priority {priority}").unwrap();
        }
        let order =
            plan.order.iter().filter(|(later, _)| *later == number).map(|(_, before)| before);
        for on in order.chain(&item.waits) {
            write!(text, " | waits for \"{}\"", title(*on)).unwrap();
        }
        for on in &item.depends {
            write!(text, " | waits for {on}, unknown here").unwrap();
        }
        for (name, values) in [("files", &item.files), ("tags", &item.tags)] {
            if !values.is_empty() {
                write!(text, " | {name} {}", values.join(", ")).unwrap();
            }
        }
        if let Some(description) = &item.description {
            write!(text, " | {description:?}").unwrap();
        }
        text.push('\n');
    }
    for skipped in &plan.skipped {
        writeln!(text, "not read: {}: {}", skipped.line, skipped.title).unwrap();
    }
    for remark in &plan.remarks {
        writeln!(text, "said: {}: {}", remark.line, remark.remark).unwrap();
    }
    text
}

#[test]
fn files_that_people_write_are_read_as_they_are_meant() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/plans");
    let mut files: Vec<_> =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension != "read"));
    files.sort();
    let mut wrong = Vec::new();
    for path in &files {
        let text = fs::read_to_string(path).unwrap();
        let read = match parse(&text) {
            Ok(plan) => told(&plan),
            Err(problems) => problems
                .iter()
                .map(|one| format!("refused: {}: {}\n", one.line, one.problem))
                .collect(),
        };
        let expected = path.with_extension("read");
        if std::env::var_os("CALLBOARD_BLESS").is_some() {
            fs::write(&expected, &read).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != read {
            wrong.push(format!("{}:\n{read}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() > 40, "{} files", files.len());
}
