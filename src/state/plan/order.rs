//! Items are claimed in the order of their file, whenever they were added.
//!
//! Tasks of one priority are claimed in the order of their creation. An item that stands elsewhere
//! in the file names the item beside which it is claimed; of the others, as many as possible keep
//! their own places.

use super::delta::Delta;
use crate::state::Ordinal;
use crate::state::task::Beside;

impl Delta<'_> {
    /// Beside which item each is claimed; `None` for those that are claimed in the order of their
    /// creation.
    pub(super) fn order(&self) -> Vec<Option<Beside>> {
        // New tasks are created in the order of the file, after all others.
        let place_of = |item: usize| match self.before[item] {
            Some(task) => (0, self.state.ordinal_of(&task.id).unwrap_or_default()),
            None => (1, item as Ordinal),
        };
        let places: Vec<(u8, Ordinal)> = (0..self.ids.len()).map(place_of).collect();
        let kept = longest_rise(&places);
        let mut order = vec![None; self.ids.len()];
        let first = kept.iter().position(|is_kept| *is_kept).unwrap_or_default();
        let (mut by, mut step) = (first, -i32::try_from(first).unwrap_or(i32::MAX) - 1);
        for (item, beside) in order.iter_mut().enumerate() {
            if kept[item] {
                (by, step) = (item, 0);
                continue;
            }
            step += 1;
            *beside = Some(Beside { task: self.ids[by].clone(), step });
        }
        order
    }
}

/// Which of the numbers form the longest rising sequence.
fn longest_rise<T: Ord>(numbers: &[T]) -> Vec<bool> {
    // The last of each best sequence by its length, and what comes before each number in its own.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(numbers.len());
    for (at, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|end| numbers[*end] < *number);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut kept = vec![false; numbers.len()];
    let mut next = ends.last().copied();
    while let Some(at) = next {
        kept[at] = true;
        next = before[at];
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_possible_keep_their_places() {
        let kept = |numbers: &[u8]| -> Vec<u8> {
            numbers
                .iter()
                .zip(longest_rise(numbers))
                .filter(|(_, kept)| *kept)
                .map(|(number, _)| *number)
                .collect()
        };
        assert_eq!(kept(&[]), [0; 0]);
        assert_eq!(kept(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(kept(&[9, 1, 2, 3]), [1, 2, 3]);
        assert_eq!(kept(&[1, 7, 8, 2, 3, 4, 9]), [1, 2, 3, 4, 9]);
        assert_eq!(kept(&[3, 2, 1]).len(), 1);
    }
}
