//! Why the board refuses a call. Every message names the thing and the way out; the codes on the
//! wire are the variants' names.

use serde::{Serialize, Serializer};
use thiserror::Error;

use super::agent::Role;
use super::hierarchy;
use super::id::{AgentId, DiscoveryId, MessageId, ReservationId, SessionId, TaskId, WorkflowId};
use super::level::{Older, named};
use super::limit::{CYCLE_SHOWN, INBOX, Limit};
use super::plan::problem::Problem;
use super::reservation::Hold;
use super::review::Review;
use super::run::RunStatus;
use super::snapshot::SnapshotName;
use super::task::{Named, TaskStatus, listed};
use super::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Error, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Refusal {
    #[error("{detail}; {operation} takes: {expected}")]
    BadArguments {
        operation: &'static str,
        /// Place of the argument that cannot be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        argument: Option<String>,
        detail: String,
        expected: String,
    },
    #[error("{argument}: {wanted}")]
    #[serde(rename = "bad_arguments")]
    BadArgument { argument: String, wanted: String },
    #[error(
        "{what} must be 1 to 64 letters, digits and . _ : @ + -, a letter or digit first; for \
         example `{suggestion}`"
    )]
    BadId { what: &'static str, suggestion: String },
    #[error(
        "agent id `{agent}` stands for the person whose board it is or for the board itself, or \
         reads as if it did; register another, or leave agent_id out"
    )]
    ReservedId { agent: AgentId },
    #[error(
        "`all`, `role:…` and `task:…` address messages, so no agent is called so; register \
         another id, or leave agent_id out"
    )]
    AddressAsId,
    #[error("{what} must not be empty")]
    Empty { what: &'static str },
    #[error(
        "callboard has made a mistake: {what} is missing; please report it with what you have \
         called"
    )]
    Missing { what: &'static str },
    #[error("final: true says the opposite of retryable: true; give only final")]
    FinalOrRetryable,
    #[error("clear: a field is given and cleared at once; give its new value or clear it")]
    GivenAndCleared,
    #[error("{what} must be at least 1")]
    Zero { what: &'static str },
    #[error("priority must be 1 (first) to 10 (last), not {given}")]
    BadPriority { given: i64 },
    #[error(
        "path `{given}` has no form like P1, P1.M2, P1.M2.T3 or P1.M2.T3.S4; a scope may also be \
         all"
    )]
    BadPath { given: String },
    #[error("{}{} is over its limit: {actual} {}, at most {}; {}", at_place(argument), limit.what, limit.unit, limit.max, limit.way_out)]
    OverLimit {
        #[serde(serialize_with = "limit_as_fields", flatten)]
        limit: Limit,
        actual: usize,
        /// Place of the argument, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        argument: Option<String>,
    },
    #[error("no task `{task}`; {}", where_else(task))]
    UnknownTask { task: TaskId },
    #[error(
        "task `{task}` is kept for agent `{agent}` until {until}; claim another with claim_task"
    )]
    KeptForOther { task: TaskId, agent: AgentId, until: Timestamp },
    #[error("agent `{agent}` cannot be forgotten, because it {why}")]
    AgentStays { agent: AgentId, why: String },
    #[error("no task is called `{given}`; see get_all_tasks for those there are")]
    #[serde(rename = "unknown_task")]
    NoTaskCalled { given: String },
    #[error("`{given}` may be several tasks; name one by its number or id:{}", listed(candidates, *more))]
    AmbiguousTask {
        given: String,
        candidates: Vec<Named>,
        /// Number of further tasks that may be meant.
        more: usize,
    },
    #[error(
        "`{number}` may be the board's task #{number} or a task of this call; write #{number}, or \
         give the other an id or ref"
    )]
    #[serde(rename = "ambiguous_task")]
    NumberInCall { number: String },
    #[error("`{given}` names several tasks of this call; give each an id or ref of its own")]
    #[serde(rename = "ambiguous_task")]
    AmbiguousName { given: String },
    #[error(
        "nothing to change is given, such as title or priority; complete_task, fail_task, \
         release_task, cancel_task and retry_task change a status"
    )]
    NothingToChange,
    #[error("parent: {why}")]
    #[serde(rename = "bad_arguments")]
    BadParent { why: String },
    #[error(
        "`{after}` has retired since, and so has its place in the list; begin again without after"
    )]
    CursorRetired { after: TaskId },
    #[error("task `{task}` exists already; choose another id or leave it out")]
    TaskExists { task: TaskId },
    #[error(
        "task `{task}` depends on `{dependency}`, which does not exist; create it first, or name \
         a task of the same call by its id, ref or title"
    )]
    UnknownDependency { task: TaskId, dependency: String },
    #[error("these dependencies form a cycle: {}; leave one of them out", cycle_text(cycle))]
    DependencyCycle {
        #[serde(serialize_with = "beginning_of_cycle")]
        cycle: Vec<TaskId>,
    },
    #[error("whose call is this? give agent_id; register_agent makes one up if you have none")]
    AgentMissing,
    #[error("{}", not_the_person(agent.as_ref(), mark.as_deref()))]
    NotThePerson {
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mark: Option<String>,
    },
    #[error(
        "agent `{agent}` works in process {pid}{}, and this session is `{own}`: give your own agent_id; \
         if that process is yours and obsolete, pass takeover: true to register_agent first",
        in_worktree(worktree)
    )]
    OfAnotherSession {
        agent: AgentId,
        pid: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        worktree: Option<String>,
        own: AgentId,
    },
    #[error(
        "several agents act through this process: {}; give agent_id, the one that your \
         register_agent answered",
        candidates_text(agents)
    )]
    WhichAgent { agents: Vec<Candidate> },
    #[error("no agent `{agent}`; call register_agent first, with agent_id and role")]
    UnknownAgent { agent: AgentId },
    #[error("no agent `{agent}`; get_agents lists those there are")]
    #[serde(rename = "unknown_agent")]
    NoAgentCalled { agent: AgentId },
    #[error(
        "agent id `{agent}` is in use by process {pid}{}; register as `{free}`, or pass takeover: \
         true if that process is yours and obsolete",
        in_worktree(worktree)
    )]
    AgentInUse {
        agent: AgentId,
        pid: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        worktree: Option<String>,
        free: AgentId,
    },
    #[error("agent `{agent}` is {}; only a leader may {action}; ask one, or register again with role leader", with_article(*role))]
    NotLeader { agent: AgentId, role: Role, action: &'static str },
    #[error(
        "agent `{agent}` did the work on task `{task}`, so another has to approve it: tell a leader \
         or the person with send_message"
    )]
    OwnWork { task: TaskId, agent: AgentId },
    #[error(
        "review: none would take from task `{task}` the review that it needs here ({wanted}); leave \
         review out; a leader can exempt it later with update_task"
    )]
    ReviewNeeded { task: TaskId, wanted: Review },
    #[error(
        "agent `{agent}` is {}, and task `{task}` is reviewed by {}; ask one, or the person, with \
         send_message",
        with_article(*role), reviewers(*wanted)
    )]
    NotReviewer {
        task: TaskId,
        agent: AgentId,
        role: Role,
        #[serde(skip_serializing_if = "Option::is_none")]
        wanted: Option<Role>,
    },
    #[error(
        "token `{token}` is {}'s and may not {action}; ask whoever runs the server for another: `callboard token add --role {}`",
        with_article(*role), above(*role)
    )]
    TokenRole { token: String, role: Role, action: &'static str },
    #[error(
        "token `{token}` acts as agent `{agent}` and nobody else; leave agent_id out, or ask \
         whoever runs the server for a token of your own"
    )]
    TokenAgent { token: String, agent: AgentId },
    #[error(
        "agent `{agent}` is an observer and takes no tasks; register as worker or leader to claim"
    )]
    Observer { agent: AgentId },
    #[error(
        "task `{task}` is held by `{holder}` (attempt {attempt}) until {lease_until}; claim \
         another with claim_task"
    )]
    HeldByOther { task: TaskId, holder: AgentId, attempt: u32, lease_until: Timestamp },
    #[error("nobody holds task `{task}`, which is {}; {next}", in_words(*status))]
    NotHeld { task: TaskId, status: TaskStatus, next: String },
    #[error("you hold no task; claim_task gives you one")]
    HoldsNothing,
    #[error("{}; {}{}; {next}", no_longer(*given, *current, task), since_then(*given, *current, *status, holder), kept_text(*kept))]
    AttemptOver {
        task: TaskId,
        given: u32,
        current: u32,
        status: TaskStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        holder: Option<AgentId>,
        /// Whether the result was kept, if there was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<bool>,
        next: &'static str,
    },
    #[error("task `{task}` is {status}, so it cannot be {action}; {next}")]
    WrongStatus { task: TaskId, status: TaskStatus, action: &'static str, next: String },
    #[error(
        "task `{task}` is not ready: it waits for {}; claim another with claim_task",
        tasks_text(waiting_for)
    )]
    NotReady { task: TaskId, waiting_for: Vec<TaskId> },
    #[error(
        "task `{task}` is not ready once it waits for {}, and it or a part of it is in work; \
         release_task what is in work first",
        tasks_text(waiting_for)
    )]
    #[serde(rename = "not_ready")]
    InWork { task: TaskId, waiting_for: Vec<TaskId> },
    #[error("task `{task}` has parts, {}", parts_text(path, *open, failed))]
    IsParent {
        task: TaskId,
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        open: usize,
        /// Parts that failed and keep it open
        #[serde(skip_serializing_if = "Vec::is_empty")]
        failed: Vec<TaskId>,
    },
    #[error("task `{task}` is not tried again before {until}; claim another with claim_task")]
    TooEarly { task: TaskId, until: Timestamp },
    #[error(
        "task `{task}` demands what agent `{agent}` has not, see missing; register again with it, \
         or claim another"
    )]
    DemandsUnmet { task: TaskId, agent: AgentId, missing: Vec<String> },
    #[error(
        "idempotency_key `{key}` was used with other parameters; choose a new key for a new call"
    )]
    KeyReused { key: String },
    #[error(
        "idempotency_key belongs to the whole batch, not to one of its tasks; move it out of \
         `tasks`"
    )]
    KeyOfItem,
    #[error("operation `{name}` cannot be part of a batch; call it by itself")]
    NotInBatch { name: String },
    #[error(
        "nothing was written: {operation} needs all processes on the board to be of this version, \
         and these are older: {}; restart them, then try again",
        named(older)
    )]
    OlderProcesses { operation: String, older: Vec<Older> },
    #[error(
        "agents work for another goal, `{}`, and hold {held} of its tasks; take part with \
         register_agent and claim_task, or call init_coordination again with replace_goal: true",
        beginning(goal)
    )]
    OtherGoal { goal: String, held: usize },
    #[error("kinds: no event is called `{kind}`; {}", like(kind, known))]
    UnknownKind { kind: String, known: &'static [&'static str] },
    #[error("the history could not be read ({detail}); see `callboard doctor`")]
    HistoryUnread { detail: String },
    #[error("`{given}` is no snapshot's name; list_snapshots has them")]
    BadSnapshotName { given: String },
    #[error("no snapshot `{snapshot}`; list_snapshots has those there are")]
    UnknownSnapshot { snapshot: SnapshotName },
    #[error("snapshot `{snapshot}` is damaged ({detail}); {}", instead(sound))]
    SnapshotDamaged {
        snapshot: SnapshotName,
        detail: String,
        /// The newest sound snapshot.
        #[serde(skip_serializing_if = "Option::is_none")]
        sound: Option<SnapshotName>,
    },
    #[error(
        "snapshots could not be read or written ({detail}); see to the directory `snapshots` of \
         the board and its disk"
    )]
    ArchiveFailed { detail: String },
    #[error(
        "there is no snapshot to go by; create_snapshot takes one, and any past seq can be \
         restored without"
    )]
    NoSnapshot,
    #[error("event {seq} is not in the past: the newest is {head}")]
    NotInThePast { seq: u64, head: u64 },
    #[error("nothing of {} can be undone: {}", of_events(*first, *last), left_of(left))]
    NothingToUndo { first: u64, last: u64, left: Vec<String> },
    #[error("give either snapshot or seq, so that it is clear what to restore")]
    RestoreWhat,
    #[error(
        "there is nobody called `{to}`; a message goes to an agent (see get_agents), role:leader, \
         role:worker, task:ID (its holder), all or human"
    )]
    UnknownRecipient { to: String },
    #[error(
        "nobody holds task `{task}`, so there is no owner to tell; put it into the task with \
         update_task, or tell role:leader"
    )]
    NoOwner { task: TaskId },
    #[error(
        "nobody else was heard of in the last day, so nobody would get the message; human is \
         there always"
    )]
    NobodyThere,
    #[error(
        "the inbox of `{recipient}` is full: {unread} unread messages of {}; it must read some first (get_messages), or tell somebody else", INBOX.max
    )]
    InboxFull { recipient: AgentId, unread: usize },
    #[error(
        "no message `{message}` was sent to you; get_messages with all: true lists those that were"
    )]
    UnknownMessage { message: MessageId },
    #[error(
        "the person at this client has not confirmed {operation}, so nothing was done; ask them, or \
         do without it"
    )]
    NotConfirmed { operation: String },
    #[error("{question} is answered already, by {by}: {answer}")]
    Answered { question: String, by: String, answer: String },
    #[error(
        "{place} `{given}` leaves the project; name files relative to the repository's root, as \
         src/a.rs, src/ or src/**/*.rs, and others in the hints"
    )]
    OutsideProject { place: String, given: String },
    #[error(
        "the token has made its {rate} calls a second; call again in {retry_after} s, and wait in \
         calls with wait_seconds instead of asking again and again"
    )]
    RateLimited { rate: u32, retry_after: u64 },
    #[error("{}; ask with send_message, wait, or take other files", held_text(hold))]
    FilesHeld { hold: Box<Hold> },
    #[error("no discovery `{discovery}`; get_discoveries with all: true has those there are")]
    UnknownDiscovery { discovery: DiscoveryId },
    #[error(
        "no workflow `{workflow}`; the first save_checkpoint makes it, list_checkpoints has those \
         there are"
    )]
    UnknownWorkflow { workflow: WorkflowId },
    #[error(
        "process {pid} works for workflow `{workflow}`; end it first, or give another name with \
         --workflow"
    )]
    WorkflowInUse { workflow: WorkflowId, pid: u32 },
    #[error("workflow `{workflow}` exists already; continue it: {command}")]
    WorkflowExists { workflow: WorkflowId, command: String },
    #[error(
        "there is no task at or below `{scope}`; get_all_tasks lists those there are, with their \
         paths"
    )]
    EmptyScope { scope: String },
    #[error("task `{task}` is not at or below `{scope}`; leave scope out if you mean this task")]
    OutsideScope { task: TaskId, scope: String },
    #[error("kept is left with a task: give its task_id, too")]
    KeptWithoutTask,
    #[error("which workflow? give workflow_id or task_id, not both")]
    WorkflowOrTask,
    #[error(
        "the state is of workflow `{inside}` and not of `{workflow}`; give the same workflow_id \
         in both, or leave it out of the state"
    )]
    OtherWorkflow { workflow: WorkflowId, inside: WorkflowId },
    #[error(
        "workflow `{workflow}` has no checkpoint {number}; list_checkpoints has those that are \
         kept"
    )]
    UnknownCheckpoint { workflow: WorkflowId, number: u64 },
    #[error(
        "workflow `{workflow}` stands at checkpoint {current}{}, not at {expected}: read it with \
         get_checkpoint, and save with expected_checkpoint {current}, or without it",
        by.as_ref().map(|by| format!(", saved by {by}")).unwrap_or_default()
    )]
    CheckpointMoved { workflow: WorkflowId, expected: u64, current: u64, by: Option<AgentId> },
    #[error(
        "`{file}` is held as part of `{held}`, which cannot be given up in part: name `{held}`, or \
         give up {reservation} and reserve the rest anew"
    )]
    HeldInPart { file: String, held: String, reservation: ReservationId },
    #[error(
        "what is to go? give one of number (that checkpoint), keep (all but so many of the \
         newest) and all: true (the whole workflow, with the record of what it has spent)"
    )]
    NumberOrKeep,
    #[error(
        "checkpoint {number} of workflow `{workflow}` is damaged ({detail}); get_checkpoint \
         without number has the newest sound one"
    )]
    CheckpointDamaged { workflow: WorkflowId, number: u64, detail: &'static str },
    #[error(
        "an artifact's name is 1 to 100 letters, digits and . _ -, a letter or digit first; for \
         example `{suggestion}`"
    )]
    BadArtifactName { suggestion: String },
    #[error("give either text or path: the content of the artifact, or a file that has it")]
    TextOrPath,
    #[error(
        "path would be one of the machine with the board, which is not yours; give the content as \
         text"
    )]
    PathOfOtherMachine,
    #[error(
        "the artifact could not be written ({detail}); see to the board's directory `artifacts` \
         and its disk"
    )]
    ArtifactFailed { detail: String },
    #[error(
        "the artifact's path cannot be read ({detail}); name a regular file that you may read, or \
         give text"
    )]
    ArtifactUnread { detail: String },
    #[error(
        "artifact `{name}` of task `{task}` is not yours; attach this one under another name: only \
         its author, the task's holder or a leader may replace it"
    )]
    ArtifactOfOther { task: TaskId, name: String },
    #[error(
        "which bundles? give scope, or model_id, base_url and toolset_hash, of which one is made"
    )]
    ScopeMissing,
    #[error(
        "the scope has what looks like a secret in it; choose a name that says what the bundles \
         are for"
    )]
    SecretScope,
    #[error("there is no bundle in scope `{scope}` to be refined; save_bundle makes the first")]
    NothingToRefine { scope: String },
    #[error(
        "the newest bundle is not `{given}` but `{newest}`; look at it with load_bundle, then \
         refine that"
    )]
    BundleMoved { given: String, newest: String },
    #[error("context bundles could not be read or written ({detail})")]
    BundlesFailed { detail: String },
    #[error("nothing of the plan was imported: {}", problems_text(problems))]
    BadPlan { problems: Vec<Problem> },
    #[error(
        "carry takes TASK=PATH, the id of a done task and the path of an item, not \"{given}\"; \
         import_plan says it in `reworded`"
    )]
    BadCarry { given: String },
    #[error("there is no plan \"{given}\"{}", named_plans(plans))]
    UnknownPlan { given: String, plans: Vec<String> },
    #[error("the board has several plans, so say which{}", named_plans(plans))]
    SeveralPlans { plans: Vec<String> },
    #[error(
        "a plan that comes without a file needs a name, because the board has others{}; give the \
         same name again for a new version",
        named_plans(plans)
    )]
    UnnamedPlan { plans: Vec<String> },
    #[error("there is a plan \"{name}\" already; replace that one, or give another name")]
    PlanExists { name: String },
    #[error("{path} is a path of several plans; say which: {}", plans.iter().map(|plan| format!("`{plan}:{path}`")).collect::<Vec<_>>().join(" or "))]
    AmbiguousPath { path: String, plans: Vec<String> },
    #[error(
        "the plan has moved on: the current version is {}, not {given}; look at diff_plans or get_master_plan, and import with its sha256", current.as_deref().unwrap_or("none")
    )]
    PlanMoved {
        given: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        current: Option<String>,
    },
    #[error("there is no {}; get_master_plan has the versions there are", version.as_ref().map_or("plan yet: import one with import_plan".to_owned(), |given| format!("version of the plan whose hash begins with `{given}` (6 digits or more)")))]
    NoPlan {
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    #[error(
        "the plan has only one version, so there is nothing to compare; import_plan brings the \
         next"
    )]
    OnlyPlan,
    #[error(
        "version `{version}` of the plan is not in this board's history, as it came with a state \
         from elsewhere; only the current plan can be exported of that, without a version"
    )]
    PlanFromElsewhere { version: String },
    #[error("give either task_id or scope, so that it is clear what is meant")]
    TaskOrScope,
    #[error("all runs of session {session} have ended and left the board; see list_runs")]
    SessionOver { session: SessionId },
    #[error("give either run_id or session_id")]
    RunOrSession,
    #[error("{} operations were refused, so nothing of the batch was done: {}", errors.len() + more, errors_text(errors, *more))]
    BatchItems {
        errors: Vec<BatchError>,
        /// Number of further errors.
        more: usize,
    },
    #[error("operations[{index}] ({name}): {refusal}; nothing of the batch was done")]
    BatchItem { index: usize, name: String, refusal: Box<Refusal> },
    #[error("tasks[{index}]: {refusal}; nothing of the batch was created")]
    TaskOfBatch { index: usize, refusal: Box<Refusal> },
    #[error("the claim was superseded: agent `{agent}` waits in a newer one")]
    Superseded { agent: AgentId },
    #[error("`{task}` is a run, and no task of the queue; {next}")]
    IsRun { task: TaskId, next: &'static str },
    #[error("no run `{run}`; see list_runs for those there are")]
    UnknownRun { run: TaskId },
    #[error("run `{run}` is {status}, so it cannot be {action}; {next}")]
    RunStatus { run: TaskId, status: RunStatus, action: &'static str, next: &'static str },
    #[error("no session `{session}`; see list_sessions for those there are")]
    UnknownSession { session: SessionId },
    #[error(
        "session `{session}` exists already; go on with it by type resume_session, or leave \
         session_id out"
    )]
    SessionExists { session: SessionId },
    #[error(
        "session `{session}` is busy with run `{run}`; wait for it with get_run, or stop it with \
         stop_run"
    )]
    SessionBusy { session: SessionId, run: TaskId },
    #[error("resume_session needs the session_id of the session to go on with; see list_sessions")]
    SessionMissing,
    #[error(
        "async_callback needs parent_session_id: the session that is to be resumed with the result"
    )]
    NobodyToCallBack,
    #[error(
        "a session's parent is given when it begins; leave parent_session_id out, `{session}` has \
         its own"
    )]
    ParentGiven { session: SessionId },
    #[error("demands can be added to and not be changed: the run demands {}; create another run for others", demanded.join(", "))]
    DemandsChanged { demanded: Vec<String> },
    #[error(
        "agent `{agent}` neither leads nor created run `{run}`, so it may not {action}; ask a \
         leader"
    )]
    NotYourRun { agent: AgentId, run: TaskId, action: &'static str },
    /// A refusal on the wire like the one in it, with what the agent may have meant.
    #[error("{}; you hold {}", without_list(refusal), holding_text(holding))]
    #[serde(untagged)]
    WhileHolding {
        #[serde(flatten, serialize_with = "as_fields")]
        refusal: Box<Refusal>,
        holding: Vec<Holding>,
    },
}

/// A task that the refused agent holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holding {
    pub task: TaskId,
    pub title: String,
    pub attempt: u32,
}

fn without_list(refusal: &Refusal) -> String {
    match refusal {
        Refusal::UnknownTask { task } => format!("no task `{task}`"),
        refusal => refusal.to_string(),
    }
}

fn holding_text(holding: &[Holding]) -> String {
    tasks_text(&holding.iter().map(|held| held.task.clone()).collect::<Vec<_>>())
}

/// An agent that may be meant, and the newest task that it holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    pub agent_id: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

/// One operation of a batch, and why it was refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BatchError {
    pub index: usize,
    pub name: String,
    pub refusal: Box<Refusal>,
    /// The refusal as text.
    pub message: String,
}

fn errors_text(errors: &[BatchError], more: usize) -> String {
    let told: Vec<_> =
        errors.iter().map(|one| format!("{} ({}): {}", one.index, one.name, one.refusal)).collect();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", told.join("; "))
}

/// Names at most five, so that the message stays readable.
fn candidates_text(agents: &[Candidate]) -> String {
    let holds = |one: &Candidate| {
        one.task.as_ref().map(|task| format!(" (holds `{task}`)")).unwrap_or_default()
    };
    let named: Vec<_> =
        agents.iter().take(5).map(|one| format!("`{}`{}", one.agent_id, holds(one))).collect();
    let more = agents.len().saturating_sub(5);
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}

fn problems_text(problems: &[Problem]) -> String {
    const SHOWN: usize = 10;
    let told = problems.iter().take(SHOWN).map(|one| format!("line {}: {}", one.line, one.problem));
    let more = problems.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    told.chain(more).collect::<Vec<_>>().join("\n")
}

impl Refusal {
    /// The refusal with the place of the argument that is too large.
    pub fn at(self, place: &str) -> Self {
        match self {
            Self::OverLimit { limit, actual, .. } => {
                Self::OverLimit { limit, actual, argument: Some(place.to_owned()) }
            }
            other => other,
        }
    }

    /// The refusal with what the agent holds, if it is about a task that the agent may have
    /// confused with that.
    pub fn while_holding(self, holding: Vec<Holding>) -> Self {
        match &self {
            Self::UnknownTask { task }
            | Self::NotHeld { task, .. }
            | Self::HeldByOther { task, .. }
            | Self::WrongStatus { task, .. }
                if !holding.is_empty() && holding.iter().all(|held| held.task != *task) =>
            {
                Self::WhileHolding { refusal: Box::new(self), holding }
            }
            _ => self,
        }
    }

    /// The refusal of a result that was not even kept.
    pub fn without_keeping(self) -> Self {
        match self {
            Self::AttemptOver {
                task, given, current, status, holder, kept: Some(true), ..
            } => {
                let next = "sent alone, it is kept with the attempt";
                Self::AttemptOver { task, given, current, status, holder, kept: Some(false), next }
            }
            other => other,
        }
    }

    /// The code on the wire: the variant's name in snake case.
    pub fn code(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value["code"].as_str().unwrap_or("refused").to_owned()
    }
}

fn of_events(first: u64, last: u64) -> String {
    if first == last { format!("event {first}") } else { format!("events {first} to {last}") }
}

fn at_place(argument: &Option<String>) -> String {
    argument.as_ref().map(|place| format!("{place}: ")).unwrap_or_default()
}

/// The kinds that are most like `kind`.
fn like(kind: &str, known: &[&'static str]) -> String {
    let mut near: Vec<_> =
        known.iter().map(|name| (strsim::jaro_winkler(kind, name), *name)).collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    let near: Vec<_> = near.into_iter().take(3).map(|(_, name)| name).collect();
    format!("did you mean {}? get_history shows those there are", near.join(", "))
}

/// By way of a value: a type that flattens itself would have no end.
fn as_fields<S: Serializer>(refusal: &Refusal, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::to_value(refusal).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

fn limit_as_fields<S: Serializer>(limit: &Limit, serializer: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap;
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("what", limit.what)?;
    map.serialize_entry("limit", &limit.max)?;
    map.serialize_entry("unit", limit.unit)?;
    map.end()
}

fn instead(sound: &Option<SnapshotName>) -> String {
    match sound {
        Some(sound) => format!("the newest sound one is `{sound}`"),
        None => "no other is sound, but any past seq can be had from the journal".to_owned(),
    }
}

fn where_else(task: &TaskId) -> String {
    match hierarchy::numbers(task.as_str()) {
        Some(_) => "no task is at that path; get_all_tasks lists those there are".to_owned(),
        None => "see get_all_tasks for those there are".to_owned(),
    }
}

/// The hold in words, without the texts of others: what a task or reason says is in the field.
fn held_text(hold: &Hold) -> String {
    let task = hold.task.as_ref().map(|task| format!(" for task `{task}`")).unwrap_or_default();
    format!("`{}` is held by `{}`{task} until {}", hold.files, hold.agent, hold.until)
}

/// A status in the middle of a sentence.
fn in_words(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Review => "in review",
        TaskStatus::InProgress => "in progress",
        other => other.as_str(),
    }
}

fn listed_below(path: &Option<String>) -> String {
    let listed = |path| format!(", which get_all_tasks with scope {path} lists");
    path.as_ref().map(listed).unwrap_or_default()
}

fn below(path: &Option<String>) -> String {
    path.as_ref().map(|path| format!(" (scope {path})")).unwrap_or_default()
}

/// The entries of a cycle that are named: all of a short one, whose last entry is its first.
fn named_of_cycle<T>(cycle: &[T]) -> &[T] {
    let is_short = cycle.len() <= CYCLE_SHOWN + 1;
    cycle.get(..CYCLE_SHOWN).filter(|_| !is_short).unwrap_or(cycle)
}

fn beginning_of_cycle<S: Serializer>(cycle: &[TaskId], serializer: S) -> Result<S::Ok, S::Error> {
    named_of_cycle(cycle).serialize(serializer)
}

/// Names at most ten entries of a cycle, whose last entry is its first.
pub fn cycle_text(cycle: &[impl ToString]) -> String {
    let names: Vec<_> = named_of_cycle(cycle).iter().map(ToString::to_string).collect();
    match cycle.len().saturating_sub(CYCLE_SHOWN + 1) {
        0 => names.join(" -> "),
        more => format!("{} -> and {more} more", names.join(" -> ")),
    }
}

/// How many parts keep a task open, and what to do about them.
fn parts_text(path: &Option<String>, open: usize, failed: &[TaskId]) -> String {
    if open == 0 && failed.is_empty() {
        return format!("and all of them have ended; name one of those{}", listed_below(path));
    }
    let is_done = format!("{open} of them unfinished, and is done when they are");
    let claim = format!("claim one of those with claim_task{}", below(path));
    match failed {
        [] => format!("{is_done}; {claim}"),
        failed => {
            let mend = "retry_task or cancel_task each";
            let failed = format!("{} failed and keeps it open: {mend}", tasks_text(failed));
            let claim = if open > 0 { format!("{claim}; ") } else { String::new() };
            format!("{is_done}; {claim}{failed}")
        }
    }
}

/// The part of a long text that a message shows.
fn beginning(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Names at most five tasks, so that the message stays readable.
fn tasks_text(tasks: &[TaskId]) -> String {
    let named: Vec<_> = tasks.iter().take(5).map(|task| format!("`{task}`")).collect();
    let more = tasks.len().saturating_sub(5);
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}

fn not_the_person(agent: Option<&AgentId>, mark: Option<&str>) -> String {
    let why = match (agent, mark) {
        (_, Some(mark)) => format!(
            "{mark}, so this shell is an agent's, and agents never act as the person: a leader names \
             itself with --agent"
        ),
        (Some(agent), None) => format!(
            "`{agent}` is the person whose board it is, and agents never act as the person: give \
             your own agent_id"
        ),
        (None, None) => "a session without an agent decides nothing: give agent_id, after \
                         register_agent with role leader"
            .to_owned(),
    };
    format!("{why}; the person decides on the page or in a terminal of their own")
}

fn in_worktree(worktree: &Option<String>) -> String {
    worktree.as_ref().map(|path| format!(" in {path}")).unwrap_or_default()
}

fn no_longer(given: u32, current: u32, task: &TaskId) -> String {
    if given <= current {
        format!("attempt {given} of task `{task}` is over")
    } else {
        format!("there is no attempt {given} of task `{task}`")
    }
}

fn since_then(given: u32, current: u32, status: TaskStatus, holder: &Option<AgentId>) -> String {
    match holder {
        _ if given == current => format!("the task is {status}"),
        Some(agent) => format!("the current one is {current}, by `{agent}`"),
        None => format!("the current one is {current}"),
    }
}

fn kept_text(kept: Option<bool>) -> &'static str {
    match kept {
        Some(true) => "; your result was not taken, but kept with the attempt",
        Some(false) => "; your result was not taken",
        None => "",
    }
}

/// The next role with more rights.
fn above(role: Role) -> &'static str {
    match role {
        Role::Observer => "worker",
        Role::Worker | Role::Leader => "leader",
    }
}

fn with_article(role: Role) -> &'static str {
    match role {
        Role::Leader => "a leader",
        Role::Worker => "a worker",
        Role::Observer => "an observer",
    }
}

/// Who may review.
fn reviewers(wanted: Option<Role>) -> &'static str {
    wanted.map_or("a leader or a worker", with_article)
}

/// The first plans there are, for the end of a message.
fn named_plans(plans: &[String]) -> String {
    match plans {
        [] => "; import one with import_plan".to_owned(),
        _ => format!(
            ": {}",
            plans.iter().take(10).map(|plan| format!("`{plan}`")).collect::<Vec<_>>().join(", ")
        ),
    }
}
/// Why nothing is undone, in one text.
fn left_of(left: &[String]) -> String {
    if left.is_empty() {
        return "everything is as it was before that".to_owned();
    }
    const NAMED: usize = 5;
    let more = left.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    format!("{}{more}", left[..left.len().min(NAMED)].join("; "))
}
