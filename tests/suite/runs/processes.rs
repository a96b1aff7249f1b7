//! Runs through real processes: dispatch, stop, death, and the SQL tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use callboard::journal::sqlite::SqliteJournal;
use serde_json::{Value, json};

use crate::harness::http::Server;
use crate::harness::{Board, Client, PATIENCE, size, until};

fn runner(board: &Board, agent: &str, more: &Value) -> Client {
    let mut client = board.mcp();
    let mut fields = json!({"agent_id": agent, "role": "worker"});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.ok("register_agent", fields);
    client
}

fn create(board: &Board, more: &Value) -> String {
    let mut fields = json!({"prompt": "do it"});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    board.cli_ok("create_run", fields)["run_id"].as_str().unwrap().to_owned()
}

fn status(board: &Board, run: &str) -> String {
    board.cli_ok("get_run", json!({"run_id": run}))["run"]["status"].as_str().unwrap().to_owned()
}

fn select(dir: &Path, query: &str) -> Vec<Vec<String>> {
    // Reads the file as another program would; our own processes on it have ended.
    let connection = rusqlite::Connection::open(dir.join("journal.db")).unwrap();
    let mut statement = connection.prepare(query).unwrap();
    let columns = statement.column_count();
    let text = |value: rusqlite::types::Value| match value {
        rusqlite::types::Value::Text(text) => text,
        other => format!("{other:?}"),
    };
    let rows = statement
        .query_map([], |row| (0..columns).map(|at| Ok(text(row.get(at)?))).collect())
        .unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Asserts that the tables match all events.
#[track_caller]
fn assert_rebuilt_alike(board: &Board) {
    let journal = SqliteJournal::open(board.dir()).unwrap();
    let before = journal.dump_runs().unwrap();
    assert!(!before.is_empty());
    journal.rebuild_runs().unwrap();
    assert_eq!(journal.dump_runs().unwrap(), before);
}

#[test]
fn a_run_is_created_claimed_reported_and_read_in_sql() {
    let board = Board::new();
    let mut runner = runner(&board, "r1", &json!({"properties": {"hostname": "h1"}}));
    let waiting = runner.send("claim_run", json!({"agent_id": "r1", "wait_seconds": 50}));
    let run = create(&board, &json!({"session_id": "s1", "agent_name": "writer"}));
    let claimed = runner.reply(waiting).unwrap().ok();
    assert_eq!(
        (&claimed["run"]["run_id"], &claimed["run"]["prompt"]),
        (&json!(run), &json!("do it"))
    );
    for (status, more) in [
        ("started", json!({})),
        ("progress", json!({"note": "half"})),
        ("completed", json!({"output": "o"})),
    ] {
        let mut report = json!({"agent_id": "r1", "run_id": run, "status": status});
        report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        runner.ok("report_run", report);
    }
    assert_eq!(board.cli_ok("get_run", json!({"run_id": run}))["run"]["result"]["output"], "o");
    runner.kill();
    let listed = board.finish(board.command().args(["runs", "--session", "s1"]));
    assert!(
        listed.stdout.contains(&run) && listed.stdout.contains("completed"),
        "{}",
        listed.stdout
    );
    let shown = board.finish(board.command().args(["run", &run]));
    assert!(shown.stdout.contains("output: o"), "{}", shown.stdout);
    let sessions = board.finish(board.command().args(["--json", "sessions"])).value();
    assert_eq!(sessions["sessions"][0]["affinity"]["hostname"], "h1");
    assert!(board.finish(board.command().args(["sessions", "s1"])).stdout.contains(&run));
    let joined = "SELECT runs.run_id, sessions.hostname, runs.status, attempts.note FROM runs
        JOIN sessions USING (session_id) JOIN attempts USING (run_id)";
    assert_eq!(select(board.dir(), joined), [[&run, "h1", "completed", "half"]]);
    board.assert_file_is_the_replay();
    assert_rebuilt_alike(&board);
}

#[test]
fn tables_that_somebody_has_changed_are_made_anew_by_doctor() {
    let board = Board::new();
    let run = create(&board, &json!({}));
    let connection = rusqlite::Connection::open(board.file("journal.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = OFF; UPDATE runs SET status = 'gone'; DELETE FROM sessions;",
        )
        .unwrap();
    drop(connection);
    let found = board.finish(board.command().arg("doctor"));
    assert!(
        found.stdout.contains("the tables of runs are not what the events say"),
        "{}",
        found.stdout
    );
    let would =
        board.finish(board.command().args(["--json", "doctor", "--repair", "--dry-run"])).value();
    assert_eq!(would["repaired"], false, "{would}");
    let repaired = board.finish(board.command().args(["--json", "doctor", "--repair"])).value();
    assert_eq!(repaired["repaired"], true, "{repaired}");
    let joined = "SELECT run_id, runs.status FROM runs JOIN sessions USING (session_id)";
    assert_eq!(select(board.dir(), joined), [[&run, "pending"]]);
    let sound = board.finish(board.command().args(["--json", "doctor", "--repair"])).value();
    assert_eq!(sound["repaired"], false, "{sound}");
}

/// After the restore of a snapshot, later runs are gone from the tables, too.
#[test]
fn tables_follow_a_restore() {
    let board = Board::new();
    let kept = create(&board, &json!({"session_id": "s1"}));
    let seq = board.document()["seq"].clone();
    create(&board, &json!({"session_id": "s2"}));
    board.cli_ok("stop_run", json!({"run_id": kept}));
    board.cli_ok("restore_snapshot", json!({"seq": seq}));
    assert_eq!(select(board.dir(), "SELECT run_id, status FROM runs"), [[&kept, "pending"]]);
    assert_eq!(select(board.dir(), "SELECT session_id FROM sessions"), [["s1"]]);
    board.assert_file_is_the_replay();
    assert_rebuilt_alike(&board);
}

/// The new journal begins with an event that contains the whole state.
#[test]
fn tables_follow_a_recovery_from_the_state_file() {
    let board = Board::new();
    let parent = create(&board, &json!({"session_id": "a-parent"}));
    let child = create(&board, &json!({"session_id": "a-child", "parent_session_id": "a-parent"}));
    for suffix in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(board.file(&format!("journal.db{suffix}"))));
    }
    board.cli_ok("stop_run", json!({"run_id": child}));
    let listed =
        select(board.dir(), "SELECT run_id, session_id, status FROM runs ORDER BY session_id");
    assert_eq!(listed, [[&child, "a-child", "stopped"], [&parent, "a-parent", "pending"]]);
    let sessions =
        select(board.dir(), "SELECT session_id FROM sessions WHERE parent_session_id = 'a-parent'");
    assert_eq!(sessions, [["a-child"]]);
    board.assert_file_is_the_replay();
    assert_rebuilt_alike(&board);
}

#[test]
fn a_request_to_stop_reaches_the_runner_within_a_second() {
    let board = Board::new();
    let mut runner = runner(&board, "r1", &json!({}));
    let run = create(&board, &json!({}));
    runner.ok("claim_run", json!({"agent_id": "r1"}));
    runner.ok("report_run", json!({"agent_id": "r1", "run_id": run, "status": "started"}));
    let waiting = runner.send("claim_run", json!({"agent_id": "r1", "wait_seconds": 50}));
    let stopped = board.finish(board.command().args(["run", &run, "--stop", "--reason", "enough"]));
    assert!(stopped.stdout.starts_with("stopping"), "{} {}", stopped.stdout, stopped.stderr);
    let start = Instant::now();
    let told = runner.reply(waiting).unwrap().ok();
    let taken = start.elapsed();
    println!("stop of a running run reached its runner {taken:?} after stop_run had answered");
    assert!(taken < Duration::from_secs(1), "{taken:?}");
    assert_eq!(told["stop_requested"][0], json!({"task": run, "reason": "enough"}));
    runner.ok("report_run", json!({"agent_id": "r1", "run_id": run, "status": "stopped"}));
    assert_eq!(status(&board, &run), "stopped");
}

/// Each report comes from a process that is killed: before its commit, after it, or not at all.
#[test]
fn a_parent_is_resumed_once_with_all_results_whoever_dies() {
    let board = Board::new();
    let mut first = runner(&board, "r1", &json!({"max_concurrent": 10}));
    let parent = create(&board, &json!({"session_id": "p"}));
    let child = json!({"parent_session_id": "p", "execution_mode": "async_callback"});
    first.ok("claim_run", json!({"agent_id": "r1"}));
    first.ok("report_run", json!({"agent_id": "r1", "run_id": parent, "status": "started"}));
    let children: Vec<_> = (0..5).map(|_| create(&board, &child)).collect();
    for run in &children {
        first.ok("claim_run", json!({"agent_id": "r1"}));
        first.ok("report_run", json!({"agent_id": "r1", "run_id": run, "status": "started"}));
    }
    first.kill();
    let reports = children.iter().enumerate().map(|(number, run)| match number {
        1 => json!({"agent_id": "r1", "run_id": run, "status": "failed", "error": "broken"}),
        _ => json!({"agent_id": "r1", "run_id": run, "status": "completed", "output": format!("o{number}")}),
    });
    let reports =
        reports.chain([json!({"agent_id": "r1", "run_id": parent, "status": "completed"})]);
    for (number, report) in reports.enumerate() {
        for failpoint in ["before-commit", "after-commit", "commit"] {
            let mut killed = board.command();
            killed.env("CALLBOARD_FAILPOINT", failpoint).args([
                "call",
                "report_run",
                &report.to_string(),
            ]);
            board.finish(&mut killed);
        }
        let repeated = board.cli_ok("report_run", report);
        assert_eq!(
            repeated["already"], true,
            "report {number} was recorded by the process that died behind its commit"
        );
    }
    let runs = board.cli_ok("list_runs", json!({"session_id": "p"}))["runs"].clone();
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 2, "resumed once: {runs:?}");
    let results =
        board.cli_ok("get_run", json!({"run_id": runs[0]["run_id"]}))["run"]["results"].clone();
    let told: Vec<_> =
        results.as_array().unwrap().iter().map(|one| one["run_id"].clone()).collect();
    assert_eq!(told, children);
    assert_eq!(results[1]["error"], "broken");
    let mut last = runner(&board, "r2", &json!({}));
    let resumed = last.ok("claim_run", json!({"agent_id": "r2"}));
    assert_eq!(resumed["run"]["results"].as_array().unwrap().len(), 5);
    drop(last);
    board.assert_file_is_the_replay();
    assert_rebuilt_alike(&board);
}

#[test]
fn claims_that_nobody_has_begun_return_when_all_processes_are_gone() {
    let board = Board::new();
    let mut gone = runner(&board, "r1", &json!({"max_concurrent": 2}));
    let begun = create(&board, &json!({}));
    gone.ok("claim_run", json!({"agent_id": "r1"}));
    gone.ok("report_run", json!({"agent_id": "r1", "run_id": begun, "status": "started"}));
    let claimed = create(&board, &json!({}));
    assert_eq!(gone.ok("claim_run", json!({"agent_id": "r1"}))["run"]["run_id"], *claimed);
    gone.kill();
    let mut next = runner(&board, "r2", &json!({}));
    assert_eq!(
        (status(&board, &begun), status(&board, &claimed)),
        ("running".to_owned(), "pending".to_owned())
    );
    assert_eq!(next.ok("claim_run", json!({"agent_id": "r2"}))["run"]["run_id"], *claimed);
}

#[test]
fn a_claim_that_nobody_has_begun_is_stopped_when_it_was_to_be() {
    let board = Board::new();
    let mut gone = runner(&board, "r1", &json!({}));
    let run = create(&board, &json!({}));
    gone.ok("claim_run", json!({"agent_id": "r1"}));
    assert_eq!(board.cli_ok("stop_run", json!({"run_id": run}))["status"], "stopping");
    gone.kill();
    let mut next = runner(&board, "r2", &json!({}));
    assert_eq!(status(&board, &run), "stopped");
    assert_eq!(next.ok("claim_run", json!({"agent_id": "r2"}))["success"], false);
}

#[test]
fn a_run_that_was_claimed_from_a_command_line_is_reported_from_the_next() {
    let board = Board::new();
    board.cli_ok("register_agent", json!({"agent_id": "r1", "role": "worker"}));
    let run = create(&board, &json!({}));
    board.cli_ok("claim_run", json!({"agent_id": "r1"}));
    board.cli_ok("report_run", json!({"agent_id": "r1", "run_id": run, "status": "started"}));
    board.cli_ok("report_run", json!({"agent_id": "r1", "run_id": run, "status": "completed"}));
    assert_eq!(
        board
            .cli("report_run", json!({"agent_id": "r1", "run_id": run, "status": "progress"}))
            .code(),
        "run_status"
    );
}

#[test]
fn a_server_that_comes_back_gives_claimed_runs_to_others() {
    let board = Board::new();
    let mut server = Server::on(&board);
    let call = |server: &Server, operation: &str, arguments: Value| {
        let answer = server.ask(&server.rpc(1, operation, &arguments)).message();
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    };
    call(&server, "register_agent", json!({"agent_id": "r1", "role": "worker"}));
    let run = call(&server, "create_run", json!({"prompt": "p"}))["run_id"].clone();
    call(&server, "claim_run", json!({"agent_id": "r1"}));
    server.kill();
    let again = Server::on(&board);
    call(&again, "get_status", json!({}));
    until(PATIENCE, "the run is pending", || {
        (call(&again, "get_run", json!({"run_id": run}))["run"]["status"] == "pending")
            .then_some(())
    });
}

#[test]
fn runs_are_resources_over_http_behind_the_same_gate() {
    let board = Board::new();
    let server = Server::on(&board);
    let created =
        server.ask(&server.post("/runs", json!({"prompt": "p", "session_id": "s1"}).to_string()));
    assert_eq!(created.status, 201, "{}", created.text());
    let run: Value = serde_json::from_str(&created.text()).unwrap();
    let id = run["run_id"].as_str().unwrap().to_owned();
    let read = |path: &str| {
        let answer = server.ask(&server.request("GET", path));
        (answer.status, serde_json::from_str::<Value>(&answer.text()).unwrap_or_default())
    };
    let (status, one) = read(&format!("/runs/{id}"));
    assert_eq!((status, &one["run"]["status"]), (200, &json!("pending")));
    let (status, listed) = read("/runs?session_id=s1&status=pending&limit=5");
    assert_eq!((status, &listed["runs"][0]["run_id"]), (200, &json!(id)));
    assert_eq!(read("/runs?session_id=none").0, 404);
    assert_eq!(read("/runs?nonsense=1").0, 400);
    assert_eq!(read("/runs?status=nonsense").0, 400);
    let (status, unknown) = read("/runs/run-none");
    assert_eq!((status, &unknown["error"]["code"]), (404, &json!("unknown_run")));
    let busy = json!({"prompt": "p", "type": "resume_session", "session_id": "s1"});
    assert_eq!(server.ask(&server.post("/runs", busy.to_string())).status, 409);
    assert_eq!(server.ask(&server.post("/runs", "{}")).status, 400);
    for path in ["/runs", "/runs/x"] {
        assert_eq!(server.ask(&server.request("GET", path).without("Authorization")).status, 401);
    }
    assert_eq!(server.ask(&server.request("DELETE", "/runs")).status, 405);
}

/// Eight runners with different properties wait in long polls. Prints the measured times.
#[test]
fn every_run_goes_to_a_runner_that_meets_its_demands() {
    const RUNNERS: usize = 8;
    let runs = size("CALLBOARD_RUNS", 40);
    let board = Board::new();
    let tag = |number: usize| format!("t{}", number % RUNNERS);
    let mut creator = board.mcp();
    creator.ok("get_status", json!({}));
    let start = Instant::now();
    let runners: Vec<_> = (0..RUNNERS)
        .map(|number| {
            let mut client = runner(&board, &format!("r{number}"), &json!({"tags": [tag(number)]}));
            thread::spawn(move || {
                let agent = format!("r{number}");
                let mut claims = Vec::new();
                loop {
                    let reply = client.ok("claim_run", json!({"agent_id": agent, "wait_seconds": 50}));
                    let claimed = start.elapsed();
                    let run = &reply["run"];
                    if run["prompt"] == "end" || reply["success"] != true {
                        return claims;
                    }
                    claims.push((run["run_id"].as_str().unwrap().to_owned(), run["demands"].clone(), claimed));
                    let report = |status: &str| json!({"agent_id": agent, "run_id": run["run_id"], "status": status});
                    client.ok("report_run", report("started"));
                    client.ok("report_run", report("completed"));
                }
            })
        })
        .collect();
    let mut created = BTreeMap::new();
    let mut commits = Vec::new();
    for number in 0..runs {
        let asked = Instant::now();
        let run = creator
            .ok("create_run", json!({"prompt": "do it", "demands": {"tags": [tag(number)]}}));
        commits.push(asked.elapsed());
        created.insert(run["run_id"].as_str().unwrap().to_owned(), (number, start.elapsed()));
        // The caller is waiting again when the next run comes.
        thread::sleep(Duration::from_millis(15));
    }
    for number in 0..RUNNERS {
        creator.ok(
            "create_run",
            json!({"prompt": "end", "priority": 10, "demands": {"tags": [tag(number)]}}),
        );
    }
    let mut taken = Vec::new();
    let mut given = BTreeSet::new();
    for (number, runner) in runners.into_iter().enumerate() {
        for (run, demands, claimed) in runner.join().unwrap() {
            assert_eq!(demands, json!({"tags": [tag(number)]}));
            taken.push(claimed.saturating_sub(created[&run].1));
            assert!(given.insert(run), "given twice");
        }
    }
    assert_eq!(given.len(), runs);
    taken.sort();
    commits.sort();
    let (claim, commit) = (taken[runs / 2], commits[runs / 2]);
    println!(
        "{runs} runs, {RUNNERS} runners: claimed {claim:?} after creation was answered at the \
         median, {:?} at the 95th percentile; one create_run {commit:?}, ratio {:.2}",
        taken[runs * 95 / 100],
        claim.as_secs_f64() / commit.as_secs_f64()
    );
    drop(creator);
    board.assert_file_is_the_replay();
    assert_rebuilt_alike(&board);
}

/// A version that knew no deadline of pending runs left the column empty.
#[test]
fn tables_of_an_earlier_version_get_the_deadlines_of_pending_runs() {
    let board = Board::new();
    let run = create(&board, &json!({}));
    let connection = rusqlite::Connection::open(board.file("journal.db")).unwrap();
    connection.execute_batch("DROP INDEX runs_timeout; UPDATE runs SET timeout_at = NULL").unwrap();
    drop(connection);
    let other = create(&board, &json!({}));
    let deadlines = select(board.dir(), "SELECT run_id FROM runs WHERE timeout_at IS NOT NULL");
    let deadlines: BTreeSet<_> = deadlines.into_iter().flatten().collect();
    assert_eq!(deadlines, BTreeSet::from([run, other]));
    assert_rebuilt_alike(&board);
}

#[test]
fn a_session_is_stopped_and_runs_are_listed_by_time_from_a_shell() {
    let board = Board::new();
    let run = create(&board, &json!({"session_id": "s1"}));
    let told = |arguments: &[&str]| {
        let ran = board.finish(board.command().args(arguments));
        assert!(ran.status.success(), "{arguments:?}: {}", ran.stderr);
        ran.stdout
    };
    assert!(told(&["runs", "--created-since", "1h"]).contains(&run));
    assert!(told(&["runs", "--created-before", "1h"]).contains("no runs"));
    assert!(told(&["runs", "--completed-since", "1h"]).contains("no runs"));
    let stopped = told(&["sessions", "s1", "--stop", "--reason", "enough"]);
    assert!(stopped.contains("stopped") && stopped.contains(&run), "{stopped}");
    assert!(told(&["runs", "--completed-since", "1h"]).contains(&run));
    let alone = board.finish(board.command().args(["sessions", "--stop"]));
    assert_eq!(alone.status.code(), Some(2), "{}", alone.stderr);
}
