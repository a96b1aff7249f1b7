//! Attempts at a task, the newest first: by whom, how long, what came of each.

use maud::{Markup, html};

use super::Sheet;
use crate::state::task::{Attempt, Outcome, TaskResult};
use crate::view::columns::span;
use crate::web::parts::{clock, heading, who};
use crate::web::visit::Visit;

pub(super) fn section(sheet: &Sheet, visit: &Visit) -> Markup {
    let attempts = &sheet.task.attempts;
    html! {
        section #attempts aria-labelledby="attempts-title" {
            (heading("attempts-title", "Attempts", Some(attempts.len()), "newest first"))
            @if attempts.is_empty() { p.empty { "No agent has taken it yet." } }
            @for attempt in attempts.iter().rev() { (one(sheet, attempt, visit)) }
        }
    }
}

fn one(sheet: &Sheet, attempt: &Attempt, visit: &Visit) -> Markup {
    let class = match attempt.outcome {
        None => "now",
        Some(Outcome::Done) => "done",
        Some(Outcome::Failed | Outcome::Expired | Outcome::Rejected) => "failed",
        Some(Outcome::Released | Outcome::Cancelled) => "",
    };
    let ended = attempt.ended_at.unwrap_or_else(|| sheet.now());
    let result = result(sheet, attempt);
    html! {
        div class={ "attempt " (class) } {
            div.row {
                strong.number { (attempt.number) }
                (who(&attempt.agent, visit))
                span class={ "kind " (if class == "failed" { "bad" } else { class }) } { (word(attempt.outcome)) }
                span.age {
                    (clock(attempt.claimed_at, sheet.now())) " · "
                    @if attempt.ended_at.is_some() { "took " } (span(ended.since(attempt.claimed_at)))
                }
            }
            (place(attempt, result))
            @if let Some(error) = &attempt.error {
                p.bad-text.plain { (error.message) " " span.tag { (error.category) } }
            }
            @if let Some(text) = result.and_then(|result| result.output.as_deref()) { div.plain { (text) } }
            @if let Some(note) = &attempt.note { p.note { "Newest note: “" (note) "”" } }
            @if let Some(reviewed) = &attempt.reviewed {
                p.plain {
                    @if reviewed.approved { span.good { "Approved" } } @else { span.bad-text { "Sent back" } }
                    @if let Some(by) = &reviewed.by { " by " (who(by, visit)) }
                    @if let Some(comment) = &reviewed.comment { ": " (comment) }
                }
            }
            @if let Some(result) = result { (files(result)) }
        }
    }
}

fn word(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        None => "at it",
        Some(Outcome::Done) => "done",
        Some(Outcome::Failed) => "failed",
        Some(Outcome::Expired) => "gave no sign",
        Some(Outcome::Released) => "put back",
        Some(Outcome::Cancelled) => "cancelled",
        Some(Outcome::Rejected) => "sent back",
    }
}

/// The result of the attempt: a late or rejected one, or that of the task.
fn result<'s>(sheet: &'s Sheet, attempt: &'s Attempt) -> Option<&'s TaskResult> {
    let is_last = sheet.task.attempts.last().is_some_and(|last| last.number == attempt.number);
    attempt.late_result.as_deref().or(sheet.task.result.as_deref().filter(|_| is_last))
}

/// Where it was worked on, and what of it is in git.
fn place(attempt: &Attempt, result: Option<&TaskResult>) -> Markup {
    let branch = result.and_then(|result| result.branch.as_ref()).or(attempt.place.branch.as_ref());
    let commit = result.and_then(|result| result.commit.as_deref());
    html! {
        @if branch.is_some() || commit.is_some() || attempt.place.worktree.is_some() {
            p.note.mono {
                @if let Some(branch) = branch { (branch) }
                @if let Some(commit) = commit { " · " (commit.get(..12).unwrap_or(commit)) }
                @if let Some(worktree) = &attempt.place.worktree { " · " (worktree) }
            }
        }
    }
}

fn files(result: &TaskResult) -> Markup {
    let changed = result.files_modified.iter().map(|file| (file, ""));
    let created = result.files_created.iter().map(|file| (file, " (new)"));
    html! {
        @if !result.files_modified.is_empty() || !result.files_created.is_empty() {
            ul.files {
                @for (file, mark) in changed.chain(created).take(100) { li.mono { (file) (mark) } }
            }
        }
    }
}
