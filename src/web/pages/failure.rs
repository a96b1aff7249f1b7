//! A page that says why there is no other.

use maud::html;

use crate::web::{Page, Section};

pub(in crate::web) fn page(text: &str) -> Page {
    let html = html! {
        section #failure { p { (text) } p { a href="/" { "To the board" } } }
    };
    Page {
        title: "Not here".to_owned(),
        sections: vec![Section { id: "failure".into(), html }],
        is_live: false,
    }
}
