//! The plans of a board, and which of them a text is a version of.

use std::collections::HashSet;

use super::hashes::hash;
use super::item::{Import, Plan};
use super::words::words;
use crate::state::State;
use crate::state::document::PlanVersion;
use crate::state::limit::{self, PLANS_KEPT};
use crate::state::refusal::Refusal;
use crate::state::task::UNNAMED;

/// What the caller says of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// The file that it comes from.
    pub source: Option<String>,
    pub name: Option<String>,
    /// Name of the plan that it takes the place of.
    pub replace: Option<String>,
    /// Files of plans that are no longer there.
    pub gone: Vec<String>,
    pub parallel: Option<bool>,
    pub lists: Option<bool>,
}

impl State {
    /// The newest version of each plan, in the order of these versions.
    pub fn plans(&self) -> Vec<&PlanVersion> {
        newest_of_each(&self.board().plans)
    }

    pub fn plan_named(&self, name: &str) -> Result<&PlanVersion, Refusal> {
        let found = self.plans().into_iter().find(|plan| plan.name() == name);
        found.ok_or_else(|| Refusal::UnknownPlan {
            given: shortened(name),
            plans: self.plan_names(),
        })
    }

    /// The plan of that name; without one, the only plan.
    pub fn plan_meant(&self, name: Option<&str>) -> Result<&PlanVersion, Refusal> {
        match (name, self.plans().as_slice()) {
            (Some(name), _) => self.plan_named(name),
            (None, []) => Err(Refusal::NoPlan { version: None }),
            (None, [only]) => Ok(only),
            (None, _) => Err(Refusal::SeveralPlans { plans: self.plan_names() }),
        }
    }

    pub fn plan_names(&self) -> Vec<String> {
        self.plans().into_iter().map(|plan| plan.name().to_owned()).collect()
    }

    /// Which plan the text becomes a version of, and under which name.
    pub fn import_of(&self, plan: &Plan, given: &Given) -> Result<Import, Refusal> {
        let plans = self.plans();
        let named = |name: &str| plans.iter().copied().find(|one| one.name() == name);
        let base = match (&given.replace, &given.name, &given.source) {
            (Some(replaced), ..) => Some(self.plan_named(replaced)?),
            (None, Some(name), source) => {
                named(name).or_else(|| of_source(&plans, source.as_deref()?))
            }
            (None, None, Some(source)) => {
                of_source(&plans, source).or_else(|| self.moved(plan, &plans, &given.gone))
            }
            (None, None, None) => named(UNNAMED),
        };
        let has_file_name = |base: &PlanVersion| base.name == base.source || base.name.is_none();
        let name = match (&given.name, base) {
            (Some(name), _) => Some(name.clone()).filter(|name| name != UNNAMED),
            (None, Some(base)) if !has_file_name(base) || given.source.is_none() => {
                base.name.clone()
            }
            (None, _) => given.source.clone(),
        };
        let is_taken = || plans.iter().any(|one| one.name() == name.as_deref().unwrap_or(UNNAMED));
        match base {
            None if name.is_none() && !plans.is_empty() => {
                return Err(Refusal::UnnamedPlan { plans: self.plan_names() });
            }
            _ if is_taken() && base.is_none_or(|base| base.name != name) => {
                return Err(Refusal::PlanExists { name: name.unwrap_or_default() });
            }
            None => limit::PLANS.check(plans.len() + 1)?,
            Some(_) => {}
        }
        Ok(Import {
            base: base.map(|base| base.name().to_owned()),
            parallel: given.parallel.or_else(|| Some(base?.parallel)).unwrap_or_default(),
            lists: given.lists.or_else(|| Some(base?.lists)).unwrap_or_default(),
            is_all_read: match given.lists {
                Some(lists) => !lists,
                None => base.is_some_and(PlanVersion::is_all_read),
            },
            source: given.source.clone(),
            name,
            carry: Vec::new(),
        })
    }

    /// The plan whose file is gone and most of whose words the text holds.
    fn moved<'s>(
        &self,
        plan: &Plan,
        plans: &[&'s PlanVersion],
        gone: &[String],
    ) -> Option<&'s PlanVersion> {
        // A plan that was given a name and has no file is not lost.
        let is_gone = |one: &&&PlanVersion| match &one.source {
            Some(source) => gone.contains(source),
            None => one.name.is_none(),
        };
        let mut lost = plans.iter().filter(is_gone).peekable();
        lost.peek()?;
        let titles: HashSet<String> = plan
            .items
            .iter()
            .flat_map(|item| [hash(&words(&item.title)), hash(&item.title)])
            .collect();
        let has_most = |one: &&&PlanVersion| {
            let (known, all) = self.items_of(one.name()).fold((0, 0), |(known, all), task| {
                let is_known =
                    task.planned.as_ref().is_some_and(|planned| titles.contains(&planned.title));
                (known + usize::from(is_known), all + 1)
            });
            2 * known > all
        };
        lost.find(has_most).copied()
    }
}

/// The plan that came from that file. Older boards know only the name of the file, without its
/// directory.
fn of_source<'s>(plans: &[&'s PlanVersion], source: &str) -> Option<&'s PlanVersion> {
    let from = |one: &&&PlanVersion| one.source.as_deref() == Some(source);
    let file = source.rsplit('/').next();
    let older = |one: &&&PlanVersion| one.name.is_none() && one.source.as_deref() == file;
    plans.iter().find(from).or_else(|| plans.iter().find(older)).copied()
}

pub fn newest_of_each(versions: &[PlanVersion]) -> Vec<&PlanVersion> {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut found: Vec<&PlanVersion> = Vec::new();
    for version in versions.iter().rev() {
        if seen.insert(version.name()) && !version.removed {
            found.push(version);
        }
        seen.extend(version.was.as_deref());
    }
    found.reverse();
    found
}

/// The versions that the board keeps when `newest` comes: the current one of each plan, and the
/// newest of the others.
pub(crate) fn kept_versions(versions: &[PlanVersion], newest: PlanVersion) -> Vec<PlanVersion> {
    let all: Vec<PlanVersion> = versions.iter().cloned().chain([newest]).collect();
    let needed: HashSet<u64> = newest_of_each(&all).iter().map(|version| version.seq).collect();
    let mut surplus = all.len().saturating_sub(PLANS_KEPT);
    let stays = |version: &PlanVersion| {
        let goes = surplus > 0 && !needed.contains(&version.seq);
        surplus -= usize::from(goes);
        !goes
    };
    let mut stays = stays;
    all.into_iter().filter(|version| stays(version)).collect()
}

fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(limit::ID.max).collect()
}
