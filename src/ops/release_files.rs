use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::ReservationId;
use crate::state::limit;
use crate::state::refusal::Refusal;

pub struct ReleaseFiles;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Ids from reserve_files; default all of yours
    pub reservations: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// Reservations you still have
    pub left: usize,
}

impl Operation for ReleaseFiles {
    const NAME: &'static str = "release_files";
    const DESCRIPTION: &'static str = "Give up reservations before their time. A leader may name \
                                       another's. The files of a task go with its claim.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = &state.known_agent(call.agent()?)?.id;
        let own = state.reservations().filter(|one| one.agent == *agent).map(|one| one.id.clone());
        let mut reservations =
            if params.reservations.is_some() { Vec::new() } else { own.collect() };
        let given = params.reservations.as_deref().unwrap_or_default();
        limit::RESERVATIONS.check(given.len())?;
        for id in given {
            let id = ReservationId::checked(id)?;
            // A reservation that has ended needs no release.
            let Some(one) = state.reservation(&id) else { continue };
            if one.agent != *agent {
                state.leads(Some(agent), "release another's files")?;
            }
            reservations.push(id);
        }
        let released = (!reservations.is_empty())
            .then_some(Event::FilesReleased { reservations, expired: false });
        Ok(released.into_iter().collect())
    }

    fn reply(_: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let agent = call.agent()?;
        Ok(Reply {
            success: true,
            left: state.reservations().filter(|one| one.agent == *agent).count(),
        })
    }
}
