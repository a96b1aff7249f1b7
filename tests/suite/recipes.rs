//! Recipes in examples/ for `callboard work`: the demo that builds a program, the pipeline, and the
//! agents' command lines. Stubs stand in for the real agents (tests/clients/real compares the
//! options with the help of the real ones).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Board, Finished, PATIENCE, available, until};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// A command for a script, with this test's callboard first in PATH, followed by `tools`.
fn script(board: &Board, path: &Path, tools: &Path) -> Command {
    let own = Path::new(env!("CARGO_BIN_EXE_callboard")).parent().unwrap();
    let path_variable =
        format!("{}:{}:{}", own.display(), tools.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(path);
    command
        .current_dir(board.base())
        .env("HOME", board.base())
        .env("COORDINATION_DIR", board.dir());
    command.env("PATH", path_variable).env("CALLBOARD_BIN", own).stdin(Stdio::null());
    command
}

fn has(tool: &str) -> bool {
    let found =
        std::env::var("PATH").unwrap().split(':').any(|dir| Path::new(dir).join(tool).is_file());
    available(tool, (!found).then_some(format!("there is no {tool} on this machine")).as_deref())
}

#[track_caller]
fn succeeded(finished: &Finished) {
    assert!(
        finished.status.success(),
        "{}\n{}\n{}",
        finished.status,
        finished.stdout,
        finished.stderr
    );
}

#[test]
fn four_workers_build_a_program_by_one_command() {
    if !(has("git") && has("cc") && has("make")) {
        return;
    }
    let base = Board::new();
    let project = base.base().join("calc");
    let finished =
        base.finish(script(&base, &example("calculator/run"), base.base()).arg(&project));
    succeeded(&finished);
    assert!(
        finished.stdout.contains("2 * (3 + 4) - 5 = 9"),
        "{}\n{}",
        finished.stdout,
        finished.stderr
    );
    let board = Board::at(project.join(".coordination"));
    let status = board.cli_ok("get_status", json!({}));
    assert_eq!(status["tasks"]["done"], 8, "{status}");
    let parser = board.cli_ok("get_task", json!({"task_id": "parser"}))["task"].clone();
    assert_eq!(
        (&parser["attempt"], &parser["result"]["data"]["summary"]),
        (&json!(1), &json!("parser is done"))
    );
    let workflow =
        board.cli_ok("get_checkpoint", json!({"workflow_id": "calculator"}))["workflow"].clone();
    assert_eq!(workflow["spent"]["attempts"], 9, "the parser was tried again: {workflow}");
    let release = board.cli_ok("get_task", json!({"task_id": "release"}))["task"].clone();
    let sha256 = release["artifacts"][0]["sha256"].as_str().unwrap();
    let report = board.file("artifacts/release").join(format!("{}-report.txt", &sha256[..8]));
    assert!(fs::read_to_string(report).unwrap().contains("0.1 + 0.2 = 0.3"));
    let agents = board.cli_ok("get_agents", json!({}))["agents"].as_array().unwrap().clone();
    let worked = agents.iter().filter(|agent| agent["tasks_completed"].as_u64() > Some(0)).count();
    assert!(worked > 1, "one agent did everything: {agents:?}");
}

#[test]
fn the_pipeline_goes_on_where_it_was_killed() {
    let board = Board::new();
    let pipeline = || script(&board, &example("work/pipeline.sh"), board.base());
    let mut first = pipeline().spawn().unwrap();
    let is_begun = || {
        board.cli("get_checkpoint", json!({"workflow_id": "pipeline"})).value()["restored"] == true
    };
    until(PATIENCE, "the pipeline begins", || is_begun().then_some(()));
    // If it has already finished, nothing is left to continue, and that must do no harm either.
    let _ = kill_process(Pid::from_child(&first), Signal::KILL);
    first.wait().unwrap();
    let again = board.finish(&mut pipeline());
    succeeded(&again);
    let report = fs::read_to_string(board.base().join("out/report")).unwrap();
    assert_eq!(
        report,
        "apple\napple\nbanana\ncherry\n      2 apple\n      1 banana\n      1 cherry\n"
    );
    succeeded(&board.finish(&mut pipeline()));
    assert_eq!(board.cli_ok("get_status", json!({}))["tasks"]["done"], 4);
}

/// On GitHub, every run has a fresh clone, and the board comes from the cache.
#[test]
fn a_night_that_is_tried_again_elsewhere_goes_on_with_its_commits() {
    if !has("git") {
        return;
    }
    let recipe = fs::read_to_string(example("work/nightly.yml")).unwrap();
    let line = |start: &str| {
        let line =
            recipe.lines().find_map(|line| line.trim().strip_prefix("run: ")?.strip_prefix(start));
        format!("{start}{}", line.unwrap_or_else(|| panic!("the recipe has no {start}")))
    };
    let (fetch, push) = (line("git fetch "), line("git push "));
    let board = Board::new();
    let work = "callboard work --worktree --workflow night-1 --continue --max-tasks 1 -- sh -c \
                'touch $CALLBOARD_TASK_ID'";
    let steps = format!(
        "set -e; unset COORDINATION_DIR
        git init -q -b main seed; cd seed
        git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first; cd ..; git clone -q \
         --bare seed origin
        git clone -q origin first; cd first; callboard call create_task '{{\"id\": \"one\", \
         \"description\": \"d\"}}'
        callboard call create_task '{{\"id\": \"two\", \"description\": \"d\"}}'
        {fetch}; {work}; git update-ref refs/callboard/aside HEAD; {push}
        cd ..; git clone -q origin second; mv first/.coordination second; cd second; {fetch}; \
         {work}; {push}
        cd ../origin; git for-each-ref --format='ref %(refname)'; git ls-tree --name-only \
         refs/heads/nightly/night-1-1"
    );
    let finished =
        board.finish(script(&board, Path::new("/bin/sh"), board.base()).args(["-c", &steps]));
    succeeded(&finished);
    let published = finished.stdout.split_once("ref ").unwrap().1;
    assert_eq!(
        published,
        "refs/callboard/aside\nref refs/heads/main\nref refs/heads/nightly/night-1-1\none\ntwo\n"
    );
}

/// A stub for an agent's program: it carries out its prompt, and answers like the real one.
fn stub(dir: &Path, name: &str, answer: &str) {
    fs::create_dir_all(dir).unwrap();
    let path = dir.join(name);
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >>\"$0.asked\"\ncat >>\"$0.read\"\n\
         while [ $# -gt 0 ]; do [ \"$1\" = --output-last-message ] && printf 'it is done' >\"$2\"; shift; done\n\
         cat <<'END'\n{answer}\nEND\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn agents_in_print_mode_are_workers_whose_tokens_count() {
    if !has("jq") {
        return;
    }
    let claude = json!({"type": "result", "is_error": false, "result": "it is done", "session_id": "s-1",
        "usage": {"input_tokens": 3, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 20, "output_tokens": 12}});
    let codex = [
        json!({"type": "item.completed", "item": {"type": "agent_message", "text": "it is done"}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 40, "cached_input_tokens": 9, "output_tokens": 2}}),
    ];
    let gemini = json!({"session_id": "g", "response": "it is done",
        "stats": {"models": {"gemini-pro": {"tokens": {"prompt": 40, "candidates": 2, "total": 42}}}}});
    for (name, answer) in [
        ("claude", claude.to_string()),
        ("codex", codex.map(|event| event.to_string()).join("\n")),
        ("gemini", gemini.to_string()),
    ] {
        let board = Board::new();
        let tools = board.base().join("tools");
        stub(&tools, name, &answer);
        board.cli_ok("create_task", json!({"id": "t", "description": "say it is done"}));
        let mut work = script(&board, Path::new(env!("CARGO_BIN_EXE_callboard")), &tools);
        work.args(["work", "--workflow", "w", "--token-budget", "1000", "--"]);
        succeeded(&board.finish(work.arg(example(&format!("work/{name}.sh")))));
        let task = board.cli_ok("get_task", json!({"task_id": "t"}))["task"].clone();
        assert_eq!(task["result"]["data"]["summary"], "it is done", "{name}: {task}");
        let spent = board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}))["workflow"]
            ["spent"]["tokens"]
            .clone();
        assert_eq!(spent, 42, "{name}");
        let read: Value =
            serde_json::from_slice(&fs::read(tools.join(format!("{name}.read"))).unwrap()).unwrap();
        assert_eq!(read["task"]["description"], "say it is done", "{name} reads its task");
    }
}

#[test]
fn a_conversation_that_ends_in_an_error_costs_its_tokens_too() {
    if !has("jq") {
        return;
    }
    let usage = json!({"input_tokens": 30, "output_tokens": 12});
    for (result, usage, category, spent) in [
        (json!("Claude AI usage limit reached"), usage.clone(), "rate_limited", 42),
        (json!("the connection was lost"), usage, "transient", 42),
        (Value::Null, Value::Null, "transient", 0),
    ] {
        let board = Board::new();
        let tools = board.base().join("tools");
        stub(
            &tools,
            "claude",
            &json!({"is_error": true, "result": result, "usage": usage}).to_string(),
        );
        board.cli_ok("create_task", json!({"id": "t", "description": "say it is done"}));
        let mut work = script(&board, Path::new(env!("CARGO_BIN_EXE_callboard")), &tools);
        work.args(["work", "--workflow", "w", "--retries", "0", "--max-tasks", "1", "--"]);
        board.finish(work.arg(example("work/claude.sh")));
        let task = board.cli_ok("get_task", json!({"task_id": "t"}))["task"].clone();
        assert_eq!(task["attempts"][0]["error"]["category"], category, "{task}");
        let workflow =
            board.cli_ok("get_checkpoint", json!({"workflow_id": "w"}))["workflow"].clone();
        assert_eq!(workflow["spent"]["tokens"], spent, "{workflow}");
    }
}

#[test]
fn an_interrupted_conversation_is_taken_up_again() {
    if !has("jq") {
        return;
    }
    let board = Board::new();
    let tools = board.base().join("tools");
    stub(
        &tools,
        "claude",
        &json!({"is_error": true, "result": "the connection was lost"}).to_string(),
    );
    board.cli_ok("create_task", json!({"id": "t", "description": "say it is done"}));
    let mut work = script(&board, Path::new(env!("CARGO_BIN_EXE_callboard")), &tools);
    work.args(["work", "--retries", "1", "--backoff", "10ms", "--max-tasks", "1", "--"]);
    board.finish(work.arg(example("work/claude.sh")));
    let asked = fs::read_to_string(tools.join("claude.asked")).unwrap();
    let session = |line: &str, option: &str| {
        let mut words = line.split(' ').skip_while(|word| *word != option);
        words.nth(1).map(str::to_owned)
    };
    let lines: Vec<_> = asked.lines().filter(|line| line.contains("--print")).collect();
    assert_eq!(lines.len(), 2, "{asked}");
    let first = session(lines[0], "--session-id");
    assert!(first.is_some() && first == session(lines[1], "--resume"), "{asked}");
}

#[test]
fn recipes_take_the_model_the_system_prompt_and_the_refinements_of_the_bundle() {
    if !has("jq") {
        return;
    }
    for (name, options) in [
        ("claude", "--model m-1 --append-system-prompt Be brief, always "),
        ("codex", "--model m-1 "),
        ("gemini", "--model m-1 "),
    ] {
        let board = Board::new();
        let tools = board.base().join("tools");
        stub(&tools, name, "{}");
        board.cli_ok("create_task", json!({"id": "t", "description": "say it is done"}));
        let prompts = json!({"system": "Be brief, always"});
        board
            .cli_ok("save_bundle", json!({"scope": "docs", "model_id": "m-1", "prompts": prompts}));
        for (more, given) in [(&["--state-scope", "docs"][..], true), (&[], false)] {
            let mut work = script(&board, Path::new(env!("CARGO_BIN_EXE_callboard")), &tools);
            work.args(["work", "--retries", "0", "--max-tasks", "1"]).args(more).arg("--");
            board.finish(work.arg(example(&format!("work/{name}.sh"))));
            let asked = fs::read_to_string(tools.join(format!("{name}.asked"))).unwrap();
            assert_eq!(asked.contains(options), given, "{name}: {asked}");
            assert!(given || !asked.contains("--model"), "{name}: {asked}");
            fs::remove_file(tools.join(format!("{name}.asked"))).unwrap();
            board.cli_ok("reset_tasks", json!({"scope": "all"}));
        }
        // A refinement is told in this run and in later ones.
        let refining = ["--state-refine-text", "Name the file first"];
        for more in [&refining[..], &[]] {
            let mut work = script(&board, Path::new(env!("CARGO_BIN_EXE_callboard")), &tools);
            work.args(["work", "--retries", "0", "--max-tasks", "1", "--state-scope", "docs"]);
            board.finish(work.args(more).arg("--").arg(example(&format!("work/{name}.sh"))));
            let asked = fs::read_to_string(tools.join(format!("{name}.asked"))).unwrap();
            assert!(asked.contains("Be brief, always\nName the file first"), "{name}: {asked}");
            fs::remove_file(tools.join(format!("{name}.asked"))).unwrap();
            board.cli_ok("reset_tasks", json!({"scope": "all"}));
        }
    }
}

#[test]
fn a_conversation_that_is_unknown_or_none_begins_anew() {
    if !has("jq") {
        return;
    }
    for kept in ["--dangerously-skip-permissions", "00000000-0000-4000-8000-000000000000"] {
        let board = Board::new();
        let tools = board.base().join("tools");
        fs::create_dir_all(&tools).unwrap();
        let path = tools.join("claude");
        let text = "#!/bin/sh\nprintf '%s\\n' \"$*\" >>\"$0.asked\"\ncat >/dev/null\n\
            case $* in *--resume*) echo 'No conversation found with session ID: x' >&2; exit 1;; esac\n\
            echo '{\"is_error\": false, \"result\": \"it is done\", \"session_id\": \"s\", \"usage\": {}}'\n";
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut asking = script(&board, &example("work/claude.sh"), &tools);
        let input = board.base().join("input");
        fs::write(
            &input,
            json!({"task": {"id": "t"}, "checkpoint": {"session": kept}}).to_string(),
        )
        .unwrap();
        let finished = board.finish(asking.stdin(fs::File::open(&input).unwrap()));
        succeeded(&finished);
        let asked = fs::read_to_string(tools.join("claude.asked")).unwrap();
        let lines: Vec<_> = asked.lines().filter(|line| line.contains("--print")).collect();
        assert_eq!(lines.len(), if kept.starts_with('-') { 1 } else { 2 }, "{asked}");
        assert!(!asked.contains("dangerously"), "{asked}");
        assert!(lines.last().unwrap().contains("--session-id"), "{asked}");
        let marked: Vec<_> =
            finished.stdout.lines().filter(|line| line.starts_with("::callboard")).collect();
        assert!(marked.last().is_some_and(|line| !line.contains(kept)), "{}", finished.stdout);
    }
}

#[test]
fn words_of_others_on_the_board_are_no_commands_of_the_pipeline() {
    let board = Board::new();
    let evil = json!({"id": "evil", "description": "touch stolen", "path": "P1.M1.T9"});
    let other = json!({"id": "other", "description": "touch stolen"});
    board.cli_ok("create_tasks_batch", json!({"tasks": [evil, other]}));
    let finished = board.finish(&mut script(&board, &example("work/pipeline.sh"), board.base()));
    assert!(!finished.status.success(), "{}", finished.stdout);
    assert_eq!(
        (&board.task("evil")["status"], &board.task("other")["status"]),
        (&json!("failed"), &json!("available"))
    );
    assert!(!board.base().join("stolen").exists());
}

#[test]
fn every_option_in_the_recipes_is_one_of_callboards() {
    let board = Board::new();
    let mut looked_at = 0;
    for entry in fs::read_dir(example("work")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path())
            .unwrap()
            .replace("\\\n", " ")
            .replace("\n          ", " ");
        for line in
            text.lines().filter_map(|line| line.split_once("callboard work").map(|(_, rest)| rest))
        {
            let help = board.finish(board.command().args(["work", "--help"])).stdout;
            let own = line.split(" -- ").next().unwrap_or_default();
            for option in
                own.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2)
            {
                let option = option.trim_end_matches(['`', '"', ',', '.', ';', ')']);
                assert!(help.contains(option), "`callboard work` has no {option}: {line}");
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 10, "{looked_at} options");
}
