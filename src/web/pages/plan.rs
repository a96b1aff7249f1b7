//! The plan: its tasks as parts of each other, and its text.

use std::sync::Arc;

use maud::{Markup, html};

use super::{Query, markdown};
use crate::view::{Board, Branch, Tree};
use crate::web::parts::{command, named, task, task_href};
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

/// Depth to which parts are open at first.
const OPEN: usize = 2;

pub(in crate::web) fn page(board: &Board, tree: &Tree, text: &Arc<str>, query: &Query) -> Page {
    Page {
        title: shell::title(board, "Plan"),
        place: Place::Plan,
        layout: Layout::Page,
        renewed: Renewed::All,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "plan".into(),
                html: html! {
                    section #plan {
                        h1 { "Plan" }
                        @if query.scope.is_some() { p.note { "Shown: " (query.said()) " · " a href="/plan" { "all" } } }
                        @if tree.tops.is_empty() {
                            div.empty {
                                p { strong { "No tasks." } " A plan is a Markdown list or JSON:" }
                                (command("callboard plan import PLAN.md"))
                            }
                        } @else {
                            div.card.tree { (branches(&tree.tops, 0)) }
                            @if tree.more > 0 { p.note { (tree.more) " more: open a part with " code { "/plan?scope=P1" } ", or list all " a href="/tasks" { "tasks" } } }
                        }
                        @if !text.trim().is_empty() {
                            section { h2 { "Text of the plan" } div.prose { (markdown::html(text)) } }
                        }
                    }
                },
            },
        ],
    }
}

fn branches(all: &[Branch], depth: usize) -> Markup {
    html! {
        ul {
            @for one in all {
                li data-key=(one.task.id.as_str()) {
                    @if one.parts.is_empty() { (leaf(one)) }
                    @else { (whole(one, depth)) }
                }
            }
        }
    }
}

fn leaf(one: &Branch) -> Markup {
    html! {
        div.row {
            @if let Some(path) = &one.path { span.path { (path) } }
            (task(&one.task))
            (named(&one.task))
        }
    }
}

/// A task with parts. What opens it is no link, so its page is linked beside.
fn whole(one: &Branch, depth: usize) -> Markup {
    html! {
        a.beside href=(task_href(one.task.id.as_str())) { (one.task.name()) }
        details open[depth < OPEN] {
            summary {
                @if let Some(path) = &one.path { span.path { (path) } }
                span.what { (one.task.title) }
                @if let Some(progress) = &one.progress {
                    progress value=(progress.done) max=(progress.tasks.max(1)) aria-label={ "Done of " (one.task.name()) } {}
                    span.age { (progress.done) "/" (progress.tasks) }
                }
            }
            (branches(&one.parts, depth + 1))
        }
    }
}
