//! `callboard uninstall`: takes out of the project what callboard wrote into it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fs_err as fs;
use serde_json::json;

use super::connect::{ConnectArgs, Part, Status};
use super::init::paragraph;
use super::print::Tone;
use super::{Outcome, Session, guard};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only say what would be taken out
    #[arg(long, short = 'n')]
    dry_run: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let is_dry = arguments.dry_run;
    let clients = ConnectArgs { remove: true, dry_run: is_dry, ..ConnectArgs::to(Vec::new()) };
    let (report, failure) = session.connected(&clients)?;
    let taken = report.files.iter().filter(|one| one.status == Status::Removed);
    let mut taken: Vec<(String, PathBuf)> = taken
        .map(|one| {
            let part = if one.part == Part::Server { "server" } else { "hooks" };
            (format!("the {part} of {}", one.client.title()), one.path.clone())
        })
        .collect();
    for path in paragraph::files(&session.project_root()) {
        if take_paragraph(&path, is_dry)? {
            taken.push(("the paragraph on tasks".to_owned(), path));
        }
    }
    if let Some(path) = guard::own_hook(&session.cwd) {
        if !is_dry {
            fs::remove_file(&path)?;
        }
        taken.push(("the git hook".to_owned(), path));
    }
    let listed = taken
        .iter()
        .map(|(what, path)| json!({"what": what, "path": path.to_string_lossy()}))
        .collect::<Vec<_>>();
    let reply =
        json!({"dry_run": is_dry, "removed": listed, "board": session.dir().to_string_lossy()});
    session.show(&reply, |page| {
        let word = if is_dry { "would take out" } else { "took out" };
        for (what, path) in &taken {
            page.marked(word, Tone::Good, format_args!("{what}: {}", path.display()));
        }
        if taken.is_empty() {
            page.line("nothing of callboard is in this project's files");
        }
        if session.has_board() {
            page.line(format_args!(
                "The board stays in {}: {} keeps it as a file, and removing the directory ends it \
                 once its processes have ended.",
                session.dir().display(),
                session.wording.command("backup FILE"),
            ));
        }
        page.line("`cargo uninstall callboard` removes the program.");
    })?;
    match failure {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Takes the paragraph out of a file, which goes if it holds nothing else.
fn take_paragraph(path: &Path, is_dry: bool) -> anyhow::Result<bool> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(false) };
    let Some(rest) = paragraph::take_from(&text) else { return Ok(false) };
    match rest.is_empty() {
        _ if is_dry => {}
        // A link stays, and so does what it leads to.
        true if !path.is_symlink() => fs::remove_file(path)?,
        _ => paragraph::write(path, &rest)?,
    }
    Ok(true)
}
