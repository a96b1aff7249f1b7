//! What a search finds.

use maud::{Markup, html};

use super::Query;
use crate::view::{Board, Found, Rows};
use crate::web::parts::{self, agent, heading, task};
use crate::web::visit::Visit;
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

pub(in crate::web) fn page(board: &Board, found: &Found, query: &Query, visit: &Visit) -> Page {
    let asked = query.q.as_deref().unwrap_or_default();
    let total = found.tasks.total() + found.agents.total() + found.discoveries.total();
    let title = format!("Search: {asked}");
    Page {
        title: shell::title(board, title.trim_end_matches([':', ' '])),
        place: Place::None,
        layout: Layout::Narrow,
        renewed: Renewed::Head,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "search".into(),
                html: html! {
                    section #search {
                        h1 { "Search" }
                        form.acts action="/search" {
                            input type="search" name="q" value=(asked) aria-label="Words" autofocus;
                            button.first { "Search" }
                        }
                        @if asked.is_empty() { p.empty { "Words of a title, a description, a name or a discovery; a number such as #12; a path such as P1.M2." } }
                        @else if total == 0 { p.empty { "Nothing has all of these words. Events and results of earlier tasks: " code { "callboard history" } } }
                        @else { (results(found, visit)) }
                    }
                },
            },
        ],
    }
}

fn results(found: &Found, visit: &Visit) -> Markup {
    html! {
        @if !found.tasks.is_empty() {
            (heading("tasks", "Tasks", Some(found.tasks.total()), ""))
            ul.cards {
                @for (named, excerpt) in &found.tasks.rows {
                    li.card {
                        div.row { (task(named)) (parts::named(named)) }
                        @if let Some(excerpt) = excerpt { p.note { (excerpt) } }
                    }
                }
            }
            (more(&found.tasks))
        }
        @if !found.agents.is_empty() {
            (heading("agents", "Agents", Some(found.agents.total()), ""))
            ul.cards.lines.card { @for id in &found.agents.rows { li { (agent(id)) } } }
            (more(&found.agents))
        }
        @if !found.discoveries.is_empty() {
            (heading("discoveries", "Discoveries", Some(found.discoveries.total()), ""))
            @for one in &found.discoveries.rows { (super::discoveries::card(one, found.now, visit)) }
            (more(&found.discoveries))
        }
    }
}

fn more<T>(rows: &Rows<T>) -> Markup {
    html! { @if rows.more > 0 { p.note { (rows.more) " more; more words narrow it" } } }
}
