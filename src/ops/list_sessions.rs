use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_session::SessionView;
use super::{Annotations, Call, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::id::SessionId;
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;
use crate::state::session::Session;

pub struct ListSessions;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only sessions that this session has started
    parent_session_id: Option<String>,
    /// Only sessions whose newest run has this status
    status: Option<RunStatus>,
    /// Default 100, at most 1000
    limit: Option<NonZeroU32>,
    /// `next` of the prior page
    after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    sessions: Vec<SessionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<SessionId>,
}

impl Operation for ListSessions {
    const NAME: &'static str = "list_sessions";
    const DESCRIPTION: &'static str = "List sessions, newest first, a page at a time.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let size = input::page(params.limit, 100)?;
        let known = |id: &String| {
            let id = SessionId::checked(id)?;
            state.session(&id).ok_or(Refusal::UnknownSession { session: id })
        };
        let after = params.after.as_ref().map(known).transpose()?;
        let parent = params.parent_session_id.as_ref().map(known).transpose()?;
        let wanted = |session: &Session| {
            parent.is_none_or(|parent| session.parent_session_id.as_ref() == Some(&parent.id))
                && params.status.is_none_or(|status| state.session_status(session) == Some(status))
        };
        let mut found = state.newest_sessions(after.map(AsRef::as_ref)).filter(|session| wanted(session));
        let sessions: Vec<_> = found.by_ref().take(size).map(|session| SessionView::of(session, state)).collect();
        let next = found.next().and_then(|_| Some(sessions.last()?.session.id.clone()));
        Ok(Reply { sessions, next })
    }
}
