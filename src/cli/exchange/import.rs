//! `callboard import`: brings in what another tool or a person has in files.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::{
    Found, find, format_and_path, mapped, refused, reported, way_out, with_formats, with_origins,
};
use crate::board::Options;
use crate::cli::connect::quoted;
use crate::cli::plan::{self, files};
use crate::cli::progress::Steps;
use crate::cli::report::say;
use crate::cli::session::runtime;
use crate::cli::{Outcome, Session, blame_and_data};
use crate::exchange::Fault;
use crate::redact;

const EXAMPLES: &str = "Examples:\n  \
    callboard import .taskmaster/tasks/tasks.json --dry-run\n  \
    callboard import PLAN.md --name release\n  \
    callboard import task-master tasks.json\n  \
    callboard import jira.csv --map title=Summary,id='Issue key'\n  \
    gh issue list --json number,title,body,state,labels,url | callboard import github - --name issues\n  \
    my-tracker export | callboard import - --name tracker\n\n\
    The format is found by the path and by what is in the file; the output says which it is, and what has no place on \
    the board. A second import of the same file changes only what has changed there.";

#[derive(clap::Args)]
#[command(after_help = with_formats(EXAMPLES, |format| format.read.is_some()))]
pub(crate) struct Arguments {
    /// File or directory; `-` reads standard input. Its format may stand before it
    #[arg(value_name = "PATH|-", num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// Format, for files that do not show theirs
    #[arg(long)]
    format: Option<String>,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Columns of a CSV file, as title=Summary,status=State
    #[arg(long, value_name = "FIELD=COLUMN", value_delimiter = ',', value_parser = mapped)]
    map: Vec<(String, String)>,
    /// Name of the plan [default: the path]
    #[arg(long)]
    name: Option<String>,
    /// Take entries of plain lists in Markdown for tasks wherever they stand, or with =false say
    /// that nothing which is not read is work; kept for later versions
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    lists: Option<bool>,
    /// Print how far it is to standard error, which a terminal is shown anyway
    #[arg(long)]
    progress: bool,
}

pub(crate) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let (format, path) = format_and_path(&arguments.words, arguments.format.as_deref());
    let query = json!({"dry_run": arguments.dry_run, "lists": arguments.lists});
    let asked = Asked {
        format: format.as_deref(),
        path: &path,
        name: arguments.name.as_deref(),
        map: &arguments.map,
        progress: arguments.progress,
    };
    import(session, &asked, query)
}

/// What is to be imported.
#[derive(Default)]
pub(crate) struct Asked<'a> {
    pub format: Option<&'a str>,
    pub path: &'a str,
    pub name: Option<&'a str>,
    pub map: &'a [(String, String)],
    pub progress: bool,
}

/// Imports what was asked for. `query` has further arguments of the operation.
pub(crate) fn import(session: &Session, asked: &Asked<'_>, mut query: Value) -> Outcome {
    let Asked { format, path, name, map, progress } = *asked;
    let working = Steps::of(session, &format!("importing {path}"), 3, progress);
    working.step(0, "reading it");
    query["source"] = files::source(session, path).into();
    query["gone"] = files::gone(session)?.into();
    if let Some(name) = name {
        query["name"] = name.into();
    }
    let carry = carrying(session, asked, &query);
    match find(session, format, path, map)? {
        Found::Plan(text) => {
            working.step(1, &format!("comparing {} lines with the board", text.lines().count()));
            let masked = masked(&text);
            query["text"] = text.into();
            let mut reply = call(session, query).inspect_err(|_| {
                if !session.json {
                    say(way_out().trim_start());
                }
            })?;
            if !masked.is_empty() {
                reply["masked"] = json!(masked);
            }
            working.step(3, "done");
            drop(working);
            session.show(&reply, |page| {
                plan::imported(page, &reply, &carry);
                for line in &masked {
                    page.line(format_args!(
                        "line {line}: a secret is not kept; an export over {path} is refused \
                         without --force"
                    ));
                }
            })?;
        }
        Found::Other { format, why, mut read, tree } => {
            let (text, origins) = read.plan_text();
            working.step(1, &format!("comparing {} items with the board", origins.len() - 1));
            query["text"] = text.into();
            query["source"] = tree.path.into();
            let mut reply =
                call(session, query).map_err(|error| with_files(error, path, &origins))?;
            for list in ["/remarks", "/skipped", "/understood/waits"] {
                let entries = reply.pointer_mut(list).and_then(Value::as_array_mut);
                entries.into_iter().flatten().for_each(|one| with_origins(one, &origins));
            }
            reply["format"] = format.name.into();
            reply["found"] = why.as_str().into();
            reply["report"] = serde_json::to_value(&read.report)?;
            working.step(3, "done");
            drop(working);
            session.show(&reply, |page| {
                read.report.first.iter().for_each(|first| page.line(first));
                page.line(format_args!("{path} is {}: {} ({why})", format.name, format.what));
                plan::imported(page, &reply, &carry);
                reported(page, &read.report, "no place for");
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Calls the operation. Without a board, a dry run uses a temporary one.
fn call(session: &Session, query: Value) -> anyhow::Result<Value> {
    if query["dry_run"] != true || session.has_board() {
        return session.call("import_plan", query);
    }
    let place = tempfile::tempdir()?;
    let board = Options::at(place.path().join("board")).brief().open()?;
    Ok(runtime()?.block_on(board.call_json("import_plan", query))?)
}

/// Numbers of the lines in which the board masks a secret.
fn masked(text: &str) -> Vec<usize> {
    let Some((clean, _)) = redact::text(text) else { return Vec::new() };
    let differ = text.lines().zip(clean.lines()).zip(1..).filter(|((old, new), _)| old != new);
    differ.map(|(_, number)| number).take(MASKED_NAMED).collect()
}

/// Lines with masked secrets that are named.
const MASKED_NAMED: usize = 20;

/// The command that imports the same again and carries "done" over, up to its last value.
fn carrying(session: &Session, asked: &Asked<'_>, query: &Value) -> String {
    let mut command = format!("plan import {}", quoted(&as_argument(asked.path)));
    let mut add = |option: &str, value: Option<&str>| {
        let Some(value) = value else { return };
        let between = if value.starts_with('-') { '=' } else { ' ' };
        command.push_str(&format!(" --{option}{between}{}", quoted(value)));
    };
    add("format", asked.format);
    asked.map.iter().for_each(|(field, column)| add("map", Some(&format!("{field}={column}"))));
    add("name", query["name"].as_str());
    // An import has put the plan in the place of the other one already, and the board keeps the
    // rest.
    if query["dry_run"] == true {
        add("replace", query["replace"].as_str());
        query["carry"].as_array().into_iter().flatten().for_each(|one| add("carry", one.as_str()));
        if let Some(parallel) = query["parallel"].as_bool() {
            command.push_str(&format!(" --parallel={parallel}"));
        }
        if let Some(lists) = query["lists"].as_bool() {
            command.push_str(&format!(" --lists={lists}"));
        }
    }
    session.wording.line(&format!("{command} --carry"))
}

/// A path that is not read as an option.
fn as_argument(path: &str) -> String {
    if path.starts_with('-') && path != "-" { format!("./{path}") } else { path.to_owned() }
}

/// The refusal of a plan that was made of files, told by their lines.
fn with_files(error: anyhow::Error, name: &str, origins: &[(String, usize)]) -> anyhow::Error {
    let (_, data) = blame_and_data(&error);
    let Some(problems) = data["problems"].as_array() else { return error };
    let fault = |problem: &Value| {
        let line = problem["line"].as_u64().unwrap_or(1) as usize;
        let (path, line) =
            origins.get(line - 1).cloned().unwrap_or_else(|| (name.to_owned(), line));
        Fault { path, line, problem: problem["problem"].as_str().unwrap_or_default().to_owned() }
    };
    refused(name, &problems.iter().map(fault).collect::<Vec<_>>())
}
