//! The report of a run, for people and for programs.

use crate::clock::{Clock, SystemClock};
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::figure::{Figure, Unit};
use super::goals::{Better, Goal, against_peers, goals};
use super::machine::{self, Machine};
use super::{Bench, plot};
use crate::cli::print::{Column, Page, Tone};

/// Version of the JSON format.
const FORMAT: u32 = 1;

pub(super) struct Report {
    machine: Machine,
    load_before: Option<[f64; 3]>,
    load_after: Option<[f64; 3]>,
    pub goals: Vec<Goal>,
    /// Goals against other queues that were asked for but not measured.
    pub not_measured: Vec<String>,
    are_peers_missing: bool,
    /// Why there are fewer rounds than were asked for.
    pub failure: Option<anyhow::Error>,
}

impl Report {
    pub(super) fn of(
        bench: &Bench,
        load_before: Option<[f64; 3]>,
        failure: Option<anyhow::Error>,
    ) -> Self {
        let (beside_peers, not_measured) = against_peers(bench);
        let are_peers_missing = beside_peers.is_empty() && !not_measured.is_empty();
        Self {
            machine: Machine::at(bench.place.path()),
            load_before,
            load_after: machine::load(),
            goals: goals(bench).into_iter().chain(beside_peers).collect(),
            not_measured,
            are_peers_missing,
            failure,
        }
    }

    /// Whether there are goals for what was asked for, and all are met.
    pub(super) fn passes(&self) -> bool {
        !self.goals.is_empty() && !self.are_peers_missing && self.goals.iter().all(Goal::is_met)
    }

    pub(super) fn value(&self, bench: &Bench) -> Value {
        json!({
            "format": FORMAT,
            "callboard": env!("CARGO_PKG_VERSION"),
            "optimised": !cfg!(debug_assertions),
            "machine": self.machine,
            "load_before": self.load_before,
            "load_after": self.load_after,
            "rounds": bench.size.rounds,
            "failure": self.failure.as_ref().map(|error| format!("{error:#}")),
            "figures": bench.figures.list().iter().map(Figure::value).collect::<Vec<_>>(),
            "refusals": bench.refusals,
            "goals": self.goals,
            "not_measured": self.not_measured,
            "peers": bench.found,
        })
    }

    pub(super) fn page(&self, bench: &Bench, coloured: bool) -> Page {
        let mut page = Page::new(coloured, SystemClock.wall());
        let machine = &self.machine;
        let memory = machine.memory_gib.map(|size| format!(", {size} GiB")).unwrap_or_default();
        let cpu = machine.cpu.as_deref().unwrap_or("processor unknown");
        page.line(format_args!(
            "{} × {cpu}{memory}; {}; {}",
            machine.cpus, machine.kernel, machine.file_system
        ));
        if let (Some([before, ..]), Some([after, ..])) = (self.load_before, self.load_after) {
            page.line(format_args!(
                "load average {before} before, {after} after; {} rounds",
                bench.size.rounds
            ));
        }
        if let Some(failure) = &self.failure {
            page.marked("broken off:", Tone::Bad, format_args!("{failure:#}"));
        }
        if cfg!(debug_assertions) {
            page.line("This program was built without optimisation: do not quote its figures.");
        }
        let mut parts: Vec<_> = bench.figures.list().iter().map(|figure| figure.key.part).collect();
        let mut seen = BTreeSet::new();
        parts.retain(|part| seen.insert(*part));
        for part in parts {
            page.line("");
            let rows = bench.figures.list().iter().filter(|figure| figure.key.part == part);
            page.table(
                [part, "tasks", "clients", "median", "p99", "rounds", "unit"],
                rows.map(row),
            );
        }
        for refusal in &bench.refusals {
            let clients = refusal.key.clients.unwrap_or_default();
            let what = format_args!("{}, {clients} clients: {}", refusal.key.name, refusal.said);
            page.marked("refused:", Tone::Bad, what);
        }
        let curves = plot::curves(&bench.figures);
        if !curves.is_empty() {
            page.line("");
            page.line(plot::bars(&curves).trim_end());
        }
        if !self.goals.is_empty() {
            page.line("");
            page.table(
                ["goal", "found", "", "limit", "aim", "verdict"],
                self.goals.iter().map(goal_row),
            );
        }
        if !bench.found.is_empty() {
            page.line("");
        }
        for peer in &bench.found {
            match (&peer.version, &peer.missing) {
                (Some(_), Some(reason)) => {
                    page.marked("failed:", Tone::Bad, format_args!("{}: {reason}", peer.name))
                }
                (None, Some(reason)) => page.marked(
                    "not measured:",
                    Tone::Waiting,
                    format_args!("{}: {reason}", peer.name),
                ),
                (version, None) => page.field(peer.name, version.as_deref().unwrap_or("unknown")),
            }
        }
        page
    }
}

fn row(figure: &Figure) -> [Column; 7] {
    let count = |number: Option<usize>| number.map(grouped).unwrap_or_default();
    let shown =
        |number: Option<f64>| number.map(|number| in_unit(number, figure.unit)).unwrap_or_default();
    let spread = figure
        .spread()
        .map(|(low, high)| [low, high].map(|one| in_unit(one, figure.unit)).join(" … "));
    // One value per round has no 99th percentile.
    let p99 = figure.quantile(99).filter(|_| figure.unit == Unit::Micros);
    let unit = match figure.unit {
        Unit::Micros => "µs",
        Unit::PerSecond => "a second",
        Unit::Bytes => "bytes",
        Unit::Calls => "calls",
        Unit::Share => "×",
    };
    [
        Column::from(figure.key.name),
        Column::from(count(figure.key.tasks)),
        Column::from(count(figure.key.clients)),
        Column::from(shown(figure.quantile(50))),
        Column::from(shown(p99)),
        Column::from(spread.unwrap_or_default()),
        Column::from(unit),
    ]
}

fn goal_row(goal: &Goal) -> [Column; 6] {
    let verdict = match (goal.is_met(), goal.reaches_aim()) {
        (_, true) => Column::toned("reached", Tone::Good),
        (true, false) => Column::toned("enough", Tone::Busy),
        (false, _) => Column::toned("missed", Tone::Bad),
    };
    let sign = if goal.better == Better::Less { "≤" } else { "≥" };
    [
        Column::from(&goal.what),
        Column::from(short(goal.found)),
        Column::from(goal.unit),
        Column::from(format!("{sign} {}", short(goal.least))),
        Column::from(goal.aim.map(short).unwrap_or_default()),
        verdict,
    ]
}

fn in_unit(number: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes | Unit::PerSecond | Unit::Calls => grouped(number.max(0.0).round() as usize),
        Unit::Micros | Unit::Share => short(number),
    }
}

/// The number with three significant digits, or with all digits before the point.
fn short(number: f64) -> String {
    match number.abs() {
        size if size < 10.0 => format!("{number:.2}"),
        size if size < 100.0 => format!("{number:.1}"),
        _ if number < 0.0 => format!("-{}", grouped(number.abs().round() as usize)),
        _ => grouped(number.round() as usize),
    }
}

/// The number with separators: `1234567` as `1,234,567`.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_in_groups() {
        for (number, text) in [
            (0.4567, "0.46"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234_567.8, "1,234,568"),
            (-1_234.0, "-1,234"),
        ] {
            assert_eq!(short(number), text);
        }
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12), "12");
    }
}
