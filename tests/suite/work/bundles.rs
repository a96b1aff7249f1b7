//! The bundle that the command gets.

use std::fs;

use serde_json::{Value, json};

use super::{Worker, add};
use crate::harness::{Board, STATE_FILE};

/// A command that keeps its input, and some of its environment.
const SCRIPT: &str = r#"read -r input; printf '%s\n' "$input" > input
    echo "$CALLBOARD_STATE_SCOPE|$CALLBOARD_BUNDLE_SHA256|$CALLBOARD_MODEL_ID|$CALLBOARD_BASE_URL""#;

fn saved(board: &Board) -> Value {
    board.cli_ok("init_coordination", json!({"goal": "g"}));
    let bundle = json!({"scope": "docs", "model_id": "m-1", "base_url": "https://models", "prompts": {"system": "Be brief",
        "user": "Write"}, "settings": {"temperature": 0.2}, "context": {"style": "plain"}});
    board.cli_ok("save_bundle", bundle)
}

/// What the worker reports about the bundle, what the command got, and its environment variables.
fn worked(board: &Board, options: &[&str]) -> (Value, Value, String) {
    let number = if board.file(STATE_FILE).exists() { board.tasks().len() } else { 0 };
    let task = format!("t{number}");
    add(board, &[&task]);
    let mut worker = Worker::start(board, options, SCRIPT);
    worker.ends();
    let told =
        worker.told.iter().find(|told| told["event"] == "bundle").cloned().unwrap_or_default();
    let input: Value =
        serde_json::from_slice(&fs::read(board.base().join("input")).unwrap()).unwrap();
    (
        told,
        input["bundle"].clone(),
        board.task(&task)["result"]["output"].as_str().unwrap().to_owned(),
    )
}

fn bundle_files(board: &Board) -> Vec<String> {
    let names = fs::read_dir(board.file("bundles/docs")).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn command_gets_the_newest_bundle_of_the_scope() {
    let board = Board::new();
    let saved = saved(&board);
    let (told, bundle, variables) = worked(&board, &["--state-scope", "docs"]);
    assert_eq!((&told["restored"], &told["sha256"]), (&json!(true), &saved["sha256"]));
    let expected = json!({"scope": "docs", "restored": true, "path": saved["path"], "sha256": saved["sha256"],
        "model_id": "m-1", "base_url": "https://models", "prompts": {"system": "Be brief", "user": "Write"},
        "settings": {"temperature": 0.2}, "context": {"style": "plain"}});
    assert_eq!(bundle, expected);
    assert_eq!(variables, format!("docs|{}|m-1|https://models", saved["sha256"].as_str().unwrap()));
    // Without the option there is no bundle.
    let (told, bundle, variables) = worked(&board, &[]);
    assert_eq!((told, bundle, variables.as_str()), (Value::Null, Value::Null, "|||"));
}

#[test]
fn explicit_options_win_over_the_bundle_and_the_environment() {
    let board = Board::new();
    saved(&board);
    let options = ["--model-id", "m-2", "--prompt", "system=Be kind", "--setting", "top_p=1"];
    let options =
        [&["--state-scope", "docs"], &options[..], &["--setting", "temperature=null"]].concat();
    let (_, bundle, variables) = worked(&board, &options);
    assert_eq!(
        (&bundle["model_id"], &bundle["base_url"]),
        (&json!("m-2"), &json!("https://models"))
    );
    assert_eq!(bundle["prompts"], json!({"system": "Be kind", "user": "Write"}));
    assert_eq!(bundle["settings"], json!({"top_p": 1}));
    assert!(variables.ends_with("|m-2|https://models"), "{variables}");
    let mut command = board.command();
    add(&board, &["env"]);
    command.env("CALLBOARD_MODEL_ID", "m-3").args([
        "work",
        "--state-scope",
        "docs",
        "--",
        "sh",
        "-c",
        SCRIPT,
    ]);
    let finished = board.finish(&mut command);
    assert!(finished.status.success(), "{}", finished.stderr);
    assert!(board.task("env")["result"]["output"].as_str().unwrap().contains("|m-3|"));
    let (told, bundle, _) = worked(&board, &["--prompt", "system=alone"]);
    assert_eq!((told, bundle["prompts"].clone()), (Value::Null, json!({"system": "alone"})));
    assert_eq!(bundle["restored"], false);
}

#[test]
fn missing_or_damaged_bundle_is_told_and_the_work_goes_on() {
    let board = Board::new();
    let (told, bundle, variables) = worked(&board, &["--state-scope", "docs"]);
    assert_eq!(
        (&told["restored"], &bundle["restored"], &bundle["scope"]),
        (&json!(false), &json!(false), &json!("docs"))
    );
    assert_eq!((variables.as_str(), board.file("bundles").exists()), ("docs|||", false));
    let first = saved(&board);
    let refined =
        board.cli_ok("refine_bundle", json!({"scope": "docs", "prompts": {"system": "Be better"}}));
    let newest = board.file("bundles").join(refined["path"].as_str().unwrap());
    fs::write(&newest, "damaged").unwrap();
    // A dry run reports it, and leaves it where it is.
    let before = bundle_files(&board);
    let mut command = board.command();
    command.args(["--json", "work", "--state-scope", "docs", "--dry-run", "--", "true"]);
    let would = board.finish(&mut command).value();
    assert_eq!(
        (&would["bundle"]["restored"], &would["bundle"]["sha256"]),
        (&json!(true), &first["sha256"])
    );
    assert_eq!(would["bundle"]["damaged"].as_array().unwrap().len(), 1, "{would}");
    assert_eq!(bundle_files(&board), before);
    let (told, bundle, _) = worked(&board, &["--state-scope", "docs"]);
    assert_eq!(
        (&told["damaged"][0]["file"], &bundle["sha256"]),
        (&refined["path"], &first["sha256"])
    );
    assert!(
        !newest.exists() && bundle_files(&board).iter().any(|name| name.contains("quarantined"))
    );
}

#[test]
fn bundles_of_a_directory_of_ones_own_are_handed_over_and_what_others_could_write_is_not() {
    use std::os::unix::fs::PermissionsExt;
    let board = Board::new();
    let own = board.base().join("own");
    let mut save = board.command();
    save.arg("bundle").arg("--state-dir").arg(&own).args([
        "--state-scope",
        "s",
        "save",
        "--prompt",
        "system=x",
    ]);
    assert!(board.finish(&mut save).status.success());
    let options = ["--state-scope", "s", "--state-dir", own.to_str().unwrap()];
    let (_, bundle, _) = worked(&board, &options);
    assert_eq!(bundle["prompts"]["system"], "x");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
    add(&board, &["last"]);
    let mut command = board.command();
    let refused = board.finish(command.arg("work").args(options).args(["--", "true"]));
    assert!(
        !refused.status.success() && refused.stderr.contains("writable by everybody"),
        "{}",
        refused.stderr
    );
    assert_eq!(board.task("last")["status"], "available");
    let mut command = board.command();
    let refused = board.finish(command.args(["work", "--state-scope", " ", "--", "true"]));
    assert!(!refused.status.success() && refused.stderr.contains("scope"), "{}", refused.stderr);
}

#[test]
fn a_text_refines_the_bundle_before_the_command_gets_it() {
    let board = Board::new();
    let first = saved(&board)["sha256"].clone();
    let file = board.base().join("text");
    fs::write(&file, "and name sources").unwrap();
    let options = ["--state-scope", "docs", "--state-refine-text", "be briefer"];
    let (told, input, _) = worked(&board, &options);
    assert_eq!(input["context"]["refinements"], json!(["be briefer"]), "{told} {input}");
    assert_eq!(input["prompts"]["system"], "Be brief");
    let of_file = ["--state-scope", "docs", "--state-refine-file", file.to_str().unwrap()];
    let (_, input, _) = worked(&board, &of_file);
    assert_eq!(input["context"]["refinements"], json!(["be briefer", "and name sources"]));
    let newest = board.cli_ok("load_bundle", json!({"scope": "docs"}));
    assert_ne!(newest["bundle"]["prev_sha"], first, "the second builds on the first refinement");
    assert!(newest["bundle"]["prev_sha"].is_string(), "{newest}");
    let before = bundle_files(&board);
    let dry = ["work", "--exec", "true", "--dry-run"];
    assert!(board.finish(board.command().args(dry).args(options)).status.success());
    assert_eq!(bundle_files(&board), before, "a dry run writes nothing");
    let alone = ["work", "--exec", "true", "--state-refine-text", "x"];
    assert_eq!(board.finish(board.command().args(alone)).status.code(), Some(2));
}
