//! Plans that lie in a project and could be imported.

use std::path::{Path, PathBuf};

use crate::plan;
use crate::state::limit;

/// Where people and tools keep plans, below the project's root.
const PLACES: [&str; 14] = [
    "PLAN.md",
    "plan.md",
    "TODO.md",
    "todo.md",
    "TASKS.md",
    "tasks.md",
    "ROADMAP.md",
    "docs/PLAN.md",
    "docs/plan.md",
    "docs/ROADMAP.md",
    "plan.json",
    "tasks.json",
    ".plan/PLAN.md",
    "docs/TODO.md",
];

pub(super) struct Found {
    pub path: PathBuf,
    /// Things to do in it.
    pub items: usize,
}

/// Files that can be read as a plan. One that a case-insensitive file system shows twice is named
/// once.
pub(super) fn found(root: &Path) -> Vec<Found> {
    let mut seen = Vec::new();
    let read = |place: &&str| {
        let path = root.join(place);
        let metadata = path
            .metadata()
            .ok()
            .filter(|found| found.is_file() && found.len() <= limit::PLAN.max as u64)?;
        let file = std::os::unix::fs::MetadataExt::ino(&metadata);
        if seen.contains(&file) {
            return None;
        }
        seen.push(file);
        let items = plan::parse(&std::fs::read_to_string(&path).ok()?).ok()?.items.len();
        Some(Found { path, items })
    };
    PLACES.iter().filter_map(read).collect()
}
