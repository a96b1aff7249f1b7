//! What only the state can tell about the names in a call: which tasks are meant by numbers, paths
//! and titles, and whether `a, b` is one name or two.

use serde_json::{Map, Value};

use super::understand::parts;
use super::{Call, CreateTask, CreateTasksBatch, FindTasks, Operation};
use crate::state::State;
use crate::state::id::{TaskId, is_number};
use crate::state::refusal::Refusal;
use crate::state::task::Named;

/// Arguments that name a task.
const ONE: [&str; 2] = ["task_id", "parent"];
/// Arguments that name several.
const MANY: [&str; 2] = ["task_ids", "dependencies"];
/// Operations that look names up themselves: tasks that are created together name each other, too.
const THEMSELVES: [&str; 3] = [CreateTask::NAME, CreateTasksBatch::NAME, FindTasks::NAME];

/// The names in a call that have not been looked up.
#[derive(Clone, Default)]
pub(super) struct Open {
    tasks: Vec<String>,
    /// Lists that came as one text with commas, as JSON pointers.
    joined: Vec<String>,
    /// Whether what is an id is meant as one, though another task has it as its number.
    trusts_ids: bool,
}

impl Open {
    pub(super) fn of(operation: &str, arguments: &Value, joined: Vec<String>) -> Self {
        let looks_up = !THEMSELVES.contains(&operation);
        let one = ONE.iter().filter_map(|name| arguments.get(*name)?.as_str());
        let many = MANY.iter().filter_map(|name| arguments.get(*name)?.as_array());
        let many = many.flatten().filter_map(Value::as_str);
        let tasks = one.chain(many).filter(|_| looks_up).map(str::to_owned).collect();
        Self { tasks, joined, trusts_ids: false }
    }

    /// The names in a call of a program that took the ids of its tasks from the board.
    pub(super) fn of_ids(operation: &str, arguments: &Value) -> Self {
        Self { trusts_ids: true, ..Self::of(operation, arguments, Vec::new()) }
    }

    /// Whether all names are ids, which no other task has as its number.
    pub(super) fn is_settled(&self, state: &State) -> bool {
        let is_plain = |name: &String| self.trusts_ids || !is_number(name);
        let is_id = |name: &String| is_plain(name) && state.task(&TaskId::trusted(name)).is_some();
        self.joined.is_empty() && self.tasks.iter().all(is_id)
    }

    /// Puts ids in place of other names, and several names in place of one text. Returns what was
    /// meant where that was not plain.
    pub(super) fn settle(
        &self,
        arguments: &mut Value,
        state: &State,
        call: &Call,
    ) -> Result<Option<String>, Refusal> {
        let mut said = Vec::new();
        for pointer in &self.joined {
            let Some(list) = arguments.pointer_mut(pointer).and_then(Value::as_array_mut) else {
                continue;
            };
            let [Value::String(whole)] = list.as_slice() else { continue };
            let name = pointer.rsplit('/').next().unwrap_or_default();
            if let Some(parts) = parts(whole).filter(|_| !exists(name, whole, state)) {
                said.push(format!("took `{name}` as {} names", parts.len()));
                *list = parts.into_iter().map(Value::from).collect();
            }
        }
        if let (Some(fields), false) = (arguments.as_object_mut(), self.tasks.is_empty()) {
            let look_up = |given: &str| match state.task(&TaskId::trusted(given)) {
                Some(task) if self.trusts_ids => Ok(Some(Named::from(&**task))),
                _ => meant(given, state, call),
            };
            settle_tasks(fields, look_up, &mut said)?;
        }
        Ok((!said.is_empty()).then(|| said.join("; ")))
    }
}

fn settle_tasks(
    fields: &mut Map<String, Value>,
    look_up: impl Fn(&str) -> Result<Option<Named>, Refusal>,
    said: &mut Vec<String>,
) -> Result<(), Refusal> {
    let mut note = |given: &str, found: &Named| {
        if given != found.id.as_str() {
            said.push(format!("`{given}` is {}", in_full(found)));
        }
    };
    for name in ONE {
        if let Some(Value::String(given)) = fields.get_mut(name)
            && let Some(found) = look_up(given)?
        {
            note(given, &found);
            *given = found.id.to_string();
        }
    }
    for name in MANY {
        let Some(Value::Array(list)) = fields.get_mut(name) else { continue };
        let mut ids = Vec::with_capacity(list.len());
        for given in list.iter().filter_map(Value::as_str) {
            match several(given, &look_up)? {
                Some(found) => found.into_iter().for_each(|(name, found)| {
                    note(name, &found);
                    ids.push(found.id.to_string());
                }),
                None => ids.push(given.to_owned()),
            }
        }
        *list = ids.into_iter().map(Value::from).collect();
    }
    Ok(())
}

/// The tasks that a text names: one, or those between its commas. `None` if it may be the id of a
/// task that the state does not have.
pub(super) fn several<'g, T>(
    given: &'g str,
    look_up: impl Fn(&'g str) -> Result<Option<T>, Refusal>,
) -> Result<Option<Vec<(&'g str, T)>>, Refusal> {
    match (look_up(given), parts(given)) {
        (Ok(found), _) => Ok(found.map(|found| vec![(given, found)])),
        (Err(refusal), None) => Err(refusal),
        (Err(_), Some(parts)) => {
            let all = parts.into_iter().map(|part| look_up(part).map(|found| Some((part, found?))));
            all.collect()
        }
    }
}

/// The task; `None` if there is none that the state knows, and `given` may be the id of one that
/// it has forgotten. The operation finds that one, or refuses it.
pub(super) fn meant(given: &str, state: &State, call: &Call) -> Result<Option<Named>, Refusal> {
    match state.called(given, call.actor.as_ref()) {
        Ok(found) => Ok(Some(found)),
        Err(Refusal::UnknownTask { .. }) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Number, id and title.
fn in_full(task: &Named) -> String {
    let number = task.number.map(|number| format!("#{number} ")).unwrap_or_default();
    let title = super::claim_task::shortened(&task.title.replace('`', "'"), TITLE);
    let title = if title.is_empty() { title } else { format!(" {title}") };
    format!("`{number}{}{title}`", task.id)
}

/// Bytes of a title that is repeated.
const TITLE: usize = 60;

/// Whether something on the board is called so, with the comma.
fn exists(list: &str, whole: &str, state: &State) -> bool {
    let is_whole = |name: &String| name == whole;
    match list {
        "tags" => {
            state.tasks().any(|task| task.tags.iter().any(is_whole))
                || state.agents().any(|agent| agent.tags.iter().any(is_whole))
        }
        "capabilities" => {
            state.agents().any(|agent| agent.capabilities.iter().any(is_whole))
                || state.tasks().any(|task| task.demands.capabilities.iter().any(is_whole))
        }
        _ => {
            let of_context = |task: &crate::state::task::Task| {
                task.context.iter().any(|context| context.files.iter().any(is_whole))
            };
            state.tasks().any(|task| of_context(task))
                || state.reservations().any(|held| held.files.iter().any(is_whole))
        }
    }
}
