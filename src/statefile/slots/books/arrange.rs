//! A new arrangement of a file with slots.

use std::borrow::Cow;
use std::io;

use foldhash::HashMap;

use super::super::entities::{entities, rendering_of, text_of};
use super::super::layout::{BEFORE_PLAN, FIELDS, Field, Layout, Span};
use super::super::parts::{END_ROOM, end, filled_end, front, grained, roomy, small};
use super::super::slot::{FIRST, NEXT, push_slot};
use super::{Books, Entry, Slot, fresh};
use crate::clock::boot;
use crate::state::State;
use crate::state::changed::{Change, Entity};
use crate::statefile::derived::Derived;
use crate::statefile::fragment::Sums;
use crate::statefile::head::HEAD_BYTES;
use crate::statefile::plan::{Plan, short};
use crate::statefile::rendering::Rendering;

/// Room for more entities of a field when a file is laid out, in bytes: at least this, at least
/// what the field takes divided by `SHARE_OF_OWN`, and at least the field and the tasks together
/// divided by `SHARE_OF_ROOM`, or by `SHARE_OF_RETIRED` for retired tasks, because tasks go there
/// one after another.
const LEAST_ROOM: usize = 2 << 10;
const SHARE_OF_OWN: usize = 4;
const SHARE_OF_ROOM: usize = 128;
const SHARE_OF_RETIRED: usize = 16;
/// Room for checkpoints: this many times what they take, up to `MOST_MORE` bytes, because they are
/// large, and a process that saves one usually saves more.
const MORE_CHECKPOINTS: usize = 8;
const MOST_MORE: usize = 128 << 10;
/// The present arrangement, from which a new one copies what has not changed.
pub(crate) struct Before<'a> {
    pub books: &'a Books,
    /// Entities that have changed. Any other is in the file as it is in the state, and keeps its
    /// number.
    pub changed: &'a HashMap<Entity, Change>,
    /// The content of the live file, which the books describe.
    pub file: Vec<u8>,
}

impl Books {
    /// Rearranges the whole file, using what is known of the arrangement `before`. Returns its
    /// books and its content.
    pub(crate) fn arrange(state: &State, before: Option<&Before>) -> io::Result<(Self, Vec<u8>)> {
        let (plan, derived) = (Plan::of(state.board())?, Derived::of(state)?);
        let board = Rendering::of(&short(state.board()))?;
        let (front, small) = (front(&plan, &derived), small(&board, &plan)?);
        let mut layout = Layout {
            next_order: before.map_or(1, Before::next_order),
            head: roomy(&front),
            plan: roomy(&plan.plan),
            spent: roomy(&small),
            ..Layout::anywhere(now_micros(), boot())
        };
        // Measured with offsets that are as long as they can be.
        let longest = end(state.board(), Sums::default(), &layout)?.0.len() + END_ROOM;
        let length = grained(longest);
        if length > HEAD_BYTES {
            return Err(io::Error::other("the last fields are too long"));
        }
        let mut books = Self { known_after: state.seq(), ..Self::default() };
        // First, because the other fields' room is a share of the tasks, too.
        let Some(tasks) = books.fill(Field::Task, state, &mut layout, before)? else {
            return Self::arrange(state, None);
        };
        // Room for the whole file, as far as its length is known: moving it later costs more than
        // writing it.
        let mut text = Vec::with_capacity(2 * tasks.len() + front.len() + plan.plan.len());
        extend(&mut text, &front, layout.head);
        for field in FIELDS {
            text.extend_from_slice(field.opening().as_bytes());
            let others = match field {
                Field::Task => None,
                _ => match books.fill(field, state, &mut layout, before)? {
                    Some(slots) => Some(slots),
                    None => return Self::arrange(state, None),
                },
            };
            let slots = others.as_deref().unwrap_or(&tasks);
            let start = text.len() as u64;
            books.slots[field as usize].all.iter_mut().for_each(|slot| slot.at += start);
            text.extend_from_slice(slots);
            let end = text.len() as u64;
            let closing = field.closing(slots.is_empty());
            let room = field.closing(false).len() + room(field, slots.len(), tasks.len());
            extend(&mut text, closing.as_bytes(), room as u64);
            layout.set_span(field, Span { start, end, limit: text.len() as u64 });
            if field == BEFORE_PLAN {
                extend(&mut text, &plan.plan, layout.plan);
            }
        }
        extend(&mut text, &small, layout.spent);
        let sums = books.total.and(Sums { state: plan.sum_with(&board), derived: derived.sum() });
        let last = filled_end(end(state.board(), sums, &layout)?.0, length);
        let last = last.ok_or_else(|| io::Error::other("the last fields have no room"))?;
        text.extend_from_slice(&last);
        (books.layout, books.plan, books.derived) = (Some(layout), Some(plan), Some(derived));
        Ok((books, text))
    }

    /// The slots of one field, starting at offset 0 and without gaps; `None` when the known orders
    /// do not rise.
    fn fill(
        &mut self,
        field: Field,
        state: &State,
        layout: &mut Layout,
        before: Option<&Before>,
    ) -> io::Result<Option<Vec<u8>>> {
        let entities = entities(field, state);
        let mut bytes = Vec::with_capacity(before.map_or(0, |before| before.length_of(field)));
        self.entries.reserve(entities.len());
        let mut last = 0;
        for entity in entities {
            let known = before.and_then(|before| before.books.entries.get(&entity));
            let order = known.map_or_else(|| layout.next_order(field), |entry| entry.order);
            if field.has_order() && std::mem::replace(&mut last, order) >= order {
                return Ok(None);
            }
            let copied = before.filter(|before| !before.changed.contains_key(&entity)).zip(known);
            let copied = copied
                .and_then(|(before, entry)| Some((before.text_in(field, entry.slot)?, entry)));
            let (text, sums) = match copied {
                Some((text, entry)) => (Cow::Borrowed(text), entry.sums),
                None => {
                    let Some(rendered) = rendering_of(&entity, state)? else { continue };
                    let text = text_of(&rendered, &entity, order)?.into_bytes();
                    (Cow::Owned(text), rendered.sums(&entity))
                }
            };
            let length = fresh(text.len(), &entity, state);
            let slots = &mut self.slots[field as usize];
            let at = bytes.len() as u64;
            push_slot(&mut bytes, Some(&text), slots.all.is_empty(), length);
            let slot = slots.push(
                at,
                u32::try_from(length).map_err(io::Error::other)?,
                Some(entity.clone()),
            )?;
            let text = u32::try_from(text.len()).map_err(io::Error::other)?;
            self.insert(entity, Entry { slot, text, order, sums });
        }
        Ok(Some(bytes))
    }
}

impl Before<'_> {
    fn next_order(&self) -> u64 {
        1 + self.books.entries.values().map(|entry| entry.order).max().unwrap_or_default()
    }

    fn length_of(&self, field: Field) -> usize {
        self.books.slots[field as usize].all.iter().map(|slot| slot.length as usize).sum()
    }

    /// The text in a slot of the file.
    fn text_in(&self, field: Field, slot: u32) -> Option<&[u8]> {
        let Slot { at, length, .. } = self.books.slots[field as usize].all.get(slot as usize)?;
        let start = usize::try_from(*at).ok()?;
        let slot = self.file.get(start..start.checked_add(*length as usize)?)?;
        let text = slot.strip_prefix(FIRST).or(slot.strip_prefix(NEXT))?.trim_ascii_end();
        text.ends_with(b"}").then_some(text)
    }
}

/// Room for more behind the slots of a field, in bytes.
fn room(field: Field, slots: usize, tasks: usize) -> usize {
    let least = match field {
        Field::Checkpoint => LEAST_ROOM.max(MOST_MORE.min(MORE_CHECKPOINTS * slots)),
        _ => LEAST_ROOM,
    };
    let share = if field == Field::Retired { SHARE_OF_RETIRED } else { SHARE_OF_ROOM };
    least.max(slots / SHARE_OF_OWN).max((tasks + slots) / share)
}

fn extend(text: &mut Vec<u8>, part: &[u8], length: u64) {
    let end = text.len() + usize::try_from(length).unwrap_or_default();
    text.extend_from_slice(part);
    text.resize(end, b' ');
}

/// The time as a generation. No two arrangements of a board are made in the same microsecond: each
/// needs the lock.
fn now_micros() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default()
}
