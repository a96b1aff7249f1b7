//! What people call a task: its id, number or path, a part of its id, or its title. One of them
//! must be meant and no other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::hierarchy::{numbers, split_scope};
use super::id::{AgentId, TaskId};
use super::limit::{CANDIDATES, SHORTEST_PART};
use super::refusal::Refusal;
use super::task::{Named, Task};
use super::{Ordinal, State};

/// What the ids begin with that the board makes.
const MADE: &str = "task-";

impl State {
    /// The task that a person means by `given`. The first of these that leads to a task decides:
    /// the number, the id, the path, the whole title; then beginning or end of the id, or beginning
    /// of the title. Runs and retired tasks are known by id, and retired ones by number.
    pub fn referred(&self, given: &str) -> Result<Named, Refusal> {
        let given = given.trim();
        let numbered = number(given).and_then(|number| self.of_number(number));
        match numbered.or_else(|| self.with_id(given)) {
            Some(found) => Ok(found),
            None => match self.named(given)? {
                Some(found) => Ok(found),
                None => self.only(given, self.partly(&given.to_lowercase())),
            },
        }
    }

    /// The task that a call of `actor` means by `given`: its id, number, path or whole title. What
    /// is the id of one task and the number of another is refused, unless the actor holds the
    /// former.
    pub fn called(&self, given: &str, actor: Option<&AgentId>) -> Result<Named, Refusal> {
        let given = given.trim();
        let by_number = number(given).and_then(|number| self.of_number(number));
        match (self.with_id(given), by_number) {
            (Some(by_id), Some(by_number)) if by_id.id != by_number.id => {
                let open = self.task(&by_id.id).and_then(|task| task.open_attempt());
                if open.is_some_and(|open| actor == Some(&open.agent)) {
                    return Ok(by_id);
                }
                let candidates = vec![by_number, by_id];
                Err(Refusal::AmbiguousTask { given: shown(given), candidates, more: 0 })
            }
            (Some(found), _) | (None, Some(found)) => Ok(found),
            (None, None) => match self.named(given)? {
                Some(found) => Ok(found),
                // Which tasks a part of a name may mean is said, and none of them is taken.
                None => match self.only(given, self.partly(&given.to_lowercase())) {
                    Err(several @ Refusal::AmbiguousTask { .. }) => Err(several),
                    _ => Err(unknown(given)),
                },
            },
        }
    }

    fn with_id(&self, given: &str) -> Option<Named> {
        self.of_id(&TaskId::checked(given).ok()?)
    }

    /// The only task at the path or with the title `given`.
    fn named(&self, given: &str) -> Result<Option<Named>, Refusal> {
        if number(given).is_some() {
            return Err(unknown(given));
        }
        if numbers(split_scope(given).1).is_some() {
            self.check_path_meant(given)?;
            return self.only(given, self.at_path(given).collect()).map(Some);
        }
        let is_called = |task: &&Arc<Task>| is_same(task.headline(), given);
        let called: Vec<_> = self.tasks_of_queue().filter(is_called).collect();
        let exact: Vec<_> =
            called.iter().filter(|task| task.headline() == given).copied().collect();
        match (called.len(), exact.len()) {
            (0, _) => Ok(None),
            (_, 1) => self.only(given, exact).map(Some),
            _ => self.only(given, called).map(Some),
        }
    }

    fn tasks_of_queue(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.tasks().filter(|task| task.run.is_none())
    }

    fn of_id(&self, id: &TaskId) -> Option<Named> {
        let retired = || {
            let stub = self.retired_task(id)?;
            let (number, status) = (stub.number, Some(stub.status));
            Some(Named { number, status, ..Named::unknown(id.as_str()) })
        };
        self.task(id).map(|task| Named::from(&**task)).or_else(retired)
    }

    fn of_number(&self, number: u64) -> Option<Named> {
        let live = self.task_numbered(number).map(|task| Named::from(&**task));
        live.or_else(|| self.of_id(self.retired_numbered(number)?.0))
    }

    /// Tasks whose id begins or ends with `part`, with or without what ids begin with that the
    /// board makes, or whose title begins with it.
    fn partly(&self, part: &str) -> Vec<&Arc<Task>> {
        if part.chars().count() < SHORTEST_PART {
            return Vec::new();
        }
        let is_meant = |task: &&Arc<Task>| {
            let id = task.id.as_str().to_lowercase();
            let own = id.strip_prefix(MADE).unwrap_or(&id);
            id.starts_with(part)
                || own.starts_with(part)
                || own.ends_with(part)
                || task.headline().to_lowercase().starts_with(part)
        };
        self.tasks_of_queue().filter(is_meant).collect()
    }

    /// The only one of `found`, which are in order of creation or at one path.
    fn only(&self, given: &str, found: Vec<&Arc<Task>>) -> Result<Named, Refusal> {
        let in_order: BTreeMap<Option<Ordinal>, _> =
            found.iter().map(|task| (self.ordinal_of(&task.id), Named::from(&***task))).collect();
        let mut candidates: Vec<_> = in_order.into_values().collect();
        match candidates.len() {
            0 => Err(unknown(given)),
            1 => Ok(candidates.remove(0)),
            all => {
                candidates.truncate(CANDIDATES);
                let more = all - candidates.len();
                Err(Refusal::AmbiguousTask { given: shown(given), candidates, more })
            }
        }
    }
}

/// Whether two titles are the same but for their case. Most differ in the first letter, so that it
/// takes little time to look at all.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
    let begins = |text: &str| text.chars().next().map(|first| first.to_lowercase().next());
    begins(one) == begins(other) && plain(one) == plain(other)
}

/// The number in `12` or `#12`.
fn number(given: &str) -> Option<u64> {
    let digits = given.strip_prefix('#').unwrap_or(given);
    digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn unknown(given: &str) -> Refusal {
    match TaskId::checked(given) {
        Ok(task) => Refusal::UnknownTask { task },
        Err(_) => Refusal::NoTaskCalled { given: shown(given) },
    }
}

/// What was given, without what a terminal would obey, and not too much of it.
fn shown(given: &str) -> String {
    given.chars().filter(|c| !c.is_control()).take(super::limit::ID.max).collect()
}

#[cfg(test)]
mod tests;
