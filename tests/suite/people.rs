//! Features for a person at a terminal: a live feed, the manual, progress, and every command over a
//! server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Board, Finished, PATIENCE, available, until};

const REFUSED: i32 = 1;
const USAGE: i32 = 2;
const FAILED: i32 = 3;

/// A command that runs until it is told to end, and the lines that it prints.
pub(crate) struct Running {
    process: Child,
    lines: Receiver<String>,
    complaints: Receiver<String>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(process.stdout.take().unwrap());
        let complaints = lines_of(process.stderr.take().unwrap());
        Self { process, lines, complaints }
    }

    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    #[track_caller]
    fn event(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Kinds of the next `count` events.
    #[track_caller]
    fn kinds(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.event()["kind"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn complaint(&self) -> String {
        self.complaints.recv_timeout(PATIENCE).expect("a line on standard error")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    #[track_caller]
    fn ends_with(&mut self, code: i32) {
        let status = until(PATIENCE, "the command ends", || self.process.try_wait().unwrap());
        assert_eq!(status.code(), Some(code));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

fn run(board: &Board, arguments: &[&str]) -> Finished {
    board.finish(board.command().args(arguments))
}

#[track_caller]
fn says(board: &Board, arguments: &[&str]) -> String {
    let finished = run(board, arguments);
    let code = finished.status.code();
    assert_eq!(
        (code, finished.stderr.as_str()),
        (Some(0), ""),
        "{arguments:?}: {}",
        finished.stdout
    );
    finished.stdout
}

#[track_caller]
fn fails(finished: &Finished, code: i32, parts: &[&str]) {
    assert_eq!(finished.status.code(), Some(code), "{}{}", finished.stdout, finished.stderr);
    contains(&finished.stderr, parts);
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

pub(crate) fn watch(board: &Board, arguments: &[&str]) -> Running {
    Running::start(board.command().arg("watch").args(arguments))
}

/// Takes one task from added to done.
fn do_one(board: &Board, task: &str, agent: &str) {
    says(board, &["add", "what is to be done", "--id", task]);
    says(board, &["--agent", agent, "claim", task]);
    says(board, &["--agent", agent, "complete", task, "what was done\nand more"]);
}

#[test]
fn watch_tells_what_happens_in_one_line_each() {
    let board = Board::new();
    let mut watch = watch(&board, &["--since", "0", "--utc"]);
    do_one(&board, "a", "w");
    says(&board, &["pause", "--reason", "lunch"]);
    let expected = [
        "- made the board",
        "human added #1 \"what is to be done\"",
        "w registered as worker",
        "w claimed #1 \"what is to be done\", attempt 1",
        "w completed #1 \"what is to be done\": what was done",
        "human paused all claims: lunch",
    ];
    for rest in expected {
        let line = watch.line();
        assert_eq!(line.get(21..), Some(rest), "{line}");
    }
    watch.signal(Signal::INT);
    watch.ends_with(0);
    assert_eq!(watch.complaints.recv_timeout(PATIENCE).ok(), None);
}

#[test]
fn watch_begins_now_unless_told_otherwise() {
    let board = Board::new();
    do_one(&board, "a", "w");
    let head = board.events().len() as u64;
    let watch = watch(&board, &["--json"]);
    let mut added = 0;
    let first = until(PATIENCE, "something happens", || {
        added += 1;
        says(&board, &["add", "more", "--id", &format!("b{added}")]);
        watch.lines.try_recv().ok()
    });
    let first: Value = serde_json::from_str(&first).unwrap();
    assert!(first["seq"].as_u64().unwrap() > head && first["kind"] == "tasks_created", "{first}");
}

#[test]
fn watch_filters_by_task_kind_and_agent() {
    let board = Board::new();
    do_one(&board, "a", "w");
    do_one(&board, "b", "v");
    let kinds = |arguments: &[&str], count| {
        watch(&board, &[&["--since", "0", "--json"], arguments].concat()).kinds(count)
    };
    assert_eq!(kinds(&["--task", "b"], 3), ["tasks_created", "claimed", "completed"]);
    assert_eq!(
        kinds(&["--kind", "completed", "--kind", "claimed"], 4),
        ["claimed", "completed", "claimed", "completed"]
    );
    assert_eq!(kinds(&["--of", "v"], 3), ["agent_registered", "claimed", "completed"]);
    assert_eq!(kinds(&["--by", "human", "--task", "b"], 1), ["tasks_created"]);
}

#[test]
fn an_unknown_kind_is_refused_and_the_kinds_are_named() {
    let board = Board::new();
    fails(
        &run(&board, &["watch", "--kind", "claim"]),
        USAGE,
        &["claim", "lease_expired", "tasks_created"],
    );
    says(&board, &["add", "x"]);
    let asked = Instant::now();
    let refused = board.cli(
        "wait_for_events",
        json!({"kinds": ["claimed", "claim"], "since_seq": 9, "wait_seconds": 50}),
    );
    assert!(asked.elapsed() < Duration::from_secs(30));
    assert_eq!((refused.status.code(), refused.code().as_str()), (Some(REFUSED), "unknown_kind"));
    contains(&refused.stderr, &["`claim`", "lease_expired"]);
}

#[test]
fn what_agents_write_cannot_steer_the_terminal_of_a_watcher() {
    let board = Board::new();
    let evil = "\u{1b}[2J\u{9b}31m\u{202e}cod\u{7}\rx\nw claimed everything";
    says(&board, &["add", evil, "--id", "a"]);
    says(&board, &["--agent", "w", "claim", "a"]);
    says(&board, &["--agent", "w", "heartbeat", "--note", evil]);
    says(&board, &["--agent", "w", "discoveries", "add", evil, "--tag", evil]);
    says(&board, &["--agent", "w", "fail", "a", evil, "--permanent"]);
    let events = board.events().len();
    let (told, json) =
        (watch(&board, &["--since", "0", "--verbose"]), watch(&board, &["--since", "0", "--json"]));
    let mut printed: Vec<_> = (0..events).map(|_| told.line()).collect();
    let each: Vec<_> = (0..events).map(|_| json.line()).collect();
    assert!(printed.iter().all(|line| line.starts_with("20")), "{printed:#?}");
    let kept = "\u{fffd}31m\u{fffd}cod\u{fffd}\nx\nw claimed everything";
    assert!(
        each.iter().any(|line| serde_json::from_str::<Value>(line).unwrap()["content"] == kept)
    );
    printed.extend(each);
    printed.push(says(&board, &["discoveries"]).replace('\n', ""));
    for line in printed {
        assert_eq!(line.chars().find(|c| c.is_control() || *c == '\u{202e}'), None, "{line:?}");
    }
}

#[test]
fn watch_ends_when_its_reader_leaves_even_if_nothing_happens() {
    let board = Board::new();
    says(&board, &["add", "x"]);
    let mut child =
        board.command().arg("watch").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let status = until(PATIENCE, "watch ends", || child.try_wait().unwrap());
    let mut complaints = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
    assert_eq!((status.code(), complaints.as_str()), (Some(0), ""));
}

#[test]
fn discoveries_are_added_and_shown() {
    let board = Board::new();
    assert_eq!(says(&board, &["discoveries"]), "no discoveries\n");
    let id = says(
        &board,
        &["--agent", "w", "discoveries", "add", "the cache lies", "--tag", "cache", "--tag", "ci"],
    );
    assert!(id.starts_with("disc-"), "{id}");
    says(&board, &["discoveries", "add", "tests need git", "--key", "k"]);
    says(&board, &["discoveries", "add", "tests need git", "--key", "k"]);
    let all = says(&board, &["discoveries"]);
    contains(&all, &["w ", "[cache, ci]: the cache lies", "human ", ": tests need git"]);
    assert_eq!(all.lines().count(), 2, "{all}");
    assert_eq!(says(&board, &["discoveries", "--tag", "cache"]).lines().count(), 1);
    let newest: Value =
        serde_json::from_str(&says(&board, &["discoveries", "--limit", "1", "--json"])).unwrap();
    assert_eq!(newest["discoveries"][0]["content"], "tests need git");
    fails(&run(&board, &["discoveries", "add", " "]), REFUSED, &["content must not be empty"]);
    fails(&run(&board, &["discoveries", "--tag", "x", "add", "y"]), USAGE, &["--tag"]);
}

#[test]
fn the_manual_is_complete() {
    let board = Board::new();
    let page = says(&board, &["man"]);
    let sections = [
        "NAME",
        "SYNOPSIS",
        "OPTIONS",
        "SUBCOMMANDS",
        "EXIT STATUS",
        "ENVIRONMENT",
        "FILES",
        "VERSION",
    ];
    for section in sections {
        let heading = [format!(".SH {section}\n"), format!(".SH \"{section}\"\n")];
        assert!(
            heading.iter().any(|heading| page.contains(heading.as_str())),
            "no section {section}: {page}"
        );
    }
    for name in
        ["COORDINATION_DIR", "CALLBOARD_LOG", "CALLBOARD_SERVER", "CALLBOARD_TOKEN", "NO_COLOR"]
    {
        contains(&page, &[name]);
    }
    contains(&page, &["journal.db", "serve.token", "the command line is wrong"]);
    let dir = board.base().join("man/man1");
    assert_eq!(says(&board, &["man", "--out", dir.to_str().unwrap()]), "");
    let help = says(&board, &["--help"]);
    let (_, commands) = help.split_once("Start:").unwrap();
    let (commands, _) = commands.split_once("Options of all commands:").unwrap();
    let names = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<_> = names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 20, "{help}");
    for name in names {
        let page = std::fs::read_to_string(dir.join(format!("callboard-{name}.1"))).unwrap();
        contains(&page, &["SYNOPSIS", "EXIT STATUS", "SEE ALSO"]);
    }
    let work = std::fs::read_to_string(dir.join("callboard-work.1")).unwrap();
    contains(&work, &["SH NOTES", "CALLBOARD_TASK_TITLE", "130 ended by a second signal"]);
    assert!(!work.contains("no task was claimed"), "common exit codes beside its own: {work}");
    for name in ["callboard.1", "callboard-discoveries-add.1"] {
        assert!(dir.join(name).is_file(), "{name}");
    }
}

#[test]
fn the_manual_is_sound_for_groff() {
    let board = Board::new();
    let installed =
        Command::new("groff").arg("--version").output().is_ok_and(|output| output.status.success());
    if !available("groff", (!installed).then_some("groff is not installed")) {
        return;
    }
    let dir = board.base().join("man");
    says(&board, &["man", "--out", dir.to_str().unwrap()]);
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let output = Command::new("groff")
            .args(["-man", "-ww", "-Tutf8", "-z"])
            .arg(&path)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", path.display());
    }
}

#[test]
fn refusals_name_commands_unless_operations_were_called() {
    let board = Board::new();
    says(&board, &["add", "x", "--id", "a"]);
    says(&board, &["--agent", "w", "claim", "a"]);
    let refused = run(&board, &["--agent", "v", "start", "a"]);
    fails(&refused, REFUSED, &["held by `w`", "claim another with `callboard --agent v claim`"]);
    fails(
        &run(&board, &["show", "claim_task"]),
        REFUSED,
        &["no task `claim_task`; see `callboard tasks`"],
    );
    fails(
        &run(&board, &["call", "start_task", r#"{"task_id":"a"}"#]),
        REFUSED,
        &["claim another with claim_task"],
    );
    let empty = run(&board, &["--agent", "v", "claim"]);
    assert_eq!(empty.status.code(), Some(REFUSED));
    contains(&empty.stdout, &["next: run `callboard --agent v claim --wait 50` again"]);
    assert!(!empty.stdout.contains("claim_task"), "{}", empty.stdout);
}

/// Output of `callboard …` on a terminal.
pub(crate) fn on_a_terminal(board: &Board, arguments: &str) -> Option<String> {
    Some(String::from_utf8(terminal(board, arguments)?.output().unwrap().stdout).unwrap())
}

fn terminal(board: &Board, arguments: &str) -> Option<Command> {
    let installed = Command::new("script")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !available("script", (!installed).then_some("script (util-linux) is not installed")) {
        return None;
    }
    let mut command = Command::new("script");
    let typed = format!("{} {arguments}", env!("CARGO_BIN_EXE_callboard"));
    command
        .args(["-qec", &typed, "/dev/null"])
        .env("COORDINATION_DIR", board.dir())
        .env("HOME", board.base());
    command
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .current_dir(board.base())
        .stdin(Stdio::null());
    Some(command)
}

#[test]
fn work_goes_on_when_its_terminal_takes_no_output() {
    let board = Board::new();
    let tasks: Value = (0..100).map(|n| json!({"description": format!("task {n}")})).collect();
    board.cli_ok("create_tasks_batch", json!({"tasks": tasks}));
    let Some(mut command) = terminal(&board, "work --agents 2 --exec true") else { return };
    let terminal = Running::start(&mut command);
    let done = || board.tasks().values().filter(|task| task["status"] == "done").count();
    until(PATIENCE, "it works", || (done() > 0).then_some(()));
    terminal.signal(Signal::STOP);
    until(PATIENCE, "all is done", || (done() == 100).then_some(()));
}

#[test]
fn a_terminal_gets_colours_and_sees_what_is_waited_for() {
    let board = Board::new();
    says(&board, &["add", "x", "--id", "a"]);
    let Some(tasks) = on_a_terminal(&board, "tasks") else { return };
    contains(&tasks, &["\u{1b}["]);
    let dumb = terminal(&board, "tasks").unwrap().env("TERM", "dumb").output().unwrap().stdout;
    assert!(!dumb.contains(&0x1b), "{}", String::from_utf8_lossy(&dumb));
    let batch: Value = (0..100).map(|n| json!({"description": format!("task {n}")})).collect();
    std::fs::write(board.base().join("many.json"), batch.to_string()).unwrap();
    says(&board, &["--agent", "w", "claim", "a"]);
    says(&board, &["pause"]);
    let waiting = on_a_terminal(&board, "--agent v claim --wait 1").unwrap();
    contains(&waiting, &["waiting up to 1 s for a task", "claims are paused"]);
    let adding = on_a_terminal(&board, "add --batch many.json").unwrap();
    contains(&adding, &["adding 100 tasks"]);
    let json = on_a_terminal(&board, "--agent v claim --wait 1 --json").unwrap();
    assert!(!json.contains("waiting up to") && json.contains("\"success\": false"), "{json}");
    let piped = run(&board, &["--agent", "v", "claim", "--wait", "1"]);
    assert_eq!(piped.stderr, "");
}

#[test]
fn a_servers_address_is_checked_before_anything_is_sent() {
    let board = Board::new();
    for (url, part) in [
        ("http://ada:secret@127.0.0.1:8425", "a user name, a password or a query"),
        ("http://127.0.0.1:8425/?token=secret", "a user name, a password or a query"),
        ("http://127.0.0.1:8425/#secret", "a user name, a password or a query"),
        ("http://secret.example.org:8425", "ssh tunnel"),
        ("ftp://secret", "only http and https"),
        ("secret", "not an URL"),
    ] {
        for finished in [
            run(&board, &["--server", url, "status"]),
            board.finish(board.command().arg("status").env("CALLBOARD_SERVER", url)),
        ] {
            fails(&finished, USAGE, &[part]);
            assert!(!finished.stderr.contains("secret"), "{}", finished.stderr);
        }
    }
    for command in ["doctor", "mcp", "serve"] {
        fails(
            &run(&board, &["--server", "http://127.0.0.1:1", command]),
            USAGE,
            &[command, "leave --server out"],
        );
    }
    for (command, is_shown) in
        [("mcp", false), ("serve", false), ("guard", false), ("status", false), ("--help", true)]
    {
        assert_eq!(
            run(&board, &[command, "--help"]).stdout.contains("--server"),
            is_shown,
            "{command}"
        );
    }
    fails(
        &run(&board, &["token", "add", "--server", "http://127.0.0.1:1"]),
        USAGE,
        &["token", "leave --server out"],
    );
    fails(
        &run(&board, &["--server", "http://127.0.0.1:1", "connect", "claude"]),
        USAGE,
        &["leave --server out"],
    );
    let missing = ["--server", "http://127.0.0.1:1", "--token-file", "nowhere", "status"];
    fails(&run(&board, &missing), USAGE, &["--token-file", "nowhere"]);
    let empty = board.finish(board.command().arg("status").env("CALLBOARD_SERVER", ""));
    assert_eq!(empty.status.code(), Some(0), "{}", empty.stderr);
}

/// A server that gives every request the same answer, and reports what it was asked.
fn canned(answer: String) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            if answer_one(stream.unwrap(), &answer, &sender).is_none() {
                return;
            }
        }
    });
    (url, requests)
}

fn answer_one(mut stream: TcpStream, answer: &str, requests: &Sender<String>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut size) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(length) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            size = length.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; size];
    reader.read_exact(&mut body).ok()?;
    requests.send(head + &String::from_utf8(body).ok()?).ok()?;
    stream.write_all(answer.as_bytes()).ok()
}

fn http(status: &str, body: &str) -> String {
    let size = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[test]
fn reply_of_a_server_of_another_version_is_read_as_far_as_it_is_known() {
    let board = Board::new();
    let answered = |result: &str| {
        canned(http("200 OK", &format!(r#"{{"jsonrpc":"2.0","id":0,"result":{result}}}"#)))
    };
    let newer = r#"{"later":[1],"status":"failed","success":true,"attempts_left":0}"#;
    let (url, requests) = answered(newer);
    let asked = ["--server", &url, "fail", "a", "it broke"];
    assert_eq!(run(&board, &asked).stdout, "a is failed now\n");
    // The first one asks which task is meant, which this server does not answer.
    requests.recv_timeout(PATIENCE).unwrap();
    let request = requests.recv_timeout(PATIENCE).unwrap();
    assert!(
        request.contains("fail_task") && !request.contains("category"),
        "an older server does not know every argument: {request}"
    );
    assert_eq!(run(&board, &[&asked[..], &["--json"]].concat()).stdout.trim_end(), newer);
    let (url, _requests) = answered(r#"{"success":true,"status":"postponed","attempts_left":0}"#);
    let asked = ["--server", &url, "fail", "a", "it broke"];
    fails(&run(&board, &[&asked[..], &["--json"]].concat()), FAILED, &["fail_task", "`postponed`"]);
    let finished = run(&board, &asked);
    fails(
        &finished,
        FAILED,
        &[" fail TASK REASON` cannot be read", "`postponed`", "another version of callboard"],
    );
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
}

#[test]
fn each_answer_of_a_server_says_what_to_do() {
    let board = Board::new();
    let expected: [(&str, &str, &[&str]); 9] = [
        ("401 Unauthorized", "unauthorized", &["--token-file", "CALLBOARD_TOKEN"]),
        ("403 Forbidden", "host_forbidden", &["--allow-host 127.0.0.1"]),
        ("413 Content Too Large", "too_large", &["split it"]),
        ("404 Not Found", "not_a_server", &["HTTP status 404"]),
        ("307 Temporary Redirect", "not_a_server", &["HTTP status 307"]),
        ("503 Service Unavailable", "overloaded", &["try again"]),
        ("502 Bad Gateway", "unknown_outcome", &["HTTP status 502", "look before you repeat it"]),
        (
            "504 Gateway Timeout",
            "unknown_outcome",
            &["HTTP status 504", "look before you repeat it"],
        ),
        ("200 OK", "not_a_server", &["no callboard server"]),
    ];
    for (status, code, parts) in expected {
        let (url, _requests) = canned(http(status, "<html>"));
        fails(
            &run(&board, &["--server", &url, "status"]),
            FAILED,
            &[parts, &["http://127.0.0.1:"]].concat(),
        );
        let finished = run(&board, &["--server", &url, "--json", "status"]);
        assert_eq!((finished.status.code(), finished.code().as_str()), (Some(FAILED), code));
    }
    let (url, _requests) = canned(String::new());
    let cut = run(&board, &["--server", &url, "--json", "add", "x"]);
    assert_eq!((cut.status.code(), cut.code().as_str()), (Some(FAILED), "unknown_outcome"));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = run(&board, &["--server", &format!("http://{nobody}"), "status"]);
    fails(&refused, FAILED, &["connection refused", "callboard serve"]);
    assert!(!board.dir().exists());
}

#[test]
fn a_server_is_told_who_calls_and_from_where() {
    let board = Board::new();
    board.make_dir();
    std::fs::write(board.file("serve.token"), "of-the-board\n").unwrap();
    std::fs::write(board.base().join("token"), "of-the-file\n").unwrap();
    let refs = board.base().join(".git/refs");
    std::fs::create_dir_all(refs).unwrap();
    std::fs::create_dir_all(board.base().join(".git/objects")).unwrap();
    std::fs::write(board.base().join(".git/HEAD"), "ref: refs/heads/topic\n").unwrap();
    let (url, requests) = canned(http("401 Unauthorized", ""));
    let asked = |arguments: &[&str], token: Option<&str>| {
        let mut command = board.command();
        command.env("CALLBOARD_SERVER", &url).args(arguments);
        if let Some(token) = token {
            command.env("CALLBOARD_TOKEN", token);
        }
        board.finish(&mut command);
        let request = requests.recv_timeout(PATIENCE).unwrap();
        let field = |name: &str| {
            let value = request
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned));
            value.unwrap_or_default()
        };
        let body: Value = serde_json::from_str(request.lines().last().unwrap()).unwrap();
        let caller: Value = serde_json::from_str(&field("callboard-caller")).unwrap();
        (field("authorization"), caller, body)
    };
    let (token, caller, body) = asked(&["--agent", "ada", "heartbeat", "--note", "n"], None);
    assert_eq!(
        (token.as_str(), &caller["agent"], &caller["branch"]),
        ("Bearer of-the-board", &json!("ada"), &json!("topic"))
    );
    assert!(caller["worktree"].as_str().is_some_and(|root| root.starts_with('/')), "{caller}");
    assert_eq!((&body["method"], &body["params"]), (&json!("heartbeat"), &json!({"note": "n"})));
    let (token, caller, _) = asked(&["status"], Some("of-the-variable"));
    assert_eq!((token.as_str(), &caller["agent"]), ("Bearer of-the-variable", &json!("human")));
    assert_eq!(
        asked(&["--token-file", "token", "status"], Some("of-the-variable")).0,
        "Bearer of-the-file"
    );
}

/// `callboard serve` on a board.
struct Served {
    running: Running,
    url: String,
    token: String,
}

impl Served {
    fn start(board: &Board, listen: &str) -> Self {
        let running = Running::start(board.command().args(["--json", "serve", "--listen", listen]));
        let announced = running.event();
        let field = |name: &str| announced[name].as_str().unwrap().to_owned();
        Self { url: field("url"), token: field("token"), running }
    }

    fn command(&self, from: &Board) -> Command {
        let mut command = from.command();
        command.env("CALLBOARD_SERVER", &self.url).env("CALLBOARD_TOKEN", &self.token);
        command
    }

    fn run(&self, from: &Board, arguments: &[&str]) -> Finished {
        from.finish(self.command(from).args(arguments))
    }
}

/// The text without times, and without lines that tell how long ago something was.
fn timeless(text: &str) -> String {
    let is_time =
        |word: &&str| word.trim_start_matches('(').starts_with("20") && word.contains('T');
    let lines = text.lines().filter(|line| !line.contains("just now") && !line.contains(" ago"));
    let lines = lines
        .map(|line| line.split(' ').filter(|word| !is_time(word)).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_command_does_over_a_server_what_it_does_here() {
    let (here, served, elsewhere) = (Board::new(), Board::new(), Board::new());
    let server = Served::start(&served, "127.0.0.1:0");
    let batch = json!([{"id": "b", "description": "b"}, {"id": "c", "description": "c", "dependencies": ["b"]}]);
    for board in [&here, &elsewhere] {
        std::fs::write(board.base().join("batch.json"), batch.to_string()).unwrap();
    }
    let commands: [&[&str]; 42] = [
        &["status"],
        &[
            "add",
            "what is to be done",
            "--id",
            "a",
            "--title",
            "A",
            "--priority",
            "2",
            "--file",
            "x.md",
        ],
        &["add", "again", "--id", "a"],
        &["add", "--batch", "batch.json"],
        &["tasks"],
        &["tasks", "--all", "--status", "available"],
        &["--agent", "w", "claim", "a"],
        &["--agent", "w", "claim", "a"],
        &["--agent", "v", "start", "a"],
        &["--agent", "w", "start", "a"],
        &["--agent", "w", "heartbeat", "--task", "a", "--note", "half of it"],
        &["show", "a"],
        &["--agent", "w", "complete", "a", "done", "--file", "x.md"],
        &["--agent", "w", "complete", "a", "done"],
        &["show", "nothing"],
        &["--agent", "u", "claim", "--wait", "1"],
        &["--agent", "u", "fail", "b", "no way", "--permanent"],
        &["retry", "b"],
        &["retry", "b", "c"],
        &["--agent", "u", "claim", "b"],
        &["--agent", "u", "release", "b", "--reason", "not mine"],
        &["--agent", "u", "claim", "b"],
        &["release", "--all"],
        &["release", "--all"],
        &["release"],
        &["cancel", "c", "--reason", "no use"],
        &["pause", "--reason", "lunch"],
        &["--agent", "u", "claim"],
        &["status"],
        &["resume"],
        &["agents"],
        &["discoveries"],
        &["--agent", "u", "discoveries", "add", " "],
        &["call", "frobnicate"],
        &["call", "create_task", r#"{"nonsense":1}"#],
        &["call", "create_task", "nonsense"],
        &["call", "claim_task", "--schema"],
        &["--agent", "no spaces", "claim"],
        &["--agent", "auto", "claim"],
        &["tasks", "--status", "done", "--scope", "P1"],
        &["claim", "--scope", "nowhere"],
        &["watch", "--task", "no spaces"],
    ];
    for arguments in commands {
        let (one, other) = (run(&here, arguments), server.run(&elsewhere, arguments));
        let seen =
            |ran: &Finished| (ran.status.code(), timeless(&ran.stdout), timeless(&ran.stderr));
        assert_eq!(seen(&other), seen(&one), "{arguments:?}");
    }
    let made = server.run(&elsewhere, &["init", "ship it"]);
    contains(&made.stdout, &[&format!("The board is that of {}.", server.url)]);
    assert_eq!(served.document()["goal"], "ship it");
    assert!(!elsewhere.dir().exists());
}

#[test]
fn a_claim_waits_over_a_server() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let server = Served::start(&board, "127.0.0.1:0");
    says(&board, &["add", "x", "--id", "a"]);
    assert_eq!(server.run(&elsewhere, &["--agent", "v", "claim"]).status.code(), Some(0));
    let mut waiting = Running::start(
        server.command(&elsewhere).args(["--agent", "w", "--json", "claim", "--wait", "50"]),
    );
    // It gets the task whether it is waiting already or not.
    says(&board, &["add", "y", "--id", "b"]);
    assert_eq!(waiting.event()["task"]["id"], "b");
    waiting.ends_with(0);
}

#[test]
fn watch_over_a_server_outlives_the_server() {
    let (board, elsewhere) = (Board::new(), Board::new());
    says(&board, &["add", "first"]);
    let mut server = Served::start(&board, "127.0.0.1:0");
    let mut watch =
        Running::start(server.command(&elsewhere).args(["watch", "--json", "--since", "0"]));
    do_one(&board, "a", "w");
    let mut seqs: Vec<_> =
        board.events().iter().map(|_| watch.event()["seq"].as_u64().unwrap()).collect();
    server.running.signal(Signal::KILL);
    server.running.process.wait().unwrap();
    contains(&watch.complaint(), &["was cut", &format!("after event {}", seqs.len())]);
    do_one(&board, "b", "w");
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    server = Served::start(&board, &address);
    contains(&watch.complaint(), &["connected to", "again"]);
    server.run(&elsewhere, &["add", "x", "--id", "c"]);
    let head = board.events().len();
    seqs.extend((seqs.len()..head).map(|_| watch.event()["seq"].as_u64().unwrap()));
    assert_eq!(seqs, (1..=head as u64).collect::<Vec<_>>());
    watch.signal(Signal::INT);
    watch.ends_with(0);
    assert_eq!(watch.lines.recv_timeout(PATIENCE).ok(), None);
    assert!(!elsewhere.dir().exists());
}

/// A proxy that cuts every WebSocket as soon as it is subscribed. Returns its address, and a
/// channel that reports each cut.
fn cutting(server: &str) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (server, (sender, cuts)) = (server.strip_prefix("http://").unwrap().to_owned(), channel());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (near, far, sender) =
                (stream.unwrap(), TcpStream::connect(&server).unwrap(), sender.clone());
            thread::spawn(move || cut_once_subscribed(near, far, &sender));
        }
    });
    (url, cuts)
}

fn cut_once_subscribed(
    mut near: TcpStream,
    mut far: TcpStream,
    cut: &Sender<()>,
) -> std::io::Result<()> {
    let (mut from, mut to) = (near.try_clone()?, far.try_clone()?);
    let upwards = thread::spawn(move || std::io::copy(&mut from, &mut to));
    let (mut bytes, mut is_socket) = ([0; 16_384], false);
    loop {
        let size = far.read(&mut bytes)?;
        near.write_all(&bytes[..size])?;
        let text = String::from_utf8_lossy(&bytes[..size]);
        is_socket |= text.starts_with("HTTP/1.1 101");
        if size == 0 || is_socket && text.contains("\"result\"") {
            // Closing at once could discard data that was not read yet.
            near.shutdown(Shutdown::Write)?;
            drop(upwards.join());
            cut.send(()).unwrap_or_default();
            return Ok(());
        }
    }
}

#[test]
fn watch_whose_connection_is_cut_at_once_again_and_again_pauses_longer_and_longer() {
    let (board, elsewhere) = (Board::new(), Board::new());
    says(&board, &["add", "first"]);
    let mut server = Served::start(&board, "127.0.0.1:0");
    let (url, cuts) = cutting(&server.url);
    server.url = url;
    let watch = Running::start(server.command(&elsewhere).arg("watch"));
    let start = Instant::now();
    // Pauses of 0, 0.1, 0.2, 0.4 and 0.8 s.
    (0..6).for_each(|_| cuts.recv_timeout(PATIENCE).unwrap());
    assert!(start.elapsed() >= Duration::from_millis(1_500), "{:?}", start.elapsed());
    contains(&watch.complaint(), &["was cut"]);
    contains(&watch.complaint(), &["connected to", "again"]);
    assert_eq!(watch.complaints.try_recv().ok(), None);
}

#[test]
fn watch_over_a_server_filters_and_ends_with_its_reader() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let server = Served::start(&board, "127.0.0.1:0");
    do_one(&board, "a", "w");
    do_one(&board, "b", "v");
    let mut command = server.command(&elsewhere);
    let filtered = Running::start(
        command.args(["watch", "--since", "0", "--task", "b", "--kind", "claimed", "--by", "v"]),
    );
    contains(&filtered.line(), &["v claimed #2 \"what is to be done\", attempt 1"]);
    let mut command = server.command(&elsewhere);
    let mut child =
        command.arg("watch").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let status = until(PATIENCE, "watch ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_server_wants_its_token() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let server = Served::start(&board, "127.0.0.1:0");
    // Next to the board, the token need not be named.
    says(&board, &["--server", &server.url, "add", "x"]);
    let without = elsewhere.finish(elsewhere.command().args(["--server", &server.url, "status"]));
    fails(&without, FAILED, &["without a token", "--token-file"]);
    let mut wrong = elsewhere.command();
    wrong.args(["--server", &server.url, "watch"]).env("CALLBOARD_TOKEN", "wrong");
    let wrong = elsewhere.finish(&mut wrong);
    fails(&wrong, FAILED, &["does not take this token"]);
    let file = board.file("serve.token");
    let named = ["--server", &server.url, "--token-file", file.to_str().unwrap(), "status"];
    assert_eq!(run(&elsewhere, &named).status.code(), Some(0));
}

#[test]
fn a_batch_that_is_too_large_for_a_server_is_refused_whole() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let server = Served::start(&board, "127.0.0.1:0");
    let text = "x".repeat(callboard::state::limit::BODY.max / 200);
    let batch: Value = (0..200).map(|_| json!({"description": text})).collect();
    std::fs::write(elsewhere.base().join("large.json"), batch.to_string()).unwrap();
    let ran = server.run(&elsewhere, &["--json", "add", "--batch", "large.json"]);
    assert_eq!((ran.status.code(), ran.code().as_str()), (Some(FAILED), "too_large"));
    assert_eq!(board.cli_ok("get_status", json!({}))["total_tasks"], 0);
}

#[test]
fn a_line_that_an_agent_has_written_is_not_taken_for_the_boards() {
    let board = Board::new();
    let text = "a question\ndeadlocked: run this";
    board.cli_ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    let request = json!({"agent_id": "a", "to": "human", "kind": "request", "text": text});
    board.cli_ok("send_message", request);
    let shown = board.finish(board.command().arg("status")).stdout;
    assert!(!shown.lines().any(|line| line.starts_with("deadlocked:")), "{shown}");
    board.cli_ok("create_task", json!({"id": "t", "description": "d", "max_attempts": 1}));
    board.cli_ok("claim_task", json!({"agent_id": "a", "task_id": "t"}));
    let failed =
        json!({"agent_id": "a", "task_id": "t", "error": "e\nclaimable: now", "retryable": false});
    board.cli_ok("fail_task", failed);
    let shown = board.finish(board.command().args(["explain", "t"])).stdout;
    assert!(
        shown.contains("claimable: now")
            && !shown.lines().any(|line| line.starts_with("claimable:")),
        "{shown}"
    );
}

/// A terminal that does not report its width, and a narrow one.
#[test]
fn tables_keep_numbers_whole_and_cut_what_comes_last() {
    let script = Command::new("script").arg("--version").output().err();
    if !available("script", script.map(|error| error.to_string()).as_deref()) {
        return;
    }
    let board = Board::new();
    let title = "Write the whole of the parser, its tests and all of its documentation anew";
    board.cli_ok("create_task", json!({"title": title, "description": "d"}));
    let shown = |columns: u16| {
        let own = env!("CARGO_BIN_EXE_callboard");
        let line =
            format!("stty cols {columns}; exec '{own}' --dir '{}' tasks", board.dir().display());
        let mut terminal = Command::new("script");
        terminal
            .args(["-qec", &line, "/dev/null"])
            .env("NO_COLOR", "1")
            .env("HOME", board.base())
            .stdin(Stdio::null());
        let finished = board.finish(&mut terminal);
        assert!(finished.status.success(), "{}", finished.stdout);
        finished.stdout.lines().map(|line| line.trim_end().to_owned()).collect()
    };
    let unknown: Vec<String> = shown(0);
    assert!(
        unknown.len() == 2 && unknown[1].starts_with("#1 ") && unknown[1].ends_with(title),
        "{unknown:?}"
    );
    let narrow: Vec<String> = shown(80);
    assert!(
        narrow.len() == 2 && narrow[1].starts_with("#1 ") && narrow[1].ends_with('…'),
        "{narrow:?}"
    );
    assert!(narrow.iter().all(|line| line.chars().count() <= 80), "{narrow:?}");
}

#[test]
fn a_server_that_turns_a_call_away_is_heard() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let mut server = Served::start(&board, "127.0.0.1:0");
    let owner = server.token.clone();
    let token = |arguments: &[&str]| {
        says(&board, &[&["token", "add"], arguments].concat()).lines().next().unwrap().to_owned()
    };
    server.token = token(&["--agent", "alice"]);
    fails(
        &server.run(&elsewhere, &["--agent", "bob", "claim"]),
        REFUSED,
        &["token `alice`", "leave --agent out"],
    );
    let refused = server.run(&elsewhere, &["--json", "--agent", "bob", "claim"]);
    assert_eq!((refused.status.code(), refused.code().as_str()), (Some(REFUSED), "token_agent"));
    server.token = token(&["--name", "loose"]);
    fails(&server.run(&elsewhere, &["claim"]), REFUSED, &["token `loose`", "give --agent ID"]);
    server.token = token(&["--name", "brief", "--expires", "1"]);
    let file = board.file("tokens.toml");
    // Makes it look as if a thousand years had passed.
    let past = std::fs::read_to_string(&file).unwrap().replace("expires = \"2", "expires = \"1");
    std::fs::write(&file, past).unwrap();
    fails(&server.run(&elsewhere, &["status"]), FAILED, &["the token `brief` has expired"]);
    server.token = owner;
    let nested = format!("{{\"context\": {}{}}}", "[".repeat(100), "]".repeat(100));
    fails(
        &server.run(&elsewhere, &["call", "create_task", &nested]),
        REFUSED,
        &[&server.url, "nested deeper"],
    );
}

/// A proxy that answers in the server's place while that is away.
fn proxy(server: &str, is_away: &Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (server, is_away) =
        (server.strip_prefix("http://").unwrap().to_owned(), Arc::clone(is_away));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let near = stream.unwrap();
            if is_away.load(Ordering::SeqCst) {
                answer_one(near, &http("502 Bad Gateway", "<html>"), &channel().0);
                continue;
            }
            let far = TcpStream::connect(&server).unwrap();
            for (mut from, mut to) in
                [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)]
            {
                thread::spawn(move || {
                    drop(std::io::copy(&mut from, &mut to));
                    to.shutdown(Shutdown::Both)
                });
            }
        }
    });
    url
}

#[test]
fn watch_through_a_proxy_outlives_the_server_behind_it() {
    let (board, elsewhere) = (Board::new(), Board::new());
    says(&board, &["add", "first", "--id", "a"]);
    let mut server = Served::start(&board, "127.0.0.1:0");
    let is_away = Arc::new(AtomicBool::new(false));
    let (address, url) = (server.url.clone(), proxy(&server.url, &is_away));
    server.url.clone_from(&url);
    let watch = Running::start(
        server.command(&elsewhere).args(["watch", "--json", "--since", "0", "--task", "a"]),
    );
    assert_eq!(watch.kinds(1), ["tasks_created"]);
    is_away.store(true, Ordering::SeqCst);
    server.running.signal(Signal::KILL);
    server.running.process.wait().unwrap();
    contains(&watch.complaint(), &["was cut"]);
    let mutating = server.run(&elsewhere, &["add", "second"]);
    fails(&mutating, FAILED, &["is unknown", "HTTP status 502"]);
    says(&board, &["--agent", "w", "claim", "a"]);
    let _server = Served::start(&board, address.strip_prefix("http://").unwrap());
    is_away.store(false, Ordering::SeqCst);
    contains(&watch.complaint(), &["connected to", "again"]);
    assert_eq!(watch.kinds(1), ["claimed"]);
}

#[test]
fn what_is_told_next_leads_to_the_board_that_was_named() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let server = Served::start(&board, "127.0.0.1:0");
    let url = server.url.as_str();
    let asked = |arguments: &[&str]| {
        let mut command = elsewhere.command();
        command.env("CALLBOARD_TOKEN", &server.token).args(["--server", url]).args(arguments);
        elsewhere.finish(&mut command)
    };
    asked(&["add", "x", "--id", "a"]);
    let claimed = asked(&["--agent", "hinty", "claim"]).stdout;
    contains(
        &claimed,
        &[&format!("next: callboard --server {url} --agent hinty complete 1 'what was done'")],
    );
    fails(&asked(&["show", "b"]), REFUSED, &[&format!("see `callboard --server {url} tasks`")]);
    contains(&asked(&["pause"]).stdout, &[&format!("`callboard --server {url} resume`")]);
    let made = asked(&["init", "ship it"]).stdout;
    contains(&made, &[&format!("callboard --server {url} --agent NAME claim --wait 50")]);
    contains(&made, &[&format!("`callboard connect claude --url {url}/mcp`"), "CALLBOARD_TOKEN"]);
    assert!(!elsewhere.dir().exists());

    let named = elsewhere.base().join("it's there");
    let dir = format!("--dir '{}'", named.to_str().unwrap().replace('\'', "'\\''"));
    let asked = |arguments: &[&str]| {
        let mut command = elsewhere.command();
        command
            .env("HOME", elsewhere.base().join("home"))
            .args(["--dir", "it's there"])
            .args(arguments);
        elsewhere.finish(&mut command).stdout
    };
    let made = asked(&["init", "ship it"]);
    contains(
        &made,
        &[
            &format!("callboard {dir} --agent NAME claim"),
            &format!("`callboard {dir} connect claude`"),
        ],
    );
    asked(&["add", "x", "--id", "a"]);
    contains(
        &asked(&["--agent", "w", "claim"]),
        &[&format!("next: callboard {dir} --agent w complete 1 'what was done'")],
    );
    assert!(!elsewhere.dir().exists());
}

#[test]
fn what_a_server_prints_is_good_for_its_clients() {
    let board = Board::new();
    let printed = |arguments: &[&str]| {
        let server = Running::start(board.command().args(["serve", "--listen"]).args(arguments));
        let mut page = String::new();
        while !page.contains("Ctrl-C") {
            page.push_str(&server.line());
            page.push('\n');
        }
        page
    };
    let here = printed(&["127.0.0.1:0"]);
    contains(&here, &["MCP       http://127.0.0.1:", "export CALLBOARD_SERVER=http://127.0.0.1:"]);
    assert!(!here.contains("ssh"), "{here}");
    let anywhere = printed(&["0.0.0.0:0", "--allow-remote"]);
    contains(
        &anywhere,
        &["MCP       http://127.0.0.1:", "ssh -N -L ", "export CALLBOARD_SERVER=http://127.0.0.1:"],
    );
    let named = printed(&["0.0.0.0:0", "--allow-remote", "--allow-host", "board.example"]);
    contains(
        &named,
        &[
            "MCP       http://board.example:",
            "connect CLIENT --url http://board.example:",
            "ssh -N -L ",
        ],
    );
    assert!(!named.contains("CALLBOARD_SERVER=http://board.example"), "{named}");
}

#[test]
fn a_file_that_is_no_text_is_not_sent_to_a_server() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let server = Served::start(&board, "127.0.0.1:0");
    says(&board, &["add", "x", "--id", "a"]);
    std::fs::write(elsewhere.base().join("raw"), b"\xff\xfe").unwrap();
    std::fs::write(elsewhere.base().join("note"), "text").unwrap();
    fails(
        &server.run(&elsewhere, &["artifact", "attach", "a", "raw"]),
        USAGE,
        &["raw is not text in UTF-8"],
    );
    let kept = server.run(&elsewhere, &["artifact", "attach", "a", "note"]).stdout;
    contains(&kept, &["4 bytes", &format!("of the board of {}", server.url)]);
    assert!(!kept.contains(elsewhere.dir().to_str().unwrap()), "{kept}");
}
