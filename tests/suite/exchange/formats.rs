use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{by_source, refusal, reply, run, statuses, write};
use crate::harness::Board;

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, status)| ((*id).to_owned(), (*status).to_owned())).collect()
}

/// Source ids of what a task depends on, sorted.
pub(super) fn depends(board: &Board, id: &str) -> Vec<String> {
    let tasks = board.cli_ok("get_all_tasks", json!({"limit": 1000}))["tasks"].take();
    let of =
        |task: &Value| tasks.as_array().unwrap().iter().find(|one| one["id"] == *task).cloned();
    let on = by_source(board, id)["dependencies"].take();
    let on = on
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|on| Some(of(on)?["planned"]["source"]["id"].as_str()?.to_owned()));
    let mut on: Vec<String> = on.collect();
    on.sort();
    on
}

/// In, out, in again on this board and on an empty one: nothing has changed, and both write the
/// same.
fn round_trip(board: &Board, format: &str, path: &str) {
    let before = statuses(board);
    reply(board, &["export", format, path, "--force"]);
    let verdict = reply(board, &["verify", format, path]);
    assert_eq!(verdict["differences"], json!([]), "{format}");
    let again = reply(board, &["import", format, path]);
    assert_eq!(again["kept"], again["items"], "{format}: {again:#}");
    assert_eq!(statuses(board), before, "{format}");
    let text = std::fs::read_to_string(board.base().join(path)).unwrap();
    let other = Board::new();
    write(&other, path, &text);
    reply(&other, &["import", format, path]);
    reply(&other, &["export", format, "again"]);
    assert_eq!(std::fs::read_to_string(other.base().join("again")).unwrap(), text, "{format}");
}

#[test]
fn issues_of_beads_keep_their_relations() {
    let board = Board::new();
    let issues = [
        json!({"id": "bd-1", "title": "Epic", "status": "open", "priority": 1, "issue_type": "epic"}),
        json!({"id": "bd-2", "title": "First", "description": "d", "design": "how", "status": "closed", "priority": 0,
            "issue_type": "bug", "labels": ["a", "b"], "close_reason": "fixed", "dependencies": [
                {"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "parent-child"}]}),
        json!({"id": "bd-3", "title": "Second", "status": "in_progress", "priority": 4, "issue_type": "task",
            "assignee": "ann", "dependencies": [
                {"issue_id": "bd-3", "depends_on_id": "bd-1", "type": "parent-child"},
                {"issue_id": "bd-3", "depends_on_id": "bd-2", "type": "blocks"},
                {"issue_id": "bd-3", "depends_on_id": "bd-9", "type": "blocks"},
                {"issue_id": "bd-3", "depends_on_id": "bd-4", "type": "related"}]}),
        json!({"id": "bd-4", "title": "Third", "status": "blocked", "priority": 2, "issue_type": "task"}),
        json!({"id": "bd-5", "title": "Gone", "status": "tombstone", "priority": 2, "issue_type": "task"}),
    ];
    let text: String = issues.iter().map(|issue| format!("{issue}\n")).collect();
    write(&board, ".beads/issues.jsonl", &text);
    let first = reply(&board, &["import", "."]);
    assert_eq!(
        first["report"]["statuses"],
        json!({"blocked is available": 1, "in_progress is available": 1})
    );
    assert_eq!(first["report"]["left_out"]["an issue that was deleted"], 1);
    let all =
        [("bd-1", "available"), ("bd-2", "done"), ("bd-3", "available"), ("bd-4", "available")];
    assert_eq!(statuses(&board), pairs(&all));
    assert_eq!(
        (depends(&board, "bd-3"), by_source(&board, "bd-3")["parent"].clone()),
        (vec!["bd-2".to_owned()], by_source(&board, "bd-1")["id"].clone())
    );
    let note = by_source(&board, "bd-3")["context"]["metadata"]["note"].clone();
    assert_eq!(note, "it was in progress with ann when it was imported");
    round_trip(&board, "beads", ".beads/issues.jsonl");
    let written = std::fs::read_to_string(board.base().join(".beads/issues.jsonl")).unwrap();
    let written: Vec<Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sorted = |issue: &Value| {
        let mut issue = issue.clone();
        if let Some(list) = issue["dependencies"].as_array_mut() {
            list.sort_by_key(ToString::to_string);
        }
        issue
    };
    assert_eq!(
        written.iter().map(sorted).collect::<Vec<_>>(),
        issues[..4].iter().map(sorted).collect::<Vec<_>>()
    );
}

#[test]
fn issues_of_github_have_their_task_lists_as_parts() {
    let board = Board::new();
    let issues = json!([
        {"number": 3, "title": "Third", "body": "Blocked by #1, #2.\n\n- [x] one\n- [ ] two\n- [ ] #2\n", "state": "OPEN",
         "labels": [{"name": "bug", "color": "red"}], "assignees": [{"login": "ann"}], "milestone": {"title": "v1"},
         "url": "https://example.com/3"},
        {"number": 2, "title": "Second", "body": "", "state": "OPEN", "labels": [], "assignees": [], "milestone": null},
        {"number": 1, "title": "First", "body": "- [ ] never done", "state": "CLOSED", "labels": []},
    ]);
    let path = write(&board, "issues.json", &issues.to_string());
    let piped = board.finish(
        board
            .command()
            .args(["--json", "import", "-", "--name", "issues", "--dry-run"])
            .stdin(std::fs::File::open(path).unwrap()),
    );
    assert_eq!(piped.value()["format"], "github", "{}", piped.stderr);
    let first = reply(&board, &["import", "issues.json"]);
    assert_eq!(first["added"].as_array().unwrap().len(), 5);
    let third = by_source(&board, "3");
    assert_eq!(
        (&third["tags"], depends(&board, "3")),
        (&json!(["bug"]), vec!["1".to_owned(), "2".to_owned()])
    );
    assert_eq!(by_source(&board, "1")["status"], "done");
    let out = run(&board, &["export", "github"]).stdout;
    let part =
        board.cli_ok("get_all_tasks", json!({"parent": third["id"]}))["tasks"][1]["id"].clone();
    assert!(
        out.contains("## Third (#3)")
            && out.contains(&format!("- [ ] two (`{}`)", part.as_str().unwrap())),
        "{out}"
    );
    let again = reply(&board, &["import", "issues.json"]);
    assert_eq!(again["kept"], again["items"]);
}

#[test]
fn tables_are_read_by_the_names_of_their_columns_or_by_a_map() {
    let board = Board::new();
    let jira = "Summary,Issue key,Status,Priority,Labels,Labels,Inward issue link (Blocks),Parent key,Sprint\n\
        Epic,A-1,To Do,High,,,,,\n\
        \"One, with a comma\",A-2,Done,Medium,x,y,,A-1,Sprint 4\n\
        Two,A-3,In Review,Low,,,A-2,A-1,\n";
    write(&board, "jira.csv", jira);
    let first = reply(&board, &["import", "jira.csv"]);
    assert_eq!(
        (&first["format"], &first["report"]["kept"]),
        (&json!("csv"), &json!({"Sprint": 1}))
    );
    assert_eq!(
        statuses(&board),
        pairs(&[("A-1", "available"), ("A-2", "done"), ("A-3", "available")])
    );
    assert_eq!(
        (depends(&board, "A-3"), by_source(&board, "A-2")["tags"].clone()),
        (vec!["A-2".to_owned()], json!(["x", "y"]))
    );
    round_trip(&board, "csv", "jira.csv");

    let board = Board::new();
    write(
        &board,
        "linear.csv",
        "ID,Team,Title,Status,Priority,Blocked by\nL-1,T,One,Backlog,Urgent,\nL-2,T,Two,Canceled,No priority,L-1\n",
    );
    reply(&board, &["import", "linear.csv"]);
    assert_eq!(statuses(&board), pairs(&[("L-1", "available"), ("L-2", "cancelled")]));
    assert_eq!(by_source(&board, "L-1")["priority"], 1);

    let board = Board::new();
    write(&board, "own.csv", "Nr;What;Fertig\n7;Build it;done\n");
    assert!(refusal(&board, &["import", "csv", "own.csv"]).contains("it is not csv"));
    reply(&board, &["import", "own.csv", "--map", "title=What,id=Nr,status=Fertig"]);
    assert_eq!(statuses(&board), pairs(&[("7", "done")]));
    let board = Board::new();
    for (text, words, part) in [
        ("id,title\n1,a\n2\n", &["import", "t.csv"][..], "t.csv line 3: "),
        (
            "id,title,depends\n1,a,2\n2,b,1\n",
            &["import", "t.csv"],
            "1 (line 2) -> 2 (line 3) -> 1 (line 2)",
        ),
        ("id,title\n1,\n", &["import", "t.csv"], "line 2: it has no title"),
        ("id,title\n1,a\n", &["import", "t.csv", "--map", "nonesuch=id"], "there is no such field"),
    ] {
        write(&board, "t.csv", text);
        let told = refusal(&board, words);
        assert!(told.contains(part), "{text}: {told}");
    }
}

#[test]
fn tasks_of_spec_kit_wait_as_their_phases_and_marks_say() {
    let board = Board::new();
    let text = "# Tasks: Login\n\n## Format: `[ID] [P?] [Story] Description`\n\n- **[P]**: can run side by side\n\n\
        ## Phase 1: Setup\n\n- [x] T001 Make the project\n- [ ] T002 [P] Configure linting in .lint\n- [ ] T003 [P] Configure tests\n- [ ] T004 Check both\n\n\
        ## Phase 2: Foundational\n\n- [ ] T005 Database\n\n\
        ## Phase 3: User Story 1 - Log in (Priority: P1)\n\n### Implementation\n\n- [ ] T006 [P] [US1] Model\n- [ ] T007 [US1] Service (depends on T006, T005)\n\n\
        ## Phase 4: User Story 2 - Log out\n\n- [ ] T008 [US2] Button\n\n\
        ## Phase 5: Polish\n\n- [ ] T009 [P] Documentation\n\n\
        ## Parallel Example\n\n```bash\nTask: \"T006 Model\"\n- [ ] T099 not a task\n```\n\n\
        ## Dependencies & Execution Order\n\n- Setup first\n- Then the rest\n";
    write(&board, "specs/001-login/tasks.md", text);
    let first = reply(&board, &["import", "specs/001-login/tasks.md"]);
    assert_eq!(
        (&first["format"], first["added"].as_array().unwrap().len()),
        (&json!("spec-kit"), 14)
    );
    let notes = first["report"]["notes"].to_string();
    assert!(
        notes.contains("2 entries below \\\"Dependencies & Execution Order\\\" are no tasks"),
        "{notes}"
    );
    for (id, expected) in [
        ("T001", &[][..]),
        ("T002", &["T001"]),
        ("T003", &["T001"]),
        ("T004", &["T002", "T003"]),
        ("T007", &["T005", "T006"]),
        ("T009", &[]),
        ("phase 2", &["phase 1"]),
        ("phase 3", &["phase 2"]),
        ("phase 4", &["phase 2"]),
        ("phase 5", &["phase 3", "phase 4"]),
    ] {
        assert_eq!(depends(&board, id), expected, "{id}");
    }
    assert_eq!(by_source(&board, "T006")["title"], "Model");
    assert_eq!(by_source(&board, "T006")["tags"], json!(["US1"]));
    let again = reply(&board, &["import", "specs/001-login/tasks.md"]);
    assert_eq!(again["kept"], again["items"]);
    assert_eq!(reply(&board, &["verify", "spec-kit", "specs/001-login/tasks.md"])["same"], true);
}

#[test]
fn changes_of_openspec_have_groups_and_only_x_is_done() {
    let board = Board::new();
    let text = "## 1. Schema\n- [x] 1.1 Table\n- [~] 1.2 Index\n- [ ] 1.2 Key\n\n## 2. Pages\n- [] 2.1 List\n- [ x ] 2.2 Form\n- just words\n";
    write(&board, "openspec/changes/add-x/tasks.md", text);
    let first = reply(&board, &["import", "."]);
    assert_eq!(
        (&first["format"], first["added"].as_array().unwrap().len()),
        (&json!("openspec"), 8),
        "a group for the change"
    );
    let found = statuses(&board);
    let done: Vec<_> =
        found.iter().filter(|(_, status)| status == "done").map(|(id, _)| id.as_str()).collect();
    assert_eq!(done, ["add-x/1.1"], "as the tool counts");
    assert!(first["report"]["notes"].to_string().contains("just words"));
    let again = reply(&board, &["import", "."]);
    assert_eq!(again["kept"], again["items"]);
}

#[test]
fn tasks_of_kiro_have_parts_details_and_requirements() {
    let board = Board::new();
    let text = "# Implementation Plan\n\n- [x] 1. Set up\n  - Make the project\n  - _Requirements: 1.1, 1.2_\n\n- [-] 2. Build\n- [ ] 2.1 Model\n  - [ ] 2.2 Part of model\n\n- [ ]* 3. Write more tests\n  - _Requirements: 3_\n";
    write(&board, ".kiro/specs/shop/tasks.md", text);
    let first = reply(&board, &["import", ".kiro/specs/shop/tasks.md"]);
    assert_eq!((&first["format"], &first["added"].as_array().unwrap().len()), (&json!("kiro"), &5));
    let set_up = by_source(&board, "1");
    assert_eq!(
        (&set_up["status"], &set_up["description"]),
        (&json!("done"), &json!("- Make the project"))
    );
    assert_eq!(set_up["context"]["metadata"]["requirements"], json!(["1.1", "1.2"]));
    assert_eq!(by_source(&board, "2.2")["parent"], by_source(&board, "2.1")["id"]);
    assert_eq!(by_source(&board, "3")["tags"], json!(["optional"]));
    let again = reply(&board, &["import", ".kiro/specs/shop/tasks.md"]);
    assert_eq!(again["kept"], again["items"]);
}

#[test]
fn boxes_of_every_form_are_tasks_and_equal_words_stay_apart() {
    let text = "# Tasks\n\n## 1. Group\n\n1. [ ] 1.1 Numbered\n[x] 1.2 Bare\n- ☑ 1.3 Symbol\n• [ ] Same words\n* [ ] Same words\n- [ ] T001 Known\n";
    for (format, path, all) in [
        ("openspec", "openspec/changes/add-x/tasks.md", 7),
        ("spec-kit", "specs/001-x/tasks.md", 7),
        ("kiro", ".kiro/specs/x/tasks.md", 6),
    ] {
        let board = Board::new();
        write(&board, path, text);
        assert_eq!(reply(&board, &["import", format, path])["items"], all, "{format}");
        let done = statuses(&board).into_iter().filter(|(_, status)| status == "done").count();
        assert_eq!(done, 2, "{format}");
        let again = reply(&board, &["import", format, path]);
        assert_eq!(again["kept"], again["items"], "{format}");
    }
}

#[test]
fn a_whole_project_can_be_verified() {
    let board = Board::new();
    write(&board, "openspec/changes/add-x/tasks.md", "- [ ] 1.1 One\n");
    reply(&board, &["import", "openspec", "."]);
    let verdict = reply(&board, &["verify", "openspec", "."]);
    assert_eq!((&verdict["differences"], &verdict["on_board"]["items"]), (&json!([]), &json!(2)));
}

#[test]
fn an_item_that_waits_for_itself_is_refused_as_a_circle() {
    let board = Board::new();
    write(&board, "waits.csv", "id,title,depends\n1,One,1\n");
    let refused = refusal(&board, &["import", "waits.csv"]);
    assert!(refused.contains("each waits for the next: 1 (line 2) -> 1 (line 2)"), "{refused}");
}

#[test]
fn of_two_files_of_beads_one_is_read_and_the_other_is_named() {
    let board = Board::new();
    let issue = |title: &str| {
        json!({"id": "1", "title": title, "status": "open", "priority": 1}).to_string()
    };
    write(&board, ".beads/issues.jsonl", &issue("One"));
    write(&board, ".beads/beads.jsonl", &issue("Old"));
    let first = reply(&board, &["import", "beads", "."]);
    assert_eq!(first["found"], "by .beads/issues.jsonl; .beads/beads.jsonl is not read");
    assert_eq!(by_source(&board, "1")["title"], "One");
}

#[test]
fn graphs_show_parts_and_dependencies_and_escape_titles() {
    let board = Board::new();
    write(
        &board,
        "PLAN.md",
        "# A \"quoted\" <plan>\n\n## Group\n\n- [ ] one \"two\" \\ <b>\n- [x] last (depends on one)\n",
    );
    reply(&board, &["import", "PLAN.md"]);
    let mermaid = run(&board, &["export", "mermaid"]).stdout;
    assert!(
        mermaid.starts_with("flowchart TD\n") && mermaid.contains("&quot;two&quot;"),
        "{mermaid}"
    );
    assert!(mermaid.contains(" --> ") && mermaid.contains("subgraph t0["), "{mermaid}");
    let dot = run(&board, &["export", "dot"]).stdout;
    assert!(
        dot.contains("\\\"two\\\" \\\\") && dot.contains(" -> ") && dot.trim_end().ends_with('}'),
        "{dot}"
    );
    let told = run(&board, &["import", "dot", "PLAN.md"]);
    assert!(told.stderr.contains("dot is only written"), "{}", told.stderr);
}

#[test]
fn an_export_replaces_only_what_it_wrote_and_its_names_are_safe() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"title": "../../etc/passwd", "description": "x"}));
    board.cli_ok("create_task", json!({"title": "a/b\\c: \"d\" \u{202e}e", "description": "x"}));
    let made = reply(&board, &["export", "backlog-md", "out"]);
    assert_eq!(made["written"].as_array().unwrap().len(), 2);
    for path in made["written"].as_array().unwrap() {
        let path = path.as_str().unwrap();
        assert!(path.contains("/out/backlog/tasks/task-") && !path.contains(".."), "{path}");
    }
    assert_eq!(
        reply(&board, &["export", "backlog-md", "out"])["unchanged"].as_array().unwrap().len(),
        2
    );
    let first = made["written"][0].as_str().unwrap();
    std::fs::write(first, "by hand").unwrap();
    let refused = run(&board, &["export", "backlog-md", "out"]);
    assert!(
        refused.stderr.contains(first) && refused.stderr.contains("--force"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read_to_string(first).unwrap(), "by hand");
    reply(&board, &["export", "backlog-md", "out", "--force"]);
    assert_ne!(std::fs::read_to_string(first).unwrap(), "by hand");
    assert!(run(&board, &["export", "backlog-md"]).stderr.contains("is a directory of files"));
}

#[test]
fn links_out_of_a_directory_are_not_followed() {
    let board = Board::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(
        outside.path().join("tasks.json"),
        "{\"master\": {\"tasks\": [{\"id\": 1, \"title\": \"secret\"}]}}",
    )
    .unwrap();
    std::fs::create_dir(board.base().join(".taskmaster")).unwrap();
    std::os::unix::fs::symlink(outside.path(), board.base().join(".taskmaster/tasks")).unwrap();
    let told = refusal(&board, &["import", "."]);
    assert!(told.contains("there is nothing to import"), "{told}");
}

#[test]
fn a_project_without_a_board_is_told_what_could_be_imported() {
    let board = Board::new();
    write(&board, ".beads/issues.jsonl", "{}\n");
    let told = run(&board, &["status"]).stdout;
    assert!(
        told.contains(".beads/issues.jsonl is of the issues of beads: ")
            && told.contains("import beads"),
        "{told}"
    );
    let told = run(&board, &["init", "the goal"]).stdout;
    assert!(told.contains("import beads"), "{told}");
    let told = run(&board, &["status"]).stdout;
    assert!(!told.contains("import beads"), "{told}");
}

#[test]
fn a_backlog_of_phases_comes_in_and_goes_out() {
    let part = |id: &str, kind: &str, status: &str| json!({"id": id, "type": kind, "title": format!("Part {id}"), "status": status, "description": format!("Do {id}.")});
    let with = |mut item: Value, more: Value| {
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item
    };
    // Readers want these of every subtask.
    let nothing = json!({"dependencies": [], "story_points": 1, "context_scope": ""});
    let subtasks = json!([
        with(
            part("P1.M1.T1.S1", "Subtask", "Complete"),
            json!({"dependencies": [], "story_points": 2, "context_scope": "INPUT: none"})
        ),
        with(
            part("P1.M1.T1.S2", "Subtask", "Researching"),
            json!({"dependencies": ["P1.M1.T1.S1"], "story_points": 1, "context_scope": "LOGIC: tables"}),
        ),
        with(part("P1.M1.T1.S3", "Subtask", "Obsolete"), nothing.clone()),
        with(part("P1.M1.T1.S4", "Subtask", "Failed"), nothing),
    ]);
    let task = with(part("P1.M1.T1", "Task", "Implementing"), json!({"subtasks": subtasks}));
    let milestone = with(part("P1.M1", "Milestone", "Implementing"), json!({"tasks": [task]}));
    let file = json!({"backlog": [
        with(part("P1", "Phase", "Implementing"), json!({"milestones": [milestone]})),
        with(part("P3", "Phase", "Planned"), json!({"milestones": [], "dependencies": ["P1"]})),
    ]});
    let board = Board::new();
    write(&board, "tasks.json", &file.to_string());
    let first = reply(&board, &["import", "tasks.json"]);
    assert_eq!(
        (&first["format"], first["added"].as_array().unwrap().len()),
        (&json!("pipeline"), 8)
    );
    assert_eq!(first["report"]["kept"]["story_points"], 1, "one point is what all others have");
    let open = by_source(&board, "P1.M1.T1.S2");
    assert_eq!((&open["path"], &open["status"]), (&json!("P1.M1.T1.S2"), &json!("available")));
    assert_eq!(open["context"]["metadata"]["context_scope"], "LOGIC: tables");
    assert_eq!(by_source(&board, "P3")["path"], "P3", "numbers that the file gives stay");
    assert_eq!(reply(&board, &["verify", "pipeline", "tasks.json"])["differences"], json!([]));
    assert_eq!(reply(&board, &["import", "tasks.json"])["unchanged"], true);

    run(&board, &["export", "pipeline", "again.json"]);
    let again: Value =
        serde_json::from_str(&fs::read_to_string(board.base().join("again.json")).unwrap())
            .unwrap();
    assert_eq!(again, file, "an unchanged board writes the same backlog");
    let other = Board::new();
    write(&other, "tasks.json", &again.to_string());
    reply(&other, &["import", "pipeline", "tasks.json"]);
    assert_eq!(statuses(&other), statuses(&board));
    let empty = Board::new();
    let wrong =
        json!({"backlog": [part("P1", "Phase", "Planned"), part("P1", "Phase", "Planned")]});
    write(&empty, "twins.json", &serde_json::to_string_pretty(&wrong).unwrap());
    assert!(refusal(&empty, &["import", "twins.json"]).contains("P1"));
}

#[test]
fn an_export_removes_nothing_of_an_export_to_another_place() {
    let board = Board::new();
    let file = json!({"id": "t1", "title": "One", "description": "d", "status": "done", "result": {"output": "made"}});
    write(&board, "in/tasks.json", &json!({"tasks": [file]}).to_string());
    reply(&board, &["import", "option-a", "in"]);
    for (format, first) in [("csv", "backups/monday.csv"), ("option-a", "bak")] {
        if let Some(parent) = std::path::Path::new(first).parent() {
            fs::create_dir_all(board.base().join(parent)).unwrap();
        }
        let first = reply(&board, &["export", format, first]);
        assert_eq!(reply(&board, &["export", format, "."])["removed"], json!([]), "{format}");
        for path in first["written"].as_array().unwrap() {
            assert!(fs::exists(path.as_str().unwrap()).unwrap(), "{format}: {path}");
        }
    }
    reply(&board, &["export", "csv", "o.csv"]);
    board.cli_ok("create_task", json!({"description": "another"}));
    assert_eq!(
        reply(&board, &["export", "csv", "./o.csv"])["written"].as_array().unwrap().len(),
        1,
        "it is the same"
    );
}

#[test]
fn what_is_cancelled_with_its_parts_stays_cancelled_in_a_backlog_of_phases() {
    let board = Board::new();
    let plan = json!({"items": [{"title": "A", "status": "Cancelled", "items": [{"title": "B", "status": "Planned"}]}]});
    write(&board, "plan.json", &plan.to_string());
    reply(&board, &["import", "plan.json"]);
    reply(&board, &["export", "pipeline", "tasks.json"]);
    let other = Board::new();
    write(&other, "tasks.json", &fs::read_to_string(board.base().join("tasks.json")).unwrap());
    reply(&other, &["import", "tasks.json"]);
    let found: Vec<_> = statuses(&other).into_iter().map(|(_, status)| status).collect();
    assert_eq!(found, ["cancelled", "cancelled"]);
}

#[test]
fn an_export_goes_where_the_system_would_put_it_and_help_names_what_can_be_compared() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    fs::create_dir_all(board.base().join("there/deep")).unwrap();
    std::os::unix::fs::symlink("there/deep", board.base().join("link")).unwrap();
    reply(&board, &["export", "csv", "link/../tasks.csv"]);
    assert!(board.base().join("there/tasks.csv").exists());
    assert!(!board.base().join("tasks.csv").exists());
    let help = run(&board, &["verify", "--help"]).stdout;
    assert!(
        help.contains("task-master") && !help.contains("  markdown") && !help.contains("  json"),
        "{help}"
    );
}

#[test]
fn a_task_in_review_has_the_word_for_it_or_is_in_progress() {
    let board = Board::new();
    reply(
        &board,
        &["plan", "import", &write(&board, "plan.md", "- [ ] Lexer\n").display().to_string()],
    );
    let tasks = board.cli_ok("get_all_tasks", json!({}));
    let id = tasks["tasks"][0]["id"].as_str().unwrap().to_owned();
    board.cli_ok("update_task", json!({"task_id": id, "review": "by leader"}));
    board.cli_ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "a"}));
    board.cli_ok("complete_task", json!({"agent_id": "a", "task_id": id, "output": "made"}));
    for (format, word) in [
        ("option-a", "\"status\": \"in_progress\""),
        ("option-b", "\"status\": \"in_progress\""),
        ("option-c", "\"status\": \"in_progress\""),
        ("task-master", "\"status\": \"review\""),
        ("beads", "\"status\":\"in_progress\""),
        ("backlog-md", "status: In Progress"),
        ("csv", ",review,"),
        ("mermaid", "review"),
    ] {
        let out = format!("out-{format}");
        reply(&board, &["export", format, &out]);
        let text = texts(&board.base().join(&out));
        assert!(text.contains(word), "no {word} in {format}: {text}");
        if !["mermaid"].contains(&format) {
            let differences = reply(&board, &["verify", format, &out])["differences"].clone();
            assert_eq!(differences, json!([]), "{format}");
        }
    }
}

/// The texts of a file, or of all files below a directory.
fn texts(path: &Path) -> String {
    if path.is_file() {
        return fs::read_to_string(path).unwrap();
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| texts(&entry.unwrap().path()));
    entries.collect()
}
