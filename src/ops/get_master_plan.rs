use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::document::PlanVersion;
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;

pub struct GetMasterPlan;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub goal: Arc<str>,
    pub master_plan: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Newest versions of all plans, oldest first
    #[serde(default, skip_serializing_if = "<[PlanVersion]>::is_empty")]
    pub plans: Arc<[PlanVersion]>,
}

impl Operation for GetMasterPlan {
    const NAME: &'static str = "get_master_plan";
    const DESCRIPTION: &'static str = "Read the goal and the master plan.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn reply(_: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let board = state.board();
        Ok(Reply {
            goal: Arc::clone(&board.goal),
            master_plan: Arc::clone(&board.master_plan),
            created_at: board.created_at.known(),
            plans: if call.reader.is_model() {
                board.plans.iter().map(PlanVersion::brief).collect()
            } else {
                Arc::clone(&board.plans)
            },
        })
    }
}
