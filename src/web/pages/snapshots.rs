//! Snapshots of the board, to which it can be set back.

use maud::html;
use serde_json::Value;

use crate::view::Board;
use crate::view::told::text;
use crate::web::parts::command;
use crate::web::{Layout, Page, Place, Section, shell};

pub(in crate::web) fn page(board: &Board, snapshots: &Value) -> Page {
    let all = snapshots["snapshots"].as_array().map(Vec::as_slice).unwrap_or_default();
    Page {
        title: "Snapshots".to_owned(),
        place: Place::None,
        layout: Layout::Narrow,
        is_live: false,
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
                                thead { tr { th { "Name" } th { "Made" } th.tight { "Event" } } }
                                tbody {
                                    @for one in all {
                                        tr { td.mono { (text(&one["name"])) } td { (text(&one["created_at"])) } td.tight { (text(&one["seq"])) } }
                                    }
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
