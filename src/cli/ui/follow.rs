//! Reads the place that is looked at whenever the board changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::select;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::There;
use super::read::Reader;
use crate::cli::watch::{Feed, Wanted};
use crate::failpoint;
use crate::ui::{News, Place};

/// Time for which changes are gathered before they are shown.
const GATHERED: Duration = Duration::from_millis(50);
/// Part of the time that may go into reading a large board again and again.
const SHARE: u32 = 4;
/// Time after which ages are told anew where nothing happens.
const AGEING: Duration = Duration::from_secs(60);
/// Pause before a board that could not be read is read again.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn follow(
    there: Arc<There>,
    mut place: watch::Receiver<Place>,
    news: UnboundedSender<News>,
) {
    let mut reader = Reader::new(Arc::clone(&there));
    loop {
        let Err(error) = until_lost(&there, &mut reader, &mut place, &news).await else { return };
        if news.send(News::Lost(there.session.told(&error))).is_err() {
            return;
        }
        sleep(PAUSE).await;
    }
}

/// Returns without an error when the screen has ended.
async fn until_lost(
    there: &There,
    reader: &mut Reader,
    place: &mut watch::Receiver<Place>,
    news: &UnboundedSender<News>,
) -> anyhow::Result<()> {
    let mut feed = Feed::start(&there.board, &Wanted::default()).await?.silent();
    loop {
        let begin = Instant::now();
        let here = place.borrow_and_update().clone();
        failpoint::hit("ui-read")?;
        let answered = there.answered.load(Ordering::SeqCst);
        let content = reader.read(&here).await?;
        if news.send(News::Seen { place: here, content, answered }).is_err() {
            return Ok(());
        }
        let rested = Instant::now() + GATHERED.max(begin.elapsed() * SHARE);
        let mut next = Instant::now() + AGEING;
        loop {
            select! {
                changed = place.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return Ok(()),
                },
                events = feed.next() => {
                    if !events?.is_empty() {
                        next = next.min(rested.max(Instant::now() + GATHERED));
                    }
                }
                () = sleep_until(next) => break,
            }
        }
    }
}
