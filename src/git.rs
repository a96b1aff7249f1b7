//! Runs git as a process, for what its files do not say. Git then runs no hooks and no filters,
//! fetches nothing, asks for no password and takes no lock. It is killed when it takes too long. What an agent wrote
//! is checked before it becomes an argument.

pub(crate) mod change;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::config::TOKEN_VARIABLE;

/// Options against a command that agents may have written into the configuration, and that git asks
/// which files have changed.
pub(crate) const NO_MONITOR: [&str; 2] = ["-c", "core.fsmonitor=false"];
/// Options against hooks, and against names that are patterns.
const CAUTIOUS: [&str; 3] = ["--literal-pathspecs", "-c", "core.hooksPath=/dev/null"];
/// Largest output that is read, in bytes.
const OUTPUT: u64 = 4 << 20;
/// Most files that one question is about.
const FILES: usize = 200;
/// Digits of a commit in a command for people and models.
const SHORT: usize = 12;

/// How a commit stands to what is checked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is an ancestor, or what it changes is there all the same, as after a squash merge.
    Here,
    Elsewhere,
    /// The repository does not have it.
    Unknown,
}

/// A checkout, to be asked until a time.
pub(crate) struct Git<'a> {
    root: &'a Path,
    until: Instant,
}

impl<'a> Git<'a> {
    /// `root` is the toplevel of a worktree.
    pub(crate) fn at(root: &'a Path, patience: Duration) -> Self {
        Self { root, until: Instant::now() + patience }
    }

    /// Files that are changed or new and not committed, among `files` if given. `None` if git does
    /// not say so in time, or of all of them.
    pub(crate) fn uncommitted(&self, files: Option<&[String]>) -> Option<Vec<String>> {
        // Without any name, git would be asked of all files.
        if files.is_some_and(<[String]>::is_empty) {
            return Some(Vec::new());
        }
        let status =
            ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty", "--"];
        let is_inside =
            |file: &String| !file.starts_with('/') && !file.split('/').any(|part| part == "..");
        if files.is_some_and(|files| files.len() > FILES || !files.iter().all(is_inside)) {
            return None;
        }
        let named = files.into_iter().flatten().map(String::as_str);
        let (code, text) = self.ask_without(&self.filters()?, status.into_iter().chain(named))?;
        // Each entry is two letters, a space and the name.
        let names =
            text.split('\0').filter_map(|entry| entry.get(3..)).filter(|name| !name.is_empty());
        (code == 0).then(|| names.map(str::to_owned).collect())
    }

    /// The branch that is checked out; none on a detached head.
    pub(crate) fn branch(&self) -> Option<String> {
        let (code, text) = self.ask(["symbolic-ref", "--quiet", "--short", "HEAD"])?;
        Some(text.trim_end().to_owned()).filter(|name| code == 0 && !name.is_empty())
    }

    /// The commit that is checked out.
    pub(crate) fn head(&self) -> Option<String> {
        let (code, text) = self.ask(["rev-parse", "--quiet", "--verify", "HEAD"])?;
        Some(text.trim_end().to_owned()).filter(|commit| code == 0 && is_commit(commit))
    }

    /// The commit that a local branch is at.
    pub(crate) fn tip(&self, branch: &str) -> Option<String> {
        let reference = format!("refs/heads/{branch}^{{commit}}");
        let (code, text) =
            self.ask(["rev-parse", "--verify", "--quiet", "--end-of-options", &reference])?;
        Some(text.trim().to_owned()).filter(|tip| code == 0 && is_commit(tip))
    }

    /// How `commit` stands to `HEAD`. `None` if it is not a commit's id, or git does not say in
    /// time.
    pub(crate) fn standing(&self, commit: &str) -> Option<Standing> {
        if !is_commit(commit) {
            return None;
        }
        match self.ask(["merge-base", "--is-ancestor", commit, "HEAD"])?.0 {
            0 => Some(Standing::Here),
            1 if self.is_merged_otherwise(commit)? => Some(Standing::Here),
            1 => Some(Standing::Elsewhere),
            _ => Some(Standing::Unknown),
        }
    }

    /// True if all files that `commit` changed since it parted from `HEAD` are in `HEAD` as it has
    /// them.
    fn is_merged_otherwise(&self, commit: &str) -> Option<bool> {
        let (code, base) = self.ask(["merge-base", commit, "HEAD"])?;
        let base = base.trim();
        if code != 0 || !is_commit(base) {
            return Some(false);
        }
        let changed = self.changed(base, commit)?;
        let differs: HashSet<_> = self.changed(commit, "HEAD")?.into_iter().collect();
        Some(!changed.is_empty() && changed.iter().all(|name| !differs.contains(name)))
    }

    /// What git shows of the change from one commit to another, or to the files as they are.
    /// `None` if git has nothing of it, or it is too large.
    pub(crate) fn diff(&self, from: &str, to: Option<&str>, files: &[String]) -> Option<String> {
        let how = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--stat", "--patch"];
        let (code, text) = self.ask_without(
            &self.filters()?,
            how.into_iter()
                .chain([from])
                .chain(to)
                .chain(["--"])
                .chain(files.iter().map(String::as_str)),
        )?;
        (code == 0).then_some(text)
    }

    /// The commit at which two have parted.
    pub(crate) fn parted(&self, one: &str, other: &str) -> Option<String> {
        let (code, base) = self.ask(["merge-base", one, other])?;
        Some(base.trim().to_owned()).filter(|base| code == 0 && is_commit(base))
    }

    /// The first parent of a commit.
    pub(crate) fn parent(&self, commit: &str) -> Option<String> {
        let before = format!("{commit}^");
        let (code, text) =
            self.ask(["rev-parse", "--verify", "--quiet", "--end-of-options", &before])?;
        Some(text.trim().to_owned()).filter(|parent| code == 0 && is_commit(parent))
    }

    fn changed(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let (code, text) =
            self.ask(["diff-tree", "-r", "--name-only", "--no-renames", "-z", from, to])?;
        (code == 0)
            .then(|| text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Settings of the commands through which git passes files that it reads or writes. The
    /// repository's configuration names them, which agents can write to.
    fn filters(&self) -> Option<Vec<String>> {
        let names = r"^filter\..*\.(clean|smudge|process|required)$";
        let (code, text) = self.ask(["config", "--name-only", "-z", "--get-regexp", names])?;
        let names = text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned);
        // Exit code 1 says that there are none.
        (code <= 1).then(|| names.collect())
    }

    fn ask<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Option<(i32, String)> {
        self.ask_without(&[], arguments)
    }

    /// Exit code and output, with these settings empty. It prints into a file, since what it leaves running would keep a pipe
    /// open.
    fn ask_without<A: AsRef<OsStr>>(
        &self,
        settings: &[String],
        arguments: impl IntoIterator<Item = A>,
    ) -> Option<(i32, String)> {
        let mut command = command(self.root);
        if !settings.is_empty() {
            command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        }
        for (number, name) in settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{number}"), name);
            command.env(format!("GIT_CONFIG_VALUE_{number}"), "");
        }
        command
            .args(NO_MONITOR)
            .args(CAUTIOUS)
            .args(arguments)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1");
        let output = tempfile::tempfile().ok()?;
        let git = command.stdout(output.try_clone().ok()?).stderr(Stdio::null()).spawn().ok()?;
        let status = ended(git, self.until).ok().flatten()?;
        Some((status.code()?, text_of(output)?))
    }
}

/// Git in `directory`. Variables of an outer git do not lead it elsewhere, a signal typed to end
/// this process does not end it halfway, and what the repository has it run gets no token.
pub(crate) fn command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(directory)
        .stdin(Stdio::null())
        .process_group(0)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove(TOKEN_VARIABLE);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    command
}

/// The status of git if it ends in time; otherwise it is killed with all that it has started.
pub(crate) fn ended(mut git: Child, until: Instant) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = git.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            let _ = kill_process_group(Pid::from_child(&git), Signal::KILL);
            return git.wait().map(|_| None);
        }
        // Most calls take a few milliseconds.
        sleep((start.elapsed() / 8).clamp(Duration::from_millis(1), Duration::from_millis(50)));
    }
}

/// True for an object id, whole or shortened.
pub(crate) fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The command that brings a commit into the checkout.
pub(crate) fn merge(commit: &str, standing: Standing) -> Option<String> {
    let short = commit.get(..SHORT).unwrap_or(commit);
    match standing {
        Standing::Here => None,
        Standing::Elsewhere => Some(format!("git merge {short}")),
        Standing::Unknown => Some(format!("git fetch --all && git merge {short}")),
    }
}

/// What was printed; none if that is too much, as a part of it would pass for the whole.
fn text_of(mut file: File) -> Option<String> {
    let mut bytes = Vec::new();
    if file.metadata().ok()?.len() > OUTPUT {
        return None;
    }
    file.rewind().ok()?;
    file.take(OUTPUT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A repository in which `main` has one commit.
    struct Disk(tempfile::TempDir);

    impl Disk {
        fn new() -> Self {
            let disk = Self(tempfile::tempdir().expect("a directory"));
            disk.run(&["init", "--quiet", "--initial-branch=main"]);
            disk.commit("a.txt", "one");
            disk
        }

        fn run(&self, arguments: &[&str]) -> String {
            let mut command = Command::new("git");
            command
                .current_dir(&self.0)
                .args(["-c", "user.name=t", "-c", "user.email=t@t"])
                .args(arguments);
            let output = command.output().expect("git runs");
            assert!(
                output.status.success(),
                "{arguments:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).expect("text").trim().to_owned()
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.0.path().join(name), text).expect("written");
        }

        fn commit(&self, name: &str, text: &str) -> String {
            self.write(name, text);
            self.run(&["add", "."]);
            self.run(&["commit", "--quiet", "-m", name]);
            self.run(&["rev-parse", "HEAD"])
        }

        fn git(&self) -> Git<'_> {
            Git::at(self.0.path(), PATIENCE)
        }
    }

    #[test]
    fn a_commit_is_here_once_it_is_merged_in_whatever_way() {
        let disk = Disk::new();
        disk.run(&["switch", "--quiet", "-c", "topic"]);
        disk.commit("b.txt", "two");
        let topic = disk.commit("c.txt", "three");
        assert_eq!(disk.git().standing(&topic), Some(Standing::Here));
        assert_eq!(disk.git().tip("topic").as_ref(), Some(&topic));
        disk.run(&["switch", "--quiet", "main"]);
        disk.commit("d.txt", "four");
        assert_eq!(disk.git().standing(&topic), Some(Standing::Elsewhere));
        disk.run(&["merge", "--quiet", "--squash", "topic"]);
        disk.run(&["commit", "--quiet", "-m", "squashed"]);
        assert_eq!(disk.git().standing(&topic), Some(Standing::Here), "squashed");
        disk.commit("c.txt", "changed since");
        assert_eq!(
            disk.git().standing(&topic),
            Some(Standing::Elsewhere),
            "changed since the squash"
        );
        disk.run(&["merge", "--quiet", "--strategy=ours", "-m", "merged", "topic"]);
        assert_eq!(disk.git().standing(&topic[..10]), Some(Standing::Here), "merged");
    }

    #[test]
    fn what_is_no_commit_of_the_repository_is_unknown_and_what_is_no_id_is_not_asked_for() {
        let disk = Disk::new();
        assert_eq!(disk.git().standing(&"0".repeat(40)), Some(Standing::Unknown));
        for text in ["--help", "HEAD", "main; rm -rf .", "", "abc"] {
            assert_eq!(disk.git().standing(text), None, "{text}");
        }
        assert_eq!(disk.git().tip("--help"), None);
        let outside = tempfile::tempdir().expect("a directory");
        assert_eq!(Git::at(outside.path(), PATIENCE).uncommitted(None), None);
    }

    #[test]
    fn uncommitted_files_are_named_and_no_hook_is_run() {
        let disk = Disk::new();
        let mark = disk.0.path().join("ran");
        disk.run(&["config", "core.fsmonitor", &format!("touch {}; false", mark.display())]);
        assert_eq!(disk.git().uncommitted(None), Some(Vec::new()));
        disk.write("a.txt", "changed");
        disk.write("new [1].txt", "new");
        assert_eq!(
            disk.git().uncommitted(None),
            Some(vec!["a.txt".to_owned(), "new [1].txt".to_owned()])
        );
        let asked = ["new [1].txt", "missing.txt"].map(str::to_owned);
        assert_eq!(disk.git().uncommitted(Some(&asked)), Some(vec!["new [1].txt".to_owned()]));
        for unsaid in ["/etc/passwd", "../x"] {
            assert_eq!(
                disk.git().uncommitted(Some(&[unsaid.to_owned()])),
                None,
                "{unsaid} is not the repository's"
            );
        }
        let too_many: Vec<_> = (0..=FILES).map(|number| number.to_string()).collect();
        assert_eq!(disk.git().uncommitted(Some(&too_many)), None);
        assert_eq!(
            disk.git().uncommitted(Some(&["*.txt".to_owned()])),
            Some(Vec::new()),
            "a name is no pattern"
        );
        assert!(!mark.exists());
    }

    #[test]
    fn filters_of_the_repository_are_not_run() {
        let disk = Disk::new();
        let mark = disk.0.path().join(".git/ran");
        disk.write(".gitattributes", "*.txt filter=mine=x\n*.bin filter=long\n");
        disk.run(&["add", ".gitattributes"]);
        disk.run(&["commit", "--quiet", "-m", "attributes"]);
        let touch = format!("touch '{}'; cat", mark.display());
        for name in ["mine=x.clean", "mine=x.smudge", "long.process"] {
            disk.run(&["config", &format!("filter.{name}"), &touch]);
        }
        disk.run(&["config", "filter.mine=x.required", "true"]);
        disk.write("a.txt", "two");
        disk.write("b.bin", "two");
        let changed = Some(vec!["a.txt".to_owned(), "b.bin".to_owned()]);
        assert_eq!(disk.git().uncommitted(None), changed);
        assert!(!mark.exists(), "a filter was run");
        disk.run(&["add", "a.txt"]);
        assert!(mark.exists(), "git runs them when nothing keeps it from it");
    }

    #[test]
    fn git_that_takes_too_long_is_not_waited_for() {
        let slow = Command::new("sleep").arg("600").process_group(0).spawn().expect("started");
        assert_eq!(ended(slow, Instant::now()).expect("it is killed"), None);
    }
}
