//! The state of the screen, and what keys and news do to it.

use super::action::Act;
use super::content::Content;
use super::first::Words;
use super::form::{Ask, Form};
use super::opened::Opened;
use super::place::Place;
use super::subject::Subject;
use crate::state::agent::Role;
use crate::state::time::Timestamp;
use crate::view::Tone;

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
}

/// What a key asks for, beyond the screen.
#[derive(Debug, PartialEq)]
pub(crate) enum Wish {
    Quit,
    /// Another place is looked at.
    Look,
    Act(Act),
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
    /// Calls that have no answer yet.
    pub(super) pending: usize,
    pub(super) size: (u16, u16),
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
            pending: 0,
            size,
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
        }
    }

    pub(crate) fn lose(&mut self, why: String) {
        self.lost = Some(why);
    }

    /// Takes the answer to a call.
    pub(crate) fn answered(&mut self, answer: Result<String, String>) {
        self.pending = self.pending.saturating_sub(1);
        self.notice = Some(match answer {
            Ok(done) => (Tone::Good, done),
            Err(refusal) => (Tone::Bad, refusal),
        });
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
