use serde_json::{Value, json};
use tokio::sync::oneshot::Receiver;

use super::super::message::Answer;
use super::*;
use crate::ops::Due;
use crate::state::State;

const SECOND: Duration = Duration::from_secs(1);

/// A commit path, and the time that it is told.
struct Path {
    commit: Commit,
    now: Instant,
}

impl Path {
    fn new() -> Self {
        Self { commit: Commit::new(Stay::Lasting), now: Instant::now() }
    }

    fn call(&mut self) -> Receiver<Answer> {
        let (call, answer) = Queued::of("create_task", json!({"description": "d"}));
        self.tell(Event::Called(Queued { entered: self.now, ..call }));
        answer
    }

    fn tell(&mut self, event: Event) {
        self.commit.handle(event, self.now);
    }

    fn next(&mut self) -> Option<Action> {
        self.commit.next(self.now)
    }

    /// Takes the lock, and decides the calls that wait.
    fn decide(&mut self, seq: u64) -> Box<Decided> {
        assert!(matches!(self.next(), Some(Action::TryLock)));
        self.tell(Event::Locked(Ok(true)));
        let Some(Action::Decide(calls, None)) = self.next() else { panic!("it decides") };
        decided(calls, seq)
    }

    fn append(&mut self, seq: u64) {
        let decided = self.decide(seq);
        self.tell(Event::Decided(decided));
        let Some(Action::Append(decided)) = self.next() else { panic!("it appends") };
        self.tell(Event::Appended(decided));
        assert!(matches!(self.next(), Some(Action::Unlock)), "others append meanwhile");
        assert!(matches!(self.next(), Some(Action::Committed { calls: 1, .. })));
    }

    /// Has others hold the state file's lock.
    fn is_held_up(&mut self) {
        assert!(matches!(self.next(), Some(Action::AskShown { .. })));
        self.tell(Event::Shown(None));
        assert!(matches!(self.next(), Some(Action::TryLockFile { .. })));
        self.tell(Event::FileLocked(Ok(false)));
    }
}

fn decided(calls: Vec<Queued>, seq: u64) -> Box<Decided> {
    let outcome = || Outcome::Answer(Ok(json!({"seq": seq})));
    let decisions = calls.into_iter().map(|call| Decision { call, outcome: outcome() }).collect();
    let savepoint = State::new().savepoint();
    let (edit, due, events, before) = (None, Due::default(), Vec::new(), seq - 1);
    Box::new(Decided { decisions, edit, due, events, before, seq, savepoint })
}

fn seq_in(answer: &mut Receiver<Answer>) -> Value {
    answer.try_recv().expect("an answer").expect("a reply")["seq"].clone()
}

#[test]
fn answer_leaves_when_its_event_is_durable_and_shown() {
    let mut path = Path::new();
    let mut answer = path.call();
    path.append(7);
    assert!(matches!(path.next(), Some(Action::AskShown { is_late: false })));
    path.tell(Event::Shown(None));
    assert!(matches!(path.next(), Some(Action::TryLockFile { .. })));
    path.tell(Event::FileLocked(Ok(true)));
    assert!(matches!(path.next(), Some(Action::Sync { here: true, .. })), "a lone caller's");
    path.tell(Event::Syncing { seq: 7 });
    assert!(path.next().is_none(), "nothing leaves before the sync has ended");
    path.tell(Event::Synced(Ok(())));
    assert!(matches!(path.next(), Some(Action::Place)));
    path.tell(Event::Placed(Placed::Done { warning: None, unshown: None }));
    assert!(matches!(path.next(), Some(Action::Publish { seq: 7, .. })));
    let Some(Action::Reply(answers)) = path.next() else { panic!("it replies") };
    answers.into_iter().for_each(|(reply, answer)| drop(reply.send(answer)));
    assert_eq!(seq_in(&mut answer), 7);
    assert!(path.next().is_none() && path.commit.is_complete());
}

#[test]
fn conflict_has_the_same_calls_decided_again() {
    let mut path = Path::new();
    let _answers = [path.call(), path.call()];
    let first = path.decide(7);
    path.tell(Event::Decided(first));
    let Some(Action::Append(decided)) = path.next() else { panic!("it appends") };
    let _later = path.call();
    path.tell(Event::Conflict(decided));
    let Some(Action::Decide(calls, None)) = path.next() else { panic!("it decides again") };
    assert_eq!(calls.len(), 2, "the call that came later waits for the next batch");
}

#[test]
fn batch_that_is_always_overtaken_fails_in_the_end() {
    let mut path = Path::new();
    let mut answer = path.call();
    let mut batch = Some(path.decide(7));
    let mut conflicts = 0;
    while let Some(decided) = batch.take() {
        conflicts += 1;
        assert!(conflicts < 1_000, "for ever");
        path.tell(Event::Conflict(decided));
        batch = match path.next() {
            Some(Action::Decide(calls, None)) => Some(self::decided(calls, 7)),
            Some(Action::Unlock) => None,
            _ => panic!("it decides again, or gives up"),
        };
    }
    let Some(Action::Reply(answers)) = path.next() else { panic!("it replies") };
    answers.into_iter().for_each(|(reply, answer)| drop(reply.send(answer)));
    assert!(matches!(answer.try_recv(), Ok(Err(CallError::Failed(_)))));
}

#[test]
fn call_waits_for_the_lock_only_so_long() {
    let mut path = Path::new();
    let _answer = path.call();
    assert!(matches!(path.next(), Some(Action::TryLock)));
    path.tell(Event::Locked(Ok(false)));
    assert!(matches!(path.next(), Some(Action::AwaitLock)));
    path.now += LOCK_PATIENCE;
    assert!(path.next().is_none(), "it waits");
    path.now += SECOND;
    let Some(Action::AskHolder(late)) = path.next() else { panic!("it waits no longer") };
    path.tell(Event::Holder(late, Holder::default()));
    assert!(matches!(path.next(), Some(Action::Reply(_))));
    path.tell(Event::LockCame(Ok(())));
    assert!(matches!(path.next(), Some(Action::Unlock)), "the lock is not wanted any more");
}

#[test]
fn round_goes_on_without_the_state_file_whose_lock_never_comes() {
    let mut path = Path::new();
    let mut answer = path.call();
    path.append(7);
    path.is_held_up();
    assert!(matches!(path.next(), Some(Action::AskShown { is_late: true })), "it may be shown");
    path.tell(Event::Shown(Some(6)));
    assert!(matches!(path.next(), Some(Action::AwaitFile)));
    assert!(path.next().is_none() && !path.commit.is_complete());
    path.now += LOCK_PATIENCE;
    path.is_held_up();
    assert!(matches!(path.next(), Some(Action::SyncAlone)));
    path.tell(Event::SyncedAlone {
        seq: 7,
        synced: Ok(()),
        holder: Holder { pid: Some(1), is_stopped: true },
        is_gone: false,
    });
    assert!(matches!(path.next(), Some(Action::Publish { seq: 7, .. })));
    let Some(Action::Reply(answers)) = path.next() else { panic!("it replies") };
    answers.into_iter().for_each(|(reply, answer)| drop(reply.send(answer)));
    let reply = answer.try_recv().expect("an answer").expect("a reply");
    assert!(
        reply["warning"].as_str().is_some_and(|text| text.contains("`kill -CONT 1`")),
        "{reply}"
    );
    assert!(path.commit.trouble().is_some());
}

#[test]
fn what_another_process_has_shown_needs_no_round() {
    let mut path = Path::new();
    let _answer = path.call();
    path.append(7);
    path.is_held_up();
    assert!(matches!(path.next(), Some(Action::AskShown { is_late: true })));
    path.tell(Event::Shown(Some(8)));
    assert!(matches!(path.next(), Some(Action::NoteShown { seq: 8 })));
    assert!(matches!(path.next(), Some(Action::Publish { seq: 8, .. })));
    assert!(matches!(path.next(), Some(Action::Reply(_))));
    assert!(path.commit.is_complete());
}

#[test]
fn edit_that_cannot_be_decided_on_is_given_back() {
    let mut path = Path::new();
    let outcome = super::super::edits::Outcome::Later;
    path.tell(Event::Edited(Examined { path: "edit".into(), identity: None, outcome }));
    assert!(matches!(path.next(), Some(Action::TryLock)));
    path.tell(Event::Locked(Ok(false)));
    assert!(matches!(path.next(), Some(Action::AwaitLock)));
    path.now += LOCK_PATIENCE + SECOND;
    assert!(
        matches!(path.next(), Some(Action::Conclude(_, Verdict::Left))),
        "or none is read again"
    );
    assert!(path.next().is_none());
}
