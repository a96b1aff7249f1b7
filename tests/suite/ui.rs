//! `callboard ui` in a pseudo-terminal: what it shows, what keys do to the board, and how it ends.

mod terminal;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Board, Client, PATIENCE, available, until};
use terminal::Terminal;

/// Whether there is a program that gives a process a terminal of its own.
fn is_possible() -> bool {
    let found = std::process::Command::new("setsid").arg("--version").output().is_ok();
    available("script", (!found).then_some("there is no setsid (util-linux) on this machine"))
}

/// A board on which agents work, ask, fail and wait for reviews.
fn lively() -> (Board, Client) {
    let board = Board::new();
    let mut agents = board.mcp();
    for agent in ["ada", "bob"] {
        agents.ok("register_agent", json!({"agent_id": agent, "role": "worker"}));
    }
    for (id, title, more) in [
        ("made", "Lexer: names", json!({"review": "required"})),
        ("work", "Parser: expressions", json!({})),
        ("bad", "Guide", json!({"max_attempts": 1})),
        ("later", "Visitor", json!({"dependencies": ["bad"]})),
        ("next", "Spans", json!({})),
        ("drop", "Unicode names 名前", json!({})),
    ] {
        let mut task = json!({"id": id, "title": title, "description": title});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        agents.ok("create_task", task);
    }
    for (agent, task) in [("ada", "made"), ("bob", "bad"), ("ada", "work")] {
        agents.ok("claim_task", json!({"agent_id": agent, "task_id": task}));
        match task {
            "made" => {
                agents.ok(
                    "complete_task",
                    json!({"agent_id": agent, "task_id": task, "output": "all names"}),
                );
            }
            "bad" => {
                agents.ok("fail_task", json!({"agent_id": agent, "task_id": task, "error": "no docs/book", "category": "test"}));
            }
            _ => {}
        }
    }
    let question = json!({"agent_id": "ada", "question": "Keep the old syntax?"});
    agents.ok("ask_human", question);
    (board, agents)
}

#[track_caller]
fn until_task(board: &Board, id: &str, what: &str, is: impl Fn(&Value) -> bool) {
    until(PATIENCE, what, || is(&board.task(id)).then_some(()));
}

#[test]
fn every_action_is_done_by_keys_and_is_in_the_state_file() {
    if !is_possible() {
        return;
    }
    let (board, _agents) = lively();
    let mut ui = Terminal::start(&board, 100, 40, &[]);
    ui.shows("WAITS FOR YOU");
    ui.shows("Keep the old syntax?");
    // A letter after the filter is for the one row that is left.
    ui.on("keep the old", "aYes, keep it\r");
    until(PATIENCE, "the answer is there", || {
        let document = board.document();
        let messages = document["messages"].as_array().unwrap();
        messages.iter().any(|one| one["text"] == "Yes, keep it").then_some(())
    });
    ui.on("lexer", "xMore tests\r");
    until_task(&board, "made", "sent back", |task| task["status"] == "available");
    ui.on("guide", "r");
    until_task(&board, "bad", "retried", |task| task["status"] == "available");
    ui.on("spans", "+");
    until_task(&board, "next", "sooner", |task| task["priority"] == 4);
    // One step down is from what the screen shows, so that has to be seen first.
    ui.keys("2");
    ui.shows("4     Spans");
    ui.on("spans", "-");
    until_task(&board, "next", "later", |task| task["priority"] == 5);
    ui.keys("e now\r");
    until_task(&board, "next", "has a new title", |task| task["title"] == "Spans now");
    ui.on("spans", "wbob\r");
    until_task(&board, "next", "kept", |task| task["kept_for"]["agent"] == "bob");
    ui.on("unicode", "c");
    ui.shows("Cancel #6 Unicode names");
    ui.keys("y");
    until_task(&board, "drop", "cancelled", |task| task["status"] == "cancelled");
    ui.keys("3");
    ui.shows("AGENTS  2");
    ui.on("ada", "mStop at noon\r");
    until(PATIENCE, "the message is there", || {
        let document = board.document();
        let messages = document["messages"].as_array().unwrap();
        messages.iter().any(|one| one["text"] == "Stop at noon").then_some(())
    });
    ui.on("ada", "s");
    ui.shows("Stop ada? It works on #2 Parser: expressions.");
    ui.keys("n");
    until_task(&board, "work", "released", |task| task["status"] == "available");
    ui.keys("nWrite the changelog\r");
    until(PATIENCE, "the task is there", || {
        board
            .tasks()
            .values()
            .any(|task| task["description"] == "Write the changelog")
            .then_some(())
    });
    ui.keys("pmerging main\r");
    until(PATIENCE, "it is paused", || {
        (board.document()["paused"]["reason"] == "merging main").then_some(())
    });
    ui.shows("claims are paused; tasks in work go on");
    // What was done is said until the next key.
    ui.keys("g");
    ui.shows("p resume");
    ui.keys("p");
    until(PATIENCE, "it goes on", || {
        board.document().get("paused").is_none_or(Value::is_null).then_some(())
    });
    ui.keys("q");
    assert_eq!(ui.code(), Some(0));
    assert!(ui.is_given_back(), "{}", ui.raw());
    board.assert_file_is_the_replay();
}

#[test]
fn a_review_is_approved_and_a_change_by_others_is_seen() {
    if !is_possible() {
        return;
    }
    let (board, mut agents) = lively();
    let mut ui = Terminal::start(&board, 80, 24, &[]);
    ui.shows("Lexer: names");
    ui.on("lexer", "\r");
    ui.shows("output: all names");
    ui.keys("y");
    until_task(&board, "made", "approved", |task| task["status"] == "done");
    ui.shows("#1 is approved");
    ui.keys("2");
    ui.shows("Parser: expressions");
    agents.ok("create_task", json!({"id": "news", "title": "Brand new", "description": "d"}));
    ui.shows("Brand new");
    ui.keys("4");
    ui.shows("Brand new");
    ui.keys("5");
    ui.shows("plan import FILE");
    ui.keys("6");
    ui.shows("Guide");
    ui.resize(20, 5);
    ui.shows("window too small");
    ui.resize(120, 30);
    ui.shows("Visitor");
    ui.keys("?");
    ui.shows("any key closes this");
    // Ctrl-C.
    ui.keys("\u{3}");
    assert_eq!(ui.code(), Some(0));
    assert!(ui.is_given_back());
}

#[test]
fn idle_it_uses_no_processor_and_a_signal_gives_the_terminal_back() {
    if !is_possible() {
        return;
    }
    let (board, _agents) = lively();
    for signal in [Signal::TERM, Signal::HUP] {
        let mut ui = Terminal::start(&board, 80, 24, &[]);
        ui.shows("WAITS FOR YOU");
        // The time in which this process reads the state file so often.
        let is_still = || {
            let before = ui.ticks();
            (0..300).for_each(|_| drop(board.document()));
            ui.ticks() == before
        };
        until(PATIENCE, "it is idle", || (is_still() && is_still()).then_some(()));
        ui.signal(signal);
        assert_eq!(ui.code(), Some(0), "{signal:?}");
        assert!(ui.is_given_back(), "{signal:?}: {}", ui.raw());
    }
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    if !is_possible() {
        return;
    }
    let (board, _agents) = lively();
    let mut ui = Terminal::start(&board, 80, 24, &[]);
    ui.shows("WAITS FOR YOU");
    ui.hang_up();
}

#[test]
fn without_colours_and_without_unicode_it_stays_readable() {
    if !is_possible() {
        return;
    }
    let (board, _agents) = lively();
    let plain = Terminal::start(&board, 80, 24, &[("NO_COLOR", "1"), ("LC_ALL", "C")]);
    plain.shows("Unicode names ????");
    assert!(!plain.raw().contains("[38;5;") && plain.raw().is_ascii(), "{}", plain.raw());
    let coloured = Terminal::start(&board, 80, 24, &[("LC_ALL", "C.UTF-8")]);
    coloured.shows("Unicode names 名前");
    assert!(coloured.raw().contains("[38;5;"), "{}", coloured.raw());
}

#[test]
fn what_cannot_be_drawn_on_is_refused_with_what_to_do() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "x"}));
    let refused = board.finish(board.command().arg("ui"));
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("needs a terminal")
            && refused.stderr.contains("`callboard status`"),
        "{}",
        refused.stderr
    );
    let json = board.finish(board.command().args(["--json", "tui"]));
    assert_eq!(json.status.code(), Some(2));
    if !is_possible() {
        return;
    }
    let mut dumb = Terminal::start(&board, 80, 24, &[("TERM", "dumb")]);
    dumb.shows("TERM is dumb");
    dumb.shows("callboard status");
    assert_eq!(dumb.code(), Some(1));
    let empty = Board::new();
    let mut absent = Terminal::start(&empty, 80, 24, &[]);
    absent.shows("callboard init");
    assert_eq!(absent.code(), Some(3));
}

#[test]
fn a_board_that_is_away_is_said_and_shown_again_when_it_is_back() {
    if !is_possible() {
        return;
    }
    let (board, agents) = lively();
    drop(agents);
    let ui = Terminal::start(&board, 80, 24, &[]);
    ui.shows("WAITS FOR YOU");
    let kept = board.base().join("kept");
    std::fs::rename(board.dir(), &kept).unwrap();
    std::fs::rename(&kept, board.dir()).unwrap();
    board.cli_ok("create_task", json!({"title": "After it", "description": "d"}));
    ui.shows("After it");
}
