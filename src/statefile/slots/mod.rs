//! A state file with slots: what stands where.
//!
//! One valid, indented JSON document, as a whole file is, except that: an entity's text stands in a
//! slot that is padded with spaces; the comma between two entities stands before the second, so
//! that the last one needs none when another is added; tasks come last, because they are the most
//! and a file grows at its end; the other fields have room after their slots; and the first fields
//! stand in one part that every commit writes, while goal and plan stand apart, because they are
//! long and hardly change. The field `layout` says where everything is.
//!
//! A text that outgrows its slot moves to a new one at the end of its field and leaves an empty
//! line. Because of this, each task and each reservation carries its `order`, from which a reader
//! restores the order of creation; discoveries and messages never grow. When a field other than the
//! tasks has used up its room, or half of the file is empty lines, or many tasks have been added at
//! once, the whole file is rearranged, as another `generation`. That is rare enough: the room is a
//! share of the whole file, so each byte of it pays for a bounded number of bytes written then.
//!
//! The checksum is the sum described in `statefile`, but each entity's number is multiplied by
//! 2·order + 1, so that two entities cannot swap places unnoticed, and `layout` has a number, too.
//! A commit updates it from the numbers of what has changed.

mod books;
mod first_part;
mod header;
pub(super) mod layout;

pub(super) use books::{Before, Books, Slotted, contribution};
pub(super) use header::{Header, size_of};
