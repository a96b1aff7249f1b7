//! The state file of the coordination server before callboard, and that of the orchestrator: one
//! object with tasks, agents and discoveries.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::coordinator::{self, Beside, Flavour, Reading, Writing};
use super::json::Json;
use super::record::Record;
use super::report::{Fault, Report};
use super::{Format, Read, Tree, View, Written};
use crate::plan::Node;
use crate::plan::board::Board;

pub(super) const OPTION_B: Format = Format {
    name: "option-b",
    what: "the state of the coordination server (option B)",
    places: &[".coordination/mcp-state.json", "mcp-state.json"],
    one_file: true,
    form: "lists of tasks and discoveries, and agents by their ids",
    is: |tree| state(tree).is_some_and(|state| !is_of_orchestrator(&state)),
    read: Some(|tree| read(tree, "option-b")),
    write: Some(|view| write(view, &OPTION_B, "option-b")),
};

pub(super) const OPTION_C: Format = Format {
    name: "option-c",
    what: "the state of the orchestrator (option C)",
    places: &["orchestrator-state.json"],
    one_file: true,
    form: "lists of tasks and discoveries, agents by their ids, and limits of workers",
    is: |tree| state(tree).is_some_and(|state| is_of_orchestrator(&state)),
    read: Some(|tree| read(tree, "option-c")),
    write: Some(|view| write(view, &OPTION_C, "option-c")),
};

/// Fields that the orchestrator's state has and no other.
const LIMITS: [&str; 2] = ["max_parallel_workers", "task_timeout_seconds"];
/// Where another state keeps them, which is not known by them.
const ELSEWHERE: &str = "orchestrator";
/// Their defaults.
const USUAL: [u64; 2] = [3, 600];

/// The state, if it is one and not callboard's own.
fn state(tree: &Tree) -> Option<Map<String, Value>> {
    let Some(Ok(Value::Object(state))) = tree.only().map(serde_json::from_str) else { return None };
    let is_task = |task: &Value| task["id"].is_string() && task["description"].is_string();
    let has_tasks = state.get("tasks")?.as_array()?.iter().all(is_task);
    let is_state = state.get("agents").is_none_or(Value::is_object) && state.contains_key("goal");
    (has_tasks && is_state && !state.contains_key("schema_version")).then_some(state)
}

fn is_of_orchestrator(state: &Map<String, Value>) -> bool {
    LIMITS.iter().any(|name| state.contains_key(*name))
}

fn read(tree: &Tree, format: &'static str) -> Result<Read, Vec<Fault>> {
    let path = tree.path.clone().unwrap_or_else(|| "-".to_owned());
    let json = Json::new(&path, tree.only().unwrap_or_default());
    let mut reading =
        Reading { format, source: tree.path.clone(), json, report: Report::default() };
    let one = |fault: Fault| vec![fault];
    let top = reading.json.whole().map_err(one)?;
    let (mut whole, tasks) = reading.json.record_and_parts(top, "tasks", 1).map_err(one)?;
    let flat = reading.tasks(&tasks)?;
    let mut board = Board { goal: whole.text("goal").map_err(one)?, ..Board::default() };
    board.master_plan = whole.text("master_plan").map_err(one)?;
    let fields: BTreeMap<String, &RawValue> = reading.json.parsed(top).map_err(one)?;
    let mut beside = Beside::default();
    let agents = by_id(&reading.json, fields.get("agents").copied()).map_err(one)?;
    board.agents = coordinator::agents(agents, &mut beside, &mut reading.report).map_err(one)?;
    let discoveries = listed(&reading.json, fields.get("discoveries").copied()).map_err(one)?;
    board.discoveries =
        coordinator::discoveries(discoveries, &mut beside, &mut reading.report).map_err(one)?;
    for name in ["agents", "discoveries", "last_activity", "created_at"] {
        whole.take(name);
    }
    for (name, usual) in LIMITS.into_iter().zip(USUAL) {
        whole.take_if(name, &usual.into());
    }
    if let Some(Value::Object(limits)) = whole.take(ELSEWHERE) {
        beside.0.extend(limits);
    }
    beside.keep_whole(whole, &mut reading.report);
    board.metadata = beside.0;
    let mut items = coordinator::grown(flat, &mut reading.report);
    if let Some(seconds) =
        board.metadata.get(LIMITS[1]).and_then(Value::as_u64).filter(|seconds| *seconds > 0)
    {
        limited(&mut items, u32::try_from(seconds).ok());
    }
    let Reading { report, .. } = reading;
    Read { path: tree.path.clone(), title: None, items, report, board }.checked(coordinator::word)
}

/// Gives tasks without a time limit that of all tasks.
fn limited(items: &mut [Node], seconds: Option<u32>) {
    for node in items {
        node.of_task.timeout_seconds = node.of_task.timeout_seconds.or(seconds);
        limited(&mut node.items, seconds);
    }
}

/// The records of an object, each with its key as its id.
pub(super) fn by_id(json: &Json<'_>, raw: Option<&RawValue>) -> Result<Vec<Record>, Fault> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(Vec::new()) };
    let entries: BTreeMap<String, Map<String, Value>> = json.reparsed(raw)?;
    let line = json.line(raw);
    let records = entries.into_iter().map(|(id, mut fields)| {
        fields.entry("id").or_insert_with(|| id.into());
        Record::new(&json.path, line, fields)
    });
    Ok(records.collect())
}

pub(super) fn listed(json: &Json<'_>, raw: Option<&RawValue>) -> Result<Vec<Record>, Fault> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(Vec::new()) };
    let entries: Vec<Map<String, Value>> = json.reparsed(raw)?;
    let line = json.line(raw);
    Ok(entries.into_iter().map(|fields| Record::new(&json.path, line, fields)).collect())
}

fn write(view: &View, format: &Format, name: &'static str) -> Written {
    let flavour = Flavour {
        word: coordinator::plain_word,
        is_brief: false,
        has_groups: false,
        has_contexts: name == "option-c",
    };
    let writing = Writing::new(view, flavour);
    let mut report = Report::default();
    let mut state = Map::new();
    state.insert("master_plan".to_owned(), view.master_plan.as_str().into());
    state.insert("goal".to_owned(), view.goal.as_str().into());
    state.insert("tasks".to_owned(), writing.tasks(&mut report).into());
    let agents = coordinator::written_agents(view).into_iter();
    let by_id: Map<String, Value> = agents
        .map(|agent| (agent["id"].as_str().unwrap_or_default().to_owned(), Value::Object(agent)))
        .collect();
    state.insert("agents".to_owned(), Value::Object(by_id));
    state.insert("discoveries".to_owned(), json!(coordinator::written_discoveries(view)));
    let times = view.tasks.iter().map(|task| task.created_at);
    let last = view.tasks.iter().filter_map(|task| task.completed_at.or(task.claimed_at)).max();
    state.insert("created_at".to_owned(), json!(times.clone().min().unwrap_or_default()));
    state.insert("last_activity".to_owned(), json!(last.or(times.max()).unwrap_or_default()));
    let mut own = coordinator::whole(view);
    if name != "option-c" {
        let limits =
            LIMITS.into_iter().filter_map(|name| Some((name.to_owned(), own.shift_remove(name)?)));
        let limits: Map<String, Value> = limits.collect();
        if !limits.is_empty() {
            own.insert(ELSEWHERE.to_owned(), Value::Object(limits));
        }
    }
    coordinator::add_beside(own, &mut state, &mut report);
    if name == "option-c" {
        for (name, usual) in LIMITS.into_iter().zip(USUAL) {
            state.entry(name).or_insert_with(|| usual.into());
        }
    }
    let text = serde_json::to_string_pretty(&state).unwrap_or_default() + "\n";
    let words = view.tasks.iter().map(|task| (task.status, coordinator::plain_word(task.status)));
    words
        .filter(|(status, word)| status.as_str() != *word)
        .for_each(|(status, word)| report.status(status.as_str(), word));
    Written { files: vec![(format.places[0].to_owned(), text)], report, ..Written::default() }
}
