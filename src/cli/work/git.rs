//! Git, as the worker calls it: it runs nothing that an agent wrote, and never hangs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::cli::supervise::end_those;

/// Options against what agents may have written: a worker trusts no hook or command of an agent. Nor does it ask a
/// person to sign.
const UNTRUSTED: [&str; 6] =
    ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgsign=false"];
/// Longest time for one call, enough for the largest repository on a slow disk.
const PATIENCE: Duration = Duration::from_secs(600);

/// Environment variable with the worktree, in all processes that run in an agent's own worktree for it.
pub const WORKTREE: &str = "CALLBOARD_WORKTREE";

/// What git prints, or its error. Variables of an outer git do not lead it elsewhere, and a signal typed to end the
/// worker does not end it halfway. It prints into files, since what it leaves running would keep a pipe open.
pub fn git<A: AsRef<OsStr>>(directory: &Path, arguments: impl IntoIterator<Item = A>) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(UNTRUSTED).args(arguments).stdin(Stdio::null()).process_group(0);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    command.env(WORKTREE, directory);
    let (out, complaint) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.env("GIT_TERMINAL_PROMPT", "0").stdout(out.try_clone()?).stderr(complaint.try_clone()?);
    let status = ended(command.spawn().context("git could not be started")?)?;
    if !status.success() {
        bail!("git: {}", text_of(complaint)?.trim());
    }
    text_of(out)
}

/// The status of git if it ends in time; otherwise it is killed with all that it has started.
fn ended(mut git: Child) -> anyhow::Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = git.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() >= PATIENCE {
            let _ = kill_process_group(Pid::from_child(&git), Signal::KILL);
            git.wait()?;
            bail!("git was ended: it had not come to its end in {} s", PATIENCE.as_secs());
        }
        // Most calls take a few milliseconds.
        sleep((start.elapsed() / 8).clamp(Duration::from_millis(1), Duration::from_millis(50)));
    }
}

/// Ends processes that run in an agent's own worktree for a dead worker, or that others left running there. Returns
/// whether none is left, as far as this system shows.
pub fn end_rest(worktree: &Path) -> bool {
    let mark = [WORKTREE.as_bytes(), b"=", worktree.as_os_str().as_bytes()].concat();
    end_those(|environment| environment.contains(&mark.as_slice()))
}

fn text_of(mut file: File) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
