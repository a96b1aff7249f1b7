//! What hangs on what: tasks and their dependencies, folded into what they are parts of, and then
//! into what stands like them, where they are too many to look at.

mod links;

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet};

use super::card::Named;
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::hierarchy::Progress;
use crate::state::id::TaskId;
use crate::state::task::{Task, TaskStatus};
use links::Links;

/// Most nodes that are drawn one by one.
const UNFOLDED: usize = 300;
/// Most nodes that are drawn at all.
const DRAWN: usize = 1_000;
/// Most lines.
const LINES: usize = 5_000;
/// Most dependencies that are looked at.
const FOLLOWED: usize = 2_000_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// Pairs of places: the second waits for the first. The places of `nodes` are followed by those
    /// where only lines meet
    pub edges: Vec<(usize, usize)>,
    /// For each place how many stand before it in a row at most
    pub layers: Vec<usize>,
    /// Number of tasks that are left out
    pub more: usize,
    /// Number of lines that are left out, although they follow from no others
    pub hidden: usize,
    pub seq: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub task: Named,
    /// Path, for a node that stands for its parts
    pub path: Option<String>,
    /// How far its tasks are, if it stands for several
    pub folded: Option<Progress>,
    /// How many nodes it stands for beside its own, which follow it or stand as it does
    pub alike: usize,
}

/// A node while the graph is made.
struct Shown<'s> {
    task: &'s Task,
    progress: Progress,
    alike: usize,
}

impl Graph {
    /// Tasks of the scope that are not cancelled; without `all`, neither are those that are done
    /// and that nothing unfinished waits for. None if its reader has gone meanwhile.
    pub fn of(
        state: &State,
        scope: Option<&str>,
        all: bool,
        is_gone: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let is_shown = |task: &Task| {
            task.run.is_none()
                && !matches!(task.status, TaskStatus::Cancelled | TaskStatus::Obsolete)
                && in_scope(task, scope)
                && !state.is_parent(&task.id)
        };
        let mut leaves: Vec<_> = state.tasks().filter(|task| is_shown(task)).collect();
        let total = leaves.len();
        let mut followed = 0;
        leaves.retain(|task| {
            followed += 1 + task.dependencies.len();
            followed <= FOLLOWED
        });
        let more = total - leaves.len();
        if !all {
            let waiting = leaves.iter().filter(|task| task.status != TaskStatus::Done);
            let waited: HashSet<&TaskId> = waiting.flat_map(|task| &task.dependencies).collect();
            leaves.retain(|task| task.status != TaskStatus::Done || waited.contains(&task.id));
        }
        let (shown, links) = linked(state, &leaves, scope, is_gone)?;
        let (shown, links) =
            if shown.len() > UNFOLDED { folded(shown, &links) } else { (shown, links) };
        let (shown, mut links, cut) = drawn(shown, &links);
        if is_gone() {
            return None;
        }
        links.reduce();
        links.bundle();
        let behind = links.before.iter().enumerate();
        let mut edges: Vec<_> =
            behind.flat_map(|(to, before)| before.iter().map(move |from| (*from, to))).collect();
        edges.sort_unstable();
        let hidden = edges.len().saturating_sub(LINES);
        edges.truncate(LINES);
        Some(Self {
            nodes: shown.iter().map(|one| Node::of(state, one)).collect(),
            edges,
            layers: links.layers(),
            more: more + cut,
            hidden,
            seq: state.seq(),
        })
    }
}

impl Node {
    fn of(state: &State, shown: &Shown<'_>) -> Self {
        let is_folded = shown.alike > 0 || state.is_parent(&shown.task.id);
        Self {
            task: Named::find(state, &shown.task.id),
            path: shown.task.path.clone(),
            folded: is_folded.then_some(shown.progress),
            alike: shown.alike,
        }
    }
}

/// What the task is shown as: its nearest parent that is below the scope.
fn fold<'s>(state: &'s State, task: &'s Task, scope: Option<&str>) -> &'s Task {
    let is_below = |one: &Task| scope.is_none_or(|scope| one.path.as_deref() != Some(scope));
    state.ancestors(task).next().filter(|one| is_below(one)).map_or(task, |parent| &**parent)
}

/// The nodes and their links. What depends on a group waits for a place behind its parts, so that
/// there are as many lines as parts and as what waits.
fn linked<'s>(
    state: &'s State,
    leaves: &[&'s Arc<Task>],
    scope: Option<&str>,
    is_gone: &dyn Fn() -> bool,
) -> Option<(Vec<Shown<'s>>, Links)> {
    let is_folded = leaves.len() > UNFOLDED;
    let mut shown: Vec<Shown<'s>> = Vec::new();
    let mut places: HashMap<&TaskId, usize> = HashMap::new();
    for leaf in leaves {
        let task = if is_folded { fold(state, leaf, scope) } else { leaf };
        let place = *places.entry(&task.id).or_insert_with(|| {
            shown.push(Shown { task, progress: Progress::default(), alike: 0 });
            shown.len() - 1
        });
        shown[place].progress.count(leaf.status);
        places.insert(&leaf.id, place);
    }
    let mut links = Links { before: vec![Vec::new(); shown.len()] };
    let mut groups: HashMap<&TaskId, Option<usize>> = HashMap::new();
    for leaf in leaves {
        if is_gone() {
            return None;
        }
        let place = places[&leaf.id];
        for id in state.prerequisites(leaf) {
            let before = if state.is_parent(id) {
                *groups.entry(id).or_insert_with(|| group(state, id, &places, &mut links))
            } else {
                places.get(id).copied()
            };
            links.before[place].extend(before);
        }
    }
    links.tidy();
    Some((shown, links))
}

/// The place behind all parts of the group that are shown.
fn group(
    state: &State,
    id: &TaskId,
    places: &HashMap<&TaskId, usize>,
    links: &mut Links,
) -> Option<usize> {
    let ids = state.below(id).into_iter().map(|part| &part.id).chain([id]);
    let mut parts: Vec<_> = ids.filter_map(|id| places.get(id).copied()).collect();
    parts.sort_unstable();
    parts.dedup();
    match parts[..] {
        [] => None,
        [one] => Some(one),
        _ => {
            links.before.push(parts);
            Some(links.before.len() - 1)
        }
    }
}

/// The nodes without those that are alike.
fn folded<'s>(shown: Vec<Shown<'s>>, links: &Links) -> (Vec<Shown<'s>>, Links) {
    let into = links.alike(shown.len());
    let mut kept = 0;
    let number = |(place, into): (usize, &usize)| {
        let is_kept = place == *into;
        kept += usize::from(is_kept);
        is_kept.then(|| kept - 1)
    };
    let numbers: Vec<_> = into.iter().enumerate().map(number).collect();
    let to: Vec<_> = into.iter().map(|into| numbers[*into]).collect();
    let mut folded: Vec<Shown<'s>> = Vec::new();
    let mut others = Vec::new();
    for (place, one) in shown.into_iter().enumerate() {
        if into[place] == place { folded.push(one) } else { others.push((to[place], one)) }
    }
    for (place, other) in others {
        let Some(one) = place.and_then(|place| folded.get_mut(place)) else { continue };
        one.progress.add(&other.progress);
        one.alike += 1;
    }
    (folded, links.moved(&to))
}

/// As many nodes as fit, with the places that still have something before them, and how many tasks
/// are left out.
fn drawn<'s>(mut shown: Vec<Shown<'s>>, links: &Links) -> (Vec<Shown<'s>>, Links, usize) {
    let count = shown.len();
    let cut = shown.split_off(count.min(DRAWN));
    let mut next = shown.len();
    let to: Vec<_> = (0..links.before.len())
        .map(|place| {
            let is_meeting = place >= count
                && links.before[place].iter().filter(|one| **one < shown.len()).nth(1).is_some();
            next += usize::from(is_meeting);
            if is_meeting { Some(next - 1) } else { Some(place).filter(|one| *one < shown.len()) }
        })
        .collect();
    let mut moved = links.moved(&to);
    moved.before.resize(next, Vec::new());
    let cut = cut.iter().map(|one| usize::try_from(one.progress.tasks).unwrap_or_default()).sum();
    (shown, moved, cut)
}
