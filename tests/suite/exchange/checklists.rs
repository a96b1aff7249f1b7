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

#[test]
fn boxes_in_code_are_no_tasks() {
    for (format, path) in OF_TOOLS {
        let board = Board::new();
        let code =
            "~~~\n- [ ] 9.1 Code\n```\n- [ ] 9.2 Code\n~~~\n\n```\n~~~\n- [ ] 9.3 Code\n```\n";
        write(&board, path, &list(format, code));
        reply(&board, &["import", format, path]);
        let titles = board.cli_ok("get_all_tasks", json!({}))["tasks"].to_string();
        assert!(titles.contains("First") && !titles.contains("Code"), "{format}: {titles}");
    }
}

#[test]
fn text_below_a_task_describes_it_and_unknown_marks_are_named() {
    for (format, path) in OF_TOOLS {
        let board = Board::new();
        let first = if format == "spec-kit" { "T001" } else { "1.1" };
        write(
            &board,
            path,
            &list(format, "  Mind the gap\n  and the step\n- [~] Half\n\nAt the margin.\n"),
        );
        let reply = reply(&board, &["import", format, path]);
        let said = by_source(&board, first)["description"].as_str().unwrap().to_owned();
        assert!(said.contains("Mind the gap") && said.contains("and the step"), "{format}: {said}");
        assert_eq!(reply["report"]["statuses"]["[~] is available"], 1, "{format}: {reply:#}");
        assert!(statuses(&board).iter().all(|(_, status)| status == "available"));
    }
}
