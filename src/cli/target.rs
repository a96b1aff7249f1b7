//! What a command hits: a task, or the tasks of a scope; and whether the person wants it.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};

use super::report::blame_and_data;
use super::{Declined, Session, print, tasks};
use crate::ops::get_all_tasks::{Brief, Params};
use crate::ops::{self, Operation, get_task};
use crate::state::hierarchy::{numbers, split_scope};
use crate::state::id::TaskId;
use crate::state::limit::CANDIDATES;
use crate::state::task::{Named, TaskStatus};

/// What was named: a task, or else a path that has tasks below it.
pub(super) enum Target {
    Task(Named),
    Scope(String),
}

/// The scope of all tasks.
const ALL: &str = "all";

/// Whether a person means all tasks.
pub(super) fn is_all(given: &str) -> bool {
    [ALL, "everything", "*"].contains(&given.to_lowercase().as_str())
}

/// The tasks that a command changes, each once.
#[derive(Default)]
pub(super) struct Hits {
    pub tasks: Vec<Brief>,
    seen: HashSet<TaskId>,
}

impl Hits {
    pub(super) fn extend(&mut self, tasks: Vec<Brief>) {
        self.tasks.extend(tasks.into_iter().filter(|task| self.seen.insert(task.id.clone())));
    }

    pub(super) fn names(&self) -> Vec<Named> {
        self.tasks.iter().map(Named::from).collect()
    }
}

impl Session {
    /// What a command is to change.
    pub(super) fn target(&self, given: &str) -> anyhow::Result<Target> {
        self.expect_board(ops::CancelTask::NAME)?;
        self.task_or_scope(given)
    }

    pub(super) fn task_or_scope(&self, given: &str) -> anyhow::Result<Target> {
        // A word for all tasks is never looked for: it may be in a title, too.
        if is_all(given) {
            return Ok(Target::Scope(ALL.to_owned()));
        }
        let is_scope = numbers(split_scope(given).1).is_some();
        match self.task(given) {
            Ok(task) => Ok(Target::Task(task)),
            Err(error) if is_scope && blame_and_data(&error).1["code"] == "unknown_task" => {
                Ok(Target::Scope(given.to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// Tasks of a scope, or of the board, that have one of these statuses and no parts.
    pub(super) fn leaves(
        &self,
        scope: Option<&str>,
        statuses: &[TaskStatus],
    ) -> anyhow::Result<Vec<Brief>> {
        let scope = scope.filter(|scope| *scope != ALL).map(str::to_owned);
        let query = Params { scope, statuses: statuses.to_vec(), ..Default::default() };
        let mut found = tasks::every_brief(self, query)?;
        // A filter by status takes results in review for work in progress.
        found.retain(|task| task.parts.is_none() && statuses.contains(&task.status));
        Ok(found)
    }

    /// The parts of the task that have one of these statuses and no parts themselves, or the task
    /// if it has no parts.
    pub(super) fn parts_or_itself(
        &self,
        task: &Named,
        statuses: &[TaskStatus],
    ) -> anyhow::Result<Vec<Brief>> {
        let parts = |of: &TaskId| {
            let query = Params { parent: Some(of.to_string()), ..Default::default() };
            tasks::every_brief(self, query)
        };
        let (mut found, mut below) = (Vec::new(), parts(&task.id)?);
        if below.is_empty() {
            return Ok(vec![self.brief(task)?]);
        }
        while let Some(part) = below.pop() {
            match part.parts {
                Some(_) => below.extend(parts(&part.id)?),
                None if statuses.contains(&part.status) => found.push(part),
                None => {}
            }
        }
        found.sort_by_key(|part| part.number);
        Ok(found)
    }

    /// The task in one line, with who works on it.
    fn brief(&self, named: &Named) -> anyhow::Result<Brief> {
        let query = get_task::Params { task_id: named.id.to_string(), ..Default::default() };
        let task = self.ask::<ops::GetTask>(&query)?.reply.task.task;
        Ok(Brief {
            id: named.id.clone(),
            number: named.number,
            path: task.path.clone(),
            title: named.title.clone(),
            status: task.status,
            ready: false,
            parts: None,
            blocked_by: Vec::new(),
            until: task.not_before,
            agent: task.claimed_by.clone().filter(|_| task.status.is_held()),
            priority: task.priority,
        })
    }

    /// Asks on a terminal whether to do it to the tasks, as these words of a command line say.
    /// Without a terminal it is done, unless that `needs` a person.
    pub(super) fn confirm(
        &self,
        verb: &str,
        words: &[&str],
        hits: &Hits,
        needs: bool,
    ) -> anyhow::Result<()> {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal() && !self.json;
        if !is_terminal && !needs {
            return Ok(());
        }
        let mut page = self.page(crate::participant::board_time(self.dir()));
        for hit in hits.tasks.iter().take(CANDIDATES) {
            let agent = hit.agent.as_ref().map(|agent| format!(" ({agent} works on it)"));
            page.line(format_args!("  {}{}", Named::from(hit), agent.unwrap_or_default()));
        }
        if let Some(more) = hits.tasks.len().checked_sub(CANDIDATES).filter(|more| *more > 0) {
            page.line(format_args!("  and {more} more"));
        }
        eprint!("{}", page.into_text());
        let count = match hits.tasks.len() {
            1 => "this task".to_owned(),
            many => format!("these {many} tasks"),
        };
        if is_terminal && asked(&format!("{verb} {count}?"))? {
            return Ok(());
        }
        let line = shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "));
        let line = self.wording.command(&format!("{line} --yes"));
        let why = format!("nothing was changed; {line} does it without asking");
        Err(Declined(anyhow::anyhow!(why)).into())
    }
}

/// Asks at the terminal; anything but yes is no.
pub(super) fn asked(question: &str) -> io::Result<bool> {
    eprint!("{question} [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes what was hit, or would be: one task a line, and how many more there are.
pub(super) fn list(page: &mut print::Page, word: &str, tone: print::Tone, tasks: &[Named]) {
    for task in tasks.iter().take(CANDIDATES) {
        page.marked(word, tone, task);
    }
    if let Some(more) = tasks.len().checked_sub(CANDIDATES).filter(|more| *more > 0) {
        page.line(format_args!("and {more} more"));
    }
}
