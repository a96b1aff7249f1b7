use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use serde_json::json;

use super::draw::{Paint, draw};
use super::screen::{Spelling, Wish};
use super::*;
use crate::state::agent::Role;
use crate::state::id::TaskId;
use crate::state::task::TaskStatus;
use crate::view::Tone;
use crate::view::tests::lively;

const PLAIN: Paint = Paint { is_coloured: false, is_unicode: true };

fn spelling() -> Spelling {
    Spelling {
        clock: Box::new(|at| at.to_string()[11..16].to_owned()),
        command: Box::new(|words| format!("callboard {words}")),
    }
}

fn screen(columns: u16, lines: u16) -> Screen {
    let mut screen = Screen::new(Role::Leader, (columns, lines), spelling());
    screen.show(&Place::Board, Content::Board(Box::new(lively()), Vec::new()));
    screen
}

/// Lines as they are drawn; the one under the cursor ends with `<`.
fn drawn(screen: &mut Screen, paint: Paint) -> Vec<String> {
    let area = Rect::new(0, 0, screen.size.0, screen.size.1);
    let mut buffer = Buffer::empty(area);
    draw(screen, area, &mut buffer, paint);
    let row = |y: u16| {
        let mut line = String::new();
        let mut x = 0;
        while x < area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(crate::view::columns::width(symbol).max(1)).unwrap();
        }
        let is_chosen = area.width > 0 && buffer[(0, y)].modifier.contains(Modifier::REVERSED);
        line.trim_end().to_owned() + if is_chosen { " <" } else { "" }
    };
    (0..area.height).map(row).collect()
}

fn text(screen: &mut Screen) -> String {
    drawn(screen, PLAIN).join("\n")
}

fn press(screen: &mut Screen, keys: &str) -> Option<Wish> {
    let mut last = None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            key => KeyCode::Char(key),
        };
        last = screen.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    last
}

fn act(operation: &'static str, arguments: serde_json::Value) -> impl Fn(Option<Wish>) -> bool {
    move |wish| {
        matches!(&wish, Some(Wish::Act(act))
            if act.operation == operation && act.arguments == arguments)
            || panic!("{wish:?}")
    }
}

/// Puts the cursor on the row that has this text.
fn onto(screen: &mut Screen, part: &str) {
    press(screen, &format!("/{part}\n"));
    assert!(screen.here().found().is_some_and(|found| found > 0), "{part}\n{}", text(screen));
}

/// Compares with a file, which is written if it is another.
fn is_as_in(name: &str, found: &str) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ui").join(name);
    let kept = fs_err::read_to_string(&file).unwrap_or_default();
    if kept != found {
        fs_err::write(&file, found).unwrap();
        panic!("{name} is written anew; look at it, and run this again");
    }
}

#[test]
fn the_first_screen_looks_as_it_is_kept() {
    for (columns, lines) in [(80, 24), (200, 60), (30, 7), (20, 5)] {
        let mut screen = screen(columns, lines);
        is_as_in(&format!("board-{columns}x{lines}.txt"), &(text(&mut screen) + "\n"));
    }
}

fn rows() -> Vec<TaskRow> {
    let row = |number: u64, depth, title: &str, status, standing: &str| TaskRow {
        id: TaskId::trusted(format!("t{number}")),
        number: Some(number),
        depth,
        path: (depth == 0).then(|| "P1".to_owned()),
        title: title.to_owned(),
        status,
        standing: standing.to_owned(),
        tone: Tone::of(status),
        agent: None,
        priority: 5,
    };
    vec![
        row(1, 0, "The parser", TaskStatus::Available, "open"),
        row(2, 1, "Names: 名前を読む", TaskStatus::Failed, "failed"),
        row(3, 1, "Numbers", TaskStatus::Available, "blocked by t2"),
        row(4, 1, "\u{1b}[2J\u{202e}evil\u{7}", TaskStatus::Done, "done"),
    ]
}

#[test]
fn other_views_look_as_they_are_kept() {
    let mut screen = screen(80, 24);
    press(&mut screen, "2");
    screen.show(&Place::Tasks, Content::Tasks(rows()));
    is_as_in("tasks-80x24.txt", &(text(&mut screen) + "\n"));
    press(&mut screen, "3");
    screen.show(&Place::Agents, Content::Agents(Box::new(lively()), Vec::new()));
    is_as_in("agents-80x24.txt", &(text(&mut screen) + "\n"));
    press(&mut screen, "?");
    is_as_in("help-80x24.txt", &(text(&mut screen) + "\n"));
}

#[test]
fn each_letter_does_what_it_says_to_what_is_under_the_cursor() {
    let on = |part: &str, keys: &str| {
        let mut screen = screen(100, 40);
        onto(&mut screen, part);
        press(&mut screen, keys)
    };
    act("approve_task", json!({"task_id": "made", "attempt": 1}))(on("title of made", "y"));
    let sent_back = on("title of made", "xmore tests\n");
    act("reject_task", json!({"task_id": "made", "reason": "more tests", "attempt": 1}))(sent_back);
    act("retry_task", json!({"task_id": "bad"}))(on("title of bad", "r"));
    act("update_task", json!({"task_id": "next", "priority": 4}))(on("title of next", "+"));
    act("update_task", json!({"task_id": "next", "priority": 6}))(on("title of next", "-"));
    act("update_task", json!({"task_id": "next", "priority": 3}))(on("title of next", "-+++"));
    act("update_task", json!({"task_id": "next", "priority": 1}))(on("title of next", "++++++"));
    act("update_task", json!({"task_id": "next", "title": "Title of next!"}))(on(
        "title of next",
        "e!\n",
    ));
    act("assign_task", json!({"task_id": "next", "to": "ada"}))(on("title of next", "wada\n"));
    act("cancel_task", json!({"task_id": "next"}))(on("title of next", "cy"));
    act("stop_agent", json!({"agent": "quiet", "now": false}))(on("no sign; holds", "sa"));
    act("stop_agent", json!({"agent": "quiet", "now": true}))(on("no sign; holds", "sn"));
    act("send_message", json!({"to": "quiet", "text": "hi"}))(on("no sign; holds", "mhi\n"));
    act("send_message", json!({"reply_to": "Q1", "text": "Tabs"}))(on("q1", "aTabs\n"));
    act("send_message", json!({"reply_to": "Q1", "text": "Drop it"}))(on("q1", "a2\n"));
    act("create_task", json!({"description": "Do it"}))(on("q1", "nDo it\n"));
    act("pause", json!({"reason": null}))(on("q1", "p\n"));
    act("pause", json!({"reason": "merging"}))(on("q1", "pmerging\n"));
}

#[test]
fn what_destroys_asks_first_and_says_what_it_hits() {
    let mut screen = screen(80, 24);
    onto(&mut screen, "title of next");
    assert_eq!(press(&mut screen, "c"), None);
    assert!(text(&mut screen).contains("Cancel #4 Title of next?"), "{}", text(&mut screen));
    assert_eq!(press(&mut screen, "n"), None);
    assert_eq!(press(&mut screen, "y"), None, "the question has gone");
    onto(&mut screen, "no sign; holds");
    press(&mut screen, "s");
    let asked = text(&mut screen);
    assert!(asked.contains("Stop quiet? It works on"), "{asked}");
}

#[test]
fn an_empty_text_is_not_sent_and_escape_leaves_it() {
    let mut screen = screen(80, 24);
    onto(&mut screen, "q1");
    assert_eq!(press(&mut screen, "a\n"), None);
    assert!(text(&mut screen).contains("type a text first"), "{}", text(&mut screen));
    assert_eq!(press(&mut screen, "q\u{1b}"), None, "a letter of the text");
    assert_eq!(press(&mut screen, "q"), Some(Wish::Quit));
}

#[test]
fn a_pasted_text_is_text_and_never_keys() {
    let mut screen = screen(80, 24);
    screen.paste("q\ncy");
    assert!(text(&mut screen).contains("WAITS FOR YOU"));
    onto(&mut screen, "q1");
    press(&mut screen, "a");
    screen.paste("one\n\u{1b}[2Jtwo");
    act("send_message", json!({"reply_to": "Q1", "text": "one\n\u{fffd}[2Jtwo"}))(press(
        &mut screen,
        "\n",
    ));
}

#[test]
fn roles_see_and_do_what_they_may() {
    for (role, hint, may) in [
        (Role::Leader, "r retry", true),
        (Role::Worker, "r retry", false),
        (Role::Observer, "n new task", false),
    ] {
        let mut screen = screen(100, 30);
        screen.role = role;
        onto(&mut screen, "title of bad");
        assert_eq!(text(&mut screen).contains(hint), may, "{role:?}");
        assert_eq!(press(&mut screen, "r").is_some(), may, "{role:?}");
    }
}

#[test]
fn enter_opens_and_escape_goes_back_to_where_the_cursor_was() {
    let mut screen = screen(80, 24);
    press(&mut screen, "jj");
    let before = screen.subject().cloned();
    assert_eq!(press(&mut screen, "\n"), Some(Wish::Look));
    assert!(matches!(screen.place(), Place::Task(_) | Place::Agent(_)), "{:?}", screen.place());
    assert_eq!(press(&mut screen, "\u{1b}"), Some(Wish::Look));
    assert_eq!((screen.place(), screen.subject().cloned()), (&Place::Board, before));
    assert_eq!(press(&mut screen, "5"), Some(Wish::Look));
    assert_eq!(screen.place(), &Place::Plan);
    press(&mut screen, "\u{1b}");
    assert_eq!(screen.place(), &Place::Board);
}

#[test]
fn the_cursor_stays_on_what_it_is_on_when_the_board_changes() {
    let mut screen = screen(80, 24);
    press(&mut screen, "G");
    let last = screen.subject().cloned();
    let mut other = lively();
    other.waits.rows.clear();
    screen.show(&Place::Board, Content::Board(Box::new(other), Vec::new()));
    assert_eq!(screen.subject().cloned(), last);
    press(&mut screen, "g");
    assert_ne!(screen.subject().cloned(), last);
}

#[test]
fn the_filter_shows_what_has_all_its_words() {
    let mut screen = screen(80, 24);
    press(&mut screen, "/BAD title");
    let filtered = text(&mut screen);
    assert!(filtered.contains("Title of bad") && !filtered.contains("Title of next"), "{filtered}");
    press(&mut screen, " nowhere\n");
    assert!(text(&mut screen).contains("nothing has these words"), "{}", text(&mut screen));
    press(&mut screen, "\u{1b}");
    assert!(text(&mut screen).contains("WAITS FOR YOU"));
}

#[test]
fn a_refusal_is_shown_until_the_next_key() {
    let mut screen = screen(60, 24);
    screen.answered(Err("task t is held by `ada` until 14:05; stop it first ".repeat(3)));
    let refused = text(&mut screen);
    assert!(refused.matches("stop it first").count() == 3, "{refused}");
    press(&mut screen, "j");
    assert!(!text(&mut screen).contains("stop it first"));
}

#[test]
fn nothing_that_a_terminal_obeys_is_drawn() {
    let mut screen = screen(80, 24);
    press(&mut screen, "2");
    screen.show(&Place::Tasks, Content::Tasks(rows()));
    let shown = text(&mut screen);
    let is_obeyed = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!shown.contains(is_obeyed) && shown.contains("evil"), "{shown:?}");
    press(&mut screen, "Gge");
    assert!(!text(&mut screen).contains(is_obeyed));
    let ascii = drawn(&mut screen, Paint { is_unicode: false, ..PLAIN });
    assert!(ascii.iter().all(|line| line.is_ascii()), "{ascii:?}");
}

/// What can be shown, and how large it may be.
fn contents() -> Vec<(Place, Content)> {
    let wide = "名".repeat(200);
    let long: Vec<Line> = vec![vec![(Tone::Plain, "word 語 ".repeat(2_000))], Line::new()];
    let many =
        (0..300).flat_map(|_| rows()).map(|row| TaskRow { title: wide.clone(), depth: 40, ..row });
    vec![
        (Place::Board, Content::Board(Box::new(lively()), long.clone())),
        (Place::Tasks, Content::Tasks(many.collect())),
        (Place::Graph, Content::Tasks(Vec::new())),
        (Place::Agents, Content::Agents(Box::new(lively()), Vec::new())),
        (Place::Events, Content::Events(vec![EventRow { line: long[0].clone(), about: None }])),
        (Place::Plan, Content::Page(Box::new(Page { about: None, lines: long }))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_size_and_no_keys_break_it(
        (columns, lines) in (0..300_u16, 0..300_u16),
        (later_columns, later_lines) in (0..40_u16, 0..12_u16),
        keys in "[1-6jkhlgGq/?adyxrcsmw+\\-enp\n\u{1b} ü]{0,24}",
        kind in 0..6_usize,
    ) {
        let mut screen = screen(columns, lines);
        let (place, content) = contents().swap_remove(kind);
        screen.go(place.clone());
        drawn(&mut screen, PLAIN);
        screen.show(&place, content);
        for key in keys.chars() {
            press(&mut screen, &key.to_string());
            drawn(&mut screen, PLAIN);
        }
        screen.resize(later_columns, later_lines);
        drawn(&mut screen, PLAIN);
        screen.answered(Err("no ".repeat(100)));
        screen.lose("gone ".repeat(100));
        drawn(&mut screen, Paint { is_coloured: true, is_unicode: false });
    }
}
