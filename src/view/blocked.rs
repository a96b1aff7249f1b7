//! Blocked tasks, grouped by what they wait for.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::card::Named;
use super::sorted::Sorted;
use crate::state::claim::in_scope;
use crate::state::id::TaskId;
use crate::state::{Obstacle, State};

/// Tasks that a group names: those that are waited for, and those that wait.
const NAMED: usize = 4;

/// What blocked tasks wait for, the gravest first. A task that waits for several is in the group of
/// the gravest.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Behind {
    /// A task that failed, was cancelled or left the plan: nothing frees them by itself
    Ended,
    /// A task that is not there any more
    Gone,
    /// Themselves: they are in a cycle or wait for one
    Cycle,
    /// A task whose result waits for a reviewer
    Review,
    Work,
    /// A task that waits for its time
    Retry,
    /// Tasks that could be claimed
    Ready,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Group {
    pub behind: Behind,
    /// The first tasks at the end of what they wait for; one if it has ended
    pub by: Vec<Named>,
    /// Number of blocked tasks
    pub tasks: usize,
    /// The first of them
    pub first: Vec<Named>,
}

impl Behind {
    fn of(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Ended => Self::Ended,
            Obstacle::Gone => Self::Gone,
            Obstacle::Cycle => Self::Cycle,
            Obstacle::Review => Self::Review,
            Obstacle::Work => Self::Work,
            Obstacle::Delay => Self::Retry,
            Obstacle::Queue => Self::Ready,
        }
    }

    /// Whether nothing frees the tasks without a person's doing.
    pub fn is_stuck(self) -> bool {
        matches!(self, Self::Ended | Self::Gone | Self::Cycle)
    }
}

#[derive(Default)]
struct Gathered<'s> {
    by: Vec<&'s TaskId>,
    tasks: usize,
    first: Vec<&'s TaskId>,
}

/// The groups, by what they wait for, and then the largest first.
pub(super) fn groups(state: &State, scope: Option<&str>, sorted: &Sorted<'_>) -> Vec<Group> {
    let mut gathered: BTreeMap<(Behind, Option<&TaskId>), Gathered<'_>> = BTreeMap::new();
    for (task, cause) in state.causes().into_iter().filter(|(task, _)| in_scope(task, scope)) {
        let behind = Behind::of(cause.obstacle);
        // What has ended takes a person's doing for each; the others go on by themselves.
        let group = gathered.entry((behind, cause.by.filter(|_| behind.is_stuck()))).or_default();
        group.tasks += 1;
        if group.first.len() < NAMED {
            group.first.push(&task.id);
        }
        if let Some(by) = cause.by.filter(|by| group.by.len() < NAMED && !group.by.contains(by)) {
            group.by.push(by);
        }
    }
    let named = |ids: &[&TaskId]| ids.iter().map(|id| sorted.named(id)).collect();
    let groups = gathered.into_iter().map(|((behind, _), group)| Group {
        behind,
        by: named(&group.by),
        tasks: group.tasks,
        first: named(&group.first),
    });
    let mut groups: Vec<_> = groups.collect();
    groups.sort_by_key(|group| (group.behind, std::cmp::Reverse(group.tasks)));
    groups
}

/// How many blocked tasks wait for each task that has ended.
pub(super) fn counts(groups: &[Group]) -> HashMap<&TaskId, usize> {
    let ended = groups.iter().filter(|group| group.behind == Behind::Ended);
    ended.filter_map(|group| Some((&group.by.first()?.id, group.tasks))).collect()
}
