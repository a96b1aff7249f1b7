//! What an event says, in a word and a line: what happened to which task or agent.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Tone;
use super::columns::cut;
use super::names::Names;
use crate::state::agent::WaitReason;
use crate::state::event::{Event, NewTask, Recorded, TaskChange};
use crate::state::id::{AgentId, ParticipantId, TaskId};
use crate::state::message::MessageKind;
use crate::state::task::Place;

/// Most tasks that one line names.
pub const NAMED: usize = 5;
/// Widest title in a line, in columns, and widest text of a field that was changed.
const TITLE: usize = 60;
/// Kinds of events that say nothing of the work.
const NOISE: [&str; 13] = [
    "agents_retired",
    "checkpoints_dropped",
    "discoveries_retired",
    "messages_read",
    "messages_retired",
    "participant_joined",
    "results_added",
    "runner_seen",
    "runs_awaited",
    "sessions_retired",
    "stubs_dropped",
    "stubs_recalled",
    "tasks_retired",
];

/// A word for what happened, and what it happened to.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub word: &'static str,
    pub tone: Tone,
    pub text: String,
}

type Said = (&'static str, Tone, String);

impl Names {
    /// What the event says. A newer server may send kinds that this build does not know.
    pub fn told(&self, event: &Value) -> Told {
        let (word, tone, text) = match Recorded::deserialize(event) {
            Ok(recorded) if !is_cut(event) => told(&recorded, self),
            _ => told_in_brief(event),
        };
        let text = without_actor(text, event["actor"].as_str());
        Told { word, tone, text }
    }
}

/// The text of an event without the name of whoever did it, which is said before it.
fn without_actor(text: String, actor: Option<&str>) -> String {
    let rest = actor.and_then(|actor| text.strip_prefix(actor));
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(' '));
    rest.map(|rest| rest.trim_start().to_owned()).unwrap_or(text)
}

/// Whether the event says nothing of the work: signs of life, and what the board does by itself.
pub fn is_noise(event: &Value, names: &Names) -> bool {
    match Recorded::deserialize(event).map(|recorded| recorded.event) {
        Ok(Event::AgentSeen { waited, .. }) => !waited,
        Ok(Event::Noted { note, .. }) => note.is_none(),
        Ok(Event::ParticipantGone { participant, .. }) => names.agents_of(&participant).is_empty(),
        Ok(other) => NOISE.contains(&other.kind()),
        Err(_) => false,
    }
}

/// Whether lists in the event are shortened.
fn is_cut(event: &Value) -> bool {
    let counts = event["counts"].as_object();
    let told = |name: &String| event[name].as_array().map_or(0, Vec::len);
    counts.into_iter().flatten().any(|(name, count)| *count != told(name))
}

/// An event that the reply does not contain completely, as far as it does.
fn told_in_brief(event: &Value) -> Said {
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
            let kind = MessageKind::deserialize(&message["kind"]).unwrap_or_default();
            wrote(kind, &text(&message["to"]), "(private)")
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

fn told(recorded: &Recorded, names: &Names) -> Said {
    match &recorded.event {
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
        Event::TasksCreated { tasks } => ("added", Tone::Waiting, added(tasks, names)),
        Event::TaskUpdated { task, change, .. } => {
            let old = names.before(recorded.seq);
            ("changed", Tone::Plain, format!("{}{}", named_task(task, names), changed(change, old)))
        }
        Event::AgentRegistered { agent, role, .. } => {
            ("registered", Tone::Good, format!("{agent} as {}", role.as_str()))
        }
        Event::AgentWaits { agent, reason, what, place } => {
            ("waits", Tone::Busy, waiting(agent, *reason, what, place))
        }
        Event::AgentSeen { agent, waited: true, .. } => ("goes on", Tone::Good, agent.to_string()),
        Event::AgentSeen { agent, .. } => ("was seen", Tone::Over, agent.to_string()),
        Event::Noted { task, note } => ("noted", Tone::Plain, about(task, names, note.as_deref())),
        Event::ParticipantJoined { participant } => {
            ("joined", Tone::Good, format!("process {}", participant.pid))
        }
        Event::ParticipantGone { participant, .. } => {
            ("gone", Tone::Over, gone(participant, names))
        }
        Event::ClockStepped { gap_millis, .. } => {
            let gap = gap_millis / 1_000;
            let what = format!("nobody acted here for {gap} s; every deadline moves");
            ("idle", Tone::Busy, what)
        }
        Event::Claimed { task, attempt, place, .. } => (
            "claimed",
            Tone::Busy,
            format!("{}, attempt {attempt}{}", named_task(task, names), at(place)),
        ),
        Event::Started { task } => ("started", Tone::Busy, named_task(task, names)),
        Event::Completed { task, result, review: true, .. } => {
            ("to review", Tone::Busy, about(task, names, result.output.as_deref()))
        }
        Event::Completed { task, result, .. } => {
            ("completed", Tone::Good, about(task, names, result.output.as_deref()))
        }
        Event::Reviewed { task, approved: true, comment } => {
            ("approved", Tone::Good, about(task, names, comment.as_deref()))
        }
        Event::Reviewed { task, comment, .. } => {
            ("sent back", Tone::Bad, about(task, names, comment.as_deref()))
        }
        Event::LateResultKept { task, attempt, .. } => (
            "kept",
            Tone::Over,
            format!("the late result of {}, attempt {attempt}", named_task(task, names)),
        ),
        Event::Failed { task, error, retry_at } => {
            let again = if retry_at.is_some() { "to be tried again: " } else { "" };
            ("failed", Tone::Bad, format!("{}: {again}{}", named_task(task, names), error.message))
        }
        Event::Released { task, reason } => {
            ("released", Tone::Waiting, about(task, names, reason.as_deref()))
        }
        Event::LeaseExpired { task, attempt, gave_up, .. } => {
            let end = if *gave_up {
                "the last one: the task has failed"
            } else {
                "the task is available again"
            };
            ("expired", Tone::Bad, format!("{}, attempt {attempt}; {end}", named_task(task, names)))
        }
        Event::StopRequested { task, reason, .. } => {
            ("asked to stop", Tone::Bad, about(task, names, reason.as_deref()))
        }
        Event::Cancelled { task, reason } => {
            ("cancelled", Tone::Over, about(task, names, reason.as_deref()))
        }
        Event::Retried { task } => ("made available", Tone::Waiting, named_task(task, names)),
        Event::DiscoveryAdded { content, .. } => ("discovered", Tone::Good, content.clone()),
        Event::MessageSent { message } => wrote(message.kind, &message.to, &message.text),
        Event::MessagesRead { agent, messages } => {
            ("read", Tone::Over, format!("{agent}: {} messages", messages.len()))
        }
        Event::MessagesRetired { messages } => {
            ("retired", Tone::Over, format!("{} messages", messages.len()))
        }
        Event::AgentsPaused { agents, reason, stop } => {
            let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let agents = agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let word = if *stop { "asked" } else { "paused" };
            let what = if *stop { " to stop" } else { "" };
            (word, Tone::Busy, format!("{agents}{what}{reason}"))
        }
        Event::AgentsResumed { agents } => {
            let agents = agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            ("resumed", Tone::Good, agents)
        }
        Event::TaskKept { task, agent, .. } => {
            ("assigned", Tone::Busy, format!("{} to {agent}", named_task(task, names)))
        }
        Event::TaskOpened { task } => {
            ("opened", Tone::Plain, format!("{} to all agents", named_task(task, names)))
        }
        Event::TasksNumbered {} => ("numbered", Tone::Plain, "all tasks".to_owned()),
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
            let count = match reservations.len() {
                1 => "one reservation".to_owned(),
                more => format!("{more} reservations"),
            };
            ("freed", Tone::Waiting, format!("{count}{why}"))
        }
        Event::Paused { reason } => {
            let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            ("paused", Tone::Busy, format!("all claims{reason}"))
        }
        Event::Resumed {} => ("resumed", Tone::Good, "claims are allowed".to_owned()),
        Event::StateEdited { goal, master_plan, tasks, .. }
        | Event::CommandUndone { goal, master_plan, tasks, .. } => {
            let reviews = match &recorded.event {
                Event::CommandUndone { reviews, .. } => reviews.as_slice(),
                _ => &[],
            };
            let reviews = reviews.iter().take(NAMED);
            let reviews =
                reviews.map(|id| format!("{} waits for review again", named_task(id, names)));
            let fields = [("goal", goal.is_some()), ("master_plan", master_plan.is_some())];
            let fields =
                fields.into_iter().filter(|(_, is_new)| *is_new).map(|(name, _)| name.to_owned());
            let tasks = tasks.iter().take(NAMED).map(|one| {
                format!("{}{}", named_task(&one.task, names), changed(&one.change, None))
            });
            let changes = fields.chain(tasks).chain(reviews).collect::<Vec<_>>().join("; ");
            match &recorded.event {
                Event::CommandUndone { first, last, .. } => {
                    let colon = if changes.is_empty() { "" } else { ": " };
                    let range = if first == last {
                        format!("{first}")
                    } else {
                        format!("{first} to {last}")
                    };
                    ("undid", Tone::Busy, format!("event {range}{colon}{changes}"))
                }
                _ => ("edited", Tone::Busy, format!("the state file by hand: {changes}")),
            }
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
            ("dispatched", Tone::Waiting, about(&run.id, names, Some(&run.description)))
        }
        Event::RunFailed { run_id, error } => {
            ("failed", Tone::Bad, about(run_id, names, Some(&error.message)))
        }
        Event::RunsAwaited { runs, .. } => {
            ("waiting", Tone::Waiting, format!("{} runs for a busy runner", runs.len()))
        }
        Event::ResultsAdded { run_id } => {
            ("told", Tone::Plain, format!("{run_id} of child runs that have ended"))
        }
        Event::RunnerSeen { agent, .. } => ("a runner", Tone::Good, agent.to_string()),
        Event::TasksReset { tasks } => ("reset", Tone::Busy, named(tasks.iter(), names)),
        Event::TasksRetired { tasks, .. } => {
            ("retired", Tone::Over, named(tasks.iter().map(|task| &task.id), names))
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
            ("attached", Tone::Plain, about(task, names, Some(&artifact.name)))
        }
        Event::CheckpointsDropped { checkpoints, workflow, expired } => {
            let of = workflow.as_ref().map(|id| format!(" and workflow {id}")).unwrap_or_default();
            let why = if *expired { ", too old" } else { "" };
            ("dropped", Tone::Over, format!("{} checkpoints{of}{why}", checkpoints.len()))
        }
    }
}

fn wrote(kind: MessageKind, to: &str, text: &str) -> Said {
    let word = match kind {
        MessageKind::Inform => "wrote to",
        MessageKind::Request => "asked",
        MessageKind::Reply => "answered",
    };
    (word, Tone::Plain, format!("{to}: {text}"))
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

fn added(tasks: &[NewTask], names: &Names) -> String {
    match tasks {
        [task] => named_task(&task.id, names),
        tasks => named(tasks.iter().map(|task| &task.id), names),
    }
}

/// The task's id, and its title if that is known.
fn named_task(task: &TaskId, names: &Names) -> String {
    let name = names.number(task).map_or_else(|| task.to_string(), |number| format!("#{number}"));
    match names.title(task).filter(|title| *title != task.as_str()) {
        Some(title) => format!("{name} \"{}\"", cut(title, TITLE)),
        None => name,
    }
}

fn about(task: &TaskId, names: &Names, what: Option<&str>) -> String {
    let task = named_task(task, names);
    match what.filter(|what| !what.is_empty()) {
        Some(what) => format!("{task}: {what}"),
        None => task,
    }
}

/// The agents that acted through a process that went.
fn gone(participant: &ParticipantId, names: &Names) -> String {
    match names.agents_of(participant) {
        [] => format!("participant {participant}"),
        agents => format!("{}: the process has ended", listed(agents)),
    }
}

/// The fields that were changed, and from what to what.
fn changed(change: &TaskChange, before: Option<&Map<String, Value>>) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(change) else { return String::new() };
    let told = fields.iter().map(|(name, new)| {
        let old = before.and_then(|before| before.get(name));
        match (name.as_str(), old) {
            // They may be as long as a page.
            ("description" | "context" | "demands", _) => name.clone(),
            (_, None) => format!("{name} → {}", value(new)),
            (_, Some(old)) => format!("{name} {} → {}", value(old), value(new)),
        }
    });
    let told: Vec<_> = told.collect();
    if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) }
}

fn value(value: &Value) -> String {
    match cut(&text(value), TITLE) {
        empty if empty.is_empty() => "none".to_owned(),
        text => text,
    }
}

fn at(place: &Place) -> String {
    place.branch.as_ref().map(|branch| format!(", on branch {branch}")).unwrap_or_default()
}

fn named<'a>(tasks: impl ExactSizeIterator<Item = &'a TaskId>, names: &Names) -> String {
    let count = tasks.len();
    let told: Vec<_> = tasks.take(NAMED).map(|task| named_task(task, names)).collect();
    let more = if count > NAMED { ", …" } else { "" };
    format!("{count} tasks: {}{more}", told.join(", "))
}

/// Values in one line.
pub(crate) fn listed<T: fmt::Display>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

/// A value of a reply as text: a string without its quotes; empty if it is null.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_did_it_is_said_once() {
        for (text, expected) in [
            ("eve for permission: ls", "for permission: ls"),
            ("eve", ""),
            ("evening is near", "evening is near"),
            ("#6 eve", "#6 eve"),
        ] {
            assert_eq!(without_actor(text.to_owned(), Some("eve")), expected, "{text}");
            assert_eq!(without_actor(text.to_owned(), None), text);
        }
    }
}
