//! What can be done with a task.

use maud::{Markup, html};

use super::Sheet;
use crate::state::task::{Task, TaskStatus};
use crate::web::parts::{Act, line, needed, opened, relations};
use crate::web::visit::Visit;

pub(super) fn all(sheet: &Sheet, visit: &Visit) -> Markup {
    let (task, attempt) = (&sheet.task, sheet.task.attempt.to_string());
    let about = |action| Act::new("task", action).with("task", task.id.as_str());
    let review = |action| about(action).with("attempt", &attempt);
    let status = task.status;
    html! {
        @if visit.may_act() {
            div.acts {
                @if status == TaskStatus::Review {
                    (review("approve").first(visit, "Approve"))
                    (opened(visit, "Send back", send_back(task, visit)))
                }
                @if matches!(status, TaskStatus::Failed | TaskStatus::Cancelled) {
                    (about("retry").first(visit, "Retry"))
                }
                @if status.is_held() { (stop(sheet, visit)) }
                @if status == TaskStatus::Available {
                    (opened(visit, "Give to", about("assign").wide().form(visit, html! {
                        (needed("to", "Name of the agent"))
                        button.first { "Give" }
                    })))
                    @if task.kept_for.is_some() { (about("assign").button(visit, "Open to all")) }
                }
                @if status.is_unfinished() || status == TaskStatus::Failed {
                    (opened(visit, "Cancel", about("cancel").wide().form(visit, html! {
                        (line("reason", "Why it is not to be done"))
                        @if status.is_held() { input type="hidden" name="ask_owner" value="true"; }
                        button.bad { "Cancel the task" }
                    })))
                }
                @if status.is_unfinished() {
                    a.button href="#edit" { "Edit" }
                }
            }
        }
    }
}

/// What is to be done better. A script names the lines of the changes here that are clicked.
pub(super) fn send_back(task: &Task, visit: &Visit) -> Markup {
    let attempt = task.attempt.to_string();
    let reject = Act::new("task", "reject").with("task", task.id.as_str());
    reject.with("attempt", &attempt).stacked().form(
        visit,
        html! {
            label {
                "What to do better. A click on the number of a line in the changes names it here:"
                textarea #reason name="reason" rows="5" required placeholder="src/lexer.rs:12: …" {}
            }
            div.acts { button.first { "Send back" } }
        },
    )
}

fn stop(sheet: &Sheet, visit: &Visit) -> Markup {
    let holder = sheet.task.claimed_by.as_ref().map_or("", |agent| agent.as_str());
    html! {
        (Act::new("task", "release").with("task", sheet.task.id.as_str()).button(visit, "Release"))
        (opened(visit, "Stop", Act::new("task", "stop").with("agent", holder).wide().form(visit, html! {
            (line("reason", &format!("Why {holder} is to stop")))
            button { "Ask it to stop" }
            button.bad name="now" value="true" { "Stop now" }
        })))
    }
}

/// A message to whom the task is about: its holder, or who did it last.
pub(super) fn comment(sheet: &Sheet, visit: &Visit) -> Markup {
    let id = sheet.task.id.as_str();
    let last = sheet.task.attempts.last().map(|attempt| attempt.agent.as_str());
    let send = Act::new("task", "message").with("about", id);
    html! {
        @if let Some(to) = last {
            (send.with("to", to).wide().form(visit, html! {
                (needed("text", &format!("Message to {to} about this task")))
                button { "Send" }
            }))
        }
    }
}

/// All fields that can be changed.
pub(super) fn edit(sheet: &Sheet, visit: &Visit) -> Markup {
    let task = &sheet.task;
    let (after, tags) = (sheet.dependencies().join("\n"), task.tags.join(", "));
    html! {
        @if visit.may_act() && task.status.is_unfinished() {
            details #edit.fold {
                summary { strong { "Edit" } }
                (Act::new("task", "edit").with("task", task.id.as_str()).stacked().form(visit, html! {
                    input type="hidden" name="tags_before" value=(tags);
                    label { "Title" input name="title" value=(task.title.as_deref().unwrap_or_default()); }
                    label { "Description" textarea name="description" rows="8" { "\n" (task.description) } }
                    div.pair { label { "Priority, 1 is first" input type="number" name="priority" min="1" max="10" value=(task.priority); } }
                    (relations(&after, &tags))
                    div.acts { button.first { "Save" } }
                }))
            }
        }
    }
}
