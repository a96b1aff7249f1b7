//! Where items stand: what their paths say, levels that the text leaves out, and those that are too
//! many.

use std::collections::{HashMap, HashSet};

use super::{Draft, limit, shortened};
use crate::state::hierarchy;
use crate::state::plan::{Item, Remark};

/// Priorities that a title may begin with, as `P0`.
const PRIORITIES: u32 = 4;

/// Gives every item its place. Drafts come back each before its parts.
pub(super) fn settle(mut drafts: Vec<Draft>, remarks: &mut Vec<Remark>) -> Vec<Draft> {
    count(&mut drafts);
    unname(&mut drafts);
    name_above(&mut drafts);
    let mut settled = Settled {
        places: Vec::new(),
        by_path: HashMap::new(),
        drafts: Vec::new(),
        levels: Vec::new(),
    };
    for draft in drafts {
        settled.place(draft, remarks);
    }
    settled.drafts
}

fn levels(drafts: &[Draft]) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        levels.push(1 + draft.item.parent.map_or(0, |parent| levels[parent]));
    }
    levels
}

/// Gives `Phase 2` the path P2, and so on, if no other item has it.
fn count(drafts: &mut [Draft]) {
    let levels = levels(drafts);
    let mut taken: HashSet<String> =
        drafts.iter().filter_map(|draft| draft.item.path.clone()).collect();
    for number in 0..drafts.len() {
        let above = drafts[number].item.parent.map(|parent| drafts[parent].item.path.clone());
        let Draft { item: Item { path: None, .. }, counted: Some(counted), .. } = &drafts[number]
        else {
            continue;
        };
        let fits = match counted.word.as_str() {
            "phase" => levels[number] == 1,
            "milestone" => levels[number] == 2,
            _ => levels[number] == 1,
        };
        let path = match &above {
            None => hierarchy::part_path(None, counted.number),
            Some(above) => {
                above.as_deref().and_then(|above| hierarchy::part_path(Some(above), counted.number))
            }
        };
        drafts[number].item.path = path.filter(|path| fits && taken.insert(path.clone()));
    }
}

/// Gives an item without a path the one that follows from the first part that has one.
fn name_above(drafts: &mut [Draft]) {
    let levels = levels(drafts);
    let written: HashSet<String> =
        drafts.iter().filter_map(|draft| draft.item.path.clone()).collect();
    let unnamed: Vec<bool> = drafts.iter().map(|draft| draft.item.path.is_none()).collect();
    for number in (0..drafts.len()).rev() {
        let Item { parent: Some(parent), path: Some(path), .. } = &drafts[number].item else {
            continue;
        };
        let is_deep =
            hierarchy::numbers(path).is_some_and(|numbers| numbers.len() == levels[number]);
        let above =
            hierarchy::parent_path(path).filter(|above| is_deep && !written.contains(*above));
        if let (true, Some(above), parent) = (unnamed[*parent], above.map(str::to_owned), *parent) {
            drafts[parent].item.path = Some(above);
        }
    }
}

/// Takes `P2` before a title for a priority, or for words, where it can be no path.
fn unname(drafts: &mut [Draft]) {
    let levels = levels(drafts);
    let single = |draft: &Draft| {
        draft.item.path.as_deref().filter(|path| !path.contains('.')).map(str::to_owned)
    };
    let mut uses: HashMap<String, usize> = HashMap::new();
    let written = drafts.iter().filter(|draft| draft.is_path_in_title);
    written.filter_map(single).for_each(|path| *uses.entry(path).or_default() += 1);
    let number = |path: &str| path[1..].parse::<u32>().ok();
    let is_few = |path: &String| number(path).is_some_and(|number| number <= PRIORITIES);
    // `P1` before several titles is a priority, not the path of a phase.
    let are_priorities =
        uses.keys().all(is_few) && (uses.contains_key("P0") || uses.values().any(|uses| *uses > 1));
    for (at, draft) in drafts.iter_mut().enumerate() {
        let Some(path) = single(draft).filter(|_| draft.is_path_in_title) else { continue };
        if levels[at] == 1 && (draft.item.is_group || !are_priorities) {
            continue;
        }
        draft.item.path = None;
        match number(&path).filter(|number| *number <= PRIORITIES) {
            Some(number) => {
                draft.item.priority = draft.item.priority.or(Some(1 + 2 * number as u8))
            }
            None => put_back(&mut draft.item, &path),
        }
    }
}

/// Puts what was taken for a path before the title again. What has no room there stands in the
/// description.
fn put_back(item: &mut Item, path: &str) {
    let whole = format!("{path}: {}", item.title);
    item.title = shortened(&whole, limit::TITLE.max);
    if item.title == whole {
        return;
    }
    let description = item.description.take().unwrap_or_default();
    let kept = whole.trim_end_matches('…');
    let is_there = description.starts_with(&kept[path.len() + 2..]);
    item.description = Some(if is_there {
        format!("{path}: {description}")
    } else {
        format!("{whole}\n\n{description}")
    });
}

struct Settled {
    /// New index of each draft.
    places: Vec<usize>,
    by_path: HashMap<String, usize>,
    drafts: Vec<Draft>,
    levels: Vec<usize>,
}

impl Settled {
    fn place(&mut self, mut draft: Draft, remarks: &mut Vec<Remark>) {
        let mut parent = draft.item.parent.map(|parent| self.places[parent]);
        let line = draft.item.line;
        if let Some(path) = draft.item.path.clone().filter(|path| hierarchy::is_path(path)) {
            parent = self.missing(&path, parent, line, remarks);
        }
        let level = |parent: Option<usize>| parent.map_or(0, |parent| self.levels[parent]);
        if level(parent) >= limit::PLAN_DEPTH.max {
            let deep = level(parent) + 1;
            parent = parent.and_then(|parent| self.drafts[parent].item.parent);
            let most = limit::PLAN_DEPTH.max;
            let remark = format!(
                "it stands {deep} levels deep: it is read as one of {most}, beside what it stands \
                 below"
            );
            remarks.push(Remark { line, remark });
        }
        draft.item.parent = parent;
        self.places.push(self.drafts.len());
        self.push(draft);
    }

    fn push(&mut self, draft: Draft) {
        if let Some(path) = &draft.item.path {
            self.by_path.entry(path.clone()).or_insert(self.drafts.len());
        }
        self.levels.push(1 + draft.item.parent.map_or(0, |parent| self.levels[parent]));
        self.drafts.push(draft);
    }

    /// The parent of an item with this path: the one that it stands below, or one that the path
    /// names, made if there is none.
    fn missing(
        &mut self,
        path: &str,
        stands: Option<usize>,
        line: usize,
        remarks: &mut Vec<Remark>,
    ) -> Option<usize> {
        let own = stands.map(|parent| self.drafts[parent].item.path.clone());
        let level = stands.map_or(0, |parent| self.levels[parent]);
        let Some(above) = hierarchy::parent_path(path) else { return stands };
        let is_below = match &own {
            None => true,
            Some(Some(own)) => path.starts_with(&format!("{own}.")),
            Some(None) => false,
        };
        if !is_below || hierarchy::level(path) <= level + 1 {
            return stands;
        }
        let mut parent = stands;
        let parts: Vec<&str> = above.split('.').collect();
        for depth in level..parts.len() {
            let path = parts[..=depth].join(".");
            parent = Some(match self.by_path.get(&path) {
                Some(there) => *there,
                None => {
                    remarks.push(Remark {
                        line,
                        remark: format!("{path} is not in the text: it is made for its parts"),
                    });
                    let item = Item {
                        line,
                        parent,
                        title: path.clone(),
                        path: Some(path),
                        is_group: true,
                        ..Item::default()
                    };
                    self.push(Draft { item, ..Draft::default() });
                    self.drafts.len() - 1
                }
            });
        }
        parent
    }
}
