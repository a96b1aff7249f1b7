use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Reader, Toolset, input};
use crate::state::State;
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;
use crate::view::report::{Asked, Report};

pub struct GetReport;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only tasks in a path such as P1.M2
    pub scope: Option<String>,
    /// Only attempts of this agent
    pub agent: Option<String>,
    /// Only attempts that ended since this time
    pub since: Option<Timestamp>,
    /// Most tasks that are listed; default 10
    pub limit: Option<NonZeroU32>,
}

impl Operation for GetReport {
    const NAME: &'static str = "get_report";
    const DESCRIPTION: &'static str =
        "How the work went: done per hour, how long tasks took and waited, tries, by agent.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Report;

    // Attempts are looked at one by one.
    fn is_long(_: &Params, _: Reader) -> bool {
        true
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Report, Refusal> {
        input::check_scope(params.scope.as_deref(), state)?;
        let agent = params.agent.as_deref().map(|id| state.agent_called(id)).transpose()?;
        Ok(Report::of(
            state,
            &Asked {
                now: call.now,
                scope: params.scope.as_deref().filter(|scope| *scope != "all"),
                agent: agent.map(|agent| &agent.id),
                since: params.since.unwrap_or_default(),
                rows: input::page(params.limit, 10)?,
            },
        ))
    }
}
