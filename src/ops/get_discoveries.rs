use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{Page, Part};
use super::{Annotations, Call, Operation, READ, Reader, Toolset, page};
use crate::state::State;
use crate::state::discovery::Discovery;
use crate::state::id::{DiscoveryId, TaskId};
use crate::state::limit;
use crate::state::refusal::Refusal;

pub struct GetDiscoveries;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// All words
    pub query: Option<String>,
    /// Any of these tags
    #[serde(default)]
    pub tags: Vec<String>,
    pub task_id: Option<String>,
    /// Superseded too
    #[serde(default)]
    pub all: bool,
    /// Default 20
    pub limit: Option<NonZeroU32>,
    /// `next`
    pub after: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    /// There may be older ones behind `next`
    #[serde(flatten)]
    pub part: Option<Part<DiscoveryId>>,
    pub discoveries: Vec<page::Shown<Shown>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Shown {
    #[serde(flatten)]
    pub discovery: Discovery,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<DiscoveryId>,
}

/// Most bytes of JSON on a page of a call with a `limit`.
const PAGE_BYTES: usize = 256 * 1024;
/// Most bytes of content that one call for a page searches.
const SEARCHED_BYTES: usize = 4 * 1024 * 1024;

impl Operation for GetDiscoveries {
    const NAME: &'static str = "get_discoveries";
    const DESCRIPTION: &'static str = "Search discoveries, the newest of them.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn is_long(params: &Params, reader: Reader) -> bool {
        !reader.is_model() && params.limit.is_none()
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let is_whole = Self::is_long(params, call.reader);
        let mut page = Page::new(call, params.limit, 20)?;
        if !is_whole {
            page = page.within(PAGE_BYTES);
        }
        let after = params.after.as_deref().map(DiscoveryId::checked).transpose()?;
        if let Some(discovery) = after.clone().filter(|id| state.discovery(id).is_none()) {
            return Err(Refusal::UnknownDiscovery { discovery });
        }
        let sought = Sought::of(params)?;
        let is_wanted = |one: &Discovery| params.all || state.superseded_by(&one.id).is_none();
        let (mut last, mut searched, mut is_more) = (None, 0, false);
        for one in state.discoveries_before(after.as_ref()) {
            if !is_wanted(one) {
                continue;
            }
            if !is_whole && searched >= SEARCHED_BYTES {
                is_more = true;
                break;
            }
            searched += if sought.words.is_empty() { 0 } else { one.content.len() };
            let superseded_by = state.superseded_by(&one.id).cloned();
            if sought.fits(one)
                && !page.add(Shown { discovery: Discovery::clone(one), superseded_by })
            {
                is_more = true;
                break;
            }
            last = Some(one.id.clone());
        }
        let count = || {
            state.discoveries_before(None).filter(|one| is_wanted(one) && sought.fits(one)).count()
        };
        let total = (sought.words.is_empty() && (after.is_some() || is_more)).then(count);
        let part = page.part(total, after.is_some(), last.filter(|_| is_more));
        let mut discoveries = page.into_entries();
        discoveries.reverse();
        Ok(Reply { part, discoveries })
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
        Ok(Self {
            words,
            tags: &params.tags,
            task: params.task_id.as_deref().map(TaskId::checked).transpose()?,
        })
    }

    fn fits(&self, one: &Discovery) -> bool {
        (self.tags.is_empty() || one.tags.iter().any(|tag| self.tags.contains(tag)))
            && self.task.as_ref().is_none_or(|task| one.task_id.as_ref() == Some(task))
            && (self.words.is_empty() || self.says(one))
    }

    /// True if each word occurs in the content, a tag or a file.
    fn says(&self, one: &Discovery) -> bool {
        let texts: Vec<_> = std::iter::once(&one.content)
            .chain(&one.tags)
            .chain(&one.files)
            .map(|text| text.to_lowercase())
            .collect();
        self.words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }
}
