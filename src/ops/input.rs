//! Parameters that several operations share, and checks of them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::state::State;
use crate::state::agent::Demands;
use crate::state::event::NewTask;
use crate::state::hierarchy;
use crate::state::id::{Chance, TaskId};
use crate::state::limit;
use crate::state::pattern::Pattern;
use crate::state::refusal::Refusal;
use crate::state::review::Review;
use crate::state::task::{Context, DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, Place, TaskResult};
use crate::state::time::Timestamp;

// A task as its planner gives it. No doc comment, because every tool list would contain it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskInput {
    pub description: String,
    /// 1 (first) to 10
    #[serde(default = "default_priority")]
    pub priority: i64,
    /// Ids of tasks to do first
    #[serde(default)]
    pub dependencies: Vec<String>,
    #[serde(default)]
    pub context_files: Vec<String>,
    pub hints: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Made up if omitted
    pub id: Option<String>,
    pub title: Option<String>,
    /// Such as P1.M2.T3
    pub path: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    pub demands: Option<Demands>,
    pub max_attempts: Option<u32>,
    /// Of each attempt
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_minutes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_minutes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// A repeated call creates nothing
    pub idempotency_key: Option<String>,
}

fn default_priority() -> i64 {
    i64::from(DEFAULT_PRIORITY)
}

impl Default for TaskInput {
    fn default() -> Self {
        Self {
            description: String::new(),
            priority: default_priority(),
            dependencies: Vec::new(),
            context_files: Vec::new(),
            hints: None,
            metadata: Map::new(),
            id: None,
            title: None,
            path: None,
            tags: Vec::new(),
            demands: None,
            max_attempts: None,
            timeout_seconds: None,
            silent_minutes: None,
            estimated_minutes: None,
            review: None,
            idempotency_key: None,
        }
    }
}

/// The tasks of one call as they will be recorded. A dependency `#N` names the N-th task of the
/// same call, counted from 0.
pub(crate) fn new_tasks<'a>(
    inputs: impl ExactSizeIterator<Item = &'a TaskInput> + Clone,
    state: &State,
    seed: u64,
    place: &Place,
) -> Result<Vec<NewTask>, Refusal> {
    let mut chance = Chance::new(seed);
    let many = inputs.len() > 1;
    let of_batch = |index, input: &TaskInput, refusal| match refusal {
        Refusal::UnknownDependency { dependency, .. } if input.id.is_none() => {
            Refusal::UnknownDependency { task: at(index), dependency }
        }
        refusal if many => Refusal::TaskOfBatch { index, refusal: Box::new(refusal) },
        refusal => refusal,
    };
    let mut taken: HashSet<_> = inputs.clone().filter_map(|input| input.id.clone()).collect();
    let mut made_up = || loop {
        let id = format!("task-{}", chance.base32(6));
        if state.status_of(&TaskId::trusted(id.as_str())).is_none() && taken.insert(id.clone()) {
            return TaskId::trusted(id);
        }
    };
    let ids = inputs.clone().enumerate().map(|(index, input)| match &input.id {
        Some(id) => TaskId::checked(id).map_err(|refusal| of_batch(index, input, refusal)),
        None => Ok(made_up()),
    });
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    let tasks = inputs.zip(&ids).enumerate();
    let tasks = tasks.map(|(index, (input, id))| {
        new_task(input, id, &ids, place).map_err(|refusal| of_batch(index, input, refusal))
    });
    let mut tasks: Vec<NewTask> = tasks.collect::<Result<_, _>>()?;
    find_parents(&mut tasks, state);
    Ok(tasks)
}

/// Sets the parent of each task with a path: the task nearest above it, from the same call or the
/// board.
fn find_parents(tasks: &mut [NewTask], state: &State) {
    let mut at: HashMap<String, Vec<TaskId>> = HashMap::new();
    for task in tasks.iter() {
        if let Some(path) = &task.path {
            at.entry(path.clone()).or_default().push(task.id.clone());
        }
    }
    for task in tasks.iter_mut() {
        let Some(path) = task.path.as_deref() else { continue };
        let above = std::iter::successors(hierarchy::parent_path(path), |path| {
            hierarchy::parent_path(path)
        });
        let of_call = above.filter_map(|path| match at.get(path)?.as_slice() {
            [one] => Some((path, one.clone())),
            _ => None,
        });
        let of_call = of_call.into_iter().next();
        let of_board = state.parent_at(path);
        let is_nearer = |path: &str| {
            of_board
                .is_none_or(|one| one.path.as_deref().is_none_or(|other| other.len() < path.len()))
        };
        task.parent = match of_call {
            Some((path, id)) if is_nearer(path) => Some(id),
            _ => of_board.map(|task| task.id.clone()),
        };
    }
}

/// The name `#N` of a task without an id of its own, in refusals and in dependencies on it.
fn at(position: usize) -> TaskId {
    TaskId::trusted(format!("#{position}"))
}

/// The refusal with `#N` in place of every id that was just made up, because the caller has never
/// seen those ids.
pub(crate) fn by_position(refusal: Refusal, inputs: &[TaskInput], tasks: &[NewTask]) -> Refusal {
    let positions: HashMap<&TaskId, usize> = tasks.iter().map(|task| &task.id).zip(0..).collect();
    let named = |id: TaskId| {
        let position = positions.get(&id).copied().filter(|at| inputs[*at].id.is_none());
        position.map_or(id, at)
    };
    match refusal {
        Refusal::DependencyCycle { cycle } => {
            Refusal::DependencyCycle { cycle: cycle.into_iter().map(named).collect() }
        }
        Refusal::UnknownDependency { task, dependency } => {
            Refusal::UnknownDependency { task: named(task), dependency }
        }
        other => other,
    }
}

fn new_task(
    input: &TaskInput,
    id: &TaskId,
    ids: &[TaskId],
    place: &Place,
) -> Result<NewTask, Refusal> {
    let unknown = |dependency: &str| Refusal::UnknownDependency {
        task: id.clone(),
        dependency: dependency.to_owned(),
    };
    let resolve = |dependency: &String| match dependency.strip_prefix('#') {
        Some(position) => {
            let found = position.parse::<usize>().ok().and_then(|position| ids.get(position));
            found.cloned().ok_or_else(|| unknown(dependency))
        }
        None => TaskId::checked(dependency)
            .map_err(|_| unknown(&dependency.chars().take(64).collect::<String>())),
    };
    limit::DEPENDENCIES.check(input.dependencies.len())?;
    input.path.as_deref().map_or(Ok(()), |path| check_path(path, hierarchy::is_path(path)))?;
    let files = checked_patterns("context_files", &input.context_files, place)?;
    let context =
        context(&files, input.hints.as_deref(), checked_metadata(input.metadata.clone())?)?;
    Ok(NewTask {
        id: id.clone(),
        title: checked_title(input.title.as_deref())?,
        description: checked_description(&input.description)?,
        priority: checked_priority(input.priority)?,
        dependencies: unique(input.dependencies.iter().map(resolve))?,
        context: Some(context).filter(|context| !context.is_empty()),
        path: input.path.clone(),
        parent: None,
        planned: None,
        status: None,
        demands: checked_demands(input.demands.as_ref())?,
        tags: checked_labels(&input.tags)?,
        max_attempts: checked_attempts(input.max_attempts)?.unwrap_or(DEFAULT_MAX_ATTEMPTS),
        not_before: None::<Timestamp>,
        timeout_seconds: checked_span("timeout_seconds", input.timeout_seconds)?,
        silent_minutes: checked_span("silent_minutes", input.silent_minutes)?,
        estimated_minutes: checked_span("estimated_minutes", input.estimated_minutes)?,
        review: input.review,
        run: None,
    })
}

/// Each id once, in the order given.
pub(crate) fn unique(
    ids: impl Iterator<Item = Result<TaskId, Refusal>>,
) -> Result<Vec<TaskId>, Refusal> {
    let mut seen = BTreeSet::new();
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    Ok(ids.into_iter().filter(|id| seen.insert(id.clone())).collect())
}

pub(crate) fn checked_metadata(
    metadata: Map<String, Value>,
) -> Result<Map<String, Value>, Refusal> {
    let metadata = Value::Object(metadata);
    limit::METADATA.check(metadata.to_string().len())?;
    limit::DEPTH.check(depth(&metadata))?;
    Ok(if let Value::Object(fields) = metadata { fields } else { Map::new() })
}

pub(crate) fn context(
    files: &[String],
    hints: Option<&str>,
    metadata: Map<String, Value>,
) -> Result<Context, Refusal> {
    let files = checked_files(files)?;
    if let Some(hints) = hints {
        limit::HINTS.check_text(hints)?;
    }
    Ok(Context { files, hints: hints.map(str::to_owned), parent_task: None, metadata })
}

/// Checks paths and globs inside the project and makes them relative to the worktree's root. `what`
/// is the argument's name.
pub(crate) fn checked_patterns(
    what: &'static str,
    files: &[String],
    place: &Place,
) -> Result<Vec<String>, Refusal> {
    let files = checked_files(files)?.into_iter().enumerate();
    let checked = files.map(|(number, file)| {
        let file = place.relative(&file);
        Pattern::checked(file, || format!("{what}[{number}]")).map(|_| file.to_owned())
    });
    checked.collect()
}

pub(crate) fn checked_files(files: &[String]) -> Result<Vec<String>, Refusal> {
    limit::FILES.check(files.len())?;
    for file in files {
        limit::PATH.check_text(file)?;
    }
    Ok(files.to_vec())
}

pub(crate) fn checked_description(text: &str) -> Result<String, Refusal> {
    checked_text("description", &limit::DESCRIPTION, text)
}

/// Checks that a text is not empty and within its limit.
pub(crate) fn checked_text(
    what: &'static str,
    limit: &limit::Limit,
    text: &str,
) -> Result<String, Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::Empty { what });
    }
    limit.check_text(text)?;
    Ok(text.to_owned())
}

pub(crate) fn checked_title(title: Option<&str>) -> Result<Option<String>, Refusal> {
    title.map(|title| checked_text("title", &limit::TITLE, title)).transpose()
}

pub(crate) fn checked_reason(reason: Option<&String>) -> Result<Option<String>, Refusal> {
    reason.map(|reason| limit::REASON.check_text(reason).map(|()| reason.clone())).transpose()
}

pub(crate) fn checked_priority(given: i64) -> Result<u8, Refusal> {
    match u8::try_from(given) {
        Ok(priority @ 1..=10) => Ok(priority),
        _ => Err(Refusal::BadPriority { given }),
    }
}

pub(crate) fn checked_attempts(given: Option<u32>) -> Result<Option<u32>, Refusal> {
    if given == Some(0) {
        return Err(Refusal::Zero { what: "max_attempts" });
    }
    limit::ATTEMPTS.check(given.unwrap_or_default() as usize)?;
    Ok(given)
}

/// A number of seconds or minutes; none is not 0.
pub(crate) fn checked_span(what: &'static str, given: Option<u32>) -> Result<Option<u32>, Refusal> {
    if given == Some(0) {
        return Err(Refusal::Zero { what });
    }
    limit::SPAN.check(given.unwrap_or_default() as usize)?;
    Ok(given)
}

/// Each label once, in the order given.
pub(crate) fn checked_labels(labels: &[String]) -> Result<Vec<String>, Refusal> {
    limit::LABELS.check(labels.len())?;
    let mut seen = BTreeSet::new();
    for label in labels {
        checked_text("tag or capability", &limit::LABEL, label)?;
    }
    Ok(labels.iter().filter(|label| seen.insert(*label)).cloned().collect())
}

pub(crate) fn checked_demands(demands: Option<&Demands>) -> Result<Demands, Refusal> {
    let Some(demands) = demands else { return Ok(Demands::default()) };
    limit::LABELS.check(demands.capabilities.len() + demands.tags.len())?;
    for label in demands.capabilities.iter().chain(&demands.tags) {
        checked_text("demand", &limit::LABEL, label)?;
    }
    // The same limit as for an agent's properties, which these must equal.
    let properties = [&demands.hostname, &demands.project_dir, &demands.profile, &demands.kind];
    for property in properties.into_iter().flatten() {
        checked_text("demand", &limit::PATH, property)?;
    }
    Ok(demands.clone())
}

pub(crate) fn checked_result(result: TaskResult) -> Result<TaskResult, Refusal> {
    if let Some(output) = &result.output {
        limit::OUTPUT.check_text(output)?;
    }
    for name in result.branch.iter().chain(&result.commit) {
        limit::PATH.check_text(name)?;
    }
    if let Some(data) = &result.data {
        limit::DATA.check(data.to_string().len())?;
        limit::DEPTH.check(depth(data))?;
    }
    checked_files(&result.files_modified)?;
    checked_files(&result.files_created)?;
    Ok(result)
}

/// Nesting depth of a value. It is limited because readers of the state file stop at some depth,
/// and the value lies some levels down in it.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// The target of a call that takes either a task or a scope.
pub(crate) enum Chosen<'p> {
    Task(TaskId),
    Scope(&'p str),
}

pub(crate) fn task_or_scope<'p>(
    task_id: Option<&str>,
    scope: Option<&'p str>,
    state: &State,
) -> Result<Chosen<'p>, Refusal> {
    match (task_id, scope) {
        (Some(id), None) => TaskId::checked(id).map(Chosen::Task),
        (None, Some(scope)) => {
            check_scope(Some(scope), state)?;
            Ok(Chosen::Scope(scope))
        }
        _ => Err(Refusal::TaskOrScope),
    }
}

/// Checks that a scope is `all` or a path such as P1, P1.M2, P1.M2.T3, P1.M2.T3.S4, maybe behind a
/// plan and `:`, and that no two plans have that path.
pub(crate) fn check_scope(scope: Option<&str>, state: &State) -> Result<(), Refusal> {
    let Some(scope) = scope.filter(|scope| *scope != "all") else { return Ok(()) };
    let (plan, path) = hierarchy::split_scope(scope);
    check_path(path, hierarchy::numbers(path).is_some() || plan.is_some() && path == "all")?;
    limit::PLAN_NAME.check_text(plan.unwrap_or_default())?;
    state.check_path_meant(scope)
}

fn check_path(path: &str, is_one: bool) -> Result<(), Refusal> {
    if is_one && path.len() <= limit::ID.max {
        return Ok(());
    }
    Err(Refusal::BadPath {
        given: path.chars().filter(|c| !c.is_control()).take(limit::ID.max).collect(),
    })
}

/// Entries on a page: `given`, else `default`.
pub(crate) fn page(given: Option<NonZeroU32>, default: usize) -> Result<usize, Refusal> {
    let Some(given) = given else { return Ok(default) };
    limit::PAGE.check(given.get() as usize)?;
    Ok(given.get() as usize)
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Success {
    pub success: bool,
}

pub(crate) const SUCCESS: Success = Success { success: true };

/// Refuses a field that is given and cleared at once.
pub(crate) fn check_cleared<F: PartialEq>(
    cleared: &[F],
    given: &[(F, bool)],
) -> Result<(), Refusal> {
    let is_both = given.iter().any(|(field, is_given)| *is_given && cleared.contains(field));
    if is_both { Err(Refusal::GivenAndCleared) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::Envelope;
    use crate::state::event::Event;
    use crate::state::id::ParticipantId;

    #[test]
    fn id_that_is_taken_is_not_made_up_again() {
        let plain: TaskInput = serde_json::from_value(json!({"description": "d"})).unwrap();
        let first =
            new_tasks(std::iter::once(&plain), &State::new(), 7, &Place::default()).unwrap();
        let mut state = State::new();
        let participant = ParticipantId::trusted("p-1");
        let envelope =
            Envelope { at: Timestamp::default(), participant, actor: None, idempotency: None };
        state
            .record(Event::BoardCreated { board_id: "b".to_owned(), numbered: true }, &envelope)
            .unwrap();
        state.record(Event::TasksCreated { tasks: first.clone() }, &envelope).unwrap();
        let again = new_tasks(std::iter::once(&plain), &state, 7, &Place::default()).unwrap();
        assert_ne!(again[0].id, first[0].id);
        let named = json!({"description": "d", "id": again[0].id.as_str()});
        let named: TaskInput = serde_json::from_value(named).unwrap();
        let batch = new_tasks([&plain, &named].into_iter(), &state, 7, &Place::default()).unwrap();
        assert_eq!(batch[1].id, again[0].id);
        assert_ne!(batch[0].id, again[0].id);
    }
}
