//! Places of nodes, from the left to the right in layers.

use rust_sugiyama::configure::Config;
use rust_sugiyama::from_edges;

use crate::view::Graph;

pub(super) const WIDTH: f64 = 200.0;
pub(super) const HEIGHT: f64 = 42.0;
/// Room between nodes of a layer, between layers, and around all.
const BESIDE: f64 = 14.0;
const BETWEEN: f64 = 56.0;
const AROUND: f64 = 12.0;
/// Nodes of a column of those that hang on nothing.
const COLUMN: usize = 12;

/// Upper left corners of the nodes.
pub(super) struct Laid {
    pub places: Vec<(f64, f64)>,
}

impl Laid {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut laid = Self { places: vec![(AROUND, AROUND); graph.nodes.len()] };
        let edges: Vec<(u32, u32)> = graph
            .edges
            .iter()
            .filter_map(|(from, to)| Some((u32::try_from(*from).ok()?, u32::try_from(*to).ok()?)))
            .collect();
        let mut top = AROUND;
        if !edges.is_empty() {
            // Layers are rows there and columns here, so breadth and height change places.
            let config = Config { vertex_spacing: BESIDE, ..Config::default() };
            for (nodes, _, _) in from_edges(&edges, &config) {
                top = laid.put(&nodes, top);
            }
        }
        let linked: std::collections::HashSet<usize> =
            graph.edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
        let alone = (0..graph.nodes.len()).filter(|node| !linked.contains(node));
        for (count, node) in alone.enumerate() {
            let (column, row) = (count / COLUMN, count % COLUMN);
            laid.places[node] =
                (AROUND + column as f64 * (WIDTH + BETWEEN), top + row as f64 * (HEIGHT + BESIDE));
        }
        laid
    }

    /// Puts one connected part below what is there, and returns where it ends.
    fn put(&mut self, nodes: &[(usize, (f64, f64))], top: f64) -> f64 {
        let layers = ranks(nodes.iter().map(|(_, (_, y))| *y));
        let least = nodes.iter().map(|(_, (x, _))| *x).fold(f64::INFINITY, f64::min);
        // The least distance of two neighbours is that of two rows.
        let mut beside: Vec<(usize, f64)> =
            layers.iter().copied().zip(nodes.iter().map(|(_, (x, _))| *x)).collect();
        beside.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let gaps = beside.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        let step = gaps.map(|pair| pair[1].1 - pair[0].1).fold(f64::INFINITY, f64::min).max(0.01);
        let mut end = top;
        for ((node, (x, _)), layer) in nodes.iter().zip(layers) {
            let row = if step.is_finite() { (x - least) / step } else { 0.0 };
            let place = (AROUND + layer as f64 * (WIDTH + BETWEEN), top + row * (HEIGHT + BESIDE));
            end = end.max(place.1 + HEIGHT + 2.0 * BESIDE);
            if let Some(own) = self.places.get_mut(*node) {
                *own = place;
            }
        }
        end
    }

    pub(super) fn size(&self) -> (f64, f64) {
        let far = |value: fn(&(f64, f64)) -> f64| self.places.iter().map(value).fold(0.0, f64::max);
        (far(|place| place.0) + WIDTH + AROUND, far(|place| place.1) + HEIGHT + AROUND)
    }

    /// A curve for each edge.
    pub(super) fn lines(&self, graph: &Graph) -> Vec<String> {
        let line = |(from, to): &(usize, usize)| {
            let ((x1, y1), (x2, y2)) = (self.places[*from], self.places[*to]);
            let (x1, y1, y2) = (x1 + WIDTH, y1 + HEIGHT / 2.0, y2 + HEIGHT / 2.0);
            let half = (x2 - x1).abs().max(BETWEEN) / 2.0;
            format!(
                "M{x1:.0} {y1:.0}C{:.0} {y1:.0} {:.0} {y2:.0} {x2:.0} {y2:.0}",
                x1 + half,
                x2 - half
            )
        };
        graph.edges.iter().map(line).collect()
    }
}

/// Places of the values among the different ones, from the smallest.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<usize> {
    let values: Vec<f64> = values.collect();
    let mut different = values.clone();
    different.sort_by(f64::total_cmp);
    different.dedup_by(|one, other| (*one - *other).abs() < 0.01);
    values.iter().map(|value| different.partition_point(|one| *one < *value - 0.005)).collect()
}
