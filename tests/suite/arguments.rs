//! What callers pass as arguments is understood, or refused in a line that says what is wanted.

mod calls;
mod forms;
mod names;
mod slips;
mod wrong;
