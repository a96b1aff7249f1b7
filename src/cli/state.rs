//! `callboard state`: the whole state, now or at any earlier time, in the format of the state file.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use super::{Outcome, Session, print, say, snapshot, usage_error};
use crate::journal::sqlite::{self, SqliteJournal};
use crate::participant::{self, BoardError, CallError, archive, directory};
use crate::statefile;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Print the state after event SEQ, or at a time: 2026-03-01T12:00:00Z, or 30m, 2h, 3d to go
    /// back that far [default: now]
    #[arg(long, value_name = "SEQ|TIME")]
    at: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let dir = session.dir();
    if fs::symlink_metadata(dir).is_ok() {
        directory::inspect(dir).map_err(|error| CallError::from(BoardError::from(error)))?;
    }
    if !participant::is_begun(dir) {
        return Err(CallError::from(BoardError::Absent { dir: dir.to_owned() }).into());
    }
    let seq = match arguments.at.as_deref() {
        None => SqliteJournal::open(dir)?.head()?,
        Some(at) => match (at.parse(), snapshot::moment(at, participant::board_time(dir))) {
            (Ok(seq), _) => seq,
            (Err(_), Some(time)) => archive::seq_at(dir, time).map_err(CallError::from)?,
            (Err(_), None) => {
                usage_error(format!("--at takes an event's number, {}", snapshot::MOMENT))
            }
        },
    };
    let state = archive::state_at(dir, seq).map_err(CallError::from)?;
    if let Err(error) = sqlite::sync_log(dir) {
        say(&format!("callboard: a power loss may take back the last of this: {error}"));
    }
    let text = statefile::text_of(&state)?;
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        writeln!(out, "{}", print::harmless_json(&String::from_utf8_lossy(&text)))?;
    } else {
        out.write_all(&text)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
