//! Boards whose tasks wait for many others: every page and every read is answered at once, and no
//! page keeps anybody else waiting.
//!
//! `CALLBOARD_HEAVY=100 cargo test --test suite -- web::heavy --nocapture` prints the figures of the
//! whole sizes; everyday boards have that share of their tasks, in percent.

use std::time::{Duration, Instant};

use callboard::ops;
use serde_json::{Value, json};

use super::Browser;
use super::door::as_observer;
use crate::costs::calls;
use crate::harness::http::{Door, Server};
use crate::harness::{Board, size};

/// Longest time for an answer. Builds that are not optimised, on a machine that does other things,
/// only have to stay usable.
const AT_ONCE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });
/// Most dependencies of a task.
const MOST: usize = 200;
/// Tasks that one call creates, so that its arguments are not too long.
const CREATED: usize = 250;

fn task(number: usize, waits_for: std::ops::Range<usize>) -> Value {
    let dependencies: Vec<_> = waits_for.rev().take(MOST).map(|one| format!("t{one}")).collect();
    json!({"id": format!("t{number}"), "title": format!("Task {number}"), "description": "d",
        "dependencies": dependencies})
}

/// Layers of tasks that wait for all of the layer before.
fn layers(count: usize, width: usize) -> Vec<Value> {
    let before = |number: usize| {
        let layer = number / width;
        layer.saturating_sub(1) * width..layer * width
    };
    (0..count * width).map(|number| task(number, before(number))).collect()
}

/// Phases that wait for the phase before, each with so many parts.
fn phases(count: usize, width: usize) -> Vec<Value> {
    let phase = |number: usize| {
        let before: Vec<_> = (number > 1).then(|| format!("p{}", number - 1)).into_iter().collect();
        json!({"id": format!("p{number}"), "path": format!("P{number}"), "kind": "phase",
            "description": "d", "dependencies": before})
    };
    let parts = (0..count * width).map(|number| {
        let mut part = task(number, 0..0);
        part["parent"] = json!(format!("p{}", number / width + 1));
        part
    });
    (1..=count).map(phase).chain(parts).collect()
}

fn shapes() -> Vec<(&'static str, Vec<Value>)> {
    let share = size("CALLBOARD_HEAVY", 10);
    let part = |whole: usize| (whole * share / 100).max(2);
    let chain = |number: usize| task(number, number.saturating_sub(1)..number);
    let star = |number: usize| task(number, 0..number.min(1));
    // Each waits for the tasks before whose numbers have the same two bits.
    let tangled = |number: usize| {
        let mut one = task(number, 0..0);
        let before = (0..number).rev().filter(|before| (before ^ number).count_ones() == 2);
        one["dependencies"] = before.take(15).map(|one| format!("t{one}")).collect();
        one
    };
    vec![
        ("5 layers", layers(5, part(100))),
        ("10 layers", layers(10, part(1_000))),
        ("5 phases", phases(5, part(100))),
        ("10 phases", phases(10, part(1_000))),
        ("chain", (0..part(10_000)).map(chain).collect()),
        ("star", (0..part(10_000)).map(star).collect()),
        ("pair", layers(2, part(200))),
        ("tangle", (0..part(1_000)).map(tangled).collect()),
    ]
}

fn board_of(tasks: &[Value]) -> Board {
    let board = Board::new();
    let mut lead = board.mcp();
    lead.register("writer");
    for some in tasks.chunks(CREATED) {
        lead.ok("create_tasks_batch", json!({"tasks": some}));
    }
    board
}

/// Asserts that no node is drawn on another.
#[track_caller]
fn assert_apart(html: &str) {
    let number = |text: &str, name: &str| -> f64 {
        let (_, value) = text.split_once(name).expect("a number");
        value.split_once('"').expect("an end").0.parse().expect("a number")
    };
    let boxes = html.split("<rect ").skip(1).filter(|text| text.contains("rx=\"6\""));
    let boxes: Vec<_> = boxes.map(|text| (number(text, "x=\""), number(text, "y=\""))).collect();
    for (count, one) in boxes.iter().enumerate() {
        let is_on =
            |other: &&(f64, f64)| (one.0 - other.0).abs() < 200.0 && (one.1 - other.1).abs() < 42.0;
        assert_eq!(boxes[..count].iter().find(is_on), None, "{one:?} of {}", boxes.len());
    }
}

#[test]
fn every_page_and_every_read_of_heavy_boards_is_answered_at_once() {
    let mut slow = Vec::new();
    for (shape, tasks) in shapes() {
        let board = board_of(&tasks);
        let server = Server::on(&board);
        let browser = Browser::logged_in(&server);
        let mut took = |what: String, begun: Instant, most: Duration| {
            let time = begun.elapsed();
            println!("{shape}, {} tasks: {what}: {time:.0?}", tasks.len());
            if time > most {
                slow.push(format!("{shape}: {what}: {time:?}"));
            }
        };
        let last = format!("/tasks/t{}", tasks.len() / 2);
        for path in [
            "/",
            "/graph",
            "/graph?is=all",
            "/graph?scope=P2",
            "/tasks",
            "/tasks?is=blocked",
            "/tasks/t0",
            &last,
            "/agents",
            "/agents/writer",
            "/timeline",
            "/events",
            "/plan",
            "/files",
            "/search?q=task+7",
            "/discoveries",
            "/snapshots",
            "/add",
        ] {
            let begun = Instant::now();
            let answer = browser.get(path);
            took(path.to_owned(), begun, AT_ONCE);
            assert_eq!(answer.status, 200, "{shape} {path}: {}", answer.text());
            assert_apart(&answer.text());
            assert!(answer.text().len() < 3_000_000, "{shape} {path}: {}", answer.text().len());
        }
        let last = format!("t{}", tasks.len() - 11);
        for read in ops::all().iter().filter(|entry| entry.annotations.read_only) {
            for arguments in calls(read.name, &last).into_iter().flatten() {
                let begun = Instant::now();
                server.ask(&server.rpc(1, read.name, &arguments));
                took(format!("{} {arguments}", read.name), begun, AT_ONCE);
            }
        }
        for line in [
            &["tasks", "--graph", "dot"][..],
            &["tasks", "--graph", "mermaid"],
            &["tasks", "--tree"],
            &["status"],
            &["show", "t0"],
        ] {
            let begun = Instant::now();
            let finished = board.finish(board.command().args(line));
            // A command reads the whole board, page by page.
            took(line.join(" "), begun, 3 * AT_ONCE);
            assert!(finished.status.success(), "{shape} {line:?}: {}", finished.stderr);
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

#[test]
fn searches_of_one_visitor_do_not_make_others_wait() {
    const SEARCHES: usize = 300;
    let mut tasks = layers(1, size("CALLBOARD_HEAVY", 10) * 50);
    tasks.iter_mut().for_each(|task| task["description"] = json!("word ".repeat(400)));
    let board = board_of(&tasks);
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    let observer = as_observer(&board, &server);
    let request = observer.request("GET", "/search?q=nothing+like+it").bytes();
    let searches: Vec<_> = (0..SEARCHES)
        .map(|_| {
            let mut connection = server.connect();
            assert!(connection.write(&request));
            connection
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(browser.get("/").status, 200);
    let took = begun.elapsed();
    println!("the first screen beside {SEARCHES} searches: {took:.0?}");
    assert!(took < AT_ONCE, "{took:?}");
    for mut search in searches {
        assert_eq!(search.answer().expect("an answer").status, 200, "each is answered in its turn");
    }
}

#[test]
fn drawings_that_nobody_waits_for_hold_nobody_up() {
    let board = board_of(&layers(5, 60));
    let server = Server::on(&board);
    let browser = Browser::logged_in(&server);
    for number in 0..100 {
        let mut connection = server.connect();
        let path = format!("/graph?scope=P{number}");
        assert!(connection.write(&browser.request("GET", &path).bytes()));
    }
    let begun = Instant::now();
    Door::Rpc.ok(&server, "create_task", &json!({"description": "in the meantime"}));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    let drawn = browser.get("/graph").text();
    assert!(begun.elapsed() < 2 * AT_ONCE, "{:?}", begun.elapsed());
    assert!(drawn.contains("301 tasks"), "{drawn}");
}
