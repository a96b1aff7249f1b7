//! The worktree of one agent alone, on a branch of its own: how it is made, and how its branch loses no commit.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::git::git;
use crate::worktree::Repository;

/// Below the board's directory, which git ignores.
const WORKTREES: &str = "worktrees";
const BRANCHES: &str = "callboard";
/// Names that are tried for one commit.
const NAMES: u32 = 100;

#[derive(Debug)]
pub struct Own {
    /// Where its repository is asked.
    main: PathBuf,
    /// Canonical, as git names it.
    pub path: PathBuf,
    pub branch: String,
}

impl Own {
    pub fn of(directory: &Path, board: &Path, agent: &str) -> anyhow::Result<Self> {
        let main = Repository::containing(directory).map(|repository| repository.main_root());
        let Some(main) = main else {
            bail!("--worktree needs a git repository, and {} is in none", directory.display())
        };
        if git(&main, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).is_err() {
            bail!("--worktree needs a commit to begin with; make one, then try again");
        }
        let worktrees = board.join(WORKTREES);
        fs_err::create_dir_all(&worktrees)?;
        Ok(Self { main, path: fs_err::canonicalize(worktrees)?.join(agent), branch: format!("{BRANCHES}/{agent}") })
    }

    /// What an earlier work of the same name has left: its worktree or its branch.
    pub fn left(directory: &Path, board: &Path, agent: &str) -> Option<String> {
        let path = board.join(WORKTREES).join(agent);
        if path.symlink_metadata().is_ok() {
            return Some(format!("the worktree {}", path.display()));
        }
        let branch = format!("{BRANCHES}/{agent}");
        tip(directory, &branch).map(|_| format!("the branch {branch}"))
    }

    pub fn is_there(&self) -> bool {
        self.path.join(".git").exists()
    }

    /// Where there is none. A commit that nothing would name any more is kept as `reference`.
    pub fn make(&self, reference: &str) -> anyhow::Result<()> {
        self.forget(reference)?;
        let (add, path, branch) = ([OsStr::new("worktree"), "add".as_ref()], self.path.as_os_str(), &self.branch);
        let added = match self.tip() {
            Some(_) => git(&self.main, add.into_iter().chain([path, branch.as_ref()])),
            None => git(&self.main, add.into_iter().chain(["-b".as_ref(), branch.as_ref(), path])),
        };
        added.with_context(|| format!("the worktree {} could not be made", self.path.display()))?;
        Ok(())
    }

    /// What the repository knows of a worktree in this place that is gone. Of all others it keeps what it knows: a disk
    /// that is not mounted just now has its worktree still.
    fn forget(&self, reference: &str) -> anyhow::Result<()> {
        let listed = git(&self.main, ["worktree", "list", "--porcelain"])?;
        let field = |entry: &str, name: &str| entry.lines().find_map(|line| Some(line.strip_prefix(name)?.to_owned()));
        let is_own = |entry: &&str| field(entry, "worktree ").is_some_and(|path| Path::new(&path) == self.path);
        let Some(entry) = listed.split("\n\n").find(is_own) else { return Ok(()) };
        let head = field(entry, "HEAD ").filter(|head| self.is_within(head, head));
        if let Some(head) = head {
            self.keep_unless_named(reference, &head)?;
        }
        let remove = [OsStr::new("worktree"), "remove".as_ref(), "--force".as_ref(), self.path.as_os_str()];
        git(&self.main, remove).map(drop)
    }

    /// As [`Self::keep`], unless it is on the agent's branch or a reference names it or what was made from it.
    pub fn keep_unless_named(&self, reference: &str, commit: &str) -> anyhow::Result<()> {
        let is_on_branch = self.is_within(commit, &format!("refs/heads/{}", self.branch));
        if is_on_branch || !git(&self.main, ["for-each-ref", "--count=1", "--contains", commit])?.is_empty() {
            return Ok(());
        }
        self.keep(reference, commit)
    }

    /// Under that name, or one beside it if it is taken by another.
    pub fn keep(&self, reference: &str, commit: &str) -> anyhow::Result<()> {
        for number in 1..=NAMES {
            let name = if number == 1 { reference.to_owned() } else { format!("{reference}-{number}") };
            // An empty old value: only where there is none.
            let kept = git(&self.main, ["update-ref", name.as_str(), commit, ""]);
            if kept.is_ok() || self.is_within(commit, &name) {
                return Ok(());
            }
        }
        bail!("no name could be given to {commit}, not even {reference}-{NAMES}")
    }

    pub fn tip(&self) -> Option<String> {
        tip(&self.main, &self.branch)
    }

    /// Whether `commit` is `of` or what it was made from.
    pub fn is_within(&self, commit: &str, of: &str) -> bool {
        git(&self.main, ["merge-base", "--is-ancestor", commit, of]).is_ok()
    }
}

fn tip(directory: &Path, branch: &str) -> Option<String> {
    let reference = format!("refs/heads/{branch}");
    let tip = git(directory, ["rev-parse", "--verify", "--quiet", reference.as_str()]).ok()?;
    Some(tip.trim().to_owned())
}
