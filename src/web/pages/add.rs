//! A new task.

use maud::html;

use crate::view::Board;
use crate::web::parts::{Act, command, relations};
use crate::web::visit::Visit;
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

pub(in crate::web) fn page(board: &Board, visit: &Visit) -> Page {
    Page {
        title: shell::title(board, "Add a task"),
        place: Place::None,
        layout: Layout::Narrow,
        renewed: Renewed::Head,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "add".into(),
                html: html! {
                    section #add {
                        h1 { "Add a task" }
                        (Act::new("new", "add").stacked().form(visit, html! {
                            label { "Title" input name="title" autofocus; }
                            label { "What is to be done" textarea name="description" rows="7" {} }
                            div.pair { label { "Priority, 1 is first" input type="number" name="priority" min="1" max="10" value="5"; } }
                            (relations("", ""))
                            div.acts { button.first { "Add" } a.button href="/" { "Back" } }
                        }))
                        @if !visit.may_act() { p.empty { "You may look, but not add tasks." } }
                        p.note { "Many at once:" }
                        (command("callboard plan import PLAN.md"))
                    }
                },
            },
        ],
    }
}
