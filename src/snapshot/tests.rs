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

const WEEK: Retention = Retention { count: 10, days: 7, bytes: u64::MAX };

struct Board {
    dir: TempDir,
    state: State,
}

impl Board {
    fn new() -> Self {
        let mut board =
            Self { dir: tempfile::tempdir().expect("a directory"), state: State::new() };
        board.record(Event::BoardCreated { board_id: "b".to_owned(), numbered: true });
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
    for file in [names[3].to_string(), format!("{}.gz", names[0])] {
        let mode = fs::metadata(board.path(&file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
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
fn older_snapshots_are_compressed_and_read_as_before() {
    let mut board = Board::new();
    let names: Vec<_> = (0..3).map(|_| board.take_at(noon())).collect();
    let files = |board: &Board| {
        let kept = names.iter().flat_map(|name| [name.to_string(), format!("{name}.gz")]);
        kept.filter(|file| board.path(file).exists()).collect::<Vec<_>>()
    };
    let expected = [format!("{}.gz", names[0]), format!("{}.gz", names[1]), names[2].to_string()];
    assert_eq!(files(&board), expected);
    assert_eq!((board.snapshots().names().unwrap(), board.problems()), (names.clone(), Vec::new()));
    let listed = board.snapshots().list().unwrap();
    assert_eq!(listed[0].head.as_ref().map(|head| head.seq), Some(2));
    assert_eq!(listed[0].bytes, fs::metadata(board.path(&expected[0])).unwrap().len());
    // A process that died while it compressed has left both forms.
    fs::copy(board.path(&expected[2]), board.path(&expected[1][..expected[1].len() - 3])).unwrap();
    assert_eq!(board.snapshots().names().unwrap(), names);
}

#[test]
fn every_flipped_bit_and_truncation_of_a_compressed_snapshot_harms_nothing_else() {
    let mut board = Board::new();
    let (name, _) = (board.take_at(noon()), board.take_at(noon()));
    let sound = board.snapshots().load(&name).expect("sound");
    let path = board.path(&format!("{name}.gz"));
    let bytes = fs::read(&path).unwrap();
    let check = |damaged: &[u8], what: &str| {
        fs::write(&path, damaged).unwrap();
        match board.snapshots().load(&name) {
            // Parts of the header, such as the time, say nothing of the content.
            Ok(snapshot) => assert_eq!(snapshot, sound, "{what}"),
            Err(error) => assert!(matches!(error, SnapshotError::Damaged(_)), "{what}: {error}"),
        }
        assert_eq!(board.snapshots().list().unwrap().len(), 2);
    };
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        check(&damaged, &format!("bit {bit}"));
    }
    for length in 0..bytes.len() - 8 {
        check(&bytes[..length], &format!("{length} bytes"));
    }
}

#[test]
fn snapshots_kept_for_their_age_have_a_bounded_size() {
    let mut board = Board::new();
    let mut take = |second: i64, bytes| {
        board.record(Event::Paused { reason: None });
        let at = noon() + second * 1_000;
        let taken = Taken { at, occasion: Occasion::Growth, label: None, journal_bytes: 0 };
        let retention = Retention { count: 3, days: 7, bytes };
        take(board.dir.path(), &board.state, taken, retention, |_| false).expect("written");
        board.snapshots().list().unwrap()
    };
    let mut all = Vec::new();
    for second in 0..20 {
        all = take(second, u64::MAX);
    }
    assert_eq!(all.len(), 20);
    let room = all[14..19].iter().map(|one| one.bytes).sum::<u64>();
    let kept = take(20, room);
    assert!((5..8).contains(&kept.len()), "{}", kept.len());
    assert_eq!(take(21, 0).len(), 3, "the newest stay");
    assert!(Snapshots::of(board.dir.path()).unwrap().verify().unwrap().sound);
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
    fs::remove_file(board.path(&format!("{}.gz", names[0]))).unwrap();
    let report = board.snapshots().verify().unwrap();
    assert_eq!((report.sound, report.pruned_before), (true, Some(names[1].clone())));
    fs::remove_file(board.path(&format!("{}.gz", names[2]))).unwrap();
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
