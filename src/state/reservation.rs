//! Who holds which files. A task's files belong to its claim until the lease ends, without any
//! bookkeeping of their own. Reservations are for further files, until a time or the end of a
//! lease.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{AgentId, ReservationId, TaskId};
use super::pattern::Pattern;
use super::record::Record;
use super::table::Ordinal;
use super::task::Task;
use super::time::Timestamp;

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

impl Record for Reservation {
    const FIELD: &'static str = "reservations";
    type Id = ReservationId;
    type All = Vec<Arc<Self>>;

    fn id(&self) -> Option<&ReservationId> {
        Some(&self.id)
    }
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

impl Hold {
    /// How little the hold covers: of two holds of a file, the narrower one wins.
    pub fn narrowness(&self) -> (usize, bool) {
        Pattern::new(&self.files).map(|pattern| pattern.narrowness()).unwrap_or_default()
    }
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

    pub(super) fn spend(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

impl Default for Effort {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    Task(Ordinal),
    Reservation(Ordinal),
}

/// Patterns and ends, which follow from held tasks and reservations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Holds {
    /// Patterns by [`Pattern::key`].
    pub(super) patterns: BTreeMap<String, BTreeMap<(Holder, usize), Pattern>>,
    pub(super) reservations: HashMap<ReservationId, Ordinal>,
    pub(super) ends: BTreeSet<(Timestamp, Ordinal)>,
    pub(super) bound: BTreeMap<TaskId, BTreeSet<Ordinal>>,
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

    pub(super) fn replace_reservation(
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
    pub(super) fn related<'a>(
        &'a self,
        key: &'a str,
    ) -> impl Iterator<Item = (Holder, &'a Pattern)> + 'a {
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
