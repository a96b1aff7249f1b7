//! The two ends by which a linked worktree and its repository name each other.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::{Repository, read_small};

/// Most characters of a path from a file that a message shows.
const SHOWN: usize = 200;

/// A worktree and its repository that do not name each other, because one of the two was moved or
/// removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the worktree `{}` is not linked to its repository any more: {why}; run `git worktree repair {}` in the repository's \
     main worktree, then try again",
    root.display(), root.display()
)]
pub struct BrokenLink {
    root: PathBuf,
    why: String,
}

impl Repository {
    /// What is wrong with the link of this worktree, if it is a linked one.
    pub fn broken_link(&self) -> Option<BrokenLink> {
        let root = self.root.as_ref()?;
        let dot_git = root.join(".git");
        if !dot_git.is_file() {
            return None;
        }
        let why = if self.git_dir == dot_git {
            let text = read_small(&dot_git).unwrap_or_default();
            let target = text.strip_prefix("gitdir:").map(shown)?;
            format!("its .git names `{target}`, where no repository is")
        } else {
            let common = read_small(&self.git_dir.join("commondir"))?;
            match read_small(&self.git_dir.join("gitdir")) {
                _ if self.common_dir == self.git_dir => {
                    format!("the repository's `{}` is not there", shown(&common))
                }
                None => "the repository does not know it".to_owned(),
                Some(named) if !is_same(&self.git_dir.join(named.trim_end()), &dot_git) => {
                    format!(
                        "the repository has it at `{}`",
                        shown(named.trim_end().trim_end_matches("/.git"))
                    )
                }
                Some(_) => return None,
            }
        };
        Some(BrokenLink { root: root.clone(), why })
    }
}

fn is_same(named: &Path, dot_git: &Path) -> bool {
    fs::canonicalize(named).ok().is_some_and(|named| fs::canonicalize(dot_git).ok() == Some(named))
}

fn shown(path: &str) -> String {
    path.trim().lines().next().unwrap_or_default().chars().take(SHOWN).collect()
}
