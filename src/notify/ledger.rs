//! What has been told of a board and what is still to be told, in a directory of the user's own.
//!
//! A notice is kept here before anybody is told, and leaves after that, so a process that is killed
//! between the two has it told again, under the same id.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::notice::Notice;
use super::settings::Channel;
use crate::state::id::AgentId;
use crate::state::time::Timestamp;

const FILE: &str = "ledger.json";
const LOCK: &str = "lock";
const LOG: &str = "log.jsonl";
/// Most notices that wait for one way; then the oldest are given up.
const WAITING: usize = 1_000;
/// Attempts for one notice.
pub(crate) const ATTEMPTS: u32 = 10;
/// Pause after the first failed attempt, doubled after each further one, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Size from which on the older half of the log is dropped, in bytes.
const LARGEST_LOG: u64 = 256 << 10;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The event up to which all notices were made.
    pub seq: u64,
    /// What is still to be told, oldest first, by the way's name.
    #[serde(default)]
    waiting: BTreeMap<String, VecDeque<Pending>>,
    #[serde(default)]
    pub was_finished: bool,
    #[serde(default)]
    pub was_stuck: bool,
    /// Last signs of the agents of which it was told that they are quiet.
    #[serde(default)]
    pub quiet: BTreeMap<AgentId, Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub notice: Notice,
    #[serde(default)]
    pub tries: u32,
    /// Not before this time, in milliseconds since 1970.
    #[serde(default)]
    pub next_at: u64,
}

/// One line of the log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub at: Timestamp,
    pub id: String,
    pub way: String,
    /// `delivered`, `failed` or `given up`.
    pub outcome: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    pub text: String,
}

/// The right to tell of a board, while this is there.
pub(crate) struct Turn(#[expect(dead_code, reason = "the lock ends with it")] File);

#[derive(Clone)]
pub(crate) struct Ledger {
    dir: PathBuf,
    kept: Arc<Mutex<Kept>>,
}

/// The directory for a board's ledger, made if there is none.
pub(crate) fn directory(state_home: &Path, board_id: &str) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    // A board's id comes from a file that agents can write.
    let name: String =
        board_id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let dir = state_home.join("callboard/notify").join(format!("board_{name}"));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    Ok(dir)
}

/// Takes the turn if no other process has it.
pub(crate) fn try_turn(dir: &Path) -> io::Result<Option<Turn>> {
    let file = lock_file(dir)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Turn(file))),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Waits until the turn is free.
pub(crate) fn turn(dir: &Path) -> io::Result<Turn> {
    let file = lock_file(dir)?;
    file.lock()?;
    Ok(Turn(file))
}

fn lock_file(dir: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(dir.join(LOCK))
}

/// What is kept in `dir`; `None` if nothing is yet, or it cannot be read.
pub(crate) fn read(dir: &Path) -> Option<Kept> {
    serde_json::from_slice(&fs::read(dir.join(FILE)).ok()?).ok()
}

/// The newest lines of the log, the oldest first.
pub(crate) fn log(dir: &Path, limit: usize) -> Vec<Line> {
    let text = fs::read_to_string(dir.join(LOG)).unwrap_or_default();
    let lines: Vec<_> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let skipped = lines.len().saturating_sub(limit);
    lines.into_iter().skip(skipped).collect()
}

impl Ledger {
    /// Opens the ledger, with `turn` taken; a new one begins after the event `since`.
    pub(crate) fn open(dir: &Path, since: u64) -> Self {
        let kept = read(dir).unwrap_or_else(|| Kept { seq: since, ..Kept::default() });
        Self { dir: dir.to_owned(), kept: Arc::new(Mutex::new(kept)) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seq(&self) -> u64 {
        self.lock().seq
    }

    /// Changes what is kept, and writes it before anything follows from it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> io::Result<T> {
        let mut kept = self.lock();
        let result = change(&mut kept);
        let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
        file.write_all(&serde_json::to_vec(&*kept)?)?;
        file.persist(self.dir.join(FILE)).map_err(|error| error.error)?;
        Ok(result)
    }

    /// Whether these agents, and no others, are known to be quiet since their last signs.
    pub(crate) fn knows_quiet(&self, quiet: &[(AgentId, Timestamp, Notice)]) -> bool {
        let known = &self.lock().quiet;
        known.len() == quiet.len()
            && quiet.iter().all(|(agent, at, _)| known.get(agent) == Some(at))
    }

    /// What is to be told next in this way.
    pub(crate) fn next(&self, way: &str) -> Option<Pending> {
        self.lock().waiting.get(way)?.front().cloned()
    }

    /// Notes how an attempt ended. Returns whether the notice is dealt with.
    pub(crate) fn settle(
        &self,
        way: &str,
        pending: &Pending,
        ended: &Result<(), String>,
    ) -> io::Result<bool> {
        let gives_up = pending.tries + 1 >= ATTEMPTS;
        let is_over = ended.is_ok() || gives_up;
        self.change(|kept| {
            let Some(queue) = kept.waiting.get_mut(way) else { return };
            if is_over {
                queue.retain(|one| {
                    one.notice.id != pending.notice.id || one.notice.kind != pending.notice.kind
                });
            } else if let Some(first) = queue.front_mut() {
                first.tries += 1;
                first.next_at = now_millis() + pause(first.tries).as_millis() as u64;
            }
        })?;
        let (outcome, detail) = match ended {
            Ok(()) => ("delivered", ""),
            Err(why) if gives_up => ("given up", why.as_str()),
            Err(why) => ("failed", why.as_str()),
        };
        self.note(way, &pending.notice, outcome, detail)?;
        Ok(is_over)
    }

    /// Appends a line to the log.
    fn note(&self, way: &str, notice: &Notice, outcome: &str, detail: &str) -> io::Result<()> {
        let path = self.dir.join(LOG);
        if fs::metadata(&path).is_ok_and(|log| log.len() > LARGEST_LOG) {
            let text = fs::read_to_string(&path)?;
            let half =
                text[..].char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
            fs::write(&path, text[half..].split_once('\n').map_or("", |(_, rest)| rest))?;
        }
        let line = Line {
            at: Timestamp::from_millis(now_millis().cast_signed()),
            id: notice.id.clone(),
            way: way.to_owned(),
            outcome: outcome.to_owned(),
            detail: detail.to_owned(),
            text: notice.text.clone(),
        };
        let mut log = fs::OpenOptions::new().create(true).append(true).open(path)?;
        log.write_all((serde_json::to_string(&line)? + "\n").as_bytes())
    }
}

impl Kept {
    /// Has each channel tell of the notice that wants to.
    pub(crate) fn push(&mut self, channels: &[Channel], notice: &Notice) {
        for channel in channels.iter().filter(|channel| channel.events.contains(&notice.kind)) {
            let queue = self.waiting.entry(channel.way.name().to_owned()).or_default();
            queue.push_back(Pending { notice: notice.clone(), tries: 0, next_at: 0 });
            while queue.len() > WAITING {
                queue.pop_front();
            }
        }
    }

    /// How many notices wait, by way.
    pub(crate) fn waiting(&self) -> BTreeMap<&str, usize> {
        self.waiting.iter().map(|(way, queue)| (way.as_str(), queue.len())).collect()
    }

    /// Forgets what waits for ways that are not used any more.
    pub(crate) fn keep_only(&mut self, channels: &[Channel]) {
        self.waiting.retain(|way, _| channels.iter().any(|channel| channel.way.name() == way));
    }
}

pub(crate) fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

fn pause(tries: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses: Vec<_> = (1..=9).map(|tries| pause(tries).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
