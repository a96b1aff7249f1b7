//! Dependencies: each must exist, and none may close a cycle.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::State;
use super::event::NewTask;
use super::id::TaskId;
use super::refusal::Refusal;
use super::task::{Task, TaskStatus};

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
        if tasks.iter().all(|task| task.parent.is_none()) {
            // A live task cannot depend on a new one, so a cycle lies within the batch.
            return refuse_cycle(tasks.iter().map(|task| &task.id), |id| {
                fresh.get(id).into_iter().copied().flatten().collect()
            });
        }
        let nodes = tasks.iter().map(|task| {
            (&task.id, Node { parent: task.parent.as_ref(), dependencies: &task.dependencies })
        });
        self.check_wired(nodes.collect())
    }

    /// Refuses a cycle that new tasks, or tasks with new dependencies, would close.
    pub fn check_wired(&self, nodes: BTreeMap<&TaskId, Node<'_>>) -> Result<(), Refusal> {
        let wiring = Wiring::new(self, nodes);
        refuse_cycle(wiring.nodes.keys().copied(), |id| wiring.before(id))
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

    fn refuse_runs(&self, dependencies: &[TaskId]) -> Result<(), Refusal> {
        match dependencies.iter().find(|id| self.run_status(id).is_some()) {
            Some(run) => Err(Refusal::IsRun {
                task: run.clone(),
                next: "depend on tasks, and wait for a run with get_run",
            }),
            None => Ok(()),
        }
    }

    /// The first cycle among these dependencies.
    pub fn cycle_among(&self, dependencies: &BTreeMap<&TaskId, &[TaskId]>) -> Option<Vec<TaskId>> {
        let edges = |id: &TaskId| dependencies.get(id).into_iter().copied().flatten().collect();
        match refuse_cycle(dependencies.keys().copied(), edges) {
            Err(Refusal::DependencyCycle { cycle }) => Some(cycle),
            _ => None,
        }
    }

    /// Refuses a dependency that is not done, if the task or a part of it is held.
    pub fn check_still_ready(&self, task: &Task, dependencies: &[TaskId]) -> Result<(), Refusal> {
        let held =
            task.status.is_held() || self.below(&task.id).iter().any(|part| part.status.is_held());
        let waiting_for: Vec<_> =
            dependencies.iter().filter(|id| held && !self.is_done(id)).cloned().collect();
        if waiting_for.is_empty() {
            Ok(())
        } else {
            Err(Refusal::NotReady { task: task.id.clone(), waiting_for })
        }
    }

    /// Available tasks with a dependency that failed, was cancelled or is obsolete: nothing frees
    /// them by itself.
    pub fn blocked_by_failure(&self) -> Vec<(&TaskId, Vec<&TaskId>)> {
        let counts = self.counts();
        if counts.failed + counts.called_off() == 0 {
            return Vec::new();
        }
        let available =
            self.tasks().filter(|task| task.run.is_none() && task.status == TaskStatus::Available);
        let available = available.filter(|task| !self.is_parent(&task.id));
        let blocked = available.map(|task| {
            let failed = self
                .waits_for(task)
                .filter(|id| self.status_of(id).is_some_and(TaskStatus::ended_badly));
            (&task.id, failed.collect::<Vec<_>>())
        });
        blocked.filter(|(_, blockers)| !blockers.is_empty()).collect()
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

    /// What must be done before `id`: its dependencies, its parts, and the dependencies of its
    /// ancestors.
    fn before(&self, id: &TaskId) -> Vec<&'a TaskId> {
        let Some(node) = self.node(id) else { return Vec::new() };
        let mut before: Vec<_> = node.dependencies.iter().collect();
        before.extend(self.parts.get(id).into_iter().flatten());
        let old =
            self.state.parts(id).map(|task| &task.id).filter(|part| !self.nodes.contains_key(part));
        before.extend(old);
        let mut above = node.parent;
        let mut followed = BTreeSet::new();
        while let Some(node) = above.filter(|id| followed.insert(*id)).and_then(|id| self.node(id))
        {
            before.extend(node.dependencies);
            above = node.parent;
        }
        before
    }
}

/// Refuses a cycle. Searches depth first without recursion, because dependencies may be a million
/// deep.
fn refuse_cycle<'a>(
    starts: impl Iterator<Item = &'a TaskId>,
    dependencies: impl Fn(&TaskId) -> Vec<&'a TaskId>,
) -> Result<(), Refusal> {
    let mut finished: HashSet<&TaskId> = HashSet::new();
    for start in starts {
        let mut path: Vec<Step<'a>> = Vec::new();
        let mut on_path: HashSet<&TaskId> = HashSet::new();
        if finished.contains(start) {
            continue;
        }
        on_path.insert(start);
        path.push((start, dependencies(start).into_iter()));
        while let Some((current, rest)) = path.last_mut() {
            match rest.next() {
                Some(next) if on_path.contains(next) => return Err(cycle(&path, next)),
                Some(next) if finished.contains(next) => {}
                Some(next) => {
                    on_path.insert(next);
                    path.push((next, dependencies(next).into_iter()));
                }
                None => {
                    on_path.remove(*current);
                    finished.insert(*current);
                    path.pop();
                }
            }
        }
    }
    Ok(())
}

type Step<'a> = (&'a TaskId, std::vec::IntoIter<&'a TaskId>);

fn cycle(path: &[Step<'_>], back_to: &TaskId) -> Refusal {
    let members = path.iter().map(|(id, _)| *id).skip_while(|id| *id != back_to);
    let closed = members.chain(std::iter::once(back_to));
    Refusal::DependencyCycle { cycle: closed.cloned().collect() }
}
