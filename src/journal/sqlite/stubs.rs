//! Where the tasks are whose stubs have left the state: a row for each, written with the event by
//! which its stub left, for as many tasks as were ever finished.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior, params};

use super::{Row, SqliteJournal};
use crate::journal::JournalError;
use crate::state::document::Undone;
use crate::state::id::TaskId;

/// `retired` is the `seq` of the event that retired the task, and `dropped` of the one by which its
/// stub left the state.
pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS dropped_stubs(
        task TEXT NOT NULL,
        dropped INTEGER NOT NULL,
        retired INTEGER NOT NULL,
        PRIMARY KEY(task, dropped)
    ) STRICT, WITHOUT ROWID;";

const KIND: &str = "stubs_dropped";

const IS_THERE: &str =
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'dropped_stubs'";

const WRITE: &str =
    "INSERT OR REPLACE INTO dropped_stubs(task, dropped, retired) VALUES (?1, ?2, ?3)";

const FIND: &str =
    "SELECT dropped, retired FROM dropped_stubs WHERE task = ?1 ORDER BY dropped DESC";

#[derive(serde::Deserialize)]
struct Body {
    stubs: BTreeMap<String, i64>,
}

/// Writes the rows that follow from an event.
pub(super) fn note(connection: &Connection, row: &Row) -> Result<(), rusqlite::Error> {
    if row.kind != KIND {
        return Ok(());
    }
    // An event that cannot be read is refused by its reader, who can say more.
    let Ok(body) = serde_json::from_str::<Body>(&row.body) else { return Ok(()) };
    let mut statement = connection.prepare_cached(WRITE)?;
    for (task, retired) in body.stubs {
        statement.execute(params![task, row.seq.cast_signed(), retired])?;
    }
    Ok(())
}

/// Writes the rows anew that follow from events which were changed.
pub(super) fn note_anew<'r>(
    connection: &Connection,
    rows: impl Iterator<Item = &'r Row>,
) -> Result<(), rusqlite::Error> {
    for row in rows.filter(|row| row.kind == KIND) {
        let seq = row.seq.cast_signed();
        connection.execute("DELETE FROM dropped_stubs WHERE dropped = ?1", [seq])?;
        note(connection, row)?;
    }
    Ok(())
}

impl SqliteJournal {
    /// Makes the table in a journal of a version that dropped no stubs.
    pub(super) fn bring_up_stubs(&mut self) -> Result<(), JournalError> {
        if !self.connection.prepare_cached(IS_THERE)?.exists([])? {
            let transaction =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(SCHEMA)?;
            transaction.commit()?;
        }
        Ok(())
    }

    /// The `seq` of the event that retired the task, if its stub has left the state by an event
    /// that no restore has undone.
    pub(crate) fn retired_at(
        &self,
        id: &TaskId,
        undone: &[Undone],
    ) -> Result<Option<u64>, JournalError> {
        let mut statement = self.connection.prepare_cached(FIND)?;
        let mut rows = statement.query([id.as_str()])?;
        while let Some(row) = rows.next()? {
            let dropped = row.get::<_, i64>(0)?.cast_unsigned();
            if !undone.iter().any(|range| range.contains(dropped)) {
                return Ok(Some(row.get::<_, i64>(1)?.cast_unsigned()));
            }
        }
        Ok(None)
    }
}
