//! What the text of a plan says, before it is compared with the board.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::further::Further;
use crate::state::brought::Brought;
use crate::state::document::PlanVersion;
use crate::state::id::TaskId;
use crate::state::review::Review;
use crate::state::task::Source;
use crate::state::task::UNNAMED;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub sha256: String,
    pub title: Option<String>,
    /// Items, each before its parts.
    pub items: Vec<Item>,
    /// Headings, entries and rows that are text, because others are marked as items and they are
    /// not.
    pub skipped: Vec<Skipped>,
    /// Lines that look like work and are in no item, not even in what describes one.
    pub unread: usize,
    /// What was read in a way that the text does not say in so many words.
    pub remarks: Vec<Remark>,
    /// What it brings beside its items.
    pub brings: Brought,
    /// Fields of the whole that callboard does not know.
    pub metadata: Map<String, Value>,
    /// Review of its tasks that say nothing else.
    pub review: Option<Review>,
    /// Items that wait for another because their headings count: the later one, then the one
    /// before it.
    pub order: Vec<(usize, usize)>,
}

/// How something was read, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Remark {
    pub line: usize,
    pub remark: String,
}

/// A heading or list entry that is not an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Skipped {
    pub line: usize,
    pub title: String,
    /// Level that a heading would have as an item, counted from 1.
    #[serde(skip)]
    pub level: Option<usize>,
    /// Heading of a plain list that it stands in, where others have boxes; empty above all headings
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
}

/// Lines of a plan that look like work and are in no task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unread {
    /// Name of the plan
    pub plan: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub lines: usize,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, lines, .. } = self;
        match lines {
            1 => write!(f, "1 line of {plan} that looks like work is in no task"),
            _ => write!(f, "{lines} lines of {plan} that look like work are in no task"),
        }
    }
}

/// One item of a plan, checked except for what concerns other items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    pub line: usize,
    /// Lines that say what the item is, with those that its text stands in; the first is its own.
    pub lines: Vec<usize>,
    /// Index of the parent in `items`.
    pub parent: Option<usize>,
    /// Path as written; if omitted, it follows from the item's place.
    pub path: Option<String>,
    pub title: String,
    /// True for a heading, and for what was made for its parts.
    pub is_group: bool,
    /// True if it has a mark or status of its own, which its parts do not decide.
    pub is_own: bool,
    pub description: Option<String>,
    pub status: Stated,
    pub priority: Option<u8>,
    pub estimated_minutes: Option<u32>,
    /// Indices of the items that it waits for.
    pub waits: Vec<usize>,
    /// What else it depends on: paths that items get by their place, and ids of tasks.
    pub depends: Vec<String>,
    pub files: Vec<String>,
    pub hints: Option<String>,
    pub tags: Vec<String>,
    /// Where the item was before; it names what it depends on by ids there.
    pub source: Option<Source>,
    /// Fields that callboard does not know.
    pub metadata: Map<String, Value>,
    /// What another board says of it.
    pub further: Further,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stated {
    #[default]
    Open,
    Done,
    Failed,
    Cancelled,
    Obsolete,
}

impl Plan {
    /// True if it was read from lines of text, not from JSON.
    pub fn is_markdown(&self) -> bool {
        self.items.iter().any(|item| !item.lines.is_empty())
    }

    /// For each item with parts and no mark of its own, the status that follows from what the text
    /// says of the parts.
    pub fn of_parts(&self) -> Vec<Option<Stated>> {
        let mut found: Vec<Option<Stated>> = vec![None; self.items.len()];
        let rank = |status: &Stated| match status {
            Stated::Open => 3,
            Stated::Failed => 2,
            Stated::Done => 1,
            Stated::Cancelled | Stated::Obsolete => 0,
        };
        for (number, item) in self.items.iter().enumerate().rev() {
            let status = found[number].unwrap_or(item.status);
            let above = item.parent.filter(|parent| !self.items[*parent].is_own);
            if let Some(above) = above.map(|parent| &mut found[parent]) {
                *above = Some(above.map_or(status, |known| {
                    if rank(&known) < rank(&status) { status } else { known }
                }));
            }
        }
        found
    }
}

impl Stated {
    pub fn is_called_off(&self) -> bool {
        matches!(self, Self::Cancelled | Self::Obsolete)
    }

    /// True for a part that keeps its status when what it is a part of is called off.
    pub fn stays_below_called_off(&self) -> bool {
        *self == Self::Done || self.is_called_off()
    }
}

/// How a plan is imported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Import {
    /// The file that the plan comes from.
    pub source: Option<String>,
    pub name: Option<String>,
    /// Name of the plan that this is a version of, if there is one.
    pub base: Option<String>,
    /// Leaves out that headings which count wait for each other.
    pub parallel: bool,
    /// Makes all entries of lists items, wherever they stand.
    pub lists: bool,
    /// Lines that look like work and are not read are none, here and in later versions.
    pub is_all_read: bool,
    /// Done tasks, each with the path or the id of the item that it is, whatever its words.
    pub carry: Vec<(TaskId, String)>,
}

impl Import {
    /// The import of a version that the board has.
    pub fn of(version: &PlanVersion) -> Self {
        let (name, base) = (version.name.clone(), Some(version.name().to_owned()));
        let (parallel, lists) = (version.parallel, version.lists);
        let is_all_read = version.is_all_read();
        Self { name, base, parallel, lists, is_all_read, ..Self::default() }
    }

    /// Name of the plan before the import. Tasks of one that was removed have it, too.
    pub fn own_name(&self) -> &str {
        self.base.as_deref().or(self.name.as_deref()).unwrap_or(UNNAMED)
    }
}
