use std::io::{self, IsTerminal};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{Outcome, Session, print, read_input, usage_error};
use crate::state::review::Review;
use crate::state::task::DEFAULT_PRIORITY;

/// Number of tasks from which progress is shown; fewer are added before anybody wonders.
const MANY: usize = 100;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// What is to be done, written for somebody who knows nothing else
    #[arg(required_unless_present_any = ["batch", "title", "description"], value_name = "DESCRIPTION")]
    words: Vec<String>,
    /// Priority from 1 (first) to 10 (last)
    #[arg(long, value_name = "N", default_value_t = i64::from(DEFAULT_PRIORITY), allow_negative_numbers = true,
        value_parser = priority)]
    priority: i64,
    /// Task that must be done first; may be repeated
    #[arg(long, value_name = "TASK", visible_alias = "depends")]
    after: Vec<String>,
    /// File to read or change for it; may be repeated
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// Hint on how to do it
    #[arg(long, value_name = "TEXT")]
    hint: Option<String>,
    /// Short name of the task
    #[arg(long)]
    title: Option<String>,
    /// What is to be done, if the words before it are the title
    #[arg(long, value_name = "TEXT", hide = true)]
    description: Option<String>,
    /// Place in the plan, such as P1.M2.T3
    #[arg(long)]
    path: Option<String>,
    /// Tag of the task; may be repeated
    #[arg(long)]
    tag: Vec<String>,
    /// Capability that an agent needs to claim the task; may be repeated
    #[arg(long, value_name = "NAME")]
    capability: Vec<String>,
    /// Tag that an agent needs to claim the task; may be repeated
    #[arg(long, value_name = "NAME")]
    agent_tag: Vec<String>,
    /// Property that an agent must have to claim the task: hostname, project_dir, profile or type;
    /// may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    property: Vec<(String, String)>,
    /// Data of your own, kept with the task; VALUE is JSON or text; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    /// Attempts before the task fails [default: 3]
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// Time limit of each attempt in seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
    /// Most minutes that an agent may be silent while its process lives
    #[arg(long, value_name = "MINUTES")]
    silent: Option<u32>,
    /// Minutes that the work is expected to take
    #[arg(long, value_name = "MINUTES")]
    estimate: Option<u32>,
    /// Have a reviewer approve the result before the task is done: anybody but its agent, or only
    /// agents with that role
    #[arg(long, value_name = "ROLE", num_args = 0..=1, require_equals = true, default_missing_value = "required", value_parser = review)]
    review: Option<Review>,
    /// Id of the task [default: generated]
    #[arg(long)]
    id: Option<String>,
    /// Idempotency key: repeating the command with it adds nothing
    #[arg(long)]
    key: Option<String>,
    /// Add the tasks in a JSON or YAML list, or in the `tasks` of an object; `-` reads standard
    /// input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "words", "description", "priority", "after", "file", "hint", "title", "path", "tag", "capability", "agent_tag", "property",
        "metadata", "max_attempts", "timeout", "silent", "estimate", "review", "id",
    ])]
    batch: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let reply = match &arguments.batch {
        Some(file) => add_batch(session, batch(&read_input(file), arguments.key.as_deref()))?,
        None => session.call("create_task", task(session, arguments)?)?,
    };
    session.show(&reply, |page| match reply["task_ids"].as_array() {
        Some(ids) => ids.iter().for_each(|id| page.line(print::text(id))),
        // A person goes on with its number, a script with its id.
        None if io::stdout().is_terminal() => {
            let task = &reply["task"];
            let title =
                print::headline(&print::text(task.get("title").unwrap_or(&task["description"])));
            let name = task["number"]
                .as_u64()
                .map_or_else(|| print::text(&task["id"]), |n| format!("#{n}"));
            page.marked("added", print::Tone::Waiting, format_args!("{name} {title}"));
        }
        None => page.line(print::text(&reply["task"]["id"])),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A priority as a number, or in the words of other tools.
pub(super) fn priority(given: &str) -> Result<i64, String> {
    let number = match given.to_lowercase().as_str() {
        "highest" | "urgent" | "critical" | "asap" | "top" | "first" => 1,
        "high" => 2,
        "medium" | "normal" | "default" => DEFAULT_PRIORITY.into(),
        "low" => 8,
        "lowest" | "last" => 10,
        word => {
            let number = word.trim_start_matches('p').parse();
            number.map_err(|_| "a priority is 1 (first) to 10 (last)".to_owned())?
        }
    };
    Ok(number)
}

/// Title and description. Words before a description are the title, and a title alone is both.
fn texts(arguments: &Arguments) -> (Option<String>, String) {
    let words = Some(arguments.words.join(" ")).filter(|words| !words.is_empty());
    let title = arguments.title.clone();
    match (words, arguments.description.clone()) {
        (words, Some(description)) => (title.or(words), description),
        (Some(words), None) => (title, words),
        (None, None) => (title.clone(), title.unwrap_or_default()),
    }
}

fn task(session: &Session, arguments: Arguments) -> anyhow::Result<Value> {
    let (title, description) = texts(&arguments);
    let dependencies = session.task_ids(&arguments.after)?;
    let demands = demands(&arguments);
    let metadata = arguments.metadata.into_iter().map(|(name, text)| {
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        (name, value)
    });
    Ok(json!({
        "description": description,
        "priority": arguments.priority,
        "dependencies": dependencies,
        "context_files": session.project_paths(&arguments.file),
        "hints": arguments.hint,
        "metadata": Value::Object(metadata.collect()),
        "title": title,
        "path": arguments.path,
        "tags": arguments.tag,
        "demands": demands,
        "max_attempts": arguments.max_attempts,
        "timeout_seconds": arguments.timeout,
        "silent_minutes": arguments.silent,
        "estimated_minutes": arguments.estimate,
        "review": arguments.review,
        "id": arguments.id,
        "idempotency_key": arguments.key,
    }))
}

fn demands(arguments: &Arguments) -> Option<Value> {
    if arguments.capability.is_empty()
        && arguments.agent_tag.is_empty()
        && arguments.property.is_empty()
    {
        return None;
    }
    let mut demands = json!({"capabilities": arguments.capability, "tags": arguments.agent_tag});
    for (name, value) in &arguments.property {
        demands[name] = Value::from(value.as_str());
    }
    Some(demands)
}

fn review(text: &str) -> Result<Review, String> {
    Review::read(text).ok_or_else(|| "give leader, worker, required, none or default".to_owned())
}

/// A name and its value.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "give NAME=VALUE".to_owned())
}

fn add_batch(session: &Session, batch: Value) -> anyhow::Result<Value> {
    let count = batch["tasks"].as_array().map_or(0, Vec::len);
    let progress = (count >= MANY).then(|| session.progress(&format!("adding {count} tasks")));
    let reply = session.call("create_tasks_batch", batch);
    drop(progress);
    reply
}

/// Reads JSON, or YAML if it does not begin as JSON does.
fn listed(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) if text.trim_start().starts_with(['{', '[']) => {
            Err(format!("the batch is not JSON: {error}"))
        }
        Err(_) => serde_saphyr::from_str(text).map_err(|error| {
            let error = error.to_string();
            format!(
                "the batch is neither JSON nor YAML: {}",
                error.lines().next().unwrap_or_default()
            )
        }),
    }
}

fn batch(text: &str, key: Option<&str>) -> Value {
    let mut batch = match listed(text) {
        Ok(tasks @ Value::Array(_)) => json!({"tasks": tasks}),
        Ok(batch @ Value::Object(_)) => batch,
        Ok(_) => usage_error(
            "the batch is neither a list of tasks nor an object with `tasks`, in JSON or YAML",
        ),
        Err(error) => usage_error(error),
    };
    if let Some(key) = key {
        batch["idempotency_key"] = Value::from(key);
    }
    batch
}
