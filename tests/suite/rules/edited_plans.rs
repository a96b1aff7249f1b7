//! Random plans, edited at random while agents work on them: no task changes its meaning while it
//! is held, and none is done unless an agent has done it under the same words.

use std::collections::{BTreeMap, BTreeSet};

use callboard::state::plan::words;
use callboard::state::task::{Task, TaskStatus};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};

use super::super::harness::size;
use super::super::world::World;

const TITLES: [&str; 10] = [
    "Write tests",
    "Fix bug 101",
    "Fix bug 102",
    "Port to C",
    "Port to C++",
    "Ship",
    "Write the lexer",
    "Write the parser",
    "Café",
    "a <= b",
];
const TEXTS: [&str; 4] = ["", "So.", "Not so.", "With care."];
const LEVELS: usize = 3;
const MOST: usize = 40;

#[derive(Clone, Debug)]
struct Node {
    title: usize,
    text: usize,
    level: usize,
}

/// A plan as its file has it: entries, each before what is below it.
#[derive(Clone, Debug, Default)]
struct File {
    nodes: Vec<Node>,
    name: usize,
}

/// One step: what is done, and the numbers that choose where.
type Step = (u8, u16, u16);

impl File {
    fn text(&self) -> String {
        let entry = |node: &Node| {
            let indent = "  ".repeat(node.level);
            let title = TITLES[node.title % TITLES.len()];
            match TEXTS[node.text % TEXTS.len()] {
                "" => format!("{indent}- [ ] {title}\n"),
                text => format!("{indent}- [ ] {title}\n\n{indent}  {text}\n"),
            }
        };
        self.nodes.iter().map(entry).collect()
    }

    /// The end of what begins at `at`.
    fn end(&self, at: usize) -> usize {
        let below =
            self.nodes[at + 1..].iter().take_while(|node| node.level > self.nodes[at].level);
        at + 1 + below.count()
    }

    /// Makes every entry at most one level deeper than the one before.
    fn settle(&mut self) {
        let mut most = 0;
        for node in &mut self.nodes {
            node.level = node.level.min(most);
            most = (node.level + 1).min(LEVELS);
        }
        self.nodes.truncate(MOST);
    }

    fn edit(&mut self, (kind, one, other): Step) {
        let (one, other) = (usize::from(one), usize::from(other));
        let at = one % self.nodes.len().max(1);
        match kind % 9 {
            _ if self.nodes.len() < 2 => {
                self.nodes.extend((0..4).map(|number| Node {
                    title: one + number * other,
                    text: other,
                    level: number % 2,
                }));
            }
            0 => self.nodes[at].title = other,
            1 => self.nodes[at].text = other,
            2 => {
                let part: Vec<Node> = self.nodes.drain(at..self.end(at)).collect();
                let to = other % (self.nodes.len() + 1);
                self.nodes.splice(to..to, part);
            }
            3 => self.nodes[at].level = other % LEVELS,
            4 => {
                let level = self.nodes[at].level + 1;
                let parts = [0, 1].map(|number| Node { title: other + number, text: 0, level });
                self.nodes.splice(at + 1..at + 1, parts);
            }
            5 => drop(self.nodes.drain(at..self.end(at))),
            6 => {
                let to = other % self.nodes.len();
                self.nodes.swap(at, to);
            }
            7 => {
                let twin = self.nodes[at].clone();
                self.nodes.insert(at, twin);
            }
            _ => self.nodes.insert(at, Node { title: other, text: one, level: other % LEVELS }),
        }
        self.settle();
    }
}

fn said(task: &Task) -> (String, String) {
    (words(task.headline()), words(&task.description))
}

struct Watched {
    world: World,
    /// Words under which each task has been done.
    done: BTreeMap<String, BTreeSet<String>>,
}

impl Watched {
    fn new() -> Self {
        Self {
            world: World::new().agent("a1").agent_with("a2", json!({"max_concurrent": 3})),
            done: BTreeMap::new(),
        }
    }

    fn tasks(&self) -> BTreeMap<String, Task> {
        self.world.state.tasks().map(|task| (task.id.to_string(), Task::clone(task))).collect()
    }

    fn work(&mut self, (kind, one, _): Step) {
        let agent = ["a1", "a2"][usize::from(one) % 2];
        let held: Vec<_> =
            self.world.state.tasks().filter(|task| task.status.is_held()).cloned().collect();
        let chosen = held.get(usize::from(one) % held.len().max(1));
        match (kind % 3, chosen) {
            (0, Some(task)) => {
                let owner = task.claimed_by.clone().expect("a holder").to_string();
                self.world.complete(&owner, task.id.as_str());
            }
            (1, Some(task)) => {
                let owner = task.claimed_by.clone().expect("a holder").to_string();
                self.world
                    .by(&owner)
                    .call("release_task", json!({"task_id": task.id}))
                    .expect("released");
            }
            _ => drop(self.world.by(agent).call("claim_task", json!({}))),
        }
        self.note();
    }

    /// Notes what is done, and asserts that it was done under its words.
    fn note(&mut self) {
        for task in self.world.state.tasks().filter(|task| task.status == TaskStatus::Done) {
            let by_parts = self.world.state.is_parent(&task.id);
            let completed = task.result.as_ref().is_some_and(|result| result.error.is_none());
            let known = self.done.entry(task.id.to_string()).or_default();
            if by_parts || completed && known.is_empty() {
                known.insert(words(task.headline()));
            }
            assert!(
                known.contains(&words(task.headline())),
                "{} is done as {known:?}",
                task.headline()
            );
        }
    }

    fn import(&mut self, file: &File, gone: Option<usize>) -> Result<(), TestCaseError> {
        let text = file.text();
        let path = |number: usize| format!("plan-{number}.md");
        let call = |text: &str, dry_run: bool| {
            let gone: Vec<String> = gone.into_iter().map(path).collect();
            json!({"text": text, "source": path(file.name), "gone": gone, "dry_run": dry_run})
        };
        let before = self.tasks();
        let shown = self.world.nobody().call("import_plan", call(&text, true)).expect("shown");
        let reply = self.world.nobody().call("import_plan", call(&text, false)).expect("imported");
        self.note();
        prop_assert_eq!(&shown["added"], &reply["added"], "a dry run shows the ids");
        let counted =
            reply["items"].as_u64().unwrap_or_default() as usize + list(&reply, "skipped").len();
        prop_assert_eq!(counted, file.nodes.len(), "every line is an item or named");
        let after = self.tasks();
        for (id, was) in before.iter().filter(|(_, task)| task.status.is_held()) {
            let is = &after[id];
            prop_assert!(
                !is.status.is_held() || said(is) == said(was),
                "{was:?} became {is:?} while it was held"
            );
        }
        let name = reply["plan"].as_str().unwrap_or_default();
        let own = |task: &Task| task.plan_name() == Some(name) || gone.is_some();
        for (id, was) in before.iter().filter(|(_, task)| !own(task)) {
            prop_assert_eq!(&after[id], was, "a task of another plan");
        }
        let again =
            self.world.nobody().call("import_plan", call(&text, false)).expect("imported again");
        prop_assert_eq!(&again["unchanged"], &json!(true));
        let again = self
            .world
            .nobody()
            .call("import_plan", call(&format!("{text}\n"), false))
            .expect("and again");
        for name in
            ["added", "modified", "reopened", "renamed", "completed", "obsolete", "left_done"]
        {
            prop_assert_eq!(list(&again, name).len(), 0, "{} by the same plan: {}", name, &again);
        }
        Ok(())
    }
}

fn list<'a>(reply: &'a Value, name: &str) -> &'a [Value] {
    reply[name].as_array().map_or(&[], Vec::as_slice)
}

fn run(steps: &[Step]) -> Result<usize, TestCaseError> {
    let mut watched = Watched::new();
    let mut files = [File { name: 0, ..File::default() }, File { name: 1, ..File::default() }];
    let mut edits = 0;
    for step in steps {
        let (kind, one, other) = *step;
        let file = usize::from(kind / 64 == 3);
        match kind % 4 {
            0 | 1 => watched.work((kind / 4, one, other)),
            2 if kind / 8 % 16 == 7 && !files[file].nodes.is_empty() => {
                let was = files[file].name;
                files[file].name = was + 2;
                watched.import(&files[file], Some(was))?;
            }
            _ => {
                files[file].edit((kind / 4, one, other));
                edits += 1;
                if other % 3 > 0 && !files[file].nodes.is_empty() {
                    watched.import(&files[file], None)?;
                }
            }
        }
    }
    watched.world.check();
    Ok(edits)
}

/// `CALLBOARD_EDITED_PLANS` is the number of boards, each with some 12 edits.
#[test]
fn no_edit_changes_the_meaning_of_held_work_or_invents_done() {
    let cases = size("CALLBOARD_EDITED_PLANS", 30) as u32;
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 500,
        ..Config::default()
    });
    let edits = std::cell::Cell::new(0);
    let steps = proptest::collection::vec(any::<Step>(), 15..40);
    let outcome = runner.run(&steps, |steps| {
        edits.set(edits.get() + run(&steps)?);
        Ok(())
    });
    println!("{} edits on {cases} boards", edits.get());
    outcome.unwrap();
}
