//! `callboard history`: past events, newest first.

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use serde_json::{Value, json};

use super::{Outcome, Session, runtime, snapshot, usage_error, watch};
use crate::participant::Stay;
use crate::participant::board_time;
use crate::state::event::KINDS;
use crate::state::limit;
use crate::view::{Names, is_noise};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// List only what this agent did and what is about it; `human` is the person
    #[arg(long, value_name = "AGENT")]
    of: Option<String>,
    /// List only events of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// List only events of this kind; may be repeated
    #[arg(long, value_parser = PossibleValuesParser::new(KINDS), hide_possible_values = true)]
    kind: Vec<String>,
    /// List only events after event SEQ, or since a time: 2026-03-01T12:00, 2026-03-01,
    /// yesterday, or 30m, 2h, 3d for a span that ends now
    #[arg(long, value_name = "SEQ|TIME")]
    since: Option<String>,
    /// List only events before event SEQ, as for the next page
    #[arg(long, value_name = "SEQ")]
    before: Option<u64>,
    /// List at most N events
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    limit: usize,
    /// List signs of life, too, and what the board does by itself
    #[arg(long)]
    verbose: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let after = arguments.since.as_deref().and_then(|since| since.parse::<u64>().ok());
    let time = arguments.since.as_deref().filter(|_| after.is_none()).map(|since| {
        let now = board_time(session.dir());
        snapshot::moment(since, now).unwrap_or_else(|| {
            usage_error(format!("--since takes an event's number, {}", snapshot::MOMENT))
        })
    });
    let task_id = session.task_id(arguments.task.as_deref())?;
    let mut query = json!({
        "task_id": task_id, "agent": arguments.of, "kinds": arguments.kind, "since": time,
        "before_seq": arguments.before,
    });
    let (board, runtime) = (session.board(Stay::Brief)?, runtime()?);
    let (mut events, mut next, mut warning) = (Vec::new(), Value::Null, None);
    // A person who names kinds sees all of them, and a program sees everything.
    let is_all = arguments.verbose || session.json || !arguments.kind.is_empty();
    let mut names = Names::default();
    while events.len() < arguments.limit {
        query["limit"] = Value::from((arguments.limit - events.len()).min(limit::PAGE.max));
        let mut page = runtime.block_on(board.call("get_history", query.clone()))?;
        let found = page["events"].as_array_mut().map(std::mem::take).unwrap_or_default();
        if !session.json {
            runtime.block_on(names.learn(&board, &found));
        }
        let told = found.into_iter().filter(|event| is_all || !is_noise(event, &names));
        events.extend(told);
        next = page["next"].take();
        warning = warning.or_else(|| page.get("warning").cloned());
        if next.is_null() || after.is_some_and(|after| next.as_u64() <= Some(after + 1)) {
            next = Value::Null;
            break;
        }
        query["before_seq"] = next.clone();
    }
    events.retain(|event| after.is_none_or(|after| event["seq"].as_u64() > Some(after)));
    let mut reply = json!({"events": events});
    if !next.is_null() {
        reply["next"] = next.clone();
    }
    warning.into_iter().for_each(|warning| reply["warning"] = warning);
    session.show(&reply, |page| {
        events.iter().for_each(|event| watch::line::write_numbered(page, event, &names));
        if events.is_empty() {
            page.line("nothing has happened of that kind");
        }
        if let Some(next) = next.as_u64() {
            page.line(format_args!("there is more: --before {next}"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
