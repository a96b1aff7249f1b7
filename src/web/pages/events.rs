//! What happened, a page at a time.

use maud::html;

use super::Query;
use crate::view::{Board, Latest};
use crate::web::visit::Visit;
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

pub(in crate::web) fn page(
    board: &Board,
    events: &[Latest],
    next: Option<u64>,
    query: &Query,
    visit: &Visit,
) -> Page {
    Page {
        title: shell::title(board, "Events"),
        place: Place::Events,
        layout: Layout::Narrow,
        renewed: Renewed::All,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "events".into(),
                html: html! {
                    section #events {
                        h1 { "Events" }
                        @if let Some(agent) = &query.filter.agent { p.note { "Of " (agent) " · " a href="/events" { "of all" } } }
                        @if events.is_empty() { p.empty { "Nothing has happened." } }
                        @else { ul.cards.lines.card.whole { @for one in events { (super::board::event(one, board.now, visit)) } } }
                        p.next-page.acts {
                            @if let Some(next) = next { a.button href=(query.further("/events", next)) { "Older" } }
                            @if query.after.is_some() { a.button href="/events" { "Newest" } }
                        }
                        p.note { "As a stream in the terminal: " code { "callboard watch" } }
                    }
                },
            },
        ],
    }
}
