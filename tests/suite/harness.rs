//! A board in a directory of its own, real processes on it, and helpers to call and inspect them.

mod earlier;
pub(crate) mod http;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use callboard::journal::sqlite::SqliteJournal;
use callboard::state::State;
use callboard::state::event::Recorded;
use callboard::statefile::{self, Found, SLOTS_FROM};
use callboard::worktree::Repository;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::schemas::{assert_document, assert_reply};

pub(crate) const STATE_FILE: &str = statefile::FILE_NAME;
/// Code of an error that means: nothing was done, try again.
const LOCKED: &str = "locked";
/// Longest wait: nothing here takes that long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Polls until there is an answer. Only here does a test wait for something that it cannot be
/// notified of.
#[track_caller]
pub(crate) fn until<T>(patience: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < patience, "not within {patience:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Deletes a directory in which processes work, however often they write into it meanwhile.
pub(crate) fn remove_live(dir: &Path) {
    until(PATIENCE, "the directory is deleted", || fs::remove_dir_all(dir).ok());
}

/// Tells the threads of a scope to stop, even if the test fails.
pub(crate) struct StopAtEnd<'a>(pub &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The size of a test, from an environment variable.
pub(crate) fn size(variable: &str, everyday: usize) -> usize {
    std::env::var(variable).map_or(everyday, |text| text.parse().unwrap())
}

/// A directory of the test's own, outside of any repository, which a board and its processes would
/// notice.
fn scratch() -> TempDir {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let scratch = match Repository::containing(built) {
        Some(_) => tempfile::tempdir(),
        None => tempfile::tempdir_in(built),
    };
    scratch.unwrap()
}

/// Standard error without the line that says that a board was made, which the first command on any
/// board prints.
pub(crate) fn without_notice(stderr: &str) -> String {
    stderr
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("callboard: made a new board in "))
        .collect()
}

/// Whether something that `CALLBOARD_REQUIRE` may name is available. If not, the reason is printed;
/// if required, the test fails.
pub(crate) fn available(what: &str, missing: Option<&str>) -> bool {
    let Some(reason) = missing else { return true };
    let required = std::env::var("CALLBOARD_REQUIRE")
        .is_ok_and(|names| names.split([',', ' ']).any(|one| one == what));
    assert!(!required, "{what} is required: {reason}");
    println!("skipped: {reason}");
    false
}

/// An example as a program. It is built beside the tests, unless only these were asked for: then
/// it may be an older one.
pub(crate) fn example_program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    let made = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    if made(&program) < made(&tests) {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--offline", "--example", name])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().unwrap().success());
    }
    program
}

pub(crate) struct Board {
    base: TempDir,
    dir: PathBuf,
    /// Whether the state file has slots, however small it is.
    has_slots: bool,
}

/// Result of a one-shot command.
pub(crate) struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// The printed reply.
    #[track_caller]
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|_| panic!("{} {} {}", self.status, self.stdout, self.stderr))
    }

    /// Code of the printed error.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        self.error_code().unwrap_or_else(|| panic!("{} {}", self.stdout, self.stderr))
    }

    /// Code of the error; a reply with `"success": false` has none.
    fn error_code(&self) -> Option<String> {
        let line = self.stderr.lines().find(|line| line.starts_with("{\"error\""))?;
        let error: Value = serde_json::from_str(line).ok()?;
        error["error"]["code"].as_str().map(str::to_owned)
    }

    /// Whether it waited too long for the lock, on a busy machine; nothing was done.
    pub(crate) fn was_locked(&self) -> bool {
        self.error_code().as_deref() == Some(LOCKED)
    }
}

impl Board {
    pub(crate) fn new() -> Self {
        let base = scratch();
        let dir = base.path().join("board");
        Self { base, dir, has_slots: false }
    }

    /// A board whose state file has slots, as that of a large one has.
    pub(crate) fn with_slots() -> Self {
        Self { has_slots: true, ..Self::new() }
    }

    /// The existing board in `dir`.
    pub(crate) fn at(dir: PathBuf) -> Self {
        Self { dir, ..Self::new() }
    }

    pub(crate) fn with_policy(policy: &str) -> Self {
        let board = Self::new();
        board.make_dir();
        fs::write(board.dir.join("config.toml"), format!("[policy]\n{policy}\n")).unwrap();
        board
    }

    pub(crate) fn make_dir(&self) {
        fs::DirBuilder::new().mode(0o700).create(&self.dir).unwrap();
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory that contains the board.
    pub(crate) fn base(&self) -> &Path {
        self.base.path()
    }

    /// A message without where this program and this board happen to lie, to measure its length.
    pub(crate) fn without_places(&self, message: &str) -> String {
        message
            .replace(env!("CARGO_BIN_EXE_callboard"), "callboard")
            .replace(&format!(" --dir {}", self.dir().display()), "")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
        command
            .env("COORDINATION_DIR", &self.dir)
            .env("CALLBOARD_ME", "human")
            .env("HOME", self.base())
            .current_dir(self.base());
        command.env_remove("CALLBOARD_FAILPOINT").stdin(Stdio::null());
        if self.has_slots {
            command.env(SLOTS_FROM, "0");
        }
        command
    }

    pub(crate) fn finish(&self, command: &mut Command) -> Finished {
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Finished {
            status: output.status,
            stdout: text(output.stdout),
            stderr: without_notice(&text(output.stderr)),
        }
    }

    /// Runs `callboard call`, with errors as JSON.
    pub(crate) fn cli(&self, operation: &str, arguments: Value) -> Finished {
        self.finish(self.command().args(["--json", "call", operation, &arguments.to_string()]))
    }

    #[track_caller]
    pub(crate) fn cli_ok(&self, operation: &str, arguments: Value) -> Value {
        let finished = self.cli(operation, arguments);
        assert!(finished.status.success(), "{operation}: {} {}", finished.stdout, finished.stderr);
        let reply = finished.value();
        assert_reply(operation, &reply);
        reply
    }

    pub(crate) fn mcp(&self) -> Client {
        self.mcp_with(&[])
    }

    pub(crate) fn mcp_with(&self, environment: &[(&str, &str)]) -> Client {
        let mut command = self.command();
        command.arg("mcp").envs(environment.iter().copied());
        Client::start(&mut command)
    }

    /// Changes the state file as a failing disk would, not an editor: other content with the same
    /// device, inode and time.
    pub(crate) fn decay(&self, content: &[u8]) {
        let file = fs::OpenOptions::new().write(true).open(self.file(STATE_FILE)).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        fs::write(self.file(STATE_FILE), content).unwrap();
        file.set_modified(modified).unwrap();
    }

    /// The state file, as a reader finds it.
    #[track_caller]
    pub(crate) fn document(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file(STATE_FILE)).unwrap()).unwrap()
    }

    #[track_caller]
    pub(crate) fn task(&self, id: &str) -> Value {
        let document = self.document();
        let task = document["tasks"].as_array().unwrap().iter().find(|task| task["id"] == id);
        task.unwrap_or_else(|| panic!("no task {id}")).clone()
    }

    pub(crate) fn tasks(&self) -> BTreeMap<String, Value> {
        let document = self.document();
        let tasks = document["tasks"].as_array().unwrap().iter();
        tasks.map(|task| (task["id"].as_str().unwrap().to_owned(), task.clone())).collect()
    }

    /// All events, with the hash chain verified.
    pub(crate) fn events(&self) -> Vec<Recorded> {
        SqliteJournal::open(&self.dir).unwrap().read_from(0, usize::MAX).unwrap()
    }

    /// The state according to the journal, as a process computes it that starts from nothing else.
    pub(crate) fn replay(&self) -> State {
        let mut state = State::new();
        for recorded in self.events() {
            state.apply(&recorded).unwrap();
            state.settle();
        }
        assert_eq!(state.check(), Vec::<String>::new());
        state
    }

    /// Only for a board without calls: what a living process records by itself appears in the file
    /// a moment later.
    #[track_caller]
    pub(crate) fn assert_file_is_the_replay(&self) {
        let (document, replay) = until(PATIENCE, "the state file shows the newest event", || {
            let Some(Found::Sound(document)) = statefile::load(&self.dir).unwrap() else {
                panic!("it is not sound")
            };
            let replay = self.replay();
            (document.board.seq == replay.seq()).then_some((document, replay))
        });
        assert!(*document == replay.to_document(), "the state file is not what the journal says");
        assert_document(&self.document());
    }
}

/// An MCP client of 2026-07-28, with its server process on stdio.
pub(crate) struct Client {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    answered: BTreeMap<u64, Value>,
    last_id: u64,
    /// The name that the client gives itself.
    pub name: &'static str,
}

/// A tool's result.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub value: Value,
    pub is_error: bool,
    pub text: String,
}

impl Reply {
    /// Code of a refusal or failure; empty for a success.
    pub(crate) fn code(&self) -> &str {
        if self.is_error { self.value["code"].as_str().unwrap_or("?") } else { "" }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(!self.is_error, "{}", self.text);
        self.value
    }
}

impl Client {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { process, input, lines, answered: BTreeMap::new(), last_id: 0, name: "test" }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn write(&mut self, message: &Value) {
        self.write_line(&message.to_string());
    }

    pub(crate) fn write_line(&mut self, line: &str) {
        self.write_bytes(line.as_bytes());
    }

    pub(crate) fn write_bytes(&mut self, line: &[u8]) {
        // Whoever waits for the reply notices if the process is dead.
        let _ = self.input.as_mut().unwrap().write_all(&[line, b"\n"].concat());
    }

    /// Sends a call without waiting for its reply.
    pub(crate) fn send(&mut self, tool: &str, arguments: Value) -> u64 {
        self.last_id += 1;
        let params = json!({"name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
        }});
        self.write(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params}));
        self.last_id
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id});
        self.write(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
        );
    }

    /// The reply to call `id`; none if the process ended first, whether or not it reported the call
    /// as cancelled.
    #[track_caller]
    pub(crate) fn reply(&mut self, id: u64) -> Option<Reply> {
        let message = self.message(id)?;
        if message["error"]["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("the call was cancelled"))
        {
            return None;
        }
        let result = &message["result"];
        assert!(result.is_object(), "{message}");
        Some(Reply {
            value: result["structuredContent"].clone(),
            is_error: result["isError"] == true,
            text: result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Sends a request as it is, under the next id, and waits for the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, mut request: Value) -> Value {
        self.last_id += 1;
        request["id"] = json!(self.last_id);
        self.write(&request);
        self.message(self.last_id).expect("an answer")
    }

    #[track_caller]
    fn message(&mut self, id: u64) -> Option<Value> {
        let end = Instant::now() + PATIENCE;
        while !self.answered.contains_key(&id) {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    // A killed process may leave half a line.
                    let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
                    // The answer to an invalid message names no call.
                    self.answered.insert(message["id"].as_u64().unwrap_or_default(), message);
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("no reply to call {id}"),
            }
        }
        self.answered.remove(&id)
    }

    #[track_caller]
    pub(crate) fn try_call(&mut self, tool: &str, arguments: Value) -> Option<Reply> {
        let id = self.send(tool, arguments);
        self.reply(id)
    }

    /// Repeats a call that waited too long for the lock on a busy machine, as nothing was done.
    #[track_caller]
    pub(crate) fn try_patiently(&mut self, tool: &str, arguments: &Value) -> Option<Reply> {
        until(PATIENCE, tool, || {
            let reply = self.try_call(tool, arguments.clone());
            reply.as_ref().is_none_or(|reply| reply.code() != LOCKED).then_some(reply)
        })
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        self.try_call(tool, arguments).unwrap_or_else(|| panic!("the process died of {tool}"))
    }

    /// Reply of a call that must succeed.
    #[track_caller]
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.call(tool, arguments).ok();
        assert_reply(tool, &reply);
        reply
    }

    /// Makes a call as the leader `boss`, who is registered again by each process.
    #[track_caller]
    pub(crate) fn lead(&mut self, tool: &str, mut arguments: Value) -> Value {
        let boss = json!({"agent_id": "boss", "role": "leader", "takeover": true});
        self.ok("register_agent", boss);
        arguments["agent_id"] = json!("boss");
        self.ok(tool, arguments)
    }

    #[track_caller]
    pub(crate) fn register(&mut self, agent: &str) {
        self.ok("register_agent", json!({"agent_id": agent, "role": "worker", "takeover": true}));
    }

    /// Leaves a claim waiting; a later call was answered, so it is in progress.
    #[track_caller]
    pub(crate) fn wait_in_claim(&mut self, agent: &str) -> u64 {
        let id = self.send("claim_task", json!({"agent_id": agent, "wait_seconds": 50}));
        self.ok("get_status", json!({}));
        assert!(!self.answered.contains_key(&id), "{:?}", self.answered[&id]);
        id
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Kills the process with SIGKILL and reaps it.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// How the process ended, and how long that took.
    #[track_caller]
    pub(crate) fn ends_within(&mut self, patience: Duration) -> (ExitStatus, Duration) {
        let start = Instant::now();
        let status = until(patience, "the process ends", || self.process.try_wait().unwrap());
        (status, start.elapsed())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a continuous reader of the state file has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub reads: u64,
    pub bad: Vec<String>,
    pub last_seq: u64,
}

pub(crate) struct Reader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Reader {
    pub(crate) fn of(board: &Board) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (path, stopped) = (board.file(STATE_FILE), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut seen = Seen::default();
            while !stopped.load(Ordering::Relaxed) {
                look(&path, &mut seen);
            }
            seen
        });
        Self { stop, thread }
    }

    pub(crate) fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn look(path: &Path, seen: &mut Seen) {
    let read = fs::read(path).map_err(|error| error.to_string());
    let parsed = read.and_then(|bytes| {
        serde_json::from_slice::<Value>(&bytes).map_err(|error| error.to_string())
    });
    match parsed.map(|document| document["seq"].as_u64()) {
        Ok(Some(seq)) if seq >= seen.last_seq => seen.last_seq = seq,
        Ok(seq) => seen.bad.push(format!("seq {seq:?} after {}", seen.last_seq)),
        // There is no file before the first write.
        Err(_) if seen.last_seq == 0 && !path.exists() => return,
        Err(error) => seen.bad.push(error),
    }
    seen.reads += 1;
}
