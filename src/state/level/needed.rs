//! The level that an event needs, and the processes that do not know it.

use super::{FIRST, Living, Newer, Older, STATE};
use crate::state::State;
use crate::state::event::{Event, NEWER, VERSION};

impl Event {
    /// The level that a process must know to read this event.
    pub fn level(&self) -> u32 {
        level_by(self, NEWER)
    }
}

pub(super) fn level_by(event: &Event, lines: &[Newer]) -> u32 {
    let carried = match event {
        Event::Imported { document, .. }
        | Event::StateRestored { document, .. }
        | Event::Purged { document, .. } => document.board.schema_version,
        _ => FIRST,
    };
    let kind = event.kind();
    let mut json = None;
    let mut is_in = |line: &Newer| {
        line.part.is_empty()
            || line
                .is_in(json.get_or_insert_with(|| serde_json::to_value(event).unwrap_or_default()))
    };
    let levels = lines
        .iter()
        .filter(|line| line.kind == kind)
        .filter(|line| is_in(line))
        .map(|line| line.level);
    levels.fold(carried, u32::max)
}

impl State {
    /// The living processes that do not know `level`.
    pub fn older(&self, living: &[Living], level: u32) -> Vec<Older> {
        living.iter().filter(|one| one.level < level).map(|one| self.described(one)).collect()
    }

    fn described(&self, living: &Living) -> Older {
        let listed = self.participant(&living.id);
        let acts = self.agents().filter(|agent| agent.present_through.contains(&living.id));
        Older {
            pid: living.pid.or(listed.map(|one| one.pid)),
            agents: acts.map(|agent| agent.id.clone()).collect(),
            client: living.client.clone(),
            machine: living.machine.clone(),
            worktree: listed.and_then(|one| one.worktree.clone()),
            level: living.level,
        }
    }

    /// Raises the board's level to that of `event`.
    pub(in crate::state) fn note_level(&mut self, event: &Event) {
        if self.board.schema_version < VERSION {
            let level = event.level();
            if level > self.board.schema_version {
                self.edit_board(|board| board.schema_version = level);
            }
        }
    }

    /// What the state file would show although the board's level is lower.
    pub(in crate::state) fn check_level(&self, wrong: &mut Vec<String>) {
        let level = self.board.schema_version;
        let newer: Vec<_> =
            NEWER.iter().filter(|line| line.kind == STATE && line.level > level).collect();
        if newer.is_empty() {
            return;
        }
        let shown = serde_json::to_value(self.to_document()).unwrap_or_default();
        let early = newer.into_iter().filter(|line| line.is_in(&shown));
        wrong.extend(early.map(|line| {
            format!("{} is of level {}, and the board of {level}", line.part, line.level)
        }));
    }
}
