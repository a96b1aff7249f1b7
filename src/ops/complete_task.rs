use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Rejected, Toolset, input,
};
use crate::state::State;
use crate::state::event::Event;
use crate::state::guard::{not_held, own_open};
use crate::state::id::{AgentId, TaskId};
use crate::state::refusal::Refusal;
use crate::state::reservation::Effort;
use crate::state::review::Review;
use crate::state::task::{Attempt, Outcome, Task, TaskResult, TaskStatus};

pub struct CompleteTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    /// What was done, for others to build on
    pub output: String,
    #[serde(default)]
    pub files_modified: Vec<String>,
    #[serde(default)]
    pub files_created: Vec<String>,
    pub branch: Option<String>,
    pub commit: Option<String>,
    pub data: Option<Value>,
    pub attempt: Option<u32>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// This attempt had completed the task before
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// It is done when a reviewer approves it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Files that others hold, or that are not committed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Holds and files that a warning names.
const NAMED: usize = 3;

/// What an agent does whose result waits for a reviewer.
const IN_REVIEW: &str = "it waits for review; you are free: claim the next with claim_task";

impl Operation for CompleteTask {
    const NAME: &'static str = "complete_task";
    const DESCRIPTION: &'static str = "Finish your task with its result. Safe to repeat.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Worker;
    const OF_WORKERS: Option<&'static [&'static str]> = Some(&[
        "agent_id",
        "task_id",
        "output",
        "files_modified",
        "files_created",
        "branch",
        "commit",
        "data",
    ]);
    const AGENT: AgentArgument = AgentArgument::Required;
    const PLACED: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn done_files(params: &Params) -> Vec<&str> {
        params.files_modified.iter().chain(&params.files_created).map(String::as_str).collect()
    }

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = call.agent()?;
        let id = TaskId::checked(&params.task_id)?;
        state.known_agent(agent)?;
        if state.run_status(&id).is_none()
            && state.has_ended(agent, &id, params.attempt, TaskStatus::Done)
        {
            return again(params, state, call);
        }
        let result = result(params, call)?;
        let task = state.known_task(&id)?;
        let review = state.review_of(task, call.policy) != Review::None;
        completed(task, agent, params.attempt, result, review, state, not_held)
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let task = state.task(&TaskId::checked(&params.task_id)?);
        let other = task.and_then(|task| task.attempts.last()).filter(|last| {
            last.outcome == Some(Outcome::Done)
                && last.late_result.as_deref().is_some_and(|late| is_same(params, late, call))
        });
        let already = call.events == 0 || other.is_some();
        let warnings = match other {
            Some(last) => vec![format!(
                "another result was taken before; this one is kept with attempt {}; get_task shows \
                 both",
                last.number
            )],
            None if already => Vec::new(),
            None => warnings(params, state, call)?,
        };
        let in_review = task.filter(|task| task.status == TaskStatus::Review);
        Ok(Reply {
            success: true,
            already,
            review: in_review.map(|task| state.review_of(task, call.policy)),
            next: in_review.map(|_| IN_REVIEW.to_owned()),
            warning: Some(warnings.join("; ")).filter(|text| !text.is_empty()),
        })
    }
}

/// A completion of what is done or in review already. Another result than the one that was taken is
/// kept with the attempt, so that nothing an agent says is lost.
fn again(params: &Params, state: &State, call: &Call) -> Decision {
    let task = state.task(&TaskId::checked(&params.task_id)?);
    let Some((task, last)) = task.and_then(|task| Some((task, task.attempts.last()?))) else {
        return Ok(Vec::new());
    };
    let is_known =
        |known: Option<&Arc<TaskResult>>| known.is_some_and(|known| is_same(params, known, call));
    if is_known(task.result.as_ref()) || is_known(last.late_result.as_ref()) {
        return Ok(Vec::new());
    }
    let result = Arc::new(result(params, call)?);
    Ok(vec![Event::LateResultKept { task: task.id.clone(), attempt: last.number, result }])
}

/// Whether the call says nothing else than this result, as it is kept.
fn is_same(params: &Params, known: &TaskResult, call: &Call) -> bool {
    let Ok(said) = result(params, call) else { return false };
    let branch = params.branch.as_ref().and(said.branch.as_ref());
    let commit = params.commit.as_ref().and(said.commit.as_ref());
    said.output == known.output
        && said.files_modified == known.files_modified
        && said.files_created == known.files_created
        && said.data == known.data
        && branch.is_none_or(|branch| known.branch.as_ref() == Some(branch))
        && commit.is_none_or(|commit| known.commit.as_ref() == Some(commit))
}

fn warnings(params: &Params, state: &State, call: &Call) -> Result<Vec<String>, Refusal> {
    let files: Vec<_> =
        CompleteTask::done_files(params).into_iter().map(|file| call.relative(file)).collect();
    let holds = state.overlaps(&files, call.agent()?, false, NAMED, &mut Effort::new());
    let held = holds.iter().map(|hold| {
        let task = hold.task.as_ref().map(|task| format!(" for task {task}")).unwrap_or_default();
        format!(
            "{} is held by {}{task}: tell {} what you changed",
            hold.files, hold.agent, hold.agent
        )
    });
    let uncommitted = call.uncommitted.filter(|files| params.commit.is_none() && !files.is_empty());
    let loose = uncommitted.map(|files| {
        let named = files.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = files.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("not committed: {named}{more}; commit them, or others cannot merge your work")
    });
    Ok(held.chain(loose).collect())
}

/// The commit that has the work: the one given, or else the head of the branch, if git says that it
/// has the files.
fn commit(params: &Params, call: &Call) -> Option<String> {
    let is_of_branch = params.branch.is_none() || params.branch == call.place.branch;
    let has_files = call.uncommitted.is_some_and(<[_]>::is_empty)
        && !CompleteTask::done_files(params).is_empty();
    let head = call.place.head.clone().filter(|_| is_of_branch && has_files);
    params.commit.clone().or(head)
}

fn result(params: &Params, call: &Call) -> Result<TaskResult, Refusal> {
    let relative = |files: &[String]| files.iter().map(|file| call.relative(file)).collect();
    input::checked_result(TaskResult {
        output: Some(params.output.clone()),
        files_modified: relative(&params.files_modified),
        files_created: relative(&params.files_created),
        branch: params.branch.clone().or_else(|| call.place.branch.clone()),
        commit: commit(params, call),
        error: None,
        data: params.data.clone(),
    })
}

/// Decides what becomes of the result of `agent`'s attempt. It is taken while the attempt is open,
/// and also after its lease expired if nobody has claimed the task since; else it is kept with the
/// attempt that is over. An agent without such an attempt is refused; `over` makes the refusal for
/// a task that nobody holds. With `review` a result that is taken waits for a reviewer.
pub(super) fn completed(
    task: &Task,
    agent: &AgentId,
    given: Option<u32>,
    result: TaskResult,
    review: bool,
    state: &State,
    over: fn(&Task) -> Refusal,
) -> Decision {
    let result = Arc::new(result);
    let own = |attempt: &&Attempt| {
        attempt.agent == *agent && given.is_none_or(|given| given == attempt.number)
    };
    let taken = |attempt: u32, result| {
        Ok(vec![Event::Completed { task: task.id.clone(), attempt, result, review }])
    };
    let parts = state.refuse_open_parts(task);
    if let Some(open) = task.open_attempt().filter(own) {
        parts?;
        return taken(open.number, result);
    }
    let Some(late) = task.attempts.iter().rev().find(own) else {
        own_open(task, agent, given, over)?;
        return Err(over(task).into());
    };
    let is_free = task.status == TaskStatus::Available
        && late.number == task.attempt
        && !task.was_reset_since(late)
        && parts.is_ok()
        && !state.is_parent(&task.id)
        && state.waits_for(task).next().is_none();
    match late.outcome {
        Some(Outcome::Expired) if is_free => taken(late.number, result),
        _ => {
            let kept = kept(task, late, result);
            Err(Rejected { refusal: parts.err().unwrap_or(kept.refusal), ..kept })
        }
    }
}

/// The refusal of a result whose attempt is over, however it ended. Keeps the result with the
/// attempt, once.
fn kept(task: &Task, late: &Attempt, result: Arc<TaskResult>) -> Rejected {
    let refusal = Refusal::AttemptOver {
        task: task.id.clone(),
        given: late.number,
        current: task.attempt,
        status: task.status,
        holder: task.open_attempt().map(|open| open.agent.clone()),
        kept: Some(true),
        next: match (&task.run, task.status) {
            (Some(_), _) => "get_run shows it; claim another with claim_run",
            (None, TaskStatus::Failed)
                if late.outcome == Some(Outcome::Expired) && late.number == task.attempt =>
            {
                "get_task shows it; after a leader's retry_task, and before anybody claims the \
                 task, complete_task again is taken"
            }
            (None, _) => "get_task shows it; claim other work with claim_task",
        },
    };
    let is_new = late.late_result.as_ref() != Some(&result);
    let event = Event::LateResultKept { task: task.id.clone(), attempt: late.number, result };
    Rejected { refusal, keep: is_new.then_some(event).into_iter().collect() }
}
