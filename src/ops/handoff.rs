//! What a claim tells of earlier work: results of dependencies, the last attempt, discoveries, the
//! newest checkpoint, and who holds the task's files.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Checkout;
use super::claim_task::shortened;
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::execution::ExecutionState;
use crate::state::id::{AgentId, TaskId, WorkflowId};
use crate::state::reservation::{Effort, Hold};
use crate::state::task::{Attempt, Task, TaskStatus};
use crate::state::time::Timestamp;

/// What earlier work leaves for the agent that takes the task: at most 2 kB.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
pub struct Handoff {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Inherited>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempt: Option<LastAttempt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discoveries: Vec<String>,
    /// Progress of an interrupted execution
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Reached>,
    /// Files of this task that other agents hold: agree with them before you change those
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlaps: Vec<Overlap>,
    pub more: Cow<'static, str>,
}

/// The newest sound checkpoint of the task, at most 500 bytes.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
pub struct Reached {
    pub workflow_id: WorkflowId,
    pub number: u64,
    /// The whole state if it is short; else phase, step and status
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ExecutionState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    pub more: Cow<'static, str>,
}

/// Files that another agent holds, for which task and until when.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Overlap {
    pub files: String,
    pub agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub until: Timestamp,
}

/// Result of a dependency, or of a part.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Inherited {
    pub task: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Where its files lie, if no commit is known
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// False if the work is not in your worktree
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<bool>,
    /// What brings it in
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What the previous attempt left.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct LastAttempt {
    pub agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// Who sent its result back; error has the reason
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_by: Option<String>,
    /// Of the result that was sent back
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Most bytes of the handoff.
const HANDOFF: usize = 2_000;
const DEPENDENCIES_SHOWN: usize = 5;
const OUTPUT_SHOWN: usize = 200;
/// Fewest bytes of an output that are shown, where 200 do not fit.
const OUTPUT_AT_LEAST: usize = 40;
/// Bytes of a branch, and of a commit: a whole object id fits, also one of SHA-256.
const BRANCH_SHOWN: usize = 120;
const COMMIT_SHOWN: usize = 64;
const ERROR_SHOWN: usize = 150;
/// Bytes of a reviewer's reason, which says what to do.
const REASON_SHOWN: usize = 400;
const NOTE_SHOWN: usize = 150;
const WORKTREE_SHOWN: usize = 80;
const OVERLAPS_SHOWN: usize = 3;
const FILES_SHOWN: usize = 60;
const CHECKPOINT_SHOWN: usize = 500;
/// Bytes of phase and of status, where the whole state does not fit.
const PHASE_SHOWN: usize = 80;
const DISCOVERIES_SHOWN: usize = 5;
const DISCOVERY_SHOWN: usize = 140;
/// Bytes of all discoveries together: two long ones, or several short ones.
const DISCOVERIES_BYTES: usize = 2 * (DISCOVERY_SHOWN + "\"\"".len());
/// Bytes of `here` and `next` of one dependency, which are added when git has been asked.
const BRINGS_IN: usize =
    r#","here":false,"next":"git fetch --all && git merge 0123456789ab""#.len();

/// The handoff, with as much of the dependencies' outputs as fits its budget.
pub(super) fn handoff(task: &Task, agent: &Agent, state: &State) -> Option<Handoff> {
    let overlaps = state.overlaps_of(task, agent, OVERLAPS_SHOWN, &mut Effort::new());
    let found = discoveries(task, state);
    let checkpoint = reached(task, state);
    let mut output_shown = OUTPUT_SHOWN;
    let mut handoff =
        handoff_with(task, state, output_shown, &overlaps, &found, checkpoint.as_ref())?;
    let size = |handoff: &Handoff| {
        let to_come = handoff
            .dependencies
            .iter()
            .filter(|one| one.commit.is_some() || one.branch.is_some())
            .count();
        serde_json::to_string(handoff).unwrap_or_default().len() + to_come * BRINGS_IN
    };
    while size(&handoff) > HANDOFF && output_shown > OUTPUT_AT_LEAST {
        output_shown = (output_shown - 20).max(OUTPUT_AT_LEAST);
        handoff = handoff_with(task, state, output_shown, &overlaps, &found, checkpoint.as_ref())?;
    }
    if size(&handoff) > HANDOFF
        && let Some(checkpoint) = &mut handoff.checkpoint
    {
        (checkpoint.state, checkpoint.phase, checkpoint.status) = (None, None, None);
    }
    // Everything else matters more than discoveries.
    while size(&handoff) > HANDOFF && handoff.discoveries.pop().is_some() {}
    while size(&handoff) > HANDOFF && handoff.overlaps.len() > 1 {
        handoff.overlaps.pop();
    }
    while size(&handoff) > HANDOFF && handoff.dependencies.pop().is_some() {}
    Some(handoff)
}

fn handoff_with(
    task: &Task,
    state: &State,
    output_shown: usize,
    overlaps: &[Hold],
    found: &[String],
    checkpoint: Option<&Reached>,
) -> Option<Handoff> {
    let parts = state.parts(&task.id).map(|part| &part.id);
    let dependencies = parts.chain(&task.dependencies).take(DEPENDENCIES_SHOWN);
    let dependencies = dependencies.filter_map(|id| inherited(state.task(id)?, output_shown));
    let ended = task.attempts.iter().rev().find(|attempt| attempt.outcome.is_some());
    let handoff = Handoff {
        dependencies: dependencies.collect(),
        last_attempt: ended.map(last_attempt),
        discoveries: found.to_vec(),
        checkpoint: checkpoint.cloned(),
        overlaps: overlaps.iter().map(overlap).collect(),
        more: "get_task".into(),
    };
    let Handoff { dependencies, last_attempt, discoveries, overlaps, checkpoint, .. } = &handoff;
    let is_empty = dependencies.is_empty()
        && last_attempt.is_none()
        && discoveries.is_empty()
        && overlaps.is_empty()
        && checkpoint.is_none();
    (!is_empty).then_some(handoff)
}

fn reached(task: &Task, state: &State) -> Option<Reached> {
    let newest = state.checkpoints_for(&task.id).find(|one| one.damage().is_none())?;
    let whole = Reached {
        workflow_id: newest.workflow_id.clone(),
        number: newest.number,
        state: Some(ExecutionState { workflow_id: None, ..newest.state.clone() }),
        phase: None,
        step: None,
        status: None,
        more: "get_checkpoint {task_id}".into(),
    };
    if serde_json::to_string(&whole).is_ok_and(|text| text.len() <= CHECKPOINT_SHOWN) {
        return Some(whole);
    }
    let ExecutionState { phase, step, status, .. } = &newest.state;
    let (phase, status) = (shortened(phase, PHASE_SHOWN), shortened(status, PHASE_SHOWN));
    Some(Reached {
        state: None,
        phase: Some(phase),
        step: Some(*step),
        status: Some(status),
        ..whole
    })
}

fn overlap(hold: &Hold) -> Overlap {
    let files = shortened(&hold.files, FILES_SHOWN);
    Overlap { files, agent: hold.agent.clone(), task: hold.task.clone(), until: hold.until }
}

fn inherited(task: &Arc<Task>, output_shown: usize) -> Option<Inherited> {
    let result = task.result.as_ref().filter(|_| task.status == TaskStatus::Done)?;
    let place = task.attempts.last().map(|attempt| &attempt.place);
    let worktree =
        place.and_then(|place| place.worktree.as_deref()).filter(|_| result.commit.is_none());
    Some(Inherited {
        task: task.id.clone(),
        output: result.output.as_deref().map(|text| shortened(text, output_shown)),
        branch: result.branch.as_deref().map(|text| shortened(text, BRANCH_SHOWN)),
        commit: result.commit.as_deref().map(|text| shortened(text, COMMIT_SHOWN)),
        worktree: worktree.map(|text| shortened(text, WORKTREE_SHOWN)),
        here: None,
        next: None,
    })
}

fn last_attempt(attempt: &Attempt) -> LastAttempt {
    let rejected = attempt.reviewed.as_ref().filter(|reviewed| !reviewed.approved);
    let result = rejected.and(attempt.late_result.as_deref());
    let error_shown = if rejected.is_some() { REASON_SHOWN } else { ERROR_SHOWN };
    let short = |text: Option<&String>, most| text.map(|text| shortened(text, most));
    LastAttempt {
        agent: attempt.agent.clone(),
        error: attempt.error.as_ref().map(|error| shortened(&error.message, error_shown)),
        note: attempt.note.as_deref().map(|text| shortened(text, NOTE_SHOWN)),
        worktree: attempt.place.worktree.as_deref().map(|text| shortened(text, WORKTREE_SHOWN)),
        rejected_by: rejected.and_then(|reviewed| Some(reviewed.by.as_ref()?.shown().to_owned())),
        branch: short(result.and_then(|result| result.branch.as_ref()), BRANCH_SHOWN),
        commit: short(result.and_then(|result| result.commit.as_ref()), COMMIT_SHOWN),
    }
}

fn discoveries(task: &Task, state: &State) -> Vec<String> {
    let mut left = DISCOVERIES_BYTES;
    let relevant = state.discoveries_for(task, DISCOVERIES_SHOWN).into_iter();
    let shown = relevant.map(|one| shortened(&one.content, DISCOVERY_SHOWN));
    let fitting = shown.take_while(|text| {
        let size = serde_json::to_string(text).map_or(usize::MAX, |text| text.len());
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    fitting.collect()
}

/// Adds to each dependency whose work is not in the caller's worktree what brings it in.
pub(super) fn bring_in(reply: &mut Value, checkout: &Checkout) {
    let dependencies = reply.pointer_mut("/handoff/dependencies").and_then(Value::as_array_mut);
    for one in dependencies.into_iter().flatten() {
        if let Some(merge) = (checkout.merge)(one["commit"].as_str(), one["branch"].as_str()) {
            if merge.is_needed {
                one["here"] = json!(false);
            }
            one["next"] = json!(merge.command);
        }
        if one["worktree"] == checkout.root
            && let Some(fields) = one.as_object_mut()
        {
            fields.remove("worktree");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Merge;
    use super::*;

    #[test]
    fn a_commit_of_which_git_says_nothing_in_time_is_to_be_merged_all_the_same() {
        let brought_in = |is_needed| {
            let merge = |_: Option<&str>, _: Option<&str>| {
                Some(Merge { command: "git merge abc".to_owned(), is_needed })
            };
            let mut reply = json!({"handoff": {"dependencies": [{"task": "t1", "commit": "abc"}]}});
            bring_in(&mut reply, &Checkout { root: "/w", merge: &merge, uncommitted: &|| None });
            reply["handoff"]["dependencies"][0].take()
        };
        assert_eq!(
            brought_in(false),
            json!({"task": "t1", "commit": "abc", "next": "git merge abc"})
        );
        assert_eq!(
            brought_in(true),
            json!({"task": "t1", "commit": "abc", "here": false, "next": "git merge abc"})
        );
    }
}
