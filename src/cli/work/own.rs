//! An agent's own worktree, on a branch of its own: how it is created, and created again if what a
//! task has left there cannot be cleared away. No commit and no file is lost.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fs_err as fs;

use super::git::{end_rest, git};
use crate::worktree::Repository;

/// Directory of the worktrees below the board's directory, which git ignores.
const WORKTREES: &str = "worktrees";
const BRANCHES: &str = "callboard";
/// Names that are tried for one commit.
const NAMES: u32 = 100;
/// Directories in a worktree's git directory that hold an unfinished rebase, or patches being
/// applied.
const HALF_DONE: [&str; 2] = ["rebase-merge", "rebase-apply"];
/// Files in them that name commits which may have no other name: where it began, and what was
/// uncommitted then.
const NAMING: [&str; 2] = ["orig-head", "autostash"];
/// File that names what was uncommitted when a merge began.
const MERGE_AUTOSTASH: &str = "MERGE_AUTOSTASH";
/// Bytes that no commit's name exceeds.
const ONE_LINE: u64 = 100;
/// Prefix of the files of an unfinished `git bisect`.
const BISECT: &str = "BISECT_";

#[derive(Debug)]
pub(super) struct Own {
    repository: Repository,
    /// Root of the main worktree, in which git is asked about the repository.
    main: PathBuf,
    /// Path of the worktree, canonical, as git names it.
    pub path: PathBuf,
    pub branch: String,
    /// Commit at which the branch begins.
    start: String,
}

impl Own {
    pub(super) fn of(directory: &Path, board: &Path, agent: &str) -> anyhow::Result<Self> {
        let (repository, start) = Self::start(directory)?;
        let main = repository.main_root();
        let worktrees = board.join(WORKTREES);
        fs::create_dir_all(&worktrees)?;
        Ok(Self {
            repository,
            main,
            path: fs::canonicalize(worktrees)?.join(agent),
            branch: format!("{BRANCHES}/{agent}"),
            start,
        })
    }

    /// The repository, and the commit at which branches begin.
    pub(super) fn start(directory: &Path) -> anyhow::Result<(Repository, String)> {
        let Some(repository) = Repository::containing(directory) else {
            bail!("--worktree needs a git repository, and {} is in none", directory.display())
        };
        let Ok(start) = git(directory, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        else {
            bail!("--worktree needs a commit to begin with; make one, then try again");
        };
        Ok((repository, start.trim().to_owned()))
    }

    /// The worktree or branch that an earlier workflow of the same name has left.
    pub(super) fn left(directory: &Path, board: &Path, agent: &str) -> Option<String> {
        let path = board.join(WORKTREES).join(agent);
        if path.symlink_metadata().is_ok() {
            return Some(format!("the worktree {}", path.display()));
        }
        let branch = format!("{BRANCHES}/{agent}");
        tip(directory, &branch).map(|_| format!("the branch {branch}"))
    }

    /// The git directory of this worktree, if the worktree exists and belongs to the repository.
    pub(super) fn kept(&self) -> Option<PathBuf> {
        let found = Repository::containing(&self.path)
            .filter(|found| found.root.as_deref() == Some(&self.path))?;
        found.kept_by(&self.repository).map(Path::to_owned)
    }

    /// Creates the worktree at `head` or, if there is none, at the tip or the start of the branch.
    /// What is in its place is moved away, and its new path is returned. A commit that nothing
    /// would name any more is kept as `reference`.
    pub(super) fn make(
        &self,
        reference: &str,
        head: Option<&str>,
    ) -> anyhow::Result<Option<PathBuf>> {
        // An unfinished rebase keeps hold of the branch, wherever its worktree is.
        if let Err(error) = self.end_half_done(reference) {
            tracing::warn!(error = format!("{error:#}"), "what a task has begun is not ended");
        }
        let away = self.move_away()?;
        let made = self.make_in_free_place(reference, head);
        made.with_context(|| match &away {
            Some(away) => format!(
                "{} could not be made; what was there is {}",
                self.path.display(),
                away.display()
            ),
            None => format!("the worktree {} could not be made", self.path.display()),
        })?;
        Ok(away)
    }

    fn make_in_free_place(&self, reference: &str, head: Option<&str>) -> anyhow::Result<()> {
        self.forget(reference)?;
        self.free_branch()?;
        let tip = self.tip();
        let head = head.or(tip.as_deref()).unwrap_or(&self.start);
        if let Some(tip) = tip.as_deref().filter(|tip| !self.is_within(tip, head)) {
            self.keep(reference, tip)?;
        }
        let arguments = ["worktree", "add", "-B", &self.branch].map(OsStr::new);
        git(&self.main, arguments.into_iter().chain([self.path.as_os_str(), head.as_ref()]))
            .map(drop)
    }

    /// Moves what is in the place away. It stays a worktree, so that its index, commits and
    /// submodules are kept; only the branch becomes free.
    fn move_away(&self) -> anyhow::Result<Option<PathBuf>> {
        // An empty directory holds nothing to keep.
        if self.path.symlink_metadata().is_err() || fs::remove_dir(&self.path).is_ok() {
            return Ok(None);
        }
        let kept = self.kept();
        let name = self.path.file_name().unwrap_or_default().display();
        let mut names =
            (1u32..).map(|number| self.path.with_file_name(format!("{name}.left-{number}")));
        let away =
            names.find(|path| path.symlink_metadata().is_err()).context("no name is free")?;
        // gitrepository-layout(5) says to update `gitdir` after a worktree was moved by hand.
        // Everything that needs disk space comes first: half a move would be in the way of
        // all later work.
        let gitdir = kept.map(|kept| kept.join("gitdir"));
        let written = gitdir.as_ref().map(|gitdir| gitdir.with_extension("new"));
        if let Some(written) = &written {
            detach(&self.path)?;
            fs::write(written, [away.join(".git").as_os_str().as_bytes(), b"\n"].concat())?;
        }
        fs::rename(&self.path, &away)?;
        if let (Some(gitdir), Some(written)) = (gitdir, written) {
            fs::rename(written, gitdir)?;
        }
        Ok(Some(away))
    }

    /// Removes git's locks, which remain if a process is killed while git changes a worktree, and
    /// ends such a git if it still runs. An agent has only one worker.
    pub(super) fn unlock(&self) -> anyhow::Result<()> {
        let Some(kept) = self.kept() else { return Ok(()) };
        let mut locks: Vec<_> = ["index.lock", "HEAD.lock"].map(|name| kept.join(name)).into();
        locks.retain(|lock| lock.symlink_metadata().is_ok());
        if !locks.is_empty() && end_rest(&self.path) {
            locks
                .iter()
                .filter(|lock| lock.symlink_metadata().is_ok())
                .try_for_each(fs::remove_file)?;
        }
        Ok(())
    }

    /// Ends what a task has begun and not finished, such as a rebase or a merge: in a later task,
    /// git would continue it, and set the branch back. Commits that only this named are kept as
    /// `reference`. Git's own commands would put uncommitted files among the stashes of the
    /// whole repository, and cannot end a bisect during a conflict.
    pub(super) fn end_half_done(&self, reference: &str) -> anyhow::Result<()> {
        let Some(kept) = self.kept() else { return Ok(()) };
        let naming = HALF_DONE.iter().flat_map(|dir| NAMING.map(|name| Path::new(dir).join(name)));
        for path in naming.chain([MERGE_AUTOSTASH.into()]).map(|name| kept.join(name)) {
            let is_short = path
                .symlink_metadata()
                .is_ok_and(|found| found.is_file() && found.len() <= ONE_LINE);
            let commit = if is_short { fs::read_to_string(path)? } else { continue };
            if self.is_within(commit.trim(), commit.trim()) {
                self.keep_unless_named(reference, commit.trim())?;
            }
        }
        for entry in fs::read_dir(&kept)? {
            let (path, name) = {
                let entry = entry?;
                (entry.path(), entry.file_name())
            };
            if HALF_DONE.iter().any(|dir| name == *dir) {
                fs::remove_dir_all(path)?;
            } else if name == MERGE_AUTOSTASH || name.as_bytes().starts_with(BISECT.as_bytes()) {
                fs::remove_file(path)?;
            }
        }
        // This also ends reverts and merges.
        git(&self.path, ["cherry-pick", "--quit"]).map(drop)
    }

    /// Makes the repository forget a worktree in this place that is gone. Others stay known: one
    /// may be on a disk that is not mounted now.
    fn forget(&self, reference: &str) -> anyhow::Result<()> {
        let listed = git(&self.main, ["worktree", "list", "--porcelain"])?;
        let is_own = |entry: &&str| {
            field(entry, "worktree ").is_some_and(|path| Path::new(&path) == self.path)
        };
        let Some(entry) = listed.split("\n\n").find(is_own) else { return Ok(()) };
        let head = field(entry, "HEAD ").filter(|head| self.is_within(head, head));
        if let Some(head) = head {
            self.keep_unless_named(reference, &head)?;
        }
        let remove =
            [OsStr::new("worktree"), "remove".as_ref(), "--force".as_ref(), self.path.as_os_str()];
        git(&self.main, remove).map(drop)
    }

    /// Frees the branch, which a moved worktree still holds if the disk was full during the move.
    fn free_branch(&self) -> anyhow::Result<()> {
        let listed = git(&self.main, ["worktree", "list", "--porcelain"])?;
        let branch = format!("refs/heads/{}", self.branch);
        let moved = format!("{}.left-", self.path.display());
        let holding =
            listed.split("\n\n").filter(|entry| field(entry, "branch ").as_ref() == Some(&branch));
        let paths = holding
            .filter_map(|entry| field(entry, "worktree "))
            .filter(|path| path.starts_with(&moved));
        paths.filter(|path| Path::new(path).is_dir()).try_for_each(|path| detach(Path::new(&path)))
    }

    /// Like [`Self::keep`], unless the commit is on the agent's branch or is reachable from some
    /// reference.
    pub(super) fn keep_unless_named(&self, reference: &str, commit: &str) -> anyhow::Result<()> {
        let is_on_branch = self.is_within(commit, &format!("refs/heads/{}", self.branch));
        if is_on_branch
            || !git(&self.main, ["for-each-ref", "--count=1", "--contains", commit])?.is_empty()
        {
            return Ok(());
        }
        self.keep(reference, commit)
    }

    /// Gives the commit the name `reference` or, if that is taken by another, one with a number.
    pub(super) fn keep(&self, reference: &str, commit: &str) -> anyhow::Result<()> {
        for number in 1..=NAMES {
            let name =
                if number == 1 { reference.to_owned() } else { format!("{reference}-{number}") };
            // The empty old value means that the reference must not exist yet.
            let kept = git(&self.main, ["update-ref", name.as_str(), commit, ""]);
            if kept.is_ok() || self.is_within(commit, &name) {
                return Ok(());
            }
        }
        bail!("no name could be given to {commit}, not even {reference}-{NAMES}")
    }

    pub(super) fn tip(&self) -> Option<String> {
        tip(&self.main, &self.branch)
    }

    /// Whether `commit` is `of` or an ancestor of it.
    pub(super) fn is_within(&self, commit: &str, of: &str) -> bool {
        git(&self.main, ["merge-base", "--is-ancestor", commit, of]).is_ok()
    }
}

/// Value of a field in an entry of `git worktree list --porcelain`.
fn field(entry: &str, name: &str) -> Option<String> {
    entry.lines().find_map(|line| Some(line.strip_prefix(name)?.to_owned()))
}

/// Detaches the worktree from its branch, at the same commit. A worktree without a commit holds no
/// existing branch.
fn detach(worktree: &Path) -> anyhow::Result<()> {
    let Ok(head) = git(worktree, ["rev-parse", "--verify", "--quiet", "HEAD"]) else {
        return Ok(());
    };
    let detached = git(worktree, ["update-ref", "--no-deref", "HEAD", head.trim()]);
    detached
        .map(drop)
        .with_context(|| format!("{} could not be taken off its branch", worktree.display()))
}

fn tip(directory: &Path, branch: &str) -> Option<String> {
    let reference = format!("refs/heads/{branch}");
    let tip = git(directory, ["rev-parse", "--verify", "--quiet", reference.as_str()]).ok()?;
    Some(tip.trim().to_owned())
}
