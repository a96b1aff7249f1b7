//! `callboard ui`: the board in a terminal, live.

mod follow;
mod read;

use std::env;
use std::future::pending;
use std::io::{self, IsTerminal};
use std::panic;
use std::pin::pin;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::anyhow;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::select;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use self::read::Reader;
use super::board::Board;
use super::report::Declined;
use super::watch::reader_left;
use super::{Outcome, Session, usage_error};
use crate::ops::{GetAgents, GetStatus, Operation, get_agents};
use crate::participant::{BoardError, CallError, Stay, board_time};
use crate::signal;
use crate::state::agent::Role;
use crate::state::guard::HUMAN;
use crate::ui::{Act, Doors, Errand, Find, News, Place, Screen, Spelling, Terminal};

/// Time for calls under way to end, and for a terminal to take what gives it back.
const GRACE: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard ui\n  \
    callboard --agent reviewer ui\n\n\
    Keys: 1-6 the views, j and k up and down, Enter opens, / filters, ? shows all keys, q quits.\n\
    A text that you leave with Esc is there again when you come back to it. d shows the diff of a\n\
    task, where y approves and x sends back; u takes back your last command, and asks first.\n\
    M lets the mouse scroll and choose; until then it selects text, as ever.\n\
    With --server it shows the board of that server.\n\
    `callboard status` prints the first screen once.")]
pub(super) struct Arguments {}

/// What the tasks beside the screen share.
struct There {
    session: Session,
    board: Board,
    /// Number of calls that were answered.
    answered: AtomicU64,
}

pub(super) fn run(session: &Session, _: &Arguments) -> Outcome {
    if session.json {
        usage_error("`callboard ui` is for people; `callboard status --json` prints JSON");
    }
    check_terminal()?;
    if !session.has_board() {
        return Err(CallError::from(BoardError::Absent { dir: session.dir().to_owned() }).into());
    }
    let runtime = runtime()?;
    let shown = runtime.block_on(show(session));
    runtime.shutdown_timeout(GRACE);
    shown.map(|()| ExitCode::SUCCESS)
}

/// Refuses what could not be drawn on, or has no keys.
fn check_terminal() -> anyhow::Result<()> {
    let why = if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        "`callboard ui` needs a terminal, for its keys and its screen"
    } else if env::var_os("TERM").is_some_and(|terminal| terminal == "dumb") {
        "this terminal cannot move its cursor (TERM is dumb), which `callboard ui` needs"
    } else {
        return Ok(());
    };
    let instead = "`callboard status` prints the first screen";
    Err(Declined(anyhow!("{why}; {instead}")).into())
}

/// A runtime in which calls do not keep the screen waiting.
fn runtime() -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let entered = runtime.enter();
    signal::outlive_size_limit()?;
    drop(entered);
    Ok(runtime)
}

async fn show(session: &Session) -> anyhow::Result<()> {
    let ended = ended()?;
    let board = session.board(Stay::Lasting)?;
    // A board that cannot be read, or a server that cannot be reached, is said as by all commands.
    board.call(GetStatus::NAME, json!({})).await?;
    let role = role(session, &board).await?;
    let there = Arc::new(There { session: session.clone(), board, answered: AtomicU64::new(0) });
    let (sender, news) = unbounded_channel();
    let (errands, wanted) = unbounded_channel();
    let (place, wanted_place) = watch::channel(Place::Board);
    let mut beside = JoinSet::new();
    beside.spawn(follow::follow(Arc::clone(&there), wanted_place, sender.clone()));
    beside.spawn(carry_out(there, wanted, sender));
    let screen = Screen::new(role, Terminal::size(), spelling(session));
    let terminal = Terminal::take(session.coloured())?;
    select! {
        ended = crate::ui::run(screen, terminal, Doors { news, place, errands }, ended) => Ok(ended?),
        // They go on as long as the screen does, unless they panic.
        Some(ended) = beside.join_next() => match ended {
            Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            ended => Ok(ended?),
        },
    }
}

/// The role of who acts. An agent that is not registered is told so by what it calls.
async fn role(session: &Session, board: &Board) -> anyhow::Result<Role> {
    let Some(agent) = session.acting_agent()? else { return Ok(Role::Worker) };
    if agent.as_str() == HUMAN {
        return Ok(Role::Leader);
    }
    let mut reply = board.call(GetAgents::NAME, json!({})).await?;
    let agents = serde_json::from_value::<Vec<get_agents::Item>>(reply["agents"].take())?;
    let own = agents.iter().find(|item| item.agent.id == agent);
    Ok(own.map_or(Role::Worker, |item| item.agent.role))
}

fn spelling(session: &Session) -> Spelling {
    let (dir, is_utc) = (session.dir().to_owned(), session.utc);
    let wording = session.wording.of_nobody();
    Spelling {
        clock: Box::new(move |at| {
            super::print::Page::new(false, board_time(&dir)).in_utc(is_utc).clock(at)
        }),
        command: Box::new(move |words| wording.line(words)),
    }
}

/// Carries out what the person does, one after the other, as it was meant.
async fn carry_out(
    there: Arc<There>,
    mut errands: UnboundedReceiver<Errand>,
    news: UnboundedSender<News>,
) {
    let reader = Reader::new(Arc::clone(&there));
    while let Some(errand) = errands.recv().await {
        let found = match errand {
            Errand::Act(act) => News::Answered(there.answer(act).await),
            Errand::Find(Find::Undoable(event)) => {
                let undoable = reader.undoable(event).await;
                News::Undoable(undoable.map_err(|error| there.session.told(&error)))
            }
            Errand::Find(Find::Agents) => match reader.candidates().await {
                Ok(agents) => News::Agents(agents),
                // The ones that are known are there to choose from.
                Err(_) => continue,
            },
        };
        if news.send(found).is_err() {
            return;
        }
    }
}

impl There {
    async fn answer(&self, act: Act) -> Result<String, String> {
        let answer = self.board.call(act.operation, act.arguments).await;
        self.answered.fetch_add(1, Ordering::SeqCst);
        answer.map(|_| act.done).map_err(|error| self.session.told(&error))
    }
}

impl Session {
    /// The error in one line, in the words of the command line.
    fn told(&self, error: &anyhow::Error) -> String {
        self.wording.in_commands(&format!("{error:#}"))
    }
}

/// Completes when the process is to end: by a signal, or because the terminal has gone. Should the
/// screen not end within the grace, because its terminal takes nothing, the process ends all the
/// same.
fn ended() -> io::Result<impl Future<Output = ()>> {
    let signal = signal::ending()?;
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        let (mut signal, mut left) = (pin!(signal), pin!(reader_left()));
        let code = select! {
            number = &mut signal => 128 + number,
            () = &mut left => 0,
        };
        _ = sender.send(());
        tokio::time::sleep(2 * GRACE).await;
        _ = crossterm::terminal::disable_raw_mode();
        process::exit(code);
    });
    Ok(async move {
        if receiver.await.is_err() {
            pending().await
        }
    })
}
