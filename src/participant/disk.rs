//! What a commit needs of the world. There are two: the board's files, and the simulator's.

use std::io;
use std::time::Instant;

use crate::journal::{AppendError, BatchId, JournalError};
use crate::ops::health_check::Trouble;
use crate::ops::{Due, History};
use crate::state::State;
use crate::state::event::{Event, Recorded};
use crate::state::level::Living;
use crate::state::policy::Policy;
use crate::state::run::rows::Rows;
use crate::state::time::Timestamp;

use super::commit::Placed;
use super::error::BoardError;
use super::holder::Holder;

/// The replica with all that an operation may read beside it.
pub struct Parts<'a> {
    pub state: &'a mut State,
    pub history: Box<dyn History + 'a>,
    pub policy: &'a Policy,
    pub now: Timestamp,
    pub peers: &'a dyn Peers,
    /// By how many milliseconds the wall clock is ahead of the board's time, if that is worth a
    /// word.
    pub ahead: Option<i64>,
}

/// The other processes on the board, as far as they matter to an operation.
pub trait Peers {
    fn living(&self) -> Vec<Living>;

    /// Whether all living processes can read the event.
    fn admit(&self, state: &State, event: &Event) -> bool;

    /// The seq of the state file, if it can be read.
    fn state_file_seq(&self) -> Option<u64>;

    /// Why calls cannot write in the board's directory, if they cannot.
    fn room(&self) -> Option<Trouble> {
        None
    }
}

/// Where an operation finds the board.
pub trait View {
    fn parts(&mut self) -> Parts<'_>;

    /// What does not work as it should, in words for the operator.
    fn troubles(&self) -> Vec<Trouble> {
        Vec::new()
    }
}

/// Journal, locks, state file, presence and time.
pub trait Disk: View {
    fn state(&self) -> &State;

    fn state_mut(&mut self) -> &mut State;

    /// What was repaired, for the next reply.
    fn report(&mut self) -> &mut Option<String>;

    /// The time of a clock that nothing sets.
    fn instant(&self) -> Instant;

    /// Takes the journal's lock if nobody holds it.
    fn try_lock(&mut self) -> io::Result<bool>;

    /// Has a thread take it; `LockCame` comes then.
    fn await_lock(&mut self);

    fn unlock(&mut self);

    /// The process that holds it, if that is known.
    fn holder(&self) -> Holder;

    /// Begins an append under the lock: applies what others have appended, of which the newest
    /// events are returned, and makes sure that this process may write and is seen.
    fn begin(&mut self) -> Result<Vec<Recorded>, Blocked>;

    /// What time has brought since the last batch.
    fn due(&mut self) -> Due;

    /// Appends what was applied after event `expected`.
    fn append(
        &mut self,
        expected: u64,
        batch: &BatchId,
        events: &[Recorded],
        rows: &Rows,
    ) -> Result<(), AppendError>;

    /// Finds out whether the batch was appended, after an error that does not tell.
    fn find(&mut self, batch: &BatchId, error: JournalError) -> Result<(), BoardError>;

    /// Ends an append. `appended` is what was due, if it was recorded.
    fn end(&mut self, appended: Option<&Due>);

    /// Learns which client calls through this process.
    fn learn(&mut self, client: Option<&str>);

    /// Has the next batch find out which of the processes on the board are alive.
    fn doubt_presence(&mut self);

    /// Has the system start to write the log, which will soon be synced.
    fn hasten(&mut self);

    /// Applies what others have appended, and returns the newest of these events.
    fn catch_up(&mut self) -> Result<Vec<Recorded>, Blocked>;

    /// Puts the board back after it has vanished. Neither lock is held afterwards.
    fn regain(&mut self) -> Result<(), BoardError>;

    /// Whether everything in the replica is durable, as far as is known.
    fn is_durable(&self) -> bool;

    /// The seq that the state file shows, if that is the board's.
    fn shown(&self) -> Option<u64>;

    /// The state file shows `seq`, so that everything up to it is durable.
    fn note_shown(&mut self, seq: u64);

    /// Takes the state file's lock if nobody holds it.
    fn try_lock_file(&mut self) -> io::Result<bool>;

    /// Has a thread wait until it is free; `FileFree` comes then.
    fn await_file(&mut self);

    fn file_holder(&self) -> Holder;

    /// Whether others have appended what the replica lacks, and the state file was about to show.
    fn is_overtaken(&self) -> bool;

    /// Writes the state file without putting it in its place, and syncs the log: here, or on
    /// another thread, if it can. Then there is no result yet.
    fn sync(&mut self, here: bool) -> Option<Result<(), BoardError>>;

    /// Waits for the sync on the other thread.
    fn finish_sync(&mut self) -> Result<(), BoardError>;

    /// Puts the file that was written in its place, and releases the lock.
    fn place(&mut self) -> Placed;

    /// Gives the file that was written up, and releases the lock.
    fn give_up(&mut self);

    /// Syncs the log, without the state file's lock.
    fn sync_alone(&mut self) -> Result<(), BoardError>;

    /// Whether the board's files are not those that this process has open.
    fn is_gone(&self) -> bool;
}

/// Why the board could not be caught up with.
pub enum Blocked {
    /// Its files are gone or damaged, and can be put back.
    Vanished(BoardError),
    Failed(BoardError),
}

impl From<BoardError> for Blocked {
    fn from(error: BoardError) -> Self {
        Self::Failed(error)
    }
}
