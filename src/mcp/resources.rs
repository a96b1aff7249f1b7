//! Reads of the board under URIs, for clients that show or attach resources.

use std::borrow::Cow;
use std::collections::BTreeSet;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{Resource, ResourceTemplate};
use serde_json::{Value, json};

use crate::harmless;
use crate::state::State;
use crate::state::event::{Event, Recorded};
use crate::state::id::TaskId;

pub const JSON: &str = "application/json";

const TASK: &str = "coordination://tasks/";
const TAGGED: &str = "coordination://discoveries/";
/// Most unfinished tasks that are listed one by one; all of them are in `coordination://tasks`.
const TASKS_LISTED: usize = 100;

struct Read {
    subject: Subject,
    uri: &'static str,
    title: &'static str,
    description: &'static str,
}

static READS: [Read; 5] = [
    Read {
        subject: Subject::Status,
        uri: "coordination://status",
        title: "Status",
        description: "Goal, counts of tasks and agents, and what is blocked",
    },
    Read {
        subject: Subject::Tasks,
        uri: "coordination://tasks",
        title: "Tasks",
        description: "The first tasks with status, owner and dependencies; get_all_tasks has the \
                      rest",
    },
    Read {
        subject: Subject::Discoveries,
        uri: "coordination://discoveries",
        title: "Discoveries",
        description: "What agents found out and shared, newest included",
    },
    Read {
        subject: Subject::MasterPlan,
        uri: "coordination://master-plan",
        title: "Master plan",
        description: "The goal and the plan in the leader's words",
    },
    Read {
        subject: Subject::Agents,
        uri: "coordination://agents",
        title: "Agents",
        description: "Who is registered, alive, and working on what: the first of them",
    },
];

/// The subject of a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Status,
    Tasks,
    Task(TaskId),
    Discoveries,
    /// Discoveries with this tag.
    Tagged(String),
    MasterPlan,
    Agents,
}

impl Subject {
    pub fn of(uri: &str) -> Option<Self> {
        if let Some(read) = READS.iter().find(|read| read.uri == uri) {
            return Some(read.subject.clone());
        }
        if let Some(id) = uri.strip_prefix(TASK) {
            return TaskId::checked(&decoded(id)?).ok().map(Self::Task);
        }
        let tag = decoded(uri.strip_prefix(TAGGED)?)?;
        (!tag.is_empty()).then(|| Self::Tagged(tag.into_owned()))
    }

    /// The operation whose reply is the content, and its arguments.
    pub fn operation(&self) -> (&'static str, Value) {
        match self {
            Self::Status => ("get_status", json!({})),
            Self::Tasks => ("get_all_tasks", json!({})),
            Self::Task(id) => ("get_task", json!({"task_id": id})),
            Self::Discoveries => ("get_discoveries", json!({})),
            Self::Tagged(tag) => ("get_discoveries", json!({"tags": [tag]})),
            Self::MasterPlan => ("get_master_plan", json!({})),
            Self::Agents => ("get_agents", json!({})),
        }
    }

    /// Whether the event may change the content. An agent's heartbeat does not.
    pub fn is_touched_by(&self, recorded: &Recorded) -> bool {
        let event = &recorded.event;
        if matches!(
            event,
            Event::BoardCreated { .. }
                | Event::Imported { .. }
                | Event::StateRestored { .. }
                | Event::Purged { .. }
        ) {
            return true;
        }
        let of_tasks = event.tasks();
        let of_leases = matches!(
            event,
            Event::ClockStepped { .. }
                | Event::ParticipantGone { .. }
                | Event::AgentsPaused { .. }
                | Event::AgentsResumed { .. }
                | Event::TasksNumbered {}
        );
        let seen = matches!(event, Event::AgentSeen { waited: false, .. });
        match self {
            Self::Status => !seen,
            Self::Tasks => of_leases || !of_tasks.is_empty(),
            // Beginning or ending a task may begin or end its ancestors, and tasks that wait for it
            // show its status.
            Self::Task(id) => match event {
                Event::TasksCreated { tasks } => {
                    tasks.iter().any(|task| task.id == *id || task.path.is_some())
                }
                Event::Claimed { .. } | Event::Started { .. } | Event::Released { .. } => true,
                Event::Failed { .. } | Event::LeaseExpired { .. } => true,
                _ => of_leases || of_tasks.contains(&id) || is_list_changed_by(recorded),
            },
            Self::Discoveries => match event {
                Event::PlanImported { brought, .. } => {
                    brought.as_ref().is_some_and(|one| !one.discoveries.is_empty())
                }
                _ => {
                    matches!(event, Event::DiscoveryAdded { .. } | Event::DiscoveriesRetired { .. })
                }
            },
            // Superseded discoveries are no longer shown, whatever their tags.
            Self::Tagged(tag) => match event {
                Event::DiscoveryAdded { tags, supersedes, .. } => {
                    tags.contains(tag) || !supersedes.is_empty()
                }
                Event::PlanImported { brought, .. } => brought
                    .iter()
                    .flat_map(|one| &one.discoveries)
                    .any(|one| one.tags.contains(tag)),
                _ => false,
            },
            Self::MasterPlan => {
                matches!(
                    event,
                    Event::PlanSet { .. }
                        | Event::PlanImported { .. }
                        | Event::StateEdited { .. }
                        | Event::CommandUndone { .. }
                )
            }
            Self::Agents => {
                let of_agents = matches!(
                    event,
                    Event::AgentRegistered { .. }
                        | Event::AgentsRetired { .. }
                        | Event::AgentsPaused { .. }
                        | Event::AgentsResumed { .. }
                        | Event::ParticipantJoined { .. }
                        | Event::ParticipantGone { .. }
                        | Event::AgentWaits { .. }
                        | Event::AgentSeen { waited: true, .. }
                        | Event::PlanImported { brought: Some(_), .. }
                );
                of_agents || !of_tasks.is_empty() && !matches!(event, Event::TasksCreated { .. })
            }
        }
    }
}

/// Resources that every board has.
pub fn fixed() -> Vec<(String, Subject)> {
    READS.iter().map(|read| (read.uri.to_owned(), read.subject.clone())).collect()
}

/// Whether the event changes the list of resources.
pub fn is_list_changed_by(recorded: &Recorded) -> bool {
    // The end of an attempt may make a task obsolete that the plan no longer has.
    matches!(
        recorded.event,
        Event::BoardCreated { .. }
            | Event::Imported { .. }
            | Event::TasksCreated { .. }
            | Event::TaskUpdated { .. }
            | Event::StateEdited { .. }
            | Event::CommandUndone { .. }
            | Event::StateRestored { .. }
            | Event::Purged { .. }
            | Event::PlanImported { .. }
            | Event::TasksReset { .. }
            | Event::Completed { .. }
            | Event::Reviewed { .. }
            | Event::Failed { .. }
            | Event::Released { .. }
            | Event::LeaseExpired { .. }
            | Event::Cancelled { .. }
            | Event::Retried { .. }
    )
}

/// The fixed resources, followed by the first unfinished tasks.
pub fn list(state: &State) -> Vec<Resource> {
    let reads = READS.iter().map(|read| {
        let name = read.uri.trim_start_matches("coordination://");
        Resource::new(read.uri, name).with_title(read.title).with_description(read.description)
    });
    let unfinished = state
        .tasks()
        .filter(|task| task.run.is_none() && task.status.is_unfinished())
        .take(TASKS_LISTED);
    let tasks = unfinished.map(|task| {
        // Texts of imported boards were never checked.
        let title =
            task.headline().chars().filter(|c| !c.is_control()).take(80).collect::<String>();
        let title = harmless::text(&title).unwrap_or(title);
        let title = harmless::tags::text(&title).unwrap_or(title);
        let uri = format!("{TASK}{}", utf8_percent_encode(task.id.as_str(), PATH_SEGMENT));
        Resource::new(uri, task.id.as_str())
            .with_title(title)
            .with_description("A task that is not finished")
    });
    reads.chain(tasks).map(|resource| resource.with_mime_type(JSON)).collect()
}

/// Characters that a path segment may contain unescaped, apart from letters and digits; see RFC
/// 3986.
const PATH_SEGMENT: &percent_encoding::AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':')
    .remove(b'@')
    .remove(b'+');

pub fn templates() -> Vec<ResourceTemplate> {
    let task = ResourceTemplate::new(template(TASK, ID), "task")
        .with_title("Task")
        .with_description("One task with its attempts and result");
    let tagged = ResourceTemplate::new(template(TAGGED, TAG), "discoveries-by-tag")
        .with_title("Discoveries by tag")
        .with_description("Discoveries that carry the tag");
    vec![task.with_mime_type(JSON), tagged.with_mime_type(JSON)]
}

/// Names of the variables in the templates.
const ID: &str = "id";
const TAG: &str = "tag";

fn template(prefix: &str, blank: &str) -> String {
    format!("{prefix}{{{blank}}}")
}

/// Values for a template's variable; none if there is no such template or variable.
pub fn values(template_uri: &str, blank: &str, state: &State) -> Option<Vec<String>> {
    if template_uri == template(TASK, ID) && blank == ID {
        // Unfinished tasks come first, as they are more likely to be meant.
        let (unfinished, finished): (Vec<_>, Vec<_>) = state
            .tasks()
            .filter(|task| task.run.is_none())
            .partition(|task| task.status.is_unfinished());
        return Some(unfinished.iter().chain(&finished).map(|task| task.id.to_string()).collect());
    }
    if template_uri == template(TAGGED, TAG) && blank == TAG {
        let tags: BTreeSet<&String> =
            state.discoveries().flat_map(|discovery| &discovery.tags).collect();
        return Some(tags.into_iter().cloned().collect());
    }
    None
}

fn decoded(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_reads_an_operation_that_changes_nothing() {
        let uris = READS.iter().map(|read| read.uri);
        for uri in uris.chain(["coordination://tasks/task-1", "coordination://discoveries/api"]) {
            let (operation, _) = Subject::of(uri).unwrap().operation();
            assert!(
                crate::ops::find(operation).is_some_and(|entry| entry.annotations.read_only),
                "{uri}: {operation}"
            );
        }
    }

    #[test]
    fn ids_may_be_written_with_escapes() {
        let id = |uri: &str| match Subject::of(uri) {
            Some(Subject::Task(id)) => id.to_string(),
            other => panic!("{uri}: {other:?}"),
        };
        assert_eq!(id("coordination://tasks/a:b@c+d"), "a:b@c+d");
        assert_eq!(id("coordination://tasks/a%3Ab%40c%2Bd"), "a:b@c+d");
        assert_eq!(
            Subject::of("coordination://discoveries/a%20b"),
            Some(Subject::Tagged("a b".to_owned()))
        );
    }

    #[test]
    fn unknown_uris_read_nothing() {
        for uri in [
            "",
            "status",
            "coordination://",
            "coordination://tasks/",
            "coordination://tasks/%FF",
            "coordination://tasks/a%2Fb",
            "coordination://discoveries/",
            "coordination://statuses",
            "file:///etc",
        ] {
            assert_eq!(Subject::of(uri), None, "{uri}");
        }
    }
}
