//! Boards with a long history, whose old events are compressed within the journal.

use std::fs;

use callboard::journal::BatchId;
use callboard::journal::sqlite::SqliteJournal;
use callboard::state::event::{Event, Recorded};
use callboard::state::id::ParticipantId;
use callboard::state::time::Timestamp;
use callboard::state::{Envelope, State};
use serde_json::json;

use crate::edits::edit;
use crate::harness::{Board, PATIENCE, until};

/// Enough for several compressed blocks beyond the events that stay as they are.
const EVENTS: u64 = 14_000;

/// A board whose goal was changed many times.
fn long_board() -> (Board, Vec<Recorded>) {
    let board = Board::new();
    board.make_dir();
    let (mut state, mut events) = (State::new(), Vec::new());
    for seq in 1..=EVENTS {
        let participant = ParticipantId::trusted("p-aaaaaaaaaa");
        let at = Timestamp::from_millis(1_000 * seq.cast_signed());
        let envelope = Envelope { at, participant, actor: None, idempotency: None };
        let event = match seq {
            1 => Event::BoardCreated { board_id: "board-1".to_owned(), numbered: true },
            _ => Event::PlanSet { goal: format!("goal {seq}"), master_plan: None },
        };
        events.push(state.record(event, &envelope).unwrap());
        state.settle();
    }
    SqliteJournal::create_with(board.dir(), "board-1", &BatchId::new("b1"), &events).unwrap();
    (board, events)
}

/// Number of rows in the table.
fn count(board: &Board, table: &str) -> u64 {
    let connection = rusqlite::Connection::open(board.file("journal.db")).unwrap();
    let count: i64 = connection
        .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
        .unwrap();
    count.cast_unsigned()
}

#[test]
fn old_events_are_archived_beside_the_work_and_the_whole_past_can_be_asked_for() {
    let (board, events) = long_board();
    let mut client = board.mcp();
    client.ok("create_task", json!({"description": "the first in a long time", "id": "new"}));
    until(PATIENCE, "old events are archived", || (count(&board, "events") < 10_600).then_some(()));
    assert_eq!(board.events()[..events.len()], events, "every event is there as it was");
    let history =
        client.ok("get_history", json!({"before_seq": 300, "limit": 2, "kinds": ["plan_set"]}));
    assert_eq!(history["events"][0]["seq"], 299, "{history}");
    let past = board.finish(board.command().args(["state", "--at", "777"]));
    assert!(past.stdout.contains("\"goal\": \"goal 777\""), "{}", past.stdout);
    client.ok("create_task", json!({"description": "work goes on"}));
    board.assert_file_is_the_replay();
    let doctor = board.finish(board.command().args(["doctor"]));
    assert!(doctor.status.success(), "{}{}", doctor.stdout, doctor.stderr);
}

#[test]
fn commands_alone_archive_too_and_two_processes_do_not_disturb_each_other() {
    let (board, events) = long_board();
    let mut blocks = 0;
    let mut client = board.mcp();
    client.ok("get_status", json!({}));
    for round in 0..8 {
        board.cli_ok("create_task", json!({"description": format!("round {round}")}));
        client.ok("create_task", json!({"description": format!("beside {round}")}));
        blocks = blocks.max(count(&board, "archive"));
    }
    until(PATIENCE, "old events are archived", || (count(&board, "events") < 10_600).then_some(()));
    assert!(blocks > 0);
    assert_eq!(board.events()[..events.len()], events);
    board.assert_file_is_the_replay();
}

#[test]
fn command_that_takes_an_edit_over_and_archives_keeps_nobody_waiting() {
    let (board, _) = long_board();
    board.cli_ok("create_task", json!({"description": "d"}));
    let blocks = count(&board, "archive");
    edit(&board, |document| document["goal"] = json!("by hand"));
    board.cli_ok("create_task", json!({"description": "d"}));
    assert_eq!(board.document()["goal"], "by hand");
    // Archiving that waited for a lock of its own would have given up.
    assert!(count(&board, "archive") > blocks);
}

#[test]
fn backup_of_a_long_board_brings_its_archive_along() {
    let (board, events) = long_board();
    let mut client = board.mcp();
    client.ok("create_task", json!({"description": "d"}));
    until(PATIENCE, "old events are archived", || (count(&board, "events") < 10_600).then_some(()));
    drop(client);
    let file = board.base().join("backup");
    let backed_up = board.finish(board.command().args(["backup", file.to_str().unwrap()]));
    assert!(backed_up.status.success(), "{}", backed_up.stderr);
    fs::remove_dir_all(board.dir()).unwrap();
    let restored = board.finish(board.command().args(["restore", file.to_str().unwrap()]));
    assert!(restored.status.success(), "{}", restored.stderr);
    assert_eq!(board.events()[..events.len()], events);
    assert!(count(&board, "archive") > 0);
}
