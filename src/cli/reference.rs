//! Tasks as people name them on the command line: by number, id, path, part of an id, or title.

use std::collections::{HashMap, HashSet};
use std::slice;

use super::ask::Unfit;
use super::report::{InNumbers, blame_and_data, say};
use super::target::is_all;
use super::{Declined, Session};
use crate::ops::FindTasks;
use crate::ops::find_tasks::Params;
use crate::participant;
use crate::rpc::client::Blame;
use crate::state::id::TaskId;
use crate::state::task::Named;

impl Session {
    /// The task that a person named.
    pub(super) fn task(&self, given: &str) -> anyhow::Result<Named> {
        Ok(only(self.tasks(slice::from_ref(&given.to_owned()))?, given))
    }

    /// The task of exactly this name.
    pub(super) fn exactly(&self, given: &str) -> anyhow::Result<Named> {
        Ok(only(self.found(slice::from_ref(&given.to_owned()))?, given))
    }

    /// The id of the task that an option names, if it is given.
    pub(super) fn task_id(&self, given: Option<&str>) -> anyhow::Result<Option<String>> {
        given.map(|given| Ok(self.task(given)?.id.to_string())).transpose()
    }

    pub(super) fn task_ids(&self, given: &[String]) -> anyhow::Result<Vec<String>> {
        Ok(self.tasks(given)?.into_iter().map(|task| task.id.to_string()).collect())
    }

    /// The tasks that were named. Without a board, and for an older server, they are ids.
    pub(super) fn tasks(&self, given: &[String]) -> anyhow::Result<Vec<Named>> {
        let as_ids = || given.iter().map(|id| Named::unknown(id)).collect();
        let is_begun = self.server.is_some() || participant::is_begun(self.dir());
        if given.is_empty() || !is_begun {
            return Ok(as_ids());
        }
        if let Some(all) = given.iter().find(|given| self.is_careful && is_all(given)) {
            let list = self.wording.command("tasks");
            let why = format!("no task is called `{all}`; name tasks by number: {list} lists them");
            return Err(Declined(anyhow::anyhow!(why)).into());
        }
        self.keep_board()?;
        match self.found(given) {
            Ok(found) => Ok(found),
            Err(error) if is_of_another_version(&error) => Ok(as_ids()),
            Err(error) => self.meant(given, error),
        }
    }

    /// The tasks of exactly these names.
    pub(super) fn found(&self, given: &[String]) -> anyhow::Result<Vec<Named>> {
        let params = Params { references: given.to_vec(), ..Params::default() };
        let found = self.ask::<FindTasks>(&params)?;
        found.reply.passed_over.iter().for_each(|why| say(&format!("callboard: {why}")));
        self.opened.swap_warning(found.json().get("warning").cloned());
        Ok(found.reply.tasks)
    }
}

impl Session {
    /// The error in the words of people, unless a program reads it.
    pub(super) fn in_numbers(&self, error: anyhow::Error, is_for_programs: bool) -> anyhow::Error {
        let is_in_words = error.is::<InNumbers>();
        if self.json || is_for_programs || is_in_words || !self.has_board() {
            return error;
        }
        let (_, data) = blame_and_data(&error);
        if data["code"] == "ambiguous_task" {
            // It names each by number and id, to choose from.
            return error;
        }
        let told = data["message"].as_str().unwrap_or_default();
        let numbered = self.numbered(&self.wording.in_commands(told));
        if numbered == told { error } else { error.context(InNumbers(numbered)) }
    }

    /// The text with numbers instead of the ids of tasks, and with times as this terminal shows
    /// them.
    pub(super) fn numbered(&self, text: &str) -> String {
        let page = self.page(participant::board_time(self.dir()));
        let mut text = page.in_local_time(text);
        let mut seen = HashSet::new();
        let quoted = text.split('`').skip(1).step_by(2);
        let bare = text.split([' ', ',', ';', ':', '`']).filter(|word| word.starts_with("task-"));
        let ids = quoted.chain(bare).filter(|word| is_like_an_id(word)).map(str::to_owned);
        let ids: Vec<_> = ids.filter(|id| seen.insert(id.clone())).take(NUMBERED).collect();
        let numbers = self.numbers_of(&ids);
        for id in ids {
            if let Some(number) = numbers.get(&id) {
                text = with_number(&text, &id, *number);
            }
        }
        text
    }

    /// The numbers of the tasks that have exactly these ids.
    fn numbers_of(&self, ids: &[String]) -> HashMap<String, u64> {
        if ids.is_empty() {
            return HashMap::new();
        }
        let params = Params { references: ids.to_vec(), known_only: true };
        let found = self.ask::<FindTasks>(&params).map(|found| found.reply.tasks);
        let found = found.unwrap_or_default().into_iter();
        let numbers = found.filter_map(|task| Some((task.id.to_string(), task.number?)));
        numbers.filter(|(id, _)| ids.contains(id)).collect()
    }

    /// What people call the tasks: their numbers.
    pub(super) fn called(&self, ids: &[TaskId]) -> HashMap<TaskId, String> {
        let ids: Vec<_> = ids.iter().take(NUMBERED).map(ToString::to_string).collect();
        let numbers = self.numbers_of(&ids).into_iter();
        numbers.map(|(id, number)| (TaskId::trusted(id), format!("#{number}"))).collect()
    }
}

fn only(found: Vec<Named>, given: &str) -> Named {
    found.into_iter().next().unwrap_or_else(|| Named::unknown(given))
}

/// Most ids that are looked up for one text.
const NUMBERED: usize = 10;

fn is_like_an_id(word: &str) -> bool {
    TaskId::checked(word).is_ok() && word.parse::<u64>().is_err()
}

/// The text with `#12` where it says task `id`, and `12` where a command names it.
fn with_number(text: &str, id: &str, number: u64) -> String {
    let quoted = format!("`{id}`");
    let text = replaced(text, &format!("task {quoted}"), &format!("#{number}"));
    let text = text.replace(&quoted, &format!("#{number}"));
    if !id.starts_with("task-") {
        // Any word may be an id that somebody chose.
        return text;
    }
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => replaced(part, id, &format!("#{number}")),
        _ => replaced(part, id, &number.to_string()),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The text with `name` for each `id` that is no part of a longer word.
fn replaced(text: &str, id: &str, name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-@+".contains(c);
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(id) {
        let (before, after) = (&rest[..at], &rest[at + id.len()..]);
        let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
        told.push_str(before);
        told.push_str(if is_word { name } else { id });
        rest = after;
    }
    told + rest
}

/// True if the server does not know the operation, or answers it otherwise.
fn is_of_another_version(error: &anyhow::Error) -> bool {
    error.is::<Unfit>() || matches!(blame_and_data(error).0, Blame::Name)
}

#[cfg(test)]
mod tests {
    use super::with_number;

    #[test]
    fn numbers_stand_where_ids_stood() {
        for (text, expected) in [
            ("task `task-ab` is done.", "#4 is done."),
            ("retry_task `task-ab`, or see task-ab.", "retry_task #4, or see #4."),
            ("`callboard retry task-ab`", "`callboard retry 4`"),
            ("task-abc and sub-task-ab stay", "task-abc and sub-task-ab stay"),
        ] {
            assert_eq!(with_number(text, "task-ab", 4), expected);
        }
        assert_eq!(with_number("task `b` is a b", "b", 4), "#4 is a b");
    }
}
