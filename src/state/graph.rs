//! Dependencies: every one exists, and none leads back to where it started.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::State;
use super::event::NewTask;
use super::id::TaskId;
use super::refusal::Refusal;
use super::task::{Task, TaskStatus};

impl State {
    /// Refuses tasks whose ids are taken, whose dependencies do not exist, or which would close a cycle.
    pub fn check_new(&self, tasks: &[NewTask]) -> Result<(), Refusal> {
        let mut fresh: HashMap<&TaskId, &[TaskId]> = HashMap::new();
        for task in tasks {
            let taken = self.status_of(&task.id).is_some();
            if taken || fresh.insert(&task.id, &task.dependencies).is_some() {
                return Err(Refusal::TaskExists { task: task.id.clone() });
            }
        }
        for task in tasks {
            let unknown = task.dependencies.iter().find(|id| !fresh.contains_key(id) && self.status_of(id).is_none());
            if let Some(dependency) = unknown {
                return Err(Refusal::UnknownDependency { task: task.id.clone(), dependency: dependency.to_string() });
            }
        }
        // A live task cannot depend on a new one, so a cycle lies within the batch.
        refuse_cycle(tasks.iter().map(|task| &task.id), |id| fresh.get(id).copied().unwrap_or_default())
    }

    /// Refuses dependencies of an existing task that do not exist or that would close a cycle.
    pub fn check_dependencies(&self, task: &TaskId, dependencies: &[TaskId]) -> Result<(), Refusal> {
        self.check_rewired(&BTreeMap::from([(task, dependencies)]))
    }

    /// The same for several tasks whose dependencies change at once.
    pub fn check_rewired(&self, changed: &BTreeMap<&TaskId, &[TaskId]>) -> Result<(), Refusal> {
        for (task, dependencies) in changed {
            if let Some(unknown) = dependencies.iter().find(|id| self.status_of(id).is_none()) {
                return Err(Refusal::UnknownDependency { task: (*task).clone(), dependency: unknown.to_string() });
            }
        }
        refuse_cycle(changed.keys().copied(), |id| match changed.get(id) {
            Some(dependencies) => dependencies,
            None => self.task(id).map(|one| one.dependencies.as_slice()).unwrap_or_default(),
        })
    }

    /// Refuses to let a held task wait for what is not done.
    pub fn check_still_ready(&self, task: &Task, dependencies: &[TaskId]) -> Result<(), Refusal> {
        let held = task.status.is_held();
        let waiting_for: Vec<_> = dependencies.iter().filter(|id| held && !self.is_done(id)).cloned().collect();
        if waiting_for.is_empty() { Ok(()) } else { Err(Refusal::NotReady { task: task.id.clone(), waiting_for }) }
    }

    /// Available tasks with a dependency that is failed, cancelled or obsolete: nothing frees them by itself.
    pub fn blocked_by_failure(&self) -> Vec<(&TaskId, Vec<&TaskId>)> {
        let ended_badly = [TaskStatus::Failed, TaskStatus::Cancelled, TaskStatus::Obsolete];
        let retired_badly = self.board().archived.cancelled + self.board().archived.obsolete > 0;
        if !retired_badly && ended_badly.iter().all(|status| self.count(*status) == 0) {
            return Vec::new();
        }
        let available = self.tasks().filter(|task| task.status == TaskStatus::Available);
        let blocked = available.map(|task| {
            let blockers = task.dependencies.iter();
            let failed = blockers.filter(|id| self.status_of(id).is_some_and(|status| ended_badly.contains(&status)));
            (&task.id, failed.collect::<Vec<_>>())
        });
        blocked.filter(|(_, blockers)| !blockers.is_empty()).collect()
    }
}

/// Depth first without recursion: dependencies may be a million deep.
fn refuse_cycle<'a>(
    starts: impl Iterator<Item = &'a TaskId>,
    dependencies: impl Fn(&TaskId) -> &'a [TaskId],
) -> Result<(), Refusal> {
    let mut finished: HashSet<&TaskId> = HashSet::new();
    for start in starts {
        let mut path: Vec<(&TaskId, std::slice::Iter<'a, TaskId>)> = Vec::new();
        let mut on_path: HashSet<&TaskId> = HashSet::new();
        if finished.contains(start) {
            continue;
        }
        on_path.insert(start);
        path.push((start, dependencies(start).iter()));
        while let Some((current, rest)) = path.last_mut() {
            match rest.next() {
                Some(next) if on_path.contains(next) => return Err(cycle(&path, next)),
                Some(next) if finished.contains(next) => {}
                Some(next) => {
                    on_path.insert(next);
                    path.push((next, dependencies(next).iter()));
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

fn cycle(path: &[(&TaskId, std::slice::Iter<'_, TaskId>)], back_to: &TaskId) -> Refusal {
    let members = path.iter().map(|(id, _)| *id).skip_while(|id| *id != back_to);
    let closed = members.chain(std::iter::once(back_to));
    Refusal::DependencyCycle { cycle: closed.cloned().collect() }
}
