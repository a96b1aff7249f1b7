//! The rules of the board written once more, as plainly as possible: lists that are searched from
//! end to end, no index, no event. After every step of a random history, the board and this model
//! must agree.
//!
//! Every step begins half a minute after the one before, so that each call of a known agent renews
//! its leases; what happens within half a minute is tested in `rules`.

use std::collections::BTreeSet;

use callboard::state::claim::Verdict;
use callboard::state::task::{Outcome, TaskStatus};
use callboard::state::time::{MINUTE, SECOND};
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use serde_json::{Value, json};

use super::world::{Answered, World, holds};

const STEP: i64 = 30 * SECOND;
/// Agents; the last two live in processes.
const AGENTS: [&str; 4] = ["a1", "a2", "b1", "c1"];
const HOMES: [Option<&str>; 4] = [None, None, Some("b"), Some("c")];
const TASKS: usize = 12;

prop_state_machine! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn board_and_model_agree(sequential 1..60 => Board);
}

/// Number of histories; CI asks for 10,000.
fn cases() -> u32 {
    std::env::var("CALLBOARD_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256)
}

#[derive(Clone, Debug)]
enum Step {
    Create(Draft),
    CreateBatch(Vec<Draft>),
    Register {
        agent: usize,
        gpu: bool,
        max_concurrent: usize,
    },
    Claim {
        agent: usize,
        named: Option<Index>,
        exclusive: bool,
        scope: Option<usize>,
    },
    Start {
        agent: usize,
        task: Index,
        attempt: Given,
    },
    Complete {
        agent: usize,
        task: Index,
        attempt: Given,
    },
    Fail {
        agent: usize,
        task: Index,
        attempt: Given,
        retryable: bool,
    },
    Release {
        agent: Option<usize>,
        task: Index,
        attempt: Given,
    },
    Heartbeat {
        agent: usize,
        note: bool,
    },
    Reserve {
        agent: usize,
        file: usize,
        shared: bool,
        minutes: Option<i64>,
    },
    Free {
        agent: usize,
    },
    Send {
        from: usize,
        to: To,
    },
    Acknowledge {
        agent: usize,
        message: Index,
    },
    Cancel {
        by: Option<usize>,
        task: Index,
        ask_owner: bool,
    },
    Retry {
        task: Index,
    },
    /// A reviewer, or the person, approves or sends back.
    Review {
        by: Option<usize>,
        task: Index,
        attempt: Given,
        approve: bool,
    },
    RetryBelow {
        scope: usize,
    },
    /// A plan comes with work of its own and its parts, at the last paths.
    Import,
    Discover(Found),
    Find(Sought),
    Priority {
        task: Index,
        priority: u8,
    },
    Dependencies {
        task: Index,
        on: Vec<usize>,
    },
    Pause,
    Resume,
    PauseAgent {
        agent: usize,
    },
    ResumeAgent {
        agent: usize,
    },
    Age {
        minutes: u32,
    },
    TimePasses {
        minutes: i64,
    },
    MachineSleeps {
        minutes: i64,
    },
    ProcessDies {
        agent: usize,
    },
}

#[derive(Clone, Debug)]
struct Draft {
    path: Option<usize>,
    tags: Vec<usize>,
    files: Vec<usize>,
    priority: u8,
    on: Vec<usize>,
    gpu: bool,
    max_attempts: u32,
    review: Option<&'static str>,
}

/// A discovery.
#[derive(Clone, Debug)]
struct Found {
    agent: usize,
    about: Option<Index>,
    tag: Option<usize>,
    file: Option<usize>,
    supersedes: Vec<Index>,
}

#[derive(Clone, Debug)]
struct Sought {
    number: Option<usize>,
    tag: Option<usize>,
    about: Option<Index>,
    superseded: bool,
    limit: usize,
}

/// Recipient of a message.
#[derive(Clone, Copy, Debug)]
enum To {
    Agent(usize),
    Everyone,
    Human,
}

#[derive(Clone, Debug)]
struct Message {
    to: Vec<usize>,
    /// Recipients that have not read it; a reader that is no agent has the number after the
    /// agents.
    unread_by: Vec<usize>,
}

/// Files that tasks and reservations name; no two of them overlap.
const FILES: [&str; 3] = ["src/*.rs", "src/lib.toml", "docs/"];

const PATHS: [&str; 10] =
    ["P1", "P1.M1", "P1.M1.T1", "P1.M1.T2", "P1.M2", "P2.M1.T1", "P3.M3", "P3", "P3.M1", "P3.M2"];
/// Those of an imported plan: work of its own, and its parts.
const PLANNED: std::ops::Range<usize> = 7..10;
const TAGS: [&str; 2] = ["db", "ui"];
/// Most discoveries that a claim shows.
const HANDED: usize = 5;

#[derive(Clone, Debug)]
struct Discovery {
    agent: usize,
    task: Option<usize>,
    tag: Option<usize>,
    file: Option<usize>,
    supersedes: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Reservation {
    agent: usize,
    file: usize,
    shared: bool,
    task: Option<usize>,
    until: Option<i64>,
}

/// Number of the person, after the agents.
const HUMAN: usize = AGENTS.len();

/// The attempt that a call names.
#[derive(Clone, Copy, Debug)]
enum Given {
    Left,
    Current,
    Before,
}

#[derive(Clone, Debug, Default)]
struct Model {
    now: i64,
    tasks: Vec<Task>,
    agents: [Option<Agent>; 4],
    messages: Vec<Message>,
    reservations: Vec<Reservation>,
    discoveries: Vec<Discovery>,
    /// When each agent last acted, by its own calls only.
    heard: [i64; 4],
    paused: bool,
    aging_minutes: u32,
    grace_until: i64,
    /// The expected answer of the last step: a refusal's code, or part of the reply.
    answer: Option<Result<Value, &'static str>>,
    /// The discoveries expected in the reply of the last step's claim.
    handed: Option<Vec<String>>,
}

#[derive(Clone, Debug)]
struct Task {
    path: Option<usize>,
    parent: Option<usize>,
    /// Whether it waits for its parts, and is not done by them.
    own: bool,
    tags: Vec<usize>,
    files: Vec<usize>,
    status: TaskStatus,
    priority: u8,
    on: Vec<usize>,
    gpu: bool,
    created: i64,
    /// Attempts that are over and those sent back, and when the last of them was.
    over: (usize, i64),
    done: Option<i64>,
    /// Its status, and since when it has that.
    stands: (TaskStatus, i64),
    attempt: u32,
    uncounted: u32,
    max_attempts: u32,
    review: Option<&'static str>,
    not_before: Option<i64>,
    stop_requested: bool,
    attempts: Vec<Attempt>,
}

#[derive(Clone, Debug)]
struct Attempt {
    agent: usize,
    outcome: Option<Outcome>,
    /// What a reviewer said.
    approved: Option<bool>,
    acted: bool,
    lease_until: i64,
    stepped: bool,
}

#[derive(Clone, Debug)]
struct Agent {
    gpu: bool,
    max_concurrent: usize,
    paused: bool,
    present: bool,
    holding: Vec<usize>,
    completed: u64,
    failed: u64,
}

fn id(task: usize) -> String {
    format!("t{task}")
}

/// The text of a discovery, which is unique.
fn said(discovery: usize) -> String {
    format!("found {discovery}")
}

/// Whether a part with this status keeps work of its own from being done.
fn keeps_open(status: TaskStatus) -> bool {
    unfinished(status) || status == TaskStatus::Failed
}

fn unfinished(status: TaskStatus) -> bool {
    let is_held = matches!(status, TaskStatus::Claimed | TaskStatus::InProgress);
    is_held || matches!(status, TaskStatus::Available | TaskStatus::Review)
}

impl Task {
    fn open(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|one| one.outcome.is_none())
    }

    fn used(&self) -> u32 {
        self.attempt - self.uncounted
    }

    fn back_to_queue(&mut self, not_before: Option<i64>) {
        self.status = TaskStatus::Available;
        self.not_before = not_before;
    }
}

impl Agent {
    fn told_to_go_on(&self) -> Value {
        let holding: Vec<_> = self.holding.iter().map(|held| json!({"task": id(*held)})).collect();
        json!({"success": false, "holding": holding})
    }
}

impl Model {
    fn given(&self, task: usize, given: Given) -> Option<u32> {
        let current = self.tasks.get(task).map_or(1, |task| task.attempt);
        match given {
            Given::Left => None,
            Given::Current => Some(current),
            Given::Before => Some(current.saturating_sub(1)),
        }
    }

    fn index(&self, task: &Index) -> usize {
        if self.tasks.is_empty() { 0 } else { task.index(self.tasks.len()) }
    }

    fn in_review(&self, task: usize) -> bool {
        self.tasks[task].status == TaskStatus::Review
    }

    fn done(&self, task: usize) -> bool {
        self.tasks[task].status == TaskStatus::Done
    }

    fn unblocked(&self, task: &Task) -> bool {
        let own = task.on.iter().all(|on| self.done(*on));
        task.status == TaskStatus::Available
            && own
            && self.above(task).iter().all(|above| self.frees(*above))
            && !(task.own && self.parts_of(task).any(|part| keeps_open(part.status)))
    }

    /// The parts of work of its own, which alone stands at the first path of a plan.
    fn parts_of<'a>(&'a self, task: &Task) -> impl Iterator<Item = &'a Task> {
        let itself = (0..self.tasks.len()).find(|one| task.own && self.tasks[*one].own);
        self.tasks.iter().filter(move |part| itself.is_some() && part.parent == itself)
    }

    fn frees(&self, parent: usize) -> bool {
        self.tasks[parent].on.iter().all(|on| self.done(*on))
    }

    /// The ancestors of `task`, nearest first.
    fn above(&self, task: &Task) -> Vec<usize> {
        let mut above = Vec::new();
        let mut next = task.parent;
        while let Some(parent) = next {
            above.push(parent);
            next = self.tasks[parent].parent;
        }
        above
    }

    fn parts(&self, task: usize) -> Vec<usize> {
        (0..self.tasks.len()).filter(|part| self.tasks[*part].parent == Some(task)).collect()
    }

    /// Whether its parts alone finish the task.
    fn is_parent(&self, task: usize) -> bool {
        !self.parts(task).is_empty() && !self.tasks[task].own
    }

    /// The tasks without parts below `task`.
    fn leaves(&self, task: usize) -> Vec<usize> {
        let belongs =
            |leaf: &usize| self.above(&self.tasks[*leaf]).contains(&task) && !self.is_parent(*leaf);
        (0..self.tasks.len()).filter(belongs).collect()
    }

    fn in_scope(&self, task: usize, scope: Option<usize>) -> bool {
        let Some(scope) = scope.map(|scope| PATHS[scope]) else { return true };
        let path = self.tasks[task].path.map(|path| PATHS[path]);
        path.is_some_and(|path| path == scope || path.starts_with(&format!("{scope}.")))
    }

    /// Sets the status of groups: done, failed or cancelled like their parts, once none is open;
    /// failed wins over done, and done over cancelled.
    fn roll_up(&mut self) {
        loop {
            let wanted = (0..self.tasks.len()).filter_map(|task| {
                let parts: Vec<_> =
                    self.parts(task).into_iter().map(|part| self.tasks[part].status).collect();
                let some = |status| parts.contains(&status);
                let status = match () {
                    () if !self.is_parent(task) => return None,
                    () if parts.iter().any(|status| unfinished(*status)) => TaskStatus::Available,
                    () if some(TaskStatus::Failed) => TaskStatus::Failed,
                    () if some(TaskStatus::Done) => TaskStatus::Done,
                    () => TaskStatus::Cancelled,
                };
                (self.tasks[task].status != status).then_some((task, status))
            });
            let Some((task, status)) = wanted.into_iter().next() else { return };
            self.tasks[task].status = status;
            self.tasks[task].not_before = None;
        }
    }

    fn delayed(&self, task: &Task) -> bool {
        task.not_before.is_some_and(|until| until > self.now)
    }

    /// What must be done before `task`: its parts, and what its ancestors wait for.
    fn before(&self, task: usize) -> BTreeSet<usize> {
        let of_parents = self
            .above(&self.tasks[task])
            .into_iter()
            .flat_map(|above| self.tasks[above].on.clone());
        self.tasks[task].on.iter().copied().chain(self.parts(task)).chain(of_parents).collect()
    }

    fn has_cycle(&self) -> bool {
        (0..self.tasks.len()).any(|start| {
            let mut reached = self.before(start);
            loop {
                let further: BTreeSet<_> =
                    reached.iter().flat_map(|task| self.before(*task)).collect();
                if further.is_subset(&reached) {
                    return reached.contains(&start);
                }
                reached.extend(further);
            }
        })
    }

    /// Ends the attempt. Returns whether its agent had been asked to stop.
    fn end(&mut self, task: usize, outcome: Outcome) -> bool {
        let task_ended = &mut self.tasks[task];
        let was_asked = std::mem::take(&mut task_ended.stop_requested);
        if let Some(open) = task_ended.attempts.last_mut().filter(|one| one.outcome.is_none()) {
            open.outcome = Some(outcome);
            let holder = self.agents[open.agent].as_mut().expect("holders are registered");
            holder.holding.retain(|held| *held != task);
            self.reservations.retain(|one| one.task != Some(task));
        }
        was_asked
    }

    fn time_passes(&mut self, millis: i64) {
        self.now += millis;
        let now = self.now;
        self.reservations.retain(|one| one.until.is_none_or(|until| until > now));
        for number in 0..self.tasks.len() {
            let Some(open) =
                self.tasks[number].open().filter(|one| one.lease_until <= self.now).cloned()
            else {
                continue;
            };
            let was_asked = self.end(number, Outcome::Expired);
            let task = &mut self.tasks[number];
            let gave_up = !open.stepped && task.used() >= task.max_attempts;
            task.uncounted += u32::from(open.stepped);
            task.back_to_queue(None);
            if gave_up {
                task.status = TaskStatus::Failed;
            } else if was_asked {
                task.status = TaskStatus::Cancelled;
            }
        }
    }

    fn held(&mut self) -> impl Iterator<Item = &mut Attempt> {
        self.tasks
            .iter_mut()
            .filter_map(|task| task.attempts.last_mut().filter(|one| one.outcome.is_none()))
    }

    fn machine_sleeps(&mut self, millis: i64) {
        let grace = self.now + millis + 10 * MINUTE;
        self.grace_until = grace;
        for one in &mut self.reservations {
            one.until = one.until.map(|until| until + millis);
        }
        for attempt in self.held() {
            attempt.lease_until = (attempt.lease_until + millis).max(grace);
            attempt.stepped = true;
        }
        self.time_passes(millis);
    }

    fn process_dies(&mut self, number: usize) {
        let until = (self.now + MINUTE).max(self.grace_until);
        let Some(agent) = self.agents[number].as_mut().filter(|agent| agent.present) else {
            return;
        };
        agent.present = false;
        for attempt in self.held().filter(|one| one.agent == number) {
            attempt.lease_until = attempt.lease_until.min(until);
        }
    }

    /// Renews the agent's leases, as any call does that names it.
    fn seen(&mut self, number: usize) {
        let Some(agent) = self.agents[number].as_mut() else { return };
        self.heard[number] = self.now;
        agent.present |= HOMES[number].is_some();
        let until = self.now + if agent.present { 240 * MINUTE } else { 30 * MINUTE };
        for attempt in self.held().filter(|one| one.agent == number) {
            attempt.lease_until = until;
            attempt.stepped = false;
        }
    }

    fn create(&mut self, drafts: &[Draft]) -> Result<Value, &'static str> {
        let before = self.tasks.clone();
        let parents: Vec<_> = drafts.iter().map(|draft| self.parent_of(draft, drafts)).collect();
        for (draft, parent) in drafts.iter().zip(parents) {
            let known = self.tasks.len();
            self.tasks.push(Task {
                path: draft.path,
                parent,
                own: false,
                tags: draft.tags.clone(),
                files: draft.files.clone(),
                status: TaskStatus::Available,
                priority: draft.priority,
                on: draft.known(known),
                gpu: draft.gpu,
                created: self.now,
                over: (0, self.now),
                done: None,
                stands: (TaskStatus::Available, self.now),
                attempt: 0,
                uncounted: 0,
                max_attempts: draft.max_attempts,
                review: draft.review,
                not_before: None,
                stop_requested: false,
                attempts: Vec::new(),
            });
        }
        if self.has_cycle() {
            self.tasks = before;
            return Err("dependency_cycle");
        }
        for task in 0..before.len() {
            let gets_parts = self.tasks[before.len()..].iter().any(|new| new.parent == Some(task));
            if gets_parts && self.tasks[task].open().is_some() {
                self.end(task, Outcome::Released);
                self.tasks[task].uncounted += 1;
                self.tasks[task].back_to_queue(None);
            }
        }
        Ok(json!({"success": true}))
    }

    fn import(&mut self) -> Result<Value, &'static str> {
        let first = self.tasks.len();
        for path in PLANNED {
            let (tags, files, on) = (Vec::new(), Vec::new(), Vec::new());
            let (path, max_attempts, review) = (Some(path), 3, None);
            let draft =
                Draft { path, tags, files, priority: 5, on, gpu: false, max_attempts, review };
            self.create(&[draft])?;
        }
        for (number, task) in self.tasks[first..].iter_mut().enumerate() {
            (task.own, task.parent) = (number == 0, (number > 0).then_some(first));
        }
        Ok(json!({"items": PLANNED.len()}))
    }

    /// Whether a part of the task is neither done nor called off.
    fn has_open_part(&self, task: usize) -> bool {
        self.leaves(task).into_iter().any(|leaf| keeps_open(self.tasks[leaf].status))
    }

    /// The nearest task above that is alone at its path, and has parts or is not over. Tasks on the
    /// board come before those of the same call.
    fn parent_of(&self, draft: &Draft, drafts: &[Draft]) -> Option<usize> {
        let mut path = PATHS[draft.path?];
        while let Some((above, _)) = path.rsplit_once('.') {
            path = above;
            let at = |one: Option<usize>| one.is_some_and(|one| PATHS[one] == path);
            let on_board: Vec<_> =
                (0..self.tasks.len()).filter(|task| at(self.tasks[*task].path)).collect();
            if let [one] = on_board.as_slice()
                && (self.is_parent(*one)
                    || unfinished(self.tasks[*one].status) && !self.in_review(*one))
            {
                return Some(*one);
            }
            let new: Vec<_> = (0..drafts.len()).filter(|number| at(drafts[*number].path)).collect();
            if let [one] = new.as_slice() {
                return Some(self.tasks.len() + one);
            }
        }
        None
    }

    fn own(&self, agent: usize, task: usize, given: Option<u32>) -> Result<(), &'static str> {
        if self.agents[agent].is_none() {
            return Err("unknown_agent");
        }
        let Some(known) = self.tasks.get(task) else { return Err("unknown_task") };
        match known.open() {
            None => Err("not_held"),
            Some(open) if open.agent != agent => Err("held_by_other"),
            Some(_) if given.is_some_and(|given| given != known.attempt) => Err("attempt_over"),
            Some(_) => Ok(()),
        }
    }

    fn open_mut(&mut self, task: usize) -> &mut Attempt {
        self.tasks[task].attempts.last_mut().expect("the task is held")
    }

    fn claim(
        &mut self,
        number: usize,
        named: Option<usize>,
        exclusive: bool,
        scope: Option<usize>,
    ) -> Result<Value, &'static str> {
        let Some(agent) = self.agents[number].clone() else { return Err("unknown_agent") };
        let unacted = agent
            .holding
            .last()
            .filter(|task| self.tasks[**task].open().is_some_and(|one| !one.acted));
        let asks_for =
            |task: &usize| named.is_none_or(|named| named == *task) && self.in_scope(*task, scope);
        if let Some(task) = unacted.filter(|task| asks_for(task)) {
            self.handed = Some(self.relevant(*task));
            return Ok(json!({"success": true, "already": true, "task": {"id": id(*task)}}));
        }
        let is_elsewhere = named.is_none() && unacted.is_some();
        if is_elsewhere
            || agent.holding.len() >= agent.max_concurrent
            || named.is_some_and(|named| agent.holding.contains(&named))
        {
            return Ok(agent.told_to_go_on());
        }
        if self.paused || agent.paused {
            return Ok(json!({"success": false, "verdict": "paused"}));
        }
        let chosen = match named {
            Some(task) => Some(self.claimable(&agent, task)?),
            None => self.choice(number, &agent, exclusive, scope),
        };
        if exclusive
            && chosen.is_some_and(|task| self.overlaps(number, &self.tasks[task].files, false))
        {
            return Err("files_held");
        }
        let Some(task) = chosen else {
            let is_anything_there = !self.tasks.is_empty();
            let is_scope = scope.is_none()
                || !is_anything_there
                || (0..self.tasks.len()).any(|task| self.in_scope(task, scope));
            return if is_scope {
                Ok(self.empty_handed(number, &agent, scope))
            } else {
                Err("empty_scope")
            };
        };
        let lease = if agent.present { 240 * MINUTE } else { 30 * MINUTE };
        let lease_until = self.now + lease;
        let claimed = &mut self.tasks[task];
        claimed.status = TaskStatus::Claimed;
        claimed.attempt += 1;
        claimed.not_before = None;
        claimed.attempts.push(Attempt {
            agent: number,
            outcome: None,
            approved: None,
            acted: false,
            lease_until,
            stepped: false,
        });
        let reply = json!({"success": true, "task": {"id": id(task)}, "attempt": claimed.attempt, "already": null});
        self.agents[number].as_mut().expect("registered").holding.push(task);
        self.handed = Some(self.relevant(task));
        Ok(reply)
    }

    fn claimable(&self, agent: &Agent, task: usize) -> Result<usize, &'static str> {
        let Some(known) = self.tasks.get(task) else { return Err("unknown_task") };
        if known.open().is_some() {
            Err("held_by_other")
        } else if known.status != TaskStatus::Available {
            Err("wrong_status")
        } else if self.is_parent(task) {
            Err("is_parent")
        } else if !self.unblocked(known) {
            Err("not_ready")
        } else if self.delayed(known) {
            Err("too_early")
        } else if known.gpu && !agent.gpu {
            Err("demands_unmet")
        } else {
            Ok(task)
        }
    }

    /// Notes when attempts ended and tasks were done.
    fn note_times(&mut self) {
        let now = self.now;
        for task in &mut self.tasks {
            let ended = task.attempts.iter().filter(|one| one.outcome.is_some()).count();
            let is_rejected = |one: &&Attempt| one.outcome == Some(Outcome::Rejected);
            let over = ended + task.attempts.iter().filter(is_rejected).count();
            if over != task.over.0 {
                task.over = (over, now);
            }
            let is_done = task.status == TaskStatus::Done;
            task.done = if is_done { task.done.or(Some(now)) } else { None };
            if task.stands.0 != task.status {
                task.stands = (task.status, now);
            }
        }
    }

    /// How long a ready task has been ready.
    fn waited(&self, task: &Task) -> i64 {
        let above = self.above(task).into_iter().flat_map(|above| &self.tasks[above].on);
        let done = task.on.iter().chain(above).filter_map(|on| self.tasks[*on].done);
        let parts = self.parts_of(task).map(|part| part.stands.1);
        let since = done.chain(parts).chain([task.created, task.over.1]).chain(task.not_before);
        let since = since.max();
        self.now - since.unwrap_or_default()
    }

    /// The priority of a ready task, raised by one for every `aging_minutes` that it waits.
    fn effective(&self, task: &Task) -> u8 {
        let step = i64::from(self.aging_minutes) * MINUTE;
        let risen = if step == 0 { 0 } else { self.waited(task) / step };
        u8::try_from((i64::from(task.priority) - risen).max(1)).expect("a priority is small")
    }

    /// The task that a claim gets: first those that this agent has not given up before, then by the
    /// priority that each has risen to, those on the way to the next one first, then the
    /// oldest; among tasks with one priority, one whose files are free is preferred.
    fn choice(
        &self,
        number: usize,
        agent: &Agent,
        exclusive: bool,
        scope: Option<usize>,
    ) -> Option<usize> {
        let rank = |task: usize| {
            let one = &self.tasks[task];
            let is_given_up =
                |one: &Attempt| matches!(one.outcome, Some(Outcome::Failed | Outcome::Released));
            (
                one.attempts.iter().any(|one| one.agent == number && is_given_up(one)),
                self.effective(one),
            )
        };
        let step = i64::from(self.aging_minutes) * MINUTE;
        let ahead = |one: &Task| {
            if step == 0 { 0 } else { i64::from(one.priority) * step - self.waited(one) }
        };
        let ready = (0..self.tasks.len()).filter(|task| self.claimable(agent, *task).is_ok());
        let mut ready: Vec<_> = ready.filter(|task| self.in_scope(*task, scope)).collect();
        ready.sort_by_key(|task| (rank(*task), ahead(&self.tasks[*task])));
        let first = *ready.first()?;
        let mut equal =
            ready.iter().copied().filter(|task| exclusive || rank(*task) == rank(first));
        let free = equal.find(|task| !self.overlaps(number, &self.tasks[*task].files, false));
        free.or(Some(first).filter(|_| !exclusive))
    }

    /// Whether others than `agent` hold some of `files`.
    fn overlaps(&self, agent: usize, files: &[usize], shared: bool) -> bool {
        let of_tasks = self.tasks.iter().any(|task| {
            task.open().is_some_and(|open| open.agent != agent)
                && task.files.iter().any(|file| files.contains(file))
        });
        let other = |one: &&Reservation| one.agent != agent && files.contains(&one.file);
        of_tasks || self.reservations.iter().filter(other).any(|one| !(shared && one.shared))
    }

    fn reserve(
        &mut self,
        agent: usize,
        file: usize,
        shared: bool,
        minutes: Option<i64>,
    ) -> Result<Value, &'static str> {
        let Some(known) = &self.agents[agent] else { return Err("unknown_agent") };
        let task = known.holding.last().copied();
        if self.overlaps(agent, &[file], shared) {
            return Err("files_held");
        }
        let known = [task, None].into_iter().find_map(|of| {
            let same = |one: &Reservation| {
                (one.agent, one.file, one.shared, one.task) == (agent, file, shared, of)
            };
            self.reservations.iter().position(same)
        });
        let hour = self.now + 60 * MINUTE;
        let known = known.map(|place| self.reservations.remove(place));
        let outlasts =
            |one: &Reservation| minutes.is_some() || one.until.is_some_and(|until| until > hour);
        let is_apart = known.as_ref().is_some_and(|one| one.task.is_none() && outlasts(one));
        let (task, known) = (task.filter(|_| !is_apart), known.and_then(|one| one.until));
        let in_an_hour = task.is_none().then_some(hour);
        let until = minutes
            .map(|minutes| self.now + minutes * MINUTE)
            .or(in_an_hour.map(|hour| hour.max(known.unwrap_or(hour))));
        let new = Reservation { agent, file, shared, task, until };
        self.reservations.push(new);
        Ok(json!({"success": true}))
    }

    fn empty_handed(&self, number: usize, agent: &Agent, scope: Option<usize>) -> Value {
        let leaves = (0..self.tasks.len()).filter(|task| !self.is_parent(*task));
        let in_review = |task: &Task| task.status == TaskStatus::Review;
        let is_open =
            |task: &Task| task.open().is_some() || self.unblocked(task) || in_review(task);
        let is_own = |task: &Task| task.open().is_some_and(|open| open.agent == number);
        let is_begun = |task: &Task| {
            task.open().is_some() || in_review(task) || self.unblocked(task) && self.delayed(task)
        };
        let any =
            |wanted: &dyn Fn(&Task) -> bool| leaves.clone().any(|task| wanted(&self.tasks[task]));
        let all = (any(&is_open), any(&is_begun));
        let others = (
            any(&|task| is_open(task) && !is_own(task)),
            any(&|task| is_begun(task) && !is_own(task)),
        );
        let within = leaves.clone().filter(|task| self.in_scope(*task, scope));
        let leaves: Vec<_> = within.map(|task| &self.tasks[task]).collect();
        let count =
            |wanted: &dyn Fn(&Task) -> bool| leaves.iter().filter(|task| wanted(task)).count();
        let held = count(&|task| task.open().is_some());
        let held_by_others = held - count(&is_own);
        let waiting_retry = count(&|task| self.unblocked(task) && self.delayed(task));
        let reviews = count(&in_review);
        let unmet =
            count(&|task| self.unblocked(task) && !self.delayed(task) && task.gpu && !agent.gpu);
        let blocked = count(&|task| task.status == TaskStatus::Available && !self.unblocked(task));
        let ready = count(&|task| self.unblocked(task) && !self.delayed(task));
        let is_about =
            |other: usize, one: &Agent| one.present || self.now - self.heard[other] < 30 * MINUTE;
        let is_able = |other: usize| {
            self.agents[other].as_ref().is_some_and(|one| one.gpu && is_about(other, one))
        };
        let will_others = (0..self.agents.len()).any(|other| other != number && is_able(other));
        let verdict = |held: usize, (is_anything_open, is_anything_begun): (bool, bool)| {
            let is_under_way = held + waiting_retry + reviews > 0 || ready > unmet;
            if self.tasks.is_empty() {
                "empty"
            } else if is_under_way || unmet > 0 && blocked > 0 && (is_anything_begun || will_others)
            {
                "wait"
            } else if unmet > 0 {
                "unsuited"
            } else if blocked > 0 && is_anything_open {
                "wait"
            } else if blocked > 0 {
                "stuck"
            } else {
                "finished"
            }
        };
        let of_others = verdict(held_by_others, others);
        let verdict = verdict(held, all);
        if verdict == "wait" && of_others != "wait" {
            return agent.told_to_go_on();
        }
        json!({
            "success": false, "verdict": verdict, "blocked": blocked, "waiting_retry": waiting_retry,
            "demands_unmet": unmet, "held": held,
            "in_review": Some(reviews).filter(|reviews| *reviews > 0),
        })
    }

    fn start(
        &mut self,
        agent: usize,
        task: usize,
        given: Option<u32>,
    ) -> Result<Value, &'static str> {
        self.own(agent, task, given)?;
        self.open_mut(task).acted = true;
        self.tasks[task].status = TaskStatus::InProgress;
        Ok(json!({"attempt": self.tasks[task].attempt}))
    }

    fn complete(
        &mut self,
        agent: usize,
        task: usize,
        given: Option<u32>,
    ) -> Result<Value, &'static str> {
        if self.agents[agent].is_none() {
            return Err("unknown_agent");
        }
        let Some(known) = self.tasks.get(task) else { return Err("unknown_task") };
        let matches = |number: usize| given.is_none_or(|given| given as usize == number + 1);
        let last = known.attempts.len().wrapping_sub(1);
        let own_last = known.attempts.last().is_some_and(|one| one.agent == agent) && matches(last);
        let was_done = known.attempts.last().is_some_and(|one| one.outcome == Some(Outcome::Done));
        if matches!(known.status, TaskStatus::Done | TaskStatus::Review) && own_last && was_done {
            return Ok(json!({"already": true}));
        }
        let mut own = known
            .attempts
            .iter()
            .enumerate()
            .rev()
            .filter(|(number, one)| one.agent == agent && matches(*number));
        let late = own.next();
        let in_time = known.open().is_some() && own_last;
        let expired = late
            .is_some_and(|(number, one)| number == last && one.outcome == Some(Outcome::Expired));
        let is_kept_open = self.has_open_part(task);
        let in_time = in_time && !is_kept_open;
        if !(in_time || self.unblocked(known) && !self.is_parent(task) && expired) {
            return Err(match (late, known.open()) {
                (Some(_), _) if is_kept_open => "is_parent",
                (Some(_), _) => "attempt_over",
                (None, Some(open)) if open.agent != agent => "held_by_other",
                (None, Some(_)) => "attempt_over",
                (None, None) => "not_held",
            });
        }
        self.end(task, Outcome::Done);
        let done = &mut self.tasks[task];
        done.attempts[last].outcome = Some(Outcome::Done);
        done.not_before = None;
        if let Some(review) = self.review_of(task) {
            self.tasks[task].status = TaskStatus::Review;
            return Ok(json!({"success": true, "already": null, "review": review}));
        }
        self.tasks[task].status = TaskStatus::Done;
        self.agents[agent].as_mut().expect("registered").completed += 1;
        Ok(json!({"success": true, "already": null, "review": null}))
    }

    /// What the task says of its review, or what it is a part of.
    fn review_of(&self, task: usize) -> Option<&'static str> {
        let above = self.above(&self.tasks[task]);
        [task].into_iter().chain(above).find_map(|task| self.tasks[task].review)
    }

    fn review(
        &mut self,
        by: Option<usize>,
        task: usize,
        given: Option<u32>,
        approve: bool,
    ) -> Result<Value, &'static str> {
        if by.is_some_and(|by| self.agents[by].is_none()) {
            return Err("unknown_agent");
        }
        let Some(known) = self.tasks.get(task) else { return Err("unknown_task") };
        let is_meant = given.is_none_or(|given| given == known.attempt);
        let last = known.attempts.last();
        let said = match (known.status, last.and_then(|last| last.approved)) {
            (TaskStatus::Done, Some(true)) => Some(true),
            (TaskStatus::Available, Some(false)) => Some(false),
            _ => None,
        };
        if said == Some(approve) && is_meant {
            return Ok(json!({"already": true}));
        }
        match () {
            () if self.is_parent(task) => return Err("is_parent"),
            () if known.status != TaskStatus::Review => return Err("wrong_status"),
            () if !is_meant => return Err("attempt_over"),
            () => {}
        }
        let worker = last.expect("it was completed").agent;
        if let Some(by) = by {
            match self.review_of(task) {
                _ if approve && by == worker => return Err("own_work"),
                Some("by leader") => return Err("not_reviewer"),
                _ => {}
            }
        }
        let reviewed = &mut self.tasks[task];
        let attempt = reviewed.attempts.last_mut().expect("it was completed");
        attempt.approved = Some(approve);
        if approve {
            reviewed.status = TaskStatus::Done;
            self.agents[worker].as_mut().expect("registered").completed += 1;
        } else {
            attempt.outcome = Some(Outcome::Rejected);
            reviewed.uncounted += 1;
            reviewed.back_to_queue(None);
        }
        Ok(json!({"already": null, "status": self.tasks[task].status}))
    }

    /// `all` means everybody who acted within the last day or lives in a process.
    fn send(&mut self, from: usize, to: To) -> Result<Value, &'static str> {
        if self.agents[from].is_none() {
            return Err("unknown_agent");
        }
        let about = |number: &usize| {
            let agent = self.agents[*number].as_ref();
            agent.is_some_and(|agent| {
                agent.present || self.now - self.heard[*number] <= 24 * 60 * MINUTE
            })
        };
        let to: Vec<_> = match to {
            To::Agent(agent) if self.agents[agent].is_none() => return Err("unknown_recipient"),
            To::Agent(agent) => vec![agent],
            To::Everyone => {
                (0..AGENTS.len()).filter(|number| *number != from).filter(about).collect()
            }
            To::Human => vec![HUMAN],
        };
        if to.is_empty() {
            return Err("nobody_there");
        }
        let recipients = to.len();
        self.messages.push(Message { unread_by: to.clone(), to });
        Ok(json!({"recipients": recipients}))
    }

    fn acknowledge(&mut self, agent: usize, message: usize) -> Result<Value, &'static str> {
        if self.agents[agent].is_none() {
            return Err("unknown_agent");
        }
        match self.messages.get_mut(message) {
            Some(message) if !message.to.contains(&agent) => return Err("unknown_message"),
            Some(message) => message.unread_by.retain(|one| *one != agent),
            None => {}
        }
        Ok(json!({"unread": self.unread(agent)}))
    }

    fn unread(&self, agent: usize) -> usize {
        self.messages.iter().filter(|message| message.unread_by.contains(&agent)).count()
    }

    fn letter(&self, message: &Index) -> usize {
        if self.messages.is_empty() { 0 } else { message.index(self.messages.len()) }
    }

    fn fail(
        &mut self,
        agent: usize,
        task: usize,
        given: Option<u32>,
        again: bool,
    ) -> Result<Value, &'static str> {
        self.own(agent, task, given)?;
        let was_asked = self.end(task, Outcome::Failed);
        self.agents[agent].as_mut().expect("registered").failed += 1;
        let now = self.now;
        let failed = &mut self.tasks[task];
        if again && failed.used() < failed.max_attempts {
            let pause = (30 * SECOND * 2_i64.pow(failed.used() - 1)).min(60 * MINUTE);
            failed.back_to_queue(Some(now + pause).filter(|_| !was_asked));
            if was_asked {
                failed.status = TaskStatus::Cancelled;
            }
        } else {
            failed.status = TaskStatus::Failed;
        }
        Ok(json!({"status": self.tasks[task].status}))
    }

    fn release(
        &mut self,
        by: Option<usize>,
        task: usize,
        given: Option<u32>,
    ) -> Result<Value, &'static str> {
        match by {
            Some(agent) => self.own(agent, task, given)?,
            None => match self.tasks.get(task) {
                None => return Err("unknown_task"),
                Some(known) if known.open().is_none() => return Err("not_held"),
                Some(known) if given.is_some_and(|given| given != known.attempt) => {
                    return Err("attempt_over");
                }
                Some(_) => {}
            },
        }
        let was_asked = self.end(task, Outcome::Released);
        let released = &mut self.tasks[task];
        released.uncounted += 1;
        released.back_to_queue(None);
        if was_asked {
            released.status = TaskStatus::Cancelled;
        }
        Ok(json!({"success": true}))
    }

    fn cancel(
        &mut self,
        by: Option<usize>,
        task: usize,
        ask_owner: bool,
    ) -> Result<Value, &'static str> {
        if let Some(worker) = by {
            return Err(if self.agents[worker].is_some() { "not_leader" } else { "unknown_agent" });
        }
        if task < self.tasks.len() && !self.parts(task).is_empty() {
            let is_open = |one: &usize| keeps_open(self.tasks[*one].status);
            let itself = Some(task).filter(|_| self.tasks[task].own);
            let open: Vec<_> =
                self.leaves(task).into_iter().chain(itself).filter(is_open).collect();
            if !open.is_empty() {
                for one in open {
                    self.end_unless_held(one, ask_owner);
                }
                self.roll_up();
                return Ok(json!({"status": self.tasks[task].status}));
            }
        }
        let Some(known) = self.tasks.get(task) else { return Err("unknown_task") };
        match known.status {
            TaskStatus::Cancelled => {}
            TaskStatus::Done | TaskStatus::Obsolete => return Err("wrong_status"),
            _ => self.end_unless_held(task, ask_owner),
        }
        Ok(json!({"status": self.tasks[task].status}))
    }

    /// Cancels the task, or asks its agent to stop.
    fn end_unless_held(&mut self, task: usize, ask_owner: bool) {
        let known = &mut self.tasks[task];
        if ask_owner && matches!(known.status, TaskStatus::Claimed | TaskStatus::InProgress) {
            known.stop_requested = true;
            return;
        }
        self.end(task, Outcome::Cancelled);
        self.tasks[task].back_to_queue(None);
        self.tasks[task].status = TaskStatus::Cancelled;
    }

    fn retry(&mut self, task: usize) -> Result<Value, &'static str> {
        let over = |task: &Task| matches!(task.status, TaskStatus::Failed | TaskStatus::Cancelled);
        if task < self.tasks.len()
            && (self.is_parent(task) || !self.parts(task).is_empty() && over(&self.tasks[task]))
        {
            let itself = Some(task).filter(|_| self.tasks[task].own);
            return self.retry_all(self.leaves(task).into_iter().chain(itself).collect());
        }
        let Some(known) = self.tasks.get(task) else { return Err("unknown_task") };
        match known.status {
            TaskStatus::Available if known.not_before.is_none() => {}
            TaskStatus::Available | TaskStatus::Failed | TaskStatus::Cancelled => {
                self.begin_again(task);
            }
            _ => return Err("wrong_status"),
        }
        Ok(json!({"success": true}))
    }

    fn retry_all(&mut self, mut tasks: Vec<usize>) -> Result<Value, &'static str> {
        let over = |task: &Task| matches!(task.status, TaskStatus::Failed | TaskStatus::Cancelled);
        tasks.retain(|task| over(&self.tasks[*task]) && !self.is_parent(*task));
        for task in &tasks {
            self.begin_again(*task);
        }
        Ok(json!({"retried": tasks.len()}))
    }

    fn begin_again(&mut self, task: usize) {
        let known = &mut self.tasks[task];
        known.uncounted = known.attempt;
        known.back_to_queue(None);
    }

    fn discover(&mut self, found: &Found) -> Result<Value, &'static str> {
        let Some(known) = &self.agents[found.agent] else { return Err("unknown_agent") };
        let about = found.about.as_ref().map(|task| self.index(task));
        if about.is_some_and(|task| task >= self.tasks.len()) {
            return Err("unknown_task");
        }
        let there = self.discoveries.len();
        if there == 0 && !found.supersedes.is_empty() {
            return Err("unknown_discovery");
        }
        let task = about.or_else(|| known.holding.last().copied());
        if let Some(named) = about.filter(|named| known.holding.contains(named)) {
            self.open_mut(named).acted = true;
        }
        let supersedes: BTreeSet<_> = found.supersedes.iter().map(|one| one.index(there)).collect();
        let Found { agent, tag, file, .. } = *found;
        self.discoveries.push(Discovery {
            agent,
            task,
            tag,
            file,
            supersedes: supersedes.into_iter().collect(),
        });
        Ok(json!({"discovery": {"content": said(there), "task_id": task.map(id)}}))
    }

    /// The newest discovery that supersedes it.
    fn superseded_by(&self, discovery: usize) -> Option<usize> {
        (0..self.discoveries.len())
            .rev()
            .find(|newer| self.discoveries[*newer].supersedes.contains(&discovery))
    }

    fn find(&self, sought: &Sought) -> Result<Value, &'static str> {
        let about = sought.about.as_ref().map(|task| self.index(task));
        let is_shown = |number: &usize| sought.superseded || self.superseded_by(*number).is_none();
        let fits = |number: &usize| {
            let one = &self.discoveries[*number];
            sought.number.is_none_or(|sought| number.to_string().contains(&sought.to_string()))
                && sought.tag.is_none_or(|tag| one.tag == Some(tag))
                && about.is_none_or(|task| one.task == Some(task))
        };
        let fitting: Vec<_> =
            (0..self.discoveries.len()).rev().filter(is_shown).filter(fits).collect();
        let shown = fitting.iter().take(sought.limit).rev().map(|number| {
            let by = self.superseded_by(*number).is_some();
            (json!({"content": said(*number)}), by)
        });
        let shown = shown.map(|(mut one, by)| {
            if !by {
                one["superseded_by"] = Value::Null;
            }
            one
        });
        Ok(json!({"discoveries": shown.collect::<Vec<_>>()}))
    }

    /// Discoveries for a claim of `task`: found in work on it or on its dependencies, about its
    /// files, or with its tags.
    fn relevant(&self, task: usize) -> Vec<String> {
        let task_claimed = &self.tasks[task];
        let worth = |one: &Discovery| {
            let on = one.task.is_some_and(|found_in| task_claimed.on.contains(&found_in));
            let file = one.file.is_some_and(|file| task_claimed.files.contains(&file));
            let tag = one.tag.is_some_and(|tag| task_claimed.tags.contains(&tag));
            16 * u32::from(one.task == Some(task))
                + 8 * u32::from(on)
                + 4 * u32::from(file)
                + u32::from(tag)
        };
        let current =
            (0..self.discoveries.len()).filter(|number| self.superseded_by(*number).is_none());
        let mut worthy: Vec<_> =
            current.map(|number| (worth(&self.discoveries[number]), number)).collect();
        worthy.retain(|(worth, _)| *worth > 0);
        worthy.sort_unstable_by(|one, other| other.cmp(one));
        worthy.into_iter().take(HANDED).map(|(_, number)| said(number)).collect()
    }

    fn depend(&mut self, task: usize, on: &[usize]) -> Result<Value, &'static str> {
        let on: Vec<_> = on.iter().copied().filter(|on| *on < self.tasks.len()).collect();
        self.unfinished(task)?;
        let old = std::mem::replace(&mut self.tasks[task].on, on.clone());
        let is_held = self
            .leaves(task)
            .into_iter()
            .chain([task])
            .any(|one| self.tasks[one].open().is_some() || self.in_review(one));
        let refused = match () {
            () if self.has_cycle() => "dependency_cycle",
            () if is_held && !on.iter().all(|on| self.done(*on)) => "not_ready",
            () => return Ok(json!({"success": true})),
        };
        self.tasks[task].on = old;
        Err(refused)
    }

    fn unfinished(&self, task: usize) -> Result<&Task, &'static str> {
        let Some(known) = self.tasks.get(task) else { return Err("unknown_task") };
        if unfinished(known.status) { Ok(known) } else { Err("wrong_status") }
    }

    fn acting(&self, step: &Step) -> Option<usize> {
        match step {
            Step::Register { agent, .. }
            | Step::Claim { agent, .. }
            | Step::Start { agent, .. }
            | Step::Complete { agent, .. }
            | Step::Fail { agent, .. }
            | Step::Heartbeat { agent, .. }
            | Step::Send { from: agent, .. }
            | Step::Reserve { agent, .. }
            | Step::Free { agent }
            | Step::Discover(Found { agent, .. })
            | Step::Acknowledge { agent, .. } => Some(*agent),
            Step::Release { agent, .. } => *agent,
            Step::Cancel { by, .. } | Step::Review { by, .. } => *by,
            _ => None,
        }
    }

    fn act(&mut self, step: &Step) -> Option<Result<Value, &'static str>> {
        Some(match step {
            Step::Create(draft) => self.create(std::slice::from_ref(draft)),
            Step::CreateBatch(drafts) => self.create(drafts),
            Step::Import => self.import(),
            Step::Register { agent, gpu, max_concurrent } => {
                let new = || Agent {
                    gpu: false,
                    max_concurrent: 1,
                    paused: false,
                    present: HOMES[*agent].is_some(),
                    holding: Vec::new(),
                    completed: 0,
                    failed: 0,
                };
                self.heard[*agent] = self.now;
                let known = self.agents[*agent].get_or_insert_with(new);
                (known.gpu, known.max_concurrent) = (*gpu, *max_concurrent);
                Ok(json!({"agent_id": AGENTS[*agent]}))
            }
            Step::Claim { agent, named, exclusive, scope } => self.claim(
                *agent,
                named.as_ref().map(|named| self.index(named)),
                *exclusive,
                *scope,
            ),
            Step::Start { agent, task, attempt } => {
                let task = self.index(task);
                self.start(*agent, task, self.given(task, *attempt))
            }
            Step::Complete { agent, task, attempt } => {
                let task = self.index(task);
                self.complete(*agent, task, self.given(task, *attempt))
            }
            Step::Fail { agent, task, attempt, retryable } => {
                let task = self.index(task);
                self.fail(*agent, task, self.given(task, *attempt), *retryable)
            }
            Step::Release { agent, task, attempt } => {
                let task = self.index(task);
                self.release(*agent, task, self.given(task, *attempt))
            }
            Step::Heartbeat { agent, note } => match &self.agents[*agent] {
                None => Err("unknown_agent"),
                Some(known) => {
                    let newest = known.holding.last().copied();
                    if let Some(task) = newest.filter(|_| *note) {
                        self.open_mut(task).acted = true;
                    }
                    Ok(json!({"task_id": newest.map(id)}))
                }
            },
            Step::Reserve { agent, file, shared, minutes } => {
                self.reserve(*agent, *file, *shared, *minutes)
            }
            Step::Free { agent } => {
                self.reservations.retain(|one| one.agent != *agent);
                if self.agents[*agent].is_some() {
                    Ok(json!({"left": 0}))
                } else {
                    Err("unknown_agent")
                }
            }
            Step::Send { from, to } => self.send(*from, *to),
            Step::Acknowledge { agent, message } => self.acknowledge(*agent, self.letter(message)),
            Step::Cancel { by, task, ask_owner } => self.cancel(*by, self.index(task), *ask_owner),
            Step::Retry { task } => self.retry(self.index(task)),
            Step::Review { by, task, attempt, approve } => {
                let task = self.index(task);
                self.review(*by, task, self.given(task, *attempt), *approve)
            }
            Step::RetryBelow { scope } => {
                let inside =
                    (0..self.tasks.len()).filter(|task| self.in_scope(*task, Some(*scope)));
                self.retry_all(inside.collect())
            }
            Step::Discover(found) => self.discover(found),
            Step::Find(sought) => self.find(sought),
            Step::Priority { task, priority } => {
                let task = self.index(task);
                let changed =
                    self.unfinished(task).map(|_| json!({"task": {"priority": priority}}));
                if changed.is_ok() {
                    self.tasks[task].priority = *priority;
                }
                changed
            }
            Step::Dependencies { task, on } => self.depend(self.index(task), on),
            Step::Pause | Step::Resume => {
                self.paused = matches!(step, Step::Pause);
                Ok(json!({"success": true}))
            }
            Step::PauseAgent { agent } | Step::ResumeAgent { agent } => {
                match &mut self.agents[*agent] {
                    Some(known) => {
                        known.paused = matches!(step, Step::PauseAgent { .. });
                        Ok(json!({"success": true}))
                    }
                    None => Err("unknown_agent"),
                }
            }
            Step::Age { minutes } => {
                self.aging_minutes = *minutes;
                return None;
            }
            Step::TimePasses { minutes } => {
                self.time_passes(minutes * MINUTE);
                return None;
            }
            Step::MachineSleeps { minutes } => {
                self.machine_sleeps(minutes * MINUTE);
                return None;
            }
            Step::ProcessDies { agent } => {
                self.process_dies(*agent);
                return None;
            }
        })
    }
}

impl Draft {
    /// Dependencies on earlier tasks.
    fn known(&self, before: usize) -> Vec<usize> {
        self.on.iter().copied().filter(|on| *on < before).collect()
    }

    fn input(&self, number: usize, dependencies: Vec<String>) -> Value {
        let demands = if self.gpu { json!({"capabilities": ["gpu"]}) } else { json!({}) };
        json!({
            "id": id(number), "description": "work", "priority": self.priority, "dependencies": dependencies,
            "path": self.path.map(|path| PATHS[path]),
            "tags": self.tags.iter().map(|tag| TAGS[*tag]).collect::<Vec<_>>(),
            "context_files": self.files.iter().map(|file| FILES[*file]).collect::<Vec<_>>(),
            "demands": demands, "max_attempts": self.max_attempts, "review": self.review,
        })
    }
}

struct Steps;

impl ReferenceStateMachine for Steps {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::default()).boxed()
    }

    fn transitions(_: &Model) -> BoxedStrategy<Step> {
        let agent = || 0..AGENTS.len();
        let task = any::<Index>;
        let given = || prop_oneof![6 => Just(Given::Left), 2 => Just(Given::Current), 1 => Just(Given::Before)];
        prop_oneof![
            4 => draft().prop_map(Step::Create),
            2 => prop::collection::vec(draft(), 1..4).prop_map(Step::CreateBatch),
            6 => (agent(), any::<bool>(), 1..3_usize)
                .prop_map(|(agent, gpu, max_concurrent)| Step::Register { agent, gpu, max_concurrent }),
            16 => (agent(), prop::option::weighted(0.2, task()), prop::bool::weighted(0.2), scope()).prop_map(
                |(agent, named, exclusive, scope)| {
                    let scope = scope.filter(|_| named.is_none());
                    Step::Claim { agent, named, exclusive, scope }
                }
            ),
            3 => (agent(), 0..FILES.len(), any::<bool>(), prop::option::of(1..100_i64))
                .prop_map(|(agent, file, shared, minutes)| Step::Reserve { agent, file, shared, minutes }),
            1 => agent().prop_map(|agent| Step::Free { agent }),
            5 => (agent(), task(), given()).prop_map(|(agent, task, attempt)| Step::Start { agent, task, attempt }),
            9 => (agent(), task(), given()).prop_map(|(agent, task, attempt)| Step::Complete { agent, task, attempt }),
            7 => (agent(), task(), given(), prop::bool::weighted(0.8))
                .prop_map(|(agent, task, attempt, retryable)| Step::Fail { agent, task, attempt, retryable }),
            3 => (prop::option::weighted(0.8, agent()), task(), given())
                .prop_map(|(agent, task, attempt)| Step::Release { agent, task, attempt }),
            4 => (agent(), any::<bool>()).prop_map(|(agent, note)| Step::Heartbeat { agent, note }),
            3 => (agent(), prop_oneof![3 => agent().prop_map(To::Agent), 1 => Just(To::Everyone), 1 => Just(To::Human)])
                .prop_map(|(from, to)| Step::Send { from, to }),
            2 => (agent(), any::<Index>()).prop_map(|(agent, message)| Step::Acknowledge { agent, message }),
            3 => (prop::option::weighted(0.2, agent()), task(), any::<bool>())
                .prop_map(|(by, task, ask_owner)| Step::Cancel { by, task, ask_owner }),
            3 => task().prop_map(|task| Step::Retry { task }),
            8 => (prop::option::weighted(0.6, agent()), task(), given(), prop::bool::weighted(0.6))
                .prop_map(|(by, task, attempt, approve)| Step::Review { by, task, attempt, approve }),
            1 => (0..PATHS.len()).prop_map(|scope| Step::RetryBelow { scope }),
            2 => Just(Step::Import),
            4 => found().prop_map(Step::Discover),
            2 => sought().prop_map(Step::Find),
            2 => (task(), 1..=10_u8).prop_map(|(task, priority)| Step::Priority { task, priority }),
            4 => (task(), dependencies()).prop_map(|(task, on)| Step::Dependencies { task, on }),
            1 => Just(Step::Pause),
            3 => Just(Step::Resume),
            1 => agent().prop_map(|agent| Step::PauseAgent { agent }),
            3 => agent().prop_map(|agent| Step::ResumeAgent { agent }),
            2 => prop_oneof![Just(0_u32), 1..60_u32].prop_map(|minutes| Step::Age { minutes }),
            4 => prop_oneof![Just(1_i64), 20..40_i64, Just(239), 200..300_i64].prop_map(|minutes| Step::TimePasses { minutes }),
            1 => (2..400_i64).prop_map(|minutes| Step::MachineSleeps { minutes }),
            2 => (2..4_usize).prop_map(|agent| Step::ProcessDies { agent }),
        ]
        .boxed()
    }

    fn preconditions(state: &Model, step: &Step) -> bool {
        let room = TASKS - state.tasks.len().min(TASKS);
        match step {
            Step::Create(_) => room > 0,
            Step::CreateBatch(drafts) => drafts.len() <= room,
            // Once, so that each path of the plan is that of one task.
            Step::Import => {
                let is_there = |task: &Task| task.path.is_some_and(|path| PATHS[path] == "P3.M3");
                room >= PLANNED.len() && !state.tasks.iter().any(|task| task.own || is_there(task))
            }
            _ => true,
        }
    }

    fn apply(mut state: Model, step: &Step) -> Model {
        state.handed = None;
        state.time_passes(STEP);
        state.roll_up();
        state.note_times();
        if let Some(agent) = state.acting(step) {
            state.seen(agent);
        }
        state.answer = state.act(step);
        state.roll_up();
        state.note_times();
        state
    }
}

fn dependencies() -> impl Strategy<Value = Vec<usize>> {
    subsequence((0..TASKS).collect::<Vec<_>>(), 0..3)
}

fn scope() -> impl Strategy<Value = Option<usize>> {
    prop::option::weighted(0.2, 0..PATHS.len())
}

fn found() -> impl Strategy<Value = Found> {
    let about = prop::option::weighted(0.3, any::<Index>());
    let (tag, file) = (prop::option::of(0..TAGS.len()), prop::option::of(0..FILES.len()));
    let supersedes = prop::collection::vec(any::<Index>(), 0..3);
    (0..AGENTS.len(), about, tag, file, supersedes).prop_map(
        |(agent, about, tag, file, supersedes)| Found { agent, about, tag, file, supersedes },
    )
}

fn sought() -> impl Strategy<Value = Sought> {
    let number = prop::option::weighted(0.3, 0..10_usize);
    let (tag, about) =
        (prop::option::weighted(0.3, 0..TAGS.len()), prop::option::weighted(0.3, any::<Index>()));
    (number, tag, about, any::<bool>(), 1..5_usize).prop_map(
        |(number, tag, about, superseded, limit)| Sought { number, tag, about, superseded, limit },
    )
}

fn draft() -> impl Strategy<Value = Draft> {
    let path = prop::option::of(0..PLANNED.start);
    let tags = subsequence((0..TAGS.len()).collect::<Vec<_>>(), 0..2);
    let on = prop_oneof![2 => Just(Vec::new()), 1 => dependencies()];
    let priority = prop_oneof![3 => Just(5), 1 => 1..=10_u8];
    let files = prop_oneof![1 => Just(Vec::new()), 1 => subsequence((0..FILES.len()).collect::<Vec<_>>(), 1..3)];
    let review = prop_oneof![
        3 => Just(None),
        2 => Just(Some("required")),
        1 => Just(Some("by leader")),
        1 => Just(Some("by worker")),
    ];
    (path, tags, files, priority, on, prop::bool::weighted(0.25), 1..4_u32, review).prop_map(
        |(path, tags, files, priority, on, gpu, max_attempts, review)| Draft {
            path,
            tags,
            files,
            priority,
            on,
            gpu,
            max_attempts,
            review,
        },
    )
}

struct Board;

impl StateMachineTest for Board {
    type SystemUnderTest = World;
    type Reference = Steps;

    fn init_test(_: &Model) -> World {
        let mut world = World::new();
        world.replays_seldom = true;
        world.now = callboard::state::time::Timestamp::from_millis(START);
        AGENTS.iter().zip(HOMES).for_each(|(agent, home)| {
            home.into_iter().for_each(|home| world.lives_in(agent, home))
        });
        world
    }

    fn apply(mut world: World, model: &Model, step: Step) -> World {
        world.at(STEP);
        let answer = performed(&mut world, model, &step);
        match (answer, &model.answer) {
            (Some(answer), Some(Ok(reply))) => {
                let reply = answer.replies(reply.clone());
                if let Some(handed) = &model.handed {
                    let shown =
                        reply["handoff"]["discoveries"].as_array().cloned().unwrap_or_default();
                    assert_eq!(json!(shown), json!(handed), "handed with {}", reply["task"]["id"]);
                }
            }
            (Some(answer), Some(Err(code))) => drop(answer.refuses(code)),
            (answer, expected) => assert!(answer.is_none() && expected.is_none()),
        }
        world
    }

    fn check_invariants(world: &World, model: &Model) {
        for (number, expected) in model.tasks.iter().enumerate() {
            compare_task(world, number, expected);
            compare_parts(world, model, number);
        }
        compare_discoveries(world, model);
        for (number, expected) in model.agents.iter().enumerate() {
            compare_agent(world, number, expected.as_ref());
        }
        let shown = world.state.reservations().map(|one| {
            let until = one.until.map(|until| until.millis() - START);
            (
                one.agent.to_string(),
                one.files.concat(),
                one.shared,
                one.task.as_ref().map(ToString::to_string),
                until,
            )
        });
        let wanted = model.reservations.iter().map(|one| {
            (
                AGENTS[one.agent].to_owned(),
                FILES[one.file].to_owned(),
                one.shared,
                one.task.map(id),
                one.until,
            )
        });
        assert_eq!(shown.collect::<BTreeSet<_>>(), wanted.collect::<BTreeSet<_>>());
        for (number, agent) in AGENTS.iter().chain(&["human"]).enumerate() {
            let agent = callboard::state::id::AgentId::trusted(agent);
            assert_eq!(world.state.unread_count(&agent), model.unread(number), "unread by {agent}");
        }
        assert_eq!(world.state.board().paused.is_some(), model.paused);
        for (agent, scope) in world.state.agents().flat_map(|agent| PATHS.map(|path| (agent, path)))
        {
            let verdict = world.state.empty_handed(agent, Some(scope), world.now).verdict;
            let waits = world.state.is_to_wait(agent, Some(scope), world.now);
            let is_to_stop = agent.paused.as_ref().is_some_and(|pause| pause.stop);
            let may_come = match verdict {
                Verdict::Wait | Verdict::Empty => true,
                Verdict::Paused => !is_to_stop,
                _ => false,
            };
            assert_eq!(waits, may_come, "{} in {scope}: {verdict:?}", agent.id);
        }
    }

    fn teardown(world: World, _: Model) {
        world.check();
    }
}

/// The model's time zero.
const START: i64 = 1_772_366_400_000;

fn performed(
    world: &mut World,
    model: &Model,
    step: &Step,
) -> Option<Result<Value, callboard::state::refusal::Refusal>> {
    let named = |task: &Index| id(model.index(task));
    // The model has already made this step, unless it refuses.
    let created = |many: usize| if matches!(model.answer, Some(Ok(_))) { many } else { 0 };
    let with_attempt = |task: &Index, attempt: &Given, mut more: Value| {
        more["task_id"] = Value::from(named(task));
        // The model has already made this step, so what the step named is what it now finds.
        let found = model.tasks.get(model.index(task)).map_or(1, |task| task.attempt);
        match attempt {
            Given::Left => {}
            Given::Current => more["attempt"] = Value::from(found),
            Given::Before => more["attempt"] = Value::from(found.saturating_sub(1)),
        }
        more
    };
    match model.acting(step) {
        Some(agent) => {
            if let Some(home) = HOMES[agent] {
                world.lives_in(AGENTS[agent], home);
            }
            world.by(AGENTS[agent])
        }
        None => world.nobody(),
    };
    let (name, arguments) = match step {
        Step::Create(draft) => {
            let number = model.tasks.len() - created(1);
            let on = draft.known(number).into_iter().map(id).collect();
            ("create_task", draft.input(number, on))
        }
        Step::CreateBatch(drafts) => {
            let first = model.tasks.len() - created(drafts.len());
            let input = |(position, draft): (usize, &Draft)| {
                let on = draft.known(first + position).into_iter();
                let on = on.map(id);
                draft.input(first + position, on.collect())
            };
            (
                "create_tasks_batch",
                json!({"tasks": drafts.iter().enumerate().map(input).collect::<Vec<_>>()}),
            )
        }
        Step::Register { gpu, max_concurrent, .. } => {
            let capabilities = if *gpu { json!(["gpu"]) } else { json!([]) };
            let fields = json!({"role": "worker", "capabilities": capabilities, "max_concurrent": max_concurrent});
            ("register_agent", fields)
        }
        Step::Claim { named: Some(task), exclusive, .. } => {
            ("claim_task", json!({"task_id": named(task), "exclusive_files": exclusive}))
        }
        Step::Claim { named: None, exclusive, scope, .. } => (
            "claim_task",
            json!({"exclusive_files": exclusive, "scope": scope.map(|scope| PATHS[scope])}),
        ),
        Step::Reserve { file, shared, minutes, .. } => (
            "reserve_files",
            json!({"files": [FILES[*file]], "shared": shared, "minutes": minutes}),
        ),
        Step::Free { .. } => ("release_files", json!({})),
        Step::Start { task, attempt, .. } => ("start_task", with_attempt(task, attempt, json!({}))),
        Step::Complete { task, attempt, .. } => {
            ("complete_task", with_attempt(task, attempt, json!({"output": "made"})))
        }
        Step::Fail { task, attempt, retryable, .. } => (
            "fail_task",
            with_attempt(task, attempt, json!({"error": "broken", "retryable": retryable})),
        ),
        Step::Release { task, attempt, .. } => {
            ("release_task", with_attempt(task, attempt, json!({})))
        }
        Step::Heartbeat { note: true, .. } => ("heartbeat", json!({"note": "half way"})),
        Step::Heartbeat { note: false, .. } => ("heartbeat", json!({})),
        Step::Send { to, .. } => {
            let to = match to {
                To::Agent(agent) => AGENTS[*agent],
                To::Everyone => "all",
                To::Human => "human",
            };
            ("send_message", json!({"to": to, "text": "listen"}))
        }
        Step::Acknowledge { message, .. } => {
            let sent =
                world.state.messages().nth(model.letter(message)).map(|one| one.id.to_string());
            (
                "get_messages",
                json!({"acknowledge": [sent.unwrap_or_else(|| "msg-none".to_owned())], "limit": 1}),
            )
        }
        Step::Cancel { task, ask_owner, .. } => {
            ("cancel_task", json!({"task_id": named(task), "ask_owner": ask_owner}))
        }
        Step::Retry { task } => ("retry_task", json!({"task_id": named(task)})),
        Step::Review { task, attempt, approve: true, .. } => {
            ("approve_task", with_attempt(task, attempt, json!({"comment": "good"})))
        }
        Step::Review { task, attempt, approve: false, .. } => {
            ("reject_task", with_attempt(task, attempt, json!({"reason": "bad"})))
        }
        Step::RetryBelow { scope } => ("retry_task", json!({"scope": PATHS[*scope]})),
        Step::Import => {
            let first = model.tasks.len() - created(PLANNED.len());
            let item = |number: usize| {
                let path = PATHS[PLANNED.start + number];
                json!({"title": path, "path": path, "task_id": id(first + number), "status": "Planned"})
            };
            let mut whole = item(0);
            whole["items"] = json!([item(1), item(2)]);
            let text = json!({"items": [whole]}).to_string();
            ("import_plan", json!({"text": text, "name": "plan"}))
        }
        Step::Discover(Found { about, tag, file, supersedes, .. }) => {
            let number = model.discoveries.len() - created(1);
            let there: Vec<_> = world.state.discoveries().map(|one| one.id.to_string()).collect();
            let older = |one: &Index| {
                if there.is_empty() { "disc-none" } else { there[one.index(there.len())].as_str() }
            };
            let supersedes: Vec<_> = supersedes.iter().map(older).collect();
            let fields = json!({
                "content": said(number), "task_id": about.as_ref().map(named), "supersedes": supersedes,
                "tags": tag.iter().map(|tag| TAGS[*tag]).collect::<Vec<_>>(),
                "files": file.iter().map(|file| FILES[*file]).collect::<Vec<_>>(),
            });
            ("add_discovery", fields)
        }
        Step::Find(Sought { number, tag, about, superseded, limit }) => {
            let fields = json!({
                "query": number.map(said), "tags": tag.iter().map(|tag| TAGS[*tag]).collect::<Vec<_>>(),
                "task_id": about.as_ref().map(named), "all": superseded, "limit": limit,
            });
            ("get_discoveries", fields)
        }
        Step::Priority { task, priority } => {
            ("update_task", json!({"task_id": named(task), "priority": priority}))
        }
        Step::Dependencies { task, on } => {
            let on: Vec<_> =
                on.iter().filter(|on| **on < model.tasks.len()).map(|on| id(*on)).collect();
            ("update_task", json!({"task_id": named(task), "dependencies": on}))
        }
        Step::Pause => ("pause", json!({})),
        Step::Resume => ("resume", json!({})),
        Step::PauseAgent { agent } => ("pause", json!({"agents": [AGENTS[*agent]]})),
        Step::ResumeAgent { agent } => ("resume", json!({"agents": [AGENTS[*agent]]})),
        Step::Age { minutes } => {
            world.policy.aging_minutes = *minutes;
            world.tick();
            return None;
        }
        Step::TimePasses { minutes } => {
            world.at(minutes * MINUTE);
            return None;
        }
        Step::MachineSleeps { minutes } => {
            world.sleeps(minutes * MINUTE);
            return None;
        }
        Step::ProcessDies { agent } => {
            let home = HOMES[*agent].expect("it lives in a process");
            world.lives_in(AGENTS[*agent], home);
            world.kill(home);
            return None;
        }
    };
    Some(world.call(name, arguments))
}

fn compare_task(world: &World, number: usize, expected: &Task) {
    let task = world.read(&id(number));
    let open = expected.open();
    assert_eq!(task.status, expected.status, "status of {}", task.id);
    assert_eq!(task.attempt, expected.attempt, "attempt of {}", task.id);
    assert_eq!(task.attempts_used(), expected.used(), "attempts used of {}", task.id);
    assert_eq!(task.priority, expected.priority);
    assert_eq!(task.stop_requested.is_some(), expected.stop_requested, "stop of {}", task.id);
    assert_eq!(
        task.not_before.map(|until| until.millis() - START),
        expected.not_before,
        "pause of {}",
        task.id
    );
    let lease = |attempt: &callboard::state::task::Attempt| attempt.lease_until.millis() - START;
    assert_eq!(
        task.open_attempt().map(lease),
        open.map(|one| one.lease_until),
        "lease of {}",
        task.id
    );
    assert_eq!(
        task.open_attempt().map(|one| one.acted),
        open.map(|one| one.acted),
        "{} acted on",
        task.id
    );
    let outcomes: Vec<_> =
        task.attempts.iter().map(|one| (one.agent.as_str(), one.outcome)).collect();
    let wanted: Vec<_> =
        expected.attempts.iter().map(|one| (AGENTS[one.agent], one.outcome)).collect();
    assert!(wanted.ends_with(&outcomes), "attempts of {}: {outcomes:?}, not {wanted:?}", task.id);
    let on: Vec<_> = expected.on.iter().map(|on| id(*on)).collect();
    assert!(holds(&json!(task.dependencies), &json!(on)), "dependencies of {}", task.id);
}

/// Compares a task's parent and the progress of its parts.
fn compare_parts(world: &World, model: &Model, number: usize) {
    let (task, expected) = (world.read(&id(number)), &model.tasks[number]);
    assert_eq!(task.path.as_deref(), expected.path.map(|path| PATHS[path]), "path of {}", task.id);
    let parent = task.parent.as_ref().map(ToString::to_string);
    assert_eq!(parent, expected.parent.map(id), "parent of {}", task.id);
    let parts: Vec<_> = world.state.parts(&task.id).map(|part| part.id.to_string()).collect();
    assert_eq!(
        parts,
        model.parts(number).into_iter().map(id).collect::<Vec<_>>(),
        "parts of {}",
        task.id
    );
    let leaves: Vec<_> = model.leaves(number).into_iter().map(|leaf| &model.tasks[leaf]).collect();
    let count =
        |wanted: &dyn Fn(&Task) -> bool| leaves.iter().filter(|leaf| wanted(leaf)).count() as u64;
    let shown = world.state.progress(&task.id);
    assert_eq!(
        shown.tasks,
        count(&|leaf| leaf.status != TaskStatus::Cancelled),
        "tasks below {}",
        task.id
    );
    assert_eq!(
        shown.done,
        count(&|leaf| leaf.status == TaskStatus::Done),
        "done below {}",
        task.id
    );
    assert_eq!(
        shown.failed,
        count(&|leaf| leaf.status == TaskStatus::Failed),
        "failed below {}",
        task.id
    );
    assert_eq!(shown.held, count(&|leaf| leaf.open().is_some()), "held below {}", task.id);
    let is_ready =
        !model.is_parent(number) && model.unblocked(expected) && !model.delayed(expected);
    assert_eq!(world.state.is_ready(&task.id), is_ready, "{} ready", task.id);
    if is_ready {
        let shown = world.state.effective_priority(&task, world.policy.aging(), world.now);
        assert_eq!(shown, model.effective(expected), "what {} has risen to", task.id);
    }
}

fn compare_discoveries(world: &World, model: &Model) {
    let ids: Vec<_> = world.state.discoveries().map(|one| one.id.clone()).collect();
    let place = |id: &callboard::state::id::DiscoveryId| ids.iter().position(|one| one == id);
    assert_eq!(ids.len(), model.discoveries.len());
    for (number, (shown, expected)) in world.state.discoveries().zip(&model.discoveries).enumerate()
    {
        assert_eq!(
            (shown.agent_id.as_str(), &shown.content),
            (AGENTS[expected.agent], &said(number))
        );
        assert_eq!(
            shown.task_id.as_ref().map(ToString::to_string),
            expected.task.map(id),
            "task of {}",
            said(number)
        );
        let supersedes: BTreeSet<_> =
            shown.supersedes.iter().map(|id| place(id).expect("it is there")).collect();
        assert_eq!(
            supersedes,
            expected.supersedes.iter().copied().collect(),
            "superseded by {}",
            said(number)
        );
        let by = world.state.superseded_by(&shown.id).and_then(place);
        assert_eq!(by, model.superseded_by(number), "what supersedes {}", said(number));
    }
}

fn compare_agent(world: &World, number: usize, expected: Option<&Agent>) {
    let agent = world.state.agent(&callboard::state::id::AgentId::trusted(AGENTS[number]));
    let shown = agent.map(|one| {
        (json!(one.current_tasks), one.is_present(), one.tasks_completed, one.tasks_failed)
    });
    let wanted = expected.map(|one| {
        let holding: Vec<_> = one.holding.iter().map(|held| id(*held)).collect();
        (json!(holding), one.present, one.completed, one.failed)
    });
    assert_eq!(shown, wanted, "agent {}", AGENTS[number]);
}
