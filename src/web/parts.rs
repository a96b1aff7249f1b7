//! What pages are made of: ages, links to tasks and agents, forms that act.

use jiff::tz::TimeZone;
use maud::{Markup, Render, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Seq, Visit};
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::task::TaskStatus;
use crate::state::time::{DAY, Timestamp};
use crate::view::columns::span;
use crate::view::{Named, Standing, Tone};

/// What is escaped in a part of an address.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A part of an address.
pub(super) fn part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

pub(super) fn task_href(id: &str) -> String {
    format!("/tasks/{}", part(id))
}

pub(super) fn agent_href(id: &str) -> String {
    format!("/agents/{}", part(id))
}

/// How long ago it was. A script counts it on.
pub(super) fn age(at: Timestamp, now: Timestamp) -> Markup {
    html! { time.age datetime=(at) data-age title=(stamp(at)) { (span(now.since(at))) } }
}

/// The time of day, with the day unless it is today.
pub(super) fn clock(at: Timestamp, now: Timestamp) -> Markup {
    let far = now.since(at).abs() > DAY / 2;
    let form = if far { "%a %H:%M" } else { "%H:%M" };
    html! { time.when datetime=(at) title=(stamp(at)) { (local(at, form)) } }
}

fn stamp(at: Timestamp) -> String {
    local(at, "%Y-%m-%d %H:%M:%S")
}

/// The time where the server runs, which is where its pages are read.
pub(super) fn local(at: Timestamp, form: &str) -> String {
    let known = jiff::Timestamp::from_millisecond(at.millis());
    known
        .map(|at| TimeZone::system().to_datetime(at).strftime(form).to_string())
        .unwrap_or_default()
}

/// The class of a tone's colour.
pub(super) fn colour(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Busy => "busy",
        Tone::Waiting => "waiting",
        Tone::Bad => "bad-text",
        Tone::Over => "over",
    }
}

/// How a task stands.
pub(super) fn stands(standing: &Standing) -> Markup {
    html! { span class={ "state " (colour(standing.tone())) } { (said(standing)) } }
}

/// How a task that is named stands, as far as that is known.
pub(super) fn named(named: &Named) -> Markup {
    let of_status = |status| match status {
        TaskStatus::Available => Standing::Open,
        status => Standing::Is(status),
    };
    let standing = named.standing.clone().or(named.status.map(of_status));
    html! { @if let Some(standing) = standing { " " (stands(&standing)) } }
}

/// How a task stands, in words.
pub(super) fn said(standing: &Standing) -> String {
    standing.word().replace('_', " ")
}

/// The number and the title of a task, as a link to it.
pub(super) fn task(named: &Named) -> Markup {
    let title = if named.title.is_empty() { named.id.as_str() } else { &named.title };
    html! {
        @if named.number.is_some() { span.number { (named.name()) } " " }
        a.what href=(task_href(named.id.as_str())) { (title) }
    }
}

/// Who acts: an agent, as a link to it, the visitor, or another person.
pub(super) fn who(id: &AgentId, visit: &Visit) -> Markup {
    html! {
        @if id.as_str() == HUMAN || id.person().is_some() { span.who { (visit.reader().calls(id)) } }
        @else { (agent(id)) }
    }
}

/// An agent, as a link to it.
pub(super) fn agent(id: &AgentId) -> Markup {
    html! { a.who href=(agent_href(id.as_str())) { (id.as_str()) } }
}

/// A command that the person types, with a button that copies it.
pub(super) fn command(words: &str) -> Markup {
    html! {
        div.command {
            code tabindex="0" { (words) }
            button type="button" data-copy=(words) { "copy" }
        }
    }
}

/// What ends a wait, as it is typed.
pub(super) fn typed(remedy: &[String]) -> String {
    let words = remedy.iter().map(String::as_str);
    // What a shell cannot be given has no command.
    shlex::try_join(["callboard"].into_iter().chain(words)).unwrap_or_default()
}

/// A heading of a section: what, how many, in which order.
pub(super) fn heading(id: &str, title: &str, count: Option<usize>, aside: &str) -> Markup {
    html! {
        h2 id=(id) {
            span { (title) @if let Some(count) = count { b { (count) } } }
            @if !aside.is_empty() { span.aside { (aside) } }
        }
    }
}

/// A form of an action. It is empty for those who may not act.
#[derive(Clone)]
pub(super) struct Act<'a> {
    /// The section that has the form: a page may have several of one kind.
    place: &'a str,
    action: &'a str,
    given: Vec<(&'a str, &'a str)>,
    class: &'a str,
}

impl<'a> Act<'a> {
    pub(super) fn new(place: &'a str, action: &'a str) -> Self {
        Self { place, action, given: Vec::new(), class: "action" }
    }

    /// With this value of a field.
    pub(super) fn with(mut self, name: &'a str, value: &'a str) -> Self {
        self.given.push((name, value));
        self
    }

    /// With a field that takes the room that there is.
    pub(super) fn wide(self) -> Self {
        Self { class: "action wide", ..self }
    }

    /// With fields below each other.
    pub(super) fn stacked(self) -> Self {
        Self { class: "action fields", ..self }
    }

    /// The form with these fields and buttons in it.
    pub(super) fn form(&self, visit: &Visit, inside: impl Render) -> Markup {
        html! {
            @if visit.may_act() {
                form id=(self.id()) class=(self.class) method="post" action={ "/do/" (self.action) } {
                    input type="hidden" name="seq" value=(Seq);
                    input type="hidden" name="back" value=(visit.path);
                    @for (name, value) in &self.given {
                        input type="hidden" name=(name) value=(value);
                    }
                    (inside)
                }
            }
        }
    }

    /// By which a form is found again after its section was replaced.
    fn id(&self) -> String {
        let given = self.given.iter().map(|(_, value)| part(value));
        let words = [self.place.to_owned(), self.action.to_owned()].into_iter().chain(given);
        let kind = self.class.trim_start_matches("action").trim_start().to_owned();
        words.chain(Some(kind).filter(|kind| !kind.is_empty())).collect::<Vec<_>>().join("-")
    }

    /// The form with nothing but a button.
    pub(super) fn button(&self, visit: &Visit, text: &str) -> Markup {
        self.form(visit, html! { button { (text) } })
    }

    /// The form with a button that stands out.
    pub(super) fn first(&self, visit: &Visit, text: &str) -> Markup {
        self.form(visit, html! { button.first { (text) } })
    }
}

/// A field of one line.
pub(super) fn line(name: &str, label: &str) -> Markup {
    html! { input type="text" name=(name) aria-label=(label) placeholder=(label) autocomplete="off"; }
}

/// A field of one line that must be filled in.
pub(super) fn needed(name: &str, label: &str) -> Markup {
    html! {
        input type="text" name=(name) aria-label=(label) placeholder=(label) autocomplete="off" required;
    }
}

/// The fields of a task by which others are found: what it waits for, and its tags.
pub(super) fn relations(after: &str, tags: &str) -> Markup {
    html! {
        label {
            "Waits for: numbers, paths or titles, one a line"
            textarea.short name="after" rows="2" { "\n" (after) }
        }
        label { "Tags, with commas between them" input name="tags" value=(tags) autocomplete="off"; }
    }
}

/// What is opened by a button: a form that wants more than a click.
pub(super) fn opened(visit: &Visit, button: &str, inside: Markup) -> Markup {
    html! {
        @if visit.may_act() {
            details { summary.button { (button) } (inside) }
        }
    }
}
