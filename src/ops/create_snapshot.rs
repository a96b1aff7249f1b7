use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Archive, Call, Fetched, Operation, Toolset, WRITE};
use crate::state::State;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::snapshot::{Listed, Occasion, SnapshotName};

pub struct CreateSnapshot;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// What the snapshot is for, at most 200 bytes
    pub label: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub snapshot: SnapshotName,
    pub seq: u64,
    pub bytes: u64,
}

impl Operation for CreateSnapshot {
    const NAME: &'static str = "create_snapshot";
    const DESCRIPTION: &'static str =
        "Leaders: keep the present state as a file that can be compared and restored.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn admit(params: &Params, state: &State, call: &Call) -> Result<(), Refusal> {
        call.leads(state, "take a snapshot")?;
        params.label.as_deref().map_or(Ok(()), |label| limit::SNAPSHOT_LABEL.check_text(label))
    }

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        archive.take(Occasion::OnDemand, params.label.clone()).map(Fetched::Taken)
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Reply, Refusal> {
        let Fetched::Taken(Listed { name, bytes, head }) = call.fetched else {
            return Err(Refusal::NoSnapshot);
        };
        let seq = head.as_ref().map_or(0, |head| head.seq);
        Ok(Reply { success: true, snapshot: name.clone(), seq, bytes: *bytes })
    }
}
