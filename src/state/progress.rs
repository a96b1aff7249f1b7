//! Rules of workflows: what a save adds, which checkpoints go, and who may work for one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::State;
use super::event::{Event, Saved};
use super::id::{AgentId, CheckpointId, TaskId, WorkflowId};
use super::limit;
use super::policy::Policy;
use super::refusal::Refusal;
use super::stored::Stored;
use super::time::Timestamp;
use super::workflow::{Budget, Checkpoint, Exhausted, Progress, Spent, Workflow};

/// Workflows whose old checkpoints one event drops.
const AGED_AT_ONCE: usize = 100;

impl State {
    pub fn workflows(&self) -> impl DoubleEndedIterator<Item = &Arc<Workflow>> + ExactSizeIterator {
        self.records.workflows.values()
    }

    /// Workflows after `id`, ordered by id.
    pub fn workflows_after(&self, id: Option<&WorkflowId>) -> impl Iterator<Item = &Arc<Workflow>> {
        let start = id.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.records
            .workflows
            .range::<WorkflowId, _>((start, std::ops::Bound::Unbounded))
            .map(|(_, one)| one)
    }

    pub fn workflow(&self, id: &WorkflowId) -> Option<&Arc<Workflow>> {
        self.records.workflows.get(id)
    }

    pub fn known_workflow(&self, id: &WorkflowId) -> Result<&Arc<Workflow>, Refusal> {
        self.workflow(id).ok_or_else(|| Refusal::UnknownWorkflow { workflow: id.clone() })
    }

    pub fn checkpoints(&self) -> impl ExactSizeIterator<Item = (&CheckpointId, &Arc<Checkpoint>)> {
        self.records.checkpoints.iter()
    }

    pub fn checkpoint(&self, id: &CheckpointId) -> Option<&Arc<Checkpoint>> {
        self.records.checkpoints.get(id)
    }

    /// Checkpoints of the workflow, newest first.
    pub fn checkpoints_of(
        &self,
        workflow: &WorkflowId,
    ) -> impl DoubleEndedIterator<Item = &Arc<Checkpoint>> {
        let places = self.progress.numbers.get(workflow).into_iter().flatten().rev();
        places.filter_map(|(_, (place, _))| self.records.checkpoints.get(place))
    }

    /// Checkpoints saved while working on `task` since its last reset, newest first.
    pub fn checkpoints_for(&self, task: &TaskId) -> impl Iterator<Item = &Arc<Checkpoint>> {
        let reset_at = self.task(task).and_then(|task| task.reset_at);
        let places = self.progress.tasks.get(task).into_iter().flatten().rev();
        let places =
            places.take_while(move |(at, ..)| reset_at.is_none_or(|reset_at| *at > reset_at));
        places.filter_map(|(.., place)| self.records.checkpoints.get(place))
    }

    /// The workflow that `agent` works for.
    pub fn workflow_of(&self, agent: &AgentId) -> Option<&Arc<Workflow>> {
        self.records.workflows.get(self.progress.agents.get(agent)?)
    }

    /// The workflow that `agent` works for, if its budget is spent.
    pub fn spent_workflow(&self, agent: &AgentId) -> Option<(&Arc<Workflow>, Exhausted)> {
        let workflow = self.workflow_of(agent)?;
        Some((workflow, workflow.exhausted()?))
    }

    /// Place of the workflow's next checkpoint of so many bytes, and the places of those that it
    /// displaces: the oldest beyond `keep`, or beyond what all may have in bytes.
    pub fn next_place(
        &self,
        workflow: &WorkflowId,
        bytes: usize,
        keep: usize,
    ) -> (CheckpointId, Vec<CheckpointId>) {
        let none = BTreeMap::new();
        let known = self.progress.numbers.get(workflow).unwrap_or(&none);
        let room = self.checkpoints_of(workflow).scan(bytes, |all, one| {
            *all += one.state.text().len();
            Some(*all)
        });
        let fitting = room
            .enumerate()
            .take_while(|(newer, all)| *newer == 0 || *all <= limit::CHECKPOINTS_BYTES);
        let keep = keep.max(1).min(fitting.count() + 1);
        let surplus = (known.len() + 1).saturating_sub(keep);
        let mut leaving: Vec<_> =
            known.values().take(surplus).map(|(place, _)| place.clone()).collect();
        if !leaving.is_empty() {
            return (leaving.remove(0), leaving);
        }
        let taken: BTreeSet<_> = known.values().map(|(place, _)| place).collect();
        let places = (0..).map(|place: usize| CheckpointId::trusted(format!("{workflow}/{place}")));
        let free = places.into_iter().find(|place| !taken.contains(place));
        (free.unwrap_or_else(|| CheckpointId::trusted(format!("{workflow}/0"))), leaving)
    }

    /// The event that drops checkpoints that are too old. Of each workflow the newest sound one
    /// stays, and what is newer.
    pub fn retire_checkpoints(&self, policy: &Policy, now: Timestamp) -> Option<Event> {
        let before = now + -policy.checkpoint_millis();
        let aged = self
            .progress
            .aging
            .iter()
            .take_while(|(oldest, _)| *oldest < before)
            .take(AGED_AT_ONCE);
        let old = aged.flat_map(|(_, workflow)| {
            let newest_first = self.checkpoints_of(workflow);
            let behind = newest_first
                .skip_while(|one| one.damage().is_some())
                .skip(1)
                .filter(|one| one.at < before);
            behind.filter_map(|one| self.place_of(workflow, one.number))
        });
        let checkpoints: Vec<_> = old.cloned().collect();
        (!checkpoints.is_empty()).then_some(Event::CheckpointsDropped {
            checkpoints,
            workflow: None,
            expired: true,
        })
    }

    /// Checks that there is room for one more workflow, perhaps by dropping the one unused for
    /// longest.
    pub fn room_for_workflow(
        &self,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Event>, Refusal> {
        let room = limit::WORKFLOWS.check(self.records.workflows.len() + 1);
        if room.is_ok() {
            return Ok(None);
        }
        let before = now + -policy.checkpoint_millis();
        let unused = self
            .records
            .workflows
            .values()
            .filter(|one| one.updated_at < before)
            .min_by_key(|one| one.updated_at);
        match unused {
            Some(unused) => Ok(Some(self.workflow_dropped(&unused.id, true))),
            None => room.map(|()| None),
        }
    }

    /// The event that drops a workflow with all that it had.
    pub fn workflow_dropped(&self, id: &WorkflowId, expired: bool) -> Event {
        let places = self.progress.numbers.get(id).into_iter().flat_map(BTreeMap::values);
        Event::CheckpointsDropped {
            checkpoints: places.map(|(place, _)| place.clone()).collect(),
            workflow: Some(id.clone()),
            expired,
        }
    }

    /// Place of the checkpoint with that number.
    pub fn place_of(&self, workflow: &WorkflowId, number: u64) -> Option<&CheckpointId> {
        self.progress.numbers.get(workflow)?.get(&number).map(|(place, _)| place)
    }

    /// True if `agent` may work for `workflow`. An agent of a workflow with a budget stays with it,
    /// because in another it could spend without end; leaders may change.
    pub fn may_join(&self, agent: &AgentId, workflow: &WorkflowId) -> bool {
        let own =
            self.workflow_of(agent).filter(|own| own.id != *workflow && !own.budget.is_empty());
        own.is_none() || self.leads(Some(agent), "leave a workflow with a budget").is_ok()
    }

    pub(super) fn save_workflow(&mut self, saved: &Saved, at: Timestamp) {
        let known = self.records.workflows.get(&saved.workflow).map(|known| Workflow::clone(known));
        let mut workflow = known.unwrap_or_else(|| Workflow {
            id: saved.workflow.clone(),
            scope: None,
            agents: BTreeSet::new(),
            budget: Budget::default(),
            spent: Spent::default(),
            created_at: at,
            updated_at: at,
            checkpoint: 0,
        });
        workflow.updated_at = at;
        workflow.scope = saved.scope.clone().or(workflow.scope);
        workflow.budget = workflow.budget.with(saved.budget);
        workflow.spent = workflow.spent.and(saved.spent);
        if let Some(agent) = &saved.agent {
            let other = self.progress.agents.get(agent).filter(|other| **other != saved.workflow);
            if let Some(other) = other.and_then(|other| self.records.workflows.get(other)) {
                let mut other = Workflow::clone(other);
                other.agents.remove(agent);
                self.put(other.id.clone(), Some(Arc::new(other)));
            }
            workflow.agents.insert(agent.clone());
        }
        if let Some((place, checkpoint)) = &saved.checkpoint {
            workflow.checkpoint = checkpoint.number;
            self.put(
                place.clone(),
                Some(Arc::new(Checkpoint { at, ..Checkpoint::clone(checkpoint) })),
            );
        }
        for place in &saved.dropped {
            self.put::<Checkpoint>(place.clone(), None);
        }
        self.put(saved.workflow.clone(), Some(Arc::new(workflow)));
    }

    /// Drops checkpoints, and a workflow if given. What is already gone is no error.
    pub(super) fn drop_checkpoints(
        &mut self,
        checkpoints: &[CheckpointId],
        workflow: Option<&WorkflowId>,
    ) {
        checkpoints.iter().for_each(|place| self.put::<Checkpoint>(place.clone(), None));
        if let Some(workflow) = workflow {
            self.put::<Workflow>(workflow.clone(), None);
        }
    }
}

impl Stored for Checkpoint {
    type Kept = BTreeMap<CheckpointId, Arc<Self>>;

    fn follow(state: &mut State, id: &CheckpointId, old: Option<&Self>, new: Option<&Self>) {
        state.progress.replace_checkpoint(id, old, new);
    }
}

impl Stored for Workflow {
    type Kept = BTreeMap<WorkflowId, Arc<Self>>;

    fn follow(state: &mut State, _: &WorkflowId, old: Option<&Self>, new: Option<&Self>) {
        state.progress.replace_workflow(old, new);
    }

    fn check(state: &State, wrong: &mut Vec<String>) {
        let mut fresh = Progress::default();
        for (id, one) in &state.records.workflows {
            fresh.replace_workflow(None, Some(one));
            if *id != one.id {
                wrong.push(format!("workflow {id} has another id inside"));
            }
            for agent in &one.agents {
                if state.progress.agents.get(agent) != Some(id) {
                    wrong.push(format!("agent {agent} works for two workflows"));
                }
            }
        }
        for (id, one) in &state.records.checkpoints {
            fresh.replace_checkpoint(id, None, Some(one));
            let stands = id
                .as_str()
                .strip_prefix(one.workflow_id.as_str())
                .is_some_and(|rest| rest.starts_with('/'));
            let workflow = state.records.workflows.get(&one.workflow_id);
            if !stands || workflow.is_none_or(|workflow| workflow.checkpoint < one.number) {
                wrong.push(format!(
                    "checkpoint {id} is number {} of {}",
                    one.number, one.workflow_id
                ));
            }
        }
        if fresh != state.progress {
            wrong.push(format!("the progress is {:?} and should be {:?}", state.progress, fresh));
        }
    }
}
