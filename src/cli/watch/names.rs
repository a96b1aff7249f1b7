//! Asks the board for what events do not say themselves.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cli::board::Board;
use crate::state::event::{Event, Recorded, TaskChange};
use crate::state::id::{ParticipantId, TaskId};
use crate::state::task::Task;
use crate::view::{NAMED, Names};

/// Events before the end of a process among which its agents are looked for.
const LOOKED_AT: usize = 200;
/// Changes of a task that are looked through for a field's old value.
const CHANGES: usize = 50;

impl Names {
    /// Asks the board for what the events leave out. What it does not answer stays unknown.
    pub(in crate::cli) async fn learn(&mut self, board: &Board, events: &[Value]) {
        for event in events {
            let Ok(recorded) = Recorded::deserialize(event) else { continue };
            self.note(&recorded);
            let told: HashSet<&TaskId> = recorded.event.tasks().into_iter().take(NAMED).collect();
            for id in told.into_iter().filter(|id| !self.knows(id)).collect::<Vec<_>>() {
                let task = task(board, id).await;
                self.set_task(id, recorded.seq, task.as_ref());
            }
            match &recorded.event {
                Event::ParticipantGone { participant, .. } => {
                    self.look_for(board, participant, recorded.seq).await;
                }
                Event::TaskUpdated { task, change, .. } => {
                    let old = before(board, task, change, recorded.seq).await;
                    self.set_before(recorded.seq, old);
                }
                _ => {}
            }
        }
    }

    /// Looks for the agents of a process that went, among the events before.
    async fn look_for(&mut self, board: &Board, participant: &ParticipantId, seq: u64) {
        if self.has_agents_of(participant) {
            return;
        }
        let asked = json!({"before_seq": seq, "limit": LOOKED_AT});
        let found = board.call("get_history", asked).await.unwrap_or_default();
        for event in found["events"].as_array().into_iter().flatten() {
            if let Ok(recorded) = Recorded::deserialize(event) {
                self.note(&recorded);
            }
        }
    }
}

async fn task(board: &Board, id: &TaskId) -> Option<Task> {
    let reply = board.call("get_task", json!({"task_id": id})).await.ok()?;
    Task::deserialize(&reply["task"]).ok()
}

/// What the changed fields of a task were before event `seq`, as the events before tell it.
async fn before(board: &Board, task: &TaskId, change: &TaskChange, seq: u64) -> Map<String, Value> {
    let Ok(Value::Object(new)) = serde_json::to_value(change) else { return Map::new() };
    let asked = json!({"task_id": task, "before_seq": seq, "limit": CHANGES,
        "kinds": ["tasks_created", "task_updated", "state_edited", "plan_imported"]});
    let found = board.call("get_history", asked).await.unwrap_or_default();
    let events: Vec<_> = found["events"].as_array().into_iter().flatten().collect();
    let old = |field: &String| {
        let value = events.iter().find_map(|event| said(event, task, field))?;
        Some((field.clone(), value.clone()))
    };
    new.keys().filter_map(old).collect()
}

/// The value that the event gave to a field of the task.
fn said<'e>(event: &'e Value, task: &TaskId, field: &str) -> Option<&'e Value> {
    let of_lists =
        ["tasks", "created", "changed"].into_iter().filter_map(|list| event[list].as_array());
    let mut entries = of_lists.flatten();
    let is_its = |one: &Value| one["id"] == task.as_str() || one["task"] == task.as_str();
    let entry = entries.find(|one| is_its(one));
    let places = [Some(&event["change"]), entry, entry.map(|entry| &entry["change"])];
    places.into_iter().flatten().find_map(|place| place.get(field))
}
