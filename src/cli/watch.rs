//! `callboard watch`: events as they happen, until the reader has enough.

pub(super) mod line;
pub(super) mod names;

use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt;
use tokio::select;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::board::Board;
use super::{Outcome, Session, print, runtime, say};
use crate::participant::Stay;
use crate::participant::board_time;
use crate::rpc::client::{Client, ClientError, Events};
use crate::signal;
use crate::state::event::KINDS;
use crate::state::limit;
use crate::view::{Names, is_noise};

/// Most events on one page.
const PAGE: u32 = 200;
/// First and longest pause between attempts to reach a server that was there.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Show only events of this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Show only events of this kind; may be repeated
    #[arg(long, value_parser = PossibleValuesParser::new(KINDS), hide_possible_values = true)]
    kind: Vec<String>,
    /// Show only events that this agent caused; `human` is the person
    #[arg(long, value_name = "AGENT", alias = "by")]
    of: Option<String>,
    /// Begin after event SEQ; 0 begins with the first event [default: now]
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// Show signs of life, too, and what the board does by itself
    #[arg(long)]
    verbose: bool,
}

/// The events that are wanted.
#[derive(Default)]
pub(super) struct Wanted {
    task: Option<String>,
    kinds: Vec<String>,
    since: Option<u64>,
}

pub(super) fn run(session: &Session, mut arguments: Arguments) -> Outcome {
    arguments.task = session.task_id(arguments.task.as_deref())?;
    let runtime = runtime()?;
    let watched = runtime.block_on(watch(session, &arguments));
    // A write to a reader that does not read must not keep the process alive.
    runtime.shutdown_background();
    watched.map(|()| ExitCode::SUCCESS)
}

async fn watch(session: &Session, arguments: &Arguments) -> anyhow::Result<()> {
    let mut interrupt = pin!(signal::interruption()?);
    let mut reader_left = pin!(reader_left());
    let board = session.board(Stay::Lasting)?;
    let wanted = Wanted {
        task: arguments.task.clone(),
        kinds: arguments.kind.clone(),
        since: arguments.since,
    };
    let (mut feed, mut names) = (None, Names::default());
    let mut out = tokio::io::stdout();
    let mut progress = session.progress("waiting for the first event");
    loop {
        let events = async {
            let feed = match &mut feed {
                Some(feed) => feed,
                feed => feed.insert(Feed::start(&board, &wanted).await?),
            };
            let events = feed.next().await?;
            if !session.json {
                names.learn(&board, &events).await;
            }
            anyhow::Ok(events)
        };
        let events = select! {
            () = &mut interrupt => return Ok(()),
            () = &mut reader_left => return Ok(()),
            events = events => events?,
        };
        let text = written(session, arguments, &events, &names);
        if text.is_empty() {
            continue;
        }
        drop(progress.take());
        select! {
            () = &mut interrupt => return Ok(()),
            written = async { out.write_all(text.as_bytes()).await?; out.flush().await } => written?,
        }
    }
}

fn written(session: &Session, arguments: &Arguments, events: &[Value], names: &Names) -> String {
    let by = arguments.of.as_deref();
    let wanted = events.iter().filter(|event| by.is_none_or(|by| is_by(event, by)));
    if session.json {
        return wanted.map(|event| print::harmless_json(&event.to_string()) + "\n").collect();
    }
    let mut page = session.page(board_time(session.dir()));
    // A person who names kinds sees all of them.
    let is_all = arguments.verbose || !arguments.kind.is_empty();
    let told = wanted.filter(|event| is_all || !is_noise(event, names));
    told.for_each(|event| line::write(&mut page, event, names));
    page.into_text()
}

/// Whether who is called `name` caused the event.
fn is_by(event: &Value, name: &str) -> bool {
    event["actor"]
        .as_str()
        .is_some_and(|actor| crate::state::id::AgentId::trusted(actor).is_called(name))
}

/// Completes when our output goes to a closed pipe. On a quiet board, no write would show it.
pub(super) async fn reader_left() {
    let (sender, left) = oneshot::channel();
    // Waits for no events, so that only the other side's end wakes it.
    thread::spawn(move || {
        let out = io::stdout();
        let mut watched = [PollFd::new(&out, PollFlags::empty())];
        loop {
            match poll(&mut watched, None) {
                Ok(_) => return sender.send(()).unwrap_or_default(),
                Err(Errno::INTR) => {}
                // A write will show it.
                Err(_) => return,
            }
        }
    });
    if left.await.is_err() {
        std::future::pending().await
    }
}

/// The events after `seq`, in order.
pub(super) struct Feed<'a> {
    board: &'a Board,
    filter: Map<String, Value>,
    seq: u64,
    subscribed: Option<Events>,
    subscribed_at: Instant,
    /// Pause before the next attempt to subscribe; none after a connection that lasted.
    pause: Duration,
    /// Whether a lost connection is reported.
    is_reporting: bool,
}

impl<'a> Feed<'a> {
    pub(super) async fn start(board: &'a Board, wanted: &Wanted) -> anyhow::Result<Self> {
        let head = head(&board.call("get_status", json!({})).await?);
        if let Some(task) = &wanted.task {
            // Fails if the task does not exist: nothing would ever happen to it.
            board.call("get_task", json!({"task_id": task})).await?;
        }
        let mut filter = Map::new();
        if !wanted.kinds.is_empty() {
            filter.insert("kinds".to_owned(), json!(wanted.kinds));
        }
        if let Some(task) = &wanted.task {
            filter.insert("task_id".to_owned(), json!(task));
        }
        let seq = wanted.since.unwrap_or(head).min(head);
        let (subscribed_at, pause) = (Instant::now(), Duration::ZERO);
        let mut feed =
            Self { board, filter, seq, subscribed: None, subscribed_at, pause, is_reporting: true };
        if let Board::There(client) = board {
            feed.subscribed = Some(client.subscribe(feed.after()).await?);
        }
        Ok(feed)
    }

    /// The feed without reports on standard error, which would disturb a screen.
    pub(super) fn silent(self) -> Self {
        Self { is_reporting: false, ..self }
    }

    fn report(&self, what: &str) {
        if self.is_reporting {
            say(&format!("callboard: {what}"));
        }
    }

    /// The next events; none only if those that came did not match the filter.
    pub(super) async fn next(&mut self) -> anyhow::Result<Vec<Value>> {
        match self.board {
            Board::Here(..) => self.page().await,
            Board::There(client) => Ok(vec![self.event(client).await?]),
        }
    }

    async fn page(&mut self) -> anyhow::Result<Vec<Value>> {
        let mut arguments = self.after();
        arguments.insert("wait_seconds".to_owned(), Value::from(limit::WAIT.max));
        arguments.insert("limit".to_owned(), Value::from(PAGE));
        let mut reply = self.board.call("wait_for_events", Value::Object(arguments)).await?;
        self.seq = reply["next_seq"].as_u64().unwrap_or(self.seq);
        Ok(reply["events"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    async fn event(&mut self, client: &Client) -> Result<Value, ClientError> {
        loop {
            let events = match &mut self.subscribed {
                Some(events) => events,
                None => {
                    let events = self.resume(client).await?;
                    self.subscribed.insert(events)
                }
            };
            match events.next().await {
                Some(event) => {
                    self.seq = event["seq"].as_u64().unwrap_or(self.seq);
                    return Ok(event);
                }
                None => self.subscribed = None,
            }
        }
    }

    /// Resubscribes where the connection was cut, however long the server is away. If it is cut
    /// again and again, this is reported once.
    async fn resume(&mut self, client: &Client) -> Result<Events, ClientError> {
        if self.subscribed_at.elapsed() > LONGEST_PAUSE {
            self.pause = Duration::ZERO;
        }
        let is_news = self.pause.is_zero();
        if is_news {
            let (address, seq) = (client.address(), self.seq);
            self.report(&format!(
                "the connection to {address} was cut; going on after event {seq}"
            ));
        }
        loop {
            sleep(self.pause).await;
            self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            match self.resubscribe(client).await {
                Err(error) if error.is_passing() => {
                    tracing::debug!(%error, "not connected again yet")
                }
                Err(error) => return Err(error),
                Ok(events) => {
                    if is_news {
                        self.report(&format!("connected to {} again", client.address()));
                    }
                    self.subscribed_at = Instant::now();
                    return Ok(events);
                }
            }
        }
    }

    async fn resubscribe(&mut self, client: &Client) -> Result<Events, ClientError> {
        let head = head(&client.call("get_status", json!({})).await?);
        if head < self.seq {
            self.report("the board was made anew; going on with its first event");
            self.seq = 0;
        }
        client.subscribe(self.after()).await
    }

    fn after(&self) -> Map<String, Value> {
        let mut arguments = self.filter.clone();
        arguments.insert("since_seq".to_owned(), Value::from(self.seq));
        arguments
    }
}

fn head(status: &Value) -> u64 {
    status["seq"].as_u64().unwrap_or_default()
}
