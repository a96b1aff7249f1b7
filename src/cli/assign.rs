use std::process::ExitCode;

use super::{Declined, Outcome, Session};
use crate::ops;
use crate::ops::assign_task::Params;
use crate::state::guard::HUMAN;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard assign 12 bob\n  \
    callboard assign P1.M2.T3 bob --minutes 120\n  \
    callboard assign 12\n\n\
    The agent gets the task with its next claim. Nobody else does until the minutes are over.")]
pub(super) struct Arguments {
    /// The task
    task: String,
    /// The agent that it is for; without, it is open to all again
    #[arg(value_name = "AGENT")]
    to: Option<String>,
    /// Minutes for which it is kept for the agent [default: 30]
    #[arg(long, value_name = "N", requires = "to")]
    minutes: Option<u32>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { task, to, minutes } = arguments;
    let task = session.task(&task)?;
    let line = format!("assign {}", task.short());
    let to = to.map(|to| session.agent_named(&to, &line)).transpose()?;
    if to.as_deref() == Some(HUMAN) {
        let claim = session.wording.command(&format!("claim {}", task.short()));
        let why = format!("a task is assigned to an agent; to do it yourself, claim it: {claim}");
        return Err(Declined(anyhow::anyhow!(why)).into());
    }
    let params = Params { task_id: task.id.to_string(), to, minutes, ..Default::default() };
    let reply = session.ask::<ops::AssignTask>(&params)?;
    session.show(reply.json(), |page| {
        let Some(kept) = &reply.kept_for else {
            return page.line(format_args!("open to all: {task}"));
        };
        let until = page.when(kept.until);
        let blocked = if reply.ready { "" } else { "; it is not ready yet" };
        page.line(format_args!("{task} is kept for {}, which ends {until}{blocked}", kept.agent));
    })?;
    Ok(ExitCode::SUCCESS)
}
