//! The first screen.

use maud::html;

use crate::view::Board;
use crate::web::visit::Visit;
use crate::web::{Page, Section};

pub(in crate::web) fn page(board: &Board, _visit: &Visit) -> Page {
    let next = html! {
        section #next {
            h2 { "Next " b { (board.next.total()) } }
            ul { @for card in &board.next.rows { li { "#" (card.number) " " (card.title) } } }
        }
    };
    let waits = html! {
        section #waits {
            h2 { "Waits for you " b { (board.waits.total()) } }
            ul { @for wait in &board.waits.rows { li { (wait.text) } } }
        }
    };
    let section = |id: &'static str, html| Section { id: id.into(), html };
    Page {
        title: board.head.goal.to_string(),
        sections: vec![section("waits", waits), section("next", next)],
        is_live: true,
    }
}
