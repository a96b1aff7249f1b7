//! `mcp-state.json`: the whole live state, for anyone who opens the file. The journal is the truth,
//! and this file its projection.
//!
//! It is the JSON of a [`Document`](crate::state::document::Document) with a `checksum`: the sum
//! modulo 2^128 of one number for the header, one for each of its long fields that is not empty,
//! and one for each entity. The header is every field of the
//! [`Board`](crate::state::document::Board); its long fields, `goal`, `master_plan`, `plans` and
//! `spent_attempts`, enter the header's number as if they were empty. In older files they enter it
//! as they are, and have no numbers of their own. A number is the first 16 bytes, big-endian, of
//! the SHA-256 of section, key and compact JSON, with a NUL byte after each of the first two; a
//! section is a field's name or `board`. Only an entity of a map has a key that is not empty.
//!
//! Up to 256 kB the file is `whole`: indented as `serde_json` does, what a person looks for first,
//! `derived` fields among it, and last `schema_version`, `board_id`, `seq` and the checksums. A
//! larger one is `flat`, where the system allows it: the same in the same order, but each entity in a
//! slot, with a `layout` at the end, and a checksum that covers the entities' order, too. Either form
//! can be loaded anywhere, and so can files of older builds, which begin with those four fields. An
//! older build reads either form, finds no `seq` at its start, and writes the file anew in its own.

mod derived;
pub mod displaced;
pub mod edit;
mod file;
mod flat;
mod found;
mod fragment;
mod head;
mod held;
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

pub use derived::Shown;
pub use file::{FileIdentity, Left, identity, set_aside};
pub use found::{Found, LoadError};
pub use head::{Head, seq_of};
pub use held::load_held;
pub use home::{FILE_NAME, Home};
pub use load::{load, load_file, recognise};
pub use projection::{Projection, SLOTS_FROM, Unplaced, WHOLE_FILES};
pub use put_back::{PutBack, keep_put_back};
pub use spare::{NAME as SPARE, remove as remove_spare};
pub use whole::text_of;

#[cfg(test)]
mod tests;
