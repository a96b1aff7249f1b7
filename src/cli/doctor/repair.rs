//! `callboard doctor --repair`: repairs a damaged board as far as possible, after a copy of its
//! journal, state file and snapshots, and removes unfinished files of killed processes.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use rustix::fs::OFlags;
use serde_json::json;

use super::super::scratch::{self, Scratch};
use super::super::{Declined, Outcome, Session, restore};
use crate::clock::{Clock, SystemClock};
use crate::journal::sqlite::{self, SqliteJournal};
use crate::participant;
use crate::participant::board_time;
use crate::participant::directory::{self, LOCKS};
use crate::participant::lock::BoardLock;
use crate::participant::presence;
use crate::participant::recovery::{self, Author, Plan};
use crate::snapshot;
use crate::state::id::ParticipantId;
use crate::statefile::Home;

pub(super) fn run(session: &Session, dry_run: bool) -> Outcome {
    let dir = session.dir();
    if !dir.is_dir() {
        bail!("there is nothing to repair in {}: it is not a directory", dir.display());
    }
    directory::inspect(dir)?;
    let lock = BoardLock::open(dir)?;
    participant::acquire(&lock)?;
    let repaired = with_lock(session, dir, dry_run);
    lock.release();
    repaired
}

fn with_lock(session: &Session, dir: &Path, dry_run: bool) -> Outcome {
    let leftovers = scratch::leftovers(dir);
    // SQLite would create files beside the journal that it opens.
    let mut copy = scratch::private("callboard-doctor-", &env::temp_dir())?;
    copy_board(dir, copy.path()).context("the board cannot be copied to be examined")?;
    let mut plan = recovery::plan(copy.path())?;
    let aside = restore::moved_aside(dir).filter(|_| plan.finds_nothing());
    if let Some(aside) = &aside {
        copy = scratch::private("callboard-doctor-", &env::temp_dir())?;
        copy_board(aside, copy.path())
            .context("the board that was moved aside cannot be copied to be examined")?;
        plan = recovery::plan(copy.path())?;
    }
    let nothing_left = plan.finds_nothing() && !has_remains(dir);
    if aside.is_none() && (plan.has_nothing_to_do() || nothing_left) {
        let tables = (plan.has_nothing_to_do() && tables_differ(copy.path())).then_some(TABLES);
        return mend(session, dir, &leftovers, tables, dry_run);
    }
    if !dry_run && presence::is_anyone_present(dir, None) {
        let refused = anyhow!(
            "processes live on the board, as `callboard doctor` lists; end them first: they may \
             know more than the files"
        );
        return Err(Declined(refused).into());
    }
    let backup = dir.join(format!("backup-{}", SystemClock.wall()));
    let (mut steps, mut faults) = (Vec::new(), Vec::new());
    if let Some(aside) = &aside {
        faults.push(
            "a restore has moved the board aside and was ended before it put another in its place"
                .to_owned(),
        );
        steps.push(format!("put back what is in {}", aside.display()));
    }
    steps.push(format!("copy journal, state file and snapshots to {}", backup.display()));
    if !plan.has_nothing_to_do() {
        steps.extend(plan.steps());
    }
    steps.extend(leftovers.iter().map(|path| removal(path)));
    faults.extend_from_slice(plan.faults());
    let lost = plan.lost();
    let report = if dry_run {
        None
    } else {
        Some(repair(dir, &backup, aside.as_deref(), plan.finds_nothing())?)
    };
    if !dry_run {
        remove(&leftovers)?;
    }
    let reply = json!({"repaired": !dry_run, "faults": faults, "steps": steps, "lost": lost, "report": report});
    session.show(&reply, |page| {
        faults.iter().for_each(|fault| page.line(format_args!("found: {fault}")));
        let (done, losing) =
            if dry_run { ("would", "this would lose") } else { ("did", "this lost") };
        steps.iter().for_each(|step| page.line(format_args!("{done}: {step}")));
        page.line(format_args!("{losing}: {lost}"));
        if dry_run {
            page.line(format_args!(
                "nothing was changed; {} does it",
                session.wording.command("doctor --repair")
            ));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the tables of runs differ from what the events say.
fn tables_differ(copy: &Path) -> bool {
    let rebuilt = SqliteJournal::open(copy).and_then(|journal| {
        let before = journal.dump_runs()?;
        journal.rebuild_runs()?;
        Ok(before != journal.dump_runs()?)
    });
    rebuilt.unwrap_or(false)
}

/// A fault and its remedy.
const TABLES: (&str, &str) = (
    "the tables of runs are not what the events say",
    "make the tables of runs anew from the events",
);

/// Repairs for which no living process need end: only people read the tables, and nobody the
/// leftovers.
fn mend(
    session: &Session,
    dir: &Path,
    leftovers: &[PathBuf],
    tables: Option<(&str, &str)>,
    dry_run: bool,
) -> Outcome {
    if leftovers.is_empty() && tables.is_none() {
        session.show(&json!({"repaired": false, "faults": []}), |page| {
            page.line(format_args!("nothing to repair"))
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if !dry_run {
        if tables.is_some() {
            SqliteJournal::open(dir)?.rebuild_runs()?;
        }
        remove(leftovers)?;
    }
    let left =
        (!leftovers.is_empty()).then(|| "unfinished files of processes that were ended".to_owned());
    let faults: Vec<_> =
        tables.map(|(fault, _)| fault.to_owned()).into_iter().chain(left).collect();
    let remade = tables.map(|(_, step)| step.to_owned());
    let steps: Vec<_> =
        remade.into_iter().chain(leftovers.iter().map(|path| removal(path))).collect();
    session.show(
        &json!({"repaired": !dry_run, "faults": faults, "steps": steps, "lost": "nothing"}),
        |page| {
            faults.iter().for_each(|fault| page.line(format_args!("found: {fault}")));
            let done = if dry_run { "would" } else { "did" };
            steps.iter().for_each(|step| page.line(format_args!("{done}: {step}")));
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

fn removal(leftover: &Path) -> String {
    format!("remove {}", leftover.display())
}

fn remove(leftovers: &[PathBuf]) -> anyhow::Result<()> {
    leftovers.iter().try_for_each(|path| {
        scratch::remove(path).with_context(|| format!("cannot {}", removal(path)))
    })
}

fn repair(
    dir: &Path,
    backup: &Path,
    aside: Option<&Path>,
    finds_nothing: bool,
) -> anyhow::Result<String> {
    if let Some(aside) = aside {
        restore::put_back(dir, aside)?;
    }
    back_up(dir, backup).context("the backup cannot be made; nothing was changed")?;
    if finds_nothing {
        for path in remains(dir) {
            let name = path.file_name().unwrap_or_default();
            // The backup holds no copy of directories, so they are moved there.
            let removed = if path.is_dir() {
                fs::rename(&path, backup.join(name))
            } else {
                fs::remove_file(&path)
            };
            removed.with_context(|| format!("cannot remove {}", path.display()))?;
        }
        return Ok(format!("nothing was sound; all that was there is in {}", backup.display()));
    }
    let author = Author { participant: ParticipantId::trusted("p-doctor"), now: board_time(dir) };
    let plan: Plan = recovery::plan(dir)?;
    if plan.has_nothing_to_do() {
        return Ok("the board is where it was".to_owned());
    }
    Ok(plan.carry_out(&author)?)
}

/// Makes the backup. It gets its name only when it is complete, so that one cut short by a full
/// disk is not taken for a backup.
fn back_up(dir: &Path, backup: &Path) -> io::Result<()> {
    let work = Scratch::make_in(dir, "repair")?;
    let copy = work.path().join("backup");
    DirBuilder::new().mode(0o700).create(&copy)?;
    copy_board(dir, &copy)?;
    fs::rename(copy, backup)?;
    File::open(dir)?.sync_all()
}

/// The board's own files and evidence; with any of them left, no new board may be made here.
fn remains(dir: &Path) -> Vec<PathBuf> {
    let journal = ["", "-wal", "-shm"].map(|suffix| format!("{}{suffix}", sqlite::FILE_NAME));
    let own = journal
        .into_iter()
        .chain([Home::of(dir).name().to_owned()])
        .filter(|name| dir.join(name).exists());
    own.chain(recovery::evidence(dir)).map(|name| dir.join(name)).collect()
}

fn has_remains(dir: &Path) -> bool {
    !remains(dir).is_empty()
}

/// Copies the regular files of the board and its snapshots, without temporary files and copies by
/// earlier repairs.
fn copy_board(from: &Path, to: &Path) -> io::Result<()> {
    copy_files(from, to)?;
    if fs::symlink_metadata(from.join(snapshot::DIRECTORY)).is_ok_and(|metadata| metadata.is_dir())
    {
        let to = to.join(snapshot::DIRECTORY);
        DirBuilder::new().mode(0o700).create(&to)?;
        copy_files(&from.join(snapshot::DIRECTORY), &to)?;
    }
    File::open(to)?.sync_all()
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if !entry.file_type()?.is_file() || LOCKS.iter().any(|lock| entry.file_name() == *lock) {
            continue;
        }
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut source = OpenOptions::new().read(true).custom_flags(flags).open(entry.path())?;
        let mut target = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to.join(entry.file_name()))?;
        io::copy(&mut source, &mut target)?;
        target.sync_all()?;
    }
    Ok(())
}
