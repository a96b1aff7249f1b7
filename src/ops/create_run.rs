use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get_run::{RunView, live_or_retired};
use super::{AgentArgument, Annotations, Call, Decision, Operation, Toolset, WRITE, input};
use crate::state::agent::Demands;
use crate::state::event::{Event, NewTask};
use crate::state::id::{AgentId, Chance, SessionId, TaskId};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::run::{ExecutionMode, NO_MATCH, Run, RunKind};
use crate::state::session::{Affinity, Session};
use crate::state::task::{DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY};
use crate::state::time::Timestamp;
use crate::state::{Created, State};

pub struct CreateRun;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// start_session (default), or resume_session, which needs session_id
    #[serde(rename = "type", default)]
    pub kind: RunKind,
    /// Prompt for the agent
    pub prompt: String,
    /// Id of the new session, made up if omitted; or of the session to resume
    pub session_id: Option<String>,
    /// For a new session: the session that starts it
    pub parent_session_id: Option<String>,
    /// Name of the agent that the runner starts
    pub agent_name: Option<String>,
    /// Directory of the project that the agent works in
    pub project_dir: Option<String>,
    /// How you learn that the run has ended; default sync
    #[serde(default)]
    pub execution_mode: ExecutionMode,
    /// What the runner must be and have
    pub demands: Option<Demands>,
    /// 1 (first) to 10, default 5
    #[serde(default = "default_priority")]
    pub priority: i64,
    /// Time limit of each attempt
    pub timeout_seconds: Option<u32>,
    /// Seconds to wait for a fitting runner before the run fails; default 300
    pub no_match_seconds: Option<u32>,
    /// Attempts before the run fails; default 3
    pub max_attempts: Option<u32>,
    /// A repeated call creates nothing
    pub idempotency_key: Option<String>,
}

fn default_priority() -> i64 {
    i64::from(DEFAULT_PRIORITY)
}

impl Default for Params {
    fn default() -> Self {
        Self {
            agent_id: None,
            kind: RunKind::default(),
            prompt: String::new(),
            session_id: None,
            parent_session_id: None,
            agent_name: None,
            project_dir: None,
            execution_mode: ExecutionMode::default(),
            demands: None,
            priority: default_priority(),
            timeout_seconds: None,
            no_match_seconds: None,
            max_attempts: None,
            idempotency_key: None,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub run_id: TaskId,
    pub session_id: SessionId,
    pub run: RunView,
}

impl Operation for CreateRun {
    const NAME: &'static str = "create_run";
    const DESCRIPTION: &'static str = "Have a runner start an agent session, or go on with one. \
                                       Wait for the end with get_run, or let async_callback \
                                       resume the parent session with the result.";
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
        state.takes_part(call.actor.as_ref())?;
        limit::TASKS.check(state.live_tasks() + 1)?;
        let session = match params.kind {
            RunKind::StartSession => Begun::New(Box::new(new_session(params, state, call.seed)?)),
            RunKind::ResumeSession => Begun::Known(resumed(params, state)?),
        };
        let run = Box::new(new_run(params, session.get(), state, call)?);
        let session = session.begun();
        let parent = session.as_ref().map(|session| session.parent_session_id.as_ref());
        let room = parent.map(|parent| state.room_for_session(parent)).transpose()?.flatten();
        Ok(room.into_iter().chain([Event::RunCreated { run, session }]).collect())
    }

    fn reply(_: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let created = call.created.iter().find_map(|created| match created {
            Created::Run(run) => Some(run),
            _ => None,
        });
        let id = created.ok_or(Refusal::Missing { what: "what the call created" })?;
        let (task, _) = live_or_retired(id, state, call)?;
        let run =
            RunView::of(&task, state).ok_or_else(|| Refusal::UnknownRun { run: id.clone() })?;
        Ok(Reply {
            success: true,
            run_id: run.run_id.clone(),
            session_id: run.session_id.clone(),
            run,
        })
    }
}

enum Begun<'s> {
    New(Box<Session>),
    Known(&'s Session),
}

impl Begun<'_> {
    fn get(&self) -> &Session {
        match self {
            Self::New(session) => session,
            Self::Known(session) => session,
        }
    }

    fn begun(self) -> Option<Box<Session>> {
        match self {
            Self::New(session) => Some(session),
            Self::Known(_) => None,
        }
    }
}

fn known_session<'s>(id: &str, state: &'s State) -> Result<&'s Session, Refusal> {
    let id = SessionId::checked(id)?;
    state.session(&id).map(AsRef::as_ref).ok_or(Refusal::UnknownSession { session: id })
}

fn new_session(params: &Params, state: &State, seed: u64) -> Result<Session, Refusal> {
    let id = match &params.session_id {
        Some(given) => {
            let id = SessionId::checked(given)?;
            if state.session(&id).is_some() {
                return Err(Refusal::SessionExists { session: id });
            }
            id
        }
        None => made_up(state, seed),
    };
    let parent =
        params.parent_session_id.as_deref().map(|id| known_session(id, state)).transpose()?;
    if parent.is_none() && params.execution_mode == ExecutionMode::AsyncCallback {
        return Err(Refusal::NobodyToCallBack);
    }
    Ok(Session {
        id,
        parent_session_id: parent.map(|parent| parent.id.clone()),
        agent_name: checked_name("agent_name", params.agent_name.as_deref())?,
        project_dir: checked_dir(params)?,
        execution_mode: params.execution_mode,
        affinity: Affinity::default(),
        last_run: None,
        runs: 0,
        results: Vec::new(),
        waits: false,
        asked: None,
        created_at: Timestamp::default(),
    })
}

fn resumed<'s>(params: &Params, state: &'s State) -> Result<&'s Session, Refusal> {
    let session =
        known_session(params.session_id.as_deref().ok_or(Refusal::SessionMissing)?, state)?;
    if params.parent_session_id.is_some() {
        return Err(Refusal::ParentGiven { session: session.id.clone() });
    }
    if session.parent_session_id.is_none() && params.execution_mode == ExecutionMode::AsyncCallback
    {
        return Err(Refusal::NobodyToCallBack);
    }
    match state.runs_of(&session.id).find(|run| run.status.is_unfinished()) {
        Some(run) => Err(Refusal::SessionBusy { session: session.id.clone(), run: run.id.clone() }),
        None => Ok(session),
    }
}

fn new_run(
    params: &Params,
    session: &Session,
    state: &State,
    call: &Call,
) -> Result<NewTask, Refusal> {
    let demands = input::checked_demands(params.demands.as_ref())?;
    let affinity = session.affinity.demands();
    let demands = affinity
        .merged(&demands)
        .ok_or_else(|| Refusal::DemandsChanged { demanded: affinity.described() })?;
    for (what, span) in
        [("timeout_seconds", params.timeout_seconds), ("no_match_seconds", params.no_match_seconds)]
    {
        limit::SPAN.check(span.unwrap_or_default() as usize)?;
        if span == Some(0) {
            return Err(Refusal::Zero { what });
        }
    }
    let run = Run {
        session_id: session.id.clone(),
        kind: params.kind,
        execution_mode: params.execution_mode,
        agent_name: checked_name("agent_name", params.agent_name.as_deref())?
            .or_else(|| session.agent_name.clone()),
        project_dir: checked_dir(params)?.or_else(|| session.project_dir.clone()),
        created_by: call.actor.clone().filter(|actor: &AgentId| state.agent(actor).is_some()),
        no_match_seconds: params.no_match_seconds.unwrap_or(NO_MATCH),
        no_match_until: None,
        callback: false,
        results: Vec::new(),
    };
    let prompt = input::checked_text("prompt", &limit::DESCRIPTION, &params.prompt)?;
    let asked = run.asked(state.new_run_id(call.seed), prompt, demands);
    Ok(NewTask {
        priority: input::checked_priority(params.priority)?,
        max_attempts: input::checked_attempts(params.max_attempts)?.unwrap_or(DEFAULT_MAX_ATTEMPTS),
        timeout_seconds: params.timeout_seconds,
        ..asked
    })
}

fn checked_name(what: &'static str, name: Option<&str>) -> Result<Option<String>, Refusal> {
    name.map(|name| input::checked_text(what, &limit::LABEL, name)).transpose()
}

fn checked_dir(params: &Params) -> Result<Option<String>, Refusal> {
    params
        .project_dir
        .as_deref()
        .map(|dir| input::checked_text("project_dir", &limit::PATH, dir))
        .transpose()
}

fn made_up(state: &State, seed: u64) -> SessionId {
    let mut chance = Chance::new(!seed);
    loop {
        let id = SessionId::trusted(format!("session-{}", chance.base32(8)));
        if state.session(&id).is_none() {
            return id;
        }
    }
}
