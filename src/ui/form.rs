//! What is asked before something is done: a text, or which of several things.

use crossterm::event::KeyEvent;
use ratatui::style::Style;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use serde_json::json;

use super::action::{Act, Action};
use super::choice::{Candidate, Choice};
use super::drafts::Draft;
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
    /// The names that can be chosen instead of being typed whole.
    pub choice: Option<Choice>,
    /// The text that it opened with, such as the title that is to be changed.
    given: String,
}

/// What comes of a text.
pub(super) enum Done {
    Act(Act),
    /// Another text is needed.
    Form(Box<Form>),
}

/// A command that can be taken back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undoable {
    /// One of its events
    pub seq: u64,
    /// What it did, a line each
    pub did: Vec<String>,
    /// What stays as it is, and why
    pub stays: Vec<String>,
}

/// What a text is for, and what it is about.
pub(super) type Topic = (Action, String);

/// What a text is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    Answer {
        name: String,
        from: AgentId,
        text: String,
        options: Vec<String>,
    },
    Reject(TaskSubject),
    Message {
        to: String,
    },
    /// To whom a message goes.
    Recipient,
    Assign(TaskSubject),
    Title(TaskSubject),
    Add,
    Pause,
}

impl Purpose {
    fn topic(&self) -> Topic {
        let of = |task: &TaskSubject| task.id.to_string();
        match self {
            Self::Answer { name, .. } => (Action::Answer, name.clone()),
            Self::Reject(task) => (Action::Reject, of(task)),
            Self::Message { to } => (Action::Message, to.clone()),
            Self::Recipient => (Action::Message, String::new()),
            Self::Assign(task) => (Action::Assign, of(task)),
            Self::Title(task) => (Action::Title, of(task)),
            Self::Add => (Action::Add, String::new()),
            Self::Pause => (Action::Pause, String::new()),
        }
    }

    /// What there is to choose from, if these agents are known.
    pub(super) fn candidates(&self, agents: &[Candidate]) -> Vec<Candidate> {
        let is_message = matches!(self, Self::Recipient);
        let addresses = Candidate::addresses().filter(|_| is_message);
        agents.iter().cloned().chain(addresses).collect()
    }

    pub(super) fn is_of_agents(&self) -> bool {
        matches!(self, Self::Recipient | Self::Assign(_))
    }
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

    pub(super) fn to_undo(undoable: &Undoable) -> Self {
        let did = undoable.did.iter().map(|line| format!("\n  {line}"));
        let stays = undoable.stays.iter().map(|line| format!("\n  stays: {line}"));
        let undo = Act::of::<ops::Undo>(json!({"seq": undoable.seq}), "it is taken back");
        Self {
            question: did.chain(stays).fold("Take this back?".to_owned(), |all, line| all + &line),
            choices: vec![('y', "yes", undo)],
        }
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
        let given = harmless(text).replace('\n', " ");
        Box::new(Self { purpose, area: area(&given), choice: None, given })
    }

    /// Takes up a text that was typed before.
    pub(super) fn go_on_with(&mut self, text: &str) {
        self.area = area(text);
    }

    pub(super) fn clear(&mut self) {
        self.area.select_all();
        self.area.cut();
        self.choice.iter_mut().for_each(Choice::typed);
    }

    /// Types a key into the text.
    pub(super) fn input(&mut self, key: KeyEvent) {
        if self.area.input(key) {
            self.choice.iter_mut().for_each(Choice::typed);
        }
    }

    /// Moves the cursor among the names.
    pub(super) fn step(&mut self, is_down: bool) {
        let typed = self.typed();
        self.choice.iter_mut().for_each(|choice| choice.step(&typed, is_down));
    }

    pub(super) fn topic(&self) -> Topic {
        self.purpose.topic()
    }

    fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub(super) fn typed(&self) -> String {
        self.text().trim().to_owned()
    }

    /// What was typed; empty if nothing was changed.
    pub(super) fn draft(&self) -> Draft {
        let text = Some(self.text()).filter(|text| *text != self.given);
        Draft { topic: self.topic(), text: text.unwrap_or_default() }
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
            Purpose::Recipient => "Message to whom?".to_owned(),
            Purpose::Assign(task) => format!("Keep {} for which agent?", task.said()),
            Purpose::Title(task) => format!("New title of {}", task.name),
            Purpose::Add => "New task: what is to be done?".to_owned(),
            Purpose::Pause => "Pause all claims: why? (may be empty)".to_owned(),
        }
    }

    /// Whether the text may have several lines.
    pub(super) fn is_tall(&self) -> bool {
        !self.purpose.is_of_agents() && !matches!(self.purpose, Purpose::Title(_) | Purpose::Pause)
    }

    /// Text that comes in one piece, from a clipboard.
    pub(super) fn paste(&mut self, text: &str) {
        let text = harmless(text);
        let text = if self.is_tall() { text } else { text.replace('\n', " ") };
        self.area.insert_str(text);
        self.choice.iter_mut().for_each(Choice::typed);
    }

    /// What is to be done with the text. None if there is none and one is needed.
    pub(super) fn done(&self) -> Option<Done> {
        let typed = self.typed();
        let text = match &self.choice {
            Some(choice) => choice.name(&typed)?,
            None => typed,
        };
        if text.is_empty() && self.purpose != Purpose::Pause {
            return None;
        }
        Some(Done::Act(match &self.purpose {
            Purpose::Recipient => {
                return Some(Done::Form(Self::empty(Purpose::Message { to: text })));
            }
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
        }))
    }
}

/// A field with this text, and the cursor behind it.
fn area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_cursor_line_style(Style::new());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}
