//! Why blocked tasks wait: for each the gravest of what it waits for, directly or through others.

use super::{Flow, Root};
use crate::state::State;
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};

/// What a blocked task waits for, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// A task that failed, was cancelled or left the plan
    Ended,
    /// A task that is not there any more
    Gone,
    /// Itself: it is in a cycle or waits for one
    Cycle,
    /// A task whose result waits for a reviewer
    Review,
    /// A task that an agent holds
    Work,
    /// A task that waits for its time
    Delay,
    /// A task that could be claimed
    Queue,
}

/// Why one task is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause<'s> {
    pub obstacle: Obstacle,
    /// The task at the end of what it waits for; none for a cycle.
    pub by: Option<&'s TaskId>,
}

/// A cause as it goes from node to node: the obstacle, and the number of the task. The least is the
/// gravest.
type Mark = (Obstacle, u32);

impl<'s> Flow<'s> {
    /// Every blocked task, with its cause, in order of creation.
    pub(in crate::state) fn causes(&self) -> Vec<(&'s Task, Cause<'s>)> {
        let roots = self.roots();
        let gone: Vec<&Root<'s>> = roots.iter().filter(|root| root.node.is_none()).collect();
        let mut marks: Vec<Option<Mark>> = vec![None; self.nodes()];
        for (number, root) in (0..).zip(&gone) {
            self.each_dependent(root.id, |node| grave(&mut marks, node, (Obstacle::Gone, number)));
        }
        let mut is_free = vec![false; self.nodes()];
        for node in &self.order {
            is_free[*node as usize] = true;
            if let Some(mark) = self.own(*node).or(marks[*node as usize]) {
                self.each_after(*node, |after| grave(&mut marks, after, mark));
            }
        }
        let cause = |mark: Mark| Cause {
            obstacle: mark.0,
            by: match mark {
                (Obstacle::Gone, number) => gone.get(number as usize).map(|root| root.id),
                (_, number) => self.tasks.get(number as usize).map(|task| &task.id),
            },
        };
        let blocked =
            self.tasks.iter().zip(&self.ends).filter(|(task, _)| self.state.is_blocked(task));
        let blocked = blocked.map(|(task, end)| match marks[*end as usize] {
            _ if !is_free[*end as usize] => (*task, Cause { obstacle: Obstacle::Cycle, by: None }),
            Some(mark) => (*task, cause(mark)),
            // It takes the place of a task that is still held.
            None => (*task, Cause { obstacle: Obstacle::Work, by: task.after() }),
        });
        blocked.collect()
    }

    /// What a task is to those that wait for it, if that does not follow from what it waits for.
    fn own(&self, node: u32) -> Option<Mark> {
        let number = self.work_at(node)?;
        let task = self.tasks[number as usize];
        let obstacle = match task.status {
            TaskStatus::Failed | TaskStatus::Cancelled | TaskStatus::Obsolete => Obstacle::Ended,
            TaskStatus::Review => Obstacle::Review,
            TaskStatus::Claimed | TaskStatus::InProgress => Obstacle::Work,
            TaskStatus::Available if self.state.is_ready(&task.id) => Obstacle::Queue,
            TaskStatus::Available if !self.state.is_blocked(task) => Obstacle::Delay,
            TaskStatus::Available | TaskStatus::Done => return None,
        };
        Some((obstacle, number))
    }
}

fn grave(marks: &mut [Option<Mark>], node: u32, mark: Mark) {
    let known = &mut marks[node as usize];
    *known = Some(known.map_or(mark, |known| known.min(mark)));
}

impl State {
    /// Every blocked task, with the gravest of what it waits for.
    pub fn causes(&self) -> Vec<(&Task, Cause<'_>)> {
        if self.blocked_count() == 0 { Vec::new() } else { Flow::new(self).causes() }
    }
}
