use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Archive, Call, Fetched, Operation, READ, Toolset};
use crate::state::State;
use crate::state::refusal::Refusal;
use crate::state::snapshot::Verification;

pub struct VerifySnapshots;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

impl Operation for VerifySnapshots {
    const NAME: &'static str = "verify_snapshots";
    const DESCRIPTION: &'static str =
        "Compare every snapshot with its hash and the one before it. Changes nothing.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Verification;

    fn fetch(_: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        archive.verify().map(Fetched::Verified)
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Verification, Refusal> {
        match call.fetched {
            Fetched::Verified(report) => Ok(report.clone()),
            _ => Err(Refusal::NoSnapshot),
        }
    }
}
