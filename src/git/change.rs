//! What git says of the work on a task, by the commit, branch or files that were recorded.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Git, is_commit};
use crate::state::task::{Attempt, Task};

/// How long git may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What was recorded of the work on a task.
pub(crate) struct Work {
    pub worktree: Option<PathBuf>,
    /// The commit from which the attempt began.
    head: Option<String>,
    pub branch: Option<String>,
    pub commit: Option<String>,
    pub files: Vec<String>,
}

/// A change, and from where to where it leads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub what: String,
    pub text: String,
}

/// What there is to show of the work on a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Diff {
    Change(Change),
    /// Why there is none.
    Nothing(String),
}

impl Diff {
    /// `project` is the toplevel of the worktree that is asked if the attempt's own is gone.
    pub(crate) fn of(task: &Task, last: Option<&Attempt>, project: &Path) -> Self {
        let work = Work::of(task, last);
        let root = work.root(project);
        work.change(&root).map_or_else(|| Self::Nothing(work.why_nothing(&root)), Self::Change)
    }
}

impl Work {
    pub(crate) fn of(task: &Task, last: Option<&Attempt>) -> Self {
        let (result, place) = (task.result.as_deref(), last.map(|last| &last.place));
        let recorded = result.map(|result| (result.branch.clone(), result.commit.clone()));
        let (branch, commit) = recorded.unwrap_or_default();
        let files = result.into_iter();
        Self {
            worktree: place.and_then(|place| place.worktree.clone()).map(PathBuf::from),
            head: place.and_then(|place| place.head.clone()).filter(|head| is_commit(head)),
            branch: branch.or_else(|| place?.branch.clone()),
            commit: commit.filter(|commit| is_commit(commit)),
            files: files
                .flat_map(|result| result.files_modified.iter().chain(&result.files_created))
                .cloned()
                .collect(),
        }
    }

    /// The worktree of the attempt if it is there, else the project's.
    pub(crate) fn root(&self, project: &Path) -> PathBuf {
        let own = self.worktree.clone().filter(|root| root.is_dir());
        own.unwrap_or_else(|| project.to_owned())
    }

    /// The change since the attempt began: up to its commit, else to the tip of its branch, else
    /// to the files in its worktree.
    pub(crate) fn change(&self, root: &Path) -> Option<Change> {
        let git = Git::at(root, PATIENCE);
        let by_commit = || {
            let commit = self.commit.as_deref()?;
            let begun = self.head.as_deref().and_then(|head| git.parted(head, commit));
            let from = begun.filter(|from| !same(from, commit)).or_else(|| git.parent(commit))?;
            let text = git.diff(&from, Some(commit), &[])?;
            Some(Change { what: format!("commit {} since {}", short(commit), short(&from)), text })
        };
        let by_branch = || {
            let branch = self.branch.as_deref()?;
            let tip = git.tip(branch)?;
            let begun = self.head.as_deref().unwrap_or("HEAD");
            let from = git.parted(begun, &tip).filter(|from| !same(from, &tip))?;
            let text = git.diff(&from, Some(&tip), &[])?;
            Some(Change { what: format!("branch {branch} since {}", short(&from)), text })
        };
        let by_worktree = || {
            // Files of the project's own checkout are others' work, too, unless they are named.
            if self.files.is_empty() && self.worktree.as_deref() != Some(root) {
                return None;
            }
            let from = self.head.clone().or_else(|| git.head())?;
            let text = git.diff(&from, None, &self.files)?;
            let what = format!("{} since {}", root.display(), short(&from));
            (!text.is_empty()).then_some(Change { what, text })
        };
        by_commit().or_else(by_branch).or_else(by_worktree)
    }

    pub(crate) fn why_nothing(&self, root: &Path) -> String {
        let root = root.display();
        match (&self.commit, &self.branch, self.files.is_empty()) {
            (Some(commit), ..) => format!(
                "the git repository at {root} does not have commit {commit}; `git fetch --all` \
                 there, or ask where it is"
            ),
            (None, Some(branch), true) => format!(
                "branch {branch} is recorded, and git at {root} shows no change there; `callboard \
                 show TASK` has all that is known"
            ),
            (None, _, false) => format!(
                "git at {root} shows no uncommitted change of {}, and no commit was recorded",
                self.files.join(", ")
            ),
            (None, None, true) => "nothing was recorded of its work: no commit, branch or files; \
                                   `callboard complete TASK --commit COMMIT --file PATH` records \
                                   them"
                .to_owned(),
        }
    }
}

/// True if one of two ids begins with the other.
fn same(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
