//! What a person can do about what is shown: a letter each, and the operation behind it.

use serde_json::{Value, json};

use super::form::{Ask, Form, Purpose};
use super::place::Place;
use super::subject::{Subject, TaskSubject};
use crate::ops::{self, Operation};
use crate::state::agent::Role;
use crate::state::task::TaskStatus;

/// A call of an operation, and what is said once it is done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Act {
    pub operation: &'static str,
    pub arguments: Value,
    pub done: String,
}

impl Act {
    pub(super) fn of<O: Operation>(arguments: Value, done: impl Into<String>) -> Self {
        Self { operation: O::NAME, arguments, done: done.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Answer,
    Dismiss,
    Approve,
    Reject,
    Retry,
    Cancel,
    Stop,
    Message,
    Assign,
    Raise,
    Lower,
    Title,
    Diff,
    Undo,
    Add,
    Pause,
    Resume,
}

/// Something to be looked up before it can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Find {
    /// The agents to choose from.
    Agents,
    /// What would be taken back of the command of this event, or of the person's last command.
    Undoable(Option<u64>),
}

/// What an action leads to.
pub(super) enum Step {
    Act(Act),
    Ask(Ask),
    Form(Box<Form>),
    Open(Place),
    /// Asks what is to be taken back once it is known.
    Undo,
}

impl Action {
    pub(super) const ALL: [Self; 17] = [
        Self::Answer,
        Self::Dismiss,
        Self::Approve,
        Self::Reject,
        Self::Diff,
        Self::Retry,
        Self::Stop,
        Self::Cancel,
        Self::Assign,
        Self::Raise,
        Self::Lower,
        Self::Title,
        Self::Message,
        Self::Add,
        Self::Undo,
        Self::Pause,
        Self::Resume,
    ];

    pub(super) fn key(self) -> char {
        match self {
            Self::Answer => 'a',
            Self::Dismiss | Self::Diff => 'd',
            Self::Approve => 'y',
            Self::Reject => 'x',
            Self::Retry => 'r',
            Self::Cancel => 'c',
            Self::Stop => 's',
            Self::Message => 'm',
            Self::Assign => 'w',
            Self::Raise => '+',
            Self::Lower => '-',
            Self::Title => 'e',
            Self::Undo => 'u',
            Self::Add => 'n',
            Self::Pause | Self::Resume => 'p',
        }
    }

    /// What the hints at the foot call it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Dismiss => "dealt with",
            Self::Approve => "approve",
            Self::Reject => "send back",
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Stop => "stop",
            Self::Message => "message",
            Self::Assign => "assign",
            Self::Raise => "sooner",
            Self::Lower => "later",
            Self::Title => "title",
            Self::Diff => "diff",
            Self::Undo => "undo",
            Self::Add => "new task",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    /// What the help says of it. None if that of another names it, too.
    pub(super) fn help(self) -> Option<&'static str> {
        Some(match self {
            Self::Answer => "answer a question, or a message",
            Self::Dismiss => "mark a message as dealt with, without an answer",
            Self::Approve => "approve the result of a task in review",
            Self::Reject => "send a task in review back, with a reason",
            Self::Retry => "make a failed or cancelled task available again",
            Self::Cancel => "cancel a task",
            Self::Stop => "stop an agent: ask it to, or release its tasks at once",
            Self::Message => "write to an agent, to who holds a task, or to anybody",
            Self::Assign => "keep a task for an agent",
            Self::Raise => "raise a task's priority; - lowers it",
            Self::Title => "change a task's title",
            Self::Diff => "show what the work on a task has changed",
            Self::Undo => "take back your last command; in 4 that of the event",
            Self::Add => "add a task",
            Self::Pause => "pause all claims, or allow them again",
            Self::Lower | Self::Resume => return None,
        })
    }

    /// Whether there is something here that it can be done to, by this role.
    pub(super) fn fits(self, about: Option<&Subject>, role: Role, is_paused: bool) -> bool {
        self.is_allowed(role)
            && match self {
                Self::Add | Self::Message | Self::Undo => true,
                Self::Pause => !is_paused,
                Self::Resume => is_paused,
                _ => about.is_some_and(|about| self.is_about(about)),
            }
    }

    fn is_allowed(self, role: Role) -> bool {
        let is_leaders = matches!(
            self,
            Self::Retry
                | Self::Cancel
                | Self::Stop
                | Self::Assign
                | Self::Undo
                | Self::Pause
                | Self::Resume
        );
        match role {
            Role::Leader => true,
            Role::Worker => !is_leaders,
            Role::Observer => self == Self::Diff,
        }
    }

    fn is_about(self, about: &Subject) -> bool {
        match about {
            Subject::Message { is_question, .. } => match self {
                Self::Answer => true,
                Self::Dismiss => !is_question,
                _ => false,
            },
            Subject::Agent { .. } => self == Self::Stop,
            Subject::Task(task) => self.suits(task),
        }
    }

    fn suits(self, task: &TaskSubject) -> bool {
        let status = task.status;
        match self {
            Self::Approve | Self::Reject => status == TaskStatus::Review,
            Self::Retry => matches!(status, TaskStatus::Failed | TaskStatus::Cancelled),
            Self::Cancel => status.is_unfinished() || status == TaskStatus::Failed,
            Self::Assign => status == TaskStatus::Available,
            Self::Diff => status != TaskStatus::Available || task.attempt.is_some_and(|at| at > 0),
            Self::Stop => status.is_held() && task.agent.is_some(),
            Self::Raise | Self::Lower => status.is_unfinished() && task.priority.is_some(),
            Self::Title => status.is_unfinished(),
            _ => false,
        }
    }

    /// What is done, or asked before it is done. None if it does not fit what it is about.
    pub(super) fn step(self, about: Option<&Subject>) -> Option<Step> {
        match (self, about) {
            (Self::Add, _) => Some(Step::Form(Form::empty(Purpose::Add))),
            (Self::Pause, _) => Some(Step::Form(Form::empty(Purpose::Pause))),
            (Self::Resume, _) => {
                Some(Step::Act(Act::of::<ops::ResumeBoard>(json!({}), "claims are allowed again")))
            }
            (Self::Answer, Some(Subject::Message { name, from, text, options, .. })) => {
                let (name, from, text) = (name.clone(), from.clone(), text.clone());
                let options = options.clone();
                Some(Step::Form(Form::empty(Purpose::Answer { name, from, text, options })))
            }
            (Self::Dismiss, Some(Subject::Message { name, .. })) => {
                let arguments = json!({"acknowledge": [name]});
                let done = format!("{name} is dealt with");
                Some(Step::Act(Act::of::<ops::GetMessages>(arguments, done)))
            }
            (Self::Stop, Some(Subject::Agent { id, holds })) => {
                Some(Step::Ask(Ask::to_stop(id.as_str(), holds.as_deref())))
            }
            (Self::Message, about) => {
                let to = about.and_then(Subject::agent).map(|agent| agent.to_string());
                let purpose = to.map_or(Purpose::Recipient, |to| Purpose::Message { to });
                Some(Step::Form(Form::empty(purpose)))
            }
            (Self::Undo, _) => Some(Step::Undo),
            (_, Some(Subject::Task(task))) => self.step_of_task(task),
            _ => None,
        }
    }

    /// The priority that the task gets, if this changes it.
    pub(super) fn new_priority(self, task: &TaskSubject) -> Option<u8> {
        let priority = task.priority?;
        match self {
            Self::Raise => Some(priority.saturating_sub(1).max(1)),
            Self::Lower => Some((priority + 1).min(10)),
            _ => None,
        }
    }

    fn step_of_task(self, task: &TaskSubject) -> Option<Step> {
        let id = task.id.as_str();
        Some(match self {
            Self::Approve => {
                let arguments = json!({"task_id": id, "attempt": task.attempt});
                let done = format!("{} is approved", task.name);
                Step::Act(Act::of::<ops::ApproveTask>(arguments, done))
            }
            Self::Reject => Step::Form(Form::empty(Purpose::Reject(task.clone()))),
            Self::Retry => {
                let done = format!("{} is available again", task.name);
                Step::Act(Act::of::<ops::RetryTask>(json!({"task_id": id}), done))
            }
            Self::Cancel => Step::Ask(Ask::to_cancel(task)),
            Self::Stop => {
                Step::Ask(Ask::to_stop(task.agent.as_ref()?.as_str(), Some(&task.said())))
            }
            Self::Assign => Step::Form(Form::empty(Purpose::Assign(task.clone()))),
            Self::Raise | Self::Lower => Step::Act(priority(task, self.new_priority(task)?)),
            Self::Title => Step::Form(Form::with(Purpose::Title(task.clone()), &task.title)),
            Self::Diff => Step::Open(Place::Diff(task.id.clone())),
            _ => return None,
        })
    }
}

fn priority(task: &TaskSubject, wanted: u8) -> Act {
    let done = format!("{} has priority {wanted}", task.name);
    Act::of::<ops::UpdateTask>(json!({"task_id": task.id, "priority": wanted}), done)
}
