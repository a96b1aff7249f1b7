//! Linearizability: eight clients, some of which are killed during a call, record what they see.
//! For every task there must be an order of calls that explains all answers and fits everybody's
//! clock. A watcher of the feed must see every event once, in order, through a series of processes.
//! `CALLBOARD_HISTORIES` is their number, `CALLBOARD_OPERATIONS` their length.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use callboard::state::event::Event;
use callboard::state::id::Chance;
use serde_json::{Value, json};

use crate::harness::{Board, Client, PATIENCE, StopAtEnd, size, until};

const CLIENTS: usize = 8;
/// Average number of operations per task; the search grows with it.
const PER_TASK: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    Claim,
    Complete { attempt: u64 },
    Fail { attempt: u64 },
    Release { attempt: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answer {
    /// Done, in this attempt.
    Done(u64),
    /// It had been done before, in this attempt.
    Already(u64),
    Refused,
    /// The process died during the call.
    Unknown,
}

#[derive(Clone, Debug)]
struct Seen {
    agent: usize,
    task: String,
    call: Call,
    answer: Answer,
    begin: Instant,
    end: Instant,
}

/// A task's status, as the checker models it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Status {
    Available,
    Held(usize),
    Done(usize),
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Model {
    status: Status,
    attempt: u64,
    /// Leases that may still expire, as many as in the journal.
    expiries: usize,
}

impl Model {
    /// The states after the call, if its answer is right in this one.
    fn after(self, seen: &Seen) -> Vec<Self> {
        let mut after: Vec<_> = self.step(seen).into_iter().collect();
        if matches!(self.status, Status::Held(_)) && self.expiries > 0 {
            let expired = Self { status: Status::Available, expiries: self.expiries - 1, ..self };
            after.extend(expired.step(seen));
        }
        after
    }

    fn step(self, seen: &Seen) -> Option<Self> {
        let next = self.effect(seen.agent, seen.call);
        match seen.answer {
            Answer::Done(attempt) => next.filter(|next| next.attempt == attempt),
            Answer::Already(attempt) => {
                self.has_done(seen.agent, seen.call, attempt).then_some(self)
            }
            Answer::Refused => next.is_none().then_some(self),
            Answer::Unknown => Some(next.unwrap_or(self)),
        }
    }

    fn effect(self, agent: usize, call: Call) -> Option<Self> {
        let held = |attempt| self.status == Status::Held(agent) && self.attempt == attempt;
        match call {
            Call::Claim if self.status == Status::Available => {
                Some(Self { status: Status::Held(agent), attempt: self.attempt + 1, ..self })
            }
            Call::Complete { attempt } if held(attempt) => {
                Some(Self { status: Status::Done(agent), ..self })
            }
            Call::Fail { attempt } if held(attempt) => {
                Some(Self { status: Status::Failed, ..self })
            }
            Call::Release { attempt } if held(attempt) => {
                Some(Self { status: Status::Available, ..self })
            }
            _ => None,
        }
    }

    fn has_done(self, agent: usize, call: Call, attempt: u64) -> bool {
        let status = if call == Call::Claim { Status::Held(agent) } else { Status::Done(agent) };
        self.status == status && self.attempt == attempt
    }
}

/// Whether some order explains the answers. Each call takes effect between its beginning and its
/// end; one of unknown outcome does so at any time after its beginning, or never.
fn is_linearizable(calls: &[Seen], expiries: usize) -> bool {
    let start = Model { status: Status::Available, attempt: 0, expiries };
    let (mut open, mut known) = (vec![(vec![false; calls.len()], start)], HashSet::new());
    while let Some((taken, model)) = open.pop() {
        let left = || (0..calls.len()).filter(|call| !taken[*call]);
        if left().all(|call| calls[call].answer == Answer::Unknown) {
            return true;
        }
        // No call can be ordered after the end of one that has not taken effect.
        let first_end = left()
            .filter(|call| calls[*call].answer != Answer::Unknown)
            .map(|call| calls[call].end)
            .min();
        for call in left().filter(|call| first_end.is_none_or(|end| calls[*call].begin <= end)) {
            for next in model.after(&calls[call]) {
                let mut taken = taken.clone();
                taken[call] = true;
                if known.insert((taken.clone(), next)) {
                    open.push((taken, next));
                }
            }
        }
    }
    false
}

/// An agent that acts through a series of processes.
struct Player<'a> {
    board: &'a Board,
    number: usize,
    chance: Chance,
    client: Option<Client>,
    seen: Vec<Seen>,
    holding: Vec<(String, u64)>,
    kills: usize,
}

impl Player<'_> {
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.chance.draw() % end as u64).unwrap()
    }

    fn play(&mut self, tasks: usize, turns: &AtomicUsize) {
        while turns
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok()
        {
            let held = self.below(self.holding.len() + 1);
            match self.holding.get(held).cloned() {
                Some((task, attempt)) => {
                    let call = match self.below(8) {
                        0..=2 => Call::Complete { attempt },
                        3 => Call::Fail { attempt },
                        _ => Call::Release { attempt },
                    };
                    self.call(task, call);
                }
                None => {
                    let task = format!("t{}", self.below(tasks));
                    self.call(task, Call::Claim);
                }
            }
        }
    }

    fn call(&mut self, task: String, call: Call) {
        let agent = format!("agent-{}", self.number);
        let mut arguments = json!({"agent_id": agent, "task_id": task});
        let tool = match call {
            Call::Claim => "claim_task",
            Call::Complete { attempt } => {
                arguments["attempt"] = attempt.into();
                arguments["output"] = "made".into();
                "complete_task"
            }
            Call::Fail { attempt } => {
                arguments["attempt"] = attempt.into();
                arguments["error"] = "broke".into();
                arguments["retryable"] = false.into();
                "fail_task"
            }
            Call::Release { attempt } => {
                arguments["attempt"] = attempt.into();
                arguments["reason"] = "other work".into();
                "release_task"
            }
        };
        let begin = Instant::now();
        let reply = match self.below(10) {
            0 => self.one_shot(tool, &arguments),
            1 => self.killed_in(tool, &arguments),
            _ => self
                .connected()
                .try_patiently(tool, &arguments)
                .map(|reply| if reply.is_error { None } else { Some(reply.value) }),
        };
        let end = Instant::now();
        let attempt = match call {
            Call::Claim => reply.as_ref().and_then(|reply| reply.as_ref()?["attempt"].as_u64()),
            Call::Complete { attempt } | Call::Fail { attempt } | Call::Release { attempt } => {
                Some(attempt)
            }
        };
        let answer = match (&reply, attempt) {
            (None, _) => Answer::Unknown,
            (Some(Some(reply)), Some(attempt)) if reply["success"] == true => {
                if reply["already"] == true {
                    Answer::Already(attempt)
                } else {
                    Answer::Done(attempt)
                }
            }
            (Some(_), _) => Answer::Refused,
        };
        if call != Call::Claim {
            self.holding.retain(|(held, _)| *held != task);
        } else if let Answer::Done(attempt) | Answer::Already(attempt) = answer {
            self.holding.retain(|(held, _)| *held != task);
            self.holding.push((task.clone(), attempt));
        }
        // A refusal because the agent holds enough, or this task, says nothing about the task.
        if !(call == Call::Claim
            && matches!(&reply, Some(Some(reply)) if reply["holding"].is_array()))
        {
            self.seen.push(Seen { agent: self.number, task, call, answer, begin, end });
        }
    }

    fn connected(&mut self) -> &mut Client {
        let (board, agent) = (self.board, format!("agent-{}", self.number));
        self.client.get_or_insert_with(|| {
            let mut client = board.mcp();
            let register = json!({"agent_id": agent, "role": "worker", "max_concurrent": 20, "takeover": true});
            client.ok("register_agent", register);
            client
        })
    }

    fn one_shot(&mut self, tool: &str, arguments: &Value) -> Option<Option<Value>> {
        self.connected();
        let finished = until(PATIENCE, tool, || {
            let finished = self.board.cli(tool, arguments.clone());
            (!finished.was_locked()).then_some(finished)
        });
        Some(finished.status.success().then(|| finished.value()))
    }

    /// The reply may still have arrived, but nobody reads it.
    fn killed_in(&mut self, tool: &str, arguments: &Value) -> Option<Option<Value>> {
        let spins = self.below(60_000);
        let client = self.connected();
        client.send(tool, arguments.clone());
        (0..spins).for_each(|_| std::hint::spin_loop());
        client.kill();
        self.client = None;
        self.kills += 1;
        None
    }
}

/// Number and kind of every event that the feed delivered, by processes that are replaced now and
/// then.
fn watch(board: &Board, stop: &AtomicBool) -> Vec<(u64, String)> {
    let (mut told, mut since, mut asked) = (Vec::new(), 0, 0);
    let mut client = board.mcp();
    loop {
        let ending = stop.load(Ordering::SeqCst);
        asked += 1;
        if asked % 40 == 0 {
            client.kill();
            client = board.mcp();
        }
        let wait = if ending { 0 } else { 1 };
        let reply = client
            .ok("wait_for_events", json!({"since_seq": since, "limit": 20, "wait_seconds": wait}));
        for event in reply["events"].as_array().unwrap() {
            told.push((event["seq"].as_u64().unwrap(), event["kind"].as_str().unwrap().to_owned()));
        }
        since = reply["next_seq"].as_u64().unwrap();
        if ending && reply["more"] == false {
            return told;
        }
    }
}

#[test]
fn every_history_has_an_order_that_explains_it() {
    let (histories, operations) =
        (size("CALLBOARD_HISTORIES", 1), size("CALLBOARD_OPERATIONS", 300));
    let (mut calls, mut unknown, mut kills, mut told, mut wrong) = (0, 0, 0, 0, Vec::new());
    let start = Instant::now();
    for history in 0..histories {
        let board = Board::with_policy("grace_seconds = 1\nkeep_finished = 1000000");
        let tasks = operations.div_ceil(PER_TASK);
        let drafts = |range: std::ops::Range<usize>| {
            let draft =
                |task| json!({"id": format!("t{task}"), "description": "d", "max_attempts": 100});
            json!({"tasks": range.map(draft).collect::<Vec<_>>()})
        };
        board.cli_ok("create_tasks_batch", drafts(0..tasks));
        let (turns, stop, players) =
            (AtomicUsize::new(operations), AtomicBool::new(false), Mutex::new(Vec::new()));
        let feed = thread::scope(|scope| {
            let (board, turns, stop, players) = (&board, &turns, &stop, &players);
            let watcher = scope.spawn(move || watch(board, stop));
            let stopping = StopAtEnd(stop);
            thread::scope(|scope| {
                for number in 0..CLIENTS {
                    scope.spawn(move || {
                        let chance = Chance::new((history * CLIENTS + number) as u64);
                        let (seen, holding) = (Vec::new(), Vec::new());
                        let mut player =
                            Player { board, number, chance, client: None, seen, holding, kills: 0 };
                        player.play(tasks, turns);
                        players.lock().unwrap().push((player.seen, player.kills));
                    });
                }
            });
            drop(stopping);
            watcher.join().unwrap()
        });
        let events = board.events();
        let expected: Vec<_> =
            events.iter().map(|one| (one.seq, one.event.kind().to_owned())).collect();
        // Another process may have noted meanwhile that the players are gone.
        if !expected.starts_with(&feed) {
            wrong.push(format!("history {history}: the feed has a gap, a repeat or another order"));
        }
        told += feed.len();
        let mut expiries = BTreeMap::<String, usize>::new();
        for recorded in &events {
            if let Event::LeaseExpired { task, .. } = &recorded.event {
                *expiries.entry(task.to_string()).or_default() += 1;
            }
        }
        let mut by_task = BTreeMap::<String, Vec<Seen>>::new();
        for (seen, killed) in players.into_inner().unwrap() {
            kills += killed;
            seen.into_iter().for_each(|one| by_task.entry(one.task.clone()).or_default().push(one));
        }
        for (task, mut seen) in by_task {
            seen.sort_by_key(|one| one.begin);
            calls += seen.len();
            unknown += seen.iter().filter(|one| one.answer == Answer::Unknown).count();
            if !is_linearizable(&seen, expiries.get(&task).copied().unwrap_or(0)) {
                wrong.push(format!("history {history}, {task}: no order explains {seen:#?}"));
            }
        }
    }
    println!(
        "{histories} histories of {operations} operations by {CLIENTS} clients in {:.0} s: \
         {calls} answers checked, {unknown} unknown of {kills} kills, {told} events of the feed; \
         {} violations",
        start.elapsed().as_secs_f64(),
        wrong.len()
    );
    assert_eq!(wrong, [""; 0]);
    assert!(calls > 0 && kills > 0);
}

/// An impossible history is recognized as such.
#[test]
fn history_in_which_two_hold_one_task_has_no_order() {
    let start = Instant::now();
    let at = |millis| start + std::time::Duration::from_millis(millis);
    let seen = |agent, call, answer, begin, end| Seen {
        agent,
        task: "t".to_owned(),
        call,
        answer,
        begin: at(begin),
        end: at(end),
    };
    let first = seen(0, Call::Claim, Answer::Done(1), 0, 10);
    let second = |answer| seen(1, Call::Claim, answer, 5, 20);
    assert!(!is_linearizable(&[first.clone(), second(Answer::Done(1))], 0));
    assert!(!is_linearizable(&[first.clone(), second(Answer::Done(2))], 0));
    assert!(is_linearizable(&[first.clone(), second(Answer::Done(2))], 1));
    assert!(is_linearizable(&[first.clone(), second(Answer::Refused)], 0));
    let late = seen(0, Call::Complete { attempt: 1 }, Answer::Refused, 30, 40);
    assert!(!is_linearizable(&[first.clone(), late.clone()], 0));
    let lost = seen(0, Call::Release { attempt: 1 }, Answer::Unknown, 12, 14);
    assert!(is_linearizable(&[first, lost, late], 0));
}
