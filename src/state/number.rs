//! Numbers of tasks: what people call them. A task has the place that it has in the order of
//! creation, and keeps it; no other task of the board gets it. Runs have none.
//!
//! A board of an older build has none until all its processes know numbers, see `level`.

use std::sync::Arc;

use super::State;
use super::document::Retired;
use super::id::TaskId;
use super::task::Task;

/// The numbers that new tasks get; without an end if there are any.
pub(super) struct Numbers(u64);

impl Iterator for Numbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let number = self.0;
        self.0 += u64::from(number > 0);
        Some(number).filter(|number| *number > 0)
    }
}

impl State {
    /// Live tasks with their numbers, in order of creation. On a board without numbers they have
    /// those that they would get.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &Arc<Task>)> {
        let queued = self.tasks().filter(|task| task.run.is_none());
        (1..).zip(queued).map(|(place, task)| (task.number.unwrap_or(place), task))
    }

    pub fn number_of(&self, id: &TaskId) -> Option<u64> {
        let task = self.task(id)?;
        task.number.or_else(|| self.numbered().find(|(_, one)| one.id == *id).map(|(one, _)| one))
    }

    /// The live task of this number.
    pub fn task_numbered(&self, number: u64) -> Option<&Arc<Task>> {
        self.numbered().find(|(one, _)| *one == number).map(|(_, task)| task)
    }

    /// The stub of the task of this number, if the state has one.
    pub fn retired_numbered(&self, number: u64) -> Option<(&TaskId, &Arc<Retired>)> {
        self.retired().find(|(_, stub)| stub.number == Some(number))
    }

    /// Whether there are tasks, and none has a number.
    pub fn lacks_numbers(&self) -> bool {
        self.board().next_number == 0 && self.live_tasks() > self.runs().live()
    }

    pub(super) fn numbers(&self) -> Numbers {
        Numbers(self.board().next_number)
    }

    /// Begins with the next number after those that were taken.
    pub(super) fn go_on_with(&mut self, numbers: Numbers) {
        if numbers.0 != self.board().next_number {
            self.edit_board(|board| board.next_number = numbers.0);
        }
    }

    /// Numbers rise in the order of creation, up to the next one. All tasks have one, or none.
    pub(super) fn check_numbers(&self, wrong: &mut Vec<String>) {
        let next = Some(self.board().next_number).filter(|next| *next > 0);
        let tasks = self.tasks().filter(|task| task.run.is_none()).map(|task| task.number);
        let numbers: Vec<_> = tasks.chain([next]).collect();
        let is_right = |one: &Option<u64>, later: &Option<u64>| next.is_none() || one < later;
        if !numbers.is_sorted_by(is_right)
            || numbers.iter().any(|one| one.is_some() != next.is_some())
        {
            wrong.push(format!("the numbers of tasks, and the next one, are {numbers:?}"));
        }
    }

    /// Numbers the tasks that there are.
    pub(super) fn number_tasks(&mut self) {
        let tasks = self.records.tasks.iter().filter(|(_, task)| task.run.is_none());
        let tasks: Vec<_> = tasks.map(|(ordinal, task)| (ordinal, Task::clone(task))).collect();
        let mut numbers = Numbers(1);
        for (ordinal, task) in tasks {
            let number = numbers.next();
            self.put(ordinal, Some(Arc::new(Task { number, ..task })));
        }
        self.go_on_with(numbers);
    }
}
