//! `callboard plan`: import, export and compare the versions of the plan.

pub(super) mod files;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::connect::quoted;
use super::print::{self, Page, Tone, harmless_json, text, with_tabs};
use super::{Outcome, Session, exchange};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Without it, the plans are listed, with what can be done next
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Import a Markdown or JSON plan as tasks; of a changed plan, only the difference
    Import(Import),
    /// Print the plan as it stands on the board
    Export(Export),
    /// Show what a file would change, or the difference between two versions
    Diff(Diff),
    /// List the versions of the plans, newest last
    Versions,
    /// List the plans, each with its file and its progress
    List,
    /// Take a plan off the board: what is done stays, what is held stays until it is released
    Remove {
        /// Name of the plan, as `plan list` has it
        name: String,
    },
}

#[derive(clap::Args, Default)]
struct Import {
    /// File with the plan, or what `callboard import` takes; `-` reads standard input
    file: String,
    /// Format, for files that do not show theirs
    #[arg(long)]
    format: Option<String>,
    /// Columns of a CSV file, as title=Summary,status=State
    #[arg(long, value_name = "FIELD=COLUMN", value_delimiter = ',', value_parser = exchange::mapped)]
    map: Vec<(String, String)>,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Refuse unless this is the version on the board now
    #[arg(long, value_name = "SHA256")]
    replacing: Option<String>,
    /// Name to know the plan by [default: its file]
    #[arg(long)]
    name: Option<String>,
    /// Name of the plan that this file takes the place of
    #[arg(long, value_name = "NAME")]
    replace: Option<String>,
    /// Let headings that count, such as Phase 1 and Phase 2, not wait for each other; kept for
    /// later versions
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    parallel: Option<bool>,
    /// Take entries of plain lists for tasks wherever they stand, or with =false say that nothing
    /// which is not read is work; kept for later versions
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    lists: Option<bool>,
    /// Say that the item at PATH is the done TASK in other words (repeatable)
    #[arg(long, value_name = "TASK=PATH")]
    carry: Vec<String>,
}

#[derive(clap::Args)]
struct Export {
    /// Name of the plan, as `plan list` has it; needed if there are several
    name: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,
    /// Earlier version to print, by at least 6 digits of its hash [default: the plan as it stands]
    #[arg(long, value_name = "SHA256")]
    version: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Markdown,
    Json,
}

#[derive(clap::Args)]
struct Diff {
    /// File, or version by at least 6 digits of its hash [default: the version before the current
    /// one]
    from: Option<String>,
    /// Version to compare with, by at least 6 digits of its hash [default: the current one]
    to: Option<String>,
    /// Name of the plan, as `plan list` has it; needed if there are several
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Some(command) = arguments.command else { return listed_with_next(session) };
    match command {
        Command::Import(Import {
            file,
            format,
            map,
            dry_run,
            replacing,
            name,
            replace,
            parallel,
            lists,
            carry,
        }) => {
            let query = json!({"dry_run": dry_run, "prev_sha256": replacing, "name": name, "replace": replace,
                "parallel": parallel, "lists": lists, "carry": carry});
            let (format, path) =
                exchange::format_and_path(std::slice::from_ref(&file), format.as_deref());
            let asked = exchange::import::Asked {
                format: format.as_deref(),
                path: &path,
                map: &map,
                ..Default::default()
            };
            exchange::import::import(session, &asked, query)
        }
        Command::Export(arguments) => export(session, &arguments),
        Command::Diff(Diff { from: Some(file), to: None, plan })
            if file == "-" || Path::new(&file).is_file() =>
        {
            let query = json!({"dry_run": true, "replace": plan});
            exchange::import::import(
                session,
                &exchange::import::Asked { path: &file, ..Default::default() },
                query,
            )
        }
        Command::Diff(arguments) => diff(session, &arguments),
        Command::Versions => versions(session),
        Command::List => list(session),
        Command::Remove { name } => remove(session, &name),
    }
}

/// What became of items, and the word for it.
const LISTS: [(&str, &str, Tone); 10] = [
    ("added", "added", Tone::Good),
    ("modified", "modified", Tone::Busy),
    ("reopened", "reopened", Tone::Waiting),
    ("renamed", "renamed", Tone::Plain),
    ("completed", "completed", Tone::Good),
    ("called_off", "called off", Tone::Over),
    ("leaving", "leaving", Tone::Waiting),
    ("obsolete", "obsolete", Tone::Over),
    ("left_done", "left done", Tone::Over),
    ("ticked", "ticked", Tone::Busy),
];
/// Items of one kind that are named.
const NAMED: usize = 30;
/// Headings that are named above entries that are not tasks.
const HEADINGS_NAMED: usize = 5;

/// `carry` is the command that carries "done" over, up to its last value.
pub(super) fn imported(page: &mut Page, reply: &Value, carry: &str) {
    let version = text(&reply["session"]);
    if reply["unchanged"] != true {
        understood(page, &reply["understood"]);
    }
    for (list, word, tone) in LISTS {
        listed(page, &reply[list], word, tone);
    }
    if reply["ticked"].is_array() {
        page.line(
            "who holds what is ticked says when it is done; import the plan again if it is \
             released undone",
        );
    }
    if reply["leaving"].is_array() {
        page.line(
            "who holds what is leaving completes it as it is, or releases it; then it is obsolete",
        );
    }
    reworded(page, &reply["reworded"], carry);
    if reply["unchanged"] == true {
        page.line(format_args!(
            "version {version}, {} items: the board has it already",
            reply["items"]
        ));
        return not_read(page, reply);
    }
    let counts: Vec<_> = LISTS
        .iter()
        .map(|(list, word, _)| (reply[*list].as_array().map_or(0, Vec::len), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!(", {count} {word}"))
        .collect();
    let lead = if reply["dry_run"] == true { "would import" } else { "imported" };
    page.line(format_args!(
        "{lead} version {version}: {} items, {} kept{}",
        reply["items"],
        reply["kept"],
        counts.concat()
    ));
    if reply["dry_run"] == true {
        page.line("nothing was changed");
    }
    beside(page, reply);
    not_read(page, reply);
}

/// Names items that are open because their words differ from those of what is done.
fn reworded(page: &mut Page, items: &Value, carry: &str) {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    for one in items.iter().take(NAMED) {
        let [path, task, title, done, was] =
            ["path", "task", "title", "done", "was"].map(|field| text(&one[field]));
        page.marked(
            "open",
            Tone::Waiting,
            format_args!("{path} {task} {title}: {done} was done as \"{was}\""),
        );
        page.line(format_args!(
            "    if that is the same work: `{carry} {}`",
            quoted(&text(&one["carry"]))
        ));
    }
    if items.len() > NAMED {
        page.line(format_args!(
            "and {} more are open in other words; --json has all",
            items.len() - NAMED
        ));
    }
}

/// Says which plan it is, if the board has others.
fn beside(page: &mut Page, reply: &Value) {
    let others: Vec<_> = reply["beside"].as_array().into_iter().flatten().map(text).collect();
    if !others.is_empty() {
        let name = reply["plan"]
            .as_str()
            .map_or("without a name".to_owned(), |name| format!("\"{name}\""));
        page.line(format_args!(
            "this is the plan {name}, beside {}; --replace NAME makes it that one",
            others.join(", ")
        ));
    }
}

pub(crate) fn count(word: &str, count: &Value) -> String {
    format!("{count} {word}{}", if *count == 1 { "" } else { "s" })
}

/// Says what the text was understood to say, and what waits for what.
fn understood(page: &mut Page, understood: &Value) {
    let waits = understood["waits"].as_array().map(Vec::as_slice).unwrap_or_default();
    for one in waits.iter().take(NAMED) {
        let after =
            one["after"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join("; ");
        let why = if one["order"] == true { " (the headings count)" } else { "" };
        page.marked(
            "waits",
            Tone::Waiting,
            format_args!("line {}: {} - after: {after}{why}", one["line"], text(&one["title"])),
        );
    }
    if waits.len() > NAMED {
        page.line(format_args!("and {} more wait; --json has all", waits.len() - NAMED));
    }
    let under = match understood["groups"].as_u64() {
        Some(groups) if groups > 0 => format!(" under {}", count("heading", &understood["groups"])),
        _ => String::new(),
    };
    let items = count("item", &understood["items"]);
    let (done, off, ready) = (&understood["done"], &understood["called_off"], &understood["ready"]);
    page.line(format_args!(
        "read {items}{under}: {done} done, {off} called off, {ready} ready at once"
    ));
    if waits.is_empty() && ready.as_u64() > Some(1) {
        page.line(format_args!("{ready} tasks are ready at once: nothing depends on anything"));
    }
}

/// Names how lines were read that do not say it themselves, and, last, what was not read.
fn not_read(page: &mut Page, reply: &Value) {
    let remarks = reply["remarks"].as_array().map(Vec::as_slice).unwrap_or_default();
    for one in remarks.iter().take(NAMED) {
        page.marked(
            "note",
            Tone::Plain,
            format_args!("line {}: {}", one["line"], text(&one["remark"])),
        );
    }
    if remarks.len() > NAMED {
        page.line(format_args!("and {} more notes; --json has all", remarks.len() - NAMED));
    }
    let skipped = reply["skipped"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (listed, skipped): (Vec<&Value>, Vec<&Value>) =
        skipped.iter().partition(|one| one["below"].is_string());
    if !listed.is_empty() {
        let entries = if listed.len() == 1 { "entry" } else { "entries" };
        let mut headings: Vec<String> = listed.iter().map(|one| text(&one["below"])).collect();
        headings.dedup();
        let headings: Vec<_> = headings
            .iter()
            .map(|heading| match heading.as_str() {
                "" => "the beginning",
                heading => heading,
            })
            .collect();
        let more = headings.len().saturating_sub(HEADINGS_NAMED);
        let more = if more > 0 { format!(" and {more} more headings") } else { String::new() };
        let named = headings[..headings.len().min(HEADINGS_NAMED)].join(", ");
        page.line(format_args!(
            "{} {entries} below {named}{more} are not tasks; --lists takes them",
            listed.len()
        ));
    }
    for one in &skipped {
        page.marked(
            "not read",
            Tone::Waiting,
            format_args!("line {}: {}", one["line"], text(&one["title"])),
        );
    }
    if !skipped.is_empty() {
        let lines = count("line", &skipped.len().into());
        page.line(format_args!(
            "{lines} that may be work are not items; `- [ ]` before the words makes a line one"
        ));
    }
    if reply["unread"].is_u64() {
        let lists = match reply["format"] {
            Value::Null => "--lists makes entries of lists tasks, and ",
            _ => "",
        };
        page.line(format_args!(
            "{} may be work and are in no task, so that the board is not finished without: \
             {lists}--lists=false says that none is work",
            count("line", &reply["unread"])
        ));
    }
}

fn listed(page: &mut Page, items: &Value, word: &str, tone: Tone) {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    for one in items.iter().take(NAMED) {
        let [path, task, title, was, held] =
            ["path", "task", "title", "was", "held_by"].map(|field| text(&one[field]));
        let task = if task.is_empty() { task } else { format!("{task} ") };
        let was = if was.is_empty() { was } else { format!(" (was {was})") };
        let held = if held.is_empty() { held } else { format!(", held by {held}") };
        page.marked(
            word,
            tone,
            format_args!("{path} {task}{title}{was}{held}")
                .to_string()
                .lines()
                .next()
                .unwrap_or_default(),
        );
    }
    if items.len() > NAMED {
        page.line(format_args!("and {} more {word}; --json has all", items.len() - NAMED));
    }
}

fn export(session: &Session, arguments: &Export) -> Outcome {
    let format = match arguments.format {
        Format::Markdown => "markdown",
        Format::Json => "json",
    };
    let reply = session.call(
        "export_plan",
        json!({"format": format, "plan": arguments.name, "version": arguments.version}),
    )?;
    if session.json {
        print::json(&reply)?;
        return Ok(ExitCode::SUCCESS);
    }
    io::stdout().lock().write_all(exact(&exported(&reply)?).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The plan of that name, or the only one, in a form of callboard's own.
pub(super) fn text_of(
    session: &Session,
    format: &str,
    name: Option<&str>,
) -> anyhow::Result<String> {
    exported(&session.call("export_plan", json!({"format": format, "plan": name}))?)
}

fn exported(reply: &Value) -> anyhow::Result<String> {
    Ok(match reply["markdown"].as_str() {
        Some(markdown) => markdown.to_owned(),
        None => harmless_json(&serde_json::to_string_pretty(&reply["json"])?) + "\n",
    })
}

/// A text as it is, unless it goes to a terminal, which would obey some of its characters.
pub(super) fn exact(text: &str) -> String {
    if io::stdout().is_terminal() { with_tabs(text) } else { text.to_owned() }
}

fn diff(session: &Session, arguments: &Diff) -> Outcome {
    let reply = session.call(
        "diff_plans",
        json!({"plan": arguments.plan, "from": arguments.from, "to": arguments.to}),
    )?;
    let lists = [
        ("added", Tone::Good),
        ("modified", Tone::Busy),
        ("renamed", Tone::Plain),
        ("removed", Tone::Over),
    ];
    session.show(&reply, |page| {
        for (list, tone) in lists {
            listed(page, &reply[list], list, tone);
        }
        let count = |list: &str| reply[list].as_array().map_or(0, Vec::len);
        let counts = lists.map(|(list, _)| format!("{} {list}", count(list))).join(", ");
        let [from, to] =
            ["from", "to"].map(|end| text(&reply[end]).chars().take(12).collect::<String>());
        page.line(format_args!("{from} to {to}: {counts}"));
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list(session: &Session) -> Outcome {
    let reply = session.call("list_plans", json!({}))?;
    session.show(&reply, |page| write_list(session, page, &reply))?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the plans, and names what is done with them most.
fn listed_with_next(session: &Session) -> Outcome {
    let reply = session.call("list_plans", json!({}))?;
    session.show(&reply, |page| {
        write_list(session, page, &reply);
        if reply["plans"].as_array().is_some_and(|plans| !plans.is_empty()) {
            let [tree, export, import] = ["tree", "plan export", "plan import FILE"]
                .map(|words| session.wording.command(words));
            page.line(format_args!(
                "{tree} shows the tasks, {export} prints the plan, {import} takes a changed one in"
            ));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn write_list(session: &Session, page: &mut Page, reply: &Value) {
    let plans = reply["plans"].as_array().map(Vec::as_slice).unwrap_or_default();
    if plans.is_empty() {
        return page.line(format_args!(
            "the board has no plan yet; {} adds one",
            session.wording.command("plan import FILE")
        ));
    }
    let rows: Vec<_> = plans
        .iter()
        .map(|plan| {
            let at = serde_json::from_value(plan["changed"].clone())
                .map(|at| page.when(at))
                .unwrap_or_default();
            let [name, file, items, done, version] = files::row(session, plan);
            [name, file, items, done, version, at].map(Into::into)
        })
        .collect();
    page.table(["plan", "file", "items", "done", "version", "changed"], rows.into_iter());
}

fn remove(session: &Session, name: &str) -> Outcome {
    let reply = session.call("remove_plan", json!({"plan": name}))?;
    session.show(&reply, |page| {
        let [obsolete, done, leaving] =
            ["obsolete", "left_done", "leaving"].map(|count| &reply[count]);
        page.line(format_args!(
            "removed {name}: {} now obsolete, {done} kept as done, {leaving} held until released",
            count("item", obsolete)
        ));
    })?;
    Ok(ExitCode::SUCCESS)
}

fn versions(session: &Session) -> Outcome {
    let reply = session.call("get_master_plan", json!({}))?;
    let plans = reply["plans"].as_array().cloned().unwrap_or_default();
    session.show(&json!({"plans": plans}), |page| {
        if plans.is_empty() {
            return page.line(format_args!(
                "no plan was imported yet; {} does it",
                session.wording.command("plan import FILE")
            ));
        }
        let rows: Vec<_> = plans
            .iter()
            .map(|plan| {
                let at = serde_json::from_value(plan["imported_at"].clone())
                    .map(|at| page.when(at))
                    .unwrap_or_default();
                let short = |field: &str| text(&plan[field]).chars().take(12).collect::<String>();
                let name = plan["name"].as_str().unwrap_or("-").to_owned();
                let items = if plan["removed"] == true {
                    "removed".to_owned()
                } else {
                    text(&plan["items"])
                };
                [name, short("sha256"), short("prev_sha256"), items, at, text(&plan["source"])]
                    .map(Into::into)
            })
            .collect();
        page.table(["plan", "version", "after", "items", "imported", "from"], rows.into_iter());
    })?;
    Ok(ExitCode::SUCCESS)
}
