use std::process::ExitCode;

use serde_json::{Value, json};

use super::print::{Page, Tone, headline, minutes_in_words, off_in_words, text};
use super::wording::Wording;
use super::{Outcome, Session, agents, plan_files};

/// Width of the progress bar, in characters.
const BAR: u64 = 30;
/// Most messages that are listed.
const NAMED: u64 = 5;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Count only tasks at or below this path
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let mut status = session.call("get_status", json!({"scope": arguments.scope}))?;
    if !status["plan"].is_null() {
        let versions = session.call("get_master_plan", json!({}))?["plans"].take();
        let changed = plan_files::changed(session, &serde_json::from_value::<Vec<_>>(versions)?);
        if !changed.is_empty() {
            status["plan_files"] = serde_json::to_value(changed)?;
        }
        status["plans"] = session.call("list_plans", json!({}))?["plans"].take();
    }
    let mut health = session.call("health_check", json!({}))?;
    for field in ["clock_ahead_seconds", "wrong_clocks"] {
        if let Some(found) = health.get_mut(field) {
            status[field] = found.take();
        }
    }
    session.show(&status, |page| {
        write(page, &status, &session.wording.of_nobody());
        if !session.found_board {
            session.name_imports(page);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn write(page: &mut Page, status: &Value, wording: &Wording) {
    if status["seq"] == 0 && status["total_tasks"] == 0 {
        page.line(format_args!(
            "no board here yet; make one with {}",
            wording.command("init GOAL")
        ));
        return;
    }
    let (tasks, agents, queue) = (&status["tasks"], &status["agents"], &status["queue"]);
    page.field("goal", text(&status["goal"]));
    page.line(format_args!("{} of {} tasks", bar(status), status["total_tasks"]));
    page.line(format_args!(
        "tasks: {} available ({} ready, {} blocked, {} waiting for a retry), {} claimed, {} in \
         progress, {} done, {} failed",
        tasks["available"],
        queue["ready"],
        queue["blocked"],
        queue["waiting_retry"],
        tasks["claimed"],
        tasks["in_progress"],
        tasks["done"],
        tasks["failed"],
    ));
    if let Some(of_work) = status.get("of_in_progress") {
        page.line(format_args!("of those in progress: {} in review", of_work["review"]));
    }
    if let Some(remaining) = status.get("remaining") {
        let minutes = remaining["minutes"].as_u64().unwrap_or_default();
        page.line(format_args!(
            "left: {} in {} estimated tasks",
            minutes_in_words(minutes),
            remaining["tasks"]
        ));
    }
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
    for part in status["parts"].as_array().into_iter().flatten() {
        let (path, title) = (text(&part["path"]), text(&part["title"]));
        let tone = serde_json::from_value(part["status"].clone()).map_or(Tone::Plain, Tone::of);
        let done = format_args!("{} % ({} of {})", part["percent"], part["done"], part["tasks"])
            .to_string();
        page.marked(
            &text(&part["status"]),
            tone,
            format_args!("{path} {}: {done}", headline(&title)),
        );
    }
    for plan in status["plans"].as_array().into_iter().flatten() {
        let [name, version] = ["name", "version"].map(|field| text(&plan[field]));
        let (done, tasks) = (&plan["progress"]["done"], &plan["progress"]["tasks"]);
        page.line(format_args!("plan {name}: {done} of {tasks} done, version {version}"));
    }
    for file in status["plan_files"].as_array().into_iter().flatten() {
        page.marked("plan file:", Tone::Waiting, text(&file["says"]));
    }
    clocks(page, status);
    troubles(page, status, wording);
}

fn clocks(page: &mut Page, status: &Value) {
    if let Some(ahead) = status["clock_ahead_seconds"].as_i64() {
        page.marked("clock:", Tone::Busy, format_args!("the machine's is {}", off_in_words(ahead)));
    }
    for one in status["wrong_clocks"].as_array().into_iter().flatten() {
        let (pid, ahead) =
            (text(&one["pid"]), one["clock_ahead_seconds"].as_i64().unwrap_or_default());
        page.marked(
            "clock:",
            Tone::Busy,
            format_args!("that of process {pid} is {}", off_in_words(ahead)),
        );
    }
}

fn troubles(page: &mut Page, status: &Value, wording: &Wording) {
    for one in status["waiting"].as_array().into_iter().flatten() {
        if let Ok(waiting) = serde_json::from_value(one.clone()) {
            let task =
                one["task"].as_str().map(|task| format!(", task {task},")).unwrap_or_default();
            let who = format!("{}{task}", text(&one["agent"]));
            page.marked("waiting:", Tone::Busy, agents::waits(page, &who, &waiting));
        }
    }
    if let Some(pause) = status.get("paused") {
        let reason = text(&pause["reason"]);
        let reason = if reason.is_empty() { "no reason given" } else { &reason };
        page.marked(
            "paused:",
            Tone::Busy,
            format_args!("{reason}; {} allows claims again", wording.command("resume")),
        );
    }
    for one in status["for_human"].as_array().into_iter().flatten() {
        let (id, from) = (text(&one["message"]), text(&one["from"]));
        let word = if one["kind"] == "request" { "question:" } else { "message:" };
        let reply = wording.command(&format!("reply {id} TEXT"));
        let said = one["text"].as_str().unwrap_or("(private)");
        page.marked(word, Tone::Busy, format_args!("{from}: {said}; {reply}"));
    }
    if let Some(unread) = status["unread_by_human"].as_u64().filter(|unread| *unread > NAMED) {
        page.line(format_args!(
            "{unread} messages in all are unread: {}",
            wording.command("messages")
        ));
    }
    if status["queue"]["deadlocked"] == true {
        page.marked("deadlocked:", Tone::Bad, "nothing is ready or running, and tasks are left");
    }
    let graph = &status["graph"];
    for cycle in graph["cycles"].as_array().into_iter().flatten() {
        let update = wording.command("call update_task");
        page.marked("cycle:", Tone::Bad, format_args!("{}; {update} one of them", text(cycle)));
    }
    for orphan in graph["orphans"].as_array().into_iter().flatten() {
        let (task, missing) = (text(&orphan["task"]), text(&orphan["missing"]));
        page.marked(
            "orphan:",
            Tone::Bad,
            format_args!("{task} names {missing}, which does not exist"),
        );
    }
    for blocker in graph["blockers"].as_array().into_iter().flatten() {
        let (task, status) = (text(&blocker["task"]), text(&blocker["status"]));
        let status = if status.is_empty() { "missing".to_owned() } else { status };
        let free = wording.in_commands(&text(&blocker["free_by"]));
        page.marked(
            "blocker:",
            Tone::Bad,
            format_args!("{task} ({status}) blocks {}; {free}", blocker["blocks"]),
        );
    }
    for blocked in status["blocked_by_failure"].as_array().into_iter().flatten() {
        let (task, by) = (text(&blocked["task"]), text(&blocked["by"]));
        page.marked(
            "blocked:",
            Tone::Bad,
            format_args!("{task} waits for {by}; {}", ways_out(blocked, wording)),
        );
    }
    for one in status["in_review"].as_array().into_iter().flatten() {
        let [task, title, agent] = ["task", "title", "agent"].map(|field| text(&one[field]));
        let approve = wording.command(&format!("approve {task}"));
        page.marked(
            "review:",
            Tone::Busy,
            format_args!("{task} {} by {agent}; {approve}, or reject it", headline(&title)),
        );
    }
    for parked in status["needs_attention"].as_array().into_iter().flatten() {
        let [task, title, category, error] =
            ["task", "title", "category", "error"].map(|field| text(&parked[field]));
        let mut failed = format!("{} attempts", parked["attempts"]);
        if !category.is_empty() {
            failed = format!("{failed}, {category}");
        }
        let (title, error) = (headline(&title), headline(&error));
        let error = if error.is_empty() { String::new() } else { format!(": {error}") };
        let rest = format_args!(
            "{task} {title} ({failed}){error}; {}",
            wording.command(&format!("retry {task}"))
        );
        page.marked("needs attention:", Tone::Bad, rest);
    }
    for name in status["rejected_edits"].as_array().into_iter().flatten() {
        let name = text(name);
        page.marked(
            "rejected:",
            Tone::Bad,
            format_args!("a hand edit, kept as {name}; the reason is in {name}.txt"),
        );
    }
    if let Some(quiet) = status.get("quiet") {
        page.marked("quiet:", Tone::Busy, text(quiet));
    }
}

/// Commands that unblock what waits for failed tasks, or for tasks that left the plan.
fn ways_out(blocked: &Value, wording: &Wording) -> String {
    let named = |list: &str| blocked[list].as_array().cloned().unwrap_or_default();
    let gone = named("gone");
    let retries = named("by").into_iter().filter(|one| !gone.contains(one));
    let retries = retries.map(|one| wording.command(&format!("retry {}", text(&one))));
    let update = wording.command("call update_task");
    let updates =
        gone.iter().map(|one| format!("{update} so that nothing depends on {}", text(one)));
    retries.chain(updates).collect::<Vec<_>>().join(", ")
}

fn bar(status: &Value) -> String {
    let percent = status["progress_percent"].as_u64().unwrap_or_default().min(100);
    let full = (percent * BAR / 100) as usize;
    format!("[{}{}] {percent} %", "#".repeat(full), "-".repeat(BAR as usize - full))
}
