//! Dependencies among the items of one import, before the board sees them.

use std::collections::HashMap;

use super::report::Fault;
use crate::plan::Node;
use crate::state::limit;

/// An item in a list of all, each before its parts.
pub(super) struct Placed<'a> {
    pub node: &'a Node,
    pub parent: Option<usize>,
}

/// All items, each before its parts.
pub(super) fn placed(items: &[Node]) -> Vec<Placed<'_>> {
    let mut open: Vec<(&Node, Option<usize>)> =
        items.iter().rev().map(|node| (node, None)).collect();
    let mut placed: Vec<Placed<'_>> = Vec::new();
    while let Some((node, parent)) = open.pop() {
        open.extend(node.items.iter().rev().map(|part| (part, Some(placed.len()))));
        placed.push(Placed { node, parent });
    }
    placed
}

/// Items by their ids in the file.
pub(super) fn by_id<'a>(placed: &[Placed<'a>]) -> HashMap<&'a str, usize> {
    let ids = placed.iter().enumerate();
    ids.filter_map(|(number, one)| Some((one.node.source.as_ref()?.id.as_str(), number))).collect()
}

/// The fault of an item that is nested too deeply.
pub(super) fn too_deep(placed: &[Placed<'_>]) -> Option<Fault> {
    let most = limit::JSON_DEPTH.max;
    let mut levels: Vec<usize> = Vec::with_capacity(placed.len());
    placed.iter().for_each(|one| levels.push(one.parent.map_or(1, |parent| levels[parent] + 1)));
    let at = levels.iter().position(|level| *level > most)?;
    Some(fault(placed[at].node, format!("it is nested deeper than {most} levels")))
}

pub(super) fn fault(node: &Node, problem: String) -> Fault {
    let path = node
        .source
        .as_ref()
        .and_then(|source| source.path.clone())
        .unwrap_or_else(|| "-".to_owned());
    Fault { path, line: node.line, problem }
}

/// Whether `one` is `other` or stands above it.
pub(super) fn is_above(placed: &[Placed<'_>], one: usize, other: usize) -> bool {
    std::iter::successors(Some(other), |number| placed[*number].parent).any(|number| number == one)
}

/// The fault of items that wait for each other in a circle. What has parts ends after them, and
/// they begin after what it waits for.
pub(super) fn circle(placed: &[Placed<'_>], ids: &HashMap<&str, usize>) -> Option<Fault> {
    let begin = |item: usize| 2 * item;
    let end = |item: usize| 2 * item + 1;
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); 2 * placed.len()];
    for (number, Placed { node, parent }) in placed.iter().enumerate() {
        after[end(number)].push(begin(number));
        let depends = node.depends.iter().filter_map(|id| ids.get(id.as_str()));
        after[begin(number)].extend(depends.map(|on| end(*on)));
        if let Some(parent) = parent {
            after[end(*parent)].push(end(number));
            after[begin(number)].push(begin(*parent));
        }
    }
    let mut circle: Vec<usize> = circle_in(&after)?.into_iter().map(|point| point / 2).collect();
    circle.dedup();
    if circle.len() > 1 && circle.first() == circle.last() {
        circle.pop();
    }
    let first = circle.iter().enumerate().min_by_key(|(_, item)| **item).map_or(0, |(at, _)| at);
    circle.rotate_left(first);
    circle.extend(circle.first().copied());
    let named = circle.iter().map(|item| {
        let node = placed[*item].node;
        let id = node.source.as_ref().map_or(node.title.as_str(), |source| source.id.as_str());
        format!("{id} (line {})", node.line)
    });
    let named: Vec<_> = named.collect();
    let problem = format!(
        "each waits for the next: {}; leave one of these dependencies out",
        named.join(" -> ")
    );
    Some(fault(placed[circle[0]].node, problem))
}

/// Points that lead to each other in a circle, if there are any.
fn circle_in(after: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Closed,
    }
    let mut marks = vec![Mark::New; after.len()];
    for start in 0..after.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut way = vec![(start, 0)];
        while let Some((point, next)) = way.last_mut() {
            let Some(&to) = after[*point].get(*next) else {
                marks[*point] = Mark::Closed;
                way.pop();
                continue;
            };
            *next += 1;
            match marks[to] {
                Mark::New => {
                    marks[to] = Mark::Open;
                    way.push((to, 0));
                }
                Mark::Open => {
                    return Some(
                        way.iter()
                            .map(|(point, _)| *point)
                            .skip_while(|point| *point != to)
                            .collect(),
                    );
                }
                Mark::Closed => {}
            }
        }
    }
    None
}
