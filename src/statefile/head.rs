//! What a state file says of itself, in its first bytes or in its last.

use std::io;

use super::file::{open_regular, read_up_to};
use super::home::Home;
use crate::state::document::SCHEMA_VERSION;

/// The fields that tell whose file it is lie within this many bytes, at its end, or at its start in a
/// file of an older build.
pub(super) const HEAD_BYTES: u64 = 4096;

/// What those fields of a state file say, unverified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub board_id: String,
    pub seq: u64,
}

/// Reads the start of the file in `dir`, or its end. `None` when there is no file, or none that a
/// [`Projection`] wrote.
///
/// [`Projection`]: super::Projection
pub fn seq_of(dir: impl Into<Home>) -> io::Result<Option<Head>> {
    let Some(file) = open_regular(&dir.into().file())? else { return Ok(None) };
    let file = file.file();
    let mut bytes = vec![0; usize::try_from(HEAD_BYTES).unwrap_or_default()];
    let length = read_up_to(file, &mut bytes, 0)?;
    if let Some(head) = parse_head(&bytes[..length]) {
        return Ok(Some(head));
    }
    let end = file.metadata()?.len().saturating_sub(HEAD_BYTES);
    let length = read_up_to(file, &mut bytes, end)?;
    Ok(parse_end(&bytes[..length]))
}

pub(super) fn parse_head(start: &[u8]) -> Option<Head> {
    parse(start.strip_prefix(b"{")?.strip_prefix(VERSION)?)
}

/// Finds the fields in the last bytes of a file. No line within a field has so little indentation.
pub(super) fn parse_end(end: &[u8]) -> Option<Head> {
    let end = end.trim_ascii_end().strip_suffix(b"\n}")?;
    let start = memchr::memmem::rfind(end, VERSION)? + VERSION.len();
    parse(&end[start..])
}

const VERSION: &[u8] = b"\n  \"schema_version\": ";

/// The fields that follow `schema_version`, which `rest` begins with.
fn parse(rest: &[u8]) -> Option<Head> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let version: u32 = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    if !(1..=SCHEMA_VERSION).contains(&version) {
        return None;
    }
    let rest = rest[digits..].strip_prefix(b",\n  \"board_id\": ")?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
    let board_id = values.next()?.ok()?;
    let rest = rest[values.byte_offset()..].strip_prefix(b",\n  \"seq\": ")?;
    let digits =
        rest.split(|byte| *byte == b',').next().filter(|digits| digits.len() < rest.len())?;
    Some(Head { board_id, seq: std::str::from_utf8(digits).ok()?.parse().ok()? })
}
