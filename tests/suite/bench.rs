//! `callboard bench`: its figures are complete and consistent; how good they are does not matter.

use serde_json::Value;

use crate::harness::{Board, Finished, available};

const REFUSED: i32 = 1;
const USAGE: i32 = 2;
const FAILED: i32 = 3;

fn bench(board: &Board, arguments: &[&str]) -> Finished {
    let mut command = board.command();
    command.env_remove("COORDINATION_DIR").arg("bench").args(arguments);
    // Boards are made where the tests' boards are, not on a file system in memory.
    board.finish(command.args(["--dir", board.base().to_str().unwrap()]))
}

#[track_caller]
fn figures(finished: &Finished) -> Value {
    assert_eq!(
        (finished.status.code(), finished.stderr.as_str()),
        (Some(0), ""),
        "{}",
        finished.stdout
    );
    finished.value()
}

#[track_caller]
fn median(report: &Value, part: &str, name: &str, tasks: u64) -> f64 {
    let figures = report["figures"].as_array().unwrap();
    let about = |figure: &&Value| {
        figure["part"] == part && figure["name"] == name && figure["tasks"] == tasks
    };
    let figure = figures
        .iter()
        .find(about)
        .unwrap_or_else(|| panic!("no {name} at {tasks} tasks in {report:#}"));
    let number =
        |field: &str| figure[field].as_f64().unwrap_or_else(|| panic!("no {field} in {figure}"));
    assert!(number("samples") >= 1.0 && number("median") > 0.0, "{figure}");
    assert!(
        number("lowest_round") <= number("median") && number("median") <= number("p99"),
        "{figure}"
    );
    number("median")
}

#[test]
fn the_engine_is_measured_and_says_where() {
    let board = Board::new();
    let report = figures(&bench(&board, &["--quick", "--only", "engine", "--json"]));
    assert_eq!((&report["format"], &report["rounds"]), (&Value::from(1), &Value::from(2)));
    assert!(report["machine"]["cpus"].as_u64().unwrap() >= 1, "{report}");
    assert!(
        report["machine"]["kernel"].is_string() && report["machine"]["file_system"].is_string(),
        "{report}"
    );
    for tasks in [1_000, 10_000] {
        for name in ["claim", "claim with a rare capability", "complete"] {
            median(&report, "engine", name, tasks);
        }
    }
    let goals = report["goals"].as_array().unwrap();
    assert_eq!(goals.len(), 4, "{report:#}");
    for goal in goals {
        let within = goal["found"].as_f64().unwrap() <= goal["least"].as_f64().unwrap();
        assert_eq!(
            (&goal["better"], &goal["met"]),
            (&Value::from("less"), &Value::from(within)),
            "{goal}"
        );
    }
    assert!(
        report["figures"].as_array().unwrap().iter().all(|figure| figure["part"] == "engine"),
        "{report:#}"
    );
}

#[test]
fn durable_claims_are_measured_beside_commits_of_sqlite() {
    let board = Board::new();
    let report =
        figures(&bench(&board, &["--quick", "--rounds", "1", "--only", "commit", "--json"]));
    for tasks in [100, 1_000] {
        let claim = median(&report, "commit", "claim", tasks);
        let commit =
            median(&report, "commit", "SQLite FULL commit, in turns with the claims", tasks);
        let what = format!("a durable claim at {tasks} tasks, of one SQLite FULL commit");
        let goals = report["goals"].as_array().unwrap();
        let goal = goals.iter().find(|goal| goal["what"] == what.as_str()).unwrap();
        assert!(
            (goal["found"].as_f64().unwrap() - claim / commit).abs() < 0.01,
            "{goal} {claim} {commit}"
        );
        if cfg!(target_os = "linux") {
            assert!(median(&report, "commit", "written by an operation", tasks) > 500.0);
        }
    }
}

#[test]
fn a_call_that_is_done_in_part_is_no_measurement() {
    let board = Board::new();
    for (part, hit) in
        [("commit", "before-exchange:60:error"), ("doors", "before-exchange:30:error")]
    {
        let mut command = board.command();
        command.env_remove("COORDINATION_DIR").env("CALLBOARD_FAILPOINT", hit);
        command.args([
            "bench",
            "--quick",
            "--rounds",
            "1",
            "--only",
            part,
            "--dir",
            board.base().to_str().unwrap(),
        ]);
        let finished = board.finish(&mut command);
        assert_eq!(finished.status.code(), Some(FAILED), "{part}: {}", finished.stdout);
        assert!(
            finished.stderr.contains("mcp-state.json could not be written"),
            "{part}: {}",
            finished.stderr
        );
    }
}

#[test]
fn every_door_answers_and_nothing_is_left_behind() {
    let board = Board::new();
    let drawing = board.base().join("cost.svg");
    let arguments =
        ["--quick", "--rounds", "1", "--only", "doors", "--only", "calibration", "--svg"];
    let finished = bench(&board, &[&arguments[..], &[drawing.to_str().unwrap()]].concat());
    assert_eq!(
        (finished.status.code(), finished.stderr.as_str()),
        (Some(0), ""),
        "{}",
        finished.stdout
    );
    for door in ["MCP on stdio", "MCP over HTTP", "JSON-RPC over HTTP", "JSON-RPC, WebSocket"] {
        let lines = finished.stdout.lines().filter(|line| line.starts_with(door));
        // One line each for one client and for eight.
        assert_eq!(lines.count(), 2, "{door}: {}", finished.stdout);
    }
    assert!(
        finished.stdout.contains("DOORS") && finished.stdout.contains("load average"),
        "{}",
        finished.stdout
    );
    assert!(std::fs::read_to_string(&drawing).unwrap().contains("rename the state file"));
    let left: Vec<_> =
        std::fs::read_dir(board.base()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["cost.svg"]);
}

#[test]
fn a_missed_goal_is_told_by_the_exit_code_when_asked() {
    let board = Board::new();
    let check = ["--quick", "--rounds", "1", "--only", "engine", "--json", "--check"];
    let finished = bench(&board, &check);
    let missed =
        finished.value()["goals"].as_array().unwrap().iter().any(|goal| goal["met"] == false);
    assert_eq!(
        finished.status.code(),
        Some(if missed { REFUSED } else { 0 }),
        "{}",
        finished.stdout
    );
}

#[test]
fn wrong_options_are_told() {
    let board = Board::new();
    for (arguments, said) in [
        (&["--only", "moon"][..], "possible values: calibration, engine"),
        (&["--rounds", "0"], "from 1 to 10000"),
        (
            &["--peers", "--only", "engine"],
            if cfg!(feature = "peers") { "--only doors" } else { "--features peers" },
        ),
        (&["--svg", "cost.svg", "--only", "engine"], "add one or leave --only out"),
        (&["--server", "http://127.0.0.1:1"], "leave --server out"),
    ] {
        let finished = bench(&board, arguments);
        assert_eq!(finished.status.code(), Some(USAGE), "{arguments:?}");
        assert!(finished.stderr.contains(said), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn where_nothing_can_be_drawn_nothing_is_measured() {
    let board = Board::new();
    let finished = bench(&board, &["--svg", "/no/such/directory/cost.svg"]);
    assert_ne!(finished.status.code(), Some(0));
    assert!(finished.stderr.contains("/no/such/directory"), "{}", finished.stderr);
}

#[test]
fn who_stops_reading_has_the_drawing_and_the_exit_code_all_the_same() {
    use std::process::Stdio;

    let board = Board::new();
    let drawing = board.base().join("cost.svg");
    let mut command = board.command();
    command
        .args(["bench", "--quick", "--rounds", "1", "--only", "calibration", "--check", "--svg"])
        .arg(&drawing);
    command.arg("--dir").arg(board.base()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut bench = command.spawn().unwrap();
    drop(bench.stdout.take());
    // No goal was measured.
    assert_eq!(bench.wait().unwrap().code(), Some(REFUSED));
    assert!(drawing.exists());
}

#[test]
fn progress_is_shown_on_a_terminal_also_with_json() {
    let found = std::process::Command::new("script").arg("--version").output().is_ok();
    if !available("script", (!found).then_some("there is no script on this machine")) {
        return;
    }
    let board = Board::new();
    let bench =
        format!("'{}' bench --quick --only engine --json >report", env!("CARGO_BIN_EXE_callboard"));
    let mut command = std::process::Command::new("script");
    command.current_dir(board.base()).env("TERM", "xterm").args([
        "--quiet",
        "--return",
        "--command",
        &bench,
        "/dev/null",
    ]);
    let finished = board.finish(&mut command);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stdout);
    assert!(finished.stdout.contains("the engine at 1000 tasks"), "{}", finished.stdout);
    let report: Value =
        serde_json::from_slice(&std::fs::read(board.base().join("report")).unwrap()).unwrap();
    assert_eq!(report["format"], 1);
}

#[test]
fn check_of_what_has_no_goal_is_no_success() {
    let board = Board::new();
    let finished = bench(&board, &["--quick", "--rounds", "1", "--only", "calibration", "--check"]);
    assert_eq!(finished.status.code(), Some(REFUSED), "{}", finished.stdout);
    assert!(finished.stderr.contains("no goal"), "{}", finished.stderr);
    assert!(finished.stdout.contains("append an event"), "{}", finished.stdout);
}

/// Process ids and command lines of the processes whose environment names a board below `place`.
#[cfg(target_os = "linux")]
fn processes_of(place: &std::path::Path) -> Vec<(i32, String)> {
    let text = place.to_str().unwrap().to_owned();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let holds = |path: &std::path::PathBuf| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&format!("COORDINATION_DIR={text}"))
    };
    let command = |path: std::path::PathBuf| {
        let number = path.file_name()?.to_str()?.parse().ok()?;
        Some((number, std::fs::read_to_string(path.join("cmdline")).unwrap_or_default()))
    };
    processes.filter(holds).filter_map(command).collect()
}

/// Starts a long measurement below `place`, and waits until its server runs.
#[cfg(target_os = "linux")]
fn measures(command: &mut std::process::Command, place: &std::path::Path) -> std::process::Child {
    use std::process::Stdio;

    let options = ["bench", "--quick", "--only", "added", "--rounds", "9999", "--dir"];
    command.env_remove("COORDINATION_DIR").args(options).arg(place);
    let bench = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    server_of(place);
    bench
}

/// Process id of the server that runs for a measurement below `place`.
#[cfg(target_os = "linux")]
fn server_of(place: &std::path::Path) -> i32 {
    use crate::harness::{PATIENCE, until};

    // Its leash is a shell with the same arguments.
    let is_server =
        |command: &str| !command.starts_with("/bin/sh") && command.contains("\0serve\0");
    let server = || processes_of(place).into_iter().find(|(_, command)| is_server(command));
    until(PATIENCE, "a server runs", server).0
}

#[test]
#[cfg(target_os = "linux")]
fn server_that_is_lost_is_told_with_what_was_measured() {
    use rustix::process::{Pid, Signal, kill_process};

    let board = Board::new();
    let place = board.base().canonicalize().unwrap();
    let bench = measures(&mut board.command(), &place);
    kill_process(Pid::from_raw(server_of(&place)).unwrap(), Signal::KILL).unwrap();
    let ended = bench.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(FAILED), "{said}");
    assert!(
        said.starts_with("callboard: what HTTP adds, round ")
            || said.starts_with("callboard: added: "),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn interrupted_measurement_leaves_no_servers_and_no_boards() {
    use rustix::process::Signal;

    use crate::harness::{PATIENCE, until};

    for (signal, exit) in [
        (Signal::TERM, Some(143)),
        (Signal::INT, Some(130)),
        (Signal::HUP, Some(129)),
        (Signal::KILL, None),
    ] {
        if callboard::signal::is_ignored(signal.as_raw()) {
            println!("skipped: a process may be told to ignore {signal:?}, as by nohup");
            continue;
        }
        let board = Board::new();
        let place = board.base().canonicalize().unwrap();
        let mut bench = measures(&mut board.command(), &place);
        rustix::process::kill_process(rustix::process::Pid::from_child(&bench), signal).unwrap();
        assert_eq!(bench.wait().unwrap().code(), exit, "{signal:?}");
        if exit.is_some() {
            assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "{signal:?}");
        }
        until(PATIENCE, "the server has ended", || processes_of(&place).is_empty().then_some(()));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn signals_after_the_first_leave_no_boards_of_a_measurement() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use rustix::process::{Pid, Signal, kill_process};

    use crate::harness::{PATIENCE, until};

    let (board, aside) = (Board::new(), Board::new());
    let (place, aside) = (board.base().canonicalize().unwrap(), aside.base());
    let path = std::env::var("PATH").unwrap();
    let rm = aside.join("rm");
    let slow = format!(
        "#!/bin/sh\nPATH='{path}'; cd '{}'\ntouch begun; while ! [ -e go ]; do sleep 0.05; done; exec rm \"$@\"\n",
        aside.display()
    );
    fs::write(&rm, slow).unwrap();
    fs::set_permissions(&rm, fs::Permissions::from_mode(0o755)).unwrap();
    let mut bench =
        measures(board.command().env("PATH", format!("{}:{path}", aside.display())), &place);
    let pid = Pid::from_child(&bench);
    kill_process(pid, Signal::INT).unwrap();
    until(PATIENCE, "it clears away", || aside.join("begun").exists().then_some(()));
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        kill_process(pid, signal).unwrap();
    }
    fs::write(aside.join("go"), "").unwrap();
    assert_eq!(bench.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    until(PATIENCE, "the server has ended", || processes_of(&place).is_empty().then_some(()));
}

#[test]
#[cfg(target_os = "linux")]
fn directory_that_cannot_be_removed_is_named_when_all_servers_have_ended() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use rustix::process::{Pid, Signal, kill_process};

    use crate::harness::{PATIENCE, until};

    let (board, aside) = (Board::new(), Board::new());
    let (place, aside) = (board.base().canonicalize().unwrap(), aside.base());
    for (name, script) in [
        ("rm", "echo 'rm: it is busy' >&2; exit 1".to_owned()),
        ("sleep", format!("echo \"$1\" >>'{}'", aside.join("slept").display())),
    ] {
        fs::write(aside.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(aside.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", aside.display(), std::env::var("PATH").unwrap());
    let bench = measures(board.command().env("PATH", path), &place);
    kill_process(Pid::from_child(&bench), Signal::INT).unwrap();
    let ended = bench.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    let left = fs::read_dir(&place).unwrap().next().unwrap().unwrap().path();
    assert!(said.contains("it is busy"), "{said}");
    assert!(said.contains(&format!("{} could not be removed", left.display())), "{said}");
    // A server that does not end is killed after five seconds; the leash waits for that in steps of
    // a second.
    let slept = fs::read_to_string(aside.join("slept")).unwrap();
    let slept: f64 = slept
        .lines()
        .filter_map(|line| line.parse().ok())
        .filter(|seconds: &f64| *seconds < 1.0)
        .sum();
    assert!(slept >= 7.0, "{slept}");
    until(PATIENCE, "the server has ended", || processes_of(&place).is_empty().then_some(()));
}
