//! Impostors: anything else in the place of a board's file is refused with advice, never followed,
//! never waited for.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use callboard::clock::SystemClock;
use callboard::filesystem::{self, Class, FileSystem};
use callboard::participant::{self, Caller, Handle, Options, Stay};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::harness::http::serve;
use crate::harness::{Board, available, until};

/// A board with every file that callboard ever creates.
fn furnished() -> Board {
    let board = Board::with_policy("lease_minutes = 10");
    board.cli_ok("create_task", json!({"id": "t1", "description": "x"}));
    let added = board.finish(board.command().args(["token", "add"]));
    assert!(added.status.success(), "{}", added.stderr);
    board
}

/// Files of a board without the state file: an impostor of that is set aside like an unreadable
/// edit.
const FILES: [&str; 7] = [
    "lock",
    "state-lock",
    "journal.db",
    "journal.db-wal",
    "journal.db-shm",
    "config.toml",
    "tokens.toml",
];

/// The result of a command that uses the file; the command is ended if it takes too long.
fn told(board: &Board, file: &str) -> (ExitStatus, String) {
    let mut command = board.command();
    match file {
        "tokens.toml" => command.args(["token", "add"]),
        "serve.token" => command.args(["serve", "--listen", "127.0.0.1:0"]),
        _ => command.args(["add", "another"]),
    };
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until(
        Duration::from_secs(20),
        &format!("the command ends with something else in the place of {file}"),
        || process.try_wait().unwrap(),
    );
    let output = process.wait_with_output().unwrap();
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[track_caller]
fn is_refused(board: &Board, file: &str, what: &str) {
    let (status, error) = told(board, file);
    assert!(!status.success(), "{what} in the place of {file} was used");
    assert!(error.contains(file), "{what} in the place of {file}: {error}");
    let says_what_to_do =
        ["move it away", "try again", "remove it"].iter().any(|remedy| error.contains(remedy));
    assert!(says_what_to_do, "{what} in the place of {file}: {error}");
}

fn in_its_place(board: &Board, file: &str, put: impl FnOnce(&Path)) {
    let path = board.file(file);
    drop(fs::remove_file(&path));
    put(&path);
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn link_in_the_place_of_a_file_is_not_followed() {
    for file in FILES.into_iter().chain(["serve.token"]) {
        let board = furnished();
        let elsewhere = board.base().join("elsewhere");
        if board.file(file).exists() {
            fs::copy(board.file(file), &elsewhere).unwrap();
        } else {
            fs::write(&elsewhere, "precious").unwrap();
        }
        let before = fs::read(&elsewhere).unwrap();
        in_its_place(&board, file, |path| symlink(&elsewhere, path).unwrap());
        is_refused(&board, file, "a link");
        assert_eq!(fs::read(&elsewhere).unwrap(), before, "{file}");
    }
}

#[test]
fn link_to_nothing_makes_nothing() {
    for file in FILES.into_iter().chain(["serve.token"]) {
        let board = furnished();
        let nowhere = board.base().join("nowhere");
        in_its_place(&board, file, |path| symlink(&nowhere, path).unwrap());
        let (status, _) = told(&board, file);
        assert!(!status.success(), "{file}");
        assert!(!nowhere.exists(), "{file}");
    }
}

#[test]
fn pipe_in_the_place_of_a_file_is_not_waited_for() {
    for file in FILES.into_iter().chain(["serve.token"]) {
        let board = furnished();
        in_its_place(&board, file, pipe);
        is_refused(&board, file, "a pipe");
    }
}

#[test]
fn directory_or_socket_in_the_place_of_a_file_is_refused() {
    for file in FILES.into_iter().chain(["serve.token"]) {
        let board = furnished();
        in_its_place(&board, file, |path| fs::create_dir(path).unwrap());
        is_refused(&board, file, "a directory");
        let board = furnished();
        let mut socket = None;
        in_its_place(&board, file, |path| {
            // The file's own path may be too long for a socket's address.
            let short = tempfile::tempdir().unwrap();
            socket = Some(UnixListener::bind(short.path().join("s")).unwrap());
            fs::rename(short.path().join("s"), path)
                .or_else(|_| {
                    mknodat(CWD, path, FileType::Socket, Mode::RUSR | Mode::WUSR, 0)
                        .map_err(std::io::Error::from)
                })
                .unwrap();
        });
        is_refused(&board, file, "a socket");
    }
}

#[test]
fn file_that_everybody_may_write_is_refused() {
    for file in FILES.into_iter().chain(["serve.token"]) {
        let board = furnished();
        if !board.file(file).exists() {
            fs::write(board.file(file), "").unwrap();
        }
        fs::set_permissions(board.file(file), fs::Permissions::from_mode(0o666)).unwrap();
        let (status, error) = told(&board, file);
        assert!(!status.success() && error.contains(file), "{file}: {error}");
    }
}

fn root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    available("root", Some("only root gives files away").filter(|_| !is_root))
}

#[test]
fn file_of_another_user_is_refused() {
    if !root() {
        return;
    }
    for file in FILES.into_iter().chain(["serve.token"]) {
        let board = furnished();
        if !board.file(file).exists() {
            fs::write(board.file(file), "").unwrap();
            fs::set_permissions(board.file(file), fs::Permissions::from_mode(0o600)).unwrap();
        }
        chown(board.file(file), Some(65_534), None).unwrap();
        let (status, error) = told(&board, file);
        assert!(!status.success() && error.contains("another user"), "{file}: {error}");
    }
}

#[test]
fn directory_of_another_user_or_open_to_everybody_is_refused() {
    let board = furnished();
    fs::set_permissions(board.dir(), fs::Permissions::from_mode(0o777)).unwrap();
    let (status, error) = told(&board, "lock");
    assert!(!status.success() && error.contains("chmod 700"), "{error}");
    fs::set_permissions(board.dir(), fs::Permissions::from_mode(0o700)).unwrap();
    if root() {
        chown(board.dir(), Some(65_534), None).unwrap();
        let (status, error) = told(&board, "lock");
        assert!(!status.success() && error.contains("another user"), "{error}");
    }
}

#[test]
fn place_of_living_processes_leads_nowhere_else() {
    let board = furnished();
    let elsewhere = board.base().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::remove_dir_all(board.file("run")).unwrap();
    symlink(&elsewhere, board.file("run")).unwrap();
    let (status, error) = told(&board, "run");
    assert!(!status.success() && error.contains("run is not a directory"), "{error}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

/// Modes of all files, whatever the umask, including those of a server and a client.
#[test]
fn everything_that_is_made_is_its_owners_alone() {
    let board = Board::new();
    let mut client = board.mcp();
    client.register("w1");
    client.ok("create_task", json!({"id": "t1", "description": "x"}));
    let (mut command, _) = serve(&board, &[]);
    let mut server = command.spawn().unwrap();
    until(Duration::from_secs(20), "the server has a token", || {
        board.file("serve.token").exists().then_some(())
    });
    assert!(board.finish(board.command().args(["token", "add"])).status.success());
    let mut open = vec![board.dir().to_owned()];
    let mut seen = 0;
    while let Some(dir) = open.pop() {
        assert_eq!(
            fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
            0o700,
            "{}",
            dir.display()
        );
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let Ok(metadata) = fs::symlink_metadata(entry.path()) else { continue };
            if metadata.is_dir() {
                open.push(entry.path());
            } else {
                seen += 1;
                assert_eq!(
                    metadata.permissions().mode() & 0o777,
                    0o600,
                    "{}",
                    entry.path().display()
                );
            }
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(seen > 6, "{seen} files");
    assert_eq!(fs::read_to_string(board.file(".gitignore")).unwrap(), "*\n");
}

/// A board that must not be written to, as on a network file system, which this test does not have.
#[test]
fn board_where_nothing_must_be_written_is_read() {
    let board = furnished();
    let before = board.document()["seq"].clone();
    let handle = participant::spawn(Options {
        dir: board.dir().to_owned(),
        state_file: None,
        stay: Stay::Brief,
        unwritable: filesystem::objection(
            &FileSystem { name: "nfs".to_owned(), class: Class::Network },
            board.dir(),
        ),
        forbidden: None,
        unasked: None,
        clock: Box::new(SystemClock),
        seed: 1,
        worktree: None,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let caller = Caller::default();
    let read =
        runtime.block_on(handle.call("get_task", json!({"task_id": "t1"}), &caller)).unwrap();
    assert_eq!(read["task"]["id"], "t1");
    let error = runtime
        .block_on(handle.call("create_task", json!({"description": "y"}), &caller))
        .unwrap_err();
    assert!(error.message().contains("--allow-network-filesystem"), "{}", error.message());
    assert_eq!(error.data()["code"], "board_forbidden");
    assert_eq!(board.document()["seq"], before);
}

#[test]
fn board_where_nothing_must_be_written_is_not_mended() {
    let board = furnished();
    let listing = || {
        let names = fs::read_dir(board.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // Files that a reader's connection needs appear and disappear.
        names.filter(|name| !name.starts_with("journal.db-")).collect::<BTreeSet<_>>()
    };
    let reader = |seed| {
        participant::spawn(Options {
            dir: board.dir().to_owned(),
            state_file: None,
            stay: Stay::Lasting,
            unwritable: Some("it is far away".to_owned()),
            forbidden: None,
            unasked: None,
            clock: Box::new(SystemClock),
            seed,
            worktree: None,
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = |handle: &Handle, tool: &str, arguments| {
        runtime.block_on(handle.call(tool, arguments, &Caller::default()))
    };
    let before = listing();
    let handle = reader(1);
    assert_eq!(call(&handle, "get_task", json!({"task_id": "t1"})).unwrap()["task"]["id"], "t1");
    let error = call(&handle, "create_snapshot", json!({})).unwrap_err();
    assert_eq!(error.data()["code"], "board_forbidden");
    assert_eq!(listing(), before, "a snapshot was taken all the same");

    fs::write(board.file("mcp-state.json"), "no state").unwrap();
    let another = reader(2);
    assert_eq!(call(&another, "get_task", json!({"task_id": "t1"})).unwrap()["task"]["id"], "t1");
    assert_eq!(fs::read_to_string(board.file("mcp-state.json")).unwrap(), "no state");
    assert_eq!(listing(), before, "the state file was mended");

    for name in ["journal.db", "journal.db-wal", "journal.db-shm", "lock", "state-lock"] {
        drop(fs::remove_file(board.file(name)));
    }
    let left = listing();
    let error = call(&handle, "get_task", json!({"task_id": "t1"})).unwrap_err();
    assert_eq!(error.data()["code"], "board_replaced");
    assert_eq!(listing(), left, "the board was put back");
}

#[test]
fn what_others_could_enter_is_made_private_and_said_once() {
    let board = Board::new();
    board.cli_ok("create_task", json!({"description": "d"}));
    board.cli_ok("save_bundle", json!({"scope": "s", "settings": {"k": 1}}));
    board.cli_ok("create_snapshot", json!({}));
    let open = [("", 0o755), ("bundles", 0o770), ("snapshots", 0o711)];
    for (name, mode) in open {
        fs::set_permissions(board.file(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let warning = |reply: &Value| reply["warning"].as_str().unwrap_or_default().to_owned();
    let first = warning(&board.cli_ok("create_task", json!({"description": "d"})));
    for (name, _) in open {
        let path = board.file(name).display().to_string();
        assert!(first.contains(path.trim_end_matches('/')) && first.contains("700"), "{first}");
        let mode = fs::metadata(board.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
    assert_eq!(warning(&board.cli_ok("create_task", json!({"description": "d"}))), "");
}
