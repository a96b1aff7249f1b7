//! Lists of tasks, a page at a time.

use maud::{Markup, html};

use super::Query;
use crate::view::{Board, Kind, List, Listed, PAGE};
use crate::web::parts::{age, agent, part, stands, task_href};
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

pub(in crate::web) fn page(board: &Board, list: &List, query: &Query) -> Page {
    Page {
        title: shell::title(board, &format!("Tasks: {}", list.kind.as_str())),
        place: Place::Tasks,
        layout: Layout::Page,
        renewed: Renewed::All,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "tasks".into(),
                html: html! {
                    section #tasks {
                        h1 { "Tasks" }
                        (kinds(list, query))
                        @if query.narrows() { p.note { "Shown: " (query.said()) " · " a href={ "/tasks?is=" (list.kind.as_str()) } { "show all" } } }
                        @if list.rows.is_empty() { p.empty { "No task is " (list.kind.as_str()) "." } }
                        @else { (table(list)) (further(list, query)) }
                    }
                },
            },
        ],
    }
}

fn kinds(list: &List, query: &Query) -> Markup {
    html! {
        nav.pages aria-label="Kinds of tasks" {
            @for (kind, word) in Kind::ALL {
                a href=(query.first_page().list(word)) aria-current=[(kind == list.kind).then_some("page")] {
                    (word) @if kind == list.kind { " " b { (list.total) } }
                }
            }
        }
    }
}

fn table(list: &List) -> Markup {
    html! {
        table.table {
            thead { tr { th.tight { "#" } th { "Task" } th.tight { "Status" } th.wide-only { "Agent" } th.wide-only { "Tags" } th.tight { "Since" } } }
            tbody { @for row in &list.rows { (line(list, row)) } }
        }
    }
}

fn line(list: &List, row: &Listed) -> Markup {
    html! {
        tr data-key=(row.card.id.as_str()) {
            td.tight { span.number { (row.card.number) } }
            td { a href=(task_href(row.card.id.as_str())) { (row.card.title) } }
            td.tight { (stands(&row.standing)) }
            td.wide-only { @if let Some(by) = &row.agent { (agent(by)) } }
            td.wide-only { @for tag in &row.card.tags { a.tag href={ "/?tag=" (part(tag)) } { (tag) } " " } }
            td.tight { (age(row.at, list.now)) }
        }
    }
}

fn further(list: &List, query: &Query) -> Markup {
    let next = list.after + list.rows.len();
    html! {
        p.next-page.acts {
            @if list.after > 0 { a.button href=(query.further("/tasks", list.after.saturating_sub(PAGE) as u64)) { "Previous " (PAGE) } }
            @if next < list.total { a.button href=(query.further("/tasks", next as u64)) { "Next " (PAGE.min(list.total - next)) } }
            span.note { (list.after + 1) " to " (next) " of " (list.total) }
        }
    }
}
