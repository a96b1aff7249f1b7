//! `callboard edit`: changes what a task says.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::print::{Page, text};
use super::{Outcome, Session, usage_error};
use crate::ops::apply_batch::{self, Item};
use crate::ops::{self, Operation, get_task};
use crate::state::task::{Named, Task};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard edit 12 --priority 1\n  \
    callboard edit 12 --title 'Parse names' --depends 7 --tag parser\n  \
    callboard edit P1.M2.T3 --no-depends")]
pub(super) struct Arguments {
    /// The task, or several that are to be changed alike
    #[arg(required = true)]
    task: Vec<String>,
    /// New title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// New description; `-` reads standard input
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// New priority, from 1 (first) to 10 (last)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::add::priority)]
    priority: Option<i64>,
    /// Wait for this task, too; may be repeated
    #[arg(long, value_name = "TASK", visible_alias = "after")]
    depends: Vec<String>,
    /// Wait for no task but those of --depends
    #[arg(long)]
    no_depends: bool,
    /// Add a tag; may be repeated
    #[arg(long)]
    tag: Vec<String>,
    /// Have no tags but those of --tag
    #[arg(long)]
    no_tags: bool,
    /// Add a file to read or change; may be repeated
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// Hint on how to do it
    #[arg(long, value_name = "TEXT")]
    hint: Option<String>,
    /// Attempts before the task fails
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// Time limit of each attempt in seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
    /// Most minutes that an agent may be silent while its process lives
    #[arg(long, value_name = "MINUTES")]
    silent: Option<u32>,
    /// Minutes that the work is expected to take; 0 removes the estimate
    #[arg(long, value_name = "MINUTES")]
    estimate: Option<u32>,
}

/// What is asked for one task.
struct Wish {
    task: Named,
    before: Task,
    names: Vec<String>,
    request: Value,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let tasks = session.tasks(&arguments.task)?;
    let wishes = tasks.into_iter().map(|task| wish(session, &arguments, task));
    let wishes = wishes.collect::<anyhow::Result<Vec<_>>>()?;
    let (reply, tasks) = match wishes.as_slice() {
        [one] => {
            let reply = session.call(ops::UpdateTask::NAME, one.request.clone())?;
            let task = reply["task"].clone();
            (reply, vec![task])
        }
        _ => {
            let steps = wishes.iter().map(|wish| {
                let arguments = serde_json::from_value(wish.request.clone())?;
                Ok(Item { name: ops::UpdateTask::NAME.to_owned(), arguments })
            });
            let operations = steps.collect::<serde_json::Result<_>>()?;
            let batch = apply_batch::Params { operations, ..Default::default() };
            let reply = session.ask::<ops::ApplyBatch>(&batch)?;
            let tasks = reply.results.iter().filter_map(|one| one.get("task").cloned()).collect();
            (reply.into_json(), tasks)
        }
    };
    session.show(&reply, |page| {
        for (wish, after) in wishes.iter().zip(&tasks) {
            told(page, &wish.task, &wish.before, after, &wish.names);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn wish(session: &Session, arguments: &Arguments, task: Named) -> anyhow::Result<Wish> {
    let query = get_task::Params { task_id: task.id.to_string(), ..Default::default() };
    let before = session.ask::<ops::GetTask>(&query)?.reply.task.task;
    let mut request = change(session, arguments, &before)?;
    if let Some(fields) = request.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    let names: Vec<_> =
        request.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        usage_error("edit what? Give --title, --description, --priority, --depends, --tag, …");
    }
    request["task_id"] = task.id.as_str().into();
    Ok(Wish { task, before, names, request })
}

/// The arguments of `update_task`: null for what stays.
fn change(session: &Session, arguments: &Arguments, before: &Task) -> anyhow::Result<Value> {
    let description = arguments.description.as_deref().map(|given| match given {
        "-" => super::read_input("-"),
        given => given.to_owned(),
    });
    let depends = session.task_ids(&arguments.depends)?;
    let old: Vec<_> = before.dependencies.iter().map(ToString::to_string).collect();
    let files = session.project_paths(&arguments.file);
    let of_context = before.context.as_deref();
    let old_files = of_context.map(|context| context.files.clone()).unwrap_or_default();
    Ok(json!({
        "title": arguments.title,
        "description": description,
        "priority": arguments.priority,
        "dependencies": with(old, depends, arguments.no_depends),
        "tags": with(before.tags.clone(), arguments.tag.clone(), arguments.no_tags),
        "context_files": with(old_files, files, false),
        "hints": arguments.hint,
        "max_attempts": arguments.max_attempts,
        "timeout_seconds": arguments.timeout,
        "silent_minutes": arguments.silent,
        "estimated_minutes": arguments.estimate,
    }))
}

/// The new list, if there is one: `more` behind the old ones, or alone.
fn with(old: Vec<String>, more: Vec<String>, alone: bool) -> Option<Vec<String>> {
    if more.is_empty() && !alone {
        return None;
    }
    let mut all = if alone { Vec::new() } else { old };
    let new: Vec<_> = more.into_iter().filter(|one| !all.contains(one)).collect();
    all.extend(new);
    Some(all)
}

/// What is different now, field by field: old → new.
fn told(page: &mut Page, task: &Named, before: &Task, after: &Value, names: &[String]) {
    let before = serde_json::to_value(before).unwrap_or_default();
    page.line(format_args!("changed {task}"));
    for name in names {
        let of = |task: &Value| match name.as_str() {
            "context_files" => shown(&task["context"]["files"]),
            "hints" => shown(&task["context"]["hints"]),
            name => shown(&task[name]),
        };
        let (old, new) = (of(&before), of(after));
        let told =
            if old == new { format!("{new} (as before)") } else { format!("{old} → {new}") };
        page.field(&format!("  {}", name.replace('_', " ")), told);
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        value => super::print::headline(&text(value)),
    }
}
