//! Draws the screen: names of the views, the view, and the keys at the foot; what is asked lies over
//! it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Spans, Span};
use ratatui::widgets::{Block, Clear, Widget};

use super::action::Action;
use super::choice::Choice;
use super::first::Line;
use super::form::{Ask, Form};
use super::place::Place;
use super::screen::{Over, Screen};
use crate::harmless::shown::harmless;
use crate::view::Tone;
use crate::view::columns::{cut, folded, joined, left, widest, width};

/// Smallest window with room for a view.
const COLUMNS: u16 = 30;
const LINES: u16 = 7;
/// Widest window over a view.
const WIDEST: u16 = 76;
/// Most names to choose from that are shown at once, and their widest column.
const NAMES: usize = 8;
const NAME: usize = 24;

/// What the terminal can show.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    pub is_coloured: bool,
    /// Whether it shows more than ASCII.
    pub is_unicode: bool,
}

pub(super) fn draw(screen: &mut Screen, area: Rect, buffer: &mut Buffer, paint: Paint) {
    if area.is_empty() {
        return;
    }
    let mut canvas = Canvas { buffer, area, paint };
    if area.width < COLUMNS || area.height < LINES {
        canvas.too_small(screen);
    } else {
        canvas.view(screen);
    }
    if !paint.is_unicode {
        to_ascii(buffer);
    }
}

struct Canvas<'b> {
    buffer: &'b mut Buffer,
    area: Rect,
    paint: Paint,
}

impl Canvas<'_> {
    fn style(&self, tone: Tone) -> Style {
        if !self.paint.is_coloured {
            return Style::new();
        }
        match tone {
            Tone::Plain => Style::new(),
            Tone::Good => Style::new().fg(Color::Green),
            Tone::Busy => Style::new().fg(Color::Yellow),
            Tone::Waiting => Style::new().fg(Color::Cyan),
            Tone::Bad => Style::new().fg(Color::Red),
            Tone::Over => Style::new().fg(Color::DarkGray),
        }
    }

    /// Draws one line of the area. Nothing reaches the terminal but through here, where it is made
    /// harmless.
    fn line(&mut self, y: u16, line: &Line) {
        let spans: Vec<Span<'_>> = line
            .iter()
            .map(|(tone, text)| Span::styled(harmless(text).replace('\n', " "), self.style(*tone)))
            .collect();
        let area = self.area;
        self.buffer.set_line(area.x, area.y + y, &Spans::from(spans), area.width);
    }

    fn text(&mut self, y: u16, tone: Tone, text: impl Into<String>) {
        self.line(y, &vec![(tone, text.into())]);
    }

    /// The most important in a window without room for a view.
    fn too_small(&mut self, screen: &Screen) {
        let size = format!("window too small: {COLUMNS} x {LINES} needed");
        let waits = format!("{} for you", screen.waits);
        let columns = usize::from(self.area.width);
        let mut lines = folded(&size, 0, columns);
        lines.insert(0, waits);
        lines.push("q quits".to_owned());
        for (y, line) in (0..self.area.height).zip(lines) {
            self.text(y, Tone::Busy, cut(&line, columns));
        }
    }

    fn view(&mut self, screen: &mut Screen) {
        self.tabs(screen);
        let height = self.area.height;
        let head = screen.here().head().to_vec();
        // Where there is little room, the lists need it more.
        let head = if height >= 16 { head } else { head.into_iter().take(1).collect() };
        for (y, line) in (1..).zip(&head) {
            self.line(y, line);
        }
        let top = 1 + u16::try_from(head.len()).unwrap_or_default();
        self.rows(screen, top);
        self.foot(screen);
        match &screen.over {
            Over::Help => self.help(),
            Over::Ask(ask) => self.ask(ask),
            Over::Form(form) => self.form(form),
            Over::Undo => {
                let mut over = self.over(1, "Esc: leave");
                over.text(0, Tone::Over, "looking up what would be taken back…");
            }
            Over::Nothing | Over::Filter => {}
        }
    }

    fn tabs(&mut self, screen: &Screen) {
        let is_brief = self.area.width < 60;
        let mut line = Line::new();
        for (index, place) in Place::VIEWS.iter().enumerate() {
            let is_here = place == screen.place();
            let name = if is_brief && !is_here { "".into() } else { place.name() };
            let waits = match place {
                Place::Board if screen.waits > 0 => format!(" ({})", screen.waits),
                _ => String::new(),
            };
            let tone = if is_here { Tone::Waiting } else { Tone::Over };
            line.push((tone, format!("{} {name}{waits}  ", index + 1)));
        }
        if !Place::VIEWS.contains(screen.place()) {
            line.push((Tone::Waiting, format!("› {}", screen.place().name())));
        }
        self.line(0, &line);
    }

    fn rows(&mut self, screen: &mut Screen, top: u16) {
        let height = self.area.height.saturating_sub(top + 1);
        screen.rows_from = top;
        let here = screen.here_mut();
        if here.content.is_none() {
            self.text(top, Tone::Over, "…");
            return;
        }
        let is_filtered = here.found() == Some(0);
        let (lines, cursor) = here.window(height.into());
        let lines: Vec<Line> = lines.into_iter().cloned().collect();
        for (y, line) in (top..top + height).zip(&lines) {
            self.line(y, line);
        }
        if is_filtered {
            self.text(top, Tone::Over, "nothing has these words; Esc shows all");
        }
        let cursor = cursor.and_then(|cursor| u16::try_from(cursor).ok());
        if let Some(y) = cursor.map(|cursor| top + cursor).filter(|y| *y < top + height) {
            let row = Rect { y: self.area.y + y, height: 1, ..self.area };
            self.buffer.set_style(row, Modifier::REVERSED);
        }
    }

    fn foot(&mut self, screen: &Screen) {
        let y = self.area.height - 1;
        let room = usize::from(self.area.width);
        let here = screen.here();
        if let Some((tone, notice)) = &screen.notice {
            self.told(*tone, notice);
        } else if let Some(lost) = &screen.lost {
            self.told(Tone::Bad, &format!("not live: {lost} (q quits)"));
        } else if matches!(screen.over, Over::Filter) {
            self.text(y, Tone::Waiting, format!("/{}_", here.filter));
        } else {
            // How to learn of the others is always there.
            let help = "? help";
            let (line, _) = joined(&hints(screen), room - width(help) - 3);
            let gap = if line.is_empty() { "" } else { " · " };
            self.text(y, Tone::Over, format!("{line}{gap}{help}"));
        }
    }

    /// A message at the foot. It may name what to do, so it is shown whole if half of the window
    /// has room for it.
    fn told(&mut self, tone: Tone, text: &str) {
        let lines = folded(&harmless(text), 0, self.area.width.into());
        let count = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(self.area.height / 2);
        for (y, line) in (self.area.height - count..).zip(lines.iter().take(count.into())) {
            let row = Rect { y: self.area.y + y, height: 1, ..self.area };
            Clear.render(row, self.buffer);
            self.text(y, tone, line);
        }
    }

    fn help(&mut self) {
        let general = [
            ("1-6", "the views"),
            ("j k g G", "down, up, first, last; also arrows, PgUp, PgDn"),
            ("Enter l", "open; Esc or h goes back"),
            ("/", "show only what has these words"),
            ("q M", "quit; let the mouse scroll and choose here, or give it back"),
            ("Esc Ctrl-U", "in a text: leave it, to go on later; clear it"),
        ];
        let mut lines: Vec<String> =
            general.iter().map(|(keys, what)| format!("{keys:<12} {what}")).collect();
        lines.push(String::new());
        let helps = Action::ALL.into_iter().filter_map(|action| Some((action, action.help()?)));
        lines.extend(helps.map(|(action, help)| format!("{:<12} {help}", action.key())));
        let mut over = self.over(lines.len(), "any key closes this");
        for (y, line) in (0..over.area.height).zip(lines) {
            over.text(y, Tone::Plain, line);
        }
    }

    fn ask(&mut self, ask: &Ask) {
        let room = usize::from(self.area.width.min(WIDEST) - 4);
        let mut lines = folded(&harmless(&ask.question), 0, room);
        // Whatever is listed, the answers need their lines.
        let most = usize::from(self.area.height).saturating_sub(3 + ask.choices.len()).max(1);
        if lines.len() > most {
            let hidden = lines.len() + 1 - most;
            lines.truncate(most - 1);
            lines.push(format!("  … {hidden} more lines"));
        }
        lines.push(String::new());
        lines.extend(ask.choices.iter().map(|(key, word, _)| format!("{key}  {word}")));
        let mut over = self.over(lines.len(), "any other key: no");
        for (y, line) in (0..over.area.height).zip(lines) {
            over.text(y, Tone::Plain, line);
        }
    }

    fn form(&mut self, form: &Form) {
        let room = usize::from(self.area.width.min(WIDEST) - 4);
        let mut lines = folded(&harmless(&form.title()), 0, room);
        let typed = form.typed();
        let names = form.choice.as_ref().map(|choice| names(choice, &typed)).unwrap_or_default();
        let tall = if form.is_tall() { 4 } else { 1 + names.len() };
        // The field needs a line whatever is asked.
        lines.truncate(usize::from(self.area.height.saturating_sub(4)).max(1));
        let keys = match (&form.choice, form.is_tall()) {
            (Some(_), _) => "Enter: done  Up, Down: choose  Ctrl-U: clear  Esc: leave",
            (None, true) => {
                "Enter: done  Ctrl-J: new line  Ctrl-U: clear  Esc: leave, keeps the text"
            }
            (None, false) => "Enter: done  Ctrl-U: clear  Esc: leave, keeps the text",
        };
        let mut over = self.over(lines.len() + tall, keys);
        let asked = u16::try_from(lines.len()).unwrap_or_default();
        for (y, line) in (0..over.area.height).zip(lines) {
            over.text(y, Tone::Waiting, line);
        }
        let inner = over.area;
        let left = inner.height.saturating_sub(asked);
        let high = if form.choice.is_some() { left.min(1) } else { left };
        let field = Rect { y: inner.y + asked, height: high, ..inner };
        form.area.render(field, over.buffer);
        for (y, (is_marked, name)) in (asked + 1..inner.height).zip(names) {
            over.text(y, Tone::Plain, name);
            if is_marked {
                let row = Rect { y: inner.y + y, height: 1, ..inner };
                over.buffer.set_style(row, Modifier::REVERSED);
            }
        }
    }

    /// Clears a window for so many lines in the middle, and draws its frame.
    fn over(&mut self, lines: usize, keys: &str) -> Canvas<'_> {
        let wide = self.area.width.min(WIDEST);
        let lines = u16::try_from(lines).unwrap_or(u16::MAX);
        let high = lines.saturating_add(2).min(self.area.height);
        let window = Rect {
            x: self.area.x + (self.area.width - wide) / 2,
            y: self.area.y + (self.area.height - high) / 2,
            width: wide,
            height: high,
        };
        Clear.render(window, self.buffer);
        let keys = cut(keys, usize::from(wide.saturating_sub(4)));
        let block = Block::bordered().title_bottom(format!(" {keys} "));
        let inner = block.inner(window);
        block.render(window, self.buffer);
        let area = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
        Canvas { buffer: self.buffer, area, paint: self.paint }
    }
}

/// The names around the cursor, and which it is on.
fn names(choice: &Choice, typed: &str) -> Vec<(bool, String)> {
    let fitting = choice.fitting(typed);
    let cursor = choice.cursor(typed, &fitting);
    let first = cursor.map_or(0, |cursor| (cursor + 1).saturating_sub(NAMES));
    let wide = widest(fitting.iter().map(|one| one.name.as_str()), NAME);
    let rows = fitting.iter().enumerate().skip(first).take(NAMES);
    rows.map(|(at, one)| (Some(at) == cursor, format!("{}  {}", left(&one.name, wide), one.about)))
        .collect()
}

/// Keys that do something here, the most special first.
fn hints(screen: &Screen) -> Vec<String> {
    let fitting = Action::ALL
        .into_iter()
        .filter(|action| screen.fits(*action))
        .map(|action| format!("{} {}", action.key(), action.word()));
    let here = screen.here();
    let first = match (screen.is_waiting(), here.found()) {
        (false, None) => None,
        (false, Some(found)) => Some(format!("/{}: {found} found", here.filter)),
        (true, _) => Some("…".to_owned()),
    };
    let open = here.chosen().map(|_| "Enter open".to_owned());
    first.into_iter().chain(open).chain(fitting).chain(["q quit".to_owned()]).collect()
}

/// Replaces what a terminal without Unicode cannot show.
fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let shown = match cell.symbol() {
            "─" => "-",
            "│" => "|",
            "┌" | "┐" | "└" | "┘" => "+",
            "…" => "~",
            "·" | "–" => "-",
            "›" => ">",
            "→" => ">",
            other if width(other) > 1 => "??",
            _ => "?",
        };
        cell.set_symbol(shown);
    }
}
