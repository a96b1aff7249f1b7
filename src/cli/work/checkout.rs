//! The directory in which a worker's command runs, and what the command changed there, as git
//! reports it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};

use super::git::git;
use super::own::Own;
use crate::state::limit;
use crate::state::task::Place;
use crate::state::time::Timestamp;
use crate::worktree::{Repository, Worktree};

/// Prefix of the references under which git keeps what was not completed.
const ASIDE: &str = "refs/callboard";
const LONGEST_SUBJECT: usize = 72;

#[derive(Clone, Debug)]
pub(super) struct Checkout {
    directory: PathBuf,
    /// Root of the worktree that contains the directory, if there is one.
    root: Option<PathBuf>,
    /// The agent's own worktree, if it has one: changes are committed there, and what a failure
    /// leaves is put aside.
    own: Option<Arc<Own>>,
    /// Nobody else works here, so that all changes are known to be the task's.
    is_told: bool,
}

/// State of the checkout before a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    head: Option<String>,
    dirty: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub modified: Vec<String>,
    pub created: Vec<String>,
    pub branch: Option<String>,
    pub commit: Option<String>,
}

impl Checkout {
    /// A checkout of the directory that the worker was started in.
    pub(super) fn shared(directory: &Path, is_alone: bool) -> Self {
        Self {
            directory: directory.to_owned(),
            root: root(directory),
            own: None,
            is_told: is_alone,
        }
    }

    /// The agent's own worktree and branch, created if they do not exist.
    pub(super) fn own(directory: &Path, board: &Path, agent: &str) -> anyhow::Result<Self> {
        let own = Own::of(directory, board, agent)?;
        let inside = root(directory);
        let below = inside.and_then(|inside| {
            fs::canonicalize(directory).ok()?.strip_prefix(inside).map(Path::to_owned).ok()
        });
        let directory = own.path.join(below.unwrap_or_default());
        Ok(Self {
            root: Some(own.path.clone()),
            directory,
            own: Some(Arc::new(own)),
            is_told: true,
        })
    }

    /// The directory to run the command in: the root of an own worktree if the directory below does
    /// not exist there.
    pub(super) fn directory(&self) -> &Path {
        match &self.own {
            Some(own) if !self.directory.is_dir() => &own.path,
            _ => &self.directory,
        }
    }

    /// Creates an own worktree that does not exist, as before the first task or after a task has
    /// removed it. Returns what to report about that.
    pub(super) fn be_there(
        &self,
        agent: &str,
        at: Timestamp,
        before: &Before,
    ) -> anyhow::Result<Option<String>> {
        let Some(own) = &self.own else {
            // In another directory, the command might do harm.
            if !self.directory.is_dir() {
                bail!(
                    "{} is not there any more; a task may have removed or moved it",
                    self.directory.display()
                );
            }
            return Ok(None);
        };
        if own.kept().is_some() {
            // An earlier try may have left a lock, with which git could do nothing in this one.
            unlock(own);
            return Ok(None);
        }
        let away = own.make(&left_by(agent, at), before.head.as_deref())?;
        Ok(away.map(|away| {
            format!("what was in the place of {} is {}", own.path.display(), away.display())
        }))
    }

    fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// The present worktree, branch and head.
    pub(super) fn place(&self) -> Place {
        Worktree::at(self.directory()).map(Place::from).unwrap_or_default()
    }

    pub(super) fn before(&self) -> Before {
        if !self.is_told || self.root.is_none() {
            return Before::default();
        }
        Before { head: self.head().ok(), dirty: self.dirty().unwrap_or_default() }
    }

    /// The state before a task that continues here after its worker was killed: in the agent's own
    /// worktree, everything since `head` is the task's.
    pub(super) fn before_what_goes_on(&self, head: Option<&str>) -> Before {
        let now = self.before();
        let Some(own) = &self.own else { return now };
        unlock(own);
        let is_before = |head: &&str| {
            head.bytes().all(|byte| byte.is_ascii_hexdigit())
                && git(self.directory(), ["merge-base", "--is-ancestor", head, "HEAD"]).is_ok()
        };
        Before {
            head: head.filter(is_before).map(str::to_owned).or(now.head),
            dirty: BTreeSet::new(),
        }
    }

    fn head(&self) -> anyhow::Result<String> {
        let head = git(self.directory(), ["rev-parse", "--verify", "--quiet", "HEAD"])?;
        Ok(head.trim().to_owned())
    }

    /// Uncommitted files. Of a submodule, only another commit is a change that can be committed
    /// here.
    fn dirty(&self) -> anyhow::Result<BTreeSet<String>> {
        let changed =
            git(&self.root(), ["diff", "--name-only", "--ignore-submodules=dirty", "-z", "HEAD"])?;
        Ok(names(&changed).chain(names(&self.untracked()?)).collect())
    }

    fn untracked(&self) -> anyhow::Result<String> {
        git(&self.root(), ["ls-files", "--others", "--exclude-standard", "-z"])
    }

    pub(super) fn root(&self) -> PathBuf {
        self.root.clone().unwrap_or_else(|| self.directory.clone())
    }

    /// The changes since `before`, committed if the worktree is the agent's own, and what to report
    /// about that.
    pub(super) fn done(
        &self,
        before: &Before,
        subject: &str,
        task: &str,
    ) -> anyhow::Result<(Changes, Option<String>)> {
        let Some(head) = before.head.as_deref() else { return Ok(Default::default()) };
        if let Some(own) = &self.own {
            own.kept()
                .with_context(|| format!("{} is no worktree any more", own.path.display()))?;
            own.unlock()?;
            self.commit(subject, task).context("what the task changed could not be committed")?;
        }
        let (mut changes, mut problem) = (Changes::default(), None);
        let looking =
            ["diff", "--name-status", "--no-renames", "--ignore-submodules=dirty", "-z", head];
        let changed = git(&self.root(), looking).unwrap_or_default();
        let mut fields = names(&changed);
        while let (Some(status), Some(name)) = (fields.next(), fields.next()) {
            let list = if status == "A" { &mut changes.created } else { &mut changes.modified };
            list.push(name);
        }
        changes.created.extend(names(&self.untracked().unwrap_or_default()));
        for list in [&mut changes.modified, &mut changes.created] {
            list.retain(|name| !before.dirty.contains(name) && name.len() <= limit::PATH.max);
            list.truncate(limit::FILES.max);
        }
        if let Some(own) = &self.own {
            // A task may have left the branch, or set it back behind commits of earlier tasks.
            let reference = format!("{ASIDE}/done/{}", name_of(task));
            let now = self.head()?;
            [head, now.as_str()]
                .into_iter()
                .try_for_each(|commit| own.keep_unless_named(&reference, commit))?;
            problem = self.told_of_nested(head, task)?;
        }
        let now = self.place();
        changes.branch = now.branch;
        changes.commit = now.head.filter(|commit| self.is_own() || commit != head);
        Ok((changes, problem))
    }

    /// Reports a repository inside this one: git keeps only its commit's number, which nobody else
    /// could resolve.
    fn told_of_nested(&self, head: &str, task: &str) -> anyhow::Result<Option<String>> {
        let root = self.root();
        let raw = git(&root, ["diff", "--raw", "--no-renames", "-z", head, "HEAD"])?;
        let submodules =
            git(&root, ["config", "--file", ".gitmodules", "-z", "--get-regexp", r"\.path$"]);
        let submodules = submodules.unwrap_or_default();
        let is_submodule =
            |name: &str| names(&submodules).any(|entry| entry.ends_with(&format!("\n{name}")));
        let mut fields = names(&raw);
        while let (Some(modes), Some(name)) = (fields.next(), fields.next()) {
            if !modes.starts_with(":160000") && modes.contains(" 160000 ") && !is_submodule(&name) {
                return Ok(Some(format!(
                    "{task}: {name} is a repository of its own, and of its files none is in the \
                     commit: they are in {} alone; make it a submodule, or remove {name}/.git and \
                     commit them",
                    root.join(&name).display()
                )));
            }
        }
        Ok(None)
    }

    fn commit(&self, subject: &str, task: &str) -> anyhow::Result<()> {
        if self.dirty()?.is_empty() {
            return Ok(());
        }
        let subject: String = subject.chars().take(LONGEST_SUBJECT).collect();
        let message = format!("{subject}\n\nTask: {task}");
        self.git_as_someone(&["add", "--all"])?;
        if !git(&self.root(), ["diff", "--cached", "--name-only", "-z", "HEAD"])?.is_empty() {
            self.git_as_someone(&["commit", "--quiet", "-m", &message])?;
        }
        Ok(())
    }

    /// Keeps what an uncompleted attempt leaves, including its commits, under a name of its own, so
    /// that the next task starts where this one did. Returns what to report.
    pub(super) fn put_aside(
        &self,
        before: &Before,
        task: &str,
        attempt: u32,
    ) -> anyhow::Result<Option<String>> {
        self.put_under(&format!("{ASIDE}/{}/{attempt}", name_of(task)), before.head.as_deref())
    }

    /// Puts aside whatever is left that cannot be attributed to a task.
    pub(super) fn put_rest_aside(
        &self,
        agent: &str,
        at: Timestamp,
    ) -> anyhow::Result<Option<String>> {
        self.put_under(&left_by(agent, at), None)
    }

    /// Keeps the leftovers under a reference or, if git cannot keep all of them, by moving the
    /// whole worktree aside.
    fn put_under(&self, reference: &str, head: Option<&str>) -> anyhow::Result<Option<String>> {
        let Some(own) = &self.own else { return Ok(None) };
        let Err(error) = self.try_put_under(own, reference, head) else { return Ok(None) };
        let away = own.make(reference, head)?;
        Ok(away.map(|away| {
            format!(
                "not all that was left could be put aside ({error:#}); it is in {}",
                away.display()
            )
        }))
    }

    /// Afterwards the worktree is at `head` or, if there is none, at the tip of the agent's branch,
    /// where completed work is.
    fn try_put_under(&self, own: &Own, reference: &str, head: Option<&str>) -> anyhow::Result<()> {
        let root = self.root();
        own.kept().with_context(|| format!("{} is no worktree", root.display()))?;
        own.unlock()?;
        let is_dirty = !self.dirty()?.is_empty();
        let (now, tip) = (
            self.head()?,
            own.tip().with_context(|| format!("the branch {} is gone", own.branch))?,
        );
        let head = head.unwrap_or(&tip);
        let mut kept = now.clone();
        if is_dirty {
            self.git_as_someone(&["add", "--all"])?;
            let created = self.git_as_someone(&["stash", "create"])?;
            // The stash commit's parent is what is checked out, so that is kept with it. There may
            // be nothing to stash.
            kept = Some(created.trim())
                .filter(|created| !created.is_empty())
                .unwrap_or(&now)
                .to_owned();
        }
        for commit in [&kept, &tip] {
            if !own.is_within(commit, head) {
                own.keep(reference, commit)?;
            }
        }
        own.end_half_done(reference)?;
        if self.place().branch.as_ref() != Some(&own.branch) {
            git(&root, ["checkout", "--quiet", "--force", &own.branch])?;
        }
        if is_dirty || self.head()? != head {
            git(&root, ["reset", "--quiet", "--hard", head])?;
        }
        if is_dirty && let Some(name) = self.unkept()? {
            bail!("{name} stays there");
        }
        Ok(())
    }

    /// Something left that git could not take along: a repository, or a submodule's commit. Any
    /// other file that still differs would do so after every reset, as with line ends that git
    /// would write otherwise.
    fn unkept(&self) -> anyhow::Result<Option<String>> {
        if let Some(name) = names(&self.untracked()?).next() {
            return Ok(Some(name));
        }
        let raw = git(
            &self.root(),
            ["diff", "--raw", "--no-renames", "--ignore-submodules=dirty", "-z", "HEAD"],
        )?;
        let mut fields = names(&raw);
        while let (Some(modes), Some(name)) = (fields.next(), fields.next()) {
            if modes.starts_with(":160000") || modes.contains(" 160000 ") {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Runs git with a fallback for user.name and user.email: a commit needs both, and a machine
    /// may have either or none.
    fn git_as_someone(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let root = self.root();
        let mut all = Vec::new();
        for (name, unless_set) in
            [("user.name", "user.name=callboard"), ("user.email", "user.email=callboard@localhost")]
        {
            if git(&root, ["config", name]).is_ok_and(|set| !set.trim().is_empty()) {
                continue;
            }
            all.extend(["-c", unless_set]);
        }
        all.extend(arguments);
        git(&root, all)
    }
}

fn unlock(own: &Own) {
    if let Err(error) = own.unlock() {
        tracing::warn!(error = format!("{error:#}"), "a lock of git's stays");
    }
}

/// An id as a component of a reference, changed only where git would not accept it.
pub(super) fn name_of(id: &str) -> String {
    let name = id.replace(':', "-").replace("..", "--");
    let ending =
        [".lock", "."].into_iter().find_map(|ending| Some((name.strip_suffix(ending)?, ending)));
    ending.map_or_else(
        || name.clone(),
        |(start, ending)| format!("{start}{}", ending.replace('.', "-")),
    )
}

/// Reference for leftovers that cannot be attributed to a task.
fn left_by(agent: &str, at: Timestamp) -> String {
    format!("{ASIDE}/left/{agent}/{}", at.millis())
}

fn root(directory: &Path) -> Option<PathBuf> {
    Repository::containing(directory)?.root
}

fn names(listed: &str) -> impl Iterator<Item = String> + '_ {
    listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn every_id_gives_a_part_of_a_reference_that_git_takes() {
        for (id, name) in [
            ("task-7f3k", "task-7f3k"),
            ("a.b@c+d_e", "a.b@c+d_e"),
            ("P1:M2", "P1-M2"),
            ("t1-Cargo.lock", "t1-Cargo-lock"),
            ("a..b...c....d", "a--b--.c----d"),
            ("end.", "end-"),
            ("end..", "end--"),
            ("a.lock.", "a.lock-"),
        ] {
            assert_eq!(name_of(id), name);
            let reference = format!("{ASIDE}/done/{name}");
            let status = Command::new("git").args(["check-ref-format", &reference]).status();
            assert!(status.expect("git").success(), "{reference}");
        }
    }
}
