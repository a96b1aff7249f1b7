//! What the disk takes for the writes that every durable queue must make in some form.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fs_err as fs;
use rusqlite::Connection;

use super::figure::Key;
use super::place::{Place, agent};
use super::{Bench, Measure, engine};
use crate::journal::BatchId;
use crate::journal::sqlite::{self, SqliteJournal};
use crate::state::event::{Event, Recorded};
use crate::state::id::{AgentId, ParticipantId, TaskId};
use crate::state::task::Place as Worktree;
use crate::state::time::{MINUTE, Timestamp};
use crate::statefile;

const PART: &str = "calibration";
const APPEND: Key = Key::new(PART, "append an event, fdatasync");
const SQLITE: Key = Key::new(PART, "SQLite FULL commit of an event");
const JOURNAL: Key = Key::new(PART, "append an event to a journal, sync it");
pub(super) const REPLACE: Key = Key::new(PART, "write the whole state file, fsync, rename");

/// Bytes beyond which a file is written only `FEW` times per round.
const LARGE: usize = 1 << 20;
const FEW: usize = 3;

pub(super) struct Calibration {
    rows: Rows,
    journal: SqliteJournal,
    seq: u64,
    /// Texts of state files, with their number of tasks.
    texts: Vec<(usize, Vec<u8>)>,
    directory: PathBuf,
}

impl Calibration {
    pub(super) fn new(bench: &mut Bench) -> anyhow::Result<Self> {
        let directory = bench.place.fresh("calibration");
        fs::create_dir(&directory)?;
        let text = |tasks: &usize| Ok((*tasks, statefile::text_of(&engine::state_of(*tasks)?)?));
        let texts = bench.size.tasks.iter().map(text).collect::<anyhow::Result<_>>()?;
        let mut journal = SqliteJournal::create(&directory, "board-calibration")?;
        journal.defer_syncs(&directory)?;
        Ok(Self { rows: Rows::new(&mut bench.place)?, journal, seq: 0, texts, directory })
    }
}

impl Measure for Calibration {
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        bench.begin("what the disk takes");
        let mut log =
            fs::OpenOptions::new().create(true).append(true).open(self.directory.join("log"))?;
        for _ in 0..bench.size.samples {
            self.seq += 1;
            let event = claimed(self.seq);
            let line = serde_json::to_string(&event)? + "\n";
            let append =
                timed(|| Ok(log.write_all(line.as_bytes()).and_then(|()| log.sync_data())?))?;
            let commit = self.rows.commit()?;
            let batch = BatchId::new(format!("p-calibrate-{}", self.seq));
            let journal = timed(|| {
                self.journal.append(self.seq - 1, &batch, &[event])?;
                Ok(self.journal.settle(self.seq)?)
            })?;
            for (key, time) in [(APPEND, append), (SQLITE, commit), (JOURNAL, journal)] {
                bench.figures.times(key, [time]);
            }
        }
        let (new, old) = (self.directory.join("new"), self.directory.join("state"));
        for (tasks, text) in &self.texts {
            let samples = if text.len() > LARGE { FEW } else { bench.size.samples };
            for _ in 0..samples {
                let replaced = timed(|| {
                    let mut file = fs::File::create(&new)?;
                    file.write_all(text)?;
                    file.sync_all()?;
                    Ok(fs::rename(&new, &old)?)
                })?;
                bench.figures.times(REPLACE.tasks(*tasks), [replaced]);
            }
        }
        Ok(())
    }
}

/// A SQLite database of its own, in which each commit is durable and holds one claim.
pub(super) struct Rows {
    connection: Connection,
    body: String,
}

impl Rows {
    pub(super) fn new(place: &mut Place) -> anyhow::Result<Self> {
        let connection = Connection::open(place.fresh("rows"))?;
        sqlite::set_up(&connection)?;
        connection
            .execute_batch("CREATE TABLE rows(seq INTEGER PRIMARY KEY, body TEXT NOT NULL)")?;
        // While the log still grows, each commit also lengthens its file, which takes longer than
        // the disk needs. So the log gets its full length first.
        let fill = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers \
                    WHERE n < ?1)
            INSERT INTO rows(body) SELECT hex(randomblob(1000)) FROM numbers";
        connection.execute(fill, [sqlite::LOG_PAGES])?;
        Ok(Self { connection, body: serde_json::to_string(&claimed(1))? })
    }

    pub(super) fn commit(&self) -> anyhow::Result<Duration> {
        self.commit_of(&self.body)
    }

    pub(super) fn commit_of(&self, body: &str) -> anyhow::Result<Duration> {
        let mut insert = self.connection.prepare_cached("INSERT INTO rows(body) VALUES (?1)")?;
        timed(|| Ok(insert.execute([body]).map(|_| ())?))
    }
}

pub(super) fn timed(act: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let start = Instant::now();
    act()?;
    Ok(start.elapsed())
}

fn claimed(seq: u64) -> Recorded {
    let agent = AgentId::trusted(agent(0));
    let at = Timestamp::from_millis(1_772_366_400_000);
    let event = Event::Claimed {
        task: TaskId::trusted("task-000000"),
        agent: agent.clone(),
        attempt: 1,
        lease_until: at + 30 * MINUTE,
        through: None,
        place: Worktree::default(),
    };
    let participant = ParticipantId::trusted("p-0000000000");
    Recorded { seq, at, participant, actor: Some(agent), idempotency: None, event }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_like_the_journal() {
        let mut bench = Bench::small();
        let calibration = Calibration::new(&mut bench).expect("a place");
        let journal =
            Connection::open(calibration.directory.join(sqlite::FILE_NAME)).expect("a journal");
        let page = |of: &Connection| {
            of.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0)).expect("its size")
        };
        assert_eq!(page(&calibration.rows.connection), page(&journal));
        let log = i64::from(sqlite::LOG_PAGES);
        let pragmas = [
            ("synchronous", 2),
            ("fullfsync", 1),
            ("checkpoint_fullfsync", 1),
            ("wal_autocheckpoint", log),
        ];
        for (pragma, wanted) in pragmas {
            let sql = format!("PRAGMA {pragma}");
            let found: i64 =
                calibration.rows.connection.query_row(&sql, [], |row| row.get(0)).expect(pragma);
            assert_eq!(found, wanted, "{pragma}");
        }
    }
}
