//! Tasks in a list, and the tree that they are.

use std::collections::HashSet;

use crate::exchange::graph::{by_id, is_above, placed};
use crate::exchange::parts;
use crate::exchange::reading::each;
use crate::exchange::report::Report;
use crate::plan::Node;

/// A task, and the one that it is a part of.
pub(crate) struct Flat {
    pub node: Node,
    pub parent: Option<String>,
}

impl Flat {
    pub(crate) fn id(&self) -> &str {
        self.node.source.as_ref().map_or("", |source| source.id.as_str())
    }
}

/// The tree. What a file says because it has no tree is left out: that a task waits for its own
/// parts, and that a part waits for what the whole waits for.
pub(crate) fn grown(flat: Vec<Flat>, report: &mut Report) -> Vec<Node> {
    let mut items =
        parts::below(flat.into_iter().map(|one| (one.node, one.parent)).collect(), report);
    let placed = placed(&items);
    let ids = by_id(&placed);
    let depends: Vec<HashSet<&String>> =
        placed.iter().map(|one| one.node.depends.iter().collect()).collect();
    let is_said = |number: usize, id: &String| match ids.get(id.as_str()) {
        Some(on) if *on == number => false,
        Some(on) if is_above(&placed, number, *on) => true,
        _ => {
            let mut above =
                std::iter::successors(placed[number].parent, |above| placed[*above].parent);
            above.any(|above| depends[above].contains(id))
        }
    };
    let kept = placed.iter().enumerate().map(|(number, one)| {
        one.node.depends.iter().filter(|id| !is_said(number, id)).cloned().collect::<Vec<_>>()
    });
    let mut kept = kept.collect::<Vec<_>>().into_iter();
    each(&mut items, &mut |node| node.depends = kept.next().unwrap_or_default());
    items
}
