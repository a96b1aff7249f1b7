//! Runs and sessions: by the core alone, and through real processes.

mod processes;
mod rules;
