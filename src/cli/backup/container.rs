//! Format of a backup: a line `callboard-backup 1`; a line of JSON, the [`Header`]; the parts that
//! it lists, one after another; and a last line with the SHA-256 of everything before it, in 64 hex
//! digits.

use std::io::{self, Read, Write};

use anyhow::{bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config;
use crate::journal::sqlite;
use crate::state::digest::{hex, sha256};
use crate::state::time::Timestamp;
use crate::statefile;

pub(crate) const MAGIC: &[u8] = b"callboard-backup ";
const FIRST_LINE: &[u8] = b"callboard-backup 1\n";
const LARGEST: u64 = 8 << 30;

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Header {
    pub board_id: String,
    /// Number of the last event.
    pub seq: u64,
    pub taken_at: Timestamp,
    pub parts: Vec<Part>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Part {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

pub(crate) struct Contents {
    pub state: Vec<u8>,
    pub journal: Vec<u8>,
    /// Empty if the board has none.
    pub config: Vec<u8>,
}

impl Contents {
    fn parts(&self) -> [(&'static str, &Vec<u8>); 3] {
        [
            (statefile::FILE_NAME, &self.state),
            (sqlite::FILE_NAME, &self.journal),
            (config::FILE, &self.config),
        ]
    }
}

pub(crate) fn write(out: &mut impl Write, header: &Header, contents: &Contents) -> io::Result<()> {
    let parts = contents.parts();
    let described = parts.map(|(name, bytes)| Part {
        name: name.to_owned(),
        bytes: bytes.len() as u64,
        sha256: sha256(bytes),
    });
    let header = serde_json::to_vec(&Header {
        board_id: header.board_id.clone(),
        seq: header.seq,
        taken_at: header.taken_at,
        parts: described.into(),
    })?;
    let mut digest = Sha256::new();
    let pieces = [FIRST_LINE, &header, b"\n"]
        .into_iter()
        .chain(parts.into_iter().map(|(_, bytes)| bytes.as_slice()));
    for piece in pieces {
        digest.update(piece);
        out.write_all(piece)?;
    }
    out.write_all(format!("{}\n", hex(&digest.finalize())).as_bytes())
}

/// Reads a whole backup and verifies it.
pub(crate) fn read(input: impl Read) -> anyhow::Result<(Header, Contents)> {
    let mut all = Vec::new();
    input.take(LARGEST).read_to_end(&mut all)?;
    let Some(rest) = all.strip_prefix(FIRST_LINE) else {
        bail!("it is of a newer callboard, or no backup")
    };
    let Some((before, digest)) = all.split_last_chunk::<65>() else { bail!("it is cut off") };
    ensure!(
        format!("{}\n", sha256(before)).as_bytes() == digest,
        "it is not as it was written: its SHA-256 is not the one at its end"
    );
    let mut headers = serde_json::Deserializer::from_slice(rest).into_iter::<Header>();
    let Some(Ok(header)) = headers.next() else { bail!("its header cannot be understood") };
    let mut parts = &rest[headers.byte_offset()..rest.len() - digest.len()];
    parts = parts.strip_prefix(b"\n").unwrap_or_default();
    let mut contents = Contents { state: Vec::new(), journal: Vec::new(), config: Vec::new() };
    for part in &header.parts {
        let split =
            usize::try_from(part.bytes).ok().and_then(|bytes| parts.split_at_checked(bytes));
        let Some((bytes, rest)) = split else { bail!("part {} is cut off", part.name) };
        ensure!(sha256(bytes) == part.sha256, "part {} is not as it was written", part.name);
        match part.name.as_str() {
            statefile::FILE_NAME => contents.state = bytes.to_vec(),
            sqlite::FILE_NAME => contents.journal = bytes.to_vec(),
            config::FILE => contents.config = bytes.to_vec(),
            other => bail!("it has a part {other} that this callboard does not know"),
        }
        parts = rest;
    }
    Ok((header, contents))
}
