//! Where boards are made to be measured: a directory that is gone afterwards, on a disk.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::{runtime, seed};
use crate::clock::SystemClock;
use crate::filesystem::{self, Class};
use crate::journal::Journal;
use crate::journal::sqlite::SqliteJournal;
use crate::participant::{self, Caller, Handle, Options, Stay};

/// Tasks that one call creates.
const AT_ONCE: usize = 2_000;
/// Agents that one call registers.
const REGISTERED_AT_ONCE: usize = 500;

/// Where temporary files survive a restart, on most systems.
const LASTING: &str = "/var/tmp";

#[derive(Debug)]
pub struct Place {
    base: TempDir,
    boards: usize,
}

impl Place {
    /// In `parent`, or else in the first of the usual places that is on a disk.
    pub fn new(parent: Option<&Path>, memory_will_do: bool) -> anyhow::Result<Self> {
        let usual = || [env::temp_dir(), PathBuf::from(LASTING), env::current_dir().unwrap_or_default()];
        let is_disk = |path: &PathBuf| matches!(filesystem::kind(path).class, Class::Local | Class::Unknown);
        let parent = match parent {
            Some(parent) => parent.to_owned(),
            None => usual().into_iter().find(is_disk).unwrap_or_else(env::temp_dir),
        };
        let found = filesystem::kind(&parent);
        if found.class == Class::Memory && !memory_will_do {
            bail!(
                "{} is on {}, which a restart empties, so what a durable write takes there says nothing; name a directory \
                 on a disk with --dir, or pass --allow-memory to measure all the same",
                parent.display(),
                found.name
            );
        }
        if let Some(objection) = filesystem::objection(&found, &parent) {
            bail!("{objection}");
        }
        fs::create_dir_all(&parent)?;
        let base = tempfile::Builder::new().prefix("callboard-bench-").tempdir_in(&parent);
        let base =
            base.with_context(|| format!("nothing can be written in {}; name another --dir", parent.display()))?;
        Ok(Self { base, boards: 0 })
    }

    pub fn path(&self) -> &Path {
        self.base.path()
    }

    /// A path at which nothing is yet.
    pub fn fresh(&mut self, what: &str) -> PathBuf {
        self.boards += 1;
        self.path().join(format!("{what}-{}", self.boards))
    }

    /// A new board with that many tasks and agents, `worker-0` and so on.
    pub fn board(&mut self, tasks: usize, agents: usize) -> anyhow::Result<PathBuf> {
        self.board_of(tasks, agents, &json!({}))
    }

    /// The same; every task has the fields of `more`, too.
    pub fn board_of(&mut self, tasks: usize, agents: usize, more: &Value) -> anyhow::Result<PathBuf> {
        let board = self.fresh("board");
        let handle = inside(&board);
        let call =
            async |operation: &str, arguments: Value| handle.call(operation, arguments, &Caller::default()).await;
        runtime()?.block_on(async {
            for first in (0..tasks).step_by(AT_ONCE) {
                let create = |number| {
                    let description = format!("do thing {number}, and do it well");
                    // Ids made up by chance would now and then be equal on a board of so many.
                    let mut task = json!({"id": format!("bench-{number:06}"), "description": description});
                    more.as_object().into_iter().flatten().for_each(|(name, value)| task[name] = value.clone());
                    task
                };
                let batch: Vec<_> = (first..tasks.min(first + AT_ONCE)).map(create).collect();
                call("create_tasks_batch", json!({"tasks": batch})).await?;
            }
            for first in (0..agents).step_by(REGISTERED_AT_ONCE) {
                let register = |number| {
                    let agent = json!({"agent_id": agent(number), "role": "worker"});
                    json!({"name": "register_agent", "arguments": agent})
                };
                let batch: Vec<_> = (first..agents.min(first + REGISTERED_AT_ONCE)).map(register).collect();
                call("apply_batch", json!({"operations": batch})).await?;
            }
            anyhow::Ok(())
        })?;
        // Else some commit that is measured would take into the journal all that was written here.
        let journal = SqliteJournal::open(&board)?;
        journal.settle(journal.head()?)?;
        Ok(board)
    }
}

/// The id of an agent of a board made here.
pub fn agent(number: usize) -> String {
    format!("worker-{number}")
}

/// A participant in this process.
pub fn inside(board: &Path) -> Handle {
    participant::spawn(Options {
        dir: board.to_owned(),
        stay: Stay::Lasting,
        forbidden: None,
        unwritable: None,
        clock: Box::new(SystemClock::default()),
        seed: seed(),
        worktree: None,
    })
}

/// This very program, on `board`.
pub fn callboard(board: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    // No repository around it, of which a claim would read branch and commit.
    command.current_dir(board.parent().unwrap_or(board)).env("COORDINATION_DIR", board);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_no_place_for_durable_writes_unless_allowed() {
        let memory = Path::new("/dev/shm");
        if filesystem::kind(memory).class != Class::Memory {
            return;
        }
        let error = Place::new(Some(memory), false).expect_err("it is in memory").to_string();
        for part in ["/dev/shm", "tmpfs", "--dir", "--allow-memory"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(Place::new(Some(memory), true).is_ok());
    }
}
