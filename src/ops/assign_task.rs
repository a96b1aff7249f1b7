use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::{KeptFor, TaskStatus};
use crate::state::time::MINUTE;

pub struct AssignTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    /// Agent that it is for; without, it is open to all again
    pub to: Option<String>,
    /// Default 30, at most 1440
    pub minutes: Option<u32>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_for: Option<KeptFor>,
    /// True if it can be claimed now
    pub ready: bool,
}

impl Operation for AssignTask {
    const NAME: &'static str = "assign_task";
    const DESCRIPTION: &'static str =
        "Leaders: keep a task for an agent for a while. It gets it with its next claim.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "assign a task")?;
        let id = TaskId::checked(&params.task_id)?;
        let task = state.known_task(&id)?;
        let Some(to) = &params.to else {
            let opened = task.kept_for.is_some().then_some(Event::TaskOpened { task: id });
            return Ok(opened.into_iter().collect());
        };
        let agent = state.agent_called(to)?;
        state.may_claim(agent)?;
        if task.status != TaskStatus::Available {
            let (status, action) = (task.status, "assigned");
            let next = makes_available(&id, status);
            return Err(Refusal::WrongStatus { task: id, status, action, next }.into());
        }
        state.refuse_parent(&id)?;
        let missing = task.demands.missing_from(agent);
        if !missing.is_empty() {
            return Err(Refusal::DemandsUnmet { task: id, agent: agent.id.clone(), missing }.into());
        }
        let minutes = params.minutes.unwrap_or(limit::KEPT).max(1);
        limit::KEPT_MINUTES.check(minutes as usize)?;
        let until = call.now + i64::from(minutes) * MINUTE;
        Ok(vec![Event::TaskKept { task: id, agent: agent.id.clone(), until }])
    }

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let task = state.known_task(&TaskId::checked(&params.task_id)?)?;
        let kept_for = task.kept_for.as_deref().cloned();
        Ok(Reply { success: true, kept_for, ready: state.is_ready(&task.id) })
    }
}

/// What makes a task available that is not.
fn makes_available(id: &TaskId, status: TaskStatus) -> String {
    match status {
        TaskStatus::Failed | TaskStatus::Cancelled => {
            format!("retry_task `{id}` makes it available again")
        }
        TaskStatus::Done => format!("reset_tasks `{id}` begins it anew"),
        TaskStatus::Review => format!("approve_task `{id}` or reject_task `{id}` ends its review"),
        TaskStatus::Obsolete => "the plan does not have it any more".to_owned(),
        TaskStatus::Claimed | TaskStatus::InProgress | TaskStatus::Available => {
            format!("release_task `{id}` gives it back first")
        }
    }
}
