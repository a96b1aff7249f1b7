//! Where callers on this machine work, in which worktree and at which commit. Git's files are read anew for each call
//! that records them; what only git itself knows is asked before or after the call.
//!
//! Subagents share their session's process, and may have worktrees of their own. Such an agent says so by its property
//! `project_dir`. Whose call it is shows only when it is carried out, so the few files are read then, under the lock;
//! git is never run there.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::task::spawn_blocking;

use super::Caller;
use crate::git::{self, Git, Standing};
use crate::ops::{AskGit, Checkout, Merge};
use crate::state::agent::Agent;
use crate::state::id::AgentId;
use crate::state::task::Place;
use crate::worktree::Worktree;

/// Longest time for git before a call, which those behind it wait for, too.
const BEFORE: Duration = Duration::from_millis(300);
/// Longest time for git after a call.
const AFTER: Duration = Duration::from_millis(1_000);

pub struct Whereabouts {
    /// The board's directory.
    dir: PathBuf,
    /// Roots of the worktrees of agents that work elsewhere than their process.
    roots: Mutex<HashMap<AgentId, PathBuf>>,
}

impl Whereabouts {
    pub fn of(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), roots: Mutex::default() }
    }

    /// The caller's place; read `anew` if it is on this machine.
    pub fn place(&self, caller: &Caller, anew: bool) -> Place {
        match caller.cwd.as_deref().filter(|_| anew) {
            Some(cwd) => Worktree::of_board(&self.dir, cwd).map(place_of).unwrap_or_default(),
            None => caller.place.clone(),
        }
    }

    /// The place of an agent that has said where it works, if that is a worktree of the project. `cwd` is the directory
    /// of its process.
    pub fn elsewhere(&self, agent: &Agent, cwd: &Path) -> Option<Place> {
        let told = Path::new(agent.properties.project_dir.as_deref()?);
        let worktree = Worktree::of_session(&self.dir, cwd, told).filter(|_| told.is_absolute())?;
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        roots.insert(agent.id.clone(), worktree.root.clone());
        drop(roots);
        Some(place_of(worktree))
    }

    /// Root of the worktree in which the agent works; none if that is not on this machine.
    pub fn root(&self, agent: Option<&str>, caller: &Caller, place: &Place) -> Option<PathBuf> {
        caller.cwd.as_ref()?;
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let own = agent.and_then(|agent| roots.get(agent).cloned());
        own.or_else(|| place.worktree.as_ref().map(PathBuf::from))
    }
}

/// Those of `files` that are not committed, as far as git says.
pub fn uncommitted(root: &Path, files: &[String]) -> Vec<String> {
    let relative = |file: &String| Path::new(file).strip_prefix(root).map_or_else(|_| file.into(), Path::to_path_buf);
    let files: Vec<_> = files.iter().map(|file| relative(file).to_string_lossy().into_owned()).collect();
    Git::at(root, BEFORE).uncommitted(Some(&files)).unwrap_or_default()
}

/// The reply with what git says of the worktree.
pub async fn checked_out(mut reply: Value, root: PathBuf, ask: AskGit) -> Value {
    if !asks(&reply, &root, ask) {
        return reply;
    }
    let whole = reply.clone();
    let asked = spawn_blocking(move || {
        let git = Git::at(&root, AFTER);
        let checkout = Checkout {
            root: &root.to_string_lossy(),
            merge: &|commit, branch| {
                let commit = commit.filter(|commit| git::is_commit(commit)).map(str::to_owned);
                let commit = commit.or_else(|| git.tip(branch?))?;
                let standing = git.standing(&commit);
                let command = git::merge(&commit, standing.unwrap_or(Standing::Elsewhere))?;
                Some(Merge { command, is_needed: standing.is_some() })
            },
            uncommitted: &|| git.uncommitted(None),
        };
        ask(&mut reply, &checkout);
        reply
    });
    asked.await.unwrap_or(whole)
}

/// Whether git would be asked at all. Most replies need nothing of it, and a thread for it takes time.
fn asks(reply: &Value, root: &Path, ask: AskGit) -> bool {
    let is_asked = Cell::new(false);
    let note = || is_asked.set(true);
    let merge = |_: Option<&str>, _: Option<&str>| -> Option<Merge> {
        note();
        None
    };
    let uncommitted = || -> Option<Vec<String>> {
        note();
        None
    };
    let checkout = Checkout { root: &root.to_string_lossy(), merge: &merge, uncommitted: &uncommitted };
    ask(&mut reply.clone(), &checkout);
    is_asked.get()
}

pub fn place_of(worktree: Worktree) -> Place {
    let root = worktree.root.to_string_lossy().into_owned();
    Place { worktree: Some(root), branch: worktree.branch, head: worktree.head }
}
