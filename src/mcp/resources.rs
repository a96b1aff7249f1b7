//! Reads of the board under a URI, for clients that show or attach resources.

use rmcp::model::{Resource, ResourceTemplate};
use serde_json::{Value, json};

pub const JSON: &str = "application/json";

const TASK: &str = "coordination://tasks/";

struct Read {
    uri: &'static str,
    title: &'static str,
    description: &'static str,
    operation: &'static str,
}

static READS: [Read; 5] = [
    Read {
        uri: "coordination://status",
        title: "Status",
        description: "Goal, counts of tasks and agents, and what is blocked",
        operation: "get_status",
    },
    Read {
        uri: "coordination://tasks",
        title: "Tasks",
        description: "Every task with its status, owner and dependencies",
        operation: "get_all_tasks",
    },
    Read {
        uri: "coordination://discoveries",
        title: "Discoveries",
        description: "What agents found out and shared, newest included",
        operation: "get_discoveries",
    },
    Read {
        uri: "coordination://master-plan",
        title: "Master plan",
        description: "The goal and the plan in the leader's words",
        operation: "get_master_plan",
    },
    Read {
        uri: "coordination://agents",
        title: "Agents",
        description: "Who is registered, alive, and working on what",
        operation: "get_agents",
    },
];

pub fn list() -> Vec<Resource> {
    READS
        .iter()
        .map(|read| {
            Resource::new(read.uri, name(read.uri))
                .with_title(read.title)
                .with_description(read.description)
                .with_mime_type(JSON)
        })
        .collect()
}

pub fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{TASK}{{id}}"), "task")
            .with_title("Task")
            .with_description("One task with its attempts and result")
            .with_mime_type(JSON),
    ]
}

/// The operation whose reply is the content, and its arguments.
pub fn operation(uri: &str) -> Option<(&'static str, Value)> {
    if let Some(id) = uri.strip_prefix(TASK).filter(|id| !id.is_empty()) {
        return Some(("get_task", json!({"task_id": id})));
    }
    let read = READS.iter().find(|read| read.uri == uri)?;
    Some((read.operation, json!({})))
}

fn name(uri: &'static str) -> &'static str {
    uri.trim_start_matches("coordination://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_reads_an_operation_that_changes_nothing() {
        let uris = READS.iter().map(|read| read.uri).chain(["coordination://tasks/task-1"]);
        for uri in uris {
            let (operation, _) = operation(uri).unwrap();
            let entry = crate::ops::all().iter().find(|entry| entry.name == operation);
            assert!(entry.is_some_and(|entry| entry.annotations.read_only), "{uri}: {operation}");
        }
    }

    #[test]
    fn unknown_uris_read_nothing() {
        for uri in ["", "status", "coordination://", "coordination://tasks/", "coordination://statuses", "file:///etc"]
        {
            assert_eq!(operation(uri), None, "{uri}");
        }
    }
}
