//! What waits for what, by places: the lines that follow from others are left out, places that
//! stand alike are folded, and layers are bundled. All take time linear in the lines, but for a
//! set of bits for each place.

use std::collections::VecDeque;

use foldhash::{HashMap, HashMapExt};

/// For each place those right before it, which are not the place itself, sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Links {
    pub before: Vec<Vec<usize>>,
}

impl Links {
    /// For each place those right behind it.
    fn behind(&self) -> Vec<Vec<usize>> {
        let mut behind = vec![Vec::new(); self.before.len()];
        for (place, before) in self.before.iter().enumerate() {
            before.iter().for_each(|one| behind[*one].push(place));
        }
        behind
    }

    /// Which of the first places those among them are folded into that follow each other without a
    /// branch, or that wait for the same and are waited for by the same.
    pub(super) fn alike(&self, first: usize) -> Vec<usize> {
        let behind = self.behind();
        let mut into: Vec<usize> = (0..self.before.len()).collect();
        for place in 0..first {
            if let [before] = self.before[place][..]
                && before < first
                && behind[before].len() == 1
            {
                into[place] = head(&mut into, before);
            }
        }
        (0..first).for_each(|place| into[place] = head(&mut into, place));
        let row = self.moved(&into.iter().copied().map(Some).collect::<Vec<_>>());
        let behind = row.behind();
        let mut seen: HashMap<(&[usize], &[usize]), usize> = HashMap::new();
        let mut twin: Vec<usize> = (0..into.len()).collect();
        for place in (0..first).filter(|place| into[*place] == *place) {
            let around = (&*row.before[place], &*behind[place]);
            if around != (&[], &[]) {
                twin[place] = *seen.entry(around).or_insert(place);
            }
        }
        into.into_iter().map(|head| twin[head]).collect()
    }

    /// The links of the places to which these are moved; those that are moved nowhere go.
    pub(super) fn moved(&self, to: &[Option<usize>]) -> Self {
        let places = to.iter().flatten().max().map_or(0, |last| last + 1);
        let mut moved = Self { before: vec![Vec::new(); places] };
        for (place, before) in self.before.iter().enumerate() {
            if let Some(to_place) = to[place] {
                moved.before[to_place].extend(before.iter().filter_map(|one| to[*one]));
            }
        }
        moved.tidy();
        moved
    }

    pub(super) fn tidy(&mut self) {
        for (place, before) in self.before.iter_mut().enumerate() {
            before.sort_unstable();
            before.dedup();
            before.retain(|one| *one != place);
        }
    }

    /// All places, each behind those before it; where they stand in a circle, which folding can
    /// close, the first of them comes first.
    fn order(&self) -> Vec<usize> {
        let behind = self.behind();
        let mut open: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut free: VecDeque<usize> = (0..open.len()).filter(|place| open[*place] == 0).collect();
        let mut is_placed = vec![false; open.len()];
        let mut rest = 0..open.len();
        let mut order = Vec::with_capacity(open.len());
        while let Some(place) =
            free.pop_front().or_else(|| rest.by_ref().find(|place| !is_placed[*place]))
        {
            if std::mem::replace(&mut is_placed[place], true) {
                continue;
            }
            order.push(place);
            for next in &behind[place] {
                open[*next] = open[*next].saturating_sub(1);
                if open[*next] == 0 {
                    free.push_back(*next);
                }
            }
        }
        order
    }

    /// For each place how many stand before it in a row at most.
    pub(super) fn layers(&self) -> Vec<usize> {
        let mut layers = vec![None; self.before.len()];
        for place in self.order() {
            let before = self.before[place].iter().filter_map(|one| layers[*one]);
            layers[place] = Some(before.max().map_or(0, |layer: usize| layer + 1));
        }
        layers.into_iter().flatten().collect()
    }

    /// Leaves out the lines that follow from others.
    pub(super) fn reduce(&mut self) {
        const BITS: usize = u64::BITS as usize;
        let order = self.order();
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, place)| rank[*place] = at);
        let mut reached: Vec<Vec<u64>> = vec![Vec::new(); order.len()];
        for place in order {
            let before = &mut self.before[place];
            let mut all = vec![0_u64; rank.len().div_ceil(BITS)];
            before.sort_unstable_by_key(|one| std::cmp::Reverse(rank[*one]));
            before.retain(|one| {
                if all[one / BITS] >> (one % BITS) & 1 == 1 {
                    return false;
                }
                all[one / BITS] |= 1 << (one % BITS);
                all.iter_mut().zip(&reached[*one]).for_each(|(bits, more)| *bits |= more);
                true
            });
            before.sort_unstable();
            reached[place] = all;
        }
    }

    /// Leads the lines between two sets of places, each of which waits for all of the others,
    /// through a new place.
    pub(super) fn bundle(&mut self) {
        let mut sets: HashMap<Vec<usize>, Vec<usize>> = HashMap::new();
        for (place, before) in self.before.iter().enumerate() {
            sets.entry(before.clone()).or_default().push(place);
        }
        let is_less = |(before, behind): &(Vec<usize>, Vec<usize>)| {
            before.len() * behind.len() > before.len() + behind.len()
        };
        let mut sets: Vec<_> = sets.into_iter().filter(is_less).collect();
        sets.sort_unstable();
        for (before, behind) in sets {
            behind.iter().for_each(|place| self.before[*place] = vec![self.before.len()]);
            self.before.push(before);
        }
    }
}

/// The first of the row that the place is in. Halves the way for the next look.
fn head(into: &mut [usize], mut place: usize) -> usize {
    while into[place] != place {
        into[place] = into[into[place]];
        place = into[place];
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(links: &Links) -> usize {
        links.before.iter().map(Vec::len).sum()
    }

    fn links(before: &[&[usize]]) -> Links {
        Links { before: before.iter().map(|one| one.to_vec()).collect() }
    }

    /// Three layers of `n`, each waiting for all before it.
    fn layered(n: usize) -> Links {
        Links { before: (0..3 * n).map(|place| (0..place / n * n).collect()).collect() }
    }

    #[test]
    fn lines_that_follow_from_others_are_left_out() {
        let mut all = links(&[&[], &[0], &[0, 1], &[0, 1, 2]]);
        all.reduce();
        assert_eq!(all, links(&[&[], &[0], &[1], &[2]]));
        let mut all = layered(3);
        all.reduce();
        assert_eq!(count(&all), 18);
        assert_eq!(all.layers(), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn layers_are_bundled_where_that_is_less() {
        let mut all = layered(3);
        all.reduce();
        all.bundle();
        assert_eq!(all.before.len(), 9 + 2);
        assert_eq!(count(&all), 12);
        let mut few = links(&[&[], &[], &[0, 1], &[0, 1]]);
        few.bundle();
        assert_eq!(few.before.len(), 4);
    }

    #[test]
    fn rows_and_layers_are_folded_and_what_differs_is_not() {
        assert_eq!(layered(2).alike(6), [0, 0, 2, 2, 4, 4]);
        assert_eq!(links(&[&[], &[0], &[1], &[]]).alike(4), [0, 0, 0, 3]);
        let fork = links(&[&[], &[0], &[0], &[2]]);
        assert_eq!(fork.alike(4), [0, 1, 1, 1], "a row stands as its first does");
        assert_eq!(links(&[&[1], &[2], &[]]).alike(3), [2, 2, 2], "from the last to the first");
        assert_eq!(links(&[&[1], &[0]]).alike(2), [1, 1], "a circle");
    }

    #[test]
    fn circles_that_folding_closes_end() {
        let mut circle = links(&[&[2], &[0], &[1], &[2]]);
        assert_eq!(circle.layers(), [0, 1, 2, 3]);
        circle.reduce();
        assert_eq!(circle.before[3], [2]);
    }
}
