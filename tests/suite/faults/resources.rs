//! Exhausted resources: disk space, permission to write, file size, descriptors; and messages that
//! are too large. `CALLBOARD_ROUNDS` is how often a disk fills up, `CALLBOARD_DESCRIPTOR_STRIDE`
//! the distance between the limits of descriptors that are tried.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::{path, power};
use crate::harness::http::Server;
use crate::harness::{Board, Client, PATIENCE, Reply, StopAtEnd, available, size, until};
use crate::health;

const WRITERS: usize = 3;

/// A file system in memory mounted at the board, removed with the test.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn of(board: &'a Board) -> Option<Self> {
        board.make_dir();
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs"])
            .arg(board.dir())
            .output();
        let failure = match output {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(error.to_string()),
        };
        let failure = failure.map(|reason| format!("nothing can be mounted: {reason}"));
        available("root", failure.as_deref()).then(|| Self(board.dir()))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

/// Results of several processes under load.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    created: AtomicUsize,
    refused: AtomicUsize,
    read: AtomicUsize,
    bad_reads: AtomicUsize,
}

impl Load {
    /// Waits until the counter has risen by `many`.
    fn see(&self, counter: &AtomicUsize, many: usize, what: &str) {
        let end = counter.load(Ordering::SeqCst) + many;
        until(PATIENCE, what, || (counter.load(Ordering::SeqCst) >= end).then_some(()));
    }
}

/// Creates tasks, with a read after each, until told to stop. Returns the acknowledged tasks, and
/// why others were refused.
fn work(mut client: Client, writer: usize, load: &Load) -> (Vec<String>, BTreeSet<String>) {
    let (mut acknowledged, mut reasons) = (Vec::new(), BTreeSet::new());
    for number in 0.. {
        if load.stop.load(Ordering::SeqCst) {
            break;
        }
        let id = format!("w{writer}-{number}");
        let reply = client.call("create_task", json!({"id": id, "description": "x".repeat(500)}));
        if reply.is_error {
            load.refused.fetch_add(1, Ordering::SeqCst);
            reasons.insert(format!("{}: {}", reply.code(), reply.text));
        } else {
            load.created.fetch_add(1, Ordering::SeqCst);
            acknowledged.push(id);
        }
        let answered = !client.call("get_status", json!({})).is_error;
        load.read.fetch_add(1, Ordering::SeqCst);
        load.bad_reads.fetch_add(usize::from(!answered), Ordering::SeqCst);
    }
    (acknowledged, reasons)
}

/// Breaks and repairs the disk under load, several times.
fn under_load(broken: &str, break_it: impl Fn(&Board), mend_it: impl Fn(&Board)) {
    let board = Board::new();
    let Some(_mounted) = Mounted::of(&board) else { return };
    let load = Load::default();
    let rounds = size("CALLBOARD_ROUNDS", 2);
    let told: Vec<_> = thread::scope(|scope| {
        let (board, _stop) = (&board, StopAtEnd(&load.stop));
        let start = |writer| {
            let (client, load) = (board.mcp(), &load);
            scope.spawn(move || work(client, writer, load))
        };
        let writers: Vec<_> = (0..WRITERS).map(start).collect();
        for _ in 0..rounds {
            load.see(&load.created, 10, "tasks are created");
            break_it(board);
            load.see(&load.refused, 3 * WRITERS, "calls are refused");
            load.see(&load.read, 5, "reads go on");
            mend_it(board);
        }
        load.see(&load.created, 10 * WRITERS, "the same processes write again");
        load.stop.store(true, Ordering::SeqCst);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let reasons: BTreeSet<_> = told.iter().flat_map(|(_, reasons)| reasons).collect();
    let acknowledged: BTreeSet<_> =
        told.iter().flat_map(|(acknowledged, _)| acknowledged.iter().cloned()).collect();
    let tasks: BTreeSet<_> = board.tasks().into_keys().collect();
    let (created, refused) = (load.created.into_inner(), load.refused.into_inner());
    println!(
        "{broken}, {rounds} times under {WRITERS} processes: {created} calls done, {refused} \
         refused, {} reads of which {} failed; {} lost, {} done though refused; {reasons:#?}",
        load.read.into_inner(),
        load.bad_reads.load(Ordering::SeqCst),
        acknowledged.difference(&tasks).count(),
        tasks.difference(&acknowledged).count(),
    );
    assert_eq!(acknowledged, tasks);
    assert_eq!(load.bad_reads.into_inner(), 0);
    board.assert_file_is_the_replay();
}

#[test]
fn disk_that_fills_up_under_load_stops_writes_only_until_there_is_space() {
    let fill = |board: &Board| {
        // Also takes the space that others free meanwhile.
        let filler = board.file("filler");
        let _ = fs::write(&filler, vec![0; 8 << 20]);
        assert!(
            filler.metadata().is_ok_and(|metadata| metadata.len() < 8 << 20),
            "the disk is full"
        );
    };
    under_load("a disk filled up and freed", fill, |board| {
        fs::remove_file(board.file("filler")).unwrap()
    });
}

#[test]
fn restore_without_room_leaves_nothing_and_says_what_it_takes() {
    let full = Board::new();
    let Some(_mounted) = Mounted::of(&full) else { return };
    let board = Board::new();
    let mut client = board.mcp();
    (0..40).for_each(|number| {
        drop(client.ok(
            "create_task",
            json!({"id": format!("t{number}"), "description": "x".repeat(4_000)}),
        ))
    });
    drop(client);
    let backup = board.base().join("b.backup");
    assert!(board.finish(board.command().arg("backup").arg(&backup)).status.success());
    let names = || {
        let names = fs::read_dir(full.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let own = ["lock", "state-lock", "run", ".gitignore", "logs"];
        names.filter(|name| !own.contains(&name.as_str())).collect::<Vec<_>>()
    };
    let mut failed = 0;
    fs::create_dir(full.file("logs")).unwrap();
    for room in (64..).step_by(64) {
        fs::write(full.file("logs/filler"), vec![0; (8 << 20) - (room << 10)]).unwrap();
        let restored = full.finish(full.command().arg("restore").arg(&backup));
        if restored.status.success() {
            break;
        }
        assert_eq!(names(), Vec::<String>::new(), "with {room} kB");
        let says =
            ["make room there", "disk is full"].iter().any(|part| restored.stderr.contains(part));
        assert!(says, "with {room} kB: {}", restored.stderr);
        failed += 1;
    }
    assert!(failed > 2, "{failed}");
    assert_eq!(full.tasks().len(), 40);
}

/// `callboard mcp` under a limit set by the shell.
fn limited(board: &Board, limit: &str) -> Client {
    let mut shell = Command::new("sh");
    let line = format!("{limit}; exec {} mcp", env!("CARGO_BIN_EXE_callboard"));
    shell
        .args(["-c", &line])
        .current_dir(board.base())
        .env("COORDINATION_DIR", board.dir())
        .env("HOME", board.base());
    Client::start(shell.process_group(0))
}

/// Creates tasks until one is refused. Returns the acknowledged tasks, and the first refusal.
fn create_until_refused(client: &mut Client, most: usize) -> (Vec<String>, Option<Reply>) {
    let mut acknowledged = Vec::new();
    for number in 0..most {
        let id = format!("t{number}");
        let reply = client.call("create_task", json!({"id": id, "description": "x".repeat(4_000)}));
        if reply.is_error {
            return (acknowledged, Some(reply));
        }
        acknowledged.push(id);
    }
    (acknowledged, None)
}

#[test]
fn file_that_may_not_grow_is_an_error_and_not_the_end() {
    let board = Board::new();
    // The unit is 512 bytes.
    let mut client = limited(&board, "ulimit -f 300");
    let (acknowledged, refused) = create_until_refused(&mut client, 1_000);
    let refused = refused.expect("files reach their limit");
    assert!(!acknowledged.is_empty());
    assert!(["not_written", "io"].contains(&refused.code()), "{} {}", refused.code(), refused.text);
    client.ok("get_status", json!({}));
    drop(client);
    board.cli_ok("create_task", json!({"id": "after", "description": "d"}));
    let tasks: BTreeSet<_> = board.tasks().into_keys().filter(|id| id != "after").collect();
    println!(
        "file size limit: {} acknowledged, then {}: {}",
        acknowledged.len(),
        refused.code(),
        refused.text
    );
    assert_eq!(tasks, acknowledged.into_iter().collect());
    board.assert_file_is_the_replay();
}

#[test]
fn process_without_descriptors_refuses_and_says_so() {
    let (mut answered, mut refused, mut mute) = (0, BTreeSet::new(), 0);
    for descriptors in (8..32).step_by(size("CALLBOARD_DESCRIPTOR_STRIDE", 3)) {
        let board = Board::new();
        let mut client = limited(&board, &format!("ulimit -n {descriptors}"));
        let mut acknowledged = BTreeSet::new();
        for number in 0..3 {
            let id = format!("t{number}");
            match client.try_call("create_task", json!({"id": id, "description": "d"})) {
                // The process could not even start.
                None => mute += 1,
                Some(reply) if reply.is_error => {
                    assert!(!reply.text.is_empty());
                    refused.insert(format!(
                        "{}: {}",
                        reply.code(),
                        reply.text.replace(path(board.base()), "")
                    ));
                }
                Some(_) => drop(acknowledged.insert(id)),
            }
        }
        drop(client);
        answered += acknowledged.len();
        board.cli_ok("create_task", json!({"id": "after", "description": "d"}));
        let tasks: BTreeSet<_> = board.tasks().into_keys().filter(|id| id != "after").collect();
        assert_eq!(tasks, acknowledged, "with {descriptors} descriptors");
        board.assert_file_is_the_replay();
    }
    println!(
        "few descriptors: {answered} calls done and there, {mute} without an answer, refusals \
         {refused:#?}"
    );
    assert!(answered > 0 && mute + refused.len() > 0);
}

#[test]
fn log_that_nobody_reads_holds_up_no_call() {
    let board = Board::new();
    let pipe = board.base().join("log");
    super::run("mkfifo", &[path(&pipe)]);
    // The pipe stays open during the test and is never read.
    let _reader = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let mut client = limited(&board, "exec 2>log; export CALLBOARD_LOG=info");
    for number in 0..1_000 {
        client.ok("create_task", json!({"id": format!("t{number}"), "description": "d"}));
    }
    drop(client);
    assert_eq!(board.tasks().len(), 1_000);
}

/// Peak memory of the process, in kilobytes.
fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn line_of_a_hundred_megabytes_is_refused_in_little_memory() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"id": "t0", "description": "d"}));
    let before = peak_memory(client.pid());
    let huge = json!({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": {"x": "x".repeat(100 << 20)}});
    client.write(&huge);
    client.ok("create_task", json!({"id": "t1", "description": "d"}));
    let after = peak_memory(client.pid());
    println!("a line of 100 MB: peak memory {before} kB before, {after} kB after");
    assert!(after < before + (32 << 10), "{before} kB before and {after} kB after");
    assert_eq!(board.tasks().len(), 2);
}

#[test]
fn nesting_of_a_hundred_thousand_levels_is_refused() {
    let board = Board::new();
    let mut client = board.mcp();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{{"name":"create_task","arguments":{nested}}}}}"#
        );
        client.write_line(&line);
        client.ok("get_status", json!({}));
    }
    client.ok("create_task", json!({"id": "t1", "description": "d"}));
    // As a command-line argument, whose size the system limits to 128 kB.
    let nested = format!("{{\"a\":{}1{}}}", "[".repeat(30_000), "]".repeat(30_000));
    let refused = board.finish(board.command().args(["--json", "call", "create_task", &nested]));
    assert!(
        !refused.status.success() && !refused.stderr.contains("panicked"),
        "{}",
        refused.stderr
    );
    client.close_input();
    assert!(client.ends_within(PATIENCE).0.success());
}

fn writing(report: &Value) -> &Value {
    report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "writing").unwrap()
}

#[test]
fn the_doctor_finds_that_there_is_no_room() {
    let board = Board::new();
    let Some(_mounted) = Mounted::of(&board) else { return };
    board.cli_ok("create_task", json!({"description": "d"}));
    let doctor = || board.finish(board.command().args(["--json", "doctor"])).value();
    assert_eq!(writing(&doctor())["verdict"], "ok");
    let _ = fs::write(board.file("filler"), vec![0; 8 << 20]);
    let report = doctor();
    assert_eq!(
        (&report["healthy"], &writing(&report)["verdict"]),
        (&json!(false), &json!("fail")),
        "{report}"
    );
    assert!(writing(&report)["found"].as_str().unwrap().contains("no room"), "{report}");
}

#[test]
fn repair_that_has_no_room_for_its_backup_leaves_nothing_of_it() {
    let board = Board::new();
    let Some(_mounted) = Mounted::of(&board) else { return };
    for number in 0..40 {
        board.cli_ok(
            "create_task",
            json!({"id": format!("t{number}"), "description": "x".repeat(4_000)}),
        );
    }
    fs::write(board.file("journal.db"), "damaged").unwrap();
    let names = || {
        let names = fs::read_dir(board.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    let _ = fs::write(board.file("filler"), vec![0; 8 << 20]);
    fs::OpenOptions::new()
        .write(true)
        .open(board.file("filler"))
        .unwrap()
        .set_len(4 << 20)
        .unwrap();
    let before = names();
    let repair = || board.finish(board.command().args(["doctor", "--repair"]));
    let failed = repair();
    assert_eq!(failed.status.code(), Some(3), "{}", failed.stderr);
    assert!(failed.stderr.contains("nothing was changed"), "{}", failed.stderr);
    assert_eq!(names(), before);
    fs::remove_file(board.file("filler")).unwrap();
    assert!(repair().status.success());
    assert_eq!(board.tasks().len(), 40);
}

#[test]
fn full_disk_is_a_reason_until_there_is_space_though_no_call_has_failed() {
    let board = Board::new();
    let Some(_mounted) = Mounted::of(&board) else { return };
    board.cli_ok("create_task", json!({"description": "d"}));
    let server = Server::on(&board);
    health::recovered(&server);
    let filler = board.file("filler");
    let _ = fs::write(&filler, vec![0; 8 << 20]);
    assert!(health::degraded(&server, "disk_full").contains("the disk is full"));
    fs::remove_file(filler).unwrap();
    health::recovered(&server);
}

#[test]
fn the_doctor_finds_what_this_user_cannot_write() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    let is_root = rustix::process::geteuid().is_root();
    let cannot = is_root && Command::new("setpriv").arg("--version").output().is_err();
    if !available("setpriv", cannot.then_some("root may write anything")) {
        return;
    }
    let report = || {
        let callboard = board.command();
        let mut command = if is_root { Command::new("setpriv") } else { Command::new("env") };
        if is_root {
            command.args(["--bounding-set", "-dac_override,-dac_read_search"]);
        }
        for (name, value) in callboard.get_envs() {
            value.into_iter().for_each(|value| _ = command.env(name, value));
        }
        command.arg(callboard.get_program()).args(["--json", "doctor"]);
        board.finish(&mut command).value()
    };
    let allow =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(report()["healthy"], true);
    for (name, mode, usual) in
        [("journal.db", 0o400, 0o600), ("lock", 0o400, 0o600), ("", 0o500, 0o700)]
    {
        allow(&board.file(name), mode);
        let found = report();
        allow(&board.file(name), usual);
        assert_eq!(
            (&found["healthy"], &writing(&found)["verdict"]),
            (&json!(false), &json!("fail")),
            "{name}: {found}"
        );
        let told = writing(&found)["found"].as_str().unwrap();
        assert!(told.contains(if name.is_empty() { "in the directory" } else { name }), "{told}");
    }
}

#[test]
fn full_disk_of_small_blocks_ends_no_process() {
    let board = Board::with_policy("");
    let blocks = ["-b", "1024", "-m", "0", "-O", "^has_journal"];
    let Some(_mounted) = power::Mounted::under(&board, &board.base().join("image"), 8, &blocks)
    else {
        return;
    };
    board.cli_ok("create_task", json!({"description": "d"}));
    let mut fillers = (0..).map(|number| board.file(&format!("filler-{number}")));
    for size in [1 << 20, 1 << 10] {
        while fs::write(fillers.next().unwrap(), vec![0; size]).is_ok() {}
    }
    let backup = board.base().join("b.backup");
    for arguments in [&["snapshot", "create"][..], &["backup", path(&backup)], &["add", "x"]] {
        let finished = board.finish(board.command().args(arguments));
        assert_eq!(finished.status.code(), Some(3), "{arguments:?}: {}", finished.stderr);
        let told = ["no space is left", "the disk is full"];
        assert!(told.iter().any(|told| finished.stderr.contains(told)), "{}", finished.stderr);
    }
    let read = board.finish(board.command().arg("status"));
    assert!(read.status.success() && read.stderr.contains("the disk is full"), "{}", read.stderr);
    assert!(read.stdout.contains("1 ready"), "{}", read.stdout);
    assert_eq!(
        writing(&board.finish(board.command().args(["--json", "doctor"])).value())["verdict"],
        "fail"
    );
    fs::remove_file(board.file("filler-0")).unwrap();
    board.cli_ok("create_task", json!({"description": "d"}));
    board.assert_file_is_the_replay();
}
