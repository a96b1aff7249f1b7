//! Whatever stands in a journal: an event that does not fit changes nothing, one that does gives the same state in every
//! replica, and it is written as it was read.
#![no_main]

use callboard::state::State;
use callboard::state::event::{Event, Recorded};
use callboard::state::id::{AgentId, ParticipantId};
use callboard::state::time::Timestamp;
use libfuzzer_sys::fuzz_target;

fn recorded(state: &State, line: &[u8]) -> Option<Recorded> {
    let event: Event = serde_json::from_slice(line).ok()?;
    let text = serde_json::to_vec(&event).unwrap();
    let read: Event = serde_json::from_slice(&text).expect("an event that was written can be read");
    assert!(read == event, "{event:?} was read as {read:?}");
    Some(Recorded {
        seq: state.seq().checked_add(1)?,
        at: Timestamp::from_millis(1_772_366_400_000),
        participant: ParticipantId::trusted("p-1"),
        actor: Some(AgentId::trusted("a")),
        idempotency: None,
        event,
    })
}

fuzz_target!(|input: &[u8]| {
    let (mut state, mut replica) = (State::new(), State::new());
    for line in input.split(|byte| *byte == b'\n').take(32) {
        let Some(recorded) = recorded(&state, line) else { continue };
        let (before, savepoint) = (state.to_document(), state.savepoint());
        match state.apply(&recorded) {
            Ok(()) => {
                let after = state.to_document();
                if !matches!(recorded.event, Event::Imported { .. }) {
                    state.rollback(savepoint);
                    assert!(state.to_document() == before, "{recorded:?} was not taken back");
                    state.apply(&recorded).expect("what fitted fits again");
                    assert!(
                        state.to_document() == after,
                        "{recorded:?} did something else the second time"
                    );
                }
                replica.apply(&recorded).expect("what fits one replica fits the other");
                replica.settle();
                assert!(replica.to_document() == after, "{recorded:?} made two replicas differ");
            }
            Err(_) => assert!(
                state.to_document() == before,
                "{recorded:?} was refused and changed something"
            ),
        }
        state.settle();
        // Events that nobody decided on may break a rule, but not the check.
        drop(state.check());
    }
});
