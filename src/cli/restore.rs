//! `callboard restore`: creates or resets a board from a backup or a state file.
//!
//! In an empty directory, the backup becomes the board, with its whole history. If there is a board
//! already, the backup's state becomes one more event of it, so that its history and the processes
//! that use it go on. Only a damaged board is moved aside.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail, ensure};
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::backup::container::{self, Contents};
use super::board::Board;
use super::scratch::Scratch;
use super::{Declined, Outcome, Session, backup, runtime, say, snapshot, usage_error};
use crate::clock::{Clock, SystemClock};
use crate::journal::JournalError;
use crate::journal::sqlite::{self, SqliteJournal};
use crate::participant::directory;
use crate::participant::lock::BoardLock;
use crate::participant::{self, BoardError, Stay, recovery};
use crate::state::document::Document;
use crate::state::time::Timestamp;
use crate::statefile::{self, Found, Home};
use crate::{config, failpoint, snapshot as snapshots};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Backup, or state file of any version
    file: PathBuf,
    /// Restore even if there is a board already; it is backed up first
    #[arg(long)]
    force: bool,
}

/// What the file contains.
enum Source {
    Backup {
        contents: Contents,
        document: Box<Document>,
    },
    /// A state without history, and its text.
    State {
        text: Vec<u8>,
        document: Box<Document>,
    },
}

impl Source {
    fn document(&self) -> &Document {
        match self {
            Self::Backup { document, .. } | Self::State { document, .. } => document,
        }
    }
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    session.may_create()?;
    session.expect_person("restores a backup")?;
    let (dir, file) = (session.dir(), &arguments.file);
    if let Some(meant) = meant_by_number(session, file) {
        usage_error(meant);
    }
    let source = read(file, dir).with_context(|| format!("{} is not restored", file.display()))?;
    let is_there = |name: &&str| fs::symlink_metadata(dir.join(name)).is_ok();
    // A leftover log counts as a board: SQLite would take it for the log of the restored journal.
    let home = Home::of(dir);
    let there: Vec<_> =
        [sqlite::FILE_NAME, sqlite::LOG_NAME, home.name()].into_iter().filter(is_there).collect();
    if !there.is_empty() && !arguments.force {
        let refused = anyhow!(
            "there is a board in {} ({}); --force goes on, after a backup of it, or choose an \
             empty directory with --dir",
            dir.display(),
            there.join(", ")
        );
        return Err(Declined(refused).into());
    }
    if there.contains(&sqlite::FILE_NAME) {
        match SqliteJournal::open(dir) {
            Ok(_) => match over(session, &source) {
                Err(error) if is_damaged(dir) => {
                    tracing::warn!("the board that is there cannot go on: {error:#}")
                }
                restored => return restored,
            },
            Err(error)
                if error.is_damage() || matches!(error, JournalError::NewerFormat { .. }) =>
            {
                tracing::warn!(%error, "the journal that is there cannot be used");
            }
            // Any other error may pass: the journal may be usable later.
            Err(error) => return Err(error.into()),
        }
    }
    let aside = (!there.is_empty())
        .then(|| dir.join(format!("{}{}", recovery::REPLACED, compact(SystemClock.wall()))));
    let (seq, next) = match &source {
        Source::Backup { document, .. } => {
            (document.board.seq, "it has the whole history of the backup")
        }
        Source::State { document, .. } => {
            (document.board.seq, "the first writing call begins its history from it")
        }
    };
    place(dir, &source, aside.as_deref())?;
    let reply = json!({
        "success": true, "dir": dir.to_string_lossy(), "seq": seq, "next": next,
        "aside": aside.as_ref().map(|aside| aside.to_string_lossy()),
    });
    session.show(&reply, |page| {
        page.line(format_args!(
            "the board in {} is as it was after event {seq}; {next}",
            dir.display()
        ));
        if let Some(aside) = &aside {
            let aside = aside.display();
            page.line(format_args!(
                "what was there is in {aside}; restart the processes that used it"
            ));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// How to restore the event or the task with this number, if there is no file of this name.
fn meant_by_number(session: &Session, file: &Path) -> Option<String> {
    let given = file.to_str()?.trim_start_matches('#');
    let number: u64 = given.parse().ok()?;
    if file.exists() {
        return None;
    }
    let line = |words: &str| session.wording.command(&format!("{words} {number}"));
    let (back, retry, log) = (line("snapshot restore --seq"), line("retry"), line("log"));
    Some(format!(
        "`callboard restore` takes a file, which `callboard backup FILE` writes; {back} sets the \
         board back to the state after event {number}; of task #{number}, {retry} makes it \
         available again if it has failed or was cancelled, and {log} says what happened to it"
    ))
}

/// Reads and checks the file. A journal is checked in a copy in the board's directory: if this
/// process is killed, git ignores what it leaves there, and the doctor finds it.
fn read(file: &Path, dir: &Path) -> anyhow::Result<Source> {
    // Opening a pipe would block until there is a writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let mut input = opened
        .unwrap_or_else(|error| usage_error(format!("cannot read {}: {error}", file.display())));
    ensure!(input.metadata()?.is_file(), "it is not a regular file");
    let mut start = [0; container::MAGIC.len()];
    let is_backup = input.read_exact(&mut start).is_ok() && start == *container::MAGIC;
    if !is_backup {
        // A directory above it may be a link, as /bin is on most systems.
        let found = statefile::load_file(&fs::canonicalize(file)?)?;
        let document = match found {
            Some(Found::Sound(document) | Found::Foreign { document, .. }) => document,
            Some(Found::Unsound { reason }) => {
                bail!("it is neither a backup nor a sound state file: {reason}")
            }
            None => bail!("it is not there"),
        };
        return Ok(Source::State { text: fs_err::read(file)?, document });
    }
    input.seek(SeekFrom::Start(0))?;
    let (header, contents) = container::read(input)?;
    directory::prepare(dir)?;
    let copied = Scratch::make_in(dir, "restore").and_then(|work| {
        write(&work.path().join(sqlite::FILE_NAME), &contents.journal)?;
        failpoint::hit("restore-copied")?;
        Ok(work)
    });
    let work = copied.map_err(|error| unwritten(error, dir, contents.journal.len()))?;
    let state = backup::replayed(work.path())?;
    ensure!(
        state.seq() == header.seq,
        "its journal ends at event {}, not at {}",
        state.seq(),
        header.seq
    );
    let document = Box::new(state.to_document());
    // Compares content, not text: another version may have written it differently.
    let is_same = |found: &Found| matches!(found, Found::Sound(said) if *said == document);
    ensure!(
        is_same(&statefile::recognise(&contents.state)?),
        "its state is not what its journal says"
    );
    Ok(Source::Backup { contents, document })
}

/// Restores as an event of the existing board.
fn over(session: &Session, source: &Source) -> Outcome {
    let kept = session.dir().join(format!("before-restore-{}.backup", compact(SystemClock.wall())));
    backup::write(session.dir(), &kept, false).with_context(|| {
        let dir = session.dir().display();
        format!(
            "nothing is restored, as the board in {dir} could not be backed up there before; has \
             the disk room for it?"
        )
    })?;
    let Board::Here(board) = session.board(Stay::Brief)? else {
        bail!("a server's board is restored there")
    };
    let reply = runtime()?.block_on(async {
        let taken = board.snapshot(Some("before callboard restore")).await;
        let before = taken.inspect_err(|_| drop(fs_err::remove_file(&kept)))?.reply.snapshot;
        board.restore_after(before, source.document().clone()).await
    });
    let mut reply = reply.map(crate::board::Answer::into_json).inspect_err(|_| {
        if kept.exists() {
            say(&format!("callboard: a backup from before is in {}", kept.display()));
        }
    })?;
    reply["backup"] = Value::from(kept.to_string_lossy());
    session.show(&reply, |page| {
        snapshot::tell_restored(page, &reply, &session.wording);
        page.line(format_args!("the board as it was before is in {}, too", kept.display()));
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the journal cannot be replayed to its end, or ends before the event that the state file
/// shows.
fn is_damaged(dir: &Path) -> bool {
    // The state file is read first, since others may append to the journal meanwhile.
    let shown = statefile::seq_of(dir).ok().flatten().map_or(0, |head| head.seq);
    match backup::replayed(dir) {
        Ok(state) => shown > state.seq(),
        Err(error) => {
            let of_journal =
                error.downcast_ref::<JournalError>().is_some_and(JournalError::is_damage);
            of_journal
                || error.downcast_ref::<BoardError>().is_some_and(|error| {
                    error.is_damage()
                        || matches!(
                            error,
                            BoardError::Inconsistent(_) | BoardError::NotInThePast { .. }
                        )
                })
        }
    }
}

/// Puts the files in place where no journal can be used. Nothing existing is touched before all new
/// files are complete. The journal comes last: with it, the board exists.
fn place(dir: &Path, source: &Source, aside: Option<&Path>) -> anyhow::Result<()> {
    directory::prepare(dir)?;
    let lock = BoardLock::open(dir)?;
    participant::acquire(&lock)?;
    let name = state_file(dir, source)?;
    let files = match source {
        Source::State { text, .. } => vec![(name.as_str(), text)],
        Source::Backup { contents, .. } => {
            let config = (config::FILE, &contents.config);
            let is_wanted = !contents.config.is_empty()
                && fs::symlink_metadata(dir.join(config::FILE)).is_err();
            let board = [(name.as_str(), &contents.state), (sqlite::FILE_NAME, &contents.journal)];
            is_wanted.then_some(config).into_iter().chain(board).collect()
        }
    };
    let written = files.iter().try_for_each(|(name, bytes)| write(&unfinished(dir, name), bytes));
    let placed = match written {
        Ok(()) => replace(dir, &files.iter().map(|(name, _)| *name).collect::<Vec<_>>(), aside),
        Err(error) => Err(unwritten(error, dir, files.iter().map(|(_, bytes)| bytes.len()).sum())),
    };
    files.iter().for_each(|(name, _)| drop(fs::remove_file(unfinished(dir, name))));
    lock.release();
    placed
}

/// The name that the state file gets: that of the configuration which is there or, without one, of
/// the one restored.
fn state_file(dir: &Path, source: &Source) -> anyhow::Result<String> {
    Ok(match source {
        Source::Backup { contents, .. }
            if fs::symlink_metadata(dir.join(config::FILE)).is_err() =>
        {
            config::parse(dir, &String::from_utf8_lossy(&contents.config))?.state_file
        }
        _ => Home::of(dir).name().to_owned(),
    })
}

fn unwritten(error: io::Error, dir: &Path, bytes: usize) -> anyhow::Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let (what, remedy) = match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => {
            (format!("could not take its {bytes} bytes"), "make room there")
        }
        _ => ("could not be written to".to_owned(), "see to its permissions and its disk"),
    };
    let dir = dir.display();
    anyhow::Error::new(error)
        .context(format!("{dir} {what}, and is as it was; {remedy}, or choose another with --dir"))
}

/// Files of a board that is moved aside. They are put back in this order and moved aside in the
/// reverse order, so that at no step a part looks like a whole board.
fn moved(home: &Home) -> [&str; 7] {
    [
        sqlite::LOG_NAME,
        sqlite::FILE_NAME,
        "journal.db-shm",
        home.name(),
        statefile::SPARE,
        snapshots::DIRECTORY,
        sqlite::REMADE,
    ]
}

/// Where an interrupted restore has moved the board to, if it had not yet put another in its place.
pub(super) fn moved_aside(dir: &Path) -> Option<PathBuf> {
    let home = Home::of(dir);
    let aside =
        recovery::evidence(dir).into_iter().rfind(|name| name.starts_with(recovery::REPLACED))?;
    let aside = dir.join(aside);
    let has = |dir: &Path, name: &str| fs::symlink_metadata(dir.join(name)).is_ok();
    let board = [sqlite::FILE_NAME, home.name()];
    // A restore that finished leaves no unfinished files, and what it moved aside is the older
    // board.
    let is_unfinished = board.iter().any(|name| unfinished(dir, name).symlink_metadata().is_ok());
    let is_moved =
        board.iter().all(|name| !has(dir, name)) && board.iter().any(|name| has(&aside, name));
    (is_unfinished && is_moved).then_some(aside)
}

/// Moves a board back from `aside`. The caller holds the board's lock.
pub(super) fn put_back(dir: &Path, aside: &Path) -> anyhow::Result<()> {
    for name in moved(&Home::of(dir)) {
        let (old, new) = (aside.join(name), dir.join(name));
        match rename_new(&old, &new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("{} could not be put back", old.display()));
            }
            _ => {}
        }
    }
    fs_err::File::open(dir)?.sync_all()?;
    drop(fs::remove_dir(aside));
    Ok(())
}

/// Moves existing files aside and gives the written ones their final names, never over another
/// file. Either all of it happens, or nothing.
fn replace(dir: &Path, names: &[&str], aside: Option<&Path>) -> anyhow::Result<()> {
    let mark = format!("{}-{}", SystemClock.wall(), std::process::id());
    directory::mark_restored(dir, &mark)?;
    let mut renamed = Vec::new();
    let Err(error) = rename_all(dir, names, aside, &mut renamed) else { return Ok(()) };
    let stuck: Vec<_> =
        renamed.iter().rev().filter(|(old, new)| rename_new(new, old).is_err()).collect();
    if let Some((old, new)) = stuck.last() {
        let (old, new) = (old.display(), new.display());
        return Err(error.context(format!(
            "the board could not be put back: move {new} to {old}, and what lies with it"
        )));
    }
    aside.into_iter().for_each(|aside| drop(fs::remove_dir(aside)));
    Err(error.context(format!("{} is as it was", dir.display())))
}

/// Renames the files, and adds each old and new path to `renamed`.
fn rename_all(
    dir: &Path,
    names: &[&str],
    aside: Option<&Path>,
    renamed: &mut Vec<(PathBuf, PathBuf)>,
) -> anyhow::Result<()> {
    if let Some(aside) = aside {
        DirBuilder::new().mode(0o700).create(aside)?;
        for name in moved(&Home::of(dir)).iter().rev() {
            let (old, new) = (dir.join(name), aside.join(name));
            match rename_new(&old, &new) {
                Ok(()) => renamed.push((old, new)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("{} could not be moved aside", old.display()));
                }
            }
        }
        fs_err::File::open(aside)?.sync_all()?;
    }
    failpoint::hit("restore-aside")?;
    for name in names {
        let (old, new) = (unfinished(dir, name), dir.join(name));
        rename_new(&old, &new).with_context(|| match fs::symlink_metadata(&new) {
            Ok(_) => format!("somebody else has made {} at this moment", new.display()),
            Err(_) => format!("{} could not be made", new.display()),
        })?;
        renamed.push((old, new));
    }
    Ok(fs_err::File::open(dir)?.sync_all()?)
}

/// Renames without replacing a file. If the file system cannot guarantee that, the board's lock,
/// which the caller holds, keeps others from creating one.
fn rename_new(old: &Path, new: &Path) -> io::Result<()> {
    match renameat_with(CWD, old, CWD, new, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(()),
        Err(error @ (Errno::EXIST | Errno::NOENT)) => return Err(error.into()),
        Err(_) => {}
    }
    match fs::symlink_metadata(new) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(old, new),
        Err(error) => Err(error),
    }
}

fn unfinished(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!(".{name}.restore.tmp"))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn compact(at: Timestamp) -> String {
    at.to_string().chars().filter(|c| !matches!(c, '-' | ':')).collect()
}
