//! The agents, and one of them.

use maud::{Markup, html};

use super::task::letter;
use crate::state::message::Message;
use crate::state::task::Outcome;
use crate::view::columns::span;
use crate::view::{AgentRow, Board, Latest, Profile, Sign, Worked};
use crate::web::parts::{Act, age, agent, clock, command, heading, line, needed, opened, task};
use crate::web::visit::Visit;
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

pub(in crate::web) fn page(board: &Board) -> Page {
    Page {
        title: shell::title(board, "Agents"),
        place: Place::Agents,
        layout: Layout::Page,
        renewed: Renewed::All,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section { id: "agents".into(), html: all(board) },
        ],
    }
}

fn all(board: &Board) -> Markup {
    html! {
        section #agents {
            h1 { "Agents" }
            @if board.agents.is_empty() {
                div.empty {
                    p { strong { "No agent is here." } " Connect a client, then tell it to take tasks of the board:" }
                    (command("callboard connect claude"))
                    p { "or let callboard run commands as agents:" }
                    (command("callboard work --exec COMMAND"))
                }
            } @else {
                table.table {
                    thead { tr { th { "Agent" } th { "Now" } th.wide-only { "Newest note" } th.tight { "For" } th.tight { "Last sign" } } }
                    tbody { @for row in &board.agents.rows { (line_of(board, row)) } }
                }
            }
            @if board.agents.more > 0 { p.note { (board.agents.more) " more; search finds them by name" } }
            @if board.ended > 0 { p.note { (board.ended) " others have ended" } }
        }
    }
}

fn line_of(board: &Board, row: &AgentRow) -> Markup {
    html! {
        tr data-key=(row.id.as_str()) {
            td { (agent(&row.id)) @if row.role.as_str() != "worker" { " " span.tag { (row.role.as_str()) } } }
            td {
                @if let Some(named) = &row.task { (task(named)) " " }
                span class=(colour(row.sign)) { (word(row.sign)) }
            }
            td.wide-only { @if let Some(note) = &row.note { span.note { (note) } } }
            td.tight { @if let Some(since) = row.since { (age(since, board.now)) } }
            td.tight { (age(row.last_sign, board.now)) }
        }
    }
}

fn word(sign: Sign) -> &'static str {
    match sign {
        Sign::Waiting => "waits for you",
        Sign::Gone => "its process has ended",
        Sign::Quiet => "no sign",
        Sign::Working => "at work",
        Sign::Idle => "without a task",
    }
}

fn colour(sign: Sign) -> &'static str {
    match sign {
        Sign::Waiting => "ask-text",
        Sign::Gone | Sign::Quiet => "bad-text",
        Sign::Working => "good",
        Sign::Idle => "over",
    }
}

pub(in crate::web) fn one(
    board: &Board,
    profile: &Profile,
    latest: &[Latest],
    visit: &Visit,
) -> Page {
    let name = profile.agent.id.as_str();
    Page {
        title: shell::title(board, name),
        place: Place::Agents,
        layout: Layout::One,
        renewed: Renewed::All,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "agent".into(),
                html: html! {
                    div #agent {
                        (intro(profile, visit))
                        (attempts(profile))
                        (events(profile, latest, visit))
                    }
                },
            },
            Section {
                id: "letters".into(),
                html: html! {
                    div #letters {
                        (facts(profile))
                        (messages(profile, visit))
                    }
                },
            },
        ],
    }
}

fn intro(profile: &Profile, visit: &Visit) -> Markup {
    let row = &profile.row;
    html! {
        section aria-labelledby="title" {
            p.crumbs { a href="/agents" { "Agents" } }
            h1 #title { (row.id.as_str()) }
            p.status {
                strong class=(colour(row.sign)) { (word(row.sign)) }
                span { "last sign " (age(row.last_sign, profile.now)) }
                @if row.paused.is_some() { span.ask-text { "gets no more tasks" } }
                @if row.stop_asked.is_some() { span.bad-text { "asked to stop" } }
            }
            @if let Some(waiting) = &row.waits {
                div.card.ask {
                    div.row { span.kind { "Waits for " (waiting.reason.as_str()) } (age(waiting.since, profile.now)) }
                    @if let Some(what) = &waiting.what { p { code { (what) } } }
                    @if let Some(place) = &waiting.place { p.note { "in " (place) } }
                }
            }
            @for named in &profile.tasks { div.row { (task(named)) } }
            @if let Some(note) = &row.note { p.note { "“" (note) "”" } }
            (acts(profile, visit))
        }
    }
}

fn acts(profile: &Profile, visit: &Visit) -> Markup {
    let name = profile.row.id.as_str();
    html! {
        @if visit.may_act() {
            div.acts {
                @if profile.row.paused.is_some() { (Act::new("agent", "resume").with("agent", name).first(visit, "Let it take tasks")) }
                @else { (Act::new("agent", "pause").with("agent", name).button(visit, "No more tasks")) }
                (opened(visit, "Stop", Act::new("agent", "stop").with("agent", name).wide().form(visit, html! {
                    (line("reason", &format!("Why {name} is to stop")))
                    button { "Ask it to stop" }
                    button.bad name="now" value="true" { "Stop now" }
                })))
            }
        }
    }
}

fn attempts(profile: &Profile) -> Markup {
    html! {
        section aria-labelledby="did" {
            (heading("did", "What it did", Some(profile.attempts.len()), "newest first"))
            @if profile.attempts.is_empty() { p.empty { "It has not taken a task yet." } }
            @else {
                ul.cards.lines.card { @for one in &profile.attempts { (attempt(profile, one)) } }
            }
        }
    }
}

fn attempt(profile: &Profile, one: &Worked) -> Markup {
    let (word, class) = match one.outcome {
        None => ("at it", "busy"),
        Some(Outcome::Done) => ("done", "good"),
        Some(Outcome::Failed) => ("failed", "bad-text"),
        Some(Outcome::Expired) => ("no sign", "bad-text"),
        Some(Outcome::Rejected) => ("sent back", "bad-text"),
        Some(Outcome::Released) => ("put back", "over"),
        Some(Outcome::Cancelled) => ("cancelled", "over"),
    };
    html! {
        li {
            (clock(one.since, profile.now))
            (task(&one.task))
            span class={ "state " (class) } { (word) }
            @if let Some(text) = &one.text { span.said.note { (text) } }
            span.age { (span(one.until.unwrap_or(profile.now).since(one.since))) }
        }
    }
}

fn events(profile: &Profile, latest: &[Latest], visit: &Visit) -> Markup {
    html! {
        section aria-labelledby="happened" {
            (heading("happened", "Events", None, "newest first"))
            ul.cards.lines.card.whole { @for one in latest { (super::board::event(one, profile.now, visit)) } }
        }
    }
}

fn facts(profile: &Profile) -> Markup {
    let agent = &profile.agent;
    let list = |all: &std::collections::BTreeSet<String>| {
        all.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    html! {
        section aria-labelledby="facts-title" {
            (heading("facts-title", "Facts", None, ""))
            dl.facts {
                dt { "Role" } dd { (agent.role.as_str()) }
                dt { "Done" } dd { (agent.tasks_completed) @if agent.tasks_failed > 0 { ", failed " (agent.tasks_failed) } }
                @if let Some(at) = agent.registered_at { dt { "Here since" } dd { (clock(at, profile.now)) } }
                @if let Some(branch) = &profile.row.branch { dt { "Branch" } dd.mono { (branch) } }
                @if !agent.capabilities.is_empty() { dt { "Can" } dd { (list(&agent.capabilities)) } }
                @if !agent.tags.is_empty() { dt { "Tags" } dd { (list(&agent.tags)) } }
                @if agent.max_concurrent > 1 { dt { "At once" } dd { (agent.max_concurrent) } }
            }
        }
    }
}

fn messages(profile: &Profile, visit: &Visit) -> Markup {
    let name = profile.row.id.as_str();
    html! {
        section aria-labelledby="messages" {
            (heading("messages", "Messages", None, "newest first"))
            (Act::new("agent", "message").with("to", name).wide().form(visit, html! {
                (needed("text", &format!("Message to {name}")))
                button.first { "Send" }
            }))
            @if profile.messages.is_empty() { p.note { "None yet." } }
            @for message in &profile.messages {
                div class=[(message.from != profile.agent.id).then_some("own")] {
                    (letter(message, profile.now, visit))
                    (answer(message, profile, visit))
                }
            }
        }
    }
}

/// A way to answer what the agent asked.
fn answer(message: &Message, profile: &Profile, visit: &Visit) -> Markup {
    let is_open = message.question.is_some() && !message.unread_by.is_empty();
    html! {
        @if is_open && message.from == profile.agent.id {
            div.acts {
                (Act::new("agent", "answer").with("message", message.id.as_str()).wide().form(visit, html! {
                    @for option in &message.options { button name="text" value=(option) { (option) } }
                    (line("text", &format!("Answer to {}", message.name())))
                    button { "Answer" }
                }))
            }
        }
    }
}
