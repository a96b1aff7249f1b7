//! How a command ends: its exit code, and its error in words or as JSON.

use std::io::{self, Write};
use std::process::{self, ExitCode};

use clap::error::ErrorKind;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use super::line::{own_words, parser};
use super::print;
use super::wording::Wording;
use crate::http::tokens::TokensError;
use crate::participant::{BoardError, CallError};
use crate::rpc::client::{Blame, ClientError};

/// Exit codes, as the help of `callboard` documents them.
pub(super) const REFUSED: u8 = 1;

pub(super) const USAGE: u8 = 2;

pub(super) const FAILED: u8 = 3;

pub(super) const EXIT_CODES: [(u8, &str); 4] = [
    (0, "done"),
    (REFUSED, "refused: the message says why and what to do (also: no task was claimed)"),
    (USAGE, "the command line is wrong"),
    (FAILED, "the board cannot be used: directory, disk, lock, journal, server"),
];

pub(super) fn exit_codes() -> String {
    let lines = EXIT_CODES.map(|(code, meaning)| format!("\n  {code}  {meaning}"));
    format!("Exit codes:{}", lines.concat())
}

/// How an error is worded.
pub(super) enum Telling {
    /// As a JSON object, for programs.
    Json,
    Operations,
    Commands(Wording),
}

impl Telling {
    /// The message in the words of whom it is for, without what a terminal would obey.
    pub(super) fn worded(&self, message: &str) -> String {
        match self {
            Self::Commands(wording) => print::harmless(&wording.in_commands(message)),
            Self::Json | Self::Operations => print::harmless(message),
        }
    }
}

/// A refusal by the command itself, although the board can be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", chain(.0))]
pub(super) struct Declined(pub(super) anyhow::Error);

/// The message of an error in commands, with the numbers of tasks instead of their ids.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct InNumbers(pub(super) String);

/// Codes of refusals whose cause is the disk or a directory of the board, so that any call would
/// meet it.
pub(super) const CODES_OF_THE_BOARD: [&str; 4] =
    ["archive_failed", "artifact_failed", "bundles_failed", "history_unread"];

pub(super) fn blame_and_data(error: &anyhow::Error) -> (Blame, Value) {
    if let Some(call) = error.downcast_ref::<CallError>() {
        let blame = match call {
            CallError::UnknownOperation(_) => Blame::Name,
            CallError::Refused(_) => Blame::Call,
            CallError::Failed(failure)
                if matches!(
                    **failure,
                    BoardError::NotInThePast { .. } | BoardError::BeforeTheFirst { .. }
                ) =>
            {
                Blame::Call
            }
            CallError::Failed(_) | CallError::Gone => Blame::Board,
        };
        return (blame, call.data());
    }
    if let Some(error) = error.downcast_ref::<ClientError>() {
        return (error.blame(), error.data());
    }
    let is_declined =
        error.is::<Declined>() || error.downcast_ref().is_some_and(TokensError::is_refusal);
    let (blame, code) =
        if is_declined { (Blame::Call, "refused") } else { (Blame::Board, "failed") };
    (blame, json!({"code": code, "message": chain(error)}))
}

/// The error and its causes, except those that the text before already has.
pub(super) fn chain(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

/// Prints the error on standard error, and returns the exit code for it.
pub(super) fn report(error: &anyhow::Error, telling: &Telling) -> ExitCode {
    let (blame, mut data) = blame_and_data(error);
    if is_of_descriptors(error) {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or_default();
        let text = print::text(&data["message"]);
        data["message"] = format!(
            "{text}; this process may open {limit} files: raise that with `ulimit -n 1024`"
        )
        .into();
    }
    let is_of_the_board =
        data["code"].as_str().is_some_and(|code| CODES_OF_THE_BOARD.contains(&code));
    let mut message = print::text(&data["message"]);
    if let (Blame::Name, Telling::Operations) = (blame, telling) {
        message.push_str("; `callboard call` lists them");
    }
    say(&match (telling, error.downcast_ref()) {
        (Telling::Json, _) => as_object(&data),
        (_, Some(InNumbers(told))) => format!("callboard: {}", print::harmless(told)),
        (telling, None) => format!("callboard: {}", telling.worded(&message)),
    });
    ExitCode::from(match blame {
        Blame::Name => USAGE,
        Blame::Call if !is_of_the_board => REFUSED,
        Blame::Call | Blame::Board => FAILED,
    })
}

/// Whether the cause is that this process may open no more files.
fn is_of_descriptors(error: &anyhow::Error) -> bool {
    let is_it = |error: &io::Error| error.raw_os_error() == Some(Errno::MFILE.raw_os_error());
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_it))
        || format!("{error:#}").contains(&io::Error::from(Errno::MFILE).to_string())
}

pub(super) fn as_object(error: &Value) -> String {
    print::harmless_json(&json!({"error": error}).to_string())
}

/// Prints what is wrong with the command line, for people or for programs, and exits. Help comes
/// this way, too.
pub(super) fn exit_with(error: &clap::Error) -> ! {
    if !error.use_stderr() || own_words().all(|word| word != "--json") {
        error.exit();
    }
    let message = match error.kind() {
        // clap's message for this would be the whole help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing; --help lists them".to_owned()
        }
        _ => without_usage(&error.render().to_string()),
    };
    say(&as_object(&json!({"code": "usage", "message": message})));
    process::exit(error.exit_code())
}

/// The message of clap without its usage: what is wrong, and what may have been meant.
pub(super) fn without_usage(rendered: &str) -> String {
    let ends = ["\n\nUsage:", "\n\nFor more information"];
    let end = ends.iter().filter_map(|end| rendered.find(end)).min().unwrap_or(rendered.len());
    let message = &rendered[..end];
    message.strip_prefix("error: ").unwrap_or(message).trim_end().to_owned()
}

/// Writes to standard error, which may be closed.
pub(super) fn say(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Exits with a usage error that clap could not detect.
pub(super) fn usage_error(message: impl std::fmt::Display) -> ! {
    let error = clap::Error::raw(ErrorKind::ValueValidation, format!("{message}\n"));
    exit_with(&error.with_cmd(&parser()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let cause = || io::Error::other("the disk is full");
        let twice = anyhow::Error::new(cause()).context("it failed (the disk is full)");
        assert_eq!(chain(&twice), "it failed (the disk is full)");
        let other = anyhow::Error::new(cause()).context("it failed");
        assert_eq!(chain(&other), "it failed: the disk is full");
    }
}
