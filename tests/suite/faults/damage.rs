//! Every truncation and every single-bit flip of what is on disk: a changed file is never taken for
//! a sound one. `CALLBOARD_DAMAGE_STRIDE` is the distance between flipped bits; 1 flips all.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use callboard::journal::JournalError;
use callboard::journal::sqlite::SqliteJournal;
use callboard::state::State;
use callboard::state::document::Document;
use callboard::state::event::Recorded;
use callboard::statefile::{self, Found};
use serde_json::json;

use crate::harness::{Board, STATE_FILE, size};

const EVERYDAY_STRIDE: usize = 61;

/// Damaged versions of a file, each with a description.
fn damages(sound: &[u8], stride: usize) -> impl Iterator<Item = (String, Vec<u8>)> {
    let truncated = (0..sound.len())
        .step_by(stride)
        .map(|length| (format!("cut to {length}"), sound[..length].to_vec()));
    let flipped = (0..sound.len() * 8).step_by(stride).map(|bit| {
        let mut damaged = sound.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        (format!("bit {} of byte {}", bit % 8, bit / 8), damaged)
    });
    truncated.chain(flipped)
}

/// How a reader reacted to the damage.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Outcome {
    /// It reports that something is wrong.
    Reported,
    /// It reads what was written: the damage is in an unused place.
    Unharmed,
    /// It reads something else and takes it for what was written.
    Deceived,
    Panicked,
}

fn tally(
    outcomes: &mut BTreeMap<Outcome, usize>,
    bad: &mut Vec<String>,
    name: String,
    outcome: Outcome,
) {
    *outcomes.entry(outcome).or_default() += 1;
    if matches!(outcome, Outcome::Deceived | Outcome::Panicked) {
        bad.push(format!("{name}: {outcome:?}"));
    }
}

/// A board with a state file of about four kilobytes.
fn small_board() -> Board {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok(
        "init_coordination",
        json!({"goal": "stay whole", "master_plan": "one, two", "replace_goal": true}),
    );
    client.register("a");
    for task in 0..5 {
        let dependencies = if task == 4 { json!(["t3"]) } else { json!([]) };
        client.ok(
            "create_task",
            json!({"id": format!("t{task}"), "description": "d", "dependencies": dependencies}),
        );
    }
    client.ok("claim_task", json!({"agent_id": "a", "task_id": "t0"}));
    client.ok("complete_task", json!({"agent_id": "a", "task_id": "t0", "output": "made"}));
    client.ok("claim_task", json!({"agent_id": "a", "task_id": "t1"}));
    client.ok("fail_task", json!({"agent_id": "a", "task_id": "t1", "error": "e"}));
    client.ok("add_discovery", json!({"agent_id": "a", "content": "c", "tags": ["x"]}));
    drop(client);
    board
}

fn loaded(dir: &Path, sound: &Document) -> Outcome {
    let read = catch_unwind(AssertUnwindSafe(|| statefile::load(dir)));
    match read {
        Err(_) => Outcome::Panicked,
        Ok(Ok(Some(Found::Sound(document)))) if *document == *sound => Outcome::Unharmed,
        Ok(Ok(Some(Found::Sound(_) | Found::Foreign { .. }) | None)) => Outcome::Deceived,
        Ok(Ok(Some(Found::Unsound { .. })) | Err(_)) => Outcome::Reported,
    }
}

#[test]
fn no_damage_to_a_state_file_goes_unnoticed() {
    let stride = size("CALLBOARD_DAMAGE_STRIDE", EVERYDAY_STRIDE);
    let board = small_board();
    let sound = fs::read(board.file(STATE_FILE)).unwrap();
    let Some(Found::Sound(document)) = statefile::load(board.dir()).unwrap() else {
        panic!("the file is sound")
    };
    let elsewhere = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (mut outcomes, mut bad, start) = (BTreeMap::new(), Vec::new(), Instant::now());
    for (name, damaged) in damages(&sound, stride) {
        fs::write(elsewhere.path().join(STATE_FILE), damaged).unwrap();
        tally(&mut outcomes, &mut bad, name, loaded(elsewhere.path(), &document));
    }
    println!(
        "a state file of {} bytes, every {stride}. truncation and bit flip: {outcomes:?} in {:.1} \
         s",
        sound.len(),
        start.elapsed().as_secs_f64()
    );
    assert_eq!(bad, [""; 0]);
}

/// Through the binary: the damaged file is kept, the answer is right, and the file is restored.
#[test]
fn damaged_state_files_are_kept_and_rebuilt() {
    let stride = size("CALLBOARD_DAMAGE_STRIDE", EVERYDAY_STRIDE) * 97;
    let board = small_board();
    // Whoever reads first records that the process which made the board has ended.
    board.cli_ok("get_status", json!({}));
    let sound = fs::read(board.file(STATE_FILE)).unwrap();
    let expected = board.replay().to_document();
    let (mut kept, mut refused) = (0, 0);
    for number in 0..damages(&sound, stride).count() {
        // Uses the present content: a file of another size would be an edit.
        let live = fs::read(board.file(STATE_FILE)).unwrap();
        let Some((name, damaged)) = damages(&live, stride).nth(number) else { break };
        board.decay(&damaged);
        let finished = board.cli("get_status", json!({}));
        if finished.status.success() {
            let Some(Found::Sound(document)) = statefile::load(board.dir()).unwrap() else {
                panic!("{name}")
            };
            assert!(*document == expected, "{name}");
            let aside = fs::read_dir(board.dir()).unwrap().map(|entry| entry.unwrap().path());
            let mut aside =
                aside.filter(|path| path.display().to_string().contains("mcp-state.json."));
            kept +=
                usize::from(aside.any(|path| fs::read(path).is_ok_and(|bytes| bytes == damaged)));
        } else {
            // A flipped digit may make it look like a newer version's file.
            assert!(
                !finished.stderr.contains("panicked") && !finished.stderr.trim().is_empty(),
                "{name}"
            );
            assert_eq!(
                fs::read(board.file(STATE_FILE)).unwrap(),
                damaged,
                "{name}: refused, and left alone"
            );
            board.decay(&live);
            refused += 1;
        }
    }
    println!("damaged state files: {kept} kept and rebuilt, {refused} refused and left alone");
    assert!(kept > 0);
}

/// Reads as a process does that has nothing but the journal.
fn replayed(dir: &Path) -> Result<Vec<Recorded>, JournalError> {
    let journal = SqliteJournal::open(dir)?;
    let (head, board_id) = (journal.head()?, journal.board_id()?);
    let events = journal.read_from(0, usize::MAX)?;
    journal.keyed(100)?;
    let mut state = State::new();
    for recorded in &events {
        state.apply(recorded).map_err(|error| JournalError::Damaged {
            seq: recorded.seq,
            detail: error.to_string(),
        })?;
    }
    // Every start compares these with the state file.
    if head != state.seq() || board_id.as_deref() != Some(state.board().board_id.as_str()) {
        return Err(JournalError::Damaged {
            seq: head,
            detail: "head, board and events do not agree".to_owned(),
        });
    }
    Ok(events)
}

/// Checks `files` in a directory of their own, with each damage to one of them.
fn damage_journal(
    files: &[(&str, Vec<u8>)],
    damaged_name: &str,
    sound: &[Recorded],
    stride: usize,
    lost_tail: bool,
) {
    let elsewhere = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (mut outcomes, mut bad, start) = (BTreeMap::new(), Vec::new(), Instant::now());
    let (_, bytes) = files.iter().find(|(name, _)| *name == damaged_name).unwrap();
    let mut shorter = 0;
    for (name, damaged) in damages(bytes, stride) {
        let dir = elsewhere.path().join("board");
        fs::create_dir(&dir).unwrap();
        for (file, bytes) in files {
            fs::write(dir.join(file), if *file == damaged_name { &damaged } else { bytes })
                .unwrap();
        }
        let outcome = match catch_unwind(AssertUnwindSafe(|| replayed(&dir))) {
            Err(_) => Outcome::Panicked,
            Ok(Err(_)) => Outcome::Reported,
            Ok(Ok(events)) if events == sound => Outcome::Unharmed,
            // A lost end is noticed by the state file, which is then ahead.
            Ok(Ok(events)) if lost_tail && sound.starts_with(&events) => {
                shorter += 1;
                Outcome::Reported
            }
            Ok(Ok(_)) => Outcome::Deceived,
        };
        tally(&mut outcomes, &mut bad, name, outcome);
        fs::remove_dir_all(&dir).unwrap();
    }
    println!(
        "{damaged_name} of {} bytes, every {stride}. truncation and bit flip: {outcomes:?}, of \
         them {shorter} with a shorter history than the state file's, in {:.1} s",
        bytes.len(),
        start.elapsed().as_secs_f64()
    );
    assert_eq!(bad, [""; 0]);
}

#[test]
fn no_damage_to_a_journal_goes_unnoticed() {
    let stride = size("CALLBOARD_DAMAGE_STRIDE", EVERYDAY_STRIDE) * 4 - 3;
    let board = small_board();
    // A read-only connection would leave the log. When any other closes, the log is gone, and the
    // file alone is the journal.
    rusqlite::Connection::open(board.file("journal.db"))
        .unwrap()
        .execute_batch("PRAGMA wal_checkpoint(FULL)")
        .unwrap();
    assert!(!board.file("journal.db-wal").exists());
    let files = [("journal.db", fs::read(board.file("journal.db")).unwrap())];
    let sound = board.events();
    damage_journal(&files, "journal.db", &sound, stride, true);
}

#[test]
fn no_damage_to_a_journals_log_goes_unnoticed() {
    let stride = size("CALLBOARD_DAMAGE_STRIDE", EVERYDAY_STRIDE) * 8 - 7;
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("init_coordination", json!({"goal": "stay whole", "replace_goal": true}));
    for task in 0..4 {
        client.ok("create_task", json!({"id": format!("t{task}"), "description": "d"}));
    }
    // The process is killed so that the log stays.
    client.kill();
    let names = ["journal.db", "journal.db-wal"];
    let files = names.map(|name| (name, fs::read(board.file(name)).unwrap()));
    let sound = board.events();
    assert!(sound.len() > 5 && files[1].1.len() > 4_096);
    damage_journal(&files, "journal.db-wal", &sound, stride, true);
}
