use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::state::id::TaskId;
use crate::state::task::TaskStatus;

const NOW: &str = "2026-03-01T12:00:00.000Z";

fn now() -> Timestamp {
    Timestamp::of_text(NOW).unwrap()
}

fn task(id: &str, status: &str, on: &[&str]) -> Value {
    json!({"id": id, "title": format!("Title of {id}"), "description": "d", "priority": 5,
        "dependencies": on, "status": status, "created_at": "2026-03-01T08:00:00.000Z"})
}

fn with(mut task: Value, more: Value) -> Value {
    let fields = task.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    task
}

/// A task that the agent holds, claimed at 11:20.
fn held(id: &str, agent: &str) -> Value {
    let attempt = json!({"number": 1, "agent": agent, "claimed_at": "2026-03-01T11:20:00.000Z",
        "lease_until": "2026-03-01T13:00:00.000Z", "branch": format!("work/{id}"), "note": "half"});
    let more = json!({"claimed_by": agent, "attempt": 1, "attempts": [attempt],
        "claimed_at": "2026-03-01T11:20:00.000Z"});
    with(task(id, "in_progress", &[]), more)
}

fn failed(id: &str, error: &str) -> Value {
    let attempt = json!({"number": 1, "agent": "a", "claimed_at": "2026-03-01T10:00:00.000Z",
        "lease_until": "2026-03-01T11:00:00.000Z", "outcome": "failed",
        "ended_at": "2026-03-01T10:30:00.000Z", "error": {"category": "test", "message": error}});
    let more =
        json!({"attempt": 1, "attempts": [attempt], "completed_at": "2026-03-01T10:30:00.000Z"});
    with(task(id, "failed", &[]), more)
}

/// A task in review, completed at that time.
fn in_review(id: &str, at: &str) -> Value {
    let attempt = json!({"number": 1, "agent": "a", "claimed_at": "2026-03-01T10:00:00.000Z",
        "lease_until": "2026-03-01T13:00:00.000Z", "outcome": "done",
        "ended_at": format!("2026-03-01T{at}:00.000Z")});
    let more = json!({"attempt": 1, "claimed_by": "a", "attempts": [attempt],
        "result": {"output": "made"}});
    with(task(id, "review", &[]), more)
}

fn done(id: &str, at: &str) -> Value {
    let at = format!("2026-03-01T{at}:00.000Z");
    let more = json!({"attempt": 1, "claimed_by": "a", "completed_at": at,
        "claimed_at": "2026-03-01T10:00:00.000Z"});
    with(task(id, "done", &[]), more)
}

/// An agent, last heard of at that time, with its tasks.
fn agent(id: &str, heard: &str, tasks: &[&str], more: Value) -> Value {
    let agent = json!({"id": id, "role": "worker", "last_heartbeat": format!("2026-03-01T{heard}.000Z"),
        "current_task": tasks.last(), "current_tasks": tasks});
    with(agent, more)
}

fn state(tasks: Vec<Value>, agents: Vec<Value>) -> State {
    let mut document = State::new().to_document();
    document.tasks =
        tasks.into_iter().map(|one| Arc::new(serde_json::from_value(one).unwrap())).collect();
    for agent in agents {
        let agent: crate::state::agent::Agent = serde_json::from_value(agent).unwrap();
        document.agents.insert(agent.id.clone(), agent);
    }
    let mut state = State::from_document(document);
    state.wake(now());
    state
}

fn board_of(state: &State, rows: usize) -> Board {
    Board::of(
        state,
        &Look {
            now: now(),
            policy: &Policy::default(),
            scope: None,
            filter: &Filter::default(),
            rows,
        },
    )
}

fn board(tasks: Vec<Value>, agents: Vec<Value>) -> Board {
    board_of(&state(tasks, agents), 8)
}

fn waits(board: &Board) -> Vec<(&'static str, &str)> {
    board.waits.rows.iter().map(|wait| (wait.kind.as_str(), wait.name.as_str())).collect()
}

/// A board with something in every list, for screens.
pub(crate) fn lively() -> Board {
    let tasks = vec![
        in_review("made", "11:30"),
        held("work", "ada"),
        held("stalled", "quiet"),
        task("next", "available", &[]),
        failed("bad", "no docs/book"),
        task("behind", "available", &["bad"]),
        with(task("later", "available", &[]), json!({"not_before": "2026-03-01T13:00:00.000Z"})),
        done("one", "10:40"),
        done("two", "11:05"),
        done("three", "11:55"),
    ];
    let agents = vec![
        agent("ada", "11:59:48", &["work"], json!({})),
        agent("quiet", "11:00:00", &["stalled"], json!({})),
        agent("idle", "11:58:00", &[], json!({})),
    ];
    let mut document = state(tasks, agents).to_document();
    let question = json!({"id": "m-1", "from": "ada", "to": "human", "kind": "request",
        "text": "Keep the old syntax?", "options": ["Keep it", "Drop it"], "sent_at": "2026-03-01T11:48:00.000Z", "question": 1,
        "recipients": ["human"], "unread_by": ["human"]});
    document.messages.push(Arc::new(serde_json::from_value(question).unwrap()));
    document.board.goal = "Port the parser to Rust".into();
    let mut state = State::from_document(document);
    state.wake(now());
    board_of(&state, 8)
}

#[test]
fn every_task_is_in_one_count() {
    let later =
        with(task("later", "available", &[]), json!({"not_before": "2026-03-01T13:00:00.000Z"}));
    let part = with(task("part", "available", &[]), json!({"parent": "whole"}));
    let tasks = vec![
        task("whole", "available", &[]),
        part,
        task("behind", "available", &["part"]),
        later,
        held("work", "a"),
        in_review("made", "11:30"),
        failed("bad", "no"),
        task("off", "cancelled", &[]),
        task("gone", "obsolete", &[]),
        done("over", "11:00"),
    ];
    let board = board(tasks, vec![agent("a", "11:59:00", &["work"], json!({}))]);
    let counts = Counts {
        ready: 1,
        blocked: 1,
        waiting: 1,
        in_work: 1,
        in_review: 1,
        failed: 1,
        cancelled: 2,
        done: 1,
        total: 9,
    };
    assert_eq!(board.counts, counts);
    assert_eq!((board.head.done, board.head.wanted, board.head.percent), (1, 7, 14));
    assert_eq!(board.retries.rows[0].card.number, 4);
}

#[test]
fn open_tasks_are_shown_as_ready_blocked_or_waiting() {
    let until = json!({"not_before": "2099-01-01T00:00:00.000Z"});
    let part = with(task("part", "available", &["ready"]), json!({"parent": "whole"}));
    let later = with(task("later", "available", &[]), until);
    let tasks = vec![task("ready", "available", &[]), task("whole", "available", &[]), part, later];
    let state = state(tasks, vec![]);
    let list = List::of(&state, Kind::All, None, &Filter::default(), 0, now());
    let words = |row: &Listed| format!("{} {}", row.card.id, row.standing.word());
    let listed: Vec<_> = list.rows.iter().map(words).collect();
    assert_eq!(listed, ["ready ready", "part blocked", "later waiting"]);
    let named = |id: &str| Named::find(&state, &TaskId::trusted(id)).standing;
    assert_eq!(named("whole"), Some(Standing::Open));
    assert_eq!(named("part"), Some(Standing::Blocked(vec![TaskId::trusted("ready")])));
    assert_eq!(named("gone"), None);
}

#[test]
fn reviews_wait_for_the_person_the_longest_first_and_what_is_behind_them_says_so() {
    let tasks = vec![
        in_review("late", "11:50"),
        in_review("early", "11:10"),
        task("behind", "available", &["late"]),
    ];
    let board = board(tasks, Vec::new());
    assert_eq!(waits(&board), [("review", "#2"), ("review", "#1")]);
    let first = &board.waits.rows[0];
    assert_eq!((first.text.as_str(), &first.remedies[0]), ("Title of early", &typed("approve 2")));
    let group = &board.blocked.rows[0];
    assert_eq!((group.behind, group.by[0].name()), (Behind::Review, "#1".to_owned()));
}

fn typed(words: &str) -> Remedy {
    words.split(' ').map(str::to_owned).collect()
}

#[test]
fn what_waits_comes_by_kind_and_then_the_oldest_first() {
    let waiting = |since: &str| {
        let since = format!("2026-03-01T{since}:00.000Z");
        json!({"waiting": {"for": "permission", "what": "Bash: cargo add nom", "where": "tmux 1:3", "since": since}})
    };
    let agents = vec![
        agent("late", "11:59:00", &["t1"], waiting("11:50")),
        agent("early", "11:59:00", &["t2"], waiting("11:40")),
        agent("silent", "11:00:00", &["t3"], json!({})),
    ];
    let tasks = vec![
        held("t1", "late"),
        held("t2", "early"),
        held("t3", "silent"),
        failed("bad", "no docs/book"),
        task("behind", "available", &["bad"]),
    ];
    let board = board(tasks, agents);
    let expected =
        [("permission", "early"), ("permission", "late"), ("failed", "#4"), ("no sign", "silent")];
    assert_eq!(waits(&board), expected);
    let [early, _, bad, silent] = &board.waits.rows[..] else { panic!("{board:?}") };
    assert_eq!(
        (early.text.as_str(), early.place.as_deref()),
        ("Bash: cargo add nom", Some("tmux 1:3"))
    );
    assert_eq!(bad.text, "Title of bad: no docs/book; 1 wait for it");
    assert_eq!(bad.remedies[0], ["retry", "4"]);
    assert_eq!(silent.text, "no sign; holds #3 Title of t3");
}

#[test]
fn agents_of_one_shot_commands_work_and_ended_sessions_are_folded() {
    let gone = with(held("t2", "dead"), json!({}));
    let mut gone = gone;
    gone["attempts"][0]["participant"] = json!("p-1");
    let agents = vec![
        agent("shot", "11:45:00", &["t1"], json!({})),
        agent("dead", "11:59:00", &["t2"], json!({})),
        agent("idle", "11:58:00", &[], json!({})),
        agent("old", "11:20:00", &[], json!({})),
        agent("human", "11:59:59", &[], json!({})),
    ];
    let board = board(vec![held("t1", "shot"), gone], agents);
    let signs: Vec<_> = board.agents.rows.iter().map(|row| (row.id.as_str(), row.sign)).collect();
    assert_eq!(signs, [("dead", Sign::Gone), ("shot", Sign::Working), ("idle", Sign::Idle)]);
    assert_eq!(board.ended, 1);
    let shot = &board.agents.rows[1];
    assert_eq!(shot.task.as_ref().unwrap().name(), "#1");
    assert_eq!((shot.note.as_deref(), shot.branch.as_deref()), (Some("half"), Some("work/t1")));
}

#[test]
fn ready_work_is_said_that_no_agent_is_there_to_take() {
    let gpu = with(task("gpu", "available", &[]), json!({"demands": {"capabilities": ["gpu"]}}));
    let alone = board(vec![task("plain", "available", &[]), gpu.clone()], vec![]);
    assert_eq!(waits(&alone), [("untaken", "2 ready")]);
    assert!(alone.waits.rows[0].text.starts_with("no agent to take them"), "{alone:?}");
    let idle = || vec![agent("idle", "11:59:00", &[], json!({}))];
    let board_with = board(vec![task("plain", "available", &[]), gpu], idle());
    assert_eq!(waits(&board_with), [("untaken", "1 ready")]);
    assert!(board_with.waits.rows[0].text.contains("demand: gpu"), "{board_with:?}");
    assert_eq!(waits(&board(vec![task("plain", "available", &[])], idle())), []);
}

#[test]
fn blocked_tasks_are_grouped_by_the_gravest_of_what_they_wait_for() {
    let tasks = vec![
        failed("bad", "no"),
        held("work", "a"),
        task("one", "available", &["bad", "work"]),
        task("two", "available", &["one"]),
        task("three", "available", &["work"]),
        task("ready", "available", &[]),
        task("four", "available", &["ready"]),
    ];
    let board = board(tasks, vec![agent("a", "11:59:00", &["work"], json!({}))]);
    let groups: Vec<_> = board
        .blocked
        .rows
        .iter()
        .map(|group| (group.behind, group.by[0].name(), group.tasks))
        .collect();
    let name = |number: &str| number.to_owned();
    let expected = [
        (Behind::Ended, name("#1"), 2),
        (Behind::Work, name("#2"), 1),
        (Behind::Ready, name("#6"), 1),
    ];
    assert_eq!(groups, expected);
    assert_eq!(board.failed.rows[0].blocks, 2);
}

#[test]
fn stuck_queue_says_its_cause() {
    let failed_root = board(vec![failed("bad", "no"), task("one", "available", &["bad"])], vec![]);
    assert_eq!(waits(&failed_root), [("failed", "#1"), ("stuck", "queue")]);
    assert_eq!(failed_root.waits.rows[1].text, "#1 Title of bad is failed, and 1 wait for it");
    let cycle =
        board(vec![task("one", "available", &["two"]), task("two", "available", &["one"])], vec![]);
    assert_eq!(cycle.waits.rows[0].text, "these wait for each other: #1, #2");
    let gone = board(vec![task("one", "available", &["never"])], vec![]);
    assert_eq!(gone.waits.rows[0].text, "never is not there any more, and 1 wait for it");
}

#[test]
fn pace_is_that_of_the_last_hours_and_leads_to_an_end() {
    let tasks = vec![
        done("d1", "10:30"),
        done("d2", "11:00"),
        done("d3", "11:30"),
        done("d4", "12:00"),
        with(done("old", "03:00"), json!({"claimed_at": "2026-03-01T02:00:00.000Z"})),
        // It came in as done.
        with(done("known", "11:59"), json!({"attempt": 0})),
        task("left", "available", &[]),
        task("last", "available", &["left"]),
    ];
    let moving = board(tasks.clone(), vec![]);
    let pace = moving.head.pace.unwrap();
    assert_eq!((pace.per_hour, pace.done), (2.0, 4));
    assert_eq!(moving.head.ends_at, Timestamp::of_text("2026-03-01T13:00:00Z"));
    let newest: Vec<_> = moving.done.rows.iter().map(|one| one.card.id.as_str()).collect();
    assert_eq!(newest, ["d4", "known", "d3", "d2", "d1", "old"]);
    let few = board(tasks[..2].to_vec(), vec![]);
    assert_eq!((few.head.pace, few.head.ends_at), (None, None));
}

#[test]
fn lists_say_how_many_they_leave_out() {
    let tasks: Vec<_> = (0..30).map(|number| failed(&format!("f{number}"), "no")).collect();
    let board = board_of(&state(tasks, vec![]), 5);
    assert_eq!((board.failed.rows.len(), board.failed.more), (5, 25));
    assert_eq!(board.waits.total(), 30);
}

#[test]
fn model_reads_back_as_it_was_written() {
    let board = board(
        vec![
            held("t1", "a"),
            failed("bad", "no"),
            done("d", "11:00"),
            task("one", "available", &["bad"]),
        ],
        vec![agent("a", "11:59:00", &["t1"], json!({}))],
    );
    let written = serde_json::to_value(&board).unwrap();
    assert_eq!(serde_json::from_value::<Board>(written).unwrap(), board);
}

#[test]
fn groups_of_blocked_tasks_add_up_on_boards_of_any_form() {
    let statuses = ["available", "available", "available", "done", "failed", "cancelled"];
    let mut seed = 7_u64;
    let mut draw = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    };
    for _ in 0..300 {
        let count = 1 + draw(12);
        let tasks = (0..count).map(|number| {
            let on: Vec<String> = (0..draw(3)).map(|_| format!("t{}", draw(count + 1))).collect();
            let on: Vec<&str> =
                on.iter().map(String::as_str).filter(|on| *on != format!("t{number}")).collect();
            task(&format!("t{number}"), statuses[draw(6) as usize], &on)
        });
        let state = state(tasks.collect(), vec![]);
        let board = board_of(&state, 100);
        let grouped: usize = board.blocked.rows.iter().map(|group| group.tasks).sum();
        assert_eq!(grouped as u64, board.counts.blocked);
        assert_eq!(board.counts.blocked as usize, state.blocked_count());
        let sum = board.counts.ready
            + board.counts.blocked
            + board.counts.failed
            + board.counts.cancelled
            + board.counts.done;
        assert_eq!(sum, board.counts.total);
        assert_eq!(board.counts.failed as usize, state.count(TaskStatus::Failed));
    }
}

fn filtered(filter: Filter) -> Board {
    let tasks = vec![
        with(task("lexer", "available", &[]), json!({"tags": ["core"], "path": "P1.M1.T1"})),
        with(task("parser", "available", &[]), json!({"tags": ["core"]})),
        task("behind", "available", &["broken"]),
        failed("broken", "no"),
        held("guide", "writer"),
        done("over", "11:00"),
    ];
    let agents = vec![
        agent("writer", "11:59:00", &["guide"], json!({})),
        agent("reader", "11:59:00", &[], json!({})),
    ];
    let look =
        Look { now: now(), policy: &Policy::default(), scope: None, filter: &filter, rows: 8 };
    Board::of(&state(tasks, agents), &look)
}

/// Names in the lists: next, agents, failed, blocked, done.
fn names(board: &Board) -> String {
    let next = board.next.rows.iter().map(|card| card.id.to_string());
    let agents = board.agents.rows.iter().map(|row| row.id.to_string());
    let failed = board.failed.rows.iter().map(|row| row.card.id.to_string());
    let blocked = board.blocked.rows.iter().map(|group| format!("{} behind", group.tasks));
    let done = board.done.rows.iter().map(|row| row.card.id.to_string());
    next.chain(agents).chain(failed).chain(blocked).chain(done).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_filter_narrows_the_lists_and_leaves_the_numbers() {
    let all = filtered(Filter::default());
    assert_eq!(names(&all), "lexer parser writer reader broken 1 behind over");
    let given = |text: &str, tag: &str, agent: &str| {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        filtered(Filter { text: some(text), tag: some(tag), agent: some(agent) })
    };
    for (filter, expected) in [
        (given("TITLE OF LEX", "", ""), "lexer"),
        (given("P1.M1", "", ""), "lexer"),
        (given("#2", "", ""), "parser"),
        (given("", "core", ""), "lexer parser"),
        (given("pars", "core", ""), "parser"),
        (given("", "", "writer"), "writer"),
        (given("broken", "", ""), "broken 1 behind"),
        (given("", "", "a"), "broken 1 behind over"),
        (given("nothing", "", ""), ""),
    ] {
        assert_eq!(names(&filter), expected);
        assert_eq!((filter.counts, &filter.head), (all.counts, &all.head));
    }
    let waits = |board: &Board| -> Vec<WaitKind> {
        board.waits.rows.iter().map(|wait| wait.kind).collect()
    };
    assert_eq!(waits(&given("", "core", "")), []);
    assert_eq!(waits(&given("broken", "", "")), [WaitKind::Failed]);
}

#[test]
fn filtered_rows_that_are_left_out_are_counted() {
    let tasks = (0..9).map(|number| task(&format!("t{number}"), "available", &[])).collect();
    let state = state(tasks, Vec::new());
    let filter = Filter { text: Some("title".to_owned()), ..Filter::default() };
    let look =
        Look { now: now(), policy: &Policy::default(), scope: None, filter: &filter, rows: 4 };
    let next = Board::of(&state, &look).next;
    assert_eq!((next.rows.len(), next.more), (4, 5));
}

#[test]
fn first_parts_of_the_plan_are_listed_in_its_order() {
    let at = |id: &str, path: &str, parent: &str, status: &str| {
        let more = json!({"path": path, "parent": Some(parent).filter(|one| !one.is_empty())});
        with(task(id, status, &[]), more)
    };
    let tasks = vec![
        at("p10", "P10", "", "available"),
        at("p2", "P2", "", "available"),
        at("m1", "P2.M1", "p2", "available"),
        at("t1", "P2.M1.T1", "m1", "done"),
        at("t2", "P2.M1.T2", "m1", "available"),
        at("last", "P10.M1", "p10", "available"),
    ];
    let parts = board(tasks, Vec::new()).parts;
    let told: Vec<_> = parts.iter().map(|one| (one.path.as_str(), one.done, one.wanted)).collect();
    assert_eq!(told, [("P2", 1, 2), ("P2.M1", 1, 2), ("P10", 0, 1)]);
}

#[test]
fn waits_offer_what_answers_them() {
    let board = board(vec![in_review("made", "11:30")], vec![]);
    assert_eq!(board.waits.rows[0].attempt, Some(1));
}

#[test]
fn events_are_told_with_titles_and_without_noise() {
    let state = state(vec![task("lexer", "available", &[])], vec![]);
    let event = |seq: u64, more: Value| {
        with(json!({"seq": seq, "at": NOW, "actor": "a", "writer": "p-1"}), more)
    };
    let events = [
        event(1, json!({"kind": "retried", "task": "lexer"})),
        event(2, json!({"kind": "noted", "task": "lexer", "note": null})),
        event(3, json!({"kind": "of_a_newer_build", "task": "lexer"})),
        event(
            4,
            json!({"kind": "message_sent", "message": {
                "id": "msg-1", "from": "a", "to": "b", "kind": "request", "text": "Which?", "sent_at": NOW, "recipients": ["b"],
            }}),
        ),
        event(5, json!({"kind": "message_sent", "message": {"to": "b", "kind": "inform"}})),
    ];
    let told: Vec<_> = latest(&state, &events)
        .into_iter()
        .map(|one| format!("{} {} {}", one.seq, one.word, one.text))
        .collect();
    assert_eq!(
        told,
        [
            "1 made available lexer \"Title of lexer\"",
            "3 event of_a_newer_build lexer",
            "4 asked b: Which?",
            "5 wrote to b: (private)",
        ]
    );
}
