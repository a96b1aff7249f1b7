//! What a plan says, and what a new version of it means for the tasks of the one before.

mod applied;
mod change;
mod current;
mod delta;
mod dependencies;
mod further;
mod hashes;
mod item;
pub(super) mod kept;
mod matched;
mod names;
mod order;
mod place;
pub(super) mod problem;
mod recognise;
mod same_words;
mod text;
mod which;
mod words;

pub(super) use applied::{leave_plan, leave_to_holder, replan};
pub use change::is_renumbered;
pub use current::planned;
pub use further::{Further, Trials};
pub use item::{Import, Item, Plan, Remark, Skipped, Stated, Unread};
pub use kept::{KeptText, LineEnds};
pub use matched::Matched;
pub use names::{Named, Names, leading_id};
pub use problem::Problem;
pub use text::{one_line, shortened};
pub(super) use which::kept_versions;
pub use which::{Given, newest_of_each};
pub use words::{plain, words};
