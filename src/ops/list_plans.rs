use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Annotations, Call, Operation, READ, Toolset};
use crate::state::State;
use crate::state::document::PlanVersion;
use crate::state::hierarchy::Progress;
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;

pub struct ListPlans;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub plans: Vec<Plan>,
}

#[derive(Serialize, JsonSchema)]
pub struct Plan {
    /// The file that it came from first, or the name that it was given; `-` for one without
    pub name: String,
    /// File that it came from last
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Items, headings included
    pub items: usize,
    pub progress: Progress,
    /// First 12 digits of the sha256 of its current version
    pub version: String,
    /// When that was imported
    pub changed: Timestamp,
}

impl Operation for ListPlans {
    const NAME: &'static str = "list_plans";
    const DESCRIPTION: &'static str =
        "The board's plans, each with its progress and its current version.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn reply(_: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        let mut progress: HashMap<&str, Progress> = HashMap::new();
        for task in
            state.tasks().filter(|task| task.planned.is_some() && !state.is_parent(&task.id))
        {
            task.plan_name()
                .into_iter()
                .for_each(|name| progress.entry(name).or_default().count(task.status));
        }
        let listed =
            |plan: &PlanVersion| listed(plan, progress.remove(plan.name()).unwrap_or_default());
        Ok(Reply { plans: state.plans().into_iter().map(listed).collect() })
    }
}

fn listed(plan: &PlanVersion, progress: Progress) -> Plan {
    Plan {
        name: plan.name().to_owned(),
        file: plan.source.clone(),
        title: plan.title.clone(),
        items: plan.items,
        progress,
        version: plan.session().to_owned(),
        changed: plan.imported_at,
    }
}
