//! A state file with slots: what stands where.
//!
//! One valid JSON document with the lines of a whole file, in the same order, except that: an
//! entity's text stands in a slot that is padded with spaces; the comma between two entities stands
//! before the second, so that the last one needs none when another is added; and behind each field
//! and each part of the board's own fields there is room for more, as padding at the end of a line.
//! The field `layout`, the last, says where everything is.
//!
//! A text that outgrows its slot moves to a new one at the end of its field, and the old slot becomes
//! padding of the line before it. Because of this, each task and each reservation carries its
//! `order`, from which a reader restores the order of creation; discoveries and messages never grow.
//! When a field has used up its room, or when too much of the file is slots without an owner, the
//! whole file is rearranged, as another `generation`. That is rare enough: the room is a share of the
//! whole file, so each byte of it pays for a bounded number of bytes written then.
//!
//! The checksum is the sum described in `statefile`, but each entity's number is multiplied by
//! 2·order + 1, so that two entities cannot swap places unnoticed, and `layout` has a number, too.
//! A commit updates it from the numbers of what has changed.

pub(super) mod books;
mod entities;
pub(super) mod header;
pub(super) mod layout;
mod parts;
pub(super) mod read;
pub(super) mod slot;
