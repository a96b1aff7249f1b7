//! Kinds of failures, and what follows from each: how long to wait, and whether to try again at
//! all.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::output::Printed;
use crate::cli::supervise::Exit;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Category {
    /// The try took too long.
    Timeout,
    /// The next try may succeed.
    Transient,
    /// The command was told to send fewer requests.
    RateLimited,
    /// No try will succeed, whoever makes it.
    Permanent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub category: Category,
    pub message: String,
}

/// Factor of the pause after a rate limit: whoever was told to slow down waits longer.
const RATE_LIMITED_FACTOR: u32 = 15;
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);
/// Retries after a timeout: it costs the whole time again, so one worker retries once and leaves
/// the rest to others.
const RETRIES_AFTER_TIMEOUT: u32 = 1;

/// What programs print in each kind of failure; the first match decides. None of them is permanent:
/// a log may contain any word, and giving a task up by mistake costs more than a few more tries.
const PATTERNS: [(Category, &[&str]); 3] = [
    (
        Category::RateLimited,
        &[
            "rate limit",
            "rate-limit",
            "rate_limit",
            "ratelimit",
            "too many requests",
            "overloaded",
            "usage limit",
            "status 429",
            "error 429",
            "http 429",
            " 429 ",
        ],
    ),
    (Category::Timeout, &["timed out", "deadline exceeded", "etimedout"]),
    (
        Category::Transient,
        &[
            "connection reset",
            "connection refused",
            "econnreset",
            "econnrefused",
            "temporarily unavailable",
            "bad gateway",
        ],
    ),
];

impl Category {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Transient => "transient",
            Self::RateLimited => "rate_limited",
            Self::Permanent => "permanent",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        let all = [Self::Timeout, Self::Transient, Self::RateLimited, Self::Permanent];
        all.into_iter().find(|category| category.as_str() == name)
    }

    /// How many more tries one worker makes.
    pub(super) fn retries(self, configured: u32) -> u32 {
        match self {
            Self::Permanent => 0,
            Self::Timeout => configured.min(RETRIES_AFTER_TIMEOUT),
            Self::Transient | Self::RateLimited => configured,
        }
    }

    /// The pause after the `failed`-th try. It doubles, and is up to a tenth longer, so that
    /// workers do not come back all at once.
    pub(super) fn pause(self, base: Duration, failed: u32) -> Duration {
        let factor = if self == Self::RateLimited { RATE_LIMITED_FACTOR } else { 1 };
        let doubled =
            base.saturating_mul(factor << failed.saturating_sub(1).min(12)).min(LONGEST_PAUSE);
        let tenth = doubled.as_millis() as u64 / 10;
        doubled + Duration::from_millis(RandomState::new().hash_one(failed) % tenth.max(1))
    }
}

impl Failure {
    pub(super) fn new(category: Category, message: impl Into<String>) -> Self {
        Self { category, message: message.into() }
    }

    /// Why a try has failed; none if it has succeeded. What the command itself reports comes first,
    /// then its exit code, then what it printed. Many readers see only the first line of the
    /// message.
    pub(super) fn of(exit: Exit, printed: &Printed) -> Option<Self> {
        let said = printed.object.as_ref().and_then(said);
        if exit == Exit::Code(0) && said.is_none() {
            return None;
        }
        let ended = match exit {
            Exit::Code(code) => format!("exit code {code}"),
            Exit::Signal(signal) => format!("ended by signal {signal}{}", signal_name(signal)),
        };
        let (category, message) = said.unwrap_or_default();
        let category = category.or_else(|| of_exit(exit)).or_else(|| of_text(&printed.last_lines));
        let printed = printed.last_lines.trim();
        let message = match (message.trim(), printed.lines().next_back()) {
            ("", None) => format!("{ended}, and printed nothing"),
            ("", Some(last)) if last == printed => format!("{ended}: {last}"),
            ("", Some(last)) => format!("{ended}: {last}\n{printed}"),
            (message, _) => format!("{message}\n({ended})"),
        };
        Some(Self { category: category.unwrap_or(Category::Transient), message })
    }
}

/// The failure in an object `{"error": "text"}`, `{"error": {"category": …, "message": …}}`, or
/// `{"is_error": true, "result": "text"}`.
fn said(object: &Map<String, Value>) -> Option<(Option<Category>, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_default();
    match object.get("error") {
        Some(Value::String(message)) if !message.is_empty() => {
            Some((of_text(message), message.clone()))
        }
        Some(Value::Object(error)) => {
            let message = error.get("message").map(text).unwrap_or_default();
            let category = error.get("category").and_then(Value::as_str).and_then(Category::named);
            Some((category.or_else(|| of_text(&message)), message))
        }
        _ if object.get("is_error") == Some(&Value::Bool(true)) => {
            let message = object.get("result").map(text).unwrap_or_default();
            Some((of_text(&message), message))
        }
        _ => None,
    }
}

/// The category for an exit code of sysexits(3), timeout(1) or a shell.
fn of_exit(exit: Exit) -> Option<Category> {
    match exit {
        Exit::Code(124) => Some(Category::Timeout),
        Exit::Code(75) => Some(Category::Transient),
        Exit::Code(64 | 65 | 66 | 67 | 68 | 72 | 77 | 78 | 126 | 127) => Some(Category::Permanent),
        Exit::Signal(_) => Some(Category::Transient),
        Exit::Code(_) => None,
    }
}

fn of_text(text: &str) -> Option<Category> {
    let text = text.to_ascii_lowercase();
    let found =
        PATTERNS.iter().find(|(_, patterns)| patterns.iter().any(|pattern| text.contains(pattern)));
    found.map(|(category, _)| *category)
}

fn signal_name(signal: i32) -> &'static str {
    let named = [
        (Signal::KILL, " (killed)"),
        (Signal::TERM, " (terminated)"),
        (Signal::SEGV, " (segmentation fault)"),
    ];
    named.iter().find(|(one, _)| one.as_raw() == signal).map_or("", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(exit: Exit, last_lines: &str, object: Value) -> Option<Category> {
        let object = object.as_object().cloned();
        let printed = Printed { last_lines: last_lines.to_owned(), object, ..Printed::default() };
        Failure::of(exit, &printed).map(|failure| failure.category)
    }

    #[test]
    fn what_the_command_says_comes_before_its_code_and_that_before_its_output() {
        let said = serde_json::json!({"error": {"category": "rate-limited", "message": "m"}});
        assert_eq!(failure(Exit::Code(0), "", Value::Null), None);
        assert_eq!(failure(Exit::Code(0), "", said.clone()), Some(Category::RateLimited));
        assert_eq!(failure(Exit::Code(78), "timed out", said), Some(Category::RateLimited));
        assert_eq!(failure(Exit::Code(78), "timed out", Value::Null), Some(Category::Permanent));
        assert_eq!(
            failure(Exit::Code(1), "request timed out", Value::Null),
            Some(Category::Timeout)
        );
        assert_eq!(
            failure(Exit::Code(1), "429 Too Many Requests", Value::Null),
            Some(Category::RateLimited)
        );
        assert_eq!(failure(Exit::Signal(9), "", Value::Null), Some(Category::Transient));
        for text in
            ["1 test failed", "error: unexpected argument", "test login::unauthorized ... FAILED"]
        {
            assert_eq!(
                failure(Exit::Code(1), text, Value::Null),
                Some(Category::Transient),
                "{text}"
            );
        }
    }

    #[test]
    fn pauses_double_and_end_somewhere() {
        let base = Duration::from_secs(2);
        let pause = |category: Category, failed| category.pause(base, failed).as_secs_f64();
        assert!((2.0..2.3).contains(&pause(Category::Transient, 1)));
        assert!((8.0..8.9).contains(&pause(Category::Transient, 3)));
        assert!((30.0..33.1).contains(&pause(Category::RateLimited, 1)));
        assert!(pause(Category::RateLimited, 40) <= LONGEST_PAUSE.as_secs_f64() * 1.1);
        assert_eq!(Category::Permanent.retries(5), 0);
        assert_eq!(Category::Timeout.retries(5), 1);
    }
}
