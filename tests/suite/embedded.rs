//! The board in a program of one's own, beside processes of `callboard`.

use std::fs;
use std::path::Path;
use std::process::Command;

use callboard::board::Options;
use callboard::ops::{
    AddDiscovery, ClaimTask, CreateTask, DiffPlans, ExportPlan, GetTask, ImportPlan, RegisterAgent,
    StartTask, TaskInput, add_discovery, claim_task, export_plan, get_task, import_plan,
    start_task,
};
use callboard::state::policy::Policy;
use callboard::state::task::TaskStatus;
use callboard::{Board as Embedded, Error};
use futures_util::StreamExt;
use serde_json::json;

use crate::harness::{Board, STATE_FILE, example_program};

#[expect(dead_code, reason = "its main is run as a program")]
#[path = "../../examples/embed.rs"]
mod example;

fn embedded(board: &Board) -> Embedded {
    Embedded::open(board.dir()).unwrap()
}

fn task(id: &str) -> TaskInput {
    TaskInput { id: Some(id.to_owned()), description: format!("do {id}"), ..Default::default() }
}

#[tokio::test]
async fn program_claims_and_completes_beside_a_running_process() {
    let board = Board::new();
    let mut leader = board.mcp();
    leader.ok("create_task", json!({"id": "a", "description": "d"}));
    leader.ok("create_task", json!({"id": "b", "description": "d"}));
    let program = Options::at(board.dir()).agent("embedded").open().unwrap();
    assert_eq!(example::work(&program).await.unwrap(), 2);

    for id in ["a", "b"] {
        let task = board.task(id);
        assert_eq!(
            (&task["status"], &task["claimed_by"]),
            (&json!("done"), &json!("embedded")),
            "{task}"
        );
    }
    // Each sees what the other did, and the program is present like any process.
    let agents = leader.ok("get_agents", json!({}));
    assert_eq!(agents["agents"][0]["id"], "embedded", "{agents}");
    leader.ok("create_task", json!({"id": "c", "description": "d"}));
    assert_eq!(example::work(&program).await.unwrap(), 1);
    drop(program);
    board.assert_file_is_the_replay();
}

/// It opens the board that a command would use where it is started.
#[test]
fn example_runs_as_a_program_on_the_board_of_its_environment() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "a", "description": "d"}));
    let mut command = Command::new(example_program("embed"));
    let ended =
        board.finish(command.current_dir(board.base()).env("COORDINATION_DIR", board.dir()));
    assert!(ended.status.success(), "{}", ended.stderr);
    let file = board.file(STATE_FILE);
    assert_eq!(ended.stdout, format!("a: d\n1 tasks are done; {} shows it\n", file.display()));
    assert_eq!(board.task("a")["claimed_by"], "embedded");
}

#[tokio::test]
async fn replies_and_refusals_have_types() {
    let board = Board::new();
    let owner = embedded(&board);
    let created = owner.call::<CreateTask>(task("a")).await.unwrap();
    assert_eq!(
        (created.task.id.as_str(), created.task.priority, created.warning()),
        ("a", 5, None)
    );
    assert_eq!(created.json()["task"]["id"], "a", "what clients get is there, too");

    let ada = owner.acting_as("ada").unwrap();
    let registered = ada.call::<RegisterAgent>(Default::default()).await.unwrap();
    assert_eq!((registered.agent.id.as_str(), registered.agent_id()), ("ada", Some("ada")));
    let claim = ada.call::<ClaimTask>(claim_task::Params::default()).await.unwrap();
    let claim_task::Reply::Claimed(claimed) = claim.reply else { panic!("it is ready") };
    assert_eq!((claimed.task.id.as_str(), claimed.attempt), ("a", 1));
    let again = ada.call::<ClaimTask>(claim_task::Params {
        task_id: Some("a".to_owned()),
        ..Default::default()
    });
    let again = again.await.unwrap();
    assert!(matches!(again.reply, claim_task::Reply::Claimed(ref claimed) if claimed.already));
    let found = ada
        .call::<GetTask>(get_task::Params { task_id: "a".to_owned(), attempt: None })
        .await
        .unwrap();
    assert_eq!(
        (found.task.task.status, found.task.attempts[0].agent.as_str()),
        (TaskStatus::Claimed, "ada")
    );

    let unknown = start_task::Params { task_id: "b".to_owned(), ..Default::default() };
    let error = ada.call::<StartTask>(unknown).await.err().unwrap();
    assert!(error.code() == "unknown_task" && error.to_string().contains("`b`"), "{error}");
    let empty = ada.call::<StartTask>(Default::default()).await.err().unwrap();
    assert!(
        matches!(empty, Error::Refused(_)) && empty.code() == "unknown_task",
        "{}",
        empty.code()
    );
    assert_eq!(owner.acting_as("no id").err().unwrap().code(), "bad_id");
}

#[tokio::test]
async fn plans_are_imported_exported_and_compared_by_type() {
    let board = Board::new();
    let owner = embedded(&board);
    for (text, added) in [("# T\n\n- [ ] one\n", 1), ("# T\n\n- [ ] one\n- [ ] two\n", 1)] {
        let text = text.to_owned().into();
        let plan = import_plan::Params { text, name: Some("own".to_owned()), ..Default::default() };
        let imported = owner.call::<ImportPlan>(plan).await.unwrap();
        assert_eq!((imported.plan.as_deref(), imported.added.len()), (Some("own"), added));
    }
    let format = export_plan::Format::Json;
    let exported = owner
        .call::<ExportPlan>(export_plan::Params { format, ..Default::default() })
        .await
        .unwrap();
    assert_eq!(exported.json.as_ref().map(|document| document.items.len()), Some(2));
    let compared = owner.call::<DiffPlans>(Default::default()).await.unwrap();
    assert_eq!(compared.added[0].title, "two");
}

#[tokio::test]
async fn parameters_pass_the_checks_of_every_door() {
    let board = Board::new();
    let ada = Options::at(board.dir()).agent("ada").open().unwrap();
    let token = ["ghp_", &"a1".repeat(18)].concat();
    let content = format!("the token is {token}\u{200b}");
    ada.call::<AddDiscovery>(add_discovery::Params { content, ..Default::default() })
        .await
        .unwrap();
    let kept = fs::read_to_string(board.file(STATE_FILE)).unwrap();
    assert!(!kept.contains(&token) && kept.contains("the token is "), "{kept}");
}

#[tokio::test]
async fn events_of_all_processes_come_once_and_in_order() {
    let board = Board::new();
    let program = embedded(&board);
    program.call::<CreateTask>(task("a")).await.unwrap();
    let mut events = program.subscribe(None).await.unwrap();
    let mut leader = board.mcp();
    leader.ok("create_task", json!({"id": "b", "description": "d"}));
    let heard = events.next().await.unwrap();
    assert_eq!((heard.event.kind(), heard.seq), ("tasks_created", events.seq()));
    leader.ok("create_task", json!({"id": "c", "description": "d"}));

    let all: Vec<_> =
        program.subscribe(Some(0)).await.unwrap().into_stream().take(4).collect().await;
    let seqs: Vec<_> = all.into_iter().map(|event| event.unwrap().seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
}

#[tokio::test]
async fn state_is_read_saved_and_restored() {
    let board = Board::new();
    let program = embedded(&board);
    assert_eq!(program.save_state().await.err().unwrap().code(), "no_board");
    program.call::<CreateTask>(task("a")).await.unwrap();
    let state = program.state().await.unwrap();
    assert_eq!(
        Embedded::load_state(program.state_file()).unwrap(),
        state,
        "the file shows what the board is"
    );
    let copy = board.base().join("then.json");
    program.save_state_to(&copy).await.unwrap();

    program.call::<CreateTask>(task("b")).await.unwrap();
    fs::remove_file(program.state_file()).unwrap();
    let seq = program.save_state().await.unwrap();
    let shown = Embedded::load_state(program.state_file()).unwrap();
    assert_eq!(
        (shown.board.seq, shown.tasks.len()),
        (seq, 2),
        "what somebody has deleted is there again"
    );

    let then = Embedded::load_state(&copy).unwrap();
    assert_eq!(then, state);
    let restored = program.restore(then, "before going back").await.unwrap();
    assert_eq!((restored.restored_seq, restored.before_seq), (state.board.seq, seq));
    assert_eq!(program.state().await.unwrap().tasks.len(), 1);
    program.snapshot(Some("after")).await.unwrap();
    drop(program);
    board.assert_file_is_the_replay();
}

#[tokio::test]
async fn file_that_cannot_be_written_or_is_no_state_is_named() {
    let board = Board::new();
    let program = embedded(&board);
    program.call::<CreateTask>(task("a")).await.unwrap();
    let inside = program.save_state_to(board.file("mine.json")).await.err().unwrap();
    assert!(inside.code() == "board_forbidden" && !board.file("mine.json").exists(), "{inside}");
    let nowhere = program.save_state_to(board.base().join("none/x.json")).await.err().unwrap();
    assert!(nowhere.to_string().contains("none/x.json"), "{nowhere}");

    let text = board.base().join("text");
    fs::write(&text, "no state").unwrap();
    assert_eq!(Embedded::load_state(&text).err().unwrap().code(), "state_file_unusable");
    let absent = Embedded::load_state(board.base().join("absent")).err().unwrap();
    assert!(absent.to_string().contains("absent"), "{absent}");

    // Where the next file would be written lies a directory, which nothing replaces.
    let spare = board.file(&format!(".{STATE_FILE}.spare"));
    let _ = fs::remove_file(&spare);
    fs::create_dir(board.file(&format!(".{STATE_FILE}.tmp"))).unwrap();
    fs::remove_file(board.file(STATE_FILE)).unwrap();
    let unwritten = program.save_state().await.err().unwrap();
    assert!(unwritten.to_string().contains("state file"), "{unwritten}");
}

#[tokio::test]
async fn options_are_recorded_for_every_process() {
    let board = Board::new();
    let policy = Policy { lease_minutes: 7, ..Policy::default() };
    let open = || Options::at(board.dir()).policy(policy.clone());
    assert_eq!(open().existing().open().err().unwrap().code(), "no_board");
    assert!(!board.dir().exists());
    drop(open().open().unwrap());
    let config = fs::read_to_string(board.file("config.toml")).unwrap();
    assert_eq!(config, "[policy]\nlease_minutes = 7\n");
    drop(open().open().unwrap());
    let other =
        Options::at(board.dir()).policy(Policy { lease_minutes: 8, ..Policy::default() }).open();
    let other = other.err().unwrap();
    assert!(
        other.code() == "bad_config" && other.to_string().contains("lease_minutes = 8"),
        "{other}"
    );
    let mut worker = board.mcp();
    worker.ok("create_task", json!({"id": "a", "description": "d"}));
    worker.ok("register_agent", json!({"agent_id": "ada", "role": "worker"}));
    worker.ok("claim_task", json!({"agent_id": "ada"}));
    assert_eq!(fs::read_to_string(board.file("config.toml")).unwrap(), config);
}

#[test]
fn options_that_no_process_could_read_are_not_recorded() {
    let board = Board::new();
    let policy = Policy { lease_minutes: 0, ..Policy::default() };
    let refused = Options::at(board.dir()).policy(policy).open().err().unwrap();
    assert!(
        refused.code() == "bad_config" && refused.to_string().contains("smallest value is 1"),
        "{refused}"
    );
    assert!(!board.file("config.toml").exists());
    board.cli_ok("create_task", json!({"description": "d"}));
}

#[test]
fn name_beside_the_default_policy_is_recorded_in_a_new_directory() {
    let board = Board::new();
    drop(
        Options::at(board.dir()).state_file("board.json").policy(Policy::default()).open().unwrap(),
    );
    assert_eq!(
        fs::read_to_string(board.file("config.toml")).unwrap(),
        "state_file = \"board.json\"\n"
    );
}

#[test]
fn scene_is_put_into_no_repository_of_others() {
    let board = Board::new();
    let root = board.base().join("project");
    fs::create_dir_all(&root).unwrap();
    let made = Command::new("git").current_dir(&root).args(["init", "--quiet"]).status().unwrap();
    assert!(made.success());
    let scene = |dir: &Path| Command::new(example_program("scene")).arg(dir).output().unwrap();
    let refused = scene(&root);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("is a git repository already"), "{said}");
    let left: Vec<_> = fs::read_dir(&root).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left, [".git"], "nothing was written");
    let inside = scene(&root.join("scene"));
    assert!(inside.status.success(), "{}", String::from_utf8_lossy(&inside.stderr));
    assert!(root.join("scene/.coordination/mcp-state.json").is_file());
}
