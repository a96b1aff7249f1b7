//! Where a worker's command runs, and what it changed there, as git says.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::state::limit;
use crate::state::task::Place;
use crate::worktree::{Repository, Worktree};

/// Below the board's directory, which git ignores.
const WORKTREES: &str = "worktrees";
const BRANCHES: &str = "callboard";
const LONGEST_SUBJECT: usize = 72;

#[derive(Clone, Debug)]
pub struct Checkout {
    pub directory: PathBuf,
    /// Of the worktree that it is in, if it is in one.
    root: Option<PathBuf>,
    /// A worktree of one agent alone: its changes are committed, and what a failure leaves is put aside.
    is_own: bool,
    /// Nobody else works here, so that changes can be told whose they are.
    is_told: bool,
}

/// How it was before a task.
#[derive(Clone, Debug, Default)]
pub struct Before {
    head: Option<String>,
    dirty: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub modified: Vec<String>,
    pub created: Vec<String>,
    pub branch: Option<String>,
    pub commit: Option<String>,
}

impl Checkout {
    /// The directory that the worker was started in.
    pub fn shared(directory: &Path, is_alone: bool) -> Self {
        Self { directory: directory.to_owned(), root: root(directory), is_own: false, is_told: is_alone }
    }

    /// The agent's own worktree and branch, made if they are not there.
    pub fn own(directory: &Path, board: &Path, agent: &str) -> anyhow::Result<Self> {
        let main = Repository::containing(directory).map(|repository| repository.main_root());
        let Some(main) = main else {
            bail!("--worktree needs a git repository, and {} is in none", directory.display())
        };
        if git(&main, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).is_err() {
            bail!("--worktree needs a commit to begin with; make one, then try again");
        }
        let path = board.join(WORKTREES).join(agent);
        let branch = format!("{BRANCHES}/{agent}");
        if !path.join(".git").exists() {
            fs_err::create_dir_all(board.join(WORKTREES))?;
            drop(git(&main, ["worktree", "prune"]));
            let reference = format!("refs/heads/{branch}");
            let known = git(&main, ["rev-parse", "--verify", "--quiet", reference.as_str()]).is_ok();
            let path = path.as_os_str();
            let added = if known {
                git(&main, [OsStr::new("worktree"), "add".as_ref(), path, branch.as_ref()])
            } else {
                git(&main, [OsStr::new("worktree"), "add".as_ref(), "-b".as_ref(), branch.as_ref(), path])
            };
            added.with_context(|| format!("the worktree of {agent} could not be made"))?;
        }
        let inside = root(directory);
        let below =
            inside.and_then(|inside| fs::canonicalize(directory).ok()?.strip_prefix(inside).map(Path::to_owned).ok());
        let directory = path.join(below.unwrap_or_default());
        let directory = if directory.is_dir() { directory } else { path.clone() };
        Ok(Self { root: root(&path), directory, is_own: true, is_told: true })
    }

    /// As it is now.
    pub fn place(&self) -> Place {
        let Some(worktree) = Worktree::at(&self.directory) else { return Place::default() };
        let root = worktree.root.to_string_lossy().into_owned();
        Place { worktree: Some(root), branch: worktree.branch, head: worktree.head }
    }

    pub fn before(&self) -> Before {
        if !self.is_told || self.root.is_none() {
            return Before::default();
        }
        let head = git(&self.directory, ["rev-parse", "--verify", "--quiet", "HEAD"]).ok();
        Before { head: head.map(|head| head.trim().to_owned()), dirty: self.dirty() }
    }

    /// What lies there uncommitted.
    fn dirty(&self) -> BTreeSet<String> {
        let changed = git(&self.root(), ["diff", "--name-only", "-z", "HEAD"]).unwrap_or_default();
        names(&changed).chain(names(&self.untracked())).collect()
    }

    fn untracked(&self) -> String {
        git(&self.root(), ["ls-files", "--others", "--exclude-standard", "-z"]).unwrap_or_default()
    }

    fn root(&self) -> PathBuf {
        self.root.clone().unwrap_or_else(|| self.directory.clone())
    }

    /// What has changed since, committed if the worktree is the agent's own.
    pub fn done(&self, before: &Before, subject: &str, task: &str) -> Changes {
        let Some(head) = before.head.as_deref() else { return Changes::default() };
        if self.is_own && !self.dirty().is_empty() {
            self.commit(subject, task);
        }
        let mut changes = Changes::default();
        let changed = git(&self.root(), ["diff", "--name-status", "--no-renames", "-z", head]).unwrap_or_default();
        let mut fields = names(&changed);
        while let (Some(status), Some(name)) = (fields.next(), fields.next()) {
            let list = if status == "A" { &mut changes.created } else { &mut changes.modified };
            list.push(name);
        }
        changes.created.extend(names(&self.untracked()));
        for list in [&mut changes.modified, &mut changes.created] {
            list.retain(|name| !before.dirty.contains(name) && name.len() <= limit::PATH.max);
            list.truncate(limit::FILES.max);
        }
        let now = self.place();
        changes.branch = now.branch;
        changes.commit = now.head.filter(|commit| self.is_own || commit != head);
        changes
    }

    fn commit(&self, subject: &str, task: &str) {
        let subject: String = subject.chars().take(LONGEST_SUBJECT).collect();
        let message = format!("{subject}\n\nTask: {task}");
        let committed = self.git_as_someone(&["add", "--all"]);
        let committed =
            committed.and_then(|()| self.git_as_someone(&["commit", "--quiet", "--no-verify", "-m", &message]));
        if let Err(error) = committed {
            tracing::warn!(error = format!("{error:#}"), task, "what the task changed could not be committed");
        }
    }

    /// What a failed attempt leaves is kept under a name of its own, so that the next task begins from a clean tree.
    pub fn put_aside(&self, task: &str, attempt: u32) {
        if !self.is_own || self.dirty().is_empty() {
            return;
        }
        let kept = self.git_as_someone(&["add", "--all"]);
        let kept = kept.and_then(|()| {
            let created = git(&self.root(), ["stash", "create"])?;
            let reference = format!("refs/callboard/{}/{attempt}", task.replace([':', '@'], "-"));
            git(&self.root(), ["update-ref", reference.as_str(), created.trim()])?;
            git(&self.root(), ["reset", "--quiet", "--hard"])
        });
        if let Err(error) = kept {
            tracing::warn!(error = format!("{error:#}"), task, "what the failed attempt left stays in the worktree");
        }
    }

    /// A commit needs a name, and a machine may have none.
    fn git_as_someone(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let root = self.root();
        let mut all = vec!["-c", "commit.gpgsign=false"];
        if git(&root, ["config", "user.email"]).is_err() {
            all.extend(["-c", "user.name=callboard", "-c", "user.email=callboard@localhost"]);
        }
        all.extend(arguments);
        git(&root, all).map(drop)
    }
}

fn root(directory: &Path) -> Option<PathBuf> {
    Repository::containing(directory)?.root
}

fn names(listed: &str) -> impl Iterator<Item = String> + '_ {
    listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned)
}

/// What git prints, or its error. Hooks of an outer git must not lead it elsewhere.
fn git<A: AsRef<OsStr>>(directory: &Path, arguments: impl IntoIterator<Item = A>) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(arguments).stdin(Stdio::null());
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    let output = command.env("GIT_TERMINAL_PROMPT", "0").output().context("git could not be started")?;
    if !output.status.success() {
        bail!("git: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
