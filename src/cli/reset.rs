//! `callboard reset`: tasks begin anew, also those that are done.

use std::process::ExitCode;

use serde_json::json;

use super::print::text;
use super::target::{Hits, Target};
use super::{Declined, Outcome, Session};
use crate::state::task::{Named, TaskStatus};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard reset 12\n  \
    callboard reset P1.M2\n  \
    callboard reset all --held\n\n\
    Results go; a snapshot is kept before. On a terminal it asks first.")]
pub(super) struct Arguments {
    /// The task, with all tasks that are part of it; or a path, or `all`
    #[arg(required_unless_present = "scope", value_name = "TASK|PATH")]
    task: Option<String>,
    /// The same as PATH
    #[arg(long, value_name = "PATH", conflicts_with = "task", hide = true)]
    scope: Option<String>,
    /// Also reset tasks that agents hold now, which ends their attempts
    #[arg(long)]
    held: bool,
    /// Reset without asking
    #[arg(long, short)]
    yes: bool,
}

impl Arguments {
    /// Statuses of what begins anew.
    fn statuses(&self) -> Vec<TaskStatus> {
        let begins = |status: &TaskStatus| {
            *status != TaskStatus::Available && (self.held || !status.is_held())
        };
        TaskStatus::ALL.into_iter().filter(begins).collect()
    }
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let (mut hits, statuses) = (Hits::default(), arguments.statuses());
    let target = match (&arguments.task, &arguments.scope) {
        (Some(given), _) => session.target(given)?,
        (None, scope) => Target::Scope(scope.clone().unwrap_or_default()),
    };
    let query = match target {
        Target::Task(task) => {
            hits.extend(session.parts_or_itself(&task, &statuses)?);
            json!({"task_id": task.id, "held": arguments.held})
        }
        Target::Scope(scope) => {
            hits.extend(session.leaves(Some(&scope), &statuses)?);
            json!({"scope": scope, "held": arguments.held})
        }
    };
    if let [held] = hits.tasks.as_slice()
        && held.status.is_held()
        && !arguments.held
    {
        let (name, agent) = (Named::from(held), held.agent.as_ref());
        let by = agent.map(|agent| format!(" by {agent}")).unwrap_or_default();
        let why = format!("{name} is held{by}; --held resets it all the same");
        return Err(Declined(anyhow::anyhow!(why)).into());
    }
    if !hits.tasks.is_empty() && !arguments.yes {
        let given = arguments.task.as_deref().or(arguments.scope.as_deref());
        let held = arguments.held.then_some("--held");
        let words: Vec<_> = ["reset", given.unwrap_or("all")].into_iter().chain(held).collect();
        session.confirm("begin anew, without the results of", &words, &hits, false)?;
    }
    let reply = session.call("reset_tasks", query)?;
    session.show(&reply, |page| {
        let reset = reply["reset"].as_u64().unwrap_or_default();
        match reset {
            0 => page.line("nothing to begin anew"),
            1 => page.line("1 task begins anew"),
            many => page.line(format_args!("{many} tasks begin anew")),
        }
        if let Some(held) = reply["held"].as_u64().filter(|held| *held > 0) {
            page.line(format_args!("left alone: {held} held by agents; --held resets them, too"));
        }
        if let Some(retired) = reply["retired"].as_u64() {
            page.line(format_args!(
                "{retired} have retired and were left alone; {} what is to be done again",
                session.wording.command("add")
            ));
        }
        if reset > 0 {
            page.line(format_args!(
                "to take it back: {}",
                session.wording.line(&format!("snapshot restore {}", text(&reply["before"])))
            ));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
