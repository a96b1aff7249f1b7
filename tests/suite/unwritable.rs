//! Boards that can only be read: on a file system that is mounted read-only, or without permission
//! to write.

use std::process::Command;

use callboard::ops;
use serde_json::{Value, json};

use crate::costs::calls;
use crate::harness::{Board, Finished, available};

/// What makes a board unwritable, until it is dropped.
struct Closed<'a> {
    board: &'a Board,
    is_mounted: bool,
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl<'a> Closed<'a> {
    fn by_mount(board: &'a Board) -> Option<Self> {
        let dir = board.dir().to_str().unwrap();
        let closed = Self { board, is_mounted: true };
        let mounted = run("mount", &["--bind", dir, dir])
            .and_then(|()| run("mount", &["-o", "remount,bind,ro", dir]));
        let failure = mounted.err().map(|reason| format!("nothing can be mounted: {reason}"));
        available("root", failure.as_deref()).then_some(closed)
    }

    fn by_permissions(board: &'a Board) -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let cannot = is_root && run("setpriv", &["--version"]).is_err();
        if !available("setpriv", cannot.then_some("root may write anything")) {
            return None;
        }
        run("chmod", &["-R", "a-w", board.dir().to_str().unwrap()]).unwrap();
        Some(Self { board, is_mounted: false })
    }

    fn call(&self, arguments: &[&str]) -> Finished {
        let callboard = self.board.command();
        let is_root = rustix::process::geteuid().is_root();
        let mut command = if is_root { Command::new("setpriv") } else { Command::new("env") };
        if is_root {
            command.args(["--bounding-set", "-dac_override,-dac_read_search"]);
        }
        for (name, value) in callboard.get_envs() {
            value.into_iter().for_each(|value| _ = command.env(name, value));
        }
        command.current_dir(self.board.base()).arg(callboard.get_program()).args(arguments);
        self.board.finish(&mut command)
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let dir = self.board.dir().to_str().unwrap();
        let _ = if self.is_mounted {
            run("umount", &["-l", dir])
        } else {
            run("chmod", &["-R", "u+w", dir])
        };
    }
}

/// The reads that the board answers, as calls.
fn answered(board: &Board) -> Vec<(&'static str, Value)> {
    let reads = ops::all().iter().filter(|entry| entry.annotations.read_only);
    let asked = reads.filter_map(|entry| {
        let calls = calls(entry.name, "t1")?.into_iter().map(|arguments| (entry.name, arguments));
        calls
            .into_iter()
            .find(|(name, arguments)| board.cli(name, arguments.clone()).status.success())
    });
    asked.collect()
}

#[test]
fn every_read_answers_where_nothing_can_be_written_and_says_so() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("init_coordination", json!({"goal": "g"}));
    client.register("writer");
    for id in ["t1", "t2"] {
        client.ok("create_task", json!({"id": id, "description": "d"}));
    }
    drop(client);
    let asked = answered(&board);
    println!("{} reads: {asked:?}", asked.len());
    assert!(asked.len() > 15);
    for is_mounted in [true, false] {
        let closed =
            if is_mounted { Closed::by_mount(&board) } else { Closed::by_permissions(&board) };
        let Some(closed) = closed else { continue };
        for (name, arguments) in &asked {
            let read = closed.call(&["--json", "call", name, &arguments.to_string()]);
            assert!(read.status.success(), "{name} {arguments}: {}", read.stderr);
            let warning = read.value()["warning"].as_str().unwrap_or_default().to_owned();
            assert!(warning.contains("nothing can be written"), "{name} {arguments}: {warning}");
        }
        for command in ["status", "tasks", "agents", "history", "runs", "sessions"] {
            let read = closed.call(&[command]);
            assert!(read.status.success(), "{command}: {}", read.stderr);
            assert!(read.stderr.contains("nothing can be written"), "{command}: {}", read.stderr);
        }
        let refused = closed.call(&["add", "in vain"]);
        assert_eq!(refused.status.code(), Some(3), "{}", refused.stderr);
        assert!(refused.stderr.contains("nothing can be written"), "{}", refused.stderr);
    }
    board.cli_ok("create_task", json!({"description": "d"}));
    board.assert_file_is_the_replay();
}

#[test]
fn board_of_another_user_is_refused_with_the_way_to_share_it() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    let given = run("chown", &["-R", "65534", board.dir().to_str().unwrap()]);
    if !available("root", given.err().as_deref()) {
        return;
    }
    for arguments in [&["status"][..], &["add", "x"]] {
        let refused = board.finish(board.command().args(arguments));
        assert_eq!(refused.status.code(), Some(3), "{}", refused.stderr);
        assert!(refused.stderr.contains("callboard serve"), "{}", refused.stderr);
    }
}
