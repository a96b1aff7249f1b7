use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_run::{RunView, live_or_retired};
use super::{Annotations, Call, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::id::{AgentId, SessionId, TaskId};
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;
use crate::state::task::Task;

pub struct ListRuns;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    session_id: Option<String>,
    /// Of the sessions that this one has started
    parent_session_id: Option<String>,
    status: Option<RunStatus>,
    /// Who has it, or had it last
    runner_id: Option<String>,
    agent_name: Option<String>,
    /// 100 unless given
    limit: Option<u32>,
    /// `next` of the page before
    after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    runs: Vec<RunView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<TaskId>,
}

impl Operation for ListRuns {
    const NAME: &'static str = "list_runs";
    const DESCRIPTION: &'static str = "List runs, newest first, a page at a time; those that have retired come last.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let size = input::page(params.limit, 100)?;
        let after = params.after.as_deref().map(TaskId::checked).transpose()?;
        if let Some(unknown) = after.as_ref().filter(|id| state.run_status(id).is_none()) {
            return Err(Refusal::UnknownRun { run: unknown.clone() });
        }
        let filter = Filter::checked(params, state)?;
        let is_live = after.as_ref().is_none_or(|id| state.task(id).is_some());
        let live = state.newest_runs(after.as_ref()).filter(|_| is_live).filter(|task| filter.passes(task, state));
        let mut runs: Vec<_> = live.take(size + 1).filter_map(|task| RunView::brief(task, state)).collect();
        // What has retired is read from the journal, one after another.
        let mut retired = state.newest_retired_runs(after.as_ref().filter(|_| !is_live)).into_iter();
        while runs.len() <= size
            && let Some(id) = retired.next()
        {
            let (task, _) = live_or_retired(id, state, call)?;
            runs.extend(
                Some(&task).filter(|task| filter.passes(task, state)).and_then(|task| RunView::brief(task, state)),
            );
        }
        let next = runs.get(size).and_then(|_| Some(runs.get(size - 1)?.run_id.clone()));
        runs.truncate(size);
        Ok(Reply { runs, next })
    }
}

struct Filter {
    session: Option<SessionId>,
    parent: Option<SessionId>,
    runner: Option<AgentId>,
    agent_name: Option<String>,
    status: Option<RunStatus>,
}

impl Filter {
    fn checked(params: &Params, state: &State) -> Result<Self, Refusal> {
        let session = |id: &String| {
            let id = SessionId::checked(id)?;
            match state.session(&id) {
                Some(_) => Ok(id),
                None => Err(Refusal::UnknownSession { session: id }),
            }
        };
        Ok(Self {
            session: params.session_id.as_ref().map(session).transpose()?,
            parent: params.parent_session_id.as_ref().map(session).transpose()?,
            runner: params.runner_id.as_deref().map(AgentId::checked).transpose()?,
            agent_name: params.agent_name.clone(),
            status: params.status,
        })
    }

    fn passes(&self, task: &Task, state: &State) -> bool {
        let Some(run) = task.run.as_deref() else { return false };
        let parent = || state.session(&run.session_id).and_then(|session| session.parent_session_id.clone());
        self.session.as_ref().is_none_or(|wanted| *wanted == run.session_id)
            && self.status.is_none_or(|wanted| wanted == RunStatus::of(task))
            && self.agent_name.as_ref().is_none_or(|wanted| Some(wanted) == run.agent_name.as_ref())
            && self.runner.as_ref().is_none_or(|wanted| task.attempts.last().is_some_and(|one| one.agent == *wanted))
            && self.parent.as_ref().is_none_or(|wanted| parent().as_ref() == Some(wanted))
    }
}
