//! Where the board is: in repositories and their worktrees, and never where programs keep what is
//! theirs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::Client;

/// A home directory, and projects beside it.
struct Disk(TempDir);

impl Disk {
    fn with(dirs: &[&str]) -> Self {
        let disk = Self(tempfile::tempdir().unwrap());
        dirs.iter().chain(&["home"]).for_each(|dir| fs::create_dir_all(disk.at(dir)).unwrap());
        disk
    }

    fn at(&self, dir: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join(dir)
    }

    fn git(&self, dir: &str, arguments: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=n", "-c", "user.email=e@example.org", "-C"])
            .arg(self.at(dir))
            .args(arguments);
        git.env("HOME", self.at("home")).output().is_ok_and(|output| output.status.success())
    }

    /// A repository at `project`, with a commit and a linked worktree at `worktree`.
    fn linked(&self) -> bool {
        self.git("project", &["init", "--quiet", "--initial-branch", "main"])
            && self.git("project", &["commit", "--quiet", "--allow-empty", "--message", "begin"])
            && self.git("project", &["worktree", "add", "--quiet", "../worktree"])
    }

    fn command(&self, cwd: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
        for name in [
            "COORDINATION_DIR",
            "WORKSPACE_FOLDER_PATHS",
            "CLAUDE_PROJECT_DIR",
            "PLUGIN_ROOT",
            "CLAUDE_PLUGIN_ROOT",
        ] {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(cwd).env("HOME", self.at("home")).stdin(Stdio::null());
        command
    }

    fn run(&self, cwd: &str, arguments: &[&str]) -> (i32, String) {
        told(&self.command(self.at(cwd), arguments).output().unwrap())
    }

    /// Everything below `dir` but git's own files.
    fn files(&self, dir: &str) -> Vec<PathBuf> {
        let mut dirs = vec![self.at(dir)];
        let mut found = Vec::new();
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.ends_with(".git") {
                    dirs.push(path.clone());
                }
                found.push(path);
            }
        }
        found.sort();
        found
    }

    /// The reply to the first writing call of a client that started the server in `cwd`.
    fn first_write(
        &self,
        cwd: &str,
        environment: &[(&str, &Path)],
        tool: &str,
        arguments: Value,
    ) -> Result<Value, String> {
        let mut command = self.command(self.at(cwd), &["mcp"]);
        let mut client = Client::start(command.envs(environment.iter().copied()));
        let reply = client.call(tool, arguments);
        if reply.is_error { Err(reply.text) } else { Ok(reply.value) }
    }

    fn registers(&self, cwd: &str, environment: &[(&str, &Path)]) -> Result<Value, String> {
        self.first_write(
            cwd,
            environment,
            "register_agent",
            json!({"agent_id": "a", "role": "worker"}),
        )
    }
}

fn told(output: &Output) -> (i32, String) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_plugins_server_makes_no_board_in_a_cache_or_at_home_and_finds_that_of_a_worktree() {
    let cache = "home/.codex/plugins/cache/callboard";
    let disk = Disk::with(&[cache, "home/.cache/p", "bundle/bin", "project"]);
    assert!(disk.git("bundle", &["init", "--quiet"]), "git is needed");
    assert!(disk.linked());
    let home = disk.files("home");
    let plugin = [("CLAUDE_PLUGIN_ROOT", disk.at("bundle"))];
    let plugin: Vec<_> = plugin.iter().map(|(name, path)| (*name, path.as_path())).collect();
    for (cwd, environment) in
        [(cache, &[][..]), ("home/.cache/p", &[]), ("home", &[]), ("bundle/bin", &plugin)]
    {
        let refusal = disk.registers(cwd, environment).unwrap_err();
        assert!(
            refusal.contains("--dir PROJECT/.coordination") && refusal.contains("COORDINATION_DIR"),
            "{cwd}: {refusal}"
        );
        let asked = disk.first_write(cwd, environment, "init_coordination", json!({"goal": "g"}));
        assert!(asked.is_err(), "not even when asked: {cwd}");
    }
    assert_eq!(disk.files("home"), home, "nothing was left behind");
    disk.registers("worktree", &[]).unwrap();
    assert!(
        disk.at("project/.coordination/mcp-state.json").exists()
            && !disk.at("worktree/.coordination").exists()
    );
}

#[test]
fn a_clients_server_makes_a_board_by_the_way_only_where_a_project_is() {
    let disk = Disk::with(&["loose", "named", "asked"]);
    let refusal = disk.registers("loose", &[]).unwrap_err();
    assert!(refusal.contains("init_coordination") && refusal.contains("--dir"), "{refusal}");
    assert!(disk.files("loose").is_empty());
    let named = disk.at("named");
    disk.registers("loose", &[("CLAUDE_PROJECT_DIR", &named)]).unwrap();
    assert!(disk.at("named/.coordination").is_dir() && disk.files("loose").is_empty());
    disk.first_write("asked", &[], "init_coordination", json!({"goal": "g"})).unwrap();
    disk.registers("asked", &[]).unwrap();
    let home = disk.at("home");
    disk.registers("loose", &[("CLAUDE_PROJECT_DIR", &home)]).unwrap_err();
    assert!(!disk.at("home/.coordination").exists(), "never at home");
}

#[test]
fn the_search_stops_at_the_root_of_the_repository_for_every_command() {
    let disk = Disk::with(&["outer/inner/src"]);
    assert_eq!(disk.run("outer", &["init", "outer"]).0, 0);
    assert!(disk.git("outer/inner", &["init", "--quiet"]), "git is needed");
    let (code, text) = disk.run("outer/inner/src", &["--agent", "a", "claim"]);
    assert!(code == 3 && text.contains("outer/inner/.coordination"), "{text}");
    let (code, text) = disk.run("outer/inner/src", &["add", "x"]);
    assert!(
        code == 0
            && text.contains("made a new board in")
            && text.contains("outer/inner/.coordination"),
        "{text}"
    );
    let (code, text) = disk.run("outer/inner/src", &["add", "y"]);
    assert!(code == 0 && !text.contains("made"), "{text}");
}

#[test]
fn every_command_that_makes_a_board_says_so() {
    for arguments in [
        &["call", "create_task", "{\"description\": \"d\"}"][..],
        &["work", "--max-duration", "0", "--", "true"],
    ] {
        let disk = Disk::with(&["project"]);
        assert!(disk.git("project", &["init", "--quiet"]), "git is needed");
        let (code, text) = disk.run("project", arguments);
        assert!(code == 0 && text.contains("made a new board in"), "{arguments:?}: {code} {text}");
        let (code, text) = disk.run("project", arguments);
        assert!(code == 0 && !text.contains("made a new board"), "{arguments:?}: {code} {text}");
    }
}

#[test]
fn a_server_that_is_started_anywhere_works_in_the_project_that_its_client_names() {
    let disk = Disk::with(&["project"]);
    assert!(
        disk.git("project", &["init", "--quiet", "--initial-branch", "feat/x"]),
        "git is needed"
    );
    assert!(disk.git("project", &["commit", "--quiet", "--allow-empty", "--message", "begin"]));
    let mut command = disk.command(disk.at("home"), &["mcp"]);
    let mut client = Client::start(command.env("CLAUDE_PROJECT_DIR", disk.at("project")));
    client.ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    let file = disk.at("project").join("src/a.rs");
    client.ok("create_task", json!({"id": "t", "description": "d", "context_files": [file]}));
    client.ok("claim_task", json!({"agent_id": "a"}));
    let task = client.ok("get_task", json!({"task_id": "t"}))["task"].clone();
    assert_eq!(
        (&task["attempts"][0]["branch"], &task["context"]["files"]),
        (&json!("feat/x"), &json!(["src/a.rs"]))
    );
}

#[test]
fn every_command_refuses_in_a_worktree_whose_link_is_broken() {
    let disk = Disk::with(&["project"]);
    assert!(disk.linked(), "git is needed");
    assert_eq!(disk.run("project", &["init", "g"]).0, 0);
    let refuses = |cwd: &str| {
        let commands: [&[&str]; 9] = [
            &["init", "g"],
            &["add", "x"],
            &["tasks"],
            &["status"],
            &["--agent", "a", "claim"],
            &["work", "--", "true"],
            &["serve"],
            &["doctor"],
            &["state"],
        ];
        for arguments in commands {
            let (code, text) = disk.run(cwd, arguments);
            assert!(
                code != 0 && text.contains("git worktree repair"),
                "{cwd} {arguments:?}: {text}"
            );
            assert!(!text.contains("callboard init"), "{cwd} {arguments:?}: {text}");
        }
        let refusal = disk.registers(cwd, &[]).unwrap_err();
        assert!(refusal.contains("git worktree repair"), "{refusal}");
        assert!(!disk.at(cwd).join(".coordination").exists());
    };
    fs::rename(disk.at("worktree"), disk.at("moved")).unwrap();
    refuses("moved");
    fs::rename(disk.at("moved"), disk.at("worktree")).unwrap();
    assert_eq!(disk.run("worktree", &["tasks"]).0, 0);
    fs::rename(disk.at("project"), disk.at("elsewhere")).unwrap();
    refuses("worktree");
    assert!(disk.git("elsewhere", &["worktree", "repair", "../worktree"]));
    assert_eq!(disk.run("worktree", &["tasks"]).0, 0, "repaired as the message said");
    fs::remove_dir_all(disk.at("elsewhere/.git/worktrees/worktree")).unwrap();
    refuses("worktree");
}

#[test]
fn branch_and_commit_are_known_where_references_are_in_tables() {
    let disk = Disk::with(&["project"]);
    if !disk
        .git("project", &["init", "--quiet", "--ref-format=reftable", "--initial-branch", "feat/x"])
    {
        println!("skipped: this git has no tables of references");
        return;
    }
    assert!(disk.git("project", &["commit", "--quiet", "--allow-empty", "--message", "begin"]));
    assert_eq!(disk.run("project", &["add", "x", "--id", "t"]).0, 0);
    assert_eq!(disk.run("project", &["--agent", "a", "claim", "t"]).0, 0);
    let shown = disk.run("project", &["--json", "show", "t"]).1;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let attempt = &shown["task"]["attempts"][0];
    assert_eq!(attempt["branch"], "feat/x", "{attempt}");
    assert_eq!(attempt["head"].as_str().map(str::len), Some(40), "{attempt}");
}

#[test]
fn a_path_that_cannot_be_kept_is_refused_and_leaves_nothing() {
    let disk = Disk::with(&["deep"]);
    let mut long = disk.at("deep");
    while long.as_os_str().len() < 470 {
        long.push("d".repeat(50));
    }
    for (dir, why) in [(long, "470")] {
        fs::create_dir_all(&dir).unwrap();
        for arguments in [&["init", "g"][..], &["add", "x"], &["serve"], &["work", "--", "true"]] {
            let (code, text) = told(&disk.command(&dir, arguments).output().unwrap());
            assert!(
                code == 3 && text.contains(why) && text.contains("--dir"),
                "{arguments:?}: {code} {text}"
            );
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "{arguments:?}");
        }
    }
}

#[test]
fn a_path_that_is_no_text_has_one_board_and_is_not_named() {
    let disk = Disk::with(&[]);
    let strange = disk.at("").join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&strange).unwrap();
    for arguments in [["add", "x"], ["add", "y"]] {
        assert_eq!(told(&disk.command(&strange, &arguments).output().unwrap()).0, 0);
    }
    let shown = told(&disk.command(&strange, &["--json", "tasks"]).output().unwrap()).1;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["tasks"].as_array().map(Vec::len), Some(2));
    let mut named = disk.command(disk.at("home"), &["add", "z"]);
    let (code, text) =
        told(&named.env("COORDINATION_DIR", strange.join(".coordination")).output().unwrap());
    assert!(code == 3 && text.contains("UTF-8"), "{code} {text}");
}

#[test]
fn another_goal_is_meant_while_agents_work_for_the_present_one() {
    let disk = Disk::with(&["project"]);
    assert!(disk.git("project", &["init", "--quiet"]), "git is needed");
    let mut client = Client::start(&mut disk.command(disk.at("project"), &["mcp"]));
    client.ok("init_coordination", json!({"goal": "one"}));
    client.ok("init_coordination", json!({"goal": "two"}));
    client.ok("create_task", json!({"description": "x"}));
    client.ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    client.ok("claim_task", json!({"agent_id": "a"}));
    client.ok("init_coordination", json!({"goal": "two", "master_plan": "more"}));
    let refused = client.call("init_coordination", json!({"goal": "three"}));
    assert_eq!(refused.code(), "other_goal", "{refused:?}");
    assert!(
        refused.text.contains("`two`") && refused.text.contains("replace_goal: true"),
        "{}",
        refused.text
    );
    client.ok("init_coordination", json!({"goal": "three", "replace_goal": true}));
}

#[test]
fn worktrees_of_a_repository_whose_git_directory_is_elsewhere_share_a_board() {
    let disk = Disk::with(&["project", "repositories"]);
    let separate = disk.at("repositories/project.git");
    let separate = separate.to_str().unwrap();
    let init = ["init", "--quiet", "--initial-branch", "main", "--separate-git-dir", separate];
    assert!(disk.git("project", &init), "git is needed");
    assert!(disk.git("project", &["commit", "--quiet", "--allow-empty", "--message", "begin"]));
    assert!(disk.git("project", &["worktree", "add", "--quiet", "../worktree"]));
    for (cwd, id) in [("project", "main"), ("worktree", "linked")] {
        assert_eq!(disk.run(cwd, &["add", "x", "--id", id]).0, 0);
    }
    for cwd in ["project", "worktree"] {
        let (code, tasks) = disk.run(cwd, &["--json", "tasks"]);
        assert!(code == 0 && tasks.contains("main") && tasks.contains("linked"), "{cwd}: {tasks}");
    }
}

#[test]
fn a_new_boards_own_file_is_not_offered_for_import() {
    let disk = Disk::with(&["project"]);
    assert!(disk.git("project", &["init", "--quiet"]), "git is needed");
    let (code, said) = disk.run("project", &["init", "Port the parser", "--no-input"]);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("import"), "{said}");
}
