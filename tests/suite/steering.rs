//! What a person types to see and steer: names of tasks, verbs, and words that are no commands.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Board, Finished, PATIENCE, until};

const REFUSED: i32 = 1;
const USAGE: i32 = 2;

fn run(board: &Board, arguments: &[&str]) -> Finished {
    board.finish(board.command().args(arguments))
}

#[track_caller]
fn says(board: &Board, arguments: &[&str]) -> String {
    let finished = run(board, arguments);
    let (code, said) = (finished.status.code(), finished.stdout);
    assert_eq!((code, finished.stderr.as_str()), (Some(0), ""), "{arguments:?}: {said}");
    said
}

#[track_caller]
fn fails(board: &Board, arguments: &[&str], code: i32, parts: &[&str]) {
    let Finished { status, stdout, stderr, .. } = run(board, arguments);
    assert_eq!(status.code(), Some(code), "{arguments:?}: {stdout}{stderr}");
    contains(&stderr, parts);
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

fn json_of(board: &Board, arguments: &[&str]) -> Value {
    let said = says(board, &[&["--json"], arguments].concat());
    serde_json::from_str(&said).expect("JSON")
}

/// Three tasks, the second of which bob holds.
fn board() -> Board {
    let board = Board::new();
    for (id, title, path) in
        [("lexer-a", "Write the lexer", "P1.M1.T1"), ("task-7f3kab", "Write the AST", "P1.M1.T2")]
    {
        says(&board, &["add", "do it", "--title", title, "--id", id, "--path", path]);
    }
    says(&board, &["add", "Fix the parser", "--id", "parser"]);
    board.cli_ok("register_agent", json!({"agent_id": "bob"}));
    says(&board, &["--agent", "bob", "claim", "2"]);
    board
}

#[test]
fn every_command_takes_every_name_of_a_task() {
    let board = board();
    for name in ["2", "#2", "task-7f3kab", "task-7f3", "7f3k", "kab", "P1.M1.T2", "write the a"] {
        contains(&says(&board, &["show", name]), &["#2 task-7f3kab", "Write the AST"]);
    }
    for (words, part) in [
        (&["explain", "#1"][..], "#1 Write the lexer"),
        (&["artifact", "list", "1"], "no artifacts"),
        (&["history", "--task", "1", "--kind", "tasks_created"], "added #1 \"Write the lexer\""),
        (&["heartbeat", "--task", "2", "--agent", "bob", "--note", "half"], "task-7f3kab"),
        (&["start", "2", "--agent", "bob"], "started #2 Write the AST"),
        (&["discoveries", "add", "d", "--task", "7f3k", "--agent", "bob"], ""),
        (&["discoveries", "--task", "2"], "d"),
        (&["send", "task:2", "hi", "--task", "1"], "task:task-7f3kab"),
        (&["add", "later", "--depends", "parser", "--after", "#1", "--id", "later"], "later"),
        (&["complete", "2", "done", "--agent", "bob"], "completed #2 Write the AST"),
        (&["reset", "2"], "1 task begins anew"),
        (&["cancel", "fix the"], "cancelled #3 Fix the parser"),
        (&["retry", "3"], "available again: #3 Fix the parser"),
        (&["claim", "3", "--agent", "bob"], "parser"),
        (&["fail", "3", "no", "--agent", "bob", "--permanent"], "#3 Fix the parser is failed"),
        (&["claim", "1", "--agent", "bob"], "lexer-a"),
        (&["release", "1"], "released #1 Write the lexer"),
    ] {
        contains(&says(&board, words), &[part]);
    }
    let later = json_of(&board, &["show", "later"]);
    assert_eq!(later["task"]["dependencies"], json!(["parser", "lexer-a"]));
    assert_eq!(later["task"]["number"], 4);
}

#[test]
fn names_that_mean_several_tasks_or_none_are_refused() {
    let board = board();
    let both = ["`write`", "\n  #1 lexer-a Write the lexer\n  #2 task-7f3kab Write the AST"];
    fails(&board, &["show", "write"], REFUSED, &both);
    fails(&board, &["complete", "99", "x"], REFUSED, &["no task `99`", "callboard tasks"]);
    fails(&board, &["show", "no such title"], REFUSED, &["`no such title`", "callboard tasks"]);
    let refused = run(&board, &["--json", "show", "write"]);
    let error: Value = serde_json::from_str(&refused.stderr).expect("JSON");
    assert_eq!(error["error"]["code"], "ambiguous_task");
    assert_eq!(error["error"]["candidates"][1]["number"], 2);
    // Numbers are the board's: digits are no id of a new task.
    let added = run(&board, &["add", "seventh", "--id", "1"]);
    assert!(added.stderr.contains("numbers are the board's"), "{}", added.stderr);
    contains(&says(&board, &["show", "1"]), &["#1 lexer-a"]);
    contains(&says(&board, &["show", "4"]), &["#4 task-", "seventh"]);
}

/// Boards of earlier versions have ids of digits, such as that of task 3 here.
#[test]
fn a_number_wins_over_the_id_of_another_task_and_it_is_said() {
    let board = Board::new();
    board.make_dir();
    let task = |id: &str, title: &str| {
        json!({"id": id, "description": title, "status": "available", "priority": 5, "claimed_by": null,
        "dependencies": [], "context": null, "result": null, "created_at": "2026-01-01T00:00:00Z", "claimed_at": null, "completed_at": null})
    };
    let tasks = [task("a", "First"), task("b", "Second"), task("2", "Third")];
    let old = json!({"master_plan": "", "goal": "g", "tasks": tasks, "agents": {}, "discoveries": [],
        "created_at": "2026-01-01T00:00:00Z", "last_activity": "2026-01-01T00:00:00Z"});
    std::fs::write(board.file("mcp-state.json"), old.to_string()).expect("written");
    let cancelled = run(&board, &["cancel", "2", "--yes"]);
    assert!(cancelled.status.success(), "{}", cancelled.stderr);
    contains(&cancelled.stderr, &["`2` is the number of Second", "the id `2` is that of #3 Third"]);
    assert_eq!(
        (&board.task("b")["status"], &board.task("2")["status"]),
        (&json!("cancelled"), &json!("available"))
    );
    // An agent that names it so is asked which it means, unless it holds one of them.
    let mut agent = board.mcp();
    agent.register("w");
    let refused = agent.call("get_task", json!({"task_id": "2"}));
    assert!(refused.code() == "ambiguous_task" && refused.text.contains("#3"), "{}", refused.text);
    let claimed = agent.ok("claim_task", json!({"agent_id": "w", "task_id": "#3"}));
    assert_eq!(claimed["task"]["id"], "2");
    agent.ok("complete_task", json!({"agent_id": "w", "task_id": "2", "output": "o"}));
    assert_eq!(board.task("2")["status"], "done");
}

#[test]
fn a_wrong_word_names_the_right_command() {
    let board = board();
    for (words, meant) in [
        (&["rm", "1"][..], "`callboard cancel 1`"),
        (&["kill", "bob"], "`callboard stop bob --now`"),
        (&["prio", "1", "2"], "`callboard edit 1 --priority 1`"),
        (&["restart", "1"], "`callboard retry 1`"),
    ] {
        fails(&board, words, USAGE, &[meant]);
        let refused = run(&board, &[&["--json"], words].concat());
        let error: Value = serde_json::from_str(&refused.stderr).expect("JSON");
        contains(error["error"]["message"].as_str().unwrap_or_default(), &[meant]);
    }
    for (word, same) in
        [("ls", "tasks"), ("list", "tasks"), ("who", "agents"), ("inbox", "messages")]
    {
        assert_eq!(json_of(&board, &[word]), json_of(&board, &[same]), "{word}");
    }
}

#[test]
fn edit_says_what_is_different() {
    let board = board();
    let said =
        says(&board, &["edit", "1", "--priority", "1", "--title", "Lexer", "--depends", "3"]);
    contains(&said, &["changed #1 Write the lexer", "priority: 5 → 1", "none → parser"]);
    let said = says(&board, &["edit", "Lexer", "--tag", "a", "--tag", "b", "--depends", "3"]);
    contains(&said, &["tags: none → a, b", "dependencies: parser (as before)"]);
    contains(
        &says(&board, &["edit", "1", "--no-depends", "--no-tags", "--tag", "c"]),
        &["a, b → c"],
    );
    let task = &json_of(&board, &["show", "1"])["task"];
    assert_eq!((&task["tags"], &task["dependencies"]), (&json!(["c"]), &json!([])));
    fails(&board, &["edit", "1"], USAGE, &["edit what?", "--priority"]);
    says(&board, &["--agent", "bob", "complete", "2", "x"]);
    fails(&board, &["edit", "2", "--priority", "1"], REFUSED, &["done", "callboard reset"]);
}

#[test]
fn retry_lists_first_and_leaves_cancelled_ones_alone() {
    let board = board();
    says(&board, &["--agent", "bob", "fail", "2", "no", "--permanent"]);
    says(&board, &["cancel", "1"]);
    contains(&says(&board, &["retry"]), &["would be retried: #2", "retry --all"]);
    assert_eq!(json_of(&board, &["show", "2"])["task"]["status"], "failed");
    let said = says(&board, &["retry", "P1"]);
    assert!(said.contains("#2") && !said.contains("#1"), "{said}");
    fails(&board, &["retry", "--all"], REFUSED, &["nothing to retry"]);
    contains(&says(&board, &["retry", "--cancelled"]), &["would be retried: #1"]);
    contains(&says(&board, &["retry", "--all", "--cancelled"]), &["available again: #1"]);
}

#[test]
fn cancel_of_a_path_hits_what_is_open_there() {
    let board = board();
    says(&board, &["--agent", "bob", "complete", "2", "x"]);
    let said = says(&board, &["cancel", "P1.M1", "--reason", "no longer"]);
    assert_eq!(said, "cancelled #1 Write the lexer\n");
    fails(&board, &["cancel", "P1"], REFUSED, &["no task at or below P1 is open"]);
    fails(&board, &["cancel", "P7"], REFUSED, &["P7"]);
}

#[test]
fn log_tells_of_an_agent_or_a_task() {
    let board = board();
    says(&board, &["--agent", "bob", "complete", "2", "x"]);
    says(&board, &["edit", "1", "--priority", "2"]);
    let of_bob = says(&board, &["log", "bob"]);
    let kinds = |subject: &[&str]| {
        let events = json_of(&board, &[&["log"], subject].concat())["events"].clone();
        let events = events.as_array().cloned().unwrap_or_default();
        let kinds = events.iter().map(|one| one["kind"].as_str().unwrap_or_default().to_owned());
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(of_bob.lines().count(), 3, "{of_bob}");
    assert_eq!(kinds(&["bob"]), ["completed", "claimed", "agent_registered"]);
    assert_eq!(kinds(&["1"]), ["task_updated", "tasks_created"]);
    assert_eq!(kinds(&["--limit", "1"]), ["task_updated"]);
    fails(&board, &["log", "nobody"], REFUSED, &["nobody"]);
}

#[test]
fn agents_are_paused_stopped_and_forgotten_by_name() {
    let board = board();
    contains(&says(&board, &["pause", "bob", "--reason", "lunch"]), &["for bob", "resume bob"]);
    fails(&board, &["pause", "bert"], REFUSED, &["bert", "callboard agents"]);
    says(&board, &["resume", "bob"]);
    let said = says(&board, &["stop", "bob", "--reason", "wrong branch"]);
    contains(&said, &["asked to stop #2 Write the AST", "next call", "stop bob --now"]);
    let heard = says(&board, &["--agent", "bob", "heartbeat"]);
    contains(&heard, &["stop requested: task-7f3kab wrong branch"]);
    contains(&says(&board, &["stop", "bob", "--now"]), &["released #2 Write the AST"]);
    assert_eq!(json_of(&board, &["show", "2"])["task"]["status"], "available");
    let none = run(&board, &["--agent", "bob", "claim"]);
    contains(&none.stdout, &["you are asked to stop"]);
    contains(&says(&board, &["agents", "forget", "bob"]), &["forgotten: bob"]);
    fails(&board, &["stop", "bob"], REFUSED, &["bob"]);
}

#[test]
fn results_and_diffs_show_what_was_recorded() {
    let board = board();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(board.base()).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        let output = git.args(arguments).output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "one"]);
    std::fs::write(board.base().join("ast.rs"), "enum Ast {}\n").expect("written");
    git(&["add", "ast.rs"]);
    git(&["commit", "--quiet", "-m", "two"]);
    let commit = git(&["rev-parse", "HEAD"]);
    fails(&board, &["diff", "1"], REFUSED, &["#1 Write the lexer", "nothing was recorded"]);
    says(&board, &["--agent", "bob", "complete", "2", "an enum", "--commit", &commit]);
    contains(&says(&board, &["diff", "2"]), &["#2 Write the AST", &commit[..12], "+enum Ast {}"]);
    assert_eq!(json_of(&board, &["diff", "2"])["commit"], json!(commit));
    contains(&says(&board, &["results"]), &["#2 Write the AST", "an enum"]);
    contains(&says(&board, &["results", "2"]), &["output: an enum", &commit]);
}

#[test]
fn a_task_is_assigned_and_others_are_told() {
    let board = board();
    contains(
        &says(&board, &["assign", "1", "bob"]),
        &["#1 Write the lexer is kept for bob", "in 30 min"],
    );
    board.cli_ok("register_agent", json!({"agent_id": "eve"}));
    let refused = ["#1 is kept for agent `bob`"];
    fails(&board, &["--agent", "eve", "claim", "1"], REFUSED, &refused);
    contains(&says(&board, &["explain", "1"]), &["it is kept for bob"]);
    contains(&says(&board, &["assign", "1"]), &["open to all: #1 Write the lexer"]);
    says(&board, &["--agent", "eve", "claim", "1"]);
    fails(&board, &["assign", "1", "bob"], REFUSED, &["callboard release"]);
}

#[test]
fn shells_are_offered_tasks_with_titles_and_agents() {
    let board = board();
    let offered = |shell: &str, words: &[&str]| {
        says(&board, &[&["__complete", shell, "callboard"], words].concat())
    };
    let tasks =
        "3\tFix the parser (ready)\n2\tWrite the AST (claimed)\n1\tWrite the lexer (ready)\n";
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&offered("bash", &["show", ""])), sorted(tasks));
    assert_eq!(offered("zsh", &["show", "pars"]), "parser:Fix the parser (ready)\n");
    contains(&offered("fish", &["stop", ""]), &["bob\tworker, holds task-7f3kab"]);
    contains(&offered("bash", &["--agent", "b"]), &["bob\t"]);
    assert_eq!(offered("bash", &["show", "--"]), "");
    assert_eq!(offered("bash", &["edit", "1", "--title", ""]), "");
    for shell in ["bash", "zsh", "fish"] {
        contains(&says(&board, &["completions", shell]), &["callboard __complete"]);
    }
    let elsewhere = Board::new();
    assert_eq!(says(&elsewhere, &["__complete", "bash", "callboard", "show", ""]), "");
}

#[test]
fn undo_takes_back_the_last_command_and_then_the_one_before() {
    let board = board();
    says(&board, &["edit", "1", "--priority", "1"]);
    says(&board, &["cancel", "1"]);
    let would = says(&board, &["undo", "--dry-run"]);
    contains(&would, &["would take back:", "cancelled #1 \"Write the lexer\""]);
    assert_eq!(json_of(&board, &["show", "1"])["task"]["status"], "cancelled");
    let said = says(&board, &["undo"]);
    contains(&said, &["made available #1 \"Write the lexer\"", "undid event"]);
    assert_eq!(json_of(&board, &["show", "1"])["task"]["status"], "available");
    contains(&says(&board, &["undo"]), &["#1 \"Write the lexer\": priority → 5"]);
    assert_eq!(json_of(&board, &["show", "1"])["task"]["priority"], 5);
    // What comes before that are creations, of which bob has taken one.
    contains(&says(&board, &["undo"]), &["cancelled", "#3"]);
    fails(&board, &["undo"], REFUSED, &["#2 is claimed by now"]);
    fails(&board, &["undo", "9999"], REFUSED, &["event 9999 is not in the past"]);
    let added = says(&board, &["history", "--kind", "tasks_created", "--task", "1"]);
    let seq = added.split_whitespace().next().unwrap_or_default();
    contains(&says(&board, &["undo", &format!("e{seq}")]), &["cancelled", "#1"]);
    let refused = board.finish(board.command().args(["--agent", "bob", "undo"]));
    contains(&refused.stderr, &["leader"]);
}

#[test]
fn undo_takes_a_task_and_never_guesses_whether_a_number_is_one() {
    let board = board();
    says(&board, &["edit", "1", "--priority", "1"]);
    says(&board, &["cancel", "3"]);
    let both = ["2 is an event and a task", "undo e2", "undo '#2'", "#2 Write the AST"];
    fails(&board, &["undo", "2"], REFUSED, &both);
    fails(&board, &["undo", "2", "--dry-run"], REFUSED, &both);
    let would = says(&board, &["undo", "#1", "--dry-run"]);
    contains(&would, &["#1 \"Write the lexer\": priority"]);
    contains(&says(&board, &["undo", "#1"]), &["#1 \"Write the lexer\": priority → 5"]);
    assert_eq!(board.task("task-7f3kab")["priority"], 5);
    let cancelled = says(&board, &["history", "--kind", "cancelled"]);
    let seq = cancelled.split_whitespace().next().unwrap_or_default();
    contains(&says(&board, &["undo", &format!("e{seq}")]), &["made available #3"]);
    fails(&board, &["undo", "no such task"], REFUSED, &["no task is called `no such task`"]);
}

#[test]
fn a_word_for_all_tasks_is_never_a_word_of_a_title() {
    let board = board();
    says(&board, &["add", "All golden tests", "--id", "golden"]);
    for word in ["all", "ALL", "everything", "*"] {
        for task in ["1", "3"] {
            says(&board, &["--agent", "ada", "claim", task]);
            says(&board, &["--agent", "ada", "fail", task, "no disk", "--no-retry"]);
        }
        contains(&says(&board, &["retry", word]), &["available again: #1", "available again: #3"]);
    }
    for line in
        [&["edit", "all", "--priority", "1"][..], &["assign", "all", "bob"], &["release", "all"]]
    {
        fails(&board, line, REFUSED, &["no task is called `all`"]);
    }
    assert_eq!(board.task("golden")["priority"], 5);
    let refused = run(&board, &["cancel", "all"]);
    contains(
        &refused.stderr,
        &["#4 All golden tests", "nothing was changed; `callboard cancel all --yes`"],
    );
    contains(&says(&board, &["reset", "all", "--yes"]), &["begin anew"]);
    // What changes a task needs its name; what shows one takes a word of the title.
    fails(&board, &["edit", "golden tests", "--priority", "1"], REFUSED, &["#4 All golden tests"]);
    contains(&says(&board, &["show", "golden tests"]), &["#4", "All golden tests"]);
}

#[test]
fn status_says_whether_an_agent_has_heard_that_it_is_to_stop() {
    let board = board();
    says(&board, &["stop", "bob"]);
    contains(&says(&board, &["status"]), &["asked to stop", "not heard"]);
    // Signs of life that follow each other closely are recorded as one.
    let status = until(PATIENCE, "bob hears it", || {
        says(&board, &["--agent", "bob", "heartbeat"]);
        Some(says(&board, &["status"])).filter(|status| !status.contains("not heard"))
    });
    contains(&status, &["asked to stop"]);
}

#[test]
fn what_ends_many_tasks_says_which_and_whose_they_were() {
    let board = board();
    says(&board, &["add", "After it", "--after", "1", "--id", "later"]);
    // All of them only if that is meant.
    let refused = run(&board, &["cancel", "all"]);
    assert_eq!(refused.status.code(), Some(REFUSED), "{}", refused.stdout);
    contains(
        &refused.stderr,
        &["#2 Write the AST (bob works on it)", "nothing was changed", "--yes"],
    );
    assert_eq!(board.task("parser")["status"], "available");
    let said = says(&board, &["cancel", "1", "2"]);
    contains(
        &said,
        &[
            "cancelled #1 Write the lexer\n",
            "cancelled #2 Write the AST; bob worked on it",
            "now stuck: #4 After it",
            "edit 4 --no-depends",
        ],
    );
    contains(&says(&board, &["cancel", "all", "--yes"]), &["#3 Fix the parser", "#4 After it"]);
}

#[test]
fn a_person_who_completes_an_open_task_is_told_how_it_ends() {
    let board = board();
    let why = ["nobody works on #1 Write the lexer", "callboard cancel 1", "callboard claim 1"];
    fails(&board, &["done", "1"], REFUSED, &why);
    // An agent claims what it completes.
    let of_agent = ["#1", "claim it with `callboard --agent bob claim lexer-a`"];
    fails(&board, &["--agent", "bob", "complete", "1", "x"], REFUSED, &of_agent);
}

#[test]
fn an_answer_goes_to_the_question_that_its_first_word_names() {
    let board = board();
    let ask = |agent: &str, question: &str| {
        board.cli_ok("register_agent", json!({"agent_id": agent}));
        board.cli_ok("ask_human", json!({"agent_id": agent, "question": question}));
    };
    ask("eve", "Tabs?");
    contains(&says(&board, &["answer", "eve", "No tabs"]), &["answered Q1 (eve: Tabs?): No tabs"]);
    ask("eve", "Sure?");
    fails(&board, &["answer", "7", "yes"], REFUSED, &["no question 7 waits"]);
    contains(&says(&board, &["answer", "2", "yes"]), &["answered Q2 (eve: Sure?): yes"]);
    ask("bob", "Which?");
    contains(&says(&board, &["answer", "", "that", "one"]), &["Q3 (bob: Which?): that one"]);
}

/// What a shell prints that runs `script` with this board's callboard on its path; `None` without
/// the shell.
fn in_shell(board: &Board, shell: &str, script: &str) -> Option<String> {
    let bin = board.base().join("bin");
    if !bin.exists() {
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_callboard"), bin.join("callboard")).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = std::process::Command::new(shell);
    command.args(["-c", script]).env("PATH", path).env("HOME", board.base());
    command.env("COORDINATION_DIR", board.dir()).current_dir(board.base());
    let output = command.output().ok()?;
    assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn real_shells_complete_commands_tasks_and_agents() {
    let board = board();
    let bash = |words: &str, at: usize| {
        let script = format!(
            "eval \"$(callboard completions bash)\"; COMP_WORDS=({words}); COMP_CWORD={at}; \
             _callboard_names callboard; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        in_shell(&board, "bash", &script).expect("bash is part of the system")
    };
    contains(&bash("callboard show ''", 2), &["1  Write the lexer (ready)\n", "3  Fix the parser"]);
    assert_eq!(bash("callboard show pars", 2), "parser\n", "one alone is put in");
    contains(&bash("callboard sta", 1), &["status\n", "start\n"]);
    contains(&bash("callboard stop ''", 2), &["bob"]);
    let fish = |line: &str| {
        let script = format!("callboard completions fish | source; complete -C '{line}'");
        in_shell(&board, "fish", &script)
    };
    match fish("callboard show ") {
        Some(tasks) => {
            contains(&tasks, &["1\tWrite the lexer (ready)"]);
            contains(&fish("callboard stop ").unwrap(), &["bob\t"]);
            contains(&fish("callboard tasks --sta").unwrap(), &["--status\t"]);
        }
        None => println!("fish is not installed, so only bash was tried"),
    }
}

#[test]
fn every_remedy_can_be_typed() {
    let board = board();
    says(&board, &["--agent", "bob", "complete", "2", "done"]);
    fails(&board, &["edit", "2", "--priority", "1"], REFUSED, &["`callboard reset 2` begins it"]);
    fails(&board, &["assign", "2", "bob"], REFUSED, &["`callboard reset 2` begins it anew"]);
    fails(&board, &["approve", "1"], REFUSED, &["`callboard tasks --status review` lists"]);
    fails(&board, &["show", "P7.M1"], REFUSED, &["no task `P7.M1`; no task is at that path"]);
    let refused = run(&board, &["approve", "1", "3"]).stderr;
    assert!(!refused.contains("operations["), "{refused}");
}

#[test]
fn numbers_that_are_not_taken_are_told_with_those_that_are() {
    let board = board();
    for (line, told) in [
        (&["tasks", "--limit", "-1"][..], "--limit takes a whole number from 1 to 1000, not -1"),
        (&["history", "--limit", "0"], "--limit takes a whole number of at least 1, not 0"),
        (&["claim", "--wait", "-1"], "--wait takes a whole number from 0 to "),
        (&["work", "--agents", "-1", "--", "true"], "--agents takes a whole number from 1 to 64"),
        (&["assign", "3", "bob", "--minutes", "-5"], "--minutes takes a whole number"),
        (&["tasks", "--limit", "x"], "--limit takes a whole number from 1 to 1000, not x"),
        (&["history", "--since", "soon"], "--since takes an event's number, a time (2026-03-01T"),
    ] {
        fails(&board, line, USAGE, &[told]);
    }
    for since in ["2020-03-01", "yesterday", "2020-03-01T12:00", "2020-03-01 12:00", "3d"] {
        assert!(says(&board, &["history", "--since", since]).contains("Fix the parser"), "{since}");
    }
}

#[test]
fn what_is_not_text_is_refused_in_a_sentence() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let board = board();
    let refused = board.finish(board.command().arg(OsStr::from_bytes(b"caf\xe9")));
    assert_eq!(refused.status.code(), Some(USAGE));
    contains(&refused.stderr, &["is not text in UTF-8"]);
    let told = board.finish(board.command().arg("status").env("CALLBOARD_ME", "a b"));
    contains(&told.stderr, &["CALLBOARD_ME is not used as your name"]);
}

#[test]
fn a_claim_that_may_wait_waits_for_the_end_of_a_pause() {
    let board = Board::new();
    let mut client = board.mcp();
    client.register("w");
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    board.cli_ok("pause", json!({"reason": "lunch"}));
    let waiting = client.wait_in_claim("w");
    board.cli_ok("resume", json!({}));
    let reply = client.reply(waiting).expect("an answer").ok();
    assert_eq!(reply["task"]["id"], "t", "{reply}");
    client.ok("release_task", json!({"agent_id": "w", "task_id": "t"}));
    // Who is asked to stop is told at once.
    board.cli_ok("stop_agent", json!({"agent": "w"}));
    let told = client.ok("claim_task", json!({"agent_id": "w", "wait_seconds": 50}));
    assert_eq!(told["verdict"], "paused", "{told}");
}
