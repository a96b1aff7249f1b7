//! A page that says why there is no other.

use maud::html;

use crate::web::{Layout, Page, Place, Renewed, Section};

pub(in crate::web) fn page(text: &str) -> Page {
    let html = html! {
        section #failure { h1 { "Not here" } p { (text) } p { a href="/" { "To the board" } } }
    };
    Page {
        title: "Not here".to_owned(),
        place: Place::None,
        layout: Layout::Narrow,
        renewed: Renewed::Nothing,
        sections: vec![Section { id: "failure".into(), html }],
    }
}
