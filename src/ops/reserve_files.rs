use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::{AgentId, Chance, ReservationId, TaskId};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::reservation::{Effort, Reservation};
use crate::state::time::MINUTE;

pub struct ReserveFiles;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Paths and globs from the repository's root; a directory ends in /
    pub files: Vec<String>,
    /// Let others share the files
    #[serde(default)]
    pub shared: bool,
    pub reason: Option<String>,
    /// Task you hold; the reservation ends with it. Default your newest task
    pub task_id: Option<String>,
    /// Minutes to hold the files, 1 to 1440; without a task default 60
    pub minutes: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
}

const MINUTES: u32 = 60;

impl Operation for ReserveFiles {
    const NAME: &'static str = "reserve_files";
    const DESCRIPTION: &'static str =
        "Hold files beside those of your task, which are yours while you hold it. Again renews.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = state.known_agent(call.agent()?)?;
        state.may_claim(agent)?;
        if params.files.is_empty() {
            return Err(Refusal::Empty { what: "files" }.into());
        }
        limit::RESERVED_FILES.check(params.files.len())?;
        limit::RESERVED_MINUTES.check(params.minutes.unwrap_or(1) as usize)?;
        if params.minutes == Some(0) {
            return Err(Refusal::Zero { what: "minutes" }.into());
        }
        let files = input::checked_patterns("files", &params.files, call.place)?;
        let task = match &params.task_id {
            Some(id) => {
                let task = TaskId::checked(id)?;
                state.own_attempt(&agent.id, &task, None)?;
                Some(task)
            }
            None => agent.current_task.clone(),
        };
        let known = same(&files, params.shared, &task, &agent.id, state);
        if known.is_none() {
            limit::RESERVATIONS.check(state.reservations().len() + 1)?;
            let own = state.reservations().filter(|one| one.agent == agent.id);
            let reserved: usize = own.map(|one| one.files.len()).sum();
            limit::RESERVED_BY_AGENT.check(reserved + files.len())?;
        }
        // When the effort is spent, the files are reserved all the same: otherwise many small
        // reservations could keep others from any. Those that were not compared win where they
        // overlap and are narrower.
        let mut effort = Effort::new();
        if let Some(hold) = state.overlaps(&files, &agent.id, params.shared, 1, &mut effort).pop() {
            return Err(Refusal::FilesHeld { hold: Box::new(hold) }.into());
        }
        let after = |minutes| call.now + i64::from(minutes) * MINUTE;
        // A reservation meant to outlast a task is not bound to the next one.
        let outlasts = |known: &Reservation| {
            params.minutes.is_some() || known.until.is_some_and(|until| until > after(MINUTES))
        };
        let is_apart = known.is_some_and(|known| known.task.is_none() && outlasts(known));
        let task = task.filter(|_| params.task_id.is_some() || !is_apart);
        let until = match params.minutes {
            Some(minutes) => Some(after(minutes)),
            // A renewal without minutes never shortens a reservation.
            None if task.is_none() => {
                Some(after(MINUTES)).max(known.as_ref().and_then(|one| one.until))
            }
            None => None,
        };
        let reason = input::checked_reason(params.reason.as_ref())?;
        let reason = reason.or_else(|| known.and_then(|one| one.reason.clone()));
        let made_up =
            || ReservationId::trusted(format!("res-{}", Chance::new(call.seed).base32(8)));
        // Only a task that the caller names counts as acted on: it may not have heard of its newest
        // one.
        let named = task.as_ref().filter(|_| params.task_id.is_some());
        let acted = named.and_then(|id| state.acted_on(Some(&agent.id), id));
        let reserved = Event::FilesReserved {
            reservation: Box::new(Reservation {
                id: known.map_or_else(made_up, |one| one.id.clone()),
                agent: agent.id.clone(),
                files,
                shared: params.shared,
                reason,
                task,
                until,
                worktree: call.place.worktree.clone(),
                created_at: call.now,
            }),
        };
        Ok(acted.into_iter().chain([reserved]).collect())
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let agent = state.known_agent(call.agent()?)?;
        let files = input::checked_patterns("files", &params.files, call.place)?;
        let task = params
            .task_id
            .as_deref()
            .map(TaskId::checked)
            .transpose()?
            .or_else(|| agent.current_task.clone());
        let reservation = same(&files, params.shared, &task, &agent.id, state).cloned();
        Ok(Reply { success: true, reservation })
    }
}

/// The reservation that this call renews. One without a task becomes the task's and ends with it.
fn same<'a>(
    files: &[String],
    shared: bool,
    task: &Option<TaskId>,
    agent: &AgentId,
    state: &'a State,
) -> Option<&'a Reservation> {
    let own = state
        .reservations()
        .filter(|one| one.agent == *agent && one.shared == shared && one.files == files);
    let fitting = own.filter(|one| one.task.is_none() || one.task == *task);
    fitting.max_by_key(|one| one.task == *task).map(AsRef::as_ref)
}
