use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Annotations, Call, EventFilter, History, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::event::{Event, Recorded};
use crate::state::id::AgentId;
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;

pub struct GetHistory;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    task_id: Option<String>,
    /// Who acted, or whom it is about
    agent: Option<String>,
    #[serde(default)]
    kinds: Vec<String>,
    /// Nothing before this time
    since: Option<Timestamp>,
    /// Oldest first, beginning after this event; newest first unless given
    since_seq: Option<u64>,
    /// `next` of the page before
    before_seq: Option<u64>,
    /// 50 unless given
    limit: Option<NonZeroU32>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    events: Vec<Value>,
    /// There is more: call again with it as `before_seq`, or as `since_seq` if that was given
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// Events that one call looks at, so that a rare kind does not read the whole journal at once.
const LOOKED_AT: u64 = 5_000;
/// Events read in one go.
const READ_AT_ONCE: u64 = 500;
/// A page ends when it has so many bytes.
const PAGE_BYTES: usize = 1 << 20;

impl Operation for GetHistory {
    const NAME: &'static str = "get_history";
    const DESCRIPTION: &'static str = "What happened, newest first, a page at a time; of one task, agent or kind.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let mut page = Page {
            filter: EventFilter::checked(&params.kinds, params.task_id.as_deref())?,
            agent: params.agent.as_deref().map(AgentId::checked).transpose()?,
            size: input::page(params.limit, 50)?,
            events: Vec::new(),
            bytes: 0,
        };
        let unread = |detail| Refusal::HistoryUnread { detail };
        let since = params.since.unwrap_or_default();
        let next = match params.since_seq {
            Some(seq) => page.forwards(call.history, seq.min(state.seq()), state.seq(), since),
            None => {
                let before = params.before_seq.unwrap_or(u64::MAX).min(state.seq() + 1);
                page.backwards(call.history, before, since)
            }
        };
        Ok(Reply { next: next.map_err(unread)?, events: page.events })
    }
}

struct Page {
    filter: EventFilter,
    agent: Option<AgentId>,
    size: usize,
    events: Vec<Value>,
    bytes: usize,
}

impl Page {
    /// Answers where the next page begins.
    fn forwards(
        &mut self,
        history: &dyn History,
        seq: u64,
        head: u64,
        since: Timestamp,
    ) -> Result<Option<u64>, String> {
        let mut at = seq;
        while at < head && at - seq < LOOKED_AT {
            let events = history.events_after(at, READ_AT_ONCE as usize)?;
            if events.is_empty() {
                return Ok(None);
            }
            for recorded in events {
                at = recorded.seq;
                if recorded.at >= since && self.take(&recorded) {
                    return Ok((at < head).then_some(at));
                }
            }
        }
        Ok((at < head).then_some(at))
    }

    fn backwards(&mut self, history: &dyn History, before: u64, since: Timestamp) -> Result<Option<u64>, String> {
        let mut at = before.max(1);
        while at > 1 && before - at < LOOKED_AT {
            let start = (at - 1).saturating_sub(READ_AT_ONCE);
            let count = usize::try_from(at - 1 - start).unwrap_or_default();
            let events = history.events_after(start, count)?;
            let before = events.partition_point(|recorded| recorded.seq < at);
            let Some(oldest) = events[..before].first().map(|recorded| recorded.seq) else { return Ok(None) };
            // Before it there is nothing in a journal that goes on from a state.
            let first = if oldest > start + 1 { oldest } else { 1 };
            for recorded in events[..before].iter().rev() {
                if recorded.at < since {
                    return Ok(None);
                }
                at = recorded.seq;
                if self.take(recorded) {
                    return Ok((at > first).then_some(at));
                }
            }
            if first > 1 {
                return Ok(None);
            }
            at = start + 1;
        }
        Ok((at > 1).then_some(at))
    }

    /// Answers whether the page is full.
    fn take(&mut self, recorded: &Recorded) -> bool {
        let concerns = |agent: &AgentId| recorded.actor.as_ref() == Some(agent) || names(&recorded.event, agent);
        if self.filter.wants(recorded) && self.agent.as_ref().is_none_or(concerns) {
            let event = told(recorded);
            self.bytes += event.to_string().len();
            self.events.push(event);
        }
        self.events.len() >= self.size || self.bytes >= PAGE_BYTES
    }
}

fn names(event: &Event, id: &AgentId) -> bool {
    match event {
        Event::AgentRegistered { agent, .. }
        | Event::AgentSeen { agent, .. }
        | Event::Claimed { agent, .. }
        | Event::DiscoveryAdded { agent, .. } => agent == id,
        _ => false,
    }
}

/// The event as JSON, without the whole state that a few carry.
fn told(recorded: &Recorded) -> Value {
    let (extra, document) = match &recorded.event {
        Event::Imported { source, document } => (json!({"source": source}), document),
        Event::StateRestored { restored_seq, snapshot, document } => {
            (json!({"restored_seq": restored_seq, "snapshot": snapshot}), document)
        }
        _ => return serde_json::to_value(recorded).unwrap_or_default(),
    };
    let mut told = json!({
        "seq": recorded.seq, "at": recorded.at, "writer": recorded.participant, "actor": recorded.actor,
        "kind": recorded.event.kind(), "tasks": document.tasks.len(), "agents": document.agents.len(),
    });
    if let (Some(told), Value::Object(extra)) = (told.as_object_mut(), extra) {
        told.extend(extra);
    }
    told
}
