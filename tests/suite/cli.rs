//! Commands through the binary: what people and scripts see, and the exit codes.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::without_notice;

const REFUSED: i32 = 1;
const USAGE: i32 = 2;
const FAILED: i32 = 3;

/// An empty project directory, and a home directory.
struct Project {
    base: TempDir,
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Project {
    fn new() -> Self {
        let base = tempfile::tempdir().expect("a temporary directory");
        for dir in ["home", "project"] {
            std::fs::create_dir(base.path().join(dir)).expect("a directory");
        }
        Self { base }
    }

    fn with_tasks(tasks: &Value) -> Self {
        let project = Self::new();
        assert_eq!(project.fed(&["add", "--batch", "-"], &tasks.to_string()).code, 0);
        project
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    fn board(&self) -> PathBuf {
        self.dir("project/.coordination")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
        command.args(arguments).current_dir(self.dir("project")).env("HOME", self.dir("home"));
        let leading = ["COORDINATION_DIR", "WORKSPACE_FOLDER_PATHS", "CLAUDE_PROJECT_DIR"];
        let of_plugins = ["PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"];
        for name in leading.into_iter().chain(of_plugins).chain(["CALLBOARD_LOG", "NO_COLOR"]) {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    /// Runs a command with `input` on standard input.
    fn fed(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("started");
        // A command that refuses early does not read its input to the end.
        drop(child.stdin.take().expect("piped").write_all(input.as_bytes()));
        Ran::from(child.wait_with_output().expect("ended"))
    }

    /// Output of a command that must succeed.
    fn says(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}: {}", ran.out);
        ran.out
    }

    /// JSON output of a command that must succeed.
    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.says(&[arguments, &["--json"]].concat())).expect("JSON")
    }

    fn status_of(&self, task: &str) -> Value {
        self.json(&["show", task])["task"]["status"].take()
    }
}

impl Ran {
    fn of(command: &mut Command) -> Self {
        Self::from(command.output().expect("started"))
    }

    /// Asserts that it failed with `code`, and names each of `parts` on standard error.
    fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        contains(&self.err, parts);
    }
}

impl From<std::process::Output> for Ran {
    fn from(output: std::process::Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let err = without_notice(&text(output.stderr));
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err }
    }
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn init_says_where_the_board_is_and_what_agents_need() {
    let project = Project::new();
    let plan = project.fed(&["init", "ship it", "--plan", "-"], "first this, then that");
    assert_eq!(plan.code, 0);
    contains(
        &plan.out,
        &["project/.coordination", "AGENTS.md", "claim_task", "callboard connect claude"],
    );
    let kept = project.json(&["call", "get_master_plan"]);
    assert_eq!(
        (&kept["goal"], &kept["master_plan"]),
        (&json!("ship it"), &json!("first this, then that"))
    );
    let another = project.run(&["init", "again"]);
    another.fails(REFUSED, &["another goal, `ship it`", "--replace-goal"]);
    let again = project.run(&["init", "ship it"]);
    assert_eq!((again.code, again.err.as_str()), (0, ""), "it was there, and has this goal");
    assert_eq!(project.json(&["init", "again", "--replace-goal"])["goal"], "again");
    project.run(&["init", "x", "--plan", "missing.md"]).fails(USAGE, &["cannot read missing.md"]);
    project.run(&["init", " "]).fails(REFUSED, &["goal must not be empty"]);
}

#[test]
fn help_is_given_whatever_the_environment_names() {
    let project = Project::new();
    for arguments in
        [&["man"][..], &["completions", "bash"], &["call"], &["call", "get_task", "--schema"]]
    {
        let mut command = project.command(arguments);
        let ran = Ran::of(command.env("CALLBOARD_SERVER", "garbage").env("CALLBOARD_TOKEN", "a b"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}");
    }
    let unknown = project.run(&["call", "nope"]);
    unknown.fails(USAGE, &["there is no operation `nope`; `callboard call` lists them"]);
}

#[test]
fn what_is_not_there_is_said_to_be_missing() {
    let project = Project::new();
    project.run(&["state"]).fails(FAILED, &["no board in", "init GOAL"]);
    project.run(&["restore", "/nowhere"]).fails(USAGE, &["cannot read /nowhere"]);
    project.says(&["init", "x"]);
    project.run(&["watch", "--task", "nope"]).fails(REFUSED, &["no task `nope`"]);
    let plan = project.dir("project/plan.md");
    std::fs::write(&plan, "# Plan\n- [ ] one\n").expect("written");
    project.says(&["plan", "import", plan.to_str().expect("UTF-8")]);
    project.run(&["plan", "diff"]).fails(REFUSED, &["the plan has only one version"]);
}

#[test]
fn an_answer_that_cannot_be_written_is_no_failure_of_the_board() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let project = Project::new();
    let ran = Ran::of(project.command(&["add", "x", "--id", "a"]).stdout(full));
    ran.fails(FAILED, &["done, but the answer could not be written to standard output"]);
    assert_eq!(project.status_of("a"), "available");
}

/// Only Linux allows file names that are not UTF-8.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_whose_name_is_no_text_is_one_like_others() {
    use std::os::unix::ffi::OsStrExt;

    let project = Project::new();
    let dir = project.dir("project").join(std::ffi::OsStr::from_bytes(b"\xff"));
    for name in [".git/objects", ".git/refs"] {
        std::fs::create_dir_all(dir.join(name)).expect("a directory");
    }
    std::fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n").expect("written");
    let commands: [&[&str]; 5] = [
        &["init", "x"],
        &["connect", "claude", "--json"],
        &["guard", "--install-git-hook", "--json"],
        &["doctor", "--json"],
        &["work", "--dry-run", "--json", "--", "true"],
    ];
    for arguments in commands {
        let ran = Ran::of(project.command(arguments).current_dir(&dir));
        assert!(
            ran.code == 0 || arguments[0] == "doctor" && ran.code == 1,
            "{arguments:?}: {}{}",
            ran.code,
            ran.err
        );
    }
    let mut serve = project
        .command(&["serve", "--listen", "127.0.0.1:0", "--json"])
        .current_dir(&dir)
        .spawn()
        .expect("started");
    let mut line = String::new();
    let out = serve.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("read");
    serve.kill().expect("ended");
    serve.wait().expect("ended");
    assert!(line.contains("token_file"), "{line}");
}

#[test]
fn a_project_in_a_home_directory_that_is_a_repository_is_its_own() {
    let project = Project::new();
    for dir in ["home/.git/objects", "home/.git/refs", "home/mine"] {
        std::fs::create_dir_all(project.dir(dir)).expect("a directory");
    }
    std::fs::write(project.dir("home/.git/HEAD"), "ref: refs/heads/main\n").expect("written");
    for arguments in [&["init", "x"][..], &["connect", "claude"]] {
        let ran = Ran::of(project.command(arguments).current_dir(project.dir("home/mine")));
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
    }
    assert!(
        project.dir("home/mine/.coordination").is_dir()
            && project.dir("home/mine/.mcp.json").is_file()
    );
}

#[test]
fn no_board_is_made_in_the_home_directory() {
    let project = Project::new();
    let ran = Ran::of(project.command(&["init", "x"]).current_dir(project.dir("home")));
    ran.fails(FAILED, &["home directory", "change to your project", "--dir"]);
    assert!(!ran.err.contains("client"), "{}", ran.err);
    assert!(!project.dir("home/.coordination").exists());
}

#[test]
fn reading_makes_no_board() {
    let project = Project::new();
    project.says(&["doctor"]);
    for arguments in [&["status"][..], &["tasks"], &["agents"], &["show", "a"]] {
        project.run(arguments);
        assert!(!project.board().exists(), "{arguments:?}");
    }
}

#[test]
fn a_task_goes_from_added_to_done() {
    let project = Project::new();
    let arguments =
        ["add", "Write it", "--id", "a", "--title", "Writing", "--priority", "2", "--tag", "docs"];
    assert_eq!(project.says(&arguments), "a\n");
    let arguments = [
        "add",
        "Check it",
        "--id",
        "b",
        "--after",
        "a",
        "--file",
        "x.md",
        "--hint",
        "read x.md first",
    ];
    assert_eq!(project.json(&arguments)["task"]["dependencies"], json!(["a"]));
    contains(
        &project.says(&["--agent", "w", "claim", "--wait", "1"]),
        &["claimed #1 a", "Write it", "callboard --agent w complete 1"],
    );
    assert_eq!(project.json(&["--agent", "w", "claim"])["already"], true);
    assert_eq!(project.says(&["--agent", "w", "start", "a"]), "started #1 Writing\n");
    let beat = project.says(&["--agent", "w", "heartbeat", "--task", "a", "--note", "half of it"]);
    contains(&beat, &["the lease of a ends in 30 min"]);
    let output = [
        "--agent",
        "w",
        "complete",
        "a",
        "-",
        "--file",
        "x.md",
        "--created",
        "y.md",
        "--branch",
        "t",
        "--commit",
        "c0",
    ];
    assert_eq!(project.fed(&output, "written and read").out, "completed #1 Writing\n");
    let task = &project.json(&["show", "a"])["task"];
    let result = json!({"output": "written and read", "files_modified": ["x.md"], "files_created": ["y.md"], "branch": "t", "commit": "c0"});
    assert_eq!(
        (&task["status"], &task["result"], &task["priority"]),
        (&json!("done"), &result, &json!(2))
    );
    let shown = project.says(&["show", "a"]);
    contains(
        &shown,
        &[
            "done #1 a",
            "title: Writing",
            "\nby: w\n",
            "attempt 1 by w",
            "note: half of it",
            "created: just now",
        ],
    );
    contains(
        &project.says(&["--agent", "v", "claim", "b"]),
        &["claimed #2 b", "builds on: #1 t c0 written and read", "files: x.md"],
    );
    let again = project.run(&["--agent", "w", "complete", "a", "written and read"]);
    assert_eq!((again.code, again.out.as_str()), (0, "completed before: #1 Writing\n"));
}

#[test]
fn a_repeated_add_with_a_key_adds_nothing() {
    let project = Project::new();
    let id = project.says(&["add", "once", "--key", "k"]);
    assert_eq!(project.says(&["add", "once", "--key", "k"]), id);
    assert_eq!(project.json(&["status"])["total_tasks"], 1);
    project.run(&["add", "twice", "--key", "k"]).fails(REFUSED, &["idempotency_key `k`"]);
}

#[test]
fn a_capability_is_demanded() {
    let project = Project::new();
    project.says(&["add", "train", "--capability", "gpu"]);
    let claim = project.run(&["--agent", "w", "--json", "claim"]);
    let reply: Value = serde_json::from_str(&claim.out).expect("JSON");
    assert_eq!(
        (claim.code, &reply["verdict"], &reply["missing"]),
        (REFUSED, &json!("unsuited"), &json!(["gpu"]))
    );
}

#[test]
fn a_claim_without_a_task_exits_with_1_and_says_what_next() {
    let project = Project::with_tasks(
        &json!([{"id": "a", "description": "a"}, {"id": "b", "description": "b"}]),
    );
    project.says(&["claim", "a"]);
    project.says(&["start", "a"]);
    let holding = project.run(&["claim"]);
    assert_eq!((holding.code, holding.err.as_str()), (REFUSED, ""));
    contains(
        &holding.out,
        &["you hold work already", "a (attempt 1)", "next: go on with it", "complete it"],
    );
    project.says(&["complete", "a"]);
    project.says(&["cancel", "b"]);
    let finished = project.run(&["claim", "--json"]);
    let reply: Value = serde_json::from_str(&finished.out).expect("JSON");
    assert_eq!(
        (finished.code, &reply["success"], &reply["verdict"]),
        (REFUSED, &json!(false), &json!("finished"))
    );
    project.run(&["claim", "--wait", "51"]).fails(USAGE, &["51"]);
    project.run(&["claim", "--scope", "nowhere"]).fails(REFUSED, &["path `nowhere`"]);
}

#[test]
fn failed_tasks_can_be_retried() {
    let project = Project::with_tasks(
        &json!([{"id": "a", "description": "a"}, {"id": "b", "description": "b"}]),
    );
    project.says(&["claim", "a"]);
    contains(
        &project.says(&["fail", "a", "no network"]),
        &["a is tried again in ", " s; attempts left: 2"],
    );
    contains(&project.says(&["show", "a"]), &["outcome: failed", "error: error: no network"]);
    project.says(&["claim", "b"]);
    let failed =
        project.says(&["fail", "b", "cannot work", "--permanent", "--category", "permanent"]);
    assert_eq!(failed, "#2 b is failed now\n");
    assert_eq!(
        project.says(&["retry", "a", "b"]),
        "available again: #1 a\navailable again: #2 b\n"
    );
    assert_eq!(project.status_of("b"), "available");
    project.says(&["claim", "b"]);
    project.says(&["complete", "b", "worked"]);
    project.run(&["retry", "a", "b"]).fails(REFUSED, &["#2 is done"]);
}

#[test]
fn tasks_are_cancelled_or_their_agent_is_asked() {
    let project = Project::with_tasks(&json!([{"id": "a", "description": "a"}]));
    project.says(&["--agent", "w", "claim"]);
    contains(
        &project.says(&["cancel", "a", "--ask-owner", "--reason", "too late"]),
        &["w is asked to stop #1 a"],
    );
    contains(&project.says(&["--agent", "w", "heartbeat"]), &["stop requested: a too late"]);
    contains(&project.says(&["cancel", "a"]), &["cancelled #1 a; w worked on it"]);
    assert_eq!(project.status_of("a"), "cancelled");
}

#[test]
fn tasks_are_released_by_name_by_agent_and_all_at_once() {
    let tasks: Value =
        ["a", "b", "c"].iter().map(|id| json!({"id": id, "description": id})).collect();
    let project = Project::with_tasks(&tasks);
    for agent in ["u", "v", "w"] {
        project.says(&["--agent", agent, "claim"]);
    }
    assert_eq!(
        project.says(&["--agent", "u", "release", "a", "--reason", "not mine"]),
        "released #1 a\n"
    );
    project.run(&["--agent", "u", "release", "b"]).fails(REFUSED, &["held by `v`"]);
    assert_eq!(project.says(&["--agent", "v", "release"]), "released #2 b\n");
    assert_eq!(project.says(&["--agent", "v", "release"]), "v holds no task\n");
    project.says(&["--agent", "v", "claim"]);
    assert_eq!(project.json(&["release", "--all"])["applied"], 2);
    assert_eq!(project.json(&["release", "--all"])["applied"], 0);
    assert_eq!(project.json(&["status"])["tasks"]["available"], 3);
    project.run(&["release"]).fails(USAGE, &["--all"]);
    project.run(&["release", "a", "--all"]).fails(USAGE, &["--all"]);
}

#[test]
fn a_paused_board_gives_nothing_out() {
    let project = Project::with_tasks(&json!([{"description": "a"}]));
    project.says(&["pause", "--reason", "the build is broken"]);
    contains(&project.says(&["status"]), &["paused: the build is broken"]);
    contains(&project.run(&["claim"]).out, &["claims are paused"]);
    project.says(&["resume"]);
    project.says(&["claim"]);
}

#[test]
fn status_counts_and_names_what_is_stuck() {
    let tasks = json!([{"id": "a", "description": "a"}, {"id": "b", "description": "b", "dependencies": ["a"]}]);
    let project = Project::with_tasks(&tasks);
    project.says(&["--agent", "w", "claim"]);
    project.says(&["--agent", "w", "fail", "a", "no", "--permanent"]);
    let status = project.says(&["status"]);
    contains(
        &status,
        &[
            "0 of 2 done",
            "1 blocked",
            "1 failed",
            "AGENTS  1",
            "#1 a is failed, and 1 wait for it",
            "1 behind #1 failed",
        ],
    );
    let agents = project.says(&["agents"]);
    contains(&agents, &["STATE", "w   worker  idle", "just now"]);
    assert_eq!(project.json(&["agents"])["agents"][0]["tasks_failed"], 1);
}

/// Remedies in the explanation of task `a`.
#[track_caller]
fn remedy(project: &Project) -> Vec<String> {
    let explained = project.says(&["--agent", "bob", "explain", "a"]);
    let parts: Vec<_> = explained.split('`').collect();
    let command = parts
        .get(1)
        .and_then(|part| part.strip_prefix("callboard "))
        .unwrap_or_else(|| panic!("{explained}"));
    command.split(' ').map(str::to_owned).collect()
}

#[test]
fn what_an_explanation_says_to_do_can_be_done_as_it_stands() {
    let project = Project::with_tasks(&json!([{"id": "a", "description": "a"}]));
    let does = |words: [&str; 2]| {
        assert_eq!(remedy(&project), words);
        project.says(&words);
        assert_eq!(project.status_of("a"), "available", "{words:?}");
    };
    project.says(&["--agent", "ada", "claim"]);
    does(["release", "a"]);
    project.says(&["--agent", "ada", "claim"]);
    project.says(&["--agent", "ada", "fail", "a", "broken"]);
    assert_eq!(project.status_of("a"), "available");
    does(["retry", "a"]);
    project.says(&["cancel", "a"]);
    does(["retry", "a"]);
    project.says(&["--agent", "ada", "claim"]);
    project.says(&["--agent", "ada", "complete", "a"]);
    does(["reset", "a"]);
}

#[test]
fn bad_input_is_refused_and_named() {
    let project = Project::with_tasks(&json!([{"id": "a", "description": "a"}]));
    project.run(&["show", "nothing"]).fails(REFUSED, &["callboard: no task `nothing`"]);
    project
        .run(&["add", "x", "--priority", "11"])
        .fails(REFUSED, &["priority must be 1 (first) to 10 (last), not 11"]);
    project.run(&["add", "x", "--priority", "-1"]).fails(REFUSED, &["not -1"]);
    project.run(&["add", ""]).fails(REFUSED, &["description must not be empty"]);
    project.run(&["add"]).fails(USAGE, &["DESCRIPTION"]);
    project.run(&["add", "x", "--after", "nothing"]).fails(REFUSED, &["no task `nothing`"]);
    project.run(&["--agent", "no spaces", "claim"]).fails(REFUSED, &["agent id must be"]);
    let secret = ["gh", "p_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    project.run(&["--agent", &secret, "claim"]).fails(USAGE, &["--agent has the form of a secret"]);
    project.run(&["tasks", "--status", "purple"]).fails(USAGE, &["in_progress"]);
    project.run(&["history", "--limit", "0"]).fails(USAGE, &["--limit"]);
    project.run(&["frobnicate"]).fails(USAGE, &["frobnicate"]);
    project.run(&["call", "frobnicate"]).fails(USAGE, &["no operation `frobnicate`"]);
    let error = project.run(&["complete", "a", "--json"]).err;
    let error: Value = serde_json::from_str(&error).expect("JSON");
    assert_eq!(
        (&error["error"]["code"], &error["error"]["task"]),
        (&json!("not_held"), &json!("a"))
    );
}

#[test]
fn a_batch_is_added_whole_or_not_at_all() {
    let project = Project::new();
    let add = |batch: &str| project.fed(&["add", "--batch", "-"], batch);
    let cycle = json!([{"id": "a", "description": "a", "dependencies": ["b"]}, {"id": "b", "description": "b", "dependencies": ["a"]}]);
    add(&cycle.to_string()).fails(REFUSED, &["cycle", "a -> b"]);
    add("[{").fails(USAGE, &["the batch is not JSON"]);
    add("7").fails(USAGE, &["neither"]);
    add("{}").fails(REFUSED, &["tasks"]);
    let chain = json!({"tasks": [{"id": "a", "description": "a"}, {"id": "b", "description": "b", "dependencies": ["a"]}]});
    std::fs::write(project.dir("project/plan.json"), chain.to_string()).expect("written");
    assert_eq!(project.says(&["add", "--batch", "plan.json", "--key", "plan"]), "a\nb\n");
    assert_eq!(project.says(&["add", "--batch", "plan.json", "--key", "plan"]), "a\nb\n");
    let yaml = "# by hand\n- id: y1\n  description: |\n    two\n    lines\n  priority: 2\n- {id: y2, description: d, dependencies: [y1]}\n";
    assert_eq!(add(yaml).out, "y1\ny2\n");
    assert_eq!(add("tasks:\n  - id: y3\n    description: d\n").out, "y3\n");
    add("- id: y4\n   description: d\n").fails(USAGE, &["neither JSON nor YAML"]);
    add("words\n").fails(USAGE, &["neither a list of tasks"]);
    project.run(&["add", "x", "--batch", "plan.json"]).fails(USAGE, &["--batch"]);
    for option in ["--priority", "--timeout", "--silent", "--estimate"] {
        project
            .run(&["add", option, "5", "--batch", "plan.json"])
            .fails(USAGE, &["--batch", option]);
    }
}

fn many_tasks() -> Project {
    Project::with_tasks(
        &(0..1_100).map(|n| json!({"id": format!("t{n}"), "description": "one of many"})).collect(),
    )
}

#[test]
fn a_long_list_is_whole() {
    let project = many_tasks();
    for arguments in [&["tasks"][..], &["tasks", "--all"]] {
        assert_eq!(project.says(arguments).lines().count(), 1_101);
        let listed = project.json(arguments);
        assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(1_100));
        assert!(listed.get("next").is_none(), "{arguments:?}");
    }
    assert_eq!(project.says(&["tasks", "--status", "done"]), "no tasks\n");
}

#[test]
fn tasks_are_picked_and_put_in_order() {
    let project = Project::with_tasks(&json!([
        {"id": "a", "description": "parse it", "priority": 2, "tags": ["x"]},
        {"id": "b", "description": "print it", "priority": 1, "dependencies": ["a"]},
        {"id": "c", "description": "parse more", "priority": 9},
    ]));
    for (arguments, expected) in [
        (&["--ready"][..], "a c"),
        (&["--blocked"], "b"),
        (&["--search", "PARSE"], "a c"),
        (&["--tag", "x"], "a"),
        (&["--priority", "1-2"], "a b"),
        (&["--sort", "priority"], "b a c"),
        (&["--sort", "priority", "--reverse"], "c a b"),
        (&["--status", "available,done", "--created-since", "1h"], "a b c"),
        (&["--of", "nobody"], ""),
    ] {
        let listed = project.json(&[&["tasks"], arguments].concat());
        let ids: Vec<_> = listed["tasks"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["id"].as_str())
            .collect();
        let ids: Vec<_> = ids.into_iter().flatten().collect();
        assert_eq!(ids.join(" "), expected, "{arguments:?}");
    }
    project.run(&["tasks", "--status", "nope"]).fails(USAGE, &["available", "obsolete"]);
    project.run(&["tasks", "--priority", "0-3"]).fails(USAGE, &["1-3"]);
    project.run(&["tasks", "--created-since", "soon"]).fails(USAGE, &["2h"]);
    assert!(project.says(&["tasks", "--help"]).contains("callboard tasks --ready"));
}

#[test]
fn exit_codes_say_who_can_mend_it() {
    let project = Project::with_tasks(&json!([{"id": "a", "description": "x"}]));
    project.says(&["token", "add", "--name", "ci"]);
    std::fs::create_dir(project.dir("project/.mcp.json")).expect("a directory");
    std::fs::write(project.dir("project/.gemini"), "in the way").expect("a file");
    let cases: [(&[&str], i32, &str); 16] = [
        (&["token", "add", "--name", "ci"], REFUSED, "token `ci` already"),
        (&["token", "add", "--name", "a b"], REFUSED, "a token's name"),
        (&["token", "revoke", "zz"], REFUSED, "no token `zz`"),
        (&["token", "add", "--agent", "a b"], USAGE, "--agent"),
        (&["token", "add", "--agent", "human"], USAGE, "--role leader"),
        (&["connect", "cursor", "--hooks"], REFUSED, "claude, codex and gemini"),
        (&["connect", "zed", "--url", "http://x"], REFUSED, "connect zed"),
        (&["connect", "claude", "--url", "http://x", "--agent", "a"], USAGE, "leave --agent out"),
        (&["connect", "claude", "--global"], REFUSED, "claude mcp add"),
        (&["connect", "claude"], REFUSED, "is not a file"),
        (&["connect", "gemini"], FAILED, ".gemini"),
        (&["guard", "--staged"], USAGE, "no git repository"),
        (&["guard", "--install-git-hook"], USAGE, "no git repository"),
        (&["state", "--at", "9999"], REFUSED, "9999"),
        (&["serve", "--agent", "ada"], USAGE, "leave --agent out"),
        (&["artifact", "attach", "a", "missing"], REFUSED, "path cannot be read"),
    ];
    for (arguments, code, part) in cases {
        let ran = project.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.err);
        contains(&ran.err, &[part]);
    }
    Ran::of(project.command(&["connect", "cursor"]).current_dir(project.dir("home")))
        .fails(REFUSED, &["home directory"]);

    for name in ["snapshots", "bundles", "artifacts"] {
        drop(std::fs::remove_dir_all(project.board().join(name)));
        std::fs::write(project.board().join(name), "in the way").expect("a file");
    }
    std::fs::write(project.dir("project/report"), "all well").expect("a file");
    let cases: [&[&str]; 4] = [
        &["snapshot", "create"],
        &["reset", "a"],
        &["bundle", "--state-scope", "s", "save", "--prompt", "system=x"],
        &["artifact", "attach", "a", "report"],
    ];
    for arguments in cases {
        let ran = project.run(arguments);
        assert_eq!(ran.code, FAILED, "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn before_there_is_a_board_nothing_has_a_time() {
    let project = Project::new();
    for operation in ["get_status", "get_master_plan"] {
        let reply = project.json(&["call", operation]).to_string();
        assert!(!reply.contains("1970"), "{reply}");
    }
}

#[test]
fn a_board_that_is_named_is_used_from_a_directory_that_is_gone() {
    let project = Project::new();
    project.says(&["add", "first"]);
    let from_nowhere = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command
            .current_dir(project.dir("project"))
            .env("HOME", project.dir("home"))
            .env_remove("COORDINATION_DIR");
        command
            .args(["-c", "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_callboard"));
        command.args(arguments);
        Ran::of(&mut command)
    };
    let board = project.board();
    let named = from_nowhere(&["--dir", board.to_str().expect("text"), "tasks"]);
    assert_eq!(named.code, 0, "{}", named.err);
    contains(&named.out, &["first"]);
    for arguments in [["tasks"].as_slice(), &["--dir", "../.coordination", "tasks"]] {
        from_nowhere(arguments).fails(FAILED, &["is gone", "--dir /"]);
    }
}

#[test]
fn a_directory_that_everybody_shares_is_not_to_be_closed_to_them() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    let shared = project.dir("shared");
    std::fs::create_dir(&shared).expect("a directory");
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777))
        .expect("permissions");
    let ran = project.run(&["--dir", shared.to_str().expect("text"), "init", "x"]);
    ran.fails(FAILED, &["writable by everybody", "of your own with --dir"]);
    assert!(!ran.err.contains("chmod"), "{}", ran.err);
}

#[test]
fn a_closed_pipe_ends_every_command_quietly() {
    let project = many_tasks();
    let commands: [&[&str]; 8] = [
        &["tasks", "--all"],
        &["tasks", "--json"],
        &["status"],
        &["doctor"],
        &["call"],
        &["completions", "bash"],
        &["connect", "claude", "--print"],
        &["call", "get_all_tasks"],
    ];
    for arguments in commands {
        let mut child = project.command(arguments).spawn().expect("started");
        drop(child.stdout.take());
        let ran = Ran::from(child.wait_with_output().expect("ended"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}");
    }
}

#[test]
fn exit_codes_do_not_ask_who_reads() {
    let project = Project::with_tasks(&json!([{"description": "a", "context_files": ["f"]}]));
    project.says(&["--agent", "ada", "claim"]);
    let commands: [&[&str]; 6] = [
        &["--agent", "bob", "guard", "f"],
        &["--agent", "bob", "--json", "guard", "f"],
        &["--agent", "bob", "claim"],
        &["--agent", "bob", "call", "claim_task"],
        &["checkpoint", "show", "nope"],
        &["bundle", "load"],
    ];
    for arguments in commands {
        let closed = || {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            Stdio::from(writer)
        };
        assert_eq!(project.run(arguments).code, REFUSED, "{arguments:?}");
        assert_eq!(
            Ran::of(project.command(arguments).stdout(closed())).code,
            REFUSED,
            "{arguments:?}"
        );
        let unread = Ran::of(project.command(arguments).stdout(closed()).stderr(closed()));
        assert_eq!(unread.code, REFUSED, "{arguments:?}");
    }
}

#[test]
fn what_agents_write_cannot_steer_a_terminal() {
    let evil = "\u{1b}[2J\u{9b}31m\u{202e}cod\u{7}\rx";
    let project = Project::new();
    project.says(&["add", evil, "--id", "a", "--title", evil, "--hint", evil, "--tag", evil]);
    project.says(&["--agent", "w", "claim"]);
    project.says(&["--agent", "w", "heartbeat", "--note", evil]);
    let refused =
        project.run(&["call", "cancel_task", &json!({"task_id": "a", evil: 1}).to_string()]);
    refused.fails(REFUSED, &["it takes"]);
    project.says(&["pause", "--reason", evil]);
    let mut printed = vec![refused.err];
    for arguments in [&["tasks"][..], &["show", "a"], &["status"], &["agents"], &["doctor"]] {
        printed.push(project.says(arguments));
        printed.push(project.says(&[arguments, &["--json"]].concat()));
    }
    printed.push(project.run(&["--agent", "w", "claim"]).out);
    project.says(&["--agent", "w", "complete", "a", evil]);
    printed.push(project.says(&["show", "a"]));
    for text in printed {
        let obeyed = text.chars().find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
        assert_eq!(obeyed, None, "{text:?}");
    }
    assert_eq!(
        project.json(&["show", "a"])["task"]["description"],
        "\u{fffd}31m\u{fffd}cod\u{fffd}\nx"
    );
}

/// Escape sequences that set colours.
fn colours(text: &str) -> Vec<&str> {
    text.split('\u{1b}').skip(1).filter_map(|from| Some(from.split_once('m')?.0)).collect()
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let project = Project::with_tasks(&json!([{"description": "a"}]));
    for arguments in [&["tasks"][..], &["doctor"]] {
        assert!(!project.says(arguments).contains('\u{1b}'));
        let coloured = project.says(&[arguments, &["--color", "always"]].concat());
        assert!(!colours(&coloured).is_empty());
        assert!(!project.says(&[arguments, &["--color", "never"]].concat()).contains('\u{1b}'));
        let wanted = Ran::of(
            project.command(&[arguments, &["--color", "always"]].concat()).env("NO_COLOR", "1"),
        );
        assert_eq!(colours(&wanted.out), colours(&coloured));
    }
    for arguments in [
        &["--help"][..],
        &["tasks", "--help"],
        &["tasks", "--nope"],
        &["history", "--since", "nonsense"],
    ] {
        for (when, is_coloured) in [("always", true), ("never", false), ("auto", false)] {
            let ran = project.run(&[&["--color", when], arguments].concat());
            assert_eq!(
                (ran.out + &ran.err).contains('\u{1b}'),
                is_coloured,
                "{when}: {arguments:?}"
            );
        }
    }
}

/// Modification time and content of every file of the board.
fn files(dir: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let metadata = entry.metadata().expect("metadata");
        if metadata.is_dir() {
            files.append(&mut self::files(&entry.path()));
        } else {
            let content = std::fs::read(entry.path()).expect("read");
            files.insert(entry.path(), (metadata.modified().expect("a time"), content));
        }
    }
    files
}

fn verdict<'a>(report: &'a Value, name: &str) -> &'a str {
    let checks = report["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == name);
    check
        .and_then(|check| check["verdict"].as_str())
        .unwrap_or_else(|| panic!("no {name} in {report}"))
}

#[test]
fn the_doctor_changes_nothing() {
    let project = Project::with_tasks(&json!([{"description": "a"}]));
    let before = files(&project.board());
    let report = project.json(&["doctor"]);
    assert_eq!(files(&project.board()), before);
    assert_eq!(report["healthy"], true);
    for name in [
        "place",
        "directory",
        "config.toml",
        "lock",
        "journal",
        "replay",
        "clock",
        "mcp-state.json",
        "versions",
    ] {
        assert_eq!(verdict(&report, name), "ok", "{report}");
    }
}

#[test]
fn the_doctor_finds_a_damaged_journal() {
    let project = Project::with_tasks(&json!([{"description": "a"}]));
    for suffix in ["-wal", "-shm"] {
        drop(std::fs::remove_file(project.board().join(format!("journal.db{suffix}"))));
    }
    std::fs::write(project.board().join("journal.db"), vec![b'x'; 10_000]).expect("written");
    let ran = project.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (ran.code, verdict(&report, "journal"), verdict(&report, "mcp-state.json")),
        (FAILED, "fail", "ok")
    );
    contains(&project.run(&["status"]).err, &["up to event 2 is safe", "journal.db.quarantined-1"]);
    assert_eq!(verdict(&project.json(&["doctor"]), "journal"), "ok");
}

#[test]
fn the_doctor_warns_of_what_mends_itself() {
    let project = Project::with_tasks(&json!([{"description": "a"}]));
    let state = project.board().join("mcp-state.json");
    std::fs::write(&state, "{}").expect("written");
    std::fs::write(project.board().join(".mcp-state.json.tmp"), "").expect("written");
    let report = project.json(&["doctor"]);
    assert_eq!(
        (verdict(&report, "mcp-state.json"), verdict(&report, "leftovers")),
        ("warn", "warn")
    );
    std::fs::remove_file(&state).expect("removed");
    assert_eq!(verdict(&project.json(&["doctor"]), "mcp-state.json"), "warn");
}

#[test]
fn the_doctor_refuses_what_others_can_write_and_bad_configuration() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::with_tasks(&json!([{"description": "a"}]));
    std::fs::write(project.board().join("config.toml"), "[policy]\nlease_hours = 1\n")
        .expect("written");
    let ran = project.run(&["doctor"]);
    assert_eq!(ran.code, FAILED);
    contains(&ran.out, &["fail config.toml", "lease_hours"]);
    std::fs::set_permissions(project.board(), std::fs::Permissions::from_mode(0o777))
        .expect("changed");
    contains(&project.run(&["doctor"]).out, &["fail directory: mode 777", "chmod 700"]);
}

#[test]
fn the_doctor_names_a_held_lock() {
    let project = Project::with_tasks(&json!([{"description": "a"}]));
    let lock = std::fs::File::open(project.board().join("lock")).expect("opened");
    lock.lock().expect("locked");
    let ran = project.run(&["doctor"]);
    assert_eq!(ran.code, FAILED);
    // Not the one that signed it last.
    contains(&ran.out, &[&format!("fail lock: held by process {} for 5 s", std::process::id())]);
}

#[test]
fn paths_are_kept_relative_to_the_worktree() {
    let project = Project::new();
    for dir in ["project/.git/objects", "project/.git/refs", "project/src"] {
        std::fs::create_dir_all(project.dir(dir)).expect("a directory");
    }
    std::fs::write(project.dir("project/.git/HEAD"), "ref: refs/heads/main\n").expect("written");
    let arguments =
        ["add", "x", "--id", "a", "--file", "lib.rs", "--file", "../README.md", "--file", "*.rs"];
    let ran = Ran::of(project.command(&arguments).current_dir(project.dir("project/src")));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let files = &project.json(&["show", "a"])["task"]["context"]["files"];
    assert_eq!(files, &json!(["src/lib.rs", "README.md", "src/*.rs"]));
    let outside = ["add", "x", "--file", "lib.rs", "--file", "../../x"];
    let ran = Ran::of(project.command(&outside).current_dir(project.dir("project/src")));
    assert!(
        ran.code == 1 && ran.err.contains("context_files[1] `../../x` leaves the project"),
        "{}",
        ran.err
    );
}

#[test]
fn outside_of_git_paths_are_kept_relative_to_what_the_board_lies_in() {
    let project = Project::new();
    project.says(&["init", "ship it"]);
    let below = project.dir("project/src");
    std::fs::create_dir(&below).expect("a directory");
    let run = |arguments: &[&str]| Ran::of(project.command(arguments).current_dir(&below));
    let whole = std::fs::canonicalize(&below).expect("canonical").join("whole");
    let arguments = [
        "add",
        "x",
        "--id",
        "a",
        "--file",
        "f",
        "--file",
        "../g",
        "--file",
        whole.to_str().expect("UTF-8"),
    ];
    assert_eq!(run(&arguments).code, 0);
    assert_eq!(
        project.json(&["show", "a"])["task"]["context"]["files"],
        json!(["src/f", "g", "src/whole"])
    );
    assert_eq!(run(&["--agent", "ada", "claim", "a"]).code, 0);
    let guard = |file: &str| run(&["--agent", "bob", "guard", file]).code;
    assert_eq!((guard("f"), guard("../g"), guard("../f")), (REFUSED, REFUSED, 0));
    assert_eq!(run(&["--agent", "ada", "complete", "a", "done", "--created", "new"]).code, 0);
    assert_eq!(project.json(&["show", "a"])["task"]["result"]["files_created"], json!(["src/new"]));
}

#[test]
fn commands_about_what_is_there_make_no_board() {
    let project = Project::new();
    let commands: [&[&str]; 12] = [
        &["messages"],
        &["claim"],
        &["complete", "x", "y"],
        &["fail", "x", "y"],
        &["start", "x"],
        &["release", "x"],
        &["retry", "x"],
        &["cancel", "x"],
        &["heartbeat"],
        &["pause"],
        &["reset", "x"],
        &["call", "reserve_files", r#"{"files": ["a.rs"]}"#],
    ];
    for arguments in commands {
        let ran = project.run(&[&["--agent", "w"], arguments].concat());
        ran.fails(FAILED, &["no board in", "make one with `callboard", "init GOAL`"]);
        assert!(!project.board().exists(), "{arguments:?}");
    }
    project.says(&["call", "register_agent", r#"{"agent_id": "w", "role": "worker"}"#]);
    project.says(&["--agent", "w", "messages"]);
}

#[test]
fn no_board_is_made_among_the_files_of_a_project() {
    let project = Project::new();
    std::fs::create_dir(project.dir("project/.git")).expect("a directory");
    for name in ["README.md", "config.toml", ".gitignore"] {
        std::fs::write(project.dir("project").join(name), "# theirs\n").expect("written");
    }
    let before = files(&project.dir("project"));
    let commands: [&[&str]; 5] = [
        &["init", "ship it"],
        &["add", "x"],
        &["token", "add"],
        &["serve"],
        &["work", "--agents", "1", "--", "true"],
    ];
    for arguments in commands {
        let ran = project.run(&[&["--dir", "."], arguments].concat());
        ran.fails(FAILED, &["did you mean", "/project/.coordination?"]);
        assert_eq!(files(&project.dir("project")), before, "{arguments:?}");
    }
    let by_variable = Ran::of(project.command(&["add", "x"]).env("COORDINATION_DIR", "."));
    by_variable.fails(FAILED, &["holds other files and no board"]);
    contains(&project.run(&["--dir", ".", "doctor"]).out, &["fail directory", "did you mean"]);
    assert_eq!(files(&project.dir("project")), before);
}

#[test]
fn what_stands_for_nobodys_work_is_no_project() {
    let project = Project::new();
    let dir = project.dir("project/kept");
    std::fs::create_dir(&dir).expect("a directory");
    for name in [".gitkeep", ".DS_Store"] {
        std::fs::write(dir.join(name), "").expect("written");
    }
    project.run(&["--dir", "kept", "add", "x"]);
    assert!(dir.join("mcp-state.json").exists());
}

#[test]
fn a_board_is_made_in_an_empty_directory_and_where_anything_of_a_board_is() {
    let project = Project::new();
    for left in [
        "",
        "config.toml",
        "lock",
        ".gitignore",
        "bundles/s/b.json",
        "snapshots/x",
        "journal.db.quarantined-1",
    ] {
        let dir = tempfile::tempdir_in(project.dir("project")).expect("a directory");
        let file = dir.path().join(left);
        if !left.is_empty() {
            std::fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
            std::fs::write(file, "").expect("written");
        }
        let ran = project.run(&["--dir", dir.path().to_str().expect("UTF-8"), "add", "x"]);
        assert!(!ran.err.contains("other files"), "{left}: {}", ran.err);
        assert!(dir.path().join("lock").exists(), "{left}: {}", ran.err);
    }
    // A directory with this name is a board's, whatever else is in it.
    std::fs::DirBuilder::new().mode(0o700).create(project.board()).expect("a directory");
    std::fs::write(project.board().join("notes.md"), "").expect("written");
    project.says(&["add", "x"]);
    std::fs::write(project.dir("project/.coordination/notes.md"), "more").expect("written");
    std::fs::rename(project.board(), project.dir("project/board")).expect("renamed");
    project.says(&["--dir", "board", "add", "x"]);
}

#[test]
fn five_worktrees_share_the_board_of_the_main_one() {
    let project = Project::new();
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=n", "-c", "user.email=e@example.org", "-C"])
            .arg(project.dir("project"));
        git.args(arguments)
            .env("HOME", project.dir("home"))
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !git(&["init", "--quiet"]) {
        println!("skipped: git is not installed");
        return;
    }
    assert!(git(&["commit", "--quiet", "--allow-empty", "--message", "begin"]));
    for name in ["w1", "w2", "w3", "w4", "w5"] {
        assert!(git(&["worktree", "add", "--quiet", &format!("../{name}")]), "{name}");
        let add = ["add", "x", "--id", name];
        let ran = Ran::of(project.command(&add).current_dir(project.dir(name)));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let claim = ["--agent", name, "claim", name];
        let ran = Ran::of(project.command(&claim).current_dir(project.dir(name)));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(!project.dir(name).join(".coordination").exists());
        let attempt = project.json(&["show", name])["task"]["attempts"][0].take();
        assert_eq!(attempt["branch"], name, "{attempt}");
    }
    assert_eq!(project.json(&["tasks"])["tasks"].as_array().map(Vec::len), Some(5));
}

#[test]
fn an_empty_variable_is_not_set() {
    let project = Project::new();
    let with = |variables: &[&str], arguments: &[&str]| {
        let mut command = project.command(arguments);
        variables.iter().for_each(|name| _ = command.env(name, ""));
        let ran = Ran::of(&mut command);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}");
    };
    let homes = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"];
    for client in ["claude", "codex", "zed"] {
        with(&homes, &["connect", client]);
    }
    with(&homes, &["connect", "codex", "--global"]);
    assert!(project.dir("home/.codex/config.toml").is_file());
    with(
        &["CALLBOARD_TASK_ID", "CALLBOARD_ATTEMPT"],
        &["checkpoint", "save", "w", "--phase", "one"],
    );
    with(&["CALLBOARD_ALLOW_NETWORK_FILESYSTEM"], &["status"]);
}

#[test]
fn programs_are_told_in_json_what_is_wrong_with_their_command_line() {
    let project = Project::with_tasks(&json!([{"description": "a"}]));
    let wrong: [(&[&str], &str); 8] = [
        (&["state", "--at", "foo"], "--at takes an event's number, a time (2026-03-01T12:00"),
        (&["call", "--schema", "nope"], "there is no operation `nope`"),
        (&["add", "--batch", "/nonexistent"], "cannot read /nonexistent: "),
        (&["plan", "import", "/dev/null"], ""),
        (&["tasks", "--nope"], "`callboard tasks` has no option --nope; "),
        (&["tusks"], "there is no command `tusks`; did you mean `callboard"),
        (&["show"], "TASK is missing: `callboard show"),
        (&["history", "--limit", "x"], "--limit takes a whole number of at least 1, not x"),
    ];
    for (arguments, message) in wrong {
        let ran = project.run(&[arguments, &["--json"]].concat());
        let told: Value =
            serde_json::from_str(&ran.err).unwrap_or_else(|_| panic!("{arguments:?}: {}", ran.err));
        assert_eq!((ran.code, &told["error"]["code"]), (USAGE, &json!("usage")), "{arguments:?}");
        let said = told["error"]["message"].as_str().expect("a message");
        assert!(said.starts_with(message) && !said.contains("Usage"), "{arguments:?}: {said}");
        let plain = project.run(arguments);
        assert_eq!(plain.code, USAGE, "{arguments:?}");
        assert!(
            plain.err.contains(message) && !plain.err.contains("Usage"),
            "{arguments:?}: {}",
            plain.err
        );
    }
    assert!(project.json(&["plan"])["plans"].is_array(), "alone it is the list");
    assert!(project.says(&["--json", "--help"]).contains("Usage"));
    assert_eq!(project.json(&[])["total_tasks"], 1, "alone it is the status");
}

#[test]
fn completions_know_the_commands() {
    let project = Project::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = project.says(&["completions", shell]);
        contains(&script, &["callboard", "claim", "permanent"]);
        assert!(!script.contains("supervise"), "{shell} offers what the help does not show");
    }
}

#[test]
fn what_is_cancelled_or_released_is_told_as_it_is() {
    let project = Project::new();
    project.says(&["init", "g"]);
    std::fs::write(project.dir("project/plan.md"), "## P1: A\n\n- [x] a\n- [ ] b\n")
        .expect("written");
    project.says(&["plan", "import", "plan.md"]);
    let tasks: Value =
        serde_json::from_str(&project.says(&["--json", "tasks", "--scope", "P1"])).expect("JSON");
    let parent = tasks["tasks"][0]["id"].as_str().expect("an id").to_owned();
    let told = project.says(&["cancel", &parent]);
    assert_eq!(told, "cancelled #3 b\n");
    project.run(&["cancel", &parent]).fails(REFUSED, &["no task at or below", "is open"]);
    contains(&project.says(&["explain", "P1"]), &["it is done"]);

    project.says(&["add", "s", "--id", "s"]);
    project.says(&["--agent", "w", "call", "register_agent", r#"{"role": "worker"}"#]);
    project.says(&["--agent", "w", "claim", "s"]);
    project.says(&["cancel", "s", "--ask-owner"]);
    assert_eq!(project.says(&["--agent", "w", "release", "s"]), "cancelled #4 s\n");
}

#[test]
fn names_in_tables_stay_whole() {
    let project = Project::new();
    project.says(&["init", "g"]);
    let scope = "s".repeat(120);
    project.says(&["bundle", "--state-scope", &scope, "save", "--prompt", "a=b"]);
    contains(&project.says(&["bundle", "list"]), &[&scope]);
}

#[test]
fn the_server_ends_with_its_input() {
    let project = Project::new();
    assert_eq!(project.run(&["mcp", "--agent", "auto"]).code, 0);
}

#[test]
fn estimates_and_actual_durations_are_shown() {
    let project = Project::new();
    project.says(&["add", "Write it", "--id", "t", "--estimate", "125"]);
    project.says(&["add", "Test it", "--id", "u"]);
    let status = project.says(&["status", "--all"]);
    assert!(status.contains("left: 2 h 5 min in 1 estimated tasks"), "{status}");
    let task = project.says(&["show", "t"]);
    assert!(task.contains("estimate: 2 h 5 min") && !task.contains("actual:"), "{task}");
    project.says(&["--agent", "w", "claim", "t"]);
    project.says(&["--agent", "w", "complete", "t", "done"]);
    let task = project.says(&["show", "t"]);
    assert!(task.contains("actual: 0 min"), "{task}");
}
