mod files;
mod rewrites;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::state::event::Event;
use crate::state::id::{Chance, ParticipantId};
use crate::state::plan::Given;
use crate::state::task::TaskStatus;
use crate::state::time::Timestamp;
use crate::state::{Envelope, State};

/// Line, path and title of each item, indented by its level.
fn outline(text: &str) -> Vec<String> {
    let plan = parse(text).unwrap_or_else(|problems| panic!("{problems:?}"));
    let mut levels = Vec::new();
    let mut lines = Vec::new();
    for item in &plan.items {
        let level = item.parent.map_or(0, |parent| levels[parent] + 1);
        levels.push(level);
        let path = item.path.as_deref().unwrap_or("-");
        lines.push(format!("{}{} {path} {}", "  ".repeat(level), item.line, item.title));
    }
    lines
}

/// What an item waits for, by title or as it was written.
fn waits(plan: &Plan, item: usize) -> Vec<String> {
    let Item { waits, depends, .. } = &plan.items[item];
    waits.iter().map(|on| plan.items[*on].title.clone()).chain(depends.clone()).collect()
}

fn problems(text: &str) -> Vec<(usize, String)> {
    let problems = parse(text).expect_err("a plan that is wrong");
    problems.into_iter().map(|one| (one.line, one.problem)).collect()
}

const MARKDOWN: &str = "\
# The journal

Some words on it.

## P1: Storage
priority: 2

Everything that is on disk.

### P1.M1 - Journal

- [ ] P1.M1.T1: Append events
  depends: P1.M1.T2, Restart
  files: src/journal/*.rs, `Cargo.toml`

  In one transaction.

  ```rust
  # not a heading
  - [ ] not a box
  ```
  - [x] P1.M1.T1.S1: Write the table
  - [ ] P1.M1.T1.S2: Chain the hashes
    tags: rust, hash
- [ ] P1.M1.T2: Open it
- [ ] Restart

### Milestone two
status: In Progress

* [ ] later

## Notes

Not in the plan.
";

#[test]
fn headings_and_boxes_are_items_where_they_stand() {
    assert_eq!(
        outline(MARKDOWN),
        [
            "5 P1 Storage",
            "  10 P1.M1 Journal",
            "    12 P1.M1.T1 Append events",
            "      22 P1.M1.T1.S1 Write the table",
            "      23 P1.M1.T1.S2 Chain the hashes",
            "    25 P1.M1.T2 Open it",
            "    26 - Restart",
            "  28 P1.M2 Milestone two",
            "    31 - later",
        ]
    );
    let plan = parse(MARKDOWN).expect("a plan");
    assert_eq!(plan.title.as_deref(), Some("The journal"));
    assert_eq!(plan.items[0].priority, Some(2));
    assert_eq!(plan.items[0].description.as_deref(), Some("Everything that is on disk."));
    assert!(
        plan.items.iter().skip(7).all(|item| item.description.is_none()),
        "notes belong to nothing"
    );
    let append = &plan.items[2];
    assert_eq!(waits(&plan, 2), ["Open it", "Restart"]);
    assert_eq!(append.files, ["src/journal/*.rs", "Cargo.toml"]);
    let description = "In one transaction.\n\n```rust\n# not a heading\n- [ ] not a box\n```";
    assert_eq!(append.description.as_deref(), Some(description));
    assert_eq!(
        (plan.items[3].status, plan.items[4].tags.join("+")),
        (Stated::Done, "rust+hash".to_owned())
    );
}

#[test]
fn a_heading_without_a_path_has_what_its_first_part_says() {
    let (state, texts) =
        exported(&parse("## a\n\n- [ ] b\n  - [ ] P2.M3.T1: c\n- [ ] P2.M4: d\n").unwrap())
            .unwrap();
    let paths: Vec<_> = state.tasks().filter_map(|task| task.path.as_deref()).collect();
    assert_eq!(paths, ["P2", "P2.M3", "P2.M3.T1", "P2.M4"]);
    texts.iter().for_each(|text| is_the_same(&state, text, "the plan"));
}

#[test]
fn a_path_that_the_plan_says_is_nobody_elses() {
    let (mut state, _) = exported(&parse("- [ ] b\n").unwrap()).unwrap();
    let imported = replanned(&state, &parse("- [ ] b\n- [ ] P1: a\n").unwrap()).unwrap();
    state.record(imported, &envelope()).unwrap();
    let paths: BTreeSet<_> = state.tasks().filter_map(|task| task.path.as_deref()).collect();
    assert_eq!(paths, BTreeSet::from(["P1", "P2"]));
}

#[test]
fn hints_of_an_older_import_are_not_changed_by_their_spaces() {
    let text = r#"{"items": [{"title": "a", "description": "d", "hints": "one\n\ntwo"}]}"#;
    let plan = parse(text).unwrap();
    let mut state = State::new();
    state
        .record(Event::BoardCreated { board_id: "b".to_owned(), numbered: true }, &envelope())
        .unwrap();
    let mut imported = replanned(&state, &plan).unwrap();
    let Event::PlanImported { created, .. } = &mut imported else { panic!("{imported:?}") };
    let older = serde_json::to_vec(&("d", [""; 0], "one\n\ntwo")).unwrap();
    created[0].planned.as_mut().unwrap().content = sha256(older)[..16].to_owned();
    state.record(imported, &envelope()).unwrap();
    is_the_same(&state, text, "the plan");
}

#[test]
fn escapes_in_json_hide_nothing() {
    let token = ["gh", "p_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    let escaped: String = token.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let plan =
        parse(&format!("- [ ] a\n  tags: [\"{escaped}\", \"\\u001b[31mred\", \"\"]\n")).unwrap();
    assert_eq!(plan.items[0].tags, ["[redacted: github token]", "red"]);
    let item = format!(
        "{{\"title\": \"a\", \"files\": [\"src/{escaped}\"], \"depends\": [\"{escaped}\"]}}"
    );
    let plan =
        parse(&format!("{{\"title\": \"\\u001b[31m{escaped}\", \"items\": [{item}]}}")).unwrap();
    let Item { files, depends, .. } = &plan.items[0];
    for text in [plan.title.as_ref().unwrap(), &files[0], &depends[0]] {
        assert!(text.contains("[redacted: github token]") && !text.contains('\u{1b}'), "{text}");
    }
    let misspelt = problems(&format!("{{\"items\": [], \"{escaped}\": 1}}"));
    assert!(!misspelt[0].1.contains(&token), "{misspelt:?}");
    let long = format!("{{\"title\": \"{}\", \"items\": [{{\"title\": \"a\"}}]}}", "x".repeat(201));
    assert_eq!(
        problems(&long),
        [(1, "title is over its limit: 201 bytes, at most 200".to_owned())]
    );
}

#[test]
fn box_in_a_quotation_is_an_item() {
    assert_eq!(outline("- [ ] a\n\n> - [ ] b\n> - c\n"), ["1 - a", "3 - b"]);
}

#[test]
fn heading_in_a_quotation_or_an_entry_is_text() {
    let quoted = "# Plan\n\n## Parse\n\nWords.\n\n> ### Note\n\n## Print\n\n## Ship\n";
    assert_eq!(outline(quoted), ["3 - Parse", "9 - Print", "11 - Ship"]);
    let plan = parse(quoted).unwrap();
    assert_eq!(plan.items[0].description.as_deref(), Some("Words.\n\n> ### Note"));
    let inside = "> # Before\n\n# Plan\n\n## Parse\n\n- [ ] words\n\n  ### Notes\n\n  Short ones.\n\n## Print\n\n- [ ] tree\n";
    assert_eq!(outline(inside), ["5 - Parse", "  7 - words", "13 - Print", "  15 - tree"]);
    let plan = parse(inside).unwrap();
    assert_eq!((plan.title.as_deref(), plan.skipped.len()), (Some("Plan"), 0));
    assert_eq!(plan.items[1].description.as_deref(), Some("### Notes\n\nShort ones."));
}

#[test]
fn brackets_of_a_list_are_a_pair_and_those_of_a_name_stay() {
    let cases: [(&str, &[&str]); 10] = [
        ("app/blog/[slug], src/*.[ch]", &["app/blog/[slug]", "src/*.[ch]"]),
        ("app/blog/[slug]", &["app/blog/[slug]"]),
        ("[slug]/page.tsx", &["[slug]/page.tsx"]),
        ("[id]/[name]", &["[id]/[name]"]),
        ("[Makefile]", &["Makefile"]),
        ("[\"[id]\"]", &["[id]"]),
        ("[a, b]", &["a", "b"]),
        ("[a, src/[id]]", &["a", "src/[id]"]),
        ("[src/a.rs]", &["src/a.rs"]),
        ("[`Cargo.toml`]", &["Cargo.toml"]),
    ];
    for (text, expected) in cases {
        assert_eq!(files(text), expected, "{text}");
    }
    assert_eq!(
        (list("[Parse]"), list("[]"), list("[a], [b]")),
        (vec!["Parse".into()], vec![], vec!["[a]".into(), "[b]".into()])
    );
}

#[test]
fn front_matter_is_no_part_of_the_plan() {
    let front = "---\ntitle: \"x\"\ntags:\n  - [ ] y\n---\n";
    let commented = "---\n# by hand\na: b\n\n# more\nc: d\n---\n";
    for (before, lines) in
        [("", 0), ("\u{feff}", 0), (front, 5), ("---\na: b\n...\n", 3), (commented, 7)]
    {
        let text = format!("{before}# My project\n\n## Set up\n\n## Write\n");
        assert_eq!(
            outline(&text),
            [format!("{} - Set up", lines + 3), format!("{} - Write", lines + 5)],
            "{text}"
        );
        assert_eq!(parse(&text).unwrap().title.as_deref(), Some("My project"));
    }
    // These are rules, with no YAML between them.
    let ruled = "---\n## One: a\n\n---\n\n## Two\n\n---\nlast: words\n\n---\n\n## Three\n";
    assert_eq!(outline(ruled), ["2 - One: a", "6 - Two", "13 - Three"]);
}

#[test]
fn stars_are_of_the_name_or_of_the_value() {
    for (line, expected) in [
        ("files:**/*.rs", "**/*.rs"),
        ("files: **/*.rs", "**/*.rs"),
        ("**files:** **/*.rs", "**/*.rs"),
        ("**Files**:*.rs", "*.rs"),
        ("*files:* a.rs", "a.rs"),
    ] {
        assert_eq!(
            parse(&format!("- [ ] a\n  {line}\n")).unwrap().items[0].files,
            [expected],
            "{line}"
        );
    }
}

#[test]
fn what_an_item_depends_on_may_be_a_list() {
    let cases = [
        "- [ ] Build\n  - depends: Set up, Test, too\n  - priority: 1\n",
        "- [ ] Build\n  - **Depends on:** Set up\n    - priority: no field of the item\n  - `dependencies: x` is code\n  - dependency: Test, too\n",
        "- [ ] Build\n  depends:\n  - Set up\n  - `Test, too`\n",
        "- [ ] Build\n\n  Words.\n  Depends on:\n\n  1. Set up\n\n  2. Test,\n     too\n",
        "- [ ] Build\n  - Depends on:\n    - Set up\n    - Test, too\n    - None\n",
        "- [ ] Build\n  depends: Set up,\n    Test, too\n  priority: 1\n",
        "- [ ] Build\n  Dependencies: [Set up,\n  Test, too]\n",
        "## Build\n\ndepends:\n- Set up\n- Test, too\n",
        "## Build\n\n- depends: Set up,\n  - Test, too\n",
        "## Build\n\n- depends: Set up, Test, too\n- [ ] all\n",
    ];
    for case in cases {
        let plan = parse(&format!("{case}\n## Others\n\n- [ ] Set up\n- [ ] Test, too\n")).unwrap();
        let depends = waits(&plan, 0).join(", ");
        assert_eq!((&*plan.items[0].title, &*depends), ("Build", "Set up, Test, too"), "{case}");
    }
    let others = parse("- [ ] a\n  files:\n  - `src/a.rs`\n  - [id]\n  tags: x,\n  - y\n").unwrap();
    assert_eq!(others.items[0].files, ["src/a.rs", "[id]"]);
    let lists = parse(
        "- [ ] a\n  depends:\n  - b\n  files:\n  - c\n  tags:\n  - d\n  status: done\n- [ ] b\n",
    )
    .unwrap();
    let Item { files, tags, status, .. } = &lists.items[0];
    assert_eq!(
        (waits(&lists, 0).join(""), files.join(""), tags.join(""), *status),
        ("b".into(), "c".into(), "d".into(), Stated::Done)
    );
    let none = parse("- [ ] a\n  - depends:\n  - words\n").unwrap();
    assert_eq!(
        (none.items[0].depends.len(), none.items[0].description.as_deref()),
        (0, Some("- words"))
    );
    let behind = parse("- [ ] a\n  - must be fast\n  depends: b\n- [ ] b\n").unwrap();
    assert_eq!(
        (waits(&behind, 0).join(""), behind.items[0].description.as_deref()),
        ("b".into(), Some("- must be fast"))
    );
    let mixed = parse("- [ ] a\n  - depends: b\n  - words\n  - more\n- [ ] b\n").unwrap();
    assert_eq!(
        (waits(&mixed, 0).join(""), mixed.items[0].description.as_deref()),
        ("b".into(), Some("- words\n- more"))
    );
    let words = parse("- [ ] a\n  - words\n    - tags: x\n  - more\n").unwrap();
    assert_eq!(words.items[0].description.as_deref(), Some("- words\n  - tags: x\n- more"));
}

#[test]
fn values_may_stand_right_before_boxes() {
    for list in ["- Set up", "* Set up", "1. Set up"] {
        let plan =
            parse(&format!("## Set up\n\n- [ ] a\n\n## Build\n\ndepends:\n{list}\n\n- [ ] b\n"))
                .unwrap();
        assert_eq!(
            (&*plan.items[2].title, waits(&plan, 2).join("")),
            ("Build", "Set up".into()),
            "{list}"
        );
        assert_eq!((plan.items[3].title.as_str(), plan.skipped.len()), ("b", 0), "{list}");
    }
    let below = parse("- [ ] a\n  files:\n  - src/a.rs\n  - [ ] b\n").unwrap();
    assert_eq!(
        (below.items[0].files.join(""), below.items[1].parent),
        ("src/a.rs".into(), Some(0))
    );
}

#[test]
fn prose_that_begins_with_the_name_of_a_field_is_prose() {
    for text in [
        "- id: number\n- status: done\n- priority: 3\n- tags: list of labels\n- files: paths that are watched",
        "- status: cancelled\n- total: 0",
        "- Status: returns 401 when wrong",
        "- files: paths that are watched",
        "- Dependencies: serde 1, tokio 1",
        "Dependency: we need the key from ops",
        "- must be fast\n  status: done",
    ] {
        let indented = text.replace('\n', "\n  ");
        let plan = parse(&format!("- [ ] a\n\n  {indented}\n- [ ] b\n")).unwrap();
        let Item { description, status, priority, tags, files, depends, .. } = &plan.items[0];
        assert_eq!(
            (description.as_deref(), *status, *priority, tags.len() + files.len() + depends.len()),
            (Some(text), Stated::Open, None, 0)
        );
    }
    let libraries =
        parse("- [ ] a\n  **Dependencies:**\n  - serde 1\n  - tokio 1\n- [ ] b\n").unwrap();
    assert_eq!(
        libraries.items[0].description.as_deref(),
        Some("**Dependencies:**\n- serde 1\n- tokio 1")
    );
    let meant =
        parse("- [ ] a\n  **Dependencies:**\n  - b\n- [ ] b\n  Dependencies: None.\n").unwrap();
    assert_eq!((waits(&meant, 0).join(""), meant.items[1].depends.len()), ("b".into(), 0));
    let because =
        parse("- [ ] a\n  Depends on: b,\n  because it needs the types.\n- [ ] b\n").unwrap();
    assert_eq!(
        (waits(&because, 0).join(""), because.items[0].description.as_deref()),
        ("b".into(), Some("because it needs the types."))
    );
    let all = parse("- [ ] a\n  - Status: Done\n  - Priority: 3\n  - Tags: x\n  - Files: a.rs\n")
        .unwrap();
    let Item { description, status, priority, tags, files, .. } = &all.items[0];
    assert_eq!(
        (description, *status, *priority, tags.join(""), files.join("")),
        (&None, Stated::Done, Some(3), "x".into(), "a.rs".into())
    );
    assert_eq!(outline("- [~] running\n\n# Plan\n\n- [ ] a\n"), ["1 - running", "5 - a"]);
}

#[test]
fn an_estimate_is_minutes_or_a_span() {
    for (given, minutes) in [
        ("90", 90),
        ("90 min", 90),
        ("1h 30m", 90),
        ("1.5 hours", 90),
        ("2 h 5 min", 125),
        ("~3h", 180),
        ("PT20M", 20),
    ] {
        let plan = parse(&format!("- [ ] a\n  estimate: {given}\n")).unwrap();
        assert_eq!(plan.items[0].estimated_minutes, Some(minutes), "{given}");
        let plan =
            parse(&json!({"items": [{"title": "a", "estimated_minutes": given}]}).to_string())
                .unwrap();
        assert_eq!(plan.items[0].estimated_minutes, Some(minutes), "{given}");
    }
    for given in ["0", "a day", "-5", "99999999999", "2 weeks"] {
        let plan = parse(&format!("- [ ] a\n  estimate: {given}\n")).unwrap();
        let description = plan.items[0].description.clone().unwrap_or_default();
        assert_eq!((plan.items[0].estimated_minutes, plan.remarks.len()), (None, 1), "{given}");
        assert_eq!(description, format!("estimate: {given}"));
    }
}

#[test]
fn files_may_be_named_among_words() {
    let text = "- Create: `src/queue.rs`\n- Modify: `src/lib.rs:10-20`\n- `src/a.rs` - the parser\n  - add fn x\n\
                - `src/b.rs`\n- src/c.rs\n- whatever the linter says";
    let plan = parse(&format!("## Task 1: Queue\n\n**Files:**\n{text}\n")).unwrap();
    assert_eq!(
        plan.items[0].files,
        ["src/queue.rs", "src/lib.rs", "src/a.rs", "src/b.rs", "src/c.rs"]
    );
    let description = plan.items[0].description.as_deref().unwrap_or_default();
    for kept in ["Create: ", ":10-20", "- the parser\n  - add fn x", "- whatever the linter says"] {
        assert!(description.contains(kept), "{kept} in {description}");
    }
    assert!(
        !description.contains("src/b.rs") && !description.contains("src/c.rs"),
        "{description}"
    );
    assert_eq!(
        files("`src/a.rs` (new), src/b.rs, `src/c.rs:7`"),
        ["src/a.rs", "src/b.rs", "src/c.rs"]
    );
}

#[test]
fn entries_beside_boxes_without_one_are_named() {
    let text = "## a\n\nNotes:\n- a list\n\n### Notes\n\n- [ ] b\n- plain\n  words\n- [ ] c\n  - no box at all\n  - [x](a.md) and [1]\n- [1] docs\n";
    assert_eq!(outline(text), ["1 - a", "  6 - Notes", "    8 - b", "    11 - c"]);
    let skipped = |text: &str| {
        let skipped = parse(text).unwrap().skipped;
        skipped.into_iter().map(|one| (one.line, one.title)).collect::<Vec<_>>()
    };
    assert_eq!(
        skipped(text),
        [(4, "a list".to_owned()), (9, "plain".to_owned()), (14, "[1] docs".to_owned())]
    );
    assert_eq!(
        skipped("- [ ] a\n\nWords.\n\n- b\n\n## Notes\n"),
        [(5, "b".to_owned()), (7, "Notes".to_owned())]
    );
    assert_eq!(skipped("- [ ] a\n  status: Obsolete\n  - [ ] b\n    - c\n- [ ] d\n"), []);
    let many = format!("- [ ] a\n{}", "- b\n".repeat(5 * limit::PLAN_ITEMS.max));
    assert!(problems(&many)[0].1.contains("is over its limit: 100001 entries"));
}

#[test]
fn markdown_may_begin_with_a_bracket() {
    for before in ["[![ci](https://a/b.svg)](https://a)", "[TOC]", "[Home](a.md)", "[[_TOC_]]"] {
        assert_eq!(outline(&format!("{before}\n\n# Plan\n\n- [ ] a\n")), ["5 - a"], "{before}");
    }
    assert_eq!(outline("\u{feff} [\n {\"title\": \"a\"}]"), ["2 - a"]);
    assert!(problems("[ ]")[0].1.contains("an entry of `items`"));
}

#[test]
fn item_whose_text_is_longer_than_a_title_is_known_by_its_text() {
    let text = "long words ".repeat(30);
    let (state, texts) =
        exported(&parse(&format!("- [ ] {text}\n- [ ] b\n  depends: {text}\n")).unwrap()).unwrap();
    let tasks = state.in_file_order(state.tasks());
    assert_eq!(tasks[1].dependencies, [tasks[0].id.clone()]);
    texts.iter().for_each(|text| is_the_same(&state, text, "the plan"));
}

#[test]
fn headings_alone_are_a_plan() {
    let text = "# Title\n\n## One\n\ntext\n\n### A\n\n## Two\n";
    assert_eq!(outline(text), ["3 - One", "  7 - A", "9 - Two"]);
    assert_eq!(outline("- [ ] a\n- [x] b\n\n  more\n- [ ] c\n"), ["1 - a", "2 - b", "5 - c"]);
}

#[test]
fn json_of_other_planners_is_read() {
    let text = r#"{
  "backlog": [
    {"id": "P1", "type": "Phase", "title": "One", "status": "Planned", "milestones": [
      {"id": "P1.M1", "type": "Milestone", "title": "First", "status": "Researching", "tasks": [
        {"id": "P1.M1.T1", "type": "Task", "title": "Do", "status": "Complete", "subtasks": [
          {"id": "P1.M1.T1.S1", "type": "Subtask", "title": "Small", "status": "Ready", "story_points": 2,
           "dependencies": ["P1.M1.T1.S2"], "context_scope": "the parser"},
          {"id": "P1.M1.T1.S2", "type": "Subtask", "title": "Other", "status": "Obsolete"}]}]}]}]
}"#;
    assert_eq!(
        outline(text),
        [
            "3 P1 One",
            "  4 P1.M1 First",
            "    5 P1.M1.T1 Do",
            "      6 P1.M1.T1.S1 Small",
            "      8 P1.M1.T1.S2 Other"
        ]
    );
    let plan = parse(text).expect("a plan");
    assert_eq!(plan.items[3].hints.as_deref(), Some("the parser"));
    assert_eq!((plan.items[2].status, plan.items[3].status), (Stated::Done, Stated::Open));
}

#[test]
fn problems_name_their_line_and_what_would_be_right() {
    let cases: [(&str, usize, &str); 12] = [
        ("", 1, "nothing to do in it"),
        ("# Only words\n\nand more\n\nstill none of it\n\n- a list\n", 1, ""),
        ("## P1: a\n\n### P2.M1: b\n", 3, "P1.M<number> does"),
        ("## P1: a\n\n- [ ] P1.T1: b\n", 3, "P1.M<number> does"),
        ("## P01: a\n", 1, "P<number> does, without zeros before the number"),
        ("## P1: a\n\n### P1.M00: b\n", 3, "P1.M<number> does"),
        ("## a\n\n- [ ] P2.M1: b\n- [ ] P3.M1: c\n", 4, "P2.M<number> does"),
        ("- [ ] a\n  files: ../b\n", 1, "leaves the project"),
        (
            "{\n \"items\": [\n  {\"title\": \"a\"},\n  {\"path\": \"P1\"}]}",
            4,
            "missing field `title`",
        ),
        ("{\n \"items\": [\n  {\"title\": \"a\"},,\n]}", 3, "cannot be read"),
        (
            "{\"items\": [\n{\"title\": \"a\", \"tasks\": [], \"subtasks\": []}]}",
            2,
            "tasks and subtasks are read as that",
        ),
        (
            "{\"items\": [\n{\"title\": \"a\", \"id\": \"P1\", \"path\": \"P1\"}]}",
            2,
            "`path`, and id",
        ),
    ];
    for (text, line, part) in cases {
        if part.is_empty() {
            assert_eq!(outline(text), ["7 - a list"]);
            continue;
        }
        let problems = problems(text);
        assert!(
            problems.iter().any(|(at, what)| *at == line && what.contains(part)),
            "{text:?}: {problems:?}"
        );
    }
}

#[test]
fn long_texts_of_files_are_cut_and_named() {
    let plan =
        parse(&format!("- [ ] a\n\n  {}\n", "x".repeat(limit::DESCRIPTION.max + 1))).unwrap();
    let description = plan.items[0].description.as_ref().unwrap();
    assert!(description.len() <= limit::DESCRIPTION.max && description.ends_with("x…"));
    assert!(plan.remarks[0].remark.contains("cut after 16384 bytes"), "{:?}", plan.remarks);
    // `P7` is no path below an entry, and goes back before a title that fills its room.
    for more in [-3, 0, 40] {
        let words = "y".repeat(limit::TITLE.max.checked_add_signed(more).unwrap());
        let plan = parse(&format!("- [ ] a\n  - [ ] P7: {words}\n    more\n")).unwrap();
        let Item { title, description, .. } = &plan.items[1];
        assert!(title.starts_with("P7: yy") && title.len() <= limit::TITLE.max, "{title}");
        let whole = format!("P7: {words}\n\nmore");
        assert_eq!(description.as_deref(), Some(whole.as_str()), "{more}");
    }
}

#[test]
fn limits_of_plans_are_kept() {
    let many: String =
        (0..=limit::PLAN_ITEMS.max).map(|number| format!("- [ ] item {number}\n")).collect();
    assert!(
        problems(&many)[0]
            .1
            .contains("items of one plan is over its limit: 20001 entries, at most 20000")
    );
    let long = "x".repeat(limit::DESCRIPTION.max + 1);
    let json = json!({"items": [{"title": "a", "description": long}]}).to_string();
    assert!(problems(&json)[0].1.contains("description is over its limit"));
    let huge = format!("- [ ] a\n{}", " ".repeat(limit::PLAN.max));
    assert!(problems(&huge)[0].1.contains("plan is over its limit"));
    let deep = "{\"items\":[".repeat(100_000);
    assert!(problems(&deep)[0].1.contains("cannot be read"));
    assert!(parse(&"- ".repeat(50_000)).is_err());
    assert!(parse(&"> ".repeat(50_000)).is_err());
}

#[test]
fn plan_is_read_in_a_time_that_grows_with_its_length() {
    let names = |count: usize| vec!["q"; count].join(",");
    let in_one_line = format!(
        "# Plan\n\n## Phase\n\ndepends: {}\n\n- [ ] a\n\n## Other\n\n- [ ] b\n",
        names(100_000)
    );
    let in_many_lines = format!(
        "## Phase\n\n{}\n- [ ] a\n\n## Other\n\n- [ ] b\n",
        format!("depends: {}\n", names(50)).repeat(2_000)
    );
    let prose = format!("- [ ] a\n{}", "\n  b\n".repeat(200_000));
    for text in [in_one_line, in_many_lines, prose] {
        let took = (0..3).map(|_| {
            let start = Instant::now();
            let said = match parse(&text) {
                Ok(plan) => plan.remarks[0].remark.clone(),
                Err(problems) => problems[0].problem.clone(),
            };
            assert!(said.contains("over its limit") || said.contains("is cut after"), "{said}");
            start.elapsed()
        });
        let best = took.min().unwrap();
        // Time that grows with the square of the length would take minutes.
        assert!(best < Duration::from_secs(10), "{best:?} for {}…", &text[..30]);
    }
}

#[test]
fn long_plans_are_read_and_compared_in_a_time_that_grows_with_their_length() {
    let phases: String =
        (1..=9_999).map(|number| format!("## Phase {number}\n\n- [ ] task {number}\n\n")).collect();
    let tags = format!("- [ ] a\n{}", "<pre>\n".repeat(19_000));
    let open = format!("- [ ] a\n{}", "- dependencies:\n".repeat(19_000));
    let unclosed = format!("- [ ] a\n\n```\n{}", "- [ ] b\n".repeat(19_000));
    for text in [phases, tags, open, unclosed] {
        let start = Instant::now();
        match parse(&text) {
            Ok(plan) => {
                let (state, _) = exported(&plan).expect("it is imported");
                assert_eq!(state.tasks().count(), plan.items.len());
            }
            Err(problems) => {
                assert!(problems[0].problem.contains("over its limit"), "{problems:?}")
            }
        }
        // Time that grows with the square of the length would take minutes.
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{:?} for {}",
            start.elapsed(),
            &text[..20]
        );
    }
}

#[test]
fn any_text_is_a_plan_or_a_problem_with_a_line() {
    let mut chance = crate::state::id::Chance::new(7);
    let pieces = [
        "# ",
        "\n",
        "- [ ] ",
        "  ",
        "P1",
        ".M1",
        ": ",
        "depends: ",
        "```",
        "x",
        "[x]",
        "\n\n",
        "é",
        "* ",
        "status: obsolete",
        "> ",
        "|",
        "\t",
        "<b>",
        "&amp;",
    ];
    for _ in 0..3_000 {
        let length = 1 + chance.draw() % 40;
        let text: String =
            (0..length).map(|_| pieces[(chance.draw() % pieces.len() as u64) as usize]).collect();
        match parse(&text) {
            Ok(plan) => {
                assert!(
                    plan.items
                        .iter()
                        .enumerate()
                        .all(|(at, item)| item.parent.is_none_or(|parent| parent < at))
                )
            }
            Err(problems) => {
                let lines = text.lines().count().max(1) + 1;
                assert!(
                    problems.iter().all(|one| (1..=lines).contains(&one.line)),
                    "{text:?}: {problems:?}"
                );
            }
        }
    }
}

/// The event that imports the plan without a file.
fn replanned(state: &State, plan: &Plan) -> Result<Event, Vec<Problem>> {
    let import = state.import_of(plan, &Given::default()).expect("one plan without a name");
    state.replan(plan, &import)
}

fn envelope() -> Envelope {
    let participant = ParticipantId::trusted("p-1");
    Envelope { at: Timestamp::default(), participant, actor: None, idempotency: None }
}

/// The Markdown and the JSON exported from a plan after its import; `None` for a plan that the
/// board refuses.
fn exported(plan: &Plan) -> Option<(State, [String; 2])> {
    let mut state = State::new();
    state
        .record(Event::BoardCreated { board_id: "b".to_owned(), numbered: true }, &envelope())
        .expect("a new board");
    let imported = replanned(&state, plan).ok()?;
    state.record(imported, &envelope()).expect("what was planned fits");
    state.settle();
    let tasks = state.in_file_order(state.tasks());
    let title = plan.title.as_deref();
    let json = serde_json::to_string(&to_json(title, &tasks)).expect("JSON");
    let texts = [to_markdown(title, None, &tasks), json];
    Some((state, texts))
}

#[track_caller]
fn is_the_same(state: &State, text: &str, of: &str) {
    let again = parse(text).unwrap_or_else(|problems| panic!("{problems:?} in\n{text}\nof\n{of}"));
    match replanned(state, &again) {
        Ok(Event::PlanImported { created, changed, removed, .. }) => {
            let is_same = created.is_empty() && changed.is_empty() && removed.is_empty();
            assert!(is_same, "{created:?} {changed:?} {removed:?} by\n{text}\nof\n{of}");
        }
        other => panic!("{other:?} by\n{text}\nof\n{of}"),
    }
}

fn invented_json(chance: &mut Chance, level: usize) -> Value {
    const WORDS: [&str; 12] = [
        "one",
        "two",
        "`x`",
        "*y*",
        "<b>",
        "P1: z",
        "- [ ] q",
        "# r",
        "a, b",
        "é",
        "depends: one",
        "&amp;",
    ];
    const TAGS: [&str; 8] = ["x\n- [ ] new", "t1", "none", "-", "a b", "[x", "y]", "\""];
    const FILES: [&str; 5] = ["docs/", "a, b", "`c`", "no[ne]", "{d,e}.rs"];
    let mut below = |end: u64| chance.draw() % end;
    let title = format!("{} {}", WORDS[below(12) as usize], WORDS[below(12) as usize]);
    let mut node = json!({"title": title, "priority": 1 + below(10)});
    if below(3) == 0 {
        node["description"] = json!(format!(
            "{}\n\n  {}\n```\n{}",
            WORDS[below(12) as usize],
            title,
            WORDS[below(12) as usize]
        ));
    }
    if below(4) == 0 {
        node["hints"] = json!(format!(
            "{}  {}\n\n{}",
            WORDS[below(12) as usize],
            "h",
            WORDS[below(12) as usize]
        ));
        node["tags"] = json!([WORDS[below(12) as usize], TAGS[below(8) as usize]]);
    }
    if below(4) == 0 {
        node["files"] = json!(["src/*.rs", FILES[below(5) as usize]]);
    }
    if below(6) == 0 {
        node["depends"] = json!([WORDS[below(12) as usize]]);
    }
    node["status"] = json!(["Planned", "Complete", "Failed"][below(3) as usize]);
    let parts = if level < limit::PLAN_DEPTH.max { below(3) } else { 0 };
    node["items"] = (0..parts).map(|_| invented_json(chance, level + 1)).collect();
    node
}

#[test]
fn what_export_writes_of_any_plan_is_the_same_plan() {
    let mut chance = Chance::new(11);
    let pieces = [
        "# ",
        "\n",
        "- [ ] ",
        "  ",
        "## P1",
        "P1.M1",
        "P2.M1: ",
        ": ",
        "depends: ",
        "```",
        "x",
        "[x]",
        "\n\n",
        "é",
        "* ",
        "y z",
        "priority: 3\n",
        "> ",
        "|",
        "tags: a, b\n",
        "<b>",
        "&amp;",
        "- [x] ",
        "files: src/*.rs\n",
        "hints: h   i\n",
    ];
    let (mut plans, mut items) = (0, 0);
    for number in 0..6_000 {
        let text = match number % 3 {
            0 => json!({"title": "T", "items": (0..3).map(|_| invented_json(&mut chance, 1)).collect::<Vec<_>>()})
                .to_string(),
            _ => (0..1 + chance.draw() % 40).map(|_| pieces[(chance.draw() % pieces.len() as u64) as usize]).collect(),
        };
        let Ok(plan) = parse(&text) else { continue };
        let Some((state, texts)) = exported(&plan) else { continue };
        (plans, items) = (plans + 1, items + plan.items.len());
        texts.iter().for_each(|exported| is_the_same(&state, exported, &text));
    }
    println!("{plans} plans of {items} items came back as they were");
    assert!(plans > 500 && items > 2 * plans, "{plans} plans, {items} items");
}

#[test]
fn headings_with_what_only_items_have_are_items_and_the_others_are_named() {
    let text = "# Title\n\n## Parser\n\n- [ ] numbers\n\n## Printer\n\nPrints.\npriority: 2\n\n## Notes\n\nwords\n\n\
                ## Later\n\n### Deeper\n\ndepends: numbers\n\n### Listed\n\n- priority: 2\n\n\
                ### Priority\n\nFirst come, first served.\n";
    assert_eq!(
        outline(text),
        [
            "3 - Parser",
            "  5 - numbers",
            "7 - Printer",
            "16 - Later",
            "  18 - Deeper",
            "  22 - Listed"
        ]
    );
    let plan = parse(text).unwrap();
    let skipped: Vec<_> =
        plan.skipped.iter().map(|one| (one.line, one.title.as_str(), one.level)).collect();
    assert_eq!(skipped, [(12, "Notes", Some(1)), (26, "Priority", Some(2))]);
    let known = parse_with(text, &BTreeSet::from([12, 26]), false).unwrap();
    assert_eq!((known.items.len(), known.skipped.len()), (8, 0));
    assert!(parse("## a\n\n## b\n").unwrap().skipped.is_empty());
}

#[test]
fn escapes_in_json_bring_neither_secrets_nor_control_characters() {
    let text = r#"{"title": "T", "metadata": {"k": "S"}, "m\u001b[2mn": "S", "goal": "S", "items": [
        {"title": "t", "metadata": {"k": ["S"], "k\u001b[31m": 1}, "other": {"in": "S"}, "status": "S",
         "priority": "S", "estimated_minutes": "S", "past": {"result": {"output": "S"}}}],
        "discoveries": [{"id": "disc-1", "agent_id": "a1", "content": "S"}],
        "agents": [{"id": "a1", "tags": ["S"], "project_dir": "S"}]}"#;
    let secret = format!("\\u001b[31mred gh\\u0070_{}", "a1".repeat(18));
    let plan = parse(&text.replace("\"S\"", &format!("\"{secret}\"")))
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let shown = format!("{plan:?}");
    let places = shown.match_indices("red ").count();
    assert!(
        places > 9 && !shown.contains("ghp_") && !shown.contains("\\u{1b}"),
        "{places} of {shown}"
    );
}
