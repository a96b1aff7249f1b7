use super::*;
use crate::state::Envelope;
use crate::state::event::{Event, NewTask};
use crate::state::id::ParticipantId;
use crate::state::time::Timestamp;

/// A board with these tasks: id, title, path.
fn board(tasks: &[(&str, &str, &str)]) -> State {
    let mut state = State::new();
    let new = |(id, title, path): &(&str, &str, &str)| NewTask {
        id: TaskId::trusted(id),
        title: Some((*title).to_owned()),
        description: "d".to_owned(),
        priority: 5,
        dependencies: Vec::new(),
        context: None,
        path: Some((*path).to_owned()).filter(|path| !path.is_empty()),
        parent: None,
        planned: None,
        status: None,
        demands: Default::default(),
        tags: Vec::new(),
        max_attempts: 3,
        not_before: None,
        timeout_seconds: None,
        silent_minutes: None,
        estimated_minutes: None,
        run: None,
        review: None,
    };
    let created = Event::BoardCreated { board_id: "b".to_owned(), numbered: true };
    for event in [created, Event::TasksCreated { tasks: tasks.iter().map(new).collect() }] {
        let participant = ParticipantId::trusted("p");
        let envelope =
            Envelope { at: Timestamp::default(), participant, actor: None, idempotency: None };
        state.record(event, &envelope).expect("an event that applies");
    }
    state
}

fn found(state: &State, given: &str) -> String {
    match state.referred(given) {
        Ok(task) => task.id.to_string(),
        Err(Refusal::AmbiguousTask { candidates, more, .. }) => {
            let ids: Vec<_> = candidates.iter().map(|one| one.id.as_str()).collect();
            format!("{} and {more} more", ids.join(" "))
        }
        Err(Refusal::UnknownTask { .. } | Refusal::NoTaskCalled { .. }) => "none".to_owned(),
        Err(other) => other.to_string(),
    }
}

#[test]
fn a_task_goes_by_all_its_names() {
    let state = board(&[
        ("task-7f3kab", "Write the lexer", "P1.M2.T3"),
        ("parser", "Fix the Parser", "P1.M2.T4"),
        ("7", "Seventh", ""),
        ("task-9f3kab", "Write the AST", ""),
    ]);
    for (given, id) in [
        ("task-7f3kab", "task-7f3kab"),
        ("#1", "task-7f3kab"),
        ("2", "parser"),
        ("#2", "parser"),
        (" 2 ", "parser"),
        ("7", "7"),
        ("3", "7"),
        ("#7", "none"),
        ("0", "none"),
        ("5", "none"),
        ("99999999999999999999", "none"),
        ("P1.M2.T4", "parser"),
        ("P9.M2", "none"),
        ("task-7", "task-7f3kab"),
        ("7f3", "task-7f3kab"),
        ("7F3K", "task-7f3kab"),
        ("ser", "parser"),
        ("er", "none"),
        ("kab", "task-7f3kab task-9f3kab and 0 more"),
        ("fix the parser", "parser"),
        ("FIX", "parser"),
        ("fix the", "parser"),
        ("write the", "task-7f3kab task-9f3kab and 0 more"),
        ("write the l", "task-7f3kab"),
        ("the lexer", "none"),
        ("", "none"),
        ("#", "none"),
        ("+1", "none"),
    ] {
        assert_eq!(found(&state, given), id, "{given:?}");
    }
}

#[test]
fn a_whole_title_wins_over_beginnings() {
    let state = board(&[("a-1", "Parser", ""), ("a-2", "Parser tests", ""), ("parser-3", "x", "")]);
    assert_eq!(found(&state, "parser"), "a-1");
    assert_eq!(found(&state, "pars"), "a-1 a-2 parser-3 and 0 more");
}

#[test]
fn at_most_ten_are_listed() {
    let ids: Vec<_> = (1..=13).map(|number| format!("same-{number}")).collect();
    let tasks: Vec<_> = ids.iter().map(|id| (id.as_str(), "twin", "")).collect();
    let refusal = board(&tasks).referred("twin").expect_err("several").to_string();
    assert_eq!(refusal.lines().count(), 12, "{refusal}");
    assert!(refusal.contains("\n  #10 same-10 twin\n  and 3 more"), "{refusal}");
}

#[test]
fn tasks_of_an_older_board_are_numbered_in_order() {
    let numbered = board(&[("b", "t", ""), ("a", "t", "")]);
    let mut document = numbered.to_document();
    document.board.next_number = 0;
    for task in &mut document.tasks {
        Arc::make_mut(task).number = None;
    }
    let mut state = State::from_document(document);
    assert!(state.lacks_numbers() && found(&state, "1") == "b");
    let envelope = Envelope {
        at: Timestamp::default(),
        participant: ParticipantId::trusted("p"),
        actor: None,
        idempotency: None,
    };
    state.record(Event::TasksNumbered {}, &envelope).expect("an event that applies");
    assert_eq!([found(&state, "1"), found(&state, "2")], ["b", "a"]);
    assert!(!state.lacks_numbers() && state.board().next_number == 3);
    assert_eq!(state.check(), Vec::<String>::new());
}
