//! The state file of the TypeScript broker that callboard replaces. It has no version, no leases
//! and no checks, so it is read leniently, and notes say what could not stay as it was.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_path_to_error::Segment;

use super::found::{Found, unsound};
use crate::state::agent::{Agent, Role};
use crate::state::discovery::Discovery;
use crate::state::document::{Archived, Board, Document};
use crate::state::id::{AgentId, DiscoveryId, TaskId};
use crate::state::level;
use crate::state::task::{
    Context, DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, Task, TaskResult, TaskStatus,
};
use crate::state::time::Timestamp;
use crate::{harmless, redact, strict};

#[derive(Deserialize)]
struct OldState {
    goal: Option<String>,
    master_plan: Option<String>,
    created_at: Option<String>,
    last_activity: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    tasks: Vec<OldTask>,
    #[serde(default, deserialize_with = "or_empty")]
    agents: BTreeMap<String, OldAgent>,
    #[serde(default, deserialize_with = "or_empty")]
    discoveries: Vec<OldDiscovery>,
}

#[derive(Deserialize)]
struct OldTask {
    id: String,
    description: Option<String>,
    status: Option<String>,
    priority: Option<f64>,
    claimed_by: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    dependencies: Vec<String>,
    context: Option<OldContext>,
    result: Option<OldResult>,
    created_at: Option<String>,
    claimed_at: Option<String>,
    completed_at: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct OldContext {
    #[serde(default, deserialize_with = "or_empty")]
    files: Vec<String>,
    hints: Option<String>,
    parent_task: Option<String>,
}

#[derive(Deserialize)]
struct OldResult {
    output: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    files_modified: Vec<String>,
    #[serde(default, deserialize_with = "or_empty")]
    files_created: Vec<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct OldAgent {
    role: Option<String>,
    last_heartbeat: Option<String>,
    tasks_completed: Option<f64>,
}

#[derive(Deserialize)]
struct OldDiscovery {
    id: String,
    agent_id: Option<String>,
    content: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    tags: Vec<String>,
    created_at: Option<String>,
}

fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

pub(super) fn import(bytes: &[u8]) -> Found {
    if let Err(error) = strict::check(bytes) {
        return unsound(format!(
            "it has no schema_version and is no older state file either: {error}"
        ));
    }
    let mut value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            return unsound(format!(
                "it has no schema_version and is no older state file either: {error}"
            ));
        }
    };
    harmless::value(&mut value);
    redact::value(&mut value);
    let old: OldState = match serde_path_to_error::deserialize(&value) {
        Ok(old) => old,
        Err(error) => return unsound(unread(&value, &error)),
    };
    let mut notes = Vec::new();
    let created_at = time(old.created_at.as_deref());
    let mut tasks = tasks(old.tasks, created_at, &mut notes);
    drop_unknown_dependencies(&mut tasks, &mut notes);
    drop_cycles(&mut tasks, &mut notes);
    let agents = old.agents.into_iter().map(|(id, agent)| self::agent(&id, &agent, &mut notes));
    let agents: BTreeMap<_, _> = agents.map(|agent| (agent.id.clone(), agent)).collect();
    let discoveries = discoveries(old.discoveries, created_at, &mut notes);
    let board = Board {
        schema_version: level::FIRST,
        board_id: String::new(),
        seq: 0,
        goal: Arc::from(old.goal.unwrap_or_default()),
        master_plan: Arc::from(old.master_plan.unwrap_or_default()),
        created_at,
        last_activity: time(old.last_activity.as_deref()).max(created_at),
        paused: None,
        grace_until: None,
        archived: Archived::default(),
        archived_runs: Archived::default(),
        dropped_stubs: 0,
        questions: 0,
        next_number: 0,
        spent_attempts: Arc::default(),
        undone: Vec::new(),
        plans: Arc::from([]),
    };
    let tasks = tasks.into_iter().map(Arc::new).collect();
    let document = Document { tasks, agents, discoveries, ..Document::empty(board) };
    Found::Foreign { document: Box::new(document), notes }
}

/// What in the file cannot be read, with the task's id if it is in a task.
fn unread(value: &Value, error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let mut path = error.path().iter();
    let index = path.find_map(|segment| match segment {
        Segment::Seq { index } => Some(*index),
        _ => None,
    });
    let id = index
        .and_then(|index| value["tasks"][index].get("id"))
        .filter(|_| error.path().to_string().starts_with("tasks["));
    let of = id.map(|id| format!(" of task {id}")).unwrap_or_default();
    format!(
        "it is a state file of the broker before callboard, and {}{of} cannot be read: {}; mend \
         that in the file and try again",
        error.path(),
        error.inner()
    )
}

/// A time; 1970 for one that is missing or invalid. Without a zone it is taken for UTC.
fn time(text: Option<&str>) -> Timestamp {
    known_time(text).unwrap_or_default()
}

fn known_time(text: Option<&str>) -> Option<Timestamp> {
    Timestamp::of_text(text?)
}

fn tasks(old: Vec<OldTask>, board_created: Timestamp, notes: &mut Vec<String>) -> Vec<Task> {
    let mut ids = HashSet::new();
    let mut tasks = Vec::new();
    for old in old {
        if ids.insert(old.id.clone()) {
            tasks.push(task(old, board_created, notes));
        } else {
            notes.push(format!("task {} was there twice; the first was kept", old.id));
        }
    }
    tasks
}

fn task(old: OldTask, board_created: Timestamp, notes: &mut Vec<String>) -> Task {
    if TaskId::checked(&old.id).is_err() {
        notes.push(format!("task {} has an id that calls cannot name", old.id));
    }
    let mut result = old.result.map(result);
    let stated = status(&old.id, old.status.as_deref(), &mut result, notes);
    // Nobody holds a lease on it, so whoever comes may take it.
    let status = if stated.is_held() { TaskStatus::Available } else { stated };
    if stated.is_held() {
        let holder = old.claimed_by.as_deref().unwrap_or("nobody");
        notes.push(format!(
            "task {} was {stated} by {holder} without a lease; it is available again",
            old.id
        ));
    }
    let open = status == TaskStatus::Available;
    Task {
        priority: priority(&old.id, old.priority, notes),
        id: TaskId::trusted(old.id),
        number: None,
        title: None,
        description: old.description.unwrap_or_default().into(),
        status,
        claimed_by: old.claimed_by.filter(|_| !open).map(AgentId::trusted),
        dependencies: old.dependencies.into_iter().map(TaskId::trusted).collect(),
        context: old.context.map(|old| Arc::new(context(old))),
        result: result.map(Arc::new),
        created_at: known_time(old.created_at.as_deref()).unwrap_or(board_created),
        claimed_at: known_time(old.claimed_at.as_deref()).filter(|_| !open),
        started_at: None,
        completed_at: known_time(old.completed_at.as_deref()).filter(|_| !open),
        path: None,
        parent: None,
        planned: None,
        left_plan: None,
        demands: Default::default(),
        tags: old.tags,
        not_before: None,
        timeout_seconds: None,
        silent_minutes: None,
        estimated_minutes: None,
        review: None,
        stop_requested: None,
        attempt: 0,
        max_attempts: DEFAULT_MAX_ATTEMPTS,
        uncounted: 0,
        attempts: Vec::new(),
        run: None,
        reset_at: None,
        artifacts: Vec::new(),
        kept: None,
        kept_for: None,
    }
}

fn status(
    id: &str,
    old: Option<&str>,
    result: &mut Option<TaskResult>,
    notes: &mut Vec<String>,
) -> TaskStatus {
    let Some(old) = old else { return TaskStatus::Available };
    if let Some(known) = TaskStatus::ALL.into_iter().find(|status| status.as_str() == old) {
        return known;
    }
    // Failed asks for somebody's attention; available might repeat work that was done.
    notes.push(format!("task {id} had the unknown status {old}; it is failed"));
    result
        .get_or_insert_default()
        .error
        .get_or_insert_with(|| format!("imported with the unknown status {old}"));
    TaskStatus::Failed
}

fn priority(id: &str, old: Option<f64>, notes: &mut Vec<String>) -> u8 {
    let Some(old) = old else { return DEFAULT_PRIORITY };
    let priority = old.round().clamp(1.0, 10.0);
    if priority != old {
        notes.push(format!("task {id} had priority {old}; it has {priority}"));
    }
    priority as u8
}

fn context(old: OldContext) -> Context {
    Context {
        files: old.files,
        hints: old.hints,
        parent_task: old.parent_task,
        metadata: Default::default(),
    }
}

fn result(old: OldResult) -> TaskResult {
    TaskResult {
        output: old.output,
        files_modified: old.files_modified,
        files_created: old.files_created,
        error: old.error,
        ..TaskResult::default()
    }
}

fn agent(id: &str, old: &OldAgent, notes: &mut Vec<String>) -> Agent {
    if AgentId::checked(id).is_err() {
        notes.push(format!("agent {id} has an id that calls cannot name; it can register another"));
    }
    let role = match old.role.as_deref() {
        Some("leader") => Role::Leader,
        Some("observer") => Role::Observer,
        Some("worker") | None => Role::Worker,
        Some(other) => {
            notes.push(format!("agent {id} had the unknown role {other}; it is a worker"));
            Role::Worker
        }
    };
    Agent {
        id: AgentId::trusted(id),
        role,
        last_heartbeat: time(old.last_heartbeat.as_deref()),
        current_task: None,
        tasks_completed: old.tasks_completed.unwrap_or_default() as u64,
        tasks_failed: 0,
        current_tasks: Vec::new(),
        capabilities: Default::default(),
        tags: Default::default(),
        properties: Arc::default(),
        metadata: Arc::default(),
        max_concurrent: 1,
        registered_at: None,
        runner: None,
        waiting: None,
        paused: None,
        present_through: Default::default(),
    }
}

fn discoveries(
    old: Vec<OldDiscovery>,
    board_created: Timestamp,
    notes: &mut Vec<String>,
) -> Vec<Arc<Discovery>> {
    let mut ids = HashSet::new();
    let mut discoveries = Vec::new();
    for old in old {
        if !ids.insert(old.id.clone()) {
            notes.push(format!("discovery {} was there twice; the first was kept", old.id));
            continue;
        }
        discoveries.push(Arc::new(Discovery {
            id: DiscoveryId::trusted(old.id),
            agent_id: AgentId::trusted(old.agent_id.unwrap_or_default()),
            content: old.content.unwrap_or_default(),
            tags: old.tags,
            created_at: known_time(old.created_at.as_deref()).unwrap_or(board_created),
            task_id: None,
            files: Vec::new(),
            supersedes: Vec::new(),
        }));
    }
    discoveries
}

fn drop_unknown_dependencies(tasks: &mut [Task], notes: &mut Vec<String>) {
    let ids: HashSet<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
    for task in tasks {
        let mut seen = HashSet::new();
        let id = &task.id;
        task.dependencies.retain(|dependency| {
            if !ids.contains(dependency) {
                notes.push(format!(
                    "task {id} depended on {dependency}, which does not exist; that was dropped"
                ));
            }
            ids.contains(dependency) && seen.insert(dependency.clone())
        });
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Never,
    /// The walk is below it, so a dependency on it closes a cycle.
    Open,
    Closed,
}

/// Walks from each task to its dependencies, without recursion: a file may hold a chain of any
/// length.
fn drop_cycles(tasks: &mut [Task], notes: &mut Vec<String>) {
    let places: HashMap<TaskId, usize> =
        tasks.iter().enumerate().map(|(at, task)| (task.id.clone(), at)).collect();
    let mut visits = vec![Visit::Never; tasks.len()];
    for start in 0..tasks.len() {
        if visits[start] != Visit::Never {
            continue;
        }
        visits[start] = Visit::Open;
        let mut walk = vec![(start, 0)];
        while let Some((at, next)) = walk.pop() {
            let Some(dependency) = tasks[at].dependencies.get(next) else {
                visits[at] = Visit::Closed;
                continue;
            };
            let below = places[dependency];
            if visits[below] == Visit::Open {
                notes.push(format!(
                    "task {} depended on {dependency} in a cycle; that was dropped",
                    tasks[at].id
                ));
                tasks[at].dependencies.remove(next);
                walk.push((at, next));
                continue;
            }
            walk.push((at, next + 1));
            if visits[below] == Visit::Never {
                visits[below] = Visit::Open;
                walk.push((below, 0));
            }
        }
    }
}

#[cfg(test)]
mod tests;
