//! What hangs on what, drawn by the server.

mod layout;

use maud::{Markup, html};

use super::Query;
use crate::view::columns::cut;
use crate::view::{Board, Graph, Node, Standing, Tone};
use crate::web::parts::{part, said, task_href};
use crate::web::{Layout, Page, Place, Renewed, Section, shell};
use layout::{HEIGHT, Laid, WIDTH};

/// Widest title in a node, in columns.
const TITLE: usize = 26;

pub(in crate::web) fn page(board: &Board, drawn: Markup) -> Page {
    Page {
        title: shell::title(board, "Graph"),
        place: Place::Graph,
        layout: Layout::Wide,
        renewed: Renewed::All,
        sections: vec![
            Section { id: "head".into(), html: shell::small(board) },
            Section { id: "graph".into(), html: drawn },
        ],
    }
}

/// The section with the drawing, which is the same for all who look.
pub(in crate::web) fn drawn(graph: &Graph, query: &Query) -> Markup {
    html! {
        section #graph {
            h1 { "What hangs on what" }
            (legend(graph, query))
            @if graph.nodes.is_empty() { p.empty { "No task is open. Done tasks are shown with " a href="/graph?is=all" { "all" } "." } }
            @else { div.scroll tabindex="0" { (drawing(graph)) } }
        }
    }
}

fn legend(graph: &Graph, query: &Query) -> Markup {
    let tasks = |node: &Node| node.folded.map_or(1, |progress| progress.tasks);
    let is_part = |node: &Node| node.folded.is_some() && node.alike == 0;
    html! {
        p.status {
            span { (graph.nodes.iter().map(tasks).sum::<u64>()) " tasks; each is right of what it needs" }
            @if query.scope.is_some() { a href="/graph" { "Show the whole board" } }
            @if query.is.is_none() { a href="/graph?is=all" { "Show all that is done, too" } }
            @if graph.nodes.iter().any(is_part) { span { "Parts are folded: open one to see its tasks" } }
            @if graph.nodes.iter().any(|node| node.alike > 0) { span { "Tasks that follow each other or wait for the same are one node with the name of the first" } }
            @if graph.more > 0 { span.bad-text { (graph.more) " more do not fit: open a part" } }
            @if graph.hidden > 0 { span.bad-text { (graph.hidden) " lines do not fit: open a part" } }
        }
    }
}

fn drawing(graph: &Graph) -> Markup {
    let laid = Laid::of(graph);
    let (wide, high) = laid.size;
    html! {
        svg width=(wide) height=(high) viewBox={ "0 0 " (wide) " " (high) } role="group" aria-label="Graph of tasks" {
            @for line in &laid.lines { path.edge d=(line) {} }
            @for (node, (x, y)) in graph.nodes.iter().zip(&laid.places) { (box_of(node, *x, *y)) }
        }
    }
}

fn box_of(node: &Node, x: f64, y: f64) -> Markup {
    let tone = node.task.standing.as_ref().map_or(Tone::Plain, Standing::tone);
    let class = match tone {
        Tone::Good => "good",
        Tone::Busy => "busy",
        Tone::Bad => "bad",
        Tone::Over => "over",
        Tone::Plain | Tone::Waiting => "",
    };
    let href = match (&node.folded, &node.path) {
        (Some(_), Some(path)) if node.alike == 0 => format!("/graph?scope={}", part(path)),
        _ => task_href(node.task.id.as_str()),
    };
    let second = match &node.folded {
        Some(progress) => format!("{} of {} done", progress.done, progress.tasks),
        None => node.task.standing.as_ref().map(said).unwrap_or_default(),
    };
    let more = (node.alike > 0).then(|| format!("+{} ", node.alike));
    html! {
        a href=(href) class={ "node " (class) } {
            title { (node.task.name()) " " (node.task.title) @if node.alike > 0 { " and " (node.alike) " more" } }
            rect x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="6" {}
            text x=(x + 9.0) y=(y + 17.0) { (cut(&format!("{} {}{}", node.task.name(), more.unwrap_or_default(), node.task.title), TITLE)) }
            text.faint x=(x + 9.0) y=(y + 33.0) { (second) }
        }
    }
}
