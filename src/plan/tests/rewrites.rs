//! Exports of imported texts: as they were, but for what has changed on the board.

use std::fs;
use std::path::Path;

use super::*;
use crate::state::event::{Event, TaskChange};
use crate::state::id::{Chance, TaskId};
use crate::state::plan::{Import, KeptText, LineEnds, one_line};

/// A board with the plan, and its text as the event of the import keeps it.
fn imported(raw: &str) -> Option<(State, KeptText)> {
    let text = raw.replace("\r\n", "\n").replace('\r', "\n");
    let (state, _) = exported(&parse(&text).ok()?)?;
    Some((state, KeptText { text, line_ends: LineEnds::of(raw) }))
}

#[track_caller]
fn board(raw: &str) -> (State, KeptText) {
    imported(raw).unwrap_or_else(|| panic!("{:?}", parse(raw)))
}

fn record(state: &mut State, event: Event) {
    state.record(event, &envelope()).expect("the event fits");
    state.settle();
}

fn at(state: &State, title: &str) -> TaskId {
    let found = state.tasks().find(|task| task.headline() == title);
    found.unwrap_or_else(|| panic!("no task {title}")).id.clone()
}

fn update(state: &mut State, title: &str, change: TaskChange) {
    let task = at(state, title);
    record(state, Event::TaskUpdated { task, change: Box::new(change), lease_until: None });
}

/// Imports the text in which these lines are other ones, as a person does who ticks a box on the
/// board.
fn becomes(state: &mut State, text: &str) {
    let event = state.replan(&parse(text).unwrap(), &Import::default()).unwrap();
    record(state, event);
}

/// The lines of `new` that differ from those of `old`, with their numbers.
fn difference(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let after = old[same..]
        .iter()
        .rev()
        .zip(new[same..].iter().rev())
        .take_while(|(old, new)| old == new)
        .count();
    new[same..new.len() - after].iter().map(|line| (*line).to_owned()).collect()
}

fn files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dirs = ["tests/data/plans", "examples"];
    let paths = dirs
        .iter()
        .flat_map(|dir| fs::read_dir(root.join(dir)).unwrap().map(|entry| entry.unwrap().path()));
    let texts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    texts.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn an_import_without_changes_is_exported_byte_for_byte() {
    let mut count = 0;
    for (name, text) in files() {
        for raw in [
            text.clone(),
            text.replace('\n', "\r\n"),
            format!("\u{feff}{text}"),
            text.replace('\n', "\r"),
        ] {
            let Some((state, kept)) = imported(&raw) else { continue };
            assert_eq!(
                rewritten(&state, &kept, &Import::default()).as_deref(),
                Some(raw.as_str()),
                "{name}"
            );
            count += 1;
        }
    }
    assert!(count > 150, "{count} texts");
}

#[test]
fn a_done_task_has_its_box_ticked_and_nothing_else_changes() {
    let text = "---\na: b\n---\n# T\n\nProse.\n\n## One\n\n- [ ] `a` task\n  with words\n* ☐ b\n\n| do | by |\n|---|---|\n\
                | [ ] c | me |\n\n## Two\n\n1. [ ] d\n\n## Three\n\n- [x] e\n";
    let (mut state, kept) = board(text);
    for (title, line) in
        [("`a` task", "- [x] `a` task"), ("b", "* ☑ b"), ("c", "| [x] c | me |"), ("d", "1. [x] d")]
    {
        let now = rewritten(&state, &kept, &Import::default()).unwrap();
        let other = parse(&now).unwrap();
        let number = other.items.iter().find(|item| item.title == title).unwrap().line;
        let ticked: Vec<_> = now
            .lines()
            .enumerate()
            .map(|(at, old)| if at + 1 == number { line } else { old })
            .collect();
        becomes(&mut state, &ticked.join("\n"));
        let after = rewritten(&state, &kept, &Import::default()).unwrap();
        assert_eq!(difference(&now, &after), [line]);
    }
    let reset = Event::TasksReset { tasks: vec![at(&state, "e")] };
    record(&mut state, reset);
    let now = rewritten(&state, &kept, &Import::default()).unwrap();
    assert!(
        now.ends_with("- [ ] e\n") && now.starts_with("---\na: b\n---\n# T\n\nProse.\n"),
        "{now}"
    );
}

#[test]
fn what_has_no_box_says_its_status_below() {
    let (mut state, kept) = board("## Phase 1\n\n- one\n- two\n\n## Phase 2: alone\n\nWords.\n");
    becomes(
        &mut state,
        "## Phase 1\n\n- one\n  status: Complete\n- two\n\n## Phase 2: alone\nstatus: Cancelled\n\nWords.\n",
    );
    let text = rewritten(&state, &kept, &Import::default()).unwrap();
    assert!(text.starts_with("## Phase 1\n\n- one\n  status: Complete\n- two\n"), "{text}");
    is_no_news(&state, &text);
}

#[test]
fn changes_on_the_board_change_their_lines_alone() {
    let text = "# T\r\n\r\n## Parser\r\n\r\n- [ ] numbers (after words)\r\n  priority: 3\r\n- [ ] words\r\n\r\n  Some text.\r\n\r\n## Notes\r\n\r\nProse\r\n";
    let (mut state, kept) = board(text);
    update(
        &mut state,
        "words",
        TaskChange { title: Some("all words".to_owned()), ..TaskChange::default() },
    );
    let now = rewritten(&state, &kept, &Import::default()).unwrap();
    assert_eq!(
        difference(text, &now),
        ["- [ ] numbers (after words)", "  priority: 3", "- [ ] all words"][2..]
    );
    update(&mut state, "numbers", TaskChange { priority: Some(1), ..TaskChange::default() });
    let now = rewritten(&state, &kept, &Import::default()).unwrap();
    assert!(now.contains("\r\n  priority: 1\r\n- [ ] all words\r\n"), "{now}");
    let tags = Some(vec!["x".to_owned(), "y z".to_owned()]);
    update(
        &mut state,
        "all words",
        TaskChange { tags, priority: Some(2), ..TaskChange::default() },
    );
    let now = rewritten(&state, &kept, &Import::default()).unwrap();
    assert!(
        now.contains("- [ ] all words\r\n  priority: 2\r\n  tags: x, y z\r\n\r\n  Some text.\r\n"),
        "{now}"
    );
    update(
        &mut state,
        "all words",
        TaskChange { description: Some("Other text.".to_owned()), ..TaskChange::default() },
    );
    let now = rewritten(&state, &kept, &Import::default()).unwrap();
    assert!(
        now.contains("Other text.")
            && !now.contains("Some text.")
            && now.ends_with("\r\n\r\n## Notes\r\n\r\nProse\r\n"),
        "{now}"
    );
    update(
        &mut state,
        "numbers",
        TaskChange { dependencies: Some(Vec::new()), ..TaskChange::default() },
    );
    let now = rewritten(&state, &kept, &Import::default()).unwrap();
    assert!(
        now.contains("- [ ] numbers\r\n") && now.replace("\r\n", "").lines().count() == 1,
        "{now}"
    );
    is_no_news(&state, &now);
}

#[track_caller]
fn is_no_news(state: &State, text: &str) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let plan = parse(&text).unwrap_or_else(|problems| panic!("{problems:?} in\n{text}"));
    let known = state.still_items(&plan, &Import::default());
    let plan = if known.is_empty() { plan } else { parse_with(&text, &known, false).unwrap() };
    assert!(
        state.is_no_news(&plan, &Import::default()),
        "{:?} by\n{text}",
        state.replan(&plan, &Import::default())
    );
}

/// A random plan, made of the first `kinds` of lines that have a meaning in plans.
fn invented(chance: &mut Chance, kinds: usize) -> String {
    const LINES: [&str; 33] = [
        "# Title",
        "## Phase 1: a",
        "## Phase 2",
        "## P3: c",
        "### M",
        "- [ ] one",
        "- [x] two",
        "* [ ] three (high priority)",
        "- [ ] four (after one)",
        "  - [ ] five",
        "  - [ ] P1.M1.T1: six",
        "  priority: 2",
        "  depends: two",
        "  tags: a, b",
        "1. seven",
        "- eight",
        "",
        "",
        "Some prose here.",
        "  more words",
        "```",
        "| a | b |",
        "|---|---|",
        "| [ ] nine | x |",
        "- ~~ten~~",
        "> - [ ] eleven",
        "☐ twelve",
        "<details>",
        "- [-] thirteen",
        "Under\n-----",
        "## Done",
        "- ✅ fourteen",
        "| c | Status |\n|---|---|\n| fifteen | 🚧 In progress |",
    ];
    let mut text = String::new();
    for number in 0..1 + chance.draw() % 25 {
        let line = LINES[(chance.draw() % kinds as u64) as usize];
        text.push_str(line);
        if chance.draw().is_multiple_of(3) && line.contains("] ") {
            text.push_str(&format!(" {number}"));
        }
        text.push_str(if chance.draw().is_multiple_of(20) { "\r\n" } else { "\n" });
    }
    text
}

fn change(state: &mut State, chance: &mut Chance) {
    let tasks: Vec<_> =
        state.tasks().filter(|task| task.status == TaskStatus::Available).cloned().collect();
    if tasks.is_empty() {
        return;
    }
    let task = &tasks[(chance.draw() % tasks.len() as u64) as usize];
    let mut change = TaskChange::default();
    match chance.draw() % 6 {
        0 => change.title = Some(format!("new {}", chance.draw() % 100)),
        1 => change.priority = Some(1 + (chance.draw() % 10) as u8),
        2 => change.description = Some("Said\n\n- [ ] otherwise".to_owned()),
        3 => change.tags = Some(vec!["t".to_owned()]),
        4 => change.dependencies = Some(Vec::new()),
        _ if state.has_parts(&task.id) => return,
        _ => return record(state, Event::Cancelled { task: task.id.clone(), reason: None }),
    }
    record(
        state,
        Event::TaskUpdated { task: task.id.clone(), change: Box::new(change), lease_until: None },
    );
}

/// Ends a task or begins it again, as far as it can be.
fn act(state: &mut State, chance: &mut Chance, kept: &KeptText) {
    let leaves: Vec<_> = state.tasks().filter(|task| !state.has_parts(&task.id)).cloned().collect();
    let task = &leaves[(chance.draw() % leaves.len() as u64) as usize];
    match task.status {
        TaskStatus::Available if chance.draw().is_multiple_of(3) => {
            record(state, Event::Cancelled { task: task.id.clone(), reason: None });
        }
        TaskStatus::Available => tick(state, &task.id, kept),
        TaskStatus::Done => record(state, Event::TasksReset { tasks: vec![task.id.clone()] }),
        _ => {}
    }
}

/// Has a newer version of the file say that the task is done.
fn tick(state: &mut State, task: &TaskId, kept: &KeptText) {
    let Some(text) = rewritten(state, kept, &Import::default()) else { return };
    let Ok(mut plan) = parse(&text) else { return };
    let import = Import::default();
    let Some(matched) = state.matched(&plan, &import) else { return };
    let Some(at) = matched.iter().position(|one| one.task.id == *task) else { return };
    (plan.items[at].status, plan.sha256) = (Stated::Done, version(&format!("{text}{at}")));
    let event = state.replan(&plan, &import).unwrap();
    record(state, event);
}

/// Titles and statuses in the order of the file.
fn standing(state: &State) -> Vec<(String, TaskStatus)> {
    let tasks = state.in_file_order(state.tasks());
    tasks.iter().map(|task| (one_line(task.headline()), task.status)).collect()
}

#[test]
fn any_plan_comes_back_as_it_was_and_any_change_of_it_is_no_news() {
    let mut chance = Chance::new(29);
    let (mut plans, mut own, mut changed) = (0, 0, 0);
    for _ in 0..4_000 {
        let raw = invented(&mut chance, 30);
        let Some((mut state, kept)) = imported(&raw) else { continue };
        plans += 1;
        assert_eq!(
            rewritten(&state, &kept, &Import::default()).as_deref(),
            Some(raw.as_str()),
            "{raw}"
        );
        for _ in 0..chance.draw() % 4 {
            change(&mut state, &mut chance);
            changed += 1;
            let text = rewritten(&state, &kept, &Import::default());
            own += usize::from(text.is_some());
            let tasks = state.in_file_order(state.tasks());
            let shown = text.unwrap_or_else(|| to_markdown(None, None, &tasks));
            is_no_news(&state, &shown);
        }
    }
    println!("{plans} plans, {own} of {changed} changed ones in their own text");
    assert!(plans > 1_000 && own * 10 > changed * 8, "{plans} plans, {own} of {changed}");
}

#[test]
fn what_was_done_on_the_board_comes_with_its_export_to_another() {
    let mut chance = Chance::new(31);
    let (mut plans, mut acts) = (0, 0);
    for _ in 0..1_500 {
        let raw = invented(&mut chance, 33);
        let Some((mut state, kept)) = imported(&raw) else { continue };
        plans += 1;
        for _ in 0..chance.draw() % 4 {
            act(&mut state, &mut chance, &kept);
            acts += 1;
            let Some(shown) = rewritten(&state, &kept, &Import::default()) else { continue };
            let (other, _) = exported(&parse(&shown).unwrap()).unwrap();
            assert_eq!(standing(&other), standing(&state), "{raw}\nis now\n{shown}");
        }
    }
    assert!(plans > 500 && acts > 500, "{plans} plans, {acts} acts");
}

#[test]
fn a_heading_that_is_open_for_what_nobody_read_stays_so_in_other_words() {
    let (mut state, kept) = board("## Tasks\n\n| a | b |\n\n- [x] two\n");
    let description = Some("Other words".to_owned());
    update(&mut state, "Tasks", TaskChange { description, ..TaskChange::default() });
    let text = rewritten(&state, &kept, &Import::default()).unwrap();
    let (other, _) = exported(&parse(&text).unwrap()).unwrap();
    assert_eq!(standing(&other), standing(&state), "{text}");
}
