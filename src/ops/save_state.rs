//! Not in the list: clients need no operation for what every answer promises.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::refusal::Refusal;

/// Changes nothing, and is answered like a call that does: once the state file shows all there is.
pub(crate) struct SaveState;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Reply {
    pub seq: u64,
}

impl Operation for SaveState {
    const NAME: &'static str = "save_state";
    const DESCRIPTION: &'static str = "Have the state file show all that was acknowledged.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(_: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        Ok(Reply { seq: state.seq() })
    }
}
