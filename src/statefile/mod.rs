//! `mcp-state.json`: the whole live state, for anyone who opens the file. The journal is the truth, and this file its
//! projection.
//!
//! Format 1 is the pretty-printed JSON of a [`Document`](crate::state::document::Document) with a `checksum` after
//! `seq`: the sum modulo 2^128 of one number for the header, one for each of its long fields that is not empty, and one
//! for each entity. The header is every field before `tasks` except the checksum; its long fields, `goal`,
//! `master_plan`, `plans` and `spent_attempts`, enter the header's number as if they were empty. In older files they
//! enter it as they are, and have no numbers of their own. A number is the first 16 bytes, big-endian, of the SHA-256
//! of section, key and compact JSON, with a NUL byte after each of the first two; a section is a field's name or
//! `board`. Only an entity of a map has a key that is not empty.
//!
//! Where the system allows it, the file is `flat`: the same fields in another order, with a `layout`, and a checksum
//! that covers the entities' order, too. Elsewhere it is written `whole`. Either form can be loaded anywhere.

pub mod displaced;
pub mod edit;
mod file;
mod flat;
mod found;
mod fragment;
mod head;
mod home;
mod lease;
mod load;
mod older;
mod plan;
mod projection;
mod put_back;
mod rendering;
mod slots;
mod spare;
mod unfinished;
mod whole;

pub use file::{FileIdentity, Left, boot, identity, set_aside};
pub use found::{Found, LoadError};
pub use head::{Head, seq_of};
pub use home::{FILE_NAME, Home};
pub use load::{load, load_file, recognise};
pub use projection::{Projection, Unplaced, WHOLE_FILES};
pub use put_back::{PutBack, keep_put_back};
pub use spare::NAME as SPARE;
pub use whole::text_of;

#[cfg(test)]
mod tests;
