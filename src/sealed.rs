//! Files that nobody changes once they are there: named by the time at which they were made and the
//! first digits of their SHA-256, so that reading one tells whether it is what was written.
//! `latest.json` (`{version, path, sha256}`) beside them names the newest. An older file may be
//! compressed: then `.gz` follows its name, which is that of its content as before.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::failpoint;
use crate::private::{Dir, PrivateError, Purpose};
use crate::state::digest::sha256;
use crate::state::snapshot::SnapshotName;
use crate::state::time::Timestamp;

pub(crate) const LATEST: &str = "latest.json";
/// Most bytes of `latest.json` that are read: more than it ever has.
const LATEST_BYTES: u64 = 4_096;
/// What follows the name of a compressed file.
pub(crate) const PACKED: &str = ".gz";

#[derive(Debug, Error)]
pub enum ReadError {
    #[error("there is no such file")]
    NotFound,
    #[error("{0}")]
    Damaged(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Latest<V> {
    pub version: V,
    pub path: String,
    pub sha256: String,
}

/// The names of the files, oldest first.
pub(crate) fn names(dir: &Dir) -> io::Result<Vec<SnapshotName>> {
    let mut names: Vec<_> = dir.names()?.iter().filter_map(|name| of_file(name)).collect();
    names.sort();
    // A crash may have left a file in both forms.
    names.dedup();
    Ok(names)
}

/// The name of the file's content, if it is a sealed file.
pub(crate) fn of_file(name: &str) -> Option<SnapshotName> {
    SnapshotName::parse(name.strip_suffix(PACKED).unwrap_or(name))
}

fn packed(name: &SnapshotName) -> String {
    format!("{name}{PACKED}")
}

/// What `latest.json` says; none when it is missing or cannot be understood.
pub(crate) fn latest<V: DeserializeOwned>(dir: &Dir) -> Option<Latest<V>> {
    let file = dir.open_file(LATEST, Purpose::Read).ok()??;
    let mut text = Vec::new();
    file.take(LATEST_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A file that is open for reading: its content, and the bytes that it takes on the disk.
pub(crate) struct Opened {
    pub content: Box<dyn Read>,
    pub bytes: u64,
}

/// Opens a file in the form that it has.
pub(crate) fn open(dir: &Dir, name: &SnapshotName) -> Result<Opened, ReadError> {
    if let Some(file) = open_as(dir, name.as_str())? {
        return Ok(Opened { bytes: file.metadata()?.len(), content: Box::new(file) });
    }
    let file = open_as(dir, &packed(name))?.ok_or(ReadError::NotFound)?;
    Ok(Opened { bytes: file.metadata()?.len(), content: Box::new(GzDecoder::new(file)) })
}

fn open_as(dir: &Dir, name: &str) -> Result<Option<std::fs::File>, ReadError> {
    dir.open_file(name, Purpose::Read).map_err(|error| match error {
        PrivateError::Refused { what, .. } => ReadError::Damaged(format!("it is {what}")),
        PrivateError::Failed { source, .. } => ReadError::Io(source),
    })
}

/// At most `max` bytes of a file, unverified.
pub(crate) fn bytes(dir: &Dir, name: &SnapshotName, max: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    match open(dir, name)?.content.take(max).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidData
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::UnexpectedEof
            ) =>
        {
            Err(ReadError::Damaged(format!("it cannot be decompressed: {error}")))
        }
        Err(error) => Err(error.into()),
    }
}

/// Compresses a file that is what its name says, and returns whether it did; others stay as they
/// are. The caller holds the directory's lock.
pub(crate) fn pack(dir: &Dir, name: &SnapshotName, max: u64) -> io::Result<bool> {
    if dir.identity(name.as_str())?.is_none() {
        return Ok(false);
    }
    let Ok((content, _)) = read(dir, name, max) else { return Ok(false) };
    // In one write: for each of many small pieces, the encoder would clear a whole buffer.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&content)?;
    dir.place(&packed(name), &encoder.finish()?)?;
    dir.remove(name.as_str())?;
    Ok(true)
}

/// Removes a file in whatever form it has. The caller holds the directory's lock.
pub(crate) fn remove(dir: &Dir, name: &SnapshotName) -> io::Result<()> {
    dir.remove(name.as_str())?;
    dir.remove(&packed(name))
}

/// The content of a file that is what its name says, and its whole SHA-256.
pub(crate) fn read(
    dir: &Dir,
    name: &SnapshotName,
    max: u64,
) -> Result<(Vec<u8>, String), ReadError> {
    let bytes = bytes(dir, name, max)?;
    let sha256 = sha256(&bytes);
    if sha256.starts_with(name.hash()) {
        return Ok((bytes, sha256));
    }
    Err(ReadError::Damaged(format!("its SHA-256 begins with {}", &sha256[..8])))
}

/// Writes a new file, which is durable and named by `latest.json` when this returns. `place` is the
/// failpoint between the two. The caller holds the directory's lock.
pub(crate) fn put<V: Serialize>(
    dir: &Dir,
    at: Timestamp,
    bytes: &[u8],
    version: V,
    place: &str,
) -> io::Result<(SnapshotName, String)> {
    let sha256 = sha256(bytes);
    let name = SnapshotName::new(at, &sha256);
    clear_unfinished(dir)?;
    dir.place(name.as_str(), bytes)?;
    let pointed = failpoint::hit(place).and_then(|()| point(dir, &name, &sha256, version));
    if let Err(error) = pointed {
        // A caller that is told of a failure must not find the file.
        dir.remove(name.as_str())?;
        return Err(error);
    }
    Ok((name, sha256))
}

/// Removes what crashes have left of such files, and nobody else's in the directory. The caller
/// holds its lock.
pub(crate) fn clear_unfinished(dir: &Dir) -> io::Result<()> {
    for name in dir.names()? {
        let unfinished = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
        if unfinished.is_some_and(|name| name == LATEST || of_file(name).is_some()) {
            dir.remove(&name)?;
        }
    }
    Ok(())
}

/// Has `latest.json` name `name`.
pub(crate) fn point<V: Serialize>(
    dir: &Dir,
    name: &SnapshotName,
    sha256: &str,
    version: V,
) -> io::Result<()> {
    let latest = Latest { version, path: name.to_string(), sha256: sha256.to_owned() };
    dir.place(LATEST, &serde_json::to_vec(&latest)?)
}

/// Writes the files anew that `clean` changes, and those after them, each of which has the hash of
/// the one before. The caller holds the directory's lock.
pub(crate) fn rewrite(dir: &Dir, clean: impl Fn(&[u8]) -> Option<Vec<u8>>) -> io::Result<()> {
    let mut hashes: Vec<(String, String)> = Vec::new();
    let newest = latest::<serde_json::Value>(dir);
    for name in names(dir)? {
        let found = match bytes(dir, &name, u64::MAX) {
            Ok(found) => found,
            Err(ReadError::Io(error)) => return Err(error),
            Err(_) => continue,
        };
        let mut now = clean(&found).unwrap_or_else(|| found.clone());
        for (old, new) in &hashes {
            now = replaced(now, old, new);
        }
        if now == found {
            continue;
        }
        let (old, new) = (sha256(&found), sha256(&now));
        let name_now = SnapshotName::new(name.at(), &new);
        let was_packed = dir.identity(name.as_str())?.is_none();
        dir.place(name_now.as_str(), &now)?;
        if was_packed {
            pack(dir, &name_now, u64::MAX)?;
        }
        if let Some(latest) = newest.as_ref().filter(|latest| latest.path == name.as_str()) {
            point(dir, &name_now, &new, latest.version.clone())?;
        }
        remove(dir, &name)?;
        hashes.push((old, new));
    }
    Ok(())
}

fn replaced(bytes: Vec<u8>, old: &str, new: &str) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) if text.contains(old) => text.replace(old, new).into_bytes(),
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    }
}
