//! `callboard ui`: the board in a terminal, drawn anew when something happens, with an action on one
//! letter each.
//!
//! [`screen`] is pure: what is shown, and what a key does to it. [`run`] waits for keys and news and
//! draws; the board is read and called elsewhere, so that neither waits for it.

mod action;
mod choice;
mod content;
mod drafts;
mod draw;
pub(crate) mod first;
mod form;
mod keys;
mod opened;
mod place;
mod run;
mod screen;
mod subject;
mod terminal;
mod views;

pub(crate) use action::{Act, Find};
pub(crate) use choice::Candidate;
pub(crate) use content::{AgentRow, Content, EventRow, Page, TaskRow};
pub(crate) use first::Line;
pub(crate) use form::Undoable;
pub(crate) use place::Place;
pub(crate) use run::{Doors, Errand, News, run};
pub(crate) use screen::{Screen, Spelling};
pub(crate) use subject::{Subject, TaskSubject};
pub(crate) use terminal::Terminal;

#[cfg(test)]
mod tests;
