//! What is around every page.

use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON, SCRIPTS, STYLE, href};
use super::{Page, Seq, Visit, live};

/// `includeIndicatorCSS`: its style sheet would be one of the script's making.
const HTMX: &str =
    r#"{"extensions":"hx-csp,sse,board","includeIndicatorCSS":false,"history":false}"#;

/// Everything in `main` is a section, in the order of the page: that is what is kept up to date.
pub(super) fn page(visit: &Visit, page: &Page) -> Markup {
    let is_live = page.is_live && visit.caller.is_some();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (page.title) " · callboard" }
                meta name="htmx-config" content=(HTMX);
                link rel="icon" href=(href(ICON));
                link rel="stylesheet" href=(href(STYLE));
                @for script in SCRIPTS { script src=(href(script)) nonce=(visit.nonce) defer {} }
            }
            body {
                header { h1 { (page.title) } @if is_live { span #live-sign role="status" {} } }
                (notice(visit))
                main { @for section in &page.sections { (section.html) } }
                @if is_live { (live::connection(visit)) }
            }
        }
    }
}

/// What the last action came to. It is there without one, too, to be replaced. `data-done` tells the
/// script that the form has done its work, and `data-seq` which event the page's forms know now.
pub(super) fn notice(visit: &Visit) -> Markup {
    let is_done = visit.notice.as_ref().is_some_and(|notice| !notice.is_refusal);
    html! {
        div #notice role="status" data-seq=(Seq) data-done[is_done] {
            @if let Some(notice) = &visit.notice { p.refusal[notice.is_refusal] { (notice.text) } }
        }
    }
}
