//! Context bundles: saved, refined and loaded by command and by call, and what happens when files
//! are damaged, others write at the same time, processes die, or something else is in their place.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use callboard::state::digest::sha256;
use callboard::state::limit::BUNDLE;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::access::redaction::{is_gone, positives};
use crate::harness::http::{Door, Server};
use crate::harness::{Board, Finished, available, size, until};

const REFUSED: i32 = 1;
const FAILED: i32 = 3;

impl Board {
    /// Runs `callboard bundle …` on a directory beside the board, while the board is never created.
    fn bundle(&self, arguments: &[&str]) -> Finished {
        let dir = self.bundles();
        self.finish(
            self.command()
                .args(["--json", "bundle", "--state-dir", dir.to_str().unwrap()])
                .args(arguments),
        )
    }

    #[track_caller]
    fn bundled(&self, arguments: &[&str]) -> Value {
        let finished = self.bundle(arguments);
        assert!(
            finished.status.success(),
            "{arguments:?}: {} {}",
            finished.stdout,
            finished.stderr
        );
        finished.value()
    }

    fn bundles(&self) -> PathBuf {
        self.base().join("kept")
    }

    #[track_caller]
    fn saves(&self, scope: &str, text: &str) -> Value {
        self.bundled(&["--state-scope", scope, "save", "--prompt", &format!("system={text}")])
    }

    /// The system prompt of the bundle that is loaded.
    #[track_caller]
    fn loads(&self, scope: &str) -> String {
        system(&self.bundled(&["--state-scope", scope, "load"]))
    }
}

fn system(loaded: &Value) -> String {
    loaded["bundle"]["prompts"]["system"].as_str().unwrap_or_else(|| panic!("{loaded}")).to_owned()
}

/// Mode and content of every file below `dir`.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().map(Result::unwrap) {
            let metadata = entry.metadata().unwrap();
            let content =
                if metadata.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            found.insert(entry.path(), (metadata.permissions().mode() & 0o7777, content));
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    found
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn bundle_is_saved_refined_and_loaded_by_command_without_a_board() {
    let board = Board::new();
    let missing = board.bundle(&["--state-scope", "docs", "load"]);
    assert_eq!(
        (missing.status.code(), &missing.value()["restored"]),
        (Some(REFUSED), &json!(false))
    );

    let first = board.saves("docs", "be brief");
    assert_eq!((&first["saved"], &first["prev_sha"]), (&json!(true), &Value::Null), "{first}");
    let file = board.bundles().join(first["path"].as_str().unwrap());
    assert_eq!(sha256(fs::read(&file).unwrap()), first["sha256"]);
    let refined = board.bundled(&[
        "--state-scope",
        "docs",
        "refine",
        "--state-refine-text",
        "emphasize security",
        "--setting",
        "temperature=0.2",
    ]);
    assert_eq!(refined["prev_sha"], first["sha256"]);
    let text = board.base().join("wish");
    fs::write(&text, "and cite files").unwrap();
    board.bundled(&[
        "--state-scope",
        "docs",
        "refine",
        "--state-refine-file",
        text.to_str().unwrap(),
    ]);

    let loaded = board.bundled(&["--state-scope", "docs", "load"]);
    let bundle = &loaded["bundle"];
    assert_eq!((&loaded["restored"], &bundle["version"]), (&json!(true), &json!("1")));
    assert_eq!(bundle["prompts"], json!({"system": "be brief"}));
    assert_eq!(bundle["settings"], json!({"temperature": 0.2}));
    assert_eq!(bundle["context"], json!({"refinements": ["emphasize security", "and cite files"]}));
    assert_eq!((&bundle["scope_key"], &bundle["prev_sha"]), (&json!("docs"), &refined["sha256"]));
    let latest: Value =
        serde_json::from_slice(&fs::read(board.bundles().join("docs/latest.json")).unwrap())
            .unwrap();
    let path = loaded["path"].as_str().unwrap().strip_prefix("docs/").unwrap();
    assert_eq!(latest, json!({"version": "1", "path": path, "sha256": loaded["sha256"]}));

    let listed = board.bundled(&["list"]);
    assert_eq!(listed["bundles"].as_array().unwrap().len(), 3);
    assert_eq!(listed["bundles"][0]["path"], loaded["path"]);
    let page = board.bundled(&["list", "--limit", "2"]);
    let rest = board.bundled(&["list", "--after", page["next"].as_str().unwrap()]);
    assert_eq!((&rest["bundles"][0]["path"], &rest["next"]), (&first["path"], &Value::Null));
    let report = board.bundled(&["verify"]);
    assert_eq!((&report["sound"], &report["bundles"]), (&json!(true), &json!(3)), "{report}");
    assert!(!board.dir().exists(), "no board was made");

    for (path, (mode, _)) in tree(&board.bundles()) {
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
    let told = board.finish(board.command().args([
        "bundle",
        "--state-dir",
        "kept",
        "--state-scope",
        "docs",
        "load",
    ]));
    assert!(told.stdout.contains("prompts.system: be brief\n"), "{}", told.stdout);
}

#[test]
fn what_is_told_next_is_about_the_same_bundles() {
    let board = Board::new();
    let dir = std::fs::canonicalize(board.base()).unwrap().join("kept");
    let bundle = |words: &[&str]| {
        let mut command = board.command();
        command.args(["bundle", "--state-dir", "kept", "--state-scope", "docs"]).args(words);
        board.finish(&mut command)
    };
    let next = |command: &str| {
        format!("`callboard bundle --state-dir {} --state-scope docs {command}`", dir.display())
    };
    let listed = bundle(&["list"]).stdout;
    assert!(listed.contains(&next("save")), "{listed}");
    assert!(bundle(&["save", "--prompt", "system=be brief"]).status.success());
    let refused =
        bundle(&["refine", "--prev-sha", &"0".repeat(64), "--state-refine-text", "shorter"]).stderr;
    assert!(refused.contains(&next("load")), "{refused}");
}

#[test]
fn calls_of_agents_and_of_other_machines_do_the_same() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "x"}));
    let server = Server::on(&board);
    let mut agent = board.mcp();
    agent.register("ada");
    let identity = json!({"model_id": "m", "base_url": "https://me:hunter22secret@api.example/v1", "toolset_hash": "t"});
    let with = |more: Value| {
        let mut arguments = identity.as_object().unwrap().clone();
        arguments.extend(more.as_object().unwrap().clone());
        Value::from(arguments)
    };
    let content =
        json!({"agent_id": "ada", "prompts": {"system": "be brief", "list": [1, {"a": null}]}});
    let saved = agent.ok("save_bundle", with(content.clone()));
    assert_eq!(
        (&saved["saved"], &saved["redacted"], &saved["agent_id"]),
        (&json!(true), &json!(1), &json!("ada"))
    );
    let again = agent.ok("save_bundle", with(content));
    assert_eq!(
        (&again["saved"], &again["already"], &again["sha256"]),
        (&json!(false), &json!(true), &saved["sha256"])
    );
    for door in Door::ALL {
        let loaded = door.ok(&server, "load_bundle", &with(json!({})));
        assert_eq!(system(&loaded), "be brief", "{loaded}");
        let wish =
            json!({"text": format!("through {}", door.path()), "prev_sha": loaded["sha256"]});
        let refined = door.ok(&server, "refine_bundle", &with(wish.clone()));
        assert_eq!(refined["prev_sha"], loaded["sha256"]);
        let stale = door.ask(&server, "refine_bundle", &with(wish));
        assert_eq!(stale.code(), "bundle_moved", "{}", stale.text);
        assert!(stale.text.contains(refined["sha256"].as_str().unwrap()), "{}", stale.text);
    }
    let loaded = agent.ok("load_bundle", with(json!({})));
    assert_eq!(loaded["bundle"]["context"]["refinements"], json!(["through /mcp", "through /rpc"]));
    let report = agent.ok("verify_bundles", json!({}));
    assert_eq!((&report["sound"], &report["bundles"]), (&json!(true), &json!(3)), "{report}");
    let listed = agent.ok("list_bundles", json!({}));
    assert_eq!(listed["bundles"][0]["scope"].as_str().unwrap().len(), 64, "{listed}");
    let before = tree(&board.file("bundles"));
    let dry = agent.ok(
        "save_bundle",
        with(json!({"agent_id": "ada", "prompts": {"system": "other"}, "dry_run": true})),
    );
    assert_eq!((&dry["saved"], &dry["prev_sha"]), (&json!(false), &loaded["sha256"]), "{dry}");
    assert_eq!(tree(&board.file("bundles")), before);
}

#[test]
fn what_cannot_be_kept_is_refused_with_the_way_out() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "x"}));
    let mut agent = board.mcp();
    agent.register("ada");
    let deep = (0..40).fold(json!(1), |inner, _| json!({"a": inner}));
    let token = ["gh", "p_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    for (operation, arguments, code, part) in [
        ("load_bundle", json!({}), "scope_missing", "model_id"),
        ("save_bundle", json!({"scope": " ", "prompts": {"a": "b"}}), "scope_missing", "scope"),
        ("save_bundle", json!({"scope": "s"}), "empty", "prompts"),
        (
            "save_bundle",
            json!({"scope": "x".repeat(201), "prompts": {"a": "b"}}),
            "over_limit",
            "200",
        ),
        (
            "save_bundle",
            json!({"scope": "s", "prompts": {"a": "b ".repeat(BUNDLE.max)}}),
            "over_limit",
            "262144",
        ),
        ("save_bundle", json!({"scope": "s", "settings": deep}), "over_limit", "32"),
        ("save_bundle", json!({"scope": token, "prompts": {"a": "b"}}), "secret_scope", "name"),
        ("load_bundle", json!({"scope": token}), "secret_scope", "name"),
        (
            "save_bundle",
            json!({"agent_id": "nobody", "scope": "s", "prompts": {"a": "b"}}),
            "unknown_agent",
            "nobody",
        ),
        ("refine_bundle", json!({"scope": "s", "text": "x"}), "nothing_to_refine", "bundle save"),
        ("refine_bundle", json!({"scope": "s"}), "empty", "text"),
        ("save_bundle", json!({"path": "/tmp/x"}), "bad_arguments", "scope"),
    ] {
        let reply = agent.call(operation, arguments);
        assert_eq!(reply.code(), code, "{operation}: {}", reply.text);
        assert!(reply.text.contains(part), "{operation}: {}", reply.text);
    }
    let kept = tree(&board.file("bundles"));
    assert!(
        kept.keys().all(|path| path.extension().is_none_or(|extension| extension != "json")),
        "{kept:?}"
    );
}

#[test]
fn misspelt_field_of_a_file_is_refused() {
    let board = Board::new();
    let file = board.base().join("given");
    fs::write(&file, json!({"promts": {"system": "Be brief"}}).to_string()).unwrap();
    let refused = board.bundle(&["--state-scope", "s", "save", "--file", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        refused.stderr.contains("unknown field `promts`, expected one of"),
        "{}",
        refused.stderr
    );
}

#[test]
fn dry_run_leaves_every_directory_byte_identical() {
    let board = Board::new();
    let absent =
        board.bundled(&["--state-scope", "s", "save", "--prompt", "system=x", "--dry-run"]);
    assert_eq!((&absent["saved"], &absent["dry_run"]), (&json!(false), &json!(true)));
    assert!(!board.bundles().exists());
    board.saves("s", "one");
    let damaged = board.saves("s", "two")["path"].as_str().unwrap().to_owned();
    fs::write(board.bundles().join(&damaged), "{}").unwrap();
    let before = tree(board.base());
    let save =
        board.bundled(&["--state-scope", "s", "save", "--prompt", "system=three", "--dry-run"]);
    assert_eq!(
        (&save["saved"], &save["quarantined"][0]["file"]),
        (&json!(false), &json!(damaged)),
        "{save}"
    );
    board.bundled(&["--state-scope", "s", "refine", "--state-refine-text", "x", "--dry-run"]);
    let load = board.bundled(&["--state-scope", "s", "load", "--dry-run"]);
    assert_eq!(
        (system(&load).as_str(), &load["quarantined"][0]["file"]),
        ("one", &json!(damaged)),
        "{load}"
    );
    board.bundled(&["--state-scope", "other", "save", "--prompt", "system=x", "--dry-run"]);
    board.bundled(&["list"]);
    assert_eq!(board.bundle(&["verify"]).status.code(), Some(FAILED));
    assert_eq!(tree(board.base()), before);

    board.cli_ok("create_task", json!({"description": "x"}));
    let before = tree(board.dir());
    let dry =
        ["--json", "bundle", "--state-scope", "s", "save", "--prompt", "system=x", "--dry-run"];
    assert!(board.finish(board.command().args(dry)).status.success());
    assert_eq!(tree(board.dir()), before);
}

/// The doctor's verdict on bundles, its finding, and its advice.
fn diagnosed(board: &Board) -> (String, String, String) {
    let report = board.finish(board.command().args(["--json", "doctor"])).value();
    let check = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "bundles")
        .unwrap();
    let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("found"), text("fix"))
}

#[test]
fn the_doctor_verifies_the_bundles_and_changes_nothing() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "x"}));
    assert_eq!(diagnosed(&board), ("ok".to_owned(), "none".to_owned(), String::new()));
    let mut client = board.mcp();
    client.ok("save_bundle", json!({"scope": "s", "prompts": {"system": "one"}}));
    let newest = client.ok("save_bundle", json!({"scope": "s", "prompts": {"system": "two"}}));
    client.ok("save_bundle", json!({"scope": "t", "prompts": {"system": "three"}}));
    drop(client);
    let (verdict, found, _) = diagnosed(&board);
    assert_eq!((verdict.as_str(), found.as_str()), ("ok", "3 in 2 scopes, chain verified"));
    let name = newest["path"].as_str().unwrap();
    let path = board.file("bundles").join(name);
    let mut bytes = fs::read(&path).unwrap();
    bytes[40] ^= 1;
    fs::write(&path, bytes).unwrap();
    let before = tree(&board.file("bundles"));
    let (verdict, found, fix) = diagnosed(&board);
    assert_eq!(verdict, "warn");
    assert!(found.contains(&format!("{name}: ")) && found.contains("SHA-256"), "{found}");
    assert!(fix.contains("`callboard bundle --state-scope SCOPE load`"), "{fix}");
    assert_eq!(tree(&board.file("bundles")), before);
    // Following the advice helps.
    assert!(
        board
            .finish(board.command().args(["bundle", "--state-scope", "s", "load"]))
            .status
            .success()
    );
    let (verdict, found, fix) = diagnosed(&board);
    assert_eq!(verdict, "warn");
    assert!(
        found.starts_with("2 in 2 scopes, chain verified; moved aside as damaged: s/"),
        "{found}"
    );
    assert!(fix.contains("remove them"), "{fix}");
    fs::remove_file(
        path.with_file_name(format!(
            "{}.quarantined-1",
            path.file_name().unwrap().to_str().unwrap()
        )),
    )
    .unwrap();
    assert_eq!(diagnosed(&board).0, "ok");
    fs::set_permissions(board.file("bundles"), fs::Permissions::from_mode(0o777)).unwrap();
    let (verdict, found, _) = diagnosed(&board);
    assert_eq!(verdict, "fail", "{found}");
}

#[test]
fn a_backup_says_that_bundles_are_not_in_it() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "x"}));
    let backup = |name: &str| {
        let file = board.base().join(name);
        board.finish(board.command().args(["--json", "backup", file.to_str().unwrap()])).value()
    };
    assert_eq!(backup("one")["not_in_it"], json!([]));
    board.mcp().ok("save_bundle", json!({"scope": "s", "prompts": {"system": "one"}}));
    assert_eq!(backup("two")["not_in_it"], json!([board.file("bundles")]));
    let artifact = json!({"task_id": "t", "name": "log", "text": "x"});
    board.cli_ok("attach_artifact", artifact);
    assert_eq!(
        backup("three")["not_in_it"],
        json!([board.file("artifacts"), board.file("bundles")])
    );
    let help = board.finish(board.command().args(["backup", "--help"])).stdout;
    assert!(help.contains("Not in it: bundles/"), "{help}");
}

#[test]
fn every_damaged_byte_of_the_newest_is_quarantined_and_the_one_before_loads() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "x"}));
    let mut client = board.mcp();
    client.ok("save_bundle", json!({"scope": "s", "prompts": {"system": "one"}}));
    let newest = client.ok("save_bundle", json!({"scope": "s", "prompts": {"system": "two"}}));
    let path = board.file("bundles").join(newest["path"].as_str().unwrap());
    let (bytes, latest) = (fs::read(&path).unwrap(), board.file("bundles/s/latest.json"));
    let pointer = fs::read(&latest).unwrap();
    let aside = path
        .with_file_name(format!("{}.quarantined-1", path.file_name().unwrap().to_str().unwrap()));
    for index in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[index] ^= 1 << (index % 8);
        fs::write(&path, &damaged).unwrap();
        let loaded = client.ok("load_bundle", json!({"scope": "s"}));
        assert_eq!(system(&loaded), "one", "byte {index}: {loaded}");
        assert_eq!(loaded["quarantined"][0]["file"], newest["path"], "byte {index}");
        assert_eq!(fs::read(&aside).unwrap(), damaged, "byte {index}: it is kept");
        assert!(!path.exists());
        let report = client.ok("verify_bundles", json!({}));
        assert_eq!(
            (&report["sound"], &report["bundles"]),
            (&json!(true), &json!(1)),
            "byte {index}: {report}"
        );
        fs::remove_file(&aside).unwrap();
        fs::write(&latest, &pointer).unwrap();
    }
    for length in (0..bytes.len()).step_by(7) {
        fs::write(&path, &bytes[..length]).unwrap();
        assert_eq!(
            system(&client.ok("load_bundle", json!({"scope": "s"}))),
            "one",
            "{length} bytes"
        );
        fs::remove_file(&aside).unwrap();
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(
        system(&client.ok("load_bundle", json!({"scope": "s"}))),
        "two",
        "it was sound all the time"
    );
    println!("{} bytes of a bundle damaged, each found", bytes.len());
}

#[test]
fn every_damaged_byte_of_the_pointer_is_mended() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "x"}));
    let mut client = board.mcp();
    client.ok("save_bundle", json!({"scope": "s", "prompts": {"system": "one"}}));
    client.ok("save_bundle", json!({"scope": "s", "prompts": {"system": "two"}}));
    let latest = board.file("bundles/s/latest.json");
    let bytes = fs::read(&latest).unwrap();
    for index in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[index] ^= 1 << (index % 8);
        fs::write(&latest, damaged).unwrap();
        let loaded = client.ok("load_bundle", json!({"scope": "s"}));
        assert_eq!(
            (system(&loaded).as_str(), &loaded["quarantined"]),
            ("two", &Value::Null),
            "byte {index}"
        );
        assert_eq!(fs::read(&latest).unwrap(), bytes, "byte {index}");
    }
    fs::remove_file(&latest).unwrap();
    let report = client.ok("verify_bundles", json!({}));
    assert_eq!(report["problems"][0]["file"], "s/latest.json", "{report}");
    assert_eq!(system(&client.ok("load_bundle", json!({"scope": "s"}))), "two");
    assert_eq!(fs::read(&latest).unwrap(), bytes);
}

#[test]
fn loading_leaves_what_other_programs_keep_in_the_directory() {
    let board = Board::new();
    let dir = board.bundles().join("vendor");
    fs::create_dir_all(&dir).unwrap();
    for dir in [&board.bundles(), &dir] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let theirs =
        json!({"version": "1", "path": "run-17.ckpt", "sha256": "0".repeat(64)}).to_string();
    for (name, text) in
        [("latest.json", theirs.as_str()), (".draft.tmp", "x"), ("run-17.ckpt", "y")]
    {
        fs::write(dir.join(name), text).unwrap();
    }
    let before = tree(&dir);
    let load = || board.bundle(&["--state-scope", "vendor", "load"]);
    let loaded = load();
    assert_eq!(
        (loaded.status.code(), &loaded.value()["warning"]),
        (Some(REFUSED), &Value::Null),
        "none is kept there"
    );
    assert_eq!(tree(&dir), before);
    // Among our own bundles, too, leftovers of a crash are removed when the next one is saved.
    let first = board.saves("vendor", "one");
    let file = first["path"].as_str().unwrap().replace("vendor/", "");
    let unfinished = dir.join(format!(".{file}.tmp"));
    fs::write(&unfinished, "half").unwrap();
    fs::write(dir.join("latest.json"), &theirs).unwrap();
    let before = tree(&dir);
    assert_eq!(board.loads("vendor"), "one");
    assert_eq!(tree(&dir), before);
    board.saves("vendor", "two");
    assert!(!unfinished.exists() && dir.join(".draft.tmp").exists());
}

#[test]
fn a_sound_bundle_is_loaded_where_nothing_can_be_mended() {
    let board = Board::new();
    let first = board.saves("s", "one");
    let newest = board.bundles().join(board.saves("s", "two")["path"].as_str().unwrap());
    let (lock, latest) = (board.bundles().join("s/lock"), board.bundles().join("s/latest.json"));
    let load = |failpoint: &str| {
        let mut command = board.command();
        command
            .args(["--json", "bundle", "--state-scope", "s", "--state-dir"])
            .arg(board.bundles())
            .arg("load");
        board.finish(command.env("CALLBOARD_FAILPOINT", failpoint)).value()
    };
    let warns = |loaded: &Value, text: &str, place: &str| {
        assert_eq!(system(loaded), text, "{loaded}");
        let warning = loaded["warning"].as_str().unwrap_or_else(|| panic!("{loaded}"));
        assert!(warning.contains("stays as it is") && warning.contains(place), "{warning}");
    };
    let pointer = fs::read(&latest).unwrap();
    fs::remove_file(&latest).unwrap();
    warns(&load("before-rename:1:error"), "two", "kept/s");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    warns(&load(""), "two", "kept/s/lock");
    fs::write(&latest, pointer).unwrap();
    assert_eq!(load("")["warning"], Value::Null, "nothing has to be written");
    fs::write(&newest, "damaged").unwrap();
    let loaded = load("");
    warns(&loaded, "one", "kept/s/lock");
    assert_eq!(
        (&loaded["sha256"], loaded["quarantined"].as_array().unwrap().len()),
        (&first["sha256"], 1)
    );
    assert!(newest.exists());
    fs::remove_dir(&lock).unwrap();
    assert_eq!(load("")["warning"], Value::Null);
    assert!(!newest.exists());
}

#[test]
fn chain_is_checked_and_its_end_may_be_pruned() {
    let board = Board::new();
    let paths: Vec<_> = ["one", "two", "three", "four"]
        .map(|text| board.saves("s", text)["path"].as_str().unwrap().to_owned())
        .into();
    let file = |index: usize| board.bundles().join(&paths[index]);
    let aside = |index: usize| board.bundles().join(format!("{}.quarantined-1", paths[index]));
    fs::remove_file(file(0)).unwrap();
    assert_eq!(board.bundled(&["verify"])["sound"], true, "the oldest was pruned");
    // A damaged bundle still counts as one that existed.
    fs::write(file(2), "{}").unwrap();
    assert_eq!(board.loads("s"), "four");
    let report = board.bundle(&["verify"]).value();
    assert_eq!(
        (&report["problems"].as_array().unwrap().len(), &report["problems"][0]["file"]),
        (&1, &json!(paths[2]))
    );
    fs::remove_file(file(2)).unwrap();
    let report = board.bundle(&["verify"]).value();
    assert_eq!(report["problems"][0]["file"], paths[3], "{report}");
    let loaded = board.bundled(&["--state-scope", "s", "load"]);
    assert_eq!(
        (system(&loaded).as_str(), &loaded["quarantined"][0]["file"]),
        ("two", &json!(paths[3])),
        "{loaded}"
    );
    assert!(
        loaded["quarantined"][0]["problem"].as_str().unwrap().contains("is missing"),
        "{loaded}"
    );
    assert!(aside(3).exists());
    let next = board.saves("s", "five");
    assert_eq!(next["prev_sha"], loaded["sha256"]);
    assert_eq!(board.bundled(&["verify"])["sound"], true);
    // Only the newest is left.
    for path in [file(1), aside(3)] {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(board.loads("s"), "five");
}

#[test]
fn bundle_of_a_newer_callboard_is_left_alone_and_not_passed_over() {
    let board = Board::new();
    let path = board.bundles().join(board.saves("s", "one")["path"].as_str().unwrap());
    let newer =
        fs::read_to_string(&path).unwrap().replace("\"version\": \"1\"", "\"version\": \"2\"");
    let name = format!("state-29990101T000000.000Z-{}.json", &sha256(newer.as_bytes())[..8]);
    fs::write(path.with_file_name(&name), newer).unwrap();
    let before = tree(&board.bundles());
    for command in [
        &["load"][..],
        &["save", "--prompt", "system=two"],
        &["refine", "--state-refine-text", "x"],
    ] {
        let refused = board.bundle(&[&["--state-scope", "s"], command].concat());
        assert_eq!(refused.code(), "bundles_failed", "{command:?}");
        assert!(
            refused.stderr.contains("newer callboard") && refused.stderr.contains(&name),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(tree(&board.bundles()), before);
}

#[test]
fn scopes_do_not_see_each_other_and_none_is_a_path() {
    let board = Board::new();
    board.make_dir();
    fs::write(board.base().join("bystander"), "untouched").unwrap();
    let odd = [
        "a",
        "A",
        "../a",
        "..",
        ".",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "~",
        "-",
        "latest.json",
        "a\u{202e}b",
        "lock",
        "日本",
    ];
    for scope in odd {
        board.saves(scope, &format!("of {scope}"));
    }
    for scope in odd {
        assert_eq!(board.loads(scope), format!("of {scope}").replace('\u{202e}', "\u{fffd}"));
        let listed = board.bundled(&["--state-scope", scope, "list"]);
        assert_eq!(listed["bundles"].as_array().unwrap().len(), 1, "{scope}");
    }
    assert_eq!(names(&board.bundles()).len(), odd.len());
    assert_eq!(names(board.base()), ["board", "bystander", "kept"]);
    let report = board.bundled(&["verify"]);
    assert_eq!(
        (&report["sound"], &report["scopes"]),
        (&json!(true), &json!(odd.len())),
        "{report}"
    );

    let foreign = board.bundles().join(board.saves("other", "not for a")["path"].as_str().unwrap());
    fs::copy(&foreign, board.bundles().join("a").join(foreign.file_name().unwrap())).unwrap();
    let loaded = board.bundled(&["--state-scope", "a", "load"]);
    assert_eq!(system(&loaded), "of a");
    assert!(
        loaded["quarantined"][0]["problem"].as_str().unwrap().contains("another scope"),
        "{loaded}"
    );
    assert_eq!(board.loads("other"), "not for a");
}

#[test]
fn secrets_are_not_on_the_disk() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "x"}));
    // Every secret and place, though not each in each.
    let positives: Vec<_> = positives().into_iter().step_by(11).filter(is_gone).collect();
    assert!(positives.len() >= 200, "{}", positives.len());
    let mut client = board.mcp();
    for (index, some) in positives.chunks(50).enumerate() {
        let texts: Vec<_> = some.iter().map(|one| one.text.clone()).collect();
        let scope = format!("s{index}");
        let saved = client.ok(
            "save_bundle",
            json!({"scope": scope, "prompts": {"all": texts}, "context": {"x": texts}}),
        );
        assert!(saved["redacted"].as_u64().unwrap() >= 2 * some.len() as u64, "{saved}");
        client.ok(
            "refine_bundle",
            json!({"scope": scope, "text": texts.join("\n"), "settings": {"api_key": "abc-very-secret"}}),
        );
        let file = board.base().join("given");
        fs::write(&file, json!({"prompts": {"all": texts}}).to_string()).unwrap();
        board.bundled(&["--state-scope", &scope, "save", "--file", file.to_str().unwrap()]);
        board.bundled(&[
            "--state-scope",
            &scope,
            "refine",
            "--state-refine-text",
            &texts.join("\n"),
        ]);
        fs::remove_file(file).unwrap();
    }
    for (path, (_, content)) in tree(board.base()) {
        let content = String::from_utf8_lossy(&content);
        assert!(!content.contains("abc-very-secret"), "{}", path.display());
        for one in &positives {
            assert!(!content.contains(one.telling()), "{} in {}", one.text, path.display());
        }
    }
    println!("{} secrets, none on the disk", positives.len());
}

/// Name of an impostor in the refusal, and how to put it in the place of a directory.
type Impostor = (&'static str, fn(&Path));

fn impostors() -> Vec<Impostor> {
    let mut all: Vec<Impostor> = vec![
        ("not a directory", |path| symlink(path.with_extension("target"), path).unwrap()),
        ("not a directory", |path| {
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap()
        }),
        ("not a directory", |path| fs::write(path, "").unwrap()),
        ("writable by everybody", |path| {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }),
    ];
    let is_root = rustix::process::geteuid().is_root();
    if available("root", (!is_root).then_some("only root makes directories of others")) {
        all.push(("owned by another user", |path| {
            fs::create_dir(path).unwrap();
            chown(path, Some(4_242), None).unwrap();
        }));
    }
    all
}

#[test]
fn directory_that_is_not_ours_alone_is_refused_with_place_and_remedy() {
    for (what, put) in impostors() {
        for inner in ["", "s"] {
            let board = Board::new();
            let place = board.bundles().join(inner);
            fs::create_dir(board.base().join("kept.target")).unwrap();
            if !inner.is_empty() {
                fs::create_dir(board.bundles()).unwrap();
                fs::create_dir(board.bundles().join("s.target")).unwrap();
            }
            put(&board.base().join("kept").join(inner).components().collect::<PathBuf>());
            let before = tree(board.base());
            for command in [
                &["save", "--prompt", "system=x"][..],
                &["save", "--prompt", "a=b", "--dry-run"],
                &["load"],
            ] {
                let arguments = [&["--state-scope", "s"], command].concat();
                let mut process = board.command();
                process.args(["--json", "bundle", "--state-dir", "kept/"]).args(arguments);
                let mut process =
                    process.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
                until(Duration::from_secs(20), "it does not wait for a pipe", || {
                    process.try_wait().unwrap()
                });
                let error = String::from_utf8(process.wait_with_output().unwrap().stderr).unwrap();
                let place = place.file_name().unwrap().to_str().unwrap();
                for part in ["bundles_failed", what, place, "move it away"] {
                    assert!(
                        error.contains(part),
                        "{what} at {inner:?}, {command:?}: no {part}: {error}"
                    );
                }
            }
            assert_eq!(tree(board.base()), before, "{what} at {inner:?}");
        }
    }
}

#[test]
fn what_is_no_file_is_neither_followed_nor_waited_for() {
    let board = Board::new();
    board.saves("s", "one");
    let path = board.bundles().join(board.saves("s", "two")["path"].as_str().unwrap());
    let elsewhere = board.base().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(board.loads("s"), "one");
    let latest = board.bundles().join("s/latest.json");
    for put in [
        (|path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap())
            as fn(&Path),
        |path| symlink("/etc/passwd", path).unwrap(),
    ] {
        fs::remove_file(&latest).unwrap();
        put(&latest);
        assert_eq!(board.loads("s"), "one");
        assert!(fs::symlink_metadata(&latest).unwrap().is_file());
    }
    let lock = board.bundles().join("s/lock");
    fs::remove_file(&lock).unwrap();
    symlink(&elsewhere, &lock).unwrap();
    let refused = board.bundle(&["--state-scope", "s", "save", "--prompt", "system=three"]);
    assert_eq!(refused.code(), "bundles_failed");
    assert!(refused.stderr.contains("s/lock is a symbolic link"), "{}", refused.stderr);
    assert_eq!(board.loads("s"), "one", "to read, no lock is needed");
}

#[test]
fn permissions_that_others_have_are_taken_from_a_scope() {
    let board = Board::new();
    board.saves("s", "one");
    let dir = board.bundles().join("s");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o775)).unwrap();
    board.saves("s", "two");
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
}

/// `CALLBOARD_BUNDLES` is the number of bundles that each process saves.
#[test]
fn processes_that_save_at_once_lose_nothing_and_the_chain_stays_whole() {
    const PROCESSES: usize = 4;
    let each = size("CALLBOARD_BUNDLES", 6);
    let board = Board::new();
    thread::scope(|scope| {
        for process in 0..PROCESSES {
            let board = &board;
            scope.spawn(move || {
                for number in 0..each {
                    let saved = board.saves("s", &format!("{process}-{number}"));
                    assert_eq!(saved["saved"], true, "{saved}");
                }
            });
        }
    });
    let listed = board.bundled(&["list", "--limit", "1000"]);
    let bundles = listed["bundles"].as_array().unwrap();
    assert_eq!(bundles.len(), PROCESSES * each);
    for pair in bundles.windows(2) {
        assert_eq!(pair[0]["prev_sha"], pair[1]["sha256"]);
    }
    assert_eq!(bundles.last().unwrap()["prev_sha"], Value::Null);
    assert_eq!(board.bundled(&["verify"])["sound"], true);
    println!("{} bundles by {PROCESSES} processes at once, one chain", bundles.len());
}

#[test]
fn process_killed_while_it_saves_leaves_the_old_one_or_the_new() {
    let board = Board::new();
    board.saves("s", "0");
    let mut loaded = Vec::new();
    for (round, failpoint) in
        ["before-rename:1", "bundle:1", "before-rename:2"].into_iter().cycle().take(9).enumerate()
    {
        let (old, new) = (board.loads("s"), format!("{}", round + 1));
        let dir = board.bundles();
        let mut command = board.command();
        command.args(["bundle", "--state-scope", "s", "--state-dir"]).arg(&dir);
        command
            .args(["save", "--prompt", &format!("system={new}")])
            .env("CALLBOARD_FAILPOINT", failpoint);
        let killed = board.finish(&mut command);
        assert_eq!(killed.status.code(), None, "{failpoint}: {}", killed.stderr);
        let found = board.bundled(&["--state-scope", "s", "load"]);
        assert_eq!(found["quarantined"], Value::Null, "{failpoint}");
        let expected = if failpoint == "before-rename:1" { &old } else { &new };
        assert_eq!(system(&found), *expected, "{failpoint}");
        let report = board.bundled(&["verify"]);
        assert_eq!(report["sound"], true, "{failpoint}: {report}");
        loaded.push(system(&found));
    }
    board.saves("s", "the end");
    assert_eq!(board.loads("s"), "the end");
    let unfinished: Vec<_> = names(&board.bundles().join("s"))
        .into_iter()
        .filter(|name| name.ends_with(".tmp"))
        .collect();
    assert_eq!(unfinished, Vec::<String>::new());
    assert_eq!(loaded, ["0", "2", "3", "3", "5", "6", "6", "8", "9"]);
}

#[test]
fn disk_that_fails_leaves_the_old_bundle_and_names_the_place() {
    let board = Board::new();
    board.saves("s", "old");
    let mut command = board.command();
    command.args(["--json", "bundle", "--state-scope", "s", "--state-dir"]).arg(board.bundles());
    command
        .args(["save", "--prompt", "system=new"])
        .env("CALLBOARD_FAILPOINT", "before-rename:1:error");
    let failed = board.finish(&mut command);
    assert_eq!(failed.code(), "bundles_failed");
    assert!(failed.stderr.contains("kept/s"), "{}", failed.stderr);
    assert_eq!(board.loads("s"), "old");
    assert_eq!(names(&board.bundles().join("s")).len(), 3, "the bundle, the pointer and the lock");
}
