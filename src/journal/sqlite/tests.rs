use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;

use super::file::beside;
use super::*;
use crate::state::document::Undone;
use crate::state::event::{Event, Idempotency, VERSION};
use crate::state::id::{AgentId, ParticipantId, TaskId};
use crate::state::limit::KEYS_REMEMBERED;
use crate::state::time::Timestamp;
use crate::state::{Envelope, State};

fn plan(seq: u64, goal: &str, key: Option<&str>) -> Recorded {
    Recorded {
        seq,
        at: Timestamp::from_millis(1_000 * seq.cast_signed()),
        participant: ParticipantId::trusted("p-1"),
        actor: Some(AgentId::trusted("a1")),
        idempotency: key.map(|key| Idempotency { key: key.to_owned(), params: "abc".to_owned() }),
        event: Event::PlanSet { goal: goal.to_owned(), master_plan: None },
    }
}

fn batch(id: &str) -> BatchId {
    BatchId::new(id)
}

/// A journal of three events in two batches, the first and the last with a key.
fn sample() -> (tempfile::TempDir, SqliteJournal) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut journal = SqliteJournal::create(dir.path(), "board-1").expect("a journal");
    journal
        .append(0, &batch("b1"), &[plan(1, "one", Some("k1")), plan(2, "two", None)])
        .expect("two events");
    journal.append(2, &batch("b2"), &[plan(3, "three", Some("k2"))]).expect("one event");
    (dir, journal)
}

/// Does to the file what another program might do.
fn tamper(dir: &Path, sql: &str) {
    let connection = Connection::open(dir.join(FILE_NAME)).expect("a database");
    connection.execute_batch(sql).expect("a change");
}

fn fails_at(result: Result<Vec<Recorded>, JournalError>) -> u64 {
    match result {
        Err(JournalError::Damaged { seq, .. }) => seq,
        other => panic!("not damaged: {other:?}"),
    }
}

fn behaves_as_a_journal(mut journal: SqliteJournal, mut other: SqliteJournal) {
    assert_eq!(journal.head().unwrap(), 0);
    assert_eq!(journal.read_from(0, 10).unwrap(), []);
    let events = [plan(1, "one", Some("k1")), plan(2, "two", None), plan(3, "three", Some("k2"))];
    journal.append(0, &batch("b1"), &events[..2]).unwrap();
    let conflict = other.append(0, &batch("b2"), &[plan(1, "late", None)]);
    assert!(matches!(conflict, Err(AppendError::Conflict { head: 2 })), "{conflict:?}");
    other.append(2, &batch("b3"), &events[2..]).unwrap();

    assert_eq!(journal.head().unwrap(), 3);
    assert_eq!(journal.read_from(0, 10).unwrap(), events);
    assert_eq!(journal.read_from(1, 1).unwrap(), events[1..2]);
    assert_eq!(journal.read_from(3, 10).unwrap(), []);
    assert!(journal.read_from(4, 10).is_err(), "the journal has no event 4");
    assert_eq!(journal.keyed(10).unwrap(), [events[0].clone(), events[2].clone()]);
    assert_eq!(journal.keyed(1).unwrap(), events[2..]);
    assert_eq!(journal.keyed(0).unwrap(), []);
    assert_eq!(
        ["b1", "b2", "b3"].map(|id| journal.holds_batch(&batch(id)).unwrap()),
        [true, false, true]
    );
    assert_eq!(journal.board_id().unwrap().as_deref(), Some("board-1"));
    let gap = journal.append(3, &batch("b4"), &[plan(5, "gap", None)]);
    assert!(
        matches!(gap, Err(AppendError::Failed(JournalError::OutOfOrder { seq: 4, found: 5 }))),
        "{gap:?}"
    );
    let call: Vec<_> = (4..=9).map(|seq| plan(seq, "of one call", Some("k3"))).collect();
    journal.append(3, &batch("b4"), &call).unwrap();
    assert_eq!(journal.keyed(1).unwrap(), call);
    let newest: Vec<_> = journal.keyed(2).unwrap().iter().map(|recorded| recorded.seq).collect();
    assert_eq!(newest, [3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn two_processes_share_one_sequence() {
    let dir = tempfile::tempdir().unwrap();
    let first = SqliteJournal::create(dir.path(), "board-1").unwrap();
    behaves_as_a_journal(first, SqliteJournal::open(dir.path()).unwrap());
}

#[test]
fn the_file_is_its_owners_alone_and_survives_reopening() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, journal) = sample();
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    drop(journal);
    assert_eq!(SqliteJournal::open(dir.path()).unwrap().read_from(0, 10).unwrap().len(), 3);
}

#[test]
fn an_absent_journal_is_not_found_and_a_present_one_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(SqliteJournal::open(dir.path()), Err(JournalError::NotFound { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "opening makes nothing");
    SqliteJournal::create(dir.path(), "board-1").unwrap();
    assert!(matches!(
        SqliteJournal::create(dir.path(), "board-2"),
        Err(JournalError::Exists { .. })
    ));
}

#[test]
fn the_log_of_a_deleted_journal_is_kept_and_not_taken_for_the_new_ones() {
    let (dir, journal) = sample();
    let log = dir.path().join("journal.db-wal");
    let bytes = fs::read(&log).unwrap();
    drop(journal);
    fs::remove_file(dir.path().join(FILE_NAME)).unwrap();
    fs::write(&log, &bytes).unwrap();
    assert_eq!(SqliteJournal::create(dir.path(), "board-2").unwrap().head().unwrap(), 0);
    assert_eq!(fs::read(dir.path().join("journal.db-wal.orphaned-1")).unwrap(), bytes);
}

#[test]
fn every_changed_column_is_damage() {
    let changes = [
        "batch_id = 'b9'",
        "v = 2",
        "kind = 'paused'",
        "at_ms = at_ms + 1",
        "participant = 'p-2'",
        "agent = NULL",
        "agent = ''",
        "idem_key = 'k9'",
        "idem_params = ''",
        "body = replace(body, 'two', 'tow')",
        "hash = zeroblob(32)",
    ];
    for change in changes {
        let (dir, journal) = sample();
        tamper(dir.path(), &format!("UPDATE events SET {change} WHERE seq = 2"));
        drop(journal);
        let journal = SqliteJournal::open(dir.path()).unwrap();
        assert_eq!(fails_at(journal.read_from(0, 10)), 2, "{change}");
        assert_eq!(fails_at(journal.read_from(1, 10)), 2, "{change}");
    }
}

#[test]
fn a_missing_event_is_damage() {
    let (dir, journal) = sample();
    drop(journal);
    tamper(dir.path(), "DELETE FROM events WHERE seq = 2");
    let journal = SqliteJournal::open(dir.path()).unwrap();
    assert_eq!(fails_at(journal.read_from(0, 10)), 2);
    assert_eq!(fails_at(journal.read_from(2, 10)), 2);
}

#[test]
fn a_history_exchanged_under_a_running_process_is_noticed() {
    let (dir, mut journal) = sample();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut other = SqliteJournal::create(elsewhere.path(), "board-1").unwrap();
    other
        .append(0, &batch("x"), &[plan(1, "1", None), plan(2, "2", None), plan(3, "3", None)])
        .unwrap();
    other.append(3, &batch("y"), &[plan(4, "4", None)]).unwrap();
    drop(other);
    let path = elsewhere.path().join(FILE_NAME);
    let copy = "DELETE FROM events; INSERT INTO events SELECT * FROM other.events WHERE seq <=";
    tamper(dir.path(), &format!("ATTACH '{}' AS other; {copy} 3", path.display()));
    let refused = journal.append(3, &batch("b3"), &[plan(4, "four", None)]);
    assert!(
        matches!(refused, Err(AppendError::Failed(JournalError::Damaged { seq: 3, .. }))),
        "{refused:?}"
    );
    tamper(dir.path(), &format!("ATTACH '{}' AS other; {copy} 4", path.display()));
    assert_eq!(fails_at(journal.read_from(3, 10)), 4);
}

#[test]
fn an_event_of_a_newer_callboard_is_told_from_damage() {
    for (v, body) in [
        (1, r#"{"kind":"teleported","task":"t1"}"#),
        (VERSION + 1, r#"{"kind":"plan_set","goal":"x"}"#),
    ] {
        let (dir, journal) = sample();
        let mut row = Row::of(&plan(4, "four", None), &batch("b3")).unwrap();
        row.v = v;
        row.body = body.to_owned();
        row.kind = "teleported".to_owned();
        let other = SqliteJournal::open(dir.path()).unwrap();
        insert(&other.connection, &row, &head(&other.connection, Link::ROOT).unwrap()).unwrap();
        let newer = journal.read_from(3, 10).unwrap_err();
        assert!(matches!(&newer, JournalError::UnknownKind { seq: 4, .. }), "{newer}");
        assert!(newer.to_string().contains("restart"), "{newer}");
    }
}

#[test]
fn a_newer_format_is_refused_and_what_is_no_database_unreadable() {
    let (dir, journal) = sample();
    drop(journal);
    tamper(dir.path(), "UPDATE meta SET value = '4' WHERE key = 'format'");
    let newer = SqliteJournal::open(dir.path()).unwrap_err();
    assert!(matches!(newer, JournalError::NewerFormat { found: 4, supported: 3 }), "{newer}");
    fs::write(dir.path().join(FILE_NAME), "not a database ".repeat(1000)).unwrap();
    let unreadable = SqliteJournal::open(dir.path()).unwrap_err();
    assert!(matches!(unreadable, JournalError::Unreadable { .. }), "{unreadable}");
}

#[test]
fn a_failure_before_the_commit_leaves_nothing_and_the_journal_usable() {
    let (dir, mut journal) = sample();
    tamper(
        dir.path(),
        "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'full'); END",
    );
    let failed = journal.append(3, &batch("b3"), &[plan(4, "four", None)]);
    assert!(matches!(failed, Err(AppendError::Failed(JournalError::Sqlite(_)))), "{failed:?}");
    tamper(dir.path(), "DROP TRIGGER full");
    assert!(!journal.holds_batch(&batch("b3")).unwrap());
    journal.append(3, &batch("b4"), &[plan(4, "four", None)]).unwrap();
    assert_eq!(journal.read_from(0, 10).unwrap().len(), 4);
}

#[test]
fn bodies_come_back_as_they_were() {
    let (_dir, mut journal) = sample();
    for (seq, number) in
        (4..).zip(["31.245270191439438", "121.48791951161945", "-0.0", "18446744073709551615"])
    {
        let mut event = plan(seq, "numbers", None);
        let task = format!(
            r#"{{"kind":"tasks_created","tasks":[{{"id":"t","description":"","priority":5,
            "max_attempts":3,"context":{{"metadata":{{"number":{number}}}}}}}]}}"#
        );
        event.event = serde_json::from_str(&task).unwrap();
        journal.append(seq - 1, &batch(number), &[event.clone()]).unwrap();
        assert_eq!(journal.read_from(seq - 1, 1).unwrap(), [event]);
    }
}

/// Runs `append_as_a_child` in a process of its own.
fn child(dir: &Path, failpoint: &str) -> std::process::ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "journal::sqlite::tests::append_as_a_child", "--ignored", "--nocapture"])
        .env("CALLBOARD_FAILPOINT", failpoint)
        .env("CALLBOARD_TEST_DIR", dir)
        .output()
        .unwrap()
        .status
}

#[test]
#[ignore = "the process that `child` starts"]
fn append_as_a_child() {
    let dir = std::env::var("CALLBOARD_TEST_DIR").unwrap();
    let mut journal = SqliteJournal::open(Path::new(&dir)).unwrap();
    let appended = journal.append(3, &batch("b3"), &[plan(4, "four", None), plan(5, "five", None)]);
    let code = match appended {
        Ok(()) => 10,
        Err(AppendError::Conflict { .. }) => 11,
        Err(AppendError::Failed(_)) => 12,
        Err(AppendError::Unknown(_)) => 13,
    };
    std::process::exit(code);
}

#[test]
#[cfg(debug_assertions)]
fn a_batch_is_whole_or_absent_whenever_the_process_dies() {
    let cases = [
        ("before-commit", None, false),
        ("before-commit:1:error", Some(12), false),
        ("commit:1:error", Some(13), false),
        ("after-commit", None, true),
        ("after-commit:1:error", Some(13), true),
        ("before-commit:2", Some(10), true),
    ];
    for (failpoint, code, written) in cases {
        let (dir, _journal) = sample();
        assert_eq!(child(dir.path(), failpoint).code(), code, "{failpoint}");
        let journal = SqliteJournal::open(dir.path()).unwrap();
        assert_eq!(journal.holds_batch(&batch("b3")).unwrap(), written, "{failpoint}");
        assert_eq!(
            journal.read_from(0, 10).unwrap().len(),
            if written { 5 } else { 3 },
            "{failpoint}"
        );
    }
}

/// A journal of so many events that `blocks` blocks of them are to be archived, every hundredth
/// event with a key.
fn long(blocks: u64) -> (tempfile::TempDir, SqliteJournal, Vec<Recorded>) {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = SqliteJournal::create(dir.path(), "board-1").unwrap();
    let count = compaction::RECENT + blocks * compaction::BLOCK + 1;
    let events: Vec<_> = (1..=count)
        .map(|seq| {
            plan(
                seq,
                &format!("goal {seq}"),
                (seq % 100 == 0).then(|| format!("k{seq}")).as_deref(),
            )
        })
        .collect();
    journal.append(0, &batch("b1"), &events).unwrap();
    (dir, journal, events)
}

fn archive_all(journal: &mut SqliteJournal) -> u64 {
    let mut blocks = 0;
    while let Some(block) = journal.next_block().unwrap() {
        journal.archive(&block).unwrap();
        blocks += 1;
    }
    blocks
}

#[test]
fn archived_events_are_read_as_before() {
    let (dir, mut journal, events) = long(3);
    let other = SqliteJournal::open(dir.path()).unwrap();
    let keyed = other.keyed(1_000).unwrap();
    assert_eq!(archive_all(&mut journal), 3);
    let rows: i64 =
        journal.connection.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(rows.cast_unsigned(), events.len() as u64 - 3 * compaction::BLOCK);
    for reader in [&other, &SqliteJournal::open(dir.path()).unwrap()] {
        assert_eq!(reader.read_from(0, usize::MAX).unwrap(), events);
        for (after, limit) in
            [(0, 1), (511, 2), (512, 1), (700, 1_000), (1_535, 1), (1_536, 1), (1_400, 20_000)]
        {
            let end = (after + limit).min(events.len());
            assert_eq!(
                reader.read_from(after as u64, limit).unwrap(),
                events[after..end],
                "{after} {limit}"
            );
        }
        assert_eq!(reader.keyed(1_000).unwrap(), keyed);
        assert_eq!(reader.keyed(3).unwrap(), keyed[keyed.len() - 3..]);
        assert_eq!(reader.head().unwrap(), events.len() as u64);
        assert!(reader.holds_batch(&batch("b1")).unwrap());
    }
    let next = events.len() as u64 + 1;
    journal.append(next - 1, &batch("b2"), &[plan(next, "more", None)]).unwrap();
    assert_eq!(other.read_from(next - 1, 10).unwrap().len(), 1);
}

#[test]
fn as_many_calls_stay_known_by_their_keys_as_are_looked_for_however_many_events_they_have() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut journal = SqliteJournal::create(dir.path(), "board-1").expect("a journal");
    // So many that more of the archived ones have a key than calls are remembered.
    let end = 2 + 2 * compaction::RECENT + compaction::BLOCK;
    let key =
        |seq: u64| if seq <= 2 { "first".to_owned() } else { format!("batch-{}", seq / 5_000) };
    let mut events: Vec<_> = (1..=end).map(|seq| plan(seq, "g", Some(&key(seq)))).collect();
    journal.append(0, &batch("b1"), &events).expect("events");
    archive_all(&mut journal);
    assert_eq!(journal.keyed(KEYS_REMEMBERED).expect("keys").len(), events.len());
    let more = end + 1..=end + KEYS_REMEMBERED as u64 + compaction::BLOCK;
    events = more.map(|seq| plan(seq, "g", Some(&format!("k{seq}")))).collect();
    journal.append(end, &batch("b2"), &events).expect("events");
    assert!(archive_all(&mut journal) > 0);
    let count = "SELECT count(*) FROM archived_keys WHERE seq <= ?1";
    let kept: i64 = journal
        .connection
        .query_row(count, [end.cast_signed()], |row| row.get(0))
        .expect("a count");
    assert_eq!(kept, 0, "nobody looks for them");
    assert_eq!(
        journal.keyed(KEYS_REMEMBERED).expect("keys"),
        events[events.len() - KEYS_REMEMBERED..]
    );
}

#[test]
fn block_that_another_process_has_archived_is_not_archived_again() {
    let (dir, mut journal, events) = long(1);
    let mut other = SqliteJournal::open(dir.path()).unwrap();
    let (one, two) = (journal.next_block().unwrap().unwrap(), other.next_block().unwrap().unwrap());
    journal.archive(&one).unwrap();
    other.archive(&two).unwrap();
    assert!(other.next_block().unwrap().is_none());
    assert_eq!(other.read_from(0, usize::MAX).unwrap(), events);
}

#[test]
fn change_of_the_archive_is_damage() {
    for (sql, seq) in [
        ("UPDATE archive SET rows = substr(rows, 1, 500) WHERE first = 1", 1..=512),
        ("UPDATE archive SET hash_after = zeroblob(32) WHERE first = 513", 513..=513),
        ("UPDATE archive SET hash_before = zeroblob(32) WHERE first = 513", 512..=513),
        ("DELETE FROM archive WHERE first = 513", 513..=513),
        (
            "UPDATE archive SET rows = (SELECT rows FROM archive WHERE first = 1) WHERE first = \
             513",
            513..=513,
        ),
    ] {
        let (dir, mut journal, _) = long(2);
        archive_all(&mut journal);
        tamper(dir.path(), sql);
        let found = fails_at(SqliteJournal::open(dir.path()).unwrap().read_from(0, usize::MAX));
        assert!(seq.contains(&found), "{sql}: event {found}");
    }
}

/// Takes `text` out of the rows of the journal, and returns how many had it.
fn purge(journal: &mut SqliteJournal, text: &str) -> usize {
    let rows = journal
        .cleaned(|found, _| found.contains(text).then(|| found.replace(text, "[purged]")))
        .expect("rows");
    journal.purge(&rows, None).expect("a purge");
    rows.len()
}

#[test]
fn purged_rows_are_read_and_verified_and_those_around_them_as_before() {
    for is_archived in [false, true] {
        let (dir, mut journal, mut events) = long(1);
        if is_archived {
            archive_all(&mut journal);
        }
        let (text, at) = ("secret stairway", 100);
        let next = events.len() as u64 + 1;
        journal.append(next - 1, &batch("b2"), &[plan(next, text, Some(text))]).unwrap();
        events.push(plan(next, "[purged]", Some("[purged]")));
        let Event::PlanSet { goal, .. } = &events[at].event else { panic!("another event") };
        let old = format!("\"goal\":\"{goal}\"");
        events[at].event = Event::PlanSet { goal: "[purged]".to_owned(), master_plan: None };
        let other = SqliteJournal::open(dir.path()).unwrap();
        assert_eq!(purge(&mut journal, text), 1);
        let rows = journal.cleaned(|found, _| {
            found.contains(&old).then(|| found.replace(&old, "\"goal\":\"[purged]\""))
        });
        let rows: Vec<_> =
            rows.unwrap().into_iter().filter(|row| row.tombstone().seq == at as u64 + 1).collect();
        journal.purge(&rows, None).unwrap();
        let remade = tempfile::tempdir().unwrap();
        let aside = SqliteJournal::open(dir.path()).unwrap().carry_over(remade.path()).unwrap();
        for reader in [&other, &SqliteJournal::open(dir.path()).unwrap(), &aside] {
            assert_eq!(reader.read_from(0, usize::MAX).unwrap(), events, "{is_archived}");
            assert_eq!(reader.keyed(1).unwrap(), events[events.len() - 1..]);
            let purged: Vec<_> = reader.purged().unwrap().iter().map(|row| row.seq).collect();
            assert_eq!(purged, [at as u64 + 1, next]);
        }
        for name in [FILE_NAME, LOG_NAME] {
            let bytes = fs::read(dir.path().join(name)).unwrap();
            assert!(memchr::memmem::find(&bytes, text.as_bytes()).is_none(), "{name}");
        }
        drop((journal, other));
        let remade = SqliteJournal::open(dir.path()).unwrap();
        remade.remake(dir.path()).unwrap();
        let journal = SqliteJournal::open(dir.path()).unwrap();
        assert_eq!(journal.read_from(0, usize::MAX).unwrap(), events);
        drop(journal);
        tamper(
            dir.path(),
            &format!("UPDATE events SET body = replace(body, '[purged]', 'x') WHERE seq = {next}"),
        );
        let read = SqliteJournal::open(dir.path()).unwrap().read_from(0, usize::MAX);
        assert_eq!(fails_at(read), next, "what was changed since is damaged");
    }
}

#[test]
fn journal_of_format_1_is_brought_up_and_loses_nothing() {
    let (dir, journal) = sample();
    let events = journal.read_from(0, 10).unwrap();
    drop(journal);
    tamper(
        dir.path(),
        "DROP TABLE archive; DROP TABLE archived_keys; UPDATE meta SET value = '1' WHERE key = \
         'format';
         CREATE INDEX events_batch ON events(batch_id);
         CREATE INDEX events_idem ON events(idem_key) WHERE idem_key IS NOT NULL;",
    );
    let mut journal = SqliteJournal::open(dir.path()).unwrap();
    assert_eq!(journal.read_from(0, 10).unwrap(), events);
    assert_eq!(journal.keyed(10).unwrap().len(), 2);
    journal.append(3, &batch("b3"), &[plan(4, "four", None)]).unwrap();
    assert_eq!(SqliteJournal::open(dir.path()).unwrap().head().unwrap(), 4);
}

/// An older build appended zeros to the log, in which it then wrote.
#[test]
fn log_with_zeros_at_its_end_is_read_after_a_crash_and_taken_in() {
    let (dir, mut journal) = sample();
    let log = beside(&dir.path().join(FILE_NAME), "-wal");
    for seq in 4..=200 {
        journal.append(seq - 1, &batch("b"), &[plan(seq, "one more", None)]).expect("an event");
        if seq.is_multiple_of(90) {
            let mut log = fs::OpenOptions::new().append(true).open(&log).expect("a log");
            log.write_all(&[0; 64 << 10]).expect("zeros");
        }
    }
    // As a crash leaves it: copied while it is open.
    let left = tempfile::tempdir().expect("a temporary directory");
    for name in [FILE_NAME.to_owned(), format!("{FILE_NAME}-wal")] {
        fs::copy(dir.path().join(&name), left.path().join(&name)).expect("a copy");
    }
    let events = journal.read_from(0, usize::MAX).expect("events");
    assert_eq!(events.len(), 200);
    let mut found = SqliteJournal::open(left.path()).expect("a journal");
    assert_eq!(found.read_from(0, usize::MAX).expect("events"), events);
    found.append(200, &batch("b"), &[plan(201, "the last", None)]).expect("an event");
    found.settle_for_good(0).expect("taken in");
    drop(found);
    assert_eq!(SqliteJournal::open(left.path()).expect("a journal").head().expect("a head"), 201);
}

#[test]
fn sync_that_succeeds_does_not_vouch_for_one_that_failed() {
    let (dir, mut journal) = sample();
    journal.defer_syncs(dir.path()).expect("a log");
    journal.connection.busy_timeout(Duration::ZERO).expect("no patience");
    journal.append(3, &batch("b3"), &[plan(4, "four", None)]).expect("one event");
    // Somebody is reading, so the log cannot be checkpointed.
    let reader = Connection::open(dir.path().join(FILE_NAME)).expect("a database");
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").expect("a look");
    assert!(matches!(journal.synced(4, Err(io::ErrorKind::Other.into())), Err(JournalError::Busy)));
    assert!(matches!(journal.synced(4, Ok(())), Err(JournalError::Busy)));
    assert!(!journal.is_settled(4) && journal.log().is_none());
    let reopened = journal.reopened(dir.path()).expect("a journal").expect("the same");
    assert!(reopened.log().is_none(), "nor for one before the journal was opened anew");
    reopened.connection.busy_timeout(Duration::ZERO).expect("no patience");
    assert!(matches!(reopened.settle(4), Err(JournalError::Busy)));
    drop((reopened, reader));
    journal.synced(4, Ok(())).expect("it is in the database");
    assert!(journal.is_settled(4) && journal.log().is_some());
    assert_eq!(fs::metadata(beside(&dir.path().join(FILE_NAME), "-wal")).expect("a log").len(), 0);
}

#[test]
fn nobody_comes_between_what_is_read_and_the_append_that_was_begun() {
    let (dir, mut journal) = sample();
    let mut other = SqliteJournal::open(dir.path()).expect("a journal");
    other.connection.busy_timeout(Duration::ZERO).expect("no patience");
    let event = |seq| [plan(seq, "one more", None)];
    assert_eq!(journal.read_from(3, 9).expect("no event"), []);
    other.append(3, &batch("b3"), &event(4)).expect("an event");

    journal.begin_append().expect("the turn");
    assert!(matches!(
        other.append(4, &batch("b4"), &event(5)),
        Err(AppendError::Failed(JournalError::Busy))
    ));
    assert_eq!(journal.read_from(3, 9).expect("what was there before"), event(4));
    assert_eq!(journal.read_from(4, 9).expect("no event"), []);
    journal.append(4, &batch("b4"), &event(5)).expect("an event");
    assert_eq!(other.read_from(4, 9).expect("it is there at once"), event(5));

    journal.begin_append().expect("the turn");
    journal.end_append();
    other.append(5, &batch("b5"), &event(6)).expect("the turn was given back");
    journal.begin_append().expect("the turn");
    journal.settle_for_good(5).expect("taken in");
    assert!(matches!(
        journal.append(5, &batch("b6"), &event(6)),
        Err(AppendError::Conflict { head: 6 })
    ));
}

type Deed = Box<dyn FnOnce() + Send>;

/// What others do while a connection waits for them.
static MEANWHILE: Mutex<Option<Deed>> = Mutex::new(None);

/// Has `journal` wait for others as a process would, and `deed` done meanwhile, after which they
/// are gone.
fn wait_for_others(journal: &mut SqliteJournal, deed: Deed) {
    fn others(_: i32) -> bool {
        let deed = MEANWHILE.lock().unwrap().take();
        deed.map(|deed| deed()).is_some()
    }
    *MEANWHILE.lock().unwrap() = Some(deed);
    journal.connection.busy_handler(Some(others)).expect("a busy handler");
}

/// Appends the events that create the run `id` in a session of its own.
fn create_run(journal: &mut SqliteJournal, state: &mut State, id: &str) {
    let at = Timestamp::from_millis(1_000);
    let envelope =
        Envelope { at, participant: ParticipantId::trusted("p-1"), actor: None, idempotency: None };
    let session = format!("session-of-{id}");
    let created = json!({
        "kind": "run_created",
        "run": {"id": id, "description": "do it", "priority": 5, "max_attempts": 3, "run": {
            "session_id": session, "type": "start_session", "execution_mode": "sync", "no_match_seconds": 300}},
        "session": {"id": session, "execution_mode": "sync", "created_at": "2026-03-01T12:00:00Z"},
    });
    let (before, savepoint) = (state.seq(), state.savepoint());
    let recorded =
        state.record(serde_json::from_value(created).expect("an event"), &envelope).expect("a run");
    let rows = state.run_rows(savepoint);
    journal.append_with(before, &batch(id), &[recorded], &rows).expect("an append");
    state.settle();
}

#[test]
fn tables_made_anew_have_the_runs_that_came_while_others_were_waited_for() {
    for is_done_by_others in [false, true] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut other, mut state) =
            (SqliteJournal::create(dir.path(), "board-1").expect("a journal"), State::new());
        create_run(&mut other, &mut state, "before");
        let mut journal = SqliteJournal::open(dir.path()).expect("a journal");
        let holder = Connection::open(dir.path().join(FILE_NAME)).expect("a database");
        let mark = "INSERT INTO meta(key, value) VALUES ('runs_stale', '1')";
        holder.execute_batch(&format!("{mark}; BEGIN IMMEDIATE")).expect("a transaction");
        wait_for_others(
            &mut journal,
            Box::new(move || {
                holder.execute_batch("COMMIT").expect("its end");
                if is_done_by_others {
                    other.rebuild_runs().expect("rows");
                }
                create_run(&mut other, &mut state, "meanwhile");
                if is_done_by_others {
                    holder
                        .execute_batch("UPDATE runs SET prompt = 'as others left it'")
                        .expect("a change");
                }
            }),
        );
        journal.bring_up_runs().expect("rows");
        let rows = |journal: &SqliteJournal| journal.dump_runs().unwrap().into_iter();
        let runs = |column: usize| {
            rows(&journal).filter_map(move |row: Vec<Option<String>>| row.get(column)?.clone())
        };
        let ids: Vec<_> = runs(0).filter(|id| !id.starts_with("session")).collect();
        assert_eq!(ids, ["before", "meanwhile"]);
        assert_eq!(
            runs(4).any(|prompt| prompt == "as others left it"),
            is_done_by_others,
            "once is enough"
        );
        assert!(journal.meta("runs_stale").unwrap().is_none());
        assert!(MEANWHILE.lock().unwrap().is_none());
        let dump = journal.dump_runs().unwrap();
        journal.rebuild_runs().expect("rows");
        assert_eq!(journal.dump_runs().unwrap() == dump, !is_done_by_others);
    }
}

#[test]
fn dropped_stubs_are_found_until_a_restore_undoes_that_in_every_copy_of_the_journal() {
    let (dir, mut journal) = sample();
    let (task, other) = (TaskId::trusted("t1"), TaskId::trusted("t2"));
    let dropped = |seq: u64, retired: u64| Recorded {
        event: Event::StubsDropped { stubs: [(task.clone(), retired)].into() },
        ..plan(seq, "", None)
    };
    journal.append(3, &batch("b3"), &[dropped(4, 2), dropped(5, 3)]).expect("two events");
    let undone = |after, until| Undone { after, until };
    let found = |journal: &SqliteJournal, undone: &[Undone]| {
        assert_eq!(journal.retired_at(&other, undone).unwrap(), None);
        journal.retired_at(&task, undone).unwrap()
    };
    let check = |journal: &SqliteJournal| {
        assert_eq!(found(journal, &[]), Some(3), "the newest");
        assert_eq!(found(journal, &[undone(4, 9)]), Some(2));
        assert_eq!(found(journal, &[undone(1, 4)]), Some(3));
        assert_eq!(found(journal, &[undone(3, 9)]), None);
    };
    check(&journal);
    let elsewhere = tempfile::tempdir().expect("a directory");
    check(&journal.carry_over(elsewhere.path()).expect("a copy"));
    journal.remake(dir.path()).expect("another of the same events");
    check(&SqliteJournal::open(dir.path()).expect("a journal"));
    tamper(dir.path(), "DROP TABLE dropped_stubs");
    let older = SqliteJournal::open(dir.path()).expect("as of a version that dropped none");
    assert_eq!(found(&older, &[]), None);
}
