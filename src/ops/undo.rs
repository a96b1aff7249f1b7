use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AgentArgument, Annotations, Archive, Call, DESTRUCTIVE, Decision, Fetched, Operation, Toolset,
};
use crate::state::State;
use crate::state::refusal::Refusal;
use crate::state::undo::Command;

pub struct Undo;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// An event of the command, from get_history
    pub seq: u64,
    /// True to say what stays, and change nothing
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// Events of the command
    pub first_seq: u64,
    pub last_seq: u64,
    /// Newest events of the history that say what was taken back
    pub events: usize,
    /// What stays as it is, and why
    pub left: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

impl Operation for Undo {
    const NAME: &'static str = "undo";
    const DESCRIPTION: &'static str =
        "Leaders: take back what one command changed and nobody changed since; the rest is listed.";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn admit(_: &Params, state: &State, call: &Call) -> Result<(), Refusal> {
        call.leads(state, "undo a command")
    }

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        Ok(Fetched::Command(Box::new(archive.command(params.seq)?)))
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "undo a command")?;
        let command = fetched(call)?;
        let undoing = command.undoing(state, call.now);
        if undoing.events.is_empty() {
            let (first, last) = (command.first(), command.last());
            return Err(Refusal::NothingToUndo { first, last, left: undoing.left }.into());
        }
        Ok(if params.dry_run { Vec::new() } else { undoing.events })
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let command = fetched(call)?;
        Ok(Reply {
            success: true,
            first_seq: command.first(),
            last_seq: command.last(),
            events: call.events,
            left: command.undoing(state, call.now).left,
            dry_run: params.dry_run,
        })
    }
}

fn fetched<'c>(call: &Call<'c>) -> Result<&'c Command, Refusal> {
    match call.fetched {
        Fetched::Command(command) => Ok(command),
        _ => Err(Refusal::NoSnapshot),
    }
}
