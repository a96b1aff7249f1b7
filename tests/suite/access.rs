//! Access: who may do what, what is kept secret, and what others can tamper with.

mod files;
pub(crate) mod redaction;
mod texts;
mod tokens;
