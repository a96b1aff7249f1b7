use serde_json::{Map, Value, json};

use super::{GROUP, OF_CONTEXT, OWN, word};
use crate::exchange::View;
use crate::exchange::report::Report;
use crate::state::limit;
use crate::state::plan::{one_line, shortened};
use crate::state::task::{DEFAULT_MAX_ATTEMPTS, Task, TaskResult, TaskStatus};

/// What is special to one of the formats.
pub(crate) struct Flavour {
    /// Word for a status.
    pub word: fn(TaskStatus) -> &'static str,
    /// Whether fields that say nothing are left out.
    pub is_brief: bool,
    /// Whether groups of tasks have a place of their own.
    pub has_groups: bool,
    /// Whether every task has a context and counts its attempts, and every result has an output
    /// and a list of files.
    pub has_contexts: bool,
}

pub(crate) struct Writing<'a> {
    pub view: &'a View,
    pub flavour: Flavour,
    ids: Vec<String>,
}

impl<'a> Writing<'a> {
    pub(crate) fn new(view: &'a View, flavour: Flavour) -> Self {
        Self { view, flavour, ids: view.ids(|format| format.starts_with("option-")) }
    }

    pub(crate) fn id(&self, number: usize) -> String {
        self.ids[number].clone()
    }

    pub(crate) fn is_group(&self, number: usize) -> bool {
        self.flavour.has_groups && self.view.kept(number, GROUP).is_some()
    }

    pub(crate) fn tasks(&self, report: &mut Report) -> Vec<Value> {
        let tasks = (0..self.view.tasks.len()).filter(|number| !self.is_group(*number));
        tasks.map(|number| Value::Object(self.task(number, report))).collect()
    }

    fn task(&self, number: usize, report: &mut Report) -> Map<String, Value> {
        let (view, task) = (self.view, &self.view.tasks[number]);
        let (of_context, metadata): (Map<_, _>, Map<_, _>) = view
            .metadata(number, &OWN, report)
            .into_iter()
            .partition(|(name, _)| name.starts_with(OF_CONTEXT));
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| {
            if !self.flavour.is_brief || says_something(&value) {
                fields.insert(name.to_owned(), value);
            }
        };
        put("id", self.id(number).into());
        put("description", (&*task.description).into());
        put("status", self.status(number).into());
        put("priority", task.priority.into());
        put("claimed_by", json!(task.claimed_by));
        put("dependencies", json!(self.depends(number)));
        put("context", self.context(number, of_context));
        put("result", self.ended(task));
        put("created_at", json!(task.created_at));
        put("claimed_at", json!(task.claimed_at));
        put("completed_at", json!(task.completed_at));
        self.beside(number, &mut fields);
        // A board of one of these formats may have said of a task what its group says now.
        metadata.into_iter().for_each(|(name, value)| _ = fields.entry(name).or_insert(value));
        fields
    }

    /// Fields that only some of the formats have.
    fn beside(&self, number: usize, fields: &mut Map<String, Value>) {
        let (view, task) = (self.view, &self.view.tasks[number]);
        let mut put = |name: &str, value: Value| {
            if says_something(&value) {
                fields.insert(name.to_owned(), value);
            }
        };
        let first = one_line(task.description.trim().lines().next().unwrap_or_default());
        put(
            "title",
            json!(
                task.title.as_ref().filter(|title| **title != shortened(&first, limit::TITLE.max))
            ),
        );
        put("started_at", json!(task.started_at));
        put("tags", json!(task.tags));
        let is_in_group = view.parents[number].is_some_and(|parent| self.is_group(parent));
        put("parent_id", json!(view.parent_id(number, &self.ids).filter(|_| !is_in_group)));
        let group = view.parents[number].filter(|parent| self.is_group(*parent));
        put("group_id", json!(group.map(|group| self.id(group))));
        put("estimated_duration", json!(task.estimated_minutes));
        put(
            "actual_duration",
            json!(task.actual_minutes().filter(|_| task.status == TaskStatus::Done)),
        );
        put("required_capabilities", json!(task.demands.capabilities));
        put("timeout_seconds", json!(task.timeout_seconds));
        put("timeout_minutes", json!(task.timeout_seconds.map(|seconds| seconds.div_ceil(60))));
        put("next_retry_at", json!(task.not_before));
        let is_default = task.max_attempts == DEFAULT_MAX_ATTEMPTS && self.flavour.is_brief;
        put("max_attempts", json!(Some(task.max_attempts).filter(|_| !is_default)));
        let counts = |number: &u32| *number > 0 || self.flavour.has_contexts;
        put("attempts", json!(Some(task.attempt).filter(counts)));
        put(
            "max_retries",
            json!(Some(task.max_attempts.saturating_sub(1)).filter(|_| !is_default)),
        );
        put("retry_count", json!(Some(task.attempt.saturating_sub(1)).filter(|count| *count > 0)));
    }

    fn status(&self, number: usize) -> &'static str {
        let task = &self.view.tasks[number];
        let waits_for_group =
            |on: &usize| self.is_group(*on) && self.view.tasks[*on].status != TaskStatus::Done;
        if task.status == TaskStatus::Available
            && self.view.depends(number).0.iter().any(waits_for_group)
        {
            "blocked"
        } else {
            (self.flavour.word)(task.status)
        }
    }

    /// What a task waits for. Where nothing is a part of anything, the whole waits for its parts,
    /// and they for what it waits for.
    fn depends(&self, number: usize) -> Vec<String> {
        let view = self.view;
        let (own, aside) = view.depends(number);
        let above = std::iter::successors(view.parents[number], |number| view.parents[*number]);
        let inherited = above.flat_map(|above| view.depends(above).0);
        let mut on: Vec<usize> = Vec::new();
        for one in own.into_iter().chain(inherited).chain(view.parts[number].iter().copied()) {
            let members: Vec<usize> =
                if self.is_group(one) { self.members(number, one) } else { vec![one] };
            on.extend(members.into_iter().filter(|one| !on.contains(one)).collect::<Vec<_>>());
        }
        on.into_iter().map(|on| self.id(on)).chain(aside).collect()
    }

    /// The members of a group that a task waits for; none if it is the group's barrier, for which
    /// the group says it.
    fn members(&self, number: usize, group: usize) -> Vec<usize> {
        if self.barrier(group) == Some(number) {
            Vec::new()
        } else {
            self.view.parts[group].clone()
        }
    }

    /// The task that waits for a group.
    pub(crate) fn barrier(&self, group: usize) -> Option<usize> {
        (0..self.view.tasks.len()).find(|number| self.view.depends(*number).0.contains(&group))
    }

    fn context(&self, number: usize, metadata: Map<String, Value>) -> Value {
        let task = &self.view.tasks[number];
        let mut fields = Map::new();
        if let Some(context) = task.context.as_deref() {
            if !context.files.is_empty() {
                fields.insert("files".to_owned(), json!(context.files));
            }
            if let Some(hints) = &context.hints {
                fields.insert("hints".to_owned(), hints.as_str().into());
            }
        }
        let metadata = metadata.into_iter();
        fields.extend(
            metadata.filter_map(|(name, value)| {
                Some((name.strip_prefix(OF_CONTEXT)?.to_owned(), value))
            }),
        );
        if self.flavour.has_contexts {
            for (name, nothing) in [("files", json!([])), ("hints", json!(""))] {
                fields.entry(name).or_insert(nothing);
            }
        }
        if fields.is_empty() { Value::Null } else { Value::Object(fields) }
    }

    /// The result; a task that was called off says so, as not every format has a word for it.
    fn ended(&self, task: &Task) -> Value {
        let mut fields = task.result.as_deref().map(result);
        if matches!(task.status, TaskStatus::Cancelled | TaskStatus::Obsolete) {
            fields.get_or_insert_default().insert("cancelled".to_owned(), true.into());
        }
        let Some(mut fields) = fields else { return Value::Null };
        if self.flavour.has_contexts {
            for (name, nothing) in [("output", json!("")), ("files_modified", json!([]))] {
                fields.entry(name).or_insert(nothing);
            }
        }
        Value::Object(fields)
    }
}

/// The result, with its data beside its own fields.
fn result(result: &TaskResult) -> Map<String, Value> {
    let mut fields = match &result.data {
        Some(Value::Object(data)) => data.clone(),
        Some(data) => Map::from_iter([("data".to_owned(), data.clone())]),
        None => Map::new(),
    };
    if let Ok(Value::Object(own)) =
        serde_json::to_value(TaskResult { data: None, ..result.clone() })
    {
        fields.extend(own);
    }
    fields
}

fn says_something(value: &Value) -> bool {
    !value.is_null() && value.as_array().is_none_or(|values| !values.is_empty())
}

/// The fields of the whole that all formats have.
pub(crate) fn whole(view: &View) -> Map<String, Value> {
    let lists = ["agents", "discoveries"];
    let beside = view.metadata_of_all.iter().filter(|(name, _)| !lists.contains(&name.as_str()));
    beside.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Puts these fields beside a file's own.
pub(crate) fn add_beside(
    beside: Map<String, Value>,
    fields: &mut Map<String, Value>,
    report: &mut Report,
) {
    for (name, value) in beside {
        if fields.contains_key(&name) {
            report.left_out(&format!("{name} of the plan's metadata"));
        } else {
            fields.insert(name, value);
        }
    }
}

/// A report of how a task ended, as text.
pub(crate) fn told(task: &Task, id: &str) -> Option<String> {
    let result = task.result.as_deref()?;
    let by = task.claimed_by.as_ref().map_or("unknown", |agent| agent.as_str());
    let at = task.completed_at.map(|at| at.to_string()).unwrap_or_default();
    let list = |files: &[String]| match files {
        [] => "None".to_owned(),
        files => files.iter().map(|file| format!("- {file}")).collect::<Vec<_>>().join("\n"),
    };
    let (output, error) =
        (result.output.as_deref().unwrap_or_default(), result.error.as_deref().unwrap_or_default());
    let description = &task.description;
    match task.status {
        TaskStatus::Done => Some(format!(
            "# Task: {id}\n\n## Description\n{description}\n\n## Completed By\n{by}\n\n## Completed At\n{at}\n\n\
             ## Output\n{output}\n\n## Files Modified\n{}\n\n## Files Created\n{}\n\n## Status\nSUCCESS\n",
            list(&result.files_modified),
            list(&result.files_created),
        )),
        TaskStatus::Failed => Some(format!(
            "# Task: {id}\n\n## Description\n{description}\n\n## Attempted By\n{by}\n\n## Failed At\n{at}\n\n\
             ## Failure Reason\n{error}\n\n## Status\nFAILED\n"
        )),
        _ => None,
    }
}

/// Words of the formats that know the five statuses alone.
pub(crate) fn plain_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Cancelled | TaskStatus::Obsolete => "failed",
        other => word(other),
    }
}
