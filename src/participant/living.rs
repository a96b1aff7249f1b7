//! Which other processes live on the board, and which level of events each knows.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::directory::RUN;
use super::holder::holder;
use super::note::{Note, machine, name};
use super::presence::{is_held, presence_names};
use crate::private::{Dir, Purpose};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::ParticipantId;
use crate::state::level::{FIRST, Living};

/// The other processes on a board. They are searched for when they are first needed.
pub struct Others {
    dir: PathBuf,
    own: ParticipantId,
    seen: OnceCell<Vec<Living>>,
    withheld_at: Cell<Option<Instant>>,
}

impl Others {
    pub fn new(dir: PathBuf, own: ParticipantId) -> Self {
        Self { dir, own, seen: OnceCell::new(), withheld_at: Cell::new(None) }
    }

    pub fn living(&self) -> Vec<Living> {
        let others = || living(&self.dir).into_iter().filter(|one| one.id != self.own).collect();
        self.seen.get_or_init(others).clone()
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Forgets what was seen.
    pub fn look_again(&mut self) {
        self.seen.take();
    }

    /// Whether all living processes can read the event.
    pub fn admit(&self, state: &State, event: &Event) -> bool {
        let level = event.level();
        let is_read = level <= state.board().schema_version
            || self.living().iter().all(|one| one.level >= level);
        if !is_read {
            self.withheld_at.set(Some(Instant::now()));
        }
        is_read
    }

    /// When something was last left for later because of that.
    pub fn withheld_at(&self) -> Option<Instant> {
        self.withheld_at.get()
    }
}

/// The living processes on the board in `dir`.
pub fn living(dir: &Path) -> Vec<Living> {
    let Ok(Some(run)) = Dir::open(&dir.join(RUN)) else { return Vec::new() };
    let mut all: Vec<_> = presence_names(dir)
        .filter_map(|name| {
            let opened = run.open_file(&name, Purpose::Read);
            let id = ParticipantId::trusted(name);
            match opened {
                Ok(file) => file.filter(is_held).map(|file| described(id, &file)),
                // Nothing says that its process is dead, so it may be one that knows the least.
                Err(_) => Some(Living {
                    id,
                    level: FIRST,
                    pid: None,
                    machine: None,
                    client: None,
                    ahead: None,
                }),
            }
        })
        .collect();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    all
}

fn described(id: ParticipantId, file: &File) -> Living {
    match Note::read(file) {
        Some(Note { level, pid, machine, client, ahead, .. }) => {
            Living { id, level, pid: Some(pid), machine: Some(machine), client, ahead }
        }
        None => {
            let pid = holder(file);
            // A file lock is held by a process on the same machine.
            Living {
                id,
                level: FIRST,
                pid,
                machine: Some(machine()),
                client: pid.and_then(starter),
                ahead: None,
            }
        }
    }
}

/// The name of the program that started the process, where the system tells.
fn starter(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's own name is in brackets and may hold anything.
    let parent: u32 = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
    let comm =
        std::fs::read_to_string(format!("/proc/{parent}/comm")).ok().filter(|_| parent > 1)?;
    Some(name(comm.trim()))
}

#[cfg(test)]
mod tests {
    use super::super::directory::prepare;
    use super::super::presence::{PresenceLock, may_anyone_know_more};
    use super::*;
    use crate::state::event::VERSION;

    #[test]
    fn the_living_are_those_that_hold_their_lock() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join(".coordination");
        prepare(&dir).unwrap();
        let mut note = Note::of_this_process();
        assert!(note.learn(Some("codex-mcp-client")) && !note.learn(Some("another")));
        let held = PresenceLock::acquire(&dir, "p-new", &note).unwrap();
        let older = std::fs::File::create(dir.join(RUN).join("p-older")).unwrap();
        older.lock().unwrap();
        std::fs::File::create(dir.join(RUN).join("p-dead")).unwrap();
        let found = living(&dir);
        assert_eq!(
            found.iter().map(|one| (one.id.as_str(), one.level)).collect::<Vec<_>>(),
            [("p-new", VERSION), ("p-older", FIRST)]
        );
        assert_eq!(found[0].client.as_deref(), Some("codex-mcp-client"));
        assert!(
            found
                .iter()
                .all(|one| one.pid == Some(std::process::id()) && one.machine == Some(machine())),
            "{found:?}"
        );
        let others = Others::new(dir.clone(), ParticipantId::trusted("p-new"));
        assert_eq!(others.living(), [found[1].clone()], "without the one that asks");
        let asking = ParticipantId::trusted("p-asking");
        assert!(may_anyone_know_more(&dir, &asking), "the older one does not say");
        drop(older);
        assert!(!may_anyone_know_more(&dir, &asking), "the new one has not opened the board");
        note.has_board = Some(true);
        held.note(&note).unwrap();
        assert!(may_anyone_know_more(&dir, &asking));
        drop(held);
        assert!(!may_anyone_know_more(&dir, &asking));
        assert_eq!(living(&dir), []);
        std::os::unix::fs::symlink("p-dead", dir.join(RUN).join("p-strange")).unwrap();
        let found = living(&dir);
        assert_eq!(
            found.iter().map(|one| (one.id.as_str(), one.level)).collect::<Vec<_>>(),
            [("p-strange", FIRST)],
            "a file that cannot be opened"
        );
    }

    #[test]
    fn what_an_older_process_could_not_read_waits_for_its_end() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join(".coordination");
        prepare(&dir).unwrap();
        let older = std::fs::File::create(dir.join(RUN).join("p-older")).unwrap();
        older.lock().unwrap();
        let id = ParticipantId::trusted("p-own");
        let mut others = Others::new(dir, id);
        let state = State::new();
        let mut document = state.to_document();
        document.board.schema_version = FIRST + 1;
        let newer =
            Event::StateRestored { restored_seq: 0, snapshot: None, document: Box::new(document) };
        assert!(!others.admit(&state, &newer));
        assert!(others.withheld_at().is_some());
        assert!(others.admit(&state, &Event::Resumed {}), "it reads that");
        drop(older);
        others.look_again();
        assert!(others.admit(&state, &newer));
    }
}
