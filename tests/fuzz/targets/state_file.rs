//! Whatever lies there as the state file, ours or an older one's: it is refused or gives a sound state, and what was
//! read as a document is written and read again unchanged.
#![no_main]

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use callboard::state::State;
use callboard::state::document::{Document, SCHEMA_VERSION};
use callboard::statefile::{self, Found};
use callboard_fuzz::directory;
use libfuzzer_sys::fuzz_target;

thread_local!(static FILE: PathBuf = directory().keep().join("mcp-state.json"));

fn load(bytes: &[u8]) -> Option<Found> {
    FILE.with(|file| {
        fs::write(file, bytes).unwrap();
        statefile::load_file(file).ok().flatten()
    })
}

fuzz_target!(|input: &[u8]| {
    if let Some(Found::Sound(document) | Found::Foreign { document, .. }) = load(input) {
        let state = State::from_document(*document);
        assert_eq!(state.check(), [""; 0]);
        assert_same(&state);
    }
    // What only a program that knows the checksum can have written.
    if let Ok(document) = serde_json::from_slice::<Document>(input)
        && names_each_once(&document)
    {
        let state = State::from_document(document);
        drop(state.check());
        assert_same(&state);
    }
});

/// What is loaded is refused otherwise, as no state can be made of it.
fn names_each_once(document: &Document) -> bool {
    let mut tasks = HashSet::new();
    document.tasks.iter().all(|task| tasks.insert(&task.id))
        && document.agents.iter().all(|(id, agent)| *id == agent.id)
        && document.participants.iter().all(|(id, one)| *id == one.id)
}

fn assert_same(state: &State) {
    let document = state.to_document();
    let text = statefile::text_of(state).unwrap();
    match load(&text) {
        Some(Found::Sound(read)) => assert!(*read == document, "{document:?} was read as {read:?}"),
        Some(Found::Unsound { reason }) => {
            assert!(document.board.schema_version == 0, "{reason}: {document:?}");
        }
        Some(Found::Foreign { .. }) => panic!("taken for an older file: {document:?}"),
        None => assert!(document.board.schema_version > SCHEMA_VERSION, "not read: {document:?}"),
    }
}
