use crate::exchange::report::Report;
use crate::exchange::{View, Written};
use crate::state::task::TaskStatus;

/// Task lists for issues: an issue or a comment takes such a list as it is, and our ids stay with
/// it.
pub(super) fn write(view: &View) -> Written {
    let mut report = Report::default();
    view.left_out(&["files", "hints", "metadata", "result", "tags"], &mut report);
    let mut text = String::new();
    for root in view.roots() {
        let issue = view.id_in(super::NAME, root).map(|id| format!(" (#{id})")).unwrap_or_default();
        text.push_str(&format!("## {}{issue}\n\n", line(&view.title(root))));
        if view.parts[root].is_empty() {
            entry(view, root, 0, &mut text);
        }
        below(view, root, 0, &mut text);
        if let Some(description) = view.description(root) {
            text.push_str(&format!("\n{}\n", description.trim()));
        }
        text.push('\n');
    }
    Written {
        files: vec![(super::FORMAT.places[0].to_owned(), text)],
        report,
        ..Written::default()
    }
}

fn below(view: &View, number: usize, level: usize, text: &mut String) {
    for part in &view.parts[number] {
        entry(view, *part, level, text);
        below(view, *part, level + 1, text);
    }
}

fn entry(view: &View, number: usize, level: usize, text: &mut String) {
    let task = &view.tasks[number];
    let mark = if task.status == TaskStatus::Done { 'x' } else { ' ' };
    let title = line(&view.title(number));
    let title = match task.status {
        TaskStatus::Cancelled | TaskStatus::Obsolete => format!("~~{title}~~"),
        _ => title,
    };
    let on: Vec<String> =
        view.depends(number).0.iter().map(|on| format!("`{}`", view.tasks[*on].id)).collect();
    let after =
        if on.is_empty() { String::new() } else { format!(", blocked by {}", on.join(", ")) };
    text.push_str(&format!("{}- [{mark}] {title} (`{}`{after})\n", "  ".repeat(level), task.id));
}

fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
