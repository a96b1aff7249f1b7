use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::export_plan::{at, version};
use super::page::{Page, Part, Shown};
use super::{Annotations, Archive, Call, Fetched, Operation, READ, Toolset};
use crate::state::State;
use crate::state::document::{Document, PlanVersion};
use crate::state::event::PlanChange;
use crate::state::id::TaskId;
use crate::state::plan::{is_renumbered, planned};
use crate::state::refusal::Refusal;
use crate::state::task::Task;

pub struct DiffPlans;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Name of the plan; needed if there are several
    pub plan: Option<String>,
    /// First 6 or more digits of a version's sha256; default the version before `to`
    pub from: Option<String>,
    /// First digits of the sha256 to compare with; default the current version
    pub to: Option<String>,
    /// `next` of the prior page
    #[serde(default)]
    pub after: usize,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub part: Option<Part<usize>>,
    pub from: String,
    pub to: String,
    pub added: Vec<Difference>,
    pub modified: Vec<Difference>,
    pub renamed: Vec<Difference>,
    pub removed: Vec<Difference>,
}

#[derive(Serialize, JsonSchema)]
pub struct Difference {
    pub task: TaskId,
    pub path: String,
    pub title: String,
    /// Previous title or path
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
}

impl Operation for DiffPlans {
    const NAME: &'static str = "diff_plans";
    const DESCRIPTION: &'static str = "What is different between two versions of the plan.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        let (from, to) = versions(params, archive.present())?;
        Ok(Fetched::Pair(at(&from, archive)?, at(&to, archive)?))
    }

    fn reply(params: &Params, _: &State, call: &Call) -> Result<Reply, Refusal> {
        let Fetched::Pair(from, to) = call.fetched else {
            return Err(Refusal::NoPlan { version: None });
        };
        let mut page = Page::new(call, None, usize::MAX)?;
        let all = differences(from, to);
        let total = all.len();
        let is_more = page.fill(all.into_iter().skip(params.after));
        let next = is_more.then_some(params.after + page.len());
        let part = page.part(Some(total), params.after > 0, next);
        let mut shown: Vec<_> = page.into_entries().into_iter().map(Shown::into_entry).collect();
        let mut of = |kind| {
            let (own, others) =
                std::mem::take(&mut shown).into_iter().partition(|(of, _)| *of == kind);
            shown = others;
            let own: Vec<(Kind, Difference)> = own;
            own.into_iter().map(|(_, difference)| difference).collect()
        };
        let [added, modified, renamed, removed] =
            [Kind::Added, Kind::Modified, Kind::Renamed, Kind::Removed].map(&mut of);
        Ok(Reply { part, from: sha256(from), to: sha256(to), added, modified, renamed, removed })
    }
}

/// The list of the reply that a difference is in.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
enum Kind {
    Added,
    Modified,
    Renamed,
    Removed,
}

fn sha256(document: &Document) -> String {
    document.board.plans.last().map(|plan| plan.sha256.clone()).unwrap_or_default()
}

type Versions = (PlanVersion, PlanVersion);

fn versions(params: &Params, state: &State) -> Result<Versions, Refusal> {
    let to = version(state, params.plan.as_deref(), params.to.as_deref())?;
    let was = to.was.as_deref();
    let from = match (params.from.as_deref(), to.prev_sha256.as_deref()) {
        (Some(given), _) => {
            version(state, params.plan.as_deref(), Some(given)).or_else(|refusal| {
                was.map_or(Err(refusal), |was| version(state, Some(was), Some(given)))
            })?
        }
        (None, Some(before)) => {
            let is_own = |plan: &PlanVersion| plan.name() == to.name() || Some(plan.name()) == was;
            let is_before =
                |plan: &&PlanVersion| plan.seq < to.seq && !plan.removed && is_own(plan);
            let found = state
                .board()
                .plans
                .iter()
                .rev()
                .filter(is_before)
                .find(|plan| plan.sha256 == before);
            found.ok_or_else(|| Refusal::NoPlan { version: Some(before.to_owned()) })?
        }
        (None, None) => return Err(Refusal::OnlyPlan),
    };
    Ok((from.clone(), to.clone()))
}

/// Tasks of the plan that was imported last.
fn tasks(document: &Document) -> Vec<&Task> {
    let name = document.board.plans.last().map(PlanVersion::name);
    planned(document.tasks.iter().filter(|task| task.plan_name() == name))
}

/// All differences, in the order of the reply's lists.
fn differences(from: &Document, to: &Document) -> Vec<(Kind, Difference)> {
    let old: BTreeMap<&TaskId, &Task> =
        tasks(from).into_iter().map(|task| (&task.id, task)).collect();
    let new = tasks(to);
    let (mut added, mut modified, mut renamed) = (Vec::new(), Vec::new(), Vec::new());
    for task in &new {
        let Some(before) = old.get(&task.id) else {
            added.push((Kind::Added, difference(task, None)));
            continue;
        };
        let (Some(was), Some(is)) = (&before.planned, &task.planned) else { continue };
        let renumbered = is_renumbered(before, task.parent.as_ref(), task.path.as_deref());
        match was.change(is, renumbered) {
            Some(PlanChange::Renamed) if was.title != is.title => {
                renamed.push((Kind::Renamed, difference(task, before.title.clone())));
            }
            Some(PlanChange::Renamed) => {
                renamed.push((Kind::Renamed, difference(task, before.path.clone())))
            }
            Some(_) => modified.push((Kind::Modified, difference(task, None))),
            None => {}
        }
    }
    let there: BTreeSet<&TaskId> = new.iter().map(|task| &task.id).collect();
    let gone = tasks(from).into_iter().filter(|task| !there.contains(&task.id));
    let removed = gone.map(|task| (Kind::Removed, difference(task, None)));
    added.into_iter().chain(modified).chain(renamed).chain(removed).collect()
}

fn difference(task: &Task, was: Option<String>) -> Difference {
    let path = task.path.clone().unwrap_or_default();
    Difference { task: task.id.clone(), path, title: task.headline().to_owned(), was }
}
