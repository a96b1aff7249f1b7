use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::agent::Demands;
use crate::state::apply::lease_end;
use crate::state::event::{Event, TaskChange};
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::review::Review;
use crate::state::task::{Context, Place, Task, TaskStatus};
use crate::state::time::{SECOND, Timestamp};

pub struct UpdateTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub task_id: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub priority: Option<i64>,
    pub dependencies: Option<Vec<String>>,
    pub context_files: Option<Vec<String>>,
    pub hints: Option<String>,
    /// Replaces the old
    pub metadata: Option<Map<String, Value>>,
    pub tags: Option<Vec<String>>,
    pub demands: Option<Demands>,
    pub max_attempts: Option<u32>,
    /// Of each attempt
    pub timeout_seconds: Option<u32>,
    /// Most minutes without a call
    pub silent_minutes: Option<u32>,
    // 0 removes it. No doc comment, because every tool list would contain it.
    pub estimated_minutes: Option<u32>,
    pub review: Option<Review>,
    /// Fields to empty
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<Clearable>,
}

// Fields that can be emptied. No doc comment, because every tool list would contain it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clearable {
    Dependencies,
    ContextFiles,
    Hints,
    Metadata,
    Tags,
    Demands,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub task: Task,
}

impl Operation for UpdateTask {
    const NAME: &'static str = "update_task";
    const DESCRIPTION: &'static str = "Change an unfinished task; fields left out stay.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Core;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        params.check_changes()?;
        let id = TaskId::checked(&params.task_id)?;
        let task = state.known_task(&id)?;
        if call.leads(state, "change another's task").is_err() {
            state.own_attempt(call.agent()?, &id, None)?;
        }
        check_unfinished(task)?;
        check_review(params, task, state, call)?;
        let change = change(params, task, call.place)?;
        if let Some(dependencies) = &change.dependencies {
            state.check_dependencies(&id, dependencies)?;
            state.check_still_ready(task, dependencies)?;
        }
        let acted = state.acted_on(call.actor.as_ref(), &id);
        if change == TaskChange::default() {
            return Ok(acted.into_iter().collect());
        }
        let lease_until = lease_with(&change, task, state, call);
        let updated = Event::TaskUpdated { task: id, change: Box::new(change), lease_until };
        Ok(acted.into_iter().chain([updated]).collect())
    }

    fn reply(params: &Params, state: &State, _: &Call) -> Result<Reply, Refusal> {
        Ok(Reply {
            success: true,
            task: state.known_task(&TaskId::checked(&params.task_id)?)?.brief(),
        })
    }
}

/// Arguments that say who changes what.
const OF_CALL: [&str; 2] = ["agent_id", "task_id"];

/// Refuses an agent that does not lead to change the review that its task needs.
fn check_review(params: &Params, task: &Task, state: &State, call: &Call) -> Result<(), Refusal> {
    let needed = state.review_of(task, call.policy);
    if needed == Review::None || params.review.is_none_or(|given| given == needed) {
        return Ok(());
    }
    call.leads(state, "change a task's review")
}

pub fn check_unfinished(task: &Task) -> Result<(), Refusal> {
    if task.status.is_unfinished() {
        return Ok(());
    }
    let id = &task.id;
    let next = match task.status {
        TaskStatus::Failed | TaskStatus::Cancelled => {
            format!("retry_task `{id}` makes it available; or create a new one")
        }
        TaskStatus::Obsolete => "the plan does not have it any more; create a new one".to_owned(),
        _ => format!("reset_tasks `{id}` begins it anew, without its result; or create a new one"),
    };
    Err(Refusal::WrongStatus { task: id.clone(), status: task.status, action: "changed", next })
}

/// New end of the open attempt's lease, if `timeout_seconds` or `silent_minutes` change it. If the
/// agent's process has died, its grace is not lengthened; if the agent slept with the machine,
/// nothing changes, because nothing is known of it before it calls.
fn lease_with(change: &TaskChange, task: &Task, state: &State, call: &Call) -> Option<Timestamp> {
    let attempt = task.open_attempt()?;
    if change.timeout_seconds.is_none() && change.silent_minutes.is_none() {
        return None;
    }
    let agent = state.agent(&attempt.agent)?;
    let changed = Task {
        timeout_seconds: change.timeout_seconds.or(task.timeout_seconds),
        silent_minutes: change.silent_minutes.or(task.silent_minutes),
        ..task.clone()
    };
    let present = agent.is_present();
    let heard = agent.last_heartbeat.max(attempt.claimed_at);
    let until = lease_end(&changed, present, call.policy.lease_millis(present), heard);
    let is_gone =
        attempt.participant.is_some() && !present && call.actor.as_ref() != Some(&agent.id);
    let bound = |seconds| attempt.claimed_at + attempt.stepped_millis + i64::from(seconds) * SECOND;
    let within_grace =
        || changed.timeout_seconds.map(bound).into_iter().fold(attempt.lease_until, Timestamp::min);
    let until = if is_gone { within_grace() } else { until };
    Some(until).filter(|until| !attempt.stepped && *until != attempt.lease_until)
}

fn change(params: &Params, task: &Task, place: &Place) -> Result<TaskChange, Refusal> {
    params.check_cleared()?;
    Ok(TaskChange {
        title: input::checked_title(params.title.as_deref())?,
        description: params.description.as_deref().map(input::checked_description).transpose()?,
        priority: params.priority.map(input::checked_priority).transpose()?,
        dependencies: params
            .or_empty(Clearable::Dependencies, &params.dependencies)
            .map(|ids| dependencies(&ids))
            .transpose()?,
        context: context(params, task, place)?,
        tags: params
            .or_empty(Clearable::Tags, &params.tags)
            .map(|tags| input::checked_labels(&tags))
            .transpose()?,
        demands: params
            .or_empty(Clearable::Demands, &params.demands)
            .map(|demands| input::checked_demands(Some(&demands)))
            .transpose()?,
        max_attempts: input::checked_attempts(params.max_attempts)?,
        timeout_seconds: input::checked_span("timeout_seconds", params.timeout_seconds)?,
        silent_minutes: input::checked_span("silent_minutes", params.silent_minutes)?,
        estimated_minutes: estimate(params)?,
        review: params.review.filter(|review| task.review != review.said()),
    })
}

/// The new estimate; 0 removes the old one.
fn estimate(params: &Params) -> Result<Option<u32>, Refusal> {
    match params.estimated_minutes {
        Some(0) => Ok(Some(0)),
        given => input::checked_span("estimated_minutes", given),
    }
}

pub fn dependencies(ids: &[String]) -> Result<Vec<TaskId>, Refusal> {
    limit::DEPENDENCIES.check(ids.len())?;
    input::unique(ids.iter().map(|id| TaskId::checked(id)))
}

/// The task's context with the call's changes; `None` if there are none.
fn context(params: &Params, task: &Task, place: &Place) -> Result<Option<Context>, Refusal> {
    let files = params.or_empty(Clearable::ContextFiles, &params.context_files);
    let hints = params.or_empty(Clearable::Hints, &params.hints);
    let metadata = params.or_empty(Clearable::Metadata, &params.metadata);
    if files.is_none() && hints.is_none() && metadata.is_none() {
        return Ok(None);
    }
    let old = task.context.as_deref().cloned().unwrap_or_default();
    let given = files.map(|files| input::checked_patterns("context_files", &files, place));
    let files = given.transpose()?.unwrap_or(old.files);
    let hints = if params.clear.contains(&Clearable::Hints) {
        None
    } else {
        params.hints.as_ref().or(old.hints.as_ref())
    };
    let metadata = input::checked_metadata(metadata.map_or(old.metadata, Cow::into_owned))?;
    let new = input::context(&files, hints.map(String::as_str), metadata)?;
    Ok(Some(Context { parent_task: old.parent_task, ..new }))
}

impl Params {
    /// The field's new value, if it has one: empty if it is to be cleared.
    fn or_empty<'p, T: Clone + Default>(
        &self,
        field: Clearable,
        given: &'p Option<T>,
    ) -> Option<Cow<'p, T>> {
        if self.clear.contains(&field) {
            Some(Cow::Owned(T::default()))
        } else {
            given.as_ref().map(Cow::Borrowed)
        }
    }

    /// Refuses a call that changes nothing, because another was meant.
    fn check_changes(&self) -> Result<(), Refusal> {
        let given = serde_json::to_value(self).unwrap_or_default();
        let mut fields = given.as_object().into_iter().flatten();
        if fields.any(|(name, value)| !OF_CALL.contains(&name.as_str()) && !value.is_null()) {
            return Ok(());
        }
        Err(Refusal::NothingToChange)
    }

    fn check_cleared(&self) -> Result<(), Refusal> {
        let given = [
            (Clearable::Dependencies, self.dependencies.is_some()),
            (Clearable::ContextFiles, self.context_files.is_some()),
            (Clearable::Hints, self.hints.is_some()),
            (Clearable::Metadata, self.metadata.is_some()),
            (Clearable::Tags, self.tags.is_some()),
            (Clearable::Demands, self.demands.is_some()),
        ];
        input::check_cleared(&self.clear, &given)
    }
}
