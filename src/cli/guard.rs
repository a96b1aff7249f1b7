//! `callboard guard`: whether another agent holds files that are about to be changed. It reads the
//! state file and waits for no lock, so that a git hook can call it.

use std::env;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;
use serde_json::{Value, json};

use super::connect::{self, quoted};
use super::hook::{Conversation, Scene, Tasks};
use super::print::{Page, Tone};
use super::wording::Wording;
use super::{Outcome, Session, usage_error};
use crate::config::TOKEN_VARIABLE;
use crate::git::NO_MONITOR;
use crate::state::reservation::Hold;
use crate::worktree::{Repository, Worktree};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Files that are about to be changed
    #[arg(value_name = "FILE", required_unless_present_any = ["staged", "install_git_hook"])]
    files: Vec<PathBuf>,
    /// Check the files that the next git commit changes
    #[arg(long, conflicts_with = "files")]
    staged: bool,
    /// Install git's pre-commit hook, which stops a commit of files that another agent holds;
    /// where no agent is named (--agent, CALLBOARD_AGENT, or the session that commits), files
    /// held from the same worktree pass
    #[arg(long, conflicts_with_all = ["files", "staged"])]
    install_git_hook: bool,
}

/// A file, and what others hold it for.
struct Held {
    file: String,
    holds: Vec<Hold>,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    if arguments.install_git_hook {
        return install(session);
    }
    let files = if arguments.staged { staged(&session.cwd) } else { arguments.files.clone() };
    // Without a board, nobody holds anything.
    let scene = Scene::look(session, None, Conversation::Any, Tasks::Held)?;
    let held = scene.as_ref().map(|scene| held(scene, &files)).unwrap_or_default();
    // Commands in the message are worded for the session's agent or, if it has none, for a person.
    let wording = match scene.as_ref().and_then(Scene::speaker) {
        Some(agent) => session.wording.of_agent(agent.as_str()),
        None => session.wording.of_nobody(),
    };
    let shown = held.iter().map(|one| json!({"file": one.file, "holds": one.holds}));
    let reply = json!({"free": held.is_empty(), "held": shown.collect::<Vec<Value>>()});
    session.show(&reply, |page| write(page, &held, &wording))?;
    Ok(if held.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(super::REFUSED) })
}

fn held(scene: &Scene, files: &[PathBuf]) -> Vec<Held> {
    let asked = files
        .iter()
        .map(|file| Held { file: file.display().to_string(), holds: scene.others_hold(file) });
    asked.filter(|one| !one.holds.is_empty()).collect()
}

fn write(page: &mut Page, held: &[Held], wording: &Wording) {
    for Held { file, holds } in held {
        for hold in holds {
            let task =
                hold.task.as_ref().map(|task| format!(" for task {task}")).unwrap_or_default();
            let reason =
                hold.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let until = page.when(hold.until);
            let text = format_args!(
                "{file} by {}{task}{reason}; ends {until} ({})",
                hold.agent, hold.until
            );
            page.marked("held:", Tone::Bad, text);
        }
    }
    if let Some(hold) = held.first().and_then(|one| one.holds.first()) {
        let ask = wording.line_of_agent(&format!("send {} TEXT --request", hold.agent));
        let ask = format!("ask with `{ask}`, wait, or change other files");
        page.field("next", format_args!("{ask}; `git commit --no-verify` goes past this"));
    }
}

/// The files that the next commit changes, as git lists them. In a hook, git has set the index of
/// this very commit in the environment.
fn staged(cwd: &Path) -> Vec<PathBuf> {
    let text =
        git(cwd, &["diff", "--cached", "--name-only", "--no-renames", "--no-relative", "-z"]);
    let root = Worktree::at(cwd).map_or_else(|| cwd.to_owned(), |worktree| worktree.root);
    text.split('\0').filter(|name| !name.is_empty()).map(|name| root.join(name)).collect()
}

/// The output of git, which runs nothing that the repository's configuration names. Without git or a repository this is a usage error: exit code 1 would say that
/// a file is held.
fn git(cwd: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(NO_MONITOR).args(arguments).current_dir(cwd).stdin(Stdio::null());
    match git.env_remove(TOKEN_VARIABLE).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            let complaint = match Repository::containing(cwd) {
                None => "this is no git repository",
                Some(_) => complaint.lines().next().unwrap_or_default(),
            };
            usage_error(format!("git {} failed: {complaint}", arguments[0]))
        }
        Err(error) => usage_error(format!("cannot start git: {error}")),
    }
}

/// First lines of the hook, before the line that calls `guard`.
const HOOK_HEAD: &str = "#!/bin/sh\n# Stops a commit of files that another agent holds, see `callboard guard --help`.\n";

/// Installs the pre-commit hook, which all worktrees of the repository share. A hook that somebody
/// else wrote stays as it is.
fn install(session: &Session) -> Outcome {
    let path = hook_path(&session.cwd);
    let exe = connect::command(&env::current_exe()?, env::var_os("PATH").as_deref());
    let dir = match &session.dir_given {
        Some(dir) => format!(" --dir {}", quoted(&std::path::absolute(dir)?.to_string_lossy())),
        None => String::new(),
    };
    // Only exit code 1 says that a file is held; if callboard is missing or cannot read its board,
    // the commit goes ahead.
    let ask = format!("{} guard --staged{dir}", quoted(&exe.to_string_lossy()));
    let call = format!("{ask} || [ $? -ne 1 ] || exit 1");
    let status = GitHook::at(&path, &ask)?;
    if status == GitHook::Outdated {
        fs::remove_file(&path)?;
    }
    if matches!(status, GitHook::Missing | GitHook::Outdated) {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let text = format!("{HOOK_HEAD}{call}\n");
        // `create_new` follows no link and replaces no file that appeared meanwhile.
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(&path)?;
        file.write_all(text.as_bytes())?;
    }
    let (word, code) = match status {
        GitHook::Missing => ("written", 0),
        GitHook::Outdated => ("updated", 0),
        GitHook::Ours => ("unchanged", 0),
        GitHook::Foreign => ("foreign", super::REFUSED),
        GitHook::Elsewhere => ("elsewhere", super::REFUSED),
        GitHook::Idle => ("not_executable", super::REFUSED),
        GitHook::NoFile => ("no_file", super::REFUSED),
    };
    let reply = json!({"path": path.to_string_lossy(), "status": word, "line": call});
    let shown = path.display();
    session.show(&reply, |page| match status {
        GitHook::Missing => page.line(format_args!("wrote {shown}")),
        GitHook::Outdated => {
            page.line(format_args!("updated {shown}, which asked another board or program"))
        }
        GitHook::Ours => page.line(format_args!("already there: {shown}")),
        GitHook::Foreign => {
            page.line(format_args!(
                "{shown} is not callboard's and stays as it is; add this line to it:"
            ));
            page.line(&call);
        }
        GitHook::Elsewhere => {
            page.line(format_args!(
                "{shown} asks another board or program; replace its line with `guard --staged` by:"
            ));
            page.line(&call);
        }
        GitHook::Idle => page.line(format_args!(
            "{shown} asks callboard, but git does not run it: it is not executable; run `chmod +x \
             {}`",
            quoted(&path.to_string_lossy())
        )),
        GitHook::NoFile => page.line(format_args!(
            "{shown} is a directory or a link to nothing, and stays as it is; move it away and \
             try again"
        )),
    })?;
    Ok(ExitCode::from(code))
}

fn hook_path(cwd: &Path) -> PathBuf {
    let path = git(cwd, &["rev-parse", "--git-path", "hooks/pre-commit"]);
    cwd.join(path.trim_end_matches('\n'))
}

/// Whether a hook is as callboard writes it, with no line more.
fn is_as_written(text: &str) -> bool {
    text.strip_prefix(HOOK_HEAD).is_some_and(|rest| rest.lines().count() == 1)
}

/// The repository's pre-commit hook, if it is callboard's.
pub(super) fn own_hook(cwd: &Path) -> Option<PathBuf> {
    Repository::containing(cwd)?;
    let path = hook_path(cwd);
    fs::read_to_string(&path).is_ok_and(|text| is_as_written(&text)).then_some(path)
}

/// What is in the place of git's pre-commit hook.
#[derive(Clone, Copy, PartialEq)]
enum GitHook {
    Missing,
    /// A hook that calls this `callboard guard` for this board.
    Ours,
    /// A hook that callboard wrote, but that calls another program or is for another board.
    Outdated,
    /// A hook of somebody else's that calls `guard` of another program or for another board.
    Elsewhere,
    /// A hook that calls this `callboard guard`, but is not executable, so git skips it.
    Idle,
    Foreign,
    /// A directory, or a link to nothing.
    NoFile,
}

impl GitHook {
    /// Classifies the hook at `path`, which should run the command `ask`.
    fn at(path: &Path, ask: &str) -> anyhow::Result<Self> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(_) if path.is_symlink() => return Ok(Self::NoFile),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Missing),
            Err(error) => return Err(error.into()),
        };
        if !metadata.is_file() {
            return Ok(Self::NoFile);
        }
        let text = fs::read(path)?;
        let text = String::from_utf8_lossy(&text);
        let asking =
            |line: &&str| line.contains("guard --staged") && !line.trim_start().starts_with('#');
        let asking: Vec<_> = text.lines().filter(asking).collect();
        let is_own = is_as_written(&text);
        Ok(match metadata.mode() & 0o111 != 0 {
            _ if asking.is_empty() => Self::Foreign,
            _ if !asking.iter().any(|line| runs(line, ask)) => {
                if is_own {
                    Self::Outdated
                } else {
                    Self::Elsewhere
                }
            }
            true => Self::Ours,
            false => Self::Idle,
        })
    }
}

/// Whether a line of a shell script runs exactly `command`, not one that merely contains it.
fn runs(line: &str, command: &str) -> bool {
    let Some((before, after)) = line.split_once(command) else { return false };
    let begins = before.is_empty() || before.ends_with([' ', '\t', ';', '&', '|', '(']);
    begins
        && (after.is_empty() || after.starts_with([' ', '\t', ';', '&', '|', ')']))
        && !after.contains("--dir")
}
