//! Who worked when, as bars.

use maud::{Markup, html};

use crate::state::task::Outcome;
use crate::state::time::{MINUTE, Timestamp};
use crate::view::columns::cut;
use crate::view::{Board, Timeline, Worked};
use crate::web::parts::{agent_href, local, task_href};
use crate::web::{Layout, Page, Place, Renewed, Section, shell};

/// Hours that can be looked back on.
pub(in crate::web) const HOURS: [u32; 4] = [1, 4, 12, 48];
const HOUR: i64 = 60 * MINUTE;

const NAMES: f64 = 130.0;
const CHART: f64 = 1_050.0;
const LANE: f64 = 30.0;
const TOP: f64 = 24.0;

pub(in crate::web) fn page(board: &Board, timeline: &Timeline, hours: u32) -> Page {
    Page {
        title: shell::title(board, "Timeline"),
        place: Place::Timeline,
        layout: Layout::Wide,
        renewed: Renewed::All,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section {
                id: "timeline".into(),
                html: html! {
                    section #timeline {
                        h1 { "Who worked when" }
                        nav.pages aria-label="Time" {
                            @for choice in HOURS {
                                a href={ "/timeline?rows=" (choice) } aria-current=[(choice == hours).then_some("page")] { (choice) " h" }
                            }
                        }
                        @if timeline.lanes.is_empty() { p.empty { "No agent worked in this time." } }
                        @else { div.scroll.newest tabindex="0" { div.drawn { (drawing(timeline)) } } }
                        @if timeline.more > 0 { p.note { (timeline.more) " more agents" } }
                    }
                },
            },
        ],
    }
}

/// The names of the agents, which stay in view, and beside them what each did.
fn drawing(timeline: &Timeline) -> Markup {
    let lanes: Vec<Vec<usize>> =
        timeline.lanes.iter().map(|(_, all)| rows(timeline, all)).collect();
    let tall = |rows: &Vec<usize>| rows.iter().max().map_or(1, |row| row + 1) as f64 * LANE;
    let tops =
        lanes.iter().scan(TOP, |top, rows| Some(std::mem::replace(top, *top + tall(rows) + 6.0)));
    let tops: Vec<f64> = tops.collect();
    let high = TOP + lanes.iter().map(|rows| tall(rows) + 6.0).sum::<f64>();
    let wide = CHART + 10.0;
    html! {
        svg.names width=(NAMES) height=(high) viewBox={ "0 0 " (NAMES) " " (high) } role="group" aria-label="Agents" {
            @for ((agent, _), top) in timeline.lanes.iter().zip(&tops) {
                a href=(agent_href(agent.as_str())) { text x="8" y=(top + 19.0) { (cut(agent.as_str(), 15)) } }
            }
        }
        svg width=(wide) height=(high) viewBox={ "0 0 " (wide) " " (high) } role="group" aria-label="Attempts of each agent" {
            @for step in 0..=6 {
                @let at = timeline.since + timeline.now.since(timeline.since) * step / 6;
                @let x = place(timeline, at);
                line.grid x1=(x) x2=(x) y1=(TOP - 4.0) y2=(high) {}
                text.faint x=(x) y="14" text-anchor=(if step == 6 { "end" } else { "start" }) { (local(at, "%H:%M")) }
            }
            @for (((_, attempts), rows), top) in timeline.lanes.iter().zip(&lanes).zip(&tops) {
                @for (one, row) in attempts.iter().zip(rows) { (bar(timeline, one, top + *row as f64 * LANE)) }
            }
        }
    }
}

/// Where a time is, from the left.
fn place(timeline: &Timeline, at: Timestamp) -> f64 {
    let all = timeline.now.since(timeline.since).max(1) as f64;
    let part = (at.since(timeline.since) as f64 / all).clamp(0.0, 1.0);
    (part * CHART * 10.0).round() / 10.0
}

/// The row of each attempt within its lane: the first in which no other is at that time.
fn rows(timeline: &Timeline, attempts: &[Worked]) -> Vec<usize> {
    let mut begins: Vec<Timestamp> = Vec::new();
    let row = |one: &Worked| {
        let until = one.until.unwrap_or(timeline.now);
        let free = begins.iter().position(|begin| until <= *begin);
        let row = free.unwrap_or(begins.len());
        begins.resize(begins.len().max(row + 1), one.since);
        begins[row] = one.since;
        row
    };
    attempts.iter().map(row).collect()
}

fn bar(timeline: &Timeline, one: &Worked, y: f64) -> Markup {
    let (left, right) =
        (place(timeline, one.since), place(timeline, one.until.unwrap_or(timeline.now)));
    let wide = (right - left).max(3.0);
    let class = match one.outcome {
        None => "busy",
        Some(Outcome::Done) => "good",
        Some(Outcome::Failed | Outcome::Expired | Outcome::Rejected) => "bad",
        Some(Outcome::Released | Outcome::Cancelled) => "over",
    };
    let name = one.task.name();
    html! {
        a href=(task_href(one.task.id.as_str())) {
            title { (name) " " (one.task.title) ", " ((one.until.unwrap_or(timeline.now).since(one.since) / MINUTE).max(0)) " min" }
            rect class={ "bar " (class) } x=(left) y=(y + 4.0) width=(wide) height=(LANE - 8.0) rx="4" {}
            // What is too long for its bar ends with it.
            @if wide > 30.0 {
                svg x=(left) y=(y) width=(wide - 4.0) height=(LANE) { text x="6" y="19" { (name) " " (cut(&one.task.title, 60)) } }
            }
        }
    }
}

/// Milliseconds of so many hours.
pub(in crate::web) fn millis(hours: u32) -> i64 {
    i64::from(hours) * HOUR
}
