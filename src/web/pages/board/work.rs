//! Who does what, since when, and the last sign of them.

use maud::{Markup, html};

use crate::view::{AgentRow, Board, Sign};
use crate::web::parts::{Act, age, agent, command, heading, line, needed, opened, task};
use crate::web::visit::Visit;

pub(super) fn section(board: &Board, visit: &Visit) -> Markup {
    let (busy, idle): (Vec<_>, Vec<_>) =
        board.agents.rows.iter().partition(|row| row.sign != Sign::Idle);
    html! {
        section #work aria-labelledby="work-title" {
            (heading("work-title", "In work", Some(busy.len()), "by agent"))
            @if busy.is_empty() { (nothing(board)) }
            ul.cards { @for row in &busy { (card(board, row, visit)) } }
            @if !idle.is_empty() {
                p.note.idle {
                    "Without a task: "
                    @for (place, row) in idle.iter().enumerate() {
                        @if place > 0 { ", " }
                        (agent(&row.id)) @if row.paused.is_some() { " (paused)" }
                    }
                }
            }
            @if board.agents.more + board.ended > 0 {
                p.note {
                    a href="/agents" {
                        @if board.agents.more > 0 { (board.agents.more) " more agents" }
                        @if board.agents.more > 0 && board.ended > 0 { ", " }
                        @if board.ended > 0 { (board.ended) " that have ended" }
                    }
                }
            }
        }
    }
}

fn nothing(board: &Board) -> Markup {
    html! {
        div.empty {
            @if board.agents.is_empty() {
                p { "No agent is here. Connect a client:" }
                (command("callboard connect claude"))
            } @else {
                p { "No agent holds a task." }
            }
        }
    }
}

fn card(board: &Board, row: &AgentRow, visit: &Visit) -> Markup {
    let class = match row.sign {
        Sign::Waiting => "ask",
        Sign::Gone | Sign::Quiet => "bad",
        Sign::Working | Sign::Idle => "",
    };
    html! {
        li class={ "card " (class) } data-key=(row.id.as_str()) {
            div.row {
                (agent(&row.id))
                @if let Some(word) = word(row) { span.kind { (word) } }
                span.age {
                    @if let Some(since) = row.since { span title="with this task" { (age(since, board.now)) } " · " }
                    span title="since its last sign" { (age(row.last_sign, board.now)) }
                }
            }
            @if let Some(named) = &row.task { div.row { (task(named)) } }
            @if let Some(note) = &row.note { p.note { "“" (note) "”" } }
            @if row.branch.is_some() || row.others > 0 {
                p.note {
                    @if let Some(branch) = &row.branch { span.mono { (branch) } }
                    @if row.others > 0 { " and " (row.others) " more tasks" }
                }
            }
            (acts(row, visit))
        }
    }
}

fn word(row: &AgentRow) -> Option<String> {
    let word = match row.sign {
        Sign::Waiting => "▲ waits for you".to_owned(),
        Sign::Gone => "▲ process ended".to_owned(),
        Sign::Quiet => "▲ no sign".to_owned(),
        _ if row.stop_asked.is_some() => "asked to stop".to_owned(),
        _ if row.paused.is_some() => "paused".to_owned(),
        _ => format!("asks {}", row.asks.as_ref()?),
    };
    Some(word)
}

fn acts(row: &AgentRow, visit: &Visit) -> Markup {
    let name = row.id.as_str();
    let stop = Act::new("work", "stop").with("agent", name);
    html! {
        @if visit.may_act() {
            div.acts {
                (opened(visit, "Message", Act::new("work", "message").with("to", name).wide().form(visit, html! {
                    (needed("text", &format!("Message to {name}")))
                    button.first { "Send" }
                })))
                (opened(visit, "Stop", stop.wide().form(visit, html! {
                    (line("reason", &format!("Why {name} is to stop")))
                    button { "Ask it to stop" }
                    button.bad name="now" value="true" { "Stop now" }
                })))
            }
        }
    }
}
