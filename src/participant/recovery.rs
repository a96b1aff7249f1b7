//! Recovery of a board whose files are damaged, missing or inconsistent: what is sound is used,
//! what is not is moved aside, and what was lost is reported, in the first reply and in
//! `recovery.log`.
//!
//! The journal is replayed on the newest sound state: the state file's, a snapshot's, or the empty
//! one. A journal that is not sound from its first event to its last is kept as
//! `journal.db.quarantined-N`, and a new one begins after the last event that was reached; if only
//! its events are sound, the new one has them all. What would lose something that somebody may
//! still have is not decided for the user: not while other processes live on the board, not when a
//! sound journal ends before the state file, and not when nothing is sound. `callboard doctor
//! --repair` does it then.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;

use super::error::{BoardError, io_error};
use super::{directory, presence};
use crate::journal::sqlite::{self, SqliteJournal};
use crate::journal::{BatchId, JournalError};
use crate::snapshot::{DIRECTORY as SNAPSHOTS, Snapshots};
use crate::state::document::{Document, SCHEMA_VERSION};
use crate::state::event::Event;
use crate::state::id::ParticipantId;
use crate::state::time::Timestamp;
use crate::state::{Envelope, State};
use crate::statefile::{self, Found, Home, LoadError, Projection};

/// A file with one line for each recovery, oldest first.
pub const LOG: &str = "recovery.log";
/// Prefix, before the time, of the name of a directory into which a restore has moved a board.
pub const REPLACED: &str = "replaced-";
/// Most bytes of that file that are read: more lines than anybody wants to see.
const LARGEST_LOG: u64 = 16 << 20;

/// In whose name a recovery or a new board is recorded, and when.
#[derive(Clone, Debug)]
pub struct Author {
    pub participant: ParticipantId,
    pub now: Timestamp,
}

impl Author {
    fn envelope(&self) -> Envelope {
        Envelope {
            at: self.now,
            participant: self.participant.clone(),
            actor: None,
            idempotency: None,
        }
    }
}

/// What a recovery would do, and what would be lost.
pub struct Plan {
    dir: PathBuf,
    /// What is wrong; if nothing is, there is nothing to do.
    faults: Vec<String>,
    /// The newest sound state, and where it comes from.
    best: Option<(State, String)>,
    keeps_journal: bool,
    /// Whether the journal is rebuilt because its events are sound and the rest of its file is
    /// not.
    remakes_journal: bool,
    sets_file_aside: bool,
    /// Events that happened and are not in the best state.
    lost: Option<String>,
    /// What only the abandoned journal could tell.
    forgotten: Option<String>,
    /// Why a person must ask for this recovery, if so.
    consent: Option<BoardError>,
}

/// Finds out what is sound in `dir`. The caller holds the board's lock.
pub fn plan(dir: &Path) -> Result<Plan, BoardError> {
    let mut faults = Vec::new();
    directory::inspect_journal(dir)?;
    let journal = match SqliteJournal::open(dir) {
        Ok(journal) => Some(journal),
        Err(JournalError::NotFound { .. }) => {
            faults.push("there is no journal".to_owned());
            None
        }
        Err(error) if error.is_damage() => {
            faults.push(told(&error));
            None
        }
        Err(error) => return Err(error.into()),
    };
    let replayed = journal.as_ref().map(whole).transpose()?;
    let file = found(dir)?;
    let path = Home::of(dir).file();
    let board_id = match (&replayed, &file) {
        (Some(replayed), _) if replayed.state.seq() > 0 => {
            Some(replayed.state.board().board_id.clone())
        }
        (_, Some(Found::Sound(document))) => Some(document.board.board_id.clone()),
        _ => None,
    };
    let is_ours =
        |document: &Document| board_id.as_ref().is_none_or(|id| *id == document.board.board_id);
    let fits = |document: &Document| {
        is_ours(document) && journal.as_ref().is_none_or(|journal| is_past_of(journal, document))
    };
    let (mut states, mut sets_file_aside, mut claimed) = (Vec::new(), false, None);
    match file {
        None => {}
        Some(Found::Sound(document)) if fits(&document) => {
            states.push((*document, "the state file".to_owned()))
        }
        Some(Found::Sound(document)) if is_ours(&document) => {
            faults.push("the state file is of another history".to_owned());
            sets_file_aside = true;
        }
        Some(Found::Sound(_) | Found::Foreign { .. }) => {
            faults.push("the state file is another board's".to_owned());
            sets_file_aside = true;
        }
        Some(Found::Unsound { reason }) => {
            faults.push(format!("the state file is not what was written: {reason}"));
            sets_file_aside = true;
            claimed = statefile::seq_of(dir).ok().flatten().map(|head| head.seq);
        }
    }
    let shown = states.first().map(|(document, _)| document.board.seq);
    let mut plan = Plan {
        dir: dir.to_owned(),
        faults,
        best: None,
        keeps_journal: false,
        remakes_journal: false,
        sets_file_aside,
        lost: None,
        forgotten: None,
        consent: None,
    };
    // If the journal's end cannot be read, its replay has already found the fault.
    let head = match journal.as_ref().map(SqliteJournal::head).transpose() {
        Err(error) if error.is_damage() => None,
        head => head?,
    };
    if let Some(replayed) = replayed {
        match (replayed.fault, head) {
            (None, Some(head)) if shown.is_none_or(|file| file <= head) => {
                plan.keeps_journal = true;
                let flaw = journal.as_ref().map(flaw).transpose()?.flatten();
                plan.remakes_journal = flaw.is_some();
                plan.faults.extend(flaw);
                plan.best = Some((replayed.state, "the journal".to_owned()));
                return Ok(plan);
            }
            (None, Some(head)) => {
                let file = shown.unwrap_or_default();
                plan.faults.push(format!(
                    "the journal ends at event {head} and the state file is at event {file}"
                ));
                plan.consent = Some(BoardError::JournalBehind { path: path.clone(), file, head });
            }
            (fault, _) => plan
                .faults
                .push(fault.unwrap_or_else(|| "the journal's end cannot be read".to_owned())),
        }
        let is_any = replayed.state.seq() > 0;
        plan.best =
            is_any.then(|| (replayed.state, "the sound beginning of the journal".to_owned()));
    }
    states.extend(earlier(dir).into_iter().filter(|(document, _)| fits(document)));
    states.sort_by_key(|(document, _)| std::cmp::Reverse(document.board.seq));
    for (document, source) in states {
        let mut reached = Replayed { state: State::from_document(document), fault: None };
        if let Some(journal) = &journal {
            reached = reached.on(journal)?;
        }
        if plan.best.as_ref().is_none_or(|(best, _)| best.seq() < reached.state.seq()) {
            plan.best = Some((reached.state, source));
        }
    }
    let base = journal.as_ref().map_or(0, SqliteJournal::base);
    plan.forgotten = plan.best.as_ref().and_then(|(best, _)| forgotten(best, base));
    plan.lost = match &plan.best {
        None => {
            let reason = plan.faults.join("; ");
            plan.consent = Some(BoardError::NothingSound { path, reason });
            Some("everything".to_owned())
        }
        Some((best, _)) => match head.into_iter().chain(claimed).max() {
            Some(last) if last == best.seq() + 1 => Some(format!("event {last}")),
            Some(last) if last > best.seq() => Some(format!("events {} to {last}", best.seq() + 1)),
            // Everything acknowledged is in the state file.
            _ if shown.is_some_and(|file| file <= best.seq())
                || head.is_some_and(|head| head == best.seq()) =>
            {
                None
            }
            _ => Some(format!("what may have happened after event {}", best.seq())),
        },
    };
    Ok(plan)
}

impl Plan {
    pub fn has_nothing_to_do(&self) -> bool {
        self.faults.is_empty()
    }

    /// What would be done, step by step, in words.
    pub fn steps(&self) -> Vec<String> {
        let mut steps = Vec::new();
        // If nothing is sound, the file is only moved into the backup.
        if self.sets_file_aside && self.best.is_some() {
            steps.push(format!("keep {0} as {0}.quarantined-N", Home::of(&self.dir).name()));
        }
        match &self.best {
            Some((state, source)) if self.keeps_journal => {
                if self.remakes_journal {
                    steps.push(format!("keep {0} as {0}.quarantined-N", sqlite::FILE_NAME));
                    steps.push(format!("make {} anew from all its events", sqlite::FILE_NAME));
                }
                let name = Home::of(&self.dir);
                steps.push(format!(
                    "write {} anew from {source}, at event {}",
                    name.name(),
                    state.seq()
                ));
            }
            Some((state, source)) => {
                if self.dir.join(sqlite::FILE_NAME).exists() {
                    steps.push(format!("keep {0} as {0}.quarantined-N", sqlite::FILE_NAME));
                }
                let (seq, tasks) = (state.seq(), state.live_tasks());
                steps.push(format!(
                    "begin a new journal behind event {seq} from {source}, with {tasks} tasks"
                ));
            }
            None => steps.push(
                "move what is left into the backup; the next writing call starts a new board"
                    .to_owned(),
            ),
        }
        steps
    }

    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// What cannot be recovered, in words.
    pub fn lost(&self) -> String {
        let lost: Vec<_> = self.lost.iter().chain(&self.forgotten).map(String::as_str).collect();
        if lost.is_empty() { "nothing".to_owned() } else { lost.join("; ") }
    }

    pub fn finds_nothing(&self) -> bool {
        self.best.is_none()
    }

    /// Carries the plan out, and returns what was done. If the process ends in the middle, the next
    /// one completes it.
    pub fn carry_out(self, author: &Author) -> Result<String, BoardError> {
        let (dir, lost) = (&self.dir, self.lost());
        let failed = |action: &str| {
            let action = action.to_owned();
            move |source| io_error(&action, dir, source)
        };
        let Some((mut state, source)) = self.best else {
            return Err(BoardError::NothingSound {
                path: Home::of(dir).file(),
                reason: self.faults.join("; "),
            });
        };
        if self.keeps_journal {
            // A process that was killed may not have synced the log, and a state file is a promise
            // that this was done.
            sqlite::sync_log(dir)?;
        }
        let mut kept = Vec::new();
        if self.sets_file_aside {
            kept.push(
                statefile::set_aside(dir, "quarantined")
                    .map_err(failed("cannot move the state file aside in"))?,
            );
        }
        let safe = state.seq();
        let mut projection = Projection::new(dir);
        projection.write(&mut state).map_err(failed("cannot write the state file in"))?;
        if self.remakes_journal {
            kept.extend(SqliteJournal::open(dir)?.remake(dir)?);
        }
        if !self.keeps_journal {
            // Until the new journal is there, only the state file tells what was on the board.
            make_durable(dir).map_err(failed("cannot sync the state file in"))?;
            kept.extend(
                sqlite::set_aside(dir).map_err(failed("cannot move the journal aside in"))?,
            );
            begin_behind(dir, &mut state, author)?;
            projection.write(&mut state).map_err(failed("cannot write the state file in"))?;
        }
        let kept: Vec<_> = kept.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        let report = format!(
            "the board was recovered because {}; it goes on from {source}: the state up to event \
             {safe} is safe; lost: {lost}{}",
            self.faults.join("; "),
            if kept.is_empty() {
                String::new()
            } else {
                format!("; kept as evidence: {}", kept.join(", "))
            },
        );
        let report = if self.keeps_journal {
            report
        } else {
            format!("{report}; idempotency keys are forgotten")
        };
        log(dir, author, &report);
        Ok(report)
    }
}

fn make_durable(dir: &Path) -> io::Result<()> {
    File::open(Home::of(dir).file())?.sync_all()?;
    File::open(dir)?.sync_all()
}

/// Makes a journal whose first event imports `state`. The board keeps its id, and `seq` goes on
/// from where it was.
pub fn begin_behind(
    dir: &Path,
    state: &mut State,
    author: &Author,
) -> Result<SqliteJournal, BoardError> {
    let document = Box::new(state.to_document());
    let board_id = document.board.board_id.clone();
    let first = state
        .record(Event::Imported { source: "recovery".to_owned(), document }, &author.envelope())?;
    state.settle();
    let batch = BatchId::new(format!("{}/recovery-{}", author.participant, first.seq));
    Ok(SqliteJournal::create_with(dir, &board_id, &batch, &[first])?)
}

/// What a journal that begins after `state` lacks of the one that began after event `base`, in
/// words.
pub fn forgotten(state: &State, base: u64) -> Option<String> {
    let stubs = state.retired().filter(|(_, stub)| stub.seq > base && !stub.run).count();
    // The import with which a later journal begins says of earlier ones that they are lost.
    let dropped = if base == 0 { state.board().dropped_stubs } else { 0 };
    let results = stubs as u64 + dropped;
    let with = match results {
        0 => String::new(),
        1 => " and the result of 1 retired task".to_owned(),
        count => format!(" and the results of {count} retired tasks"),
    };
    (state.seq() > base).then(|| format!("the history before event {}{with}", state.seq() + 1))
}

/// Makes the repairs for which nobody need be asked; `None` when nothing was wrong. The caller
/// holds the board's lock.
pub fn mend(dir: &Path, author: &Author) -> Result<Option<String>, BoardError> {
    let plan = plan(dir)?;
    if plan.has_nothing_to_do() {
        return Ok(None);
    }
    if let Some(lost) = &plan.lost
        && presence::may_anyone_know_more(dir, &author.participant)
    {
        return Err(BoardError::OthersKnowMore {
            lost: lost.clone(),
            reason: plan.faults.join("; "),
        });
    }
    if let Some(refused) = plan.consent {
        return Err(refused);
    }
    plan.carry_out(author).map(Some)
}

/// Loads the state file where there was a board before: anything but a regular file counts as
/// unsound.
pub fn found(dir: &Path) -> Result<Option<Found>, LoadError> {
    found_by(dir, || statefile::load(dir))
}

pub fn found_by(
    dir: &Path,
    load: impl FnOnce() -> Result<Option<Found>, LoadError>,
) -> Result<Option<Found>, LoadError> {
    if statefile::displaced::is_irregular(&Home::of(dir).file()) {
        return Ok(Some(Found::Unsound { reason: "it is not a regular file".to_owned() }));
    }
    load()
}

/// The error without its advice, because recovery is what it advises.
pub fn told(error: &JournalError) -> String {
    match error {
        JournalError::Damaged { seq: 0, detail } => format!("the journal is damaged: {detail}"),
        JournalError::Damaged { seq, detail } => {
            format!("event {seq} of the journal is damaged: {detail}")
        }
        JournalError::Unreadable { source, .. } | JournalError::Sqlite(source) => {
            format!("the journal cannot be read: {source}")
        }
        other => other.to_string(),
    }
}

/// What is damaged in a journal whose events are sound, if anything.
fn flaw(journal: &SqliteJournal) -> Result<Option<String>, BoardError> {
    match journal.check() {
        Err(error) if error.is_damage() => {
            Ok(Some(format!("{}; its events are sound", told(&error))))
        }
        checked => Ok(checked.map(|()| None)?),
    }
}

struct Replayed {
    state: State,
    /// Why the journal could not be followed to its end.
    fault: Option<String>,
}

impl Replayed {
    fn on(mut self, journal: &SqliteJournal) -> Result<Self, BoardError> {
        if journal.head().is_ok_and(|head| head <= self.state.seq()) {
            return Ok(self);
        }
        let (state, fault) = (&mut self.state, &mut self.fault);
        let read = journal.read_sound(state.seq(), |recorded| {
            *fault = state.apply(recorded).err().map(|error| error.to_string());
            state.settle();
            fault.is_none()
        });
        match read {
            Err(error) if error.is_damage() => self.fault = Some(told(&error)),
            read => read?,
        }
        Ok(self)
    }
}

/// Replays the journal from its first event, and checks that its events are of the board that it
/// names.
fn whole(journal: &SqliteJournal) -> Result<Replayed, BoardError> {
    let mut replayed = Replayed { state: State::new(), fault: None }.on(journal)?;
    let (says, holds) = (journal.board_id()?, &replayed.state.board().board_id);
    if replayed.fault.is_none() && says.as_ref() != Some(holds) {
        replayed.fault = Some(format!(
            "the journal says that it is of board {says:?} and its events are of {holds}"
        ));
    }
    Ok(replayed)
}

/// The sound states other than the state file's (the spare's and the snapshots'), each with its
/// name.
pub fn earlier(dir: &Path) -> Vec<(Document, String)> {
    let spare = match statefile::load_file(&dir.join(statefile::SPARE)) {
        Ok(Some(Found::Sound(document))) => {
            Some((*document, format!("the state file before, {}", statefile::SPARE)))
        }
        _ => None,
    };
    spare.into_iter().chain(snapshots(dir)).collect()
}

/// The sound snapshots, newest first, each with its name.
fn snapshots(dir: &Path) -> Vec<(Document, String)> {
    let Ok(snapshots) = Snapshots::of(dir) else { return Vec::new() };
    let names = snapshots.names().unwrap_or_default();
    let loaded =
        names.into_iter().rev().filter_map(|name| Some((snapshots.load(&name).ok()?.state, name)));
    let known = loaded.filter(|(document, _)| document.board.schema_version <= SCHEMA_VERSION);
    known.map(|(document, name)| (document, format!("snapshot {name}"))).collect()
}

/// Whether the state is in this journal's past, as far as the journal can be read there. After a
/// loss of events, another history may have the same numbers.
fn is_past_of(journal: &SqliteJournal, document: &Document) -> bool {
    let seq = document.board.seq;
    let Some(before) = seq.checked_sub(1).filter(|before| *before >= journal.base()) else {
        return true;
    };
    let there =
        journal.read_from(before, 1).ok().and_then(|events| events.first().map(|event| event.at));
    there.is_none_or(|at| at == document.board.last_activity)
}

fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(LARGEST_LOG).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Names of files that are evidence of an earlier board in `dir`, for when neither journal nor
/// state file is there.
pub fn evidence(dir: &Path) -> Vec<String> {
    let home = Home::of(dir);
    let is_left = |name: &str| {
        let marks = [".quarantined-", ".imported-", ".orphaned-", ".rejected-", ".put-back-"];
        let files = [home.name(), statefile::FILE_NAME, sqlite::FILE_NAME];
        let of_a_file = files.iter().any(|file| name.starts_with(file));
        name == statefile::SPARE
            || name.starts_with(REPLACED)
            || of_a_file && marks.iter().any(|mark| name.contains(mark))
    };
    let names = |dir: &Path| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let mut left: Vec<_> = names(dir).into_iter().filter(|name| is_left(name)).collect();
    let snapshots =
        names(&dir.join(SNAPSHOTS)).into_iter().filter(|name| name.starts_with("state-"));
    left.extend(snapshots.map(|name| format!("{SNAPSHOTS}/{name}")));
    left.sort();
    left
}

/// Reports of this process that its user has not been told.
static UNTOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes that the user is told `text`, which may contain reports.
pub fn was_told(text: &str) {
    let mut untold = UNTOLD.lock().unwrap_or_else(PoisonError::into_inner);
    untold.retain(|report| !text.contains(report.as_str()));
}

/// Reports that the user has not been told; the caller tells them.
pub fn untold() -> Vec<String> {
    std::mem::take(&mut UNTOLD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Logs the report and adds it to `recovery.log`, because nobody may read the reply.
pub fn log(dir: &Path, author: &Author, report: &str) {
    tracing::warn!("{report}");
    UNTOLD.lock().unwrap_or_else(PoisonError::into_inner).push(report.to_owned());
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(dir.join(LOG));
    let line = format!("{} {}\n", author.now, report.replace(char::is_control, " "));
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        tracing::warn!(%error, "the report could not be kept in {LOG}");
    }
}

/// The lines of the log, oldest first.
pub fn logged(dir: &Path) -> Vec<String> {
    let text = read_regular(&dir.join(LOG)).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}
