//! Access: who may do what, what is kept secret, and what others can tamper with.

mod decides;
mod files;
mod guard;
mod privacy;
pub(crate) mod redaction;
mod shapes;
mod texts;
pub(crate) mod tokens;
