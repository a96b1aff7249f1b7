//! Tasks as a tree of parts, or as a graph of what waits for what.

use super::super::content::TaskRow;
use super::super::opened::{Layout, Row};
use super::super::subject::{Subject, TaskSubject};
use crate::view::Tone;
use crate::view::columns::{cut, left, right, widest, width};

/// Widest columns of numbers, standings and agents.
const NUMBER: usize = 7;
const STANDING: usize = 24;
const AGENT: usize = 14;
/// Deepest indentation, so that titles keep some room.
const DEEPEST: usize = 8;

pub(super) fn layout(tasks: &[TaskRow], columns: usize) -> Layout {
    if tasks.is_empty() {
        let line = vec![(Tone::Over, "no tasks yet; n adds one".to_owned())];
        return Layout { rows: vec![Row { line, about: None }], ..Layout::default() };
    }
    let standing = widest(tasks.iter().map(|task| task.standing.as_str()), STANDING);
    let agents = tasks.iter().filter_map(|task| task.agent.as_ref());
    // Where there is little room, the title needs it most.
    let agent = if columns < 60 { 0 } else { widest(agents.map(|agent| agent.as_str()), AGENT) };
    let rows = tasks.iter().map(|task| Row {
        line: vec![
            (Tone::Over, format!("{} ", right(&name(task), NUMBER))),
            (task.tone, format!("{} ", left(&task.standing, standing.min(columns / 3)))),
            (
                Tone::Over,
                format!("{} {} ", right(&task.priority.to_string(), 2), left(holder(task), agent)),
            ),
            (Tone::Plain, titled(task, columns)),
        ],
        about: Some(about(task)),
    });
    Layout { rows: rows.collect(), ..Layout::default() }
}

fn name(task: &TaskRow) -> String {
    task.number.map_or_else(String::new, |number| format!("#{number}"))
}

fn holder(task: &TaskRow) -> &str {
    task.agent.as_ref().map_or("", |agent| agent.as_str())
}

fn titled(task: &TaskRow, columns: usize) -> String {
    let path = task.path.as_ref().map(|path| format!("{path} ")).unwrap_or_default();
    let indent = "  ".repeat(task.depth.min(DEEPEST));
    let room = columns.saturating_sub(width(&indent));
    format!("{indent}{}", cut(&format!("{path}{}", task.title), room))
}

fn about(task: &TaskRow) -> Subject {
    Subject::Task(TaskSubject {
        id: task.id.clone(),
        name: task.number.map_or_else(|| task.id.to_string(), |number| format!("#{number}")),
        title: task.title.clone(),
        status: task.status,
        priority: Some(task.priority),
        agent: task.agent.clone(),
        attempt: None,
    })
}
