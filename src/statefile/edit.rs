//! A state file that somebody has edited, read leniently and compared with the state that it was
//! made from.
//!
//! Layout, order of fields and of tasks, a byte order mark, and `null` for a field that is left out
//! make no difference.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::derived::{self, Derived};
use super::found::Found;
use super::load::recognise;
use crate::clock::boot;
use crate::state::State;
use crate::state::document::{Document, SCHEMA_VERSION};
use crate::state::edit::{Changed, Edit, TaskEdit};
use crate::state::id::TaskId;
use crate::state::task::{Context, Task, TaskStatus};
use crate::{bom, harmless, redact, strict};

/// Most reasons that are given; the others are only counted.
const REASONS: usize = 20;

/// Most characters of a name that a reason shows.
const NAME_SHOWN: usize = 64;

/// An edited file: JSON with the marks of a board.
#[derive(Debug)]
pub struct Edited {
    pub board_id: String,
    /// The last event in the state that it was made from.
    pub seq: u64,
    /// Whether it is as a projection wrote it, so that nobody has edited it.
    pub is_sound: bool,
    /// Whether what the file shows beside the state is as a projection wrote it, or not there.
    derived_is_sound: bool,
    fields: Map<String, Value>,
}

/// Reads `bytes`, or says why they are no edit of a state file. A reason shows nothing of what was
/// in them.
pub fn read(bytes: &[u8]) -> Result<Edited, String> {
    let bytes = bom::skip_bytes(bytes);
    let fields = match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return Err("it is not a JSON object, so no state file".to_owned()),
        Err(error) => {
            return Err(format!(
                "it is not a JSON object: a slip, or a save that was not finished ({error})"
            ));
        }
    };
    if strict::check(bytes).is_err() {
        return Err("a key stands twice in one object, or it is nested too deeply".to_owned());
    }
    match fields.get("schema_version").and_then(Value::as_u64) {
        Some(version) if (1..=u64::from(SCHEMA_VERSION)).contains(&version) => {}
        Some(version) => {
            return Err(format!("its schema_version is {version}, not 1 to {SCHEMA_VERSION}"));
        }
        None => return Err("it has no schema_version".to_owned()),
    }
    let Some(board_id) = fields.get("board_id").and_then(Value::as_str).map(str::to_owned) else {
        return Err("it has no board_id".to_owned());
    };
    let Some(seq) = fields.get("seq").and_then(Value::as_u64) else {
        return Err("it has no seq".to_owned());
    };
    let is_sound = matches!(recognise(bytes), Ok(Found::Sound(_)));
    let derived_is_sound = is_sound || derived::fault(bytes).is_none();
    Ok(Edited { board_id, seq, is_sound, derived_is_sound, fields })
}

impl Edited {
    /// Whether it was written before the last boot: of what was written then, a power loss may have
    /// kept only some pages.
    pub fn is_of_another_boot(&self) -> bool {
        let layout = self.fields.get("layout");
        layout
            .and_then(|layout| layout.get("boot"))
            .and_then(Value::as_str)
            .is_some_and(|written| written != boot())
    }

    /// The task as the file has it.
    pub fn task(&self, id: &TaskId) -> Option<Task> {
        let tasks = self.fields.get("tasks")?.as_array()?;
        let task = tasks
            .iter()
            .find(|task| task.get("id").and_then(Value::as_str) == Some(id.as_str()))?;
        serde_json::from_value(task.clone()).ok()
    }

    /// Compares the file with `base`, the state at the file's own `seq`. Returns what was changed,
    /// or the paths of what must not be changed by hand.
    pub fn compare(&self, state: &State) -> Result<Edit, Vec<String>> {
        let base = &state.to_document();
        // Through text, like the file's own values, so that equal ones compare as equal.
        let shown = serde_json::to_vec(base).and_then(|text| serde_json::from_slice(&text));
        let shown: Map<String, Value> =
            shown.map_err(|error| vec![format!("the state cannot be written: {error}")])?;
        let mut found = Difference {
            edit: Edit { base_seq: self.seq, ..Edit::default() },
            offences: Vec::new(),
        };
        for key in keys(&shown, &self.fields) {
            let (from, to) = (
                shown.get(key).unwrap_or(&Value::Null),
                self.fields.get(key).unwrap_or(&Value::Null),
            );
            match key.as_str() {
                // Fields of the file, not of the state.
                "checksum"
                | "layout"
                | derived::CHECKSUM
                | derived::PROGRESS
                | derived::ATTENTION => {}
                "agents" => found.untouched("agents", from, &without_titles(to)),
                "goal" => found.edit.goal = found.text("goal", &base.board.goal, from, to),
                "master_plan" => {
                    found.edit.master_plan =
                        found.text("master_plan", &base.board.master_plan, from, to)
                }
                "tasks" => found.tasks(base, from, to),
                // An older version, which knew none, has left them out.
                _ if to.is_null() && is_empty(from) => {}
                "reservations" => found.untouched("reservations", from, &in_order(to)),
                _ => found.untouched(&printable(key), from, to),
            }
        }
        if !self.derived_is_sound {
            found.derived(state, &self.fields);
        }
        if found.offences.is_empty() { Ok(found.edit) } else { Err(found.offences) }
    }
}

fn is_empty(section: &Value) -> bool {
    section.as_array().is_some_and(Vec::is_empty) || section.as_object().is_some_and(Map::is_empty)
}

/// The reasons as the file beside a rejected edit gives them.
pub fn listed(reasons: &[String]) -> String {
    let mut lines: Vec<_> =
        reasons.iter().take(REASONS).map(|reason| format!("- {}", single_line(reason))).collect();
    if let Some(more) = reasons.len().checked_sub(REASONS).filter(|more| *more > 0) {
        lines.push(format!("- and {more} more"));
    }
    lines.join("\n")
}

struct Difference {
    edit: Edit,
    offences: Vec<String>,
}

impl Difference {
    fn offend(&mut self, path: &str, why: &str) {
        self.offences.push(format!("{path}: {why}"));
    }

    /// The change of a field that may be changed, when its new value is of the right shape.
    fn changed<T: DeserializeOwned>(
        &mut self,
        path: &str,
        from: T,
        values: (&Value, &Value),
        shape: &str,
    ) -> Option<Changed<T>> {
        if is_same(values.0, values.1) {
            return None;
        }
        let mut to = values.1.clone();
        harmless::value(&mut to);
        redact::value(&mut to);
        match serde_json::from_value(to) {
            Ok(to) => Some(Changed { from, to }),
            Err(_) => {
                self.offend(path, &format!("it must be {shape}"));
                None
            }
        }
    }

    fn text(&mut self, path: &str, old: &str, from: &Value, to: &Value) -> Option<Changed<String>> {
        self.changed(path, old.to_owned(), (from, to), "a text")
    }

    /// Names every path at which a value differs that only operations may change.
    fn untouched(&mut self, path: &str, from: &Value, to: &Value) {
        self.unchanged(path, (from, to), "only the board's operations can do that");
    }

    /// Names every path at which what follows from the state differs from what follows from it.
    fn derived(&mut self, state: &State, fields: &Map<String, Value>) {
        const WHY: &str = "callboard makes it from the rest of the board";
        let shown = Derived::of(state).and_then(|derived| derived.fields()).unwrap_or_default();
        for (name, from) in &shown {
            self.unchanged(name, (from, fields.get(name).unwrap_or(&Value::Null)), WHY);
        }
        for agent in state.agents() {
            let title = derived::title(state, agent).map_or(Value::Null, Value::from);
            let found = fields
                .get("agents")
                .and_then(|agents| agents.get(agent.id.as_str())?.get(derived::TITLE));
            let path = format!("agents.{}.{}", agent.id, derived::TITLE);
            self.unchanged(&path, (&title, found.unwrap_or(&Value::Null)), WHY);
        }
    }

    fn unchanged(&mut self, path: &str, (from, to): (&Value, &Value), why: &str) {
        if is_same(from, to) {
            return;
        }
        match (from, to) {
            (Value::Object(old), Value::Object(new)) => {
                for key in keys(old, new) {
                    let (old, new) = (
                        old.get(key).unwrap_or(&Value::Null),
                        new.get(key).unwrap_or(&Value::Null),
                    );
                    self.unchanged(&format!("{path}.{}", printable(key)), (old, new), why);
                }
            }
            (Value::Null, _) => self.offend(path, &format!("it was added; {why}")),
            (_, Value::Null) => self.offend(path, &format!("it was removed; {why}")),
            _ => self.offend(path, &format!("it was changed; {why}")),
        }
    }

    fn tasks(&mut self, base: &Document, from: &Value, to: &Value) {
        let (Some(old), Some(new)) = (by_id(from), by_id(to)) else {
            return self
                .offend("tasks", "it must be a list of tasks with an id each, and no id twice");
        };
        for id in new.keys().filter(|id| !old.contains_key(*id)) {
            self.offend(&task_path(id), "it was added; use `callboard add TEXT`");
        }
        for task in &base.tasks {
            match new.get(task.id.as_str()) {
                Some(to) => self.task(task, old[task.id.as_str()], to),
                None => self.offend(
                    &task_path(task.id.as_str()),
                    "it was removed; use `callboard cancel TASK`",
                ),
            }
        }
    }

    fn task(&mut self, base: &Task, old: &Map<String, Value>, new: &Map<String, Value>) {
        let mut edit = TaskEdit::untouched(base.id.clone());
        let before = edit.clone();
        for key in keys(old, new) {
            let path = format!("{}.{}", task_path(base.id.as_str()), printable(key));
            let values =
                (old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null));
            match key.as_str() {
                "title" => edit.title = self.changed(&path, base.title.clone(), values, "a text"),
                "description" => {
                    edit.description = self.text(&path, &base.description, values.0, values.1)
                }
                "priority" => {
                    edit.priority = self.changed(
                        &path,
                        i64::from(base.priority),
                        values,
                        "a number from 1 to 10",
                    );
                }
                "dependencies" => {
                    let ids = base.dependencies.iter().map(ToString::to_string).collect();
                    edit.dependencies = self.list(&path, ids, values, "a list of task ids");
                }
                "tags" => {
                    edit.tags = self.list(&path, base.tags.clone(), values, "a list of texts")
                }
                "context" => edit.context = self.context(&path, base, values),
                "order" => {}
                "status" if base.status == TaskStatus::Review && !is_same(values.0, values.1) => {
                    let why = "it was changed; use `callboard approve TASK` or `callboard reject TASK REASON`";
                    self.offend(&path, why);
                }
                _ => self.untouched(&path, values.0, values.1),
            }
        }
        if edit != before {
            self.edit.tasks.push(edit);
        }
    }

    /// A list that is left out is an empty one.
    fn list(
        &mut self,
        path: &str,
        from: Vec<String>,
        (old, new): (&Value, &Value),
        shape: &str,
    ) -> Option<Changed<Vec<String>>> {
        let empty = Value::Array(Vec::new());
        let or_empty = |value| if matches!(value, &Value::Null) { &empty } else { value };
        self.changed(path, from, (or_empty(old), or_empty(new)), shape)
    }

    fn context(
        &mut self,
        path: &str,
        base: &Task,
        (old, new): (&Value, &Value),
    ) -> Option<Changed<Context>> {
        if is_same(old, new) {
            return None;
        }
        let empty = Map::new();
        let shape = "an object with `files`, `hints` and `metadata`";
        let old = old.as_object().unwrap_or(&empty);
        let new = match new {
            Value::Null => &empty,
            Value::Object(new) => new,
            _ => {
                self.offend(path, &format!("it must be {shape}"));
                return None;
            }
        };
        for key in keys(old, new) {
            let known = ["files", "hints", "metadata"].contains(&key.as_str());
            let values =
                (old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null));
            if !known {
                self.untouched(&format!("{path}.{}", printable(key)), values.0, values.1);
            }
        }
        let present: Map<_, _> =
            new.clone().into_iter().filter(|(_, value)| !value.is_null()).collect();
        let from = base.context.as_deref().cloned().unwrap_or_default();
        self.changed(path, from, (&Value::Null, &Value::Object(present)), shape)
    }
}

impl TaskEdit {
    fn untouched(id: TaskId) -> Self {
        Self {
            id,
            title: None,
            description: None,
            priority: None,
            dependencies: None,
            context: None,
            tags: None,
        }
    }
}

fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> BTreeSet<&'a String> {
    old.keys().chain(new.keys()).collect()
}

/// Whether both values say the same, as a field that is `null` and one that is left out do.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => keys(one, other).into_iter().all(|key| {
            is_same(one.get(key).unwrap_or(&Value::Null), other.get(key).unwrap_or(&Value::Null))
        }),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        _ => one == other,
    }
}

/// The list in the order that its `order` fields tell, and without them: in a flat file, entities
/// may have moved.
fn in_order(list: &Value) -> Value {
    let mut list = list.clone();
    if let Value::Array(entries) = &mut list {
        entries.sort_by_key(|one| one.get("order").and_then(Value::as_u64));
        for fields in entries.iter_mut().filter_map(Value::as_object_mut) {
            fields.shift_remove("order");
        }
    }
    list
}

/// The agents without the titles of their tasks, which follow from the state.
fn without_titles(agents: &Value) -> Value {
    let mut agents = agents.clone();
    for agent in agents.as_object_mut().into_iter().flat_map(|agents| agents.values_mut()) {
        agent.as_object_mut().map(|fields| fields.shift_remove(derived::TITLE));
    }
    agents
}

fn by_id(tasks: &Value) -> Option<BTreeMap<&str, &Map<String, Value>>> {
    let tasks = tasks.as_array()?;
    let by_id: Option<BTreeMap<_, _>> =
        tasks.iter().map(|task| Some((task.get("id")?.as_str()?, task.as_object()?))).collect();
    by_id.filter(|by_id| by_id.len() == tasks.len())
}

fn task_path(id: &str) -> String {
    format!("tasks[{}]", printable(id))
}

/// A name that somebody wrote, short and without what a terminal would obey.
fn printable(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(NAME_SHOWN).collect()
}

fn single_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(400).collect()
}
