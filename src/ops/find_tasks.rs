use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_task::retired;
use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::id::{TaskId, is_number};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::Named;

pub struct FindTasks;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Each an id, a number such as #12, a path, part of an id, or a title
    pub references: Vec<String>,
    /// Leave out those that name no task or several, instead of refusing
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known_only: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    /// In the order of references
    pub tasks: Vec<Named>,
    /// What says so, of each number that is also the id of another task
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<String>,
}

impl Operation for FindTasks {
    const NAME: &'static str = "find_tasks";
    const DESCRIPTION: &'static str =
        "Which tasks are meant by numbers, paths, titles, or beginnings or ends of ids.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        limit::REFERENCES.check(params.references.len())?;
        let tasks = params.references.iter().map(|given| found(given, state, call));
        let tasks = tasks.filter(|found| found.is_ok() || !params.known_only);
        let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
        let passed_over = params.references.iter().filter_map(|given| passed_over(given, state));
        Ok(Reply { tasks, passed_over: passed_over.collect() })
    }
}

/// Says which task has `given` as its id, if it is the number of another, which was found.
fn passed_over(given: &str, state: &State) -> Option<String> {
    let called = state.task(&TaskId::checked(given).ok().filter(|id| is_number(id.as_str()))?)?;
    let number = given.parse().ok()?;
    let found = state.task_numbered(number).filter(|found| found.id != called.id)?;
    let own = state.number_of(&called.id).map(|own| format!("#{own} ")).unwrap_or_default();
    let (title, other) = (found.headline(), called.headline());
    Some(format!("`{given}` is the number of {title}; the id `{given}` is that of {own}{other}"))
}

/// The task, which may have retired so long ago that the state has nothing of it.
fn found(given: &str, state: &State, call: &Call) -> Result<Named, Refusal> {
    let refusal = match state.referred(given) {
        Err(refusal @ Refusal::UnknownTask { .. }) => refusal,
        found => return found,
    };
    let long_ago = TaskId::checked(given).and_then(|id| retired(&id, state, call));
    long_ago.map(|task| Named::from(&task)).map_err(|_| refusal)
}
