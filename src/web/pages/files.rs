//! Who holds which files.

use std::sync::Arc;

use maud::html;

use crate::state::reservation::Reservation;
use crate::view::{Board, Named};
use crate::web::parts::{agent, clock, command, task};
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

/// A reservation, and its task.
pub(in crate::web) type Held = (Arc<Reservation>, Option<Named>);

pub(in crate::web) fn page(board: &Board, held: &[Held]) -> Page {
    Page {
        title: shell::title(board, "Files"),
        place: Place::Files,
        layout: Layout::Page,
        renewed: Renewed::All,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "files".into(),
                html: html! {
                    section #files {
                        h1 { "Files that agents hold" }
                        @if held.is_empty() {
                            div.empty {
                                p { "None. Agents reserve the files that they are about to change; hooks stop others from writing to them." }
                                (command("callboard connect claude --hooks"))
                            }
                        } @else {
                            table.table {
                                thead { tr { th { "Files" } th { "Agent" } th.wide-only { "Task" } th.wide-only { "Why" } th.tight { "Until" } } }
                                tbody {
                                    @for (one, named) in held {
                                        tr {
                                            td.mono { (one.files.join(", ")) @if one.shared { " " span.tag { "shared" } } }
                                            td { (agent(&one.agent)) }
                                            td.wide-only { @if let Some(named) = named { (task(named)) } }
                                            td.wide-only { @if let Some(reason) = &one.reason { (reason) } }
                                            td.tight { @if let Some(until) = one.until { (clock(until, board.now)) } @else { "end of the task" } }
                                        }
                                    }
                                }
                            }
                        }
                    }
                },
            },
        ],
    }
}
