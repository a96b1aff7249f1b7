//! Runs and sessions: in the core alone, and through real processes.

mod processes;
mod rules;
