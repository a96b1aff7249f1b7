//! `callboard notify`: what a person is told of, and whether that arrives.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::sleep;

use super::print::Tone;
use super::{Outcome, REFUSED, Session, runtime};
use crate::notify::ledger::{self, Line, log};
use crate::notify::notice::{Kind, Notice};
use crate::notify::settings::Way;
use crate::notify::{self, Telling};
use crate::participant::directory::JOURNAL;
use crate::participant::{Handle, Stay, archive, board_time};
use crate::state::time::Timestamp;
use crate::statefile;
use crate::user::{self, User};

/// How often a board is looked for that is not there yet.
const UNTIL_THERE: Duration = Duration::from_secs(2);

const HOW: &str = "\
Settings are in ~/.config/callboard/config.toml, outside of any project:

  [notify]
  desktop = true
  command = [\"sh\", \"/home/me/tell.sh\"]         # reads the notice as JSON
  webhook = \"https://example.org/hook\"         # https, or http to this machine
  secret_file = \"webhook.key\"                  # signs: X-Callboard-Signature: sha256=HMAC
  events = [\"permission\", \"question\", \"review\", \"parked\", \"stuck\", \"finished\", \"quiet\", \"agent_gone\"]

The notice is a JSON object with id, kind, board (its directory), at, text and command and, where
they are known, task, title, agent, person (who did it, if a person did) and asked (who is asked:
the person whose message it replies to, else you).

A way of its own events is a table, as in `desktop = { events = [\"question\"] }`; the others are
`command = { run = [...] }` and `webhook = { url = \"...\" }`. Processes that are running read the
settings when they start.

Examples:
  callboard notify          # what is set, and what waits
  callboard notify test     # tells in each way, now
  callboard notify log      # what was told, and what failed";

#[derive(clap::Args)]
#[command(after_help = HOW)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show what is set, and what waits to be told
    Status,
    /// Tell in each way that is set, and say whether it arrived
    Test,
    /// Show what was told of this board, the newest last
    Log {
        /// Most lines
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Tell of what has not been told
    #[command(hide = true)]
    Deliver,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    match arguments.action {
        None | Some(Action::Status) => status(session),
        Some(Action::Test) => test(session),
        Some(Action::Log { limit }) => show_log(session, limit),
        Some(Action::Deliver) => deliver(session),
    }
}

fn loaded() -> anyhow::Result<User> {
    user::load()?.ok_or_else(|| {
        anyhow::anyhow!("your settings cannot be found without HOME; set HOME or XDG_CONFIG_HOME")
    })
}

/// Directory of the board's ledger; none for a board that does not exist yet.
fn ledger_of(board: &Path) -> io::Result<Option<PathBuf>> {
    let Some(head) = statefile::seq_of(board)? else { return Ok(None) };
    let Some(state_home) = user::state_home() else { return Ok(None) };
    ledger::directory(&state_home, &head.board_id).map(Some)
}

fn status(session: &Session) -> Outcome {
    let user = loaded()?;
    let kept = ledger_of(session.dir())?.and_then(|dir| ledger::read(&dir)).unwrap_or_default();
    let waiting = kept.waiting();
    let ways = user.channels.iter().map(|channel| {
        let way = channel.way.name();
        json!({"way": way, "to": target(&channel.way), "events": channel.events,
            "waiting": waiting.get(way).copied().unwrap_or_default()})
    });
    let reply = json!({"settings": user.path, "ways": ways.collect::<Vec<_>>()});
    let is_tried = ledger_of(session.dir())?.is_some_and(|dir| !log(&dir, 1).is_empty());
    let why = format!("{} says why", session.wording.command("notify log"));
    let soon = "the next command or `callboard serve` tells it".to_owned();
    session.show(&reply, |page| {
        let path = user.path.display();
        if user.channels.is_empty() {
            page.line(format_args!(
                "no way is set; write [notify] into {path}, see `callboard notify --help`"
            ));
            return;
        }
        page.field("settings", path);
        for channel in &user.channels {
            let way = channel.way.name();
            let events =
                channel.events.iter().map(|kind| word(*kind)).collect::<Vec<_>>().join(", ");
            page.field(way, format!("{} ({events})", target(&channel.way)));
            if let Some(count) = waiting.get(way).filter(|count| **count > 0) {
                page.marked(
                    "waiting:",
                    Tone::Waiting,
                    format!("{count} for {way}; {}", if is_tried { &why } else { &soon }),
                );
            }
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn word(kind: Kind) -> String {
    serde_json::to_value(kind)
        .ok()
        .and_then(|kind| Some(kind.as_str()?.to_owned()))
        .unwrap_or_default()
}

/// Where the way leads, without what may be a secret: the path of a webhook often is one.
fn target(way: &Way) -> String {
    match way {
        Way::Command(words) => words.join(" "),
        Way::Desktop => "notifications".to_owned(),
        Way::Webhook { url, secret } => {
            let signed = if secret.is_some() { ", signed" } else { "" };
            let host = url.authority().map(ToString::to_string).unwrap_or_default();
            format!("{}://{host}/…{signed}", url.scheme_str().unwrap_or_default())
        }
    }
}

fn test(session: &Session) -> Outcome {
    let user = loaded()?;
    if user.channels.is_empty() {
        anyhow::bail!(
            "no way is set; write [notify] into {}, see `callboard notify --help`",
            user.path.display()
        );
    }
    let now = board_time(session.dir());
    let notice = Notice {
        id: format!("test/{}", now.millis()),
        kind: Kind::Test,
        board: session.dir().display().to_string(),
        at: now,
        task: None,
        title: None,
        agent: None,
        person: user::person().map(|me| me.to_string()),
        asked: None,
        text: "this is a test; questions of agents will come like this".to_owned(),
        command: "callboard status".to_owned(),
    };
    let runtime = runtime()?;
    let ended = user.channels.iter().map(async |channel| {
        let ended = notify::attempt(&channel.way, &notice).await;
        (channel.way.name(), target(&channel.way), ended)
    });
    let ended = runtime.block_on(join_all(ended));
    let shown = ended.iter().map(|(way, to, ended)| {
        json!({"way": way, "to": to, "delivered": ended.is_ok(), "error": ended.as_ref().err()})
    });
    session.show(&json!({"ways": shown.collect::<Vec<_>>()}), |page| {
        for (way, to, ended) in &ended {
            match ended {
                Ok(()) => page.field(way, format!("{to}: delivered")),
                Err(error) => page.marked("failed:", Tone::Bad, format!("{way} {to}: {error}")),
            }
        }
    })?;
    let all = ended.iter().all(|(.., ended)| ended.is_ok());
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

fn show_log(session: &Session, limit: usize) -> Outcome {
    let lines = ledger_of(session.dir())?.map(|dir| log(&dir, limit)).unwrap_or_default();
    session.show(&json!({"log": lines}), |page| {
        if lines.is_empty() {
            page.line("nothing was told of this board yet");
        }
        for Line { at, id, way, outcome, detail, text } in &lines {
            let when = page.when(*at);
            let why = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
            page.line(format_args!("{when}  {way} {outcome}{why}: {text}  {id}"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn deliver(session: &Session) -> Outcome {
    let runtime = runtime()?;
    let handle = session.participant(Stay::Brief)?;
    runtime.block_on(async {
        match telling(session.dir(), handle).await? {
            Some(telling) => Ok(telling.pass().await?),
            None => anyhow::Ok(()),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Tells of the board for as long as the process lives, if the user wants to be told. Called within
/// the runtime.
pub(super) fn begin(dir: &Path, handle: &Handle) {
    let (dir, handle) = (dir.to_owned(), handle.clone());
    tokio::spawn(async move {
        if !matches!(user::load(), Ok(Some(user)) if user.channels.is_empty()) {
            // The first write makes the board.
            while !dir.join(JOURNAL).exists() {
                sleep(UNTIL_THERE).await;
            }
        }
        match telling(&dir, handle).await {
            Ok(Some(telling)) => telling.stay().await,
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "what waits for a person is not told"),
        }
    });
}

/// What is to be told of the board; none if the user has set no way.
async fn telling(dir: &Path, handle: Handle) -> anyhow::Result<Option<Telling>> {
    let Some(User { changed: Some(changed), channels, .. }) = user::load()? else {
        return Ok(None);
    };
    if channels.is_empty() || !dir.join(JOURNAL).exists() {
        return Ok(None);
    }
    let board_id = handle.look(|state| state.board().board_id.clone()).await?;
    let Some(state_home) = user::state_home() else { return Ok(None) };
    let ledger = ledger::directory(&state_home, &board_id)?;
    let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = Timestamp::from_millis(i64::try_from(changed.as_millis()).unwrap_or_default());
    // What happened before the person wanted to be told is not told.
    let since = archive::seq_at(dir, changed).unwrap_or_default();
    let (board, me) = (dir.display().to_string(), user::person());
    Ok(Some(Telling { handle, channels, dir: ledger, since, board, me }))
}

/// Has a process of its own tell what this command has brought, if no other process does.
pub(super) fn follow(dir: &Path) {
    let wants = || user::load().ok().flatten().is_some_and(|user| !user.channels.is_empty());
    if !wants() || !dir.join(JOURNAL).exists() {
        return;
    }
    let Ok(Some(head)) = statefile::seq_of(dir) else { return };
    let Ok(Some(ledger)) = ledger_of(dir) else { return };
    let is_new = ledger::read(&ledger)
        .is_none_or(|kept| kept.seq < head.seq || kept.waiting().values().any(|count| *count > 0));
    if !is_new || !matches!(ledger::try_turn(&ledger), Ok(Some(_))) {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    command.args(["notify", "deliver", "--dir"]).arg(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    if let Err(error) = command.spawn() {
        tracing::debug!(%error, "what waits for a person is told by the next command");
    }
}
