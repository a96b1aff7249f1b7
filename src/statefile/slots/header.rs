//! What a file with slots says of itself in its last bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::layout::Layout;
use crate::statefile::derived;
use crate::statefile::head::{HEAD_BYTES, parse_end};

/// What the last part of a file with slots says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub board_id: String,
    pub seq: u64,
    pub checksum: String,
    pub layout: Layout,
}

impl Header {
    /// `None` when `bytes` do not end a file with slots.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let end =
            &bytes[bytes.len().saturating_sub(usize::try_from(HEAD_BYTES).unwrap_or_default())..];
        let shown = parse_end(end)?;
        let (checksum, rest) = text_behind(end, "checksum")?;
        let (_, rest) = text_behind(rest, derived::CHECKSUM)?;
        let rest = rest.strip_prefix(b",\n  \"layout\": ")?;
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Layout>();
        Some(Self {
            board_id: shown.board_id,
            seq: shown.seq,
            checksum,
            layout: values.next()?.ok()?,
        })
    }

    pub(crate) fn read(file: &File) -> io::Result<Option<Self>> {
        let size = size_of(file)?;
        let length = usize::try_from(HEAD_BYTES).unwrap_or_default().min(size);
        let mut end = vec![0; length];
        file.read_exact_at(&mut end, (size - length) as u64)?;
        Ok(Self::parse(&end))
    }
}

/// The value of the last top-level field of that name, a text, and what follows it.
fn text_behind<'a>(bytes: &'a [u8], name: &str) -> Option<(String, &'a [u8])> {
    let mark = format!("\n  \"{name}\": ");
    let rest = &bytes[memchr::memmem::rfind(bytes, mark.as_bytes())? + mark.len()..];
    let mut texts = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
    let text = texts.next()?.ok()?;
    Some((text, &rest[texts.byte_offset()..]))
}

pub(crate) fn size_of(file: &File) -> io::Result<usize> {
    usize::try_from(file.metadata()?.len()).map_err(io::Error::other)
}
