use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim_task::{answered_again, claimed, may_not_claim, spent};
use super::get_run::RunView;
use super::held::{Held, held};
use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset};
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::claim::Verdict;
use crate::state::event::Event;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::run::Runner;
use crate::state::session::Affinity;
use crate::state::task::Attempt;
use crate::state::time::Timestamp;

pub struct ClaimRun;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Only runs that demand one of your tags
    #[serde(default)]
    pub require_matching_tags: bool,
    /// Ids of runs you already know you must stop; the call does not return early for these
    #[serde(default)]
    pub stopping: Vec<String>,
    /// Seconds to wait for a run or for a request to stop one: 0 to 50, default 0
    #[serde(default)]
    pub wait_seconds: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reply {
    Claimed(Box<Claimed>),
    Empty(Box<Empty>),
}

#[derive(Serialize, JsonSchema)]
pub struct Claimed {
    pub success: bool,
    pub run: RunView,
    pub attempt: u32,
    pub lease_until: Timestamp,
    /// You had claimed the run before and not started it
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// Where the session ran before and must continue
    #[serde(skip_serializing_if = "Affinity::is_empty")]
    pub affinity: Affinity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempt: Option<Attempt>,
}

#[derive(Serialize, JsonSchema)]
pub struct Empty {
    pub success: bool,
    pub verdict: Verdict,
    pub message: String,
    /// Why claims were paused
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub pending: usize,
    /// Pending runs whose demands you do not meet
    pub demands_unmet: usize,
    /// What those runs demand and you lack
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holding: Vec<Held>,
    pub next: &'static str,
}

impl Operation for ClaimRun {
    const NAME: &'static str = "claim_run";
    const DESCRIPTION: &'static str = "Runners: get the next run whose demands you meet. Then \
                                       report_run started, progress, completed, failed or stopped.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Required;
    const PLACED: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn wait_seconds(params: &Params) -> u64 {
        params.wait_seconds
    }

    fn waits(params: &Params, state: &State, call: &Call) -> bool {
        let Some(agent) = call.agent().ok().and_then(|id| state.agent(id)) else { return false };
        Self::decide(params, state, call).is_ok_and(|events| events.is_empty())
            && state.unacted_run(agent).is_none()
            && !may_not_claim(agent, state)
            && !has_new_stop(params, agent, state)
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        limit::WAIT.check(params.wait_seconds as usize)?;
        limit::STOPPING.check(params.stopping.len())?;
        let agent = state.known_agent(call.agent()?)?;
        state.may_claim(agent)?;
        let runner = runner(params);
        let seen = Event::RunnerSeen {
            agent: agent.id.clone(),
            require_matching_tags: runner.require_matching_tags,
        };
        let seen = (agent.runner != Some(runner)).then_some(seen);
        if let Some(run) = state.unacted_run(agent) {
            return Ok(seen.into_iter().chain(answered_again(run, agent, state, call)?).collect());
        }
        if !agent.has_room() || may_not_claim(agent, state) {
            return Ok(seen.into_iter().collect());
        }
        let claimed = state.pick_run(agent, runner).map(|task| claimed(task, agent, call));
        Ok(seen.into_iter().chain(claimed).collect())
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let agent = state.known_agent(call.agent()?)?;
        let given = state.unacted_run(agent).and_then(|task| Some((task, task.open_attempt()?)));
        let Some((task, attempt)) = given else {
            return Ok(Reply::Empty(Box::new(empty(params, agent, state))));
        };
        let run = RunView::without_attempts(task, state)
            .ok_or_else(|| Refusal::UnknownRun { run: task.id.clone() })?;
        let session = state.session(&run.session_id);
        Ok(Reply::Claimed(Box::new(Claimed {
            success: true,
            affinity: session.map(|session| session.affinity.clone()).unwrap_or_default(),
            run,
            attempt: attempt.number,
            lease_until: attempt.lease_until,
            already: call.events == 0,
            last_attempt: task
                .attempts
                .iter()
                .rev()
                .find(|attempt| attempt.outcome.is_some())
                .cloned(),
        })))
    }
}

fn runner(params: &Params) -> Runner {
    Runner { require_matching_tags: params.require_matching_tags }
}

/// True if the agent has been asked to stop a run it holds and has not listed it in `stopping`.
fn has_new_stop(params: &Params, agent: &Agent, state: &State) -> bool {
    agent.current_tasks.iter().any(|id| {
        let is_new = !params.stopping.iter().any(|known| known == id.as_str());
        is_new
            && state
                .task(id)
                .is_some_and(|task| task.run.is_some() && task.stop_requested.is_some())
    })
}

fn empty(params: &Params, agent: &Agent, state: &State) -> Empty {
    let (demands_unmet, missing) = state.runs_unmet(agent, runner(params));
    let holding = held(agent, state);
    let pending = state.runs().pending();
    let (verdict, message, next) = if state.paused_for(agent).is_some() {
        (
            Verdict::Paused,
            "claims are paused".to_owned(),
            "finish what you hold, and ask again later",
        )
    } else if state.spent_workflow(&agent.id).is_some() {
        let (message, next) = spent(agent, state);
        (Verdict::Spent, message, next)
    } else if !agent.has_room() {
        let message = "you hold as much as your max_concurrent allows".to_owned();
        let next = if holding.iter().all(Held::is_task) {
            "continue or complete your task, then claim_run again"
        } else {
            "report_run how it goes; claim_run with wait_seconds also brings requests to stop"
        };
        (Verdict::Wait, message, next)
    } else if demands_unmet > 0 {
        let message = format!("{demands_unmet} pending runs demand what you have not: see missing");
        (
            Verdict::Unsuited,
            message,
            "claim_run again with wait_seconds: 50, or register with what is missing",
        )
    } else {
        (Verdict::Wait, "no run is pending".to_owned(), "claim_run again with wait_seconds: 50")
    };
    let reason = state.paused_for(agent).flatten().map(str::to_owned);
    Empty {
        success: false,
        verdict,
        message,
        reason,
        pending,
        demands_unmet,
        missing,
        holding,
        next,
    }
}
