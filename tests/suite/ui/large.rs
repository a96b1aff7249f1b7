//! A large board in a terminal: how long keys take to be answered, from the key to the screen.
//!
//! `cargo test --release --test suite -- ui::large --nocapture` prints the figures of the design's
//! size. `CALLBOARD_UI_TASKS` and `CALLBOARD_UI_AGENTS` set others.

use std::time::Duration;

use serde_json::{Value, json};

use super::terminal::Terminal;
use super::{Board, is_possible};
use crate::harness::{Client, size};

/// Tasks that one call creates.
const AT_ONCE: usize = 500;
/// Keys whose median is taken.
const KEYS: usize = 21;
/// Longest median for a key that moves the cursor, and longest time to open a view. Builds that
/// are not optimised, on a machine that does other things, only have to stay usable.
const MOVE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 100 });
const OPEN: Duration = Duration::from_millis(if cfg!(debug_assertions) { 10_000 } else { 2_000 });

/// A board of so many tasks, every third behind another, and agents of which every tenth works.
fn large(tasks: usize, agents: usize) -> (Board, Client) {
    let board = Board::new();
    let mut client = board.mcp();
    let all: Vec<Value> = (0..tasks).map(task).collect();
    for some in all.chunks(AT_ONCE) {
        client.ok("create_tasks_batch", json!({"tasks": some}));
    }
    let name = |number: usize| format!("agent-{number:04}");
    let names: Vec<_> = (0..agents).map(name).collect();
    at_once(&mut client, "register_agent", names.iter());
    at_once(&mut client, "claim_task", names.iter().step_by(10));
    (board, client)
}

/// Makes a call for each agent, many before the first answer.
fn at_once<'a>(client: &mut Client, tool: &str, agents: impl Iterator<Item = &'a String>) {
    let agents: Vec<_> = agents.collect();
    for some in agents.chunks(100) {
        let sent: Vec<_> =
            some.iter().map(|agent| client.send(tool, json!({"agent_id": agent}))).collect();
        sent.into_iter().for_each(|id| _ = client.reply(id).expect("a reply").ok());
    }
}

fn task(number: usize) -> Value {
    let before: Vec<_> =
        (number % 3 == 2).then(|| format!("t{:05}", number - 1)).into_iter().collect();
    json!({
        "id": format!("t{number:05}"), "title": format!("Title {number:05} of a large board"),
        "description": "What is to be done. ".repeat(10), "dependencies": before,
    })
}

/// What the line says that the cursor is on.
fn cursor(screen: &vt100::Screen) -> Option<String> {
    let (lines, columns) = screen.size();
    let is_here = |line: &u16| screen.cell(*line, 0).is_some_and(vt100::Cell::inverse);
    let line = (0..lines.get()).find(is_here)?;
    screen.rows(0, columns.get()).nth(line.into())
}

/// The median time of a key that moves the cursor by a line.
fn moved(ui: &mut Terminal, key: &str) -> Duration {
    let mut times: Vec<_> = (0..KEYS)
        .map(|_| {
            let before = ui.line_of_cursor();
            ui.keys(key);
            ui.until("the cursor moves", |screen| {
                cursor(screen).is_some() && cursor(screen) != before
            })
        })
        .collect();
    times.sort();
    times[KEYS / 2]
}

impl Terminal {
    fn line_of_cursor(&self) -> Option<String> {
        let mut line = None;
        self.until("a cursor", |screen| cursor(screen).is_some());
        self.look(|screen| line = cursor(screen));
        line
    }
}

#[test]
fn keys_are_answered_on_a_large_board() {
    if !is_possible() {
        return;
    }
    let tasks = size("CALLBOARD_UI_TASKS", 10_000);
    let agents = size("CALLBOARD_UI_AGENTS", 1_000);
    let (board, _client) = large(tasks, agents);
    let mut ui = Terminal::start(&board, 200, 60, &[]);
    let last = format!("Title {:05}", tasks - 1);
    let first = ui.until("the first screen", |screen| screen.contents().contains("AGENTS"));
    let mut opened = vec![("first screen", first)];
    let mut keys = vec![("j on the board", moved(&mut ui, "j"))];
    // What each view has and the one before has not.
    for (view, key, there) in [
        ("events", "4", "claimed #"),
        ("agents", "3", "AGENTS  "),
        ("graph", "6", "blocked by"),
        ("tasks", "2", "Title 00000"),
    ] {
        ui.keys(key);
        opened.push((view, ui.until(view, |screen| screen.contents().contains(there))));
    }
    keys.push(("j among the tasks", moved(&mut ui, "j")));
    ui.keys("G");
    keys.push(("G to the last task", ui.until(&last, |screen| screen.contents().contains(&last))));
    // One that nobody has taken.
    let free = format!("{:05}", tasks / 6 * 3);
    ui.keys(&format!("/{free}\r"));
    let found = &format!("/{free}: 1 found");
    keys.push(("a filter", ui.until(found, |screen| screen.contents().contains(found))));
    ui.keys("\r");
    opened.push(("a task", ui.until("its page", |screen| screen.contents().contains("log"))));
    ui.keys("w");
    ui.shows("for which agent?");
    let name = format!("agent-{:04}", agents - 1);
    let known = format!("{name}  idle");
    ui.keys(&name);
    keys.push(("agents narrowed", ui.until(&known, |screen| screen.contents().contains(&known))));
    ui.keys("\u{1b}");
    ui.until("it is left", |screen| !screen.contents().contains("for which agent?"));
    ui.keys("2");
    ui.shows("Title 00000");
    board.cli_ok("update_task", json!({"task_id": "t00000", "title": "A new title"}));
    let seen = ui.until("a change", |screen| screen.contents().contains("A new title"));
    ui.resize(20, 5);
    let small = ui.until("small", |screen| screen.contents().contains("window too small"));
    ui.resize(30, 7);
    keys.push(("j at 30 x 7", moved(&mut ui, "j")));
    ui.keys("q");
    assert_eq!(ui.code(), Some(0));
    println!("{tasks} tasks, {agents} agents; a change is seen after {seen:?}, 20 x 5 {small:?}");
    opened.iter().for_each(|(what, time)| println!("  open {what}: {time:?}"));
    keys.iter().for_each(|(what, time)| println!("  {what}: {time:?}"));
    assert!(opened.iter().all(|(_, time)| *time < OPEN), "{opened:?}");
    assert!(keys.iter().all(|(_, time)| *time < MOVE), "{keys:?}");
    assert!(seen < OPEN && small < OPEN, "{seen:?} {small:?}");
}
