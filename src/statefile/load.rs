//! Reads the file back, and finds out whether it is callboard's and whether it is what was written.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::thread;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::file::{open_regular, read_up_to};
use super::found::{Found, LoadError, unsound};
use super::home::Home;
use super::plan::sum_of_board;
use super::rendering::{contribution, hex, sum_of};
use super::slots::header::Header;
use super::slots::layout::{Field, Layout};
use super::{derived, older};
use crate::bom;
use crate::state::changed::Entity;
use crate::state::document::{Board, Document, SCHEMA_VERSION};
use crate::state::kinds::kinds;
use crate::state::record::All;

/// The largest file that is read, in bytes: more than a board grows to. A million tasks of a page
/// each have 2 GB.
pub(super) const MAX_BYTES: u64 = 1 << 34;

/// Reads and verifies the file in `dir`; `None` when there is none.
pub fn load(dir: impl Into<Home>) -> Result<Option<Found>, LoadError> {
    load_file(&dir.into().file())
}

/// Reads and verifies the file at `path`; `None` when there is none.
pub fn load_file(path: &Path) -> Result<Option<Found>, LoadError> {
    read_file(path)?.map(|bytes| recognise(&bytes)).transpose()
}

/// The smallest part that is worth a thread, in bytes.
pub(super) const LEAST_PART: usize = 256 << 10;

pub(super) fn read_file(path: &Path) -> Result<Option<Vec<u8>>, LoadError> {
    let path = path.to_owned();
    read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => LoadError::TooLarge { path, max: MAX_BYTES },
        _ => LoadError::Io { path, source: error },
    })
}

pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_regular(path)? else { return Ok(None) };
    let (mut file, _) = file.into_parts();
    let size = file.metadata()?.len();
    if size > MAX_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
    let filled = fill_by_parts(&file, &mut bytes)?;
    bytes.truncate(filled);
    // The file may have grown since.
    file.seek(SeekFrom::Start(filled as u64))?;
    file.take(MAX_BYTES + 1 - filled as u64).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(bytes))
}

/// Reads the file on all processors, because most of the time goes into the memory pages that it is
/// read into. Returns the number of bytes read.
fn fill_by_parts(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    let length = bytes.len().div_ceil(processors()).max(LEAST_PART);
    let mut parts = (0..).step_by(length).zip(bytes.chunks_mut(length));
    let Some((at, first)) = parts.next() else { return Ok(0) };
    let filled = thread::scope(|scope| {
        let begin = |(at, part)| {
            thread::Builder::new().spawn_scoped(scope, move || read_up_to(file, part, at))
        };
        let others: Vec<_> = parts.map(begin).collect();
        let first = read_up_to(file, first, at)?;
        let ended = |_| Err(io::Error::other("a thread has ended"));
        let others = others.into_iter().map(|thread| thread?.join().unwrap_or_else(ended));
        std::iter::once(Ok(first)).chain(others).collect::<io::Result<Vec<_>>>()
    });
    // If a part could not be read on a thread, this one reads everything.
    let Ok(filled) = filled else { return read_up_to(file, bytes, 0) };
    // The first part that was not filled is the end of the file.
    let whole = filled.iter().take_while(|filled| **filled == length).count();
    Ok(filled.iter().take(whole + 1).sum())
}

pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The fields that tell whose file it is.
#[derive(Deserialize)]
struct Marks {
    schema_version: Option<Value>,
    board_id: Option<IgnoredAny>,
    seq: Option<IgnoredAny>,
    checksum: Option<Value>,
    layout: Option<Value>,
    tasks: Option<IgnoredAny>,
}

/// What a flat file says about the order in which tasks and reservations were made, which need not
/// be that of its slots.
#[derive(Default, Deserialize)]
pub(super) struct Orders {
    tasks: Vec<Order>,
    #[serde(default)]
    pub reservations: Vec<Order>,
}

impl Orders {
    fn of(&self, field: Field) -> &[Order] {
        match field {
            Field::Task => &self.tasks,
            Field::Reservation => &self.reservations,
            _ => &[],
        }
    }
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct Order {
    #[serde(default)]
    pub order: u64,
}

/// The marks of a file that ends as a flat one does, from its header alone.
fn marks_of_flat(bytes: &[u8]) -> Option<Marks> {
    let header = Header::parse(bytes)?;
    Some(Marks {
        schema_version: Some(SCHEMA_VERSION.into()),
        board_id: Some(IgnoredAny),
        seq: Some(IgnoredAny),
        checksum: Some(header.checksum.into()),
        layout: Some(serde_json::to_value(header.layout).ok()?),
        tasks: Some(IgnoredAny),
    })
}

pub fn recognise(bytes: &[u8]) -> Result<Found, LoadError> {
    let text = bom::skip_bytes(bytes);
    let (bytes, is_marked) = (text, text.len() < bytes.len());
    // Serde would also accept the fields as an array.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Ok(unsound("it is not a JSON object"));
    }
    let marks = marks_of_flat(bytes).map_or_else(|| serde_json::from_slice(bytes), Ok);
    let marks: Marks = match marks {
        Ok(marks) => marks,
        Err(error) => return Ok(unsound(format!("it is not JSON of the right shape: {error}"))),
    };
    match &marks.schema_version {
        Some(version) => match version.as_u64() {
            Some(found) if found > u64::from(SCHEMA_VERSION) => {
                Err(LoadError::Newer { found, supported: SCHEMA_VERSION })
            }
            // No projection writes one, so somebody has saved the file, and it may be an edit.
            Some(1..) if is_marked => Ok(unsound("there is a byte order mark before it")),
            Some(1..) => Ok(verify(bytes, &marks)),
            _ => Ok(unsound(format!("{version} is not a schema version"))),
        },
        // One damaged field name must not make our own file look like an older one.
        None if marks.board_id.is_some() || marks.seq.is_some() || marks.checksum.is_some() => {
            Ok(unsound("it has no schema_version"))
        }
        None if marks.tasks.is_none() => Ok(unsound("it is JSON without tasks")),
        None => Ok(older::import(bytes)),
    }
}

/// Checks a file by its checksum: it is sound when what was understood of it is what was written.
fn verify(bytes: &[u8], marks: &Marks) -> Found {
    let mut document: Document = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(error) => return unsound(format!("a value in it is impossible: {error}")),
    };
    let Some(stated) = marks.checksum.as_ref().and_then(Value::as_str) else {
        return unsound("it has no checksum");
    };
    let (layout, orders) = match &marks.layout {
        None => (None, Orders::default()),
        Some(layout) => {
            match (Layout::deserialize(layout), serde_json::from_slice::<Orders>(bytes)) {
                (Ok(layout), Ok(orders)) => (Some(layout), orders),
                (Err(error), _) | (_, Err(error)) => {
                    return unsound(format!("its layout is impossible: {error}"));
                }
            }
        }
    };
    let sums = layout.map_or(Ok(0), |layout| sum_of("layout", "", &layout));
    let others =
        sums.and_then(|layout| Ok(numbers(&document, &orders, |_, _| {})?.wrapping_add(layout)));
    match others.and_then(|others| is_checksum(stated, &document.board, others)) {
        Ok(false) => unsound(format!("its checksum is {stated}, and its content has another")),
        Ok(true) => {
            sort(&mut document.tasks, &orders.tasks);
            sort(&mut document.reservations, &orders.reservations);
            let wrong = impossible(&document).or_else(|| derived::fault(bytes));
            wrong.map_or_else(|| Found::Sound(Box::new(document)), unsound)
        }
        Err(error) => unsound(format!("its content cannot be written: {error}")),
    }
}

pub(super) fn sort<T>(list: &mut Vec<T>, orders: &[Order]) {
    if !orders.is_sorted_by_key(|one| one.order) {
        let mut ordered: Vec<_> = orders.iter().zip(std::mem::take(list)).collect();
        ordered.sort_by_key(|(one, _)| one.order);
        list.extend(ordered.into_iter().map(|(_, entity)| entity));
    }
}

/// Whether `stated` is the checksum of the board, with `others` for its entities and layout. In
/// older files, the long fields have no numbers of their own.
pub(super) fn is_checksum(stated: &str, board: &Board, others: u128) -> io::Result<bool> {
    Ok(stated == hex(others.wrapping_add(sum_of_board(board)?))
        || stated == hex(others.wrapping_add(sum_of("board", "", board)?)))
}

macro_rules! numbers {
    ($($(#[$meta:meta])* $field:ident: $module:ident::$kind:ident,)*) => {
        /// The entities' part of the checksum. `note` is given the number of each before its order
        /// is counted in.
        pub(super) fn numbers(
            document: &Document,
            orders: &Orders,
            mut note: impl FnMut(Entity, u128),
        ) -> io::Result<u128> {
            let mut total = 0_u128;
            $(
                let of_kind = in_turn(orders.of(Field::$kind));
                for ((id, one), order) in document.$field.each().zip(of_kind) {
                    let key = if Field::$kind.is_map() { id.as_str() } else { "" };
                    let sum = sum_of(Field::$kind.name(), key, one)?;
                    total = total.wrapping_add(contribution(sum, order));
                    note(Entity::$kind(id.clone()), sum);
                }
            )*
            Ok(total)
        }
    };
}
kinds!(numbers);

/// The orders, followed by 0 for each entity of a file that has none.
fn in_turn(orders: &[Order]) -> impl Iterator<Item = u64> {
    orders.iter().map(|one| one.order).chain(std::iter::repeat(0))
}

#[cfg(test)]
pub(super) fn checksum_of(document: &Document) -> io::Result<u128> {
    Ok(numbers(document, &Orders::default(), |_, _| {})?
        .wrapping_add(sum_of_board(&document.board)?))
}

/// What no sound checksum excuses, because the state would take one entity for another.
fn impossible(document: &Document) -> Option<String> {
    let mut ids = HashSet::new();
    if let Some(twice) = document.tasks.iter().find(|task| !ids.insert(&task.id)) {
        return Some(format!("task {} is there twice", twice.id));
    }
    impossible_beside_tasks(document)
}

pub(super) fn impossible_beside_tasks(document: &Document) -> Option<String> {
    let mut messages = HashSet::new();
    if let Some(twice) = document.messages.iter().find(|one| !messages.insert(&one.id)) {
        return Some(format!("message {} is there twice", twice.id));
    }
    let mut reservations = HashSet::new();
    if let Some(twice) = document.reservations.iter().find(|one| !reservations.insert(&one.id)) {
        return Some(format!("reservation {} is there twice", twice.id));
    }
    if let Some((id, _)) = document.agents.iter().find(|(id, agent)| **id != agent.id) {
        return Some(format!("agent {id} has another id inside"));
    }
    if let Some((id, _)) = document.sessions.iter().find(|(id, session)| **id != session.id) {
        return Some(format!("session {id} has another id inside"));
    }
    if let Some((id, _)) = document.workflows.iter().find(|(id, one)| **id != one.id) {
        return Some(format!("workflow {id} has another id inside"));
    }
    if let Some((id, _)) = document
        .checkpoints
        .iter()
        .find(|(_, one)| !document.workflows.contains_key(&one.workflow_id))
    {
        return Some(format!("checkpoint {id} has no workflow"));
    }
    let stray = document.participants.iter().find(|(id, one)| **id != one.id);
    stray.map(|(id, _)| format!("participant {id} has another id inside"))
}
