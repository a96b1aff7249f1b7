//! What a file with slots says of itself in its first bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::layout::Layout;
use crate::statefile::head::{HEAD_BYTES, parse_head};

/// What the first bytes of a flat file say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub board_id: String,
    pub seq: u64,
    pub checksum: String,
    pub layout: Layout,
}

impl Header {
    /// `None` when `head` does not begin a flat file.
    pub(crate) fn parse(head: &[u8]) -> Option<Self> {
        let shown = parse_head(head)?;
        let mark = b"\n  \"checksum\": ";
        let mut rest = &head[memchr::memmem::find(head, mark)? + mark.len()..];
        let mut texts = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
        let checksum = texts.next()?.ok()?;
        rest = rest[texts.byte_offset()..].strip_prefix(b",\n  \"layout\": ")?;
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Layout>();
        Some(Self {
            board_id: shown.board_id,
            seq: shown.seq,
            checksum,
            layout: values.next()?.ok()?,
        })
    }

    pub(crate) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut head = vec![0; usize::try_from(HEAD_BYTES).unwrap_or_default().min(size_of(file)?)];
        file.read_exact_at(&mut head, 0)?;
        Ok(Self::parse(&head))
    }
}

pub(crate) fn size_of(file: &File) -> io::Result<usize> {
    usize::try_from(file.metadata()?.len()).map_err(io::Error::other)
}
