//! What a command prints, in two files of bounded size: the beginning, and the end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::participant::directory::LOGS;
use crate::private::{Dir, Purpose};
use crate::state::digest::sha256;
use crate::state::id::TaskId;

/// Most bytes in each of the two files.
const LARGEST: u64 = 2 << 20;
/// Most log files of one task; the oldest are removed first.
const KEPT: usize = 40;
/// Most tasks whose logs are kept, the newest.
const TASKS_KEPT: usize = 1_000;
const LOCK: &str = "lock";

/// The logs of one task.
pub(super) struct Shelf {
    dir: Dir,
}

impl Shelf {
    pub(super) fn open(board: &Path, task: &TaskId) -> io::Result<Self> {
        let board = Dir::open(board)?.ok_or(io::ErrorKind::NotFound)?;
        let (logs, _) = board.make_dir(LOGS)?;
        let (dir, _) = logs.make_dir(&file_name(task))?;
        dir.keep_private()?;
        // Created here, so that the supervisor finds it.
        dir.open_file(LOCK, Purpose::Keep)?;
        Ok(Self { dir })
    }

    /// Path of the lock that is held by whatever runs a command for the task.
    pub(super) fn lock(&self) -> PathBuf {
        self.dir.path().join(LOCK)
    }

    /// The log of one try, continued if it was begun before.
    pub(super) fn log(&self, attempt: u32, number: u32) -> io::Result<Log> {
        self.make_room()?;
        let name = format!("attempt-{attempt:03}-try-{number:03}");
        let mut beginning = self.file(&format!("{name}.log"))?;
        let written = beginning.seek(SeekFrom::End(0))?;
        Ok(Log {
            path: self.dir.path().join(format!("{name}.log")),
            beginning: Some(beginning),
            written,
            end: None,
            failed: None,
        })
    }

    fn file(&self, name: &str) -> io::Result<File> {
        Ok(self.dir.open_file(name, Purpose::Keep)?.ok_or(io::ErrorKind::NotFound)?)
    }

    fn make_room(&self) -> io::Result<()> {
        let mut names = self.dir.names()?;
        names.retain(|name| name.starts_with("attempt-"));
        names.sort();
        let surplus = names.len().saturating_sub(KEPT);
        names[..surplus].iter().try_for_each(|name| self.dir.remove(name))
    }
}

/// Removes the logs of the tasks that nobody has worked on for longest, if there are too many.
pub(super) fn sweep(board: &Path) -> io::Result<()> {
    let Some(logs) = Dir::open(board)?.map_or(Ok(None), |board| board.dir(LOGS))? else {
        return Ok(());
    };
    let names = logs.names()?;
    if names.len() <= TASKS_KEPT {
        return Ok(());
    }
    let changed = |name: &String| {
        logs.path().join(name).symlink_metadata().and_then(|found| found.modified()).ok()
    };
    let mut known: Vec<_> = names.iter().filter_map(|name| Some((changed(name)?, name))).collect();
    known.sort();
    let surplus = known.len().saturating_sub(TASKS_KEPT);
    known[..surplus].iter().try_for_each(|(_, name)| fs_err::remove_dir_all(logs.path().join(name)))
}

/// The directory's name for a task: an id from an imported state may be no file name.
fn file_name(task: &TaskId) -> String {
    match TaskId::checked(task.as_str()) {
        Ok(id) => id.as_str().to_owned(),
        Err(_) => sha256(task.as_str())[..32].to_owned(),
    }
}

pub(super) struct Log {
    path: PathBuf,
    /// The first file; none if it could not be opened.
    beginning: Option<File>,
    written: u64,
    /// Once the first file is full: the second file, and its size in bytes.
    end: Option<(File, u64)>,
    /// The first error, after which nothing is logged: a full disk stops no work.
    failed: Option<io::Error>,
}

impl Log {
    /// A log that keeps nothing: a full disk stops no work.
    pub(super) fn none() -> Self {
        Self { path: PathBuf::new(), beginning: None, written: 0, end: None, failed: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.try_write(bytes) {
            tracing::warn!(%error, log = %self.path.display(), "the log of a command ends here");
            self.failed = Some(error);
        }
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(beginning) = &mut self.beginning else { return Ok(()) };
        let room = usize::try_from(LARGEST.saturating_sub(self.written)).unwrap_or(usize::MAX);
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        beginning.write_all(first)?;
        self.written += first.len() as u64;
        if rest.is_empty() { Ok(()) } else { self.write_end(rest) }
    }

    fn write_end(&mut self, bytes: &[u8]) -> io::Result<()> {
        let path = self.path.with_extension("end.log");
        let (file, size) = match &mut self.end {
            Some(end) => end,
            end => end.insert((second(&path)?, 0)),
        };
        if *size + bytes.len() as u64 > LARGEST {
            *size = keep_half(file)?;
        }
        // Of more than half a file at once, too, only the end matters.
        let bytes = &bytes[bytes.len().saturating_sub(LARGEST as usize / 2)..];
        file.write_all(bytes)?;
        *size += bytes.len() as u64;
        Ok(())
    }
}

fn second(path: &Path) -> io::Result<File> {
    let (dir, name) =
        (path.parent().unwrap_or(path), path.file_name().and_then(|name| name.to_str()));
    let dir = Dir::open(dir)?.ok_or(io::ErrorKind::NotFound)?;
    let file =
        dir.open_file(name.unwrap_or_default(), Purpose::Keep)?.ok_or(io::ErrorKind::NotFound)?;
    file.set_len(0)?;
    Ok(file)
}

/// Moves the second half of the file to its beginning. Returns its size in bytes.
fn keep_half(file: &mut File) -> io::Result<u64> {
    let size = file.seek(SeekFrom::End(0))?;
    let kept = size.min(LARGEST / 2);
    let mut half = Vec::new();
    file.seek(SeekFrom::Start(size - kept))?;
    file.take(kept).read_to_end(&mut half)?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&half)?;
    Ok(half.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(base: &tempfile::TempDir) -> Shelf {
        Shelf::open(base.path(), &TaskId::trusted("t-1")).expect("a shelf")
    }

    #[test]
    fn a_flood_leaves_its_beginning_and_its_end() {
        let base = tempfile::tempdir().expect("a directory");
        let mut log = shelf(&base).log(1, 1).expect("a log");
        for number in 0..200_000 {
            log.write(format!("line {number:>30} of a flood\n").as_bytes());
        }
        let read = |name: &str| {
            std::fs::read_to_string(base.path().join("logs/t-1").join(name)).expect("a log")
        };
        let (beginning, end) =
            (read("attempt-001-try-001.log"), read("attempt-001-try-001.end.log"));
        assert!(
            beginning.starts_with("line                              0 of"),
            "{:?}",
            &beginning[..80]
        );
        assert!(end.ends_with("199999 of a flood\n"));
        assert!(beginning.len() as u64 <= LARGEST && end.len() as u64 <= LARGEST);
    }

    #[test]
    fn a_log_goes_on_where_it_was_left() {
        let base = tempfile::tempdir().expect("a directory");
        shelf(&base).log(1, 1).expect("a log").write(b"before\n");
        let mut log = shelf(&base).log(1, 1).expect("a log");
        log.write(b"after\n");
        assert_eq!(std::fs::read_to_string(log.path()).expect("a log"), "before\nafter\n");
    }

    #[test]
    fn of_many_tasks_the_newest_logs_stay() {
        let base = tempfile::tempdir().expect("a directory");
        for number in 0..TASKS_KEPT + 3 {
            Shelf::open(base.path(), &TaskId::trusted(format!("t-{number}"))).expect("a shelf");
        }
        sweep(base.path()).expect("swept");
        assert_eq!(std::fs::read_dir(base.path().join("logs")).expect("logs").count(), TASKS_KEPT);
        assert!(base.path().join(format!("logs/t-{}", TASKS_KEPT + 2)).exists());
    }

    #[test]
    fn an_id_that_is_no_file_name_leads_nowhere() {
        let base = tempfile::tempdir().expect("a directory");
        let task = TaskId::trusted("../../evil/..");
        Shelf::open(base.path(), &task).expect("a shelf").log(1, 1).expect("a log").write(b"x");
        let names: Vec<_> =
            std::fs::read_dir(base.path().join("logs")).expect("logs").flatten().collect();
        assert_eq!(names.len(), 1);
        assert!(
            names[0].file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_hexdigit())
        );
    }
}
