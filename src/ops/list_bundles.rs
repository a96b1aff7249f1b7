use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Archive, Call, Fetched, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::bundle::{Asked, Listing, Told};
use crate::state::refusal::Refusal;

pub struct ListBundles;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only bundles of this scope; default all scopes
    scope: Option<String>,
    /// Default 50, at most 1000
    limit: Option<NonZeroU32>,
    /// `next` of the prior page
    after: Option<String>,
}

impl Operation for ListBundles {
    const NAME: &'static str = "list_bundles";
    const DESCRIPTION: &'static str = "List the context bundles, newest first in each scope.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Listing;

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        let limit = input::page(params.limit, 50)?;
        let asked = Asked::List { scope: params.scope.clone(), after: params.after.clone(), limit };
        archive.bundles(&asked).map(Fetched::Bundles)
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Listing, Refusal> {
        match call.fetched {
            Fetched::Bundles(Told::Listed(listing)) => Ok(listing.clone()),
            _ => Err(Refusal::Missing { what: "what was asked of the bundles" }),
        }
    }
}
