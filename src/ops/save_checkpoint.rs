use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AgentArgument, Annotations, Call, Decision, Operation, Toolset, WRITE, input};
use crate::state::digest::sha256;
use crate::state::event::{Event, Saved};
use crate::state::execution::{Change, ExecutionState, Part};
use crate::state::guard::{HUMAN, attempt_over, held_by_other, not_held};
use crate::state::id::{AgentId, TaskId, WorkflowId};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::workflow::{Budget, Checkpoint, Spent, Workflow};
use crate::state::{Created, State};

pub struct SaveCheckpoint;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Id of the workflow; the first save creates it
    pub workflow_id: String,
    /// Task being worked on
    pub task_id: Option<String>,
    /// Your attempt of task_id; default the current one
    pub attempt: Option<u32>,
    /// What has changed since the newest checkpoint; the rest stays. null takes a persona away, or
    /// a key of a map. If omitted, only the rest of the call is saved
    pub state: Option<Change>,
    /// Parts that state gives whole: what it leaves out of them goes
    #[serde(default)]
    pub replace: Vec<Part>,
    /// Refuse unless this is the number of the newest checkpoint; 0: there is none
    pub expected_checkpoint: Option<u64>,
    /// What the workflow may spend in all; when it is spent, its agents cannot claim
    pub budget: Option<Budget>,
    /// Part of the plan it works through, such as P1.M2
    pub scope: Option<String>,
    /// Tokens, attempts and seconds spent since the last save
    #[serde(default)]
    pub spent: Spent,
    /// Data for whoever works on task_id next; get_task shows it until the task is done. Only the
    /// task's holder may give it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Map<String, Value>>,
    pub idempotency_key: Option<String>,
}

impl Params {
    /// The change of the state; one that only empties parts needs no `state`.
    fn change(&self) -> Option<Cow<'_, Change>> {
        let emptied = || (!self.replace.is_empty()).then(|| Cow::Owned(Change::default()));
        self.state.as_ref().map(Cow::Borrowed).or_else(emptied)
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub workflow_id: WorkflowId,
    /// Number of the newest checkpoint
    pub checkpoint: u64,
    pub kept: usize,
    #[serde(flatten)]
    pub made: Option<Made>,
    pub spent: Spent,
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub remaining: Budget,
    /// What the budget has run out of: finish, and claim nothing more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exhausted: Option<String>,
}

/// The checkpoint that was made.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Made {
    pub phase: String,
    pub step: u64,
    pub status: String,
    /// Tasks given as pending that are completed and so were left out; replace completed_tasks to
    /// open them again
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_pending: Vec<String>,
    /// Newer checkpoints whose state was not gone on from, because they are damaged
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<u64>,
}

impl Operation for SaveCheckpoint {
    const NAME: &'static str = "save_checkpoint";
    const DESCRIPTION: &'static str = "Keep how far a workflow has come, durably, so that work \
                                       goes on from there after any interruption, and count what \
                                       it has spent. Changes only what it names.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn idempotency_key(params: &Params) -> Option<&str> {
        params.idempotency_key.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let workflow = WorkflowId::checked(&params.workflow_id)?;
        state.takes_part(call.actor.as_ref())?;
        let agent = call.actor.clone().filter(|agent| agent.as_str() != HUMAN);
        input::check_scope(params.scope.as_deref(), state)?;
        let budget = params.budget.unwrap_or_default();
        check_amounts(budget, params.spent)?;
        let known = state.workflow(&workflow);
        let newest = known.map_or(0, |known| known.checkpoint);
        if let Some(expected) = params.expected_checkpoint.filter(|expected| *expected != newest) {
            let place = state.place_of(&workflow, newest);
            let by = place.and_then(|place| state.checkpoint(place)?.agent.clone());
            return Err(Refusal::CheckpointMoved { workflow, expected, current: newest, by }.into());
        }
        let room = match known {
            Some(known) => {
                // An agent's budget is not its own to grant.
                if known.budget.is_raised_by(budget) {
                    call.leads(state, "raise a budget")?;
                }
                None
            }
            None => state.room_for_workflow(call.policy, call.now)?,
        };
        let task = params.task_id.as_deref().map(TaskId::checked).transpose()?;
        let attempt =
            task.as_ref().map(|task| checked_attempt(task, params.attempt, agent.as_ref(), state));
        let attempt = attempt.transpose()?.flatten();
        let kept = params
            .kept
            .as_ref()
            .map(|kept| checked_kept(kept, task.as_ref(), agent.as_ref(), state))
            .transpose()?;
        let mut dropped = Vec::new();
        let checkpoint = match params.change() {
            Some(change) => {
                let (execution, text) = checked_state(&change, &params.replace, &workflow, state)?;
                let place;
                (place, dropped) =
                    state.next_place(&workflow, text.len(), call.policy.checkpoints_kept());
                let checkpoint = Checkpoint {
                    workflow_id: workflow.clone(),
                    number: newest + 1,
                    at: call.now,
                    agent: agent.clone(),
                    task,
                    attempt,
                    sha256: sha256(&text),
                    state: execution,
                };
                Some((place, checkpoint))
            }
            None => None,
        };
        let (scope, spent) = (params.scope.clone(), params.spent);
        let agent = agent.filter(|agent| state.may_join(agent, &workflow));
        let saved = Saved { workflow, agent, scope, budget, spent, checkpoint, dropped, kept };
        Ok(room.into_iter().chain([Event::WorkflowSaved(Box::new(saved))]).collect())
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let workflow = state.known_workflow(&WorkflowId::checked(&params.workflow_id)?)?;
        let made = call.created.iter().find_map(|created| match created {
            Created::Checkpoint(number) => *number,
            _ => None,
        });
        Ok(Reply {
            success: true,
            workflow_id: workflow.id.clone(),
            checkpoint: made.unwrap_or(workflow.checkpoint),
            kept: state.checkpoints_of(&workflow.id).count(),
            made: made.and_then(|number| what_was_made(params, number, workflow, state)),
            spent: workflow.spent,
            remaining: workflow.remaining(),
            exhausted: workflow.exhausted().map(|exhausted| exhausted.to_string()),
        })
    }
}

fn check_amounts(budget: Budget, spent: Spent) -> Result<(), Refusal> {
    let bounds = [budget.tokens, budget.attempts, budget.seconds].into_iter().flatten();
    for amount in bounds.chain([spent.tokens, spent.attempts, spent.seconds]) {
        limit::BUDGET.check(usize::try_from(amount).unwrap_or(usize::MAX))?;
    }
    Ok(())
}

/// Attempt of the task that the save belongs to. While an agent holds the task, no other may save
/// for it; a given attempt must be the task's newest, so that an agent whose task was claimed again
/// is refused.
fn checked_attempt(
    id: &TaskId,
    given: Option<u32>,
    agent: Option<&AgentId>,
    state: &State,
) -> Result<Option<u32>, Refusal> {
    let task = state.known_task(id)?;
    let open = task.open_attempt();
    if let (Some(open), Some(agent)) = (open, agent)
        && open.agent != *agent
    {
        return Err(held_by_other(task, open));
    }
    let current = Some(task.attempt).filter(|attempt| *attempt > 0);
    match given {
        Some(given) if Some(given) != current => Err(attempt_over(task, given)),
        _ => Ok(current),
    }
}

/// Checked `kept`, with the task that the agent holds.
fn checked_kept(
    kept: &Map<String, Value>,
    task: Option<&TaskId>,
    agent: Option<&AgentId>,
    state: &State,
) -> Result<(TaskId, Arc<Map<String, Value>>), Refusal> {
    let task = state.known_task(task.ok_or(Refusal::KeptWithoutTask)?)?;
    let open = task.open_attempt().ok_or_else(|| not_held(task))?;
    if Some(&open.agent) != agent {
        return Err(held_by_other(task, open));
    }
    limit::DEPTH.check(depth(kept))?;
    limit::CHECKPOINT.check_text(&serde_json::to_string(kept).unwrap_or_default())?;
    Ok((task.id.clone(), Arc::new(kept.clone())))
}

/// The checkpoint that a call has made, unless newer ones have displaced it.
fn what_was_made(params: &Params, number: u64, workflow: &Workflow, state: &State) -> Option<Made> {
    let Checkpoint { state: saved, .. } =
        state.checkpoint(state.place_of(&workflow.id, number)?)?.as_ref();
    let pending = params.state.as_ref().and_then(|change| change.pending_tasks.as_ref());
    let left: BTreeSet<_> = saved.pending_tasks.iter().collect();
    let before = state.checkpoints_of(&workflow.id).filter(|one| one.number < number);
    let damaged = before.take_while(|one| one.damage().is_some());
    Some(Made {
        phase: saved.phase.clone(),
        step: saved.step,
        status: saved.status.clone(),
        not_pending: pending
            .into_iter()
            .flatten()
            .filter(|task| !left.contains(task))
            .take(limit::CANDIDATES)
            .cloned()
            .collect(),
        damaged: damaged.map(|one| one.number).collect(),
    })
}

/// The newest sound state of the workflow after the change, with its workflow's id, and its JSON.
fn checked_state(
    change: &Change,
    replaced: &[Part],
    workflow: &WorkflowId,
    state: &State,
) -> Result<(ExecutionState, String), Refusal> {
    if let Some(inside) = change.workflow_id.as_ref().filter(|inside| *inside != workflow) {
        // An agent may have written there what is no id.
        let inside = WorkflowId::checked(inside.as_str())?;
        return Err(Refusal::OtherWorkflow { workflow: workflow.clone(), inside });
    }
    let newest = state.checkpoints_of(workflow).find(|one| one.damage().is_none());
    let known = newest.map(|one| one.state.clone()).unwrap_or_default();
    let workflow_id = Some(workflow.clone());
    let state = ExecutionState { workflow_id, ..known.changed(change, replaced) };
    let personas = state.persona_states.values().map(|persona| 1 + depth(persona));
    let deepest = personas.chain([depth(&state.artifacts), depth(&state.metrics)]).max();
    limit::DEPTH.check(1 + deepest.unwrap_or_default())?;
    let text = state.text();
    limit::CHECKPOINT.check_text(&text)?;
    Ok((state, text))
}

fn depth(fields: &Map<String, Value>) -> usize {
    1 + fields.values().map(input::depth).max().unwrap_or_default()
}
