//! Lines of `status` that are there only if something is out of the ordinary, and the details that
//! only `--all` shows.

use serde_json::Value;

use super::seen::Seen;
use crate::cli::print::{Page, Tone, headline, minutes_in_words, off_in_words, text};
use crate::cli::wording::Wording;
use crate::ui::first::Line;
use crate::user;
use crate::view::AgentRow;

fn note(word: &str, tone: Tone, rest: impl Into<String>) -> Line {
    vec![(tone, format!("{word} ")), (Tone::Plain, rest.into())]
}

fn each<'v>(json: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    json[field].as_array().into_iter().flatten()
}

pub(in crate::cli) fn all(page: &Page, seen: &Seen, wording: &Wording) -> Vec<Line> {
    let json = &seen.json;
    let mut notes = paused(page, seen, wording);
    if let Err(error) = user::load() {
        notes.push(note("settings:", Tone::Bad, error.to_string()));
    }
    notes.extend(clocks(json));
    notes.extend(
        each(json, "plan_files").map(|file| note("plan file:", Tone::Waiting, text(&file["says"]))),
    );
    notes.extend(graph(&json["graph"], wording));
    notes.extend(each(json, "rejected_edits").map(|name| {
        let name = text(name);
        let kept = format!("a hand edit, kept as {name}; the reason is in {name}.txt");
        note("rejected:", Tone::Bad, kept)
    }));
    if seen.board.counts.total == 0 {
        let [add, plan] = ["add TEXT", "plan import FILE"].map(|words| wording.command(words));
        notes.push(note("no tasks yet:", Tone::Waiting, format!("{add} adds one, {plan} a plan")));
    }
    notes
}

fn paused(page: &Page, seen: &Seen, wording: &Wording) -> Vec<Line> {
    let paused = seen.board.head.paused.iter().map(|pause| {
        let reason = pause.reason.as_deref().filter(|reason| !reason.is_empty());
        let rest = format!(
            "{}, since {}; {} allows claims again",
            reason.unwrap_or("no reason given"),
            page.clock(pause.at),
            wording.command("resume")
        );
        note("paused:", Tone::Busy, rest)
    });
    let is_paused = |row: &&AgentRow| row.paused.is_some() && row.stop_asked.is_none();
    let agents: Vec<_> = seen.board.agents.rows.iter().filter(is_paused).collect();
    let names: Vec<_> = agents.iter().map(|row| row.id.as_str()).collect();
    let by_name = (!names.is_empty()).then(|| {
        let resume = wording.command(&format!("resume {}", names.join(" ")));
        note("paused:", Tone::Busy, format!("{}; {resume} lets them claim again", names.join(", ")))
    });
    paused.chain(by_name).collect()
}

fn clocks(json: &Value) -> Vec<Line> {
    let own = json["clock_ahead_seconds"].as_i64();
    let own = own.map(|ahead| format!("the machine's is {}", off_in_words(ahead)));
    let others = each(json, "wrong_clocks").map(|one| {
        let ahead = one["clock_ahead_seconds"].as_i64().unwrap_or_default();
        format!("that of process {} is {}", text(&one["pid"]), off_in_words(ahead))
    });
    own.into_iter().chain(others).map(|said| note("clock:", Tone::Busy, said)).collect()
}

/// Faults of the dependencies.
fn graph(graph: &Value, wording: &Wording) -> Vec<Line> {
    let update = wording.command("edit TASK --no-depends");
    let cycles = each(graph, "cycles").map(|cycle| {
        note("cycle:", Tone::Bad, format!("{}; {update} frees one of them", text(cycle)))
    });
    let orphans = each(graph, "orphans").map(|orphan| {
        let (task, missing) = (text(&orphan["task"]), text(&orphan["missing"]));
        note("orphan:", Tone::Bad, format!("{task} names {missing}, which does not exist"))
    });
    cycles.chain(orphans).collect()
}

/// What else there is to know of a board.
pub(super) fn details(page: &mut Page, seen: &Seen) {
    let json = &seen.json;
    page.line("");
    for part in each(json, "parts") {
        let (path, title) = (text(&part["path"]), text(&part["title"]));
        let tone = serde_json::from_value(part["status"].clone()).map_or(Tone::Plain, Tone::of);
        let done = format!("{} % ({} of {})", part["percent"], part["done"], part["tasks"]);
        let rest = format_args!("{path} {}: {done}", headline(&title)).to_string();
        page.marked(&text(&part["status"]), tone, rest);
    }
    for plan in each(json, "plans") {
        let [name, version] = ["name", "version"].map(|field| text(&plan[field]));
        let (done, tasks) = (&plan["progress"]["done"], &plan["progress"]["tasks"]);
        page.line(format_args!("plan {name}: {done} of {tasks} done, version {version}"));
    }
    if let Some(remaining) = json.get("remaining") {
        let minutes = minutes_in_words(remaining["minutes"].as_u64().unwrap_or_default());
        page.line(format_args!("left: {minutes} in {} estimated tasks", remaining["tasks"]));
    }
    let agents = &json["agents"];
    page.line(format_args!(
        "agents: {} ({} leaders, {} workers), {} active in the last minute",
        agents["total"], agents["leaders"], agents["workers"], agents["active"]
    ));
    page.line(format_args!("discoveries: {}", json["discoveries_count"]));
    if let Some(last) = seen.board.head.last_activity {
        let last = page.when(last);
        page.line(format_args!("last activity: {last}"));
    }
}
