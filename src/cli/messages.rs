use std::process::ExitCode;

use serde_json::{Value, json};

use super::print::{Page, Tone, harmless, text};
use super::wording::Wording;
use super::{Outcome, Session, read_input};
use crate::state::time::Timestamp;

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
    limit: Option<u32>,
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

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    let query =
        json!({"acknowledge": arguments.done, "all": arguments.all, "limit": arguments.limit});
    let reply = session.call("get_messages", query)?;
    session.show(&reply, |page| list(page, &reply, &session.wording))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn send(session: &Session, arguments: Send) -> Outcome {
    let kind = if arguments.request { "request" } else { "inform" };
    let request = json!({
        "to": arguments.to, "text": given(arguments.text), "kind": kind, "task_id": arguments.task,
        "idempotency_key": arguments.key,
    });
    sent(session, request)
}

pub(super) fn reply(session: &Session, arguments: Reply) -> Outcome {
    sent(session, json!({"reply_to": arguments.id, "text": given(arguments.text)}))
}

fn given(text: String) -> String {
    if text == "-" { read_input("-") } else { text }
}

fn sent(session: &Session, request: Value) -> Outcome {
    let reply = session.call("send_message", request)?;
    session.show(&reply, |page| {
        let count =
            format_args!("{}, to {}", text(&reply["message_id"]), counted(&reply["recipients"]));
        page.marked("sent", Tone::Good, count);
        page.field("not to", text(&reply["full"]));
    })?;
    Ok(ExitCode::SUCCESS)
}

fn counted(number: &Value) -> String {
    if *number == 1 { "one reader".to_owned() } else { format!("{number} readers") }
}

fn list(page: &mut Page, reply: &Value, wording: &Wording) {
    let messages = reply["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    for id in reply["not_kept"].as_array().into_iter().flatten() {
        let all = wording.line_of_agent("messages --all");
        page.line(format_args!(
            "{}: no such message is kept; `{all}` has those that are",
            text(id)
        ));
    }
    if messages.is_empty() {
        page.line("no unread messages");
    }
    for one in messages {
        let sent = serde_json::from_value::<Timestamp>(one["sent_at"].clone());
        let when = sent.map(|at| page.when(at)).unwrap_or_default();
        let about =
            optional(" about ", &one["task_id"]) + &optional(" in answer to ", &one["reply_to"]);
        let read = if one["unread"] == true { "" } else { ", dealt with" };
        let head = format!(
            "{} {} from {}{about} {when}{read}",
            text(&one["id"]),
            text(&one["kind"]),
            text(&one["from"])
        );
        page.field(&harmless(&head), text(&one["text"]));
    }
    if reply["unread"] != 0 {
        let line = |words| wording.line_of_agent(words);
        page.line(format_args!(
            "answer with `{}`; `{}` puts one away",
            line("reply ID TEXT"),
            line("messages --done ID")
        ));
    }
}

fn optional(before: &str, value: &Value) -> String {
    let text = text(value);
    if text.is_empty() { text } else { format!("{before}{text}") }
}
