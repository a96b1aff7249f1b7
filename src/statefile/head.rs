//! What a state file says of itself in its first bytes.

use std::io::{self, Read};

use super::Home;
use super::file::open_regular;
use crate::state::document::SCHEMA_VERSION;

/// The header's first fields lie within this many bytes.
pub const HEAD_BYTES: u64 = 4096;

/// What the head of a state file says, unverified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub board_id: String,
    pub seq: u64,
}

/// Reads the head of the file in `dir` only. `None` when there is no file, or none that a [`Projection`] wrote.
pub fn seq_of(dir: impl Into<Home>) -> io::Result<Option<Head>> {
    let Some(file) = open_regular(&dir.into().file())? else { return Ok(None) };
    // With room for all, one read is enough.
    let mut head = Vec::with_capacity(HEAD_BYTES as usize);
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(parse_head(&head))
}

pub fn parse_head(head: &[u8]) -> Option<Head> {
    let rest = head.strip_prefix(b"{\n  \"schema_version\": ")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let version: u32 = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    if !(1..=SCHEMA_VERSION).contains(&version) {
        return None;
    }
    let rest = rest[digits..].strip_prefix(b",\n  \"board_id\": ")?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
    let board_id = values.next()?.ok()?;
    let rest = rest[values.byte_offset()..].strip_prefix(b",\n  \"seq\": ")?;
    let digits = rest.split(|byte| *byte == b',').next().filter(|digits| digits.len() < rest.len())?;
    Some(Head { board_id, seq: std::str::from_utf8(digits).ok()?.parse().ok()? })
}
