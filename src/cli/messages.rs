use std::collections::HashMap;
use std::num::NonZeroU32;
use std::process::ExitCode;

use serde_json::json;

use super::print::{Page, Tone, harmless, headline, listed};
use super::wording::Wording;
use super::{Declined, Outcome, REFUSED, Session, read_input, usage_error};
use crate::ops::{self, get_messages, send_message};
use crate::state::attention::ForHuman;
use crate::state::id::TaskId;
use crate::state::message::{Message, MessageKind};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Also list messages that have been dealt with, after the unread ones
    #[arg(long)]
    all: bool,
    /// Mark this message as dealt with, without an answer; may be repeated
    #[arg(long, value_name = "ID")]
    done: Vec<String>,
    /// List at most N
    #[arg(long, value_name = "N", value_parser = super::page_size())]
    limit: Option<NonZeroU32>,
}

#[derive(clap::Args)]
pub(super) struct Send {
    /// Recipient: an agent's id, role:leader, role:worker, task:TASK (the agent that holds it), all,
    /// or human
    to: String,
    /// Text of the message; `-` reads standard input
    #[arg(required = true)]
    text: Vec<String>,
    /// Ask for an answer
    #[arg(long)]
    request: bool,
    /// The task that the message is about
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Idempotency key: repeating the command with it sends nothing
    #[arg(long)]
    key: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct Reply {
    /// Id of the message, as `callboard messages` lists it
    id: String,
    /// Text of the answer; `-` reads standard input
    #[arg(required = true)]
    text: Vec<String>,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  callboard answer                      # the questions that wait
  callboard answer Q3 \"Keep the old syntax\"
  callboard answer Q3 2                 # the second of the answers that it offers
  callboard answer \"Tabs\"             # if one question waits")]
pub(super) struct Answer {
    /// The question, as Q3, unless one alone waits, and the answer
    #[arg(value_name = "[Q3] TEXT")]
    words: Vec<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { done, all, limit } = arguments;
    let query = get_messages::Params { acknowledge: done, all, limit, ..Default::default() };
    let reply = session.ask::<ops::GetMessages>(&query)?;
    let tasks: Vec<_> = reply.messages.iter().filter_map(|one| one.task_id.clone()).collect();
    let names = if session.json { HashMap::new() } else { session.called(&tasks) };
    session.show(reply.json(), |page| list(page, &reply, &session.wording, &names))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn send(session: &Session, arguments: Send) -> Outcome {
    let Send { to, text, request, task, key } = arguments;
    let to = match to.strip_prefix("task:") {
        Some(task) => format!("task:{}", session.task(task)?.id),
        None => session.recipient(to)?,
    };
    let task_id = session.task_id(task.as_deref())?;
    sent(
        session,
        &send_message::Params {
            to: Some(to),
            text: given(text.join(" ")),
            kind: Some(if request { MessageKind::Request } else { MessageKind::Inform }),
            task_id,
            idempotency_key: key,
            ..Default::default()
        },
    )
}

pub(super) fn reply(session: &Session, arguments: Reply) -> Outcome {
    let Reply { id, text } = arguments;
    sent(
        session,
        &send_message::Params {
            reply_to: Some(id),
            text: given(text.join(" ")),
            ..Default::default()
        },
    )
}

pub(super) fn answer(session: &Session, arguments: Answer) -> Outcome {
    let open = open_questions(session)?;
    let mut words = arguments.words;
    words.retain(|word| !word.trim().is_empty());
    let named = named(session, &open, &words)?;
    let is_named = named.is_some();
    let name = match (named, open.as_slice()) {
        (Some(name), _) => name,
        (None, [one]) if !words.is_empty() => one.question.clone().unwrap_or_default(),
        _ => return waiting(session, &open, !words.is_empty()),
    };
    let words = &words[usize::from(is_named)..];
    if words.is_empty() {
        usage_error(format!("`callboard answer {name} TEXT`: the answer is missing"));
    }
    let text = given(words.join(" "));
    let asked = open.iter().find(|one| one.question.as_deref() == Some(&name));
    let chosen = || {
        let number: usize = text.trim().parse().ok()?;
        asked?.options.get(number.checked_sub(1)?).cloned()
    };
    let text = chosen().unwrap_or(text);
    let request = send_message::Params { reply_to: Some(name), text, ..Default::default() };
    let reply = session.ask::<ops::SendMessage>(&request)?;
    session.show(reply.json(), |page| {
        let name = request.reply_to.as_deref().unwrap_or_default();
        let asked = asked.map(|one| format!(" ({}: {})", one.from, headline(&one.text)));
        let told = format!("{name}{}: {}", asked.unwrap_or_default(), request.text);
        page.marked("answered", Tone::Good, harmless(&told));
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The question that the first of several words names: `Q3`, the agent that asks, or a number, of
/// the question or of the task that it is about. `None` if the words are the answer to the one
/// question that waits.
fn named(session: &Session, open: &[ForHuman], words: &[String]) -> anyhow::Result<Option<String>> {
    let Some(first) = words.first() else { return Ok(None) };
    if Message::number_of(first).is_some() {
        return Ok(Some(first.to_uppercase()));
    }
    let (first, is_alone) = (first.trim_start_matches('@'), words.len() == 1);
    let number = first.strip_prefix('#').unwrap_or(first).parse::<u64>().ok();
    let asked_by = |one: &&ForHuman| one.from.as_str() == first;
    let mut found: Vec<&ForHuman> = open.iter().filter(asked_by).collect();
    if let Some(number) = number.filter(|_| !is_alone) {
        let numbered = format!("Q{number}");
        let task = session.task(&number.to_string()).ok();
        let is_it = |one: &&ForHuman| one.question.as_ref() == Some(&numbered);
        let is_about = |one: &&ForHuman| task.as_ref().map(|task| &task.id) == one.task_id.as_ref();
        found = open.iter().filter(is_it).collect();
        if found.is_empty() && task.is_some() {
            found = open.iter().filter(is_about).collect();
        }
    }
    match found.as_slice() {
        [one] => Ok(one.question.clone()),
        [] if is_alone || number.is_none() => Ok(None),
        [] => {
            let why = format!("no question {first} waits; `callboard answer` lists those that do");
            Err(Declined(anyhow::anyhow!(why)).into())
        }
        several => {
            let names: Vec<_> = several.iter().filter_map(|one| one.question.clone()).collect();
            let why = format!("{first} has asked {}; say which", names.join(", "));
            Err(Declined(anyhow::anyhow!(why)).into())
        }
    }
}

/// The oldest questions that wait for an answer. Reading the inbox would mark answers in it as read.
pub(super) fn open_questions(session: &Session) -> anyhow::Result<Vec<ForHuman>> {
    let mut status = session.call("get_status", json!({}))?;
    let open: Vec<ForHuman> =
        serde_json::from_value(status["for_human"].take()).unwrap_or_default();
    Ok(open.into_iter().filter(|one| one.question.is_some()).collect())
}

pub(super) fn waiting(session: &Session, open: &[ForHuman], is_answer: bool) -> Outcome {
    session.show(&json!({"questions": open}), |page| {
        if open.is_empty() {
            page.line("no question waits for an answer");
        }
        for one in open {
            let name = one.question.as_deref().unwrap_or_default();
            page.field(&harmless(&format!("{name} from {}", one.from)), &one.text);
            for (number, option) in (1..).zip(&one.options) {
                page.line(harmless(&format!("  {number}. {option}")));
            }
        }
        if !open.is_empty() {
            let name = open[0].question.as_deref().unwrap_or_default();
            let command = session.wording.command(&format!("answer {name} TEXT"));
            page.line(format_args!("answer with {command}"));
        }
    })?;
    let is_unclear = is_answer && !open.is_empty();
    Ok(if is_unclear { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

fn given(text: String) -> String {
    if text == "-" { read_input("-") } else { text }
}

fn sent(session: &Session, request: &send_message::Params) -> Outcome {
    let reply = session.ask::<ops::SendMessage>(request)?;
    session.show(reply.json(), |page| {
        let to = format!("to {} ({})", addressed(&reply), reply.message_id);
        page.marked("sent", Tone::Good, harmless(&to));
        page.field("not to", listed(&reply.full));
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Whom the message is for; of a group, how many readers that are.
fn addressed(reply: &send_message::Reply) -> String {
    let readers = match reply.recipients {
        1 => "one reader".to_owned(),
        readers => format!("{readers} readers"),
    };
    match &reply.to {
        Some(to) if to == "all" || to.contains(':') => format!("{to}, {readers}"),
        Some(to) => to.clone(),
        None => readers,
    }
}

fn list(
    page: &mut Page,
    reply: &get_messages::Reply,
    wording: &Wording,
    names: &HashMap<TaskId, String>,
) {
    let name = |id: &TaskId| names.get(id).cloned().unwrap_or_else(|| id.to_string());
    for id in &reply.not_kept {
        let all = wording.line_of_agent("messages --all");
        page.line(format_args!("{id}: no such message is kept; `{all}` has those that are"));
    }
    if reply.messages.is_empty() {
        page.line("no unread messages");
    }
    for one in &reply.messages {
        let about =
            one.task_id.as_ref().map(|task| format!(" about {}", name(task))).unwrap_or_default();
        let answered =
            one.reply_to.as_ref().map(|id| format!(" in answer to {id}")).unwrap_or_default();
        let read = if one.unread { "" } else { ", dealt with" };
        let (kind, when) = (one.kind.as_str(), page.when(one.sent_at));
        let id = one.question.as_deref().unwrap_or(one.id.as_str());
        let from = one.person.as_deref().unwrap_or(one.from.as_str());
        let head = format!("{id} {kind} from {from}{about}{answered} {when}{read}");
        page.field(&harmless(&head), &one.text);
        for (number, option) in (1..).zip(&one.options) {
            page.line(harmless(&format!("  {number}. {option}")));
        }
    }
    if reply.unread != 0 {
        let line = |words| wording.line_of_agent(words);
        page.line(format_args!(
            "answer with `{}`; `{}` puts one away",
            line("answer ID TEXT"),
            line("messages --done ID")
        ));
    }
}
