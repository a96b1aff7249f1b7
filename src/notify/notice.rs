//! What a person is told: one notice for each event that asks for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::state::agent::{Agent, WaitReason};
use crate::state::event::{Event, Recorded};
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, TaskId};
use crate::state::message::MessageKind;
use crate::state::plan::Unread;
use crate::state::standing::Counts;
use crate::state::time::{MINUTE, Timestamp};

/// Characters of a text that a notice has.
const TEXT: usize = 200;
/// Milliseconds without a sign after which an agent with a task is called quiet.
const QUIET: i64 = 15 * MINUTE;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A client asks whether its agent may use a tool.
    Permission,
    /// An agent asks something.
    Question,
    /// A finished task is to be approved or rejected.
    Review,
    /// A task has failed and is not tried again.
    Parked,
    /// Work is left, and none of it can go on.
    Stuck,
    /// No work is left.
    Finished,
    /// An agent with a task has given no sign for a while.
    Quiet,
    /// An agent lost its task because it gave no sign.
    AgentGone,
    /// Sent by `callboard notify test` alone.
    Test,
}

impl Kind {
    /// What a person is told of who does not choose.
    pub(crate) fn usual() -> BTreeSet<Self> {
        use Kind::{AgentGone, Finished, Parked, Permission, Question, Quiet, Review, Stuck};
        [Permission, Question, Review, Parked, Stuck, Finished, Quiet, AgentGone].into()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notice {
    /// The board's id and the number of the event, and the kind if that follows from no single event:
    /// the same for each attempt to deliver it.
    pub id: String,
    pub kind: Kind,
    /// The board's directory.
    pub board: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The task's title, or the beginning of its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Name of the person who did what is told, if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// Name of the person who is asked, if it asks for something: who wrote what it replies to, or
    /// the one who wants to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// One sentence for a person.
    pub text: String,
    /// What to type next.
    pub command: String,
}

/// What an event says, before it is a notice of a board.
struct Told {
    kind: Kind,
    task: Option<TaskId>,
    agent: Option<String>,
    person: Option<String>,
    asked: Option<String>,
    text: String,
    command: String,
}

/// The notice of an event for the person `me`; `None` if the event concerns nobody. Titles are
/// those of `state`, the present one.
pub(crate) fn of(
    recorded: &Recorded,
    state: &State,
    board: &str,
    me: Option<&str>,
) -> Option<Notice> {
    let told = told(recorded, state, me.map(str::to_owned))?;
    let title = told.task.as_ref().and_then(|id| state.task(id)).map(|task| task.headline());
    Some(Notice {
        id: format!("{}/{}", state.board().board_id, recorded.seq),
        kind: told.kind,
        board: board.to_owned(),
        at: recorded.at,
        title: title.map(short),
        task: told.task,
        agent: told.agent,
        person: told.person,
        asked: told.asked,
        text: told.text,
        command: told.command,
    })
}

fn told(recorded: &Recorded, state: &State, me: Option<String>) -> Option<Told> {
    let person = recorded.actor.as_ref().and_then(AgentId::person).map(str::to_owned);
    let holder = |task: &TaskId| {
        let attempt = state.task(task)?.attempts.last()?;
        Some(attempt.agent.to_string())
    };
    match &recorded.event {
        Event::AgentWaits { agent, reason: WaitReason::Permission, what, place } => {
            let what = what.as_deref().map(|what| format!(": {}", short(what))).unwrap_or_default();
            let place = place.as_deref().map(|place| format!(" in {place}")).unwrap_or_default();
            Some(Told {
                kind: Kind::Permission,
                task: state.agent(agent).and_then(|agent| agent.current_tasks.first().cloned()),
                agent: Some(agent.to_string()),
                person,
                asked: me,
                text: format!("{agent} waits for a permission{place}{what}"),
                command: "callboard agents".to_owned(),
            })
        }
        Event::MessageSent { message }
            if message.kind == MessageKind::Request
                && message.recipients.iter().any(|one| one.as_str() == HUMAN) =>
        {
            let replies_to = message.reply_to.as_ref().and_then(|id| state.message(id));
            let asked = replies_to.and_then(|first| first.person.clone()).or(me);
            let name = asked.as_ref().filter(|name| *name != message.author());
            let whom = name.map(|name| format!(" {name}")).unwrap_or_default();
            Some(Told {
                kind: Kind::Question,
                task: message.task_id.clone(),
                agent: Some(message.from.to_string()),
                text: format!("{} asks{whom}: {}", message.author(), short(&message.text)),
                person: message.person.clone(),
                asked,
                command: format!("callboard answer {} TEXT", message.name()),
            })
        }
        Event::Completed { task, review: true, .. } => {
            let agent = holder(task);
            let who = person.as_deref().or(agent.as_deref()).unwrap_or("its agent");
            Some(Told {
                kind: Kind::Review,
                text: format!("{who} has completed {}, which waits for review", name(task, state)),
                command: format!("callboard approve {task}"),
                task: Some(task.clone()),
                agent,
                person,
                asked: me,
            })
        }
        Event::Failed { task, error, retry_at: None } => Some(Told {
            kind: Kind::Parked,
            agent: holder(task),
            text: format!(
                "{} failed{}: {}",
                name(task, state),
                person.as_ref().map(|person| format!(", says {person}")).unwrap_or_default(),
                short(&error.message)
            ),
            command: format!("callboard retry {task}"),
            task: Some(task.clone()),
            person,
            asked: None,
        }),
        Event::LeaseExpired { task, gave_up: true, .. } => Some(Told {
            kind: Kind::Parked,
            agent: holder(task),
            text: format!("{} has used up its attempts", name(task, state)),
            command: format!("callboard retry {task}"),
            task: Some(task.clone()),
            person,
            asked: None,
        }),
        Event::LeaseExpired { task, .. } => {
            let agent = holder(task);
            let who = agent.as_deref().unwrap_or("its agent");
            Some(Told {
                kind: Kind::AgentGone,
                text: format!("{who} gave no sign, so {} is open again", name(task, state)),
                command: format!("callboard show {task}"),
                task: Some(task.clone()),
                agent,
                person,
                asked: None,
            })
        }
        _ => None,
    }
}

fn name(task: &TaskId, state: &State) -> String {
    match state.task(task) {
        Some(task) => format!("“{}”", short(task.headline())),
        None => format!("task {task}"),
    }
}

fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= TEXT && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    line.chars().take(TEXT - 1).chain(['…']).collect()
}

/// What follows from the whole board and from no single event.
pub(crate) struct Standing {
    seq: u64,
    board_id: String,
    counts: Counts,
    is_stuck: bool,
    /// Of plans, what may be work and is in no task.
    unread: Vec<Unread>,
    now: Timestamp,
}

impl Standing {
    pub(crate) fn of(state: &State, now: Timestamp) -> Self {
        Self {
            seq: state.seq(),
            board_id: state.board().board_id.clone(),
            counts: state.counts(),
            is_stuck: state.is_deadlocked(),
            unread: state.unread_lines(),
            now,
        }
    }

    /// Whether nothing has come after that event.
    pub(crate) fn is_after(&self, seq: u64) -> bool {
        self.seq == seq
    }

    /// Whether nothing goes on without a person.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck || self.is_over() && !self.unread.is_empty()
    }

    /// Whether there was work, and none is left.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_over() && self.unread.is_empty()
    }

    fn is_over(&self) -> bool {
        let Counts { available, claimed, in_progress, done, failed, .. } = self.counts;
        available + claimed + in_progress == 0 && done + failed > 0
    }

    pub(crate) fn notice(&self, kind: Kind, board: &str) -> Notice {
        let Counts { available, done, failed, .. } = self.counts;
        let (text, command) = match kind {
            Kind::Stuck if !self.is_stuck => {
                let unread: Vec<_> = self.unread.iter().map(ToString::to_string).collect();
                (format!("no task is left, but {}", unread.join(", and ")), "callboard status")
            }
            Kind::Stuck => (
                format!("{available} tasks are left, and none of them can go on"),
                "callboard status",
            ),
            _ if failed > 0 => {
                (format!("no work is left: {done} done, {failed} failed"), "callboard tasks")
            }
            _ => (format!("all work is done: {done} tasks"), "callboard status"),
        };
        Notice {
            id: format!(
                "{}/{}/{}",
                self.board_id,
                self.seq,
                if kind == Kind::Stuck { "stuck" } else { "finished" }
            ),
            kind,
            board: board.to_owned(),
            at: self.now,
            task: None,
            title: None,
            agent: None,
            person: None,
            asked: None,
            text,
            command: command.to_owned(),
        }
    }
}

/// The agents that have a task and gave no sign for long, with the time of their last one.
pub(crate) fn quiet(
    state: &State,
    now: Timestamp,
    board: &str,
) -> Vec<(AgentId, Timestamp, Notice)> {
    let is_quiet = |agent: &&Arc<Agent>| {
        !agent.current_tasks.is_empty() && now.since(agent.last_heartbeat) >= QUIET
    };
    let notice = |agent: &Arc<Agent>| {
        let task = agent.current_tasks.first();
        let title = task.and_then(|id| state.task(id)).map(|task| short(task.headline()));
        let minutes = now.since(agent.last_heartbeat) / MINUTE;
        let notice = Notice {
            id: format!("{}/{}/quiet/{}", state.board().board_id, state.seq(), agent.id),
            kind: Kind::Quiet,
            board: board.to_owned(),
            at: now,
            title,
            agent: Some(agent.id.to_string()),
            person: None,
            asked: None,
            text: format!("{} has given no sign for {minutes} minutes", agent.id),
            command: task
                .map_or_else(|| "callboard agents".to_owned(), |id| format!("callboard show {id}")),
            task: task.cloned(),
        };
        (agent.id.clone(), agent.last_heartbeat, notice)
    };
    state.agents().filter(is_quiet).map(notice).collect()
}
