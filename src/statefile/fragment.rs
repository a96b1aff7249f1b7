//! The text of each entity, kept for as long as the state holds that very entity.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::sync::Arc;

use serde::Serialize;

use super::rendering::Rendering;

const INDENTATION: &str = "\n    ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    List,
    /// An object by id.
    Map,
}

/// One field of the document that holds many entities.
#[derive(Debug)]
pub struct Section<K, T> {
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
    text: String,
    sum: u128,
    used: u64,
}

impl<K: Clone + Eq + Hash + Borrow<str>, T: Serialize> Section<K, T> {
    pub fn new(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, fragments: HashMap::new(), write: 0 }
    }

    /// Appends the field to `out` and returns the sum of its entities.
    pub fn write<'a>(
        &mut self,
        out: &mut Vec<u8>,
        entities: impl Iterator<Item = (&'a K, &'a Arc<T>)>,
    ) -> io::Result<u128>
    where
        K: 'a,
        T: 'a,
    {
        self.write += 1;
        let (open, close) = match self.shape {
            Shape::List => ('[', ']'),
            Shape::Map => ('{', '}'),
        };
        out.extend_from_slice(format!(",\n  \"{}\": {open}", self.name).as_bytes());
        let (mut count, mut sum) = (0, 0_u128);
        for (key, entity) in entities {
            let fragment = self.fragment(key, entity)?;
            out.extend_from_slice(if count == 0 { b"" } else { b"," });
            out.extend_from_slice(INDENTATION.as_bytes());
            out.extend_from_slice(fragment.text.as_bytes());
            sum = sum.wrapping_add(fragment.sum);
            count += 1;
        }
        out.extend_from_slice(if count == 0 { "" } else { "\n  " }.as_bytes());
        out.push(close as u8);
        if self.fragments.len() > count {
            self.fragments.retain(|_, fragment| fragment.used == self.write);
        }
        Ok(sum)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.fragments.len()
    }

    fn fragment(&mut self, key: &K, entity: &Arc<T>) -> io::Result<&Fragment<T>> {
        let current = self.fragments.get(key.borrow()).is_some_and(|fragment| Arc::ptr_eq(&fragment.entity, entity));
        if !current {
            let fragment = self.compose(key, entity)?;
            self.fragments.insert(key.clone(), fragment);
        }
        let fragment = self.fragments.get_mut(key.borrow()).ok_or_else(|| io::Error::other("a fragment was lost"))?;
        fragment.used = self.write;
        Ok(fragment)
    }

    fn compose(&self, key: &K, entity: &Arc<T>) -> io::Result<Fragment<T>> {
        let rendering = Rendering::of(entity)?;
        let (key, sum) = match self.shape {
            Shape::List => (None, rendering.sum(self.name, "")),
            Shape::Map => (Some(key.borrow()), rendering.sum(self.name, key.borrow())),
        };
        Ok(Fragment { entity: Arc::clone(entity), text: rendering.text(key, "")?, sum, used: 0 })
    }
}

/// The number of one entity in the checksum.
pub fn sum_of(section: &str, key: &str, entity: &impl Serialize) -> io::Result<u128> {
    Ok(Rendering::of(entity)?.sum(section, key))
}

/// A checksum as it stands in the file.
pub fn hex(checksum: u128) -> String {
    format!("{checksum:032x}")
}
