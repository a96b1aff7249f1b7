//! Long reads, made beside the writer from a snapshot of the state, so that reading ten thousand
//! tasks delays no claim.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value;

use super::caller::Caller;
use super::error::CallError;
use super::history::JournalHistory;
use crate::journal::JournalError;
use crate::journal::sqlite::SqliteJournal;
use crate::ops::{self, Call, History, Prepared, Vitals};
use crate::state::State;
use crate::state::agent::Participant;
use crate::state::document::Undone;
use crate::state::event::Recorded;
use crate::state::id::TaskId;
use crate::state::policy::Policy;
use crate::state::time::Timestamp;
use crate::statefile::Home;

/// All that the reply to a read is made of, as it was at one event.
pub(crate) struct Snapshot {
    pub dir: Home,
    pub state: State,
    pub policy: Policy,
    pub now: Timestamp,
    pub seed: u64,
    pub participant: Participant,
    pub is_presence: bool,
    pub started_at: Timestamp,
    /// What is said with the answer, of a board that can only be read.
    pub report: Option<String>,
}

impl Snapshot {
    pub(super) fn answer(
        mut self,
        prepared: &dyn Prepared,
        caller: &Caller,
    ) -> Result<Value, CallError> {
        let default_agent = caller.default_agent();
        let door = caller.door();
        let vitals = Vitals::since(self.started_at);
        let history = Past { dir: self.dir, head: self.state.seq(), journal: OnceCell::new() };
        let call = Call {
            presence: self.is_presence.then_some(&self.participant),
            place: &caller.place,
            default_agent: &default_agent,
            started_as: &default_agent,
            door: &door,
            principal: caller.principal.as_deref(),
            person: caller.person.as_deref(),
            remote: caller.remote,
            command: caller.command.as_deref(),
            reader: caller.reader,
            ..Call::new(self.now, self.seed, &self.policy, &self.participant.id, &history, &vitals)
        };
        let executed = ops::execute(&mut self.state, prepared, call);
        let executed = executed.map_err(|error| CallError::Failed(Arc::new(error.into())))?;
        let mut answer = executed.answer.map_err(CallError::Refused)?;
        if let (Some(report), Value::Object(reply)) = (&self.report, &mut answer) {
            ops::add_warning(reply, report);
        }
        Ok(answer)
    }
}

/// The journal up to the snapshot. It is opened when it is first read.
struct Past {
    dir: Home,
    head: u64,
    /// None if there is no journal, as beside a state file that was copied.
    journal: OnceCell<Result<Option<SqliteJournal>, String>>,
}

impl Past {
    /// None if there is no journal.
    fn journal(&self) -> Result<Option<JournalHistory<'_>>, String> {
        let open = || match SqliteJournal::open(&self.dir) {
            Err(JournalError::NotFound { .. }) => Ok(None),
            opened => opened.map(Some).map_err(|error| error.to_string()),
        };
        let journal = self.journal.get_or_init(open).as_ref().map_err(String::clone)?;
        Ok(journal.as_ref().map(|journal| JournalHistory {
            journal,
            dir: &self.dir,
            head: self.head,
        }))
    }
}

impl History for Past {
    fn each_after(
        &self,
        seq: u64,
        limit: usize,
        take: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), String> {
        self.journal()?.map_or(Ok(()), |journal| journal.each_after(seq, limit, take))
    }

    fn retired_at(&self, id: &TaskId, undone: &[Undone]) -> Result<Option<u64>, String> {
        self.journal()?.map_or(Ok(None), |journal| journal.retired_at(id, undone))
    }
}
