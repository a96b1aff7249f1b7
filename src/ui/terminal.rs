//! The terminal: taken over at the start, and given back however the process ends.

use std::io::{self, Stdout, Write as _, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::ThreadId;
use std::{env, panic, thread};

use crossterm::cursor::Show;
use crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    Event,
};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{TerminalOptions, Viewport};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::draw::{Paint, draw};
use super::screen::Screen;
use crate::failpoint;
use crate::harmless::shown::harmless;

/// Size of a terminal that does not report any.
const COLUMNS: u16 = 80;
const LINES: u16 = 24;

/// Whether the terminal is taken over. It must not be given back twice: the second time would put
/// the cursor over what was reported after the first.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// Panics of other threads, to be reported once the terminal is given back.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(crate) struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Stdout>>,
    paint: Paint,
}

impl Terminal {
    /// Takes the terminal over, until this is dropped.
    pub(crate) fn take(is_coloured: bool) -> io::Result<Self> {
        give_back_on_panic(thread::current().id());
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        let paint = Paint { is_coloured, is_unicode: is_unicode() };
        let taken =
            execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, Clear(ClearType::All));
        let opened = taken.and_then(|()| {
            let (columns, lines) = Self::size();
            let viewport = Viewport::Fixed(Rect::new(0, 0, columns, lines));
            let backend = CrosstermBackend::new(stdout());
            let inner = ratatui::Terminal::with_options(backend, TerminalOptions { viewport })?;
            Ok(Self { inner, paint })
        });
        opened.inspect_err(|_| give_back())
    }

    pub(crate) fn size() -> (u16, u16) {
        let given = |name: &str| env::var(name).ok()?.parse::<u16>().ok().filter(|size| *size > 0);
        let (columns, lines) = size().unwrap_or_default();
        let known = |size: u16, name: &str, other: u16| {
            if size > 0 { size } else { given(name).unwrap_or(other) }
        };
        (known(columns, "COLUMNS", COLUMNS), known(lines, "LINES", LINES))
    }

    pub(super) fn resize(&mut self) -> io::Result<(u16, u16)> {
        let (columns, lines) = Self::size();
        self.inner.resize(Rect::new(0, 0, columns, lines))?;
        Ok((columns, lines))
    }

    /// Captures the mouse, or gives it back to the terminal, which selects text with it.
    pub(super) fn capture_mouse(&mut self, is_wanted: bool) -> io::Result<()> {
        if is_wanted {
            execute!(stdout(), EnableMouseCapture)
        } else {
            execute!(stdout(), DisableMouseCapture)
        }
    }

    pub(super) fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        failpoint::hit("ui-draw")?;
        let paint = self.paint;
        self.inner.draw(|frame| draw(screen, frame.area(), frame.buffer_mut(), paint))?;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Puts the terminal back into the state in which it was taken over. A terminal that has gone takes
/// nothing any more.
fn give_back() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = stdout();
    _ = execute!(out, DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, Show);
    _ = disable_raw_mode();
    let panics = PANICS.lock().map(|mut panics| std::mem::take(&mut *panics)).unwrap_or_default();
    panics.iter().for_each(|panic| _ = writeln!(stderr(), "{panic}"));
}

/// Gives the terminal back before a panic of the thread that draws is reported, which would not be
/// seen otherwise. The panic of another is reported when that thread has given the terminal back.
fn give_back_on_panic(drawing: ThreadId) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            if IS_TAKEN.load(Ordering::SeqCst) && thread::current().id() != drawing {
                let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
                panics.push(harmless(&panicked.to_string()));
                return;
            }
            give_back();
            report(panicked);
        }));
    });
}

/// Whether the locale's encoding is UTF-8, by the first of the variables that is set.
fn is_unicode() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale =
        names.into_iter().filter_map(|name| env::var(name).ok()).find(|set| !set.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Keys, and what else the terminal tells. They are read by a thread of their own, because a read
/// waits for the next.
pub(super) fn events() -> UnboundedReceiver<io::Result<Event>> {
    let (sender, events) = unbounded_channel();
    thread::spawn(move || {
        loop {
            let event = event::read();
            let is_last = event.is_err();
            if sender.send(event).is_err() || is_last {
                return;
            }
        }
    });
    events
}
