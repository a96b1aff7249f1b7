//! References in tables ("reftable"), which only git reads.

use std::path::Path;
use std::time::Duration;

use crate::git::Git;

/// What `HEAD` holds in such a repository, for programs that read it as a file.
const PLACEHOLDER: &str = "ref: refs/heads/.invalid";
/// Some callers hold the board's lock.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether the text of `HEAD` says that references are in tables.
pub(super) fn are_meant(head: &str) -> bool {
    head.trim_end() == PLACEHOLDER
}

/// Branch and commit that are checked out at `root`.
pub(super) fn checked_out(root: &Path) -> (Option<String>, Option<String>) {
    let git = Git::at(root, PATIENCE);
    (git.branch(), git.head())
}
