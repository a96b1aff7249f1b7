//! Which discoveries are shown: those that help with a task, and none that others supersede.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::discovery::{Discovery, Findings};
use super::event::Event;
use super::id::DiscoveryId;
use super::limit;
use super::pattern::Pattern;
use super::refusal::Refusal;
use super::stored::Stored;
use super::task::Task;
use super::{Ordinal, State};

/// Newest discoveries of one tag, task or file that a claim looks at.
const OF_EACH: usize = 20;
/// Tags, dependencies and files of a task that a claim looks at.
const LOOKED_AT: usize = 50;
/// Newest discoveries whose files are compared with the globs of a task.
const COMPARED: usize = 100;
/// Comparisons of a glob with a file that one claim may cost.
const COMPARISONS: usize = 2_000;

/// Superseded discoveries that retire at once to make room.
const RETIRED_AT_ONCE: usize = 1_000;

/// Worth of each relation of a discovery to a task: found while working on it, or on a dependency;
/// about one of its files; with one of its tags.
const OF_TASK: u32 = 16;
const OF_DEPENDENCY: u32 = 8;
const OF_FILE: u32 = 4;
const OF_TAG: u32 = 1;

impl State {
    /// All discoveries, oldest first.
    pub fn discoveries(
        &self,
    ) -> impl DoubleEndedIterator<Item = &Arc<Discovery>> + ExactSizeIterator {
        self.records.discoveries.values()
    }

    pub fn discovery(&self, id: &DiscoveryId) -> Option<&Arc<Discovery>> {
        self.records.discoveries.get(self.findings.ordinals.get(id)?)
    }

    /// Discoveries added before `id`, newest first; all if `id` is not there.
    pub fn discoveries_before(
        &self,
        id: Option<&DiscoveryId>,
    ) -> impl Iterator<Item = &Arc<Discovery>> {
        let end = id.and_then(|id| self.findings.ordinals.get(id)).copied().unwrap_or(Ordinal::MAX);
        self.records.discoveries.range(..end).rev().map(|(_, one)| one)
    }

    /// The newest discovery that supersedes `id`.
    pub fn superseded_by(&self, id: &DiscoveryId) -> Option<&DiscoveryId> {
        let by = self.findings.superseded.get(id)?.last()?;
        self.records.discoveries.get(by).map(|one| &one.id)
    }

    /// The discoveries most likely to help with `task`: found while working on it or on its
    /// dependencies, about its files, or with its tags; of equally close ones the newer first,
    /// and none that is superseded. The cost is bounded, however many discoveries there are.
    pub fn discoveries_for(&self, task: &Task, most: usize) -> Vec<&Arc<Discovery>> {
        let Findings { tags, tasks, files, .. } = &self.findings;
        let mut worth: BTreeMap<Ordinal, u32> = BTreeMap::new();
        let mut count = |found: Option<&BTreeSet<Ordinal>>, each: u32| {
            for ordinal in found.into_iter().flat_map(|found| found.iter().rev().take(OF_EACH)) {
                *worth.entry(*ordinal).or_default() += each;
            }
        };
        count(tasks.get(&task.id), OF_TASK);
        task.dependencies.iter().take(LOOKED_AT).for_each(|id| count(tasks.get(id), OF_DEPENDENCY));
        task.tags.iter().take(LOOKED_AT).for_each(|tag| count(tags.get(tag), OF_TAG));
        let own = task.context.as_ref().map(|context| context.files.as_slice()).unwrap_or_default();
        own.iter().take(LOOKED_AT).for_each(|file| count(files.get(file), OF_FILE));
        for ordinal in self.filed_near(own) {
            *worth.entry(ordinal).or_default() += OF_FILE;
        }
        let current = |(ordinal, worth): (Ordinal, u32)| {
            let one = self.records.discoveries.get(&ordinal)?;
            self.superseded_by(&one.id).is_none().then_some(((worth, ordinal), one))
        };
        let mut found: Vec<_> = worth.into_iter().filter_map(current).collect();
        found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        found.into_iter().take(most).map(|(_, one)| one).collect()
    }

    /// The newest discoveries whose files may overlap `own` without being named there.
    fn filed_near(&self, own: &[String]) -> Vec<Ordinal> {
        let named: HashSet<_> = own.iter().collect();
        let patterns: Vec<_> =
            own.iter().take(LOOKED_AT).filter_map(|file| Pattern::new(file)).collect();
        let mut left = COMPARISONS;
        let mut near = |ordinal: &Ordinal| {
            let theirs = self
                .records
                .discoveries
                .get(ordinal)
                .map(|one| one.files.as_slice())
                .unwrap_or_default();
            theirs
                .iter()
                .filter(|file| !named.contains(file))
                .filter_map(|file| Pattern::new(file))
                .any(|theirs| {
                    patterns.iter().any(|own| {
                        left = left.saturating_sub(1);
                        left > 0 && own.overlaps(&theirs)
                    })
                })
        };
        let newest =
            self.findings.filed.iter().rev().take(if patterns.is_empty() { 0 } else { COMPARED });
        newest.copied().filter(|ordinal| near(ordinal)).collect()
    }

    /// Checks that there is room for one more discovery. On a full board, returns the event that
    /// retires the oldest superseded ones, including those that the new one supersedes.
    pub fn room_for_discovery(&self, superseded: &[DiscoveryId]) -> Result<Option<Event>, Refusal> {
        let count = self.records.discoveries.len() + 1;
        if limit::DISCOVERIES.check(count).is_ok() {
            return Ok(None);
        }
        let going = self
            .discoveries_to_spare(superseded)
            .take(count - limit::DISCOVERIES.max + RETIRED_AT_ONCE);
        let discoveries: Vec<_> = going.cloned().collect();
        limit::DISCOVERIES.check(count - discoveries.len())?;
        Ok(Some(Event::DiscoveriesRetired { discoveries }))
    }

    /// Superseded discoveries, and those in `superseded`, oldest first.
    pub(super) fn discoveries_to_spare(
        &self,
        superseded: &[DiscoveryId],
    ) -> impl Iterator<Item = &DiscoveryId> {
        let ids = self.records.discoveries.values().map(|one| &one.id);
        ids.filter(|id| superseded.contains(id) || self.superseded_by(id).is_some())
    }

    pub(super) fn put_discovery(&mut self, one: Discovery) {
        let ordinal = self.take_ordinal();
        self.put(ordinal, Some(Arc::new(one)));
    }

    /// Removes a discovery; `None` if there is no such one.
    pub(super) fn retire_discovery(&mut self, id: &DiscoveryId) -> Option<()> {
        let ordinal = *self.findings.ordinals.get(id)?;
        self.put::<Discovery>(ordinal, None);
        Some(())
    }
}

impl Stored for Discovery {
    type Kept = BTreeMap<Ordinal, Arc<Self>>;

    fn key(state: &State, id: &DiscoveryId) -> Option<Ordinal> {
        state.findings.ordinals.get(id).copied()
    }

    fn follow(state: &mut State, ordinal: &Ordinal, old: Option<&Self>, new: Option<&Self>) {
        old.inspect(|old| state.findings.remove(*ordinal, old));
        new.inspect(|new| state.findings.add(*ordinal, new));
    }

    fn check(state: &State, wrong: &mut Vec<String>) {
        let mut findings = Findings::default();
        for (ordinal, one) in &state.records.discoveries {
            if findings.ordinals.contains_key(&one.id) {
                wrong.push(format!("discovery {} is there twice", one.id));
            }
            findings.add(*ordinal, one);
        }
        if findings != state.findings {
            wrong.push(format!("the findings are {:?} and should be {findings:?}", state.findings));
        }
    }
}
