//! Files of other tools on the disk: which format they have, reading them, and writing an export.

mod disk;
pub(super) mod export;
pub(super) mod import;
pub(super) mod verify;
mod written;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use serde_json::Value;

use super::connect::quoted;
use super::print::Page;
use super::{Declined, Session, read_marked, usage_error};
use crate::bom;
use crate::exchange::{self, FORMATS, Fault, Format, Read, Report, Tree};
use crate::location::without_dots;
use crate::ops;
use crate::participant::is_begun;
use crate::state::document::PlanVersion;

/// Names of plans in callboard's own forms, which are formats, too.
const PLANS: [&str; 2] = ["markdown", "json"];
/// What has these forms.
const OWN_FORM: &str = "a plan in a form of callboard's own";
/// Most faults that are named.
const NAMED: usize = 10;

/// What was named on the command line, read.
pub(super) enum Found {
    /// A plan in Markdown or JSON.
    Plan(String),
    Other {
        format: &'static Format,
        /// What the format is known by.
        why: String,
        tree: Tree,
        read: Box<Read>,
    },
}

/// The arguments `PATH` or `FORMAT PATH`, with --format.
pub(super) fn format_and_path(words: &[String], option: Option<&str>) -> (Option<String>, String) {
    let (before, path) = match words {
        [path] => (None, path.clone()),
        [format, path] => (Some(format.as_str()), path.clone()),
        _ => usage_error("name one file or directory, and before it, if you like, its format"),
    };
    let format = match (before, option) {
        (Some(one), Some(other)) if one != other => {
            usage_error(format!("--format {other}, or {one}? Leave one out"))
        }
        (one, other) => one.or(other),
    };
    format.into_iter().for_each(|format| _ = known(format, |_| true));
    (format.map(str::to_owned), path)
}

/// The format of this name; none for a plan in callboard's own forms. The names that `fits` says
/// are named if it is none.
fn known(name: &str, fits: fn(&Format) -> bool) -> Option<&'static Format> {
    if PLANS.contains(&name) {
        return None;
    }
    exchange::find(name)
        .or_else(|| usage_error(format!("{name} is not a format; there are {}", names(fits))))
}

/// A value of --map: a field and the column that has it.
pub(super) fn mapped(given: &str) -> Result<(String, String), String> {
    let (field, column) = given.split_once('=').ok_or("it is FIELD=COLUMN")?;
    Ok((field.trim().to_owned(), column.trim().to_owned()))
}

/// Names of the formats, as a list.
fn names(fits: fn(&Format) -> bool) -> String {
    let others = FORMATS.iter().filter(|format| fits(format)).map(|format| format.name);
    PLANS.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// What help says of the formats, before `text`.
pub(super) fn with_formats(text: &str, fits: fn(&Format) -> bool) -> String {
    let plans = PLANS.map(|name| (name, OWN_FORM));
    with_formats_of(text, &plans, fits)
}

/// The formats that are written, each with what has it.
pub(super) fn formats_written() -> Vec<(String, String)> {
    let plans = PLANS.map(|name| (name, OWN_FORM));
    let others = FORMATS.iter().filter(|format| format.write.is_some());
    let all = plans.into_iter().chain(others.map(|format| (format.name, format.what)));
    all.map(|(name, what)| (name.to_owned(), what.to_owned())).collect()
}

/// The same, with these beside the formats of other tools.
fn with_formats_of(text: &str, plans: &[(&str, &str)], fits: fn(&Format) -> bool) -> String {
    let others =
        FORMATS.iter().filter(|format| fits(format)).map(|format| (format.name, format.what));
    let lines =
        plans.iter().copied().chain(others).map(|(name, what)| format!("\n  {name:<12} {what}"));
    format!("Formats:{}\n\n{text}", lines.collect::<String>())
}

/// Reads what was named on the command line.
pub(super) fn find(
    session: &Session,
    format: Option<&str>,
    name: &str,
    map: &[(String, String)],
) -> anyhow::Result<Found> {
    let wanted = format.map(|format| known(format, |format| format.read.is_some()));
    if let Some(Some(Format { name, read: None, .. })) = wanted {
        usage_error(format!("{name} is only written: `callboard export {name}`"));
    }
    let path = Path::new(name);
    let there = (name != "-").then(|| session.cwd.join(path)).filter(|path| path.is_dir());
    let (format, why, tree) = match (there, wanted) {
        (Some(_), Some(None)) => {
            usage_error(format!("{name} is a directory: name the file with the plan in it"))
        }
        (Some(_), Some(Some(format)))
            if format.one_file && format.places.iter().all(|place| !place.contains('/')) =>
        {
            usage_error(format!(
                "{name} is a directory, and {} is one file: name that",
                format.name
            ))
        }
        (Some(directory), wanted) => in_directory(session, name, &directory, wanted.flatten())?,
        (None, Some(Some(format))) if !format.one_file => {
            usage_error(format!("{name} is a file, and {} is a directory: name that", format.name))
        }
        (None, wanted) => {
            let marked = read_marked(name);
            let text = bom::skip(&marked).to_owned();
            if text.trim().is_empty() {
                usage_error(format!("{name} is empty"));
            }
            let place = (name != "-").then(|| session.project_paths(&[name.to_owned()]).remove(0));
            let tree = Tree { map: map.to_vec(), ..Tree::file(place, text) };
            let whole = without_dots(&session.cwd.join(path));
            let found = match wanted {
                Some(None) => None,
                Some(Some(format)) if !(format.is)(&tree) => return Err(other_form(name, format)),
                Some(Some(format)) => Some((format, "as you said".to_owned())),
                None => exchange::detect(&whole.to_string_lossy(), &tree),
            };
            match found {
                Some((format, why)) => (format, why, tree),
                // A plan is kept as it is, with its mark.
                None => return Ok(Found::Plan(marked)),
            }
        }
    };
    let read =
        format.read.map(|read| read(&tree)).transpose().map_err(|faults| refused(name, &faults))?;
    let mut read = read.unwrap_or_default();
    for (file, why) in &tree.unread {
        read.report.note(file, 1, format!("the file is not read: {why}"));
    }
    Ok(Found::Other { format, why, tree, read: Box::new(read) })
}

fn other_form(name: &str, format: &Format) -> anyhow::Error {
    let Format { name: wanted, form, .. } = format;
    let form = if form.is_empty() { String::new() } else { format!(", which has {form}") };
    Declined(anyhow!(
        "nothing of {name} was imported: it is not {wanted}{form}; leave --format out to have it \
         found{}",
        way_out()
    ))
    .into()
}

/// The error for faults in files.
fn refused(name: &str, faults: &[Fault]) -> anyhow::Error {
    let named = faults.iter().take(NAMED).map(|fault| format!("\n  {fault}"));
    let more = faults.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let named = named.collect::<String>();
    Declined(anyhow!("nothing of {name} was imported:{named}{more}{}", way_out())).into()
}

/// What else a file may be read as.
fn way_out() -> String {
    let names = names(|format| format.read.is_some());
    format!(
        "\n  --format says what it is: {names}; --map FIELD=COLUMN says which columns of a table \
         are which"
    )
}

/// The format that a directory has files of, and those files.
fn in_directory(
    session: &Session,
    name: &str,
    directory: &Path,
    wanted: Option<&'static Format>,
) -> anyhow::Result<(&'static Format, String, Tree)> {
    let readable = FORMATS.iter().filter(|format| format.read.is_some());
    let path = session.project_paths(&[name.to_owned()]).remove(0);
    let mut found: Vec<(&'static Format, String, Tree)> = Vec::new();
    for format in readable.filter(|format| wanted.is_none_or(|wanted| wanted.name == format.name)) {
        let Some((files, unread)) = disk::files(directory, format)? else { continue };
        let is_single = format.one_file && !format.places.iter().any(|place| place.contains('*'));
        let first = if is_single {
            format.places.iter().find_map(|place| files.keys().find(|name| place.ends_with(*name)))
        } else {
            files.keys().next()
        };
        let first = first.cloned().unwrap_or_default();
        let (files, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            files.into_iter().partition(|(name, _)| !is_single || *name == first);
        let tree =
            Tree { path: Some(path.clone()), is_directory: true, files, unread, ..Tree::default() };
        let tree = if is_single {
            Tree { path: tree.path_of(&first), is_directory: false, ..tree }
        } else {
            tree
        };
        if format.is_of_a_tool() || (format.is)(&tree) {
            let others: String =
                others.keys().map(|name| format!("; {name} is not read")).collect();
            found.push((format, format!("by {first}{others}"), tree));
        } else if wanted.is_some() {
            return Err(other_form(&first, format));
        }
    }
    let looked: Vec<_> = FORMATS
        .iter()
        .filter(|format| format.read.is_some())
        .flat_map(|format| format.places)
        .collect();
    match found.len() {
        0 => {
            let looked = looked.iter().map(|place| **place).collect::<Vec<_>>().join(", ");
            Err(Declined(anyhow!(
                "{name} is a directory in which there is nothing to import: no {looked}; name a \
                 file{}",
                way_out()
            ))
            .into())
        }
        1 => Ok(found.remove(0)),
        _ => {
            let names = found.iter().map(|(format, ..)| format.name).collect::<Vec<_>>().join(", ");
            Err(Declined(anyhow!(
                "{name} has files of several formats ({names}): say which with --format"
            ))
            .into())
        }
    }
}

impl Session {
    /// Names the commands that bring in what other tools keep in this project.
    pub(super) fn name_imports(&self, page: &mut Page) {
        if self.server.is_some() {
            return;
        }
        let root = self.project_root();
        for format in FORMATS.iter().filter(|format| format.read.is_some()) {
            // The board's own state file has the place and the fields of an older coordinator's.
            let is_own =
                |first: &String| root.join(first).starts_with(self.dir()) && is_begun(self.dir());
            if let Some(first) = disk::first(&root, format).filter(|first| !is_own(first)) {
                let command = self.wording.command(&format!(
                    "import {} {}",
                    format.name,
                    quoted(&root.to_string_lossy())
                ));
                page.line(format_args!("{first} is of {}: {command} brings it in.", format.what));
            }
        }
    }
}

/// Says what has no place of its own.
fn reported(page: &mut Page, report: &Report, lead: &str) {
    let list = |counts: &std::collections::BTreeMap<String, usize>| {
        counts
            .iter()
            .map(|(name, count)| format!("{name} ({count})"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !report.statuses.is_empty() {
        page.line(format_args!("status: {}", list(&report.statuses)));
    }
    if !report.kept.is_empty() {
        page.line(format_args!("kept in metadata, and exported again: {}", list(&report.kept)));
    }
    if !report.left_out.is_empty() {
        page.line(format_args!("{lead}: {}", list(&report.left_out)));
    }
    for note in report.notes.iter().take(NAMED) {
        page.line(format_args!("note {} line {}: {}", note.path, note.line, note.note));
    }
    if report.notes.len() > NAMED {
        page.line(format_args!("and {} more notes; --json has all", report.notes.len() - NAMED));
    }
}

/// All tasks of the board, for an export.
fn view(session: &Session) -> anyhow::Result<exchange::View> {
    let tasks =
        session.every_page::<ops::GetAllTasks>("tasks", &ops::get_all_tasks::Params::default())?;
    let mut view = exchange::View::new(
        tasks.reply.tasks.iter().filter_map(|task| task.whole().cloned()).collect(),
    );
    let plan = session.ask::<ops::GetMasterPlan>(&ops::get_master_plan::Params {})?.reply;
    view.goal = plan.goal.to_string();
    view.master_plan = plan.master_plan.to_string();
    let metadata = newest(&plan.plans).into_iter().flat_map(|version| version.metadata.iter());
    view.metadata_of_all.extend(metadata.map(|(name, value)| (name.clone(), value.clone())));
    let agents = session
        .every_page::<ops::GetAgents>("agents", &ops::get_agents::Params::default())?
        .reply
        .agents;
    view.agents = agents.into_iter().map(|shown| shown.into_entry().agent).collect();
    let query = ops::get_discoveries::Params::default();
    let discoveries =
        session.every_page::<ops::GetDiscoveries>("discoveries", &query)?.reply.discoveries;
    view.discoveries = discoveries.into_iter().map(|shown| shown.into_entry().discovery).collect();
    view.discoveries.sort_by_key(|one| one.created_at);
    Ok(view)
}

/// The newest version of each plan. `versions` are of all plans, oldest first.
fn newest(versions: &[PlanVersion]) -> Vec<&PlanVersion> {
    let mut newest: Vec<&PlanVersion> = Vec::new();
    for version in versions {
        let PlanVersion { name, was, .. } = version;
        newest.retain(|other| other.name != *name && (was.is_none() || other.name != *was));
        newest.push(version);
    }
    newest
}

/// The lines of a reply about the plan, as lines of the files that it was made of.
fn with_origins(value: &mut Value, origins: &[(String, usize)]) {
    let Some((path, line)) = value["line"].as_u64().and_then(|line| origins.get(line as usize - 1))
    else {
        return;
    };
    value["line"] = (*line).into();
    value["path"] = path.as_str().into();
}
