use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::{MASTER, NAME, OWN, TAG, word};
use crate::exchange::report::Report;
use crate::exchange::view::{Word, free_numbers};
use crate::exchange::{View, Written, priority, status};

/// Where a task stands in the file.
#[derive(Clone, PartialEq)]
struct Place {
    tag: String,
    task: u64,
    subtask: Option<u64>,
}

pub(super) fn write(view: &View) -> Written {
    let mut report = Report::default();
    view.left_out(&["tags", "files", "result"], &mut report);
    let tags = tags(view, &mut report);
    let places = places(view, &tags);
    let words = view.words(NAME, word, &|_, word| status::stated(word));
    let mut writing = Writing { view, places, words, report };
    let mut file = Map::new();
    for (tag, group, tasks) in &tags {
        let tasks: Vec<Value> = tasks.iter().map(|task| writing.task(*task)).collect();
        let report = &mut writing.report;
        let mut about =
            group.map(|group| view.metadata(group, &["description"], report)).unwrap_or_default();
        about.shift_remove(TAG);
        if let Some(description) = group.and_then(|group| view.description(group)) {
            about.insert("description".to_owned(), description.into());
        }
        file.insert(tag.clone(), json!({"tasks": tasks, "metadata": about}));
    }
    let text = serde_json::to_string_pretty(&file).unwrap_or_default() + "\n";
    Written {
        files: vec![(super::FORMAT.places[0].to_owned(), text)],
        report: writing.report,
        ..Written::default()
    }
}

/// The tags, each with the item that stands for it and its tasks. Tasks of other plans stand below
/// `master`.
fn tags(view: &View, report: &mut Report) -> Vec<(String, Option<usize>, Vec<usize>)> {
    let mut tags: Vec<(String, Option<usize>, Vec<usize>)> = Vec::new();
    for root in view.roots() {
        let tag = view.id_in(NAME, root).and_then(|_| view.kept(root, TAG)?.as_str());
        let (tag, group, tasks) = match tag {
            Some(tag) => (tag, Some(root), view.parts[root].clone()),
            None => (MASTER, None, vec![root]),
        };
        match tags.iter_mut().find(|(known, ..)| known == tag) {
            Some((_, known, all)) => {
                if known.is_some() && group.is_some() {
                    report.left_out("what another file says of the same tag");
                }
                *known = known.or(group);
                all.extend(tasks);
            }
            None => tags.push((tag.to_owned(), group, tasks)),
        }
    }
    if tags.is_empty() { vec![(MASTER.to_owned(), None, Vec::new())] } else { tags }
}

/// Gives every task its number: that which it had, or the next.
fn places(view: &View, tags: &[(String, Option<usize>, Vec<usize>)]) -> HashMap<usize, Place> {
    let mut places = HashMap::new();
    let had = |number: usize| {
        let id = view.id_in(NAME, number)?;
        Some(id.rsplit_once(':').map_or(id, |(_, id)| id))
    };
    for (tag, _, tasks) in tags {
        let own = |number: usize| had(number)?.parse::<u64>().ok();
        for (number, task) in numbered(tasks, own) {
            places.insert(number, Place { tag: tag.clone(), task, subtask: None });
            let below = below(view, number);
            let own = |part: usize| had(part)?.strip_prefix(&format!("{task}."))?.parse().ok();
            for (part, subtask) in numbered(&below, own) {
                places.insert(part, Place { tag: tag.clone(), task, subtask: Some(subtask) });
            }
        }
    }
    places
}

/// Each of these with its own number, if no other has that, or the next free one.
fn numbered(tasks: &[usize], own: impl Fn(usize) -> Option<u64>) -> Vec<(usize, u64)> {
    let mut taken = BTreeSet::new();
    let kept: Vec<_> = tasks
        .iter()
        .map(|task| (*task, own(*task).filter(|number| taken.insert(*number))))
        .collect();
    let mut free = free_numbers(&taken);
    kept.into_iter()
        .filter_map(|(task, number)| Some((task, number.or_else(|| free.next())?)))
        .collect()
}

/// All parts of a task at any depth.
fn below(view: &View, number: usize) -> Vec<usize> {
    let parts = view.parts[number].iter();
    parts.flat_map(|part| std::iter::once(*part).chain(below(view, *part))).collect()
}

struct Writing<'a> {
    view: &'a View,
    places: HashMap<usize, Place>,
    words: Vec<Word>,
    report: Report,
}

impl Writing<'_> {
    fn task(&mut self, number: usize) -> Value {
        let mut task = self.fields(number);
        let below = below(self.view, number);
        let deeper = below.iter().filter(|part| self.view.parents[**part] != Some(number));
        deeper.for_each(|_| self.report.left_out("a level of parts (subtasks have none)"));
        let subtasks: Vec<Value> =
            below.iter().map(|part| Value::Object(self.fields(*part))).collect();
        task.insert("subtasks".to_owned(), subtasks.into());
        Value::Object(task)
    }

    fn fields(&mut self, number: usize) -> Map<String, Value> {
        let (view, place) = (self.view, self.places[&number].clone());
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put(
            "id",
            numbered_as(&place.tag, place.subtask.unwrap_or(place.task), place.subtask.is_some()),
        );
        put("title", view.title(number).into());
        put("description", view.description(number).unwrap_or_default().into());
        put("details", view.hints(number).unwrap_or_default().into());
        put("testStrategy", "".into());
        put("status", self.words[number].word.as_str().into());
        put("dependencies", self.depends(number, &place).into());
        self.words[number].own.into_iter().for_each(|own| _ = put(status::OWN, own.into()));
        if place.subtask.is_none() {
            put("priority", view.priority(NAME, number, priority::word).into());
        }
        fields.extend(view.metadata(number, &OWN, &mut self.report));
        fields
    }

    fn depends(&mut self, number: usize, own: &Place) -> Vec<Value> {
        let (on, aside) = self.view.depends(number);
        let mut ids = Vec::new();
        for on in on {
            match self.places.get(&on) {
                Some(place) if place.tag == own.tag => ids.push(named(place, own)),
                _ => self.report.left_out("a dependency on a task of another tag"),
            }
        }
        let tag = format!("{}:", own.tag);
        ids.extend(aside.iter().map(|id| Value::from(id.strip_prefix(&tag).unwrap_or(id))));
        ids
    }
}

/// What a dependency on a task is called by another.
fn named(place: &Place, by: &Place) -> Value {
    match (place.subtask, by.subtask) {
        (Some(subtask), Some(_)) if place.task == by.task => subtask.into(),
        (Some(subtask), _) => format!("{}.{subtask}", place.task).into(),
        (None, Some(_)) => place.task.to_string().into(),
        (None, None) => numbered_as(&place.tag, place.task, false),
    }
}

/// Ids of tasks are texts in all tags but the first; those of subtasks are numbers everywhere.
fn numbered_as(tag: &str, number: u64, is_subtask: bool) -> Value {
    if tag == MASTER || is_subtask { number.into() } else { number.to_string().into() }
}
