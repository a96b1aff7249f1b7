//! One event as one line: when, who, what happened to which task or agent.

use serde_json::Value;

use crate::cli::print::{Page, Tone, text};
use crate::state::agent::WaitReason;
use crate::state::event::{Event, NewTask, Recorded, TaskChange};
use crate::state::id::{AgentId, TaskId};
use crate::state::task::Place;

/// Most tasks that one line names.
const NAMED: usize = 5;

type Told = (&'static str, Tone, String);

pub(crate) fn write(page: &mut Page, event: &Value) {
    // A newer server may send kinds that this build does not know.
    let (word, tone, rest) = match serde_json::from_value::<Recorded>(event.clone()) {
        Ok(recorded) if !is_cut(event) => told(&recorded.event),
        _ => told_in_brief(event),
    };
    // Nobody acts when a lease expires.
    let actor = event["actor"].as_str().unwrap_or("-");
    page.entry(&format!("{} {actor}", clock(&text(&event["at"]))), word, tone, rest);
}

/// Whether lists in the event are shortened.
fn is_cut(event: &Value) -> bool {
    let counts = event["counts"].as_object();
    let told = |name: &String| event[name].as_array().map_or(0, Vec::len);
    counts.into_iter().flatten().any(|(name, count)| *count != told(name))
}

/// An event that the reply does not contain completely, as far as it does.
fn told_in_brief(event: &Value) -> Told {
    match event["kind"].as_str() {
        Some("imported") => {
            ("imported", Tone::Good, format!("the board from {}", text(&event["source"])))
        }
        Some("purged") => (
            "purged",
            Tone::Busy,
            format!("a text from {} events", event["events"].as_u64().unwrap_or_default()),
        ),
        Some("state_restored") => (
            "restored",
            Tone::Busy,
            format!("the board as it was after event {}", event["restored_seq"]),
        ),
        // Its text is for others.
        Some("message_sent") => {
            let message = &event["message"];
            let (kind, to) = (text(&message["kind"]), text(&message["to"]));
            ("wrote", Tone::Plain, format!("{kind} to {to}: (private)"))
        }
        _ => {
            let counts = event["counts"].as_object().into_iter().flatten();
            let counts: Vec<_> = counts.map(|(name, count)| format!("{count} {name}")).collect();
            (
                "event",
                Tone::Plain,
                format!("{} {}{}", text(&event["kind"]), text(&event["task"]), counts.join(", ")),
            )
        }
    }
}

/// A time to the second: `2026-03-01T12:00:00.000Z` as `2026-03-01 12:00:00Z`.
fn clock(time: &str) -> String {
    format!("{}Z", time.replace('T', " ").chars().take(19).collect::<String>())
}

fn told(event: &Event) -> Told {
    match event {
        Event::BoardCreated { .. } => ("made", Tone::Good, "the board".to_owned()),
        Event::StateRestored { restored_seq, .. } => {
            ("restored", Tone::Busy, format!("the board as it was after event {restored_seq}"))
        }
        Event::Purged { rows, .. } => {
            ("purged", Tone::Busy, format!("a text from {} events", rows.len()))
        }
        Event::Imported { source, .. } => {
            ("imported", Tone::Good, format!("the board from {source}"))
        }
        Event::PlanSet { goal, .. } => ("set", Tone::Plain, format!("the goal: {goal}")),
        Event::TasksCreated { tasks } => ("added", Tone::Waiting, added(tasks)),
        Event::TaskUpdated { task, change, .. } => {
            ("changed", Tone::Plain, format!("{task}{}", changed(change)))
        }
        Event::AgentRegistered { agent, role, .. } => {
            ("registered", Tone::Good, format!("{agent} as {}", role.as_str()))
        }
        Event::AgentWaits { agent, reason, what, place } => {
            ("waits", Tone::Busy, waiting(agent, *reason, what, place))
        }
        Event::AgentSeen { agent, waited: true, .. } => ("goes on", Tone::Good, agent.to_string()),
        Event::AgentSeen { agent, .. } => ("seen", Tone::Over, agent.to_string()),
        Event::Noted { task, note } => ("noted", Tone::Plain, about(task, note.as_deref())),
        Event::ParticipantJoined { participant } => {
            ("joined", Tone::Good, format!("process {}", participant.pid))
        }
        Event::ParticipantGone { participant, .. } => {
            ("gone", Tone::Over, format!("participant {participant}"))
        }
        Event::ClockStepped { gap_millis, .. } => {
            ("slept", Tone::Busy, format!("for {} s; every deadline moves", gap_millis / 1_000))
        }
        Event::Claimed { task, attempt, place, .. } => {
            ("claimed", Tone::Busy, format!("{task}, attempt {attempt}{}", at(place)))
        }
        Event::Started { task } => ("started", Tone::Busy, task.to_string()),
        Event::Completed { task, result, review: true, .. } => {
            ("to review", Tone::Busy, about(task, result.output.as_deref()))
        }
        Event::Completed { task, result, .. } => {
            ("completed", Tone::Good, about(task, result.output.as_deref()))
        }
        Event::Reviewed { task, approved: true, comment } => {
            ("approved", Tone::Good, about(task, comment.as_deref()))
        }
        Event::Reviewed { task, comment, .. } => {
            ("sent back", Tone::Bad, about(task, comment.as_deref()))
        }
        Event::LateResultKept { task, attempt, .. } => {
            ("kept", Tone::Over, format!("the late result of {task}, attempt {attempt}"))
        }
        Event::Failed { task, error, retry_at } => {
            let again = if retry_at.is_some() { "to be tried again: " } else { "" };
            ("failed", Tone::Bad, format!("{task}: {again}{}", error.message))
        }
        Event::Released { task, reason } => {
            ("released", Tone::Waiting, about(task, reason.as_deref()))
        }
        Event::LeaseExpired { task, attempt, gave_up, .. } => {
            let end = if *gave_up {
                "the last one: the task has failed"
            } else {
                "the task is available again"
            };
            ("expired", Tone::Bad, format!("{task}, attempt {attempt}; {end}"))
        }
        Event::StopRequested { task, reason, .. } => {
            ("asked to stop", Tone::Bad, about(task, reason.as_deref()))
        }
        Event::Cancelled { task, reason } => {
            ("cancelled", Tone::Over, about(task, reason.as_deref()))
        }
        Event::Retried { task } => ("made available", Tone::Waiting, task.to_string()),
        Event::DiscoveryAdded { content, .. } => ("discovered", Tone::Good, content.clone()),
        Event::MessageSent { message } => (
            "wrote",
            Tone::Plain,
            format!("{} to {}: {}", message.kind.as_str(), message.to, message.text),
        ),
        Event::MessagesRead { agent, messages } => {
            ("read", Tone::Over, format!("{agent}: {} messages", messages.len()))
        }
        Event::MessagesRetired { messages } => {
            ("retired", Tone::Over, format!("{} messages", messages.len()))
        }
        Event::StubsDropped { stubs } => {
            ("archived", Tone::Over, format!("{} tasks that retired long ago", stubs.len()))
        }
        Event::StubsRecalled { stubs } => {
            ("recalled", Tone::Over, format!("{} tasks that retired long ago", stubs.len()))
        }
        Event::AgentsRetired { agents } => {
            ("retired", Tone::Over, format!("{} agents", agents.len()))
        }
        Event::DiscoveriesRetired { discoveries } => {
            ("retired", Tone::Over, format!("{} discoveries", discoveries.len()))
        }
        Event::SessionsRetired { sessions } => {
            ("retired", Tone::Over, format!("{} sessions", sessions.len()))
        }
        Event::FilesReserved { reservation } => {
            let reason =
                reservation.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            ("reserved", Tone::Busy, format!("{}{reason}", reservation.files.join(", ")))
        }
        Event::FilesReleased { reservations, expired } => {
            let why = if *expired { " whose time is over" } else { "" };
            ("freed", Tone::Waiting, format!("{} reservations{why}", reservations.len()))
        }
        Event::Paused { reason } => {
            let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            ("paused", Tone::Busy, format!("all claims{reason}"))
        }
        Event::Resumed {} => ("resumed", Tone::Good, "claims are allowed".to_owned()),
        Event::StateEdited { goal, master_plan, tasks, .. } => {
            let fields = [("goal", goal.is_some()), ("master_plan", master_plan.is_some())];
            let fields =
                fields.into_iter().filter(|(_, is_new)| *is_new).map(|(name, _)| name.to_owned());
            let tasks =
                tasks.iter().take(NAMED).map(|one| format!("{}{}", one.task, changed(&one.change)));
            (
                "edited",
                Tone::Busy,
                format!(
                    "the state file by hand: {}",
                    fields.chain(tasks).collect::<Vec<_>>().join("; ")
                ),
            )
        }
        Event::PlanImported { plan, created, changed, removed, leaving, .. } => (
            "planned",
            Tone::Good,
            format!(
                "{} items, version {}: {} added, {} changed, {} removed",
                plan.items,
                plan.session(),
                created.len(),
                changed.len(),
                removed.len() + leaving.len()
            ),
        ),
        Event::RunCreated { run, .. } => {
            ("dispatched", Tone::Waiting, about(&run.id, Some(&run.description)))
        }
        Event::RunFailed { run_id, error } => {
            ("failed", Tone::Bad, about(run_id, Some(&error.message)))
        }
        Event::RunsAwaited { runs, .. } => {
            ("waiting", Tone::Waiting, format!("{} runs for a busy runner", runs.len()))
        }
        Event::ResultsAdded { run_id } => {
            ("told", Tone::Plain, format!("{run_id} of child runs that have ended"))
        }
        Event::RunnerSeen { agent, .. } => ("a runner", Tone::Good, agent.to_string()),
        Event::TasksReset { tasks } => ("reset", Tone::Busy, named(tasks.iter())),
        Event::TasksRetired { tasks, .. } => {
            ("retired", Tone::Over, named(tasks.iter().map(|task| &task.id)))
        }
        Event::WorkflowSaved(saved) => {
            let at = saved.checkpoint.as_ref().map(|(_, one)| {
                format!(
                    " {}: {} {}, {}",
                    one.number, one.state.phase, one.state.step, one.state.status
                )
            });
            ("saved", Tone::Plain, format!("workflow {}{}", saved.workflow, at.unwrap_or_default()))
        }
        Event::ArtifactAttached { task, artifact } => {
            ("attached", Tone::Plain, about(task, Some(&artifact.name)))
        }
        Event::CheckpointsDropped { checkpoints, workflow, expired } => {
            let of = workflow.as_ref().map(|id| format!(" and workflow {id}")).unwrap_or_default();
            let why = if *expired { ", too old" } else { "" };
            ("dropped", Tone::Over, format!("{} checkpoints{of}{why}", checkpoints.len()))
        }
    }
}

fn waiting(
    agent: &AgentId,
    reason: WaitReason,
    what: &Option<String>,
    place: &Option<String>,
) -> String {
    let what = what.as_ref().map(|what| format!(": {what}")).unwrap_or_default();
    let place = place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    format!("{agent} for {}{what}{place}", reason.as_str())
}

fn added(tasks: &[NewTask]) -> String {
    match tasks {
        [task] => about(&task.id, Some(task.title.as_ref().unwrap_or(&task.description))),
        tasks => named(tasks.iter().map(|task| &task.id)),
    }
}

fn about(task: &TaskId, what: Option<&str>) -> String {
    match what.filter(|what| !what.is_empty()) {
        Some(what) => format!("{task}: {what}"),
        None => task.to_string(),
    }
}

/// Names of the fields that were changed.
fn changed(change: &TaskChange) -> String {
    let fields = serde_json::to_value(change).unwrap_or_default();
    let names: Vec<_> =
        fields.as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect();
    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
}

fn at(place: &Place) -> String {
    place.branch.as_ref().map(|branch| format!(", on branch {branch}")).unwrap_or_default()
}

fn named<'a>(tasks: impl ExactSizeIterator<Item = &'a TaskId>) -> String {
    let count = tasks.len();
    let names: Vec<_> = tasks.take(NAMED).map(ToString::to_string).collect();
    let more = if count > NAMED { ", …" } else { "" };
    format!("{count} tasks: {}{more}", names.join(", "))
}
