use super::*;
use crate::state::State;

fn imported(bytes: &[u8]) -> (Document, Vec<String>) {
    match import(bytes) {
        Found::Foreign { document, notes } => {
            assert_eq!(State::from_document((*document).clone()).check(), Vec::<String>::new());
            (*document, notes)
        }
        other => panic!("not an older state file: {other:?}"),
    }
}

fn dependencies(document: &Document) -> Vec<Vec<&str>> {
    document
        .tasks
        .iter()
        .map(|task| task.dependencies.iter().map(TaskId::as_str).collect())
        .collect()
}

#[test]
fn a_time_without_a_zone_is_in_utc() {
    for text in [
        "2025-01-01T00:00:00Z",
        "2025-01-01T01:00:00+01:00",
        "2025-01-01T00:00:00",
        "2025-01-01 00:00:00.000999",
    ] {
        assert_eq!(time(Some(text)).to_string(), "2025-01-01T00:00:00.000Z", "{text}");
    }
    assert_eq!(time(Some("yesterday")), Timestamp::default());
}

#[test]
fn a_real_file_comes_in_with_its_leaseless_claims_open_again() {
    let (document, notes) =
        imported(include_bytes!("../../../tests/data/typescript-broker/mcp-state.json"));
    let tasks: Vec<_> = document
        .tasks
        .iter()
        .map(|task| {
            (task.status.as_str(), task.priority, task.claimed_by.as_ref().map(AgentId::as_str))
        })
        .collect();
    let expected = [
        ("done", 1, Some("worker-1")),
        ("available", 2, None),
        ("available", 3, None),
        ("available", 5, None),
        ("failed", 4, Some("worker-2")),
        ("available", 1, None),
    ];
    assert_eq!(tasks, expected);
    assert_eq!(
        document.agents.values().map(|agent| agent.tasks_completed).collect::<Vec<_>>(),
        [0, 1, 0]
    );
    assert_eq!(document.discoveries.len(), 2);
    assert_eq!(
        document.board.goal,
        Arc::from("Ship the billing service with invoices, tested and documented")
    );
    assert_eq!(document.board.last_activity.to_string(), "2026-03-01T10:22:41.000Z");
    let result = document.tasks[0].result.as_ref().unwrap();
    assert_eq!(result.files_created, ["migrations/001_billing.sql"]);
    let about: Vec<_> = notes.iter().map(|note| note.split_once("; ").unwrap().0).collect();
    let expected = [
        "task task-1740823200001-p8m1ze was in_progress by worker-2 without a lease",
        "task task-1740823200002-a0vw7d was claimed by worker-1 without a lease",
        "task task-1740823200005-g7sj3u had priority 0",
        "task task-1740823200005-g7sj3u depended on task-1740823299999-gone00, which does not \
         exist",
    ];
    assert_eq!(about, expected);
}

#[test]
fn missing_fields_have_defaults() {
    let (document, notes) =
        imported(br#"{"tasks":[{"id":"t"}],"agents":{"a":{}},"discoveries":null,"goal":null}"#);
    assert_eq!((document.tasks[0].status, document.tasks[0].priority), (TaskStatus::Available, 5));
    assert_eq!(document.agents.values().next().map(|agent| agent.role), Some(Role::Worker));
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn oddities_are_noted() {
    let (document, notes) = imported(
        br#"{"tasks":[{"id":"t","status":"paused","priority":99},{"id":"t","description":"second"},{"id":"a b"}],
            "agents":{"a":{"role":"king"}},"discoveries":[{"id":"d"},{"id":"d"}]}"#,
    );
    assert_eq!((document.tasks.len(), document.discoveries.len(), notes.len()), (2, 1, 6));
    assert_eq!((document.tasks[0].status, document.tasks[0].priority), (TaskStatus::Failed, 10));
}

#[test]
fn the_dependency_that_closes_a_cycle_is_dropped() {
    let (document, notes) = imported(
        br#"{"tasks":[{"id":"a","dependencies":["b","d","b"]},{"id":"b","dependencies":["c","d"]},
            {"id":"c","dependencies":["a","d"]},{"id":"d","dependencies":["d"]}]}"#,
    );
    assert_eq!(dependencies(&document), [vec!["b", "d"], vec!["c", "d"], vec!["d"], vec![]]);
    assert_eq!(notes.len(), 2);
}

#[test]
fn a_long_chain_needs_no_deep_stack() {
    let task = |n: usize| format!(r#"{{"id":"t{n}","dependencies":["t{}"]}}"#, (n + 1) % 100_000);
    let tasks: Vec<_> = (0..100_000).map(task).collect();
    let Found::Foreign { document, notes } =
        import(format!(r#"{{"tasks":[{}]}}"#, tasks.join(",")).as_bytes())
    else {
        panic!("not an older state file");
    };
    assert_eq!(document.tasks.iter().map(|task| task.dependencies.len()).sum::<usize>(), 99_999);
    assert_eq!(notes.len(), 1);
}

#[test]
fn what_has_tasks_of_another_shape_is_unsound() {
    for text in [r#"{"tasks":[{}]}"#, r#"{"tasks":["t"]}"#, r#"{"tasks":[{"id":7}]}"#] {
        assert!(matches!(import(text.as_bytes()), Found::Unsound { .. }), "{text}");
    }
}
