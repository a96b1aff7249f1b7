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
    /// Numbers that are also the id of another task
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
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
        let passed_over: Vec<_> = params
            .references
            .iter()
            .filter_map(|given| passed_over(given, &tasks, state))
            .collect();
        let warning = Some(passed_over.join("; ")).filter(|text| !text.is_empty());
        Ok(Reply { tasks, warning })
    }
}

/// Says which task has `given` as its id, if another has it as its number and was found.
fn passed_over(given: &str, found: &[Named], state: &State) -> Option<String> {
    let called = state.task(&TaskId::checked(given).ok().filter(|id| is_number(id.as_str()))?)?;
    let by_number = found.iter().find(|one| one.number.is_some_and(|own| own.to_string() == given));
    let other = by_number.filter(|one| one.id != called.id)?;
    let named = Named::from(&**called);
    Some(format!("`{given}` is the number of {other}; the task with the id `{given}` is {named}"))
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
