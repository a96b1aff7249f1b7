//! Agents in worktrees: where their work is recorded, and how others bring it in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{register, session_in};
use crate::harness::{Board, Client};

/// A repository with a commit on `main`, beside the board.
struct Project {
    board: Board,
    main: PathBuf,
}

impl Project {
    fn new() -> Self {
        let board = Board::new();
        let main = board.base().join("shop");
        fs::create_dir(&main).unwrap();
        let main = fs::canonicalize(main).unwrap();
        git(&main, &["init", "--quiet", "--initial-branch=main"]);
        commit(&main, "shared.txt", "one\n");
        Self { board, main }
    }

    /// A linked worktree on a branch of its own.
    fn linked(&self, name: &str) -> PathBuf {
        let path = self.main.with_file_name(name);
        git(&self.main, &["worktree", "add", "--quiet", "-b", name, path.to_str().unwrap()]);
        path
    }

    fn session(&self, directory: &Path) -> Client {
        session_in(&self.board, directory)
    }

    fn task(&self, id: &str, dependencies: &[&str]) {
        let task = json!({"id": id, "description": "d", "dependencies": dependencies});
        self.board.cli_ok("create_task", task);
    }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(arguments);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn commit(directory: &Path, file: &str, text: &str) -> String {
    fs::write(directory.join(file), text).unwrap();
    git(directory, &["add", "."]);
    git(directory, &["commit", "--quiet", "-m", file]);
    git(directory, &["rev-parse", "HEAD"])
}

fn complete(client: &mut Client, agent: &Value, task: &str, file: &str) -> Value {
    let done = json!({"agent_id": agent, "task_id": task, "output": "o", "files_created": [file]});
    client.ok("complete_task", done)
}

#[test]
fn branch_and_commit_are_those_of_the_moment() {
    let project = Project::new();
    project.task("a", &[]);
    project.task("b", &[]);
    let mut session = project.session(&project.main);
    let agent = register(&mut session)["agent_id"].clone();
    assert_eq!(agent, "claude-1", "the main worktree needs no name");
    session.ok("claim_task", json!({}));
    let first = git(&project.main, &["rev-parse", "HEAD"]);
    let attempt = project.board.task("a")["attempts"][0].clone();
    assert_eq!(
        (&attempt["branch"], &attempt["head"]),
        (&json!("main"), &json!(first)),
        "{attempt}"
    );
    git(&project.main, &["switch", "--quiet", "-c", "feature/a"]);
    let made = commit(&project.main, "a.txt", "a\n");
    let reply = complete(&mut session, &agent, "a", "a.txt");
    assert_eq!(reply["warning"], Value::Null, "{reply}");
    let result = project.board.task("a")["result"].clone();
    assert_eq!(
        (&result["branch"], &result["commit"]),
        (&json!("feature/a"), &json!(made)),
        "{result}"
    );
    session.ok("claim_task", json!({}));
    let attempt = project.board.task("b")["attempts"][0].clone();
    assert_eq!(
        (&attempt["branch"], &attempt["head"]),
        (&json!("feature/a"), &json!(made)),
        "{attempt}"
    );
    let given = json!({"task_id": "b", "output": "o", "branch": "other", "commit": "abcdef0"});
    session.ok("complete_task", given);
    let result = project.board.task("b")["result"].clone();
    assert_eq!(
        (&result["branch"], &result["commit"]),
        (&json!("other"), &json!("abcdef0")),
        "what is given holds"
    );
}

#[test]
fn a_result_whose_files_are_not_committed_names_no_commit_and_says_so() {
    let project = Project::new();
    project.task("a", &[]);
    let mut session = project.session(&project.main);
    let agent = register(&mut session)["agent_id"].clone();
    session.ok("claim_task", json!({}));
    fs::write(project.main.join("loose.txt"), "x").unwrap();
    let whole = project.main.join("loose.txt");
    let reply = complete(&mut session, &agent, "a", whole.to_str().unwrap());
    assert!(reply["warning"].as_str().unwrap().contains("not committed: loose.txt"), "{reply}");
    let result = project.board.task("a")["result"].clone();
    assert_eq!((&result["branch"], &result["commit"]), (&json!("main"), &Value::Null), "{result}");
    assert_eq!(result["files_created"], json!(["loose.txt"]));
}

#[test]
fn subagents_in_worktrees_of_their_own_are_recorded_with_them() {
    let project = Project::new();
    let (one, two) = (project.linked("wt-one"), project.linked("wt-two"));
    for task in ["a", "b", "c"] {
        project.task(task, &[]);
    }
    let mut session = project.session(&project.main);
    let registered = json!({"role": "worker", "properties": {"project_dir": one}});
    let first = session.ok("register_agent", registered)["agent_id"].clone();
    let second = register(&mut session)["agent_id"].clone();
    // As a hook of the client says it, in a process of its own.
    project.board.cli_ok("heartbeat", json!({"agent_id": second, "project_dir": two}));
    for (agent, task, worktree, branch) in
        [(&first, "a", &one, "wt-one"), (&second, "b", &two, "wt-two")]
    {
        session.ok("claim_task", json!({"agent_id": agent}));
        let attempt = project.board.task(task)["attempts"][0].clone();
        assert_eq!(
            (&attempt["worktree"], &attempt["branch"]),
            (&json!(worktree), &json!(branch)),
            "{attempt}"
        );
        let made = commit(worktree, "new.txt", task);
        complete(&mut session, agent, task, worktree.join("new.txt").to_str().unwrap());
        let result = project.board.task(task)["result"].clone();
        assert_eq!(
            (&result["branch"], &result["commit"]),
            (&json!(branch), &json!(made)),
            "{result}"
        );
        assert_eq!(result["files_created"], json!(["new.txt"]));
    }
    let elsewhere = tempfile::tempdir().unwrap();
    git(elsewhere.path(), &["init", "--quiet", "--initial-branch=foreign"]);
    session.ok("heartbeat", json!({"agent_id": first, "project_dir": elsewhere.path()}));
    session.ok("claim_task", json!({"agent_id": first}));
    assert_eq!(
        project.board.task("c")["attempts"][0]["branch"],
        "main",
        "another repository does not count"
    );
    project.board.assert_file_is_the_replay();
}

#[test]
fn a_handoff_says_what_brings_in_the_work_that_is_not_here() {
    let project = Project::new();
    let linked = project.linked("wt-claude-a");
    project.task("a", &[]);
    project.task("b", &["a"]);
    project.task("c", &["a"]);
    let mut maker = project.session(&linked);
    let made_by = register(&mut maker)["agent_id"].clone();
    assert_eq!(made_by, "claude-a-1");
    maker.ok("claim_task", json!({}));
    let made = commit(&linked, "a.txt", "a\n");
    complete(&mut maker, &made_by, "a", "a.txt");
    let same = maker.ok("claim_task", json!({}));
    let inherited = same["handoff"]["dependencies"][0].clone();
    assert_eq!((&inherited["commit"], &inherited["here"]), (&json!(made), &Value::Null), "{same}");

    let mut session = project.session(&project.main);
    let claim = session.ok("claim_task", json!({}));
    let inherited = claim["handoff"]["dependencies"][0].clone();
    assert_eq!(
        (&inherited["commit"], &inherited["here"]),
        (&json!(made), &json!(false)),
        "{claim}"
    );
    assert!(claim["handoff"].to_string().len() <= 2_000);
    let next = inherited["next"].as_str().unwrap();
    assert_eq!(next, format!("git merge {}", &made[..12]));
    let words: Vec<_> = next.split(' ').skip(1).chain(["--quiet"]).collect();
    git(&project.main, &words);
    let again = session.ok("claim_task", json!({}));
    let inherited = again["handoff"]["dependencies"][0].clone();
    assert_eq!((&inherited["here"], &inherited["next"]), (&Value::Null, &Value::Null), "{again}");
}

#[test]
fn what_is_here_is_asked_in_the_worktree_of_a_subagent_from_its_first_claim() {
    let project = Project::new();
    let linked = project.linked("sub");
    project.task("a", &[]);
    project.task("b", &["a"]);
    let mut session = project.session(&project.main);
    let parent = register(&mut session)["agent_id"].clone();
    session.ok("claim_task", json!({}));
    let made = commit(&project.main, "a.txt", "a\n");
    complete(&mut session, &parent, "a", "a.txt");
    let registered = json!({"role": "worker", "properties": {"project_dir": linked}});
    let subagent = session.ok("register_agent", registered)["agent_id"].clone();
    let claim = session.ok("claim_task", json!({"agent_id": subagent}));
    let inherited = claim["handoff"]["dependencies"][0].clone();
    let next = format!("git merge {}", &made[..12]);
    assert_eq!((&inherited["here"], &inherited["next"]), (&json!(false), &json!(next)), "{claim}");
}

#[test]
fn work_that_was_not_committed_is_found_where_it_lies() {
    let project = Project::new();
    let linked = project.linked("loose");
    project.task("a", &[]);
    project.task("b", &["a"]);
    let mut maker = project.session(&linked);
    let made_by = register(&mut maker)["agent_id"].clone();
    maker.ok("claim_task", json!({}));
    fs::write(linked.join("a.txt"), "a\n").unwrap();
    complete(&mut maker, &made_by, "a", "a.txt");
    let mut session = project.session(&project.main);
    let claim = session.ok("claim_task", json!({}));
    let inherited = claim["handoff"]["dependencies"][0].clone();
    assert_eq!(
        (&inherited["worktree"], &inherited["branch"]),
        (&json!(linked), &json!("loose")),
        "{claim}"
    );
    let made = commit(&linked, "a.txt", "a\n");
    let again = session.ok("claim_task", json!({}));
    let inherited = again["handoff"]["dependencies"][0].clone();
    let next = format!("git merge {}", &made[..12]);
    assert_eq!(
        (&inherited["here"], &inherited["next"]),
        (&json!(false), &json!(next)),
        "by its branch: {again}"
    );
}

#[test]
fn a_session_that_comes_back_hears_of_uncommitted_files() {
    let project = Project::new();
    project.task("a", &[]);
    let mut before = project.session(&project.main);
    assert_eq!(register(&mut before)["uncommitted"], Value::Null);
    before.ok("claim_task", json!({}));
    fs::write(project.main.join("half.txt"), "x").unwrap();
    before.kill();
    let back = register(&mut project.session(&project.main));
    assert_eq!(back["uncommitted"], json!({"count": 1, "files": ["half.txt"]}), "{back}");
}

#[test]
fn a_command_is_recorded_where_it_is_run_and_so_are_the_steps_of_a_batch() {
    let project = Project::new();
    let linked = project.linked("own");
    project.task("a", &[]);
    project.task("b", &[]);
    // As `callboard work` registers its agents.
    let registered =
        json!({"agent_id": "w", "role": "worker", "properties": {"project_dir": project.main}});
    project.board.cli_ok("register_agent", registered);
    let call = |tool: &str, arguments: Value| {
        let mut command = project.board.command();
        command.current_dir(&linked).args(["--agent", "w", "call", tool, &arguments.to_string()]);
        let ran = project.board.finish(&mut command);
        assert!(ran.status.success(), "{} {}", ran.stdout, ran.stderr);
    };
    let done = |task: &str| json!({"task_id": task, "output": "o", "files_created": ["new.txt"]});
    call("claim_task", json!({"task_id": "a"}));
    let made = commit(&linked, "new.txt", "x");
    call("complete_task", done("a"));
    let steps = json!([{"name": "claim_task", "arguments": {"agent_id": "w", "task_id": "b"}},
        {"name": "complete_task", "arguments": done("b")}]);
    call("apply_batch", json!({"operations": steps}));
    for task in ["a", "b"] {
        let task = project.board.task(task);
        assert_eq!(
            (&task["attempts"][0]["worktree"], &task["attempts"][0]["branch"]),
            (&json!(linked), &json!("own"))
        );
        assert_eq!(
            (&task["result"]["branch"], &task["result"]["commit"]),
            (&json!("own"), &json!(made)),
            "{task}"
        );
    }
}

#[test]
fn no_commit_is_recorded_of_work_whose_files_are_not_named_or_not_the_worktrees() {
    let project = Project::new();
    let mut session = project.session(&project.main);
    let agent = register(&mut session)["agent_id"].clone();
    for (task, files) in
        [("unnamed", json!([])), ("outside", json!(["/etc/hosts"])), ("above", json!(["../x"]))]
    {
        project.task(task, &[]);
        session.ok("claim_task", json!({"task_id": task}));
        let done =
            json!({"agent_id": agent, "task_id": task, "output": "o", "files_modified": files});
        session.ok("complete_task", done);
        let result = project.board.task(task)["result"].clone();
        assert_eq!(
            (&result["branch"], &result["commit"]),
            (&json!("main"), &Value::Null),
            "{task}: {result}"
        );
    }
}

#[test]
fn an_agent_that_need_not_be_named_works_where_it_said() {
    let project = Project::new();
    let linked = project.linked("apart");
    project.task("a", &[]);
    project.task("b", &["a"]);
    let made = commit(&project.main, "a.txt", "a\n");
    project.board.cli_ok("register_agent", json!({"agent_id": "maker", "role": "worker"}));
    project.board.cli_ok("claim_task", json!({"agent_id": "maker", "task_id": "a"}));
    let done = json!({"agent_id": "maker", "task_id": "a", "output": "o", "branch": "main", "commit": made});
    project.board.cli_ok("complete_task", done);
    let mut session = project.session(&project.main);
    session.ok("register_agent", json!({"role": "worker", "properties": {"project_dir": linked}}));
    let claim = session.ok("claim_task", json!({}));
    let inherited = claim["handoff"]["dependencies"][0].clone();
    assert_eq!(
        (&inherited["commit"], &inherited["here"]),
        (&json!(made), &json!(false)),
        "{claim}"
    );
    assert_eq!(project.board.task("b")["attempts"][0]["branch"], "apart");
}

#[test]
fn a_branch_with_a_long_name_is_found() {
    let project = Project::new();
    let branch = format!("feature/{}", "long-".repeat(15));
    let linked = project.linked("loose");
    git(&linked, &["branch", "--quiet", "-m", &branch]);
    project.task("a", &[]);
    project.task("b", &["a"]);
    let made = commit(&linked, "a.txt", "a\n");
    let mut maker = project.session(&linked);
    let made_by = register(&mut maker)["agent_id"].clone();
    maker.ok("claim_task", json!({}));
    maker.ok("complete_task", json!({"agent_id": made_by, "task_id": "a", "output": "o"}));
    let claim = project.session(&project.main).ok("claim_task", json!({}));
    let inherited = claim["handoff"]["dependencies"][0].clone();
    let next = format!("git merge {}", &made[..12]);
    assert_eq!(
        (&inherited["branch"], &inherited["next"]),
        (&json!(branch), &json!(next)),
        "{claim}"
    );
}

#[test]
fn git_is_not_run_while_the_board_is_locked() {
    let project = Project::new();
    let migrate =
        ["-C", project.main.to_str().unwrap(), "refs", "migrate", "--ref-format=reftable"];
    let is_there = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|ran| ran.status.success())
    };
    if !is_there("flock", &["--version"]) || !is_there("git", &migrate) {
        println!("skipped: no flock, or this git has no tables of references");
        return;
    }
    let linked = project.linked("apart");
    project.task("a", &[]);
    let (programs, locked) =
        (project.board.base().join("programs"), project.board.base().join("locked"));
    fs::create_dir(&programs).unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\nflock --nonblock '{}' true || touch '{}'\nPATH='{path}' exec git \"$@\"\n",
        project.board.file("lock").display(),
        locked.display()
    );
    fs::write(programs.join("git"), script).unwrap();
    fs::set_permissions(programs.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = project.board.command();
    command
        .args(["mcp"])
        .current_dir(&project.main)
        .env("PATH", format!("{}:{path}", programs.display()));
    let mut session = Client::start(&mut command);
    session.ok(
        "register_agent",
        json!({"agent_id": "w", "role": "worker", "properties": {"project_dir": linked}}),
    );
    session.ok("claim_task", json!({"agent_id": "w"}));
    assert_eq!(project.board.task("a")["attempts"][0]["branch"], "apart");
    assert!(!locked.exists(), "other processes wait for git");
}
