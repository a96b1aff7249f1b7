//! The past of the board, as operations read it from the journal.

use std::ops::ControlFlow;

use crate::journal::sqlite::SqliteJournal;
use crate::ops::History;
use crate::state::document::Undone;
use crate::state::event::Recorded;
use crate::state::id::TaskId;
use crate::statefile::{self, Home};

pub(super) struct JournalHistory<'a> {
    pub journal: &'a SqliteJournal,
    pub dir: &'a Home,
    /// The newest event that may be read: what follows may be of a newer version.
    pub head: u64,
}

impl History for JournalHistory<'_> {
    fn each_after(
        &self,
        seq: u64,
        limit: usize,
        take: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String> {
        let known = self.head.saturating_sub(seq.max(self.journal.base()));
        let limit = limit.min(usize::try_from(known).unwrap_or(usize::MAX));
        if limit == 0 {
            return Ok(());
        }
        self.journal.each_from(seq, limit, take).map_err(|error| error.to_string())
    }

    fn retired_at(&self, id: &TaskId, undone: &[Undone]) -> Result<Option<u64>, String> {
        self.journal.retired_at(id, undone).map_err(|error| error.to_string())
    }

    fn rejected_edits(&self, limit: usize) -> Vec<String> {
        statefile::displaced::all_rejected(self.dir).into_iter().take(limit).collect()
    }
}
