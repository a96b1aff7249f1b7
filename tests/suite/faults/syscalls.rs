//! The N-th system call fails, for every N in a script of fifty operations.
//! `CALLBOARD_SYSCALL_STRIDE` is the distance between the N that are tried; 1 tries all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::harness::{Board, Client, PATIENCE, STATE_FILE, size, until};

const EVERYDAY_STRIDE: usize = 151;

/// A system call, whether it is counted only on the board's files (because other files use it,
/// too), and the faults that strace injects.
const FAULTS: [(&str, bool, &[&str]); 10] = [
    // `retval=0` is a short write that takes no bytes.
    ("write", true, &["error=EIO", "error=ENOSPC", "retval=0", "signal=SIGKILL"]),
    ("pwrite64", false, &["error=EIO", "error=ENOSPC", "retval=0", "signal=SIGKILL"]),
    ("fdatasync", false, &["error=EIO", "error=ENOSPC", "signal=SIGKILL"]),
    ("fsync", false, &["error=EIO", "error=ENOSPC", "signal=SIGKILL"]),
    ("rename", false, &["error=EIO", "error=ENOSPC", "error=EROFS", "signal=SIGKILL"]),
    ("renameat2", false, &["error=EIO", "error=EINVAL", "error=EROFS", "signal=SIGKILL"]),
    (
        "openat",
        true,
        &["error=EIO", "error=ENOSPC", "error=EROFS", "error=EMFILE", "signal=SIGKILL"],
    ),
    ("ftruncate", false, &["error=EIO", "error=EROFS", "signal=SIGKILL"]),
    ("unlink", false, &["error=EIO", "error=EROFS", "signal=SIGKILL"]),
    ("flock", false, &["error=EIO", "error=ENOLCK", "signal=SIGKILL"]),
];

const FILES: [&str; 10] = [
    "",
    "lock",
    "state-lock",
    "journal.db",
    "journal.db-wal",
    "mcp-state.json",
    ".mcp-state.json.tmp",
    ".mcp-state.json.spare",
    "config.toml",
    ".gitignore",
];

/// Fifty calls that include every kind of write. Each task is claimed once.
fn script() -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("init_coordination", json!({"goal": "survive", "replace_goal": true})),
        ("register_agent", json!({"agent_id": "a", "role": "worker", "max_concurrent": 9})),
        ("register_agent", json!({"agent_id": "b", "role": "leader", "max_concurrent": 9})),
    ];
    calls.extend(
        (0..10).map(|task| ("create_task", json!({"id": format!("t{task}"), "description": "d"}))),
    );
    let drafts: Vec<_> =
        (0..3).map(|task| json!({"id": format!("b{task}"), "description": "d"})).collect();
    calls.push(("create_tasks_batch", json!({"tasks": drafts, "idempotency_key": "k"})));
    calls.push(("add_discovery", json!({"agent_id": "a", "content": "found"})));
    for task in 0..7 {
        let (agent, task) = (["a", "b"][task % 2], format!("t{task}"));
        calls.push(("claim_task", json!({"agent_id": agent, "task_id": task})));
        calls.push(("start_task", json!({"agent_id": agent, "task_id": task})));
        calls.push(("heartbeat", json!({"agent_id": agent, "task_id": task, "note": "half way"})));
        calls.push((
            "complete_task",
            json!({"agent_id": agent, "task_id": task, "output": format!("did {task}")}),
        ));
    }
    calls.push(("claim_task", json!({"agent_id": "a", "task_id": "t7"})));
    calls.push((
        "fail_task",
        json!({"agent_id": "a", "task_id": "t7", "error": "e", "retryable": false}),
    ));
    calls.push(("claim_task", json!({"agent_id": "a", "task_id": "t8"})));
    calls.push(("cancel_task", json!({"agent_id": "b", "task_id": "t9", "reason": "r"})));
    calls.push(("update_task", json!({"agent_id": "b", "task_id": "t8", "priority": 1})));
    calls.push(("pause", json!({"agent_id": "b"})));
    calls.push(("resume", json!({"agent_id": "b"})));
    calls
}

/// What the client was told.
#[derive(Default)]
struct Told {
    /// Tasks with the status in the last answer about them.
    status: BTreeMap<String, &'static str>,
    not_created: BTreeSet<String>,
    /// Error codes, each with one of the messages.
    errors: BTreeMap<String, String>,
    /// Tasks of calls that got no answer, so the outcome is unknown.
    unsure: BTreeSet<String>,
    last_was_answered: bool,
    died: bool,
}

impl Told {
    fn hear(&mut self, tool: &str, arguments: &Value, outcome: Result<(), &str>) {
        let batch = arguments["tasks"].as_array().into_iter().flatten();
        let named = batch.chain([arguments]).flat_map(|one| [&one["id"], &one["task_id"]]);
        for task in named.filter_map(Value::as_str).map(str::to_owned) {
            let status = match tool {
                "create_task" | "create_tasks_batch" => "available",
                "claim_task" => "claimed",
                "start_task" => "in_progress",
                "complete_task" => "done",
                "fail_task" => "failed",
                "cancel_task" => "cancelled",
                _ => continue,
            };
            match outcome {
                Ok(()) => drop(self.status.insert(task, status)),
                Err("" | "unknown_outcome") => drop(self.unsure.insert(task)),
                Err(_) if status == "available" => drop(self.not_created.insert(task)),
                Err(_) => {}
            }
        }
    }
}

struct Point {
    call: &'static str,
    on_board_only: bool,
    fault: String,
    /// The process is killed right after it has answered an error; the answer must still be true.
    killed_after: bool,
}

/// Starts the server under strace, with standard error in a file.
fn start(board: &Board, point: &Point, log: &str) -> Client {
    // With this kernel filter, untraced calls cost nothing, but a signal would never be injected.
    let filter = if point.fault.starts_with("signal") { "" } else { "--seccomp-bpf" };
    let mut line = format!("exec strace -f -y {filter} -qq -o '{log}' -e trace={}", point.call);
    if point.on_board_only {
        FILES.iter().for_each(|name| {
            line +=
                &format!(" -P '{}'", board.file(name).display().to_string().trim_end_matches('/'))
        });
    }
    if !point.fault.is_empty() {
        line += &format!(" -e inject={}:{}", point.call, point.fault);
    }
    let stderr = board.base().join("stderr");
    line += &format!(" {} mcp 2>'{}'", env!("CARGO_BIN_EXE_callboard"), stderr.display());
    let mut command = board.command();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]).current_dir(board.base());
    for (name, value) in command.stdin(std::process::Stdio::null()).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    Client::start(shell.process_group(0))
}

/// Process group of the shell that has become strace, with the server in it.
fn client_group(client: &Client) -> Pid {
    Pid::from_raw(client.pid().cast_signed()).unwrap()
}

fn play(board: &Board, point: &Point, log: &str) -> Told {
    let mut client = start(board, point, log);
    let mut told = Told::default();
    for (tool, arguments) in script() {
        let Some(reply) = client.try_call(tool, arguments.clone()) else {
            told.hear(tool, &arguments, Err(""));
            told.died = true;
            break;
        };
        told.last_was_answered = !reply.is_error;
        if reply.is_error {
            assert!(!reply.text.trim().is_empty(), "{tool}: an error without a word");
            told.hear(tool, &arguments, Err(reply.code()));
            told.errors.insert(reply.code().to_owned(), reply.text);
            if point.killed_after {
                kill_process_group(client_group(&client), Signal::KILL).unwrap();
                break;
            }
        } else if reply.value["success"] == false {
            panic!("{tool} {arguments}: {}", reply.value);
        } else {
            told.hear(tool, &arguments, Ok(()));
        }
    }
    client.close_input();
    client.ends_within(PATIENCE);
    told
}

/// How often each call is made by the thread that makes it most.
fn count(point: &Point) -> usize {
    let board = Board::new();
    let log = board.base().join("log");
    let told = play(&board, point, log.to_str().unwrap());
    assert!(told.errors.is_empty() && !told.died, "{:?}", told.errors);
    let mut by_thread = BTreeMap::<String, usize>::new();
    for line in fs::read_to_string(log)
        .unwrap()
        .lines()
        .filter(|line| line.contains(&format!("{}(", point.call)))
    {
        *by_thread.entry(line.split(' ').next().unwrap().to_owned()).or_default() += 1;
    }
    by_thread.into_values().max().unwrap_or(0)
}

/// Starts a process after the fault, and checks everything that was acknowledged.
fn verify(board: &Board, told: &Told) -> Vec<String> {
    let mut wrong = Vec::new();
    let stderr = fs::read_to_string(board.base().join("stderr")).unwrap_or_default();
    if stderr.contains("panicked") {
        wrong.push(format!("it panicked: {stderr}"));
    }
    for (operation, arguments) in
        [("get_status", json!({})), ("create_task", json!({"id": "after", "description": "d"}))]
    {
        let finished = board.cli(operation, arguments);
        if !finished.status.success() {
            wrong.push(format!("no clean start: {operation} {}", finished.stderr));
            return wrong;
        }
    }
    let tasks = board.tasks();
    for (id, status) in told.status.iter().filter(|(id, _)| !told.unsure.contains(*id)) {
        let found = tasks.get(id).map(|task| task["status"].as_str().unwrap_or_default());
        if found != Some(status) {
            wrong.push(format!("{id} was acknowledged as {status} and is {found:?}"));
        }
    }
    for id in
        told.unsure.iter().filter(|id| told.status.contains_key(*id) && !tasks.contains_key(*id))
    {
        wrong.push(format!("{id} was acknowledged and is not there"));
    }
    let stray = told.not_created.iter().filter(|id| tasks.contains_key(*id));
    wrong.extend(stray.map(|id| format!("{id} was refused ({:?}) and is there", told.errors)));
    let kept: Vec<PathBuf> =
        fs::read_dir(board.dir()).unwrap().map(|entry| entry.unwrap().path()).collect();
    wrong.extend(
        kept.iter()
            .filter(|path| path.to_string_lossy().contains("quarantined"))
            .map(|path| path.display().to_string()),
    );
    board.assert_file_is_the_replay();
    wrong
}

#[test]
fn the_nth_system_call_may_fail_for_any_n() {
    if !super::has("strace", "--version") {
        return;
    }
    let stride = size("CALLBOARD_SYSCALL_STRIDE", EVERYDAY_STRIDE);
    let start = Instant::now();
    let mut points = Vec::new();
    let mut reached = Vec::new();
    for (call, on_board_only, faults) in FAULTS {
        let times =
            count(&Point { call, on_board_only, fault: String::new(), killed_after: false });
        reached.push(format!("{call} {times}"));
        for fault in faults {
            let point = |n, killed_after| Point {
                call,
                on_board_only,
                fault: format!("{fault}:when={n}"),
                killed_after,
            };
            points.extend((1..=times).map(|n| point(n, n % 2 == 0)));
        }
    }
    let all = points.len();
    // Spread evenly, whatever the stride.
    let points: Vec<_> = points.into_iter().skip(stride / 2).step_by(stride).collect();
    let (next, hit, died, refused, recovered) = Default::default();
    let wrong = Mutex::new(Vec::new());
    let codes = Mutex::new(BTreeMap::<String, (usize, String)>::new());
    let counters: [&AtomicUsize; 5] = [&next, &hit, &died, &refused, &recovered];
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let [next, hit, died, refused, recovered] = counters;
                while let Some(point) = points.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let board = Board::new();
                    let log = board.base().join("log");
                    let told = play(&board, point, log.to_str().unwrap());
                    let traced = fs::read_to_string(&log).unwrap();
                    hit.fetch_add(
                        usize::from(traced.contains("INJECTED") || told.died),
                        Ordering::SeqCst,
                    );
                    died.fetch_add(usize::from(told.died), Ordering::SeqCst);
                    refused.fetch_add(usize::from(!told.errors.is_empty()), Ordering::SeqCst);
                    recovered.fetch_add(
                        usize::from(told.last_was_answered && !told.died),
                        Ordering::SeqCst,
                    );
                    for (code, text) in &told.errors {
                        let mut codes = codes.lock().unwrap();
                        codes.entry(code.clone()).or_insert_with(|| (0, text.clone())).0 += 1;
                    }
                    let found = verify(&board, &told);
                    let name = format!(
                        "{} {} {}",
                        point.call,
                        point.fault,
                        if point.killed_after { "and killed" } else { "" }
                    );
                    wrong
                        .lock()
                        .unwrap()
                        .extend(found.into_iter().map(|one| format!("{name}: {one}")));
                }
            });
        }
    });
    let [_, hit, died, refused, recovered] = counters.map(|counter| counter.load(Ordering::SeqCst));
    let wrong = wrong.into_inner().unwrap();
    println!("a script of {} operations reaches {}", script().len(), reached.join(", "));
    for (code, (times, text)) in codes.into_inner().unwrap() {
        println!("{times} runs answered {code}: {text}");
    }
    println!(
        "{} of {all} system calls failed in {:.0} s ({hit} hit): {died} runs died of it, \
         {refused} refused a call, {recovered} went on to the end; {} violations",
        points.len(),
        start.elapsed().as_secs_f64(),
        wrong.len()
    );
    assert_eq!(wrong, [""; 0]);
}

/// Somebody saves in place while a process's first commit copies the file.
#[test]
fn save_in_place_while_the_file_is_copied_leaves_it_whole_and_is_taken_over() {
    if !super::has("strace", "--version") {
        return;
    }
    let board = Board::with_slots();
    board.cli_ok("create_task", json!({"id": "t1", "description": "d".repeat(16_000)}));
    let fault = "delay_enter=3000000:when=1".to_owned();
    let point = Point { call: "copy_file_range", on_board_only: false, fault, killed_after: false };
    let log = board.base().join("log");
    let mut client = start(&board, &point, log.to_str().unwrap());
    client.ok("get_status", json!({}));
    let mut edited = board.document();
    edited["goal"] = json!("by hand");
    let copying = client.send("create_task", json!({"id": "t2", "description": "d"}));
    let copy = board.file(&format!(".{STATE_FILE}.tmp"));
    until(PATIENCE, "the copy is begun", || fs::symlink_metadata(&copy).ok());
    fs::write(board.file(STATE_FILE), edited.to_string()).unwrap();
    client.reply(copying).unwrap().ok();
    assert!(fs::read_to_string(&log).unwrap().contains("DELAYED"));
    assert!(
        board.document()["seq"].as_u64() >= Some(3),
        "it is valid and shows what was acknowledged"
    );
    for task in ["t3", "t4"] {
        client.ok("create_task", json!({"id": task, "description": "d"}));
    }
    until(PATIENCE, "the edit is taken over", || {
        (board.document()["goal"] == "by hand").then_some(())
    });
    assert_eq!(board.tasks().len(), 4);
    board.assert_file_is_the_replay();
}

/// Every rename fails except the first, which names the new file for the exchange.
#[test]
fn edit_that_cannot_be_kept_stays_until_it_can() {
    if !super::has("strace", "--version") {
        return;
    }
    let board = Board::new();
    board.cli_ok("init_coordination", json!({"goal": "the goal", "replace_goal": true}));
    let point = Point {
        call: "rename",
        on_board_only: false,
        fault: "error=ENOSPC:when=2+".to_owned(),
        killed_after: false,
    };
    let log = board.base().join("log");
    let mut client = start(&board, &point, log.to_str().unwrap());
    client.ok("get_status", json!({}));
    let mut edited = board.document();
    edited["goal"] = json!("by hand");
    let saved = board.file("saved");
    fs::write(&saved, edited.to_string()).unwrap();
    fs::rename(saved, board.file(STATE_FILE)).unwrap();
    for task in ["t1", "t2", "t3"] {
        client.ok("create_task", json!({"id": task, "description": "d"}));
    }
    client.close_input();
    client.ends_within(PATIENCE);
    let failed =
        fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains("ENOSPC")).count();
    assert!(failed > 1, "to be kept it was renamed {failed} times");
    assert_eq!(
        board.cli_ok("create_task", json!({"id": "t4", "description": "d"}))["success"],
        true
    );
    assert_eq!(board.document()["goal"], "by hand");
    assert_eq!(board.tasks().len(), 4);
    board.assert_file_is_the_replay();
}

/// A power loss between the two must not leave a board with neither.
#[test]
fn damaged_journal_is_moved_aside_when_the_state_file_that_is_gone_on_from_is_durable() {
    if !super::has("strace", "--version") {
        return;
    }
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t1", "description": "d"}));
    fs::write(board.file("journal.db"), vec![b'x'; 10_000]).unwrap();
    let point = Point {
        call: "fsync,rename",
        on_board_only: false,
        fault: String::new(),
        killed_after: false,
    };
    let log = board.base().join("log");
    let mut client = start(&board, &point, log.to_str().unwrap());
    client.ok("get_status", json!({}));
    let traced = fs::read_to_string(&log).unwrap();
    let dir = board.dir().canonicalize().unwrap();
    let is_synced = |path: PathBuf| {
        let place = format!("<{}>", path.display());
        move |line: &str| line.contains("fsync(") && line.contains(&place)
    };
    let mut before = traced.lines().take_while(|line| !line.contains("quarantined-1"));
    assert!(before.any(is_synced(dir.join(STATE_FILE))) && before.any(is_synced(dir)), "{traced}");
    assert!(traced.contains("quarantined-1"), "{traced}");
    assert_eq!(board.tasks().len(), 1);
}

/// Calls at once, so that their log is synced by a separate thread.
const AT_ONCE: usize = 16;
const WAVES: usize = 6;

/// What was told, about how many calls, and whether a sync on that thread has failed.
fn play_at_once(board: &Board, point: &Point) -> (Told, usize, bool) {
    board.cli_ok("init_coordination", json!({"goal": "survive", "replace_goal": true}));
    let log = board.base().join("log");
    let mut client = start(board, point, log.to_str().unwrap());
    let (mut told, mut asked) = (Told::default(), 0);
    for wave in 0..WAVES {
        let drafts =
            (0..AT_ONCE).map(|task| json!({"id": format!("t{wave}-{task}"), "description": "d"}));
        let sent: Vec<_> =
            drafts.map(|draft| (client.send("create_task", draft.clone()), draft)).collect();
        asked += sent.len();
        let mut refused = false;
        for (id, draft) in sent {
            let reply = client.reply(id).unwrap();
            refused |= reply.is_error;
            if reply.is_error {
                told.errors.insert(reply.code().to_owned(), reply.text.clone());
            }
            told.hear(
                "create_task",
                &draft,
                if reply.is_error { Err(reply.code()) } else { Ok(()) },
            );
        }
        if refused && point.killed_after {
            break;
        }
    }
    let traced = fs::read_to_string(&log).unwrap();
    let failed = traced
        .lines()
        .filter(|line| line.contains("INJECTED"))
        .filter_map(|line| line.split(' ').next());
    let is_syncer = |thread: &str| {
        fs::read_to_string(format!("/proc/{thread}/comm")).is_ok_and(|name| name == "syncer\n")
    };
    let hit = failed.filter(|thread| is_syncer(thread)).count() > 0;
    if point.killed_after {
        kill_process_group(client_group(&client), Signal::KILL).unwrap();
    }
    client.close_input();
    client.ends_within(PATIENCE);
    (told, asked, hit)
}

#[test]
fn sync_that_fails_for_many_calls_at_once_loses_none_that_was_acknowledged() {
    if !super::has("strace", "--version") {
        return;
    }
    let mut hits = 0;
    for fault in
        ["error=EIO:when=1", "error=EIO:when=2", "error=ENOSPC:when=3", "error=EIO:when=2+"]
    {
        for killed_after in [false, true] {
            let board = Board::new();
            let point = Point {
                call: "fdatasync",
                on_board_only: false,
                fault: fault.to_owned(),
                killed_after,
            };
            let (told, asked, hit) = play_at_once(&board, &point);
            let wrong = verify(&board, &told);
            assert_eq!(wrong, [""; 0], "{fault}, killed: {killed_after}");
            let (known, refused, unknown) =
                (told.status.len(), told.not_created.len(), told.unsure.len());
            println!(
                "{fault}, killed: {killed_after}: {known} acknowledged, {refused} refused, \
                 {unknown} unknown"
            );
            let errors = told.errors;
            // What one sync does not make durable, a checkpoint does; if all fail, nothing is
            // durable. What is refused was not written: a log's first commit syncs its
            // header, and fails then.
            if fault.ends_with('+') {
                assert!(
                    unknown > 0 && known <= 2 * AT_ONCE,
                    "{known} of {asked} acknowledged: {errors:?}"
                )
            } else {
                assert!(
                    unknown == 0 && known + refused == asked && refused <= AT_ONCE,
                    "{known} of {asked} acknowledged, {refused} refused: {errors:?}"
                )
            }
            hits += usize::from(hit);
        }
    }
    assert!(hits >= 4, "the thread that syncs has failed in {hits} runs");
}
