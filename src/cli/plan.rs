//! `callboard plan`: import, export and compare the versions of the plan.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::print::{self, Page, Tone, harmless_json, text, with_tabs};
use super::{Outcome, Session, read_input, usage_error};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Import a Markdown or JSON plan as tasks; of a changed plan, only the difference
    Import(Import),
    /// Print the plan as it stands on the board
    Export(Export),
    /// Show what a file would change, or the difference between two versions
    Diff(Diff),
    /// List the versions of the plan, newest last
    Versions,
}

#[derive(clap::Args)]
struct Import {
    /// File with the plan; `-` reads standard input
    file: String,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Refuse unless this is the version on the board now
    #[arg(long, value_name = "SHA256")]
    replacing: Option<String>,
}

#[derive(clap::Args)]
struct Export {
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
    /// File, or version by at least 6 digits of its hash [default: the version before the current one]
    from: Option<String>,
    /// Version to compare with, by at least 6 digits of its hash [default: the current one]
    to: Option<String>,
}

pub fn run(session: &Session, arguments: Arguments) -> Outcome {
    match arguments.command {
        Command::Import(arguments) => {
            import(session, &arguments.file, arguments.dry_run, arguments.replacing.as_deref())
        }
        Command::Export(arguments) => export(session, &arguments),
        Command::Diff(Diff { from: Some(file), to: None }) if file == "-" || Path::new(&file).is_file() => {
            import(session, &file, true, None)
        }
        Command::Diff(arguments) => diff(session, &arguments),
        Command::Versions => versions(session),
    }
}

fn import(session: &Session, file: &str, dry_run: bool, replacing: Option<&str>) -> Outcome {
    let plan = read_input(file);
    if plan.trim().is_empty() {
        usage_error(format!("{file} is empty"));
    }
    let source = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
    let query = json!({"text": plan, "source": source, "dry_run": dry_run, "prev_sha256": replacing});
    let reply = session.call("import_plan", query)?;
    session.show(&reply, |page| imported(page, &reply))?;
    Ok(ExitCode::SUCCESS)
}

/// What became of items, and the word for it.
const LISTS: [(&str, &str, Tone); 8] = [
    ("added", "added", Tone::Good),
    ("modified", "modified", Tone::Busy),
    ("reopened", "reopened", Tone::Waiting),
    ("renamed", "renamed", Tone::Plain),
    ("completed", "completed", Tone::Good),
    ("obsolete", "obsolete", Tone::Over),
    ("left_done", "left done", Tone::Over),
    ("ticked", "ticked", Tone::Busy),
];
/// Items of one kind that are named.
const NAMED: usize = 30;

fn imported(page: &mut Page, reply: &Value) {
    let version = text(&reply["session"]);
    for (list, word, tone) in LISTS {
        listed(page, &reply[list], word, tone);
    }
    for one in reply["skipped"].as_array().into_iter().flatten().take(NAMED) {
        page.marked("skipped", Tone::Over, format_args!("line {}: {}", one["line"], text(&one["title"])));
    }
    if let Some(skipped) = reply["skipped"].as_array() {
        let more =
            if skipped.len() > NAMED { format!("and {} more skipped; ", skipped.len() - NAMED) } else { String::new() };
        page.line(format_args!(
            "{more}what is skipped is no item, because others are marked by boxes or paths: `- [ ]` makes an entry one, and so does `- [ ]` or `priority: 5` below a heading"
        ));
    }
    if reply["ticked"].is_array() {
        page.line("who holds what is ticked says when it is done; import the plan again if it is released undone");
    }
    if reply["unchanged"] == true {
        return page.line(format_args!("version {version}, {} items: the board has it already", reply["items"]));
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
}

fn listed(page: &mut Page, items: &Value, word: &str, tone: Tone) {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    for one in items.iter().take(NAMED) {
        let [path, task, title, was, held] = ["path", "task", "title", "was", "held_by"].map(|field| text(&one[field]));
        let task = if task.is_empty() { task } else { format!("{task} ") };
        let was = if was.is_empty() { was } else { format!(" (was {was})") };
        let held = if held.is_empty() { held } else { format!(", held by {held}") };
        page.marked(
            word,
            tone,
            format_args!("{path} {task}{title}{was}{held}").to_string().lines().next().unwrap_or_default(),
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
    let reply = session.call("export_plan", json!({"format": format, "version": arguments.version}))?;
    if session.json {
        print::json(&reply)?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = match arguments.format {
        Format::Markdown => with_tabs(reply["markdown"].as_str().unwrap_or_default()),
        Format::Json => harmless_json(&serde_json::to_string_pretty(&reply["json"])?) + "\n",
    };
    io::stdout().lock().write_all(plan.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn diff(session: &Session, arguments: &Diff) -> Outcome {
    let reply = session.call("diff_plans", json!({"from": arguments.from, "to": arguments.to}))?;
    let lists = [("added", Tone::Good), ("modified", Tone::Busy), ("renamed", Tone::Plain), ("removed", Tone::Over)];
    session.show(&reply, |page| {
        for (list, tone) in lists {
            listed(page, &reply[list], list, tone);
        }
        let count = |list: &str| reply[list].as_array().map_or(0, Vec::len);
        let counts = lists.map(|(list, _)| format!("{} {list}", count(list))).join(", ");
        let [from, to] = ["from", "to"].map(|end| text(&reply[end]).chars().take(12).collect::<String>());
        page.line(format_args!("{from} to {to}: {counts}"));
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
                let at =
                    serde_json::from_value(plan["imported_at"].clone()).map(|at| page.when(at)).unwrap_or_default();
                let short = |field: &str| text(&plan[field]).chars().take(12).collect::<String>();
                [short("sha256"), short("prev_sha256"), text(&plan["items"]), at, text(&plan["source"])].map(Into::into)
            })
            .collect();
        page.table(["version", "after", "items", "imported", "from"], rows.into_iter());
    })?;
    Ok(ExitCode::SUCCESS)
}
