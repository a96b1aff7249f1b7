//! Files that nobody changes once they are there: named by the time at which they were made and the
//! first digits of their SHA-256, so that reading one tells whether it is what was written.
//! `latest.json` (`{version, path, sha256}`) beside them names the newest.

use std::io::{self, Read};

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
    let mut names: Vec<_> =
        dir.names()?.iter().filter_map(|name| SnapshotName::parse(name)).collect();
    names.sort();
    Ok(names)
}

/// What `latest.json` says; none when it is missing or cannot be understood.
pub(crate) fn latest<V: DeserializeOwned>(dir: &Dir) -> Option<Latest<V>> {
    let file = dir.open_file(LATEST, Purpose::Read).ok()??;
    let mut text = Vec::new();
    file.take(LATEST_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// At most `max` bytes of a file, unverified.
pub(crate) fn bytes(dir: &Dir, name: &SnapshotName, max: u64) -> Result<Vec<u8>, ReadError> {
    let file = match dir.open_file(name.as_str(), Purpose::Read) {
        Ok(file) => file.ok_or(ReadError::NotFound)?,
        Err(PrivateError::Refused { what, .. }) => {
            return Err(ReadError::Damaged(format!("it is {what}")));
        }
        Err(PrivateError::Failed { source, .. }) => return Err(ReadError::Io(source)),
    };
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
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
        if unfinished.is_some_and(|name| name == LATEST || SnapshotName::parse(name).is_some()) {
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
