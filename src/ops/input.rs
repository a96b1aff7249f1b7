//! Parameters that several operations share, and checks of them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Call, naming};
use crate::state::State;
use crate::state::agent::Demands;
use crate::state::event::NewTask;
use crate::state::hierarchy;
use crate::state::id::{Chance, TaskId, is_number};
use crate::state::limit;
use crate::state::pattern::Pattern;
use crate::state::refusal::Refusal;
use crate::state::review::Review;
use crate::state::task::{
    Context, DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, Place, TaskResult, TaskStatus,
};
use crate::state::time::Timestamp;

// A task as its planner gives it. No doc comment, because every tool list would contain it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskInput {
    pub description: String,
    /// 1 (first) to 10
    #[serde(default = "default_priority")]
    pub priority: i64,
    /// Tasks to do first
    #[serde(default)]
    pub dependencies: Vec<String>,
    #[serde(default)]
    pub context_files: Vec<String>,
    pub hints: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    // Made up if omitted. No doc comment, because every tool list would contain it.
    pub id: Option<String>,
    // What other tasks of the same call name it by; it is kept nowhere.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("deprecated" = true))]
    pub reference: Option<String>,
    pub title: Option<String>,
    /// Such as P1.M2.T3
    pub path: Option<String>,
    /// Task that it is part of
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
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
    // A repeated call creates nothing.
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
            reference: None,
            title: None,
            path: None,
            parent: None,
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

/// The tasks of one call as they will be recorded. They name each other by `id`, `ref`, title or
/// path; an `id` of digits is such a name only, because numbers belong to the board.
pub(crate) fn new_tasks<'a>(
    inputs: impl ExactSizeIterator<Item = &'a TaskInput> + Clone,
    state: &State,
    call: &Call,
) -> Result<Vec<NewTask>, Refusal> {
    let mut chance = Chance::new(call.seed);
    let many = inputs.len() > 1;
    let of_batch = |index, input: &TaskInput, refusal| match refusal {
        Refusal::UnknownDependency { dependency, .. } if own_id(input).is_none() => {
            Refusal::UnknownDependency { task: at(index), dependency }
        }
        refusal if many => Refusal::TaskOfBatch { index, refusal: Box::new(refusal) },
        refusal => refusal,
    };
    let mut taken: HashSet<_> = inputs.clone().filter_map(own_id).map(str::to_owned).collect();
    let mut made_up = || loop {
        let id = format!("task-{}", chance.base32(6));
        if state.status_of(&TaskId::trusted(id.as_str())).is_none() && taken.insert(id.clone()) {
            return TaskId::trusted(id);
        }
    };
    let ids = inputs.clone().enumerate().map(|(index, input)| match own_id(input) {
        Some(id) => TaskId::checked(id).map_err(|refusal| of_batch(index, input, refusal)),
        None => Ok(made_up()),
    });
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    let names = Names::of(inputs.clone(), &ids, state, call);
    let tasks = inputs.zip(&ids).enumerate();
    let tasks = tasks.map(|(index, (input, id))| {
        new_task(input, id, &names, call.place).map_err(|refusal| of_batch(index, input, refusal))
    });
    let mut tasks: Vec<NewTask> = tasks.collect::<Result<_, _>>()?;
    place_parts(&mut tasks, state)?;
    find_parents(&mut tasks, state);
    Ok(tasks)
}

/// Checks the parents that tasks name, and gives each part the next place below its parent, if that
/// has one.
fn place_parts(tasks: &mut [NewTask], state: &State) -> Result<(), Refusal> {
    if tasks.iter().all(|task| task.parent.is_none()) {
        return Ok(());
    }
    let places: HashMap<TaskId, usize> =
        tasks.iter().enumerate().map(|(place, task)| (task.id.clone(), place)).collect();
    let bad = |why: String| Err(Refusal::BadParent { why });
    let mut taken: HashSet<String> = tasks.iter().filter_map(|task| task.path.clone()).collect();
    let mut next: HashMap<TaskId, u32> = HashMap::new();
    // A parent's path is known before those of its parts.
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (place, task) in tasks.iter().enumerate() {
        let own = std::iter::successors(Some(task), |task| {
            task.parent.as_ref().and_then(|parent| tasks.get(*places.get(parent)?))
        });
        let own: Vec<&NewTask> = own.take(hierarchy::DEEPEST + 1).collect();
        let above = own.last().and_then(|top| state.task(top.parent.as_ref()?));
        let above = above.map_or(0, |above| 1 + state.ancestors(above).count());
        if own.len() + above > hierarchy::DEEPEST {
            return bad(format!(
                "`{}` lies deeper than level {}, or in itself",
                task.id,
                hierarchy::DEEPEST
            ));
        }
        order.push((own.len(), place));
    }
    order.sort_unstable();
    for (_, place) in order {
        let Some(parent) = tasks[place].parent.clone() else { continue };
        let of_call = places.get(&parent).map(|above| tasks[*above].path.clone());
        let path = match of_call {
            Some(path) => path,
            None => {
                let above = state.known_task(&parent)?;
                let is_open = above.status.is_unfinished() && above.status != TaskStatus::Review;
                if above.run.is_some() || !is_open && !state.is_parent(&parent) {
                    let (task, status) = (parent, above.status);
                    let next = format!("reset_tasks `{task}` begins it anew; or leave parent out");
                    return Err(Refusal::WrongStatus { task, status, action: "given parts", next });
                }
                above.path.clone()
            }
        };
        match (&tasks[place].path, path) {
            (Some(own), above) if hierarchy::parent_path(own) != above.as_deref() => {
                return bad(format!("path {own} is not below `{parent}`; give one of the two"));
            }
            (None, Some(above)) if hierarchy::level(&above) < hierarchy::DEEPEST => {
                let next = next.entry(parent).or_insert(1);
                let free = (*next..).map_while(|number| {
                    *next = number + 1;
                    hierarchy::part_path(Some(&above), number)
                });
                let free = { free }
                    .find(|path| !taken.contains(path) && state.at_path(path).next().is_none());
                taken.extend(free.clone());
                tasks[place].path = free;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The id that a new task is to have, if it is given one: digits are a name in the call only.
pub(super) fn own_id(input: &TaskInput) -> Option<&str> {
    input.id.as_deref().filter(|id| !is_number(id))
}

/// What the task is called in its call only: `ref`, and an `id` of digits.
pub(super) fn refs(input: &TaskInput) -> impl Iterator<Item = &str> {
    let digits = input.id.as_deref().filter(|_| own_id(input).is_none());
    digits.into_iter().chain(input.reference.as_deref())
}

/// What the tasks of one call name each other by, and where else a name is looked up.
struct Names<'a> {
    /// `id` and `ref`, then titles, then paths: the task, or none if several are called so.
    own: [HashMap<&'a str, Option<&'a TaskId>>; 3],
    tasks: usize,
    state: &'a State,
    call: &'a Call<'a>,
}

impl<'a> Names<'a> {
    fn of<'i: 'a>(
        inputs: impl Iterator<Item = &'i TaskInput> + Clone,
        ids: &'a [TaskId],
        state: &'a State,
        call: &'a Call<'a>,
    ) -> Self {
        type Name = for<'i> fn(&'i TaskInput) -> [Option<&'i String>; 2];
        let sorts: [Name; 3] = [
            |input| [input.id.as_ref(), input.reference.as_ref()],
            |input| [input.title.as_ref(), None],
            |input| [input.path.as_ref(), None],
        ];
        let own = sorts.map(|names| {
            let mut called: HashMap<&str, Option<&TaskId>> = HashMap::new();
            for (input, id) in inputs.clone().zip(ids) {
                let mut names: Vec<_> = names(input).into_iter().flatten().collect();
                names.dedup();
                for name in names {
                    called.entry(name).and_modify(|one| *one = None).or_insert(Some(id));
                }
            }
            called
        });
        Self { own, tasks: ids.len(), state, call }
    }

    /// The task that is called so: one of the call, else one of the board.
    fn find(&self, given: &str) -> Result<Option<TaskId>, Refusal> {
        let own = self.own.iter().find_map(|called| called.get(given.trim()));
        match own {
            Some(Some(id)) => Ok(Some((*id).clone())),
            Some(None) => Err(Refusal::AmbiguousName { given: given.trim().to_owned() }),
            None if self.may_be_a_place(given) => {
                Err(Refusal::NumberInCall { number: given.trim().to_owned() })
            }
            None => Ok(naming::meant(given, self.state, self.call)?.map(|found| found.id)),
        }
    }

    /// Whether a bare number may count the tasks of the call, which name each other otherwise.
    fn may_be_a_place(&self, given: &str) -> bool {
        self.tasks > 1 && given.trim().parse::<usize>().is_ok_and(|number| number <= self.tasks)
    }

    fn parent(&self, given: &str) -> Result<TaskId, Refusal> {
        self.find(given)?.map_or_else(|| TaskId::checked(given), Ok)
    }

    /// The tasks that one entry of a list names: `a, b` is two, unless one is called so.
    fn all(&self, given: &str) -> Result<Vec<TaskId>, Refusal> {
        let found = naming::several(given, |name| match self.find(name)? {
            Some(id) => Ok(Some(id)),
            // It may be the id of a task that the state has forgotten.
            None => TaskId::checked(name).map(Some),
        })?;
        Ok(found.into_iter().flatten().map(|(_, id)| id).collect())
    }
}

/// Sets the parent of each task with a path that names none: the task nearest above it, from the
/// same call or the board.
fn find_parents(tasks: &mut [NewTask], state: &State) {
    let mut at: HashMap<String, Vec<TaskId>> = HashMap::new();
    for task in tasks.iter() {
        if let Some(path) = &task.path {
            at.entry(path.clone()).or_default().push(task.id.clone());
        }
    }
    for task in tasks.iter_mut() {
        let Some(path) = task.path.as_deref().filter(|_| task.parent.is_none()) else { continue };
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

/// The place `tasks[N]` of a task without an id of its own, in refusals.
fn at(position: usize) -> TaskId {
    TaskId::trusted(format!("tasks[{position}]"))
}

/// The refusal with `tasks[N]` in place of every id that was just made up, because the caller has
/// never seen those ids.
pub(crate) fn by_position(refusal: Refusal, inputs: &[TaskInput], tasks: &[NewTask]) -> Refusal {
    let positions: HashMap<&TaskId, usize> = tasks.iter().map(|task| &task.id).zip(0..).collect();
    let named = |id: TaskId| {
        let position = positions.get(&id).copied().filter(|at| own_id(&inputs[*at]).is_none());
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
    names: &Names,
    place: &Place,
) -> Result<NewTask, Refusal> {
    let unknown = |dependency: &str| Refusal::UnknownDependency {
        task: id.clone(),
        dependency: dependency.chars().take(limit::ID.max).collect(),
    };
    let resolve = |given: &String| {
        names.all(given).map_err(|refusal| match refusal {
            Refusal::NumberInCall { .. }
            | Refusal::AmbiguousTask { .. }
            | Refusal::AmbiguousPath { .. }
            | Refusal::AmbiguousName { .. } => refusal,
            _ => unknown(given),
        })
    };
    limit::DEPENDENCIES.check(input.dependencies.len())?;
    let dependencies = input.dependencies.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
    let parent = input.parent.as_deref().map(|given| names.parent(given)).transpose()?;
    input.path.as_deref().map_or(Ok(()), |path| check_path(path, hierarchy::is_path(path)))?;
    let files = checked_patterns("context_files", &input.context_files, place)?;
    let context =
        context(&files, input.hints.as_deref(), checked_metadata(input.metadata.clone())?)?;
    Ok(NewTask {
        id: id.clone(),
        title: checked_title(input.title.as_deref())?,
        description: checked_description(&input.description)?,
        priority: checked_priority(input.priority)?,
        dependencies: unique(dependencies.into_iter().flatten().map(Ok))?,
        context: Some(context).filter(|context| !context.is_empty()),
        path: input.path.clone(),
        parent,
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
    use crate::ops::{NoHistory, Vitals};
    use crate::state::Envelope;
    use crate::state::event::Event;
    use crate::state::id::ParticipantId;
    use crate::state::policy::Policy;

    #[test]
    fn id_that_is_taken_is_not_made_up_again() {
        let plain: TaskInput = serde_json::from_value(json!({"description": "d"})).unwrap();
        let participant = ParticipantId::trusted("p-1");
        let (policy, vitals) = (Policy::default(), Vitals::since(Timestamp::default()));
        let call = Call::new(Timestamp::default(), 7, &policy, &participant, &NoHistory, &vitals);
        let first = new_tasks(std::iter::once(&plain), &State::new(), &call).unwrap();
        let mut state = State::new();
        let participant = participant.clone();
        let envelope =
            Envelope { at: Timestamp::default(), participant, actor: None, idempotency: None };
        state
            .record(Event::BoardCreated { board_id: "b".to_owned(), numbered: true }, &envelope)
            .unwrap();
        state.record(Event::TasksCreated { tasks: first.clone() }, &envelope).unwrap();
        let again = new_tasks(std::iter::once(&plain), &state, &call).unwrap();
        assert_ne!(again[0].id, first[0].id);
        let named = json!({"description": "d", "id": again[0].id.as_str()});
        let named: TaskInput = serde_json::from_value(named).unwrap();
        let batch = new_tasks([&plain, &named].into_iter(), &state, &call).unwrap();
        assert_eq!(batch[1].id, again[0].id);
        assert_ne!(batch[0].id, again[0].id);
    }
}
