use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_session::SessionView;
use super::page::{Page, Part, Shown};
use super::{Annotations, Call, Operation, READ, Reader, Toolset};
use crate::state::State;
use crate::state::id::SessionId;
use crate::state::refusal::Refusal;
use crate::state::run::RunStatus;
use crate::state::session::Session;

pub struct ListSessions;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only sessions that this session has started
    pub parent_session_id: Option<String>,
    /// Only sessions whose newest run has this status
    pub status: Option<RunStatus>,
    /// Default 100, at most 1000
    pub limit: Option<NonZeroU32>,
    /// `next` of the prior page
    pub after: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub part: Option<Part<SessionId>>,
    pub sessions: Vec<Shown<SessionView>>,
}

impl Operation for ListSessions {
    const NAME: &'static str = "list_sessions";
    const DESCRIPTION: &'static str = "List sessions, newest first, a page at a time.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn is_long(params: &Params, reader: Reader) -> bool {
        !reader.is_model() && params.limit.is_none()
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let mut page = Page::new(call, params.limit, 100)?.cut("get_session");
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
        let newest = |before| state.newest_sessions(before).filter(|session| wanted(session));
        let is_more = page
            .fill(newest(after.map(AsRef::as_ref)).map(|session| SessionView::of(session, state)));
        let next = page.last().filter(|_| is_more).map(|last| last.session.id.clone());
        let total = (after.is_some() || is_more).then(|| newest(None).count());
        Ok(Reply { part: page.part(total, after.is_some(), next), sessions: page.into_entries() })
    }
}
