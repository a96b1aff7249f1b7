//! Where callers on this machine work, in which worktree and at which commit. Git's files are read,
//! and git itself is asked, before or after the call and on a thread that may wait: never under the
//! board's lock.
//!
//! Subagents share their session's process, and may have worktrees of their own. Such an agent says
//! so by its property `project_dir`. Only the writer knows which agent acts, so it sends the call
//! back once, to be made from there.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::task::spawn_blocking;

use super::caller::Caller;
use crate::git::{self, Git, Standing};
use crate::ops::{AskGit, Checkout, Merge, Prepared};
use crate::redact;
use crate::state::task::Place;
use crate::worktree::Worktree;

/// Longest time for git before a call.
const BEFORE: Duration = Duration::from_millis(300);
/// Longest time for git after a call.
const AFTER: Duration = Duration::from_millis(1_000);

/// Where a call is made from.
#[derive(Clone, Default)]
pub struct Site {
    pub place: Place,
    /// Of the files that the call says are done, those that are not committed; none if git does
    /// not say.
    pub uncommitted: Option<Vec<String>>,
    /// The acting agent's `project_dir`, if that is where the place was looked for.
    pub told: Option<String>,
    /// Set by the writer if the acting agent works in another directory: the call was not made,
    /// and is to be repeated from there.
    pub instead: Arc<OnceLock<String>>,
}

impl Site {
    /// Looks where the call is made from: in `told`, if that is in a worktree of the project, or
    /// else in the caller's directory. The place is read anew only if the call records it.
    pub async fn of(
        board: &Arc<Path>,
        prepared: &Arc<dyn Prepared>,
        caller: &Caller,
        told: Option<String>,
    ) -> Self {
        let Some(cwd) = caller.cwd.clone().filter(|_| told.is_some() || prepared.is_placed())
        else {
            return Self { place: caller.place.clone(), told, ..Self::default() };
        };
        let (board, prepared, asked) = (Arc::clone(board), Arc::clone(prepared), told.clone());
        let read = spawn_blocking(move || {
            let apart = told.as_deref().map(Path::new).filter(|told| told.is_absolute());
            let apart = apart.and_then(|told| Worktree::of_session(&board, &cwd, told));
            let place = apart
                .or_else(|| Worktree::of_board(&board, &cwd))
                .map(Place::from)
                .unwrap_or_default();
            let uncommitted = place
                .worktree
                .as_deref()
                .and_then(|root| uncommitted(root, &prepared.done_files()));
            Self { place, uncommitted, told, ..Self::default() }
        });
        // Without what it was looked for in, the writer would send the call back again and again.
        read.await.unwrap_or_else(|_| Self { told: asked, ..Self::default() })
    }

    /// Root of the caller's worktree; none if that is not on this machine.
    pub fn root(&self, caller: &Caller) -> Option<PathBuf> {
        self.place.worktree.as_ref().filter(|_| caller.cwd.is_some()).map(PathBuf::from)
    }

    /// The same as the board may keep it.
    pub fn kept(&self) -> Self {
        Self { place: kept(&self.place), ..self.clone() }
    }
}

/// Those of `files` that are not committed; none if there are no files, or git does not say.
fn uncommitted(root: &str, files: &[&str]) -> Option<Vec<String>> {
    let relative = |file: &&str| {
        Path::new(file).strip_prefix(root).unwrap_or(Path::new(file)).to_string_lossy().into()
    };
    let files: Vec<_> = files.iter().map(relative).collect();
    if files.is_empty() { None } else { Git::at(Path::new(root), BEFORE).uncommitted(Some(&files)) }
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

/// Whether git would be asked at all. Most replies need nothing of it, and a thread for it takes
/// time.
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
    let checkout =
        Checkout { root: &root.to_string_lossy(), merge: &merge, uncommitted: &uncommitted };
    ask(&mut reply.clone(), &checkout);
    is_asked.get()
}

impl From<Worktree> for Place {
    fn from(worktree: Worktree) -> Self {
        let root = worktree.root.to_string_lossy().into_owned();
        Self { worktree: Some(root), branch: worktree.branch, head: worktree.head }
    }
}

/// Redacts `place` for the board to keep: the names that git and clients give have passed no other
/// check.
fn kept(place: &Place) -> Place {
    let mut place = place.clone();
    for name in [&mut place.worktree, &mut place.branch, &mut place.head].into_iter().flatten() {
        if let Some(clean) = redact::name(name) {
            *name = clean;
        }
    }
    place
}
