//! Where a board may be made, as far as commands are concerned, and that one was made.

use std::path::Path;

use super::{Command, Declined, Session, say};
use crate::Board;
use crate::board::objection;
use crate::participant::{self, AgentChoice, BoardError, CallError};

impl Session {
    /// The board of a server that a client has started, perhaps anywhere: it is made only where a
    /// project is.
    pub(super) fn guest(&self, agent: AgentChoice) -> anyhow::Result<Board> {
        let unasked = self.location.may_begin().err().map(|error| error.to_string());
        Ok(self.options().unasked(unasked).open_or_explain(agent)?)
    }

    /// Says so if this command has made the board.
    pub(super) fn say_made(&self) {
        if self.server.is_none() && !self.found_board && participant::is_begun(self.dir()) {
            say(&format!(
                "callboard: made a new board in {} ({})",
                self.dir().display(),
                self.location.source
            ));
        }
    }

    /// Refuses a worktree whose link to its repository is broken: its board would be another than
    /// that of the others. A client's server says so in its replies, hooks stay silent, and
    /// doctor lists it.
    pub(super) fn check_link(&self, command: &Command) -> Result<(), CallError> {
        let says_so_itself = matches!(
            command,
            Command::Mcp(_)
                | Command::Hook(_)
                | Command::Guard(_)
                | Command::Doctor(_)
                | Command::Bench(_)
        );
        match self.location.check_link() {
            Err(error) if !says_so_itself && self.server.is_none() => {
                Err(BoardError::Forbidden(error.typed()).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether a board may be created here; for commands that create one or use it.
    pub(super) fn may_create(&self) -> Result<(), BoardError> {
        self.location.may_create().map_err(|error| BoardError::Forbidden(error.typed()))
    }

    pub(super) fn objection(&self) -> Option<String> {
        self.objection_to(self.dir())
    }

    /// Why the board in `dir` should not be written to, unless that is allowed.
    pub(super) fn objection_to(&self, dir: &Path) -> Option<String> {
        objection(dir, self.allow_network_filesystem)
    }

    /// Refuses a list of what is on a board where there is none.
    pub(super) fn expect_something(&self, command: &Command) -> anyhow::Result<()> {
        let lists = matches!(
            command,
            Command::Tasks(_)
                | Command::Tree(_)
                | Command::Agents(_)
                | Command::Log(_)
                | Command::History(_)
                | Command::Results(_)
                | Command::Undo(_)
                | Command::Show(_)
                | Command::Explain(_)
                | Command::Diff(_)
                | Command::Answer(_)
        );
        if !lists || self.has_board() {
            return Ok(());
        }
        let make = self.wording.of_nobody().command("init GOAL");
        let why =
            format!("no board here, in {}; make one with {make}", self.project_root().display());
        Err(Declined(anyhow::anyhow!(why)).into())
    }
}
