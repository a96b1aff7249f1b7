//! Telling a person what waits for them: a program, the desktop or a webhook hears of each event
//! that asks for somebody, at least once and in order.
//!
//! The settings are the user's own and outside of any project, because they start processes and
//! agents can write in a board's directory. One process of a board has the turn; it makes notices
//! of events, keeps them in the user's ledger, and has each way deliver its own. Long-lived
//! processes wait for the turn; a short command starts `callboard notify deliver` behind it if
//! none has it.

mod channel;
mod deliver;
pub(crate) mod ledger;
pub(crate) mod notice;
pub(crate) mod settings;

pub(crate) use channel::deliver as attempt;
pub(crate) use deliver::Telling;
