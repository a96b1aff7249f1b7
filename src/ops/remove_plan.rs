use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, DESTRUCTIVE, Decision, Operation, Toolset};
use crate::state::event::Event;
use crate::state::refusal::Refusal;
use crate::state::task::TaskStatus;
use crate::state::{Created, State};

pub struct RemovePlan;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Name of the plan, as list_plans has it
    pub plan: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// Items that were not done
    pub obsolete: usize,
    /// Items that are done, and stay
    pub left_done: usize,
    /// Items that agents hold until their attempts end
    pub leaving: usize,
}

impl Operation for RemovePlan {
    const NAME: &'static str = "remove_plan";
    const DESCRIPTION: &'static str = "Leaders: take a plan off the board. What is done stays; \
                                       what is held is its agent's until its attempt ends.";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "remove a plan")?;
        Ok(vec![state.without_plan(state.plan_named(&params.plan)?)])
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let imported = call.created.iter().find_map(|created| match created {
            Created::Plan(event) => Some(event),
            _ => None,
        });
        let Some(Event::PlanImported { removed, leaving, .. }) = imported.map(AsRef::as_ref) else {
            return Err(Refusal::UnknownPlan {
                given: params.plan.clone(),
                plans: state.plan_names(),
            });
        };
        let is_done = |id| state.status_of(id) == Some(TaskStatus::Done);
        let left_done = removed.iter().filter(|id| is_done(id)).count();
        Ok(Reply {
            success: true,
            obsolete: removed.len() - left_done,
            left_done,
            leaving: leaving.len(),
        })
    }
}
