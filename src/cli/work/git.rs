//! Git, as the worker calls it: it runs nothing that an agent wrote, and never hangs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::cli::supervise::end_those;
use crate::git::{command, ended};

/// Options against what agents may have written: a worker trusts no hook or command of an agent.
/// Nor does it ask a person to sign.
const UNTRUSTED: [&str; 6] =
    ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgsign=false"];
/// Longest time for one call, enough for the largest repository on a slow disk.
const PATIENCE: Duration = Duration::from_secs(600);

/// Environment variable with the worktree, in all processes that run in an agent's own worktree for
/// it.
pub(super) const WORKTREE: &str = "CALLBOARD_WORKTREE";

/// What git prints, or its error. It prints into files, since what it leaves running would keep a
/// pipe open.
pub(super) fn git<A: AsRef<OsStr>>(
    directory: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> anyhow::Result<String> {
    let mut command = command(directory);
    command.args(UNTRUSTED).args(arguments).env(WORKTREE, directory);
    let (out, complaint) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdout(out.try_clone()?).stderr(complaint.try_clone()?);
    let git = command.spawn().context("git could not be started")?;
    let Some(status) = ended(git, Instant::now() + PATIENCE)? else {
        bail!("git was ended: it had not come to its end in {} s", PATIENCE.as_secs());
    };
    if !status.success() {
        bail!("git: {}", text_of(complaint)?.trim());
    }
    text_of(out)
}

/// Ends processes that run in an agent's own worktree for a dead worker, or that others left
/// running there. Returns whether none is left, as far as this system shows.
pub(super) fn end_rest(worktree: &Path) -> bool {
    let mark = [WORKTREE.as_bytes(), b"=", worktree.as_os_str().as_bytes()].concat();
    end_those(|environment| environment.contains(&mark.as_slice()))
}

fn text_of(mut file: File) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
