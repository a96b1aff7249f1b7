//! Reads a file with slots to go on writing into it.

use std::ops::Range;
use std::sync::Arc;
use std::thread;

use foldhash::{HashMap, HashMapExt};

use super::books::{Books, Slotted};
use super::header::Header;
use super::layout::{Field, Span};
use super::slot::{self, FIRST, NEXT};
use crate::state::changed::Entity;
use crate::state::document::Document;
use crate::state::task::Task;
use crate::statefile::derived;
use crate::statefile::found::{Found, LoadError};
use crate::statefile::home::Home;
use crate::statefile::load::{
    LEAST_PART, Order, Orders, impossible_beside_tasks, is_checksum, numbers, processors,
    read_file, recognise, sort,
};
use crate::statefile::rendering::{contribution, sum_of};

/// Loads the file, with the books that are needed to go on writing into it if it is a flat one.
pub(crate) fn load_to_write(dir: &Home) -> Result<Option<(Found, Option<Books>)>, LoadError> {
    let Some(bytes) = read_file(&dir.file())? else { return Ok(None) };
    match by_slots(&bytes) {
        Some((document, books)) => Ok(Some((Found::Sound(Box::new(document)), Some(books)))),
        None => Ok(Some((recognise(&bytes)?, None))),
    }
}

/// Reads a sound flat file, its many tasks on all processors and slot by slot. `None` for every
/// other file, which must be read as a whole to see what it is.
pub(crate) fn by_slots(bytes: &[u8]) -> Option<(Document, Books)> {
    let header = Header::parse(bytes)?;
    let Span { start, end, .. } = header.layout.span(Field::Task);
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    if !header.layout.fits(bytes.len() as u64) {
        return None;
    }
    let mut rest = bytes[..start].to_vec();
    if !rest.ends_with(Field::Task.opening().as_bytes()) {
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
pub(crate) struct Tasks {
    pub all: Vec<Arc<Task>>,
    orders: Vec<Order>,
    sums: Vec<u128>,
    /// The tasks' part of the checksum.
    total: u128,
    /// All slots, those without an owner, too.
    found: Vec<slot::Found>,
}

/// Reads tasks on `count` threads; `bytes` are at offset `at` of the file.
pub(crate) fn read_tasks(bytes: &[u8], at: u64, count: usize) -> Option<Tasks> {
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
    let found = slot::slots(Field::Task, bytes, at)?;
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
