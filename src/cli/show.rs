use std::collections::HashMap;
use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::print::{self, Page, Tone, listed, minutes_in_words, or_empty, text};
use super::{Declined, Outcome, Session, agents, messages};
use crate::ops;
use crate::ops::get_board;
use crate::ops::get_task::{Params, Reply};
use crate::state::id::TaskId;
use crate::state::message::Message;
use crate::state::task::{Attempt, Context, Task, TaskResult, TaskStatus};
use crate::state::time::Timestamp;
use crate::view::Standing;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Tasks; also agents, and questions as Q1
    #[arg(required = true)]
    task: Vec<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    for (place, given) in arguments.task.iter().enumerate() {
        if place > 0 && !session.json {
            print::unless_reader_left(writeln!(io::stdout().lock()))?;
        }
        one(session, given)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn one(session: &Session, given: &str) -> Outcome {
    if Message::number_of(given).is_some() {
        return question(session, given);
    }
    let task_id = match session.task(given) {
        Ok(task) => task.id.to_string(),
        Err(_) if session.has_agent(given) => {
            return agent(session, &session.agent_named(given, "show")?);
        }
        Err(error) => return Err(error),
    };
    let reply = session.ask::<ops::GetTask>(&Params { task_id, ..Default::default() })?;
    let depends = if session.json { &[][..] } else { &reply.task.task.dependencies };
    let names = session.called(depends);
    session.show(reply.json(), |page| write(page, &reply, &names))?;
    Ok(ExitCode::SUCCESS)
}

/// Shows everything about an agent.
fn agent(session: &Session, name: &str) -> Outcome {
    let all = session.every_page::<ops::GetAgents>("agents", &Default::default())?;
    let board = session.ask::<ops::GetBoard>(&get_board::Params::default())?;
    let item = all.agents.iter().find(|item| item.agent.id.as_str() == name);
    let row = board.agents.rows.iter().find(|row| row.id.as_str() == name);
    let json = item.map(|item| json!({"agent": **item})).unwrap_or_default();
    session.show(&json, |page| {
        item.into_iter().for_each(|item| agents::write(page, item, row));
        let log = session.wording.command(&format!("log {name}"));
        page.line(format_args!("{log} says what it did"));
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Shows a question that waits for an answer.
fn question(session: &Session, name: &str) -> Outcome {
    let mut open = messages::open_questions(session)?;
    open.retain(|one| one.question.as_ref().is_some_and(|one| one.eq_ignore_ascii_case(name)));
    if open.is_empty() {
        let all = session.wording.command("messages --all");
        let why = format!(
            "no question {} waits for an answer; {all} lists all of them",
            name.to_uppercase()
        );
        return Err(Declined(anyhow::anyhow!(why)).into());
    }
    messages::waiting(session, &open, false)
}

/// Writes everything about the task. `names` are those of the tasks that it depends on.
pub(super) fn write(page: &mut Page, reply: &Reply, names: &HashMap<TaskId, String>) {
    let task = &reply.task.task;
    summary(page, reply, task, names);
    write_context(page, task.context.as_deref());
    times(page, task);
    if let Some(result) = &task.result {
        page.line("\nresult");
        write_result(page, result);
    }
    reply.task.attempts.iter().for_each(|attempt| write_attempt(page, attempt));
}

fn summary(page: &mut Page, reply: &Reply, task: &Task, names: &HashMap<TaskId, String>) {
    let name = |id: &TaskId| names.get(id).cloned().unwrap_or_else(|| id.to_string());
    let is = if reply.retired { ", retired" } else { "" };
    let number = task.number.map(|number| format!("#{number} ")).unwrap_or_default();
    let told = format_args!("{number}{}{is}", task.id);
    page.marked(word(reply), Tone::of(task.status), told);
    page.field("title", task.title.as_deref().unwrap_or_default());
    page.field("description", &task.description);
    page.field("priority", risen(task.priority, reply.effective_priority));
    page.field("path", task.path.as_deref().unwrap_or_default());
    let source = task.planned.as_ref().and_then(|planned| planned.source.as_ref());
    page.field("from", or_empty(source));
    page.field("tags", task.tags.join(", "));
    let by = if task.status.is_held() { "held by" } else { "by" };
    page.field(by, or_empty(task.claimed_by.as_ref()));
    page.field(
        "attempt",
        format_args!("{} ({} of {} used)", task.attempt, task.attempts_used(), task.max_attempts),
    );
    page.field(
        "estimate",
        task.estimated_minutes.map(|minutes| minutes_in_words(minutes.into())).unwrap_or_default(),
    );
    page.field("review", or_empty(task.review.as_ref()));
    page.field("actual", reply.actual_minutes.map(minutes_in_words).unwrap_or_default());
    if !task.demands.is_empty() {
        page.field("demands", serde_json::to_value(&task.demands).unwrap_or_default());
    }
    let after: Vec<_> = task.dependencies.iter().map(name).collect();
    page.field("after", listed(&after));
    for one in &reply.waits_for {
        page.field("waits for", format_args!("{} ({})", name(&one.task), one.status));
    }
    if let Some(stop) = &task.stop_requested {
        let when = page.when(stop.at);
        page.field(
            "stop requested",
            format_args!("{when} {}", stop.reason.as_deref().unwrap_or_default()),
        );
    }
}

/// How the task stands, in the word that lists have for it.
fn word(reply: &Reply) -> &'static str {
    let task = &reply.task.task;
    match task.status {
        TaskStatus::Available if reply.ready => Standing::Ready.word(),
        TaskStatus::Available if !reply.waits_for.is_empty() => {
            Standing::Blocked(Vec::new()).word()
        }
        TaskStatus::Available => match task.not_before {
            Some(until) => Standing::Waiting(until).word(),
            None => Standing::Open.word(),
        },
        status => status.as_str(),
    }
}

/// The priority, and what it has risen to.
pub(super) fn risen(priority: u8, effective: Option<u8>) -> String {
    effective.map_or_else(
        || priority.to_string(),
        |effective| format!("{priority}, risen to {effective}"),
    )
}

fn write_context(page: &mut Page, context: Option<&Context>) {
    let Some(context) = context else { return };
    page.field("files", context.files.join(", "));
    page.field("hints", context.hints.as_deref().unwrap_or_default());
    if !context.metadata.is_empty() {
        page.field("metadata", Value::Object(context.metadata.clone()));
    }
}

fn times(page: &mut Page, task: &Task) {
    let times = [
        ("created", Some(task.created_at)),
        ("claimed", task.claimed_at),
        ("started", task.started_at),
        ("completed", task.completed_at),
        ("not before", task.not_before),
    ];
    for (name, time) in times {
        time_field(page, name, time);
    }
}

fn time_field(page: &mut Page, name: &str, time: Option<Timestamp>) {
    if let Some(time) = time {
        let told = page.when(time);
        page.field(name, format_args!("{told} ({time})"));
    }
}

fn write_result(page: &mut Page, result: &TaskResult) {
    page.field("output", result.output.as_deref().unwrap_or_default());
    page.field("error", result.error.as_deref().unwrap_or_default());
    page.field("modified", result.files_modified.join(", "));
    page.field("created", result.files_created.join(", "));
    page.field("branch", result.branch.as_deref().unwrap_or_default());
    page.field("commit", result.commit.as_deref().unwrap_or_default());
    page.field("data", result.data.as_ref().map(Value::to_string).unwrap_or_default());
}

fn write_attempt(page: &mut Page, attempt: &Attempt) {
    page.line(format_args!("\nattempt {} by {}", attempt.number, attempt.agent));
    match attempt.outcome {
        Some(outcome) => page.field("outcome", text(&json!(outcome))),
        None => time_field(page, "lease ends", Some(attempt.lease_until)),
    }
    time_field(page, "claimed", Some(attempt.claimed_at));
    time_field(page, "ended", attempt.ended_at);
    if let Some(error) = &attempt.error {
        page.field("error", format_args!("{}: {}", error.category, error.message));
    }
    if let Some(reviewed) = &attempt.reviewed {
        let word = if reviewed.approved { "approved" } else { "sent back" };
        let by = reviewed.by.as_ref().map(|by| format!(" by {}", page.who(by))).unwrap_or_default();
        let (when, comment) =
            (page.when(reviewed.at), reviewed.comment.as_deref().unwrap_or_default());
        page.field("review", format_args!("{word}{by} {when} {comment}"));
    }
    page.field("note", attempt.note.as_deref().unwrap_or_default());
    page.field("worktree", attempt.place.worktree.as_deref().unwrap_or_default());
    page.field("branch", attempt.place.branch.as_deref().unwrap_or_default());
    if let Some(late) = &attempt.late_result {
        let name = if is_sent_back(attempt) { "sent back" } else { "late result" };
        page.field(name, late.output.as_deref().unwrap_or("without output"));
    }
}

fn is_sent_back(attempt: &Attempt) -> bool {
    attempt.reviewed.as_ref().is_some_and(|reviewed| !reviewed.approved)
}
