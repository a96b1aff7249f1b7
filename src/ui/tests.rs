use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use serde_json::json;

use super::draw::{Paint, draw};
use super::screen::{Spelling, Wish};
use super::*;
use crate::state::agent::Role;
use crate::state::id::{AgentId, TaskId};
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
        row(3, 1, "Numbers", TaskStatus::Available, "blocked by #2"),
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
fn a_text_that_is_left_is_there_again_where_it_was_typed() {
    let mut screen = screen(80, 24);
    onto(&mut screen, "q1");
    press(&mut screen, "aTabs, not spa\u{1b}");
    assert!(!text(&mut screen).contains("Tabs"));
    press(&mut screen, "nAnother text\u{1b}");
    press(&mut screen, "a");
    let opened = text(&mut screen);
    assert!(opened.contains("Tabs, not spa") && opened.contains("as you left it"), "{opened}");
    act("send_message", json!({"reply_to": "Q1", "text": "Tabs, not spaces"}))(press(
        &mut screen,
        "ces\n",
    ));
    press(&mut screen, "a");
    assert!(!text(&mut screen).contains("Tabs"), "it was sent");
    press(&mut screen, "\u{1b}n");
    assert!(text(&mut screen).contains("Another text"));
    screen.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
    press(&mut screen, "\u{1b}n");
    assert!(!text(&mut screen).contains("Another text"), "it was cleared");
    press(&mut screen, "\u{1b}");
    onto(&mut screen, "title of next");
    press(&mut screen, "e\u{1b}e");
    assert!(!text(&mut screen).contains("as you left it"), "nothing was typed");
}

#[test]
fn a_text_of_several_lines_comes_back_whole() {
    let mut screen = screen(80, 24);
    press(&mut screen, "none");
    screen.key(KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL));
    press(&mut screen, "two\u{1b}n");
    act("create_task", json!({"description": "one\ntwo!"}))(press(&mut screen, "!\n"));
}

#[test]
fn a_text_that_is_refused_is_there_again() {
    let mut screen = screen(80, 24);
    onto(&mut screen, "title of made");
    press(&mut screen, "xmore tests\n");
    press(&mut screen, "nDo it\n");
    screen.answered(Err("it is done by now".to_owned()));
    screen.answered(Ok("the task is added".to_owned()));
    press(&mut screen, "x");
    assert!(text(&mut screen).contains("more tests"), "{}", text(&mut screen));
    press(&mut screen, "\u{1b}n");
    assert!(!text(&mut screen).contains("Do it"));
}

#[test]
fn a_priority_counts_on_from_what_was_asked_for_last() {
    let mut screen = screen(100, 40);
    let wants = |priority: u8| act("update_task", json!({"task_id": "next", "priority": priority}));
    onto(&mut screen, "title of next");
    wants(4)(press(&mut screen, "+"));
    // What is shown now was read before the call was answered.
    let board = || Content::Board(Box::new(lively()), Vec::new());
    screen.catch_up(0);
    screen.show(&Place::Board, board());
    wants(3)(press(&mut screen, "+"));
    screen.answered(Ok(String::new()));
    screen.catch_up(1);
    screen.show(&Place::Board, board());
    wants(2)(press(&mut screen, "+"));
    press(&mut screen, "2");
    screen.show(
        &Place::Tasks,
        Content::Tasks(vec![TaskRow { id: TaskId::trusted("next"), ..rows().remove(2) }]),
    );
    wants(1)(press(&mut screen, "+"));
    (0..3).for_each(|_| screen.answered(Ok(String::new())));
    // What is read now has it, whoever changed it since.
    screen.catch_up(4);
    press(&mut screen, "1");
    screen.show(&Place::Board, board());
    onto(&mut screen, "title of next");
    wants(6)(press(&mut screen, "-"));
    screen.answered(Err("refused".to_owned()));
    wants(4)(press(&mut screen, "+"));
}

#[test]
fn agents_are_chosen_by_a_part_of_their_names_or_by_keys() {
    let mut screen = screen(80, 24);
    onto(&mut screen, "title of next");
    assert_eq!(press(&mut screen, "w"), Some(Wish::Find(Find::Agents)));
    assert_eq!(press(&mut screen, "\n"), None, "none is chosen yet");
    press(&mut screen, "ui");
    is_as_in("assign-80x24.txt", &(text(&mut screen) + "\n"));
    let keeps = |agent: &str| act("assign_task", json!({"task_id": "next", "to": agent}));
    keeps("quiet")(press(&mut screen, "\n"));
    press(&mut screen, "w");
    let down = KeyEvent::new(KeyCode::Down, KeyModifiers::NONE);
    (0..3).for_each(|_| drop(screen.key(down)));
    // A list that comes later leaves the cursor on its agent.
    let agents =
        ["zoe", "idle", "ada"].map(|name| Candidate { name: name.into(), about: "".into() });
    screen.know_agents(agents.into());
    keeps("idle")(press(&mut screen, "\n"));
    press(&mut screen, "w");
    keeps("somebody new")(press(&mut screen, "somebody new\n"));
}

#[test]
fn a_message_goes_to_who_is_chosen_where_nobody_is_under_the_cursor() {
    let mut screen = screen(80, 24);
    onto(&mut screen, "title of next");
    assert_eq!(press(&mut screen, "m"), Some(Wish::Find(Find::Agents)));
    assert_eq!(press(&mut screen, "role:w\n"), None);
    assert!(text(&mut screen).contains("Message to role:worker"), "{}", text(&mut screen));
    act("send_message", json!({"to": "role:worker", "text": "stop"}))(press(&mut screen, "stop\n"));
}

fn undoable(events: usize) -> Undoable {
    let did = (0..events).map(|number| format!("cancelled #{number} \"A title\""));
    let stays = vec!["t4 is claimed by now".to_owned()];
    Undoable { seq: 9, did: did.collect(), stays }
}

#[test]
fn undo_lists_what_it_takes_back_and_asks() {
    let mut screen = screen(80, 24);
    assert_eq!(press(&mut screen, "u"), Some(Wish::Find(Find::Undoable(None))));
    // Typed ahead, which answers nothing.
    assert_eq!(press(&mut screen, "yq"), None);
    screen.ask_to_undo(Ok(undoable(3)));
    is_as_in("undo-80x24.txt", &(text(&mut screen) + "\n"));
    act("undo", json!({"seq": 9}))(press(&mut screen, "y"));
    press(&mut screen, "u");
    screen.ask_to_undo(Ok(undoable(300)));
    let asked = text(&mut screen);
    assert!(asked.contains("more lines") && asked.contains("y  yes"), "{asked}");
    assert_eq!(press(&mut screen, "n"), None);
    press(&mut screen, "u\u{1b}");
    screen.ask_to_undo(Ok(undoable(3)));
    assert!(!text(&mut screen).contains("Take this back?"), "the person has turned away");
    press(&mut screen, "u");
    screen.ask_to_undo(Err("there is nothing of yours to undo".to_owned()));
    assert!(text(&mut screen).contains("nothing of yours"), "{}", text(&mut screen));
}

#[test]
fn among_the_events_the_one_under_the_cursor_is_taken_back() {
    let mut screen = screen(80, 24);
    press(&mut screen, "4");
    let event = |seq: u64, what: &str| EventRow {
        line: vec![(Tone::Plain, what.to_owned())],
        about: Some(Subject::Agent { id: AgentId::trusted("ada"), holds: None }),
        seq: Some(seq),
    };
    screen.show(&Place::Events, Content::Events(vec![event(8, "later"), event(5, "earlier")]));
    assert_eq!(press(&mut screen, "u"), Some(Wish::Find(Find::Undoable(Some(8)))));
    press(&mut screen, "\u{1b}");
    onto(&mut screen, "earlier");
    assert_eq!(press(&mut screen, "u"), Some(Wish::Find(Find::Undoable(Some(5)))));
}

#[test]
fn a_diff_opens_from_its_task_and_is_judged_where_it_is_read() {
    let mut screen = screen(80, 24);
    onto(&mut screen, "title of made");
    let about = screen.subject().cloned();
    assert_eq!(press(&mut screen, "d"), Some(Wish::Look));
    let place = Place::Diff(TaskId::trusted("made"));
    assert_eq!(screen.place(), &place);
    let lines = (0..90).map(|number| vec![(Tone::Good, format!("+line {number}"))]).collect();
    screen.show(&place, Content::Page(Box::new(Page { about, lines })));
    let top = text(&mut screen);
    assert!(top.contains("+line 0") && top.contains("y approve · x send back"), "{top}");
    assert!(!top.contains("d diff"), "{top}");
    press(&mut screen, "G");
    assert!(text(&mut screen).contains("+line 89"));
    act("approve_task", json!({"task_id": "made", "attempt": 1}))(press(&mut screen, "y"));
    press(&mut screen, "\u{1b}");
    assert_eq!(screen.place(), &Place::Board);
    onto(&mut screen, "title of next");
    assert_eq!(press(&mut screen, "d"), None, "there is no work yet");
}

#[test]
fn the_mouse_scrolls_and_chooses_once_it_is_switched_on() {
    let mut screen = screen(80, 24);
    assert_eq!(press(&mut screen, "M"), Some(Wish::Mouse(true)));
    let shown = drawn(&mut screen, PLAIN);
    let line = |part: &str| shown.iter().position(|line| line.contains(part)).unwrap() as u16;
    let mouse = |kind, row| MouseEvent { kind, column: 3, row, modifiers: KeyModifiers::NONE };
    let click = |row| mouse(MouseEventKind::Down(MouseButton::Left), row);
    screen.mouse(click(line("Title of next")));
    assert!(matches!(screen.subject(), Some(Subject::Task(task)) if task.name == "#4"));
    let chosen = screen.subject().cloned();
    // The head, a title, and what is below the last row.
    [0, line("NEXT"), 23].into_iter().for_each(|row| screen.mouse(click(row)));
    assert_eq!(screen.subject().cloned(), chosen);
    screen.mouse(mouse(MouseEventKind::ScrollUp, 5));
    assert_ne!(screen.subject().cloned(), chosen);
    screen.mouse(mouse(MouseEventKind::ScrollDown, 5));
    assert_eq!(screen.subject().cloned(), chosen);
    press(&mut screen, "c");
    screen.mouse(click(line("Title of made")));
    assert_eq!(screen.subject().cloned(), chosen, "a question is open");
    press(&mut screen, "n");
    assert_eq!(press(&mut screen, "M"), Some(Wish::Mouse(false)));
}

#[test]
fn why_the_board_cannot_be_read_is_said_whole() {
    let mut screen = screen(60, 24);
    screen.lose(format!("{}callboard doctor tells more", "the board is not there ".repeat(4)));
    let lost = text(&mut screen);
    assert!(lost.contains("not live: ") && lost.contains("(q quits)"), "{lost}");
    screen.show(&Place::Board, Content::Board(Box::new(lively()), Vec::new()));
    assert!(!text(&mut screen).contains("not live"));
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
        (
            Place::Events,
            Content::Events(vec![EventRow { line: long[0].clone(), about: None, seq: None }]),
        ),
        (Place::Plan, Content::Page(Box::new(Page { about: None, lines: long }))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_size_and_no_keys_break_it(
        (columns, lines) in (0..300_u16, 0..300_u16),
        (later_columns, later_lines) in (0..40_u16, 0..12_u16),
        keys in "[1-6jkhlgGqM/?adyxrcsmwu+\\-enp\n\u{1b} ü]{0,24}",
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
