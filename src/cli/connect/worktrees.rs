//! How the other worktrees of the repository get what `connect` wrote into this one.

use std::path::Path;
use std::process::Stdio;

use super::{Connected, Status, Target};
use crate::git;
use crate::worktree::Repository;

/// None outside of a repository, or if nothing is there.
pub(super) fn advice(files: &[Connected], target: &Target<'_>) -> Option<String> {
    Repository::containing(target.project_root)?;
    let is_there = |one: &&Connected| matches!(one.status, Status::Written | Status::Unchanged);
    let mut paths: Vec<_> = files.iter().filter(is_there).map(|one| one.path.as_path()).collect();
    paths.sort_unstable();
    paths.dedup();
    if paths.is_empty() {
        return None;
    }
    if target.exe.is_absolute() || target.dir.is_some() {
        let what =
            if target.dir.is_some() { "the board's directory" } else { "the program's place" };
        return Some(format!(
            "the files name {what} on this machine; run the same command in each worktree"
        ));
    }
    let (ignored, shared): (Vec<_>, Vec<_>) =
        paths.into_iter().partition(|path| is_ignored(target.project_root, path));
    let named = |paths: &[&Path]| {
        let names = paths.iter().map(|path| path.strip_prefix(target.project_root).unwrap_or(path));
        names.map(|name| name.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    Some(match (shared.is_empty(), ignored.is_empty()) {
        (true, _) => {
            format!("git ignores {}; run the same command in each worktree", named(&ignored))
        }
        (false, true) => format!("commit {}, and they and clones have the same", named(&shared)),
        (false, false) => format!(
            "commit {}, and they and clones have the same; git ignores {}: run the same command \
             in each worktree",
            named(&shared),
            named(&ignored)
        ),
    })
}

fn is_ignored(root: &Path, file: &Path) -> bool {
    let mut git = git::command(root);
    git.args(["check-ignore", "--quiet", "--"]).arg(file);
    let asked = git.stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}
