//! What `init` does on a terminal after it has made the board: it asks whether to write the
//! paragraph, to connect the clients that are installed, and to import a plan.

use std::cell::Cell;
use std::env;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fs_err as fs;
use serde_json::{Value, json};

use super::super::connect::{Client, ConnectArgs};
use super::super::plan::files;
use super::super::print::{Tone, unless_reader_left};
use super::super::{Outcome, Session, read_marked};
use super::{paragraph, plans};

#[derive(clap::Args)]
pub(super) struct Answers {
    /// Ask nothing: write the paragraph, connect the installed clients, and import the plan if
    /// there is just one
    #[arg(long)]
    yes: bool,
    /// Ask nothing and write nothing but the board; so it is without a terminal
    #[arg(long, conflicts_with = "yes")]
    no_input: bool,
    /// The input has ended, which is a no to whatever follows.
    #[arg(skip)]
    ended: Cell<bool>,
}

impl Answers {
    /// Whether there is more to do than to make the board. A server's board has no project here.
    pub(super) fn are_wanted(&self, session: &Session) -> bool {
        let on_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        session.server.is_none() && (self.yes || on_terminal && !self.no_input && !session.json)
    }

    /// The answer to a question. An empty line means `usual`.
    fn to(&self, question: &str, usual: bool) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        let choices = if usual { "[Y/n]" } else { "[y/N]" };
        loop {
            let mut out = io::stdout().lock();
            unless_reader_left(write!(out, "{question} {choices} ").and_then(|()| out.flush()))?;
            let mut line = String::new();
            if self.ended.get() || io::stdin().lock().read_line(&mut line)? == 0 {
                self.ended.set(true);
                unless_reader_left(writeln!(out))?;
                return Ok(false);
            }
            match line.trim().to_lowercase().as_str() {
                "" => return Ok(usual),
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => {}
            }
        }
    }
}

/// What was done, for the reply.
#[derive(Default)]
struct Done {
    paragraphs: Vec<PathBuf>,
    plan: Option<(PathBuf, Value)>,
}

pub(super) fn run(session: &Session, answers: &Answers, reply: &Value, board: &str) -> Outcome {
    if !session.json {
        say(&format!(
            "The board is in {} ({}).",
            session.dir().display(),
            session.location.source
        ))?;
    }
    let root = session.project_root();
    let mut done = Done::default();
    for file in paragraph::files(&root) {
        done.paragraphs.extend(write_paragraph(answers, file, &paragraph::text(board))?);
    }
    let plan = import_plan(session, answers, &root)?;
    done.plan = plan;
    let connected = connect(session, answers)?;
    let mut told = reply.clone();
    told["paragraphs"] = done.paragraphs.iter().map(|path| path.to_string_lossy()).collect();
    if let Some((path, imported)) = &done.plan {
        told["plan"] = json!({"path": path.to_string_lossy(), "session": imported["session"]});
    }
    if let Some(connected) = &connected {
        told["connected"] = connected.clone();
    }
    session.show(&told, |page| {
        for path in &done.paragraphs {
            page.marked(
                "wrote",
                Tone::Good,
                format_args!("the paragraph on tasks to {}", path.display()),
            );
        }
        if let Some((path, _)) = &done.plan {
            page.marked("imported", Tone::Good, format_args!("{}", path.display()));
        } else {
            page.line(format_args!(
                "Next: {} makes the first task.",
                session.wording.command("add 'what is to be done'")
            ));
            session.name_imports(page);
        }
        if connected.is_none() {
            page.line(format_args!(
                "{} lets an agent use the board.",
                session.wording.command("connect CLIENT")
            ));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn say(text: &str) -> anyhow::Result<()> {
    Ok(unless_reader_left(writeln!(io::stdout().lock(), "{text}"))?)
}

/// Writes the paragraph into the file, if that is wanted and it is not there already.
fn write_paragraph(
    answers: &Answers,
    file: PathBuf,
    text: &str,
) -> anyhow::Result<Option<PathBuf>> {
    let is_there = file.exists();
    let before = if is_there { fs::read_to_string(&file)? } else { String::new() };
    let Some(after) = paragraph::put_into(&before, text) else { return Ok(None) };
    let verb = if is_there { "Add" } else { "Write" };
    if !answers.to(&format!("{verb} a paragraph on the board to {}?", file.display()), true)? {
        return Ok(None);
    }
    paragraph::write(&file, &after)?;
    Ok(Some(file))
}

/// Imports one of the plans that lie in the project. Of several, `--yes` chooses none, and it adds
/// none to a board that has one.
fn import_plan(
    session: &Session,
    answers: &Answers,
    root: &Path,
) -> anyhow::Result<Option<(PathBuf, Value)>> {
    let found = plans::found(root);
    if answers.yes && found.len() > 1 {
        return Ok(None);
    }
    if answers.yes
        && !found.is_empty()
        && session.call("get_status", json!({}))?.get("plan").is_some()
    {
        if !session.json {
            let import = session.wording.command("plan import FILE");
            say(&format!("The board has a plan already, so none was imported: {import} does it."))?;
        }
        return Ok(None);
    }
    for plan in found {
        let name = plan.path.strip_prefix(root).unwrap_or(&plan.path).display().to_string();
        let things = if plan.items == 1 { "thing" } else { "things" };
        if answers.to(&format!("Import {name} ({} {things} to do) as tasks?", plan.items), false)? {
            let path = plan.path.to_string_lossy();
            let query =
                json!({"text": read_marked(&path), "source": files::source(session, &path)});
            let reply = session.call("import_plan", query)?;
            return Ok(Some((plan.path, reply)));
        }
    }
    Ok(None)
}

/// Connects the clients that are installed, if that is wanted.
fn connect(session: &Session, answers: &Answers) -> anyhow::Result<Option<Value>> {
    let path = env::var_os("PATH");
    let all = <Client as clap::ValueEnum>::value_variants().iter().copied();
    let found: Vec<_> = all
        .filter(|client| client.is_installed(path.as_deref(), session.home.as_deref()))
        .collect();
    if found.is_empty() {
        return Ok(None);
    }
    let names: Vec<_> = found.iter().map(|client| client.title()).collect();
    if !answers.to(&format!("Connect {} to the board, with hooks?", names.join(", ")), true)? {
        return Ok(None);
    }
    let (report, failure) = session.connected(&ConnectArgs::to(found))?;
    if !session.json {
        say(&report.to_string())?;
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(Some(serde_json::to_value(report)?)),
    }
}
