use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::TaskStatus;
use crate::state::time::Timestamp;

pub struct InitCoordination;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub goal: String,
    pub master_plan: Option<String>,
    /// Even while agents work for another goal
    #[serde(default)]
    pub replace_goal: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub goal: Arc<str>,
    pub created_at: Timestamp,
}

/// Another goal takes the sense from what agents are working on, so it must be meant.
fn check_replaced(goal: &str, state: &State, is_meant: bool) -> Result<(), Refusal> {
    let present = &*state.board().goal;
    let held = state.count(TaskStatus::Claimed) + state.count(TaskStatus::InProgress);
    if is_meant || held == 0 || present.is_empty() || present == goal {
        return Ok(());
    }
    Err(Refusal::OtherGoal { goal: present.to_owned(), held })
}

impl Operation for InitCoordination {
    const NAME: &'static str = "init_coordination";
    const DESCRIPTION: &'static str = "Set the goal and the master plan. Tasks and agents stay.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Core;
    type Params = Params;
    type Reply = Reply;

    fn decide(params: &Params, state: &State, _: &Call) -> Decision {
        let goal = input::checked_text("goal", &limit::GOAL, &params.goal)?;
        check_replaced(&goal, state, params.replace_goal)?;
        if let Some(plan) = &params.master_plan {
            limit::MASTER_PLAN.check_text(plan)?;
        }
        Ok(vec![Event::PlanSet { goal, master_plan: params.master_plan.clone() }])
    }

    fn reply(_: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let board = state.board();
        Ok(Reply { success: true, goal: Arc::clone(&board.goal), created_at: board.created_at })
    }
}
