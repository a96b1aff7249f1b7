//! `callboard status`: the first screen, once or live, or as one line.

mod live;
pub(super) mod notes;
mod seen;

use std::env;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use super::print::{Page, Tone};
use super::{Outcome, Session, runtime};
use crate::participant::Stay;
use crate::state::limit;
use crate::ui::first::{Overview, Room, Words};
pub(super) use seen::Seen;

/// Room of an output that is not a terminal and says nothing of its size.
const COLUMNS: usize = 120;
const LINES: usize = 24;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard status\n  \
    callboard status --all --scope P1.M2\n  \
    callboard status --watch\n  \
    PS1='$(callboard status --line) $ '")]
pub(super) struct Arguments {
    /// Count only tasks at or below this path
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
    /// Show every row, what was done, and the parts of the plan
    #[arg(long)]
    all: bool,
    /// Show it anew whenever something happens
    #[arg(long, conflicts_with = "line")]
    watch: bool,
    /// Print one line, for a prompt or a status line; nothing without a board
    #[arg(long)]
    line: bool,
}

impl Arguments {
    /// Rows of each list, if they are not as many as fit the terminal.
    fn rows(&self) -> Option<usize> {
        self.all.then_some(limit::PAGE.max)
    }
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    if arguments.watch {
        return live::run(session, &arguments);
    }
    let (board, runtime) = (session.board(Stay::Brief)?, runtime()?);
    let seen = runtime.block_on(Seen::of(
        session,
        &board,
        arguments.scope.as_deref(),
        arguments.rows(),
    ))?;
    session.show(&seen.json, |page| {
        if arguments.line {
            line(page, &seen);
        } else {
            write(page, session, &arguments, &seen);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the screen, or what to do where there is nothing to show.
fn write(page: &mut Page, session: &Session, arguments: &Arguments, seen: &Seen) {
    let wording = session.wording.of_nobody();
    if seen.is_without_board() {
        page.line(format_args!(
            "no board here yet; make one with {}",
            wording.command("init GOAL")
        ));
        if !session.found_board {
            session.name_imports(page);
        }
        return;
    }
    let notes = notes::all(page, seen, &wording);
    let words = Words {
        clock: &|at| page.clock(at),
        command: &|words| wording.line(words),
        has_seconds: true,
    };
    let room = room(arguments.all);
    let lines = Overview { board: &seen.board, room, words }.lines(notes);
    lines.iter().for_each(|line| page.pieces(line.iter().map(|(tone, text)| (*tone, &**text))));
    if arguments.all {
        notes::details(page, seen);
    }
}

/// One line for prompts: how far the board is, and what needs a person.
fn line(page: &mut Page, seen: &Seen) {
    if seen.is_without_board() {
        return;
    }
    let (counts, head) = (&seen.board.counts, &seen.board.head);
    let waits = seen.board.waits.total();
    let numbers = [
        (counts.in_work, "in work"),
        (counts.in_review, "in review"),
        (counts.ready, "ready"),
        (counts.failed, "failed"),
    ];
    let numbers = numbers.into_iter().filter(|(count, _)| *count > 0);
    let mut said = vec![format!("{}/{} done", head.done, head.wanted)];
    said.extend(numbers.map(|(count, word)| format!("{count} {word}")));
    said.extend(head.paused.as_ref().map(|_| "paused".to_owned()));
    let waiting = if waits > 0 { format!(" · {waits} for you") } else { String::new() };
    page.pieces([(Tone::Plain, said.join(" · ").as_str()), (Tone::Busy, &waiting)]);
}

/// The room that the output has.
fn room(all: bool) -> Room {
    let size = io::stdout().is_terminal().then(|| crossterm::terminal::size().ok()).flatten();
    let given = |name: &str| env::var(name).ok()?.parse::<usize>().ok();
    // Some terminals report a size of zero.
    let known = |size: Option<usize>, name: &str, other: usize| {
        size.filter(|size| *size > 0)
            .or_else(|| given(name))
            .filter(|size| *size > 0)
            .unwrap_or(other)
    };
    Room {
        columns: known(size.map(|(columns, _)| columns.into()), "COLUMNS", COLUMNS),
        lines: (!all).then(|| known(size.map(|(_, lines)| lines.into()), "LINES", LINES)),
    }
}
