//! Makes notices of events and has them delivered, in one process of a board at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::select;
use tokio::sync::{Notify, oneshot};
use tokio::time::{interval, sleep};

use super::channel;
use super::ledger::{self, Kept, Ledger, Turn, now_millis};
use super::notice::{self, Kind, Standing};
use super::settings::Channel;
use crate::ops::EventFilter;
use crate::participant::{CallError, Handle, board_time};
use crate::state::State;
use crate::state::event::Recorded;

/// How often agents are looked at for that.
const LOOK: Duration = Duration::from_secs(30);
/// Most that a short-lived process waits for slow receivers.
const PATIENCE: Duration = Duration::from_secs(600);

/// What to tell of a board, and how.
pub(crate) struct Telling {
    pub handle: Handle,
    pub channels: Vec<Channel>,
    /// Directory of the ledger.
    pub dir: PathBuf,
    /// The event after which a new ledger begins.
    pub since: u64,
    /// The board's directory, for the notices.
    pub board: String,
    /// Name of the person who is told.
    pub me: Option<Arc<str>>,
}

impl Telling {
    /// Tells for as long as this process lives, once no other process does.
    pub(crate) async fn stay(self) {
        let Some(_turn) = awaited_turn(&self.dir).await else { return };
        if let Err(error) = self.tell(None).await {
            tracing::warn!(%error, "what waits for a person is not told any more");
        }
    }

    /// Tells what there is, and returns. Does nothing while another process has the turn.
    pub(crate) async fn pass(self) -> io::Result<()> {
        loop {
            let Some(turn) = ledger::try_turn(&self.dir)? else { return Ok(()) };
            let head = self.head().await.map_err(io::Error::other)?;
            self.tell(Some(head)).await.map_err(io::Error::other)?;
            drop(turn);
            // What came while this process had the turn was left to it.
            let seq = ledger::read(&self.dir).map_or(0, |kept| kept.seq);
            if self.head().await.map_err(io::Error::other)? <= seq {
                return Ok(());
            }
        }
    }

    async fn head(&self) -> Result<u64, CallError> {
        self.handle.look(State::seq).await
    }

    /// Tells of all events up to `until`, or for ever.
    async fn tell(&self, until: Option<u64>) -> anyhow::Result<()> {
        let ledger = Ledger::open(&self.dir, self.since);
        ledger.change(|kept| kept.keep_only(&self.channels))?;
        let news = Notify::new();
        let deliveries = join_all(
            self.channels.iter().map(|channel| deliver(channel, &ledger, &news, until.is_some())),
        );
        match until {
            None => {
                let made = self.make_for_ever(&ledger, &news);
                select! { made = made => made, _ = deliveries => Ok(()) }
            }
            Some(head) => {
                self.make_up_to(head, &ledger).await?;
                select! {
                    delivered = deliveries => delivered.into_iter().collect::<io::Result<()>>()?,
                    () = sleep(PATIENCE) => {}
                }
                Ok(())
            }
        }
    }

    async fn make_up_to(&self, head: u64, ledger: &Ledger) -> anyhow::Result<()> {
        let mut events = self.handle.listen(Some(ledger.seq()), EventFilter::default()).await?;
        while events.seq() < head {
            let item = events.next().await?;
            self.make(&item.recorded, ledger).await?;
        }
        self.look_round(ledger).await
    }

    async fn make_for_ever(&self, ledger: &Ledger, news: &Notify) -> anyhow::Result<()> {
        let mut events = self.handle.listen(Some(ledger.seq()), EventFilter::default()).await?;
        let mut look = interval(LOOK);
        loop {
            select! {
                item = events.next() => self.make(&item?.recorded, ledger).await?,
                _ = look.tick() => self.look_round(ledger).await?,
            }
            news.notify_waiters();
        }
    }

    /// Notes the event as seen, with the notices that it brings.
    async fn make(&self, recorded: &Recorded, ledger: &Ledger) -> anyhow::Result<()> {
        let (board, event, at) = (self.board.clone(), recorded.clone(), recorded.at);
        let me = self.me.clone();
        let (notice, standing) = self
            .handle
            .look(move |state| {
                (notice::of(&event, state, &board, me.as_deref()), Standing::of(state, at))
            })
            .await?;
        ledger.change(|kept| {
            kept.seq = kept.seq.max(recorded.seq);
            if let Some(notice) = &notice {
                kept.push(&self.channels, notice);
            }
            if standing.is_after(recorded.seq) {
                self.compare(&standing, kept);
            }
        })?;
        Ok(())
    }

    /// Tells of what the board has come to, once.
    fn compare(&self, standing: &Standing, kept: &mut Kept) {
        let (stuck, finished) = (standing.is_stuck(), standing.is_finished());
        let news = [
            (Kind::Stuck, stuck && !kept.was_stuck),
            (Kind::Finished, finished && !kept.was_finished),
        ];
        for (kind, _) in news.into_iter().filter(|(_, is_new)| *is_new) {
            kept.push(&self.channels, &standing.notice(kind, &self.board));
        }
        (kept.was_stuck, kept.was_finished) = (stuck, finished);
    }

    /// Looks for what no event says: an agent that is quiet.
    async fn look_round(&self, ledger: &Ledger) -> anyhow::Result<()> {
        let (board, now) = (self.board.clone(), board_time(Path::new(&self.board)));
        let quiet = self.handle.look(move |state| notice::quiet(state, now, &board)).await?;
        if ledger.knows_quiet(&quiet) {
            return Ok(());
        }
        ledger.change(|kept| {
            for (agent, at, notice) in &quiet {
                if kept.quiet.insert(agent.clone(), *at) != Some(*at) {
                    kept.push(&self.channels, notice);
                }
            }
            kept.quiet.retain(|agent, _| quiet.iter().any(|(one, ..)| one == agent));
        })?;
        Ok(())
    }
}

/// Waits for the turn on a thread of its own: a lock cannot be awaited.
async fn awaited_turn(dir: &Path) -> Option<Turn> {
    let (sender, turn) = oneshot::channel();
    let dir = dir.to_owned();
    let spawned =
        thread::Builder::new().name("turn".to_owned()).spawn(move || match ledger::turn(&dir) {
            Ok(turn) => drop(sender.send(turn)),
            Err(error) => tracing::warn!(%error, "what waits for a person is not told"),
        });
    spawned.ok()?;
    turn.await.ok()
}

/// Delivers what waits for a channel, oldest first. With `ends`, until nothing waits.
async fn deliver(channel: &Channel, ledger: &Ledger, news: &Notify, ends: bool) -> io::Result<()> {
    let way = channel.way.name();
    loop {
        let came = news.notified();
        let Some(pending) = ledger.next(way) else {
            if ends {
                return Ok(());
            }
            came.await;
            continue;
        };
        let pause = Duration::from_millis(pending.next_at.saturating_sub(now_millis()));
        sleep(pause.min(LOOK)).await;
        if pending.next_at > now_millis() {
            continue;
        }
        let ended = channel::deliver(&channel.way, &pending.notice).await;
        ledger.settle(way, &pending, &ended)?;
    }
}
