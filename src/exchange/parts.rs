//! Items that name what they are a part of.

use std::collections::BTreeMap;

use super::report::Report;
use crate::plan::Node;
use crate::state::limit;

/// Field of an item's metadata with the id of what it is a part of, where that is not there.
pub(super) const PARENT: &str = "parent_id";

/// Puts every item below the one whose id it names as its parent. One that names none that is
/// there, or itself by way of others, stands at the top.
pub(super) fn below(nodes: Vec<(Node, Option<String>)>, report: &mut Report) -> Vec<Node> {
    let id = |node: &Node| node.source.as_ref().map(|source| source.id.clone()).unwrap_or_default();
    let known: BTreeMap<String, Option<String>> =
        nodes.iter().map(|(node, parent)| (id(node), parent.clone())).collect();
    let mut parts: BTreeMap<Option<String>, Vec<Node>> = BTreeMap::new();
    for (mut node, parent) in nodes {
        let found =
            parent.clone().filter(|parent| known.contains_key(parent) && ends(parent, &known));
        if let (Some(parent), None) = (&parent, &found) {
            let path = node
                .source
                .as_ref()
                .and_then(|source| source.path.clone())
                .unwrap_or_else(|| "-".to_owned());
            let why = if known.contains_key(parent) {
                "that is a part of it, or is nested too deeply"
            } else {
                "no other item has that id"
            };
            report.note(&path, node.line, format!("not put below {parent}: {why}"));
            node.metadata.insert(PARENT.to_owned(), parent.as_str().into());
        }
        parts.entry(found).or_default().push(node);
    }
    let mut items = parts.remove(&None).unwrap_or_default();
    fill(&mut items, &mut parts);
    items
}

/// Whether the way upwards from an item comes to an end, and within the levels that items may be
/// nested.
fn ends(from: &str, known: &BTreeMap<String, Option<String>>) -> bool {
    let mut at = Some(from);
    for _ in 0..limit::JSON_DEPTH.max {
        let Some(id) = at else { return true };
        at = known.get(id).and_then(Option::as_deref);
    }
    false
}

fn fill(items: &mut [Node], parts: &mut BTreeMap<Option<String>, Vec<Node>>) {
    for node in items {
        let id = node.source.as_ref().map(|source| source.id.clone());
        node.items = parts.remove(&id).unwrap_or_default();
        fill(&mut node.items, parts);
    }
}
