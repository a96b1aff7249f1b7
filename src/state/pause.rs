//! Agents that get no more tasks, one by one or all, and agents that are to stop.

use std::sync::Arc;

use super::State;
use super::agent::{Agent, AgentPause};
use super::apply::Absent;
use super::id::AgentId;
use super::task::{StopRequest, Task};

impl State {
    /// Why `agent` gets no task, if claims are paused for it or for all; the reason may be missing.
    pub fn paused_for<'s>(&'s self, agent: &'s Agent) -> Option<Option<&'s str>> {
        let of_board = self.board().paused.as_ref().map(|pause| pause.reason.as_deref());
        let of_agent = agent.paused.as_ref().map(|pause| pause.reason.as_deref());
        of_agent.or(of_board)
    }

    /// The agent gets no more tasks; the requests to stop its tasks are those of `pause`.
    pub(super) fn pause_agent(&mut self, id: &AgentId, pause: &AgentPause) -> Result<(), Absent> {
        self.edit_agent(id, |agent| agent.paused = Some(Box::new(pause.clone())))?;
        if !pause.stop {
            return Ok(());
        }
        self.edit_held(id, |task| {
            let cancel = task.stop_requested.as_ref().is_some_and(|asked| asked.cancel);
            let (reason, at) = (pause.reason.clone(), pause.at);
            task.stop_requested = Some(StopRequest { reason, at, cancel });
        })
    }

    /// Takes back what [`pause_agent`](Self::pause_agent) did. A request to cancel a task stays.
    pub(super) fn resume_agent(&mut self, id: &AgentId) -> Result<(), Absent> {
        let asked = self.agent(id).and_then(|agent| Some(agent.stop_asked()?.0.at));
        self.edit_agent(id, |agent| agent.paused = None)?;
        self.edit_held(id, |task| {
            let is_taken_back =
                |request: &StopRequest| !request.cancel && Some(request.at) == asked;
            if task.stop_requested.as_ref().is_some_and(is_taken_back) {
                task.stop_requested = None;
            }
        })
    }

    fn edit_held(&mut self, id: &AgentId, edit: impl Fn(&mut Task)) -> Result<(), Absent> {
        let Some(agent) = self.agent(id).map(Arc::clone) else { return Ok(()) };
        agent.current_tasks.iter().try_for_each(|task| self.edit_task(task, &edit))
    }
}
