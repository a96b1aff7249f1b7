//! What a hook needs of a large file: everything but the tasks that no agent holds. It runs before
//! every edit of an agent, and a million tasks take seconds to read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread;

use memchr::memmem;
use serde_json::error::Category;

use super::file::{FileIdentity, Left, open_regular, read_up_to};
use super::home::Home;
use super::load::processors;
use super::slots::header::Header;
use super::slots::layout::{FIELDS, Field, Layout, Span};
use super::slots::slot::NEXT;
use crate::state::document::Document;
use crate::state::task::Task;

/// The smallest file that is worth it, in bytes.
const FROM: u64 = 4 << 20;
/// How much is searched at once, in bytes.
const AT_ONCE: usize = 1 << 20;
/// How much is read around what was found, in bytes; most tasks are smaller.
const AROUND: u64 = 4 << 10;
/// More than what stands behind the last slot of a field, in bytes; the rest up to the field's limit is
/// room.
const CLOSING: u64 = 16;
/// How a held task's status is written. In a text the quotation marks are escaped.
const STATUSES: [&[u8]; 2] = [br#""status": "claimed""#, br#""status": "in_progress""#];
const LONGEST: usize = STATUSES[1].len();

/// Reads a large file with slots. Of its tasks only those that agents hold are there, and they
/// depend on nothing. `None` for another file, and for one that was not `left` there: nothing here
/// verifies what a person has changed.
pub fn load_held(dir: impl Into<Home>, left: &Left) -> io::Result<Option<Document>> {
    let Some(file) = open_regular(&dir.into().file())? else { return Ok(None) };
    let (file, _) = file.into_parts();
    let identity = FileIdentity::from(&file.metadata()?);
    if identity.size < FROM || left.shows(&identity).is_none() {
        return Ok(None);
    }
    let Some(header) = Header::read(&file)? else { return Ok(None) };
    if !header.layout.fits(identity.size) {
        return Ok(None);
    }
    let Span { start, end, .. } = header.layout.span(Field::Task);
    let rest = beside_tasks(&file, &header.layout, identity.size)?;
    let Ok(mut document) = serde_json::from_slice::<Document>(&rest) else { return Ok(None) };
    document.tasks = held(&file, start..end)?.into_values().map(Arc::new).collect();
    Ok(Some(document))
}

/// The file's text without its tasks, and without the room between its parts.
fn beside_tasks(file: &File, layout: &Layout, size: u64) -> io::Result<Vec<u8>> {
    let (mut text, mut at) = (Vec::new(), 0);
    for field in FIELDS {
        let Span { start, end, limit } = layout.span(field);
        text.extend(read(file, at..if field == Field::Task { start } else { end })?);
        let closing = read(file, end..limit.min(end + CLOSING))?;
        text.extend_from_slice(closing.trim_ascii_end());
        at = limit;
    }
    text.extend(read(file, at..size)?);
    Ok(text)
}

fn read(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let length = range.end.saturating_sub(range.start);
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    let filled = read_up_to(file, &mut bytes, range.start)?;
    bytes.truncate(filled);
    Ok(bytes)
}

/// The tasks in `range` that agents hold, by where they stand, searched on all processors.
fn held(file: &File, range: Range<u64>) -> io::Result<BTreeMap<u64, Task>> {
    let part = (range.end - range.start) / processors() as u64 + 1;
    let starts = (range.start..range.end).step_by(usize::try_from(part).unwrap_or(usize::MAX));
    let parts = starts.map(|start| start..range.end.min(start + part));
    let whole = &range;
    thread::scope(|scope| {
        let searches: Vec<_> =
            parts.map(|part| scope.spawn(move || held_in(file, part, whole))).collect();
        searches.into_iter().try_fold(BTreeMap::new(), |mut all, search| {
            all.extend(search.join().map_err(|_| io::Error::other("a search ended"))??);
            Ok(all)
        })
    })
}

fn held_in(file: &File, part: Range<u64>, whole: &Range<u64>) -> io::Result<BTreeMap<u64, Task>> {
    let finders = STATUSES.map(memmem::Finder::new);
    let (mut bytes, mut at, mut tasks) = (vec![0; AT_ONCE + LONGEST], part.start, BTreeMap::new());
    while at < part.end {
        let filled = read_up_to(file, &mut bytes, at)?;
        for place in finders.iter().flat_map(|one| one.find_iter(&bytes[..filled])) {
            if let Some((start, task)) = task_around(file, at + place as u64, whole)? {
                tasks.extend(task.open_attempt().is_some().then(|| (start, alone(task.clone()))));
            }
        }
        at += AT_ONCE as u64;
    }
    Ok(tasks)
}

/// The task whose text has offset `at` in it, and where it begins.
fn task_around(file: &File, at: u64, whole: &Range<u64>) -> io::Result<Option<(u64, Task)>> {
    // No line within a text has so little indentation and opens a brace.
    let (next, first) = ([NEXT, &b"{"[..]].concat(), b"\n    {");
    let mut around = AROUND;
    loop {
        let (start, end) = (at.saturating_sub(around).max(whole.start), whole.end.min(at + around));
        let bytes = read(file, start..end)?;
        let before = &bytes[..bytes.len().min((at - start) as usize)];
        let found = memmem::rfind(before, &next).max(memmem::rfind(before, first));
        if let Some(found) = found {
            let text = &bytes[found + NEXT.len()..];
            match serde_json::Deserializer::from_slice(text).into_iter::<Task>().next() {
                Some(Ok(task)) => return Ok(Some((start + found as u64, task))),
                Some(Err(error)) if error.classify() == Category::Eof => {}
                _ => return Ok(None),
            }
        }
        if start == whole.start && end == whole.end {
            return Ok(None);
        }
        around *= 4;
    }
}

/// The task without what leads to others.
fn alone(task: Task) -> Task {
    Task { dependencies: Vec::new(), planned: None, ..task }
}
