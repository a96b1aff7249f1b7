//! How the state keeps its records: all of a kind in a table of their own. Each is replaced by
//! `State::put`, so that what follows from it is updated, and it can be put back.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use super::agent::{Agent, Participant};
use super::changed::Entity;
use super::document::{Board, Document, Retired};
use super::id::{AgentId, ParticipantId, TaskId};
use super::kinds::kinds;
use super::record::{All, KeyOf, Record};
use super::table::{Ordinal, Table};
use super::{State, Undo};

/// A kind of record, as the state keeps it.
pub(super) trait Stored: Record {
    type Kept: Kept<Self>;

    fn key(_: &State, id: &Self::Id) -> Option<KeyOf<Self>> {
        Self::All::key(id)
    }

    /// Updates what follows from the records, after one was added, replaced or removed.
    fn follow(_: &mut State, _key: &KeyOf<Self>, _old: Option<&Self>, _new: Option<&Self>) {}

    /// Adds to `wrong` what is wrong with the records.
    fn check(_: &State, _wrong: &mut Vec<String>) {}
}

impl Stored for Agent {
    type Kept = BTreeMap<AgentId, Arc<Self>>;
}

impl Stored for Participant {
    type Kept = BTreeMap<ParticipantId, Arc<Self>>;
}

impl Stored for Retired {
    type Kept = BTreeMap<TaskId, Arc<Self>>;
}

/// A table of records.
pub(super) trait Kept<R: Record>:
    Clone + Debug + Default + FromIterator<(KeyOf<R>, Arc<R>)>
{
    fn find(&self, key: &KeyOf<R>) -> Option<&Arc<R>>;

    /// Puts a record in its place, or removes it, and returns the one that was there.
    fn swap(&mut self, key: &KeyOf<R>, new: Option<Arc<R>>) -> Option<Arc<R>>;

    fn each(&self) -> impl DoubleEndedIterator<Item = (&R::Id, &Arc<R>)>;

    fn count(&self) -> usize;
}

impl<R: Record> Kept<R> for BTreeMap<KeyOf<R>, Arc<R>> {
    fn find(&self, key: &KeyOf<R>) -> Option<&Arc<R>> {
        self.get(key)
    }

    fn swap(&mut self, key: &KeyOf<R>, new: Option<Arc<R>>) -> Option<Arc<R>> {
        match new {
            Some(new) => self.insert(key.clone(), new),
            None => self.remove(key),
        }
    }

    fn each(&self) -> impl DoubleEndedIterator<Item = (&R::Id, &Arc<R>)> {
        self.iter().filter_map(|(key, one)| Some((R::All::id(key, Some(one))?, one)))
    }

    fn count(&self) -> usize {
        self.len()
    }
}

impl<R: Record<All = Vec<Arc<R>>>> Kept<R> for Table<Arc<R>> {
    fn find(&self, key: &Ordinal) -> Option<&Arc<R>> {
        self.get(*key)
    }

    fn swap(&mut self, key: &Ordinal, new: Option<Arc<R>>) -> Option<Arc<R>> {
        match new {
            Some(new) => self.insert(*key, new),
            None => self.remove(*key),
        }
    }

    fn each(&self) -> impl DoubleEndedIterator<Item = (&R::Id, &Arc<R>)> {
        self.values().filter_map(|one| Some((one.id()?, one)))
    }

    fn count(&self) -> usize {
        self.len()
    }
}

/// A kind of record, for what shows the state kind by kind.
pub trait Kind: Record {
    fn find<'s>(state: &'s State, id: &Self::Id) -> Option<&'s Arc<Self>>;
    /// Records with their ids: those of lists in order of creation, others by id.
    fn each(state: &State) -> impl DoubleEndedIterator<Item = (&Self::Id, &Arc<Self>)>;
    fn count(state: &State) -> usize;
}

impl<R: Listed> Kind for R {
    fn find<'s>(state: &'s State, id: &R::Id) -> Option<&'s Arc<R>> {
        R::kept(&state.records).find(&R::key(state, id)?)
    }

    fn each(state: &State) -> impl DoubleEndedIterator<Item = (&R::Id, &Arc<R>)> {
        R::kept(&state.records).each()
    }

    fn count(state: &State) -> usize {
        R::kept(&state.records).count()
    }
}

/// What the list of kinds says of each.
pub(super) trait Listed: Stored {
    fn kept(records: &Records) -> &Self::Kept;
    fn kept_mut(records: &mut Records) -> &mut Self::Kept;
    fn replaced(key: KeyOf<Self>, old: Option<Arc<Self>>) -> Replaced;
    fn entity(id: Self::Id) -> Entity;
}

macro_rules! records {
    ($($(#[$meta:meta])* $field:ident: $module:ident::$kind:ident,)*) => {
        #[derive(Clone, Debug, Default)]
        pub(super) struct Records {
            $(pub(super) $field: <super::$module::$kind as Stored>::Kept,)*
        }

        /// The key of a record that was replaced, and what was there before.
        #[derive(Clone, Debug)]
        pub(super) enum Replaced {
            $($kind(KeyOf<super::$module::$kind>, Option<Arc<super::$module::$kind>>),)*
        }

        $(impl Listed for super::$module::$kind {
            fn kept(records: &Records) -> &Self::Kept {
                &records.$field
            }

            fn kept_mut(records: &mut Records) -> &mut Self::Kept {
                &mut records.$field
            }

            fn replaced(key: KeyOf<Self>, old: Option<Arc<Self>>) -> Replaced {
                Replaced::$kind(key, old)
            }

            fn entity(id: Self::Id) -> Entity {
                Entity::$kind(id)
            }
        })*

        impl State {
            pub fn to_document(&self) -> Document {
                let board = Board::clone(&self.board);
                Document { board, $($field: All::of(self.records.$field.each()),)* }
            }

            /// Adds the records of a document to a state that has none.
            pub(super) fn take_in(&mut self, document: Document) {
                $(self.take_in_all::<super::$module::$kind>(document.$field);)*
            }

            pub(super) fn put_back(&mut self, replaced: Replaced) {
                match replaced {
                    $(Replaced::$kind(key, old) => drop(self.swap(&key, old)),)*
                }
            }

            /// The record that was replaced, and whether its id can have been another's before.
            pub(super) fn entity_of(&self, replaced: &Replaced) -> Option<(Entity, bool)> {
                match replaced {
                    $(Replaced::$kind(key, old) => self.entity_at(key, old.as_ref()),)*
                }
            }

            pub(super) fn check_records(&self, wrong: &mut Vec<String>) {
                $(super::$module::$kind::check(self, wrong);)*
            }
        }
    };
}
kinds!(records);

impl State {
    /// Puts a record in its place, or removes it. Every change of a record goes through here.
    pub(super) fn put<R: Listed>(&mut self, key: KeyOf<R>, new: Option<Arc<R>>) {
        let old = self.swap(&key, new);
        self.undo.push(Undo::Record(R::replaced(key, old)));
    }

    fn swap<R: Listed>(&mut self, key: &KeyOf<R>, new: Option<Arc<R>>) -> Option<Arc<R>> {
        let old = R::kept_mut(&mut self.records).swap(key, new.clone());
        R::follow(self, key, old.as_deref(), new.as_deref());
        old
    }

    fn take_in_all<R: Listed>(&mut self, all: R::All) {
        let all: Vec<_> = all.keyed(&mut self.next_ordinal).collect();
        *R::kept_mut(&mut self.records) = all.iter().cloned().collect();
        all.iter().for_each(|(key, one)| R::follow(self, key, None, Some(one)));
    }

    fn entity_at<R: Listed>(&self, key: &KeyOf<R>, old: Option<&Arc<R>>) -> Option<(Entity, bool)> {
        let one = old.or_else(|| R::kept(&self.records).find(key));
        let id = R::All::id(key, one.map(|one| &**one))?.clone();
        Some((R::entity(id), old.is_none() && !R::All::IS_LIST))
    }
}
