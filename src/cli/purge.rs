//! `callboard purge`: takes a text that slipped through redaction out of everything that the board
//! keeps. The text is read from standard input or typed at a prompt, so that it is in no shell's
//! history and in no list of processes.

use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use serde_json::json;

use super::print::Page;
use super::target::asked;
use super::{Declined, FAILED, Outcome, Session, read_whole, usage_error};
use crate::participant::board_time;
use crate::participant::purge::{Places, Text, purge};
use crate::participant::recovery::Author;
use crate::state::id::ParticipantId;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Read the text from this file instead; `-` is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Count the places that have the text, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Purge without asking
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    session.expect_person("purges")?;
    let (dir, text) = (session.dir(), read_text(arguments)?);
    let text = Text::new(&text).map_err(|error| Declined(error.into()))?;
    if !dir.is_dir() {
        bail!("there is no board in {}; name another with --dir", dir.display());
    }
    let author = Author { participant: ParticipantId::trusted("p-purge"), now: board_time(dir) };
    let (found, _) = purge(dir, &text, &author, true)?;
    if arguments.dry_run {
        return told(session, &found, &[], false);
    }
    if !arguments.yes && !confirmed(&found)? {
        let refused = anyhow!("nothing was changed; --yes purges without asking");
        return Err(Declined(refused).into());
    }
    let (purged, left) = purge(dir, &text, &author, false)?;
    told(session, &purged, &left, true)
}

fn told(session: &Session, places: &Places, left: &[String], is_done: bool) -> Outcome {
    let reply = json!({
        "purged": is_done, "events": places.events, "state": places.state, "files": places.files,
        "removed": places.copies, "left": left,
    });
    session.show(&reply, |page| {
        page.line(format_args!(
            "{}: {}",
            if is_done { "purged" } else { "would purge" },
            in_words(places)
        ));
        places.files.iter().for_each(|file| page.line(format_args!("  {file}")));
        copies(page, places, is_done);
        for file in left {
            page.line(format_args!("left: {file} still has the text; change or remove it"));
        }
        if !is_done && places.count() > 0 {
            page.line(format_args!(
                "nothing was changed; {} purges it",
                session.wording.command("purge --yes")
            ));
        }
    })?;
    Ok(ExitCode::from(if left.is_empty() { 0 } else { FAILED }))
}

fn copies(page: &mut Page, places: &Places, is_done: bool) {
    let done = if is_done { "removed" } else { "would remove" };
    for copy in &places.copies {
        page.line(format_args!(
            "{done}: {copy}, a copy of a journal, which cannot be searched for the text"
        ));
    }
}

fn in_words(places: &Places) -> String {
    let state = if places.state { ", the state" } else { "" };
    format!("{} events{state} and {} files", places.events, places.files.len())
}

fn read_text(arguments: &Arguments) -> anyhow::Result<String> {
    let text = match arguments.file.as_deref() {
        Some(file) => read_whole(file),
        None if io::stdin().is_terminal() => typed()?,
        None => read_whole("-"),
    };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        usage_error("no text to purge was given: type it when asked, pipe it in, or name its file");
    }
    Ok(text.to_owned())
}

/// What a person types, which is not shown.
fn typed() -> anyhow::Result<String> {
    eprint!("text to purge (it is not shown): ");
    io::stderr().flush()?;
    enable_raw_mode()?;
    let line = typed_line();
    disable_raw_mode()?;
    eprintln!();
    line
}

/// The bytes of a line, which a terminal in raw mode hands over one by one.
fn typed_line() -> anyhow::Result<String> {
    const INTERRUPT: u8 = 3;
    const END: u8 = 4;
    const DELETE: [u8; 2] = [8, 127];
    let mut line = Vec::new();
    for byte in io::stdin().lock().bytes() {
        match byte? {
            b'\r' | b'\n' => break,
            INTERRUPT | END => bail!("no text was given; nothing was changed"),
            byte if DELETE.contains(&byte) => drop(line.pop()),
            byte => line.push(byte),
        }
    }
    Ok(String::from_utf8(line)?)
}

/// Asks at the terminal, if there is one to ask at.
fn confirmed(found: &Places) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    asked(&format!("this cannot be undone: purge the text from {}?", in_words(found)))
}
