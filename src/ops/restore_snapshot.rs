use std::iter;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AgentArgument, Annotations, Archive, Call, DESTRUCTIVE, Decision, Fetched, Operation, Toolset,
};
use crate::state::State;
use crate::state::deadline::cancelled_when_stopped;
use crate::state::event::Event;
use crate::state::refusal::Refusal;
use crate::state::run::runner::stopped;
use crate::state::snapshot::{Occasion, SnapshotName};

pub struct RestoreSnapshot;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Name of the snapshot, or `latest` for the newest sound one
    pub snapshot: Option<String>,
    /// Instead of a snapshot: restore the state after this event
    pub seq: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// Last event of the restored state
    pub restored_seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<SnapshotName>,
    /// Restore this seq to undo the restore
    pub before_seq: u64,
    /// The snapshot taken before the restore
    pub before: SnapshotName,
}

impl Operation for RestoreSnapshot {
    const NAME: &'static str = "restore_snapshot";
    const DESCRIPTION: &'static str = "Leaders: go back to an earlier state. Held tasks are \
                                       released; the present is kept as a snapshot first.";
    const ANNOTATIONS: Annotations = DESTRUCTIVE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn admit(params: &Params, state: &State, call: &Call) -> Result<(), Refusal> {
        call.leads(state, "restore the board")?;
        match (params.snapshot.as_deref(), params.seq) {
            (Some("latest"), None) | (None, Some(_)) => Ok(()),
            (Some(name), None) => SnapshotName::checked(name).map(drop),
            _ => Err(Refusal::RestoreWhat),
        }
    }

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        let (snapshot, document) = match (params.snapshot.as_deref(), params.seq) {
            (Some("latest"), None) => {
                let (name, document) = archive.newest_sound()?;
                (Some(name), document)
            }
            (Some(name), None) => {
                let name = SnapshotName::checked(name)?;
                let document = archive.load(&name)?;
                (Some(name), document)
            }
            (None, Some(seq)) => (None, archive.at(seq)?),
            _ => return Err(Refusal::RestoreWhat),
        };
        let before = archive.take(Occasion::BeforeRestore, None)?.name;
        Ok(Fetched::Earlier { document: Box::new(document), snapshot, before })
    }

    fn decide(_: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "restore the board")?;
        let Fetched::Earlier { document, snapshot, .. } = call.fetched else {
            return Err(Refusal::NoSnapshot.into());
        };
        let restored = Event::StateRestored {
            restored_seq: document.board.seq,
            snapshot: snapshot.clone(),
            document: Box::new(state.restored(document, call.now)),
        };
        // The restore ends all held attempts, so tasks and runs with a stop request end as it
        // asked.
        let held = document.tasks.iter().filter(|task| task.status.is_held());
        let ended = held.filter_map(|task| stopped(task).or_else(|| cancelled_when_stopped(task)));
        Ok(iter::once(restored).chain(ended).collect())
    }

    fn reply(_: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let Fetched::Earlier { document, snapshot, before } = call.fetched else {
            return Err(Refusal::NoSnapshot);
        };
        Ok(Reply {
            success: true,
            restored_seq: document.board.seq,
            restored: snapshot.clone(),
            before_seq: state.seq() - call.events.max(1) as u64,
            before: before.clone(),
        })
    }
}
