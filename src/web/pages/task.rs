//! One task: what it is, every attempt at it, what it changed, what it hangs together with.

mod acts;
mod attempts;
mod changes;
mod facts;

use maud::{Markup, html};

use super::markdown;
use crate::git::change::Diff;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, TaskId};
use crate::state::message::Message;
use crate::state::task::{Task, TaskStatus};
use crate::state::time::Timestamp;
use crate::view::{Board, Detail, Latest, Named, Standing};
use crate::web::parts::{clock, heading, stands, task_href, who};
use crate::web::visit::Visit;
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

/// What the page is made of.
pub(in crate::web) struct Sheet {
    pub task: Task,
    pub detail: Detail,
    pub latest: Vec<Latest>,
}

pub(in crate::web) fn page(board: &Board, sheet: &Sheet, visit: &Visit) -> Page {
    let section = |id: &'static str, html| Section { id: id.into(), html };
    let name = sheet.name();
    // Nobody has changed anything before the first attempt.
    let changes = (!sheet.task.attempts.is_empty()).then(|| changes::waiting(sheet));
    Page {
        title: shell::title(board, &format!("{name} {}", sheet.task.headline())),
        place: Place::None,
        layout: Layout::One,
        renewed: Renewed::All,
        sections: [
            Some(section("head", shell::small(board))),
            Some(section(
                "task",
                html! {
                    div #task {
                        (intro(sheet, visit))
                        (attempts::section(sheet, visit))
                    }
                },
            )),
            changes.map(|html| section("changes", html)),
            Some(section(
                "facts",
                html! {
                    div #facts {
                        (facts::section(sheet, visit))
                        (happened(sheet, visit))
                        (messages(sheet, visit))
                        (found(sheet, visit))
                    }
                },
            )),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

/// The page of what the work on a task changed, from which its own page takes it.
pub(in crate::web) fn diff(board: &Board, task: &Task, diff: &Diff, visit: &Visit) -> Page {
    let is_reviewed = task.status == TaskStatus::Review && visit.may_act();
    Page {
        title: shell::title(board, &format!("Changes of {}", task.headline())),
        place: Place::None,
        layout: Layout::Page,
        renewed: Renewed::Head,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section { id: "of".into(), html: of(task, is_reviewed, visit) },
            Section { id: "changes".into(), html: changes::section(task, diff, is_reviewed) },
        ],
    }
}

fn of(task: &Task, is_reviewed: bool, visit: &Visit) -> Markup {
    html! {
        div #of {
            p.crumbs { a href=(task_href(task.id.as_str())) { (task.headline()) } }
            h1 { "What its work changed" }
            @if is_reviewed { (acts::send_back(task, visit)) }
        }
    }
}

impl Sheet {
    fn name(&self) -> String {
        self.detail.number.map_or_else(|| self.task.id.to_string(), |number| format!("#{number}"))
    }

    fn now(&self) -> Timestamp {
        self.detail.now
    }

    /// How the task stands, or how it ended if it has left the board.
    fn stands(&self) -> Standing {
        self.detail.standing.clone().unwrap_or(Standing::Is(self.task.status))
    }

    /// What people call the tasks that this one depends on.
    fn dependencies(&self) -> Vec<String> {
        let name = |id: &TaskId| {
            let named = self.detail.needs.iter().find(|named| named.id == *id);
            named.map_or_else(|| id.to_string(), Named::name)
        };
        self.task.dependencies.iter().map(name).collect()
    }
}

fn intro(sheet: &Sheet, visit: &Visit) -> Markup {
    let task = &sheet.task;
    html! {
        section aria-labelledby="title" {
            @if !sheet.detail.above.is_empty() {
                p.crumbs {
                    @for above in &sheet.detail.above {
                        a href=(task_href(above.id.as_str())) { (above.title) } span aria-hidden="true" { "›" }
                    }
                }
            }
            h1 #title { span.number { (sheet.name()) } " " (task.headline()) }
            p.status {
                strong { (stands(&sheet.stands())) }
                @if let Some(by) = &task.claimed_by { span { "by " (who(by, visit)) } }
                @if let Some(at) = task.completed_at.or(task.claimed_at) { span { "since " (clock(at, sheet.now())) } }
                @if let Some(at) = task.not_before.filter(|at| *at > sheet.now()) { span { "not before " (clock(at, sheet.now())) } }
                @if let Some(stop) = &task.stop_requested { span.bad-text { "asked to stop " (clock(stop.at, sheet.now())) } }
            }
            @if !sheet.detail.waits_for.is_empty() {
                p.note { "Waits for " (facts::names(&sheet.detail.waits_for)) }
            }
            (acts::all(sheet, visit))
            @let text = task.description.trim();
            @if !text.is_empty() && text != task.headline() { div.prose { (markdown::html(text)) } }
            @if let Some(hints) = task.context.as_ref().and_then(|context| context.hints.as_deref()) {
                p.label { "Hints" }
                div.prose { (markdown::html(hints)) }
            }
            (acts::edit(sheet, visit))
        }
    }
}

fn happened(sheet: &Sheet, visit: &Visit) -> Markup {
    html! {
        section aria-labelledby="happened" {
            (heading("happened", "What happened", None, "newest first"))
            @if sheet.latest.is_empty() { p.empty { "Nothing that is still known." } }
            @else {
                ul.cards.lines.card {
                    @for one in &sheet.latest {
                        li {
                            (clock(one.at, sheet.now()))
                            span.plain {
                                @if let Some(actor) = &one.actor { (who(actor, visit)) " " }
                                span class=(crate::web::parts::colour(one.tone)) { (one.word) }
                                @if let Some(rest) = rest(one, sheet) { ": " (rest) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What the event says besides the name of the task.
fn rest<'e>(event: &'e Latest, sheet: &Sheet) -> Option<&'e str> {
    let named = event.text.strip_prefix(&sheet.name());
    let named = named.or_else(|| event.text.strip_prefix(sheet.task.id.as_str()));
    let text = named.map_or(event.text.as_str(), |rest| rest.trim_start().trim_start_matches('"'));
    let title = sheet.task.headline();
    let common = title.char_indices().zip(text.chars()).find(|((_, one), other)| one != other);
    // A long title ends early, with a sign for that.
    let begun = common.map_or(title.len().min(text.len()), |((place, _), _)| place);
    let is_title = begun == title.len() || text[begun..].starts_with('…');
    let text = if is_title { text[begun..].trim_start_matches(['…', '"']) } else { text };
    Some(text.trim_start_matches([':', ',', ' '])).filter(|text| !text.is_empty())
}

fn messages(sheet: &Sheet, visit: &Visit) -> Markup {
    let messages = &sheet.detail.messages;
    html! {
        @if !sheet.task.attempts.is_empty() || !messages.is_empty() {
            section aria-labelledby="messages" {
                (heading("messages", "Messages", None, "newest first"))
                (acts::comment(sheet, visit))
                @for message in messages { (letter(message, sheet.now(), visit)) }
            }
        }
    }
}

/// Who wrote the message.
fn author(message: &Message, visit: &Visit) -> Markup {
    match &message.person {
        Some(name) => who(&AgentId::of_person(name), visit),
        None => who(&message.from, visit),
    }
}

/// A message with all its text.
pub(super) fn letter(message: &Message, now: Timestamp, visit: &Visit) -> Markup {
    html! {
        div.message {
            div.row {
                (author(message, visit))
                span.note { "to " (if message.to == HUMAN { "you" } else { &message.to }) }
                @if message.question.is_some() { span.kind { (message.name()) } }
                (crate::web::parts::age(message.sent_at, now))
            }
            p.plain { (message.text) }
        }
    }
}

fn found(sheet: &Sheet, visit: &Visit) -> Markup {
    html! {
        @if !sheet.detail.found.is_empty() {
            section aria-labelledby="found" {
                (heading("found", "Found out here", Some(sheet.detail.found.len()), ""))
                @for one in &sheet.detail.found { (super::discoveries::card(one, sheet.now(), visit)) }
            }
        }
    }
}
