//! Performance goals, each a comparison of figures from the same run.

use serde::Serialize;

use super::figure::Key;
use super::{Bench, commit, doors, engine, others, startup, waiting};

/// Longest time for a claim in the engine, in microseconds.
const DECIDED: f64 = 2.0;
/// Longest time that HTTP may add to a call, in microseconds.
const OVER_HTTP: f64 = 1_000.0;

#[derive(Debug, Serialize)]
pub(super) struct Goal {
    pub what: String,
    pub found: f64,
    pub unit: &'static str,
    /// Bound that the figure must keep.
    pub least: f64,
    /// A stricter bound to aim for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aim: Option<f64>,
    pub better: Better,
    met: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Better {
    Less,
    More,
}

impl Goal {
    fn at_most(
        what: impl Into<String>,
        found: Option<f64>,
        unit: &'static str,
        most: f64,
    ) -> Option<Self> {
        let found = found?;
        let what = what.into();
        Some(Self {
            what,
            found,
            unit,
            least: most,
            aim: None,
            better: Better::Less,
            met: found <= most,
        })
    }

    fn at_least(what: impl Into<String>, found: Option<f64>, least: f64, aim: f64) -> Option<Self> {
        let found = found?;
        let (what, unit, better) = (what.into(), "×", Better::More);
        Some(Self { what, found, unit, least, aim: Some(aim), better, met: found >= least })
    }

    pub(super) fn is_met(&self) -> bool {
        self.met
    }

    pub(super) fn reaches_aim(&self) -> bool {
        self.met && self.aim.is_none_or(|aim| self.found >= aim)
    }
}

/// The goals whose figures were measured, without those that compare other queues.
pub(super) fn goals(bench: &Bench) -> Vec<Goal> {
    let Bench { figures, size, .. } = bench;
    let median = |key| figures.median(key);
    let ratio = |one, other| Some(median(one)? / median(other)?);
    let claim = |tasks| commit::CLAIM.tasks(tasks).clients(1);
    let mut goals = Vec::new();
    for &tasks in &size.tasks {
        let found = ratio(claim(tasks), commit::SQLITE.tasks(tasks).clients(1));
        goals.push(Goal::at_most(
            format!("a durable claim at {tasks} tasks, of one SQLite FULL commit"),
            found,
            "×",
            1.6,
        ));
    }
    for &tasks in &size.tasks {
        let found = ratio(
            commit::SAVE.tasks(tasks).clients(1),
            commit::SQLITE_SAVES.tasks(tasks).clients(1),
        );
        goals.push(Goal::at_most(
            format!("save_checkpoint at {tasks} tasks, of one SQLite FULL commit"),
            found,
            "×",
            2.0,
        ));
    }
    if let (Some(&small), Some(&large)) = (size.tasks.first(), size.tasks.last()) {
        let found = ratio(claim(large), claim(small));
        goals.push(Goal::at_most(
            format!("a durable claim at {large} tasks, of one at {small}"),
            found,
            "×",
            1.5,
        ));
    }
    let planned =
        ratio(commit::PLANNED.tasks(commit::SMALL_BOARD).clients(1), claim(commit::SMALL_BOARD));
    goals.push(Goal::at_most(
        "a durable claim beside a master plan of 200 kB, of one without",
        planned,
        "×",
        1.2,
    ));
    let over_stdio = Key::new(doors::PART, doors::STDIO_CLAIM).tasks(size.work).clients(1);
    let allowed = median(claim(size.work)).map(|inside| 2.0 * inside + 100.0);
    let found = median(over_stdio).zip(allowed).map(|(found, allowed)| found / allowed);
    goals.push(Goal::at_most(
        "a claim over stdio, of twice the one in process and 100 µs",
        found,
        "×",
        1.0,
    ));
    for &tasks in &size.tasks {
        let rate = |callers| commit::RATE.tasks(tasks).clients(callers);
        if tasks == 1_000 {
            goals.push(Goal::at_least(
                "64 callers in one process at 1000 tasks, of one",
                ratio(rate(64), rate(1)),
                8.0,
                10.0,
            ));
        }
        // A small file is written whole, for those who read it.
        let has_slots = tasks >= 1_000;
        let written = median(commit::WRITTEN.tasks(tasks)).filter(|_| has_slots);
        goals.push(Goal::at_most(
            format!("written by an operation at {tasks} tasks"),
            written,
            "bytes",
            8_192.0,
        ));
    }
    let eight = |key: Key| key.tasks(size.work).clients(8);
    let found = ratio(eight(doors::TOGETHER), eight(doors::ALONE));
    goals.push(Goal::at_least(
        "8 processes on one directory, of 8 callers in one process",
        found,
        0.3,
        0.6,
    ));
    goals.push(Goal::at_least(
        "the slowest of 8 processes, of their mean",
        median(eight(doors::SLOWEST)),
        0.5,
        0.5,
    ));
    for &tasks in &size.engine {
        for key in [engine::CLAIM, engine::RARE] {
            let what = format!("a {} in the engine at {tasks} tasks", key.name);
            goals.push(Goal::at_most(what, median(key.tasks(tasks)), "µs", DECIDED));
        }
    }
    let start = startup::START.tasks(size.started);
    let millis = median(start).map(|micros| micros / 1_000.0);
    goals.push(Goal::at_most(
        format!("start to first reply at {} tasks", size.started),
        millis,
        "ms",
        400.0,
    ));
    // The file has no padding, so reading it is fast; the other work of a start is in the ratio, too.
    let found = ratio(start, startup::PARSE.tasks(size.started));
    goals.push(Goal::at_most(
        "start to first reply, of serde_json reading the file",
        found,
        "×",
        4.0,
    ));
    goals.push(Goal::at_most(
        "memory for a task",
        median(startup::MEMORY.tasks(size.started)),
        "bytes",
        2_048.0,
    ));
    for key in waiting::added() {
        goals.push(Goal::at_most(format!("added {}", key.name), median(key), "µs", OVER_HTTP));
    }
    goals.into_iter().flatten().collect()
}

/// Number of clients, the other queue, the least ratio of our throughput to its, and the ratio to
/// aim for.
const COMPARED: [(usize, &str, f64, f64); 5] = [
    (64, others::POSTGRES, 2.0, 3.0),
    (64, others::BEANSTALKD, 1.0, 1.3),
    (64, others::NATS, 1.3, 1.8),
    (64, others::REDIS, 0.45, 0.6),
    (8, others::POSTGRES, 1.0, 1.2),
];

/// The goals that compare other queues, and the comparisons that could not be made.
pub(super) fn against_peers(bench: &Bench) -> (Vec<Goal>, Vec<String>) {
    let Bench { figures, size, found, .. } = bench;
    let (mut goals, mut missing) = (Vec::new(), Vec::new());
    if found.is_empty() {
        return (goals, missing);
    }
    for (clients, name, least, aim) in COMPARED {
        let key = |part, name| Key::new(part, name).tasks(size.work).clients(clients);
        // A queue that failed has other rounds than ours.
        let is_whole = found.iter().any(|peer| peer.name == name && peer.missing.is_none());
        let theirs = figures.median(key(others::PART, name)).filter(|_| is_whole);
        let found = figures
            .median(key(doors::PART, doors::JSON_RPC))
            .zip(theirs)
            .map(|(ours, theirs)| ours / theirs);
        let what = format!("{} with {clients} clients, of {name}", doors::JSON_RPC);
        match Goal::at_least(&what, found, least, aim) {
            Some(goal) => goals.push(goal),
            None => missing.push(what),
        }
    }
    (goals, missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bench::figure::Unit;
    use crate::cli::bench::others::Found;
    use crate::cli::bench::report::Report;

    #[test]
    fn less_and_more_are_judged_each_its_way() {
        let verdicts = |goal: Option<Goal>| goal.map(|goal| (goal.is_met(), goal.reaches_aim()));
        assert_eq!(verdicts(Goal::at_most("cost", Some(1.5), "×", 1.6)), Some((true, true)));
        assert_eq!(verdicts(Goal::at_most("cost", Some(1.7), "×", 1.6)), Some((false, false)));
        assert_eq!(verdicts(Goal::at_least("gain", Some(9.0), 8.0, 10.0)), Some((true, false)));
        assert_eq!(verdicts(Goal::at_least("gain", Some(10.0), 8.0, 10.0)), Some((true, true)));
        assert_eq!(verdicts(Goal::at_least("gain", Some(7.9), 8.0, 10.0)), Some((false, false)));
        assert_eq!(verdicts(Goal::at_least("gain", None, 8.0, 10.0)), None);
    }

    #[test]
    fn queue_that_failed_is_not_compared_and_none_at_all_is_no_success() {
        let mut bench = Bench::small();
        let key = |part, name| Key::new(part, name).tasks(bench.size.work).clients(8);
        for (key, rate) in
            [(key(doors::PART, doors::JSON_RPC), 9.0), (key(others::PART, others::POSTGRES), 3.0)]
        {
            bench.figures.value(key, Unit::PerSecond, rate);
        }
        bench.found.push(Found {
            name: others::POSTGRES,
            version: Some("15".to_owned()),
            missing: None,
        });
        let passes = |bench: &Bench| Report::of(bench, None, None).passes();
        let (goals, missing) = against_peers(&bench);
        assert_eq!((goals.len(), goals[0].found, missing.len()), (1, 3.0, 4));
        assert!(missing[1].ends_with("with 64 clients, of beanstalkd -f 0"), "{missing:?}");
        assert!(passes(&bench), "one is met");
        // Another goal, which is met.
        bench.figures.value(engine::CLAIM.tasks(1_000), Unit::Micros, 1.0);
        assert!(passes(&bench));
        bench.found[0].missing = Some("the disk is full".to_owned());
        assert_eq!((against_peers(&bench).0.len(), against_peers(&bench).1.len()), (0, 5));
        assert!(!passes(&bench), "no queue was compared");
        bench.found.clear();
        assert!(passes(&bench), "none was to be compared");
    }
}
