use serde_json::Value;

use super::{NAME, guard};
use crate::exchange::report::Report;
use crate::exchange::{View, Written};

const HEADER: [&str; 10] = [
    "id",
    "title",
    "description",
    "status",
    "priority",
    "depends",
    "parent",
    "tags",
    "assignee",
    "metadata",
];

pub(super) fn write(view: &View) -> Written {
    let mut report = Report::default();
    view.left_out(&["files", "hints", "result"], &mut report);
    let ids = view.ids(|format| format == NAME);
    let words = view.words(NAME, super::word, &|_, word| crate::exchange::status::stated(word));
    let mut table = csv::Writer::from_writer(Vec::new());
    let mut written = table.write_record(HEADER);
    for (number, (task, word)) in view.tasks.iter().zip(&words).enumerate() {
        let mut metadata = view.metadata(number, &[], &mut report);
        let assignee = metadata.get("assignee").and_then(Value::as_str).map(str::to_owned);
        if assignee.is_some() {
            metadata.shift_remove("assignee");
        }
        let (on, aside) = view.depends(number);
        let depends: Vec<String> = on.iter().map(|on| ids[*on].clone()).chain(aside).collect();
        let kept =
            if metadata.is_empty() { String::new() } else { Value::Object(metadata).to_string() };
        let row = [
            ids[number].clone(),
            view.title(number),
            view.description(number).unwrap_or_default().to_owned(),
            word.word.clone(),
            view.priority(NAME, number, super::priority_word).to_owned(),
            cell(&depends, |text| ids.iter().any(|id| id == text)),
            view.parent_id(number, &ids).unwrap_or_default(),
            cell(&task.tags, |_| false),
            assignee.unwrap_or_default(),
            kept,
        ];
        written = written.and_then(|()| table.write_record(row.map(guard::guarded)));
    }
    let bytes = written.ok().and_then(|()| table.into_inner().ok()).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    Written {
        files: vec![(super::FORMAT.places[0].to_owned(), text)],
        report,
        ..Written::default()
    }
}

/// The entries in a form that is read as the same. `is_one` says whether a text is read as a single
/// entry.
fn cell(entries: &[String], is_one: impl Fn(&str) -> bool) -> String {
    let plain = entries.join(", ");
    let is_same = super::listed(&plain) == entries && (entries.len() < 2 || !is_one(&plain));
    if is_same { plain } else { Value::from(entries).to_string() }
}
