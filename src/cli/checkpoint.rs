//! `callboard checkpoint`: how far a workflow has come, saved by whatever runs it and read by
//! whatever resumes it.

use std::num::NonZeroU32;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::print::{Column, Page, Tone, text};
use super::{Outcome, REFUSED, Session, read_input, usage_error};

#[derive(Args)]
pub(super) struct Arguments {
    /// Without it, the workflows are listed
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Save how far a workflow has come
    ///
    /// What the object leaves out stays as it was in the newest checkpoint. null for a persona, or
    /// for a key of retry_counts, artifacts or metrics, removes that; completed_tasks are added to
    /// those known; --replace gives a part whole.
    ///
    /// A command that `callboard work` runs may save in the workflow of `work`,
    /// $CALLBOARD_WORKFLOW: as with a line `::callboard::checkpoint {…}` that it prints, the
    /// object is kept for the next try of its task.
    Save(Box<Save>),
    /// Print the newest sound checkpoint; exit code 1 if there is none
    Show(Show),
    /// List the workflows, or the checkpoints of one
    List(List),
    /// Delete one checkpoint, all but the newest N, or a whole workflow
    Delete(Delete),
}

#[derive(Args)]
struct Save {
    /// Id of the workflow; the first save creates it
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// JSON object with phase, step, status, persona_states, completed_tasks, …; `-` reads
    /// standard input
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Phase, overriding the file's
    #[arg(long, value_name = "TEXT")]
    phase: Option<String>,
    /// Number of the step, overriding the file's
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Status, overriding the file's
    #[arg(long, value_name = "TEXT")]
    status: Option<String>,
    /// The task in whose work it is saved
    #[arg(long, value_name = "TASK", env = "CALLBOARD_TASK_ID", hide_env_values = true)]
    task: Option<String>,
    /// Number of the attempt that saves; the save is refused once that attempt is over
    #[arg(long, value_name = "N", env = "CALLBOARD_ATTEMPT", hide_env_values = true)]
    attempt: Option<u32>,
    /// Tasks that the workflow works through: `all` or a path such as P1.M2
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
    /// Amount spent since the last save: tokens=N, attempts=N or seconds=N; may be repeated
    #[arg(long, value_name = "WHAT=N")]
    spent: Vec<String>,
    /// Most that the workflow may spend: tokens=N, attempts=N or seconds=N; may be repeated
    #[arg(long, value_name = "WHAT=N")]
    budget: Vec<String>,
    /// Part that the object gives whole, such as completed_tasks; may be repeated
    #[arg(long, value_name = "PART")]
    replace: Vec<String>,
    /// Save only if N is the newest checkpoint; 0: if there is none
    #[arg(long, value_name = "N")]
    expected: Option<u64>,
    /// Idempotency key: repeating the command with it saves nothing
    #[arg(long)]
    key: Option<String>,
}

#[derive(Args)]
struct Show {
    /// Id of the workflow
    #[arg(value_name = "WORKFLOW", required_unless_present = "task")]
    workflow: Option<String>,
    /// Show the newest checkpoint that was saved in work on this task
    #[arg(long, value_name = "TASK", conflicts_with = "workflow")]
    task: Option<String>,
    /// Show the checkpoint with this number [default: the newest sound one]
    #[arg(long, value_name = "N")]
    number: Option<u64>,
}

#[derive(Args, Default)]
struct List {
    /// List the checkpoints of this workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: Option<String>,
    /// List at most N
    #[arg(long, value_name = "N", value_parser = super::page_size())]
    limit: Option<NonZeroU32>,
    /// Continue after this one, which the previous page named as its last
    #[arg(long, value_name = "LAST")]
    after: Option<String>,
}

#[derive(Args)]
struct Delete {
    /// Id of the workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// Delete the checkpoint with this number
    #[arg(long, value_name = "N", conflicts_with = "keep")]
    number: Option<u64>,
    /// Delete all but the newest N
    #[arg(long, value_name = "N")]
    keep: Option<u32>,
    /// Delete the workflow with all its checkpoints and the record of what it has spent
    #[arg(long, conflicts_with_all = ["number", "keep"])]
    all: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    match arguments.command.unwrap_or(Command::List(List::default())) {
        Command::Save(arguments) => save(session, *arguments),
        Command::Show(arguments) => show(session, &arguments),
        Command::List(arguments) => list(session, &arguments),
        Command::Delete(arguments) => delete(session, &arguments),
    }
}

fn save(session: &Session, mut arguments: Save) -> Outcome {
    arguments.task = session.task_id(arguments.task.as_deref())?;
    let state = execution_state(&arguments);
    let mut request = json!({"workflow_id": arguments.workflow, "task_id": arguments.task, "attempt": arguments.attempt,
        "replace": arguments.replace, "expected_checkpoint": arguments.expected,
        "scope": arguments.scope, "spent": amounts("--spent", &arguments.spent), "idempotency_key": arguments.key});
    if !arguments.budget.is_empty() {
        request["budget"] = amounts("--budget", &arguments.budget);
    }
    // The state of the workflow itself is the worker's, which would lose it and write over this
    // one.
    let is_in_work = names("CALLBOARD_WORKFLOW", Some(&arguments.workflow))
        && names("CALLBOARD_TASK_ID", arguments.task.as_deref())
        && state.is_some();
    if is_in_work && (!arguments.replace.is_empty() || arguments.expected.is_some()) {
        usage_error(
            "a command of `callboard work` keeps its object whole for the next try of its task, \
             whatever the checkpoint: leave out --replace and --expected",
        );
    }
    match state {
        Some(state) if is_in_work => {
            request["kept"] = state;
            request["agent_id"] = session.agent.clone().into();
        }
        Some(state) => request["state"] = state,
        None => {}
    }
    let reply = session.call("save_checkpoint", request)?;
    session.show(&reply, |page| {
        if is_in_work {
            page.line(format_args!(
                "kept for the next try of {}",
                arguments.task.as_deref().unwrap_or_default()
            ));
            return tell_budget(page, &reply);
        }
        let (workflow, number) = (text(&reply["workflow_id"]), &reply["checkpoint"]);
        page.line(format_args!("workflow {workflow}: checkpoint {number}, {} kept", reply["kept"]));
        let names = |list: &str| {
            let names = reply[list].as_array().into_iter().flatten().map(text);
            names.collect::<Vec<_>>().join(", ")
        };
        page.field("left out of pending_tasks, as completed", names("not_pending"));
        page.field("damaged, so not gone on from", names("damaged"));
        tell_budget(page, &reply);
    })?;
    Ok(ExitCode::SUCCESS)
}

/// True if the variable is set to the value.
fn names(variable: &str, value: Option<&str>) -> bool {
    value.is_some() && std::env::var(variable).ok().as_deref() == value
}

/// The state in the file, overridden by the options; none if neither is given.
fn execution_state(arguments: &Save) -> Option<Value> {
    let Save { file, phase, step, status, .. } = arguments;
    let mut state = match file {
        Some(file) => match serde_json::from_str(&read_input(file)) {
            Ok(Value::Object(state)) => state,
            Ok(_) => usage_error(format!("{file} is JSON, but no object")),
            Err(error) => usage_error(format!("{file} is no JSON object: {error}")),
        },
        None => Map::new(),
    };
    let given = [("phase", phase.clone().map(Value::from)), ("step", step.map(Value::from))];
    for (name, value) in given.into_iter().chain([("status", status.clone().map(Value::from))]) {
        if let Some(value) = value {
            state.insert(name.to_owned(), value);
        }
    }
    (file.is_some() || !state.is_empty()).then_some(Value::Object(state))
}

fn amounts(option: &str, given: &[String]) -> Value {
    let amount = |pair: &String| {
        let parts = pair
            .split_once('=')
            .and_then(|(what, amount)| Some((what, amount.parse::<u64>().ok()?)));
        match parts {
            Some((what @ ("tokens" | "attempts" | "seconds"), amount)) => {
                (what.to_owned(), Value::from(amount))
            }
            _ => usage_error(format!(
                "{option} takes tokens=N, attempts=N or seconds=N, not `{pair}`"
            )),
        }
    };
    Value::Object(given.iter().map(amount).collect())
}

fn tell_budget(page: &mut Page, reply: &Value) {
    if let Some(exhausted) = reply["exhausted"].as_str() {
        page.marked(
            "spent",
            Tone::Bad,
            format_args!("{exhausted}; its agents are given no more tasks"),
        );
    } else if reply["remaining"].is_object() {
        page.field("remaining", amounts_text(&reply["remaining"]));
    }
}

fn amounts_text(amounts: &Value) -> String {
    let amounts = amounts.as_object().into_iter().flatten();
    amounts.map(|(what, amount)| format!("{amount} {what}")).collect::<Vec<_>>().join(", ")
}

fn show(session: &Session, arguments: &Show) -> Outcome {
    let Show { workflow, task, number } = arguments;
    let task = session.task_id(task.as_deref())?;
    let reply = session.call(
        "get_checkpoint",
        json!({"workflow_id": workflow, "task_id": task, "number": number}),
    )?;
    let restored = reply["restored"] == true;
    session.show(&reply, |page| {
        for one in reply["skipped"].as_array().into_iter().flatten() {
            page.marked(
                "damaged",
                Tone::Bad,
                format_args!("checkpoint {}: {}", one["number"], text(&one["reason"])),
            );
        }
        if !restored {
            page.line(format_args!(
                "no checkpoint; {} keeps one",
                session.wording.command("checkpoint save WORKFLOW")
            ));
        }
        let checkpoint = &reply["checkpoint"];
        for name in ["workflow_id", "number", "at", "agent", "task", "attempt"] {
            page.field(name, text(&checkpoint[name]));
        }
        for (name, value) in checkpoint["state"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| *name != "workflow_id")
        {
            page.field(&super::print::harmless(name), text(value));
        }
        page.field("spent", amounts_text(&reply["workflow"]["spent"]));
        tell_budget(page, &reply);
    })?;
    Ok(ExitCode::from(if restored { 0 } else { REFUSED }))
}

fn list(session: &Session, arguments: &List) -> Outcome {
    let List { workflow, limit, after } = arguments;
    let request = json!({"workflow_id": workflow, "limit": limit, "after": after});
    let reply = session.call("list_checkpoints", request)?;
    session.show(&reply, |page| {
        let is_of_one = workflow.is_some();
        let list = &reply[if is_of_one { "checkpoints" } else { "workflows" }];
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        match (is_of_one, list.is_empty()) {
            (true, true) => page.line("no checkpoints are kept"),
            (false, true) => page.line(format_args!(
                "no workflows; {} makes one",
                session.wording.command("checkpoint save WORKFLOW")
            )),
            (true, false) => {
                let rows: Vec<_> = list.iter().map(|one| checkpoint_row(page, one)).collect();
                page.table(
                    ["number", "saved", "agent", "task", "phase", "step", "status"],
                    rows.into_iter(),
                );
            }
            (false, false) => {
                let rows: Vec<_> = list.iter().map(|one| workflow_row(page, one)).collect();
                page.table(
                    ["workflow", "saved", "kept", "agents", "spent", "remaining"],
                    rows.into_iter(),
                );
            }
        }
        if is_of_one {
            page.field("spent", amounts_text(&reply["workflow"]["spent"]));
            tell_budget(page, &reply["workflow"]);
        }
        if !reply["next"].is_null() {
            page.line(format_args!("there are more: --after {}", text(&reply["next"])));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn when(page: &Page, at: &Value) -> String {
    serde_json::from_value(at.clone()).map(|at| page.when(at)).unwrap_or_default()
}

fn checkpoint_row(page: &Page, one: &Value) -> [Column; 7] {
    let status = match one["damage"].as_str() {
        Some(_) => Column::toned("damaged", Tone::Bad),
        None => text(&one["status"]).into(),
    };
    let [number, agent, task, phase, step] =
        ["number", "agent", "task", "phase", "step"].map(|name| Column::from(text(&one[name])));
    [number, when(page, &one["at"]).into(), agent, task, phase, step, status]
}

fn workflow_row(page: &Page, one: &Value) -> [Column; 6] {
    let remaining = match one["exhausted"].as_str() {
        Some(exhausted) => Column::toned(format_args!("none: {exhausted}"), Tone::Bad),
        None => amounts_text(&one["remaining"]).into(),
    };
    let [id, kept, agents] = ["id", "kept", "agents"].map(|name| Column::from(text(&one[name])));
    [
        id,
        when(page, &one["updated_at"]).into(),
        kept,
        agents,
        amounts_text(&one["spent"]).into(),
        remaining,
    ]
}

fn delete(session: &Session, arguments: &Delete) -> Outcome {
    let Delete { workflow, number, keep, all } = arguments;
    if !all && number.is_none() && keep.is_none() {
        usage_error("say what is to go: --number N, --keep N, or --all for the whole workflow");
    }
    let request = json!({"workflow_id": workflow, "number": number, "keep": keep, "all": all});
    let reply = session.call("delete_checkpoints", request)?;
    session.show(&reply, |page| {
        if reply["removed"] == true {
            page.line(format_args!("workflow {workflow} is gone"))
        } else {
            page.line(format_args!("workflow {workflow}: {} checkpoints are left", reply["kept"]))
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
