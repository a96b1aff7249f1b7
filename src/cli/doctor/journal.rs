//! The journal, examined in a copy: SQLite would create files beside the one that it opens.

use std::collections::BTreeMap;
use std::env;
use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::super::print::off_in_words;
use super::super::scratch;
use super::Check;
use crate::bundle::{self, Bundles};
use crate::clock::{Clock, SystemClock};
use crate::http::tokens;
use crate::journal::JournalError;
use crate::journal::sqlite::{FILE_NAME, SqliteJournal};
use crate::ops::health_check::WrongClock;
use crate::participant::recovery::told;
use crate::participant::{board_time, living};
use crate::state::event::{Event, PurgedRow, Recorded};
use crate::state::id::TaskId;
use crate::state::limit;
use crate::state::time::{SECOND, Timestamp};
use crate::state::{ApplyError, State};

const NAME: &str = "journal";
const READ_AT_ONCE: usize = 4_096;
/// Most tasks that are named for one kind of problem.
const NAMED: usize = 5;
const KEEP: &str = "the next call goes on from the state file if that is sound, and keeps the \
                    journal as *.quarantined-N; `callboard doctor --repair --dry-run` says what \
                    would be done and lost";
const UNNOTICED: &str = "calls go on from the state file as long as none needs that event; what \
                         reads the past fails there. To repair it loses the history: `callboard \
                         doctor --repair --dry-run` says what";

const REMAKE: &str = "its events are sound: `callboard doctor --repair` makes the journal anew \
                      from them and loses nothing";

pub(super) struct Copy {
    dir: TempDir,
    bytes: u64,
}

/// What the examination of the journal showed.
pub(super) enum Examined {
    None,
    Unreadable,
    Sound { board_id: Option<String>, head: u64 },
}

/// Copies the journal. The caller holds the lock. The log is copied first: a checkpoint meanwhile
/// only moves its content to the database, so a log with a newer database is just as good.
pub(super) fn copy(dir: &Path) -> io::Result<Option<Copy>> {
    let temporary = scratch::private("callboard-doctor-", &env::temp_dir())?;
    let mut bytes = 0;
    for (name, is_journal) in [(format!("{FILE_NAME}-wal"), false), (FILE_NAME.to_owned(), true)] {
        let to = temporary.path().join(&name);
        let copied = regular(&dir.join(&name)).and_then(|path| std::fs::copy(path, &to));
        // The copy must be writable, even if the original is not.
        match copied.and_then(|size| {
            std::fs::set_permissions(&to, Permissions::from_mode(0o600)).map(|()| size)
        }) {
            Ok(size) => bytes += size,
            Err(error) if error.kind() == ErrorKind::NotFound && is_journal => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(Copy { dir: temporary, bytes }))
}

fn regular(path: &Path) -> io::Result<PathBuf> {
    if std::fs::symlink_metadata(path)?.is_file() {
        Ok(path.to_owned())
    } else {
        Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("{} is not a regular file", path.display()),
        ))
    }
}

/// Examines the copy; `file` is the event that the state file claims to show.
pub(super) fn examine(
    dir: &Path,
    copied: io::Result<Option<Copy>>,
    file: Option<u64>,
) -> (Vec<Check>, Examined) {
    let copy = match copied {
        Ok(Some(copy)) => copy,
        Ok(None) => {
            return (
                vec![Check::ok(NAME, "none; the first writing call makes it")],
                Examined::None,
            );
        }
        Err(error) => {
            let fix = format!(
                "see to the permissions in {} and the space for temporary files",
                dir.display()
            );
            return (
                vec![Check::fail(NAME, format!("cannot be copied: {error}"), fix)],
                Examined::Unreadable,
            );
        }
    };
    match read(&copy) {
        Ok(found) => {
            let purged = match found.purged.len() {
                0 => String::new(),
                purged => format!(", a text was purged from {purged} of them"),
            };
            let text = format!(
                "{} events in {}, hash chain verified{purged}",
                found.head,
                size(copy.bytes)
            );
            let mut checks = vec![Check::ok(NAME, text), replay(&found)];
            checks.extend(tombstones(&found));
            checks.extend(found.replayed.as_ref().ok().map(graph));
            checks.extend(found.replayed.as_ref().ok().map(|state| room(dir, state)));
            checks.extend(found.checked.as_ref().err().map(flaw));
            checks.extend(tables(&copy));
            checks.push(clock(dir, found.last));
            (checks, Examined::Sound { board_id: found.board_id, head: found.head })
        }
        Err(error) => (vec![fault(error, file)], Examined::Unreadable),
    }
}

/// Checks that the tables of runs match the events. None if the board has no runs.
fn tables(copy: &Copy) -> Option<Check> {
    const NAME: &str = "runs";
    let rebuilt = SqliteJournal::open(copy.dir.path()).and_then(|journal| {
        let before = journal.dump_runs()?;
        journal.rebuild_runs()?;
        Ok((before, journal.dump_runs()?))
    });
    match rebuilt {
        Ok((before, after)) if before.is_empty() && after.is_empty() => None,
        Ok((before, after)) if before == after => Some(Check::ok(
            NAME,
            format!("{} rows of runs, sessions and attempts, as the events say", after.len()),
        )),
        Ok(_) => {
            let fix = "`callboard doctor --repair` makes them anew from the events; callboard \
                       itself reads only those";
            Some(Check::warn(NAME, "the tables of runs are not what the events say", fix))
        }
        Err(error) => {
            let fix = "nothing reads them but people; see to the space for temporary files, and \
                       run this again";
            Some(Check::warn(NAME, format!("the tables of runs cannot be made anew: {error}"), fix))
        }
    }
}

struct Found {
    board_id: Option<String>,
    head: u64,
    last: Option<Timestamp>,
    replayed: Result<State, ApplyError>,
    /// The rows that were purged, as the journal has them, and as its events say.
    purged: Vec<PurgedRow>,
    purges: BTreeMap<u64, String>,
    /// Result of checking the rest of the file.
    checked: Result<(), JournalError>,
}

fn read(copy: &Copy) -> Result<Found, JournalError> {
    let journal = SqliteJournal::open(copy.dir.path())?;
    let board_id = journal.board_id()?;
    let mut found = Found {
        board_id,
        head: 0,
        last: None,
        replayed: Ok(State::new()),
        purged: journal.purged()?,
        purges: BTreeMap::new(),
        checked: Ok(()),
    };
    loop {
        let events = journal.read_from(found.head, READ_AT_ONCE)?;
        let Some(last) = events.last() else {
            found.checked = journal.check();
            return Ok(found);
        };
        (found.head, found.last) = (last.seq, Some(last.at));
        for recorded in &events {
            if let Event::Purged { rows, .. } = &recorded.event {
                found.purges.extend(rows.iter().map(|row| (row.seq, row.sha256.clone())));
            }
        }
        found.replayed = found.replayed.and_then(|state| replayed(state, &events));
    }
}

fn replayed(mut state: State, events: &[Recorded]) -> Result<State, ApplyError> {
    for recorded in events {
        state.apply(recorded)?;
        state.settle();
    }
    Ok(state)
}

/// Checks that the events of purges say the same of the purged rows as the journal does. None if
/// they do.
fn tombstones(found: &Found) -> Option<Check> {
    let is_stray = |row: &&PurgedRow| found.purges.get(&row.seq) != Some(&row.sha256);
    let stray = found.purged.iter().find(is_stray)?;
    Some(Check::fail(
        "purged events",
        format!("no purge says what event {} holds now; it was changed since", stray.seq),
        KEEP,
    ))
}

fn flaw(error: &JournalError) -> Check {
    const NAME: &str = "journal file";
    if error.is_damage() {
        Check::fail(NAME, told(error), REMAKE)
    } else {
        Check::fail(NAME, "cannot be examined", error.to_string())
    }
}

/// Checks that the events can be replayed to a state that keeps the invariants.
fn replay(found: &Found) -> Check {
    const REPORT: &str =
        "this is a defect of callboard, please report it; the board goes on from the state file";
    match &found.replayed {
        Err(error) => Check::fail("replay", error.to_string(), REPORT),
        Ok(state) => match state.check().as_slice() {
            [] => {
                Check::ok("replay", format!("{} tasks, every invariant holds", state.live_tasks()))
            }
            wrong => Check::fail("replay", wrong.join("; "), REPORT),
        },
    }
}

/// Checks that no limit of the board is nearly reached.
fn room(dir: &Path, state: &State) -> Check {
    const NAME: &str = "room";
    let now = board_time(dir);
    let tokens = tokens::list(dir)
        .map_or(0, |tokens| tokens.iter().filter(|token| !token.is_over(now)).count());
    let tokens = limit::TOKENS.nearly(tokens);
    let scopes = limit::BUNDLE_SCOPES.nearly(Bundles::at(&dir.join(bundle::DIRECTORY)).scopes());
    let nearly: Vec<_> = state.nearly_full(now).into_iter().chain(tokens).chain(scopes).collect();
    match nearly.as_slice() {
        [] => Check::ok(NAME, "no limit of the board is near"),
        nearly => {
            let (full, ways): (Vec<_>, Vec<_>) =
                nearly.iter().filter_map(|one| one.split_once("; ")).unzip();
            Check::warn(NAME, full.join(", "), ways.join("; "))
        }
    }
}

/// Checks that no task waits for ever for others.
fn graph(state: &State) -> Check {
    const NAME: &str = "graph";
    let health = state.health(true);
    let list = |ids: &[TaskId]| ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" -> ");
    let lengths = health.cycle_lengths.iter().map(|length| format!(" (of {length} tasks)"));
    let cycles = health.cycles.iter().zip(lengths.chain(std::iter::repeat(String::new())));
    let cycles = cycles.map(|(cycle, length)| format!("a cycle{length}: {}", list(cycle)));
    let orphans = health
        .orphans
        .iter()
        .map(|one| format!("{} names {}, which does not exist", one.task, one.missing));
    let failed: Vec<_> = state.blocked_by_failure().collect();
    let waiting = (!failed.is_empty()).then(|| {
        let named: Vec<_> = failed.iter().take(NAMED).map(|task| task.id.as_str()).collect();
        format!(
            "{} tasks wait for what failed or was called off: {}",
            failed.len(),
            named.join(", ")
        )
    });
    let stuck = state.is_deadlocked().then(|| {
        let free = health
            .blockers
            .iter()
            .take(NAMED)
            .map(|one| format!("{} blocks {}: {}", one.task, one.blocks, one.free_by));
        format!("nothing can move; {}", free.collect::<Vec<_>>().join("; "))
    });
    let apart = state.apart().into_iter().take(NAMED).map(|(task, part)| {
        format!(
            "{} is {} although {} below it is open, as an earlier version left it: cancel_task {} \
             and create it anew, then it is a part",
            task.id, task.status, part.id, part.id
        )
    });
    let found: Vec<_> = cycles.chain(orphans).chain(waiting).chain(stuck).chain(apart).collect();
    if found.is_empty() {
        return Check::ok(
            NAME,
            format!(
                "{} ready, {} blocked, none for ever",
                state.ready_count(),
                state.blocked_count()
            ),
        );
    }
    Check::warn(
        NAME,
        found.join("; "),
        "`callboard status` has all, and `callboard explain TASK` says what would free one",
    )
}

/// Checks the clocks of this machine and of the living processes.
fn clock(dir: &Path, last: Option<Timestamp>) -> Check {
    let (now, own) = (board_time(dir).max(last.unwrap_or_default()), SystemClock.wall());
    let own = (own.millis() - now.millis()) / SECOND;
    let own = (own.abs() > 60).then(|| format!("this machine's clock is {}", off_in_words(own)));
    let others = WrongClock::of(&living::living(dir)).into_iter().map(|one| {
        let pid = one.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
        format!("that of process{pid} is {}", off_in_words(one.clock_ahead_seconds))
    });
    let found: Vec<_> = own.into_iter().chain(others).collect();
    if found.is_empty() {
        return Check::ok("clock", format!("{now}, as on the board"));
    }
    let fix = "set the clock; no deadline goes by it before this machine boots again, as the \
               board keeps its own time";
    Check::warn("clock", found.join("; "), fix)
}

fn fault(error: JournalError, file: Option<u64>) -> Check {
    match error {
        JournalError::Damaged { seq, detail } if seq > 0 && file.is_some_and(|file| seq < file) => {
            Check::fail(NAME, format!("event {seq} is damaged: {detail}"), UNNOTICED)
        }
        JournalError::Unreadable { source, .. } => {
            Check::fail(NAME, format!("not readable: {source}"), KEEP)
        }
        JournalError::Sqlite(source) => Check::fail(NAME, format!("not readable: {source}"), KEEP),
        JournalError::Damaged { seq, detail } => {
            Check::fail(NAME, format!("event {seq} is damaged: {detail}"), KEEP)
        }
        JournalError::NewerFormat { .. } | JournalError::UnknownKind { .. } => {
            Check::fail(NAME, "written by a newer callboard", error.to_string())
        }
        _ => Check::fail(NAME, "cannot be examined", error.to_string()),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
