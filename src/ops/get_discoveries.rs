use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::agent::Discovery;
use crate::state::refusal::Refusal;

pub struct GetDiscoveries;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// With any of these
    #[serde(default)]
    tags: Vec<String>,
    /// 20 unless given
    limit: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    discoveries: Vec<Discovery>,
}

impl Operation for GetDiscoveries {
    const NAME: &'static str = "get_discoveries";
    const DESCRIPTION: &'static str = "Read the newest discoveries, oldest of them first.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let size = input::page(params.limit, 20)?;
        let wanted = |one: &Discovery| params.tags.is_empty() || one.tags.iter().any(|tag| params.tags.contains(tag));
        let newest = state.discoveries().rev().filter(|one| wanted(one)).take(size);
        let mut discoveries: Vec<_> = newest.map(|one| Discovery::clone(one)).collect();
        discoveries.reverse();
        Ok(Reply { discoveries })
    }
}
