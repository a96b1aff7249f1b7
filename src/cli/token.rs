use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::print::Column;
use super::{AUTO, Outcome, Session, usage_error};
use crate::http::TOKEN_FILE;
use crate::http::tokens::{self, Entry, TokensError, Wish};
use crate::participant::board_time;
use crate::participant::directory;
use crate::state::agent::Role;
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Without it, the tokens are listed
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Create a token and print it, once
    Add(Add),
    /// List the tokens by name; their text is not kept
    List,
    /// Revoke a token and end its open requests, in running servers too
    Revoke {
        /// Name of the token
        name: String,
    },
}

/// Options of `token add`. `--agent`, which all commands take, is the only agent that the token
/// acts as.
#[derive(clap::Args)]
struct Add {
    /// What the token allows: observer reads, worker works on tasks, leader does everything
    #[arg(long, value_enum, default_value = "worker")]
    role: Rank,
    /// Name of the token in lists and messages [default: the agent's id, or the role and a number]
    #[arg(value_name = "NAME")]
    called: Option<String>,
    /// The same
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "called")]
    name: Option<String>,
    /// Days until the token expires [default: never]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    expires: Option<u32>,
    /// Most calls per second [default: `rate` in config.toml, else 1000]
    #[arg(long, value_name = "CALLS")]
    rate: Option<NonZeroU32>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Rank {
    Observer,
    Worker,
    Leader,
}

impl From<Rank> for Role {
    fn from(rank: Rank) -> Self {
        match rank {
            Rank::Observer => Self::Observer,
            Rank::Worker => Self::Worker,
            Rank::Leader => Self::Leader,
        }
    }
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    session.may_create()?;
    let action = arguments.action.unwrap_or(Action::List);
    if !matches!(action, Action::List) {
        session.expect_persons_shell()?;
    }
    match action {
        Action::Add(wanted) => add(session, wanted),
        Action::List => list(session),
        Action::Revoke { name } => revoke(session, &name),
    }
}

fn add(session: &Session, wanted: Add) -> Outcome {
    if let Some(objection) = session.objection() {
        anyhow::bail!(objection);
    }
    if session.agent.as_deref() == Some(AUTO) {
        usage_error(
            "a token is for one agent with a name or for any: leave --agent out, and each client \
             of the token registers an agent of its own",
        );
    }
    let agent = session.agent.as_deref().map(AgentId::checked).transpose();
    let agent = agent.unwrap_or_else(|refusal| usage_error(format!("--agent: {refusal}")));
    if agent.as_ref().is_some_and(|agent| agent.as_str() == HUMAN) {
        usage_error(format!(
            "--agent {HUMAN} is whose board it is, and no agent; for a person who may do \
             everything: --role leader"
        ));
    }
    directory::prepare(session.dir())?;
    let Add { called, role, name, expires, rate } = wanted;
    let wish = Wish { name: called.or(name), role: role.into(), agent, days: expires, rate };
    let (entry, text) = tokens::add(session.dir(), wish)?;
    let mut reply = shown(&entry);
    reply["token"] = Value::from(text.as_str());
    session.show(&reply, |page| {
        page.line(&text);
        page.line(format_args!(
            "{}. It is not shown again; clients send it as `Authorization: Bearer TOKEN`.",
            told(&entry)
        ));
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list(session: &Session) -> Outcome {
    let has_board = has_board(session)?;
    let entries = if has_board { tokens::list(session.dir())? } else { Vec::new() };
    let now = board_time(session.dir());
    let of_server = Some(session.dir().join(TOKEN_FILE)).filter(|file| has_board && file.exists());
    let mut reply = json!({"tokens": entries.iter().map(shown).collect::<Vec<_>>()});
    if let Some(file) = &of_server {
        reply["server_token_file"] = json!(file);
    }
    session.show(&reply, |page| {
        if let Some(file) = &of_server {
            let file = file.display();
            page.line(format_args!(
                "the server's own token, which may do everything, is in {file}; `callboard serve \
                 --new-token` makes another"
            ));
        }
        if entries.is_empty() {
            let others = if of_server.is_some() { "no other tokens" } else { "no tokens" };
            return page.line(format_args!(
                "{others}; {} makes one",
                session.wording.command("token add NAME")
            ));
        }
        let rows: Vec<_> = entries
            .iter()
            .map(|entry| {
                let ends = match entry.expires {
                    Some(_) if entry.is_over(now) => "over".to_owned(),
                    Some(expires) => page.when(expires),
                    None => "never".to_owned(),
                };
                let agent = entry
                    .agent
                    .as_ref()
                    .map(AgentId::to_string)
                    .unwrap_or_else(|| "any".to_owned());
                [
                    entry.name.clone(),
                    entry.role.as_str().to_owned(),
                    agent,
                    page.when(entry.created),
                    ends,
                ]
                .map(Column::from)
            })
            .collect();
        page.table(["name", "role", "agent", "made", "ends"], rows.into_iter());
    })?;
    Ok(ExitCode::SUCCESS)
}

fn revoke(session: &Session, name: &str) -> Outcome {
    if !has_board(session)? {
        return Err(TokensError::Unknown { name: name.to_owned() }.into());
    }
    let entry = tokens::revoke(session.dir(), name)?;
    session.show(&json!({"revoked": shown(&entry)}), |page| {
        page.line(format_args!("revoked {}", told(&entry)))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn has_board(session: &Session) -> anyhow::Result<bool> {
    if matches!(session.dir().symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound)
    {
        return Ok(false);
    }
    directory::inspect(session.dir())?;
    Ok(true)
}

fn shown(entry: &Entry) -> Value {
    json!({
        "name": entry.name, "role": entry.role, "agent": entry.agent,
        "created": entry.created, "expires": entry.expires, "rate": entry.rate,
    })
}

fn told(entry: &Entry) -> String {
    let agent =
        entry.agent.as_ref().map(|agent| format!(", as agent {agent} only")).unwrap_or_default();
    let ends = entry.expires.map(|expires| format!(", until {expires}")).unwrap_or_default();
    let rate = entry.rate.map(|rate| format!(", {rate} calls a second")).unwrap_or_default();
    format!("token `{}`: {}{agent}{rate}{ends}", entry.name, entry.role.as_str())
}
