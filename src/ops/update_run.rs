use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_run::RunView;
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::agent::Demands;
use crate::state::event::{Event, TaskChange};
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;

pub struct UpdateRun;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub run_id: String,
    /// Demands to add; none can be removed or changed
    pub demands: Demands,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub run: RunView,
}

impl Operation for UpdateRun {
    const NAME: &'static str = "update_run";
    const DESCRIPTION: &'static str = "Add to what a pending run demands of its runner.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let id = TaskId::checked(&params.run_id)?;
        let (task, _) = state.known_run(&id)?;
        state.commands(call.decider()?, task, "change it")?;
        let status = RunStatus::of(task);
        if status != RunStatus::Pending {
            let next = "only a pending run can be; stop it and create another";
            return Err(Refusal::RunStatus { run: id, status, action: "changed", next }.into());
        }
        let more = input::checked_demands(Some(&params.demands))?;
        let merged = task.demands.merged(&more);
        let merged =
            merged.ok_or_else(|| Refusal::DemandsChanged { demanded: task.demands.described() })?;
        input::checked_demands(Some(&merged))?;
        if merged == *task.demands {
            return Ok(Vec::new());
        }
        let change = TaskChange { demands: Some(merged), ..TaskChange::default() };
        Ok(vec![Event::TaskUpdated { task: id, change: Box::new(change), lease_until: None }])
    }

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let id = TaskId::checked(&params.run_id)?;
        let (task, _) = state.known_run(&id)?;
        let run = RunView::without_attempts(task, state).ok_or(Refusal::UnknownRun { run: id })?;
        Ok(Reply { success: true, run })
    }
}
