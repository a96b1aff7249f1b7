//! Checklists of tools that plan in Markdown: what stands in them beside the boxes.

use serde_json::json;

use super::{by_source, reply, statuses, write};
use crate::harness::Board;

const OF_TOOLS: [(&str, &str); 3] = [
    ("openspec", "openspec/changes/x/tasks.md"),
    ("spec-kit", "specs/001-x/tasks.md"),
    ("kiro", ".kiro/specs/x/tasks.md"),
];

/// A checklist in which only spec-kit needs ids.
fn list(format: &str, entries: &str) -> String {
    let first = if format == "spec-kit" { "- [ ] T001 First\n" } else { "- [ ] 1.1 First\n" };
    format!("# Tasks\n\n## 1. Group\n\n{first}{entries}")
}

#[test]
fn a_thousand_equal_entries_are_tasks_each() {
    for (format, path) in OF_TOOLS {
        let board = Board::new();
        write(&board, path, &list(format, &"- [ ] Same\n".repeat(1_500)));
        let reply = reply(&board, &["import", format, path]);
        assert!(reply["items"].as_u64() >= Some(1_501), "{format}: {reply:#.300}");
    }
}

