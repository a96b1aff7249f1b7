//! What is around every page: its head, the way to the other pages, what an action came to.

use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON, SCRIPTS, STYLE, href};
use super::pages::Query;
use super::pages::board::{ROWS, kind};
use super::parts::{Act, clock, line};
use super::{Page, Place, Renewed, Seq, Visit, live};
use crate::view::{Board, Head, Wait};

/// `includeIndicatorCSS`: its style sheet would be one of the script's making.
const HTMX: &str =
    r#"{"extensions":"hx-csp,sse,board","includeIndicatorCSS":false,"history":false}"#;
/// The section that is at the top of the page, and not in `main`.
pub(super) const HEAD: &str = "head";

/// Everything in `main` is a section, in the order of the page: that is what is kept up to date.
pub(super) fn page(visit: &Visit, page: &Page) -> Markup {
    let renewed = if visit.caller.is_some() { page.renewed } else { Renewed::Nothing };
    let (head, rest): (Vec<_>, Vec<_>) =
        page.sections.iter().partition(|section| section.id == HEAD);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (whole_title(&page.title)) }
                meta name="htmx-config" content=(HTMX);
                link rel="icon" href=(href(ICON));
                link rel="stylesheet" href=(href(STYLE));
                @for script in SCRIPTS { script src=(href(script)) nonce=(visit.nonce) defer {} }
            }
            body {
                a.skip href="#main" { "To the content" }
                header.top {
                    @for section in &head { (section.html) }
                    div.under {
                        (places(page.place))
                        @if renewed == Renewed::All { span #live-sign.live role="status" { "connecting" } }
                    }
                }
                (notice(visit))
                main #main class=(page.layout.class()) { @for section in &rest { (section.html) } }
                (foot(visit))
                @if renewed != Renewed::Nothing { (live::connection(visit, renewed)) }
            }
        }
    }
}

/// What the browser shows above a page.
pub(super) fn whole_title(page: &str) -> String {
    format!("{page} · callboard")
}

/// The title of a page: how many wait for the person, and what it shows.
pub(super) fn title(board: &Board, page: &str) -> String {
    match board.waits.total() {
        0 => page.to_owned(),
        count => format!("({count}) {page}"),
    }
}

/// What the last action came to. It is there without one, too, to be replaced. `data-done` tells the
/// script that the form has done its work, and `data-seq` which event the page's forms know now.
pub(super) fn notice(visit: &Visit) -> Markup {
    let is_done = visit.notice.as_ref().is_some_and(|notice| !notice.is_refusal);
    html! {
        div #notice role="status" data-seq=(Seq) data-done[is_done] {
            @if let Some(notice) = &visit.notice { p.banner.bad[notice.is_refusal] { (notice.text) } }
        }
    }
}

fn places(current: Place) -> Markup {
    html! {
        nav.pages aria-label="Pages" {
            @for (place, path, word) in Place::ALL {
                a href=(path) aria-current=[(place == current).then_some("page")] { (word) }
            }
        }
    }
}

fn foot(visit: &Visit) -> Markup {
    html! {
        footer.foot {
            span { kbd { "/" } " search  " kbd { "j" } " " kbd { "k" } " move  " kbd { "Enter" } " open  " a href="/keys" { kbd { "?" } " all keys" } }
            @if let Some(name) = visit.name() {
                span { "Logged in as " (name) @if !visit.may_act() { ", who may look but not act" } }
            }
        }
    }
}

/// How far the board is, and what can be done with all of it.
pub(super) fn head(board: &Board, query: &Query, visit: &Visit) -> Markup {
    let head = &board.head;
    let goal = goal(head);
    html! {
        div #head.head data-now=(board.now) {
            h1 title=(goal) { a href="/" { (goal) } }
            @if !board.parts.is_empty() { (scopes(board, query)) }
            (far(board))
            (waiting(board))
            div.tools {
                form role="search" action="/search" {
                    input type="search" name="q" placeholder="Search  /" aria-label="Search" data-search;
                }
                (filter(board, query))
                @if visit.may_act() {
                    a.button href="/add" { "Add task" }
                    @if head.paused.is_none() { (pause(visit)) }
                }
            }
        }
    }
}

fn goal(head: &Head) -> &str {
    if head.goal.is_empty() { "Board without a goal" } else { &head.goal }
}

/// The head of the pages that show a part of the board.
pub(super) fn small(board: &Board) -> Markup {
    html! {
        div #head.head data-now=(board.now) {
            div.board { a href="/" { (goal(&board.head)) } }
            (far(board))
            (waiting(board))
            div.tools {
                form role="search" action="/search" {
                    input type="search" name="q" placeholder="Search  /" aria-label="Search" data-search;
                }
            }
        }
    }
}

/// What the script tells where no page is looked at.
fn waiting(board: &Board) -> Markup {
    let since = |wait: &Wait| wait.since.map(|since| since.millis()).unwrap_or_default();
    html! {
        ul #waiting hidden data-total=(board.waits.total()) {
            @for wait in board.waits.rows.iter().take(ROWS as usize) {
                li data-wait={ (kind(wait.kind)) " " (wait.name) } data-since=(since(wait)) { (wait.text) }
            }
        }
    }
}

fn far(board: &Board) -> Markup {
    let Head { done, wanted, pace, ends_at, .. } = &board.head;
    html! {
        div.far {
            progress value=(done) max=(wanted.max(&1)) aria-label="Done" {}
            span {
                (done) " of " (wanted)
                @if let Some(pace) = pace { " · " (pace.per_hour) " an hour" }
                @if let Some(at) = ends_at { " · about " (clock(*at, board.now)) }
            }
        }
    }
}

/// The parts of the plan that the screen can be narrowed to.
fn scopes(board: &Board, query: &Query) -> Markup {
    let current = query.scope.as_deref();
    html! {
        details.menu {
            summary.button { (current.unwrap_or("Whole board")) " ▾" }
            div.sheet {
                a href=(query.at(None)) aria-current=[current.is_none().then_some("true")] { "Whole board" }
                @for part in &board.parts {
                    a.row href=(query.at(Some(&part.path))) aria-current=[(current == Some(&part.path)).then_some("true")] {
                        span.number { (part.path) } span.said { (part.title) }
                        span.age { (part.done) "/" (part.wanted) }
                    }
                }
            }
        }
    }
}

fn filter(board: &Board, query: &Query) -> Markup {
    let value = |value: &Option<String>| value.clone().unwrap_or_default();
    html! {
        details.menu {
            summary.button { "Filter" }
            div.sheet {
                form.fields action="/" {
                    @if let Some(scope) = &query.scope { input type="hidden" name="scope" value=(scope); }
                    label { "Text" input name="text" value=(value(&query.filter.text)); }
                    label { "Tag" input name="tag" value=(value(&query.filter.tag)); }
                    label {
                        "Agent"
                        input name="agent" value=(value(&query.filter.agent)) list="agents";
                        datalist #agents { @for row in board.agents.rows.iter().take(50) { option value=(row.id.as_str()) {} } }
                    }
                    button.first { "Show" }
                }
            }
        }
    }
}

fn pause(visit: &Visit) -> Markup {
    html! {
        details.menu {
            summary.button { "Pause all" }
            div.sheet {
                (Act::new("head", "pause").form(visit, html! {
                    (line("reason", "Why nothing is to be taken"))
                    button.first { "Pause" }
                }))
            }
        }
    }
}

pub(super) fn resume(visit: &Visit) -> Markup {
    Act::new("state", "resume").first(visit, "Resume")
}
