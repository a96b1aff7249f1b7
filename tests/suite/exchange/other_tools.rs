//! Formats that are only read, and what is unfit in files that are read all the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{by_source, refusal, reply, run, write};
use crate::harness::Board;

/// Title, status and parent's title of each task, in the order of their paths.
fn tasks(board: &Board) -> Vec<(String, String, String)> {
    let mut all = board.cli_ok("get_all_tasks", json!({"limit": 1000}))["tasks"].take();
    let all = all.as_array_mut().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.sort_by_key(|task| text(&task["path"]));
    let title = |id: &Value| {
        all.iter().find(|task| task["id"] == *id).map_or(String::new(), |task| text(&task["title"]))
    };
    let row = |task: &Value| (text(&task["title"]), text(&task["status"]), title(&task["parent"]));
    all.iter().map(row).collect()
}

#[track_caller]
fn read_as(name: &str, text: &str, expected: &[(&str, &str, &str)]) -> (Board, Value) {
    let board = Board::new();
    write(&board, name, text);
    let said = reply(&board, &["import", name]);
    let found = tasks(&board);
    let found: Vec<_> =
        found.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
    assert_eq!(found, expected, "{name}: {said}");
    assert_eq!(reply(&board, &["import", name])["unchanged"], true, "{name}");
    (board, said)
}

#[test]
fn org_has_keywords_priorities_and_boxes() {
    let text = "\
#+title: House
* DONE Cellar
* TODO Walls
** DONE North
** TODO South
   SCHEDULED: <2026-03-01>
   - [X] bricks
   - [ ] mortar
* WAITING Roof                                                    :dry:high:
* [#A] TODO Door
* Thoughts
  Nothing to do.
* KILL Moat
";
    let (board, said) = read_as(
        "house.org",
        text,
        &[
            ("Cellar", "done", ""),
            ("Walls", "available", ""),
            ("North", "done", "Walls"),
            ("South", "available", "Walls"),
            ("bricks", "done", "South"),
            ("mortar", "available", "South"),
            ("Roof", "available", ""),
            ("Door", "available", ""),
            ("Moat", "cancelled", ""),
        ],
    );
    assert_eq!(said["format"], "org");
    let notes = said["report"]["notes"].to_string();
    assert!(notes.contains("Thoughts") && !notes.contains("Cellar"), "{notes}");
    let all = board.cli_ok("get_all_tasks", json!({"limit": 100}))["tasks"].take();
    let door = all.as_array().unwrap().iter().find(|task| task["title"] == "Door").unwrap();
    assert_eq!(door["priority"], 1);
}

#[test]
fn todo_txt_has_a_task_a_line() {
    let text = "\
(A) 2026-02-01 Call the mason +house @phone id:1
x 2026-02-03 2026-02-01 Measure the door
Order slates dep:1 due:2026-04-01
";
    let (board, said) = read_as(
        "todo.txt",
        text,
        &[
            ("Call the mason +house @phone id:1", "available", ""),
            ("Measure the door", "done", ""),
            ("Order slates dep:1 due:2026-04-01", "available", ""),
        ],
    );
    assert_eq!(said["report"]["kept"], json!({"due": 1}));
    let call = by_source(&board, "1");
    assert_eq!((&call["priority"], &call["tags"]), (&json!(1), &json!(["house", "phone"])));
    let waits = board.cli_ok("get_all_tasks", json!({"limit": 100}))["tasks"].take();
    assert_eq!(waits[2]["dependencies"], json!([call["id"]]));
}

#[test]
fn taskwarrior_and_trello_are_read_from_their_exports() {
    let text = json!([
        {"id": 1, "uuid": "u-1", "description": "Dig", "status": "completed", "urgency": 2.0},
        {"id": 2, "uuid": "u-2", "description": "Sow", "status": "pending", "depends": ["u-1"], "priority": "H"},
        {"id": 0, "uuid": "u-3", "description": "Fly", "status": "deleted"},
    ]);
    let (board, _) = read_as(
        "tw.json",
        &text.to_string(),
        &[("Dig", "done", ""), ("Sow", "available", ""), ("Fly", "cancelled", "")],
    );
    let (dig, sow) = (by_source(&board, "u-1"), by_source(&board, "u-2"));
    assert_eq!((&sow["dependencies"], &sow["priority"]), (&json!([dig["id"]]), &json!(3)));

    let card = |id: &str, list: &str, closed: bool| json!({"id": id, "name": id, "idList": list, "closed": closed, "desc": "", "labels": []});
    let text = json!({
        "name": "House",
        "lists": [{"id": "l1", "name": "To do", "closed": false}, {"id": "l2", "name": "Done", "closed": false}],
        "cards": [card("walls", "l1", false), card("cellar", "l2", true), card("moat", "l1", true)],
        "checklists": [{"idCard": "walls", "checkItems": [
            {"id": "c1", "name": "north", "state": "complete"}, {"id": "c2", "name": "south", "state": "incomplete"},
        ]}],
    });
    read_as(
        "board.json",
        &text.to_string(),
        &[
            ("walls", "available", ""),
            ("north", "done", "walls"),
            ("south", "available", "walls"),
            ("cellar", "done", ""),
            ("moat", "cancelled", ""),
        ],
    );
}

#[test]
fn todos_of_a_cursor_plan_are_its_tasks() {
    let text = "\
---
name: Shop
overview: Make a shop
todos:
  - id: basket
    content: Write the basket
    status: completed
  - id: till
    content: Write the till
    status: pending
    dependencies:
      - basket
isProject: false
---
# Shop

## Files
- basket.rs
- till.rs
";
    let (board, said) = read_as(
        "shop.plan.md",
        text,
        &[("Write the basket", "done", ""), ("Write the till", "available", "")],
    );
    assert_eq!(
        by_source(&board, "till")["dependencies"],
        json!([by_source(&board, "basket")["id"]])
    );
    assert!(said["report"]["notes"].to_string().contains("are not read"), "{said}");
}

#[test]
fn csv_of_jira_asana_and_linear_say_statuses_in_their_words() {
    let jira = "Summary,Issue key,Issue id,Status,Parent\nWalls,SH-1,101,Resolved,\nNorth,SH-2,102,To Do,101\n\
                Roof,SH-3,103,Selected for Development,\nMoat,SH-4,104,Won't Do,\n";
    read_as(
        "jira.csv",
        jira,
        &[
            ("Walls", "done", ""),
            ("North", "available", "Walls"),
            ("Roof", "available", ""),
            ("Moat", "cancelled", ""),
        ],
    );
    let asana = "Task ID,Created At,Completed At,Name,Section/Column,Parent task\n\
                 1,2026-01-01,2026-01-02,Dig,Later,\n2,2026-01-01,,Sow,Doing,\n3,2026-01-01,,Water,Doing,Sow\n";
    read_as(
        "asana.csv",
        asana,
        &[("Dig", "done", ""), ("Sow", "available", ""), ("Water", "available", "Sow")],
    );
    let linear =
        "ID,Title,Status\nL-1,Dig,Triage\nL-2,Sow,Canceled\nL-3,Water,Duplicate\nL-4,Eat,Done\n";
    read_as(
        "linear.csv",
        linear,
        &[
            ("Dig", "available", ""),
            ("Sow", "cancelled", ""),
            ("Water", "cancelled", ""),
            ("Eat", "done", ""),
        ],
    );
}

#[test]
fn csv_without_a_status_says_so_first() {
    let board = Board::new();
    write(&board, "t.csv", "id,title,how\n1,Dig,done\n");
    let shown = run(&board, &["import", "t.csv"]).stdout;
    let first = shown.lines().next().unwrap_or_default();
    assert!(first.starts_with("no column is for the status") && first.contains("how"), "{shown}");
}

#[test]
fn unfit_files_of_a_directory_are_named_and_the_rest_comes_in() {
    let board = Board::new();
    let task = |id: &str, title: &str, more: &str| {
        format!(
            "---\nid: {id}\ntitle: {title}\nstatus: To Do\n{more}---\n\n## Description\n\nWords.\n"
        )
    };
    let files = [
        ("backlog/tasks/task-1 - Dig.md", task("TASK-1", "Dig", "assignee:\n  - @ann\n")),
        ("backlog/tasks/task-2 - Sow.md", task("TASK-2", "Sow", "assignee: [@ann, @ben]\n")),
        ("backlog/tasks/readme.md", "# How we work\n".to_owned()),
        ("backlog/tasks/task-3 - Torn.md", "---\nid: TASK-3\ntitle: Torn".to_owned()),
        ("backlog/tasks/task-4 - Merged.md", "<<<<<<< HEAD\n---\nid: TASK-4\n".to_owned()),
        ("backlog/archive/tasks/task-1 - Dig.md", task("TASK-1", "Dig", "")),
    ];
    for (name, text) in &files {
        write(&board, name, text);
    }
    fs::write(board.base().join("backlog/tasks/task-5 - Binary.md"), [0xff, 0, 1]).unwrap();
    let said = reply(&board, &["import", "backlog-md", "."]);
    let titles: Vec<_> =
        tasks(&board).into_iter().map(|(title, status, _)| (title, status)).collect();
    let open = |title: &str| (title.to_owned(), "available".to_owned());
    assert_eq!(titles, [open("Dig"), open("Sow")], "{said}");
    let notes = said["report"]["notes"].to_string();
    for unfit in ["readme.md", "Torn", "Merged", "Binary", "archive/tasks/task-1"] {
        assert!(notes.contains(unfit), "{unfit} in {notes}");
    }
    assert_eq!(
        by_source(&board, "TASK-2")["context"]["metadata"]["assignee"],
        json!(["@ann", "@ben"])
    );
}

#[test]
fn a_thousand_files_come_in_without_the_one_that_cannot_be_read() {
    let board = Board::new();
    for number in 1..=1_000 {
        let text = format!("---\nid: TASK-{number}\ntitle: Work {number}\nstatus: To Do\n---\n");
        write(&board, &format!("backlog/tasks/task-{number} - Work.md"), &text);
    }
    let torn = board.base().join("backlog/tasks/task-500 - Work.md");
    fs::set_permissions(&torn, fs::Permissions::from_mode(0o0)).unwrap();
    // Root reads everything.
    if fs::read(&torn).is_ok() {
        fs::set_permissions(&torn, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&torn, [0xff, 0xfe, 0]).unwrap();
    }
    let said = reply(&board, &["import", "backlog-md", "."]);
    assert_eq!(said["items"], 999);
    assert!(said["report"]["notes"].to_string().contains("task-500"), "{}", said["report"]);
}

#[test]
fn a_number_twice_gets_a_suffix_and_is_named() {
    let board = Board::new();
    let text = "# Plan\n\n- [ ] 1. Basket\n  - [x] 1.1 Write it\n- [ ] 2. Ship\n  - [ ] 1.1 Write it down\n";
    write(&board, ".kiro/specs/shop/tasks.md", text);
    let said = reply(&board, &["import", ".kiro/specs/shop/tasks.md"]);
    let statuses: Vec<_> =
        tasks(&board).into_iter().map(|(title, status, _)| (title, status)).collect();
    let row = |title: &str, status: &str| (title.to_owned(), status.to_owned());
    assert_eq!(
        statuses,
        [
            row("Basket", "available"),
            row("Write it", "done"),
            row("Ship", "available"),
            row("Write it down", "available"),
        ]
    );
    assert!(said["report"]["notes"].to_string().contains("1.1"), "{}", said["report"]);
    assert_eq!(reply(&board, &["import", ".kiro/specs/shop/tasks.md"])["unchanged"], true);
}

#[test]
fn parents_of_task_master_have_the_status_that_they_say() {
    let part = |status: &str| json!([{"id": 1, "title": format!("{status} part"), "status": status, "dependencies": []}]);
    let task = |id: u32, title: &str, status: &str, on: &[u32], parts: Value| json!({"id": id, "title": title, "description": "d", "status": status, "dependencies": on, "subtasks": parts});
    let text = json!({"master": {"tasks": [
        task(1, "Walls", "in-progress", &[], part("done")),
        task(2, "Roof", "done", &[1], part("pending")),
        task(3, "Door", "pending", &[2], json!([])),
    ]}});
    read_as(
        "tm.json",
        &text.to_string(),
        &[
            ("Walls", "available", ""),
            ("done part", "done", "Walls"),
            ("Roof", "done", ""),
            ("pending part", "available", "Roof"),
            ("Door", "available", ""),
        ],
    );
}

#[test]
fn refusals_name_the_way_out() {
    for (name, text, words) in [
        ("x.json", "{\"master\": {}}", vec!["import", "task-master", "x.json"]),
        ("t.csv", "a,b\n1,2\n", vec!["import", "csv", "t.csv"]),
    ] {
        let board = Board::new();
        write(&board, name, text);
        let message = refusal(&board, &words);
        assert!(message.contains("--format says what it is: markdown, json,"), "{message}");
        assert!(message.contains("todo-txt") && message.contains("--map"), "{message}");
    }
}

#[test]
fn backlog_md_in_place_rewrites_what_changed_and_moves_what_is_cancelled() {
    let board = Board::new();
    let text = "\
---
id: TASK-1
title: Dig
status: To Do
assignee: []
created_date: \"2026-01-01 10:00\"
labels: [\"a\"]
dependencies: []
estimate: 3
---

## Description

Some words.
";
    let other = text.replace("TASK-1", "TASK-2").replace("Dig", "Sow");
    write(&board, "backlog/tasks/task-1 - Dig.md", text);
    write(&board, "backlog/tasks/task-2 - Sow.md", &other);
    reply(&board, &["import", "backlog-md", "."]);
    let said = reply(&board, &["export", "backlog-md", "."]);
    assert_eq!(said["unchanged"].as_array().map(Vec::len), Some(2), "{said}");
    let [dig, sow] = ["TASK-1", "TASK-2"].map(|id| by_source(&board, id)["id"].clone());
    board.cli_ok("cancel_task", json!({"task_id": sow}));
    board.cli_ok("register_agent", json!({"agent_id": "ada", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": dig}));
    board.cli_ok("complete_task", json!({"agent_id": "ada", "task_id": dig, "output": "dug"}));
    let said = reply(&board, &["export", "backlog-md", "."]);
    assert_eq!(said["removed"].as_array().map(Vec::len), Some(1), "{said}");
    let files = super::texts(&board.base().join("backlog"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["archive/tasks/task-2 - Sow.md", "tasks/task-1 - Dig.md"]);
    assert_eq!(files[names[0]], other, "it lies elsewhere, and says the same");
    assert_eq!(files[names[1]], text.replace("To Do", "Done"));
    let again = reply(&board, &["export", "backlog-md", "."]);
    assert_eq!(again["unchanged"].as_array().map(Vec::len), Some(2), "{again}");
    let back = reply(&board, &["import", "backlog-md", "."]);
    assert_eq!((&back["reopened"], &back["completed"]), (&json!([]), &json!([])), "{back}");
    assert_eq!(reply(&board, &["verify", "backlog-md", "."])["same"], true);
}

#[test]
fn dry_run_makes_no_board() {
    let board = Board::new();
    write(&board, "PLAN.md", "- [ ] a\n- [x] b\n");
    let said = reply(&board, &["import", "PLAN.md", "--dry-run"]);
    assert_eq!((&said["items"], &said["dry_run"]), (&json!(2), &json!(true)));
    write(&board, "t.csv", "id,title,status\n1,a,Done\n");
    assert_eq!(reply(&board, &["import", "t.csv", "--dry-run"])["items"], 1);
    assert!(!board.base().join("board").exists(), "there is no board");
}

#[test]
fn progress_is_told_as_a_part_of_the_whole() {
    let board = Board::new();
    write(&board, "PLAN.md", "- [ ] a\n- [x] b\n");
    let ran = run(&board, &["import", "PLAN.md", "--progress"]);
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.ends_with(" %")).collect();
    assert!(told.len() == 3 && told[0].ends_with("0 %") && told[2].ends_with("100 %"), "{told:?}");
    assert!(!run(&board, &["import", "PLAN.md"]).stderr.contains(" %"));
}

#[test]
fn secrets_in_a_plan_are_named_and_its_file_is_not_replaced() {
    let board = Board::new();
    let text =
        "# P\n\n- [ ] Start it\n  `DATABASE_URL=postgres://shop:hunter22@localhost:5432/shop`\n";
    write(&board, "PLAN.md", text);
    let shown = run(&board, &["import", "PLAN.md"]).stdout;
    assert!(shown.contains("line 4: a secret is not kept"), "{shown}");
    let refused = run(&board, &["export", "markdown", "PLAN.md"]);
    assert!(!refused.status.success() && refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(board.base().join("PLAN.md")).unwrap(), text);
}

#[test]
fn projects_have_statuses_of_their_own_and_changes_lie_in_a_directory() {
    let board = Board::new();
    let statuses = "statuses: [\"To Do\", \"In Progress\", \"Done\", \"Wontfix\"]\n";
    write(&board, "backlog/config.yml", &format!("project_name: \"shop\"\n{statuses}"));
    for (number, title, status) in [(1, "Dig", "To Do"), (2, "Sow", "Wontfix"), (3, "Eat", "Done")]
    {
        let text = format!(
            "---\nid: TASK-{number}\ntitle: {title}\nstatus: {status}\nassignee: []\nlabels: []\n---\n"
        );
        write(&board, &format!("backlog/tasks/task-{number} - {title}.md"), &text);
    }
    reply(&board, &["import", "."]);
    let found: Vec<_> = tasks(&board).into_iter().map(|(_, status, _)| status).collect();
    assert_eq!(found, ["available", "cancelled", "done"]);

    let board = Board::new();
    write(
        &board,
        "openspec/changes/shop/tasks.md",
        "## 1. Basket\n\n- [ ] 1.1 Define\n  - [ ] Add it\n",
    );
    reply(&board, &["import", "."]);
    let row =
        |title: &str, above: &str| (title.to_owned(), "available".to_owned(), above.to_owned());
    let expected =
        [row("shop", ""), row("Basket", "shop"), row("Define", "Basket"), row("Add it", "Define")];
    assert_eq!(tasks(&board), expected);
}

#[test]
fn nested_boxes_of_openspec_stay_nested() {
    let text = "## 1. Basket\n\n- [ ] 1.1 Define types\n  - [x] Add the row\n  - [x] Add the sum\n- [ ] 1.2 Store it\n";
    read_as(
        "openspec/changes/shop/tasks.md",
        text,
        &[
            ("Basket", "available", ""),
            ("Define types", "available", "Basket"),
            ("Add the row", "done", "Define types"),
            ("Add the sum", "done", "Define types"),
            ("Store it", "available", "Basket"),
        ],
    );
}

/// What the readers of these formats want of every task.
#[test]
fn exports_have_every_field_that_their_readers_want() {
    let board = Board::new();
    write(&board, "PLAN.md", "## A\n\n- [ ] b\n  - [x] c\n    - [ ] d\n      - [ ] e\n");
    reply(&board, &["import", "PLAN.md"]);
    let exported = |format: &str| -> Value {
        let text = run(&board, &["export", format, "-"]).stdout;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let state = exported("option-c");
    for task in state["tasks"].as_array().unwrap() {
        let context = &task["context"];
        assert!(context["files"].is_array() && context["hints"].is_string(), "{task}");
        assert!(task["attempts"].is_u64() && task["max_attempts"].is_u64(), "{task}");
    }
    let mut open = vec![(exported("pipeline")["backlog"].clone(), 0)];
    let levels = [("Phase", "milestones"), ("Milestone", "tasks"), ("Task", "subtasks")];
    let mut subtasks = 0;
    while let Some((items, depth)) = open.pop() {
        for item in items.as_array().unwrap_or_else(|| panic!("a list at {depth}")) {
            for field in ["id", "title", "status", "description"] {
                assert!(item[field].is_string(), "{field} of {item}");
            }
            match levels.get(depth) {
                Some((kind, parts)) => {
                    assert_eq!(item["type"], *kind);
                    open.push((item[*parts].clone(), depth + 1));
                }
                None => {
                    subtasks += 1;
                    assert!(item["dependencies"].is_array() && item["context_scope"].is_string());
                    assert!(item["story_points"].is_u64(), "{item}");
                }
            }
        }
    }
    assert_eq!(subtasks, 1);
}
