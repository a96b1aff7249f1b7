use std::num::NonZeroU32;
use std::process::ExitCode;

use super::print::{Page, Tone, harmless, listed};
use super::wording::Wording;
use super::{Outcome, Session, read_input};
use crate::ops::{self, get_messages, send_message};
use crate::state::message::MessageKind;

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
    /// Recipient: an agent's id, role:leader, role:worker, task:ID (whoever holds that task), all,
    /// or human
    to: String,
    /// Text of the message; `-` reads standard input
    text: String,
    /// Ask for an answer
    #[arg(long)]
    request: bool,
    /// Id of the task that the message is about
    #[arg(long, value_name = "ID")]
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
    text: String,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { done, all, limit } = arguments;
    let query = get_messages::Params { acknowledge: done, all, limit, ..Default::default() };
    let reply = session.ask::<ops::GetMessages>(&query)?;
    session.show(reply.json(), |page| list(page, &reply, &session.wording))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn send(session: &Session, arguments: Send) -> Outcome {
    let Send { to, text, request, task, key } = arguments;
    sent(
        session,
        &send_message::Params {
            to: Some(to),
            text: given(text),
            kind: Some(if request { MessageKind::Request } else { MessageKind::Inform }),
            task_id: task,
            idempotency_key: key,
            ..Default::default()
        },
    )
}

pub(super) fn reply(session: &Session, arguments: Reply) -> Outcome {
    let Reply { id, text } = arguments;
    sent(
        session,
        &send_message::Params { reply_to: Some(id), text: given(text), ..Default::default() },
    )
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

fn list(page: &mut Page, reply: &get_messages::Reply, wording: &Wording) {
    for id in &reply.not_kept {
        let all = wording.line_of_agent("messages --all");
        page.line(format_args!("{id}: no such message is kept; `{all}` has those that are"));
    }
    if reply.messages.is_empty() {
        page.line("no unread messages");
    }
    for one in &reply.messages {
        let about = one.task_id.as_ref().map(|task| format!(" about {task}")).unwrap_or_default();
        let answered =
            one.reply_to.as_ref().map(|id| format!(" in answer to {id}")).unwrap_or_default();
        let read = if one.unread { "" } else { ", dealt with" };
        let (kind, when) = (one.kind.as_str(), page.when(one.sent_at));
        let head = format!("{} {kind} from {}{about}{answered} {when}{read}", one.id, one.from);
        page.field(&harmless(&head), &one.text);
    }
    if reply.unread != 0 {
        let line = |words| wording.line_of_agent(words);
        page.line(format_args!(
            "answer with `{}`; `{}` puts one away",
            line("reply ID TEXT"),
            line("messages --done ID")
        ));
    }
}
