//! `callboard snapshot`: states kept as files, to compare with and to go back to.

use std::num::NonZeroU32;
use std::process::ExitCode;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::print::{Column, Page, Tone, text};
use super::wording::Wording;
use super::{FAILED, Outcome, Session};
use crate::state::snapshot::{Listed, Occasion};
use crate::state::time::Timestamp;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Without it, the snapshots are listed
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Keep the present state as a snapshot
    Create(Create),
    /// List the snapshots, newest first
    List(List),
    /// Show the difference between two states
    Diff(Diff),
    /// Go back to an earlier state; the present one is kept first, and held tasks are released
    Restore(Restore),
    /// Check every snapshot against its hash and against the snapshot before it
    Verify,
}

#[derive(clap::Args)]
struct Create {
    /// What the snapshot is for
    #[arg(long)]
    label: Option<String>,
}

#[derive(clap::Args)]
struct List {
    /// List at most N, the newest
    #[arg(long, value_name = "N", value_parser = super::page_size())]
    limit: Option<NonZeroU32>,
}

#[derive(clap::Args)]
struct Diff {
    /// Name of a snapshot, or number of an event
    from: String,
    /// Name of a snapshot, or number of an event [default: the present]
    to: Option<String>,
    /// List at most N changes
    #[arg(long, value_name = "N", value_parser = super::page_size())]
    limit: Option<NonZeroU32>,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Restore {
    /// Name of a snapshot, or `latest` for the newest sound one
    snapshot: Option<String>,
    /// Go back to the state after event N, with or without a snapshot of it
    #[arg(long, value_name = "N")]
    seq: Option<u64>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    match arguments.command.unwrap_or(Command::List(List { limit: None })) {
        Command::Create(arguments) => create(session, &arguments),
        Command::List(arguments) => list(session, &arguments),
        Command::Diff(arguments) => diff(session, &arguments),
        Command::Restore(arguments) => restore(session, &arguments),
        Command::Verify => verify(session),
    }
}

fn create(session: &Session, arguments: &Create) -> Outcome {
    let reply = session.call("create_snapshot", json!({"label": arguments.label}))?;
    session.show(&reply, |page| page.line(text(&reply["snapshot"])))?;
    Ok(ExitCode::SUCCESS)
}

fn list(session: &Session, arguments: &List) -> Outcome {
    let reply = session.call("list_snapshots", json!({"limit": arguments.limit}))?;
    let snapshots: Vec<Listed> = serde_json::from_value(reply["snapshots"].clone())?;
    session.show(&reply, |page| {
        if snapshots.is_empty() {
            return page.line(format_args!(
                "no snapshots; {} takes one",
                session.wording.command("snapshot create")
            ));
        }
        let rows: Vec<_> = snapshots.iter().map(|one| row(page, one)).collect();
        page.table(["snapshot", "event", "taken", "kB", "why"], rows.into_iter());
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(page: &Page, one: &Listed) -> [Column; 5] {
    let Some(head) = &one.head else {
        let (taken, why) = (page.when(one.name.at()), Column::toned("damaged", Tone::Bad));
        return [one.name.to_string().into(), "?".into(), taken.into(), kilobytes(one.bytes), why];
    };
    let why = match (&head.label, head.occasion) {
        (Some(label), Occasion::OnDemand) => label.clone(),
        (_, occasion) => occasion.as_str().to_owned(),
    };
    let taken = page.when(head.taken_at).into();
    [one.name.to_string().into(), head.seq.into(), taken, kilobytes(one.bytes), why.into()]
}

fn kilobytes(bytes: u64) -> Column {
    bytes.div_ceil(1_000).into()
}

fn diff(session: &Session, arguments: &Diff) -> Outcome {
    let request = json!({"from": arguments.from, "to": arguments.to, "limit": arguments.limit});
    let reply = session.call("diff_snapshots", request)?;
    session.show(&reply, |page| {
        for change in reply["changes"].as_array().into_iter().flatten() {
            let (word, tone) = match change["kind"].as_str() {
                Some("added") => ("+", Tone::Good),
                Some("removed") => ("-", Tone::Bad),
                _ => ("~", Tone::Busy),
            };
            let fields = change["fields"]
                .as_array()
                .map_or_else(String::new, |_| format!(": {}", text(&change["fields"])));
            page.marked(
                word,
                tone,
                format_args!("{} {}{fields}", text(&change["table"]), text(&change["id"])),
            );
        }
        let counts = ["added", "removed", "changed"].map(|kind| format!("{} {kind}", reply[kind]));
        let (from, to) = (&reply["from_seq"], &reply["to_seq"]);
        page.line(format_args!("event {from} to event {to}: {}", counts.join(", ")));
        if !reply["next"].is_null() {
            page.line("there is more; --limit shows it");
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn restore(session: &Session, arguments: &Restore) -> Outcome {
    let reply = session
        .call("restore_snapshot", json!({"snapshot": arguments.snapshot, "seq": arguments.seq}))?;
    session.show(&reply, |page| tell_restored(page, &reply, &session.wording))?;
    Ok(ExitCode::SUCCESS)
}

/// Says what was done, and how to undo it.
pub(super) fn tell_restored(page: &mut Page, reply: &Value, wording: &Wording) {
    let (seq, before) = (&reply["restored_seq"], &reply["before_seq"]);
    page.line(format_args!(
        "the board is as it was after event {seq}; whoever held a task must claim again"
    ));
    let back = wording.line(&format!("snapshot restore --seq {before}"));
    page.line(format_args!("to take it back: {back}"));
}

fn verify(session: &Session) -> Outcome {
    let report = session.call("verify_snapshots", json!({}))?;
    let sound = report["sound"] == true;
    session.show(&report, |page| {
        for problem in report["problems"].as_array().into_iter().flatten() {
            page.marked(
                "fail",
                Tone::Bad,
                format_args!("{}: {}", text(&problem["file"]), text(&problem["problem"])),
            );
        }
        if let Some(root) = report["pruned_before"].as_str() {
            page.line(format_args!("what came before {root} was pruned"));
        }
        match (sound, report["newest_sound"].as_str()) {
            (true, _) => page.line(format_args!("{} snapshots, all sound", report["snapshots"])),
            (false, Some(newest)) => page.line(format_args!("the newest sound one is {newest}")),
            (false, None) => page.line(format_args!(
                "none is sound; {} takes a new one",
                session.wording.command("snapshot create")
            )),
        }
    })?;
    Ok(ExitCode::from(if sound { 0 } else { FAILED }))
}

/// What [`moment`] takes, for messages.
pub(super) const MOMENT: &str = "a time (2026-03-01T12:00, or 2026-03-01T12:00:00Z), a date \
                                 (2026-03-01), today, yesterday, or a span that ends now (30m, \
                                 2h, 3d)";

/// Parses a time in RFC 3339, one of this terminal's zone, or a span that ends now: `30m`, `2h`,
/// `3d`.
pub(super) fn moment(given: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(time) = serde_json::from_value(Value::from(given)) {
        return Some(time);
    }
    local(given, now, &TimeZone::system()).or_else(|| span(given, now))
}

/// A date, a date with a time, or a day by its name, all of `zone`.
fn local(given: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let today =
        || Some(zone.to_datetime(jiff::Timestamp::from_millisecond(now.millis()).ok()?).date());
    let at: DateTime = match given.to_lowercase().as_str() {
        "now" => return Some(now),
        "today" => today()?.into(),
        "yesterday" => today()?.yesterday().ok()?.into(),
        _ => given.parse().ok()?,
    };
    Some(Timestamp::from_millis(zone.to_timestamp(at).ok()?.as_millisecond()))
}

fn span(given: &str, now: Timestamp) -> Option<Timestamp> {
    let (digits, unit) = given.split_at_checked(given.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let span: i64 = digits.parse().ok().filter(|number| *number >= 0)?;
    Some(now - span.saturating_mul(seconds * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_as_people_say_it() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let time = |text: &str| serde_json::from_value::<Timestamp>(Value::from(text)).unwrap();
        let now = time("2026-11-27T23:30:00Z");
        for (given, expected) in [
            ("today", "2026-11-27T22:00:00Z"),
            ("Yesterday", "2026-11-26T22:00:00Z"),
            ("now", "2026-11-27T23:30:00Z"),
            ("2026-11-27", "2026-11-26T22:00:00Z"),
            ("2026-11-27T08:15", "2026-11-27T06:15:00Z"),
            ("2026-11-27 08:15:30", "2026-11-27T06:15:30Z"),
        ] {
            assert_eq!(local(given, now, &zone), Some(time(expected)), "{given}");
        }
        for given in ["", "tomorrow", "2026-13-01", "12", "2h"] {
            assert_eq!(local(given, now, &zone), None, "{given}");
        }
        assert_eq!(moment("2h", now), Some(time("2026-11-27T21:30:00Z")));
        assert_eq!(moment("2026-11-27T08:15:00Z", now), Some(time("2026-11-27T08:15:00Z")));
    }
}
