use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::agent::Discovery;
use crate::state::id::{DiscoveryId, TaskId};
use crate::state::limit;
use crate::state::refusal::Refusal;

pub struct GetDiscoveries;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// All words
    query: Option<String>,
    /// Any of these tags
    #[serde(default)]
    tags: Vec<String>,
    task_id: Option<String>,
    /// Superseded too
    #[serde(default)]
    all: bool,
    /// Default 20
    limit: Option<NonZeroU32>,
    /// `next`
    after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    discoveries: Vec<Shown>,
    /// Cursor for `after`; there may be older ones
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<DiscoveryId>,
}

#[derive(Serialize, JsonSchema)]
struct Shown {
    #[serde(flatten)]
    discovery: Discovery,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<DiscoveryId>,
}

/// Most bytes of content on a page; one discovery is always shown.
const PAGE_BYTES: usize = 256 * 1024;
/// Most bytes of content that one call searches, because it runs on the thread that answers all others, too.
const SEARCHED_BYTES: usize = 4 * 1024 * 1024;

impl Operation for GetDiscoveries {
    const NAME: &'static str = "get_discoveries";
    const DESCRIPTION: &'static str = "Search discoveries, the newest of them.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let size = input::page(params.limit, 20)?;
        let after = params.after.as_deref().map(DiscoveryId::checked).transpose()?;
        if let Some(discovery) = after.clone().filter(|id| state.discovery(id).is_none()) {
            return Err(Refusal::UnknownDiscovery { discovery });
        }
        let sought = Sought::of(params)?;
        let (mut discoveries, mut last, mut bytes, mut searched) = (Vec::new(), None, 0, 0);
        let mut older = state.discoveries_before(after.as_ref()).peekable();
        while let Some(one) = older.next_if(|one| {
            let is_full =
                discoveries.len() == size || (!discoveries.is_empty() && bytes + one.content.len() > PAGE_BYTES);
            !is_full && searched < SEARCHED_BYTES
        }) {
            last = Some(one.id.clone());
            let superseded_by = state.superseded_by(&one.id).cloned();
            if !params.all && superseded_by.is_some() {
                continue;
            }
            searched += if sought.words.is_empty() { 0 } else { one.content.len() };
            if sought.fits(one) {
                bytes += one.content.len();
                discoveries.push(Shown { discovery: Discovery::clone(one), superseded_by });
            }
        }
        // After the last one that fits there may be others that do not.
        let next = older.any(|one| {
            (params.all || state.superseded_by(&one.id).is_none()) && (!sought.words.is_empty() || sought.fits(one))
        });
        discoveries.reverse();
        Ok(Reply { discoveries, next: last.filter(|_| next) })
    }
}

/// Search terms of a call.
struct Sought<'a> {
    /// Words in lower case.
    words: Vec<String>,
    tags: &'a [String],
    task: Option<TaskId>,
}

impl<'a> Sought<'a> {
    fn of(params: &'a Params) -> Result<Self, Refusal> {
        let query = params.query.as_deref().unwrap_or_default();
        limit::QUERY.check_text(query)?;
        let words = query.split_whitespace().map(str::to_lowercase).collect();
        Ok(Self { words, tags: &params.tags, task: params.task_id.as_deref().map(TaskId::checked).transpose()? })
    }

    fn fits(&self, one: &Discovery) -> bool {
        (self.tags.is_empty() || one.tags.iter().any(|tag| self.tags.contains(tag)))
            && self.task.as_ref().is_none_or(|task| one.task_id.as_ref() == Some(task))
            && (self.words.is_empty() || self.says(one))
    }

    /// True if each word occurs in the content, a tag or a file.
    fn says(&self, one: &Discovery) -> bool {
        let texts: Vec<_> =
            std::iter::once(&one.content).chain(&one.tags).chain(&one.files).map(|text| text.to_lowercase()).collect();
        self.words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }
}
