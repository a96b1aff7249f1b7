//! What agents found out.

use std::sync::Arc;

use maud::{Markup, html};

use super::Query;
use crate::state::discovery::Discovery;
use crate::state::time::Timestamp;
use crate::view::Board;
use crate::web::parts::{age, command, task_href, who};
use crate::web::visit::Visit;
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

/// Discoveries of a page.
pub(in crate::web) const PAGE: usize = 100;

pub(in crate::web) fn page(
    board: &Board,
    found: &[Arc<Discovery>],
    total: usize,
    query: &Query,
    visit: &Visit,
) -> Page {
    let after = query.after.unwrap_or_default();
    let next = after + found.len() as u64;
    Page {
        title: shell::title(board, "Discoveries"),
        place: Place::Discoveries,
        layout: Layout::Narrow,
        renewed: Renewed::All,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "discoveries".into(),
                html: html! {
                    section #discoveries {
                        h1 { "What agents found out" }
                        @if found.is_empty() {
                            div.empty {
                                p { "Nothing yet. Agents share what others should know with add_discovery; so can you:" }
                                (command("callboard discover TEXT"))
                            }
                        }
                        @for one in found { (card(one, board.now, visit)) }
                        @if next < total as u64 { p.next-page { a.button href=(query.further("/discoveries", next)) { "Older" } } }
                    }
                },
            },
        ],
    }
}

pub(super) fn card(one: &Discovery, now: Timestamp, visit: &Visit) -> Markup {
    html! {
        div.message {
            div.row { (who(&one.agent_id, visit)) (age(one.created_at, now)) }
            p.plain { (one.content) }
            p.note {
                @for tag in &one.tags { span.tag { (tag) } " " }
                @for file in one.files.iter().take(10) { span.mono { (file) } " " }
                @if let Some(id) = &one.task_id { "at " a href=(task_href(id.as_str())) { (id) } }
            }
        }
    }
}
