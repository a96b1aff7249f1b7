use std::process::ExitCode;

use super::print::{Column, Page, Tone, headline};
use super::{Outcome, Session};
use crate::ops;
use crate::ops::get_agents::{Item, Params};
use crate::state::agent::Waiting;

pub(super) fn run(session: &Session) -> Outcome {
    let reply = session.every_page::<ops::GetAgents>("agents", &Params::default())?;
    let agents = &reply.agents;
    session.show(reply.json(), |page| {
        if agents.is_empty() {
            page.line("no agents");
            return;
        }
        let rows: Vec<_> = agents.iter().map(|item| row(page, item)).collect();
        page.table(
            ["id", "role", "presence", "task", "last heartbeat", "done", "failed"],
            rows.into_iter(),
        );
        for (agent, waiting) in
            agents.iter().filter_map(|item| Some((&item.agent, item.agent.waiting.as_ref()?)))
        {
            page.marked("waiting:", Tone::Busy, waits(page, agent.id.as_str(), waiting));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What `who` waits for a person for, since when and where.
pub(super) fn waits(page: &Page, who: &str, waiting: &Waiting) -> String {
    let what =
        waiting.what.as_ref().map(|what| format!(": {}", headline(what))).unwrap_or_default();
    let place = waiting.place.as_ref().map(|place| format!("; in {place}")).unwrap_or_default();
    format!(
        "{who} for {}, asked {}{what}{place}",
        waiting.reason.as_str(),
        page.when(waiting.since)
    )
}

fn row(page: &Page, item: &Item) -> [Column; 7] {
    let agent = &item.agent;
    let presence = match (item.present, item.quiet) {
        _ if agent.waiting.is_some() => Column::toned("waiting", Tone::Busy),
        (_, true) => Column::toned("quiet", Tone::Busy),
        (true, false) => Column::toned("present", Tone::Good),
        (false, false) => Column::toned("away", Tone::Over),
    };
    let tasks: Vec<_> = agent.current_tasks.iter().map(ToString::to_string).collect();
    [
        agent.id.as_str().into(),
        agent.role.as_str().into(),
        presence,
        tasks.join(", ").into(),
        page.when(agent.last_heartbeat).into(),
        agent.tasks_completed.into(),
        agent.tasks_failed.into(),
    ]
}
