use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::privacy::may_read;
use super::{Annotations, Call, Operation, READ, Reader, Toolset, input};
use crate::state::State;
use crate::state::refusal::Refusal;
use crate::view::{Board, Look};

pub struct GetBoard;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only tasks in a path such as P1.M2
    pub scope: Option<String>,
    /// Most rows of each list; default 8
    pub limit: Option<NonZeroU32>,
}

/// Rows of each list, if the caller does not say.
const ROWS: usize = 8;
/// Most rows for a model, which has lists of their own for the rest.
const ROWS_OF_MODELS: usize = 5;

impl Operation for GetBoard {
    const NAME: &'static str = "get_board";
    const DESCRIPTION: &'static str =
        "The board as a person sees it: what waits for them, who does what, what is next or stuck.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Board;

    // Tasks are looked at one by one.
    fn is_long(_: &Params, _: Reader) -> bool {
        true
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Board, Refusal> {
        input::check_scope(params.scope.as_deref(), state)?;
        let rows = input::page(params.limit, ROWS)?;
        let rows = if call.reader.is_model() { rows.min(ROWS_OF_MODELS) } else { rows };
        let scope = params.scope.as_deref().filter(|scope| *scope != "all");
        let look = Look { now: call.now, policy: call.policy, scope, rows };
        let mut board = Board::of(state, &look);
        for wait in &mut board.waits.rows {
            let message = wait.message.as_ref().and_then(|id| state.message(id));
            if message.is_some_and(|message| !may_read(call.principal, message)) {
                wait.text.clear();
            }
        }
        Ok(board)
    }
}
