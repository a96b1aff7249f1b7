//! Agents whose processes die, fall silent, or lose their replies.

use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::task::{Context, Waker};
use std::time::{Duration, Instant, SystemTime};

use callboard::clock::ManualClock;
use callboard::ops::EventFilter;
use callboard::participant::{self, Caller, Handle, Options, Stay};
use callboard::state::event::Event;
use callboard::state::time::Timestamp;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::http::{Door, Server};
use crate::harness::{Board, PATIENCE, remove_live, until};
use crate::health::Holder;
use crate::people::{Running, watch};

const SHORT_GRACE: &str = "grace_seconds = 1";
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_process_is_seen_before_its_first_call() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    let _idle = board.mcp();
    drop(until(PATIENCE, "its presence", || fs::read_dir(board.file("run")).ok()?.next()));
}

#[test]
fn task_of_a_killed_agent_goes_to_one_that_waits_and_its_late_result_is_kept() {
    let board = Board::with_policy(SHORT_GRACE);
    let (mut dead, mut heir) = (board.mcp(), board.mcp());
    dead.register("dead");
    heir.register("heir");
    let id = dead.ok("create_task", json!({"description": "d"}))["task"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    dead.ok("claim_task", json!({"agent_id": "dead"}));
    dead.ok("start_task", json!({"agent_id": "dead", "task_id": id}));
    let waiting = heir.wait_in_claim("heir");
    let start = Instant::now();
    dead.kill();
    let claim = heir.reply(waiting).unwrap().ok();
    let took = start.elapsed();
    assert_eq!((&claim["success"], &claim["attempt"]), (&json!(true), &json!(2)), "{claim}");
    assert!(took < Duration::from_secs(20), "it waits longer than the grace: {took:?}");
    println!("a killed agent's task was another's after {} ms (grace 1000 ms)", took.as_millis());

    let late = json!({"agent_id": "dead", "task_id": id, "output": "late", "attempt": 1});
    let refused = board.cli("complete_task", late);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert_eq!(refused.code(), "attempt_over");
    assert_eq!(board.task(&id)["attempts"][0]["late_result"]["output"], "late");
    assert_eq!(board.task(&id)["claimed_by"], "heir");
    heir.ok("complete_task", json!({"agent_id": "heir", "task_id": id, "output": "mine"}));
    assert_eq!(board.task(&id)["result"]["output"], "mine");
    board.assert_file_is_the_replay();
}

#[test]
fn process_of_one_call_that_waits_ends_the_attempt_whose_time_is_over() {
    let board = Board::with_policy("retry_seconds = 0");
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    board.cli_ok("update_task", json!({"task_id": "t", "timeout_seconds": 1}));
    for agent in ["gone", "heir"] {
        board.cli_ok("register_agent", json!({"agent_id": agent, "role": "worker"}));
    }
    board.cli_ok("claim_task", json!({"agent_id": "gone"}));
    let start = Instant::now();
    let claim = board.cli_ok("claim_task", json!({"agent_id": "heir", "wait_seconds": 50}));
    assert_eq!((&claim["success"], &claim["attempt"]), (&json!(true), &json!(2)), "{claim}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn events_are_not_waited_for_behind_the_end_of_the_board() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    let start = Instant::now();
    let told = board.cli_ok("wait_for_events", json!({"since_seq": 1_000, "wait_seconds": 50}));
    assert_eq!((&told["events"], &told["next_seq"]), (&json!([]), &json!(2)), "{told}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn late_result_of_a_killed_agent_is_taken_when_nobody_took_the_task() {
    let board = Board::with_policy(SHORT_GRACE);
    let (mut dead, mut leader) = (board.mcp(), board.mcp());
    leader.ok("init_coordination", json!({"goal": "g", "replace_goal": true}));
    dead.register("dead");
    let id = dead.ok("create_task", json!({"description": "d"}))["task"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    dead.ok("claim_task", json!({"agent_id": "dead"}));
    dead.kill();
    until(PATIENCE, "the lease ends", || {
        let task = leader.ok("get_task", json!({"task_id": id}))["task"].take();
        (task["status"] == "available").then_some(())
    });
    let mut again = board.mcp();
    again.ok(
        "complete_task",
        json!({"agent_id": "dead", "task_id": id, "output": "late", "attempt": 1}),
    );
    let task = board.task(&id);
    assert_eq!((&task["status"], &task["result"]["output"]), (&json!("done"), &json!("late")));
    board.assert_file_is_the_replay();
}

#[test]
fn claim_whose_reply_was_lost_is_answered_again_to_the_next_process() {
    let board = Board::new();
    let mut first = board.mcp();
    first.register("a");
    let id = first.ok("create_task", json!({"description": "d"}))["task"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    first.send("claim_task", json!({"agent_id": "a"}));
    until(PATIENCE, "the claim is made", || (board.task(&id)["status"] == "claimed").then_some(()));
    first.kill();
    let mut second = board.mcp();
    for _ in 0..2 {
        let claim = second.ok("claim_task", json!({"agent_id": "a"}));
        assert_eq!(claim["already"], true, "{claim}");
        assert_eq!((&claim["task"]["id"], &claim["attempt"]), (&json!(id), &json!(1)));
    }
}

#[test]
fn waiting_claim_is_answered_when_another_process_adds_a_task() {
    let board = Board::new();
    let (mut worker, mut leader) = (board.mcp(), board.mcp());
    worker.register("w");
    let mut latencies = Vec::new();
    for round in 0..9 {
        let waiting = worker.wait_in_claim("w");
        let task = leader.ok("create_task", json!({"description": format!("round {round}")}))
            ["task"]["id"]
            .take();
        let start = Instant::now();
        let claim = worker.reply(waiting).unwrap().ok();
        latencies.push(start.elapsed());
        assert_eq!(claim["task"]["id"], task, "{claim}");
        worker.ok("complete_task", json!({"agent_id": "w", "task_id": task, "output": "o"}));
        // If all tasks were finished, the next claim would not wait.
        if round == 0 {
            leader.register("keeper");
            leader.ok("create_task", json!({"description": "held throughout", "id": "held"}));
            leader.ok("claim_task", json!({"agent_id": "keeper", "task_id": "held"}));
        }
    }
    latencies.sort_unstable();
    let (median, worst) = (latencies[latencies.len() / 2], latencies[latencies.len() - 1]);
    println!(
        "waiting claim answered after another process's task: median {median:?}, worst {worst:?}"
    );
    assert!(worst < Duration::from_secs(5), "{latencies:?}");
}

#[test]
fn claim_that_has_waited_its_time_is_answered_empty_handed_on_an_idle_board() {
    let board = Board::new();
    let mut worker = board.mcp();
    worker.register("w");
    let start = Instant::now();
    let reply = worker.ok("claim_task", json!({"agent_id": "w", "wait_seconds": 1}));
    let took = start.elapsed();
    assert_eq!((&reply["success"], &reply["verdict"]), (&json!(false), &json!("empty")), "{reply}");
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn claim_that_was_cancelled_takes_no_task() {
    let board = Board::new();
    let (mut gone, mut other) = (board.mcp(), board.mcp());
    gone.register("gone");
    let waiting = gone.wait_in_claim("gone");
    gone.cancel(waiting);
    gone.ok("get_status", json!({}));
    let id = other.ok("create_task", json!({"description": "d"}))["task"]["id"].take();
    gone.ok("get_status", json!({}));
    other.register("other");
    let claim = other.ok("claim_task", json!({"agent_id": "other", "wait_seconds": 5}));
    assert_eq!((&claim["task"]["id"], &claim["attempt"]), (&id, &json!(1)), "{claim}");
}

#[test]
fn end_of_input_ends_a_waiting_claim_without_a_task() {
    let board = Board::new();
    let mut other = board.mcp();
    let ended = (0..5).map(|_| {
        let mut gone = board.mcp();
        gone.register("gone");
        gone.wait_in_claim("gone");
        gone.close_input();
        let (status, took) = gone.ends_within(PATIENCE);
        assert!(status.success(), "{status}");
        took
    });
    // A busy machine delays some of them, so the fastest counts.
    let took = ended.min().unwrap();
    println!("end of input with a waiting claim: ended after {} ms at best", took.as_millis());
    assert!(took < Duration::from_secs(1), "{took:?}");
    let id = other.ok("create_task", json!({"description": "d"}))["task"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(board.task(&id)["status"], "available");
}

/// Files of participants in the board's directory, whether they live or not.
pub(crate) fn living(board: &Board) -> Vec<String> {
    let entries = fs::read_dir(board.file("run")).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // A server notes its address beside.
    names.filter(|name| !name.starts_with("serve-")).collect()
}

/// A process that only reads, and that has seen the board.
pub(crate) fn watcher(board: &Board) -> Running {
    let watch = watch(board, &["--json", "--since", "0"]);
    watch.line();
    watch
}

#[test]
fn processes_that_stay_are_seen_to_live_while_they_do_and_those_of_one_call_are_not() {
    let board = Board::new();
    let mut server = Server::on(&board);
    let status = |server: &Server| Door::Rpc.ok(server, "get_status", &json!({}));
    status(&server);
    assert!(!board.file("journal.db").exists(), "looking makes no board");
    assert_eq!(living(&board), [""; 0]);
    board.cli_ok("create_task", json!({"description": "d"}));
    board.cli_ok("register_agent", json!({"agent_id": "busy", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "busy"}));
    let mut claim = board.command();
    let mut claim = claim
        .args(["--agent", "new", "claim", "--wait", "50"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until(PATIENCE, "it waits", || board.document()["agents"].get("new").map(drop));
    assert_eq!(living(&board), [""; 0], "a command");
    claim.kill().unwrap();
    claim.wait().unwrap();
    status(&server);
    assert_eq!(living(&board).len(), 1, "a server that has only looked");
    let mut client = board.mcp();
    client.ok("get_status", json!({}));
    let watch = watcher(&board);
    assert_eq!(living(&board).len(), 3);
    assert_eq!(board.document()["participants"], json!({}), "no agent acts through them");
    let doctor = board.finish(board.command().arg("doctor"));
    assert!(living(&board).iter().all(|name| doctor.stdout.contains(name)), "{}", doctor.stdout);
    board.cli_ok("create_task", json!({"description": "d"}));
    assert_eq!(living(&board).len(), 3, "who lives is not cleared away");
    remove_live(&board.file("run"));
    until(PATIENCE, "they are seen again", || (living(&board).len() == 3).then_some(()));

    client.close_input();
    assert!(client.ends_within(PATIENCE).0.success());
    assert_eq!(living(&board).len(), 2);
    server.signal(Signal::TERM);
    assert!(server.ends_within(PATIENCE).success());
    let left = living(&board);
    assert_eq!(left.len(), 1);
    drop(watch);
    assert_eq!(living(&board), left);
    board.cli_ok("create_task", json!({"description": "d"}));
    assert_eq!(living(&board), [""; 0], "the next who writes clears it away");
}

/// Participants in this process, with a clock that the test sets.
struct Inside {
    clock: ManualClock,
    runtime: tokio::runtime::Runtime,
}

impl Inside {
    fn new() -> Self {
        Self::by(ManualClock::at(Timestamp::from_millis(1_800_000_000_000)))
    }

    fn by(clock: ManualClock) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { clock, runtime }
    }

    fn participant(&self, board: &Board, stay: Stay, seed: u64) -> Handle {
        self.restrained(board, stay, seed, None)
    }

    /// A participant that writes nothing for the reason `unwritable`, if given.
    fn restrained(&self, board: &Board, stay: Stay, seed: u64, unwritable: Option<&str>) -> Handle {
        participant::spawn(Options {
            dir: board.dir().to_owned(),
            state_file: None,
            stay,
            forbidden: None,
            unasked: None,
            unwritable: unwritable.map(str::to_owned),
            clock: Box::new(self.clock.clone()),
            seed,
            worktree: None,
        })
    }

    #[track_caller]
    fn ok(&self, handle: &Handle, tool: &str, arguments: Value) -> Value {
        let called = self.runtime.block_on(handle.call(tool, arguments, &Caller::default()));
        called.unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    /// Registers an agent that claims the board's only task.
    fn claim(&self, handle: &Handle) -> String {
        self.ok(handle, "register_agent", json!({"agent_id": "a", "role": "worker"}));
        let id = self.ok(handle, "create_task", json!({"description": "d"}))["task"]["id"].take();
        self.ok(handle, "claim_task", json!({"agent_id": "a"}));
        id.as_str().unwrap().to_owned()
    }

    /// A write by another agent, which also records what time has brought.
    fn write(&self, handle: &Handle) {
        self.ok(
            handle,
            "init_coordination",
            json!({"goal": "time has passed", "replace_goal": true}),
        );
    }
}

/// Whether a process that comes 76 s from now records that nobody ran. `signs` is what becomes of
/// the presence files.
fn records_a_step(board: &Board, signs: impl Fn(&Path)) -> bool {
    let inside = Inside::by(ManualClock::after(Duration::from_secs(76)));
    living(board).iter().for_each(|name| signs(&board.file("run").join(name)));
    inside.write(&inside.participant(board, Stay::Brief, 1));
    board.events().iter().any(|recorded| matches!(recorded.event, Event::ClockStepped { .. }))
}

/// The process touched its file until shortly before.
fn touched_late(file: &Path) {
    let late = SystemTime::now() + Duration::from_secs(70);
    fs::File::options().write(true).open(file).and_then(|file| file.set_modified(late)).unwrap();
}

#[test]
fn silence_of_a_process_is_not_taken_for_a_time_when_nobody_ran() {
    for (signs, steps) in [(touched_late as fn(&Path), false), (|_| {}, true)] {
        let board = Board::new();
        let mut client = board.mcp();
        client.register("a");
        client.kill();
        assert_eq!(records_a_step(&board, signs), steps);
    }
}

#[test]
fn outage_of_a_server_is_a_time_when_nobody_ran_unless_it_was_ended_in_order() {
    for (signal, steps) in [(Signal::KILL, true), (Signal::TERM, false)] {
        let board = Board::new();
        let mut server = Server::on(&board);
        Door::Rpc.ok(&server, "register_agent", &json!({"agent_id": "a", "role": "worker"}));
        server.signal(signal);
        server.ends_within(PATIENCE);
        assert_eq!(records_a_step(&board, |_| {}), steps, "{signal:?}");
        assert_eq!(living(&board), [""; 0], "the file is cleared away, so it counts once");
    }
}

#[test]
fn process_that_must_write_nothing_leaves_no_sign_of_its_life() {
    let (board, inside) = (Board::new(), Inside::new());
    board.cli_ok("create_task", json!({"description": "d"}));
    for (unwritable, signs) in [(None, 1), (Some("it is far away"), 0)] {
        let handle = inside.restrained(&board, Stay::Presence, 1, unwritable);
        assert_eq!(inside.ok(&handle, "get_status", json!({}))["total_tasks"], 1);
        assert_eq!(living(&board).len(), signs, "{unwritable:?}");
        drop(handle);
        assert_eq!(living(&board), [""; 0], "{unwritable:?}");
    }
}

#[test]
fn silent_agent_whose_process_lives_keeps_its_task_and_is_shown_as_quiet() {
    let (board, inside) = (Board::new(), Inside::new());
    let (living, other) =
        (inside.participant(&board, Stay::Presence, 1), inside.participant(&board, Stay::Brief, 2));
    let id = inside.claim(&living);
    inside.clock.advance(29 * MINUTE);
    inside.write(&other);
    assert!(inside.ok(&other, "get_status", json!({})).get("quiet").is_none());
    inside.clock.advance(2 * MINUTE);
    inside.write(&other);
    assert_eq!(inside.ok(&other, "get_status", json!({}))["quiet"], json!(["a"]));
    let agent = inside.ok(&other, "get_agents", json!({}))["agents"][0].take();
    assert_eq!((&agent["present"], &agent["quiet"]), (&json!(true), &json!(true)), "{agent}");
    let task = board.task(&id);
    assert_eq!((&task["status"], &task["claimed_by"]), (&json!("claimed"), &json!("a")));
    inside.clock.advance(240 * MINUTE);
    inside.write(&other);
    assert_eq!(board.task(&id)["status"], "available", "silent_minutes are over");
    drop(living);
}

#[test]
fn silent_agent_without_a_living_process_loses_its_task() {
    let (board, inside) = (Board::new(), Inside::new());
    let passing = inside.participant(&board, Stay::Brief, 1);
    let id = inside.claim(&passing);
    inside.clock.advance(29 * MINUTE);
    inside.write(&passing);
    assert_eq!(board.task(&id)["status"], "claimed");
    inside.clock.advance(2 * MINUTE);
    inside.write(&passing);
    let task = board.task(&id);
    assert_eq!(
        (&task["status"], &task["attempts"][0]["outcome"]),
        (&json!("available"), &json!("expired")),
        "{task}"
    );
}

#[test]
fn sleep_of_hours_ends_no_lease_and_the_expiry_after_it_is_not_counted() {
    let (board, inside) = (Board::new(), Inside::new());
    let passing = inside.participant(&board, Stay::Brief, 1);
    let id = inside.claim(&passing);
    inside.clock.sleep(5 * 60 * MINUTE);
    inside.write(&passing);
    assert_eq!(board.task(&id)["status"], "claimed");
    inside.clock.advance(31 * MINUTE);
    inside.write(&passing);
    assert_eq!(board.task(&id)["status"], "available");
    let counted: Vec<_> = board
        .events()
        .iter()
        .filter_map(|recorded| match recorded.event {
            Event::LeaseExpired { counted, .. } => Some(counted),
            _ => None,
        })
        .collect();
    assert_eq!(counted, [false]);
}

#[test]
fn sleep_of_the_machine_ends_no_lease_also_when_a_command_comes_before_those_who_slept() {
    let (board, inside) = (Board::new(), Inside::new());
    let slept = inside.participant(&board, Stay::Presence, 1);
    let id = inside.claim(&slept);
    inside.clock.sleep(5 * 60 * MINUTE);
    // It has no earlier reading of the clock.
    inside.write(&inside.participant(&board, Stay::Brief, 2));
    inside.write(&slept);
    inside.write(&inside.participant(&board, Stay::Brief, 3));
    assert_eq!(board.task(&id)["status"], "claimed");
    let steps = board
        .events()
        .iter()
        .filter(|recorded| matches!(recorded.event, Event::ClockStepped { .. }))
        .count();
    assert_eq!(steps, 1, "once for all");
}

#[test]
fn idle_process_notices_the_death_of_one_it_never_heard_of() {
    let board = Board::with_policy(SHORT_GRACE);
    let mut idle = board.mcp();
    idle.ok("init_coordination", json!({"goal": "g", "replace_goal": true}));
    let mut dead = board.mcp();
    dead.register("dead");
    let id = dead.ok("create_task", json!({"description": "d"}))["task"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    dead.ok("claim_task", json!({"agent_id": "dead"}));
    dead.kill();
    // Nobody calls, so only the state file shows it.
    until(PATIENCE, "the task is available", || {
        (board.task(&id)["status"] == "available").then_some(())
    });
}

#[test]
fn waiting_for_events_ends_without_a_board_and_beyond_its_head_and_never_is_endless() {
    let board = Board::new();
    let mut leader = board.mcp();
    let start = Instant::now();
    let none = leader.ok("wait_for_events", json!({"wait_seconds": 1}));
    assert_eq!(none["events"], json!([]));
    assert!(start.elapsed() >= Duration::from_secs(1));
    leader.ok("init_coordination", json!({"goal": "g", "replace_goal": true}));
    let now = leader.ok("wait_for_events", json!({}));
    assert_eq!((&now["events"], &now["next_seq"]), (&json!([]), &json!(2)), "{now}");
    let all = leader.ok("wait_for_events", json!({"since_seq": 0}));
    assert_eq!(all["events"].as_array().map(Vec::len), Some(2), "{all}");
    let beyond = leader.ok("wait_for_events", json!({"since_seq": 99_999}));
    assert_eq!((&beyond["events"], &beyond["next_seq"]), (&json!([]), &json!(2)), "{beyond}");
    let endless = json!({"since_seq": 99_999, "wait_seconds": u64::MAX});
    let longest = "`wait_seconds` is 50";
    let said = board.cli_ok("wait_for_events", endless)["warning"].to_string();
    assert!(said.contains(longest), "{said}");
    leader.register("a");
    leader.ok("create_task", json!({"description": "d"}));
    let endless = json!({"agent_id": "a", "wait_seconds": u64::MAX});
    let said = board.cli_ok("claim_task", endless)["warning"].to_string();
    assert!(said.contains(longest), "{said}");
}

#[test]
fn auto_shares_no_name_with_a_process_that_came_between() {
    let board = Board::new();
    let start =
        |dir: &Board| crate::harness::Client::start(dir.command().args(["mcp", "--agent", "auto"]));
    let (mut first, mut second) = (start(&board), start(&board));
    let id = first.ok("create_task", json!({"description": "d"}))["task"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    // A refused call registers nobody, so it does not occupy the name.
    first.call("update_task", json!({"task_id": id, "priority": 1}));
    let claim = second.ok("claim_task", json!({}));
    assert_eq!(claim["success"], true, "{claim}");
    let other = first.ok("claim_task", json!({}));
    assert_eq!(other["success"], false, "{other}");
    assert_ne!(other["agent_id"], claim["agent_id"]);
}

#[test]
fn auto_knows_a_repeated_call_before_and_after_it_has_a_name_and_takes_no_others_for_it() {
    let board = Board::new();
    let start = || crate::harness::Client::start(board.command().args(["mcp", "--agent", "auto"]));
    let create = json!({"description": "d", "idempotency_key": "k"});
    let mut first = start();
    let id = first.ok("create_task", create.clone())["task"]["id"].clone();
    first.ok("claim_task", json!({}));
    let again = first.ok("create_task", create.clone());
    assert_eq!((&again["already"], &again["task"]["id"]), (&json!(true), &id), "{again}");
    let others = start().ok("create_task", create);
    assert_ne!(others["task"]["id"], id, "another agent's key");
}

#[test]
fn listener_hears_of_a_board_that_another_process_makes_later() {
    let (board, inside) = (Board::new(), Inside::new());
    let server = inside.participant(&board, Stay::Lasting, 1);
    let heard = inside.runtime.block_on(async {
        let mut listener = server.listen(None, EventFilter::default()).await.unwrap();
        board.cli_ok("create_task", json!({"description": "d"}));
        let mut kinds = Vec::new();
        while kinds.last() != Some(&"tasks_created") {
            let item =
                tokio::time::timeout(PATIENCE, listener.next()).await.expect("an event").unwrap();
            kinds.push(item.recorded.event.kind());
        }
        kinds
    });
    assert_eq!(heard, ["board_created", "tasks_created"]);
}

#[test]
fn first_claim_of_an_agent_that_nobody_registered_waits() {
    let board = Board::new();
    board.cli_ok(
        "create_task",
        json!({"description": "in work, so that there is something to wait for"}),
    );
    board.cli_ok("register_agent", json!({"agent_id": "busy", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "busy"}));
    let mut claim = board.command();
    claim.args(["--json", "--agent", "new", "claim", "--wait", "50"]).stdout(Stdio::piped());
    let claim = claim.spawn().unwrap();
    until(PATIENCE, "the agent is registered", || board.document()["agents"].get("new").map(drop));
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    let output = claim.wait_with_output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&reply["success"], &reply["task"]["id"]), (&json!(true), &json!("t")), "{reply}");
}

/// Whether the future is ready; otherwise it has at least begun.
fn is_done<F: Future>(future: &mut Pin<Box<F>>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn nobody_goes_on_waiting_because_the_queue_was_full_when_it_was_to_end() {
    let (board, inside) = (Board::new(), Inside::new());
    let handle = inside.participant(&board, Stay::Lasting, 1);
    inside.ok(&handle, "register_agent", json!({"agent_id": "a", "role": "worker"}));
    inside.runtime.block_on(async {
        let caller = Caller::default();
        let mut claim = Box::pin(handle.call(
            "claim_task",
            json!({"agent_id": "a", "wait_seconds": 50}),
            &caller,
        ));
        assert!(!is_done(&mut claim));
        let (begins, begun) = channel();
        let (ends, ended) = channel::<()>();
        let mut busy = Box::pin(handle.look(move |_| {
            begins.send(()).unwrap();
            ended.recv().unwrap();
        }));
        assert!(!is_done(&mut busy));
        begun.recv().unwrap();
        let mut queued = Vec::new();
        loop {
            let mut look = Box::pin(handle.look(|_| ()));
            // The call was refused.
            if is_done(&mut look) {
                break;
            }
            queued.push(look);
        }
        handle.stop_waiting();
        ends.send(()).unwrap();
        let answer =
            tokio::time::timeout(Duration::from_secs(20), claim).await.expect("it waits no longer");
        assert_eq!(answer.unwrap()["task"], Value::Null);
    });
}

#[test]
fn what_a_client_sends_at_once_is_done_in_its_order() {
    let board = Board::new();
    let mut client = board.mcp();
    for number in 0..20 {
        client.ok("create_task", json!({"id": format!("alone-{number}"), "description": "d"}));
    }
    for burst in 0..10 {
        client.ok("get_status", json!({}));
        let id = |number: usize| format!("t{burst}-{number}");
        let behind = |number: usize| number.checked_sub(1).map(id).into_iter().collect::<Vec<_>>();
        let create =
            |number| json!({"id": id(number), "description": "d", "dependencies": behind(number)});
        let sent: Vec<_> =
            (0..5).map(|number| client.send("create_task", create(number))).collect();
        for request in sent {
            client.reply(request).unwrap().ok();
        }
    }
    drop(client);
    board.assert_file_is_the_replay();
}

#[test]
fn call_overtakes_no_listener_that_began_before_it() {
    let (board, inside) = (Board::new(), Inside::new());
    let handle = inside.participant(&board, Stay::Lasting, 1);
    for number in 0..20 {
        inside.ok(&handle, "create_task", json!({"id": format!("t{number}"), "description": "d"}));
        if number < 10 {
            continue;
        }
        let caller = Caller::default();
        let heard = inside.runtime.block_on(async {
            let create = json!({"id": format!("u{number}"), "description": "d"});
            let (listener, created) = tokio::join!(
                handle.listen(None, EventFilter::default()),
                handle.call("create_task", create, &caller)
            );
            created.unwrap();
            let mut listener = listener.unwrap();
            tokio::time::timeout(PATIENCE, listener.next())
                .await
                .expect("an event")
                .unwrap()
                .recorded
                .event
                .kind()
        });
        assert_eq!(heard, "tasks_created");
    }
}

#[test]
fn whoever_reads_learns_that_a_process_has_ended() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    for (operation, arguments) in [
        ("get_agents", json!({})),
        ("get_status", json!({})),
        ("get_task", json!({"task_id": "t"})),
        ("get_all_tasks", json!({})),
    ] {
        let mut client = board.mcp();
        client.register("ada");
        client.kill();
        board.cli_ok(operation, arguments);
        let ada = board.document()["agents"]["ada"].clone();
        assert!(
            ada["present_through"].is_null() || ada["present_through"] == json!([]),
            "{operation}: {ada}"
        );
    }
    // A stopped process with a lock does not keep readers waiting.
    let mut client = board.mcp();
    client.register("ada");
    client.kill();
    let Some(holder) = Holder::of(&board.file("lock")) else { return };
    holder.stop();
    let start = Instant::now();
    board.cli_ok("get_agents", json!({}));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}
