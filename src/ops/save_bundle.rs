use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AgentArgument, Annotations, Archive, Call, Fetched, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::bundle::{Asked, Content, Saved, Told};
use crate::state::refusal::Refusal;

pub struct SaveBundle;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Scope of the bundle; if omitted, derived from model_id, base_url and toolset_hash
    pub scope: Option<String>,
    pub model_id: Option<String>,
    pub base_url: Option<String>,
    /// Hash of the toolset that the prompts were written for
    pub toolset_hash: Option<String>,
    /// Prompts by name, such as system or developer
    #[serde(default)]
    pub prompts: Map<String, Value>,
    #[serde(default)]
    pub settings: Map<String, Value>,
    #[serde(default)]
    pub context: Map<String, Value>,
    /// Report what would be written, and write nothing
    #[serde(default)]
    pub dry_run: bool,
}

impl Operation for SaveBundle {
    const NAME: &'static str = "save_bundle";
    const DESCRIPTION: &'static str = "Keep refined prompts and settings for whoever does such \
                                       work next. The same again writes nothing.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Saved;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn admit(_: &Params, state: &State, call: &Call) -> Result<(), Refusal> {
        state.takes_part(call.actor.as_ref())
    }

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        let content = Content {
            model_id: params.model_id.clone(),
            base_url: params.base_url.clone(),
            toolset_hash: params.toolset_hash.clone(),
            prompts: params.prompts.clone(),
            settings: params.settings.clone(),
            context: params.context.clone(),
        };
        let asked = Asked::Save { scope: params.scope.clone(), content, dry_run: params.dry_run };
        archive.bundles(&asked).map(Fetched::Bundles)
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Saved, Refusal> {
        match call.fetched {
            Fetched::Bundles(Told::Saved(saved)) => Ok(saved.clone()),
            _ => Err(Refusal::Missing { what: "what was asked of the bundles" }),
        }
    }
}
