//! A table of things numbered in order of creation. A lookup takes two steps however many there
//! are: a search tree misses the processor's caches at every level, and a claim on a large board
//! takes little else.

/// Number of a thing in the order of creation.
pub(super) type Ordinal = u64;

/// Numbers in one chunk. Most are in use while tasks are created in batches; messages and the like
/// take numbers, too. A chunk without entries is freed.
const CHUNK: usize = 64;

type Chunk<T> = Box<[Option<T>; CHUNK]>;

#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    chunks: Vec<Option<Chunk<T>>>,
    len: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Table<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, ordinal: Ordinal) -> Option<&T> {
        let (chunk, place) = position(ordinal);
        self.chunks.get(chunk)?.as_ref()?[place].as_ref()
    }

    /// Inserts `value` and returns the one that was there before.
    pub(super) fn insert(&mut self, ordinal: Ordinal, value: T) -> Option<T> {
        let (chunk, place) = position(ordinal);
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let chunk = self.chunks[chunk].get_or_insert_with(|| Box::new([const { None }; CHUNK]));
        let old = chunk[place].replace(value);
        self.len += usize::from(old.is_none());
        old
    }

    pub(super) fn remove(&mut self, ordinal: Ordinal) -> Option<T> {
        let (number, place) = position(ordinal);
        let chunk = self.chunks.get_mut(number)?;
        let old = chunk.as_mut()?[place].take()?;
        self.len -= 1;
        if chunk.iter().all(|chunk| chunk.iter().all(Option::is_none)) {
            *chunk = None;
        }
        Some(old)
    }

    /// All values, in the order of their numbers.
    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.chunks.iter().flatten().flat_map(|chunk| chunk.iter().flatten())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ordinal, &T)> {
        self.starting_at(0)
    }

    pub(super) fn starting_at(&self, first: Ordinal) -> impl Iterator<Item = (Ordinal, &T)> {
        let (skipped, _) = position(first);
        let chunks = self.chunks.iter().enumerate().skip(skipped);
        let all = chunks.flat_map(|(number, chunk)| {
            let entries = (number as Ordinal * CHUNK as Ordinal..)
                .zip(chunk.iter().flat_map(|chunk| chunk.iter()));
            entries.filter_map(|(ordinal, entry)| Some((ordinal, entry.as_ref()?)))
        });
        all.skip_while(move |(ordinal, _)| *ordinal < first)
    }
}

impl<T> FromIterator<(Ordinal, T)> for Table<T> {
    fn from_iter<I: IntoIterator<Item = (Ordinal, T)>>(entries: I) -> Self {
        let mut table = Self::default();
        entries.into_iter().for_each(|(ordinal, value)| drop(table.insert(ordinal, value)));
        table
    }
}

/// The chunk of a number, and the place in it.
fn position(ordinal: Ordinal) -> (usize, usize) {
    let ordinal = ordinal as usize;
    (ordinal / CHUNK, ordinal % CHUNK)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Numbers within a chunk and in chunks far apart.
    fn ordinal() -> impl Strategy<Value = Ordinal> {
        prop_oneof![0..200_u64, 10_000..10_100_u64]
    }

    fn check(table: &Table<u32>, map: &BTreeMap<Ordinal, u32>, ordinal: Ordinal) {
        assert_eq!((table.get(ordinal), table.len()), (map.get(&ordinal), map.len()));
        assert!(table.values().eq(map.values()));
        assert!(table.values().rev().eq(map.values().rev()));
        assert!(table.iter().eq(map.iter().map(|(ordinal, value)| (*ordinal, value))));
        assert!(
            table
                .starting_at(ordinal)
                .eq(map.range(ordinal..).map(|(ordinal, value)| (*ordinal, value)))
        );
    }

    proptest! {
        #[test]
        fn a_table_is_a_map(steps in prop::collection::vec((ordinal(), prop::option::weighted(0.6, 0..9_u32)), 1..300)) {
            let (mut table, mut map) = (Table::default(), BTreeMap::new());
            for (ordinal, value) in steps {
                match value {
                    Some(value) => assert_eq!(table.insert(ordinal, value), map.insert(ordinal, value)),
                    None => assert_eq!(table.remove(ordinal), map.remove(&ordinal)),
                }
                check(&table, &map, ordinal);
            }
            let collected: Table<u32> = map.iter().map(|(ordinal, value)| (*ordinal, *value)).collect();
            check(&collected, &map, 0);
        }
    }

    #[test]
    fn a_chunk_without_entries_is_given_back() {
        let mut table: Table<u8> =
            [(1, 1), (CHUNK as Ordinal, 2), (CHUNK as Ordinal + 1, 3)].into_iter().collect();
        table.remove(1);
        assert_eq!(table.chunks.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
        table.remove(CHUNK as Ordinal);
        assert!(table.chunks[1].is_some());
    }
}
