//! A directory of files (option A): `tasks.json`, `agents.json`, `groups.json`, `master-plan.md`,
//! `context/discoveries.md`, and a report for each task below `results`.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::coordinator::{self, Beside, Flavour, GROUP, Reading, Writing};
use super::json::Json;
use super::record::Record;
use super::report::{Fault, Report};
use super::{Format, Read, Tree, View, Written};
use crate::plan::Node;
use crate::plan::board::{Board, Discovery};
use crate::state::digest::sha256;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::plan::shortened;
use crate::state::task::Source;

pub(super) const FORMAT: Format = Format {
    name: NAME,
    what: "a directory of tasks.json, agents.json and others (option A)",
    places: &[
        "tasks.json",
        "agents.json",
        "groups.json",
        "master-plan.md",
        "context/discoveries.md",
        ".coordination/tasks.json",
        ".coordination/agents.json",
        ".coordination/groups.json",
        ".coordination/master-plan.md",
        ".coordination/context/discoveries.md",
    ],
    one_file: false,
    form: "a tasks.json with a list of tasks that have a description and a status",
    is,
    read: Some(read),
    write: Some(write),
};

const NAME: &str = "option-a";
/// What begins a discovery in the file of discoveries.
const MARK: &str = "<!-- discovery ";
/// The lines above all discoveries.
const FRAME: [&str; 2] = ["# Shared Discoveries", "Important findings go here."];

fn file<'t>(tree: &'t Tree, name: &str) -> Option<(&'t String, &'t String)> {
    tree.files
        .iter()
        .find(|(path, _)| path.as_str() == name || path.ends_with(&format!(".coordination/{name}")))
}

fn is(tree: &Tree) -> bool {
    let Some((_, text)) = file(tree, "tasks.json") else { return false };
    let Ok(Value::Object(top)) = serde_json::from_str(text) else { return false };
    let is_task = |task: &Value| task["description"].is_string() && task["status"].is_string();
    top.get("tasks").and_then(Value::as_array).is_some_and(|tasks| tasks.iter().all(is_task))
}

fn read(tree: &Tree) -> Result<Read, Vec<Fault>> {
    let one = |fault: Fault| vec![fault];
    let path_of = |name: &str| tree.path_of(name).unwrap_or_else(|| name.to_owned());
    let nothing = String::new();
    let (name, text) = file(tree, "tasks.json").unwrap_or((&nothing, &nothing));
    let path = path_of(name);
    let json = Json::new(&path, text);
    let mut reading =
        Reading { format: NAME, source: Some(path.clone()), json, report: Report::default() };
    let top = reading.json.whole().map_err(one)?;
    let (mut whole, tasks) = reading.json.record_and_parts(top, "tasks", 1).map_err(one)?;
    let mut flat = reading.tasks(&tasks)?;
    let mut beside = Beside::default();
    for name in ["version", "created_at", "last_updated"] {
        whole.take(name);
    }
    let mut report = reading.report;
    for name in ["agents", "discoveries"] {
        if whole.take(name).is_some() {
            report.left_out(&format!("{name} in tasks.json (they have a file of their own)"));
        }
    }
    let groups = records(tree, "groups.json", "groups").map_err(one)?;
    let mut at: HashMap<String, usize> = HashMap::new();
    flat.iter()
        .enumerate()
        .for_each(|(number, task)| _ = at.entry(task.id().to_owned()).or_insert(number));
    for group in groups {
        add_group(group, &path, &mut flat, &mut at, &mut report).map_err(one)?;
    }
    let agents = records(tree, "agents.json", "agents").map_err(one)?;
    let mut board = Board {
        agents: coordinator::agents(agents, &mut beside, &mut report).map_err(one)?,
        ..Board::default()
    };
    if let Some((_, text)) = file(tree, "master-plan.md") {
        let (goal, plan) = objective(text);
        (board.goal, board.master_plan) = (goal, Some(plan));
    }
    if let Some((name, text)) = file(tree, "context/discoveries.md") {
        board.discoveries =
            discoveries(&path_of(name), text, &mut beside, &mut report).map_err(one)?;
    }
    beside.keep_whole(whole, &mut report);
    board.metadata = beside.0;
    let items = coordinator::grown(flat, &mut report);
    Read { path: tree.path.clone(), title: None, items, report, board }.checked(coordinator::word)
}

/// The entries of the list in a file, which may also be an object by ids, or the list alone.
fn records(tree: &Tree, name: &str, list: &str) -> Result<Vec<Record>, Fault> {
    let Some((name, text)) = file(tree, name) else { return Ok(Vec::new()) };
    let path = tree.path_of(name).unwrap_or_else(|| name.clone());
    let json = Json::new(&path, text);
    let whole = json.whole()?;
    let top: Value = json.reparsed(whole)?;
    let entries = match top {
        Value::Object(mut fields) if fields.contains_key(list) => {
            fields.shift_remove(list).unwrap_or_default()
        }
        other => other,
    };
    let line = json.line(whole);
    let fault = || Fault {
        path: path.clone(),
        line,
        problem: format!("{list} has an entry that is not an object"),
    };
    let record = |(id, entry): (Option<String>, Value)| match entry {
        Value::Object(mut fields) => {
            if let Some(id) = id {
                fields.entry("id").or_insert_with(|| id.into());
            }
            Ok(Record::new(&json.path, line, fields))
        }
        _ => Err(fault()),
    };
    match entries {
        Value::Array(entries) => entries.into_iter().map(|entry| record((None, entry))).collect(),
        Value::Object(entries) => {
            entries.into_iter().map(|(id, entry)| record((Some(id), entry))).collect()
        }
        _ => Err(fault()),
    }
}

/// Makes a group the whole of its tasks, and has the barrier wait for it. `at` says where each id
/// is.
fn add_group(
    mut group: Record,
    path: &str,
    flat: &mut Vec<coordinator::Flat>,
    at: &mut HashMap<String, usize>,
    report: &mut Report,
) -> Result<(), Fault> {
    let id = group.needed("id")?;
    let title = group.text("name")?.unwrap_or_else(|| id.clone());
    let (members, barrier) = (group.texts("task_ids")?, group.text("barrier_task_id")?);
    let line = group.line;
    let mut node = Node { title, line, ..Node::default() };
    node.source =
        Some(Source { format: NAME.to_owned(), id: id.clone(), path: Some(path.to_owned()) });
    node.of_task.task_id = TaskId::checked(&id).is_ok().then(|| id.clone());
    // It follows from the tasks.
    group.take("status");
    node.of_task.past.created_at = coordinator::time(&mut group, "created_at")?;
    node.of_task.past.completed_at = coordinator::time(&mut group, "completed_at")?;
    group.rest(&mut node, &mut Report::default());
    node.metadata.insert(GROUP.to_owned(), true.into());
    let mut elsewhere = Vec::new();
    for member in members {
        match at.get(&member).map(|at| &mut flat[*at]) {
            Some(one) if one.parent.is_none() && one.id() != id => {
                one.parent = Some(id.clone());
                if one.node.metadata.get("group_id").is_some_and(|group| *group == *id) {
                    one.node.metadata.shift_remove("group_id");
                }
            }
            Some(_) => elsewhere.push(member),
            None => {
                report.note(path, line, format!("the group {id} has {member}, which is no task"))
            }
        }
    }
    if let Some(one) = barrier.and_then(|barrier| at.get(&barrier)).map(|at| &mut flat[*at]) {
        one.node.depends.push(id.clone());
        one.node.depends.extend(elsewhere);
    }
    at.entry(id).or_insert(flat.len());
    flat.push(coordinator::Flat { node, parent: None });
    Ok(())
}

const BEFORE: &str = "# Master Plan\n\n## Objective\n";
const APPROACH: &str = "\n\n## Approach\n";

/// The goal in a master plan, and the plan: all of the text, unless it is only a frame around the
/// plan.
fn objective(text: &str) -> (Option<String>, String) {
    let framed = text.strip_prefix(BEFORE).and_then(|rest| rest.split_once(APPROACH));
    if let Some((goal, plan)) = framed.filter(|(_, plan)| !plan.contains("\n## ")) {
        return (Some(goal.to_owned()), plan.strip_suffix('\n').unwrap_or(plan).to_owned());
    }
    let section = text.split("\n## ").find_map(|section| section.strip_prefix("Objective\n"));
    let goal = section.map(|goal| goal.trim().to_owned()).filter(|goal| !goal.is_empty());
    (goal, text.to_owned())
}

/// Discoveries: those with a mark, or, in what people wrote, one for each section.
fn discoveries(
    path: &str,
    text: &str,
    beside: &mut Beside,
    report: &mut Report,
) -> Result<Vec<Discovery>, Fault> {
    let mut parts = text.split(MARK);
    let free = parts.next().unwrap_or_default();
    let mut records = Vec::new();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (number, section) in format!("\n{free}").split("\n## ").enumerate() {
        let content = section.trim();
        if number == 0 {
            let lines = content.lines().map(str::trim);
            let said: Vec<&str> =
                lines.filter(|line| !line.is_empty() && !FRAME.contains(line)).collect();
            if !said.is_empty() {
                let said = shortened(&said.join(" "), limit::TITLE.max);
                report.note(
                    path,
                    1,
                    format!("not a discovery, for no heading with ## is above it: {said}"),
                );
            }
            continue;
        }
        if content.is_empty() {
            continue;
        }
        let count = seen.entry(content).or_default();
        *count += 1;
        let twin = if *count > 1 { format!("-{count}") } else { String::new() };
        let id = format!("disc-{}{twin}", &sha256(content)[..8]);
        records.push(json!({"id": id, "agent_id": "unknown", "content": content}));
    }
    let mut line = free.matches('\n').count() + 1;
    for part in parts {
        let fault =
            |problem: &str| Fault { path: path.to_owned(), line, problem: problem.to_owned() };
        let (about, content) =
            part.split_once(" -->\n").ok_or_else(|| fault("the mark of a discovery has no end"))?;
        let mut fields: Map<String, Value> = serde_json::from_str(about)
            .map_err(|_| fault("the mark of a discovery is not JSON"))?;
        fields.insert("content".to_owned(), content.trim_end_matches('\n').into());
        records.push(Value::Object(fields));
        line += part.matches('\n').count();
    }
    let shared: std::sync::Arc<str> = path.into();
    let records = records.into_iter().filter_map(|fields| match fields {
        Value::Object(fields) => Some(Record::new(&shared, 1, fields)),
        _ => None,
    });
    coordinator::discoveries(records.collect(), beside, report)
}

fn write(view: &View) -> Written {
    let flavour =
        Flavour { word: coordinator::word, is_brief: true, has_groups: true, has_contexts: false };
    let writing = Writing::new(view, flavour);
    let mut report = Report::default();
    let created = view.tasks.iter().map(|task| task.created_at).min().unwrap_or_default();
    let mut tasks = Map::from_iter([
        ("version".to_owned(), Value::from("1.0")),
        ("created_at".to_owned(), json!(created)),
        (
            "last_updated".to_owned(),
            json!(view.tasks.iter().filter_map(|task| task.completed_at).max().unwrap_or(created)),
        ),
        ("tasks".to_owned(), writing.tasks(&mut report).into()),
    ]);
    coordinator::add_beside(coordinator::whole(view), &mut tasks, &mut report);
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    let agents = coordinator::written_agents(view).into_iter().map(|mut agent| {
        if let Some(seen) = agent.get("last_heartbeat").cloned() {
            agent.insert("last_seen".to_owned(), seen);
        }
        agent
    });
    let mut files = vec![
        ("tasks.json".to_owned(), pretty(&Value::Object(tasks))),
        ("agents.json".to_owned(), pretty(&json!({"agents": agents.collect::<Vec<_>>()}))),
        (
            "groups.json".to_owned(),
            pretty(&json!({"version": "1.0", "groups": groups(&writing, &mut report)})),
        ),
        ("master-plan.md".to_owned(), master_plan(view)),
        ("context/discoveries.md".to_owned(), discoveries_text(view)),
    ];
    for (number, task) in
        view.tasks.iter().enumerate().filter(|(number, _)| !writing.is_group(*number))
    {
        let id = writing.id(number);
        let is_name = TaskId::checked(&id).is_ok();
        files.extend(
            coordinator::told(task, &id)
                .filter(|_| is_name)
                .map(|text| (format!("results/{id}.md"), text)),
        );
    }
    Written { files, report, ..Written::default() }
}

/// Fields of a group that are read by their names.
const OF_GROUP: [&str; 7] =
    ["id", "name", "task_ids", "barrier_task_id", "created_at", "completed_at", "status"];

fn groups(writing: &Writing<'_>, report: &mut Report) -> Vec<Value> {
    let view = writing.view;
    let groups = (0..view.tasks.len()).filter(|number| writing.is_group(*number));
    let mut group = |number: usize| {
        let task = &view.tasks[number];
        let barrier = writing.barrier(number).map(|barrier| writing.id(barrier));
        let status = if task.status.is_unfinished() { "active" } else { "complete" };
        let mut fields = Map::from_iter([
            ("id".to_owned(), Value::from(writing.id(number))),
            ("name".to_owned(), task.headline().into()),
            (
                "task_ids".to_owned(),
                view.parts[number].iter().map(|part| writing.id(*part)).collect(),
            ),
            ("barrier_task_id".to_owned(), json!(barrier)),
            ("created_at".to_owned(), json!(task.created_at)),
            ("status".to_owned(), status.into()),
        ]);
        if let Some(at) = task.completed_at {
            fields.insert("completed_at".to_owned(), json!(at));
        }
        let metadata = view.metadata(number, &OF_GROUP, report).into_iter();
        fields.extend(metadata.filter(|(name, _)| name != GROUP));
        Value::Object(fields)
    };
    groups.map(&mut group).collect()
}

fn master_plan(view: &View) -> String {
    let (goal, plan) = (&view.goal, &view.master_plan);
    let is_whole = objective(plan).0.as_ref() == Some(goal);
    if is_whole { plan.clone() } else { format!("{BEFORE}{goal}{APPROACH}{plan}\n") }
}

fn discoveries_text(view: &View) -> String {
    let mut text = format!("{}\n", FRAME.join("\n\n"));
    for mut fields in coordinator::written_discoveries(view) {
        let content = fields.shift_remove("content").unwrap_or_default();
        // A mark ends at the first arrow.
        let about = Value::Object(fields).to_string().replace('>', "\\u003e");
        let content = content.as_str().unwrap_or_default().replace(MARK, "<!--  discovery ");
        text.push_str(&format!("\n{MARK}{about} -->\n{content}\n"));
    }
    text
}
