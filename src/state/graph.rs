//! Dependencies: each must exist, and none may close a cycle.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use super::State;
use super::event::NewTask;
use super::id::TaskId;
use super::refusal::Refusal;
use super::task::Task;

impl State {
    /// Refuses tasks whose ids are taken, whose dependencies do not exist, or that would close a
    /// cycle.
    pub fn check_new(&self, tasks: &[NewTask]) -> Result<(), Refusal> {
        let mut fresh: HashMap<&TaskId, &[TaskId]> = HashMap::new();
        for task in tasks {
            let taken = self.status_of(&task.id).is_some();
            if taken || fresh.insert(&task.id, &task.dependencies).is_some() {
                return Err(Refusal::TaskExists { task: task.id.clone() });
            }
        }
        for task in tasks {
            let unknown = task
                .dependencies
                .iter()
                .find(|id| !fresh.contains_key(id) && self.status_of(id).is_none());
            if let Some(dependency) = unknown {
                return Err(Refusal::UnknownDependency {
                    task: task.id.clone(),
                    dependency: dependency.to_string(),
                });
            }
            self.refuse_runs(&task.dependencies)?;
        }
        if !self.is_awaited(tasks, &fresh) {
            // No live task waits for a new one, so a cycle lies within the batch.
            let edges = |id: &TaskId| fresh.get(id).into_iter().copied().flatten().collect();
            return refuse_cycle(tasks.iter().map(|task| &task.id), edges).map_err(named);
        }
        let nodes = tasks.iter().map(|task| {
            (&task.id, Node { parent: task.parent.as_ref(), dependencies: &task.dependencies })
        });
        self.check_wired(nodes.collect())
    }

    /// Whether a task may wait for one of these, as what depends on a parent of it does.
    fn is_awaited(&self, tasks: &[NewTask], fresh: &HashMap<&TaskId, &[TaskId]>) -> bool {
        let parents: HashSet<&TaskId> =
            tasks.iter().filter_map(|task| task.parent.as_ref()).collect();
        let mut above: HashSet<&TaskId> = HashSet::new();
        for parent in parents {
            let Some(task) = self.task(parent) else { return true };
            above.insert(&task.id);
            above.extend(self.ancestors(task).map(|task| &task.id));
        }
        above.iter().any(|id| self.index.has_dependents(id) || fresh.contains_key(id))
            || tasks.iter().flat_map(|task| &task.dependencies).any(|id| above.contains(id))
    }

    /// Refuses a cycle that new tasks, or tasks with new dependencies, would close.
    pub fn check_wired(&self, nodes: BTreeMap<&TaskId, Node<'_>>) -> Result<(), Refusal> {
        let wiring = Wiring::new(self, nodes);
        let ends = wiring.nodes.keys().map(|id| Point::End(id));
        refuse_cycle(ends, |point| wiring.before(point)).map_err(cycle)
    }

    /// Refuses a cycle among the tasks as they are.
    pub(super) fn check_acyclic(&self) -> Result<(), Refusal> {
        let wiring = Wiring::new(self, BTreeMap::new());
        let ends = self.tasks().map(|task| Point::End(&task.id));
        refuse_cycle(ends, |point| wiring.before(point)).map_err(cycle)
    }

    /// Refuses dependencies of an existing task that do not exist or that would close a cycle.
    pub fn check_dependencies(
        &self,
        task: &TaskId,
        dependencies: &[TaskId],
    ) -> Result<(), Refusal> {
        self.check_rewired(&BTreeMap::from([(task, dependencies)]))
    }

    /// The same check for several tasks whose dependencies change at once.
    pub fn check_rewired(&self, changed: &BTreeMap<&TaskId, &[TaskId]>) -> Result<(), Refusal> {
        for (task, dependencies) in changed {
            if let Some(unknown) = dependencies.iter().find(|id| self.status_of(id).is_none()) {
                return Err(Refusal::UnknownDependency {
                    task: (*task).clone(),
                    dependency: unknown.to_string(),
                });
            }
            self.refuse_runs(dependencies)?;
        }
        let nodes = changed.iter().map(|(id, dependencies)| {
            let parent = self.task(id).and_then(|task| task.parent.as_ref());
            (*id, Node { parent, dependencies })
        });
        self.check_wired(nodes.collect())
    }

    pub(super) fn refuse_runs(&self, dependencies: &[TaskId]) -> Result<(), Refusal> {
        match dependencies.iter().find(|id| self.run_status(id).is_some()) {
            Some(run) => Err(Refusal::IsRun {
                task: run.clone(),
                next: "depend on tasks, and wait for a run with get_run",
            }),
            None => Ok(()),
        }
    }

    /// The first cycle of tasks in `among`, whose last entry is its first.
    pub(super) fn cycle_among<'s>(&'s self, among: &HashSet<&TaskId>) -> Option<Vec<TaskId>> {
        let wiring = Wiring::new(self, BTreeMap::new());
        let tasks = self.tasks().map(|task| &task.id).filter(|id| among.contains(id));
        let before = |point: Point<'s>| {
            let mut before = wiring.before(point);
            before.retain(|point| among.contains(point.id()));
            before
        };
        refuse_cycle(tasks.map(Point::End), before).err().map(ends)
    }

    /// Refuses a dependency that is not done, if the task or a part of it is in work.
    pub fn check_still_ready(&self, task: &Task, dependencies: &[TaskId]) -> Result<(), Refusal> {
        let held = task.status.is_in_work()
            || self.below(&task.id).iter().any(|part| part.status.is_in_work());
        let waiting_for: Vec<_> =
            dependencies.iter().filter(|id| held && !self.is_done(id)).cloned().collect();
        if waiting_for.is_empty() {
            Ok(())
        } else {
            Err(Refusal::InWork { task: task.id.clone(), waiting_for })
        }
    }
}

/// Parent and dependencies of a task.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    pub parent: Option<&'a TaskId>,
    pub dependencies: &'a [TaskId],
}

/// The dependency graph of the state with some tasks replaced.
struct Wiring<'a> {
    state: &'a State,
    nodes: BTreeMap<&'a TaskId, Node<'a>>,
    /// The tasks of `nodes`, by parent.
    parts: HashMap<&'a TaskId, Vec<&'a TaskId>>,
}

impl<'a> Wiring<'a> {
    fn new(state: &'a State, nodes: BTreeMap<&'a TaskId, Node<'a>>) -> Self {
        let mut parts: HashMap<_, Vec<_>> = HashMap::new();
        for (id, node) in &nodes {
            if let Some(parent) = node.parent {
                parts.entry(parent).or_default().push(*id);
            }
        }
        Self { state, nodes, parts }
    }

    fn node(&self, id: &TaskId) -> Option<Node<'a>> {
        let as_it_is = || {
            let task = self.state.task(id)?;
            Some(Node { parent: task.parent.as_ref(), dependencies: &task.dependencies })
        };
        self.nodes.get(id).copied().or_else(as_it_is)
    }

    /// What must be done before a point of a task is reached. Its parts wait for its beginning, so
    /// that what it depends on is followed once however many parts it has.
    fn before(&self, point: Point<'a>) -> Vec<Point<'a>> {
        let Some(node) = self.node(point.id()) else { return Vec::new() };
        let mut before: Vec<_> = node.dependencies.iter().map(Point::End).collect();
        if let Point::End(id) = point {
            let new = self.parts.get(id).into_iter().flatten().copied();
            let old = self.state.parts(id).map(|task| &task.id);
            let old = old.filter(|part| !self.nodes.contains_key(part));
            before.extend(new.chain(old).map(Point::End));
        }
        before.extend(node.parent.map(Point::Start));
        before
    }
}

/// When work on a task or its parts may begin, and when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Point<'a> {
    Start(&'a TaskId),
    End(&'a TaskId),
}

impl<'a> Point<'a> {
    fn id(self) -> &'a TaskId {
        let (Self::Start(id) | Self::End(id)) = self;
        id
    }
}

/// Finds a cycle, if there is one, whose last entry is its first. Searches depth first without
/// recursion, because dependencies may be a million deep.
fn refuse_cycle<P: Copy + Eq + Hash>(
    starts: impl Iterator<Item = P>,
    dependencies: impl Fn(P) -> Vec<P>,
) -> Result<(), Vec<P>> {
    let mut finished: HashSet<P> = HashSet::new();
    let mut on_path: HashSet<P> = HashSet::new();
    for start in starts {
        if finished.contains(&start) {
            continue;
        }
        on_path.insert(start);
        let mut path = vec![(start, dependencies(start).into_iter())];
        while let Some((current, rest)) = path.last_mut() {
            match rest.next() {
                Some(next) if on_path.contains(&next) => {
                    let members = path.iter().map(|(point, _)| *point);
                    return Err(members.skip_while(|point| *point != next).chain([next]).collect());
                }
                Some(next) if finished.contains(&next) => {}
                Some(next) => {
                    on_path.insert(next);
                    path.push((next, dependencies(next).into_iter()));
                }
                None => {
                    on_path.remove(current);
                    finished.insert(*current);
                    path.pop();
                }
            }
        }
    }
    Ok(())
}

fn named(cycle: Vec<&TaskId>) -> Refusal {
    Refusal::DependencyCycle { cycle: cycle.into_iter().cloned().collect() }
}

fn cycle(points: Vec<Point<'_>>) -> Refusal {
    Refusal::DependencyCycle { cycle: ends(points) }
}

/// The tasks of a cycle that must be done, each before the one in front of it.
fn ends(mut points: Vec<Point<'_>>) -> Vec<TaskId> {
    points.pop();
    if points.iter().any(|point| matches!(point, Point::End(_))) {
        points.retain(|point| matches!(point, Point::End(_)));
    }
    let first = points.first().copied();
    points.into_iter().chain(first).map(|point| point.id().clone()).collect()
}
