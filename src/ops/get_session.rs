use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_run::RunView;
use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::id::SessionId;
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;
use crate::state::session::Session;

pub struct GetSession;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub session_id: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub session: SessionView,
    /// Newest runs first; list_runs has the rest
    pub runs: Vec<RunView>,
    /// Sessions that this session has started
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Child>,
}

/// A session as replies show it.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct SessionView {
    #[serde(flatten)]
    pub session: Session,
    /// Status of the newest run
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Child {
    pub session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
}

impl SessionView {
    pub fn of(session: &Session, state: &State) -> Self {
        Self { status: state.session_status(session), session: session.clone() }
    }
}

const RUNS_SHOWN: usize = 20;
const CHILDREN_SHOWN: usize = 200;

impl Operation for GetSession {
    const NAME: &'static str = "get_session";
    const DESCRIPTION: &'static str =
        "Read one session: its runs, where it goes on, and the sessions it has started.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let id = SessionId::checked(&params.session_id)?;
        let session =
            state.session(&id).ok_or_else(|| Refusal::UnknownSession { session: id.clone() })?;
        let runs = state
            .runs_of(&id)
            .rev()
            .take(RUNS_SHOWN)
            .filter_map(|task| RunView::brief(task, state));
        let child = |child: &Session| Child {
            session_id: child.id.clone(),
            status: state.session_status(child),
        };
        Ok(Reply {
            session: SessionView::of(session, state),
            runs: runs.collect(),
            children: state
                .child_sessions(&id)
                .take(CHILDREN_SHOWN)
                .map(|one| child(one))
                .collect(),
        })
    }
}
