//! Plans through the real program: imported, worked on, changed, and imported again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use callboard::state::event::Event;
use callboard::state::task::TaskStatus;
use serde_json::{Value, json};

use crate::harness::{Board, Client, Finished, STATE_FILE};

/// Phases, milestones in each, tasks in each, subtasks in each: 5 + 20 + 95 + 380 = 500 items.
const PHASES: usize = 5;
const MILESTONES: usize = 4;
const SUBTASKS: usize = 4;

/// Items in order: level, path, title, description.
#[derive(Clone)]
struct Line {
    path: Option<String>,
    level: usize,
    title: String,
    text: Option<String>,
}

fn big_plan() -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = |path: String, level: usize, title: String| {
        lines.push(Line {
            text: Some(format!("What {path} is about.")),
            path: Some(path),
            level,
            title,
        });
    };
    for phase in 1..=PHASES {
        line(format!("P{phase}"), 1, format!("Phase number {phase}"));
        for milestone in 1..=MILESTONES {
            let path = format!("P{phase}.M{milestone}");
            line(path.clone(), 2, format!("Milestone {phase} {milestone}"));
            for task in 1..=if milestone == MILESTONES { 4 } else { 5 } {
                let path = format!("{path}.T{task}");
                line(path.clone(), 3, format!("Task {phase} {milestone} {task}"));
                for subtask in 1..=SUBTASKS {
                    line(
                        format!("{path}.S{subtask}"),
                        4,
                        format!("Subtask {phase} {milestone} {task} {subtask}"),
                    );
                }
            }
        }
    }
    assert_eq!(lines.len(), 500);
    lines
}

fn markdown(lines: &[Line]) -> String {
    let mut text = "# The big plan\n".to_owned();
    for Line { path, level, title, text: body } in lines {
        let path = path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
        let indent = "  ".repeat(level.saturating_sub(2));
        match level {
            1 | 2 => text.push_str(&format!("\n{} {path}{title}\n\n", "#".repeat(level + 1))),
            _ => text.push_str(&format!("{}- [ ] {path}{title}\n", "  ".repeat(level - 3))),
        }
        if let Some(body) = body {
            text.push_str(&format!("{indent}{body}\n"));
        }
    }
    text
}

fn plan(board: &Board, arguments: &[&str]) -> Finished {
    board.finish(board.command().args(["--json", "plan"]).args(arguments))
}

fn write(board: &Board, name: &str, text: &str) -> String {
    let path = board.base().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn paths(reply: &Value, list: &str) -> Vec<String> {
    reply[list]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap().to_owned())
        .collect()
}

const LISTS: [&str; 7] =
    ["added", "modified", "reopened", "renamed", "completed", "obsolete", "left_done"];

fn counts(reply: &Value) -> Vec<(&'static str, usize)> {
    LISTS
        .into_iter()
        .map(|list| (list, paths(reply, list).len()))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// Lets one agent do every claimable task at or below `scope`, up to `most`.
fn work(client: &mut Client, scope: &str, most: usize) -> usize {
    let mut done = 0;
    while done < most {
        let claim = client.ok("claim_task", json!({"agent_id": "w1", "scope": scope}));
        if claim["success"] != true {
            break;
        }
        let path = claim["task"]["path"].as_str().unwrap();
        assert!(
            scope == "all" || path == scope || path.starts_with(&format!("{scope}.")),
            "{path} is not in {scope}"
        );
        client.ok(
            "complete_task",
            json!({"agent_id": "w1", "task_id": claim["task"]["id"], "output": path}),
        );
        done += 1;
    }
    done
}

#[test]
fn an_exported_plan_is_as_its_schema_says() {
    let board = Board::new();
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/plan.md");
    assert!(board.finish(board.command().args(["plan", "import", plan])).status.success());
    let exported = board.finish(board.command().args(["plan", "export", "--format", "json"]));
    crate::schemas::assert_plan(&exported.value());
}

#[test]
fn a_plan_of_500_items_changes_while_it_is_worked_on() {
    let board = Board::new();
    board.cli_ok("init_coordination", json!({"goal": "the big plan"}));
    let mut lines = big_plan();
    let file = write(&board, "PLAN.md", &markdown(&lines));
    let before = board.events().len();
    let shown = plan(&board, &["import", &file, "--dry-run"]).value();
    assert_eq!(
        (counts(&shown), board.events().len()),
        (vec![("added", 500)], before),
        "--dry-run writes nothing"
    );
    let first = plan(&board, &["import", &file]).value();
    assert_eq!((counts(&first), first["items"].as_u64()), (vec![("added", 500)], Some(500)));
    assert_eq!(board.events().len(), before + 1, "one event");

    let mut client = Client::start(board.command().arg("mcp"));
    client.register("w1");
    // The five tasks with a box and parts are work of their own.
    assert_eq!(work(&mut client, "P1.M2", 1_000), 25);
    let half = work(&mut client, "all", 170);
    assert_eq!(half, 170);
    let statuses = |board: &Board| -> BTreeMap<String, (String, TaskStatus)> {
        let state = board.replay();
        let of_plan = state.tasks().filter(|task| task.path.is_some());
        of_plan
            .map(|task| (task.path.clone().unwrap(), (task.id.to_string(), task.status)))
            .collect()
    };
    let then = statuses(&board);
    let done = |path: &str| then[path].1 == TaskStatus::Done;

    // 10 modified, 5 of them done; 5 removed, 2 of them done; 3 renamed, 1 of them done; 8 added.
    let leaf = |line: &Line| line.level == 4;
    let leaves: Vec<usize> = (0..lines.len()).filter(|at| leaf(&lines[*at])).collect();
    let path = |lines: &[Line], at: usize| lines[at].path.clone().unwrap();
    let of = |is_done: bool| {
        let fits = leaves.iter().copied().filter(|at| done(&path(&lines, *at)) == is_done);
        fits.collect::<Vec<_>>()
    };
    let (over, open) = (of(true), of(false));
    let modified: Vec<usize> = over[..5].iter().chain(&open[..5]).copied().collect();
    let removed: Vec<usize> = over[10..12].iter().chain(&open[10..13]).copied().collect();
    let renamed: Vec<usize> = vec![over[20], open[20], open[30]];
    let names = |set: &[usize]| -> Vec<String> { set.iter().map(|at| path(&lines, *at)).collect() };
    let (modified_paths, removed_paths, renamed_paths) =
        (names(&modified), names(&removed), names(&renamed));
    for at in &modified {
        lines[*at].text = Some("Something else.".to_owned());
    }
    for at in &renamed {
        lines[*at].title = format!("{}, by another name", lines[*at].title);
    }
    let mut gone = removed.clone();
    gone.sort_unstable();
    for at in gone.into_iter().rev() {
        lines.remove(at);
    }
    for number in 1..=8 {
        let (path, title) = (Some(format!("P5.M4.T9{number}")), format!("Extra {number}"));
        lines.push(Line { path, level: 3, title, text: None });
    }
    let file = write(&board, "PLAN.md", &markdown(&lines));
    let before = board.events().len();
    let shown = plan(&board, &["diff", &file]).value();
    assert_eq!(board.events().len(), before);
    let again = plan(&board, &["import", &file]).value();
    assert_eq!(board.events().len(), before + 1, "one durable write");
    assert!(matches!(board.events().last().unwrap().event, Event::PlanImported { .. }));
    let expected =
        vec![("added", 9), ("modified", 10), ("renamed", 2), ("obsolete", 3), ("left_done", 3)];
    assert_eq!((counts(&again), counts(&shown)), (expected.clone(), expected));
    assert_eq!(again["kept"].as_u64(), Some(500 - 10 - 5 - 3));
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(
        sorted([paths(&again, "modified"), paths(&again, "reopened")].concat()),
        sorted(modified_paths.clone())
    );
    let (done_before, renamed_open) = renamed_paths.split_at(1);
    let gone = [paths(&again, "obsolete"), paths(&again, "left_done")].concat();
    assert_eq!(sorted(gone), sorted([removed_paths, done_before.to_vec()].concat()));
    assert_eq!(sorted(paths(&again, "renamed")), sorted(renamed_open.to_vec()));
    assert_eq!(paths(&again, "reworded"), done_before, "what was done in other words is open");
    assert_eq!(again["prev_sha256"], first["sha256"]);

    let now = statuses(&board);
    for (path, (id, status)) in &then {
        let (now_id, now_status) = &now[path];
        if done_before.contains(path) {
            assert_eq!((id == now_id, *now_status), (false, TaskStatus::Available));
            continue;
        }
        assert_eq!(id, now_id, "{path} is the same task");
        let is_leaf = path.matches('.').count() == 3;
        if *status == TaskStatus::Done && is_leaf {
            assert_eq!(*now_status, TaskStatus::Done, "{path}: done work stays done");
        }
    }
    board.assert_file_is_the_replay();

    let versions = plan(&board, &["versions"]).value();
    assert_eq!(
        (versions["plans"].as_array().unwrap().len(), &versions["plans"][1]["prev_sha256"]),
        (2, &first["sha256"])
    );
    let between = plan(&board, &["diff"]).value();
    let of_versions = ["added", "modified", "renamed", "removed"]
        .map(|list| between[list].as_array().unwrap().len());
    assert_eq!(of_versions, [9, 10, 2, 6]);
    let old = &first["sha256"].as_str().unwrap()[..12];
    let exported = board.finish(board.command().args(["plan", "export", "--version", old]));
    let back = write(&board, "OLD.md", &exported.stdout);
    let back = plan(&board, &["import", &back, "--dry-run", "--replace", "PLAN.md"]).value();
    assert_eq!(
        counts(&back).iter().find(|(list, _)| *list == "added"),
        None,
        "what had left is known again"
    );
    assert_eq!(paths(&back, "reopened"), paths(&again, "obsolete"));
    assert_eq!(plan(&board, &["import", &file]).value()["unchanged"], true);
    println!("500 items, {} done, re-imported: {:?}", half + 25, counts(&again));
}

#[test]
fn exported_plan_has_the_tabs_of_the_plan() {
    let board = Board::new();
    let file =
        write(&board, "PLAN.md", "- [ ] Build\n\n  ```make\n  all:\n  \tcargo build\n  ```\n");
    plan(&board, &["import", &file]).value();
    let exported = board.finish(board.command().args(["plan", "export"])).stdout;
    let back = plan(&board, &["import", &write(&board, "PLAN.md", &exported)]).value();
    assert_eq!(
        (&back["kept"], exported.contains("\tcargo build")),
        (&json!(1), true),
        "{exported}"
    );
}

#[test]
fn export_of_what_was_changed_on_the_board_changes_nothing_when_it_is_imported() {
    for format in ["markdown", "json"] {
        let board = Board::new();
        let text = "# Plan\n\n- [ ] A\n- [ ] B\n\n  Words.\n- [ ] C\n- [ ] D\n  priority: 2\n";
        plan(&board, &["import", &write(&board, "PLAN.md", text)]).value();
        let document = board.document();
        let tasks = document["tasks"].as_array().unwrap();
        let id_of =
            |title: &str| tasks.iter().find(|task| task["title"] == title).unwrap()["id"].clone();
        let [a, b, c, d] = ["A", "B", "C", "D"].map(id_of);
        board.cli_ok("update_task", json!({"task_id": a, "description": "new words"}));
        board.cli_ok("cancel_task", json!({"task_id": a}));
        board.cli_ok("register_agent", json!({"agent_id": "ada", "role": "worker"}));
        board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": b}));
        board.cli_ok(
            "update_task",
            json!({"task_id": b, "description": "other words", "context_files": ["src/b.rs"]}),
        );
        board.cli_ok("update_task", json!({"task_id": c, "title": "Another"}));
        board.cli_ok("update_task", json!({"task_id": d, "priority": 1, "tags": ["late"]}));

        let before = board.replay();
        let exported =
            board.finish(board.command().args(["plan", "export", "--format", format])).stdout;
        let back = write(&board, "PLAN.md", &exported);
        for arguments in [&["import", &back, "--dry-run"][..], &["import", &back]] {
            let reply = plan(&board, arguments).value();
            assert_eq!(
                (counts(&reply), &reply["kept"]),
                (vec![], &json!(4)),
                "{reply} of\n{exported}"
            );
        }
        for task in board.replay().tasks() {
            let mut task = task.as_ref().clone();
            let then = before.task(&task.id).unwrap();
            task.planned.clone_from(&then.planned);
            assert_eq!(task, **then);
        }
        assert_eq!(plan(&board, &["import", &back]).value()["unchanged"], true);
        let heard = board.cli_ok("heartbeat", json!({"agent_id": "ada", "task_id": b}));
        assert_eq!(heard.get("stop_requested"), None, "{heard}");

        // What the plan changes after that is imported.
        let newer = exported.replace("other words", "newer words").replace("Another", "One more");
        let reply = plan(&board, &["import", &write(&board, "PLAN.md", &newer)]).value();
        // Other words are the same item only by its path, which the text of the file does not have.
        match format {
            "json" => {
                assert_eq!(counts(&reply), [("modified", 1), ("renamed", 1)], "{reply}");
                assert_eq!(reply["renamed"][0]["was"], "Another");
            }
            _ => assert_eq!(
                counts(&reply),
                [("added", 1), ("modified", 1), ("obsolete", 1)],
                "{reply}"
            ),
        }
        assert_eq!(reply["modified"][0]["held_by"], "ada");
        board.assert_file_is_the_replay();
    }
}

#[test]
fn version_that_came_with_another_boards_state_is_not_looked_for_in_this_ones_history() {
    let (board, other) = (Board::new(), Board::new());
    let file = |board: &Board, text: &str| write(board, "PLAN.md", text);
    plan(&board, &["import", &file(&board, "- [ ] mine\n")]).value();
    let older = board.base().join("older.json");
    fs::copy(board.file(STATE_FILE), &older).unwrap();
    // At the seq of the other board's first plan, this board has a plan; its second lies beyond the
    // end of this journal.
    let first = plan(&other, &["import", &file(&other, "- [ ] theirs\n")]).value();
    for number in 0..30 {
        other.cli_ok("create_task", json!({"description": format!("{number}")}));
    }
    let second = plan(&other, &["import", &file(&other, "- [ ] theirs\n- [ ] more\n")]).value();
    let state = other.file(STATE_FILE);
    let restored = board.finish(board.command().arg("restore").arg(&state).arg("--force"));
    assert!(restored.status.success(), "{}", restored.stderr);
    for version in [&first, &second] {
        let version = version["session"].as_str().unwrap();
        let refused = plan(&board, &["export", "--version", version]);
        assert_eq!(refused.code(), "plan_from_elsewhere", "{}", refused.stdout);
        assert!(refused.stderr.contains(version), "{}", refused.stderr);
    }
    assert_eq!(plan(&board, &["diff"]).code(), "plan_from_elsewhere");
    let exported = board.finish(board.command().args(["plan", "export"])).stdout;
    assert!(exported.contains("P2: more"), "{exported}");
    // After a restore, the state has versions of its own.
    let restored = board.finish(board.command().arg("restore").arg(&older).arg("--force"));
    assert!(restored.status.success(), "{}", restored.stderr);
    let current =
        plan(&board, &["versions"]).value()["plans"][0]["sha256"].as_str().unwrap().to_owned();
    assert!(plan(&board, &["export", "--version", &current]).stdout.contains("mine"));
}

#[test]
fn every_command_that_takes_a_scope_keeps_to_it() {
    let board = Board::new();
    let lines = big_plan();
    let file = write(&board, "PLAN.md", &markdown(&lines));
    plan(&board, &["import", &file]).value();
    let run = |arguments: &[&str]| board.finish(board.command().arg("--json").args(arguments));
    let inside = lines
        .iter()
        .filter(|line| line.path.as_ref().is_some_and(|path| path.starts_with("P1.M2")))
        .count();
    let listed = run(&["tasks", "--scope", "P1.M2"]).value();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), inside);
    let status = run(&["status", "--scope", "P1.M2"]).value();
    let total = status["total_tasks"].as_u64().unwrap();
    assert!(total > 0 && total < inside as u64, "without those that have parts: {status}");
    assert_eq!(status["parts"][0]["path"], "P1.M2.T1");

    let mut client = Client::start(board.command().arg("mcp"));
    client.register("w1");
    for _ in 0..2 {
        let claim = client.ok("claim_task", json!({"agent_id": "w1", "scope": "P1.M2"}));
        let fail = json!({"agent_id": "w1", "task_id": claim["task"]["id"], "error": "x", "retryable": false});
        client.ok("fail_task", fail);
    }
    let claim = client.ok("claim_task", json!({"agent_id": "w1", "scope": "P1.M1"}));
    client.ok(
        "fail_task",
        json!({"agent_id": "w1", "task_id": claim["task"]["id"], "error": "x", "retryable": false}),
    );
    assert_eq!(run(&["retry", "--scope", "P1.M2"]).value()["retried"], 2);
    assert_eq!(run(&["status", "--scope", "P1.M1"]).value()["tasks"]["failed"], 1);
    let done = work(&mut client, "P1.M2", 1_000);
    assert_eq!(run(&["status", "--scope", "P1.M2"]).value()["progress_percent"], 100);
    let claim = client.ok("claim_task", json!({"agent_id": "w1", "scope": "P1.M2"}));
    assert_eq!(claim["success"], false);
    let reset = run(&["reset", "--scope", "P1.M2"]).value();
    assert_eq!(
        (
            reset["reset"].as_u64(),
            run(&["status", "--scope", "P1.M2"]).value()["tasks"]["done"].as_u64()
        ),
        (Some(done as u64), Some(0))
    );

    for arguments in [
        vec!["tasks", "--scope", "M2"],
        vec!["status", "--scope", "P1.T2"],
        vec!["retry", "--scope", "p1"],
        vec!["reset", "--scope", "P1."],
        vec!["--agent", "w1", "claim", "--scope", "P"],
        vec!["tasks", "--tree", "--scope", "../x"],
    ] {
        let refused = board.finish(board.command().args(&arguments));
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        assert!(
            refused.stderr.contains("P1, P1.M2, P1.M2.T3 or P1.M2.T3.S4"),
            "{arguments:?}: {}",
            refused.stderr
        );
    }
    board.assert_file_is_the_replay();
}

#[test]
fn wrong_plans_leave_the_board_as_it_was_and_say_where() {
    let board = Board::new();
    board.cli_ok("init_coordination", json!({"goal": "g"}));
    let events = board.events().len();
    let many: String = (0..20_001).map(|number| format!("- [ ] item {number}\n")).collect();
    let huge = "x".repeat(8 * 1024 * 1024 + 1);
    let cases = [
        (
            "cycle.md",
            "- [ ] P1: a\n  depends: P2\n- [ ] P2: b\n  depends: P1\n",
            "line 1: a cycle: P1 (line 1) -> P2 (line 3)",
        ),
        (
            "twice.md",
            "## P1: x\n\n- [ ] P1.M1: a\n- [ ] P1.M1: b\n",
            "line 4: the path P1.M1 stands on line 3 already",
        ),
        (
            "twice.json",
            "{\"items\": [\n{\"path\": \"P1\", \"title\": \"a\"},\n{\"path\": \"P1\", \"title\": \"b\"}\n]}",
            "line 3: the path P1 stands on line 2",
        ),
        (
            "misplaced.json",
            "{\"items\": [\n{\"path\": \"P1\", \"title\": \"a\", \"items\": [\n{\"path\": \"P2.M1\", \"title\": \"b\"}]}]}",
            "line 3: the path P2.M1 does not fit",
        ),
        ("broken.json", "{\"items\": [\n{\"title\": \"a\"\n]}", "line 3: it cannot be read"),
        ("many.md", &many, "items of one plan is over its limit: 20001 entries, at most 20000"),
        ("huge.md", &huge, "plan is over its limit: 8388609 bytes, at most 8388608"),
        ("empty.md", "nothing to do\n", "there is nothing to do in it"),
    ];
    for (name, text, part) in cases {
        let file = write(&board, name, text);
        for dry_run in [&["--dry-run"][..], &[]] {
            let refused =
                board.finish(board.command().args(["plan", "import", &file]).args(dry_run));
            assert_eq!(refused.status.code(), Some(1), "{name}: {}", refused.stdout);
            assert!(refused.stderr.contains(part), "{name}: {}", refused.stderr);
        }
    }
    assert_eq!(board.events().len(), events, "nothing half-applied");
    let missing = board.finish(board.command().args(["plan", "import", "nowhere.md"]));
    assert_eq!(missing.status.code(), Some(2));
    let none = board.finish(board.command().args(["plan", "export"]));
    assert!(none.stderr.contains("callboard plan import"), "{}", none.stderr);
}

#[test]
fn a_batch_says_what_it_saved_and_every_error_by_its_place() {
    let board = Board::new();
    let create =
        |id: &str| json!({"name": "create_task", "arguments": {"id": id, "description": "d"}});
    board.cli_ok("init_coordination", json!({"goal": "g"}));
    let events = board.events().len();
    let good =
        board.cli_ok("apply_batch", json!({"operations": [create("a"), create("b"), create("c")]}));
    assert_eq!((&good["items_written"], &good["writes_saved"]), (&json!(3), &json!(2)));
    let after = board.events().len();
    assert!(after > events);
    let bad = json!({"operations": [create("d"), create("a"), {"name": "nope", "arguments": {}}, create("b b")]});
    let refused = board.cli("apply_batch", bad);
    let error: Value = serde_json::from_str(refused.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(
        error["error"]["code"], "batch_item",
        "what cannot be read at all comes first: {error}"
    );
    let bad = json!({"operations": [create("d"), create("a"), create("e"), create("b b"),
        {"name": "cancel_task", "arguments": {"task_id": "zzz"}}]});
    let refused = board.cli("apply_batch", bad);
    let error: Value = serde_json::from_str(refused.stderr.lines().last().unwrap()).unwrap();
    let named: Vec<_> = error["error"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["index"].as_u64().unwrap())
        .collect();
    assert_eq!(
        (error["error"]["code"].as_str(), named),
        (Some("batch_items"), vec![1, 3, 4]),
        "{error}"
    );
    assert_eq!(board.events().len(), after, "nothing of it was done");
    assert!(board.replay().tasks().all(|task| !matches!(task.id.as_str(), "d" | "e")));
}

#[test]
fn the_example_plan_is_a_plan() {
    let board = Board::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/plan.md");
    let reply = plan(&board, &["import", example.to_str().unwrap()]).value();
    assert!(reply["items"].as_u64() > Some(8), "{reply}");
    let tree = board.finish(board.command().args(["tasks", "--tree"]));
    assert!(tree.stdout.contains("    P1.M1.T1 "), "{}", tree.stdout);
    let explained = board.finish(board.command().args(["explain", "P1.M2.T1"]));
    assert!(explained.stdout.contains("not claimable: it waits for"), "{}", explained.stdout);
}

#[test]
fn a_box_in_a_plan_of_headings_ends_nothing_and_what_is_skipped_is_named() {
    let board = Board::new();
    let before = "## Parser\n\nReads.\n\n## Printer\n\nPrints.\n\n## Old\n\nx\n";
    let file = write(&board, "PLAN.md", before);
    assert_eq!(paths(&plan(&board, &["import", &file]).value(), "added"), ["P1", "P2", "P3"]);
    let id_of = |title: &str| {
        let document = board.document();
        let task = document["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|task| task["title"] == title)
            .cloned();
        task.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (printer, old) = (id_of("Printer"), id_of("Old"));
    board.cli_ok("register_agent", json!({"agent_id": "ada", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": printer}));
    board.cli_ok("cancel_task", json!({"task_id": old}));

    let after = before.replace("Reads.\n", "Reads.\n\n- [ ] numbers\n")
        + "\n## Notes\n\nDepends: on whom you ask, see above.\n";
    let file = write(&board, "PLAN.md", &after);
    let notes = json!([{"line": 11, "title": "Old"}, {"line": 15, "title": "Notes"}]);
    for arguments in [&["import", &file, "--dry-run"][..], &["import", &file]] {
        let reply = plan(&board, arguments).value();
        assert_eq!(
            (paths(&reply, "added"), &reply["skipped"]),
            (vec!["P1.M1".to_owned()], &notes),
            "{reply}"
        );
        assert_eq!(
            (paths(&reply, "obsolete"), &reply["kept"]),
            (vec!["P3".to_owned()], &json!(2)),
            "{reply}"
        );
    }
    assert_eq!(plan(&board, &["import", &file]).value()["unchanged"], true);
    let shown = board.finish(board.command().args(["plan", "import", &file])).stdout;
    assert!(shown.contains("not read line 15: Notes"), "{shown}");
    board.cli_ok(
        "complete_task",
        json!({"agent_id": "ada", "task_id": printer, "output": "printed"}),
    );

    // It stays an item of the plan.
    let file = write(&board, "PLAN.md", &after.replace("numbers", "names"));
    let reply = plan(&board, &["import", &file]).value();
    assert_eq!(
        (&reply["left_done"], reply["skipped"][0]["title"].as_str()),
        (&json!([]), Some("Old")),
        "{reply}"
    );
    board.assert_file_is_the_replay();
}

#[test]
fn a_plan_that_a_person_writes_comes_in_whole_and_what_is_not_read_is_named() {
    let board = Board::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/plans/natural-plan.md");
    let reply = plan(&board, &["import", file]).value();
    let read = &reply["understood"];
    let counts =
        ["groups", "items", "done", "called_off"].map(|count| read[count].as_u64().unwrap());
    assert_eq!(counts, [5, 30, 1, 1], "{reply}");
    let waits: Vec<_> =
        read["waits"].as_array().unwrap().iter().map(|one| (&one["line"], &one["order"])).collect();
    let (line, order) = (|line: u64| json!(line), json!(true));
    let expected = [15, 18, 19, 26, 39, 52, 55].map(line);
    assert_eq!(waits.iter().map(|(line, _)| (*line).clone()).collect::<Vec<_>>(), expected);
    assert_eq!(
        waits.iter().filter(|(_, by)| **by == order).count(),
        4,
        "four phases wait for the one before"
    );
    let lines: Vec<_> = reply["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["line"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [43, 44, 45, 65, 66], "the table and the notes");
    assert_eq!(plan(&board, &["import", file]).value()["unchanged"], true);
    let shown = board.finish(board.command().args(["plan", "import", file, "--dry-run"])).stdout;
    assert!(
        shown.trim_end().ends_with("makes a line one")
            && shown.contains("3 lines that may be work")
            && shown.contains("2 entries below Phase 5: Cleanup are not tasks; --lists takes them"),
        "{shown}"
    );
    board.assert_file_is_the_replay();
}

#[test]
fn a_plan_in_utf_16_is_read_and_bytes_that_are_no_text_are_refused() {
    let board = Board::new();
    let text = "# Pläne\r\n\r\n- [ ] Über\r\n- [x] Ship\r\n";
    let units = |of: fn(u16) -> [u8; 2]| {
        ["\u{feff}", text].concat().encode_utf16().flat_map(of).collect::<Vec<u8>>()
    };
    for (name, bytes) in
        [("little.md", units(u16::to_le_bytes)), ("big.md", units(u16::to_be_bytes))]
    {
        let path = board.base().join(name);
        fs::write(&path, bytes).unwrap();
        let reply = plan(&board, &["import", path.to_str().unwrap(), "--dry-run"]).value();
        assert_eq!(
            (&reply["understood"]["items"], &reply["understood"]["done"]),
            (&json!(2), &json!(1)),
            "{reply}"
        );
    }
    for (name, bytes, part) in [
        ("bytes.md", &b"- [ ] a\n\xff\xfe\xfd"[..], "is not text"),
        ("zero.md", b"- [ ] a\n\0b\n", "is not text"),
    ] {
        let path = board.base().join(name);
        fs::write(&path, bytes).unwrap();
        let refused =
            board.finish(board.command().args(["plan", "import", path.to_str().unwrap()]));
        assert!(
            !refused.status.success() && refused.stderr.contains(part),
            "{name}: {}",
            refused.stderr
        );
    }
}

#[test]
fn items_that_are_nested_too_deeply_are_refused_and_the_server_goes_on() {
    let board = Board::new();
    let nested = |levels: usize| {
        let part = r#"{"title":"t","items":["#;
        format!(r#"{{"items":[{}{}]}}"#, part.repeat(levels), "]}".repeat(levels))
    };
    let mut client = board.mcp();
    client.ok("register_agent", json!({"agent_id": "boss", "role": "leader"}));
    for levels in [101, 3_000, 200_000] {
        let refused = client.call("import_plan", json!({"text": nested(levels)}));
        assert_eq!(refused.code(), "bad_plan");
        let refused = plan(&board, &["import", &write(&board, "deep.json", &nested(levels))]);
        assert!(
            refused.stderr.contains("nesting of items in JSON is over its limit: 101 levels"),
            "{}",
            refused.stderr
        );
    }
    client.ok("import_plan", json!({"text": nested(100)}));
}

#[test]
fn more_than_ten_problems_are_counted() {
    let board = Board::new();
    let text: String =
        (0..15).map(|number| format!("- [ ] item {number}\n  files: ../x\n")).collect();
    let refused =
        board.finish(board.command().args(["plan", "import", &write(&board, "PLAN.md", &text)]));
    assert!(
        refused.stderr.contains("line 19: ") && refused.stderr.contains("and 5 more"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("line 21: "), "{}", refused.stderr);
}

/// The plan as the program prints it.
fn exported(board: &Board, arguments: &[&str]) -> String {
    let finished = board.finish(board.command().args(["plan", "export"]).args(arguments));
    assert!(finished.status.success(), "{}", finished.stderr);
    finished.stdout
}

#[test]
fn an_imported_file_is_exported_as_it_is_but_for_what_was_done_since() {
    let board = Board::new();
    let text = "\u{feff}---\r\na: b\r\n---\r\n# T\r\n\r\nProse\u{200e}.\r\n\r\n## Phase 1\r\n\r\n* [ ] one\r\n\twith words\r\n\r\n\
                | a | b |\r\n|---|---|\r\n\r\n## Phase 2\r\n\r\n- [ ] two (after one)\r\n";
    let file = write(&board, "PLAN.md", text);
    plan(&board, &["import", &file]).value();
    assert_eq!(exported(&board, &[]), text);
    let mut client = board.mcp();
    client.register("w1");
    assert_eq!(work(&mut client, "all", 1), 1);
    let ticked = text.replace("* [ ] one", "* [x] one");
    assert_eq!(exported(&board, &[]), ticked);
    let version =
        client.ok("get_master_plan", json!({}))["plans"][0]["sha256"].as_str().unwrap().to_owned();
    assert_eq!(exported(&board, &["--version", &version[..12]]), text, "as it was imported");
    let written = board.finish(board.command().args(["export", "markdown", "-"]));
    assert_eq!(written.stdout, ticked, "{}", written.stderr);
    assert!(board.finish(board.command().args(["export", "markdown", "OUT.md"])).status.success());
    assert_eq!(fs::read_to_string(board.base().join("OUT.md")).unwrap(), ticked);
    let again = plan(&board, &["import", &write(&board, "PLAN.md", &ticked)]).value();
    assert_eq!(counts(&again), []);
    assert_eq!(exported(&board, &[]), ticked);
    let longer = format!("{ticked}- [ ] three\r\n");
    let added = plan(&board, &["import", &write(&board, "PLAN.md", &longer)]).value();
    assert_eq!(counts(&added), [("added", 1)]);
    assert_eq!(client.ok("export_plan", json!({}))["markdown"], longer);
    board.assert_file_is_the_replay();
}

#[test]
fn a_plan_that_came_without_a_file_is_exported_as_it_came() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("register_agent", json!({"agent_id": "boss", "role": "leader"}));
    let text = "# T\n\n1. [ ] one\n2. [ ] two\n   priority: 2\n";
    client.ok("import_plan", json!({"text": text}));
    assert_eq!(client.ok("export_plan", json!({}))["markdown"], text);
    let task = board.tasks().into_iter().find(|(_, task)| task["title"] == "two").unwrap().0;
    client.ok("update_task", json!({"task_id": task, "title": "too", "priority": 1}));
    assert_eq!(
        client.ok("export_plan", json!({}))["markdown"],
        "# T\n\n1. [ ] one\n2. [ ] too\n   priority: 1\n"
    );
}

#[test]
fn what_json_says_of_the_whole_plan_is_kept_and_exported_again() {
    let board = Board::new();
    let text = json!({"title": "T", "metadata": {"by": "me"}, "description": "why", "owner": {"name": "a"},
        "items": [{"title": "one"}]});
    let reply = plan(&board, &["import", &write(&board, "plan.json", &text.to_string())]).value();
    let remarks = reply["remarks"].to_string();
    for field in ["description", "owner"] {
        assert!(
            remarks.contains(&format!(
                "`{field}` is not a field of a plan: it is kept in its metadata"
            )),
            "{remarks}"
        );
    }
    let exported: Value = serde_json::from_str(&exported(&board, &["--format", "json"])).unwrap();
    assert_eq!(
        exported["metadata"],
        json!({"by": "me", "description": "why", "owner": {"name": "a"}})
    );
    let again =
        plan(&board, &["import", &write(&board, "plan.json", &exported.to_string())]).value();
    assert!(counts(&again).is_empty() && again["remarks"].is_null(), "{again}");
}

#[test]
fn what_json_cannot_hold_is_refused_wherever_it_stands() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for value in ["\"\\ud800\"", "1e999", &deep] {
        for item in [format!("{{\"keep\": 1, \"bad\": {value}}}"), value.to_owned()] {
            for field in ["metadata", "other", "source"] {
                let board = Board::new();
                let text = format!("{{\"items\": [\n{{\"title\": \"a\",\n\"{field}\": {item}}}]}}");
                let refused = plan(&board, &["import", &write(&board, "plan.json", &text)]);
                assert_eq!(refused.code(), "bad_plan", "{text:.200}: {}", refused.stdout);
                let said = format!("{field}: it cannot be read");
                assert!(
                    refused.stderr.contains(&said) && refused.stderr.contains("line 3"),
                    "{}",
                    refused.stderr
                );
            }
        }
    }
}

#[test]
fn fields_of_one_name_are_kept_beside_each_other() {
    let board = Board::new();
    let of = |title: &str| format!("{{{title}\"metadata\": {{\"x\": 1}}, \"x\": 2, \"x\": 3");
    let text = format!("{}, \"items\": [{}}}]}}", of(""), of("\"title\": \"a\", "));
    let reply = plan(&board, &["import", &write(&board, "plan.json", &text)]).value();
    assert!(
        reply["remarks"]
            .to_string()
            .contains("`x` is not a field of an item: it is kept in its metadata, as `x#2`")
    );
    let exported: Value = serde_json::from_str(&exported(&board, &["--format", "json"])).unwrap();
    assert_eq!(exported["metadata"], json!({"x": 1, "x#2": 2, "x#3": 3}));
    let item = &exported["items"][0];
    assert_eq!(
        [&item["x"], &item["x#2"], &item["x#3"]],
        [&json!(1), &json!(2), &json!(3)],
        "{item}"
    );
}

#[test]
fn parts_of_what_is_cancelled_keep_their_own_word() {
    let board = Board::new();
    let part = |title: &str, status: &str| json!({"title": title, "status": status});
    let parts = [
        part("b", "Obsolete"),
        part("c", "Cancelled"),
        part("d", "Planned"),
        part("e", "Complete"),
    ];
    let text =
        json!({"items": [{"title": "a", "status": "Cancelled", "items": parts}]}).to_string();
    plan(&board, &["import", &write(&board, "plan.json", &text)]).value();
    let exported: Value = serde_json::from_str(&exported(&board, &["--format", "json"])).unwrap();
    let statuses = exported["items"][0]["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["status"].as_str().unwrap());
    assert_eq!(statuses.collect::<Vec<_>>(), ["Obsolete", "Cancelled", "Cancelled", "Complete"]);
    let again =
        plan(&board, &["import", &write(&board, "plan.json", &exported.to_string())]).value();
    assert!(counts(&again).is_empty(), "{again}");
}

#[test]
fn name_of_a_plan_is_one_line() {
    let board = Board::new();
    let path = write(&board, "a.md", "- [ ] one\n");
    let reply = plan(&board, &["import", &path, "--name", " a\n b"]).value();
    assert_eq!(reply["plan"], "a b");
    let listed = printed(&board, &["plan", "list"]);
    assert!(listed.contains("a b"), "{listed}");
}

#[test]
fn versions_are_compared_with_those_of_the_same_plan() {
    let board = Board::new();
    let text = "- [ ] one\n- [ ] two\n";
    let [a, b] = ["a.md", "b.md"].map(|name| write(&board, name, text));
    let first = plan(&board, &["import", &a]).value();
    plan(&board, &["import", &b]).value();
    plan(&board, &["import", &write(&board, "a.md", &format!("{text}- [ ] three\n"))]).value();
    let from = first["session"].as_str().unwrap();
    for arguments in [&["diff", "--plan", "a.md"][..], &["diff", "--plan", "a.md", from]] {
        let reply = plan(&board, arguments).value();
        assert_eq!(["added", "removed"].map(|list| paths(&reply, list).len()), [1, 0], "{reply}");
    }
}

/// What the command prints for a person.
fn printed(board: &Board, arguments: &[&str]) -> String {
    let ran = board.finish(board.command().args(arguments));
    assert!(ran.status.success(), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

#[test]
fn the_command_that_carries_done_over_is_quoted_and_names_the_plan() {
    let board = Board::new();
    let import = |more: &[&str]| {
        printed(&board, &[&["plan", "import", "my plan.md", "--name", "big one"], more].concat())
    };
    write(&board, "my plan.md", "- [x] Fix bug 101\n- [ ] Ship\n");
    import(&[]);
    write(&board, "my plan.md", "- [ ] Fix bug 102\n- [ ] Ship\n");
    let (shown, reply) = (import(&["--dry-run"]), import(&[]));
    let command = " plan import 'my plan.md' --name 'big one' --carry ";
    let carries = [shown, reply].map(|text| {
        let (_, rest) = text.split_once(command).unwrap_or_else(|| panic!("{text}"));
        rest.split_once('`').unwrap().0.to_owned()
    });
    assert_eq!(carries[0], carries[1]);
    import(&["--carry", &carries[0]]);
    let listed = printed(&board, &["plan", "list"]);
    assert!(listed.contains("big one") && listed.contains("1/2 (50%)"), "{listed}");
}

/// The command is run in a shell as it is printed.
#[test]
fn the_command_that_carries_done_over_says_how_the_file_was_read() {
    for (name, arguments, part) in [
        (
            "t.csv",
            &["import", "csv", "t.csv", "--map", "title=Do,status=Is", "--name", "t"][..],
            "--map",
        ),
        (
            "-dash.md",
            &["plan", "import", "--name=--x", "--parallel", "--dry-run", "--", "-dash.md"],
            "--parallel=true",
        ),
    ] {
        let board = Board::new();
        let [before, after] = match name {
            "t.csv" => {
                ["Do,Is\nFix bug 101,done\nShip,open\n", "Do,Is\nFix bug 102,open\nShip,open\n"]
            }
            _ => ["- [x] Fix bug 101\n- [ ] Ship\n", "- [ ] Fix bug 102\n- [ ] Ship\n"],
        };
        write(&board, name, before);
        let first: Vec<&str> =
            arguments.iter().copied().filter(|one| *one != "--dry-run").collect();
        printed(&board, &first);
        write(&board, name, after);
        let shown = printed(&board, arguments);
        let command = shown
            .split('`')
            .find(|part| part.contains(" plan import "))
            .unwrap_or_else(|| panic!("{shown}"));
        assert!(command.contains(part), "{command}");
        let (_, rest) = command.split_once(" plan import ").unwrap();
        let line = format!("exec \"$0\" \"$@\" plan import {rest}");
        let given = board.command();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line]).arg(given.get_program()).args(given.get_args());
        shell.env_remove("CALLBOARD_FAILPOINT");
        shell.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = board.finish(shell.current_dir(given.get_current_dir().unwrap_or(board.base())));
        assert!(ran.status.success(), "{line}: {}{}", ran.stdout, ran.stderr);
        let listed = printed(&board, &["plan", "list"]);
        assert!(listed.contains("1/2 (50%)"), "{line}: {listed}");
    }
}

#[test]
fn plan_import_keeps_the_order_replaces_a_plan_and_knows_a_moved_file() {
    let board = Board::new();
    let run = |arguments: &[&str]| printed(&board, &[&["plan"], arguments].concat());
    let text = "## Phase 1\n\n- [ ] Make the schema\n\n## Phase 2\n\n- [ ] Make the page\n";
    write(&board, "old.md", text);
    for (option, said) in [
        (&[][..], "1 ready at once"),
        (&["--parallel"], "2 ready at once"),
        (&[], "the board has it already"),
        (&["--parallel=false"], "1 ready at once"),
    ] {
        let reply = run(&[&["import", "old.md"], option].concat());
        assert!(reply.contains(said), "{option:?}: {reply}");
    }
    write(&board, "new.md", "- [ ] Write the manual\n");
    let reply = run(&["import", "new.md", "--replace", "old.md", "--dry-run"]);
    assert!(reply.contains("nothing was changed") && !reply.contains("beside"), "{reply}");
    run(&["import", "new.md", "--replace", "old.md"]);
    let listed = run(&["list"]);
    assert!(listed.contains("new.md") && !listed.contains("old.md"), "{listed}");
    fs::rename(board.base().join("new.md"), board.base().join("moved.md")).unwrap();
    let listed = run(&["list"]);
    assert!(listed.contains("new.md (gone)"), "{listed}");
    run(&["import", "moved.md"]);
    let listed = run(&["list"]);
    assert!(listed.contains("moved.md") && !listed.contains("new.md"), "{listed}");
}

#[test]
fn two_files_are_two_plans_for_every_command() {
    let board = Board::new();
    write(&board, "api.md", "- [ ] Make the schema\n- [ ] Make the page\n");
    write(&board, "web.md", "- [ ] Make the index\n- [ ] Make the box\n");
    let run = |arguments: &[&str]| printed(&board, arguments);
    run(&["plan", "import", "api.md"]);
    let second = run(&["plan", "import", "web.md"]);
    assert!(second.contains("this is the plan \"web.md\", beside api.md"), "{second}");
    let claimed = run(&["--agent", "a", "claim", "--scope", "web.md:P1"]);
    assert!(claimed.contains("Make the index"), "{claimed}");
    let task = claimed
        .split_whitespace()
        .find(|word| word.starts_with("task-"))
        .unwrap()
        .trim_end_matches(',');
    run(&["--agent", "a", "complete", task, "made"]);
    let listed = run(&["plan", "list"]);
    assert!(listed.contains("0/2 (0%)") && listed.contains("1/2 (50%)"), "{listed}");
    let status = run(&["status", "--all"]);
    assert!(
        status.contains("plan api.md: 0 of 2 done") && status.contains("plan web.md: 1 of 2 done"),
        "{status}"
    );
    assert_eq!(run(&["plan", "export", "api.md"]), "- [ ] Make the schema\n- [ ] Make the page\n");
    assert_eq!(run(&["plan", "export", "web.md"]), "- [x] Make the index\n- [ ] Make the box\n");
    assert_eq!(
        run(&["export", "markdown", "--plan", "api.md"]),
        "- [ ] Make the schema\n- [ ] Make the page\n"
    );
    let of_board = board.finish(board.command().args(["export", "beads", "--plan", "api.md"]));
    assert!(
        of_board.status.code() == Some(2) && of_board.stderr.contains("leave out --plan"),
        "{}",
        of_board.stderr
    );
    let removed = run(&["plan", "remove", "web.md"]);
    assert!(
        removed.contains(": 1 item now obsolete, 1 kept as done, 0 held until released"),
        "{removed}"
    );
    let versions = run(&["plan", "versions"]);
    assert_eq!(
        versions.lines().filter(|line| line.contains("web.md") && line.contains("removed")).count(),
        1
    );
    let left = run(&["status", "--all"]);
    assert!(left.contains("plan api.md") && !left.contains("plan web.md"), "{left}");
}
