use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Archive, Call, Fetched, Operation, READ, Toolset};
use crate::plan;
use crate::state::State;
use crate::state::document::{Document, PlanVersion};
use crate::state::event::Event;
use crate::state::plan::{Import, KeptText};
use crate::state::refusal::Refusal;
use crate::state::task::Task;

pub struct ExportPlan;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    #[serde(default)]
    pub format: Format,
    /// Name of the plan; needed if there are several
    pub plan: Option<String>,
    /// First 6 or more digits of a version's sha256; default the plan as it stands now
    pub version: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    #[default]
    Markdown,
    Json,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub plan: PlanVersion,
    /// Set if format is markdown
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<plan::Document>,
}

impl Operation for ExportPlan {
    const NAME: &'static str = "export_plan";
    const DESCRIPTION: &'static str =
        "Read the plan as it stands, or an earlier version, as Markdown or JSON.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        let version =
            version(archive.present(), params.plan.as_deref(), params.version.as_deref())?;
        match params.version {
            Some(_) => Ok(Fetched::Document(at(version, archive)?)),
            None => Ok(Fetched::Nothing),
        }
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let version = version(state, params.plan.as_deref(), params.version.as_deref())?.clone();
        let earlier = match call.fetched {
            Fetched::Document(document) => Some(State::from_document(Document::clone(document))),
            _ => None,
        };
        let state = earlier.as_ref().unwrap_or(state);
        let is_own =
            |task: &&Arc<Task>| task.run.is_none() && task.plan_name() == Some(version.name());
        let tasks = state.in_file_order(state.tasks().filter(is_own));
        let title = version.title.as_deref();
        Ok(match params.format {
            Format::Markdown => {
                let own = kept_text(&version, call)
                    .and_then(|kept| plan::rewritten(state, &kept, &Import::of(&version)));
                let text = own.unwrap_or_else(|| plan::to_markdown(title, version.review, &tasks));
                Reply { markdown: Some(text), json: None, plan: version }
            }
            Format::Json => {
                let mut document = plan::to_json(title, &tasks);
                document.review = version.review;
                document.board.metadata.clone_from(&version.metadata);
                Reply { json: Some(document), markdown: None, plan: version }
            }
        })
    }
}

/// The text of a version, if the event of its import has it.
fn kept_text(version: &PlanVersion, call: &Call) -> Option<Box<KeptText>> {
    let events = call.history.events_after(version.seq.checked_sub(1)?, 1).ok()?;
    events.into_iter().find_map(|recorded| match recorded.event {
        Event::PlanImported { plan, text, .. } if plan.sha256 == version.sha256 => text,
        _ => None,
    })
}

/// The newest version whose sha256 begins with `given`; without it the current one of the plan.
pub fn version<'s>(
    state: &'s State,
    plan: Option<&str>,
    given: Option<&str>,
) -> Result<&'s PlanVersion, Refusal> {
    let Some(given) = given else { return state.plan_meant(plan) };
    let is_meant =
        |version: &&PlanVersion| plan.is_none_or(|plan| version.name() == plan) && !version.removed;
    let mut newest = state.board().plans.iter().rev().filter(is_meant);
    let found = newest.find(|plan| given.len() >= SHORTEST && plan.sha256.starts_with(given));
    found.ok_or_else(|| Refusal::NoPlan { version: Some(given.chars().take(64).collect()) })
}

/// Fewest digits that name a version.
const SHORTEST: usize = 6;

/// The state right after `version` was imported. Refused for a version that came with the state of
/// another board, because its `seq` counts there.
pub fn at(version: &PlanVersion, archive: &dyn Archive) -> Result<Box<Document>, Refusal> {
    let elsewhere = || Refusal::PlanFromElsewhere { version: version.session().to_owned() };
    let document = archive.at(version.seq).map_err(|refusal| match refusal {
        Refusal::NotInThePast { .. } => elsewhere(),
        other => other,
    })?;
    let then = document
        .board
        .plans
        .last()
        .filter(|then| then.sha256 == version.sha256 && then.seq == version.seq);
    if then.is_some() { Ok(Box::new(document)) } else { Err(elsewhere()) }
}
