//! The state of the screen, and what keys and news do to it.

use std::collections::VecDeque;

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::action::{Act, Action, Find};
use super::choice::{Candidate, Choice};
use super::content::Content;
use super::drafts::{Draft, Drafts};
use super::first::Words;
use super::form::{Ask, Form, Undoable};
use super::opened::Opened;
use super::place::Place;
use super::subject::Subject;
use crate::state::agent::Role;
use crate::state::id::TaskId;
use crate::state::time::Timestamp;
use crate::view::Tone;

/// Rows that a step of the wheel scrolls.
const WHEEL: isize = 3;
/// Places that are kept to go back to.
const KEPT: usize = 50;

/// What lies over the view.
pub(super) enum Over {
    Nothing,
    Help,
    Ask(Ask),
    Form(Box<Form>),
    /// The filter is typed.
    Filter,
    /// What would be taken back is looked up.
    Undo,
}

/// What a key asks for, beyond the screen.
#[derive(Debug, PartialEq)]
pub(crate) enum Wish {
    Quit,
    /// Another place is looked at.
    Look,
    Act(Act),
    Find(Find),
    /// The mouse is captured from now on, or not any more.
    Mouse(bool),
}

/// How times of day are told, and commands are spelled, for this board.
pub(crate) struct Spelling {
    pub clock: Box<dyn Fn(Timestamp) -> String + Send>,
    pub command: Box<dyn Fn(&str) -> String + Send>,
}

impl Spelling {
    fn words(&self) -> Words<'_> {
        Words { clock: &*self.clock, command: &*self.command, has_seconds: false }
    }
}

/// A call that has no answer yet.
struct Sent {
    number: u64,
    /// The text that is lost if the call is refused.
    draft: Option<Draft>,
}

/// A priority that a call asked for.
struct Asked {
    task: TaskId,
    wanted: u8,
    /// Number of the call.
    call: u64,
}

pub(crate) struct Screen {
    pub(super) over: Over,
    /// Said at the foot until the next key.
    pub(super) notice: Option<(Tone, String)>,
    /// Why the board cannot be read, while it cannot.
    pub(super) lost: Option<String>,
    pub(super) role: Role,
    pub(super) is_paused: bool,
    /// What waits for the person, as far as it is known.
    pub(super) waits: usize,
    /// Calls that have no answer yet, in their order.
    pending: VecDeque<Sent>,
    /// Number of calls that were made.
    sent: u64,
    /// Priorities that the views may not show yet.
    asked: Vec<Asked>,
    /// The agents that are known.
    agents: Vec<Candidate>,
    /// Texts that were typed and not sent.
    pub(super) drafts: Drafts,
    pub(super) size: (u16, u16),
    /// The line of the window that the rows begin on.
    pub(super) rows_from: u16,
    /// Whether the mouse is captured, so that the terminal selects no text with it.
    has_mouse: bool,
    spelling: Spelling,
    /// The place that is shown is the last.
    places: Vec<Opened>,
}

impl Screen {
    pub(crate) fn new(role: Role, size: (u16, u16), spelling: Spelling) -> Self {
        Self {
            over: Over::Nothing,
            notice: None,
            lost: None,
            role,
            is_paused: false,
            waits: 0,
            pending: VecDeque::new(),
            sent: 0,
            asked: Vec::new(),
            agents: Vec::new(),
            drafts: Drafts::default(),
            size,
            rows_from: 0,
            has_mouse: false,
            spelling,
            places: vec![Opened::new(Place::Board)],
        }
    }

    pub(super) fn here(&self) -> &Opened {
        &self.places[self.places.len() - 1]
    }

    pub(super) fn here_mut(&mut self) -> &mut Opened {
        let last = self.places.len() - 1;
        &mut self.places[last]
    }

    pub(crate) fn place(&self) -> &Place {
        &self.here().place
    }

    pub(super) fn subject(&self) -> Option<&Subject> {
        self.here().subject()
    }

    pub(crate) fn resize(&mut self, columns: u16, lines: u16) {
        self.size = (columns, lines);
        self.lay_out();
    }

    /// Takes what was read of a place, unless another is shown by now.
    pub(crate) fn show(&mut self, place: &Place, content: Content) {
        self.lost = None;
        if let Content::Board(board, _) | Content::Agents(board, _) = &content {
            self.is_paused = board.head.paused.is_some();
            self.waits = board.waits.total();
            if self.agents.is_empty() {
                self.agents = Candidate::there(board);
            }
        }
        if self.place() == place {
            self.here_mut().content = Some(content);
            self.lay_out();
        }
    }

    fn lay_out(&mut self) {
        let columns = usize::from(self.size.0);
        let words = self.spelling.words();
        if let Some(here) = self.places.last_mut() {
            here.lay_out(columns, words);
            self.asked.iter().for_each(|asked| here.set_priority(&asked.task, asked.wanted));
        }
    }

    /// Notes a call, with the text that it was made of.
    pub(super) fn act(&mut self, act: Act, draft: Option<Draft>) -> Wish {
        self.sent += 1;
        self.pending.push_back(Sent { number: self.sent, draft });
        Wish::Act(act)
    }

    /// Counts on from the priority that the last call asked for, whatever the views show.
    pub(super) fn count_on(&mut self, task: &TaskId, wanted: u8) {
        self.asked.retain(|asked| asked.task != *task);
        self.asked.push(Asked { task: task.clone(), wanted, call: self.sent });
        self.here_mut().set_priority(task, wanted);
    }

    /// Takes note that what is read from now on shows what the first `answered` calls did.
    pub(crate) fn catch_up(&mut self, answered: u64) {
        self.asked.retain(|asked| asked.call > answered);
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(crate) fn lose(&mut self, why: String) {
        self.lost = Some(why);
    }

    /// Opens a form, with the text that was left there, and the names that are known.
    pub(super) fn open_form(&mut self, mut form: Box<Form>) -> Option<Wish> {
        if let Some(text) = self.drafts.of(&form.topic()) {
            form.go_on_with(text);
            let told = "this is as you left it; Ctrl-U clears it".to_owned();
            self.notice = Some((Tone::Waiting, told));
        }
        let is_of_agents = form.purpose.is_of_agents();
        form.choice = is_of_agents.then(|| Choice::of(form.purpose.candidates(&self.agents)));
        self.over = Over::Form(form);
        is_of_agents.then_some(Wish::Find(Find::Agents))
    }

    pub(crate) fn know_agents(&mut self, agents: Vec<Candidate>) {
        self.agents = agents;
        if let Over::Form(form) = &mut self.over
            && let Some(choice) = &mut form.choice
        {
            choice.learn(form.purpose.candidates(&self.agents));
        }
    }

    /// Asks whether it is to be taken back, unless the person has turned away.
    pub(crate) fn ask_to_undo(&mut self, undoable: Result<Undoable, String>) {
        if !matches!(self.over, Over::Undo) {
            return;
        }
        self.over = Over::Nothing;
        match undoable {
            Ok(undoable) => self.over = Over::Ask(Ask::to_undo(&undoable)),
            Err(refusal) => self.notice = Some((Tone::Bad, refusal)),
        }
    }

    /// Whether the action can be done here.
    pub(super) fn fits(&self, action: Action) -> bool {
        let is_done = action == Action::Diff && matches!(self.place(), Place::Diff(_));
        !is_done && action.fits(self.subject(), self.role, self.is_paused)
    }

    /// Takes the answer to a call.
    pub(crate) fn answered(&mut self, answer: Result<String, String>) {
        let sent = self.pending.pop_front();
        self.notice = Some(match answer {
            Ok(done) => (Tone::Good, done),
            Err(refusal) => {
                sent.into_iter().for_each(|sent| self.take_back(sent));
                (Tone::Bad, refusal)
            }
        });
    }

    /// Forgets what a refused call asked for, and keeps the text that was typed for it.
    fn take_back(&mut self, refused: Sent) {
        refused.draft.into_iter().for_each(|draft| self.drafts.put_back(draft));
        let before = self.asked.len();
        self.asked.retain(|asked| asked.call != refused.number);
        if self.asked.len() < before {
            self.lay_out();
        }
    }

    pub(super) fn switch_mouse(&mut self) -> Wish {
        self.has_mouse = !self.has_mouse;
        let told = if self.has_mouse {
            "the mouse scrolls and chooses here; M gives it back to the terminal"
        } else {
            "the mouse is the terminal's again, and selects text"
        };
        self.notice = Some((Tone::Waiting, told.to_owned()));
        Wish::Mouse(self.has_mouse)
    }

    /// The wheel scrolls, and a click puts the cursor on a row. What lies over the view is for keys.
    pub(crate) fn mouse(&mut self, mouse: MouseEvent) {
        if !matches!(self.over, Over::Nothing) {
            return;
        }
        // The last line has the keys.
        let rows = self.rows_from..self.size.1.saturating_sub(1);
        match mouse.kind {
            MouseEventKind::ScrollDown => self.here_mut().step(WHEEL),
            MouseEventKind::ScrollUp => self.here_mut().step(-WHEEL),
            MouseEventKind::Down(MouseButton::Left) if rows.contains(&mouse.row) => {
                self.here_mut().click((mouse.row - rows.start).into());
            }
            _ => {}
        }
    }

    /// Goes to one of the views on the digits, where nothing is to go back to.
    pub(super) fn go(&mut self, place: Place) -> Option<Wish> {
        self.places.clear();
        self.places.push(Opened::new(place));
        Some(Wish::Look)
    }

    /// Opens what the cursor is on.
    pub(super) fn open(&mut self) -> Option<Wish> {
        let place = self.here().chosen()?.place()?;
        self.enter(place)
    }

    /// Opens a place from which Esc comes back.
    pub(super) fn enter(&mut self, place: Place) -> Option<Wish> {
        if self.places.len() >= KEPT {
            self.places.remove(0);
        }
        self.places.push(Opened::new(place));
        Some(Wish::Look)
    }

    /// Takes the filter away, or goes back to where the place was opened from, or to the first view.
    pub(super) fn back(&mut self) -> Option<Wish> {
        if !self.here().filter.is_empty() {
            self.here_mut().set_filter(String::new());
            return None;
        }
        if self.places.len() > 1 {
            self.places.pop();
            self.lay_out();
            return Some(Wish::Look);
        }
        if *self.place() == Place::Board { None } else { self.go(Place::Board) }
    }
}
