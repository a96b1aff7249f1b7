//! What the board and a process report about themselves, to people and to monitoring.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::http::{Door, Server};
use crate::harness::{Board, PATIENCE, STATE_FILE, StopAtEnd, available, until};

/// The time in which health must tell.
const SOON: Duration = Duration::from_secs(5);

fn health(server: &Server) -> Value {
    Door::Rpc.ok(server, "health_check", &json!({}))
}

/// What `/readyz` says.
pub(crate) fn ready(server: &Server) -> (u16, Value) {
    let answer = server.ask(&server.request("GET", "/readyz").without("Authorization"));
    (answer.status, serde_json::from_str(&answer.text()).unwrap())
}

/// The reason of this kind, which health must tell soon, with all that monitoring sees.
#[track_caller]
pub(crate) fn degraded(server: &Server, kind: &str) -> String {
    let reason = until(SOON, kind, || {
        let found = health(server);
        let at = found["kinds"].as_array()?.iter().position(|found| found == kind)?;
        assert_eq!(found["status"], "degraded");
        Some(found["reasons"][at].as_str().unwrap().to_owned())
    });
    let (status, body) = ready(server);
    assert_eq!((status, &body["status"]), (503, &json!("degraded")));
    assert!(body["kinds"].as_array().unwrap().iter().any(|found| found == kind), "{body}");
    assert_eq!(samples(server)[&format!("callboard_degraded{{reason=\"{kind}\"}}")], 1.0);
    reason
}

/// Waits until all is well again.
#[track_caller]
pub(crate) fn recovered(server: &Server) {
    until(SOON, "it is ready", || (ready(server).0 == 200).then_some(()));
    assert_eq!(health(server)["status"], "ok");
    assert!(
        samples(server).iter().all(|(name, value)| !name.contains("_degraded") || *value == 0.0)
    );
}

/// The text of `/metrics` for a reader that accepts this.
#[track_caller]
fn metrics(server: &Server, accepted: &str, kind: &str) -> String {
    let answer = server.ask(&server.request("GET", "/metrics").header("Accept", accepted));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(
        answer.header("content-type").is_some_and(|found| found.starts_with(kind)),
        "{answer:?}"
    );
    answer.text()
}

/// All samples of `/metrics`, by name and labels.
pub(crate) fn samples(server: &Server) -> BTreeMap<String, f64> {
    let text = metrics(server, "*/*", "text/plain; version=0.0.4");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = samples.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    parsed.collect()
}

#[test]
fn metrics_count_what_was_done_and_show_what_waits() {
    let board = Board::new();
    let server = Server::on(&board);
    for id in ["t1", "t2", "t3"] {
        Door::Rpc.ok(&server, "create_task", &json!({"id": id, "description": "d"}));
    }
    Door::Mcp.ok(&server, "register_agent", &json!({"agent_id": "a", "role": "worker"}));
    Door::Mcp.ok(&server, "claim_task", &json!({"agent_id": "a"}));
    assert_eq!(
        Door::Rpc.ask(&server, "claim_task", &json!({"agent_id": "nobody"})).code(),
        "unknown_agent"
    );
    let samples = samples(&server);
    for (name, value) in [
        (r#"callboard_calls_total{operation="create_task",outcome="ok"}"#, 3.0),
        (r#"callboard_calls_total{operation="claim_task",outcome="ok"}"#, 1.0),
        (r#"callboard_calls_total{operation="claim_task",outcome="refused"}"#, 1.0),
        (r#"callboard_call_seconds_count{operation="claim_task"}"#, 2.0),
        (r#"callboard_events_total{kind="tasks_created"}"#, 3.0),
        (r#"callboard_events_total{kind="lease_expired"}"#, 0.0),
        (r#"callboard_tasks{status="ready"}"#, 2.0),
        (r#"callboard_tasks{status="claimed"}"#, 1.0),
        ("callboard_state_file_lag_events", 0.0),
        ("callboard_degraded_reasons", 0.0),
        ("callboard_seq", board.events().len() as f64),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name} in {samples:#?}");
    }
    assert!(samples["callboard_commit_batch_calls_count"] >= 5.0);
    assert!(samples.contains_key("callboard_oldest_ready_task_seconds"));
}

#[test]
fn every_metric_has_help_and_type_under_the_name_of_its_samples() {
    let board = Board::new();
    let server = Server::on(&board);
    Door::Rpc.ok(&server, "create_task", &json!({"description": "d"}));
    let text = metrics(&server, "*/*", "text/plain; version=0.0.4");
    let told = |word: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let (helped, typed) = (told("# HELP "), told("# TYPE "));
    assert!(helped.len() > 8 && helped == typed, "{helped:?} {typed:?}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let is_helped = |name: &str| helped.iter().any(|one| one == name);
        assert!(is_helped(name) || family.is_some_and(is_helped), "{line}");
    }
    let open = metrics(
        &server,
        "application/openmetrics-text;version=1.0.0, */*;q=0.1",
        "application/openmetrics-text",
    );
    assert!(open.ends_with("# EOF\n") && open.contains("# TYPE callboard_calls counter"), "{open}");
    let missing = Command::new("promtool").arg("--version").output().err();
    if available(
        "promtool",
        missing.map(|_| "there is no promtool, which Debian's package prometheus has"),
    ) {
        let mut promtool = Command::new("promtool");
        promtool
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut promtool = promtool.spawn().unwrap();
        promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = promtool.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn requests_that_were_turned_away_are_counted_and_probes_are_not() {
    let board = Board::new();
    let server = Server::on(&board);
    let counted = |status: u16| {
        let name = format!("callboard_http_turned_away_total{{status=\"{status}\"}}");
        *samples(&server).get(&name).unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!((counted(401), counted(403)), (0.0, 0.0));
    let call = server.rpc(1, "get_status", &json!({}));
    for request in
        [call.clone().without("Authorization"), server.upgrade().without("Authorization")]
    {
        assert_eq!(server.ask(&request).status, 401);
    }
    for name in ["Host", "Origin"] {
        assert_eq!(server.ask(&call.clone().header(name, "https://evil.example")).status, 403);
    }
    assert_eq!(server.ask(&server.request("GET", "/nothing")).status, 404);
    assert_eq!((counted(401), counted(403)), (2.0, 2.0));
    for probe in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(server.ask(&server.request("GET", probe)).status, 200, "{probe}");
    }
    let calls: Vec<_> =
        samples(&server).into_keys().filter(|name| name.starts_with("callboard_call")).collect();
    assert_eq!(calls, [""; 0]);
    assert_eq!(server.ask(&call).status, 200);
    assert_eq!(
        samples(&server)[r#"callboard_calls_total{operation="get_status",outcome="ok"}"#],
        1.0
    );
}

#[test]
fn metrics_want_the_token_and_probes_do_not() {
    let board = Board::new();
    let server = Server::on(&board);
    assert_eq!(server.ask(&server.request("GET", "/metrics").without("Authorization")).status, 401);
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(
            server.ask(&server.request("GET", probe).without("Authorization")).status,
            200,
            "{probe}"
        );
    }
}

#[test]
fn state_file_that_cannot_be_written_is_a_reason_until_it_can() {
    let board = Board::new();
    let server = Server::on(&board);
    Door::Rpc.ok(&server, "create_task", &json!({"id": "t1", "description": "d"}));
    assert_eq!(health(&server)["status"], "ok");
    // Puts a directory in the place of the file that is written first.
    let obstacle = board.file(&format!(".{STATE_FILE}.tmp"));
    let _ = fs::remove_file(board.file(&format!(".{STATE_FILE}.spare")));
    fs::create_dir(&obstacle).unwrap();
    fs::write(obstacle.join("in the way"), "").unwrap();
    let reply = Door::Rpc.ok(&server, "create_task", &json!({"id": "t2", "description": "d"}));
    assert!(reply["warning"].as_str().unwrap().contains("in the journal"), "{reply}");
    let degraded = health(&server);
    assert_eq!(
        (&degraded["status"], &degraded["state_file_lag"]),
        (&json!("degraded"), &json!(1)),
        "{degraded}"
    );
    assert!(degraded["reasons"][0].as_str().unwrap().contains(STATE_FILE), "{degraded}");
    assert_eq!(samples(&server)["callboard_degraded_reasons"], 1.0);
    assert!(self::degraded(&server, "state_file_behind").contains(STATE_FILE));
    fs::remove_dir_all(&obstacle).unwrap();
    let reply = Door::Rpc.ok(&server, "create_task", &json!({"id": "t3", "description": "d"}));
    assert_eq!(reply.get("warning"), None, "{reply}");
    recovered(&server);
    board.assert_file_is_the_replay();
}

/// A process that holds the lock of this file until it is killed.
pub(crate) struct Holder(Child);

impl Holder {
    pub(crate) fn of(lock: &Path) -> Option<Self> {
        let mut flock = Command::new("flock");
        let held = flock.arg("--no-fork").arg(lock).args(["sleep", "600"]).spawn();
        let missing = held.as_ref().err().map(ToString::to_string);
        if !available("flock", missing.as_deref()) {
            return None;
        }
        let holder = Self(held.unwrap());
        until(PATIENCE, "the lock is held", || {
            fs::File::open(lock).unwrap().try_lock_shared().is_err().then_some(())
        });
        Some(holder)
    }

    pub(crate) fn stop(&self) {
        kill_process(Pid::from_child(&self.0), Signal::STOP).unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn lock_that_another_process_holds_is_a_reason_that_names_it_and_the_way_out() {
    for (name, is_stopped) in [("lock", true), ("lock", false), ("state-lock", true)] {
        let board = Board::new();
        board.cli_ok("create_task", json!({"description": "d"}));
        // It has not opened the board when the lock is taken.
        let server = Server::on(&board);
        let Some(holder) = Holder::of(&board.file(name)) else { return };
        if is_stopped {
            holder.stop();
        }
        let pid = holder.0.id();
        let way_out =
            if is_stopped { format!("`kill -CONT {pid}`") } else { format!("`kill {pid}`") };
        let reason = degraded(&server, "lock_held");
        assert!(
            reason.contains(&format!("process {pid}")) && reason.contains(&way_out),
            "{reason}"
        );
        assert_eq!(reason.contains("(stopped)"), is_stopped, "{reason}");
        if name == "lock" {
            let refused = board.finish(board.command().args(["add", "in vain"]));
            assert_eq!(refused.status.code(), Some(3), "{}", refused.stderr);
            assert!(refused.stderr.contains(&way_out), "{}", refused.stderr);
        }
        drop(holder);
        recovered(&server);
        Door::Rpc.ok(&server, "create_task", &json!({"description": "d"}));
    }
}

#[test]
fn locks_that_busy_processes_take_in_turn_are_no_reason() {
    let board = Board::new();
    let server = Server::on(&board);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for _ in 0..2 {
            let mut client = board.mcp();
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    client.ok("create_task", json!({"description": "d"}));
                }
            });
        }
        let start = Instant::now();
        until(PATIENCE, "a while under load", || {
            let found = health(&server);
            assert_eq!(found["status"], "ok", "{found}");
            (start.elapsed() > Duration::from_secs(4)).then_some(())
        });
    });
}

#[test]
fn log_in_json_names_operation_and_outcome_of_every_call() {
    let board = Board::new();
    let server =
        Server::with(&board, &["--log-format", "json"], &[("CALLBOARD_LOG", "callboard=info")]);
    Door::Rpc.ok(&server, "create_task", &json!({"description": "d"}));
    Door::Rpc.ask(&server, "claim_task", &json!({"agent_id": "nobody"}));
    let log = server.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let called: Vec<_> = lines
        .iter()
        .filter(|line| line["fields"]["message"] == "answered")
        .map(|line| {
            (
                line["span"]["operation"].as_str().unwrap(),
                line["fields"]["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(called, [("create_task", "ok"), ("claim_task", "refused")], "{log}");
}

#[test]
fn what_the_board_counts_survives_the_server_and_is_what_the_dashboard_shows() {
    let board = Board::new();
    for number in 0..3 {
        board.cli_ok("create_task", json!({"id": format!("t{number}"), "description": "d"}));
    }
    board.cli_ok("register_agent", json!({"agent_id": "w"}));
    board.cli_ok("claim_task", json!({"agent_id": "w", "task_id": "t0"}));
    board.cli_ok("complete_task", json!({"agent_id": "w", "task_id": "t0", "output": "o"}));
    let first = samples(&Server::on(&board));
    let server = Server::on(&board);
    Door::Rpc.ok(&server, "get_status", &json!({}));
    let seen = samples(&server);
    for (name, value) in [
        ("callboard_board_tasks_done_total", 1.0),
        (r#"callboard_board_tasks{stand="ready"}"#, 2.0),
        (r#"callboard_board_attempts{outcome="done"}"#, 1.0),
        (r#"callboard_board_work_seconds{quantile="0.5"}"#, 0.0),
    ] {
        assert_eq!((first.get(name), seen.get(name)), (Some(&value), Some(&value)), "{name}");
    }
    let events = "callboard_board_events_total";
    assert!(seen[events] >= first[events] && first[events] >= 6.0, "{}", first[events]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/grafana.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let _: Value = serde_json::from_str(&text).expect("JSON");
    let names = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let shown: std::collections::BTreeSet<_> =
        names.filter(|name| name.starts_with("callboard_")).collect();
    assert!(shown.len() > 8, "{shown:?}");
    for name in shown {
        let has = |sample: &String| sample.split('{').next() == Some(name);
        assert!(seen.keys().any(has), "no {name} in {:?}", seen.keys());
    }
}
