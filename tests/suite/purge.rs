//! `callboard purge`: a text is taken out of everything that a board keeps, also of what living
//! processes have in memory, and the history stays whole.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::harness::http::{Door, Server};
use crate::harness::{Board, Finished, until};

/// Letters alone, with characters that are escaped in JSON.
const TEXT: &str = "sword \"fish\" stairway";

/// A purge that reads the text from standard input.
fn purging(board: &Board, text: &str, options: &[&str]) -> Command {
    let file = board.base().join("text");
    fs::write(&file, format!("{text}\n")).unwrap();
    let mut command = board.command();
    command.arg("purge").args(options).stdin(File::open(file).unwrap());
    command
}

fn purge(board: &Board, text: &str, options: &[&str]) -> Finished {
    board.finish(&mut purging(board, text, options))
}

/// The files below `dir` that hold the text, whole or as JSON writes it.
fn with_text(dir: &Path) -> Vec<String> {
    let escaped = Value::from(TEXT).to_string();
    let forms = [TEXT, escaped.trim_matches('"')];
    let (mut open, mut found) = (vec![dir.to_owned()], Vec::new());
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let mut content = fs::read(&path).unwrap();
                if path.extension().is_some_and(|extension| extension == "gz") {
                    let mut unpacked = Vec::new();
                    GzDecoder::new(content.as_slice()).read_to_end(&mut unpacked).unwrap();
                    content = unpacked;
                }
                let content = String::from_utf8_lossy(&content);
                if forms.iter().any(|form| content.contains(form)) {
                    found.push(path.display().to_string());
                }
            }
        }
    }
    found
}

/// A board that has the text wherever a board keeps texts.
fn board_with_text() -> Board {
    let board = Board::new();
    board.cli_ok("init_coordination", json!({"goal": format!("goal {TEXT}"), "master_plan": TEXT}));
    board.cli_ok("register_agent", json!({"agent_id": "ada", "role": "worker"}));
    board.cli_ok(
        "create_task",
        json!({"id": "t1", "title": TEXT, "description": format!("use {TEXT} now"), "tags": ["x"],
            "metadata": {format!("k {TEXT}"): [TEXT]}, "idempotency_key": format!("k-{TEXT}")}),
    );
    board.cli_ok("claim_task", json!({"agent_id": "ada", "task_id": "t1"}));
    board.cli_ok(
        "attach_artifact",
        json!({"agent_id": "ada", "task_id": "t1", "name": "log.txt", "text": format!("a {TEXT} b")}),
    );
    board.cli_ok("create_snapshot", json!({}));
    board.cli_ok("add_discovery", json!({"agent_id": "ada", "content": TEXT}));
    board.cli_ok("create_snapshot", json!({}));
    board.cli_ok("save_bundle", json!({"scope": "s", "prompts": {"a": TEXT}}));
    board.cli_ok("save_bundle", json!({"scope": "s", "prompts": {"a": format!("{TEXT}!")}}));
    fs::write(board.file("mcp-state.json.rejected-2026"), format!("{{\"x\": \"{TEXT}\"}}"))
        .unwrap();
    fs::write(board.file("journal.db.quarantined-1"), "a copy").unwrap();
    board
}

#[test]
fn text_is_gone_from_every_file_and_from_living_processes_and_the_history_stays_whole() {
    let board = board_with_text();
    let mut client = board.mcp();
    let server = Server::on(&board);
    let told = client.ok("get_task", json!({"task_id": "t1"}));
    assert_eq!(told["task"]["title"], TEXT);
    assert!(Door::Rpc.ok(&server, "get_history", &json!({})).to_string().contains("stairway"));
    assert!(with_text(board.dir()).len() >= 8, "{:?}", with_text(board.dir()));
    let before = board.events().len();

    let counted = purge(&board, TEXT, &["--dry-run", "--json"]).value();
    assert_eq!((&counted["purged"], &counted["state"]), (&json!(false), &json!(true)));
    assert_eq!(counted["removed"], json!(["journal.db.quarantined-1"]));
    let files = counted["files"].as_array().unwrap();
    for directory in ["snapshots/", "bundles/"] {
        let named = files.iter().filter(|file| file.as_str().unwrap().starts_with(directory));
        assert_eq!(named.count(), 2, "{files:?}");
    }
    assert_eq!(board.events().len(), before);
    let refused = purge(&board, TEXT, &[]);
    assert!(
        refused.status.code() == Some(1) && refused.stderr.contains("--yes"),
        "{}",
        refused.stderr
    );

    let purged = purge(&board, TEXT, &["--yes", "--json"]).value();
    assert_eq!((&purged["events"], &purged["files"]), (&counted["events"], &counted["files"]));
    assert_eq!(purged["left"], json!([]));
    assert_eq!(with_text(board.dir()), Vec::<String>::new());
    assert!(!board.file("journal.db.quarantined-1").exists());

    // Living processes go on without it.
    let told = client.ok("get_task", json!({"task_id": "t1"}));
    assert_eq!(told["task"]["description"], "use [purged] now");
    for operation in ["get_history", "get_status", "get_discoveries", "get_master_plan"] {
        let told = Door::Rpc.ok(&server, operation, &json!({})).to_string();
        assert!(!told.contains("stairway"), "{operation}: {told}");
    }
    client.ok("create_task", json!({"id": "t2", "description": "after"}));
    Door::Rpc.ok(&server, "create_task", &json!({"id": "t3", "description": "after"}));
    let again = client.call(
        "create_task",
        json!({"id": "t1", "description": "use [purged] now", "idempotency_key": "k-[purged]"}),
    );
    assert!(!format!("{again:?}").contains("stairway"), "{again:?}");
    assert_eq!(with_text(board.dir()), Vec::<String>::new());

    // The history is whole, and says who and when.
    board.assert_file_is_the_replay();
    let event = board.events().into_iter().find(|one| one.event.kind() == "purged").unwrap();
    assert_eq!(event.actor.as_ref().map(|actor| actor.as_str()), Some("human"));
    drop((client, server));
    let history = board.finish(board.command().args(["history"])).stdout;
    assert!(history.contains("purged a text from"), "{history}");
    let doctor = board.finish(board.command().args(["doctor"]));
    assert!(doctor.stdout.contains("a text was purged from"), "{}", doctor.stdout);
    assert!(!doctor.stdout.contains("fail "), "{}", doctor.stdout);
    for check in [["snapshot", "verify"], ["bundle", "verify"]] {
        let verified = board.finish(board.command().args(check));
        assert!(verified.status.success(), "{}{}", verified.stdout, verified.stderr);
    }
    let earlier = board.finish(board.command().args(["state", "--at", "4"])).stdout;
    assert!(earlier.contains("[purged]") && !earlier.contains("stairway"), "{earlier}");
    let artifact = board.finish(board.command().args(["artifact", "get", "t1", "log.txt"]));
    assert!(!artifact.stdout.contains("stairway"), "{}", artifact.stdout);
}

#[test]
fn purge_that_was_interrupted_is_completed_by_the_next() {
    let board = board_with_text();
    let killed =
        board.finish(purging(&board, TEXT, &["--yes"]).env("CALLBOARD_FAILPOINT", "purged"));
    assert!(!killed.status.success(), "{}", killed.stdout);
    let purged = purge(&board, TEXT, &["--yes", "--json"]);
    assert_eq!(purged.value()["left"], json!([]), "{}", purged.stderr);
    assert_eq!(with_text(board.dir()), Vec::<String>::new());
    board.assert_file_is_the_replay();
}

#[test]
fn only_a_person_purges_and_only_a_text_that_is_not_part_of_everything() {
    let board = board_with_text();
    let before = board.events().len();
    let refused = purge(&board, TEXT, &["--yes", "--agent", "ada"]);
    assert!(refused.stderr.contains("only a person purges"), "{}", refused.stderr);
    let refused = purge(&board, "abc", &["--yes"]);
    assert!(refused.stderr.contains("3 bytes"), "{}", refused.stderr);
    let refused = purge(&board, "description", &["--yes"]);
    assert!(refused.stderr.contains("nothing was changed"), "{}", refused.stderr);
    assert_eq!(board.events().len(), before);
    let nothing = purge(&board, "nowhere to be found", &["--dry-run", "--json"]).value();
    assert_eq!((&nothing["events"], &nothing["files"]), (&json!(0), &json!([])));
}

#[test]
fn listener_is_not_told_what_was_purged() {
    let board = board_with_text();
    let mut client = board.mcp();
    let head = board.events().len();
    purge(&board, TEXT, &["--yes"]);
    let told = until(Duration::from_secs(10), "the purge is told", || {
        let reply = client.ok("wait_for_events", json!({"since_seq": 0, "limit": 50}));
        let events = reply["events"].as_array().cloned().unwrap_or_default();
        (events.len() > head).then(|| reply.to_string())
    });
    assert!(!told.contains("stairway"), "{told}");
}
