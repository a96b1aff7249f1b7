//! `callboard backup`: the whole board in one file, as of one event, taken while other processes
//! write.

pub(super) mod container;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use serde_json::json;

use super::scratch::Scratch;
use super::{Declined, Outcome, Session, say};
use crate::bundle;
use crate::config;
use crate::failpoint;
use crate::journal::sqlite::{self, SqliteJournal};
use crate::participant::board_time;
use crate::participant::{archive, directory};
use crate::snapshot;
use crate::state::{State, artifact};
use crate::statefile::{self, Home};
use container::{Contents, Header};

/// Directories of the board that no backup contains. A restore leaves them in place; whoever moves
/// a board copies them.
const BESIDE: [&str; 3] = [artifact::DIRECTORY, bundle::DIRECTORY, snapshot::DIRECTORY];

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// File to write
    file: PathBuf,
    /// Replace the file if it exists; a link or a device is never replaced
    #[arg(long)]
    force: bool,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let header = write(session.dir(), &arguments.file, arguments.force)?;
    let beside =
        BESIDE.into_iter().map(|name| session.dir().join(name)).filter(|dir| holds_something(dir));
    let beside: Vec<_> = beside.map(|dir| dir.to_string_lossy().into_owned()).collect();
    let reply = json!({
        "success": true, "file": arguments.file.to_string_lossy(), "board_id": header.board_id, "seq": header.seq,
        "not_in_it": beside,
    });
    session.show(&reply, |page| {
        page.line(format_args!(
            "{}: board {}, event {}",
            arguments.file.display(),
            header.board_id,
            header.seq
        ));
        if !beside.is_empty() {
            page.line(format_args!(
                "not in it: {}; copy what you need elsewhere",
                beside.join(", ")
            ));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn holds_something(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

/// Backs up the board in `dir`, after replaying the copied journal from its first event to its
/// last.
pub(super) fn write(dir: &Path, file: &Path, force: bool) -> anyhow::Result<Header> {
    let is_there = |name: &str| std::fs::symlink_metadata(dir.join(name)).is_ok();
    if !is_there(sqlite::FILE_NAME) && !is_there(Home::of(dir).name()) {
        bail!("no board here: there is none in {}; name another with --dir", dir.display());
    }
    directory::inspect(dir)?;
    let why_not = match std::fs::symlink_metadata(file) {
        Ok(_) if !force => Some("exists already; choose another name, or --force to replace it"),
        Ok(metadata) if metadata.is_symlink() => {
            Some("is a symbolic link, which is not replaced; name its target")
        }
        Ok(metadata) if !metadata.is_file() => {
            Some("is not a regular file, so it is not replaced; choose another name")
        }
        _ => None,
    };
    let parent =
        file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let why_not = why_not.or_else(|| may_be_the_boards(dir, parent, file).then_some(OWN));
    if let Some(why_not) = why_not {
        return Err(Declined(anyhow!("{} {why_not}", file.display())).into());
    }
    let work = Scratch::make_in(parent, "backup");
    let work = work.with_context(|| format!("cannot write in {}", parent.display()))?;
    let copy = work.path().join(sqlite::FILE_NAME);
    // SQLite accepts an empty file; one that it creates itself others could read.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy)?;
    SqliteJournal::open(dir)?.copy_to(&copy)?;
    failpoint::hit("backup-copied")?;
    // A backup must not hold events that the board may still lose, so its log is synced. If that
    // fails, a backup is wanted all the more.
    if let Err(error) = sqlite::sync_log(dir) {
        say(&format!(
            "callboard: the board may lose its last events, which are in the backup: {error}"
        ));
    }
    let state = replayed(work.path())?;
    let header = Header {
        board_id: state.board().board_id.clone(),
        seq: state.seq(),
        taken_at: board_time(dir),
        parts: Vec::new(),
    };
    let contents = Contents {
        state: statefile::text_of(&state)?,
        journal: fs_err::read(copy)?,
        config: read_config(dir)?,
    };
    let unfinished = tempfile::NamedTempFile::new_in(work.path()).and_then(|mut unfinished| {
        container::write(unfinished.as_file_mut(), &header, &contents)?;
        unfinished.as_file().sync_all()?;
        Ok(unfinished)
    });
    let unfinished = unfinished.with_context(|| {
        format!("cannot write in {}, where nothing of it is left", parent.display())
    })?;
    if force {
        unfinished.persist(file).map_err(|error| error.error)?
    } else {
        unfinished.persist_noclobber(file).map_err(|error| error.error)?
    };
    File::open(parent)?.sync_all()?;
    Ok(header)
}

const OWN: &str = "would be among the board's own files, of which none ends in .backup; let its \
                   name end so, or choose a place elsewhere";

/// Whether `file`, in the board's directory or below it, could be mistaken for one of the board's
/// own files.
fn may_be_the_boards(dir: &Path, parent: &Path, file: &Path) -> bool {
    let is_within = parent
        .canonicalize()
        .is_ok_and(|parent| dir.canonicalize().is_ok_and(|dir| parent.starts_with(dir)));
    is_within && file.extension().is_none_or(|extension| extension != "backup")
}

/// The state after the last event of the journal in `dir`.
pub(super) fn replayed(dir: &Path) -> anyhow::Result<State> {
    let journal = SqliteJournal::open(dir)?;
    let mut state = State::new();
    archive::replay(&mut state, &journal, journal.head()?)?;
    Ok(state)
}

fn read_config(dir: &Path) -> io::Result<Vec<u8>> {
    match fs_err::read(dir.join(config::FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}
