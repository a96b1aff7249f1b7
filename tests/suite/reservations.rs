//! Files: held with a claim, reserved in addition, and guarded by the hooks of Claude Code and git.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use callboard::state::time::{MINUTE, SECOND};
use serde_json::{Value, json};

use crate::harness::{Board, Client, available};
use crate::world::{Answered, World};

/// Agents that hold the file now.
fn holders(world: &World, path: &str) -> Vec<String> {
    world.state.holds_of(path, world.now).into_iter().map(|hold| hold.agent.to_string()).collect()
}

fn two_on_one_file() -> World {
    let files = json!({"context_files": ["src/a.rs"]});
    World::new()
        .agent("a1")
        .agent("a2")
        .task_with("t", files.clone())
        .task_with("u", files)
        .task("free")
}

#[test]
fn files_of_a_task_are_held_from_its_claim_to_the_end_of_its_lease() {
    type End = fn(&mut World);
    let ends: [(&str, End); 5] = [
        ("completed", |world| drop(world.complete("a1", "t"))),
        ("failed", |world| {
            drop(world.call("fail_task", json!({"task_id": "t", "error": "x"})).unwrap())
        }),
        ("released", |world| drop(world.call("release_task", json!({"task_id": "t"})).unwrap())),
        ("cancelled", |world| {
            drop(world.nobody().call("cancel_task", json!({"task_id": "t"})).unwrap())
        }),
        ("expired", |world| _ = world.at(30 * MINUTE)),
    ];
    for (name, end) in ends {
        let mut world = World::new()
            .agent("a1")
            .task_with("t", json!({"context_files": ["src/*.rs", "docs/"]}));
        assert_eq!(holders(&world, "src/a.rs"), [""; 0]);
        world.claim("a1", "t");
        world.by("a1").call("reserve_files", json!({"files": ["Cargo.toml"]})).expect("reserved");
        for (path, held) in
            [("src/a.rs", true), ("docs/x/y.md", true), ("Cargo.toml", true), ("src/a/b.rs", false)]
        {
            assert_eq!(holders(&world, path).len(), usize::from(held), "{path}");
        }
        end(&mut world);
        assert!(world.state.all_files_are_free(), "{name}");
        assert_eq!(world.state.reservations().len(), 0, "{name}");
    }
}

#[test]
fn a_claim_prefers_free_files_among_equals_and_tells_of_overlaps() {
    let mut world = two_on_one_file().claimed("a1", "t");
    let until = world.attempt("t").lease_until;
    assert_eq!(world.next("a2")["task"]["id"], "free");
    world.complete("a2", "free");
    let overlaps = json!([{"files": "src/a.rs", "agent": "a1", "task": "t", "until": until}]);
    world
        .by("a2")
        .call("claim_task", json!({}))
        .replies(json!({"task": {"id": "u"}, "handoff": {"overlaps": overlaps}}));

    let mut world = two_on_one_file().claimed("a1", "t");
    world.nobody().call("update_task", json!({"task_id": "u", "priority": 1})).expect("urgent");
    assert_eq!(world.next("a2")["task"]["id"], "u", "what is urgent comes first");
}

#[test]
fn exclusive_claims_skip_what_overlaps_and_wait_for_it() {
    let mut world = two_on_one_file().claimed("a1", "t");
    world
        .nobody()
        .call("update_task", json!({"task_id": "free", "priority": 9}))
        .expect("less urgent");
    let exclusive = json!({"exclusive_files": true, "wait_seconds": 50});
    world.by("a2").call("claim_task", exclusive.clone()).replies(json!({"task": {"id": "free"}}));
    world.complete("a2", "free");
    let empty = world
        .call("claim_task", exclusive.clone())
        .replies(json!({"success": false, "verdict": "wait"}));
    assert!(
        empty["message"].as_str().is_some_and(|text| text.contains("held by others")),
        "{empty}"
    );
    assert!(world.waits("claim_task", exclusive.clone()));
    let message = world
        .call("claim_task", json!({"task_id": "u", "exclusive_files": true}))
        .refuses("files_held");
    assert!(
        message.contains("`a1`") && message.contains("`t`") && message.contains("until"),
        "{message}"
    );
    world.complete("a1", "t");
    world.by("a2").call("claim_task", exclusive).replies(json!({"task": {"id": "u"}}));
}

#[test]
fn ones_own_files_are_no_overlap() {
    let mut world =
        two_on_one_file().agent_with("a1", json!({"max_concurrent": 2})).claimed("a1", "t");
    world.by("a1").call("start_task", json!({"task_id": "t"})).expect("started");
    world
        .call("claim_task", json!({"exclusive_files": true}))
        .replies(json!({"task": {"id": "u"}, "handoff": null}));
}

#[test]
fn the_look_ahead_is_bounded() {
    let files = json!({"context_files": ["src/a.rs"]});
    let mut world =
        World::new().agent("a1").agent("a2").task_with("held", files.clone()).claimed("a1", "held");
    world.replays_seldom = true;
    for number in 0..64 {
        world.create(&format!("t{number}"), files.clone());
    }
    world.create("free", json!({}));
    assert_eq!(world.next("a2")["task"]["id"], "t0");
    world.call("release_task", json!({"task_id": "t0"})).expect("put back");
    // If there is no other task, tasks with held files are taken.
    world
        .call("claim_task", json!({"exclusive_files": true}))
        .replies(json!({"task": {"id": "free"}}));
}

#[test]
fn files_outside_of_the_project_are_refused_with_place_and_remedy() {
    let mut world = World::new().agent("a1").task("t");
    world.place.worktree = Some("/w/one".to_owned());
    for bad in ["/etc/passwd", "../other/x", "src/../../x", "~/x", "{a,../b}", "", "/w/onetwo/x"] {
        let files = json!(["src/ok.rs", bad]);
        for (name, arguments, place) in [
            (
                "create_task",
                json!({"description": "d", "context_files": files}),
                "context_files[1]",
            ),
            (
                "create_tasks_batch",
                json!({"tasks": [{"description": "d", "context_files": files}]}),
                "context_files[1]",
            ),
            ("update_task", json!({"task_id": "t", "context_files": files}), "context_files[1]"),
            ("reserve_files", json!({"agent_id": "a1", "files": files}), "files[1]"),
        ] {
            let message = world.nobody().call(name, arguments).refuses("outside_project");
            assert!(
                message.contains(place) && message.contains("src/**/*.rs"),
                "{name} {bad}: {message}"
            );
        }
    }
    let inside = json!({"id": "u", "description": "d", "context_files": ["/w/one/src/a.rs", "app/[id]/page.tsx"]});
    world
        .call("create_task", inside)
        .replies(json!({"task": {"context": {"files": ["src/a.rs", "app/[id]/page.tsx"]}}}));
    world.claim("a1", "u");
    assert_eq!(holders(&world, "app/[id]/page.tsx"), ["a1"]);
}

#[test]
fn reservations_exclude_or_share_and_name_the_holder() {
    let mut world =
        World::new().agent("a1").agent("a2").agent_with("watcher", json!({"role": "observer"}));
    world.by("a1").call("reserve_files", json!({"files": ["src/"], "reason": "a rename"})).replies(
        json!({
            "reservation": {"agent": "a1", "files": ["src/"], "reason": "a rename", "task": null},
        }),
    );
    for files in [json!(["docs/", "src/a.rs"]), json!(["**/*.rs"]), json!(["src"])] {
        let message = world
            .by("a2")
            .call("reserve_files", json!({"files": files, "shared": true}))
            .refuses("files_held");
        assert!(
            message.contains("`a1`")
                && message.contains("send_message")
                && !message.contains("rename"),
            "{message}"
        );
    }
    let docs = json!({"files": ["docs/"], "shared": true});
    world.by("a1").call("reserve_files", docs.clone()).expect("shared");
    world.by("a2").call("reserve_files", docs).expect("shared, too");
    world.call("reserve_files", json!({"files": ["docs/a.md"]})).refuses("files_held");
    world.call("reserve_files", json!({"files": []})).refuses("empty");
    world.call("reserve_files", json!({"files": ["a"], "minutes": 0})).refuses("zero");
    world.by("watcher").call("reserve_files", json!({"files": ["a"]})).refuses("observer");
}

#[test]
fn reservations_end_by_time_by_release_and_by_a_leader() {
    let mut world =
        World::new().agent("a1").agent("a2").agent_with("lead", json!({"role": "leader"}));
    let reserve = json!({"files": ["src/a.rs"], "minutes": 5});
    let first =
        world.by("a1").call("reserve_files", reserve.clone()).expect("reserved")["reservation"]
            .clone();
    world.at(3 * MINUTE);
    let again =
        world.by("a1").call("reserve_files", reserve.clone()).expect("renewed")["reservation"]
            .clone();
    assert_eq!((&first["id"], world.state.reservations().len()), (&again["id"], 1));
    world.at(5 * MINUTE - 1);
    assert_eq!(holders(&world, "src/a.rs"), ["a1"]);
    assert_eq!(world.state.next_deadline(), Some(world.now + 1));
    world.at(1);
    assert_eq!((world.state.reservations().len(), world.count_of("files_released")), (0, 1));
    let id = world.by("a1").call("reserve_files", reserve.clone()).expect("reserved")
        ["reservation"]["id"]
        .clone();
    let named = json!({"reservations": [id]});
    world.by("a2").call("release_files", named.clone()).refuses("not_leader");
    world.by("lead").call("release_files", named.clone()).expect("freed");
    world.call("release_files", named).expect("it is free already");
    world.by("a1").call("reserve_files", reserve.clone()).expect("reserved");
    world.call("release_files", json!({"reservations": []})).refuses("bad_arguments");
    world.call("release_files", json!({})).replies(json!({"left": 0}));
    assert!(world.state.all_files_are_free());
    let long = json!({"files": ["src/long.rs"], "minutes": 300});
    let long = world.call("reserve_files", long).expect("reserved")["reservation"]["until"].clone();
    let again = world.call("reserve_files", json!({"files": ["src/long.rs"]})).expect("renewed");
    assert_eq!(again["reservation"]["until"], long, "to renew it gives nothing back");
    let why = json!({"files": ["src/long.rs"], "reason": "a move"});
    world.call("reserve_files", why).replies(json!({"reservation": {"reason": "a move"}}));
    let again = world.call("reserve_files", json!({"files": ["src/long.rs"]})).expect("renewed");
    assert_eq!(again["reservation"]["reason"], "a move", "nor takes it its reason");
    world.call("reserve_files", reserve).expect("reserved");
    world.sleeps(60 * MINUTE);
    assert_eq!(holders(&world, "src/a.rs"), ["a1"], "a sleep of the machine takes nothing away");
}

#[test]
fn files_are_given_up_one_by_one_and_the_others_stay_reserved() {
    let mut world = World::new().agent("a1").agent("a2");
    let files = json!({"files": ["src/a.rs", "src/b.rs", "docs/"], "minutes": 50, "reason": "r"});
    let first =
        world.by("a1").call("reserve_files", files).expect("reserved")["reservation"].take();
    world.call("reserve_files", json!({"files": ["lib/x.rs", "lib/y.rs"]})).expect("reserved");
    world.at(MINUTE);
    let one = json!({"files": ["src/a.rs", "src/none.rs"]});
    world.call("release_files", one).replies(json!({"left": 2, "unknown": ["src/none.rs"]}));
    let held = |world: &World| {
        ["src/a.rs", "src/b.rs", "docs/d.md", "lib/x.rs", "lib/y.rs"]
            .map(|path| !holders(world, path).is_empty())
    };
    assert_eq!(held(&world), [false, true, true, true, true]);
    let id = first["id"].as_str().expect("an id");
    let left = world.state.reservations().find(|one| one.id.as_str() == id).expect("it is there");
    assert_eq!(
        (left.files.as_slice(), left.reason.as_deref()),
        (&["src/b.rs".to_owned(), "docs/".to_owned()][..], Some("r"))
    );
    assert_eq!(json!(left.until), first["until"], "for as long as it was");
    world.by("a2").call("reserve_files", json!({"files": ["src/a.rs"]})).expect("it is free");
    // What is held by a directory cannot be given up in part.
    let said = world.by("a1").call("release_files", json!({"files": ["docs/d.md", "src/b.rs"]}));
    let said = said.refuses("held_in_part");
    assert!(said.to_string().contains(&format!("give up {id}")), "{said}");
    assert_eq!(held(&world), [true, true, true, true, true]);
    // A pattern gives up all that it covers, and an id bounds it.
    world
        .call("release_files", json!({"reservations": [id], "files": ["lib/"]}))
        .replies(json!({"left": 2, "unknown": ["lib/"]}));
    world.call("release_files", json!({"files": ["lib/*.rs"]})).replies(json!({"left": 1}));
    assert_eq!(held(&world), [true, true, true, false, false]);
    world.call("release_files", json!({"files": []})).refuses("bad_arguments");
    world
        .call("release_files", json!({"files": ["docs", "src/"]}))
        .replies(json!({"left": 0, "unknown": null}));
    assert_eq!(held(&world), [true, false, false, false, false], "what a2 has is a2's");
    world
        .call("release_files", json!({"reservations": [id]}))
        .replies(json!({"left": 0, "unknown": [id]}));
}

#[test]
fn what_was_reserved_before_a_claim_becomes_the_tasks_when_it_is_renewed() {
    let mut world = World::new().agent_with("a1", json!({"max_concurrent": 2})).task("t").task("u");
    let reserve = json!({"files": ["src/x.rs"], "minutes": 5});
    let first =
        world.by("a1").call("reserve_files", reserve).expect("reserved")["reservation"]["id"]
            .clone();
    world.claim("a1", "t");
    let again = json!({"files": ["src/x.rs"]});
    let renewed = json!({"reservation": {"id": first, "task": "t", "until": null}});
    world.by("a1").call("reserve_files", again.clone()).replies(renewed.clone());
    world.call("reserve_files", again.clone()).replies(renewed);
    assert_eq!(world.state.reservations().len(), 1);
    world.claim("a1", "u");
    world.by("a1").call("reserve_files", again).replies(json!({"reservation": {"task": "u"}}));
    assert_eq!(world.state.reservations().len(), 2, "both tasks need it, and either may end first");
    world.complete("a1", "u");
    assert_eq!(holders(&world, "src/x.rs"), ["a1"]);
    world.complete("a1", "t");
    assert!(world.state.all_files_are_free());
}

#[test]
fn what_was_reserved_for_longer_than_a_task_outlives_it_when_it_is_renewed() {
    for renewal in [json!({"files": ["src/x.rs"]}), json!({"files": ["src/x.rs"], "minutes": 900})]
    {
        let mut world = World::new().agent("a1").task("t");
        let reserve = json!({"files": ["src/x.rs"], "minutes": 600});
        let first =
            world.by("a1").call("reserve_files", reserve).expect("reserved")["reservation"].clone();
        world.claim("a1", "t");
        let renewed =
            world.by("a1").call("reserve_files", renewal).expect("renewed")["reservation"].clone();
        assert_eq!((&renewed["id"], &renewed["task"]), (&first["id"], &json!(null)));
        assert!(renewed["until"].as_str() >= first["until"].as_str(), "{renewed}");
        world.complete("a1", "t");
        assert_eq!(holders(&world, "src/x.rs"), ["a1"]);
        world.create("u", json!({}));
        world.claim("a1", "u");
        let named = json!({"files": ["src/x.rs"], "task_id": "u"});
        world.by("a1").call("reserve_files", named).replies(json!({"reservation": {"task": "u"}}));
    }
}

#[test]
fn a_reservation_of_a_task_lasts_as_its_lease_does() {
    let mut world = World::new().agent("a1").task("t").task("u").claimed("a1", "t");
    world
        .by("a1")
        .call("reserve_files", json!({"files": ["a"], "task_id": "u"}))
        .refuses("not_held");
    let reply = world.call("reserve_files", json!({"files": ["a"]})).expect("reserved");
    assert_eq!(
        (&reply["reservation"]["task"], &reply["reservation"]["until"]),
        (&json!("t"), &Value::Null)
    );
    world.at(29 * MINUTE);
    world.call("heartbeat", json!({})).expect("alive");
    world.at(29 * MINUTE);
    assert_eq!(holders(&world, "a"), ["a1"]);
    world.at(MINUTE + SECOND);
    assert!(world.state.all_files_are_free());
}

#[test]
fn overlaps_fit_the_budget_of_the_handoff() {
    let (long, nasty) = (format!("{}/", "d/".repeat(400)), "\"\\\n\u{1}é漢🦀\t".repeat(1_000));
    let holders: Vec<_> = (0..5).map(|number| format!("{number}{}", "h".repeat(63))).collect();
    let ids: Vec<_> = (0..5).map(|number| format!("{number}{}", "d".repeat(63))).collect();
    let mut world = World::new().agent("a1");
    for id in &ids {
        world.create(id, json!({}));
        world.claim("a1", id);
        let branch = json!({"task_id": id, "output": nasty, "branch": "b".repeat(1_000), "commit": "c".repeat(1_000)});
        world.by("a1").call("complete_task", branch).expect("done");
    }
    let tasks: Vec<_> = (0..5).map(|number| format!("{number}{}", "t".repeat(63))).collect();
    for (holder, task) in holders.iter().zip(&tasks) {
        world.by(holder).call("register_agent", json!({"role": "worker"})).expect("registered");
        world.create(task, json!({"context_files": [long]}));
        world.claim(holder, task);
    }
    world.by("a1").call("add_discovery", json!({"content": nasty, "tags": ["x"]})).expect("added");
    world.create("t", json!({"dependencies": ids, "context_files": [long], "tags": ["x"]}));
    world.claim("a1", "t");
    world.by("a1").call("heartbeat", json!({"note": nasty[..1_400]})).expect("noted");
    world.call("fail_task", json!({"task_id": "t", "error": nasty[..8_400]})).expect("failed");
    world.at(MINUTE);
    let handoff = world.next("a1")["handoff"].clone();
    println!("a handoff with overlaps: {} bytes of 2,048", handoff.to_string().len());
    assert!(handoff.to_string().len() <= 2_048, "{handoff}");
    assert!(
        handoff["overlaps"].as_array().is_some_and(|overlaps| !overlaps.is_empty()),
        "{handoff}"
    );
}

/// A repository with a second worktree, and its board.
struct Project {
    board: Board,
    one: PathBuf,
    two: PathBuf,
}

impl Project {
    fn new() -> Self {
        let board = Board::new();
        let base = fs::canonicalize(board.base()).unwrap();
        let (one, two) = (base.join("one"), base.join("two"));
        fs::create_dir(&one).unwrap();
        let project = Self { board, one, two };
        let one = project.one.clone();
        project.git(&one, &["init", "-q", "-b", "main"]);
        fs::create_dir(one.join("src")).unwrap();
        fs::write(one.join("src/lexer.rs"), "old\n").unwrap();
        project.git(&one, &["add", "."]);
        project.git(&one, &["commit", "-q", "-m", "begin"]);
        project.git(&one, &["worktree", "add", "-q", "-b", "topic", "../two"]);
        project
    }

    /// A command for a program, as an agent's client starts it there.
    fn program(&self, program: &str, cwd: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("COORDINATION_DIR", self.board.dir())
            .env("HOME", self.board.base())
            .current_dir(cwd);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        for (name, value) in [("NAME", "t"), ("EMAIL", "t@example.org")] {
            command
                .env(format!("GIT_AUTHOR_{name}"), value)
                .env(format!("GIT_COMMITTER_{name}"), value);
        }
        command
            .env_remove("CALLBOARD_AGENT")
            .env_remove("CLAUDE_PROJECT_DIR")
            .env_remove("GIT_DIR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn try_git(&self, cwd: &Path, arguments: &[&str]) -> Output {
        self.program("git", cwd).args(arguments).output().unwrap()
    }

    #[track_caller]
    fn git(&self, cwd: &Path, arguments: &[&str]) {
        let output = self.try_git(cwd, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn callboard(&self, cwd: &Path, arguments: &[&str]) -> Output {
        self.program(env!("CARGO_BIN_EXE_callboard"), cwd).args(arguments).output().unwrap()
    }

    fn agent(&self, name: &str, cwd: &Path) -> Client {
        let mut client =
            Client::start(self.program(env!("CARGO_BIN_EXE_callboard"), cwd).arg("mcp"));
        client.register(name);
        client
    }

    /// Output of the hook that `connect` wrote into the project, before Claude Code edits the file.
    #[track_caller]
    fn before_edit(&self, cwd: &Path, file: &Path) -> Option<Value> {
        let connected = self.callboard(cwd, &["connect", "claude", "--hooks"]);
        assert!(connected.status.success(), "{}", String::from_utf8_lossy(&connected.stderr));
        let settings: Value =
            serde_json::from_slice(&fs::read(cwd.join(".claude/settings.json")).unwrap()).unwrap();
        let group = &settings["hooks"]["PreToolUse"][0];
        assert!(group["matcher"].as_str().unwrap().split('|').any(|tool| tool == "Write"));
        let input = json!({"session_id": "s", "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "Write",
            "tool_input": {"file_path": file, "content": "new"}});
        let mut shell = self.program("/bin/sh", cwd);
        shell.args(["-c", group["hooks"][0]["command"].as_str().unwrap()]).stdin(Stdio::piped());
        let mut process = shell.spawn().unwrap();
        process.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        if output.stdout.is_empty() {
            None
        } else {
            Some(serde_json::from_slice(&output.stdout).unwrap())
        }
    }

    /// Changes the file and commits it there.
    fn commit(&self, cwd: &Path, text: &str) -> Output {
        fs::write(cwd.join("src/lexer.rs"), text).unwrap();
        self.git(cwd, &["add", "src"]);
        self.try_git(cwd, &["commit", "-q", "-m", text])
    }
}

fn git_is_here() -> bool {
    let missing = Command::new("git").arg("--version").output().is_err();
    available("git", missing.then_some("there is no git"))
}

#[test]
fn the_second_on_a_file_is_told_before_it_edits_and_stopped_when_it_commits() {
    if !git_is_here() {
        return;
    }
    let project = Project::new();
    let (one, two) = (project.one.clone(), project.two.clone());
    let (mut ada, mut bob) = (project.agent("ada", &one), project.agent("bob", &two));
    let task = json!({"id": "lexer", "title": "Write the lexer", "description": "d", "context_files": ["src/*.rs"]});
    ada.ok("create_task", task);
    ada.ok("claim_task", json!({"agent_id": "ada"}));
    assert!(project.callboard(&one, &["guard", "--install-git-hook"]).status.success());

    let (file, theirs) = (one.join("src/lexer.rs"), two.join("src/lexer.rs"));
    assert_eq!(project.before_edit(&one, &file), None, "its own");
    assert_eq!(project.before_edit(&two, &two.join("README.md")), None, "nobody's");
    let denied = project.before_edit(&two, &theirs).expect("denied")["hookSpecificOutput"].clone();
    assert_eq!(
        (&denied["hookEventName"], &denied["permissionDecision"]),
        (&json!("PreToolUse"), &json!("deny"))
    );
    let reason = denied["permissionDecisionReason"].as_str().unwrap();
    for part in ["ada", "task lexer", "\"Write the lexer\"", "until 2", "send_message"] {
        assert!(reason.contains(part), "{part} in {reason}");
    }
    let (_, call) = reason.split_once("send_message ").unwrap();
    let call =
        serde_json::Deserializer::from_str(call).into_iter::<Value>().next().unwrap().unwrap();
    bob.ok("send_message", call);
    let (_, command) = reason.split_once("in a shell: ").unwrap();
    let command = shlex::split(command.split_once(", then ").unwrap().0).unwrap();
    let mut typed = project.program(env!("CARGO_BIN_EXE_callboard"), &two);
    let typed = typed.env_remove("COORDINATION_DIR").args(&command[1..]).output().unwrap();
    assert!(typed.status.success(), "{command:?}");
    assert_eq!(ada.ok("heartbeat", json!({"agent_id": "ada"}))["unread_messages"]["count"], 2);

    let stopped = project.commit(&two, "bob's");
    let said = String::from_utf8_lossy(&stopped.stderr).into_owned()
        + &String::from_utf8_lossy(&stopped.stdout);
    assert!(!stopped.status.success(), "{said}");
    for part in ["lexer.rs by ada for task lexer: Write the lexer", "ends in", "--no-verify"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let own = project.commit(&one, "ada's");
    assert!(own.status.success(), "{}", String::from_utf8_lossy(&own.stderr));

    ada.ok("complete_task", json!({"agent_id": "ada", "task_id": "lexer", "output": "made"}));
    assert_eq!(project.before_edit(&two, &theirs), None);
    let free = project.commit(&two, "bob's");
    assert!(free.status.success(), "{}", String::from_utf8_lossy(&free.stderr));
}

#[test]
fn a_commit_is_its_sessions_whichever_worktree_it_is_made_in() {
    if !git_is_here() {
        return;
    }
    let project = Project::new();
    let (one, two) = (project.one.clone(), project.two.clone());
    assert!(project.callboard(&one, &["guard", "--install-git-hook"]).status.success());
    let mut ada = project.agent("ada", &one);
    let of_bob = |words: &[&str]| {
        let output = project.callboard(&one, &[&["--agent", "bob"], words].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    of_bob(&["heartbeat"]);
    of_bob(&["call", "reserve_files", r#"{"files": ["src/lexer.rs"]}"#]);
    let stopped = project.commit(&one, "ada's, in the worktree where bob holds the file");
    let said = String::from_utf8_lossy(&stopped.stderr).into_owned()
        + &String::from_utf8_lossy(&stopped.stdout);
    assert!(!stopped.status.success() && said.contains("callboard --agent ada send bob"), "{said}");
    of_bob(&["call", "release_files", "{}"]);

    ada.ok("reserve_files", json!({"agent_id": "ada", "files": ["src/lexer.rs"]}));
    let own = project.commit(&two, "ada's, in another worktree than she holds the file from");
    assert!(own.status.success(), "{}", String::from_utf8_lossy(&own.stderr));
}

#[test]
fn who_cannot_be_told_apart_is_guarded_from_other_worktrees_only() {
    if !git_is_here() {
        return;
    }
    let project = Project::new();
    let (one, two) = (project.one.clone(), project.two.clone());
    let call = |arguments: &str, name: &str| {
        let output = project.callboard(&one, &["call", name, arguments]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    call(r#"{"agent_id": "ada", "role": "worker"}"#, "register_agent");
    call(
        r#"{"agent_id": "ada", "files": ["src/lexer.rs"], "reason": "a rename"}"#,
        "reserve_files",
    );
    let guard = |cwd: &Path, more: &[&str]| {
        project.callboard(cwd, &[&["guard", "src/lexer.rs"], more].concat())
    };
    assert_eq!(guard(&one, &[]).status.code(), Some(0));
    assert_eq!(guard(&two, &["--agent", "ada"]).status.code(), Some(0));
    let said = String::from_utf8(guard(&two, &[]).stdout).unwrap();
    assert!(said.contains("ask with `callboard send ada TEXT --request`"), "{said}");
    let refused = guard(&two, &["--json"]);
    let said: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(
        (refused.status.code(), &said["held"][0]["holds"][0]["reason"]),
        (Some(1), &json!("a rename"))
    );
    assert_eq!(
        project.callboard(&two, &["guard", "src", "/etc/passwd", "nowhere/x"]).status.code(),
        Some(0)
    );
}

#[test]
fn a_named_agent_that_is_not_on_the_board_is_nobody_else() {
    if !git_is_here() {
        return;
    }
    let project = Project::new();
    let one = project.one.clone();
    let mut ada = project.agent("ada", &one);
    ada.ok("reserve_files", json!({"agent_id": "ada", "files": ["src/lexer.rs"]}));
    let guard = |more: &[&str]| {
        project.callboard(&one, &[&["guard", "src/lexer.rs"], more].concat()).status.code()
    };
    assert_eq!((guard(&["--agent", "ada"]), guard(&["--agent", "bob"])), (Some(0), Some(1)));
    let by_variable = project
        .program(env!("CARGO_BIN_EXE_callboard"), &one)
        .env("CALLBOARD_AGENT", "bob")
        .args(["guard", "src/lexer.rs"])
        .output()
        .unwrap();
    assert_eq!(by_variable.status.code(), Some(1));

    let said = String::from_utf8(by_variable.stdout).unwrap();
    let (_, command) = said.split_once("ask with `callboard ").unwrap_or_else(|| panic!("{said}"));
    let words: Vec<_> = command.split_once('`').unwrap().0.split(' ').collect();
    assert_eq!(words, ["--agent", "bob", "send", "ada", "TEXT", "--request"]);
    assert!(project.callboard(&one, &words).status.success());
    let messages = ada.ok("get_messages", json!({"agent_id": "ada"}));
    assert_eq!(messages["messages"][0]["from"], "bob", "{messages}");
}

#[test]
fn a_file_of_a_submodule_and_one_behind_a_link_are_held_by_either_name() {
    if !git_is_here() {
        return;
    }
    let project = Project::new();
    let (one, two) = (project.one.clone(), project.two.clone());
    let library = project.board.base().join("library");
    fs::create_dir(&library).unwrap();
    project.git(&library, &["init", "-q", "-b", "main"]);
    fs::create_dir(library.join("src")).unwrap();
    fs::write(library.join("src/a.rs"), "").unwrap();
    project.git(&library, &["add", "."]);
    project.git(&library, &["commit", "-q", "-m", "begin"]);
    for worktree in [&one, &two] {
        let library = library.to_str().unwrap();
        project.git(
            worktree,
            &["-c", "protocol.file.allow=always", "submodule", "add", "-q", library, "sub"],
        );
    }
    std::os::unix::fs::symlink("src/lexer.rs", two.join("link.rs")).unwrap();
    let add =
        project.callboard(&one.join("sub"), &["add", "Parse", "--file", "other.rs", "--json"]);
    let added: Value = serde_json::from_slice(&add.stdout).unwrap();
    let files = &project.board.task(added["id"].as_str().or(added["task"]["id"].as_str()).unwrap())
        ["context"]["files"];
    assert_eq!(*files, json!(["sub/other.rs"]));
    let mut ada = project.agent("ada", &one.join("sub"));
    let absolute = one.join("sub/src/b.rs");
    ada.ok(
        "reserve_files",
        json!({"agent_id": "ada", "files": ["sub/src/a.rs", "src/lexer.rs", absolute]}),
    );
    let guard = |cwd: &Path, file: &str| {
        project.callboard(cwd, &["guard", file, "--agent", "bob"]).status.code()
    };
    for cwd in [&one, &two] {
        assert_eq!((guard(cwd, "sub/src/a.rs"), guard(cwd, "sub/src/c.rs")), (Some(1), Some(0)));
        assert_eq!(
            (guard(&cwd.join("sub"), "src/a.rs"), guard(&cwd.join("sub/src"), "b.rs")),
            (Some(1), Some(1))
        );
        assert_eq!(guard(&cwd.join("sub"), "src/lexer.rs"), Some(0));
    }
    assert_eq!((guard(&two, "link.rs"), guard(&two, "src/lexer.rs")), (Some(1), Some(1)));
}

#[test]
fn a_file_of_another_repository_is_held_only_for_sessions_there() {
    if !git_is_here() {
        return;
    }
    let mut project = Project::new();
    let (one, other) = (project.one.clone(), project.two.with_file_name("other"));
    let base = std::mem::replace(&mut project.board, Board::at(one.join(".coordination")));
    project.git(&one, &["clone", "-q", ".", "../other"]);
    let mut ada = project.agent("ada", &one);
    ada.ok("reserve_files", json!({"agent_id": "ada", "files": ["src/lexer.rs"]}));
    let guard = |cwd: &Path, at: &Path| {
        let file = at.join("src/lexer.rs");
        project.callboard(cwd, &["guard", file.to_str().unwrap(), "--agent", "bob"]).status.code()
    };
    assert_eq!((guard(&one, &one), guard(&one, &project.two)), (Some(1), Some(1)));
    assert_eq!(guard(&one, &other), Some(0), "as far as the board knows, it is something else");
    assert_eq!(
        (guard(&other, &other), guard(&other, &one)),
        (Some(1), Some(1)),
        "a clone that shares the board"
    );
    assert_eq!(guard(base.base(), &other), Some(0));
}

/// Some frameworks name directories of routes with brackets.
#[test]
fn what_is_held_is_seen_by_any_name_and_while_the_state_file_is_edited() {
    if !git_is_here() {
        return;
    }
    let project = Project::new();
    let one = project.one.clone();
    let mut ada = project.agent("ada", &one);
    fs::create_dir_all(one.join("app/[id]")).unwrap();
    std::os::unix::fs::symlink("src", one.join("link")).unwrap();
    let files = ["app/[id]/", "app/[...slug]/**/*.tsx", "link/made.rs"];
    ada.ok("reserve_files", json!({"agent_id": "ada", "files": files}));
    let guard =
        |file: &str| project.callboard(&one, &["guard", file, "--agent", "bob"]).status.code();
    for file in ["app/[id]/page.tsx", "app/[...slug]/a/page.tsx", "link/made.rs"] {
        assert_eq!(guard(file), Some(1), "{file}");
    }
    assert_eq!((guard("app/[name]/page.tsx"), guard("src/lexer.rs")), (Some(0), Some(0)));
    let state = project.board.file("mcp-state.json");
    fs::write(&state, "{").unwrap();
    assert_eq!((guard("link/made.rs"), guard("src/lexer.rs")), (Some(1), Some(0)));
    fs::remove_file(&state).unwrap();
    assert_eq!((guard("link/made.rs"), guard("src/lexer.rs")), (Some(1), Some(0)));
    fs::write(project.board.file("journal.db"), "damaged").unwrap();
    assert_eq!(guard("link/made.rs"), Some(3), "nobody knows");
}

#[test]
fn on_a_large_board_what_is_held_is_told_as_on_a_small_one() {
    if !git_is_here() {
        return;
    }
    let project = Project::new();
    let one = project.one.clone();
    let mut ada = project.agent("ada", &one);
    let words = "as people describe it ".repeat(40);
    let held =
        json!({"id": "held", "description": "Write the lexer", "context_files": ["src/lexer.rs"]});
    ada.ok("create_tasks_batch", json!({"tasks": [held]}));
    ada.ok("claim_task", json!({"agent_id": "ada", "task_id": "held"}));
    ada.ok("reserve_files", json!({"agent_id": "ada", "files": ["docs/**"], "reason": "a guide"}));
    let guard = |file: &str| {
        let output = project.callboard(&one, &["--json", "guard", file, "--agent", "bob"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let files = ["src/lexer.rs", "docs/guide.md", "free.rs"];
    let told = files.map(guard);
    assert_eq!(told.each_ref().map(|told| told["free"] == true), [false, false, true], "{told:?}");
    for batch in 0..5 {
        let tasks = (0..1_200)
            .map(|number| json!({"id": format!("t{batch}-{number}"), "description": words}));
        ada.ok("create_tasks_batch", json!({"tasks": tasks.collect::<Vec<_>>()}));
    }
    assert!(fs::metadata(project.board.file("mcp-state.json")).unwrap().len() > 5 << 20);
    assert_eq!(files.map(guard), told);
    assert!(project.before_edit(&one, &one.join("free.rs")).is_none());
}

#[test]
fn checking_what_is_staged_runs_nothing_that_the_repository_names() {
    if !git_is_here() {
        return;
    }
    let project = Project::new();
    let one = project.one.clone();
    let mark = one.join(".git/ran");
    let touch = format!("touch '{}'; false", mark.display());
    for name in ["core.fsmonitor", "diff.external", "filter.x.clean", "diff.x.textconv"] {
        project.git(&one, &["config", name, &touch]);
    }
    fs::write(one.join(".git/info/attributes"), "* filter=x diff=x\n").unwrap();
    fs::write(one.join("src/lexer.rs"), "changed").unwrap();
    let checked = project.callboard(&one, &["guard", "--staged"]);
    assert!(checked.status.success() && !mark.exists(), "{checked:?}");
    project.git(&one, &["status"]);
    assert!(mark.exists(), "git runs it when nothing keeps it from it");
}

#[test]
fn a_foreign_git_hook_stays_and_ours_is_written_once() {
    if !git_is_here() {
        return;
    }
    let project = Project::new();
    let install = || project.callboard(&project.two, &["guard", "--install-git-hook"]);
    let hook = project.one.join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho mine\n").unwrap();
    let refused = install();
    let said = String::from_utf8(refused.stdout).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("guard --staged") && said.contains("add this line"), "{said}");
    assert_eq!(fs::read_to_string(&hook).unwrap(), "#!/bin/sh\necho mine\n");
    let says = |part: &str| {
        let refused = install();
        let said = String::from_utf8(refused.stdout).unwrap();
        assert_eq!(refused.status.code(), Some(1));
        assert!(said.contains(part) && said.contains(hook.to_str().unwrap()), "{part} in {said}");
    };
    fs::write(&hook, "#!/bin/sh\n# no guard --staged here\n").unwrap();
    says("add this line");
    fs::write(&hook, concat!("#!/bin/sh\n", env!("CARGO_BIN_EXE_callboard"), " guard --staged\n"))
        .unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o644)).unwrap();
    says("chmod +x");
    fs::remove_file(&hook).unwrap();
    std::os::unix::fs::symlink("nowhere", &hook).unwrap();
    says("a link to nothing");
    fs::remove_file(&hook).unwrap();
    fs::create_dir(&hook).unwrap();
    says("a directory");
    fs::remove_dir(&hook).unwrap();
    assert!(install().status.success());
    let written = fs::read_to_string(&hook).unwrap();
    assert!(install().status.success());
    assert_eq!(fs::read_to_string(&hook).unwrap(), written);
    // Without a board, or if callboard is gone, every commit passes.
    assert!(project.commit(&project.two, "x").status.success());
    let gone = written.replace(env!("CARGO_BIN_EXE_callboard"), "/nowhere/callboard");
    fs::write(&hook, &gone).unwrap();
    assert!(project.commit(&project.two, "y").status.success());

    assert!(install().status.success());
    assert_eq!(fs::read_to_string(&hook).unwrap(), written, "it asked a callboard that is gone");
    let elsewhere =
        project.callboard(&project.two, &["--dir", "board", "guard", "--install-git-hook"]);
    assert!(String::from_utf8(elsewhere.stdout).unwrap().contains("updated"));
    assert!(fs::read_to_string(&hook).unwrap().contains("guard --staged --dir /"));
    let theirs = gone + "echo mine\n";
    fs::write(&hook, &theirs).unwrap();
    says("another board or program");
    assert_eq!(fs::read_to_string(&hook).unwrap(), theirs);
}
