//! The books of a flat file: which entity is in which slot, and which event changed each slot last.

pub(crate) mod arrange;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use foldhash::{HashMap, HashMapExt};

use super::entities::{by_creation, count, rendering_of, text_of};
use super::header::Header;
use super::layout::{FIELDS, Field, Layout, Span};
use super::parts::{GRAIN, end, filled, filled_end, front, small};
use super::slot::{self, FIRST, Found, push_slot};
use crate::clock::boot;
use crate::state::State;
use crate::state::changed::{Change, Entity};
use crate::state::document::Board;
use crate::state::id::AgentId;
use crate::statefile::derived::Derived;
use crate::statefile::fragment::Sums;
use crate::statefile::plan::{Plan, short};
use crate::statefile::rendering::{Rendering, contribution};

/// A file is rearranged when it has more than 1.6 times as many bytes as its texts, and its slots
/// without an owner more than this and than one in `WORN` of its bytes.
const LEAST_EMPTY: u64 = 64 << 10;
const WORN: u64 = 16;
/// Most changes that are remembered for a spare that is behind.
const LOG: usize = 1 << 14;

/// An offset in the file, and the text that belongs there.
type Piece = (u64, Vec<u8>);
/// A slot by its field and number.
type Place = (Field, u32);

#[derive(Debug, Default)]
pub(crate) struct Books {
    layout: Option<Layout>,
    plan: Option<Plan>,
    derived: Option<Derived>,
    /// The last two parts of the new file.
    behind: Vec<Piece>,
    slots: [Slots; FIELDS.len()],
    entries: HashMap<Entity, Entry>,
    /// The entities' part of the checksums.
    total: Sums,
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
    /// Its number, and that of the title that it shows if it is an agent.
    sums: Sums,
}

impl Entry {
    /// What it adds to the checksums.
    fn part(&self) -> Sums {
        Sums { state: contribution(self.sums.state, self.order), ..self.sums }
    }
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
        titles: &BTreeMap<AgentId, u128>,
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
        for field in FIELDS.into_iter().filter(|field| *field != Field::Task) {
            let Span { start, end, .. } = header.layout.span(field);
            let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
                return Ok(None);
            };
            let Some(found) = slot::slots(field, &bytes[from..to], start) else {
                return Ok(None);
            };
            if !books.place(field, found, |entity| sums.get(entity).copied().map(Sums::of_state))? {
                return Ok(None);
            }
            books.slots[field as usize].advance();
        }
        let mut of_tasks = tasks.sums.into_iter();
        if !books.place(Field::Task, tasks.found, |_| of_tasks.next().map(Sums::of_state))? {
            return Ok(None);
        }
        books.slots[Field::Task as usize].advance();
        for (id, title) in titles {
            if let Some(entry) = books.entries.get_mut(&Entity::Agent(id.clone())) {
                entry.sums.derived = *title;
                books.total = books.total.and(Sums { state: 0, derived: *title });
            }
        }
        // Each entity must have exactly one slot.
        Ok((books.entries.len() == entities).then_some(books))
    }

    /// Adds slots that were found after those that are known. If an entity has several, the last
    /// one counts. False if their orders differ.
    fn place(
        &mut self,
        field: Field,
        found: Vec<Found>,
        mut sums: impl FnMut(&Entity) -> Option<Sums>,
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
                    let sums = sums(&entity).unwrap_or_default();
                    self.insert(entity, Entry { slot, text, order, sums });
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
            (Default::default(), Sums::default(), 0, live.seq);
        self.log.clear();
        self.texts.clear();
        for field in FIELDS {
            let Span { start, end, .. } = live.layout.span(field);
            let Some(found) = read_slots(field, file, start, end)? else { return Ok(false) };
            if !self.place(field, found, |entity| known.get(entity).map(|entry| entry.sums))? {
                return Ok(false);
            }
            self.slots[field as usize].advance();
        }
        self.layout = Some(live.layout.clone());
        Ok(true)
    }

    /// Assigns a slot and a number to each changed entity. The live file shows the event `shown`
    /// and has `size` bytes. Returns the first part of the new file; `None` when the file must
    /// be rearranged.
    pub(crate) fn update(
        &mut self,
        state: &State,
        changed: &HashMap<Entity, Change>,
        (shown, size): (u64, u64),
    ) -> io::Result<Option<(Vec<u8>, Header)>> {
        self.texts_before = std::mem::take(&mut self.texts);
        let Some(mut layout) = self.layout.take() else { return Ok(None) };
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
                    self.total = self.total.without(entry.part());
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
                    self.shown -= u64::from(entry.text);
                    self.total = self.total.without(entry.part());
                    let entry = Entry { slot, text: length, sums: rendered.sums(entity), ..entry };
                    self.insert(entity.clone(), entry);
                }
            }
        }
        for entity in by_creation(state, new.keys()) {
            let Some((seq, rendered)) = new.remove(&entity) else { continue };
            let order = layout.next_order(Field::of(&entity));
            let text = text_of(&rendered, &entity, order)?;
            let Some(slot) = self.add(&mut layout, &entity, fresh(text.len(), &entity, state))?
            else {
                return Ok(None);
            };
            let place = (Field::of(&entity), slot);
            self.touched.push((seq, place));
            let length = u32::try_from(text.len()).map_err(io::Error::other)?;
            let sums = rendered.sums(&entity);
            self.insert(entity, Entry { slot, text: length, order, sums });
            self.texts.insert(place, text);
        }
        for field in FIELDS {
            self.touched.extend(
                self.slots[field as usize].advance().map(|first| (state.seq(), (field, first))),
            );
        }
        self.note();
        let plan = Plan::known_or_of(self.plan.take(), state.board())?;
        let derived = Derived::known_or_of(self.derived.take(), state)?;
        let board = Rendering::of(&short(state.board()))?;
        let small = small(&board, &plan)?;
        let is_worn = self.is_worn(&layout, &plan);
        let has_outgrown =
            plan.plan.len() as u64 > layout.plan || small.len() as u64 > layout.spent;
        if is_worn || has_outgrown || !self.counts_agree(state) {
            return Ok(None);
        }
        boot().clone_into(&mut layout.boot);
        let sums = self.total.and(Sums { state: plan.sum_with(&board), derived: derived.sum() });
        let (end, checksum) = end(state.board(), sums, &layout)?;
        let front = filled(front(&plan, &derived), layout.head);
        let end = filled_end(end, size.saturating_sub(layout.end_at()));
        (self.plan, self.derived) = (Some(plan), Some(derived));
        let (Some(front), Some(end)) = (front, end) else { return Ok(None) };
        self.behind = vec![
            (layout.rest_at(), filled(small, layout.spent).unwrap_or_default()),
            (layout.end_at(), end),
        ];
        let (board_id, seq) = (state.board().board_id.clone(), state.seq());
        let header = Header { board_id, seq, checksum, layout: layout.clone() };
        self.layout = Some(layout);
        Ok(Some((front, header)))
    }

    fn add(
        &mut self,
        layout: &mut Layout,
        entity: &Entity,
        length: usize,
    ) -> io::Result<Option<u32>> {
        let field = Field::of(entity);
        let length = u32::try_from(length).map_err(io::Error::other)?;
        let Some(at) = layout.grow(field, length) else { return Ok(None) };
        self.slots[field as usize].push(at, length, Some(entity.clone())).map(Some)
    }

    fn insert(&mut self, entity: Entity, entry: Entry) {
        self.total = self.total.and(entry.part());
        self.shown += u64::from(entry.text);
        self.entries.insert(entity, entry);
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
        let counts = FIELDS.map(|field| (field, count(field, state)));
        counts.iter().all(|(field, count)| self.slots[*field as usize].live == *count)
            && self.entries.len() == counts.iter().map(|(_, count)| count).sum::<usize>()
    }

    fn is_worn(&self, layout: &Layout, plan: &Plan) -> bool {
        let empty: u64 = self.slots.iter().map(|slots| slots.empty).sum();
        let (size, shown) = (layout.end_at(), self.shown + plan.length());
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
        for field in FIELDS {
            let Span { start, end, .. } = layout.span(field);
            if end != base.layout.span(field).end {
                piece_at(&mut pieces, end)
                    .extend_from_slice(field.closing(start == end).as_bytes());
            }
        }
        if let Some(plan) = self.plan.as_ref().filter(|_| state.plan_seq() > base.seq) {
            let text = filled(plan.plan.clone(), layout.plan);
            pieces.push((
                layout.plan_at(),
                text.ok_or_else(|| io::Error::other("the plan has no room"))?,
            ));
        }
        pieces.extend(self.behind.iter().cloned());
        Ok(pieces)
    }
}

/// The last piece if it ends at `at`, else a new one that begins there.
fn piece_at(pieces: &mut Vec<Piece>, at: u64) -> &mut Vec<u8> {
    if pieces.last().is_none_or(|(start, last)| *start + last.len() as u64 != at) {
        pieces.push((at, Vec::new()));
    }
    let last = pieces.len() - 1;
    &mut pieces[last].1
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

fn read_slots(field: Field, file: &File, from: u64, to: u64) -> io::Result<Option<Vec<Found>>> {
    let mut bytes = vec![0; usize::try_from(to - from).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, from)?;
    Ok(slot::slots(field, &bytes, from))
}
