//! What waits for the person, each with what ends it.

use maud::{Markup, html};

use crate::view::{Board, Wait, WaitKind};
use crate::web::parts::{self, Act, age, command, heading, line, needed, opened, task, who};
use crate::web::visit::Visit;

pub(super) fn section(board: &Board, visit: &Visit) -> Markup {
    let waits = &board.waits;
    html! {
        section #waits aria-labelledby="waits-title" {
            (heading("waits-title", "Waits for you", Some(waits.total()), "oldest first"))
            @if waits.is_empty() { (nothing(board)) }
            ul.cards {
                @for wait in &waits.rows { (card(board, wait, visit)) }
            }
            @if waits.more > 0 {
                p.note { (waits.more) " more; answer these first, or " a href="/?rows=200" { "show them" } }
            }
        }
    }
}

/// What to do next on a board on which nothing waits.
fn nothing(board: &Board) -> Markup {
    html! {
        div.empty {
            @if board.counts.total == 0 {
                p { strong { "No tasks yet." } " Add a plan, as a Markdown list or as JSON:" }
                (command("callboard plan import PLAN.md"))
                p { "or one task with " a.button href="/add" { "Add task" } }
            } @else if board.agents.is_empty() && board.counts.done < board.counts.total {
                p { strong { "No agents yet." } " Put one to work: connect a client, then tell it to take tasks." }
                (command("callboard connect claude"))
            } @else {
                p { "Nothing. Questions, reviews and failures appear here." }
            }
        }
    }
}

/// The kind of what waits, as a word.
pub(in crate::web) fn kind(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Permission => "Permission",
        WaitKind::Input => "At its prompt",
        WaitKind::Question => "Question",
        WaitKind::Message => "Message",
        WaitKind::Review => "Review",
        WaitKind::Failed => "Failed",
        WaitKind::NoSign => "No sign",
        WaitKind::Untaken => "Untaken",
        WaitKind::Stuck => "Stuck",
        WaitKind::Unread => "Not read",
    }
}

fn card(board: &Board, wait: &Wait, visit: &Visit) -> Markup {
    let class = match wait.kind {
        WaitKind::Permission | WaitKind::Input | WaitKind::Question => "ask",
        WaitKind::Untaken | WaitKind::Unread => "ask",
        WaitKind::Failed | WaitKind::NoSign | WaitKind::Stuck => "bad",
        WaitKind::Message | WaitKind::Review => "",
    };
    html! {
        li class={ "card " (class) } data-key={ (wait.kind.as_str()) " " (wait.name) } {
            div.row {
                span.kind { (kind(wait.kind)) }
                @match wait.kind {
                    WaitKind::Review | WaitKind::Failed => { @if let Some(named) = &wait.task { (task(named)) } },
                    WaitKind::Untaken | WaitKind::Stuck | WaitKind::Unread => span.what { (wait.name) },
                    WaitKind::Question => {
                        span.number { (wait.name) }
                        @if let Some(id) = &wait.agent { (who(id, visit)) }
                    },
                    _ => { @if let Some(id) = &wait.agent { (who(id, visit)) } },
                }
                @if let Some(since) = wait.since { (age(since, board.now)) }
            }
            (body(wait, visit))
        }
    }
}

fn body(wait: &Wait, visit: &Visit) -> Markup {
    match wait.kind {
        WaitKind::Permission | WaitKind::Input => at_prompt(wait),
        WaitKind::Question => question(wait, visit),
        WaitKind::Message => message(wait, visit),
        WaitKind::Review => review(wait, visit),
        WaitKind::Failed => failed(wait, visit),
        WaitKind::NoSign => no_sign(wait, visit),
        WaitKind::Untaken | WaitKind::Stuck | WaitKind::Unread => html! {
            p.text { (wait.text) }
            @for remedy in &wait.remedies { (command(&parts::typed(remedy))) }
            @if wait.kind == WaitKind::Stuck { p { a href="/graph" { "Show in the graph" } } }
        },
    }
}

fn at_prompt(wait: &Wait) -> Markup {
    html! {
        @if !wait.text.is_empty() { p.text { code { (wait.text) } } }
        @if let Some(place) = &wait.place {
            div.command { span.note { "Answer in" } code { (place) } button type="button" data-copy=(place) { "copy" } }
        }
        (about(wait))
    }
}

/// The task that it is about.
fn about(wait: &Wait) -> Markup {
    html! { @if let Some(named) = &wait.task { div.row.note { (task(named)) } } }
}

/// The text of a message without its sender, whom the card names.
fn said(wait: &Wait) -> &str {
    let sender = wait.agent.as_ref().map(|agent| format!("{agent}: ")).unwrap_or_default();
    wait.text.strip_prefix(&sender).unwrap_or(&wait.text)
}

fn question(wait: &Wait, visit: &Visit) -> Markup {
    let id = wait.message.as_ref().map_or("", |id| id.as_str());
    let answer = Act::new("waits", "answer").with("message", id);
    html! {
        p.text { (said(wait)) }
        (about(wait))
        div.acts {
            @if !wait.options.is_empty() {
                (answer.form(visit, html! {
                    @for option in &wait.options { button name="text" value=(option) { (option) } }
                }))
            }
            (answer.wide().form(visit, html! {
                (needed("text", &format!("Answer to {}", wait.name)))
                button.first { "Answer" }
            }))
        }
    }
}

fn message(wait: &Wait, visit: &Visit) -> Markup {
    let id = wait.message.as_ref().map_or("", |id| id.as_str());
    html! {
        p.text { (said(wait)) }
        (about(wait))
        div.acts {
            (Act::new("waits", "read").with("message", id).button(visit, "Read"))
            (opened(visit, "Reply", Act::new("waits", "answer").with("message", id).wide().form(visit, html! {
                (needed("text", &format!("Reply to {}", wait.name)))
                button.first { "Send" }
            })))
        }
    }
}

fn review(wait: &Wait, visit: &Visit) -> Markup {
    let Some(named) = &wait.task else { return html! {} };
    let attempt = wait.attempt.map(|attempt| attempt.to_string()).unwrap_or_default();
    let decide = |action| {
        Act::new("waits", action).with("task", named.id.as_str()).with("attempt", &attempt)
    };
    html! {
        @if let Some(id) = &wait.agent { p.note { "by " (who(id, visit)) } }
        div.acts {
            a.button href={ (parts::task_href(named.id.as_str())) "#changes" } { "Diff" }
            (decide("approve").first(visit, "Approve"))
            (opened(visit, "Send back", decide("reject").wide().form(visit, html! {
                (needed("reason", "What to do better"))
                button.first { "Send back" }
            })))
        }
    }
}

fn failed(wait: &Wait, visit: &Visit) -> Markup {
    let Some(named) = &wait.task else { return html! {} };
    let text = wait.text.strip_prefix(&named.title).unwrap_or(&wait.text);
    html! {
        p.note { (text.trim_start_matches([':', ';', ' '])) }
        div.acts {
            a.button href={ (parts::task_href(named.id.as_str())) "#attempts" } { "Log" }
            (Act::new("waits", "retry").with("task", named.id.as_str()).button(visit, "Retry"))
            (opened(visit, "Cancel", Act::new("waits", "cancel").with("task", named.id.as_str()).wide().form(visit, html! {
                (line("reason", "Why it is not to be done"))
                button.bad { "Cancel the task" }
            })))
        }
    }
}

fn no_sign(wait: &Wait, visit: &Visit) -> Markup {
    let name = wait.agent.as_ref().map_or("", |agent| agent.as_str());
    html! {
        p.note { (wait.text) }
        div.acts {
            @if let Some(named) = &wait.task {
                (Act::new("waits", "release").with("task", named.id.as_str()).button(visit, "Release"))
            }
            (opened(visit, "Stop", Act::new("waits", "stop").with("agent", name).with("now", "true").wide().form(visit, html! {
                (line("reason", "Reason"))
                button.bad { "Stop now" }
            })))
        }
    }
}
