//! Agents and discoveries.

use serde_json::{Map, Value, json};

use super::read::{labels, time, whole};
use crate::exchange::View;
use crate::exchange::record::Record;
use crate::exchange::report::{Fault, Report};
use crate::plan::Node;
use crate::plan::board::{Agent, Discovery};
use crate::state::agent::Role;

/// Fields for which a board has no place, by what they belong to.
#[derive(Default)]
pub(crate) struct Beside(pub Map<String, Value>);

impl Beside {
    /// Keeps the fields of a record that were not taken.
    pub(crate) fn keep(&mut self, list: &str, id: &str, record: Record, report: &mut Report) {
        let mut rest = Node::default();
        record.rest(&mut rest, &mut Report::default());
        rest.metadata.keys().for_each(|name| report.kept(&format!("{list}.{name}")));
        rest.metadata.into_iter().for_each(|(name, value)| self.put(list, id, &name, value));
    }

    fn put(&mut self, list: &str, id: &str, name: &str, value: Value) {
        let of_list = self.0.entry(list.to_owned()).or_insert_with(|| json!({}));
        of_list[id][name] = value;
    }

    /// Keeps the fields of the whole file that were not taken. Those of the lists' names must have
    /// been.
    pub(crate) fn keep_whole(&mut self, record: Record, report: &mut Report) {
        let mut rest = Node::default();
        record.rest(&mut rest, report);
        self.0.extend(rest.metadata);
    }
}

pub(crate) fn agents(
    records: Vec<Record>,
    beside: &mut Beside,
    report: &mut Report,
) -> Result<Vec<Agent>, Fault> {
    let agent = |mut record: Record| {
        let id = record.needed("id")?;
        let mut metrics = match record.take("metrics") {
            Some(Value::Object(metrics)) => metrics,
            _ => Map::new(),
        };
        let mut counted = |name: &str| metrics.shift_remove(name).and_then(|count| count.as_u64());
        let (done, failed) = (counted("tasks_completed"), counted("tasks_failed"));
        let role = match record.text("role")?.as_deref() {
            None | Some("worker") => Role::Worker,
            Some("leader") => Role::Leader,
            Some("observer") => Role::Observer,
            Some(other) => {
                report.kept(&format!("role {other} (a worker here)"));
                beside.put("agents", &id, "role", other.into());
                Role::Worker
            }
        };
        let seen = time(&mut record, "last_seen")?;
        if record.take("current_task").is_some() {
            report.left_out("agents.current_task (claims end with the import)");
        }
        let agent = Agent {
            role,
            capabilities: labels(&mut record, "capabilities")?,
            tags: record.texts("tags")?,
            project_dir: record.text("working_directory")?.filter(|dir| dir != "."),
            max_concurrent: whole(&mut record, "max_concurrent_tasks")?.filter(|most| *most > 0),
            registered_at: time(&mut record, "registered_at")?,
            last_heartbeat: time(&mut record, "last_heartbeat")?.or(seen),
            tasks_completed: whole(&mut record, "tasks_completed")?
                .map(u64::from)
                .or(done)
                .unwrap_or_default(),
            tasks_failed: whole(&mut record, "tasks_failed")?
                .map(u64::from)
                .or(failed)
                .unwrap_or_default(),
            id,
        };
        if !metrics.is_empty() {
            beside.put("agents", &agent.id, "metrics", Value::Object(metrics));
        }
        beside.keep("agents", &agent.id, record, report);
        Ok(agent)
    };
    records.into_iter().map(agent).collect()
}

pub(crate) fn discoveries(
    records: Vec<Record>,
    beside: &mut Beside,
    report: &mut Report,
) -> Result<Vec<Discovery>, Fault> {
    let discovery = |mut record: Record| {
        let one = Discovery {
            id: record.needed("id")?,
            agent_id: record.text("agent_id")?.unwrap_or_else(|| "unknown".to_owned()),
            content: record.needed("content")?,
            tags: record.texts("tags")?,
            created_at: time(&mut record, "created_at")?,
            task_id: record.text("related_task")?,
            files: record.texts("files")?,
        };
        beside.keep("discoveries", &one.id, record, report);
        Ok(one)
    };
    records.into_iter().map(discovery).collect()
}

/// The fields that the board keeps beside an entry of a list.
fn kept(view: &View, list: &str, id: &str) -> Map<String, Value> {
    match view.metadata_of_all.get(list).map(|list| &list[id]) {
        Some(Value::Object(fields)) => fields.clone(),
        _ => Map::new(),
    }
}

pub(crate) fn written_agents(view: &View) -> Vec<Map<String, Value>> {
    let written = view.agents.iter().map(|agent| {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("id", agent.id.as_str().into());
        put("role", agent.role.as_str().into());
        put("last_heartbeat", json!(agent.last_heartbeat));
        put("current_task", json!(agent.current_task));
        put("tasks_completed", agent.tasks_completed.into());
        put("tasks_failed", agent.tasks_failed.into());
        put("max_concurrent_tasks", agent.max_concurrent.into());
        if let Some(at) = agent.registered_at {
            put("registered_at", json!(at));
        }
        if !agent.capabilities.is_empty() {
            put(
                "capabilities",
                agent.capabilities.iter().cloned().collect::<Vec<_>>().join(",").into(),
            );
        }
        if !agent.tags.is_empty() {
            put("tags", json!(agent.tags));
        }
        if let Some(dir) = &agent.properties.project_dir {
            put("working_directory", dir.as_str().into());
        }
        fields.extend(kept(view, "agents", agent.id.as_str()));
        fields
    });
    written.collect()
}

pub(crate) fn written_discoveries(view: &View) -> Vec<Map<String, Value>> {
    let written = view.discoveries.iter().map(|one| {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("id", one.id.as_str().into());
        put("agent_id", one.agent_id.as_str().into());
        put("content", one.content.as_str().into());
        put("tags", json!(one.tags));
        if let Some(task) = &one.task_id {
            put("related_task", task.as_str().into());
        }
        if !one.files.is_empty() {
            put("files", json!(one.files));
        }
        put("created_at", json!(one.created_at));
        fields.extend(kept(view, "discoveries", one.id.as_str()));
        fields
    });
    written.collect()
}
