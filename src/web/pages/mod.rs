//! The pages, a file each.

pub(super) mod board;
pub(super) mod failure;
pub(super) mod login;
