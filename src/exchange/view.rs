//! The board as an export sees it.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::parts::PARENT;
use super::priority::{self, PRIORITY};
use super::reading::{DEPENDS, TITLE};
use super::report::Report;
use super::status::{self, MADE, WORD};
use crate::state::agent::Agent;
use crate::state::discovery::Discovery;
use crate::state::hierarchy;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::plan::{Stated, one_line, shortened};
use crate::state::task::{DEFAULT_MAX_ATTEMPTS, Source, Task, TaskResult, TaskStatus};

/// What a file says for the status of a task.
pub(crate) struct Word {
    pub word: String,
    /// The board's own word, if the format has none that is read as the same.
    pub own: Option<&'static str>,
}

/// Tasks in the order of their plans and then of their making, each before its parts.
#[derive(Default)]
pub(crate) struct View {
    pub tasks: Vec<Task>,
    pub parents: Vec<Option<usize>>,
    pub parts: Vec<Vec<usize>>,
    numbers: HashMap<TaskId, usize>,
    pub goal: String,
    pub master_plan: String,
    pub agents: Vec<Agent>,
    pub discoveries: Vec<Discovery>,
    /// What all imports have kept.
    pub metadata_of_all: Map<String, Value>,
}

impl View {
    /// The tasks of a board without runs, and without what has left its plan.
    pub(crate) fn new(tasks: Vec<Task>) -> Self {
        let is_shown = |task: &Task| {
            task.run.is_none() && !(task.status == TaskStatus::Obsolete && task.planned.is_none())
        };
        let mut tasks: Vec<Task> = tasks.into_iter().filter(is_shown).collect();
        tasks.sort_by_cached_key(|task| {
            let numbers = task
                .path
                .as_deref()
                .filter(|_| task.planned.is_some())
                .and_then(hierarchy::numbers);
            (numbers.is_none(), numbers, task.created_at)
        });
        let there: BTreeSet<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
        let mut below: HashMap<Option<TaskId>, Vec<Task>> = HashMap::new();
        for task in tasks {
            let parent = task.parent.clone().filter(|parent| there.contains(parent));
            below.entry(parent).or_default().push(task);
        }
        let mut view = Self::default();
        view.add(None, &mut below);
        view
    }

    fn add(&mut self, parent: Option<usize>, below: &mut HashMap<Option<TaskId>, Vec<Task>>) {
        let key = parent.map(|parent| self.tasks[parent].id.clone());
        for task in below.remove(&key).unwrap_or_default() {
            let number = self.tasks.len();
            self.numbers.insert(task.id.clone(), number);
            self.tasks.push(task);
            self.parents.push(parent);
            self.parts.push(Vec::new());
            if let Some(parent) = parent {
                self.parts[parent].push(number);
            }
            self.add(Some(number), below);
        }
    }

    pub(crate) fn roots(&self) -> impl Iterator<Item = usize> {
        (0..self.tasks.len()).filter(|number| self.parents[*number].is_none())
    }

    pub(crate) fn number(&self, id: &TaskId) -> Option<usize> {
        self.numbers.get(id).copied()
    }

    pub(crate) fn source(&self, number: usize) -> Option<&Source> {
        self.tasks[number].planned.as_ref()?.source.as_ref()
    }

    /// The task's id in files of this format, if it came from one.
    pub(crate) fn id_in(&self, format: &str, number: usize) -> Option<&str> {
        self.source(number)
            .filter(|source| source.format == format)
            .map(|source| source.id.as_str())
    }

    /// The id that each task had in files of the formats that `is` names. Of tasks with the same
    /// id, the first has it.
    pub(crate) fn ids_before(&self, is: impl Fn(&str) -> bool) -> Vec<Option<String>> {
        let mut taken: HashSet<&str> = HashSet::new();
        let all = 0..self.tasks.len();
        let before = all.map(|number| {
            let source = self.source(number).filter(|source| is(&source.format))?;
            taken.insert(&source.id).then(|| source.id.clone())
        });
        before.collect()
    }

    /// An id for each task in a file of one of these formats: that which it had there, or the
    /// task's own.
    pub(crate) fn ids(&self, is: impl Fn(&str) -> bool) -> Vec<String> {
        let before = self.ids_before(is);
        let mut taken: HashSet<String> = before.iter().flatten().cloned().collect();
        let ids = before.into_iter().zip(&self.tasks).map(|(before, task)| {
            before.unwrap_or_else(|| {
                let mut own = task.id.to_string();
                while !taken.insert(own.clone()) {
                    own.push_str("-2");
                }
                own
            })
        });
        ids.collect()
    }

    /// The id of what the task is a part of: that of another task, or the one in its file, which
    /// had no item with it.
    pub(crate) fn parent_id(&self, number: usize, ids: &[String]) -> Option<String> {
        let kept = || {
            self.kept(number, PARENT)
                .filter(|_| self.source(number).is_some())?
                .as_str()
                .map(str::to_owned)
        };
        self.parents[number].map_or_else(kept, |parent| Some(ids[parent].clone()))
    }

    /// The task's title, as long as it was in the file that it came from.
    pub(crate) fn title(&self, number: usize) -> String {
        let task = &self.tasks[number];
        let whole = self.kept(number, TITLE).and_then(Value::as_str);
        let is_same =
            |whole: &&str| shortened(&one_line(whole), limit::TITLE.max) == task.headline();
        whole.filter(is_same).unwrap_or(task.headline()).to_owned()
    }

    /// The task's description, if it says more than its title.
    pub(crate) fn description(&self, number: usize) -> Option<&str> {
        let task = &self.tasks[number];
        Some(&*task.description)
            .filter(|text| *text != task.headline() && task.title.as_deref() != Some(text))
    }

    /// What came of the task, or why it failed.
    pub(crate) fn result(&self, number: usize) -> Option<&str> {
        said(self.tasks[number].result.as_ref()?)
    }

    pub(crate) fn hints(&self, number: usize) -> Option<&str> {
        self.tasks[number].context.as_ref()?.hints.as_deref()
    }

    pub(crate) fn kept(&self, number: usize, field: &str) -> Option<&Value> {
        self.tasks[number].context.as_ref()?.metadata.get(field)
    }

    /// Fields that are kept for another format. Those that would be read as something else are left
    /// out: the ones that an import has made, which the board's own have the place of, and
    /// those of the format's own names.
    pub(crate) fn metadata(
        &self,
        number: usize,
        own: &[&str],
        report: &mut Report,
    ) -> Map<String, Value> {
        let context = self.tasks[number].context.as_deref();
        let mut metadata = context.map(|context| context.metadata.clone()).unwrap_or_default();
        let is_imported = self.source(number).is_some();
        metadata.retain(|name, _| {
            let is_ours = [WORD, MADE, TITLE, DEPENDS, PRIORITY, PARENT, status::NOTE]
                .contains(&name.as_str());
            let is_kept = !is_ours && !own.contains(&name.as_str());
            if !(is_kept || is_ours && is_imported) {
                report.left_out(&format!("metadata.{name}"));
            }
            is_kept
        });
        metadata
    }

    /// The tasks that one depends on, as far as they are in the view, and the ids that its file had
    /// beside those.
    pub(crate) fn depends(&self, number: usize) -> (Vec<usize>, Vec<String>) {
        let on = self.tasks[number].dependencies.iter().filter_map(|id| self.number(id)).collect();
        let aside = self
            .kept(number, DEPENDS)
            .and_then(Value::as_array)
            .filter(|_| self.source(number).is_some());
        let aside =
            aside.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        (on, aside)
    }

    /// What a file of the format calls each task's status: the word that it had, while the task has
    /// the status that the import made of it. `read` says what a word stands for.
    pub(crate) fn words(
        &self,
        format: &str,
        word: fn(TaskStatus) -> &'static str,
        read: &dyn Fn(usize, &str) -> Stated,
    ) -> Vec<Word> {
        let before = |number: usize| {
            let before = self.id_in(format, number).and_then(|_| self.kept(number, WORD)?.as_str());
            let made = self.kept(number, MADE).and_then(|made| status::named(made.as_str()?));
            let made = |word: &&str| made.unwrap_or_else(|| status::becomes(read(number, word)));
            before.filter(|word| made(word) == self.tasks[number].status)
        };
        let written = |(number, task): (usize, &Task)| match before(number) {
            Some(before) => Word { word: before.to_owned(), own: None },
            None => {
                let word = word(task.status);
                let is_clear = read(number, word) == status::said(task.status);
                let own = (!is_clear).then_some(task.status.as_str());
                Word { word: word.to_owned(), own }
            }
        };
        self.tasks.iter().enumerate().map(written).collect()
    }

    /// What a file of the format says for the task's priority.
    pub(crate) fn priority(
        &self,
        format: &str,
        number: usize,
        word: fn(u8) -> &'static str,
    ) -> &str {
        let before = self.id_in(format, number).and_then(|_| self.kept(number, PRIORITY)?.as_str());
        priority::written(before, self.tasks[number].priority, word)
    }

    /// Counts what the board has that a format has no place for: these fields of tasks, and what
    /// only the formats of other coordinators have.
    pub(crate) fn left_out(&self, fields: &[&str], report: &mut Report) {
        self.agents.iter().for_each(|_| report.left_out("agents"));
        self.discoveries.iter().for_each(|_| report.left_out("discoveries"));
        for task in &self.tasks {
            let context = task.context.as_deref();
            let of_coordinators = [
                ("estimated_minutes", task.estimated_minutes.is_some()),
                ("timeout_seconds", task.timeout_seconds.is_some()),
                ("max_attempts", task.max_attempts != DEFAULT_MAX_ATTEMPTS),
                ("review", task.review.is_some()),
                ("required_capabilities", !task.demands.capabilities.is_empty()),
            ];
            of_coordinators
                .iter()
                .filter(|(_, is_there)| *is_there)
                .for_each(|(field, _)| report.left_out(field));
            for field in fields {
                let is_there = match *field {
                    "tags" => !task.tags.is_empty(),
                    "files" => context.is_some_and(|context| !context.files.is_empty()),
                    "hints" => context.is_some_and(|context| context.hints.is_some()),
                    "result" => task.result.is_some(),
                    "metadata" => context.is_some_and(|context| !context.metadata.is_empty()),
                    _ => false,
                };
                if is_there {
                    report.left_out(field);
                }
            }
        }
    }
}

/// Numbers that nothing has: those after all others, and then those between them.
pub(super) fn free_numbers(taken: &BTreeSet<u64>) -> impl Iterator<Item = u64> {
    let last = taken.last().copied().unwrap_or_default();
    (last..=u64::MAX).skip(1).chain(1..last).filter(|number| !taken.contains(number))
}

/// What a result says in words.
pub(super) fn said(result: &TaskResult) -> Option<&str> {
    result.output.as_deref().or(result.error.as_deref())
}
