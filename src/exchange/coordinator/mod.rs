//! Boards of other coordinators of agents, which keep tasks with nearly the same fields: `option_a`, `option_b`,
//! `option_c` have what is special to each. A field that one of them does not have stands beside its own ones, where its
//! programs take no notice of it, so nothing is lost on the way from one to another.

mod read;
mod tree;
mod whole;
mod write;

pub use read::{Reading, time};
pub use tree::{Flat, grown};
pub use whole::{Beside, agents, discoveries, written_agents, written_discoveries};
pub use write::{Flavour, Writing, plain_word, told, whole};

use crate::state::task::TaskStatus;

/// Field of an item's metadata that says that it is a group of tasks and no task itself.
pub const GROUP: &str = "group";

pub fn word(status: TaskStatus) -> &'static str {
    status.as_str()
}
