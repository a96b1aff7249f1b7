//! Columns of tasks: what is next, tried again, failed, done.

use maud::{Markup, html};

use super::super::Query;
use crate::view::{Board, Card, Done, Failure, Retry};
use crate::web::parts::{self, Act, age, agent, clock, heading, needed};
use crate::web::visit::Visit;

pub(super) fn queue(board: &Board, query: &Query, visit: &Visit) -> Markup {
    html! {
        section #next aria-labelledby="next-title" {
            (heading("next-title", "Next", Some(board.next.total()), "in claim order"))
            @if board.next.is_empty() { p.empty { (why_nothing(board)) } }
            @else {
                (Act::new("queue", "reorder").form(visit, html! {
                    input type="hidden" name="task"; input type="hidden" name="before";
                }))
                ol.cards.lines.card data-order {
                    @for card in &board.next.rows { (next(board, card, visit)) }
                    (more(board.next.more, "ready", query))
                }
            }
            @if !board.retries.is_empty() {
                (heading("retry-title", "Tried again", Some(board.retries.total()), ""))
                ul.cards.lines.card {
                    @for retry in &board.retries.rows { (retried(board, retry)) }
                    (more(board.retries.more, "waiting", query))
                }
            }
            @if !board.failed.is_empty() {
                (heading("failed-title", "Failed", Some(board.failed.total()), ""))
                ul.cards.lines.card {
                    @for failure in &board.failed.rows { (failed(board, failure)) }
                    (more(board.failed.more, "failed", query))
                }
            }
        }
    }
}

pub(super) fn done(board: &Board, query: &Query) -> Markup {
    html! {
        section #done aria-labelledby="done-title" {
            (heading("done-title", "Done", usize::try_from(board.counts.done).ok(), "newest first"))
            @if board.done.is_empty() { p.empty { "Nothing yet." } }
            @else {
                ul.cards.lines.card {
                    @for one in &board.done.rows { (finished(board, one)) }
                    (more(board.done.more, "done", query))
                }
            }
        }
    }
}

fn why_nothing(board: &Board) -> &'static str {
    match (board.counts.total, board.counts.blocked) {
        (0, _) => "No tasks. Import a plan, or add one.",
        (_, 0) => "No task is ready: all are taken or over.",
        _ => "No task is ready: the rest waits for others, see below.",
    }
}

fn more(count: usize, kind: &str, query: &Query) -> Markup {
    html! {
        @if count > 0 { li.more { a href=(query.list(kind)) { (count) " more" } } }
    }
}

fn named(card: &Card) -> Markup {
    html! {
        span.number { "#" (card.number) }
        a.what href=(parts::task_href(card.id.as_str())) { (card.title) }
    }
}

fn next(board: &Board, card: &Card, visit: &Visit) -> Markup {
    html! {
        li data-key=(card.id.as_str()) data-priority=(card.priority) draggable=[visit.may_act().then_some("true")] {
            @if visit.may_act() { span.grip aria-hidden="true" title="drag to order" { "⋮" } }
            (named(card))
            @if let Some(kept) = &card.kept_for { span.tag { "for " (kept.as_str()) } }
            (menu(board, card, visit))
        }
    }
}

/// What can be done with a task that is ready.
fn menu(board: &Board, card: &Card, visit: &Visit) -> Markup {
    let about = |action| Act::new("queue", action).with("task", card.id.as_str());
    html! {
        @if visit.may_act() {
            details.menu {
                summary.dots aria-label={ "Actions on #" (card.number) } { "⋯" }
                div.sheet {
                    (about("edit").form(visit, html! {
                        label { "Priority" input type="number" name="priority" min="1" max="10" value=(card.priority); }
                        button { "Set" }
                    }))
                    @if !board.agents.is_empty() {
                        (about("assign").form(visit, html! {
                            label {
                                "Give to"
                                select name="to" { @for row in board.agents.rows.iter().take(20) { option { (row.id.as_str()) } } }
                            }
                            button { "Give" }
                        }))
                    }
                    (about("cancel").form(visit, html! {
                        (needed("reason", "Why it is not to be done"))
                        button.bad { "Cancel" }
                    }))
                    a.button href={ (parts::task_href(card.id.as_str())) "#edit" } { "Edit" }
                }
            }
        }
    }
}

fn retried(board: &Board, retry: &Retry) -> Markup {
    html! {
        li data-key=(retry.card.id.as_str()) {
            (named(&retry.card))
            span.age { @if let Some(until) = retry.until { "at " (clock(until, board.now)) } }
        }
    }
}

fn failed(board: &Board, failure: &Failure) -> Markup {
    html! {
        li data-key=(failure.card.id.as_str()) {
            (named(&failure.card))
            @if failure.blocks > 0 { span.tag { (failure.blocks) " wait" } }
            @if let Some(at) = failure.last.at { (age(at, board.now)) }
        }
    }
}

fn finished(board: &Board, one: &Done) -> Markup {
    html! {
        li data-key=(one.card.id.as_str()) {
            (named(&one.card))
            @if let Some(by) = &one.agent { span.by { (agent(by)) } }
            @if let Some(at) = one.at { (age(at, board.now)) }
        }
    }
}
