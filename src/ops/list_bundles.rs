use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{Page, Part, Shown};
use super::{Annotations, Archive, Call, Fetched, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::bundle::{Asked, Listed, Told};
use crate::state::refusal::Refusal;

pub struct ListBundles;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only bundles of this scope; default all scopes
    pub scope: Option<String>,
    /// Default 50, at most 1000
    pub limit: Option<NonZeroU32>,
    /// `next` of the prior page
    pub after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub part: Option<Part<String>>,
    pub bundles: Vec<Shown<Listed>>,
}

impl Operation for ListBundles {
    const NAME: &'static str = "list_bundles";
    const DESCRIPTION: &'static str = "List the context bundles, newest first in each scope.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        let limit =
            input::page(params.limit, if archive.reader().is_model() { 50 } else { usize::MAX })?;
        let asked = Asked::List { scope: params.scope.clone(), after: params.after.clone(), limit };
        archive.bundles(&asked).map(Fetched::Bundles)
    }

    fn reply(params: &Params, _: &State, call: &Call) -> Result<Reply, Refusal> {
        let Fetched::Bundles(Told::Listed(listing)) = call.fetched else {
            return Err(Refusal::Missing { what: "what was asked of the bundles" });
        };
        let mut page = Page::new(call, params.limit, 50)?.cut("load_bundle");
        let is_cut = page.fill(listing.bundles.iter().cloned());
        let last = page.last().map(|last| last.path.clone());
        let next = if is_cut { last } else { listing.next.clone() };
        // How many there are in the directories is not counted: each is read to be listed.
        Ok(Reply {
            part: page.part(None, params.after.is_some(), next),
            bundles: page.into_entries(),
        })
    }
}
