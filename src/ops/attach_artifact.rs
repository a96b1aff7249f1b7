use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AgentArgument, Annotations, Archive, Call, Decision, Fetched, Operation, REPEATABLE, Toolset,
};
use crate::state::State;
use crate::state::artifact::{Artifact, DIRECTORY, Source, checked_name};
use crate::state::event::Event;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::Task;

pub struct AttachArtifact;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    /// File name, such as report.txt
    pub name: String,
    /// Content of the file; give either text or path
    pub text: Option<String>,
    /// Path of a file on this machine to copy instead of text; not over HTTP
    pub path: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub task_id: TaskId,
    pub artifact: Artifact,
    /// Path of the stored file in the board's directory
    pub path: String,
}

impl Operation for AttachArtifact {
    const NAME: &'static str = "attach_artifact";
    const DESCRIPTION: &'static str = "Keep a file with a task: a report, a log, a patch. \
                                       get_task lists them; one of the same name takes its \
                                       place, and the earlier version stays listed.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn admit(params: &Params, state: &State, call: &Call) -> Result<(), Refusal> {
        state.takes_part(call.actor.as_ref())?;
        let (task, name) = (TaskId::checked(&params.task_id)?, checked_name(&params.name)?);
        let task = state.known_task(&task)?;
        match task.artifacts.iter().find(|one| one.name == name) {
            None => limit::ARTIFACTS.check(task.artifacts.len() + 1)?,
            Some(known) if !may_replace(known, task, state, call) => {
                return Err(Refusal::ArtifactOfOther { task: task.id.clone(), name });
            }
            Some(_) => {}
        }
        if let Some(text) = &params.text {
            limit::ARTIFACT.check_text(text)?;
        }
        match (&params.text, &params.path) {
            (Some(_), None) => Ok(()),
            (None, Some(_)) if call.remote => Err(Refusal::PathOfOtherMachine),
            (None, Some(_)) => Ok(()),
            _ => Err(Refusal::TextOrPath),
        }
    }

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        let (task, name) = (TaskId::checked(&params.task_id)?, checked_name(&params.name)?);
        let source = match (&params.text, &params.path) {
            (Some(text), _) => Source::Text(text),
            (None, Some(path)) => Source::Path(path),
            (None, None) => return Err(Refusal::TextOrPath),
        };
        archive.keep_artifact(&task, &name, &source).map(Fetched::Artifact)
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let Fetched::Artifact(kept) = call.fetched else {
            return Err(Refusal::Missing { what: "the artifact" }.into());
        };
        // The task may have changed while the file was being written.
        Self::admit(params, state, call)?;
        let task = state.known_task(&TaskId::checked(&params.task_id)?)?;
        let acted = state.acted_on(call.actor.as_ref(), &task.id);
        let known = task.artifacts.iter().find(|one| one.name == kept.name);
        if known.is_some_and(|known| known.sha256 == kept.sha256) {
            return Ok(acted.into_iter().collect());
        }
        let open = task.open_attempt().filter(|open| Some(&open.agent) == call.actor.as_ref());
        let attempt = open.map(|open| open.number);
        let artifact = Artifact {
            agent: call.actor.clone(),
            attempt,
            at: call.now,
            earlier: known.map(Artifact::versions).unwrap_or_default(),
            ..kept.clone()
        };
        let attached =
            Event::ArtifactAttached { task: task.id.clone(), artifact: Box::new(artifact) };
        Ok(acted.into_iter().chain([attached]).collect())
    }

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let task = state.known_task(&TaskId::checked(&params.task_id)?)?;
        let attached = task.artifacts.iter().find(|one| one.name == params.name);
        let artifact = attached.ok_or(Refusal::Missing { what: "the artifact" })?.clone();
        let path = format!("{DIRECTORY}/{}/{}", task.id, artifact.file());
        Ok(Reply { success: true, task_id: task.id.clone(), artifact, path })
    }
}

fn may_replace(known: &Artifact, task: &Task, state: &State, call: &Call) -> bool {
    let actor = call.actor.as_ref();
    let holds = task.open_attempt().is_some_and(|open| Some(&open.agent) == actor);
    let wrote = actor.is_some() && known.agent.as_ref() == actor;
    holds || wrote || call.leads(state, "replace it").is_ok()
}
