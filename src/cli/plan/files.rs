//! Files of plans: how a board knows them, in whichever worktree they lie.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::Session;
use crate::cli::print::text;

/// The file as the board knows it: its path in the project, else the whole path. `None` for
/// standard input.
pub(crate) fn source(session: &Session, file: &str) -> Option<String> {
    if file == "-" {
        return None;
    }
    let inside = session.project_paths(&[file.to_owned()]).pop().filter(|inside| {
        let is_inside = Path::new(inside).is_relative() && !inside.starts_with("..");
        is_inside && session.is_in_project(inside)
    });
    inside.or_else(|| Some(fs::canonicalize(file).ok()?.to_string_lossy().into_owned()))
}

/// Files of plans that are not there any more. A file that another machine has is not looked for.
pub(crate) fn gone(session: &Session) -> anyhow::Result<Vec<String>> {
    if session.server.is_some() || !session.found_board {
        return Ok(Vec::new());
    }
    let plans = session.call("list_plans", json!({}))?;
    let files = plans["plans"].as_array().into_iter().flatten().map(|plan| text(&plan["file"]));
    Ok(files.filter(|file| !file.is_empty() && !session.is_in_project(file)).collect())
}

/// Rows of `plan list`.
pub(crate) fn row(session: &Session, plan: &Value) -> [String; 5] {
    let file = text(&plan["file"]);
    let lost = !file.is_empty() && session.server.is_none() && !session.is_in_project(&file);
    let file = if lost { format!("{file} (gone)") } else { file };
    let of = |field: &str| plan["progress"][field].to_string();
    let done = format!("{}/{} ({}%)", of("done"), of("tasks"), of("percent"));
    [text(&plan["name"]), file, plan["items"].to_string(), done, text(&plan["version"])]
}
