use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::privacy::{may_read, withhold};
use super::{Annotations, Call, Operation, READ, Reader, Toolset, input, telling};
use crate::state::State;
use crate::state::refusal::Refusal;
use crate::view::{Board, Filter, Latest, Look, latest};

pub struct GetBoard;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only tasks in a path such as P1.M2
    pub scope: Option<String>,
    /// Most rows of each list; default 8
    pub limit: Option<NonZeroU32>,
    /// Only rows that fit
    #[serde(default, skip_serializing_if = "Filter::is_empty")]
    pub filter: Filter,
    /// Also what happened last: most events; default none
    #[serde(default)]
    pub latest: u32,
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
        let look = Look { now: call.now, policy: call.policy, scope, filter: &params.filter, rows };
        let mut board = Board::of(state, &look);
        for wait in &mut board.waits.rows {
            let message = wait.message.as_ref().and_then(|id| state.message(id));
            if message.is_some_and(|message| !may_read(call.principal, message)) {
                withhold(&mut wait.text, &mut wait.options);
            }
        }
        let most = input::page(NonZeroU32::new(params.latest), 0)?;
        board.latest = happened(state, call, most)?;
        Ok(board)
    }
}

/// Events that are read for each that is told: most say nothing of the work.
const READ_FOR_EACH: u64 = 20;

fn happened(state: &State, call: &Call, most: usize) -> Result<Vec<Latest>, Refusal> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let read = READ_FOR_EACH * most as u64;
    let start = state.seq().saturating_sub(read);
    let events = call.history.events_after(start, usize::try_from(read).unwrap_or(usize::MAX));
    let events = events.map_err(|detail| Refusal::HistoryUnread { detail })?;
    let events: Vec<_> = events.iter().map(|one| telling::told(one, call.principal)).collect();
    let mut told = latest(state, &events);
    told.reverse();
    told.truncate(most);
    Ok(told)
}
