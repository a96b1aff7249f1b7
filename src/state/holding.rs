//! Which holds of files overlap, and when a reservation ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::event::Event;
use super::id::{AgentId, ReservationId, TaskId};
use super::pattern::Pattern;
use super::reservation::{Effort, Hold, Holder, Holds, Reservation};
use super::stored::Stored;
use super::time::Timestamp;
use super::{Ordinal, State};

impl State {
    /// Reservations in order of creation; a renewed one keeps its place.
    pub fn reservations(
        &self,
    ) -> impl DoubleEndedIterator<Item = &Arc<Reservation>> + ExactSizeIterator {
        self.records.reservations.values()
    }

    pub fn reservation(&self, id: &ReservationId) -> Option<&Arc<Reservation>> {
        self.records.reservations.get(self.holds.reservations.get(id)?)
    }

    /// True if nobody holds any file.
    pub fn all_files_are_free(&self) -> bool {
        self.holds.patterns.is_empty()
    }

    /// Every path and glob that is held.
    pub fn held_patterns(&self) -> impl Iterator<Item = &str> {
        self.holds.related("").map(|(_, pattern)| pattern.as_str())
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
                // To reserve the whole project keeps others from none of its files.
                let yields = matches!(holder, Holder::Reservation(_)) && theirs.yields_to(&file);
                if yields || found.contains_key(&holder) || !file.overlaps(theirs) {
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
                let task = self.records.tasks.get(ordinal)?;
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
                let one = self.records.reservations.get(&ordinal)?;
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
            .filter_map(|(_, ordinal)| Some(self.records.reservations.get(ordinal)?.id.clone()))
            .collect();
        (!reservations.is_empty()).then_some(Event::FilesReleased { reservations, expired: true })
    }

    /// Adds a reservation, or renews the one with the same id.
    pub(super) fn reserve(&mut self, reservation: Reservation) {
        let known = self.holds.reservations.get(&reservation.id).copied();
        let ordinal = known.unwrap_or_else(|| self.take_ordinal());
        self.put(ordinal, Some(Arc::new(reservation)));
    }

    /// Removes a reservation; one that has already ended is no error.
    pub(super) fn unreserve(&mut self, id: &ReservationId) {
        if let Some(ordinal) = self.holds.reservations.get(id).copied() {
            self.put::<Reservation>(ordinal, None);
        }
    }

    /// Removes the reservations that end with the lease of `task`.
    pub(super) fn unreserve_all_of(&mut self, task: &TaskId) {
        for ordinal in self.holds.bound.get(task).cloned().unwrap_or_default() {
            self.put::<Reservation>(ordinal, None);
        }
    }

    pub(super) fn move_reservations(&mut self, millis: i64) {
        for (ordinal, one) in self.records.reservations.clone() {
            let until = one.until.map(|until| until + millis);
            self.put(ordinal, Some(Arc::new(Reservation { until, ..Reservation::clone(&one) })));
        }
    }
}

impl Stored for Reservation {
    type Kept = BTreeMap<Ordinal, Arc<Self>>;

    fn key(state: &State, id: &ReservationId) -> Option<Ordinal> {
        state.holds.reservations.get(id).copied()
    }

    fn follow(state: &mut State, ordinal: &Ordinal, old: Option<&Self>, new: Option<&Self>) {
        state.holds.replace_reservation(*ordinal, old, new);
    }

    fn check(state: &State, wrong: &mut Vec<String>) {
        let mut holds = Holds::default();
        let mut ids = BTreeSet::new();
        for (ordinal, task) in state.records.tasks.iter() {
            holds.replace_task(ordinal, None, Some(task));
        }
        for (ordinal, one) in &state.records.reservations {
            holds.replace_reservation(*ordinal, None, Some(one));
            if !ids.insert(&one.id) {
                wrong.push(format!("reservation {} is there twice", one.id));
            }
            let holder = |id| state.task(id).and_then(|task| Some(&task.open_attempt()?.agent));
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
        if holds != state.holds {
            wrong.push(format!("the holds are {:?} and should be {holds:?}", state.holds));
        }
    }
}
