//! `config.toml`, saved while processes use the board.

use std::fs;

use serde_json::json;

use crate::harness::Board;

fn save(board: &Board, settings: &str) {
    fs::write(board.file("config.toml"), format!("[policy]\n{settings}\n")).unwrap();
}

#[test]
fn calls_that_come_while_one_before_is_refused_are_refused_as_well() {
    let board = Board::new();
    board.make_dir();
    save(&board, "retry_hours = 1");
    let mut client = board.mcp();
    for _ in 0..50 {
        let sent: Vec<_> = (0..8).map(|_| client.send("create_task", json!({"description": "d"}))).collect();
        for id in sent {
            let reply = client.reply(id).unwrap();
            assert!(reply.is_error && reply.code() == "bad_config", "{}", reply.text);
        }
    }
    fs::remove_file(board.file("config.toml")).unwrap();
    client.ok("create_task", json!({"description": "d"}));
}
