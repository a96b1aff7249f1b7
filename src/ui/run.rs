//! Waits for keys and news, and draws what they change. Nothing else wakes it.

use std::io;
use std::pin::pin;

use crossterm::event::{Event, KeyEventKind};
use tokio::select;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;

use super::action::{Act, Find};
use super::choice::Candidate;
use super::content::Content;
use super::form::Undoable;
use super::place::Place;
use super::screen::{Screen, Wish};
use super::terminal::{Terminal, events};

/// What comes from the board.
pub(crate) enum News {
    Seen {
        place: Place,
        content: Content,
        /// Number of calls that were answered before it was read.
        answered: u64,
    },
    /// The board cannot be read, and why.
    Lost(String),
    /// What was done, or why it was refused.
    Answered(Result<String, String>),
    Agents(Vec<Candidate>),
    /// What would be taken back, or why nothing can be.
    Undoable(Result<Undoable, String>),
}

/// What is to be done on the board, or looked up there, in this order.
pub(crate) enum Errand {
    Act(Act),
    Find(Find),
}

/// The ways to those who read and call the board.
pub(crate) struct Doors {
    pub news: UnboundedReceiver<News>,
    /// The place that is looked at.
    pub place: watch::Sender<Place>,
    pub errands: UnboundedSender<Errand>,
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
        Event::Mouse(mouse) => {
            screen.mouse(mouse);
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
        Some(Wish::Act(act)) => _ = doors.errands.send(Errand::Act(act)),
        Some(Wish::Mouse(is_wanted)) => terminal.capture_mouse(is_wanted)?,
        Some(Wish::Find(find)) => _ = doors.errands.send(Errand::Find(find)),
        None => {}
    }
    Ok(false)
}

fn take(screen: &mut Screen, news: News) {
    match news {
        News::Seen { place, content, answered } => {
            screen.catch_up(answered);
            screen.show(&place, content);
        }
        News::Lost(why) => screen.lose(why),
        News::Answered(answer) => screen.answered(answer),
        News::Agents(agents) => screen.know_agents(agents),
        News::Undoable(undoable) => screen.ask_to_undo(undoable),
    }
}
