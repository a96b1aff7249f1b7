//! Reads the file back, and finds out whether it is callboard's and whether it is what was written.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use foldhash::{HashMap, HashMapExt};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::file::{open_regular, read_up_to};
use super::found::{Found, LoadError, unsound};
use super::home::Home;
use super::plan::sum_of_board;
use super::rendering::{hex, sum_of};
use super::slots::books::{Books, Slotted, contribution};
use super::slots::header::Header;
use super::slots::layout::{Field, Layout, Span};
use super::slots::slot::{self, FIRST, NEXT};
use super::{derived, older};
use crate::bom;
use crate::state::changed::Entity;
use crate::state::document::{Board, Document, SCHEMA_VERSION};
use crate::state::task::Task;

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

/// Loads the file, with the books that are needed to go on writing into it if it is a flat one.
pub(super) fn load_to_write(dir: &Home) -> Result<Option<(Found, Option<Books>)>, LoadError> {
    let Some(bytes) = read_file(&dir.file())? else { return Ok(None) };
    match by_slots(&bytes) {
        Some((document, books)) => Ok(Some((Found::Sound(Box::new(document)), Some(books)))),
        None => Ok(Some((recognise(&bytes)?, None))),
    }
}

/// The smallest part that is worth a thread, in bytes.
const LEAST_PART: usize = 256 << 10;

/// Reads a sound flat file, its many tasks on all processors and slot by slot. `None` for every
/// other file, which must be read as a whole to see what it is.
pub(super) fn by_slots(bytes: &[u8]) -> Option<(Document, Books)> {
    let header = Header::parse(bytes)?;
    let Span { start, end, .. } = header.layout.tasks;
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    if !header.layout.fits(bytes.len() as u64) {
        return None;
    }
    let mut rest = bytes[..start].to_vec();
    if !rest.ends_with(Field::Tasks.opening().as_bytes()) {
        return None;
    }
    rest.extend_from_slice(&bytes[end..]);
    let mut document: Document = serde_json::from_slice(&rest).ok()?;
    let orders: Orders = serde_json::from_slice(&rest).ok()?;
    let tasks = read_tasks(
        &bytes[start..end],
        start as u64,
        processors().min((end - start) / LEAST_PART + 1),
    )?;
    let mut sums = HashMap::new();
    let others = numbers(&document, &orders, |entity, sum| _ = sums.insert(entity, sum)).ok()?;
    let total =
        others.wrapping_add(tasks.total).wrapping_add(sum_of("layout", "", &header.layout).ok()?);
    if !is_checksum(&header.checksum, &document.board, total).ok()? {
        return None;
    }
    let titles = derived::titles(&rest).ok()?;
    let slotted = Slotted { found: tasks.found, sums: tasks.sums };
    let books = Books::of_file(&header, bytes, &document.board, &sums, &titles, slotted).ok()??;
    document.tasks = tasks.all;
    sort(&mut document.tasks, &tasks.orders);
    sort(&mut document.reservations, &orders.reservations);
    // The books have checked that no task is there twice.
    impossible_beside_tasks(&document).is_none().then_some((document, books))
}

/// Tasks in the order of their slots.
#[derive(Debug, PartialEq)]
pub(super) struct Tasks {
    pub all: Vec<Arc<Task>>,
    orders: Vec<Order>,
    sums: Vec<u128>,
    /// The tasks' part of the checksum.
    total: u128,
    /// All slots, those without an owner, too.
    found: Vec<slot::Found>,
}

/// Reads tasks on `count` threads; `bytes` are at offset `at` of the file.
pub(super) fn read_tasks(bytes: &[u8], at: u64, count: usize) -> Option<Tasks> {
    let parts = parts(bytes, count);
    let mut read = thread::scope(|scope| {
        // The first part's lists take in the others'.
        let of = |part: &Range<usize>, shares| {
            read_part(&bytes[part.clone()], at + part.start as u64, shares)
        };
        let (first, others) = parts.split_first()?;
        let begin = |part| (part, thread::Builder::new().spawn_scoped(scope, move || of(part, 1)));
        let others: Vec<_> = others.iter().map(begin).collect();
        // If there is no other thread, this one does it.
        let others = others.into_iter().map(|(part, thread)| {
            thread.map_or_else(|_| of(part, 1), |thread| thread.join().ok().flatten())
        });
        std::iter::once(of(first, parts.len())).chain(others).collect::<Option<Vec<_>>>()
    })?;
    let mut tasks = read.remove(0);
    for part in read {
        tasks.all.extend(part.all);
        tasks.orders.extend(part.orders);
        tasks.sums.extend(part.sums);
        tasks.found.extend(part.found);
        tasks.total = tasks.total.wrapping_add(part.total);
    }
    // There must be a comma before each text but the first.
    let mut live = tasks.found.iter().filter(|slot| slot.owner.is_some());
    let text = |slot: &slot::Found| &bytes[(slot.at - at) as usize..][..FIRST.len()];
    let is_list =
        live.next().is_none_or(|first| text(first) == FIRST) && live.all(|slot| text(slot) == NEXT);
    is_list.then_some(tasks)
}

/// Divides `bytes` into up to `count` parts of about the same length, each of whole slots.
fn parts(bytes: &[u8], count: usize) -> Vec<Range<usize>> {
    // No line within a text has so little indentation and opens a brace.
    let start = [NEXT, &b"{"[..]].concat();
    let next_slot = |from: usize| Some(from + memchr::memmem::find(&bytes[from..], &start)?);
    let mut starts: Vec<_> =
        (1..count).filter_map(|part| next_slot(bytes.len() / count * part)).collect();
    starts.dedup();
    let ends = starts.clone().into_iter().chain([bytes.len()]);
    [0].into_iter().chain(starts).zip(ends).map(|(start, end)| start..end).collect()
}

/// Reads one part, into lists with room for as many tasks as `shares` parts of its size have.
fn read_part(bytes: &[u8], at: u64, shares: usize) -> Option<Tasks> {
    let found = slot::slots(Field::Tasks, bytes, at)?;
    let room = found.len() * shares;
    let (all, orders, sums) =
        (Vec::with_capacity(room), Vec::with_capacity(room), Vec::with_capacity(room));
    let mut tasks = Tasks { all, orders, sums, found, total: 0 };
    for slot in &mut tasks.found {
        let Some((owner, order)) = &mut slot.owner else { continue };
        let text = &bytes[(slot.at - at) as usize..][FIRST.len()..slot.length as usize];
        let task: Task = serde_json::from_slice(text).ok()?;
        // So that both share one id in memory.
        let entity = Entity::Task(task.id.clone());
        if *owner != entity {
            return None;
        }
        *owner = entity;
        let sum = sum_of("tasks", "", &task).ok()?;
        tasks.total = tasks.total.wrapping_add(contribution(sum, *order));
        tasks.sums.push(sum);
        tasks.orders.push(Order { order: *order });
        tasks.all.push(Arc::new(task));
    }
    Some(tasks)
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, LoadError> {
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

fn processors() -> usize {
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
struct Orders {
    tasks: Vec<Order>,
    #[serde(default)]
    reservations: Vec<Order>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Order {
    #[serde(default)]
    order: u64,
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

fn sort<T>(list: &mut Vec<T>, orders: &[Order]) {
    if !orders.is_sorted_by_key(|one| one.order) {
        let mut ordered: Vec<_> = orders.iter().zip(std::mem::take(list)).collect();
        ordered.sort_by_key(|(one, _)| one.order);
        list.extend(ordered.into_iter().map(|(_, entity)| entity));
    }
}

/// Whether `stated` is the checksum of the board, with `others` for its entities and layout. In
/// older files, the long fields have no numbers of their own.
fn is_checksum(stated: &str, board: &Board, others: u128) -> io::Result<bool> {
    Ok(stated == hex(others.wrapping_add(sum_of_board(board)?))
        || stated == hex(others.wrapping_add(sum_of("board", "", board)?)))
}

/// The entities' part of the checksum. `note` is given the number of each before its order is
/// counted in.
fn numbers(
    document: &Document,
    orders: &Orders,
    mut note: impl FnMut(Entity, u128),
) -> io::Result<u128> {
    let mut total = 0_u128;
    let mut add = |entity: Entity, sum: io::Result<u128>, order: u64| -> io::Result<()> {
        let sum = sum?;
        total = total.wrapping_add(contribution(sum, order));
        note(entity, sum);
        Ok(())
    };
    for (task, order) in document.tasks.iter().zip(in_turn(&orders.tasks)) {
        add(Entity::Task(task.id.clone()), sum_of("tasks", "", task), order)?;
    }
    for (id, agent) in &document.agents {
        add(Entity::Agent(id.clone()), sum_of("agents", id.as_str(), agent), 0)?;
    }
    for one in &document.discoveries {
        add(Entity::Discovery(one.id.clone()), sum_of("discoveries", "", one), 0)?;
    }
    for one in &document.messages {
        add(Entity::Message(one.id.clone()), sum_of("messages", "", one), 0)?;
    }
    for (one, order) in document.reservations.iter().zip(in_turn(&orders.reservations)) {
        add(Entity::Reservation(one.id.clone()), sum_of("reservations", "", one), order)?;
    }
    for (id, one) in &document.participants {
        add(Entity::Participant(id.clone()), sum_of("participants", id.as_str(), one), 0)?;
    }
    for (id, one) in &document.retired {
        add(Entity::Retired(id.clone()), sum_of("retired", id.as_str(), one), 0)?;
    }
    for (id, one) in &document.sessions {
        add(Entity::Session(id.clone()), sum_of("sessions", id.as_str(), one), 0)?;
    }
    for (id, one) in &document.workflows {
        add(Entity::Workflow(id.clone()), sum_of("workflows", id.as_str(), one), 0)?;
    }
    for (id, one) in &document.checkpoints {
        add(Entity::Checkpoint(id.clone()), sum_of("checkpoints", id.as_str(), one), 0)?;
    }
    Ok(total)
}

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

fn impossible_beside_tasks(document: &Document) -> Option<String> {
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
