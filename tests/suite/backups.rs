//! Which backups can be restored, and the temporary files of backups and restores: private, and
//! removed after a kill.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use callboard::state::digest::sha256;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::harness::{Board, Finished, STATE_FILE, available};

fn with_task() -> Board {
    let board = Board::new();
    board.cli_ok("create_task", json!({"id": "t", "description": "d"}));
    board
}

/// Runs a command with a umask of 0 and kills it at a failpoint.
fn kill_at(board: &Board, failpoint: &str, arguments: &[&Path]) {
    let mut shell = Command::new("sh");
    let line = format!("umask 0; exec {} \"$@\"", env!("CARGO_BIN_EXE_callboard"));
    shell.args(["-c", &line, "sh"]).args(arguments).current_dir(board.base());
    shell
        .env("COORDINATION_DIR", board.dir())
        .env("HOME", board.base())
        .env("CALLBOARD_FAILPOINT", failpoint);
    assert_eq!(shell.output().unwrap().status.code(), None, "it was killed");
}

/// The temporary directories in `dir`.
fn left_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let own =
        entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(".callboard-"));
    own.map(|entry| entry.path()).collect()
}

#[track_caller]
fn is_private(dir: &Path) {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(dir), 0o700);
    assert_eq!(mode(&dir.join("journal.db")), 0o600);
}

fn done(board: &Board, arguments: &[&Path]) -> Value {
    let finished = board.finish(board.command().arg("--json").args(arguments));
    assert!(finished.status.success(), "{}", finished.stderr);
    finished.value()
}

fn leftovers(board: &Board) -> String {
    let report = done(board, &["doctor".as_ref()]);
    let check =
        report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "leftovers");
    check.unwrap()["found"].as_str().unwrap().to_owned()
}

#[test]
fn killed_backup_leaves_what_others_cannot_read_and_the_next_one_removes() {
    let board = with_task();
    let arguments: [&Path; 2] = ["backup".as_ref(), &board.base().join("b.backup")];
    kill_at(&board, "backup-copied", &arguments);
    let left = left_in(board.base());
    assert_eq!(left.len(), 1);
    is_private(&left[0]);
    done(&board, &arguments);
    assert_eq!(left_in(board.base()), Vec::<PathBuf>::new());
    assert_eq!(fs::metadata(arguments[1]).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn killed_restore_leaves_what_others_cannot_read_where_the_board_is_to_be() {
    let board = with_task();
    let backup = board.base().join("b.backup");
    done(&board, &["backup".as_ref(), &backup]);
    let arguments: [&Path; 3] = ["restore".as_ref(), &backup, "--force".as_ref()];
    kill_at(&board, "restore-copied", &arguments);
    let left = left_in(board.dir());
    assert_eq!(left.len(), 1);
    is_private(&left[0]);
    done(&board, &arguments);
    assert_eq!(left_in(board.dir()), Vec::<PathBuf>::new());
    // A restore into a directory without a board leaves no board there, and nothing that git sees.
    let empty = Board::new();
    kill_at(&empty, "restore-copied", &["restore".as_ref(), &backup]);
    assert_eq!(left_in(empty.base()), Vec::<PathBuf>::new());
    is_private(&left_in(empty.dir())[0]);
    assert_eq!(fs::read_to_string(empty.file(".gitignore")).unwrap(), "*\n");
    assert!(!empty.file("journal.db").exists() && !empty.file(STATE_FILE).exists());
    done(&empty, &["restore".as_ref(), &backup]);
    assert_eq!(left_in(empty.dir()), Vec::<PathBuf>::new());
}

/// A board whose journal is damaged, and a backup from before the damage.
fn damaged() -> (Board, PathBuf) {
    let board = with_task();
    let backup = board.base().join("b.backup");
    done(&board, &["backup".as_ref(), &backup]);
    done(&board, &["snapshot".as_ref(), "create".as_ref()]);
    fs::write(board.file("journal.db"), "damaged").unwrap();
    (board, backup)
}

fn named(board: &Board, start: &str) -> Vec<String> {
    let names = fs::read_dir(board.dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(start)).collect()
}

#[test]
fn forced_restore_moves_no_board_aside_that_can_be_opened_another_time() {
    let board = with_task();
    let backup = board.base().join("b.backup");
    done(&board, &["backup".as_ref(), &backup]);
    let (log, elsewhere) = (board.file("journal.db-wal"), board.base().join("log"));
    fs::rename(&log, &elsewhere).unwrap();
    fs::create_dir(&log).unwrap();
    let refused = board.finish(board.command().arg("restore").arg(&backup).arg("--force"));
    assert!(!refused.status.success() && refused.stderr.contains("journal"), "{}", refused.stderr);
    assert_eq!(named(&board, "replaced-"), Vec::<String>::new());
    fs::remove_dir(&log).unwrap();
    fs::rename(&elsewhere, &log).unwrap();
    done(&board, &["restore".as_ref(), &backup, "--force".as_ref()]);
    assert_eq!(named(&board, "replaced-"), Vec::<String>::new());
}

#[test]
fn forced_restore_that_fails_puts_back_what_it_has_moved() {
    let (board, backup) = damaged();
    let state = fs::read(board.file(STATE_FILE)).unwrap();
    let mut failing = board.command();
    failing
        .arg("restore")
        .arg(&backup)
        .arg("--force")
        .env("CALLBOARD_FAILPOINT", "restore-aside:1:error");
    let failed = board.finish(&mut failing);
    assert_eq!(failed.status.code(), Some(3), "{}", failed.stderr);
    assert!(failed.stderr.contains("is as it was"), "{}", failed.stderr);
    assert_eq!(fs::read_to_string(board.file("journal.db")).unwrap(), "damaged");
    assert_eq!(fs::read(board.file(STATE_FILE)).unwrap(), state);
    assert!(board.file("snapshots").exists());
    let left: Vec<_> = ["replaced-", ".journal", ".config"]
        .iter()
        .flat_map(|start| named(&board, start))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn nothing_begins_in_the_place_of_a_board_that_a_killed_restore_has_moved_aside() {
    let (board, backup) = damaged();
    kill_at(&board, "restore-aside", &["restore".as_ref(), &backup, "--force".as_ref()]);
    let aside = named(&board, "replaced-").remove(0);
    let refused = board.cli("create_task", json!({"description": "d"}));
    assert_eq!(refused.code(), "state_file_unusable");
    assert!(refused.stderr.contains(&aside), "{}", refused.stderr);
    done(&board, &["restore".as_ref(), &backup]);
    assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["t"]);
    board.assert_file_is_the_replay();
    // The same without the backup.
    let (board, backup) = damaged();
    kill_at(&board, "restore-aside", &["restore".as_ref(), &backup, "--force".as_ref()]);
    kill_at(&board, "restore-copied", &["restore".as_ref(), &backup]);
    let would = board.finish(board.command().args(["doctor", "--repair", "--dry-run"]));
    assert!(
        would.stdout.contains("would: put back what is in")
            && would.stdout.contains(&named(&board, "replaced-")[0])
    );
    done(&board, &["doctor".as_ref(), "--repair".as_ref()]);
    assert_eq!(left_in(board.dir()), Vec::<PathBuf>::new());
    assert_eq!(named(&board, "replaced-"), Vec::<String>::new());
    assert_eq!(fs::read_to_string(board.file("journal.db.quarantined-1")).unwrap(), "damaged");
    assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["t"]);
    assert!(board.file("snapshots").exists());
    board.cli_ok("create_task", json!({"id": "new", "description": "d"}));
}

#[test]
fn what_a_restore_has_replaced_is_not_put_back() {
    let (board, backup) = damaged();
    done(&board, &["restore".as_ref(), &backup, "--force".as_ref()]);
    ["journal.db", "journal.db-wal", STATE_FILE]
        .iter()
        .for_each(|name| drop(fs::remove_file(board.file(name))));
    let would = board.finish(board.command().args(["doctor", "--repair", "--dry-run"]));
    assert!(!would.stdout.contains("put back"), "{}", would.stdout);
    assert!(!board.file("journal.db").exists());
}

#[test]
fn restore_takes_no_log_that_was_left_for_that_of_its_journal() {
    let (board, backup) = damaged();
    [STATE_FILE, "journal.db"].iter().for_each(|name| fs::remove_file(board.file(name)).unwrap());
    fs::write(board.file("journal.db-wal"), "another's").unwrap();
    let refused = board.finish(board.command().arg("restore").arg(&backup));
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    let reply = done(&board, &["restore".as_ref(), &backup, "--force".as_ref()]);
    assert!(Path::new(reply["aside"].as_str().unwrap()).join("journal.db-wal").exists());
    board.assert_file_is_the_replay();
}

/// Runs the command so that these system calls fail. None, with the reason printed, if that is not
/// possible here.
fn without(board: &Board, calls: &[&str], arguments: &[&Path]) -> Option<Finished> {
    let runs = Command::new("strace")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !available("strace", (!runs).then_some("strace cannot be run")) {
        return None;
    }
    let callboard = board.command();
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(calls.iter().map(|call| format!("--inject={call}")));
    callboard.get_envs().filter_map(|(name, value)| Some((name, value?))).for_each(
        |(name, value)| {
            strace.env(name, value);
        },
    );
    Some(
        board.finish(strace.arg(callboard.get_program()).args(arguments).current_dir(board.base())),
    )
}

#[test]
fn restore_needs_neither_links_nor_renames_that_replace_nothing() {
    let calls = ["linkat:error=EPERM", "renameat2:error=EINVAL"];
    let (board, backup) = damaged();
    let Some(restored) =
        without(&board, &calls, &["restore".as_ref(), &backup, "--force".as_ref()])
    else {
        return;
    };
    assert!(restored.status.success(), "{}", restored.stderr);
    let empty = Board::new();
    let restored = without(&empty, &calls, &["restore".as_ref(), &backup]).unwrap();
    assert!(restored.status.success(), "{}", restored.stderr);
    for board in [&board, &empty] {
        assert_eq!(board.tasks().keys().collect::<Vec<_>>(), ["t"]);
        board.assert_file_is_the_replay();
    }
}

#[test]
fn backup_needs_no_locks_where_it_is_written() {
    let board = with_task();
    let backup = board.base().join("b.backup");
    let Some(written) = without(&board, &["flock:error=EOPNOTSUPP"], &["backup".as_ref(), &backup])
    else {
        return;
    };
    assert!(written.status.success(), "{}", written.stderr);
    assert_eq!(left_in(board.base()), Vec::<PathBuf>::new());
    done(&Board::new(), &["restore".as_ref(), &backup]);
}

#[test]
fn backup_takes_the_place_of_none_of_the_boards_files() {
    let board = with_task();
    board.cli_ok("create_snapshot", json!({}));
    let snapshot = fs::read_dir(board.file("snapshots")).unwrap().next().unwrap().unwrap().path();
    let own =
        ["journal.db", "journal.db-wal", STATE_FILE, "lock", "config.toml", "run/../journal.db"];
    for path in own.map(|name| board.file(name)).into_iter().chain([snapshot]) {
        let before = fs::read(&path).ok();
        let refused = board.finish(board.command().arg("backup").arg(&path).arg("--force"));
        assert_eq!(refused.status.code(), Some(1), "{}: {}", path.display(), refused.stderr);
        assert!(refused.stderr.contains(".backup; let its name end so"), "{}", refused.stderr);
        assert_eq!(fs::read(&path).ok(), before, "{}", path.display());
    }
    let bare = board
        .finish(board.command().args(["backup", "journal.db", "--force"]).current_dir(board.dir()));
    assert_eq!(bare.status.code(), Some(1), "{}", bare.stderr);
    let within = board.file("b.backup");
    (0..2).for_each(|_| drop(done(&board, &["backup".as_ref(), &within, "--force".as_ref()])));
    board.assert_file_is_the_replay();
}

#[test]
fn restore_declines_what_it_may_not_do_and_waits_for_no_pipe() {
    let board = with_task();
    let backup = board.base().join("b.backup");
    done(&board, &["backup".as_ref(), &backup]);
    let restore = |file: &Path| board.finish(board.command().arg("restore").arg(file));
    let declined = restore(&backup);
    assert_eq!(declined.status.code(), Some(1), "{}", declined.stderr);
    assert!(declined.stderr.contains("--force"), "{}", declined.stderr);
    let pipe = board.base().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let refused = restore(&pipe);
    assert!(refused.stderr.contains("not a regular file"), "{}", refused.stderr);
}

#[test]
fn doctor_names_and_removes_what_ended_processes_have_left() {
    let board = with_task();
    kill_at(&board, "backup-copied", &["backup".as_ref(), &board.file("b.backup")]);
    let killed = left_in(board.dir())[0].clone();
    let living = board.file(".callboard-backup-Living");
    fs::create_dir(&living).unwrap();
    let lock = fs::File::create(living.join(".callboard-scratch")).unwrap();
    lock.lock().unwrap();
    // Files of others, which must stay.
    let theirs = [".tmpl", ".notes.tmp", ".callboard-backup-Others/notes", ".callboard-mine/lock"]
        .map(|name| board.file(name));
    for path in &theirs {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "theirs").unwrap();
    }
    let files =
        [".journal.db.restore.tmp", ".tmpAbCdEf", ".tokens-AbCdEf"].map(|name| board.file(name));
    files.iter().for_each(|file| fs::write(file, "half").unwrap());
    let gone: Vec<_> = files.iter().chain([&killed]).collect();
    let found = leftovers(&board);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(gone.iter().all(|path| found.contains(&name(path))), "{found}");
    assert!(!found.contains("living"), "{found}");
    // Living processes need not end for that.
    let mut process = board.mcp();
    process.ok("get_status", json!({}));
    let would = done(&board, &["doctor".as_ref(), "--repair".as_ref(), "--dry-run".as_ref()]);
    assert_eq!(would["steps"].as_array().unwrap().len(), gone.len(), "{would}");
    assert!(gone.iter().all(|path| path.exists()));
    assert_eq!(done(&board, &["doctor".as_ref(), "--repair".as_ref()])["repaired"], true);
    assert!(gone.iter().all(|path| !path.exists()));
    assert!(living.exists() && theirs.iter().all(|path| path.exists()));
    assert_eq!(leftovers(&board), "none");
    assert_eq!(done(&board, &["doctor".as_ref(), "--repair".as_ref()])["repaired"], false);
    process.ok("create_task", json!({"id": "after", "description": "d"}));
}

#[test]
fn a_backup_removes_nothing_that_others_have_put_beside_it() {
    let board = with_task();
    let other = board.base().join(".callboard-backup-Others");
    board.finish(
        board
            .command()
            .args(["--dir".as_ref(), other.as_os_str()])
            .args(["add", "of another board"]),
    );
    let notes = board.base().join(".callboard-notes");
    fs::create_dir(&notes).unwrap();
    done(&board, &["backup".as_ref(), &board.base().join("b.backup")]);
    assert!(notes.exists() && other.join("journal.db").exists());
}

#[test]
fn restore_that_fails_names_the_backup_from_before_only_if_there_is_one() {
    let board = with_task();
    let backup = board.base().join("b.backup");
    done(&board, &["backup".as_ref(), &backup]);
    let failing = |failpoint: &str| {
        let mut restore = board.command();
        restore.arg("restore").arg(&backup).arg("--force").env("CALLBOARD_FAILPOINT", failpoint);
        let failed = board.finish(&mut restore);
        assert_eq!(failed.status.code(), Some(3), "{}", failed.stderr);
        failed.stderr
    };
    let told = failing("snapshot:1:error");
    assert_eq!(
        (named(&board, "before-restore-"), told.contains("before-restore-")),
        (Vec::new(), false),
        "{told}"
    );
    let told = failing("before-commit:1:error");
    let kept = named(&board, "before-restore-").remove(0);
    assert!(told.contains(&kept), "{told}");
}

/// A copy of the backup with its state changed; the state comes before the journal.
fn with_state(backup: &Path, change: impl Fn(&[u8]) -> Vec<u8>) -> PathBuf {
    let bytes = fs::read(backup).unwrap();
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
    let (first, header, rest) =
        (lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap());
    let mut header: Value = serde_json::from_slice(header).unwrap();
    let (state, others) = rest.split_at(header["parts"][0]["bytes"].as_u64().unwrap() as usize);
    let state = change(state);
    header["parts"][0]["bytes"] = state.len().into();
    header["parts"][0]["sha256"] = sha256(&state).into();
    let header = header.to_string();
    let others = &others[..others.len() - "\n".len() - sha256("").len()];
    let mut changed = [first, b"\n", header.as_bytes(), b"\n", &state, others].concat();
    changed.extend(format!("{}\n", sha256(&changed)).into_bytes());
    let path = backup.with_extension("changed.backup");
    fs::write(&path, changed).unwrap();
    path
}

#[test]
fn restore_takes_the_same_state_in_other_words_and_no_other_state() {
    let board = with_task();
    board.cli_ok("init_coordination", json!({"goal": "all of it", "master_plan": "- a\n"}));
    let before = done(&board, &["state".as_ref()]).to_string();
    board.cli_ok("create_task", json!({"id": "u", "description": "d"}));
    let backup = board.base().join("b.backup");
    done(&board, &["backup".as_ref(), &backup]);
    let reformatted = with_state(&backup, |state| {
        let state: Value = serde_json::from_slice(state).unwrap();
        state.to_string().into_bytes()
    });
    let restored = Board::new();
    done(&restored, &["restore".as_ref(), &reformatted]);
    assert_eq!(restored.cli_ok("get_task", json!({"task_id": "u"}))["task"]["id"], "u");
    let other = with_state(&backup, |_| before.clone().into_bytes());
    let refused =
        restored.finish(Board::new().command().args(["restore".as_ref(), other.as_path()]));
    assert!(!refused.status.success());
    assert!(
        refused.stderr.contains("its state is not what its journal says"),
        "{}",
        refused.stderr
    );
}
