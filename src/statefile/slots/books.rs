//! The books of a flat file: which entity is in which slot, and which event changed each slot last.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use foldhash::{HashMap, HashMapExt};

use super::first_part::first_part;
use super::header::Header;
use super::layout::{self, FIELDS, FIRST, Field, Found, Layout, NEXT, ORDER, Span};
use crate::clock::boot;
use crate::state::State;
use crate::state::changed::{Change, Entity};
use crate::state::document::Board;
use crate::statefile::plan::Plan;
use crate::statefile::rendering::Rendering;

/// The length of a slot is a multiple of this, in bytes.
const GRAIN: usize = 16;
/// Room for more entities of a field when a file is laid out, in bytes: at least this, at least
/// what the field takes divided by `SHARE_OF_OWN`, and at least the field and the tasks together
/// divided by `SHARE_OF_ROOM`, or by `SHARE_OF_RETIRED` for retired tasks.
const LEAST_ROOM: usize = 4 << 10;
const SHARE_OF_OWN: usize = 4;
const SHARE_OF_ROOM: usize = 128;
const SHARE_OF_RETIRED: usize = 16;
/// Room for checkpoints: this many times what they take, up to `MOST_MORE` bytes, because they are
/// large, and a process that saves one usually saves more.
const MORE_CHECKPOINTS: usize = 8;
const MOST_MORE: usize = 128 << 10;
/// A file is rearranged when it has more than 1.6 times as many bytes as its texts, and its empty
/// lines more than this and than one in `WORN` of its bytes; or when one commit adds more bytes
/// than this to the tasks, and than a quarter of them.
const LEAST_EMPTY: u64 = 64 << 10;
const WORN: u64 = 16;
/// Most changes that are remembered for a spare that is behind.
const LOG: usize = 1 << 14;
/// Bytes by which the first fields may grow before the file is rearranged.
const HEAD_ROOM: usize = 512;

/// An offset in the file, and the text that belongs there.
type Piece = (u64, Vec<u8>);
/// A slot by its field and number.
type Place = (Field, u32);

#[derive(Debug, Default)]
pub(crate) struct Books {
    layout: Option<Layout>,
    plan: Option<Plan>,
    slots: [Slots; FIELDS.len()],
    entries: HashMap<Entity, Entry>,
    /// The entities' part of the checksum.
    total: u128,
    /// Total length of their texts, in bytes.
    shown: u64,
    /// Changed slots, with the seq of the event that changed each last, in the order of those.
    log: VecDeque<(u64, Place)>,
    /// The seq up to which changes are not in the log.
    known_after: u64,
    /// What this commit adds to the log.
    touched: Vec<(u64, Place)>,
    /// Texts rendered for this commit, and for the one before it, whose slots a spare lacks, too.
    texts: HashMap<Place, String>,
    texts_before: HashMap<Place, String>,
}

#[derive(Debug, Default)]
struct Slots {
    all: Vec<Slot>,
    /// The number of the first slot with an owner, which needs no comma.
    first: usize,
    live: usize,
    /// Total length of the slots without an owner, in bytes.
    empty: u64,
}

#[derive(Debug)]
struct Slot {
    at: u64,
    length: u32,
    owner: Option<Entity>,
}

/// The present arrangement, from which a new one copies what has not changed.
pub(crate) struct Before<'a> {
    pub books: &'a Books,
    /// Entities that have changed. Any other is in the file as it is in the state, and keeps its
    /// number.
    pub changed: &'a HashMap<Entity, Change>,
    /// The content of the live file, which the books describe.
    pub file: Vec<u8>,
}

/// The slots of one field, and the numbers of its entities in the checksum, in the same order.
pub(crate) struct Slotted {
    pub found: Vec<Found>,
    pub sums: Vec<u128>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: u32,
    /// Length of its text, in bytes.
    text: u32,
    order: u64,
    sum: u128,
}

/// What an entity adds to the checksum: its number times 2·order + 1, so that no two entities that
/// have an order can swap places.
pub(crate) fn contribution(sum: u128, order: u64) -> u128 {
    sum.wrapping_mul(2 * u128::from(order) + 1)
}

impl Slots {
    fn push(&mut self, at: u64, length: u32, owner: Option<Entity>) -> io::Result<u32> {
        let number = u32::try_from(self.all.len()).map_err(io::Error::other)?;
        match owner {
            Some(_) => self.live += 1,
            None => self.empty += u64::from(length),
        }
        self.all.push(Slot { at, length, owner });
        Ok(number)
    }

    fn length(&self, number: u32) -> usize {
        self.all.get(number as usize).map_or(0, |slot| slot.length as usize)
    }

    fn empty(&mut self, number: u32) {
        if let Some(slot) = self.all.get_mut(number as usize)
            && slot.owner.take().is_some()
        {
            self.live -= 1;
            self.empty += u64::from(slot.length);
        }
    }

    /// Moves `first` to the next slot with an owner; returns it if it has changed.
    fn advance(&mut self) -> Option<u32> {
        let before = self.first;
        while self.all.get(self.first).is_some_and(|slot| slot.owner.is_none()) {
            self.first += 1;
        }
        (self.first != before && self.first < self.all.len()).then_some(self.first as u32)
    }
}

impl Books {
    /// The books of a file that was read. `bytes` is its content, `sums` the numbers of all
    /// entities but the tasks, and `tasks` the tasks' slots and numbers. `None` if they do not
    /// fit together.
    pub(crate) fn of_file(
        header: &Header,
        bytes: &[u8],
        board: &Board,
        sums: &HashMap<Entity, u128>,
        tasks: Slotted,
    ) -> io::Result<Option<Self>> {
        let entities = sums.len() + tasks.sums.len();
        let mut books = Self {
            layout: Some(header.layout.clone()),
            plan: Some(Plan::of(board)?),
            entries: HashMap::with_capacity(entities),
            known_after: header.seq,
            ..Self::default()
        };
        if !header.layout.fits(bytes.len() as u64) {
            return Ok(None);
        }
        for field in FIELDS.into_iter().filter(|field| *field != Field::Tasks) {
            let Span { start, end, .. } = header.layout.span(field);
            let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
                return Ok(None);
            };
            let Some(found) = layout::slots(field, &bytes[from..to], start) else {
                return Ok(None);
            };
            if !books.place(field, found, |entity| sums.get(entity).copied())? {
                return Ok(None);
            }
            books.slots[field as usize].advance();
        }
        let mut of_tasks = tasks.sums.into_iter();
        if !books.place(Field::Tasks, tasks.found, |_| of_tasks.next())? {
            return Ok(None);
        }
        books.slots[Field::Tasks as usize].advance();
        // Each entity must have exactly one slot.
        Ok((books.entries.len() == entities).then_some(books))
    }

    /// Adds slots that were found after those that are known. If an entity has several, the last
    /// one counts. False if their orders differ.
    fn place(
        &mut self,
        field: Field,
        found: Vec<Found>,
        mut sum: impl FnMut(&Entity) -> Option<u128>,
    ) -> io::Result<bool> {
        for Found { at, length, text, owner } in found {
            let Some((entity, order)) = owner else {
                self.slots[field as usize].push(at, length, None)?;
                continue;
            };
            let slot = self.slots[field as usize].push(at, length, Some(entity.clone()))?;
            match self.entries.get_mut(&entity) {
                Some(entry) => {
                    self.slots[field as usize].empty(entry.slot);
                    self.shown = self.shown + u64::from(text) - u64::from(entry.text);
                    (entry.slot, entry.text) = (slot, text);
                    if entry.order != order {
                        return Ok(false);
                    }
                }
                None => {
                    let sum = sum(&entity).unwrap_or_default();
                    self.total = self.total.wrapping_add(contribution(sum, order));
                    self.shown += u64::from(text);
                    self.entries.insert(entity, Entry { slot, text, order, sum });
                }
            }
        }
        Ok(true)
    }

    /// Learns from the live file what others have placed since this process was last here. False
    /// when that is not possible.
    pub(crate) fn follow(
        &mut self,
        live: &Header,
        file: Option<&File>,
        changed: &HashMap<Entity, Change>,
    ) -> io::Result<bool> {
        let Some(known) = &self.layout else { return Ok(false) };
        if live.seq < self.known_after {
            return Ok(false);
        }
        if *known == live.layout {
            return Ok(true);
        }
        let Some(file) = file else { return Ok(false) };
        let is_same = known.generation == live.layout.generation
            && FIELDS.into_iter().all(|field| known.span(field).end <= live.layout.span(field).end);
        if !is_same {
            return self.read_anew(live, file);
        }
        let known = known.clone();
        for field in FIELDS {
            let (from, to) = (known.span(field).end, live.layout.span(field).end);
            let Some(found) = read_slots(field, file, from, to)? else { return Ok(false) };
            let first = self.slots[field as usize].all.len() as u32;
            for (number, slot) in (first..).zip(&found) {
                let seq = slot.owner.as_ref().and_then(|(entity, _)| changed.get(entity));
                let seq = seq.map_or(live.seq, |change| change.seq);
                self.touched.push((seq, (field, number)));
                let before = slot.owner.as_ref().and_then(|(entity, _)| self.entries.get(entity));
                self.touched.extend(before.map(|entry| (seq, (field, entry.slot))));
            }
            if !self.place(field, found, |_| None)? {
                return Ok(false);
            }
        }
        self.layout = Some(live.layout.clone());
        Ok(true)
    }

    /// Reads all slots, because another process has rearranged the file.
    fn read_anew(&mut self, live: &Header, file: &File) -> io::Result<bool> {
        let known = std::mem::take(&mut self.entries);
        (self.slots, self.total, self.shown, self.known_after) =
            (Default::default(), 0, 0, live.seq);
        self.log.clear();
        self.texts.clear();
        for field in FIELDS {
            let Span { start, end, .. } = live.layout.span(field);
            let Some(found) = read_slots(field, file, start, end)? else { return Ok(false) };
            if !self.place(field, found, |entity| known.get(entity).map(|entry| entry.sum))? {
                return Ok(false);
            }
            self.slots[field as usize].advance();
        }
        self.layout = Some(live.layout.clone());
        Ok(true)
    }

    /// Gives everything that has changed its slot and its number; the live file shows the event
    /// `shown`. Returns the first part of the new file; `None` when the file must be
    /// rearranged.
    pub(crate) fn update(
        &mut self,
        state: &State,
        changed: &HashMap<Entity, Change>,
        shown: u64,
    ) -> io::Result<Option<(Vec<u8>, Header)>> {
        self.texts_before = std::mem::take(&mut self.texts);
        let Some(mut layout) = self.layout.take() else { return Ok(None) };
        let tasks_end = layout.tasks.end;
        let mut new = BTreeMap::new();
        for (entity, &Change { seq, anew }) in changed {
            let field = Field::of(entity);
            match (self.entries.get(entity).copied(), rendering_of(entity, state)?) {
                (None, None) => {}
                // The file shows it, but these books do not know where.
                (None, Some(_)) if seq <= shown => return Ok(None),
                (None, Some(rendered)) => drop(new.insert(entity.clone(), (seq, rendered))),
                (Some(entry), None) => {
                    self.entries.remove(entity);
                    self.total = self.total.wrapping_sub(contribution(entry.sum, entry.order));
                    self.shown -= u64::from(entry.text);
                    self.slots[field as usize].empty(entry.slot);
                    self.touched.push((seq, (field, entry.slot)));
                }
                (Some(entry), Some(rendered)) => {
                    let mut slot = entry.slot;
                    self.touched.push((seq, (field, slot)));
                    let text = text_of(&rendered, entity, entry.order)?;
                    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
                    // The process that has shown it has found room for it.
                    if seq > shown {
                        // If it was removed and made again, somebody may have emptied its slot in
                        // the file meanwhile.
                        if anew
                            || FIRST.len() + text.len() > self.slots[field as usize].length(slot)
                        {
                            self.slots[field as usize].empty(slot);
                            let Some(moved) =
                                self.add(&mut layout, entity, outgrown(text.len()))?
                            else {
                                return Ok(None);
                            };
                            slot = moved;
                            self.touched.push((seq, (field, slot)));
                        }
                    }
                    self.texts.insert((field, slot), text);
                    self.shown = self.shown + u64::from(length) - u64::from(entry.text);
                    let before = contribution(entry.sum, entry.order);
                    let sum = sum_of_rendered(&rendered, entity);
                    let after = contribution(sum, entry.order);
                    self.total = self.total.wrapping_sub(before).wrapping_add(after);
                    if let Some(entry) = self.entries.get_mut(entity) {
                        (entry.slot, entry.text, entry.sum) = (slot, length, sum);
                    }
                }
            }
        }
        for entity in by_creation(state, new.keys()) {
            let Some((seq, rendered)) = new.remove(&entity) else { continue };
            let order = next_order(&mut layout, &entity);
            let (text, sum) =
                (text_of(&rendered, &entity, order)?, sum_of_rendered(&rendered, &entity));
            let Some(slot) = self.add(&mut layout, &entity, fresh(text.len(), &entity, state))?
            else {
                return Ok(None);
            };
            let place = (Field::of(&entity), slot);
            self.touched.push((seq, place));
            self.insert(entity, slot, text.as_bytes(), (order, sum))?;
            self.texts.insert(place, text);
        }
        for field in FIELDS {
            self.touched.extend(
                self.slots[field as usize].advance().map(|first| (state.seq(), (field, first))),
            );
        }
        self.note();
        // The other fields' room is a share of what the tasks took before.
        let has_leapt = layout.tasks.end - tasks_end > LEAST_EMPTY.max(tasks_end / 4);
        let plan = Plan::known_or_of(self.plan.take(), state.board())?;
        let is_worn = self.is_worn(&layout, &plan);
        let has_outgrown = (plan.goal.len() + plan.plan.len()) as u64 > layout.plan
            || plan.spent.len() as u64 > layout.spent;
        if is_worn || has_leapt || has_outgrown || !self.counts_agree(state) {
            return Ok(None);
        }
        boot().clone_into(&mut layout.boot);
        let (text, checksum) = first_part(state.board(), &plan, &layout, self.total)?;
        self.plan = Some(plan);
        let head = filled(text, layout.head);
        let (board_id, seq) = (state.board().board_id.clone(), state.seq());
        let header = Header { board_id, seq, checksum, layout: layout.clone() };
        self.layout = Some(layout);
        Ok(head.map(|head| (head, header)))
    }

    fn add(
        &mut self,
        layout: &mut Layout,
        entity: &Entity,
        length: usize,
    ) -> io::Result<Option<u32>> {
        let field = Field::of(entity);
        let length = u32::try_from(length).map_err(io::Error::other)?;
        let Some(at) = grow(layout, field, length) else { return Ok(None) };
        self.slots[field as usize].push(at, length, Some(entity.clone())).map(Some)
    }

    fn insert(
        &mut self,
        entity: Entity,
        slot: u32,
        text: &[u8],
        (order, sum): (u64, u128),
    ) -> io::Result<()> {
        let text = u32::try_from(text.len()).map_err(io::Error::other)?;
        self.total = self.total.wrapping_add(contribution(sum, order));
        self.shown += u64::from(text);
        self.entries.insert(entity, Entry { slot, text, order, sum });
        Ok(())
    }

    fn note(&mut self) {
        self.touched.sort_unstable();
        self.log.extend(self.touched.drain(..));
        while self.log.len() > LOG
            && let Some((seq, _)) = self.log.pop_front()
        {
            self.known_after = self.known_after.max(seq);
        }
    }

    /// Whether the file has as many entities of each kind as the state.
    fn counts_agree(&self, state: &State) -> bool {
        let counts = [
            state.agents().size_hint().0,
            state.checkpoints().len(),
            state.discoveries().len(),
            state.messages().len(),
            state.participants().size_hint().0,
            state.reservations().len(),
            state.retired().size_hint().0,
            state.sessions().len(),
            state.workflows().len(),
            state.live_tasks(),
        ];
        self.slots.iter().zip(counts).all(|(slots, count)| slots.live == count)
            && self.entries.len() == counts.iter().sum::<usize>()
    }

    fn is_worn(&self, layout: &Layout, plan: &Plan) -> bool {
        let empty: u64 = self.slots.iter().map(|slots| slots.empty).sum();
        let (size, shown) = (layout.tasks.end, self.shown + plan.length());
        empty > LEAST_EMPTY.max(size / WORN) && size > shown / 10 * 16
    }

    /// Bytes of the texts, without the padding around them.
    pub(crate) fn shown(&self) -> u64 {
        self.shown + self.plan.as_ref().map_or(0, Plan::length)
    }

    pub(crate) fn knows_since(&self, seq: u64) -> bool {
        self.known_after <= seq
    }

    /// The pieces that a file with the header `base` lacks, except the first part.
    pub(crate) fn missing(&mut self, base: &Header, state: &State) -> io::Result<Vec<Piece>> {
        let Some(layout) = &self.layout else {
            return Err(io::Error::other("the layout is not known"));
        };
        let newer = self.log.iter().rev().take_while(|(seq, _)| *seq > base.seq);
        let mut places: Vec<Place> = newer.map(|(_, place)| *place).collect();
        for field in FIELDS {
            let end = base.layout.span(field).end;
            let numbered = self.slots[field as usize].all.iter().enumerate().rev();
            places.extend(
                numbered
                    .take_while(|(_, slot)| slot.at >= end)
                    .map(|(number, _)| (field, number as u32)),
            );
        }
        places.sort_unstable();
        places.dedup();
        let mut pieces: Vec<Piece> = Vec::new();
        if let Some(plan) = self.plan.as_ref().filter(|_| state.plan_seq() > base.seq) {
            let part = |text: &[u8], length| {
                filled(text.to_vec(), length)
                    .ok_or_else(|| io::Error::other("the plan has no room"))
            };
            piece_at(&mut pieces, layout.plan_at()).extend(part(&plan.text(), layout.plan)?);
            piece_at(&mut pieces, layout.spent_at()).extend(part(&plan.spent, layout.spent)?);
        }
        for place in places {
            let slots = &self.slots[place.0 as usize];
            let Some(slot) = slots.all.get(place.1 as usize) else { continue };
            let rendered = self.texts.get(&place).or_else(|| self.texts_before.get(&place));
            let text = match (&slot.owner, rendered) {
                (None, _) => None,
                (Some(_), Some(text)) => Some(Cow::Borrowed(text.as_str())),
                (Some(entity), None) => {
                    let order = self.entries.get(entity).map_or(0, |entry| entry.order);
                    let rendering = rendering_of(entity, state)?;
                    let rendering =
                        rendering.ok_or_else(|| io::Error::other("a slot has no owner"))?;
                    Some(Cow::Owned(text_of(&rendering, entity, order)?))
                }
            };
            let text = text.as_deref().map(str::as_bytes);
            if text.is_some_and(|text| FIRST.len() + text.len() > slot.length as usize) {
                return Err(io::Error::other(
                    "a slot is too short for what others have shown in it",
                ));
            }
            push_slot(
                piece_at(&mut pieces, slot.at),
                text,
                place.1 as usize == slots.first,
                slot.length as usize,
            );
        }
        if layout.tasks.end != base.layout.tasks.end {
            piece_at(&mut pieces, layout.tasks.end)
                .extend_from_slice(Field::Tasks.closing().as_bytes());
        }
        Ok(pieces)
    }

    /// Rearranges the whole file, using what is known of the arrangement `before`. Returns its
    /// books and its content.
    pub(crate) fn arrange(state: &State, before: Option<&Before>) -> io::Result<(Self, Vec<u8>)> {
        let plan = Plan::of(state.board())?;
        let (plan_text, spent_text) = (plan.text(), plan.spent.clone());
        let anywhere = Span { start: u64::MAX, end: u64::MAX, limit: u64::MAX };
        let mut layout = Layout {
            generation: now_micros(),
            boot: boot().to_owned(),
            next_order: before.map_or(1, Before::next_order),
            head: 0,
            plan: grained(plan_text.len() + plan_text.len() / 4),
            spent: grained(spent_text.len() + spent_text.len() / 4),
            agents: anywhere,
            checkpoints: anywhere,
            discoveries: anywhere,
            messages: anywhere,
            participants: anywhere,
            reservations: anywhere,
            retired: anywhere,
            sessions: anywhere,
            workflows: anywhere,
            tasks: anywhere,
        };
        // Measured with offsets that are as long as they can be.
        layout.head = grained(first_part(state.board(), &plan, &layout, 0)?.0.len() + HEAD_ROOM);
        let mut books = Self { known_after: state.seq(), ..Self::default() };
        let mut text = vec![b' '; usize::try_from(layout.head).map_err(io::Error::other)?];
        text.extend(filled(plan_text, layout.plan).unwrap_or_default());
        text.extend(filled(spent_text, layout.spent).unwrap_or_default());
        // First, because the other fields' room is a share of the tasks, too.
        let Some(tasks) = books.fill(Field::Tasks, state, &mut layout, before)? else {
            return Self::arrange(state, None);
        };
        // Room for the whole file, as far as its length is known: moving it later costs more than
        // writing it.
        text.reserve(tasks.len() + tasks.len() / 2);
        for field in FIELDS {
            text.extend_from_slice(field.opening().as_bytes());
            let start = text.len() as u64;
            let slots = &mut books.slots[field as usize].all;
            if field == Field::Tasks {
                slots.iter_mut().for_each(|slot| slot.at += start);
                text.extend_from_slice(&tasks);
                set_span(
                    &mut layout,
                    field,
                    Span { start, end: text.len() as u64, limit: text.len() as u64 },
                );
            } else {
                let Some(entities) = books.fill(field, state, &mut layout, before)? else {
                    return Self::arrange(state, None);
                };
                books.slots[field as usize].all.iter_mut().for_each(|slot| slot.at += start);
                // The retired tasks get a larger share, because tasks go there one after another.
                let share = if field == Field::Retired { SHARE_OF_RETIRED } else { SHARE_OF_ROOM };
                let expected = match field {
                    Field::Checkpoints => MOST_MORE.min(MORE_CHECKPOINTS * entities.len()),
                    _ => LEAST_ROOM,
                };
                let like = LEAST_ROOM.max(expected).max(entities.len() / SHARE_OF_OWN);
                let room = like.max((tasks.len() + entities.len()) / share);
                text.extend_from_slice(&entities);
                let end = text.len() as u64;
                text.resize(text.len() + room, b' ');
                set_span(&mut layout, field, Span { start, end, limit: text.len() as u64 });
            }
            text.extend_from_slice(field.closing().as_bytes());
        }
        let first = filled(first_part(state.board(), &plan, &layout, books.total)?.0, layout.head);
        let first = first.ok_or_else(|| io::Error::other("the first fields have no room"))?;
        text[..first.len()].copy_from_slice(&first);
        (books.layout, books.plan) = (Some(layout), Some(plan));
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
            let order = known.map_or_else(|| next_order(layout, &entity), |entry| entry.order);
            if field.has_order() && std::mem::replace(&mut last, order) >= order {
                return Ok(None);
            }
            let copied = before.filter(|before| !before.changed.contains_key(&entity)).zip(known);
            let copied = copied
                .and_then(|(before, entry)| Some((before.text_in(field, entry.slot)?, entry.sum)));
            let (text, sum) = match copied {
                Some((text, sum)) => (Cow::Borrowed(text), sum),
                None => {
                    let Some(rendering) = rendering_of(&entity, state)? else { continue };
                    let text = text_of(&rendering, &entity, order)?.into_bytes();
                    (Cow::Owned(text), sum_of_rendered(&rendering, &entity))
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
            self.insert(entity, slot, &text, (order, sum))?;
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

/// Renders an entity; `None` when the state does not have it any more.
fn rendering_of(entity: &Entity, state: &State) -> io::Result<Option<Rendering>> {
    match entity {
        Entity::Agent(id) => state.agent(id).map(Rendering::of).transpose(),
        Entity::Checkpoint(id) => state.checkpoint(id).map(Rendering::of).transpose(),
        Entity::Discovery(id) => state.discovery(id).map(Rendering::of).transpose(),
        Entity::Message(id) => state.message(id).map(Rendering::of).transpose(),
        Entity::Participant(id) => state.participant(id).map(Rendering::of).transpose(),
        Entity::Reservation(id) => state.reservation(id).map(Rendering::of).transpose(),
        Entity::Retired(id) => state.retired_task(id).map(Rendering::of).transpose(),
        Entity::Session(id) => state.session(id).map(Rendering::of).transpose(),
        Entity::Task(id) => state.task(id).map(Rendering::of).transpose(),
        Entity::Workflow(id) => state.workflow(id).map(Rendering::of).transpose(),
    }
}

fn sum_of_rendered(rendering: &Rendering, entity: &Entity) -> u128 {
    rendering.sum(Field::of(entity).name(), key(entity).unwrap_or_default())
}

/// The entity's key, if its field is a map.
fn key(entity: &Entity) -> Option<&str> {
    match entity {
        Entity::Agent(id) => Some(id.as_str()),
        Entity::Checkpoint(id) => Some(id.as_str()),
        Entity::Participant(id) => Some(id.as_str()),
        Entity::Retired(id) => Some(id.as_str()),
        Entity::Session(id) => Some(id.as_str()),
        Entity::Workflow(id) => Some(id.as_str()),
        Entity::Discovery(_) | Entity::Message(_) | Entity::Reservation(_) | Entity::Task(_) => {
            None
        }
    }
}

/// The entity's text, with its order as the first field, if it has one.
fn text_of(rendering: &Rendering, entity: &Entity, order: u64) -> io::Result<String> {
    match order {
        0 => rendering.text(key(entity), ""),
        _ => rendering.text(key(entity), &format!("{ORDER}{order},")),
    }
}

fn next_order(layout: &mut Layout, entity: &Entity) -> u64 {
    if !Field::of(entity).has_order() {
        return 0;
    }
    layout.next_order += 1;
    layout.next_order - 1
}

/// The entities of a field, in the order in which the file shows them.
fn entities(field: Field, state: &State) -> Vec<Entity> {
    match field {
        Field::Agents => state.agents().map(|one| Entity::Agent(one.id.clone())).collect(),
        Field::Checkpoints => {
            state.checkpoints().map(|(id, _)| Entity::Checkpoint(id.clone())).collect()
        }
        Field::Discoveries => {
            state.discoveries().map(|one| Entity::Discovery(one.id.clone())).collect()
        }
        Field::Messages => state.messages().map(|one| Entity::Message(one.id.clone())).collect(),
        Field::Participants => {
            state.participants().map(|one| Entity::Participant(one.id.clone())).collect()
        }
        Field::Reservations => {
            state.reservations().map(|one| Entity::Reservation(one.id.clone())).collect()
        }
        Field::Retired => state.retired().map(|(id, _)| Entity::Retired(id.clone())).collect(),
        Field::Sessions => state.sessions().map(|one| Entity::Session(one.id.clone())).collect(),
        Field::Tasks => state.tasks().map(|one| Entity::Task(one.id.clone())).collect(),
        Field::Workflows => state.workflows().map(|one| Entity::Workflow(one.id.clone())).collect(),
    }
}

/// The `new` entities, those of lists oldest first. They are the last in the state's lists: nothing
/// old was made after them.
fn by_creation<'a>(state: &State, new: impl Iterator<Item = &'a Entity>) -> Vec<Entity> {
    let (mut maps, lists): (Vec<_>, Vec<_>) =
        new.cloned().partition(|entity| Field::of(entity).is_map());
    let lists: BTreeSet<_> = lists.into_iter().collect();
    let count = |field| lists.iter().filter(|entity| Field::of(entity) == field).count();
    let tasks = state.tasks().rev().map(|one| Entity::Task(one.id.clone()));
    let tasks = tasks.filter(|entity| lists.contains(entity)).take(count(Field::Tasks));
    let discoveries = state.discoveries().rev().map(|one| Entity::Discovery(one.id.clone()));
    let discoveries =
        discoveries.filter(|entity| lists.contains(entity)).take(count(Field::Discoveries));
    let messages = state.messages().rev().map(|one| Entity::Message(one.id.clone()));
    let messages = messages.filter(|entity| lists.contains(entity)).take(count(Field::Messages));
    let reservations = state.reservations().rev().map(|one| Entity::Reservation(one.id.clone()));
    let reservations =
        reservations.filter(|entity| lists.contains(entity)).take(count(Field::Reservations));
    let mut found: Vec<_> = tasks.chain(discoveries).chain(messages).chain(reservations).collect();
    found.reverse();
    maps.append(&mut found);
    maps
}

/// The last piece if it ends at `at`, else a new one that begins there.
fn piece_at(pieces: &mut Vec<Piece>, at: u64) -> &mut Vec<u8> {
    if pieces.last().is_none_or(|(start, last)| *start + last.len() as u64 != at) {
        pieces.push((at, Vec::new()));
    }
    let last = pieces.len() - 1;
    &mut pieces[last].1
}

fn push_slot(bytes: &mut Vec<u8>, text: Option<&[u8]>, is_first: bool, length: usize) {
    let end = bytes.len() + length;
    bytes.reserve(length);
    match text {
        Some(text) => {
            bytes.extend_from_slice(if is_first { FIRST } else { NEXT });
            bytes.extend_from_slice(text);
        }
        None => bytes.push(b'\n'),
    }
    bytes.resize(end, b' ');
}

/// The length of a text's first slot: enough to grow a little, unless the text is a finished
/// task's, which hardly does.
fn fresh(text: usize, entity: &Entity, state: &State) -> usize {
    let is_finished = |id| state.task(id).is_some_and(|task| task.status.may_retire());
    let room = match entity {
        Entity::Task(id) if is_finished(id) => 0,
        _ => text / 16,
    };
    (FIRST.len() + text + room).next_multiple_of(GRAIN)
}

/// The length of the slot for a text that has outgrown its first, and is likely to grow further.
fn outgrown(text: usize) -> usize {
    (FIRST.len() + text + text / 2).next_multiple_of(GRAIN)
}

fn grained(length: usize) -> u64 {
    length.next_multiple_of(GRAIN) as u64
}

/// Pads `text` with spaces to `length`; `None` when it is longer.
fn filled(mut text: Vec<u8>, length: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok().filter(|length| text.len() <= *length)?;
    text.resize(length, b' ');
    Some(text)
}

/// Extends the slots of `field` by `length` bytes, and returns where those are; `None` when there
/// is no room.
fn grow(layout: &mut Layout, field: Field, length: u32) -> Option<u64> {
    let Span { start, end, limit } = layout.span(field);
    let grown = end.checked_add(u64::from(length))?;
    let limit = if field == Field::Tasks { grown } else { limit };
    set_span(layout, field, Span { start, end: grown, limit });
    (grown <= limit).then_some(end)
}

fn set_span(layout: &mut Layout, field: Field, span: Span) {
    match field {
        Field::Agents => layout.agents = span,
        Field::Checkpoints => layout.checkpoints = span,
        Field::Discoveries => layout.discoveries = span,
        Field::Messages => layout.messages = span,
        Field::Participants => layout.participants = span,
        Field::Reservations => layout.reservations = span,
        Field::Retired => layout.retired = span,
        Field::Sessions => layout.sessions = span,
        Field::Tasks => layout.tasks = span,
        Field::Workflows => layout.workflows = span,
    }
}

fn read_slots(field: Field, file: &File, from: u64, to: u64) -> io::Result<Option<Vec<Found>>> {
    let mut bytes = vec![0; usize::try_from(to - from).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, from)?;
    Ok(layout::slots(field, &bytes, from))
}

/// The time as a generation. No two arrangements of a board are made in the same microsecond: each
/// needs the lock.
fn now_micros() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default()
}
