//! Tasks in a list, and the tree that they are.

use std::collections::{HashMap, HashSet};

use crate::plan::Node;

/// A task, and the one that it is a part of.
pub struct Flat {
    pub node: Node,
    pub parent: Option<String>,
}

impl Flat {
    pub fn id(&self) -> &str {
        self.node.source.as_ref().map_or("", |source| source.id.as_str())
    }
}

/// The tree. What a file says because it has no tree is left out: that a task waits for its own parts, and that a part
/// waits for what the whole waits for.
pub fn grown(mut flat: Vec<Flat>) -> Vec<Node> {
    let at: HashMap<String, usize> = flat.iter().enumerate().map(|(at, one)| (one.id().to_owned(), at)).collect();
    let mut parents: Vec<Option<usize>> =
        flat.iter().map(|one| one.parent.as_ref().and_then(|id| at.get(id)).copied()).collect();
    for start in 0..flat.len() {
        // A circle of parents is cut where it closes.
        let mut seen = HashSet::from([start]);
        let mut at = start;
        while let Some(above) = parents[at] {
            if !seen.insert(above) {
                parents[at] = None;
            }
            at = above;
        }
    }
    let ids: Vec<String> = flat.iter().map(|one| one.id().to_owned()).collect();
    let above = |number: usize| std::iter::successors(parents[number], |number| parents[*number]);
    let before: Vec<Vec<String>> = flat.iter().map(|one| one.node.depends.clone()).collect();
    for number in 0..flat.len() {
        let inherited: HashSet<&String> = above(number).flat_map(|above| &before[above]).collect();
        let is_part = |id: &String| at.get(id).is_some_and(|part| above(*part).any(|above| above == number));
        flat[number].node.depends.retain(|id| !is_part(id) && (!inherited.contains(id) || ids[number] == *id));
    }
    let mut parts: Vec<Vec<Node>> = flat.iter().map(|_| Vec::new()).collect();
    let mut roots = Vec::new();
    // Deepest first, so that each is whole when it is put below another.
    let mut order: Vec<usize> = (0..flat.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(above(*number).count()));
    let mut nodes: Vec<Option<Node>> = flat.into_iter().map(|one| Some(one.node)).collect();
    let mut placed: Vec<(usize, Node)> = Vec::new();
    for number in order {
        let Some(mut node) = nodes[number].take() else { continue };
        node.items = std::mem::take(&mut parts[number]);
        match parents[number] {
            Some(parent) => parts[parent].push(node),
            None => placed.push((number, node)),
        }
    }
    placed.sort_by_key(|(number, _)| *number);
    roots.extend(placed.into_iter().map(|(_, node)| node));
    roots
}
