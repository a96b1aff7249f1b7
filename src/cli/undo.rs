//! `callboard undo`: takes back what a command changed.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::print::Tone;
use super::{Declined, Outcome, Session, runtime, watch};
use crate::ops::{self, undo};
use crate::participant::Stay;
use crate::state::guard::HUMAN;
use crate::view::{Names, is_noise};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard undo\n  \
    callboard undo 412\n\n\
    Takes back what the command changed and nobody changed since, and lists the rest. Results, \
    messages and plans stay. `callboard history` shows the numbers of events.")]
pub(super) struct Arguments {
    /// An event of the command; without it, your last command is meant
    #[arg(value_name = "EVENT")]
    event: Option<u64>,
}

/// Events of a page of the history.
const LOOKED_AT: usize = 200;

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let seq = match arguments.event {
        Some(seq) => seq,
        None => last_of(session)?,
    };
    let params = undo::Params { seq, ..Default::default() };
    let reply = session.ask::<ops::Undo>(&params)?;
    let mut events = Vec::new();
    let mut names = Names::default();
    if !session.json {
        let asked = json!({"limit": reply.events.clamp(1, LOOKED_AT)});
        let mut page = session.call("get_history", asked)?;
        events = page["events"].as_array_mut().map(std::mem::take).unwrap_or_default();
        runtime()?.block_on(names.learn(&session.board(Stay::Brief)?, &events));
    }
    session.show(reply.json(), |page| {
        events.iter().rev().for_each(|event| watch::line::write_numbered(page, event, &names));
        for left in &reply.left {
            page.marked("stays:", Tone::Waiting, left);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The last event of the caller that is neither undone nor part of an undo.
fn last_of(session: &Session) -> anyhow::Result<u64> {
    let own = session.own_actors();
    let is_own = |event: &&Value| own.iter().any(|own| event["actor"] == own.as_str());
    let about = session.agent.as_deref().unwrap_or(HUMAN);
    let mut query = json!({"agent": about, "limit": LOOKED_AT});
    let (mut undone, mut undoing) = (Vec::new(), None);
    loop {
        let mut page = session.call("get_history", query.clone())?;
        let events = page["events"].as_array().into_iter().flatten();
        for event in events.filter(is_own) {
            let seq = event["seq"].as_u64().unwrap_or_default();
            let command = (event["writer"].clone(), event["at"].clone());
            if event["kind"] == "command_undone" {
                let end = |name: &str| event[name].as_u64().unwrap_or_default();
                undone.push(end("first")..=end("last"));
                undoing = Some(command);
            } else if event["kind"] != "board_created"
                && !is_noise(event, &Names::default())
                && undoing.as_ref() != Some(&command)
                && !undone.iter().any(|range| range.contains(&seq))
            {
                return Ok(seq);
            }
        }
        query["before_seq"] = page["next"].take();
        if query["before_seq"].is_null() {
            let why = "there is nothing of yours to undo; `callboard history` lists what others \
                       did, and `callboard undo EVENT` takes it back";
            return Err(Declined(anyhow::anyhow!(why)).into());
        }
    }
}
