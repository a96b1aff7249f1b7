//! The first screen: what waits for the person, who does what, what is next, done and stuck.

mod below;
mod tasks;
mod waits;
mod work;

pub(super) use below::event;
pub(in crate::web) use waits::kind;

use maud::{Markup, html};

use super::Query;
use crate::view::Board;
use crate::web::visit::Visit;
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

/// Rows of each list, unless the address says how many.
pub(in crate::web) const ROWS: u32 = 12;
/// Events at the end of the page.
pub(in crate::web) const LATEST: u32 = 8;

pub(in crate::web) fn page(board: &Board, query: &Query, visit: &Visit) -> Page {
    let section = |id: &'static str, html| Section { id: id.into(), html };
    let goal = if board.head.goal.is_empty() { "Board" } else { &*board.head.goal };
    Page {
        title: shell::title(board, goal),
        place: Place::Board,
        layout: Layout::Screen,
        renewed: Renewed::All,
        sections: vec![
            section("head", shell::head(board, query, visit)),
            section("state", state(board, query, visit)),
            section("waits", waits::section(board, visit)),
            section("work", work::section(board, visit)),
            section("next", tasks::queue(board, query, visit)),
            section("done", tasks::done(board, query)),
            section("blocked", below::blocked(board)),
            section("latest", below::latest(board, visit)),
        ],
    }
}

/// What is said across the page: that the board is paused, and what is left out of it.
fn state(board: &Board, query: &Query, visit: &Visit) -> Markup {
    html! {
        div #state {
            @if let Some(paused) = &board.head.paused {
                div.banner {
                    strong { "Paused." }
                    span {
                        "Agents get no tasks" @if let Some(reason) = &paused.reason { ": " (reason) }
                    }
                    (shell::resume(visit))
                }
            }
            @if query.narrows() {
                div.banner {
                    span { "Shown: " (query.said()) }
                    a href="/" { "Show all" }
                }
            }
        }
    }
}
