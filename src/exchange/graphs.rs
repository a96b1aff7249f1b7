//! The tasks as a graph, for Mermaid and for Graphviz.

use super::{Format, Tree, View, Written};
use crate::exchange::report::Report;
use crate::state::task::TaskStatus;

const WHAT: [&str; 2] = ["a flowchart of Mermaid", "a graph of Graphviz"];

pub(super) const MERMAID: Format = graph("mermaid", WHAT[0], &["tasks.mmd"], mermaid);
pub(super) const DOT: Format = graph("dot", WHAT[1], &["tasks.dot"], dot);

const fn graph(
    name: &'static str,
    what: &'static str,
    places: &'static [&'static str],
    write: fn(&View) -> Written,
) -> Format {
    Format {
        name,
        what,
        places,
        one_file: true,
        form: "",
        is: is_none,
        read: None,
        write: Some(write),
    }
}

fn is_none(_: &Tree) -> bool {
    false
}

fn colour(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Available => "#eeeeee",
        TaskStatus::Claimed | TaskStatus::InProgress => "#fff2b3",
        TaskStatus::Review => "#cfe2ff",
        TaskStatus::Done => "#c6efce",
        TaskStatus::Failed => "#f4b6b6",
        TaskStatus::Cancelled | TaskStatus::Obsolete => "#cccccc",
    }
}

fn written(name: &str, text: String, view: &View) -> Written {
    let mut report = Report::default();
    view.left_out(&["tags", "files", "hints", "metadata", "result"], &mut report);
    Written { files: vec![(name.to_owned(), text)], report, ..Written::default() }
}

/// A title on one line without what would end a label.
fn label(view: &View, number: usize) -> String {
    let title: String =
        view.title(number).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{title} ({})", view.tasks[number].status)
}

fn mermaid(view: &View) -> Written {
    let mut text = String::from("flowchart TD\n");
    let escape = |text: String| {
        text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
    };
    boxes(
        view,
        &mut text,
        1,
        None,
        &|number, is_parent| {
            let label = escape(label(view, number));
            if is_parent {
                format!("subgraph t{number}[\"{label}\"]")
            } else {
                format!("t{number}[\"{label}\"]")
            }
        },
        "end",
    );
    for status in TaskStatus::ALL {
        text.push_str(&format!("  classDef {status} fill:{}\n", colour(status)));
    }
    for (number, task) in view.tasks.iter().enumerate() {
        text.push_str(&format!("  class t{number} {}\n", task.status));
    }
    edges(view, |on, number| text.push_str(&format!("  t{on} --> t{number}\n")));
    written(MERMAID.places[0], text, view)
}

fn dot(view: &View) -> Written {
    let mut text =
        String::from("digraph tasks {\n  compound=true;\n  node [shape=box, style=filled];\n");
    let escape = |text: String| text.replace('\\', "\\\\").replace('"', "\\\"");
    boxes(
        view,
        &mut text,
        1,
        None,
        &|number, is_parent| {
            let (label, fill) = (escape(label(view, number)), colour(view.tasks[number].status));
            if is_parent {
                format!(
                    "subgraph cluster_t{number} {{ label=\"{label}\"; t{number} [label=\"\", \
                     shape=point];"
                )
            } else {
                format!("t{number} [label=\"{label}\", fillcolor=\"{fill}\"];")
            }
        },
        "}",
    );
    edges(view, |on, number| text.push_str(&format!("  t{on} -> t{number};\n")));
    text.push_str("}\n");
    written(DOT.places[0], text, view)
}

/// Writes tasks, and what has parts around those.
fn boxes(
    view: &View,
    text: &mut String,
    level: usize,
    parent: Option<usize>,
    open: &dyn Fn(usize, bool) -> String,
    close: &str,
) {
    let roots: Vec<usize>;
    let numbers = match parent {
        Some(parent) => &view.parts[parent],
        None => {
            roots = view.roots().collect();
            &roots
        }
    };
    for number in numbers {
        let is_parent = !view.parts[*number].is_empty();
        let indent = "  ".repeat(level);
        text.push_str(&format!("{indent}{}\n", open(*number, is_parent)));
        if is_parent {
            boxes(view, text, level + 1, Some(*number), open, close);
            text.push_str(&format!("{indent}{close}\n"));
        }
    }
}

fn edges(view: &View, mut edge: impl FnMut(usize, usize)) {
    for number in 0..view.tasks.len() {
        view.depends(number).0.into_iter().for_each(|on| edge(on, number));
    }
}
