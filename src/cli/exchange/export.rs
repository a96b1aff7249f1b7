//! `callboard export`: writes the board for another tool.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{known, reported, view, with_formats, written};
use crate::cli::print::{self, Page, harmless_json, text};
use crate::cli::report::{Declined, blame_and_data};
use crate::cli::{Outcome, Session, plan, usage_error};
use crate::exchange::{Report, Written};
use crate::plan::{to_json, to_markdown};
use crate::state::hierarchy::{numbers, part_path};
use crate::state::task::{Task, TaskStatus};

const EXAMPLES: &str = "Examples:\n  \
    callboard export task-master .taskmaster/tasks/tasks.json\n  \
    callboard export markdown - > PLAN.md\n\n\
    A file that something else has written or changed is only replaced with --force.";

#[derive(clap::Args)]
#[command(after_help = with_formats(EXAMPLES, |format| format.write.is_some()))]
pub(crate) struct Arguments {
    /// Format to write; without it, the formats are listed
    format: Option<String>,
    /// File, or directory of a project; `-` is standard output [default: -]
    #[arg(value_name = "PATH|-")]
    path: Option<String>,
    /// Name of the plan, for markdown and json; needed if there are several. Without a plan, they
    /// have the tasks
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Replace files that callboard did not write
    #[arg(long)]
    force: bool,
}

/// Says which formats there are.
fn formats(session: &Session) -> Outcome {
    let text = with_formats(EXAMPLES, |format| format.write.is_some());
    let names: Vec<_> = super::formats_written().into_iter().map(|(name, _)| name).collect();
    session.show(&json!({"formats": names}), |page| page.line(&text))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { format, path, plan: of_plan, force } = arguments;
    let Some(format) = format else { return formats(session) };
    let (made, is_one_file) = match known(&format, |format| format.write.is_some()) {
        None => {
            let name = if format == "json" { "plan.json" } else { "PLAN.md" };
            let files = vec![(name.to_owned(), plan_text(session, &format, of_plan.as_deref())?)];
            (Written { files, ..Written::default() }, true)
        }
        Some(format) => {
            if of_plan.is_some() {
                usage_error(format!(
                    "{} has all plans of the board; leave out --plan",
                    format.name
                ));
            }
            let Some(write) = format.write else {
                usage_error(format!("{} is only read: `callboard import`", format.name))
            };
            (write(&view(session)?), format.one_file)
        }
    };
    let Some(path) = path.filter(|path| path != "-") else {
        let [(_, text)] = made.files.as_slice() else {
            usage_error(format!("{format} is a directory of files: name the directory"));
        };
        if session.json {
            print::json(&json!({"format": format, "text": text, "report": made.report}))?;
        } else {
            io::stdout().lock().write_all(plan::exact(text).as_bytes())?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let root = resolved(&session.cwd.join(&path));
    let place =
        |name: String| if is_one_file && !root.is_dir() { root.clone() } else { root.join(name) };
    let moved: Vec<_> = made.moved.into_iter().map(|(from, to)| (place(from), place(to))).collect();
    let merged = |(name, text): (String, String)| {
        let path = place(name);
        let from = moved.iter().find(|(_, to)| *to == path).map(|(from, _)| from);
        let there = fs_err::read_to_string(&path).ok();
        let there = there.or_else(|| fs_err::read_to_string(from?).ok());
        let text = match (made.merge, there) {
            (Some(merge), Some(there)) => merge(&there, &text),
            _ => text,
        };
        (path, text)
    };
    let files: Vec<_> = made.files.into_iter().map(merged).collect();
    let left: Vec<PathBuf> = moved.into_iter().map(|(from, _)| from).collect();
    let outcome = written::write(session, &format, &root, files, &left, force)?;
    let reply = json!({
        "format": format, "path": path, "written": outcome.written, "unchanged": outcome.unchanged,
        "removed": outcome.removed, "report": made.report,
    });
    session.show(&reply, |page| told(page, &reply, &made.report))?;
    Ok(ExitCode::SUCCESS)
}

/// The plan of that name, or the only one, in a form of callboard's own; on a board without a plan,
/// its tasks in that form.
fn plan_text(session: &Session, format: &str, name: Option<&str>) -> anyhow::Result<String> {
    match plan::text_of(session, format, name) {
        Err(error) if name.is_none() && blame_and_data(&error).1["code"] == "no_plan" => {
            tasks_as_plan(session, format)
        }
        made => made,
    }
}

/// The tasks of a board as a plan that makes the same tasks where it is imported.
fn tasks_as_plan(session: &Session, format: &str) -> anyhow::Result<String> {
    let view = view(session)?;
    let title = Some(view.goal.as_str()).filter(|goal| !goal.is_empty());
    let tasks = with_paths(view.tasks);
    if tasks.is_empty() {
        let add = session.wording.command("add TEXT");
        let why = format!("there is nothing to export: the board has no tasks; {add} adds one");
        return Err(Declined(anyhow::anyhow!(why)).into());
    }
    let tasks: Vec<&Task> = tasks.iter().collect();
    Ok(match format {
        "json" => harmless_json(&serde_json::to_string_pretty(&to_json(title, &tasks))?) + "\n",
        _ => to_markdown(title, None, &tasks),
    })
}

/// The tasks in the order of their paths. Those without one stand behind the others, each with a
/// path of its own. A task waits for what is written, too.
fn with_paths(mut tasks: Vec<Task>) -> Vec<Task> {
    tasks.retain(|task| task.status != TaskStatus::Obsolete);
    let place = |task: &Task| task.path.as_deref().and_then(numbers);
    let mut last = tasks.iter().filter_map(place).map(|numbers| numbers[0]).max().unwrap_or(0);
    for task in tasks.iter_mut().filter(|task| place(task).is_none()) {
        last += 1;
        task.path = part_path(None, last);
    }
    tasks.sort_by_cached_key(place);
    let written: HashSet<_> = tasks.iter().map(|task| task.id.clone()).collect();
    for task in &mut tasks {
        task.dependencies.retain(|id| written.contains(id));
    }
    tasks
}

/// Writes the board in a format to standard output.
pub(crate) fn to_output(session: &Session, format: &str) -> Outcome {
    run(
        session,
        Arguments { format: Some(format.to_owned()), path: None, plan: None, force: false },
    )
}

/// The path without `..`, which leads to the parent of what a symbolic link points to.
fn resolved(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, component| {
        match component {
            Component::ParentDir => {
                path = path.canonicalize().unwrap_or(path);
                path.pop();
            }
            other => path.push(other),
        }
        path
    })
}

fn told(page: &mut Page, reply: &Value, report: &Report) {
    let [format, path] = ["format", "path"].map(|field| text(&reply[field]));
    let count = |list: &str| reply[list].as_array().map_or(0, Vec::len);
    let (written, unchanged, removed) = (count("written"), count("unchanged"), count("removed"));
    page.line(format_args!(
        "{format} in {path}: {written} files written, {unchanged} unchanged, {removed} removed"
    ));
    reported(page, report, "no place for");
}
