//! Snapshots of the board, to which it can be set back.

use maud::{Markup, html};

use crate::state::snapshot::{Listed, Occasion};
use crate::state::time::Timestamp;
use crate::view::Board;
use crate::web::parts::{clock, command};
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

pub(in crate::web) fn page(board: &Board, all: &[Listed]) -> Page {
    Page {
        title: shell::title(board, "Snapshots"),
        place: Place::None,
        layout: Layout::Narrow,
        renewed: Renewed::Head,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "snapshots".into(),
                html: html! {
                    section #snapshots {
                        h1 { "Snapshots" }
                        @if all.is_empty() { p.empty { "None yet. One is made before the board is set back, and by the command below." } }
                        @else {
                            table.table {
                                thead { tr { th.tight { "Made" } th { "Why" } th { "Name" } th.tight { "Event" } } }
                                tbody {
                                    @for one in all { (row(one, board.now)) }
                                }
                            }
                        }
                        p.note { "Setting a board back is done in the terminal, where what it changes is shown first:" }
                        (command("callboard snapshot create"))
                        (command("callboard restore"))
                    }
                },
            },
        ],
    }
}

fn row(one: &Listed, now: Timestamp) -> Markup {
    let head = one.head.as_ref();
    let why = head.map_or("damaged", |head| match (&head.label, head.occasion) {
        (Some(label), Occasion::OnDemand) => label,
        (_, occasion) => occasion.as_str(),
    });
    html! {
        tr {
            td.tight { (clock(head.map_or(one.name.at(), |head| head.taken_at), now)) }
            td { (why.replace('_', " ")) }
            td.mono { (one.name) }
            td.tight { @if let Some(head) = head { (head.seq) } }
        }
    }
}
