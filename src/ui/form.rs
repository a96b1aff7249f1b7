//! What is asked before something is done: a text, or which of several things.

use ratatui::style::Style;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use serde_json::json;

use super::action::Act;
use super::subject::TaskSubject;
use crate::harmless::shown::harmless;
use crate::ops;
use crate::state::id::AgentId;

/// A question with a letter for each answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask {
    pub question: String,
    pub choices: Vec<(char, &'static str, Act)>,
}

/// A text that is typed.
pub(super) struct Form {
    pub purpose: Purpose,
    pub area: TextArea<'static>,
}

/// What a text is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    Answer { name: String, from: AgentId, text: String, options: Vec<String> },
    Reject(TaskSubject),
    Message { to: String },
    Assign(TaskSubject),
    Title(TaskSubject),
    Add,
    Pause,
}

impl Ask {
    pub(super) fn to_cancel(task: &TaskSubject) -> Self {
        let done = format!("{} is cancelled", task.name);
        let cancel = Act::of::<ops::CancelTask>(json!({"task_id": task.id}), done);
        let holder = task.agent.as_ref().filter(|_| task.status.is_held());
        let by = holder.map(|agent| format!(" {agent} works on it.")).unwrap_or_default();
        let mut choices = vec![('y', "yes", cancel)];
        if let Some(agent) = holder {
            let arguments = json!({"task_id": task.id, "ask_owner": true});
            let done = format!("{agent} is asked to stop");
            choices.push((
                'a',
                "ask the agent to stop",
                Act::of::<ops::CancelTask>(arguments, done),
            ));
        }
        Self { question: format!("Cancel {}?{by}", task.said()), choices }
    }

    pub(super) fn to_stop(agent: &str, holds: Option<&str>) -> Self {
        let held = holds.map(|task| format!(" It works on {task}.")).unwrap_or_default();
        let act = |now: bool, done: &str| {
            let arguments = json!({"agent": agent, "now": now});
            Act::of::<ops::StopAgent>(arguments, format!("{agent} {done}"))
        };
        Self {
            question: format!("Stop {agent}?{held}"),
            choices: vec![
                ('a', "ask it to", act(false, "is asked to stop, and gets no more tasks")),
                ('n', "now: release its tasks", act(true, "has no tasks, and gets no more")),
            ],
        }
    }
}

impl Form {
    pub(super) fn empty(purpose: Purpose) -> Box<Self> {
        Self::with(purpose, "")
    }

    pub(super) fn with(purpose: Purpose, text: &str) -> Box<Self> {
        let mut area = TextArea::new(vec![harmless(text).replace('\n', " ")]);
        area.set_cursor_line_style(Style::new());
        area.set_wrap_mode(WrapMode::WordOrGlyph);
        area.move_cursor(CursorMove::End);
        Box::new(Self { purpose, area })
    }

    pub(super) fn title(&self) -> String {
        match &self.purpose {
            Purpose::Answer { name, text, options, .. } => {
                let numbered = options.iter().zip(1..);
                let offered: String =
                    numbered.map(|(option, number)| format!("\n{number}  {option}")).collect();
                format!("Answer {name}: {text}{offered}")
            }
            Purpose::Reject(task) => {
                format!("Send {} back: what is to be done better?", task.said())
            }
            Purpose::Message { to } => format!("Message to {to}"),
            Purpose::Assign(task) => format!("Keep {} for which agent?", task.said()),
            Purpose::Title(task) => format!("New title of {}", task.name),
            Purpose::Add => "New task: what is to be done?".to_owned(),
            Purpose::Pause => "Pause all claims: why? (may be empty)".to_owned(),
        }
    }

    /// Whether the text may have several lines.
    pub(super) fn is_tall(&self) -> bool {
        !matches!(self.purpose, Purpose::Assign(_) | Purpose::Title(_) | Purpose::Pause)
    }

    /// Text that comes in one piece, from a clipboard.
    pub(super) fn paste(&mut self, text: &str) {
        let text = harmless(text);
        let text = if self.is_tall() { text } else { text.replace('\n', " ") };
        self.area.insert_str(text);
    }

    /// What is to be done with the text. None if there is none and one is needed.
    pub(super) fn act(&self) -> Option<Act> {
        let text = self.area.lines().join("\n").trim().to_owned();
        if text.is_empty() && self.purpose != Purpose::Pause {
            return None;
        }
        Some(match &self.purpose {
            Purpose::Answer { name, from, options, .. } => {
                // The number of an answer that is offered stands for it.
                let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let option = number.and_then(|index| options.get(index));
                let arguments = json!({"reply_to": name, "text": option.unwrap_or(&text)});
                Act::of::<ops::SendMessage>(arguments, format!("{from} has your answer"))
            }
            Purpose::Reject(task) => {
                let arguments =
                    json!({"task_id": task.id, "reason": text, "attempt": task.attempt});
                Act::of::<ops::RejectTask>(arguments, format!("{} is sent back", task.name))
            }
            Purpose::Message { to } => {
                let arguments = json!({"to": to, "text": text});
                Act::of::<ops::SendMessage>(arguments, format!("sent to {to}"))
            }
            Purpose::Assign(task) => {
                let done = format!("{} is kept for {text}", task.name);
                Act::of::<ops::AssignTask>(json!({"task_id": task.id, "to": text}), done)
            }
            Purpose::Title(task) => {
                let arguments = json!({"task_id": task.id, "title": text});
                Act::of::<ops::UpdateTask>(arguments, format!("{} has a new title", task.name))
            }
            Purpose::Add => {
                Act::of::<ops::CreateTask>(json!({"description": text}), "the task is added")
            }
            Purpose::Pause => {
                let reason = Some(text).filter(|text| !text.is_empty());
                let done = "claims are paused; tasks in work go on";
                Act::of::<ops::PauseBoard>(json!({"reason": reason}), done)
            }
        })
    }
}
