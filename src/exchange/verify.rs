//! Compares a file with the board: what both should say.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use serde::Serialize;

use super::graph::{Placed, placed};
use super::reading::{Read, settled};
use super::view::{self, View};
use crate::state::limit;
use crate::state::plan::{one_line, shortened, words};
use crate::state::task::TaskStatus;

/// What a comparison found.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Verdict {
    pub same: bool,
    /// Items of the file
    pub in_file: Counts,
    /// Tasks of the board that came from it or stand in it
    pub on_board: Counts,
    pub differences: Vec<String>,
    /// Lines of the file that look like work and are no items
    #[serde(skip_serializing_if = "is_zero")]
    pub unread: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Counts {
    pub items: usize,
    pub done: usize,
    pub over: usize,
    pub dependencies: usize,
}

impl Counts {
    fn add(&mut self, status: TaskStatus, dependencies: usize) {
        self.items += 1;
        self.done += usize::from(status == TaskStatus::Done);
        self.over += usize::from(!status.is_unfinished() && status != TaskStatus::Done);
        self.dependencies += dependencies;
    }
}

/// Compares what was read of a file at `path` with the board.
pub(crate) fn verify(format: &str, path: Option<&str>, read: &Read, view: &View) -> Verdict {
    let placed = placed(&read.items);
    let statuses = settled(&placed);
    let from = |number: usize| {
        let source = view.source(number).filter(|source| source.format == format)?;
        let is_there = match (path, &source.path) {
            (Some("" | "."), _) => true,
            (Some(path), Some(own)) => {
                own == path || own.starts_with(&format!("{}/", path.trim_end_matches('/')))
            }
            _ => true,
        };
        is_there.then_some(())
    };
    let mut scope: BTreeSet<usize> =
        (0..view.tasks.len()).filter(|number| from(*number).is_some()).collect();
    if scope.is_empty() {
        scope = (0..view.tasks.len()).collect();
    }
    let ids: Vec<&str> =
        placed.iter().map(|one| one.node.source.as_ref().map_or("", |source| &source.id)).collect();
    let pairs = pairs(format, &placed, &ids, view, &scope);
    let items: HashMap<usize, usize> =
        pairs.iter().enumerate().filter_map(|(item, task)| Some(((*task)?, item))).collect();
    let at: HashMap<&str, usize> = ids.iter().enumerate().map(|(item, id)| (*id, item)).collect();
    let mut verdict = Verdict::default();
    for (item, one) in placed.iter().enumerate() {
        verdict.in_file.add(statuses[item], one.node.depends.len());
        let Some(task) = pairs[item] else {
            verdict
                .differences
                .push(format!("{} \"{}\" is in the file alone", ids[item], one.node.title));
            continue;
        };
        let mut differs = |what: &str, file: &str, board: &str| {
            let (id, task) = (ids[item], &view.tasks[task].id);
            verdict
                .differences
                .push(format!("{id} ({task}): {what} is {file} in the file, {board} on the board"));
        };
        let board = &view.tasks[task];
        if words(&one.node.title) != words(board.headline()) {
            differs(
                "the title",
                &format!("\"{}\"", one.node.title),
                &format!("\"{}\"", board.headline()),
            );
        }
        let status = if board.status.is_in_work() { TaskStatus::Available } else { board.status };
        if statuses[item] != status {
            differs("the status", statuses[item].as_str(), board.status.as_str());
        }
        let named = |numbers: BTreeSet<&str>| {
            let list: Vec<_> = numbers.into_iter().collect();
            if list.is_empty() { "none".to_owned() } else { list.join(", ") }
        };
        let of_file: BTreeSet<&str> =
            one.node.depends.iter().map(String::as_str).filter(|id| at.contains_key(id)).collect();
        let (on, _) = view.depends(task);
        let of_board: BTreeSet<&str> = on
            .iter()
            .map(|on| items.get(on).map_or(view.tasks[*on].id.as_str(), |item| ids[*item]))
            .collect();
        if of_file != of_board {
            differs("what it depends on", &named(of_file), &named(of_board));
        }
        // Not every format has results, so none in the file says nothing.
        let said = one.node.of_task.past.result.as_ref().and_then(view::said);
        if let Some(said) = said.filter(|said| view.result(task) != Some(said)) {
            differs(
                "the result",
                &quoted(said),
                &view.result(task).map_or_else(|| "none".to_owned(), quoted),
            );
        }
        let above = one.parent.map(|parent| ids[parent]);
        let above_there = view.parents[task].map(|parent| {
            items.get(&parent).map_or(view.tasks[parent].id.as_str(), |item| ids[*item])
        });
        if above != above_there {
            differs(
                "what it is a part of",
                above.unwrap_or("nothing"),
                above_there.unwrap_or("nothing"),
            );
        }
    }
    let paired: HashSet<usize> = pairs.iter().copied().flatten().collect();
    for number in scope.union(&paired.iter().copied().collect()).copied() {
        let task = &view.tasks[number];
        verdict.on_board.add(task.status, view.depends(number).0.len());
        if !paired.contains(&number) {
            verdict.differences.push(format!(
                "{} \"{}\" is on the board alone",
                task.id,
                task.headline()
            ));
        }
    }
    verdict.unread = read.report.unread;
    verdict.same = verdict.differences.is_empty();
    verdict
}

/// The text, short enough for a line.
fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(&one_line(text), limit::TITLE.max))
}

/// The task that is each item: by the id that it had in this format, then in another, by its own
/// id, and by a title that only one has. What then remains of several with one title is paired in
/// order.
fn pairs(
    format: &str,
    placed: &[Placed<'_>],
    ids: &[&str],
    view: &View,
    scope: &BTreeSet<usize>,
) -> Vec<Option<usize>> {
    let all = 0..view.tasks.len();
    let mut keys: [HashMap<String, Vec<usize>>; 4] = Default::default();
    for number in all {
        let mut add = |place: usize, key: String| keys[place].entry(key).or_default().push(number);
        if let Some(source) = view.source(number) {
            if source.format != format {
                add(1, source.id.clone());
            } else if scope.contains(&number) {
                add(0, source.id.clone());
            }
        }
        add(2, view.tasks[number].id.to_string());
        add(3, words(view.tasks[number].headline()));
    }
    let mut taken: HashSet<usize> = HashSet::new();
    let mut pairs = vec![None; ids.len()];
    for (place, known) in keys.iter().enumerate() {
        for item in 0..ids.len() {
            let key =
                if place == 3 { words(&placed[item].node.title) } else { ids[item].to_owned() };
            let free: Vec<usize> = known
                .get(&key)
                .into_iter()
                .flatten()
                .copied()
                .filter(|number| !taken.contains(number))
                .collect();
            if let (None, [one]) = (pairs[item], free.as_slice()) {
                taken.insert(*one);
                pairs[item] = Some(*one);
            }
        }
    }
    for is_below_same in [true, false] {
        pair_twins(placed, view, is_below_same, &mut pairs);
    }
    pairs
}

/// Pairs what has the same title in the order of both. `is_below_same` pairs only what is a part of
/// the same.
fn pair_twins(
    placed: &[Placed<'_>],
    view: &View,
    is_below_same: bool,
    pairs: &mut [Option<usize>],
) {
    let taken: HashSet<usize> = pairs.iter().copied().flatten().collect();
    let mut free: HashMap<(String, Option<usize>), VecDeque<usize>> = HashMap::new();
    for number in (0..view.tasks.len()).filter(|number| !taken.contains(number)) {
        let above = view.parents[number].filter(|_| is_below_same);
        free.entry((words(view.tasks[number].headline()), above)).or_default().push_back(number);
    }
    for (item, one) in placed.iter().enumerate() {
        let above = one.parent.filter(|_| is_below_same).map(|parent| pairs[parent]);
        if let (None, None | Some(Some(_))) = (pairs[item], above) {
            let twins = free.get_mut(&(words(&one.node.title), above.flatten()));
            pairs[item] = twins.and_then(VecDeque::pop_front);
        }
    }
}
