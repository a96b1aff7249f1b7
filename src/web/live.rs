//! Open pages: what changes on the board is sent to them, as server-sent events.
//!
//! All open pages of one address and one visitor are one screen, which is rendered once for all of
//! them and only while one is open. The sections of a frame are compared with those of the frame
//! before, and those that differ are sent. A page that has missed frames, because it slept or the
//! server was restarted, gets all that differ since the one that it shows.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use maud::{Markup, html};
use tokio::select;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::shell::{self, HEAD};
use super::{Door, Page, Renewed, Seq, Visit};
use crate::ops::EventFilter;
use crate::participant::{CallError, Caller};
use crate::state::limit::OPEN_PAGES;

pub(super) const PATH: &str = "/live";
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Shortest time between two frames; one that takes long to render is followed by a longer one.
const GAP: Duration = Duration::from_millis(40);
const GAP_BY_WORK: u32 = 4;
/// Time after which a frame is made without a change: ages rise, and agents fall silent.
const AGEING: Duration = Duration::from_secs(20);
/// Interval of comments on a stream without frames, by which both ends notice that it is broken.
const PULSE: Duration = Duration::from_secs(15);
/// Longest time that a page waits between two attempts to connect. One in the background stays
/// connected: its title says how much waits, and it notifies the person.
const HX_CONFIG: &str = r#"{"sse":{"reconnectMaxDelay":5000,"pauseOnBackground":false}}"#;
/// Seconds after which a page that was one too many tries again.
const LATER: &str = "60";

/// The screens that are looked at.
pub(super) struct Live {
    /// Tells frames of this process from those of another.
    epoch: String,
    screens: Mutex<HashMap<Key, watch::Sender<Arc<Frame>>>>,
    /// How many pages each visitor has open.
    open: Arc<Pages>,
    pub(super) closing: CancellationToken,
}

/// Address and visitor of a page; the address is empty for all of whose pages only the head is kept
/// up to date, the visitor `None` for the person whose board it is.
type Key = (String, Option<String>);

/// What an open page shows.
#[derive(Default)]
struct Frame {
    /// Rises by one with each frame that differs; 0 before the first.
    number: u64,
    seq: u64,
    title: String,
    sections: Vec<Shown>,
    /// The frame since which the page consists of the same sections.
    layout: u64,
    /// What brings a page from the frame before to this one.
    step: Bytes,
}

#[derive(Clone)]
struct Shown {
    id: String,
    html: Arc<str>,
    /// The frame in which it was first like this.
    since: u64,
}

/// What a page has got already.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Has {
    /// What was on the board at this event.
    Seq(u64),
    Frame(u64),
    Unknown,
}

/// The element by which a page is kept up to date.
pub(super) fn connection(visit: &Visit, renewed: Renewed) -> Markup {
    let path = if renewed == Renewed::All { &*visit.path } else { "" };
    let page: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
    let address = format!("{PATH}?page={page}&seq={Seq}");
    html! { div #live hidden hx-sse:connect=(address) hx-config=(HX_CONFIG) hx-nonce=(visit.nonce) {} }
}

impl Live {
    pub(super) fn new(epoch: String) -> Self {
        Self {
            epoch,
            screens: Mutex::default(),
            open: Arc::default(),
            closing: CancellationToken::new(),
        }
    }

    fn screens(&self) -> MutexGuard<'_, HashMap<Key, watch::Sender<Arc<Frame>>>> {
        self.screens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver of the frames of a screen, which is rendered from now on.
    fn watch(&self, door: &Arc<Door>, visit: Visit) -> watch::Receiver<Arc<Frame>> {
        let key = (visit.path.clone(), visit.viewer());
        let mut screens = self.screens();
        if let Some(sender) = screens.get(&key) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(Arc::default());
        screens.insert(key.clone(), sender.clone());
        tokio::spawn(keep(Arc::clone(door), key, visit, sender));
        receiver
    }

    /// What a page has that connects: it says so in its address, or in a header if it was connected
    /// before.
    fn has(&self, request: &Parts) -> Has {
        let Some(last) = request.headers.get(LAST_EVENT) else {
            let seq = queried(request, "seq").and_then(|seq| seq.parse().ok());
            return seq.map_or(Has::Unknown, Has::Seq);
        };
        let number = last.to_str().ok().and_then(|last| {
            let (epoch, number) = last.rsplit_once('-')?;
            (epoch == self.epoch).then(|| number.parse().ok())?
        });
        number.map_or(Has::Unknown, Has::Frame)
    }
}

fn queried(request: &Parts, wanted: &str) -> Option<String> {
    let query = request.uri.query().unwrap_or_default().as_bytes();
    form_urlencoded::parse(query)
        .find(|(name, _)| name == wanted)
        .map(|(_, value)| value.into_owned())
}

/// The stream of an open page.
pub(super) fn answer(door: &Arc<Door>, visit: &Visit, request: &Parts) -> Response {
    let Some(caller) = &visit.caller else { return StatusCode::UNAUTHORIZED.into_response() };
    let Some(place) = Place::take(&door.live.open, visit.viewer()) else {
        tracing::warn!(OPEN_PAGES, "too many open pages of one visitor; a new one stays as it is");
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, LATER)]).into_response();
    };
    let Some(path) = queried(request, "page") else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    // The screen outlives the request that it is made for.
    let (gone, half_closed) = (CancellationToken::new(), CancellationToken::new());
    let caller = Caller { gone, half_closed, rate: None, ..caller.clone() };
    let screen = Visit { path, nonce: String::new(), caller: Some(caller), ..visit.clone() };
    let (has, epoch) = (door.live.has(request), door.live.epoch.clone());
    let receiver = door.live.watch(door, screen);
    let stream =
        unfold((receiver, has, epoch, place), |(mut receiver, has, epoch, place)| async move {
            let (bytes, has) = next(&mut receiver, has, &epoch).await?;
            Some((Ok::<_, Infallible>(bytes), (receiver, has, epoch, place)))
        });
    let stream = stream.take_until(door.live.closing.clone().cancelled_owned());
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}

/// The next piece of a stream, and what the page has then.
async fn next(
    receiver: &mut watch::Receiver<Arc<Frame>>,
    has: Has,
    epoch: &str,
) -> Option<(Bytes, Has)> {
    loop {
        let frame = Arc::clone(&receiver.borrow_and_update());
        let now = Has::Frame(frame.number);
        // A page that was loaded since this frame was rendered must not go back to it.
        let is_older = matches!(has, Has::Seq(seq) if frame.seq < seq);
        if frame.number > 0 && !is_older && has != now && has != Has::Seq(frame.seq) {
            let bytes = if has == Has::Frame(frame.number - 1) {
                frame.step.clone()
            } else {
                frame.since(has, epoch)
            };
            return Some((bytes, now));
        }
        let has_it = frame.number > 0 && !is_older;
        match timeout(PULSE, receiver.changed()).await {
            Err(_) => return Some((Bytes::from_static(b":\n\n"), if has_it { now } else { has })),
            Ok(changed) => changed.ok()?,
        }
        // What has not changed since the page was loaded need not be sent after the next change.
        if has_it && has != now {
            return Some((Bytes::from_static(b":\n\n"), now));
        }
    }
}

/// Renders a screen for as long as a page of it is open.
async fn keep(door: Arc<Door>, key: Key, visit: Visit, sender: watch::Sender<Arc<Frame>>) {
    let mut rendered = pin!(render(&door, &visit, &sender));
    loop {
        let ended = select! {
            () = sender.closed() => false,
            Err(error) = &mut rendered => {
                tracing::warn!(error = %error.message(), "open pages are not kept up to date");
                true
            }
        };
        // Another page may have been opened at the last moment.
        let mut screens = door.live.screens();
        if ended || sender.receiver_count() == 0 {
            screens.remove(&key);
            return;
        }
    }
}

async fn render(
    door: &Door,
    visit: &Visit,
    sender: &watch::Sender<Arc<Frame>>,
) -> Result<Infallible, CallError> {
    let mut listener = door.handle.listen(None, EventFilter::default()).await?;
    loop {
        let begun = Instant::now();
        let mut shown = 0;
        match door.page(visit).await {
            Ok((page, seq)) => {
                shown = seq;
                let frame = sender.borrow().after(page, seq, &door.live.epoch);
                frame.into_iter().for_each(|frame| _ = sender.send_replace(Arc::new(frame)));
            }
            Err(failure) => tracing::debug!(failure.text, "an open page was not rendered"),
        }
        let pause = GAP.max(begun.elapsed() * GAP_BY_WORK);
        sleep(pause).await;
        let newer = async {
            while listener.next().await?.recorded.seq <= shown {}
            Ok::<_, CallError>(())
        };
        select! {
            newer = newer => newer?,
            () = sleep(AGEING) => {}
        }
    }
}

impl Frame {
    /// The frame after this one; none if a page would show the same.
    fn after(&self, page: Page, seq: u64, epoch: &str) -> Option<Self> {
        let number = self.number + 1;
        let is_same_layout = self.number > 0
            && self
                .sections
                .iter()
                .map(|one| one.id.as_str())
                .eq(page.sections.iter().map(|one| &*one.id));
        let before: HashMap<_, _> =
            self.sections.iter().map(|one| (one.id.as_str(), one)).collect();
        let sections = page.sections.into_iter().map(|section| {
            let html = section.html.into_string();
            match before.get(&*section.id) {
                Some(shown) if *shown.html == *html => (*shown).clone(),
                _ => Shown { id: section.id.into_owned(), html: html.into(), since: number },
            }
        });
        let sections: Vec<_> = sections.collect();
        let is_same = is_same_layout
            && self.title == page.title
            && sections.iter().all(|one| one.since < number);
        let layout = if is_same_layout { self.layout } else { number };
        let mut frame =
            Self { number, seq, title: page.title, sections, layout, step: Bytes::new() };
        frame.step = frame.since(Has::Frame(self.number), epoch);
        (!is_same).then_some(frame)
    }

    /// The event that brings a page from what it has to this frame.
    fn since(&self, has: Has, epoch: &str) -> Bytes {
        let known = match has {
            Has::Frame(number) if number <= self.number => number,
            _ => 0,
        };
        let title = Some(&*self.title).filter(|title| !title.is_empty()).map(shell::whole_title);
        let mut text = html! { @if let Some(title) = title { title { (title) } } }.into_string();
        let mut inside = self.sections.iter().filter(|one| one.id != HEAD).peekable();
        if known < self.layout && inside.peek().is_some() {
            text.push_str("<hx-partial hx-target=\"main\" hx-swap=\"innerMorph\">");
            inside.for_each(|one| text.push_str(&one.html));
            text.push_str("</hx-partial>");
        }
        let is_apart = |one: &&Shown| known >= self.layout || one.id == HEAD;
        let changed = self.sections.iter().filter(|one| one.since > known);
        for Shown { id, html, .. } in changed.filter(is_apart) {
            // Writing to a string does not fail.
            _ = write!(
                text,
                "<hx-partial hx-target=\"#{id}\" hx-swap=\"outerMorph\">{html}</hx-partial>"
            );
        }
        let data = Seq::fill(&text, self.seq).replace(['\r', '\n'], "\ndata: ");
        format!("id: {epoch}-{}\ndata: {data}\n\n", self.number).into()
    }
}

/// Pages that are open, by visitor.
type Pages = Mutex<HashMap<Option<String>, usize>>;

/// One of the pages that a visitor may have open at once.
struct Place {
    pages: Arc<Pages>,
    visitor: Option<String>,
}

impl Place {
    fn take(pages: &Arc<Pages>, visitor: Option<String>) -> Option<Self> {
        let mut counts = pages.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(visitor.clone()).or_default();
        if *count == OPEN_PAGES {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Self { pages: Arc::clone(pages), visitor })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.visitor) {
            *count -= 1;
        }
        counts.retain(|_, count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, Place as Spot};
    use super::*;
    use crate::web::Section;

    fn page(sections: &[(&'static str, &str)]) -> Page {
        let section = |(id, text): &(&'static str, &str)| Section {
            id: (*id).into(),
            html: html! { section id=(id) { (text) (Seq) } },
        };
        let sections = sections.iter().map(section).collect();
        Page {
            title: "T".to_owned(),
            place: Spot::None,
            layout: Layout::Page,
            sections,
            renewed: Renewed::All,
        }
    }

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn frame_sends_what_changed_since_the_one_that_a_page_has() {
        let first = Frame::default().after(page(&[("a", "1"), ("b", "1")]), 5, "e").unwrap();
        assert!(
            first.after(page(&[("a", "1"), ("b", "1")]), 6, "e").is_none(),
            "it looks the same"
        );
        let second = first.after(page(&[("a", "2"), ("b", "1")]), 7, "e").unwrap();
        let third = second.after(page(&[("a", "2"), ("b", "3")]), 8, "e").unwrap();
        assert_eq!(
            text(&third.step),
            "id: e-3\ndata: <title>T · callboard</title><hx-partial hx-target=\"#b\" hx-swap=\"outerMorph\">\
             <section id=\"b\">38</section></hx-partial>\n\n"
        );
        let both = third.since(Has::Frame(1), "e");
        assert!(text(&both).contains("#a") && text(&both).contains("#b"), "{both:?}");
        for has in [Has::Unknown, Has::Seq(5), Has::Frame(9)] {
            let whole = third.since(has, "e");
            assert!(text(&whole).contains("hx-target=\"main\""), "{has:?}: {whole:?}");
        }
    }

    #[test]
    fn pages_of_one_visitor_leave_room_for_those_of_others() {
        let pages = Arc::default();
        let take = |visitor: Option<&str>| Place::take(&pages, visitor.map(str::to_owned));
        let mut all: Vec<_> = (0..OPEN_PAGES).map_while(|_| take(Some("observer"))).collect();
        assert_eq!((all.len(), take(Some("observer")).is_none()), (OPEN_PAGES, true));
        assert!(take(None).is_some() && take(Some("other")).is_some());
        all.pop();
        assert!(take(Some("observer")).is_some());
        drop(all);
        assert!(pages.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn page_does_not_go_back_to_a_frame_from_before_it_was_loaded() {
        let first = Frame::default().after(page(&[("a", "1")]), 5, "e").unwrap();
        let later = first.after(page(&[("a", "3")]), 8, "e").unwrap();
        let (sender, mut receiver) = watch::channel(Arc::new(first));
        let mut waiting = pin!(next(&mut receiver, Has::Seq(7), "e"));
        select! {
            biased;
            sent = &mut waiting => panic!("{:?}", sent.map(|(bytes, _)| bytes)),
            () = std::future::ready(()) => {}
        }
        sender.send_replace(Arc::new(later));
        let (sent, has) = waiting.await.unwrap();
        assert!(text(&sent).contains("38"), "{sent:?}");
        assert_eq!(has, Has::Frame(2));
    }

    #[test]
    fn page_with_other_sections_is_sent_as_a_whole() {
        let first = Frame::default().after(page(&[("a", "1")]), 5, "e").unwrap();
        let second = first.after(page(&[("b", "1"), ("a", "1")]), 6, "e").unwrap();
        assert!(text(&second.step).contains("hx-target=\"main\" hx-swap=\"innerMorph\""));
        let third = second.after(page(&[("b", "1"), ("a", "2")]), 7, "e").unwrap();
        assert!(!text(&third.step).contains("main"));
        assert!(text(&third.since(Has::Frame(1), "e")).contains("main"), "it has the old sections");
    }

    #[test]
    fn lines_of_a_text_are_lines_of_the_event() {
        let frame =
            Frame::default().after(page(&[("a", "one\ntwo\r\n\nid: evil\n\n")]), 5, "e").unwrap();
        let text = text(&frame.step);
        let lines = text.trim_end().lines();
        assert!(lines.skip(1).all(|line| line.starts_with("data: ")), "{text}");
        assert!(!text.contains('\r') && text.ends_with("\n\n"));
    }
}
