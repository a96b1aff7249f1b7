use std::process::ExitCode;

use serde_json::{Value, json};

use super::print::{Page, Tone, text};
use super::{Outcome, Session};

/// Characters of the progress bar.
const BAR: u64 = 30;
/// Messages that the status names.
const NAMED: u64 = 5;

pub fn run(session: &Session) -> Outcome {
    let status = session.call("get_status", json!({}))?;
    session.show(&status, |page| write(page, &status))?;
    Ok(ExitCode::SUCCESS)
}

fn write(page: &mut Page, status: &Value) {
    if status["seq"] == 0 && status["total_tasks"] == 0 {
        page.line("no board here yet; make one with `callboard init GOAL`");
        return;
    }
    let (tasks, agents, queue) = (&status["tasks"], &status["agents"], &status["queue"]);
    page.field("goal", text(&status["goal"]));
    page.line(format_args!("{} of {} tasks", bar(status), status["total_tasks"]));
    page.line(format_args!(
        "tasks: {} available ({} ready, {} blocked, {} waiting for a retry), {} claimed, {} in progress, {} done, {} failed",
        tasks["available"],
        queue["ready"],
        queue["blocked"],
        queue["waiting_retry"],
        tasks["claimed"],
        tasks["in_progress"],
        tasks["done"],
        tasks["failed"],
    ));
    if let Some(of_failed) = status.get("of_failed") {
        page.line(format_args!(
            "of the failed: {} cancelled, {} obsolete",
            of_failed["cancelled"], of_failed["obsolete"]
        ));
    }
    page.line(format_args!(
        "agents: {} ({} leaders, {} workers), {} active in the last minute",
        agents["total"], agents["leaders"], agents["workers"], agents["active"]
    ));
    page.line(format_args!("discoveries: {}", status["discoveries_count"]));
    if let Ok(last) = serde_json::from_value(status["last_activity"].clone()) {
        let last = page.when(last);
        page.line(format_args!("last activity: {last}"));
    }
    troubles(page, status);
}

fn troubles(page: &mut Page, status: &Value) {
    if let Some(pause) = status.get("paused") {
        let reason = text(&pause["reason"]);
        let reason = if reason.is_empty() { "no reason given" } else { &reason };
        page.marked("paused:", Tone::Busy, format_args!("{reason}; `callboard resume` allows claims again"));
    }
    for one in status["for_human"].as_array().into_iter().flatten() {
        let (id, from) = (text(&one["message"]), text(&one["from"]));
        let word = if one["kind"] == "request" { "question:" } else { "message:" };
        page.marked(word, Tone::Busy, format_args!("{from}: {}; `callboard reply {id} TEXT`", text(&one["text"])));
    }
    if let Some(unread) = status["unread_by_human"].as_u64().filter(|unread| *unread > NAMED) {
        page.line(format_args!("{unread} messages in all are unread: `callboard messages`"));
    }
    if status["queue"]["deadlocked"] == true {
        page.marked("deadlocked:", Tone::Bad, "nothing is ready or running, and tasks are left");
    }
    for blocked in status["blocked_by_failure"].as_array().into_iter().flatten() {
        let (task, by) = (text(&blocked["task"]), text(&blocked["by"]));
        page.marked("blocked:", Tone::Bad, format_args!("{task} waits for {by}; `callboard retry {by}`"));
    }
    for name in status["rejected_edits"].as_array().into_iter().flatten() {
        let name = text(name);
        page.marked("rejected:", Tone::Bad, format_args!("a hand edit, kept as {name}; the reason is in {name}.txt"));
    }
    if let Some(quiet) = status.get("quiet") {
        page.marked("quiet:", Tone::Busy, text(quiet));
    }
}

fn bar(status: &Value) -> String {
    let percent = status["progress_percent"].as_u64().unwrap_or_default().min(100);
    let full = (percent * BAR / 100) as usize;
    format!("[{}{}] {percent} %", "#".repeat(full), "-".repeat(BAR as usize - full))
}
