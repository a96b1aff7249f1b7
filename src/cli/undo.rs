//! `callboard undo`: takes back what a command changed.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::{Value, json};

use super::board::Board;
use super::print::{Page, Tone};
use super::{Declined, Outcome, Session, runtime, watch};
use crate::ops::{self, Operation, undo};
use crate::participant::Stay;
use crate::state::guard::HUMAN;
use crate::state::task::Named;
use crate::view::{Names, is_noise};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard undo\n  \
    callboard undo e412\n  \
    callboard undo '#12'\n  \
    callboard undo --dry-run\n\n\
    Takes back what the command changed and nobody changed since, and lists the rest. Results, \
    messages and plans stay. `callboard history` shows the numbers of events: 412 is event e412, \
    unless there is a task of that number, too.")]
pub(super) struct Arguments {
    /// An event of the command, or a task to which you did it last; without it, your last command
    /// is meant
    #[arg(value_name = "EVENT|TASK")]
    what: Option<String>,
    /// List what the command did and what would stay, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What a command did, and what of it would stay.
pub(super) struct Preview {
    pub seq: u64,
    /// Its events, the oldest first
    pub events: Vec<Value>,
    pub names: Names,
    /// What would stay as it is, and why
    pub left: Vec<String>,
    pub reply: Value,
}

impl Preview {
    /// Of the command of this event.
    pub(super) async fn of(board: &Board, seq: u64) -> anyhow::Result<Self> {
        let asked = json!({"seq": seq, "dry_run": true});
        let reply = board.call(ops::Undo::NAME, asked).await?;
        let told = undo::Reply::deserialize(&reply)?;
        let count = usize::try_from(told.last_seq - told.first_seq + 1).unwrap_or(LOOKED_AT);
        let asked = json!({"before_seq": told.last_seq + 1, "limit": count.min(LOOKED_AT)});
        let mut page = board.call("get_history", asked).await?;
        let mut events: Vec<_> =
            page["events"].as_array_mut().map(std::mem::take).unwrap_or_default();
        events.reverse();
        let mut names = Names::default();
        names.learn(board, &events).await;
        events.retain(|event| !is_noise(event, &names));
        Ok(Self { seq, events, names, left: told.left, reply })
    }
}

/// Events of a page of the history.
const LOOKED_AT: usize = 200;

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let board = session.board(Stay::Brief)?;
    let runtime = runtime()?;
    let seq = match arguments.what.as_deref() {
        None => runtime.block_on(last_of(session, &board, None))?,
        Some(what) => match meant(session, what)? {
            Meant::Event(seq) => seq,
            Meant::Task(task) => runtime.block_on(last_of(session, &board, Some(&task)))?,
        },
    };
    if arguments.dry_run {
        let preview = runtime.block_on(Preview::of(&board, seq))?;
        let left: Vec<_> = preview.left.iter().map(|one| session.numbered(one)).collect();
        session.show(&preview.reply, |page| {
            page.line("would take back:");
            write(page, preview.events.iter(), &preview.names, &left);
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let params = undo::Params { seq, ..Default::default() };
    let reply = session.ask::<ops::Undo>(&params)?;
    let mut events = Vec::new();
    let mut names = Names::default();
    if !session.json {
        let asked = json!({"limit": reply.events.clamp(1, LOOKED_AT)});
        let mut page = session.call("get_history", asked)?;
        events = page["events"].as_array_mut().map(std::mem::take).unwrap_or_default();
        runtime.block_on(names.learn(&board, &events));
    }
    let left: Vec<_> = reply.left.iter().map(|one| session.numbered(one)).collect();
    session.show(reply.json(), |page| write(page, events.iter().rev(), &names, &left))?;
    Ok(ExitCode::SUCCESS)
}

fn write<'e>(
    page: &mut Page,
    events: impl Iterator<Item = &'e Value>,
    names: &Names,
    left: &[String],
) {
    events.for_each(|event| watch::line::write_numbered(page, event, names));
    left.iter().for_each(|left| page.marked("stays:", Tone::Waiting, left));
}

/// What is to be taken back.
enum Meant {
    Event(u64),
    Task(Named),
}

/// A number is an event's if no task has it: which of the two is meant is not guessed.
fn meant(session: &Session, what: &str) -> anyhow::Result<Meant> {
    if let Some(seq) = what.strip_prefix(['e', 'E']).and_then(|seq| seq.parse().ok()) {
        return Ok(Meant::Event(seq));
    }
    let Ok(seq) = what.parse::<u64>() else { return Ok(Meant::Task(session.task(what)?)) };
    let Ok(task) = session.exactly(&format!("#{seq}")) else { return Ok(Meant::Event(seq)) };
    let [event, last] = [format!("undo e{seq}"), format!("undo '#{seq}'")];
    let [event, last] = [event, last].map(|line| session.wording.command(&line));
    let why = format!(
        "{seq} is an event and a task: {event} takes back the command of the event, {last} what you \
         did last to {task}"
    );
    Err(Declined(anyhow::anyhow!(why)).into())
}

/// The last event of the caller that is neither undone nor part of an undo, of all or those that
/// name a task.
pub(super) async fn last_of(
    session: &Session,
    board: &Board,
    task: Option<&Named>,
) -> anyhow::Result<u64> {
    let own = session.own_actors();
    let is_own = |event: &&Value| own.iter().any(|own| event["actor"] == own.as_str());
    let about = session.agent.as_deref().unwrap_or(HUMAN);
    let mut query = json!({"agent": about, "limit": LOOKED_AT});
    if let Some(task) = task {
        query["task_id"] = task.id.as_str().into();
    }
    let (mut undone, mut undoing) = (Vec::new(), None);
    loop {
        let mut page = board.call("get_history", query.clone()).await?;
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
            let why = match task {
                Some(task) => format!(
                    "you did nothing to {task} that can be taken back; `callboard log {}` lists \
                     what others did, and `callboard undo EVENT` takes it back",
                    task.short()
                ),
                None => "there is nothing of yours to undo; `callboard history` lists what others \
                         did, and `callboard undo EVENT` takes it back"
                    .to_owned(),
            };
            return Err(Declined(anyhow::anyhow!(why)).into());
        }
    }
}
