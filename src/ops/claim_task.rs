use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::assigned::{Assigned, Surroundings};
use super::handoff::{Handoff, bring_in, handoff};
use super::held::{Held, held};
use super::register_agent::refuse_if_elsewhere;
use super::{
    AgentArgument, Annotations, AskGit, Call, Decision, Operation, REPEATABLE, Toolset, input,
};
use crate::state::State;
use crate::state::agent::{Agent, Role};
use crate::state::apply::lease_end;
use crate::state::claim::{EmptyHanded, Verdict, in_scope};
use crate::state::event::Event;
use crate::state::guard::HUMAN;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::reservation::Effort;
use crate::state::task::Task;
use crate::state::time::Timestamp;

pub struct ClaimTask;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Claim only this task
    pub task_id: Option<String>,
    /// At or below a path such as P1.M2
    pub scope: Option<String>,
    /// Skip tasks whose files others hold
    #[serde(default)]
    pub exclusive_files: bool,
    /// 0 to 50: wait for a task
    #[serde(default)]
    pub wait_seconds: u64,
}

impl Params {
    /// True if this call may repeat the one that claimed `task`, whose reply may have been lost.
    fn asks_for(&self, task: &Task) -> bool {
        self.task_id.as_deref().is_none_or(|id| id == task.id.as_str())
            && in_scope(task, self.scope.as_deref())
    }

    /// True if the agent has a claim outside the scope that it has not acted on. Given another
    /// task, it would forget that one.
    fn is_elsewhere(&self, agent: &Agent, state: &State) -> bool {
        self.task_id.is_none()
            && state.unacted_claim(agent).is_some_and(|task| !self.asks_for(task))
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reply {
    Claimed(Box<Claimed>),
    Holding {
        success: bool,
        message: Cow<'static, str>,
        holding: Vec<Held>,
        next: Cow<'static, str>,
    },
    Empty(Box<Empty>),
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Claimed {
    pub success: bool,
    #[serde(flatten)]
    pub surroundings: Surroundings,
    pub task: Assigned,
    pub attempt: u32,
    pub lease_until: Timestamp,
    /// You had claimed the task before and not started it
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
}

/// Says that the claim was made before. The reply may have been lost; or two act under one name.
#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Again {
    pub again: bool,
    /// When the task was claimed
    pub since: Timestamp,
    pub next: Cow<'static, str>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Empty {
    pub success: bool,
    pub message: String,
    /// Why claims were paused
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(flatten)]
    pub why: EmptyHanded,
    pub next: String,
}

const AGAIN: &str = "do it; a subagent registers its own agent_id first";

impl Operation for ClaimTask {
    const NAME: &'static str = "claim_task";
    const DESCRIPTION: &'static str = "Get the next task for you, with what earlier work left. If \
                                       none, `verdict` and `next` say what to do.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Worker;
    const AGENT: AgentArgument = AgentArgument::Required;
    const PLACED: bool = true;
    const CHECKED_OUT: Option<AskGit> = Some(bring_in);
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn wait_seconds(params: &Params) -> u64 {
        params.wait_seconds
    }

    fn waits(params: &Params, state: &State, call: &Call) -> bool {
        let decided = Self::decide(params, state, call).is_ok_and(|events| events.is_empty());
        let agent = call.agent().ok().and_then(|id| state.agent(id));
        decided
            && params.task_id.is_none()
            && agent.is_some_and(|agent| {
                agent.has_room()
                    && state.unacted_claim(agent).is_none()
                    && state.is_to_wait(agent, params.scope.as_deref(), call.now)
            })
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        limit::WAIT.check(params.wait_seconds as usize)?;
        input::check_scope(params.scope.as_deref(), state)?;
        let agent = state.known_agent(call.agent()?)?;
        state.may_claim(agent)?;
        if let Some(task) = state.unacted_claim(agent).filter(|task| params.asks_for(task)) {
            return Ok(answered_again(task, agent, state, call)?.into_iter().collect());
        }
        let own = params
            .task_id
            .as_deref()
            .is_some_and(|id| agent.current_tasks.iter().any(|held| held.as_str() == id));
        let may_not = may_not_claim(agent, state);
        if own || !agent.has_room() || may_not || params.is_elsewhere(agent, state) {
            return Ok(Vec::new());
        }
        let task = match &params.task_id {
            Some(id) => Some(state.pick_named(agent, &TaskId::checked(id)?, call.now)?),
            None => state.pick(agent, params.scope.as_deref(), params.exclusive_files, call.now),
        };
        match (task, &params.scope) {
            (None, Some(scope)) if !state.is_scope(scope) => {
                return Err(Refusal::EmptyScope { scope: scope.clone() }.into());
            }
            (Some(task), Some(scope)) if !in_scope(task, Some(scope)) => {
                return Err(
                    Refusal::OutsideScope { task: task.id.clone(), scope: scope.clone() }.into()
                );
            }
            _ => {}
        }
        if let (Some(task), true) = (task, params.exclusive_files)
            && let Some(hold) = state.overlaps_of(task, agent, 1, &mut Effort::new()).pop()
        {
            return Err(Refusal::FilesHeld { hold: Box::new(hold) }.into());
        }
        Ok(task.map(|task| claimed(task, agent, call)).into_iter().collect())
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let agent = state.known_agent(call.agent()?)?;
        if let Some(task) = state.unacted_claim(agent).filter(|task| params.asks_for(task))
            && let Some(attempt) = task.open_attempt()
        {
            return Ok(Reply::Claimed(Box::new(Claimed {
                success: true,
                surroundings: Surroundings::of(task, state),
                task: Assigned::from(task.as_ref()),
                attempt: attempt.number,
                lease_until: attempt.lease_until,
                already: call.events == 0,
                again: (call.events == 0).then_some(Again {
                    again: true,
                    since: attempt.claimed_at,
                    next: AGAIN.into(),
                }),
                handoff: handoff(task, agent, state),
            })));
        }
        let own = params
            .task_id
            .as_deref()
            .is_some_and(|id| agent.current_tasks.iter().any(|held| held.as_str() == id));
        if own || !agent.has_room() || params.is_elsewhere(agent, state) {
            return Ok(holding("you hold work already", agent, state));
        }
        let scope = params.scope.as_deref().filter(|scope| *scope != "all");
        let why = state.empty_handed(agent, scope, call.now);
        if why.verdict == Verdict::Wait && state.waits_for_itself(agent, scope, call.now) {
            return Ok(holding("there is nothing for you but what you hold", agent, state));
        }
        let (mut message, next) = advice(&why, scope, agent, state, call.now);
        if params.exclusive_files && state.ready_count() > 0 && why.verdict == Verdict::Wait {
            message.push_str("; the files of those that are ready are held by others");
        }
        let reason = state.paused_for(agent).flatten().map(str::to_owned);
        Ok(Reply::Empty(Box::new(Empty {
            success: false,
            message,
            reason,
            why,
            next: next.into_owned(),
        })))
    }
}

/// The event that answers a claim again, because its reply may have been lost. Only the process
/// that claimed can have lost it, so another process of the agent is refused while that one lives.
/// The process answered here holds the claim from then on, alone until it dies.
pub(super) fn answered_again(
    task: &Task,
    agent: &Agent,
    state: &State,
    call: &Call,
) -> Result<Option<Event>, Refusal> {
    let through = task.open_attempt().and_then(|attempt| attempt.participant.as_ref());
    let is_present = through.is_some_and(|one| agent.present_through.contains(one));
    match call.presence {
        None if through.is_none() => Ok(None),
        Some(own) if is_present && through == Some(&own.id) => Ok(None),
        own => {
            // If the claiming process is gone, the first of the agent's other processes that asks
            // gets the claim.
            if is_present || own.is_none_or(|own| !agent.present_through.contains(&own.id)) {
                refuse_if_elsewhere(&agent.id, state, call)?;
            }
            Ok(own.map(|own| Event::AgentSeen {
                agent: agent.id.clone(),
                through: Some(own.id.clone()),
                lease_millis: call.policy.lease_millis(true),
                answered: Some(task.id.clone()),
                waited: false,
            }))
        }
    }
}

/// True if the agent may claim nothing, whatever is ready.
pub(super) fn may_not_claim(agent: &Agent, state: &State) -> bool {
    state.paused_for(agent).is_some() || state.spent_workflow(&agent.id).is_some()
}

pub(super) fn claimed(task: &Task, agent: &Agent, call: &Call) -> Event {
    let present = call.presence.is_some() || agent.is_present();
    Event::Claimed {
        task: task.id.clone(),
        agent: agent.id.clone(),
        attempt: task.attempt + 1,
        lease_until: lease_end(task, present, call.policy.lease_millis(present), call.now),
        through: call.presence.map(|participant| participant.id.clone()),
        place: call.place.clone(),
    }
}

fn holding(message: &'static str, agent: &Agent, state: &State) -> Reply {
    let holding = held(agent, state);
    let next = if holding.iter().any(Held::is_task) {
        "go on with it (get_task has all of it) and complete it; a subagent registers its own \
         agent_id"
    } else {
        "go on with your run, and report_run how it goes; a subagent registers its own agent_id"
    };
    Reply::Holding { success: false, message: message.into(), holding, next: next.into() }
}

fn advice(
    why: &EmptyHanded,
    scope: Option<&str>,
    agent: &Agent,
    state: &State,
    now: Timestamp,
) -> (String, Cow<'static, str>) {
    let (text, next) = match why.verdict {
        Verdict::Empty => {
            return ("there are no tasks yet".to_owned(), whom_to_ask(agent, state, now).into());
        }
        Verdict::Finished => {
            let of = scope.map(|scope| format!(" of {scope}")).unwrap_or_default();
            (format!("every task{of} is finished"), "stop; there is nothing left to do")
        }
        Verdict::Unread => {
            let unread: Vec<_> = state.unread_lines().iter().map(ToString::to_string).collect();
            (
                format!("no task is left to do, but {}", unread.join(", and ")),
                "stop, and tell your leader: an import of the plan names the lines, with `lists` \
                 as true it makes the entries of its lists tasks, and as false it says that none \
                 of them is work",
            )
        }
        Verdict::Wait => {
            let mut text = format!("no task is ready: {} held, {} blocked", why.held, why.blocked);
            if why.kept_for_others > 0 {
                text = format!("{text}, {} kept for other agents", why.kept_for_others);
            }
            match why.in_review {
                0 => {}
                1 => text.push_str(", 1 waits for review"),
                more => text.push_str(&format!(", {more} wait for review")),
            }
            let next = if agent.current_tasks.is_empty() {
                "call claim_task again with wait_seconds: 50"
            } else {
                "go on with what you hold, and call claim_task again when that is done"
            };
            (text, next)
        }
        Verdict::Stuck => (
            format!("{} tasks are blocked and nothing is running", why.blocked),
            "stop, and tell your leader: see blocked_by_failure in get_status",
        ),
        Verdict::Unsuited => (
            "ready tasks demand what you have not: see missing".to_owned(),
            "register again with what you can do, or stop",
        ),
        Verdict::Paused => match &agent.paused {
            Some(pause) if pause.stop => {
                ("you are asked to stop".to_owned(), "release_task what you hold, then stop")
            }
            Some(_) => ("claims are paused for you".to_owned(), "finish what you hold and stop"),
            None => ("claims are paused".to_owned(), "finish what you hold and stop"),
        },
        Verdict::Spent => spent(agent, state),
    };
    (text, next.into())
}

/// Leaders that are named.
const LEADERS_NAMED: usize = 3;

/// Who can fill a board without tasks: the leaders that are about, else the person, or a leader
/// itself.
fn whom_to_ask(agent: &Agent, state: &State, now: Timestamp) -> String {
    if agent.role == Role::Leader {
        return "create_tasks_batch makes tasks, import_plan takes a plan".to_owned();
    }
    let leaders = state
        .agents()
        .filter(|one| one.role == Role::Leader && one.id.as_str() != HUMAN && one.is_about(now));
    let named: Vec<_> =
        leaders.take(LEADERS_NAMED).map(|leader| format!("`{}`", leader.id)).collect();
    let ask = match named.as_slice() {
        [] => "ask the person whose board this is for tasks".to_owned(),
        named => format!("ask leader {} for tasks with send_message", named.join(", ")),
    };
    format!("{ask}; then claim_task with wait_seconds: 50 waits for them")
}

pub(super) fn spent(agent: &Agent, state: &State) -> (String, &'static str) {
    let message = state.spent_workflow(&agent.id).map(|(workflow, exhausted)| {
        format!("the budget of workflow `{}` is spent: {exhausted}", workflow.id)
    });
    (
        message.unwrap_or_default(),
        "stop; a leader can raise it with save_checkpoint {workflow_id, budget}",
    )
}

/// `text`, cut between characters to at most `bytes` bytes of JSON.
pub(super) fn shortened(text: &str, bytes: usize) -> String {
    let mut size = 0;
    let mut cut = 0;
    for (start, c) in text.char_indices() {
        size += match c {
            '"' | '\\' | '\n' | '\t' | '\r' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        if size > bytes {
            return format!("{}…", &text[..cut]);
        }
        if size <= bytes - '…'.len_utf8() {
            cut = start + c.len_utf8();
        }
    }
    text.to_owned()
}
