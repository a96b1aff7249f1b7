//! What can be done with a task.

use maud::{Markup, html};

use super::Sheet;
use crate::state::task::TaskStatus;
use crate::web::parts::{Act, line, needed, opened};
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
                    (opened(visit, "Send back", review("reject").wide().form(visit, html! {
                        (needed("reason", "What to do better"))
                        button.first { "Send back" }
                    })))
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
                @if status.is_unfinished() {
                    (opened(visit, "Cancel", about("cancel").wide().form(visit, html! {
                        (line("reason", "Why it is not to be done"))
                        @if status.is_held() { input type="hidden" name="ask_owner" value="true"; }
                        button.bad { "Cancel the task" }
                    })))
                    a.button href="#edit" { "Edit" }
                }
            }
        }
    }
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
    let dependencies = task.dependencies.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(" ");
    html! {
        @if visit.may_act() && task.status.is_unfinished() {
            details #edit.fold {
                summary { strong { "Edit" } }
                (Act::new("task", "edit").with("task", task.id.as_str()).stacked().form(visit, html! {
                    label { "Title" input name="title" value=(task.title.as_deref().unwrap_or_default()); }
                    label { "Description" textarea name="description" rows="8" { "\n" (task.description) } }
                    div.pair {
                        label { "Priority, 1 is first" input type="number" name="priority" min="1" max="10" value=(task.priority); }
                        label { "Tags" input name="tags" value=(task.tags.join(" ")); }
                    }
                    label { "Waits for (ids)" input name="after" value=(dependencies); }
                    div.acts { button.first { "Save" } }
                }))
            }
        }
    }
}
