//! Screens in a terminal.

pub(crate) mod first;
