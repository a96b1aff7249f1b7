use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Archive, Call, Fetched, Operation, READ, Toolset};
use crate::state::State;
use crate::state::bundle::{Asked, Content, Loaded, Told};
use crate::state::refusal::Refusal;

pub struct LoadBundle;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Scope of the bundle; if omitted, derived from model_id, base_url and toolset_hash
    pub scope: Option<String>,
    pub model_id: Option<String>,
    pub base_url: Option<String>,
    pub toolset_hash: Option<String>,
}

impl Operation for LoadBundle {
    const NAME: &'static str = "load_bundle";
    const DESCRIPTION: &'static str = "Read the newest sound bundle of a scope, if there is one: \
                                       `restored` says. Damaged ones are moved aside.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Loaded;

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        let content = Content {
            model_id: params.model_id.clone(),
            base_url: params.base_url.clone(),
            toolset_hash: params.toolset_hash.clone(),
            ..Content::default()
        };
        archive
            .bundles(&Asked::Load { scope: params.scope.clone(), content, dry_run: false })
            .map(Fetched::Bundles)
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Loaded, Refusal> {
        match call.fetched {
            Fetched::Bundles(Told::Loaded(loaded)) => Ok(Loaded::clone(loaded)),
            _ => Err(Refusal::Missing { what: "what was asked of the bundles" }),
        }
    }
}
