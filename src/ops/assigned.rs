//! A task as the agent that claims it sees it: what the work needs, without nulls and without
//! hashes, which a model reads and pays for.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim_task::shortened;
use crate::state::State;
use crate::state::agent::Demands;
use crate::state::id::{AgentId, TaskId};
use crate::state::limit::{ABOVE_SHOWN, SURROUNDINGS};
use crate::state::review::Review;
use crate::state::task::{Context, StopRequest, Task, TaskResult, TaskStatus};
use crate::state::time::Timestamp;

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Assigned {
    pub id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: Arc<str>,
    pub status: TaskStatus,
    pub priority: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<AgentId>,
    pub dependencies: Vec<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Arc<Context>>,
    /// What an earlier attempt left
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<TaskResult>>,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Demands::is_empty")]
    pub demands: Arc<Demands>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_minutes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_minutes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_requested: Option<StopRequest>,
    pub attempt: u32,
    pub max_attempts: u32,
    /// Names of the files that work on the task has left
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
}

impl From<&Task> for Assigned {
    fn from(task: &Task) -> Self {
        Self {
            id: task.id.clone(),
            number: task.number,
            path: task.path.clone(),
            title: task.title.clone(),
            description: Arc::clone(&task.description),
            status: task.status,
            priority: task.priority,
            claimed_by: task.claimed_by.clone(),
            dependencies: task.dependencies.clone(),
            context: task.context.clone(),
            result: task.result.clone(),
            created_at: task.created_at,
            claimed_at: task.claimed_at,
            started_at: task.started_at,
            parent: task.parent.clone(),
            demands: Arc::clone(&task.demands),
            tags: task.tags.clone(),
            timeout_seconds: task.timeout_seconds,
            silent_minutes: task.silent_minutes,
            estimated_minutes: task.estimated_minutes,
            review: task.review,
            stop_requested: task.stop_requested.clone(),
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            artifacts: task.artifacts.iter().map(|artifact| artifact.name.clone()).collect(),
        }
    }
}

/// What the task is for: together at most 200 bytes of JSON.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
pub struct Surroundings {
    /// Beginning of the goal
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// Titles of the tasks that this one is a part of, the outermost first
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
}

/// Bytes of one title above.
const TITLE_SHOWN: usize = 40;

impl Surroundings {
    pub fn of(task: &Task, state: &State) -> Self {
        let mut above: Vec<String> = state
            .ancestors(task)
            .take(ABOVE_SHOWN)
            .map(|one| shortened(one.headline(), TITLE_SHOWN))
            .collect();
        above.reverse();
        let goal = state
            .board()
            .goal
            .split_whitespace()
            .take(SURROUNDINGS / 2)
            .collect::<Vec<_>>()
            .join(" ");
        let titles = Self { goal: String::new(), above };
        let room = SURROUNDINGS.saturating_sub(titles.bytes() + "\"goal\":\"\",".len());
        Self { goal: shortened(&goal, room), ..titles }
    }

    fn bytes(&self) -> usize {
        serde_json::to_string(self).unwrap_or_default().len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::Envelope;
    use crate::state::event::Event;
    use crate::state::id::ParticipantId;

    #[test]
    fn what_a_task_is_for_takes_little_room_whatever_the_texts() {
        let participant = ParticipantId::trusted("p-1");
        let envelope =
            Envelope { at: Timestamp::default(), participant, actor: None, idempotency: None };
        for (goal, title) in [("g", "t"), (" \"ü\"\n\t", "\\\""), ("", "日本")] {
            let (goal, title) = (goal.repeat(2_000), title.repeat(60));
            let task = |id: &str, parent: Option<&str>| {
                json!({"id": id, "title": title, "description": "d", "priority": 5, "parent": parent,
                    "dependencies": [], "max_attempts": 3})
            };
            let tasks = ["a", "b", "c", "d", "e"].into_iter();
            let tasks = tasks.scan(None, |parent, id| Some(task(id, parent.replace(id))));
            let tasks = serde_json::from_value(tasks.collect()).expect("they are tasks");
            let created = [
                Event::BoardCreated { board_id: "b".to_owned(), numbered: true },
                Event::PlanSet { goal, master_plan: None },
                Event::TasksCreated { tasks },
            ];
            let mut state = State::new();
            for event in created {
                state.record(event, &envelope).expect("the event fits");
            }
            let task = state.task(&TaskId::trusted("e")).expect("it is there");
            let around = Surroundings::of(task, &state);
            assert!(around.bytes() <= SURROUNDINGS, "{} bytes", around.bytes());
            assert_eq!(around.above.len(), ABOVE_SHOWN);
        }
    }
}
