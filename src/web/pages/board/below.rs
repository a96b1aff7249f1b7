//! What is under the columns: blocked tasks by their cause, and what happened last.

use maud::{Markup, html};

use crate::state::time::Timestamp;
use crate::view::{Behind, Board, Group, Latest, Named};
use crate::web::parts::{self, Act, clock, colour, heading, task, who};
use crate::web::visit::Visit;

pub(super) fn blocked(board: &Board) -> Markup {
    html! {
        section #blocked aria-labelledby="blocked-title" {
            (heading("blocked-title", "Blocked", usize::try_from(board.counts.blocked).ok(), ""))
            @if board.blocked.is_empty() { p.empty { "No task waits for another." } }
            @else {
                ul.cards.lines.card {
                    @for group in &board.blocked.rows { (folded(group)) }
                    @if board.blocked.more > 0 { li.more { (board.blocked.more) " more causes" } }
                    li.more { a href="/tasks?is=blocked" { "List them" } a href="/graph" { "Show the graph" } }
                }
            }
        }
    }
}

fn folded(group: &Group) -> Markup {
    let key = group.by.first().map_or("", |by| by.id.as_str());
    html! {
        li data-key={ (word(group.behind)) (key) } {
            details.fold {
                summary {
                    strong.number { (group.tasks) }
                    @let class = if group.behind.is_stuck() { "said bad-text" } else { "said" };
                    span class=(class) { (word(group.behind)) " " @if group.behind != Behind::Cycle { (names(&group.by)) } }
                }
                ul {
                    @if group.behind.is_stuck() {
                        @for named in &group.by { li { (task(named)) (parts::named(named)) } }
                    }
                    @for named in &group.first { li { (task(named)) } }
                    @if group.tasks > group.first.len() { li.note { (group.tasks - group.first.len()) " more" } }
                }
            }
        }
    }
}

fn word(behind: Behind) -> &'static str {
    match behind {
        Behind::Ended => "behind what has ended:",
        Behind::Gone => "behind what is gone:",
        Behind::Cycle => "wait for each other",
        Behind::Review => "behind reviews:",
        Behind::Work => "behind work:",
        Behind::Retry => "behind retries:",
        Behind::Ready => "behind what is ready:",
    }
}

fn names(by: &[Named]) -> String {
    match by {
        [one] => format!("{} {}", one.name(), one.title),
        all => all.iter().map(Named::name).collect::<Vec<_>>().join(", "),
    }
}

pub(super) fn latest(board: &Board, visit: &Visit) -> Markup {
    html! {
        section #latest aria-labelledby="latest-title" {
            (heading("latest-title", "Latest", None, "newest first"))
            @if board.latest.is_empty() { p.empty { "Nothing has happened yet." } }
            @else {
                ul.cards.lines.card {
                    @for one in &board.latest { (event(one, board.now, visit)) }
                    li.more { a href="/events" { "All events" } }
                }
            }
        }
    }
}

/// An event as one line.
pub(in crate::web::pages) fn event(one: &Latest, now: Timestamp, visit: &Visit) -> Markup {
    html! {
        li data-key=(one.seq) {
            (clock(one.at, now))
            @if let Some(actor) = &one.actor { (who(actor, visit)) }
            span.said {
                span class=(colour(one.tone)) { (one.word) } " "
                @if let Some(id) = &one.task {
                    a href=(parts::task_href(id.as_str())) { (one.text) }
                } @else { (one.text) }
            }
            @if one.undoable && one.actor.as_ref().is_some_and(|actor| visit.reader().is(actor)) {
                (Act::new("event", "undo").with("event", &one.seq.to_string()).button(visit, "undo"))
            }
        }
    }
}
