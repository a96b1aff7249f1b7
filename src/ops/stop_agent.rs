use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, DESTRUCTIVE, Decision, Operation, Toolset, input};
use crate::state::State;
use crate::state::deadline::cancelled_when_stopped;
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;

pub struct StopAgent;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Who is to stop
    pub agent: String,
    pub reason: Option<String>,
    /// Release its tasks at once, without its doing
    #[serde(default)]
    pub now: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// Tasks that it still holds, and is asked to stop
    pub asked: Vec<TaskId>,
    /// Whether a process of it lives, which hears it with its next call
    pub present: bool,
}

impl Operation for StopAgent {
    const NAME: &'static str = "stop_agent";
    const DESCRIPTION: &'static str = "Leaders: ask an agent to stop: it hears it with its next call, and gets no task until resume.";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "stop an agent")?;
        let agent = state.agent_called(&params.agent)?;
        let reason = input::checked_reason(params.reason.as_ref())?;
        let held = || agent.current_tasks.iter().filter_map(|id| state.task(id));
        let is_asked = agent.stop_asked().is_some_and(|(pause, _)| pause.reason == reason)
            && held().all(|task| task.stop_requested.is_some());
        let (agents, why) = (vec![agent.id.clone()], reason.clone());
        let asked = (!is_asked).then_some(Event::AgentsPaused { agents, reason: why, stop: true });
        let released = held().filter(|task| params.now && task.run.is_none()).flat_map(|task| {
            let released = Event::Released { task: task.id.clone(), reason: reason.clone() };
            std::iter::once(released).chain(cancelled_when_stopped(task))
        });
        Ok(asked.into_iter().chain(released).collect())
    }

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let agent = state.agent_called(&params.agent)?;
        let (asked, present) = (agent.current_tasks.clone(), agent.is_present());
        Ok(Reply { success: true, asked, present })
    }
}
