use serde_json::{Map, Value, json};

use super::{BLOCKS, LINKS, NAME, OWN, PART, priority_word, word};
use crate::exchange::report::Report;
use crate::exchange::{View, Written, status};

pub(super) fn write(view: &View) -> Written {
    let mut report = Report::default();
    view.left_out(&["files"], &mut report);
    let ids = view.ids(|format| format == NAME);
    let words = view.words(NAME, word, &|_, word| status::stated(word));
    let mut text = String::new();
    for (number, word) in words.iter().enumerate() {
        let mut issue = Map::new();
        let mut put = |name: &str, value: Value| _ = issue.insert(name.to_owned(), value);
        let id = ids[number].as_str();
        put("id", id.into());
        put("title", view.title(number).into());
        view.description(number).into_iter().for_each(|text| put("description", text.into()));
        view.hints(number).into_iter().for_each(|text| put("design", text.into()));
        put("status", word.word.as_str().into());
        word.own.into_iter().for_each(|own| put(status::OWN, own.into()));
        let level = priority_word(view.tasks[number].priority).parse::<u8>().unwrap_or_default();
        put("priority", level.into());
        let mut metadata = view.metadata(number, &OWN, &mut report);
        put("issue_type", metadata.shift_remove("issue_type").unwrap_or_else(|| "task".into()));
        if !view.tasks[number].tags.is_empty() {
            put("labels", view.tasks[number].tags.clone().into());
        }
        let (on, aside) = view.depends(number);
        let relation =
            |on: &str, kind: &str| json!({"issue_id": id, "depends_on_id": on, "type": kind});
        let above = view.parent_id(number, &ids).map(|parent| relation(&parent, PART));
        let blocks = on.iter().map(|on| ids[*on].clone()).chain(aside);
        let mut relations: Vec<Value> =
            above.into_iter().chain(blocks.map(|on| relation(&on, BLOCKS))).collect();
        match metadata.shift_remove(LINKS) {
            Some(Value::Array(links)) if view.id_in(NAME, number).is_some() => {
                relations.extend(links)
            }
            links => links.into_iter().for_each(|_| report.left_out(&format!("metadata.{LINKS}"))),
        }
        if !relations.is_empty() {
            put("dependencies", relations.into());
        }
        if let Some(reason) = view.result(number).filter(|_| !metadata.contains_key("close_reason"))
        {
            put("close_reason", reason.into());
        }
        issue.extend(metadata);
        text.push_str(&Value::Object(issue).to_string());
        text.push('\n');
    }
    Written {
        files: vec![(super::FORMAT.places[0].to_owned(), text)],
        report,
        ..Written::default()
    }
}
