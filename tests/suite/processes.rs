//! Many processes on one board: none is refused because of another, and the state file is whole at
//! every moment.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use callboard::state::event::Event;
use rusqlite::Connection;
use serde_json::json;

use crate::harness::http::Server;
use crate::harness::{Board, Client, PATIENCE, Reader, STATE_FILE, size, until};
use crate::participants::{living, watcher};
use crate::{hooks, ui};

const PROCESSES: usize = 8;
const TASKS: usize = 400;
/// Tasks in one `create_tasks_batch`.
const BATCH: usize = 100;

/// Claims and completes until nothing is left. Returns the ids of its tasks, and the codes of
/// refusals.
fn work(mut client: Client, agent: &str) -> (Vec<String>, Vec<String>) {
    let (mut claimed, mut refused) = (Vec::new(), Vec::new());
    client.register(agent);
    loop {
        let reply = client.call("claim_task", json!({"agent_id": agent, "wait_seconds": 5}));
        if reply.is_error {
            refused.push(reply.text);
            continue;
        }
        if reply.value["success"] == false {
            match reply.value["verdict"].as_str() {
                Some("finished") => return (claimed, refused),
                Some("wait" | "empty") => continue,
                _ => panic!("{}", reply.value),
            }
        }
        let id = reply.value["task"]["id"].as_str().unwrap().to_owned();
        let start = claimed.len().is_multiple_of(3).then_some("start_task");
        for tool in start.into_iter().chain(["complete_task"]) {
            let mut arguments = json!({"agent_id": agent, "task_id": id});
            if tool == "complete_task" {
                arguments["output"] = json!(format!("{id} by {agent}"));
            }
            let reply = client.call(tool, arguments);
            if reply.is_error {
                refused.push(reply.text);
            }
        }
        claimed.push(id);
    }
}

#[test]
fn eight_processes_do_four_hundred_tasks_once_each_under_a_readers_eyes() {
    let board = Board::new();
    let mut leader = board.mcp();
    for batch in 0..TASKS / BATCH {
        let task =
            |number: usize| json!({"description": format!("task {number} of batch {batch}")});
        leader.ok("create_tasks_batch", json!({"tasks": (0..BATCH).map(task).collect::<Vec<_>>()}));
    }
    let reader = Reader::of(&board);
    let start = Instant::now();
    let done: Vec<_> = thread::scope(|scope| {
        let spawn = |number| {
            let client = board.mcp();
            scope.spawn(move || work(client, &format!("worker-{number}")))
        };
        let workers: Vec<_> = (0..PROCESSES).map(spawn).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let took = start.elapsed();
    let seen = reader.stop();
    let refused: Vec<_> = done.iter().flat_map(|(_, refused)| refused).collect();
    let claims: Vec<_> = done.iter().flat_map(|(claimed, _)| claimed).collect();
    let distinct: BTreeSet<_> = claims.iter().collect();
    println!(
        "{PROCESSES} processes, {} claims of {} tasks in {:.1} s, {} refusals; {} reads of the \
         state file, {} bad, last seq {}",
        claims.len(),
        distinct.len(),
        took.as_secs_f64(),
        refused.len(),
        seen.reads,
        seen.bad.len(),
        seen.last_seq
    );
    assert_eq!(refused, [""; 0]);
    assert_eq!((claims.len(), distinct.len()), (TASKS, TASKS));
    assert_eq!(seen.bad, [""; 0]);
    assert!(seen.reads > 0);
    let mut completed = BTreeMap::<String, usize>::new();
    for recorded in board.events() {
        if let Event::Completed { task, .. } = recorded.event {
            *completed.entry(task.as_str().to_owned()).or_default() += 1;
        }
    }
    assert!(completed.len() == TASKS && completed.values().all(|times| *times == 1));
    assert!(board.tasks().values().all(|task| task["status"] == "done"));
    board.assert_file_is_the_replay();
}

/// Takes a lock as a process of the board would. Returns the file and the process id that it names.
fn hold(board: &Board, name: &str) -> (File, u32) {
    let mut lock = File::options().write(true).open(board.file(name)).unwrap();
    lock.lock().unwrap();
    let pid = std::process::id();
    lock.write_all(format!("{pid:<10}\n").as_bytes()).unwrap();
    (lock, pid)
}

#[test]
fn held_lock_is_named_after_five_seconds_and_reads_go_on() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"description": "before"}));
    let (lock, pid) = hold(&board, "lock");
    let start = Instant::now();
    let waiting = client.send("create_task", json!({"description": "in vain"}));
    for _ in 0..5 {
        let asked = Instant::now();
        client.ok("get_status", json!({}));
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    }
    let refused = client.reply(waiting).unwrap();
    let took = start.elapsed();
    assert_eq!(refused.code(), "locked", "{}", refused.text);
    assert!(refused.text.contains(&format!("process {pid}")), "{}", refused.text);
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(8), "{took:?}");
    lock.unlock().unwrap();
    client.ok("create_task", json!({"description": "after"}));
    assert_eq!(board.document()["tasks"].as_array().unwrap().len(), 2);
    board.assert_file_is_the_replay();
}

#[test]
fn program_that_writes_to_the_journal_is_waited_for_and_nothing_is_done_when_it_stays() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"description": "before", "id": "before"}));
    client.register("a1");
    let events = board.events();
    let foreign = rusqlite::Connection::open(board.file("journal.db")).unwrap();
    let calls = [
        // Would be refused anyway.
        ("complete_task", json!({"agent_id": "a1", "task_id": "before", "output": "done"})),
        ("claim_task", json!({"agent_id": "a1"})),
        ("create_task", json!({"description": "in vain"})),
    ];
    for (tool, arguments) in calls {
        foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
        let start = Instant::now();
        let refused = client.call(tool, arguments);
        assert!(start.elapsed() >= Duration::from_secs(5), "{tool}: {:?}", start.elapsed());
        foreign.execute_batch("ROLLBACK").unwrap();
        assert_eq!(refused.code(), "not_written", "{tool}: {}", refused.text);
        assert!(refused.text.contains("close it and try again"), "{tool}: {}", refused.text);
        client.ok("get_status", json!({}));
    }
    assert_eq!(board.events(), events);
    client.ok("create_task", json!({"description": "after"}));
    board.assert_file_is_the_replay();
}

#[test]
fn held_lock_of_the_state_file_delays_the_first_call_and_loses_none() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"description": "before"}));
    let (lock, pid) = hold(&board, "state-lock");
    let start = Instant::now();
    let waiting = client.send("create_task", json!({"description": "first", "id": "first"}));
    until(Duration::from_secs(2), "reads go on", || {
        (client.ok("get_status", json!({}))["total_tasks"] == 2).then_some(())
    });
    let first = client.reply(waiting).unwrap().ok();
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(8), "{took:?}");
    let second = client.ok("create_task", json!({"description": "second", "id": "second"}));
    assert!(start.elapsed() - took < Duration::from_secs(2), "{:?}", start.elapsed());
    for reply in [first, second] {
        let warning = reply["warning"].as_str().unwrap();
        assert!(
            warning.contains("done and in the journal")
                && warning.contains(&format!("process {pid}")),
            "{warning}"
        );
    }
    assert_eq!(client.ok("health_check", json!({}))["state_file_lag"], 2);
    assert_eq!(
        board.document()["tasks"].as_array().unwrap().len(),
        1,
        "the file is another's to replace"
    );
    lock.unlock().unwrap();
    until(PATIENCE, "the file is brought up", || (board.tasks().len() == 3).then_some(()));
    let after = client.ok("create_task", json!({"description": "after"}));
    assert!(after.get("warning").is_none(), "{after}");
    assert_eq!(board.tasks().len(), 4);
    board.assert_file_is_the_replay();
}

#[test]
fn commands_that_need_no_journal_wait_no_longer_for_the_lock_than_a_call() {
    let (board, empty) = (Board::new(), Board::new());
    board.cli_ok("create_task", json!({"description": "d"}));
    empty.make_dir();
    let pid = std::process::id();
    let locks = [&board, &empty].map(|board| {
        let mut lock = File::options().create(true).append(true).open(board.file("lock")).unwrap();
        lock.lock().unwrap();
        lock.set_len(0).unwrap();
        lock.write_all(format!("{pid:<10}\n").as_bytes()).unwrap();
        lock
    });
    let state = board.file(STATE_FILE);
    let commands: [(&Board, &[&str]); 3] = [
        (&board, &["token", "add", "--role", "worker"]),
        (&board, &["token", "revoke", "nobody"]),
        (&empty, &["restore", state.to_str().unwrap()]),
    ];
    let start = Instant::now();
    let waiting = commands.map(|(board, arguments)| {
        (arguments, board.command().args(arguments).stderr(Stdio::piped()).spawn().unwrap())
    });
    for (arguments, mut command) in waiting {
        let status =
            until(Duration::from_secs(20), "the command gives up", || command.try_wait().unwrap());
        let mut complaint = String::new();
        command.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!(status.code(), Some(3), "{arguments:?}: {complaint}");
        assert!(
            complaint.contains(&format!("process {pid} for 5 s")),
            "{arguments:?}: {complaint}"
        );
    }
    assert!(start.elapsed() >= Duration::from_secs(5), "{:?}", start.elapsed());
    drop(locks);
    for (board, arguments) in [commands[0], commands[2]] {
        let finished = board.finish(board.command().args(arguments));
        assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
    }
}

/// Longest time for a command beside processes that do nothing: far more than it takes on a machine
/// that is busy with other tests, and less than it would wait for them.
const BOUND: Duration = Duration::from_secs(2);

/// Opens the journal and closes it. If nobody else has it open, SQLite removes the log.
fn read_and_close(board: &Board) {
    let connection = Connection::open(board.file("journal.db")).unwrap();
    connection.query_row("SELECT count(*) FROM events", [], |_| Ok(())).unwrap();
    connection.close().unwrap();
}

/// `CALLBOARD_MIXTURES=63 cargo test --test suite -- beside_idle --nocapture` tries all mixtures.
#[test]
fn commands_beside_idle_processes_do_not_wait_for_them() {
    type Start = fn(&Board) -> Option<Box<dyn Any>>;
    let starts: [(&str, Start); 6] = [
        // It starts no server where one runs, so it comes first.
        ("web", |board| {
            let web = Client::start(board.command().args(["web", "--no-open"]));
            until(PATIENCE, "it serves", || (!living(board).is_empty()).then_some(()));
            Some(Box::new(web))
        }),
        ("mcp", |board| Some(Box::new(board.mcp()))),
        ("serve", |board| Some(Box::new(Server::on(board)))),
        ("mcp that has read", |board| {
            let mut client = board.mcp();
            client.ok("get_status", json!({}));
            Some(Box::new(client))
        }),
        ("ui", ui::untouched),
        ("watch", |board| Some(Box::new(watcher(board)))),
    ];
    type Run = fn(&Board);
    let commands: [(&str, Run); 3] = [
        ("add", |board| {
            let added = board.finish(board.command().args(["add", "one more"]));
            assert!(added.status.success(), "{}", added.stderr);
        }),
        ("status", |board| {
            let shown = board.finish(board.command().arg("status"));
            assert!(shown.status.success(), "{}", shown.stderr);
        }),
        ("hook", |board| {
            let input = hooks::input(board, "SessionStart", json!({"source": "startup"}));
            hooks::answer(hooks::by_shell(board, "session-start"), input.to_string().as_bytes());
        }),
    ];
    let mut took = Vec::new();
    for mixture in 1..=size("CALLBOARD_MIXTURES", 8) {
        let board = Board::new();
        board.cli_ok("init_coordination", json!({"goal": "g"}));
        let chosen = starts.iter().enumerate().filter(|(bit, _)| mixture >> bit & 1 == 1);
        let (names, idle): (Vec<_>, Vec<_>) =
            chosen.filter_map(|(_, (name, start))| Some((*name, start(&board)?))).unzip();
        let mut time = |(what, command): &(&str, fn(&Board))| {
            let start = Instant::now();
            command(&board);
            took.push((start.elapsed(), format!("{what} beside {names:?}")));
        };
        // They may not have shown that they are there.
        commands.iter().for_each(&mut time);
        until(PATIENCE, "all are seen", || (living(&board).len() >= idle.len()).then_some(()));
        for command in &commands {
            read_and_close(&board);
            time(command);
        }
        board.assert_file_is_the_replay();
        drop(idle);
    }
    let (slowest, what) = took.iter().max().unwrap();
    println!("{} commands, the slowest {slowest:?}: {what}", took.len());
    let slow: Vec<_> = took.iter().filter(|(time, _)| *time > BOUND).collect();
    assert!(slow.is_empty(), "{} of {}: {slow:#?}", slow.len(), took.len());
}
