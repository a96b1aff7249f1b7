use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::page::{Page, Part, Shown};
use super::telling::{self, told};
use super::{
    Annotations, Call, EventFilter, History, Operation, Principal, READ, Reader, Toolset, input,
};
use crate::state::State;
use crate::state::event::{Event, Recorded};
use crate::state::id::{AgentId, TaskId};
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;

pub struct GetHistory;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub task_id: Option<String>,
    /// Agent that acted, is named or held the event's task at the time (not known of retired
    /// tasks)
    pub agent: Option<String>,
    /// Kinds of events, such as claimed or completed; default all
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Nothing before this time
    pub since: Option<Timestamp>,
    /// Oldest first, starting after this event; default newest first
    pub since_seq: Option<u64>,
    /// Only events before this one; `next` of the prior page
    pub before_seq: Option<u64>,
    /// Default 50, at most 1000
    pub limit: Option<NonZeroU32>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    /// `next` is passed as before_seq, or as since_seq if you gave that
    #[serde(flatten)]
    pub part: Option<Part<u64>>,
    /// Large events are shortened and marked `shortened`
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub events: Vec<Shown<Value>>,
}

/// Most events that one call reads, so that a rare kind does not make it read the whole journal.
const LOOKED_AT: usize = 5_000;
/// Events read at a time.
const READ_AT_ONCE: u64 = 500;

impl Operation for GetHistory {
    const NAME: &'static str = "get_history";
    const DESCRIPTION: &'static str =
        "What happened, newest first, a page at a time; of one task, agent or kind.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    // It reads events, which may be large.
    fn is_long(_: &Params, _: Reader) -> bool {
        true
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let wanted = Wanted {
            state,
            filter: EventFilter::checked(&params.kinds, params.task_id.as_deref())?,
            agent: params.agent.as_deref().map(AgentId::checked).transpose()?,
            since: params.since.unwrap_or_default(),
            principal: call.principal,
        };
        let size = input::page(params.limit, 50)?;
        let mut page = telling::page(call, params.limit)?;
        let before = params.before_seq.unwrap_or(u64::MAX).min(state.seq() + 1);
        let next = match params.since_seq {
            Some(seq) => forwards(
                &mut page,
                &wanted,
                call.history,
                seq.min(state.seq()),
                before.saturating_sub(1),
            ),
            None => backwards(&mut page, size, &wanted, call.history, before),
        };
        let next = next.map_err(|detail| Refusal::HistoryUnread { detail })?;
        let is_plain =
            params.kinds.is_empty() && params.task_id.is_none() && params.agent.is_none();
        let total = (is_plain && params.since.is_none())
            .then(|| usize::try_from(state.seq()).unwrap_or(usize::MAX));
        let continues = params.since_seq.is_some() || params.before_seq.is_some();
        Ok(Reply { part: page.part(total, continues, next), events: page.into_entries() })
    }
}

struct Wanted<'s> {
    state: &'s State,
    filter: EventFilter,
    agent: Option<AgentId>,
    since: Timestamp,
    principal: Option<&'s Principal>,
}

impl Wanted<'_> {
    fn has(&self, recorded: &Recorded) -> bool {
        let concerns = |agent: &AgentId| {
            recorded.actor.as_ref().is_some_and(|actor| actor.is_called(agent.as_str()))
                || names(&recorded.event, agent)
                || self.is_review_of(agent, recorded)
                || recorded
                    .event
                    .tasks()
                    .into_iter()
                    .any(|task| self.was_held(task, agent, recorded))
        };
        self.filter.wants(recorded) && self.agent.as_ref().is_none_or(concerns)
    }

    /// True if the event is what a reviewer said of the agent's work.
    fn is_review_of(&self, agent: &AgentId, recorded: &Recorded) -> bool {
        let Event::Reviewed { task, .. } = &recorded.event else { return false };
        let attempts = self.state.task(task).into_iter().flat_map(|task| &task.attempts);
        let mut own = attempts.filter(|attempt| attempt.agent == *agent);
        own.any(|own| own.reviewed.as_ref().is_some_and(|said| said.at == recorded.at))
    }

    /// True if `agent` held the task until the event, which may have ended that. A claim never
    /// counts, because another agent's may come in the same millisecond.
    fn was_held(&self, task: &TaskId, agent: &AgentId, recorded: &Recorded) -> bool {
        if matches!(recorded.event, Event::Claimed { .. }) {
            return false;
        }
        let attempts = self.state.task(task).into_iter().flat_map(|task| &task.attempts);
        let mut own =
            attempts.filter(|attempt| attempt.agent == *agent && attempt.claimed_at < recorded.at);
        own.any(|attempt| attempt.ended_at.is_none_or(|ended| recorded.at <= ended))
    }
}

/// Fills the page from `seq` onwards and returns where the next one begins.
fn forwards(
    page: &mut Page<Value>,
    wanted: &Wanted<'_>,
    history: &dyn History,
    seq: u64,
    head: u64,
) -> Result<Option<u64>, String> {
    let mut at = seq;
    history.each_after(seq, LOOKED_AT, &mut |recorded| {
        if recorded.seq > head {
            return ControlFlow::Break(());
        }
        let is_told = recorded.at >= wanted.since && wanted.has(&recorded);
        if is_told && (page.is_full() || !page.add(told(&recorded, wanted.principal))) {
            return ControlFlow::Break(());
        }
        at = recorded.seq;
        ControlFlow::Continue(())
    })?;
    // A board that was restored from a state has no events up to it.
    Ok((seq < at && at < head).then_some(at))
}

fn backwards(
    page: &mut Page<Value>,
    size: usize,
    wanted: &Wanted<'_>,
    history: &dyn History,
    before: u64,
) -> Result<Option<u64>, String> {
    let mut at = before.max(1);
    while at > 1 && before - at < LOOKED_AT as u64 {
        let start = (at - 1).saturating_sub(READ_AT_ONCE);
        let (mut newest, mut is_over, mut oldest) = (VecDeque::new(), false, None);
        history.each_after(
            start,
            usize::try_from(at - 1 - start).unwrap_or_default(),
            &mut |recorded| {
                // A rebuilt journal starts at some state, so its first event may lie beyond the
                // range that is asked for.
                if recorded.seq >= at {
                    return ControlFlow::Break(());
                }
                oldest.get_or_insert(recorded.seq);
                if recorded.at < wanted.since {
                    // Nothing before it is asked for either.
                    newest.clear();
                    is_over = true;
                } else if wanted.has(&recorded) {
                    newest.push_back((recorded.seq, told(&recorded, wanted.principal)));
                    // One event more than fits the page tells that there is a next page.
                    if newest.len() > size + 1 {
                        newest.pop_front();
                    }
                }
                ControlFlow::Continue(())
            },
        )?;
        for (seq, event) in newest.into_iter().rev() {
            if !page.add(event) {
                return Ok(Some(seq + 1));
            }
        }
        if is_over || oldest != Some(start + 1) {
            return Ok(None);
        }
        at = start + 1;
    }
    Ok((at > 1).then_some(at))
}

fn names(event: &Event, id: &AgentId) -> bool {
    match event {
        Event::AgentRegistered { agent, .. }
        | Event::AgentSeen { agent, .. }
        | Event::AgentWaits { agent, .. }
        | Event::Claimed { agent, .. }
        | Event::DiscoveryAdded { agent, .. } => agent == id,
        Event::MessageSent { message } => message.recipients.contains(id),
        Event::AgentsRetired { agents } => agents.contains(id),
        _ => false,
    }
}
