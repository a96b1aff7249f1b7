//! Numbers of tasks, as people say them: `#12` is the twelfth task of the board. Runs have none.

use std::sync::Arc;

use super::State;
use super::id::TaskId;
use super::task::Task;

impl State {
    /// Live tasks with their numbers, in order of creation.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &Arc<Task>)> {
        let queued = self.tasks().filter(|task| task.run.is_none());
        (self.retired_before() + 1..).zip(queued)
    }

    pub fn number_of(&self, id: &TaskId) -> Option<u64> {
        self.task(id)?;
        self.numbered().find(|(_, task)| task.id == *id).map(|(number, _)| number)
    }

    pub fn task_numbered(&self, number: u64) -> Option<&Arc<Task>> {
        self.numbered().find(|(one, _)| *one == number).map(|(_, task)| task)
    }

    /// Tasks that have left the state, those that had parts among them.
    fn retired_before(&self) -> u64 {
        let board = self.board();
        let parents = match board.archived.total() {
            0 => 0,
            _ => self.retired().filter(|(_, stub)| stub.parent && !stub.run).count() as u64,
        };
        board.archived.total() + parents
    }
}
