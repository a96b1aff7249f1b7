use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AgentArgument, Annotations, Archive, Call, Fetched, Operation, Toolset, WRITE};
use crate::state::State;
use crate::state::bundle::{Asked, Content, Saved, Told};
use crate::state::refusal::Refusal;

pub struct RefineBundle;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Scope of the bundle; if omitted, derived from model_id, base_url and toolset_hash
    pub scope: Option<String>,
    pub model_id: Option<String>,
    pub base_url: Option<String>,
    pub toolset_hash: Option<String>,
    /// What should be better; appended to context.refinements
    pub text: Option<String>,
    /// Prompts to replace by name; null deletes one
    #[serde(default)]
    pub prompts: Map<String, Value>,
    /// Settings to replace by name; null deletes one
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// Context to replace by name; null deletes an entry
    #[serde(default)]
    pub context: Map<String, Value>,
    /// sha256 of the bundle you loaded; refused if there is a newer one
    pub prev_sha: Option<String>,
    /// Report what would be written, and write nothing
    #[serde(default)]
    pub dry_run: bool,
}

impl Operation for RefineBundle {
    const NAME: &'static str = "refine_bundle";
    const DESCRIPTION: &'static str =
        "Follow the stored bundle of a scope by a better one; the old one stays.";
    const ANNOTATIONS: Annotations = WRITE;
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
        let change = Content {
            model_id: params.model_id.clone(),
            base_url: params.base_url.clone(),
            toolset_hash: params.toolset_hash.clone(),
            prompts: params.prompts.clone(),
            settings: params.settings.clone(),
            context: params.context.clone(),
        };
        let (scope, text, prev_sha) =
            (params.scope.clone(), params.text.clone(), params.prev_sha.clone());
        let asked = Asked::Refine { scope, change, text, prev_sha, dry_run: params.dry_run };
        archive.bundles(&asked).map(Fetched::Bundles)
    }

    fn reply(_: &Params, _: &State, call: &Call) -> Result<Saved, Refusal> {
        match call.fetched {
            Fetched::Bundles(Told::Saved(saved)) => Ok(saved.clone()),
            _ => Err(Refusal::Missing { what: "what was asked of the bundles" }),
        }
    }
}
