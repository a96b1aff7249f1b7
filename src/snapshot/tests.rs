use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;
use crate::state::Envelope;
use crate::state::event::Event;
use crate::state::id::ParticipantId;

const NOON: i64 = 1_772_366_400_000;
fn noon() -> Timestamp {
    Timestamp::from_millis(NOON)
}

const WEEK: Retention = Retention { count: 10, days: 7 };

struct Board {
    dir: TempDir,
    state: State,
}

impl Board {
    fn new() -> Self {
        let mut board =
            Self { dir: tempfile::tempdir().expect("a directory"), state: State::new() };
        board.record(Event::BoardCreated { board_id: "b".to_owned() });
        board
    }

    fn record(&mut self, event: Event) {
        let participant = ParticipantId::trusted("p-test");
        let envelope = Envelope { at: noon(), participant, actor: None, idempotency: None };
        self.state.record(event, &envelope).expect("it fits");
    }

    fn take_at(&mut self, at: Timestamp) -> SnapshotName {
        self.record(Event::Paused { reason: None });
        let taken = Taken { at, occasion: Occasion::OnDemand, label: None, journal_bytes: 0 };
        take(self.dir.path(), &self.state, taken, WEEK, |_| false)
            .expect("written")
            .expect("one")
            .name
    }

    fn snapshots(&self) -> Snapshots {
        Snapshots::of(self.dir.path()).expect("readable")
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(DIRECTORY).join(name)
    }

    fn problems(&self) -> Vec<(String, String)> {
        let report = self.snapshots().verify().expect("readable");
        report.problems.into_iter().map(|one| (one.file, one.problem)).collect()
    }
}

#[test]
fn snapshots_of_one_moment_have_an_order_and_a_chain() {
    let mut board = Board::new();
    let names: Vec<_> = (0..4).map(|_| board.take_at(noon())).collect();
    assert_eq!(board.snapshots().names().unwrap(), names);
    assert_eq!(board.problems(), []);
    let newest = board.snapshots().newest_sound("b", u64::MAX).unwrap().expect("one");
    assert_eq!((newest.0, newest.1.state), (names[3].clone(), board.state.to_document()));
    assert_eq!(board.snapshots().newest_sound("b", 3).unwrap().expect("one").0, names[1]);
    assert_eq!(board.snapshots().newest_sound("another", 9).unwrap(), None);
    let mode = fs::metadata(board.path(names[0].as_str())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn kept_are_the_newest_and_all_of_a_week() {
    let mut board = Board::new();
    let day = |number: i64| noon() + number * DAY;
    for number in 0..12 {
        board.take_at(day(number));
    }
    let kept = |board: &Board| {
        board.snapshots().names().unwrap().iter().map(SnapshotName::at).collect::<Vec<_>>()
    };
    assert_eq!(kept(&board), (2..12).map(day).collect::<Vec<_>>(), "the newest ten");
    for minute in 0..15 {
        board.take_at(day(12) + minute * MINUTE);
    }
    // All within a week of the last one: more than ten, so none goes by count.
    let expected: Vec<_> =
        (6..12).map(day).chain((0..15).map(|minute| day(12) + minute * MINUTE)).collect();
    assert_eq!(kept(&board), expected);
    let report = board.snapshots().verify().unwrap();
    assert_eq!((report.sound, report.pruned_before.map(|name| name.at())), (true, Some(day(6))));
}

#[test]
fn every_flipped_bit_of_a_snapshot_is_found() {
    let mut board = Board::new();
    let (older, name) = (board.take_at(noon()), board.take_at(noon()));
    let path = board.path(name.as_str());
    let bytes = fs::read(&path).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, damaged).unwrap();
        assert!(
            matches!(board.snapshots().load(&name), Err(SnapshotError::Damaged(_))),
            "bit {bit}"
        );
    }
    assert_eq!(board.snapshots().newest_sound("b", u64::MAX).unwrap().expect("one").0, older);
}

#[test]
fn every_truncation_of_a_snapshot_is_found() {
    let mut board = Board::new();
    let name = board.take_at(noon());
    let path = board.path(name.as_str());
    let bytes = fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        assert!(
            matches!(board.snapshots().load(&name), Err(SnapshotError::Damaged(_))),
            "{length} bytes"
        );
    }
}

#[test]
fn chain_goes_on_from_the_newest_sound_one() {
    let mut board = Board::new();
    let names: Vec<_> = (0..3).map(|_| board.take_at(noon())).collect();
    fs::write(board.path(names[2].as_str()), "{}").unwrap();
    let next = board.take_at(noon());
    let problems = board.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].0, names[2].as_str());
    assert_eq!(board.snapshots().newest_sound("b", u64::MAX).unwrap().expect("one").0, next);
}

#[test]
fn missing_link_is_told_and_a_pruned_root_is_fine() {
    let mut board = Board::new();
    let names: Vec<_> = (0..4).map(|_| board.take_at(noon())).collect();
    fs::remove_file(board.path(names[0].as_str())).unwrap();
    let report = board.snapshots().verify().unwrap();
    assert_eq!((report.sound, report.pruned_before), (true, Some(names[1].clone())));
    fs::remove_file(board.path(names[2].as_str())).unwrap();
    let problems = board.problems();
    assert!(problems.len() == 1 && problems[0].0 == names[3].as_str(), "{problems:?}");
}

#[test]
fn link_in_the_place_of_a_snapshot_or_of_the_directory_is_not_followed() {
    let mut board = Board::new();
    let name = board.take_at(noon());
    let (path, elsewhere) = (board.path(name.as_str()), board.dir.path().join("elsewhere"));
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(matches!(board.snapshots().load(&name), Err(SnapshotError::Damaged(_))));
    fs::rename(board.dir.path().join(DIRECTORY), board.dir.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(board.dir.path().join("moved"), board.dir.path().join(DIRECTORY))
        .unwrap();
    assert!(Snapshots::of(board.dir.path()).is_err());
}
