//! A participant: one process's replica of the board, and the one way in which calls reach it.
//!
//! [`spawn`] starts the writer's thread. Every call goes to it through a [`Handle`], and returns when
//! what it did is durable and shown in the state file.

mod access;
pub mod archive;
mod attendance;
mod beside;
mod board;
mod caller;
pub mod commit;
pub mod directory;
pub mod disk;
pub mod driver;
mod editing;
mod edits;
mod error;
mod feed;
mod files;
mod handle;
mod hints;
mod history;
pub mod holder;
mod listener;
pub mod living;
pub mod lock;
mod locker;
mod message;
mod metrics;
mod naming;
pub mod nickname;
mod note;
mod obstacles;
mod opening;
mod options;
pub mod presence;
pub mod purge;
mod rate;
pub mod recovery;
pub mod room;
mod runs;
mod syncer;
mod turns;
mod upkeep;
mod vanished;
mod waiting;
pub mod whereabouts;
mod writer;

pub use caller::{AgentChoice, Caller};
pub use error::{BoardError, CallError};
pub use feed::Item;
pub use handle::{Handle, spawn};
pub use listener::Listener;
pub use lock::{LOCK_PATIENCE, acquire, board_time, left_of};
pub use message::{Answer, Queued};
pub use metrics::Form;
pub use naming::{agree, home};
pub use opening::is_begun;
pub use options::{Options, Stay};
pub use rate::Rate;
pub(crate) use turns::Turns;
