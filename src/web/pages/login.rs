//! What a browser without a cookie gets, whatever it asked for.

use maud::{DOCTYPE, Markup, html};

use crate::web::assets::{ICON, LOGIN_SCRIPT, STYLE, href};
use crate::web::visit::Visit;

pub(in crate::web) fn page(visit: &Visit) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Log in · " (visit.board) " · callboard" }
                link rel="icon" href=(href(ICON));
                link rel="stylesheet" href=(href(STYLE));
            }
            body.login {
                main {
                    h1 { "Log in to " (visit.board) }
                    @if let Some(notice) = &visit.notice { p.notice role="alert" { (notice.text) } }
                    form #login method="post" action="/login" {
                        label { "Code " input name="code" required autocomplete="off" spellcheck="false"; }
                        button.first { "Log in" }
                    }
                    p { "A link with a code is printed, in the project's directory, by" }
                    pre { code { "callboard web --link" } }
                    p { "It works once, for a few minutes." }
                }
                script src=(href(LOGIN_SCRIPT)) nonce=(visit.nonce) type="module" {}
            }
        }
    }
}
