use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Archive, Call, Fetched, Operation, READ, Toolset};
use crate::state::State;
use crate::state::bundle::{Asked, Told, Verification};
use crate::state::refusal::Refusal;

pub struct VerifyBundles;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only bundles of this scope; default all scopes
    pub scope: Option<String>,
}

impl Operation for VerifyBundles {
    const NAME: &'static str = "verify_bundles";
    const DESCRIPTION: &'static str =
        "Compare every context bundle with its hash and the one before it. Changes nothing.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Verification;

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        archive.bundles(&Asked::Verify { scope: params.scope.clone() }).map(Fetched::Bundles)
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Verification, Refusal> {
        match call.fetched {
            Fetched::Bundles(Told::Verified(report)) => Ok(report.clone()),
            _ => Err(Refusal::Missing { what: "what was asked of the bundles" }),
        }
    }
}
