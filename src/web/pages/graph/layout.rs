//! Places of nodes, from the left to the right in layers.

use std::collections::BTreeMap;

use crate::view::Graph;

pub(super) const WIDTH: f64 = 200.0;
pub(super) const HEIGHT: f64 = 42.0;
/// Room between nodes of a layer, between layers, and around all.
const BESIDE: f64 = 14.0;
const BETWEEN: f64 = 56.0;
const AROUND: f64 = 12.0;
/// Nodes of a column of those that hang on nothing.
const COLUMN: usize = 12;
/// Most places that are kept free for lines through layers; others pass behind nodes.
const PASSES: usize = 4_000;
/// How often the layers are sorted by what is before and behind them.
const SWEEPS: usize = 4;

/// Where all is drawn.
pub(super) struct Laid {
    /// Upper left corners of the nodes.
    pub places: Vec<(f64, f64)>,
    /// A curve for each edge, and a line for each place where edges meet.
    pub lines: Vec<String>,
    pub size: (f64, f64),
}

/// A place in a layer: a node, a meeting of lines, or where a line passes.
#[derive(Default)]
struct Spot {
    layer: usize,
    before: Vec<usize>,
    behind: Vec<usize>,
    /// Left and right end, and middle of its height.
    left: f64,
    right: f64,
    middle: f64,
}

impl Laid {
    pub(super) fn of(graph: &Graph) -> Self {
        let nodes = graph.nodes.len();
        let (mut spots, ways) = spots(graph);
        let mut top = AROUND;
        for part in parts(&spots) {
            let height = |spot: usize| if spot < nodes { HEIGHT } else { 0.0 };
            let mut layers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            part.iter().for_each(|spot| layers.entry(spots[*spot].layer).or_default().push(*spot));
            let mut layers: Vec<Vec<usize>> = layers.into_values().collect();
            sort(&mut layers, &spots);
            let mut left = AROUND;
            for layer in &layers {
                stack(layer, &mut spots, &height);
                let width = if layer.iter().any(|spot| *spot < nodes) { WIDTH } else { 0.0 };
                for spot in layer {
                    (spots[*spot].left, spots[*spot].right) = (left, left + width);
                }
                left += width + BETWEEN;
            }
            let ends = |sign: f64| {
                let end = |spot: &usize| spots[*spot].middle + sign * height(*spot) / 2.0;
                part.iter().map(end).collect::<Vec<_>>()
            };
            let first = ends(-1.0).into_iter().fold(f64::INFINITY, f64::min);
            let last = ends(1.0).into_iter().fold(f64::NEG_INFINITY, f64::max);
            part.iter().for_each(|spot| spots[*spot].middle += top - first);
            top += last - first + 2.0 * BESIDE;
        }
        let alone = |spot: &usize| spots[*spot].before.len() + spots[*spot].behind.len() == 0;
        for (count, node) in (0..nodes).filter(alone).collect::<Vec<_>>().into_iter().enumerate() {
            let (column, row) = (count / COLUMN, count % COLUMN);
            let spot = &mut spots[node];
            spot.left = AROUND + column as f64 * (WIDTH + BETWEEN);
            spot.middle = top + row as f64 * (HEIGHT + BESIDE) + HEIGHT / 2.0;
        }
        let places: Vec<_> = spots[..nodes]
            .iter()
            .map(|spot| (spot.left, (spot.middle - HEIGHT / 2.0).round()))
            .collect();
        let meetings = nodes..graph.layers.len();
        let meeting = |spot: usize| line(&spots, &[spot]);
        let lines = ways.iter().map(|way| line(&spots, way)).chain(meetings.map(meeting)).collect();
        let far = |end: fn(&(f64, f64)) -> f64| places.iter().map(end).fold(0.0, f64::max);
        let size = (far(|place| place.0) + WIDTH + AROUND, far(|place| place.1) + HEIGHT + AROUND);
        Self { places, lines, size }
    }
}

/// A spot for each place of the graph and for each layer that an edge passes, and the spots on the
/// way of each edge.
fn spots(graph: &Graph) -> (Vec<Spot>, Vec<Vec<usize>>) {
    let spot = |layer: usize| Spot { layer, ..Spot::default() };
    let mut spots: Vec<Spot> = graph.layers.iter().map(|layer| spot(*layer)).collect();
    let mut ways = Vec::with_capacity(graph.edges.len());
    for (from, to) in &graph.edges {
        let passed = graph.layers[*from] + 1..graph.layers[*to];
        let mut way = vec![*from];
        if spots.len() + passed.len() <= graph.layers.len() + PASSES {
            for layer in passed {
                way.push(spots.len());
                spots.push(spot(layer));
            }
        }
        way.push(*to);
        for pair in way.windows(2) {
            spots[pair[0]].behind.push(pair[1]);
            spots[pair[1]].before.push(pair[0]);
        }
        ways.push(way);
    }
    (spots, ways)
}

/// The spots that hang together, without those that are alone.
fn parts(spots: &[Spot]) -> Vec<Vec<usize>> {
    let mut is_seen = vec![false; spots.len()];
    let mut parts = Vec::new();
    for first in 0..spots.len() {
        let mut part = Vec::new();
        let mut open = vec![first];
        while let Some(spot) = open.pop() {
            if !std::mem::replace(&mut is_seen[spot], true) {
                part.push(spot);
                open.extend(spots[spot].before.iter().chain(&spots[spot].behind));
            }
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts.retain(|part| part.len() > 1);
    parts
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0).then(|| sum / count)
}

/// Sorts each layer by the means of what is before it, and then of what is behind it.
fn sort(layers: &mut [Vec<usize>], spots: &[Spot]) {
    let mut rows = vec![0.0; spots.len()];
    let mut sorted = |layer: &mut Vec<usize>, beside: fn(&Spot) -> &[usize]| {
        let mut keyed: Vec<(f64, usize)> = layer
            .iter()
            .map(|spot| {
                let of_beside = mean(beside(&spots[*spot]).iter().map(|one| rows[*one]));
                (of_beside.unwrap_or(rows[*spot]), *spot)
            })
            .collect();
        keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
        *layer = keyed.into_iter().map(|(_, spot)| spot).collect();
        layer.iter().enumerate().for_each(|(row, spot)| rows[*spot] = row as f64);
    };
    layers.iter_mut().for_each(|layer| sorted(layer, |_| &[]));
    for _ in 0..SWEEPS {
        layers.iter_mut().for_each(|layer| sorted(layer, |spot| &spot.before));
        layers.iter_mut().rev().for_each(|layer| sorted(layer, |spot| &spot.behind));
    }
}

/// Puts the spots of a layer below each other, near the middle of what is before them.
fn stack(layer: &[usize], spots: &mut [Spot], height: &impl Fn(usize) -> f64) {
    let (mut end, mut moved) = (f64::NEG_INFINITY, Vec::new());
    for spot in layer {
        let wanted = mean(spots[*spot].before.iter().map(|one| spots[*one].middle));
        let least = if end.is_finite() { end + height(*spot) / 2.0 } else { 0.0 };
        let middle = match wanted {
            Some(wanted) if !end.is_finite() => wanted,
            Some(wanted) => wanted.max(least),
            None => least,
        };
        moved.extend(wanted.map(|wanted| middle - wanted));
        spots[*spot].middle = middle;
        end = middle + height(*spot) / 2.0 + BESIDE;
    }
    let shift = mean(moved.into_iter()).unwrap_or_default();
    layer.iter().for_each(|spot| spots[*spot].middle -= shift);
}

/// The line through spots: level where it passes a layer, and curved between layers.
fn line(spots: &[Spot], way: &[usize]) -> String {
    let mut text = String::new();
    for (count, spot) in way.iter().map(|spot| &spots[*spot]).enumerate() {
        let Spot { left, right, middle, .. } = spot;
        let before = count.checked_sub(1).map(|before| &spots[way[before]]);
        match before {
            None if way.len() > 1 => text.push_str(&format!("M{right:.0} {middle:.0}")),
            None => text.push_str(&format!("M{left:.0} {middle:.0}H{right:.0}")),
            Some(Spot { right: from, middle: level, .. }) => {
                let half = (left - from).abs().max(BETWEEN) / 2.0;
                text.push_str(&format!(
                    "C{:.0} {level:.0} {:.0} {middle:.0} {left:.0} {middle:.0}",
                    from + half,
                    left - half
                ));
                if count + 1 < way.len() {
                    text.push_str(&format!("H{right:.0}"));
                }
            }
        }
    }
    text
}
