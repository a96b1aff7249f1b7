use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_run::{RunView, live_or_retired};
use super::page::{Page, Part, Shown};
use super::{Annotations, Call, Operation, READ, Reader, Toolset};
use crate::state::State;
use crate::state::id::{AgentId, SessionId, TaskId};
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;
use crate::state::task::Task;
use crate::state::time::Timestamp;

pub struct ListRuns;

/// Retired runs that one page looks at. Each is read from the journal separately; the page shows
/// those that match.
const RETIRED_LOOKED_AT: usize = 50;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub session_id: Option<String>,
    /// Only runs of the sessions that this session has started
    pub parent_session_id: Option<String>,
    pub status: Option<RunStatus>,
    /// Agent that holds the run or held it last
    pub runner_id: Option<String>,
    pub agent_name: Option<String>,
    /// This time or later
    #[schemars(with = "Option<String>")]
    pub created_since: Option<Timestamp>,
    /// Before this time
    #[schemars(with = "Option<String>")]
    pub created_before: Option<Timestamp>,
    /// Ended at this time or later, however it ended
    #[schemars(with = "Option<String>")]
    pub completed_since: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub completed_before: Option<Timestamp>,
    /// Default 100, at most 1000
    pub limit: Option<NonZeroU32>,
    /// `next` of the prior page
    pub after: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    /// There may be more behind `next`, even after an empty page
    #[serde(flatten)]
    pub part: Option<Part<String>>,
    pub runs: Vec<Shown<RunView>>,
}

impl Operation for ListRuns {
    const NAME: &'static str = "list_runs";
    const DESCRIPTION: &'static str =
        "List runs in brief, newest first, a page at a time; those that have retired come last.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn is_long(params: &Params, reader: Reader) -> bool {
        !reader.is_model() && params.limit.is_none()
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let mut page = Page::new(call, params.limit, 100)?.cut("get_run");
        let given = params.after.as_deref();
        let behind_live = given.and_then(|after| after.strip_prefix(RETIRED));
        let is_live = behind_live.is_none();
        let after = behind_live.or(given).map(TaskId::checked).transpose()?;
        if let Some(unknown) = after.as_ref().filter(|id| state.run_status(id).is_none()) {
            return Err(Refusal::UnknownRun { run: unknown.clone() });
        }
        if let Some(retired) = after.as_ref().filter(|id| is_live && state.task(id).is_none()) {
            return Err(Refusal::CursorRetired { after: retired.clone() });
        }
        let filter = Filter::checked(params, state)?;
        let brief =
            |task: &Task| filter.passes(task, state).then(|| RunView::brief(task, state)).flatten();
        let live = state.newest_runs(after.as_ref()).take_while(|_| is_live);
        let mut next = None;
        let mut is_more = page.fill(live.filter_map(|task| brief(task)));
        if !is_more {
            let retired = state.newest_retired_runs(after.as_ref().filter(|_| !is_live));
            let most =
                if Self::is_long(params, call.reader) { usize::MAX } else { RETIRED_LOOKED_AT };
            let mut looked_at = 0;
            while !is_more
                && looked_at < most
                && let Some(id) = retired.get(looked_at)
            {
                is_more =
                    brief(&live_or_retired(id, state, call)?.0).is_some_and(|run| !page.add(run));
                looked_at += 1;
            }
            let last = looked_at.checked_sub(1).filter(|_| looked_at < retired.len());
            next = last.and_then(|last| retired.get(last)).map(|id| cursor(id, state));
        }
        let of_page = page.last().filter(|_| is_more).map(|last| cursor(&last.run_id, state));
        let all = state.runs().live()
            + usize::try_from(state.board().archived_runs.total()).unwrap_or_default();
        let total = filter.passes_all().then_some(all);
        Ok(Reply {
            part: page.part(total, after.is_some(), of_page.or(next)),
            runs: page.into_entries(),
        })
    }
}

/// Prefix of the cursor of a page that ended among retired runs, to tell it from that of a live run
/// that retires before the next page.
const RETIRED: &str = "retired:";

fn cursor(last: &TaskId, state: &State) -> String {
    if state.task(last).is_some() { last.to_string() } else { format!("{RETIRED}{last}") }
}

struct Filter {
    session: Option<SessionId>,
    parent: Option<SessionId>,
    runner: Option<AgentId>,
    agent_name: Option<String>,
    status: Option<RunStatus>,
    created: Span,
    completed: Span,
}

/// Times from `since` on, until just before `before`.
#[derive(Default, PartialEq)]
struct Span {
    since: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl Span {
    fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// What has not happened is only in the span of all times.
    fn has(&self, at: Option<Timestamp>) -> bool {
        let Some(at) = at else { return self.is_all() };
        self.since.is_none_or(|since| since <= at) && self.before.is_none_or(|before| at < before)
    }
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
            created: Span { since: params.created_since, before: params.created_before },
            completed: Span { since: params.completed_since, before: params.completed_before },
        })
    }

    fn passes_all(&self) -> bool {
        let Self { session, parent, runner, agent_name, status, created, completed } = self;
        session.is_none()
            && parent.is_none()
            && runner.is_none()
            && agent_name.is_none()
            && status.is_none()
            && created.is_all()
            && completed.is_all()
    }

    fn passes(&self, task: &Task, state: &State) -> bool {
        let Some(run) = task.run.as_deref() else { return false };
        let parent =
            || state.session(&run.session_id).and_then(|session| session.parent_session_id.clone());
        self.session.as_ref().is_none_or(|wanted| *wanted == run.session_id)
            && self.status.is_none_or(|wanted| wanted == RunStatus::of(task))
            && self.agent_name.as_ref().is_none_or(|wanted| Some(wanted) == run.agent_name.as_ref())
            && self
                .runner
                .as_ref()
                .is_none_or(|wanted| task.attempts.last().is_some_and(|one| one.agent == *wanted))
            && self.created.has(Some(task.created_at))
            && self.completed.has(task.completed_at)
            && self.parent.as_ref().is_none_or(|wanted| parent().as_ref() == Some(wanted))
    }
}
