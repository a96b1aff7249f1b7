//! What all kinds of records have in common. The list of the kinds is in `kinds`.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use serde::Serialize;

use super::table::Ordinal;

/// A kind of thing that the state keeps and the state file shows.
pub trait Record: Clone + Debug + PartialEq + Serialize + 'static {
    /// The field of a document that has all of them.
    const FIELD: &'static str;
    type Id: Clone + Debug + Ord + Hash + Borrow<str> + 'static;
    /// All of them in a document: a list in order of creation, or a map by id.
    type All: All<Self>;

    /// The id in the record. `None` if only a map's key is one.
    fn id(&self) -> Option<&Self::Id>;
}

/// All records of the kind in a document.
pub type AllOf<R> = <R as Record>::All;

/// What the state finds a record of a kind by: its number in the order of creation, or its id.
pub type KeyOf<R> = <<R as Record>::All as All<R>>::Key;

/// All records of one kind in a document.
pub trait All<R: Record>: Default {
    const IS_LIST: bool;
    type Key: Clone + Debug + Ord;

    fn each(&self) -> impl Iterator<Item = (&R::Id, &R)>;

    /// The id of the record with that key, which is `one`.
    fn id<'a>(key: &'a Self::Key, one: Option<&'a R>) -> Option<&'a R::Id>;

    /// The key of the record with that id, if an id is a key.
    fn key(id: &R::Id) -> Option<Self::Key>;

    fn of<'a>(records: impl Iterator<Item = (&'a R::Id, &'a Arc<R>)>) -> Self;

    /// The records with their keys; numbers follow on `last`.
    fn keyed(self, last: &mut Ordinal) -> impl Iterator<Item = (Self::Key, Arc<R>)>;
}

impl<R: Record> All<R> for Vec<Arc<R>> {
    const IS_LIST: bool = true;
    type Key = Ordinal;

    fn each(&self) -> impl Iterator<Item = (&R::Id, &R)> {
        self.iter().filter_map(|one| Some((one.id()?, &**one)))
    }

    fn id<'a>(_: &'a Ordinal, one: Option<&'a R>) -> Option<&'a R::Id> {
        one?.id()
    }

    fn key(_: &R::Id) -> Option<Ordinal> {
        None
    }

    fn of<'a>(records: impl Iterator<Item = (&'a R::Id, &'a Arc<R>)>) -> Self {
        records.map(|(_, one)| Arc::clone(one)).collect()
    }

    fn keyed(self, last: &mut Ordinal) -> impl Iterator<Item = (Ordinal, Arc<R>)> {
        let first = *last + 1;
        *last += self.len() as Ordinal;
        (first..).zip(self)
    }
}

impl<R: Record> All<R> for BTreeMap<R::Id, R> {
    const IS_LIST: bool = false;
    type Key = R::Id;

    fn each(&self) -> impl Iterator<Item = (&R::Id, &R)> {
        self.iter()
    }

    fn id<'a>(key: &'a R::Id, _: Option<&'a R>) -> Option<&'a R::Id> {
        Some(key)
    }

    fn key(id: &R::Id) -> Option<R::Id> {
        Some(id.clone())
    }

    fn of<'a>(records: impl Iterator<Item = (&'a R::Id, &'a Arc<R>)>) -> Self {
        records.map(|(id, one)| (id.clone(), R::clone(one))).collect()
    }

    fn keyed(self, _: &mut Ordinal) -> impl Iterator<Item = (R::Id, Arc<R>)> {
        self.into_iter().map(|(id, one)| (id, Arc::new(one)))
    }
}
