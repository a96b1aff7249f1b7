//! `callboard diff`: what git says of the work on a task, by the commit, branch or files that were
//! recorded.

use std::process::ExitCode;

use serde_json::json;

use super::print::{Page, Tone};
use super::{Declined, Outcome, Session};
use crate::git::change::{Change, Work};
use crate::ops::{self, get_task};
use crate::state::task::Named;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard diff 12\n  \
    callboard diff 12 | less")]
pub(super) struct Arguments {
    /// The task
    task: String,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let task = session.task(&arguments.task)?;
    let query = get_task::Params { task_id: task.id.to_string(), ..Default::default() };
    let reply = session.ask::<ops::GetTask>(&query)?.reply.task;
    let last = reply.attempts.last().map(|attempt| &**attempt);
    let work = Work::of(&reply.task, last);
    let root = work.root(&session.project_root());
    let Some(change) = work.change(&root) else {
        return Err(Declined(anyhow::anyhow!("{task}: {}", work.why_nothing(&root))).into());
    };
    let (what, text) = (&change.what, &change.text);
    let told = json!({
        "task_id": task.id, "worktree": root, "branch": work.branch, "commit": work.commit,
        "files": work.files, "what": what, "diff": text,
    });
    session.show(&told, |page| write(page, &task, &change))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn write(page: &mut Page, task: &Named, change: &Change) {
    page.marked("diff of", Tone::Plain, format_args!("{task}: {}", change.what));
    if change.text.is_empty() {
        return page.line("nothing is changed");
    }
    page.line(change.text.trim_end());
}
