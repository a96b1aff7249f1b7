//! What hangs on what: tasks and their dependencies, folded into what they are parts of where they
//! are too many to look at.

use std::collections::{BTreeSet, HashMap};

use super::card::Named;
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::hierarchy::Progress;
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};

/// Most nodes that are drawn one by one.
const UNFOLDED: usize = 300;
/// Most nodes that are drawn at all.
const DRAWN: usize = 1_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// Pairs of places in `nodes`: the second waits for the first
    pub edges: Vec<(usize, usize)>,
    /// Number of tasks that are left out
    pub more: usize,
    pub seq: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub task: Named,
    /// Path, for a node that stands for its parts
    pub path: Option<String>,
    /// How far its parts are, if it stands for them
    pub folded: Option<Progress>,
}

impl Graph {
    /// Tasks of the scope that are not cancelled; without `all`, neither are those that are done
    /// and that nothing unfinished waits for.
    pub fn of(state: &State, scope: Option<&str>, all: bool) -> Self {
        let is_shown = |task: &Task| {
            task.run.is_none()
                && !matches!(task.status, TaskStatus::Cancelled | TaskStatus::Obsolete)
                && in_scope(task, scope)
                && !state.is_parent(&task.id)
        };
        let leaves: Vec<_> = state.tasks().filter(|task| is_shown(task)).collect();
        let waited: BTreeSet<&TaskId> = leaves
            .iter()
            .filter(|task| task.status != TaskStatus::Done)
            .flat_map(|task| state.waits_for(task).chain(&task.dependencies))
            .collect();
        let is_drawn =
            |task: &Task| all || task.status != TaskStatus::Done || waited.contains(&task.id);
        let leaves: Vec<_> = leaves.into_iter().filter(|task| is_drawn(task)).collect();
        let is_folded = leaves.len() > UNFOLDED;
        let mut graph = Self { nodes: Vec::new(), edges: Vec::new(), more: 0, seq: state.seq() };
        let mut places: HashMap<&TaskId, usize> = HashMap::new();
        for task in &leaves {
            let shown = if is_folded { fold(state, task, scope) } else { task };
            let place = match places.get(&shown.id) {
                Some(place) => *place,
                None if graph.nodes.len() == DRAWN => {
                    graph.more += 1;
                    continue;
                }
                None => {
                    graph.nodes.push(Node::of(state, shown));
                    graph.nodes.len() - 1
                }
            };
            places.insert(&shown.id, place);
            places.insert(&task.id, place);
        }
        graph.edges = edges(state, &leaves, &places);
        graph
    }
}

impl Node {
    fn of(state: &State, task: &Task) -> Self {
        let folded = state.is_parent(&task.id).then(|| state.progress(&task.id));
        Self { task: Named::find(state, &task.id), path: task.path.clone(), folded }
    }
}

/// What the task is shown as: its nearest parent that is below the scope.
fn fold<'s>(state: &'s State, task: &'s Task, scope: Option<&str>) -> &'s Task {
    let is_below = |one: &Task| scope.is_none_or(|scope| one.path.as_deref() != Some(scope));
    state.ancestors(task).next().filter(|one| is_below(one)).map_or(task, |parent| &**parent)
}

fn edges(
    state: &State,
    leaves: &[&std::sync::Arc<Task>],
    places: &HashMap<&TaskId, usize>,
) -> Vec<(usize, usize)> {
    let mut edges = BTreeSet::new();
    for task in leaves {
        let Some(to) = places.get(&task.id) else { continue };
        for id in &task.dependencies {
            let parts = state.below(id);
            let ends = parts.iter().map(|part| &part.id).chain([id]);
            edges.extend(ends.filter_map(|id| Some((*places.get(id)?, *to))));
        }
    }
    edges.into_iter().filter(|(from, to)| from != to).collect()
}
