//! Processes whose clocks are wrong, or that stand still for a while, beside others: nobody loses a
//! task by that, and nobody keeps one for longer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use callboard::state::event::{Event, Recorded};
use callboard::state::time::Timestamp;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::http::{Door, Server};
use crate::harness::{Board, Client, PATIENCE, size, until};
use crate::health;
use crate::hooks::{answer, by_shell, input};

const HOUR: i64 = 3_600;

/// A library that is loaded before libc and sets a process's clocks ahead by `CALLBOARD_TEST_AHEAD`
/// seconds, as `faketime` does; a path is that of a file with the seconds, which may change.
const AHEAD: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t ahead(void) {
    const char *given = getenv("CALLBOARD_TEST_AHEAD");
    if (!given || *given != '/') return given ? atol(given) : 0;
    char seconds[32] = "";
    int file = open(given, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, seconds, sizeof seconds - 1) < 0) seconds[0] = 0;
    close(file);
    return atol(seconds);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = syscall(SYS_clock_gettime, clock, time);
    if (!failed) time->tv_sec += ahead();
    return failed;
}

int gettimeofday(struct timeval *time, void *zone) {
    int failed = syscall(SYS_gettimeofday, time, zone);
    if (!failed) time->tv_sec += ahead();
    return failed;
}
"#;

fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (source, library) =
            (dir.join("ahead.c"), dir.join(format!("ahead-{}.so", std::process::id())));
        fs::write(&source, AHEAD).unwrap();
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source)
            .status()
            .unwrap();
        assert!(compiled.success(), "cc makes the library");
        library
    })
}

/// The environment of a process whose clocks are ahead by so many seconds, or by those in a file.
pub(crate) fn ahead(seconds: impl ToString) -> [(&'static str, String); 2] {
    [
        ("LD_PRELOAD", library().to_str().unwrap().to_owned()),
        ("CALLBOARD_TEST_AHEAD", seconds.to_string()),
    ]
}

/// An MCP client whose server process has clocks that are ahead.
fn mcp(board: &Board, seconds: i64) -> Client {
    Client::start(board.command().arg("mcp").envs(ahead(seconds)))
}

fn add_with_clock(board: &Board, seconds: i64) {
    let added = board.finish(board.command().args(["add", "d"]).envs(ahead(seconds)));
    assert!(added.status.success(), "{}", added.stderr);
}

/// Registers an agent that claims a task of its own, which fails with its first attempt.
fn claims(client: &mut Client, agent: &str) -> String {
    client.register(agent);
    let task = json!({"description": "d", "max_attempts": 1, "priority": 1});
    let id = client.ok("create_task", task)["task"]["id"].as_str().unwrap().to_owned();
    client.ok("claim_task", json!({"agent_id": agent, "task_id": id}));
    id
}

/// Events by which an agent loses its task, or everybody's deadlines move.
fn disturbances(events: &[Recorded]) -> Vec<&Recorded> {
    let disturbs =
        |event: &Event| matches!(event, Event::LeaseExpired { .. } | Event::ClockStepped { .. });
    events.iter().filter(|recorded| disturbs(&recorded.event)).collect()
}

/// Time on the board from its first event to its last, which must never go back.
fn passed(events: &[Recorded]) -> Duration {
    assert!(events.is_sorted_by_key(|recorded| recorded.at), "time goes back");
    let [first, .., last] = events else { return Duration::ZERO };
    Duration::from_millis(last.at.since(first.at).unsigned_abs())
}

#[test]
fn faked_clock_is_faked() {
    let board = Board::new();
    add_with_clock(&board, 5 * HOUR);
    let made = board.events()[0].at;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = Timestamp::from_millis(now.as_millis().try_into().unwrap());
    let ahead = made.since(now) / 1_000;
    assert!(
        (4 * HOUR..=5 * HOUR).contains(&ahead),
        "the first process on a board has only its own clock: {ahead}"
    );
}

#[test]
fn commands_with_fast_and_slow_clocks_end_no_lease() {
    let (board, start) = (Board::new(), Instant::now());
    let mut agent = board.mcp();
    let server = Server::on(&board);
    let id = claims(&mut agent, "a");
    let remote = Door::Rpc.ok(&server, "create_task", &json!({"description": "d", "priority": 1}));
    let remote = remote["task"]["id"].as_str().unwrap();
    Door::Rpc.ok(&server, "register_agent", &json!({"agent_id": "r", "role": "worker"}));
    Door::Rpc.ok(&server, "claim_task", &json!({"agent_id": "r", "task_id": remote}));
    for seconds in [45 * 60, 5 * HOUR, 5 * HOUR, -2 * HOUR, 24 * HOUR, 400 * 24 * HOUR] {
        add_with_clock(&board, seconds);
    }
    assert_eq!(
        [board.task(&id)["status"].take(), board.task(remote)["status"].take()],
        ["claimed", "claimed"]
    );
    let events = board.events();
    assert!(disturbances(&events).is_empty() && passed(&events) <= start.elapsed(), "{events:?}");
    agent.ok("complete_task", json!({"agent_id": "a", "task_id": id, "output": "done"}));
}

#[test]
fn server_with_a_fast_clock_refuses_no_good_token() {
    let board = Board::new();
    let added =
        board.finish(board.command().args(["--json", "token", "add", "--expires", "1"])).value();
    board.cli_ok("create_task", json!({"description": "d"}));
    let environment = ahead(48 * HOUR);
    let server = Server::with(
        &board,
        &[],
        &environment.each_ref().map(|(name, value)| (*name, value.as_str())),
    );
    let request = server.rpc(1, "get_status", &json!({})).without("Authorization");
    let request =
        request.header("Authorization", &format!("Bearer {}", added["token"].as_str().unwrap()));
    let answer = server.ask(&request);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn hook_with_a_fast_clock_guards_what_is_reserved() {
    let board = Board::new();
    let mut holder = board.mcp();
    holder.register("holder");
    holder.ok("reserve_files", json!({"agent_id": "holder", "files": ["a.rs"], "minutes": 60}));
    let edit =
        json!({"tool_name": "Write", "tool_input": {"file_path": board.base().join("a.rs")}});
    let mut guard = by_shell(&board, "guard");
    guard.envs(ahead(5 * HOUR)).env("CALLBOARD_AGENT", "another");
    let said = answer(guard, input(&board, "PreToolUse", edit).to_string().as_bytes());
    assert!(said.contains("deny") && said.contains("holder"), "{said}");
}

#[test]
fn who_is_off_by_how_much_is_said_everywhere() {
    let board = Board::new();
    let mut right = board.mcp();
    right.register("right");
    let mut fast = mcp(&board, 5 * HOUR);
    fast.register("fast");
    let environment = ahead(-2 * HOUR);
    let server = Server::with(
        &board,
        &[],
        &environment.each_ref().map(|(name, value)| (*name, value.as_str())),
    );
    Door::Rpc.ok(&server, "get_status", &json!({}));
    let is_about = |value: &Value, ahead: i64| {
        value.as_i64().is_some_and(|seconds| (seconds - ahead).abs() <= 2)
    };

    let health = right.ok("health_check", json!({}));
    assert!(health.get("clock_ahead_seconds").is_none() && health["status"] == "ok", "{health}");
    let wrong = health["wrong_clocks"].as_array().unwrap();
    let of_fast = wrong.iter().find(|one| one["pid"] == fast.pid()).unwrap();
    assert!(is_about(&of_fast["clock_ahead_seconds"], 5 * HOUR), "{health}");
    assert!(
        wrong.iter().any(|one| is_about(&one["clock_ahead_seconds"], -2 * HOUR))
            && wrong.len() == 2,
        "{health}"
    );
    let health = fast.ok("health_check", json!({}));
    assert!(is_about(&health["clock_ahead_seconds"], 5 * HOUR), "{health}");
    assert!(health["reasons"][0].as_str().unwrap().contains("ahead of the board's time"));
    let (status, ready) = health::ready(&server);
    assert!(status == 503 && ready["kinds"] == json!(["wrong_clock"]), "{ready}");
    assert!(is_about(&ready["clock_ahead_seconds"], -2 * HOUR), "{ready}");
    let samples = health::samples(&server);
    assert_eq!(samples[r#"callboard_degraded{reason="wrong_clock"}"#], 1.0);
    assert!((samples["callboard_clock_ahead_seconds"] + 2.0 * HOUR as f64).abs() <= 2.0);

    for command in ["doctor", "status"] {
        let said = board.finish(board.command().arg(command)).stdout;
        let of_fast = format!("that of process {} is 5 h ahead of the board's time", fast.pid());
        assert!(
            said.contains(&of_fast) && said.contains("is 2 h behind the board's time"),
            "{said}"
        );
        assert!(!said.contains("machine's"), "{said}");
        let said = board.finish(board.command().arg(command).envs(ahead(24 * HOUR))).stdout;
        assert!(
            said.contains("machine's") && said.contains("is 24 h ahead of the board's time"),
            "{said}"
        );
    }
}

#[test]
fn process_that_was_stopped_while_others_worked_moves_no_deadline() {
    let (board, start) = (Board::with_policy("grace_seconds = 2"), Instant::now());
    let operations = size("CALLBOARD_CLOCK_OPERATIONS", 150);
    let stop = Duration::from_secs(size("CALLBOARD_STOPPED_SECONDS", 2) as u64);
    let mut stopped = board.mcp();
    let mut all = [mcp(&board, -2 * HOUR), mcp(&board, 0), mcp(&board, 5 * HOUR)];
    let kept = claims(&mut stopped, "stopped");
    let names = ["slow", "right", "fast"];
    let ids: Vec<_> = all.iter_mut().zip(names).map(|(one, name)| claims(one, name)).collect();
    stopped.signal(Signal::STOP);
    let at = Instant::now();
    for number in 0..operations {
        let (client, agent, id) = (&mut all[number % 3], names[number % 3], &ids[number % 3]);
        client.ok(
            "heartbeat",
            json!({"agent_id": agent, "task_id": id, "note": format!("step {number}")}),
        );
        if number.is_multiple_of(50) {
            add_with_clock(&board, 5 * HOUR);
        }
    }
    until(PATIENCE.max(2 * stop), "the time that it stands still", || {
        (at.elapsed() >= stop).then_some(())
    });
    stopped.signal(Signal::CONT);
    stopped.ok("heartbeat", json!({"agent_id": "stopped", "task_id": kept, "note": "on again"}));
    let events = board.events();
    assert!(
        disturbances(&events).is_empty() && passed(&events) <= start.elapsed(),
        "{:?}",
        disturbances(&events)
    );
    for id in ids.iter().chain([&kept]) {
        assert_eq!(board.task(id)["status"], "claimed");
    }

    // The task of one that dies is free after the grace, whichever clock the others have.
    all[1].kill();
    until(PATIENCE, "its task ends", || (board.task(&ids[1])["status"] == "failed").then_some(()));
    let events = board.events();
    let time =
        |what: fn(&Event) -> bool| events.iter().find(|recorded| what(&recorded.event)).unwrap().at;
    let gone = time(|event| matches!(event, Event::ParticipantGone { .. }));
    let late = time(|event| matches!(event, Event::LeaseExpired { .. })).since(gone);
    assert!((2_000..12_000).contains(&late), "{late} ms after its death was found");
    assert!(passed(&events) <= start.elapsed());
    let held: Vec<Value> =
        [&ids[0], &ids[2], &kept].map(|id| board.task(id)["status"].take()).into();
    assert_eq!(held, ["claimed", "claimed", "claimed"]);
}
