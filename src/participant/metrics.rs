//! Metrics of this process, in the form that Prometheus reads; see <https://prometheus.io/docs/instrumenting/>.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{
    EncodeLabelSet, LabelSetEncoder, prometheus_text, text as open_metrics,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;

use super::error::CallError;
use crate::ops::health_check::Kind;
use crate::state::event::Recorded;

/// Statuses of HTTP responses that are counted.
const TURNED_AWAY: [&str; 2] = ["401", "403"];

/// How tasks stand, as the first screen counts them.
const STANDS: [&str; 8] =
    ["ready", "blocked", "waiting", "in_work", "in_review", "failed", "cancelled", "done"];
/// How attempts end, as the report counts them.
const OUTCOMES: [&str; 6] = ["done", "failed", "expired", "released", "cancelled", "rejected"];

/// Counters and histograms of one process since its start.
pub(super) struct Metrics {
    calls: Family<Called, Counter>,
    seconds: Family<Label, Histogram, fn() -> Histogram>,
    batch: Histogram,
    events: Family<Label, Counter>,
    turned_away: Family<Label, Counter>,
    registry: Registry,
}

/// The forms of the text for Prometheus: its own, and OpenMetrics, which names counters without
/// `_total` in comments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Plain,
    Open,
}

/// One label and its value, both from our own lists: nothing that a caller wrote.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Label(&'static str, &'static str);

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Called {
    operation: &'static str,
    outcome: &'static str,
}

impl EncodeLabelSet for Label {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> Result<(), fmt::Error> {
        [(self.0, self.1)].encode(encoder)
    }
}

impl EncodeLabelSet for Called {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> Result<(), fmt::Error> {
        [("operation", self.operation), ("outcome", self.outcome)].encode(encoder)
    }
}

impl Metrics {
    pub(super) fn new() -> Self {
        let calls = Family::default();
        // From 100 µs to 105 s: a long poll takes up to 50 s.
        let seconds = Family::new_with_constructor(
            (|| Histogram::new(exponential_buckets(0.000_1, 4.0, 11))) as fn() -> _,
        );
        let batch = Histogram::new(exponential_buckets(1.0, 2.0, 7));
        let events = Family::<Label, Counter>::default();
        // Shown before it first happens, because people set alerts on it.
        events.get_or_create(&Label("kind", "lease_expired")).inc_by(0);
        let turned_away = Family::<Label, Counter>::default();
        for status in TURNED_AWAY {
            turned_away.get_or_create(&Label("status", status)).inc_by(0);
        }
        let mut registry = Registry::with_prefix("callboard");
        registry.register("calls", "Calls answered by this process", Clone::clone(&calls));
        registry.register_with_unit(
            "call",
            "From a call to its answer",
            Unit::Seconds,
            Clone::clone(&seconds),
        );
        registry.register("commit_batch_calls", "Calls committed together", batch.clone());
        registry.register(
            "events",
            "Events of the board that this process has seen",
            Clone::clone(&events),
        );
        let help = "HTTP requests refused: 401 without a good token, 403 by a host, an origin or \
                    a role not allowed";
        registry.register("http_turned_away", help, Clone::clone(&turned_away));
        Self { calls, seconds, batch, events, turned_away, registry }
    }

    pub(super) fn called(
        &self,
        operation: &'static str,
        answer: &Result<Value, CallError>,
        took: Duration,
    ) {
        let outcome = outcome(answer);
        self.calls.get_or_create(&Called { operation, outcome }).inc();
        self.seconds.get_or_create(&Label("operation", operation)).observe(took.as_secs_f64());
    }

    pub(super) fn committed(&self, calls: usize) {
        self.batch.observe(calls as f64);
    }

    pub(super) fn happened(&self, events: &[Recorded]) {
        for recorded in events {
            self.events.get_or_create(&Label("kind", recorded.event.kind())).inc();
        }
    }

    /// Counts an HTTP response of this status, if it is one of those that are counted.
    pub(super) fn answered(&self, status: u16) {
        if let Some(status) = TURNED_AWAY.iter().find(|name| name.parse() == Ok(status)) {
            self.turned_away.get_or_create(&Label("status", status)).inc();
        }
    }

    /// All metrics as text, with those that are made of the board's present replies.
    pub(super) fn text(&self, seen: &Seen, form: Form) -> String {
        let mut text = String::new();
        for registry in [&self.registry, &present(&seen.health), &figures(seen)] {
            let end = text.strip_suffix("# EOF\n").map_or(text.len(), str::len);
            text.truncate(end);
            let encoded = match form {
                Form::Plain => prometheus_text::encode(&mut text, registry),
                Form::Open => open_metrics::encode(&mut text, registry),
            };
            // Writing to a string fails only if a metric cannot be encoded, and these can.
            if encoded.is_err() {
                tracing::error!("the metrics could not be encoded");
            }
        }
        text
    }
}

/// Replies of the board from which metrics are made.
pub(super) struct Seen {
    pub health: Value,
    pub board: Value,
    pub report: Value,
}

/// What the board itself counts, so that it survives the end of a process.
fn figures(seen: &Seen) -> Registry {
    let mut registry = Registry::with_prefix("callboard_board");
    let tasks = Family::<Label, Gauge>::default();
    for stand in STANDS {
        let count = seen.board["counts"][stand].as_i64().unwrap_or_default();
        tasks.get_or_create(&Label("stand", stand)).set(count);
    }
    registry.register("tasks", "Tasks without parts, by how they stand", tasks);
    let mut counter = |name: &str, help: &str, value: &Value| {
        let counter = Counter::<u64>::default();
        counter.inc_by(value.as_u64().unwrap_or_default());
        registry.register(name, help, counter);
    };
    counter("tasks_done", "Tasks that were done", &seen.board["counts"]["done"]);
    counter("events", "Events since the board was made", &seen.board["seq"]);
    let tries = Family::<Label, Gauge>::default();
    for outcome in OUTCOMES {
        let count = seen.report["tries"][outcome].as_i64().unwrap_or_default();
        tries.get_or_create(&Label("outcome", outcome)).set(count);
    }
    registry.register("attempts", "Ended attempts at live tasks, by outcome", tries);
    let mut times = |name: &str, help: &str, spread: &Value| {
        let quantiles = Family::<Label, Gauge>::default();
        for (quantile, field) in [("0.5", "median"), ("0.9", "p90"), ("1", "longest")] {
            let seconds = spread[field].as_i64().unwrap_or_default();
            quantiles.get_or_create(&Label("quantile", quantile)).set(seconds);
        }
        registry.register_with_unit(name, help, Unit::Seconds, quantiles);
    };
    times("work", "From claim to done, of live tasks", &seen.report["work"]);
    times("waiting", "From ready to claimed, of live tasks", &seen.report["waiting"]);
    registry
}

/// The name of an outcome in logs and metrics.
pub(super) fn outcome(answer: &Result<Value, CallError>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(CallError::Refused(_) | CallError::UnknownOperation(_)) => "refused",
        Err(CallError::Gone) => "gone",
        Err(CallError::Failed(_)) => "failed",
    }
}

fn present(health: &Value) -> Registry {
    let mut registry = Registry::with_prefix("callboard");
    let tasks = Family::<Label, Gauge>::default();
    for status in ["available", "ready", "claimed", "in_progress", "review", "failed"] {
        tasks
            .get_or_create(&Label("status", status))
            .set(health["queue"][status].as_i64().unwrap_or_default());
    }
    registry.register(
        "tasks",
        "Tasks by status; ready ones are available, and those in review in progress, too",
        tasks,
    );
    let mut gauge = |name: &str, help: &str, value: &Value| {
        let gauge = Gauge::<i64, std::sync::atomic::AtomicI64>::default();
        gauge.set(value.as_i64().unwrap_or_default());
        registry.register(name, help, gauge);
    };
    gauge(
        "oldest_ready_task_seconds",
        "Age of the oldest task that could be claimed",
        &health["queue"]["oldest_ready_seconds"],
    );
    gauge(
        "state_file_lag_events",
        "Events that the state file is behind",
        &health["state_file_lag"],
    );
    gauge("seq", "The newest event", &health["seq"]);
    gauge("agents_present", "Agents whose process lives", &health["agents_present"]);
    gauge("participants", "Living processes that agents act through", &health["participants"]);
    gauge("uptime_seconds", "Since this process started", &health["uptime_seconds"]);
    gauge(
        "clock_ahead_seconds",
        "By which the clock of this process is ahead of the board's time, if more than a minute",
        &health["clock_ahead_seconds"],
    );
    let degraded = health["reasons"].as_array().map_or(0, Vec::len);
    gauge(
        "degraded_reasons",
        "What does not work as it should; health_check says what",
        &Value::from(degraded),
    );
    let reasons = Family::<Label, Gauge>::default();
    let present = health["kinds"].as_array().map_or(&[][..], Vec::as_slice);
    for kind in Kind::ALL {
        let is_present = present.iter().any(|found| found == kind.name());
        reasons.get_or_create(&Label("reason", kind.name())).set(is_present.into());
    }
    registry.register("degraded", "Reasons of which 1 is why the board is degraded", reasons);
    registry
}
