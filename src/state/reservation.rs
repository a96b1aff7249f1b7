//! Who holds which files. A task's files belong to its claim until the lease ends, without any
//! bookkeeping of their own. Reservations are for further files, until a time or the end of a
//! lease.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::Event;
use super::id::{AgentId, ReservationId, TaskId};
use super::pattern::Pattern;
use super::task::Task;
use super::time::Timestamp;
use super::{Ordinal, State, Undo};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reservation {
    pub id: ReservationId,
    pub agent: AgentId,
    /// Paths and globs, relative to the worktree's root
    pub files: Vec<String>,
    /// True if others may share the files; nobody may then have them alone
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Task whose lease ends the reservation
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    pub created_at: Timestamp,
}

/// A hold of files by an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hold {
    /// Path or glob as the holder named it
    pub files: String,
    pub agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub until: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip)]
    pub shared: bool,
    #[serde(skip)]
    pub worktree: Option<String>,
}

/// Comparisons of patterns that one call may still make.
#[derive(Debug)]
pub struct Effort(usize);

impl Effort {
    const MOST: usize = 20_000;

    pub fn new() -> Self {
        Self(Self::MOST)
    }

    pub fn is_spent(&self) -> bool {
        self.0 == 0
    }

    fn spend(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

impl Default for Effort {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// Reservations in order of creation; a renewed one keeps its place.
    pub fn reservations(
        &self,
    ) -> impl DoubleEndedIterator<Item = &Arc<Reservation>> + ExactSizeIterator {
        self.reservations.values()
    }

    pub fn reservation(&self, id: &ReservationId) -> Option<&Arc<Reservation>> {
        self.reservations.get(self.holds.reservations.get(id)?)
    }

    /// True if nobody holds any file.
    pub fn all_files_are_free(&self) -> bool {
        self.holds.patterns.is_empty()
    }

    /// At most `most` holds of `files` by others than `agent`, one for each holder and claim. When
    /// the effort is spent, those found so far.
    pub fn overlaps(
        &self,
        files: &[String],
        agent: &AgentId,
        shared: bool,
        most: usize,
        effort: &mut Effort,
    ) -> Vec<Hold> {
        let mut found: BTreeMap<Holder, Hold> = BTreeMap::new();
        for file in files.iter().filter_map(|file| Pattern::new(file)) {
            for (holder, theirs) in self.holds.related(file.key()) {
                if found.len() >= most || !effort.spend() {
                    return found.into_values().collect();
                }
                if found.contains_key(&holder) || !file.overlaps(theirs) {
                    continue;
                }
                let hold = self
                    .hold(holder, theirs)
                    .filter(|one| one.agent != *agent && !(shared && one.shared));
                found.extend(hold.map(|hold| (holder, hold)));
            }
        }
        found.into_values().collect()
    }

    /// Holds of the file at `path` at time `now`.
    pub fn holds_of(&self, path: &str, now: Timestamp) -> Vec<Hold> {
        let related = self.holds.related(path).filter(|(_, pattern)| pattern.covers(path));
        let holders: BTreeMap<_, _> = related.collect();
        let holds = holders.into_iter().filter_map(|(holder, pattern)| self.hold(holder, pattern));
        holds.filter(|hold| hold.until > now).collect()
    }

    fn hold(&self, holder: Holder, pattern: &Pattern) -> Option<Hold> {
        let files = pattern.as_str().to_owned();
        match holder {
            Holder::Task(ordinal) => {
                let task = self.tasks.get(ordinal)?;
                let open = task.open_attempt()?;
                Some(Hold {
                    files,
                    agent: open.agent.clone(),
                    task: Some(task.id.clone()),
                    until: open.lease_until,
                    reason: Some(task.headline().to_owned()),
                    shared: false,
                    worktree: open.place.worktree.clone(),
                })
            }
            Holder::Reservation(ordinal) => {
                let one = self.reservations.get(&ordinal)?;
                let lease = || Some(self.task(one.task.as_ref()?)?.open_attempt()?.lease_until);
                Some(Hold {
                    files,
                    agent: one.agent.clone(),
                    task: one.task.clone(),
                    until: one.until.into_iter().chain(lease()).min().unwrap_or_default(),
                    reason: one.reason.clone(),
                    shared: one.shared,
                    worktree: one.worktree.clone(),
                })
            }
        }
    }

    /// The event that ends reservations whose time is over.
    pub(super) fn expired_reservations(&self, now: Timestamp) -> Option<Event> {
        let over = self.holds.ends.range(..=(now, Ordinal::MAX));
        let reservations: Vec<_> = over
            .filter_map(|(_, ordinal)| Some(self.reservations.get(ordinal)?.id.clone()))
            .collect();
        (!reservations.is_empty()).then_some(Event::FilesReleased { reservations, expired: true })
    }

    /// Adds a reservation, or renews the one with the same id.
    pub(super) fn reserve(&mut self, reservation: Reservation) {
        let known = self.holds.reservations.get(&reservation.id).copied();
        let ordinal = known.unwrap_or_else(|| self.take_ordinal());
        self.put_reservation(ordinal, Some(Arc::new(reservation)));
    }

    /// Removes a reservation; one that has already ended is no error.
    pub(super) fn unreserve(&mut self, id: &ReservationId) {
        if let Some(ordinal) = self.holds.reservations.get(id).copied() {
            self.put_reservation(ordinal, None);
        }
    }

    /// Removes the reservations that end with the lease of `task`.
    pub(super) fn unreserve_all_of(&mut self, task: &TaskId) {
        for ordinal in self.holds.bound.get(task).cloned().unwrap_or_default() {
            self.put_reservation(ordinal, None);
        }
    }

    pub(super) fn move_reservations(&mut self, millis: i64) {
        for (ordinal, one) in self.reservations.clone() {
            let until = one.until.map(|until| until + millis);
            self.put_reservation(
                ordinal,
                Some(Arc::new(Reservation { until, ..Reservation::clone(&one) })),
            );
        }
    }

    fn put_reservation(&mut self, ordinal: Ordinal, new: Option<Arc<Reservation>>) {
        let old = self.swap_reservation(ordinal, new);
        self.undo.push(Undo::Reservation(ordinal, old));
    }

    pub(super) fn swap_reservation(
        &mut self,
        ordinal: Ordinal,
        new: Option<Arc<Reservation>>,
    ) -> Option<Arc<Reservation>> {
        let old = self.reservations.remove(&ordinal);
        self.holds.replace_reservation(ordinal, old.as_deref(), new.as_deref());
        if let Some(new) = new {
            self.reservations.insert(ordinal, new);
        }
        old
    }

    pub(super) fn check_reservations(&self, wrong: &mut Vec<String>) {
        let mut holds = Holds::default();
        let mut ids = BTreeSet::new();
        for (ordinal, task) in self.tasks.iter() {
            holds.replace_task(ordinal, None, Some(task));
        }
        for (ordinal, one) in &self.reservations {
            holds.replace_reservation(*ordinal, None, Some(one));
            if !ids.insert(&one.id) {
                wrong.push(format!("reservation {} is there twice", one.id));
            }
            let holder = |id| self.task(id).and_then(|task| Some(&task.open_attempt()?.agent));
            if one.task.as_ref().is_some_and(|id| holder(id) != Some(&one.agent)) {
                wrong.push(format!(
                    "reservation {} belongs to a claim that is not {}'s",
                    one.id, one.agent
                ));
            }
            if one.task.is_none() && one.until.is_none() {
                wrong.push(format!("reservation {} never ends", one.id));
            }
        }
        if holds != self.holds {
            wrong.push(format!("the holds are {:?} and should be {holds:?}", self.holds));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Task(Ordinal),
    Reservation(Ordinal),
}

/// Patterns and ends, which follow from held tasks and reservations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Holds {
    /// Patterns by [`Pattern::key`].
    patterns: BTreeMap<String, BTreeMap<(Holder, usize), Pattern>>,
    reservations: HashMap<ReservationId, Ordinal>,
    ends: BTreeSet<(Timestamp, Ordinal)>,
    bound: BTreeMap<TaskId, BTreeSet<Ordinal>>,
}

impl Holds {
    pub(super) fn replace_task(
        &mut self,
        ordinal: Ordinal,
        old: Option<&Task>,
        new: Option<&Task>,
    ) {
        let (old, new) = (files_of(old), files_of(new));
        // A renewed lease changes nothing here, and patterns are expensive.
        if old != new {
            self.drop_patterns(Holder::Task(ordinal), old);
            self.add_patterns(Holder::Task(ordinal), new);
        }
    }

    fn replace_reservation(
        &mut self,
        ordinal: Ordinal,
        old: Option<&Reservation>,
        new: Option<&Reservation>,
    ) {
        if let Some(old) = old {
            self.reservations.remove(&old.id);
            self.drop_patterns(Holder::Reservation(ordinal), &old.files);
            self.ends.remove(&(old.until.unwrap_or_default(), ordinal));
            if let Some(task) = &old.task
                && let Some(bound) = self.bound.get_mut(task)
            {
                bound.remove(&ordinal);
                if bound.is_empty() {
                    self.bound.remove(task);
                }
            }
        }
        if let Some(new) = new {
            self.reservations.insert(new.id.clone(), ordinal);
            self.add_patterns(Holder::Reservation(ordinal), &new.files);
            self.ends.extend(new.until.map(|until| (until, ordinal)));
            if let Some(task) = &new.task {
                self.bound.entry(task.clone()).or_default().insert(ordinal);
            }
        }
    }

    pub(super) fn next_end(&self) -> Option<Timestamp> {
        self.ends.first().map(|(until, _)| *until)
    }

    fn add_patterns(&mut self, holder: Holder, files: &[String]) {
        for (number, pattern) in files.iter().map(|file| Pattern::new(file)).enumerate() {
            let Some(pattern) = pattern else { continue };
            self.patterns
                .entry(pattern.key().to_owned())
                .or_default()
                .insert((holder, number), pattern);
        }
    }

    fn drop_patterns(&mut self, holder: Holder, files: &[String]) {
        for (number, pattern) in files.iter().map(|file| Pattern::new(file)).enumerate() {
            let Some(pattern) = pattern else { continue };
            if let Some(same) = self.patterns.get_mut(pattern.key()) {
                same.remove(&(holder, number));
                if same.is_empty() {
                    self.patterns.remove(pattern.key());
                }
            }
        }
    }

    /// Patterns that may share a file with one of this key: at it, above it and below it.
    fn related<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (Holder, &'a Pattern)> + 'a {
        let ends = key.match_indices('/').map(|(end, _)| end).chain([key.len()]);
        let above =
            std::iter::once("").filter(|_| !key.is_empty()).chain(ends.map(|end| &key[..end]));
        let above = above.filter_map(|key| self.patterns.get(key));
        let from = self.patterns.range::<str, _>((Bound::Excluded(key), Bound::Unbounded));
        let is_below = move |other: &str| {
            key.is_empty() || other.strip_prefix(key).is_some_and(|rest| rest.starts_with('/'))
        };
        // In the order of keys, `a-b` and the like lie between `a` and `a/b`.
        let below = from
            .take_while(move |(other, _)| other.starts_with(key))
            .filter(move |(other, _)| is_below(other));
        let all = above.chain(below.map(|(_, patterns)| patterns)).flatten();
        all.map(|((holder, _), pattern)| (*holder, pattern))
    }
}

/// Files of a task that is held; none otherwise.
fn files_of(task: Option<&Task>) -> &[String] {
    let held = task.filter(|task| task.open_attempt().is_some());
    held.and_then(|task| task.context.as_ref()).map_or(&[], |context| &context.files)
}
