//! What completions of the shell ask: which tasks or agents may stand where the cursor is.
//!
//! The scripts of `callboard completions` call `callboard __complete SHELL WORDS…` with the words of
//! the line up to the cursor. The answer is a line for each candidate: what is inserted, and what
//! is shown beside it. Whatever goes wrong, there are none.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::line::whole;
use super::print::{harmless, headline, text};
use super::tasks::every_brief;
use super::{Outcome, Session, exchange, messages};
use crate::ops::get_all_tasks::Params;
use crate::ops::{self, get_agents};
use crate::state::guard::HUMAN;
use crate::state::task::{Named, TaskStatus};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Shell that asks
    shell: String,
    /// Words of the command line, the last one as far as it is typed
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    words: Vec<String>,
}

/// Most candidates that are offered.
const OFFERED: u32 = 200;

/// What an argument names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Task,
    Agent,
    Either,
    Question,
    Event,
    Format,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    let words = arguments.words.get(1..).unwrap_or_default();
    let (typed, before) =
        words.split_last().map_or(("", words), |(last, all)| (last.as_str(), all));
    let root = whole();
    let Some(kind) = wanted(&root, before, typed) else { return Ok(ExitCode::SUCCESS) };
    let mut offers = Vec::new();
    if matches!(kind, Kind::Task | Kind::Either) {
        offers.extend(tasks(session, typed, of_command(&root, before)).unwrap_or_default());
    }
    if matches!(kind, Kind::Agent | Kind::Either) {
        offers.extend(agents(session, typed).unwrap_or_default());
    }
    let others = match kind {
        Kind::Question => questions(session),
        Kind::Event => events(session),
        Kind::Format => Ok(exchange::formats_written()),
        Kind::Task | Kind::Agent | Kind::Either => Ok(Vec::new()),
    };
    let others = others.unwrap_or_default().into_iter();
    offers.extend(
        others.filter(|(value, _)| value.to_lowercase().starts_with(&typed.to_lowercase())),
    );
    let mut out = io::stdout().lock();
    for (value, beside) in offers {
        let line = match arguments.shell.as_str() {
            "zsh" => format!("{}:{beside}", value.replace(':', "\\:")),
            _ => format!("{value}\t{beside}"),
        };
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// The board's directory that the words name, if they do.
    pub(super) fn dir(&self) -> Option<PathBuf> {
        dir_in(&self.words).map(PathBuf::from)
    }
}

fn dir_in(words: &[String]) -> Option<&str> {
    let given = words.iter().position(|word| word == "--dir").and_then(|at| words.get(at + 1));
    given.map(String::as_str).or_else(|| words.iter().find_map(|word| word.strip_prefix("--dir=")))
}

/// What may stand behind these words of a command line.
fn wanted(root: &clap::Command, before: &[String], typed: &str) -> Option<Kind> {
    if typed.starts_with('-') {
        return None;
    }
    let globals: Vec<_> = root.get_arguments().filter(|one| one.is_global_set()).collect();
    let (mut command, mut place, mut awaited) = (root, 0, None);
    for word in before {
        if awaited.take().is_some() {
            continue;
        }
        if let Some(name) = word.strip_prefix("--").filter(|name| !name.contains('=')) {
            let mut all = command.get_arguments().chain(globals.iter().copied());
            awaited = all
                .find(|one| {
                    one.get_long_and_visible_aliases().is_some_and(|all| all.contains(&name))
                })
                .filter(|one| one.get_action().takes_values());
        } else if !word.starts_with('-') {
            match command.find_subcommand(word) {
                Some(below) => (command, place) = (below, 0),
                None => place += 1,
            }
        }
    }
    let there = || {
        let positionals: Vec<_> = command.get_positionals().collect();
        let last = positionals.last().copied().filter(|one| one.get_action().takes_values());
        let many = last.filter(|one| matches!(one.get_action(), clap::ArgAction::Append));
        positionals.get(place).copied().or(many)
    };
    kind(awaited.or_else(there)?)
}

/// Which things of the board the argument names.
pub(super) fn kind(argument: &clap::Arg) -> Option<Kind> {
    if argument.get_id() == "agent" {
        return Some(Kind::Agent);
    }
    let names = argument.get_value_names()?.first()?.as_str();
    let has = |name: &str| names.split('|').any(|one| one == name);
    let has_other =
        [("[Q3] TEXT", Kind::Question), ("EVENT|TASK", Kind::Event), ("FORMAT", Kind::Format)]
            .into_iter()
            .find(|(name, _)| names == *name);
    if let Some((_, kind)) = has_other {
        return Some(kind);
    }
    match (has("TASK"), has("AGENT")) {
        (true, true) => Some(Kind::Either),
        (true, false) => Some(Kind::Task),
        (false, true) => Some(Kind::Agent),
        (false, false) => None,
    }
}

/// The statuses of the tasks that the command is for; none if it is for all.
fn of_command(root: &clap::Command, before: &[String]) -> &'static [TaskStatus] {
    let mut names = before.iter().filter_map(|word| root.find_subcommand(word));
    match names.next().map_or("", clap::Command::get_name) {
        "approve" | "reject" => &[TaskStatus::Review],
        "retry" => &[TaskStatus::Failed, TaskStatus::Cancelled],
        "release" | "complete" | "fail" => &[TaskStatus::Claimed, TaskStatus::InProgress],
        "claim" | "assign" => &[TaskStatus::Available],
        _ => &[],
    }
}

/// Tasks whose number or id begins with `typed`: those that are not finished first, by number.
fn tasks(
    session: &Session,
    typed: &str,
    statuses: &[TaskStatus],
) -> anyhow::Result<Vec<(String, String)>> {
    let mut briefs =
        every_brief(session, Params { statuses: statuses.to_vec(), ..Default::default() })?;
    // A filter by status takes results in review for work in progress.
    briefs.retain(|task| statuses.is_empty() || statuses.contains(&task.status));
    briefs.sort_by_key(|task| (!task.status.is_unfinished(), task.number));
    let named = briefs.iter().map(|task| Named {
        id: task.id.clone(),
        number: task.number,
        title: format!("{} ({})", headline(&harmless(&task.title)), task.standing().word()),
        status: Some(task.status),
    });
    let offered = named.filter_map(|task| {
        let value =
            [task.short(), task.id.to_string()].into_iter().find(|one| one.starts_with(typed));
        Some((value?, task.title))
    });
    Ok(offered.take(OFFERED as usize).collect())
}

/// The questions that wait for an answer.
fn questions(session: &Session) -> anyhow::Result<Vec<(String, String)>> {
    let open = messages::open_questions(session)?.into_iter();
    let named = open.filter_map(|one| Some((one.question?, headline(&harmless(&one.text)))));
    Ok(named.collect())
}

/// The last events that a person caused, newest first.
fn events(session: &Session) -> anyhow::Result<Vec<(String, String)>> {
    let reply = session.call("get_history", json!({"agent": HUMAN, "limit": 20}))?;
    let own = session.own_actors();
    let events = reply["events"].as_array().into_iter().flatten();
    let caused = events.filter(|event| own.iter().any(|own| event["actor"] == own.as_str()));
    let named =
        caused.map(|event| (format!("e{}", event["seq"]), text(&event["kind"]).replace('_', " ")));
    Ok(named.collect())
}

fn agents(session: &Session, typed: &str) -> anyhow::Result<Vec<(String, String)>> {
    let reply = session.every_page::<ops::GetAgents>("agents", &get_agents::Params::default())?;
    let known = reply.agents.iter().map(|item| &item.agent);
    let offered = known.filter(|agent| agent.id.as_str().starts_with(typed)).map(|agent| {
        let holds = agent.current_task.as_ref().map(|task| format!(", holds {task}"));
        (agent.id.to_string(), format!("{}{}", agent.role.as_str(), holds.unwrap_or_default()))
    });
    Ok(offered.take(OFFERED as usize).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_stand_there_follows_from_the_command() {
        let root = whole();
        for (line, expected) in [
            ("show |", Some(Kind::Task)),
            ("show 1|", Some(Kind::Task)),
            ("show 1 |", Some(Kind::Task)),
            ("answer |", Some(Kind::Question)),
            ("undo |", Some(Kind::Event)),
            ("export |", Some(Kind::Format)),
            ("history --since 2h |", None),
            ("retry 1 |", Some(Kind::Task)),
            ("assign |", Some(Kind::Task)),
            ("assign 1 |", Some(Kind::Agent)),
            ("stop |", Some(Kind::Agent)),
            ("pause a b|", Some(Kind::Agent)),
            ("log |", Some(Kind::Either)),
            ("--agent |", Some(Kind::Agent)),
            ("--agent bob done |", Some(Kind::Task)),
            ("edit 1 --depends |", Some(Kind::Task)),
            ("edit 1 --title |", None),
            ("edit --priority 1 |", Some(Kind::Task)),
            ("agents forget |", Some(Kind::Agent)),
            ("artifact attach |", Some(Kind::Task)),
            ("history --task |", Some(Kind::Task)),
            ("tasks --of |", Some(Kind::Agent)),
            ("show --j|", None),
            ("|", None),
            ("nonsense |", None),
        ] {
            let line = line.strip_suffix('|').unwrap_or(line);
            let mut words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let typed = words.pop().unwrap_or_default();
            assert_eq!(wanted(&root, &words, &typed), expected, "{line:?}");
        }
    }
}
