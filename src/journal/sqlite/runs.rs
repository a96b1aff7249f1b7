//! Runs, sessions and attempts as tables, for queries in SQL. They are written in the transaction
//! of the events that they follow from, and can be rebuilt from all events at any time. Times are
//! RFC 3339.

use rusqlite::{Connection, TransactionBehavior, params};

use super::{SqliteJournal, Transaction};
use crate::journal::JournalError;
use crate::state::State;
use crate::state::event::Event;
use crate::state::run::RunStatus;
use crate::state::run::rows::{Rows, RunRow, SessionRow, outcome_name};
use crate::state::task::Attempt;

/// The tables, each column with what is in it: `schemas/tables.md` has the same.
pub const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS sessions(
        session_id TEXT PRIMARY KEY, -- Id of the session
        parent_session_id TEXT REFERENCES sessions DEFERRABLE INITIALLY DEFERRED, -- Session that started it
        agent_name TEXT, -- Name of the agent that its runner starts
        project_dir TEXT, -- Directory in which it works
        execution_mode TEXT NOT NULL, -- How its end is told: sync, async_poll or async_callback
        hostname TEXT, -- Host on which it continues, once a runner has taken a run of it
        profile TEXT, -- Profile of the runner that it continues with
        status TEXT, -- Status of its newest run
        created_at TEXT NOT NULL -- When it was created
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS sessions_parent ON sessions(parent_session_id);
    CREATE TABLE IF NOT EXISTS runs(
        run_id TEXT PRIMARY KEY, -- Id of the run
        session_id TEXT NOT NULL REFERENCES sessions DEFERRABLE INITIALLY DEFERRED, -- Its session
        type TEXT NOT NULL, -- start_session or resume_session
        agent_name TEXT, -- Name of the agent that its runner starts
        prompt TEXT NOT NULL, -- What is to be done
        project_dir TEXT, -- Directory in which it works
        parent_session_id TEXT, -- Session that started its session
        execution_mode TEXT NOT NULL, -- How its end is told: sync, async_poll or async_callback
        demands TEXT NOT NULL, -- What a runner must have, as a JSON object
        status TEXT NOT NULL, -- pending, claimed, running, stopping, completed, failed or stopped
        runner_id TEXT, -- Agent that holds it, or held it last
        error TEXT, -- Why it failed
        created_at TEXT NOT NULL, -- When it was created
        claimed_at TEXT, -- When its last attempt was claimed
        started_at TEXT, -- When its runner reported that it had started
        completed_at TEXT, -- When it ended, however it ended
        timeout_at TEXT -- When its open attempt is over or, while it is pending, its wait for a runner
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS runs_session ON runs(session_id);
    CREATE INDEX IF NOT EXISTS runs_status ON runs(status);
    CREATE INDEX IF NOT EXISTS runs_runner ON runs(runner_id);
    CREATE INDEX IF NOT EXISTS runs_timeout ON runs(timeout_at);
    CREATE TABLE IF NOT EXISTS attempts(
        run_id TEXT NOT NULL REFERENCES runs DEFERRABLE INITIALLY DEFERRED, -- Its run
        number INTEGER NOT NULL, -- Number within the run, from 1
        runner_id TEXT NOT NULL, -- Agent that made it
        claimed_at TEXT NOT NULL, -- When it was claimed
        started_at TEXT, -- When its runner reported that it had started
        ended_at TEXT, -- When it ended
        outcome TEXT, -- done, failed, expired, released or cancelled; null while it is open
        error_category TEXT, -- timeout, no_match, … as the runner or the board says it
        error TEXT, -- Message of its failure
        note TEXT, -- Newest note of its runner
        PRIMARY KEY(run_id, number)
    ) STRICT, WITHOUT ROWID;";

const SESSION: &str = "
    INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT(session_id) DO UPDATE SET execution_mode = ?5, hostname = ?6, profile = ?7, status \
                       = ?8
    WHERE (execution_mode, hostname, profile, status) IS NOT (?5, ?6, ?7, ?8)";

const RUN: &str = "
    INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, \
                   ?16, ?17)
    ON CONFLICT(run_id) DO UPDATE SET
        demands = ?9, status = ?10, runner_id = ?11, error = ?12, claimed_at = ?14, started_at = \
                   ?15, completed_at = ?16,
        timeout_at = ?17
    WHERE (demands, status, runner_id, error, claimed_at, started_at, completed_at, timeout_at)
        IS NOT (?9, ?10, ?11, ?12, ?14, ?15, ?16, ?17)";

const ATTEMPT: &str = "
    INSERT INTO attempts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT(run_id, number) DO UPDATE SET
        started_at = ?5, ended_at = ?6, outcome = ?7, error_category = ?8, error = ?9, note = ?10
    WHERE (started_at, ended_at, outcome, error_category, error, note) IS NOT (?5, ?6, ?7, ?8, ?9, \
                       ?10)";

/// Looks for the newest of the things that `SCHEMA` makes.
const IS_THERE: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = 'runs_timeout'";

/// Looks for runs in the events and in the table, because the events of runs may have moved to the
/// archive.
const HAS_RUNS: &str = "
    SELECT 1 FROM events WHERE kind = 'run_created' OR kind IN ('imported', 'state_restored', 'purged')
        AND COALESCE(json_extract(body, '$.document.sessions'), '{}') <> '{}'
    UNION ALL SELECT 1 FROM runs";

/// The key that is set in `meta` when events came without their rows.
const STALE: &str = "runs_stale";

/// The rows of all tables, in order.
pub(super) type Dump = Vec<Vec<Option<String>>>;

/// Writes what a batch has changed to the tables.
pub(super) fn write(connection: &Connection, rows: &Rows) -> Result<(), rusqlite::Error> {
    if let Some(retired) = &rows.anew {
        let mut statement = connection.prepare("SELECT run_id FROM runs")?;
        let all = statement
            .query_map([], |row| row.get::<_, String>(0))?
            .collect::<Result<Vec<_>, _>>()?;
        for id in all.iter().filter(|id| !retired.contains(id.as_str())) {
            connection.execute("DELETE FROM attempts WHERE run_id = ?1", [id])?;
            connection.execute("DELETE FROM runs WHERE run_id = ?1", [id])?;
        }
        connection.execute(
            "DELETE FROM sessions WHERE session_id NOT IN (SELECT session_id FROM runs)",
            [],
        )?;
    }
    for row in &rows.sessions {
        write_session(connection, row)?;
    }
    for row in &rows.runs {
        write_run(connection, row)?;
        for attempt in &row.attempts {
            write_attempt(connection, row, attempt)?;
        }
    }
    Ok(())
}

fn write_session(connection: &Connection, row: &SessionRow) -> Result<(), rusqlite::Error> {
    let session = &row.session;
    connection.prepare_cached(SESSION)?.execute(params![
        session.id.as_str(),
        session.parent_session_id.as_ref().map(|id| id.as_str()),
        session.agent_name,
        session.project_dir,
        session.execution_mode.as_str(),
        session.affinity.hostname,
        session.affinity.profile,
        row.status.map(RunStatus::as_str),
        session.created_at.to_string(),
    ])?;
    Ok(())
}

fn write_run(connection: &Connection, row: &RunRow) -> Result<(), rusqlite::Error> {
    let Some(run) = row.run() else { return Ok(()) };
    let task = &row.task;
    connection.prepare_cached(RUN)?.execute(params![
        task.id.as_str(),
        run.session_id.as_str(),
        run.kind.as_str(),
        run.agent_name,
        task.description,
        run.project_dir,
        row.parent_session_id.as_ref().map(|id| id.as_str()),
        run.execution_mode.as_str(),
        serde_json::to_string(&*task.demands).unwrap_or_default(),
        RunStatus::of(task).as_str(),
        task.attempts.last().map(|attempt| attempt.agent.as_str()),
        task.result.as_ref().and_then(|result| result.error.as_deref()),
        task.created_at.to_string(),
        task.claimed_at.map(|at| at.to_string()),
        task.started_at.map(|at| at.to_string()),
        task.completed_at.map(|at| at.to_string()),
        row.timeout_at(),
    ])?;
    Ok(())
}

fn write_attempt(
    connection: &Connection,
    row: &RunRow,
    attempt: &Attempt,
) -> Result<(), rusqlite::Error> {
    let error = attempt.error.as_ref();
    connection.prepare_cached(ATTEMPT)?.execute(params![
        row.task.id.as_str(),
        attempt.number,
        attempt.agent.as_str(),
        attempt.claimed_at.to_string(),
        attempt.started_at.map(|at| at.to_string()),
        attempt.ended_at.map(|at| at.to_string()),
        attempt.outcome.map(outcome_name),
        error.map(|error| error.category.as_str()),
        error.map(|error| error.message.as_str()),
        attempt.note,
    ])?;
    Ok(())
}

impl SqliteJournal {
    /// Makes the tables in a journal of a version that did not have all of this, and rebuilds them
    /// there and in one whose events came without their rows.
    pub(super) fn bring_up_runs(&mut self) -> Result<(), JournalError> {
        let is_there = self.connection.prepare_cached(IS_THERE)?.exists([])?;
        if !is_there {
            let transaction =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(SCHEMA)?;
            // Earlier versions wrote no deadline of a run that waits for a runner.
            mark_stale(&transaction)?;
            transaction.commit()?;
        }
        if self.meta(STALE)?.is_none() {
            return Ok(());
        }
        let transaction = Transaction::begin(&self.connection)?;
        // Another process may have done it meanwhile.
        if self.meta(STALE)?.is_some() { self.rebuild_in(transaction) } else { Ok(()) }
    }

    /// Rebuilds the tables from all events.
    pub fn rebuild_runs(&self) -> Result<(), JournalError> {
        self.rebuild_in(Transaction::begin(&self.connection)?)
    }

    /// Rebuilds the tables from all events that are there once the transaction has begun, because
    /// others may have appended while it was waited for.
    fn rebuild_in(&self, transaction: Transaction<'_>) -> Result<(), JournalError> {
        let (mut state, mut failed) = (State::new(), None);
        self.connection
            .execute_batch("DELETE FROM attempts; DELETE FROM runs; DELETE FROM sessions;")?;
        self.read_sound(self.base(), |recorded| {
            let savepoint = state.savepoint();
            let applied = state.apply(recorded).is_ok();
            if applied {
                let rows = match recorded.event {
                    // The imported state does not come from one before, so nothing tells what has
                    // changed.
                    Event::Imported { .. } => state.all_run_rows(),
                    _ => state.run_rows(savepoint),
                };
                failed = write(&self.connection, &rows).err();
                state.settle();
            }
            applied && failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        self.connection.execute("DELETE FROM meta WHERE key = ?1", [STALE])?;
        transaction.commit()?;
        Ok(())
    }

    /// The content of the tables, each row as texts.
    pub fn dump_runs(&self) -> Result<Dump, JournalError> {
        let mut dump = Vec::new();
        for table in ["sessions", "runs", "attempts"] {
            let mut statement =
                self.connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2"))?;
            let columns = statement.column_count();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let cells = (0..columns).map(|column| {
                    let value: rusqlite::types::Value = row.get(column)?;
                    Ok(match value {
                        rusqlite::types::Value::Null => None,
                        rusqlite::types::Value::Integer(number) => Some(number.to_string()),
                        rusqlite::types::Value::Text(text) => Some(text),
                        other => Some(format!("{other:?}")),
                    })
                });
                dump.push(cells.collect::<Result<Vec<_>, rusqlite::Error>>()?);
            }
        }
        Ok(dump)
    }
}

/// Notes that events are written whose rows nobody knows: whoever opens the journal next makes
/// those.
pub(super) fn mark_stale(connection: &Connection) -> Result<(), rusqlite::Error> {
    if connection.prepare(HAS_RUNS)?.exists([])? {
        connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?1, '1')", [STALE])?;
    }
    Ok(())
}
