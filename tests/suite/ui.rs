//! `callboard ui` in a pseudo-terminal: what it shows, what keys do to the board, and how it ends.

mod large;
mod picture;
mod terminal;
mod troubles;

use std::any::Any;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Board, Client, PATIENCE, available, until};
use terminal::Terminal;

/// Whether there is a program that gives a process a terminal of its own.
fn is_possible() -> bool {
    let found = std::process::Command::new("setsid").arg("--version").output().is_ok();
    available("script", (!found).then_some("there is no setsid (util-linux) on this machine"))
}

/// One that nobody touches, if that is possible.
pub(crate) fn untouched(board: &Board) -> Option<Box<dyn Any>> {
    is_possible().then(|| Box::new(Terminal::start(board, 80, 24, &[])) as Box<dyn Any>)
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
    // Each counts from the one before, whatever the screen shows by then.
    ui.on("spans", "+++");
    until_task(&board, "next", "sooner", |task| task["priority"] == 2);
    ui.keys("2");
    ui.on("spans", "--");
    until_task(&board, "next", "later", |task| task["priority"] == 4);
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
fn the_last_command_is_taken_back_once_it_is_confirmed() {
    if !is_possible() {
        return;
    }
    let (board, _agents) = lively();
    let mut ui = Terminal::start(&board, 100, 40, &[]);
    ui.shows("WAITS FOR YOU");
    ui.keys("2");
    ui.shows("Spans");
    ui.on("unicode", "cy");
    until_task(&board, "drop", "cancelled", |task| task["status"] == "cancelled");
    ui.keys("u");
    ui.shows("Take this back?");
    ui.shows("cancelled #6 \"Unicode names");
    ui.keys("n");
    ui.until("it is left", |screen| !screen.contents().contains("Take this back?"));
    ui.keys("u");
    ui.shows("Take this back?");
    assert_eq!(board.task("drop")["status"], "cancelled");
    ui.keys("y");
    until_task(&board, "drop", "open again", |task| task["status"] == "available");
    ui.shows("it is taken back");
    // What is not undone is said, and nothing is asked.
    ui.keys("4");
    ui.shows("you cancelled #6");
    ui.on("claimed #3", "u");
    ui.shows("can be undone");
    ui.keys("q");
    assert_eq!(ui.code(), Some(0));
    let counted = board.events().iter().filter(|one| one.event.kind() == "command_undone").count();
    assert_eq!(counted, 1);
}

#[test]
fn the_work_on_a_task_is_seen_as_a_diff_and_judged_there() {
    if !is_possible() {
        return;
    }
    let board = Board::new();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(board.base()).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        let output = git.args(arguments).output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "one"]);
    let lines: String = (1..=60).map(|number| format!("line {number}\n")).collect();
    let evil = "\u{1b}[2J\u{1b}]0;evil\u{7}\u{202e}end\n";
    std::fs::write(board.base().join("names.rs"), format!("{lines}{evil}")).unwrap();
    git(&["add", "names.rs"]);
    git(&["commit", "--quiet", "-m", "two"]);
    let commit = git(&["rev-parse", "HEAD"]);
    let mut agents = board.mcp();
    agents.ok("register_agent", json!({"agent_id": "ada"}));
    for id in ["made", "poor"] {
        agents.ok(
            "create_task",
            json!({"id": id, "title": id, "description": "d", "review": "required"}),
        );
        agents.ok("claim_task", json!({"agent_id": "ada", "task_id": id}));
        let done = json!({"agent_id": "ada", "task_id": id, "output": "done", "commit": commit});
        agents.ok("complete_task", done);
    }
    let mut ui = Terminal::start(&board, 80, 24, &[]);
    ui.shows("WAITS FOR YOU");
    ui.on("made", "\r");
    ui.shows("output: done");
    ui.keys("d");
    ui.shows(&format!("commit {}", &commit[..12]));
    ui.shows("+line 12");
    ui.keys("G");
    ui.shows("+line 60");
    ui.shows("evil");
    let raw = ui.raw();
    assert!(!raw.contains("\u{1b}]0;evil") && !raw.contains('\u{202e}'), "{raw:?}");
    ui.keys("y");
    until_task(&board, "made", "approved", |task| task["status"] == "done");
    ui.keys("\u{1b}");
    ui.shows("output: done");
    ui.keys("1");
    ui.on("poor", "d");
    ui.shows("+line 12");
    ui.keys("xno tests\r");
    until_task(&board, "poor", "sent back", |task| task["status"] == "available");
    ui.keys("2");
    ui.shows("poor");
    // An attempt that was sent back has its diff all the same; a task without work says so.
    board.cli_ok("create_task", json!({"id": "bare", "title": "bare", "description": "d"}));
    board.cli_ok("cancel_task", json!({"task_id": "bare"}));
    ui.shows("cancelled");
    ui.on("bare", "d");
    ui.shows("nothing was recorded of its work");
    ui.keys("q");
    assert_eq!(ui.code(), Some(0));
}

#[test]
fn agents_are_chosen_from_a_list() {
    if !is_possible() {
        return;
    }
    let (board, mut agents) = lively();
    agents.ok("register_agent", json!({"agent_id": "bobby", "role": "worker"}));
    let mut ui = Terminal::start(&board, 100, 40, &[]);
    ui.shows("WAITS FOR YOU");
    ui.keys("2");
    ui.on("spans", "wbo");
    ui.shows("bobby");
    // To the second, in a list that is narrowed to those with these letters.
    ui.keys("\u{1b}[B\r");
    until_task(&board, "next", "kept", |task| task["kept_for"]["agent"] == "bobby");
    ui.on("unicode", "wnobody-yet\r");
    ui.shows("`nobody-yet`");
    ui.keys("1");
    ui.shows("WAITS FOR YOU");
    // In front of a title that is about nobody.
    ui.on("guide", "m");
    ui.shows("Message to whom?");
    ui.shows("every worker");
    ui.keys("role:w\r");
    ui.shows("Message to role:worker");
    ui.keys("Stop at noon\r");
    until(PATIENCE, "the message is there", || {
        let document = board.document();
        let messages = document["messages"].as_array().unwrap();
        messages
            .iter()
            .any(|one| one["text"] == "Stop at noon" && one["to"] == "role:worker")
            .then_some(())
    });
    ui.keys("q");
    assert_eq!(ui.code(), Some(0));
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
    ui.on("visitor", "\r");
    ui.shows("after: #3");
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
    assert!(!ui.raw().contains("[?1000h"), "the mouse is the terminal's");
    ui.keys("2");
    ui.shows("blocked by #3");
    ui.keys("M");
    ui.shows("M gives it back");
    // No row is chosen before the list has come.
    let chosen = |screen: &vt100::Screen| {
        (1..24).find(|row| screen.cell(*row, 0).is_some_and(vt100::Cell::inverse))
    };
    ui.until("another row", |screen| chosen(screen).is_some_and(|row| row != 3));
    // A click with the left button, in the form in which terminals report it.
    ui.keys("\u{1b}[<0;5;4M\u{1b}[<0;5;4m");
    ui.until("the row that was clicked", |screen| chosen(screen) == Some(3));
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
