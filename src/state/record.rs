//! What all kinds of records have in common. The list of the kinds is in `kinds`.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::Hash;

use serde::Serialize;

/// A kind of thing that the state keeps and the state file shows.
pub trait Record: Clone + PartialEq + Serialize + 'static {
    /// The field of a document that has all of them.
    const FIELD: &'static str;
    type Id: Clone + Ord + Hash + Borrow<str> + 'static;
    /// All of them in a document: a list in order of creation, or a map by id.
    type All: All<Self>;

    /// The id in the record. `None` if only a map's key is one.
    fn id(&self) -> Option<&Self::Id>;
}

/// All records of one kind in a document.
pub trait All<R: Record> {
    const IS_LIST: bool;

    fn each(&self) -> impl Iterator<Item = (&R::Id, &R)>;
}

impl<R: Record, B: Borrow<R>> All<R> for Vec<B> {
    const IS_LIST: bool = true;

    fn each(&self) -> impl Iterator<Item = (&R::Id, &R)> {
        self.iter().filter_map(|one| Some((one.borrow().id()?, one.borrow())))
    }
}

impl<R: Record> All<R> for BTreeMap<R::Id, R> {
    const IS_LIST: bool = false;

    fn each(&self) -> impl Iterator<Item = (&R::Id, &R)> {
        self.iter()
    }
}
