//! How a process takes part in a board.

use std::path::PathBuf;

use crate::clock::Clock;

pub struct Options {
    pub dir: PathBuf,
    /// Name of the state file that the process was started with; none to use the board's.
    pub state_file: Option<String>,
    pub stay: Stay,
    /// Why nothing may be written to the board; none if it may.
    pub unwritable: Option<String>,
    /// Why no board may be made or opened in `dir`; none if one may.
    pub forbidden: Option<String>,
    /// Why only a call that asks for a board makes one in `dir`; none if any writing call does.
    pub unasked: Option<String>,
    pub clock: Box<dyn Clock>,
    /// Seed of ids; equal seeds give equal ids.
    pub seed: u64,
    pub worktree: Option<String>,
}

/// How long the process lives, and what that says about the agents that act through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// Ends after a call or a few.
    Brief,
    /// Serves callers who may be anywhere, so its life says nothing about theirs.
    Lasting,
    /// Agents that act through the process are present while it lives.
    Presence,
}
