//! Waits for keys and news, and draws what they change. Nothing else wakes it.

use std::io;
use std::pin::pin;

use crossterm::event::{Event, KeyEventKind};
use tokio::select;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;

use super::action::Act;
use super::content::Content;
use super::place::Place;
use super::screen::{Screen, Wish};
use super::terminal::{Terminal, events};

/// What comes from the board.
pub(crate) enum News {
    Seen(Place, Content),
    /// The board cannot be read, and why.
    Lost(String),
    /// What was done, or why it was refused.
    Answered(Result<String, String>),
}

/// The ways to those who read and call the board.
pub(crate) struct Doors {
    pub news: UnboundedReceiver<News>,
    /// The place that is looked at.
    pub place: watch::Sender<Place>,
    pub acts: UnboundedSender<Act>,
}

/// Shows the screen until the person quits, or `ended` completes.
pub(crate) async fn run(
    mut screen: Screen,
    mut terminal: Terminal,
    mut doors: Doors,
    ended: impl Future<Output = ()>,
) -> io::Result<()> {
    let (mut ended, mut events) = (pin!(ended), events());
    loop {
        terminal.draw(&mut screen)?;
        select! {
            () = &mut ended => return Ok(()),
            event = events.recv() => {
                let Some(event) = event else { return Ok(()) };
                if handle(&mut screen, &mut terminal, &doors, event?)? {
                    return Ok(());
                }
            }
            news = doors.news.recv() => {
                let Some(news) = news else { return Ok(()) };
                take(&mut screen, news);
            }
        }
        // What is there already is drawn at once.
        while let Ok(event) = events.try_recv() {
            if handle(&mut screen, &mut terminal, &doors, event?)? {
                return Ok(());
            }
        }
        while let Ok(news) = doors.news.try_recv() {
            take(&mut screen, news);
        }
    }
}

/// Returns true if the person quits.
fn handle(
    screen: &mut Screen,
    terminal: &mut Terminal,
    doors: &Doors,
    event: Event,
) -> io::Result<bool> {
    let wish = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => screen.key(key),
        Event::Paste(text) => {
            screen.paste(&text);
            None
        }
        Event::Resize(..) => {
            let (columns, lines) = terminal.resize()?;
            screen.resize(columns, lines);
            None
        }
        _ => None,
    };
    match wish {
        Some(Wish::Quit) => return Ok(true),
        Some(Wish::Look) => _ = doors.place.send(screen.place().clone()),
        Some(Wish::Act(act)) => _ = doors.acts.send(act),
        None => {}
    }
    Ok(false)
}

fn take(screen: &mut Screen, news: News) {
    match news {
        News::Seen(place, content) => screen.show(&place, content),
        News::Lost(why) => screen.lose(why),
        News::Answered(answer) => screen.answered(answer),
    }
}
