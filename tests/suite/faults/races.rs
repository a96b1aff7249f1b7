//! Processes that start all at once, and processes that are told to end during their work.
//! `CALLBOARD_RACES` is the number of rounds.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use callboard::state::event::Event;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Board, Client, PATIENCE, size, until};

/// Calls in progress when a client's process is told to end.
const IN_FLIGHT: usize = 100;

fn rounds() -> usize {
    size("CALLBOARD_RACES", 2)
}

#[test]
fn fifty_processes_that_start_at_once_make_one_board() {
    const STARTERS: usize = 50;
    let rounds = rounds();
    let start = Instant::now();
    for _ in 0..rounds {
        let board = Board::new();
        let barrier = Barrier::new(STARTERS);
        thread::scope(|scope| {
            for number in 0..STARTERS {
                let (board, barrier) = (&board, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let task = json!({"description": "d", "id": format!("task-{number}")});
                    // On a busy machine, fifty processes may take longer than the wait for the
                    // lock; then nothing was done.
                    until(PATIENCE, "the task is there", || {
                        let done = board.cli("create_task", task.clone());
                        assert!(done.status.success() || done.was_locked(), "{}", done.stderr);
                        done.status.success().then_some(())
                    });
                });
            }
        });
        let events = board.events();
        let boards =
            events.iter().filter(|one| matches!(one.event, Event::BoardCreated { .. })).count();
        assert_eq!((boards, board.tasks().len()), (1, STARTERS));
        board.assert_file_is_the_replay();
    }
    println!(
        "{STARTERS} processes at once, {rounds} times in {:.1} s: one journal each, {} calls \
         done, 0 lost",
        start.elapsed().as_secs_f64(),
        rounds * STARTERS
    );
}

/// Tells three processes with three hundred pending calls to end at once. Each exits successfully
/// and in time, and what it acknowledged is there.
fn end_under_load(how: &str, end: impl Fn(&mut Client), patience: Duration) {
    let (rounds, start) = (rounds(), Instant::now());
    let (mut best, mut worst, mut kept, mut unanswered) = (Duration::MAX, Duration::ZERO, 0, 0);
    for _ in 0..rounds {
        let board = Board::new();
        let mut clients: Vec<_> = (0..3).map(|_| board.mcp()).collect();
        let mut sent = Vec::new();
        for (number, client) in clients.iter_mut().enumerate() {
            client.ok("init_coordination", json!({"goal": "load", "replace_goal": true}));
            let create = |call| json!({"description": "d", "id": format!("task-{number}-{call}")});
            sent.push(
                (0..IN_FLIGHT)
                    .map(|call| client.send("create_task", create(call)))
                    .collect::<Vec<_>>(),
            );
        }
        // The first call was answered, so work is in progress.
        let first = clients[0].reply(sent[0].remove(0)).unwrap();
        let told = Instant::now();
        clients.iter_mut().for_each(&end);
        let mut acknowledged = vec![first.ok()["task"]["id"].clone()];
        for client in &mut clients {
            let (status, _) = client.ends_within(PATIENCE);
            assert!(status.success(), "{status}");
        }
        let took = told.elapsed();
        (best, worst) = (best.min(took), worst.max(took));
        for (client, sent) in clients.iter_mut().zip(&sent) {
            for id in sent {
                match client.reply(*id) {
                    Some(reply) if !reply.is_error => {
                        acknowledged.push(reply.value["task"]["id"].clone())
                    }
                    _ => unanswered += 1,
                }
            }
        }
        // The next write meets whatever an ended process left unfinished.
        board.cli_ok("init_coordination", json!({"goal": "after", "replace_goal": true}));
        let tasks = board.tasks();
        let lost: Vec<_> =
            acknowledged.iter().filter(|id| !tasks.contains_key(id.as_str().unwrap())).collect();
        assert_eq!(lost, [&Value::Null; 0]);
        kept += acknowledged.len();
        board.assert_file_is_the_replay();
    }
    println!(
        "{how} under load, {rounds} times three processes in {:.1} s: ended after {} to {} ms; \
         {kept} calls acknowledged, {unanswered} not, 0 lost",
        start.elapsed().as_secs_f64(),
        best.as_millis(),
        worst.as_millis()
    );
    // A process that does not end in time never does; a busy machine only delays some, and not for
    // long.
    assert!(best < patience && worst < 4 * patience, "{best:?} at best, {worst:?} at worst");
}

#[test]
fn terminated_under_load_a_process_ends_in_time_and_what_it_acknowledged_stays() {
    end_under_load("SIGTERM", |client| client.signal(Signal::TERM), Duration::from_secs(5));
}

#[test]
fn process_whose_client_leaves_under_load_ends_within_a_second() {
    end_under_load("end of input", Client::close_input, Duration::from_secs(1));
}
