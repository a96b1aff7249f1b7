//! Keys that the pages obey.

use maud::html;

use crate::view::Board;
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

const KEYS: [(&str, &str); 8] = [
    ("/", "search"),
    ("j", "next card or row"),
    ("k", "the one before"),
    ("l", "next column"),
    ("h", "column before"),
    ("Enter", "open what is chosen"),
    ("?", "this page"),
    ("Esc", "close a menu, leave a field"),
];

pub(in crate::web) fn page(board: &Board) -> Page {
    Page {
        title: shell::title(board, "Keys"),
        place: Place::None,
        layout: Layout::Narrow,
        renewed: Renewed::Head,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "keys".into(),
                html: html! {
                    section #keys {
                        h1 { "Keys" }
                        dl.facts { @for (key, what) in KEYS { dt { kbd { (key) } } dd { (what) } } }
                        p.note { "Tasks under “Next” can be dragged to another place; their menu has the same and more. More pages: "
                            a href="/discoveries" { "discoveries" } ", " a href="/files" { "files" } ", " a href="/snapshots" { "snapshots" } "." }
                        p { button type="button" data-notify hidden { "Tell me when something waits for me" } }
                    }
                },
            },
        ],
    }
}
