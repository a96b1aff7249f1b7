//! What the items wait for, as ids of tasks.

use std::collections::{BTreeMap, HashMap};

use super::current::is_item_of;
use super::delta::Delta;
use super::item::Remark;
use super::text::{folded, one_line, shortened, shown};
use crate::state::graph::Node;
use crate::state::hierarchy::split_scope;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::refusal::{Refusal, cycle_text};

impl Delta<'_> {
    pub(super) fn dependencies(&mut self) -> Vec<Vec<TaskId>> {
        let plan = self.plan;
        let by_path: HashMap<&str, usize> =
            self.paths.iter().map(String::as_str).zip(0..).collect();
        let mut by_title: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, item) in plan.items.iter().enumerate() {
            by_title.entry(folded(&item.title)).or_default().push(number);
        }
        // Headings count, so that each comes after one at most.
        let before: HashMap<usize, usize> = plan.order.iter().copied().collect();
        let mut all = Vec::with_capacity(plan.items.len());
        let mut unknown = Vec::new();
        for (number, item) in plan.items.iter().enumerate() {
            let ordered = before.get(&number).filter(|_| !self.import.parallel).into_iter();
            let mut found: Vec<TaskId> = Vec::new();
            for on in ordered.chain(&item.waits).map(|on| self.ids[*on].clone()) {
                if !found.contains(&on) {
                    found.push(on);
                }
            }
            for given in &item.depends {
                let of_plan = by_path.get(self.own_path(given)).map(|item| vec![*item]);
                // A long text may have become a shorter title.
                let titles =
                    [folded(given), folded(&shortened(&one_line(given), limit::TITLE.max))];
                let titled = || titles.iter().find_map(|title| by_title.get(title)).cloned();
                let of_plan = of_plan.or_else(titled).unwrap_or_default();
                let id = match of_plan.as_slice() {
                    [one] => Some(self.ids[*one].clone()),
                    [] => self.elsewhere(given),
                    several => {
                        let lines: Vec<_> =
                            several.iter().map(|one| plan.items[*one].line.to_string()).collect();
                        let given = shown(given);
                        let lines = lines.join(" and ");
                        let remark = format!(
                            "\"{given}\" may be that of line {lines}: it makes none wait; name it \
                             by its path"
                        );
                        unknown.push(Remark { line: item.line, remark });
                        continue;
                    }
                };
                match id {
                    Some(id) if !found.contains(&id) => found.push(id),
                    Some(_) => {}
                    None => {
                        let remark = format!(
                            "\"{}\" fits no item and no task: it makes none wait",
                            shown(given)
                        );
                        unknown.push(Remark { line: item.line, remark });
                    }
                }
            }
            all.push(found);
        }
        self.unknown = unknown;
        all
    }

    /// A path without the name of this plan before it.
    fn own_path<'g>(&self, given: &'g str) -> &'g str {
        let names = [Some(self.import.own_name()), self.import.name.as_deref()];
        let path = |name: &str| given.strip_prefix(name)?.strip_prefix(':');
        names.into_iter().flatten().find_map(path).unwrap_or(given)
    }

    /// The task outside the plan that a text names: by its id, or by the name of another plan and a
    /// path there.
    fn elsewhere(&self, given: &str) -> Option<TaskId> {
        let by_id = TaskId::checked(given).ok();
        let is_there =
            |id: &TaskId| self.state.status_of(id).is_some() && self.state.run_status(id).is_none();
        by_id.filter(is_there).or_else(|| {
            let name = split_scope(given).0?;
            let mut there = self.state.at_path(given).filter(|task| is_item_of(task, name));
            there.next().filter(|_| there.next().is_none()).map(|task| task.id.clone())
        })
    }

    pub(super) fn refuse_cycle(&mut self, dependencies: &[Vec<TaskId>]) {
        let plan = self.plan;
        let ids = &self.ids;
        let mut nodes: BTreeMap<&TaskId, Node<'_>> = BTreeMap::new();
        for task in self.state.tasks().filter(|task| task.planned.is_some()) {
            nodes.insert(&task.id, Node { parent: None, dependencies: &task.dependencies });
        }
        for (number, item) in plan.items.iter().enumerate() {
            let parent = item.parent.map(|parent| &ids[parent]);
            nodes.insert(&ids[number], Node { parent, dependencies: &dependencies[number] });
        }
        let Err(Refusal::DependencyCycle { mut cycle }) = self.state.check_wired(nodes) else {
            return;
        };
        let numbers: HashMap<&TaskId, usize> = ids.iter().zip(0..).collect();
        let number_of = |id: &TaskId| numbers.get(id).copied();
        // Begins the cycle at its first line, so that the message does not depend on made-up ids.
        cycle.pop();
        let first = cycle.iter().filter_map(number_of).min().unwrap_or_default();
        let start = cycle.iter().position(|id| *id == ids[first]).unwrap_or_default();
        cycle.rotate_left(start);
        cycle.extend(cycle.first().cloned());
        let named: Vec<_> = cycle
            .iter()
            .map(|id| match number_of(id) {
                Some(number) => {
                    format!("{} (line {})", self.paths[number], plan.items[number].line)
                }
                None => id.to_string(),
            })
            .collect();
        let what =
            "each waits for the next, as one does for its parts and for what its parents wait for";
        self.wrong(
            first,
            format!("a cycle: {}; {what}; leave one dependency out", cycle_text(&named)),
        );
    }
}
