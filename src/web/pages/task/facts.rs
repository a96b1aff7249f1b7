//! What else is known of a task, and what it hangs together with.

use maud::{Markup, html};

use super::Sheet;
use crate::state::task::Task;
use crate::view::Named;
use crate::web::parts::{self, Act, clock, heading, needed, opened, part, task_href};
use crate::web::visit::Visit;

/// Most tasks of a list that are shown.
const SHOWN: usize = 30;

pub(super) fn section(sheet: &Sheet, visit: &Visit) -> Markup {
    let (task, detail) = (&sheet.task, &sheet.detail);
    html! {
        section aria-labelledby="facts-title" {
            (heading("facts-title", "Facts", None, ""))
            dl.facts {
                dt { "Priority" } dd { (task.priority) }
                @if let Some(kept) = &task.kept_for { dt { "Kept for" } dd { (kept.agent.as_str()) " until " (clock(kept.until, detail.now)) } }
                (needs(sheet, visit))
                @if !detail.needed_by.is_empty() { dt { "Needed by" } dd { (list(&detail.needed_by)) } }
                @if !detail.parts.is_empty() { dt { "Parts" } dd { (list(&detail.parts)) } }
                @if let Some(progress) = &detail.progress { dt { "Done" } dd { (progress.done) " of " (progress.tasks) } }
                (files(task))
                @if !task.tags.is_empty() {
                    dt { "Tags" } dd { @for tag in &task.tags { a.tag href={ "/?tag=" (part(tag)) } { (tag) } " " } }
                }
                @if let Some(minutes) = task.estimated_minutes { dt { "Expected" } dd { (minutes) " min" } }
                dt { "Attempts" } dd { (task.attempts_used()) " of " (task.max_attempts) }
                dt { "Added" } dd { (clock(task.created_at, detail.now)) }
                @if let Some(path) = &task.path { dt { "Path" } dd { (path) } }
                dt { "Id" } dd.mono { (task.id) }
                (artifacts(sheet))
            }
        }
    }
}

/// What it waits for itself, with a way to change that.
fn needs(sheet: &Sheet, visit: &Visit) -> Markup {
    let (task, needs) = (&sheet.task, &sheet.detail.needs);
    let may_change = visit.may_act() && task.status.is_unfinished();
    let about = |action| Act::new("needs", action).with("task", task.id.as_str());
    html! {
        @if may_change {
            dt { "Needs" }
            dd {
                ul {
                    @for named in needs.iter().take(SHOWN) {
                        li.row {
                            span { (entry(named)) }
                            (about("unlink").with("needs", named.id.as_str()).form(visit, html! {
                                button.cross title="Do not wait for it" aria-label={ "Do not wait for " (named.name()) } { "×" }
                            }))
                        }
                    }
                    (more(needs))
                }
                (opened(visit, "Add", about("link").wide().form(visit, html! {
                    (needed("needs", "Number, path or title"))
                    button.first { "Wait for it" }
                })))
            }
        } @else if !needs.is_empty() {
            dt { "Needs" } dd { (list(needs)) }
        }
    }
}

fn files(task: &Task) -> Markup {
    let files = task.context.as_ref().map(|context| context.files.as_slice()).unwrap_or_default();
    html! {
        @if !files.is_empty() {
            dt { "Files" } dd { ul { @for file in files.iter().take(50) { li.mono { (file) } } } }
        }
    }
}

fn artifacts(sheet: &Sheet) -> Markup {
    html! {
        @if !sheet.task.artifacts.is_empty() {
            dt { "Artifacts" }
            dd {
                ul {
                    @for artifact in sheet.task.artifacts.iter().take(50) {
                        li { span.mono { (artifact.name) } " " span.age { (artifact.bytes) " bytes" } }
                    }
                }
                p.note { code { "callboard artifact get " (sheet.task.id) " NAME" } }
            }
        }
    }
}

fn list(tasks: &[Named]) -> Markup {
    html! {
        ul {
            @for named in tasks.iter().take(SHOWN) { li { (entry(named)) } }
            (more(tasks))
        }
    }
}

fn entry(named: &Named) -> Markup {
    html! { (link(named)) (parts::named(named)) }
}

fn more(tasks: &[Named]) -> Markup {
    html! { @if tasks.len() > SHOWN { li.note { (tasks.len() - SHOWN) " more" } } }
}

fn link(named: &Named) -> Markup {
    html! {
        a href=(task_href(named.id.as_str())) {
            @if named.number.is_some() { span.number { (named.name()) } " " }
            @if named.title.is_empty() { (named.id.as_str()) } @else { (named.title) }
        }
    }
}

/// Some tasks in a sentence.
pub(super) fn names(tasks: &[Named]) -> Markup {
    html! {
        @for (place, named) in tasks.iter().take(5).enumerate() {
            @if place > 0 { ", " } (link(named))
        }
        @if tasks.len() > 5 { " and " (tasks.len() - 5) " more" }
    }
}
