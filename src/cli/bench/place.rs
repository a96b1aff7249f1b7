//! Where the boards are made that are measured: a directory on a disk, removed afterwards.

use std::env;
use std::io::Write;
use std::ops::{Deref, Range};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use anyhow::{Context, bail};
use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::board::seed;
use crate::cli::runtime;
use crate::clock::SystemClock;
use crate::filesystem::{self, Class, FileSystem};
use crate::journal::sqlite::SqliteJournal;
use crate::participant::{self, Caller, Handle, Options, Stay};

/// Tasks that one call creates.
const AT_ONCE: usize = 2_000;
/// Agents that one call registers.
const REGISTERED_AT_ONCE: usize = 500;

/// Directory whose temporary files survive a restart, on most systems.
const LASTING: &str = "/var/tmp";

#[derive(Debug)]
pub(super) struct Place {
    base: TempDir,
    boards: usize,
}

/// Places that are allowed although others are better.
#[derive(Clone, Copy, Default)]
pub(super) struct Allowed {
    pub memory: bool,
    pub network: bool,
}

impl Place {
    /// A directory in `parent` or, without one, in the first of the usual places that is on a disk.
    pub(super) fn new(parent: Option<&Path>, allowed: Allowed) -> anyhow::Result<Self> {
        let usual =
            || [env::temp_dir(), PathBuf::from(LASTING), env::current_dir().unwrap_or_default()];
        let is_disk =
            |path: &PathBuf| matches!(filesystem::kind(path).class, Class::Local | Class::Unknown);
        let parent = match parent {
            Some(parent) => parent.to_owned(),
            None => usual().into_iter().find(is_disk).unwrap_or_else(env::temp_dir),
        };
        if let Some(objection) = objection(&filesystem::kind(&parent), &parent, allowed) {
            bail!("{objection}");
        }
        fs::create_dir_all(&parent)?;
        let base = tempfile::Builder::new().prefix("callboard-bench-").tempdir_in(&parent);
        let base = base.with_context(|| {
            format!("nothing can be written in {}; name another --dir", parent.display())
        })?;
        Ok(Self { base, boards: 0 })
    }

    pub(super) fn path(&self) -> &Path {
        self.base.path()
    }

    /// A path at which nothing exists yet.
    pub(super) fn fresh(&mut self, what: &str) -> PathBuf {
        self.boards += 1;
        self.path().join(format!("{what}-{}", self.boards))
    }

    /// A new board with that many tasks and agents, named `worker-0` and so on.
    pub(super) fn board(&mut self, tasks: usize, agents: usize) -> anyhow::Result<Board> {
        self.board_of(tasks, agents, &json!({}))
    }

    /// A new board whose tasks also have the fields of `more`.
    pub(super) fn board_of(
        &mut self,
        tasks: usize,
        agents: usize,
        more: &Value,
    ) -> anyhow::Result<Board> {
        let board = Board(self.fresh("board"));
        let handle = inside(&board);
        runtime()?.block_on(async {
            create_tasks(&handle, 0..tasks, more).await?;
            for first in (0..agents).step_by(REGISTERED_AT_ONCE) {
                let register = |number| {
                    let agent = json!({"agent_id": agent(number), "role": "worker"});
                    json!({"name": "register_agent", "arguments": agent})
                };
                let batch: Vec<_> =
                    (first..agents.min(first + REGISTERED_AT_ONCE)).map(register).collect();
                handle
                    .call("apply_batch", json!({"operations": batch}), &Caller::default())
                    .await?;
            }
            anyhow::Ok(())
        })?;
        board.settle()?;
        Ok(board)
    }
}

/// Why nothing should be measured in `parent`, whose file system is `found`.
fn objection(found: &FileSystem, parent: &Path, allowed: Allowed) -> Option<String> {
    if found.class == Class::Memory && !allowed.memory {
        return Some(format!(
            "{} is on {}, which a restart empties, so what a durable write takes there says \
             nothing; name a directory on a disk with --dir, or pass --allow-memory to measure \
             all the same",
            parent.display(),
            found.name
        ));
    }
    filesystem::objection(found, parent).filter(|_| !allowed.network)
}

/// The directory of a board, which is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct Board(PathBuf);

impl Board {
    /// Checkpoints the log. Otherwise some measured commit would have to write back all that filled
    /// the board.
    pub(super) fn settle(&self) -> anyhow::Result<()> {
        let journal = SqliteJournal::open(self)?;
        Ok(journal.settle(journal.head()?)?)
    }
}

impl Deref for Board {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // What cannot be removed now is removed with the whole place.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Creates tasks with these numbers, which also have the fields of `more`.
pub(super) async fn create_tasks(
    handle: &Handle,
    numbers: Range<usize>,
    more: &Value,
) -> anyhow::Result<()> {
    let create = |number| {
        let description = format!("do thing {number}, and do it well");
        // Random ids would now and then collide on so large a board.
        let mut task = json!({"id": format!("bench-{number:06}"), "description": description});
        more.as_object().into_iter().flatten().for_each(|(name, value)| task[name] = value.clone());
        task
    };
    for first in numbers.clone().step_by(AT_ONCE) {
        let batch: Vec<_> = (first..numbers.end.min(first + AT_ONCE)).map(create).collect();
        handle.call("create_tasks_batch", json!({"tasks": batch}), &Caller::default()).await?;
    }
    Ok(())
}

/// The id of an agent on such a board.
pub(super) fn agent(number: usize) -> String {
    format!("worker-{number}")
}

/// A participant in this process.
pub(super) fn inside(board: &Path) -> Handle {
    participant::spawn(Options {
        dir: board.to_owned(),
        state_file: None,
        stay: Stay::Lasting,
        unasked: None,
        forbidden: None,
        unwritable: None,
        clock: Box::new(SystemClock),
        seed: seed(),
        worktree: None,
    })
}

/// A command that runs this very program on `board`. A server does not end with its standard input,
/// so it is `leashed`.
pub(super) fn callboard(board: &Path, is_server: bool) -> anyhow::Result<Command> {
    let program = env::current_exe()?;
    let mut command = if is_server { leashed(&program) } else { Command::new(program) };
    // Outside of any repository, of which a claim would read branch and commit.
    command.current_dir(board.parent().unwrap_or(board)).env("COORDINATION_DIR", board);
    // Where boards may be made has been decided already.
    command.env("CALLBOARD_ALLOW_NETWORK_FILESYSTEM", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// A script that becomes the program given to it, next to a process that ends the program if
/// standard input ends without a line.
const LEASH: &str = r#"
    exec 3<&0
    (
        {
            read -r line <&3 && exit
            kill -INT $$
            for look in 1 2 3 4 5; do sleep 1; kill -0 $$ || exit; done
            kill -KILL $$
        } >/dev/null 2>&1 &
    )
    exec "$@" 0</dev/null 3<&-"#;

/// A command that runs `program` as a server which does not outlive this process, however this
/// process ends. Its standard input is the leash, and must stay open.
pub(super) fn leashed(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", LEASH, "sh"]).arg(program).stdin(Stdio::piped());
    // What is typed on the terminal is for this process.
    command.process_group(0);
    command
}

/// Releases the leash, so that it kills nothing; to be called before the server ends, as its
/// process id may be reused.
pub(super) fn unleash(leash: &mut Option<ChildStdin>) {
    if let Some(mut leash) = leash.take() {
        drop(leash.write_all(b"\n"));
    }
}

/// A script that removes a directory. It tries for longer than the leash waits for a server that
/// does not end.
const CLEAR: &str = r#"
    trap '' INT TERM HUP
    look=0
    while [ "$look" -lt 40 ] && ! rm -rf -- "$1" 2>/dev/null; do look=$((look + 1)); sleep 0.2; done
    rm -rf -- "$1" || echo "callboard: $1 could not be removed; remove it yourself" >&2
    exit "$2""#;

/// Replaces this process with one that removes `path`, where ending processes may still write.
/// Returns only if it failed, with the reason.
pub(super) fn become_nothing(path: &Path, exit: i32) -> std::io::Error {
    Command::new("/bin/sh").args(["-c", CLEAR, "sh"]).arg(path).arg(exit.to_string()).exec()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_no_place_for_durable_writes_unless_allowed() {
        let memory = Path::new("/dev/shm");
        if filesystem::kind(memory).class != Class::Memory {
            return;
        }
        let error =
            Place::new(Some(memory), Allowed::default()).expect_err("it is in memory").to_string();
        for part in ["/dev/shm", "tmpfs", "--dir", "--allow-memory"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(Place::new(Some(memory), Allowed { memory: true, network: false }).is_ok());
    }

    #[test]
    fn network_is_no_place_for_boards_unless_allowed() {
        let found = FileSystem { name: "nfs".to_owned(), class: Class::Network };
        let objection =
            |network| objection(&found, Path::new("/far"), Allowed { memory: false, network });
        assert!(objection(false).is_some_and(|text| text.contains("--allow-network-filesystem")));
        assert_eq!(objection(true), None);
        // Otherwise each process would refuse what was allowed.
        let command = callboard(Path::new("/far/board"), true).expect("this program");
        let allowed = |(name, value): (&OsStr, Option<&OsStr>)| {
            name == "CALLBOARD_ALLOW_NETWORK_FILESYSTEM" && value == Some(OsStr::new("1"))
        };
        assert!(command.get_envs().any(allowed), "{command:?}");
    }
}
