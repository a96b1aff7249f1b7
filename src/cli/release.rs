use std::process::ExitCode;

use serde_json::{Value, json};

use super::{Outcome, Session, usage_error};
use crate::state::guard::HUMAN;
use crate::state::task::{Task, TaskStatus};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Id of the task; without it, every task that the agent of --agent holds
    id: Option<String>,
    /// Release every task that any agent holds
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Why, for whoever takes it next
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    if let Some(id) = &arguments.id {
        let reply =
            session.call("release_task", json!({"task_id": id, "reason": arguments.reason}))?;
        session.show(&reply, |page| page.line(format_args!("{} {id}", became(&reply))))?;
        return Ok(ExitCode::SUCCESS);
    }
    let holder = match (arguments.all, session.agent.as_deref()) {
        (true, _) => None,
        (false, Some(agent)) => Some(agent),
        (false, None) => usage_error("release what? Name a task, an agent with --agent, or --all"),
    };
    release_held(session, holder, arguments.reason.as_deref())
}

/// What has become of a task: one whose agent was asked to stop does not go back to the queue.
fn became(reply: &Value) -> &'static str {
    if reply["status"] == "cancelled" { "cancelled" } else { "released" }
}

/// Releases all tasks that `holder`, or anybody, holds. It acts as the person, because the agent
/// may be gone.
fn release_held(session: &Session, holder: Option<&str>, reason: Option<&str>) -> Outcome {
    let mut held = held_tasks(session)?;
    held.retain(|task| {
        holder.is_none_or(|holder| task.claimed_by.as_ref().is_some_and(|by| by.as_str() == holder))
    });
    let reply = if held.is_empty() {
        json!({"success": true, "applied": 0, "items_written": 0, "writes_saved": 0, "results": []})
    } else {
        let release = |task: &Task| {
            let arguments = json!({"agent_id": HUMAN, "task_id": task.id, "reason": reason});
            json!({"name": "release_task", "arguments": arguments})
        };
        session.call(
            "apply_batch",
            json!({"operations": held.iter().map(release).collect::<Value>()}),
        )?
    };
    session.show(&reply, |page| {
        if held.is_empty() {
            page.line(format_args!(
                "{}",
                holder.map_or("nobody holds a task".to_owned(), |id| format!("{id} holds no task"))
            ));
        }
        for (index, task) in held.iter().enumerate() {
            page.line(format_args!("{} {}", became(&reply["results"][index]), task.id));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn held_tasks(session: &Session) -> anyhow::Result<Vec<Task>> {
    let mut held = Vec::new();
    for status in TaskStatus::ALL.into_iter().filter(|status| status.is_held()) {
        let reply =
            session.every_page("get_all_tasks", "tasks", &json!({"status_filter": status}))?;
        held.extend(serde_json::from_value::<Vec<Task>>(reply["tasks"].clone())?);
    }
    Ok(held)
}
