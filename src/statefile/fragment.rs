//! The text of each entity, kept for as long as the state holds that very entity.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::sync::Arc;

use serde::Serialize;

use super::derived::{TASK, TITLE, sum_of_title};
use super::rendering::Rendering;
use super::slots::layout::Field;

const INDENTATION: &str = "\n    ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    List,
    /// An object by id.
    Map,
}

impl Shape {
    pub(super) fn of(field: Field) -> Self {
        if field.is_map() { Self::Map } else { Self::List }
    }
}

/// One field of the document that holds many entities.
#[derive(Debug)]
pub(super) struct Section<K, T> {
    name: &'static str,
    shape: Shape,
    fragments: HashMap<K, Fragment<T>>,
    /// The number of writes; a fragment that the newest did not use is of an entity that is gone.
    write: u64,
}

#[derive(Debug)]
struct Fragment<T> {
    /// Held, so that the state can neither change it in place nor put another at its address.
    entity: Arc<T>,
    title: Option<String>,
    text: String,
    sums: Sums,
    used: u64,
}

/// Parts of the checksums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub state: u128,
    /// Of what the file shows beside the state.
    pub derived: u128,
}

impl Sums {
    pub(super) fn of_state(state: u128) -> Self {
        Self { state, derived: 0 }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            state: self.state.wrapping_add(other.state),
            derived: self.derived.wrapping_add(other.derived),
        }
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self {
            state: self.state.wrapping_sub(other.state),
            derived: self.derived.wrapping_sub(other.derived),
        }
    }
}

impl<K: Clone + Eq + Hash + Borrow<str>, T: Serialize> Section<K, T> {
    pub(super) fn new(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, fragments: HashMap::new(), write: 0 }
    }

    /// Appends the field to `out` and returns the sum of its entities.
    pub(super) fn write<'a>(
        &mut self,
        out: &mut Vec<u8>,
        entities: impl Iterator<Item = (&'a K, &'a Arc<T>)>,
    ) -> io::Result<Sums>
    where
        K: 'a,
        T: 'a,
    {
        self.write_titled(out, entities.map(|(key, entity)| (key, entity, None)))
    }

    /// Does this with the title of each agent's task.
    pub(super) fn write_titled<'a>(
        &mut self,
        out: &mut Vec<u8>,
        entities: impl Iterator<Item = (&'a K, &'a Arc<T>, Option<&'a str>)>,
    ) -> io::Result<Sums>
    where
        K: 'a,
        T: 'a,
    {
        self.write += 1;
        let (open, close) = match self.shape {
            Shape::List => ('[', ']'),
            Shape::Map => ('{', '}'),
        };
        out.extend_from_slice(format!("\n  \"{}\": {open}", self.name).as_bytes());
        let (mut count, mut sums) = (0, Sums::default());
        for (key, entity, title) in entities {
            let fragment = self.fragment(key, entity, title)?;
            out.extend_from_slice(if count == 0 { b"" } else { b"," });
            out.extend_from_slice(INDENTATION.as_bytes());
            out.extend_from_slice(fragment.text.as_bytes());
            sums = sums.and(fragment.sums);
            count += 1;
        }
        out.extend_from_slice(if count == 0 { "" } else { "\n  " }.as_bytes());
        out.extend_from_slice(&[close as u8, b',']);
        if self.fragments.len() > count {
            self.fragments.retain(|_, fragment| fragment.used == self.write);
        }
        Ok(sums)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.fragments.len()
    }

    fn fragment(
        &mut self,
        key: &K,
        entity: &Arc<T>,
        title: Option<&str>,
    ) -> io::Result<&Fragment<T>> {
        let is_current = |known: &Fragment<T>| {
            Arc::ptr_eq(&known.entity, entity) && known.title.as_deref() == title
        };
        if !self.fragments.get(key.borrow()).is_some_and(is_current) {
            let fragment = self.compose(key, entity, title)?;
            self.fragments.insert(key.clone(), fragment);
        }
        let fragment = self
            .fragments
            .get_mut(key.borrow())
            .ok_or_else(|| io::Error::other("a fragment was lost"))?;
        fragment.used = self.write;
        Ok(fragment)
    }

    fn compose(&self, key: &K, entity: &Arc<T>, title: Option<&str>) -> io::Result<Fragment<T>> {
        let id = key.borrow();
        let rendering = Rendering::of(entity)?;
        let (key, state) = match self.shape {
            Shape::List => (None, rendering.sum(self.name, "")),
            Shape::Map => (Some(id), rendering.sum(self.name, id)),
        };
        let derived = title.map_or(Ok(0), |title| sum_of_title(id, title))?;
        let titled =
            title.map(|title| rendering.with_field_behind(TASK, TITLE, title)).transpose()?;
        let text = titled.as_ref().unwrap_or(&rendering).text(key, "")?;
        let (entity, title, sums) =
            (Arc::clone(entity), title.map(str::to_owned), Sums { state, derived });
        Ok(Fragment { entity, title, text, sums, used: 0 })
    }
}
