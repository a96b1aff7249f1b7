//! `callboard status --watch`: the screen, drawn anew after each change of the board.

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::select;
use tokio::time::{Instant, sleep_until};

use super::{Arguments, Seen, write};
use crate::cli::watch::{Feed, Wanted, reader_left};
use crate::cli::{Outcome, Session, print, runtime};
use crate::participant::{Stay, board_time};
use crate::signal;

/// Time for which changes are gathered before they are shown.
const GATHERED: Duration = Duration::from_millis(100);
/// Time after which the screen is drawn anew without a change: ages rise, and agents fall silent.
const AGEING: Duration = Duration::from_secs(30);
/// Moves to the first column of the first line; clears the rest of a line, and of the screen.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST: &str = "\x1b[J";

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    let runtime = runtime()?;
    let shown = runtime.block_on(show(session, arguments));
    // A write to a reader that does not read must not keep the process alive.
    runtime.shutdown_background();
    shown.map(|()| ExitCode::SUCCESS)
}

async fn show(session: &Session, arguments: &Arguments) -> anyhow::Result<()> {
    let mut interrupt = pin!(signal::interruption()?);
    let mut reader_left = pin!(reader_left());
    let board = session.board(Stay::Lasting)?;
    let mut out = tokio::io::stdout();
    let mut feed = None;
    loop {
        let drawn = async {
            let feed = match &mut feed {
                Some(feed) => feed,
                feed => feed.insert(Feed::start(&board, &Wanted::default()).await?),
            };
            let seen =
                Seen::of(session, &board, arguments.scope.as_deref(), arguments.rows()).await?;
            let text = text(session, arguments, &seen);
            out.write_all(text.as_bytes()).await?;
            out.flush().await?;
            changed(feed).await
        };
        select! {
            () = &mut interrupt => return Ok(()),
            () = &mut reader_left => return Ok(()),
            drawn = drawn => drawn?,
        }
    }
}

/// Completes when there is something new to show.
async fn changed(feed: &mut Feed<'_>) -> anyhow::Result<()> {
    let mut shown_at = Instant::now() + AGEING;
    loop {
        select! {
            events = feed.next() => {
                if !events?.is_empty() {
                    shown_at = shown_at.min(Instant::now() + GATHERED);
                }
            }
            () = sleep_until(shown_at) => return Ok(()),
        }
    }
}

fn text(session: &Session, arguments: &Arguments, seen: &Seen) -> String {
    if session.json {
        return print::harmless_json(&seen.json.to_string()) + "\n";
    }
    let mut page = session.page(board_time(session.dir()));
    write(&mut page, session, arguments, seen);
    let text = page.into_text();
    if !io::stdout().is_terminal() {
        return text + "\n";
    }
    let lines = text.replace('\n', &format!("{REST_OF_LINE}\n"));
    format!("{HOME}{lines}{REST}")
}
