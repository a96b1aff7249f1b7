//! What to say of an argument that an operation does not have.

use serde_json::Value;

use super::names::is_among;
use super::shape::Record;

/// Of every operation, and of those that list something a page at a time.
const EVERY: &str = "every operation";
const LISTS: &str = "lists";

/// Advice on arguments that an operation does not have: the operation, the names of the arguments,
/// and the advice.
const ADVICE: &[(&str, &str, &str)] = &[
    (LISTS, "page offset start skip", "a list goes on with after, the `next` of the reply before"),
    ("create_task", "tasks items todos", "create_tasks_batch adds several"),
    ("release_task", "to agent assignee new_agent", "assign_task keeps a task for an agent"),
    ("release_task", "files paths", "release_files gives files up"),
    (
        "release_task",
        "claimed_by holder owner",
        "agent_id says who releases; a leader may release another's task",
    ),
    ("reject_task", "final permanent", "cancel_task ends it for good"),
    ("assign_task", "hours days", "minutes says for how long"),
    ("start_task", "auto_claim claim", "claim_task first"),
    (
        "complete_task",
        "percent percent_complete progress partial",
        "heartbeat says how far you are",
    ),
    ("pause", "duration duration_minutes minutes until paused", "resume ends it"),
    ("resume", "workflow_id checkpoint workflow", "get_checkpoint has how far a workflow came"),
    ("remove_plan", "item items task", "cancel_task ends one of its tasks"),
    (
        "restore_snapshot",
        "dry_run preview",
        "there is no dry_run; `diff_snapshots` compares two states first",
    ),
    ("stop_run", "agent", "stop_agent stops an agent"),
    ("get_status", "task_id task id", "get_task shows one task"),
    ("get_master_plan", "plan name", "export_plan shows one plan"),
    ("wait_for_events", "agent agent_name", "get_history lists an agent's events"),
    ("get_board", "task_id", "get_task shows one task"),
    ("stop_agent", "graceful", "now says whether at once"),
    ("cancel_task", "graceful", "ask_owner lets its agent end it"),
    (
        "claim_task",
        "priority tags tag capabilities skills",
        "you get what fits the capabilities and tags of your register_agent; scope or task_id name the work",
    ),
    (
        "claim_task",
        "count limit",
        "a claim gives one task; register_agent with max_concurrent allows more",
    ),
    ("claim_task", "title description", "create_task adds a task"),
    ("complete_task", "next_task", "claim_task gives you the next"),
    ("get_all_tasks", "priority", "min_priority and max_priority"),
    ("get_all_tasks", "status_not exclude_status exclude", "statuses lists those that are wanted"),
    ("get_task", "status title", "get_all_tasks lists tasks by status and text"),
    (
        "delete_checkpoints",
        "older_than before days age max_age",
        "number deletes one, keep all but so many of the newest",
    ),
    ("heartbeat", "percent percentage progress_percent", "say it in note"),
    ("release_task", "retry_after delay not_before", "it is available at once"),
    (
        "fail_task",
        "retry_after delay",
        "it is tried again after a while of the board's choice, unless final",
    ),
    (
        EVERY,
        "dry_run preview simulate what_if",
        "there is no dry run of this, and nothing was done",
    ),
];

/// Names and values that say what the call does without them.
const DEFAULTS: &[(&str, &[&str])] = &[
    ("page", &["0", "1"]),
    ("offset skip start", &["0"]),
    ("dryrun preview simulate whatif force recursive cascade", &["false", "0", "no"]),
    ("confirm confirmed yes", &["true", "1", "yes"]),
];

/// Arguments about how a reply looks, not what it holds.
const LOOKS: &str =
    "verbose format outputformat responseformat pretty detailed detail detaillevel includedetails";

/// Whether the argument says what the call does without it.
pub(super) fn is_default(name: &str, value: &Value) -> bool {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_lowercase);
    DEFAULTS.iter().any(|(names, values)| is_among(name, names) && values.contains(&text.as_str()))
}

pub(super) fn is_look(name: &str) -> bool {
    is_among(name, LOOKS)
}

pub(super) fn near(record: &Record, name: &str) -> Option<String> {
    record.near(name).map(|field| format!("no such argument; did you mean {field}?"))
}

/// What to do about an argument that changes what a call would do.
pub(super) fn unknown(operation: &str, record: &Record, name: &str) -> String {
    let is_list = record.field("after").is_some();
    let is_about = |of: &str| match of {
        EVERY => true,
        LISTS => is_list,
        of => of == operation,
    };
    let advice = ADVICE.iter().find(|(of, names, _)| is_among(name, names) && is_about(of));
    if let Some((.., what)) = advice {
        return format!("no such argument; {what}");
    }
    near(record, name).or_else(|| record.instead(name)).unwrap_or_else(|| match named(record) {
        names if names.is_empty() => "no such argument; it takes none".to_owned(),
        names => format!("no such argument; it takes {names}"),
    })
}

/// The same for a field of an object in which each counts.
pub(super) fn no_field(record: &Record, name: &str) -> String {
    near(record, name).unwrap_or_else(|| format!("no such field; there are {}", named(record)))
}

fn named(record: &Record) -> String {
    let names: Vec<_> = record.current().map(|field| field.name.as_str()).collect();
    names.join(", ")
}
