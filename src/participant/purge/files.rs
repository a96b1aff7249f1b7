//! The files of a board that have a text, and how each loses it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use fs_err as fs;

use super::text::Text;
use crate::bundle;
use crate::journal::sqlite::{FILE_NAME, LOG_NAME};
use crate::participant::directory::{LOCKS, RUN};
use crate::private::Dir;
use crate::sealed;
use crate::snapshot;
use crate::state::artifact;
use crate::state::bundle::Bundle;
use crate::state::digest::sha256;
use crate::statefile::SPARE;

/// Files and directories whose content a person changes: settings, tokens, and what agents work on.
const OWN: [&str; 4] = ["config.toml", "tokens.toml", "serve.token", "worktrees"];
/// How long to wait for another process that writes snapshots or bundles.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// A file that is changed, or a directory of sealed files.
pub(super) enum Change {
    /// An artifact is placed under another name, with the hash of its new content.
    Artifact {
        old: PathBuf,
        new: PathBuf,
        content: Vec<u8>,
        hashes: (String, String),
        shown: String,
    },
    /// Snapshots or bundles, of which one has the text, and those after it its hash.
    Sealed {
        dir: PathBuf,
        shown: Vec<String>,
    },
    Other {
        path: PathBuf,
        shown: String,
    },
    /// A copy of a journal is removed.
    Copy {
        path: PathBuf,
        shown: String,
    },
}

impl Change {
    /// The files that have the text.
    pub(super) fn names(&self) -> &[String] {
        match self {
            Self::Artifact { shown, .. } | Self::Other { shown, .. } | Self::Copy { shown, .. } => {
                std::slice::from_ref(shown)
            }
            Self::Sealed { shown, .. } => shown,
        }
    }

    pub(super) fn is_copy(&self) -> bool {
        matches!(self, Self::Copy { .. })
    }

    pub(super) fn is_artifact(&self) -> bool {
        matches!(self, Self::Artifact { .. })
    }

    pub(super) fn write(&self, text: &Text) -> io::Result<()> {
        match self {
            Self::Artifact { new, content, .. } => place(new, content),
            Self::Sealed { dir, .. } => rewrite(dir, text),
            Self::Other { path, .. } => place(path, &text.blotted(&fs::read(path)?)),
            Self::Copy { path, .. } => fs::remove_file(path),
        }
    }

    /// Removes what is left of it.
    pub(super) fn finish(&self) -> io::Result<()> {
        match self {
            Self::Artifact { old, new, .. } if old != new => fs::remove_file(old),
            _ => Ok(()),
        }
    }
}

/// The hashes of artifacts, and what they become.
pub(super) fn new_hashes(changes: &[Change]) -> Vec<(String, String)> {
    let hashes = changes.iter().filter_map(|change| match change {
        Change::Artifact { hashes, .. } => Some(hashes.clone()),
        _ => None,
    });
    hashes.filter(|(old, new)| old != new).collect()
}

/// What must change in the directory of a board, apart from journal and state file.
pub(super) fn changes(dir: &Path, state_file: &str, text: &Text) -> io::Result<Vec<Change>> {
    let mut changes = Vec::new();
    for path in all(dir)? {
        let within = path.strip_prefix(dir).unwrap_or(&path);
        let (Some(name), shown) = (path.file_name().and_then(|name| name.to_str()), shown(within))
        else {
            continue;
        };
        let top = within.components().next().and_then(|first| first.as_os_str().to_str());
        let is_top = within.components().count() == 1;
        if is_top && is_live(name, state_file) || top == Some(RUN) {
            continue;
        }
        if name.starts_with(FILE_NAME) || name.contains(&format!(".{FILE_NAME}")) {
            changes.push(Change::Copy { path, shown });
            continue;
        }
        let content = content_of(&path, name)?;
        let is_named = text.clean(name).is_some();
        if !text.is_in(&content) && !is_named {
            continue;
        }
        let parent = path.parent().unwrap_or(dir).to_path_buf();
        match top {
            Some(artifact::DIRECTORY) => changes.push(artifact(path, &content, text, shown)),
            Some(snapshot::DIRECTORY | bundle::DIRECTORY) if sealed::of_file(name).is_some() => {
                let known = changes.iter_mut().find_map(|one| match one {
                    Change::Sealed { dir, shown } if *dir == parent => Some(shown),
                    _ => None,
                });
                match known {
                    Some(files) => files.push(shown),
                    None => changes.push(Change::Sealed { dir: parent, shown: vec![shown] }),
                }
            }
            Some(top) if OWN.contains(&top) => {}
            _ => changes.push(Change::Other { path, shown }),
        }
    }
    Ok(changes)
}

/// What a file holds, without compression.
fn content_of(path: &Path, name: &str) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    let mut content = Vec::new();
    let unpacked = sealed::of_file(name).is_some()
        && name.ends_with(sealed::PACKED)
        && GzDecoder::new(bytes.as_slice()).read_to_end(&mut content).is_ok();
    Ok(if unpacked { content } else { bytes })
}

/// The files that still have the text.
pub(super) fn with(dir: &Path, text: &Text) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for path in all(dir)? {
        // Opening the journal's files would drop SQLite's locks on them; it was written anew.
        let name = path.file_name().unwrap_or_default();
        let is_journals = [FILE_NAME, LOG_NAME, "journal.db-shm"].iter().any(|one| name == *one);
        let is_live = is_journals && path.parent() == Some(dir);
        if !is_live && text.is_in(&content_of(&path, &name.to_string_lossy())?) {
            found.push(shown(path.strip_prefix(dir).unwrap_or(&path)));
        }
    }
    Ok(found)
}

/// Files that the board itself writes anew.
fn is_live(name: &str, state_file: &str) -> bool {
    [FILE_NAME, LOG_NAME, "journal.db-shm", SPARE, state_file].contains(&name)
        || LOCKS.contains(&name)
}

/// The regular files in a directory and those below it; links are not followed.
fn all(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut open, mut found) = (vec![dir.to_path_buf()], Vec::new());
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn artifact(old: PathBuf, content: &[u8], text: &Text, shown: String) -> Change {
    let content_now = text.blotted(content);
    let hashes = (sha256(content), sha256(&content_now));
    let name = old.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name
        .strip_prefix(&hashes.0[..8])
        .map_or_else(|| name.to_owned(), |rest| format!("{}{rest}", &hashes.1[..8]));
    let new = old.with_file_name(text.clean(&name).unwrap_or(name));
    Change::Artifact { old, new, content: content_now, hashes, shown }
}

fn place(path: &Path, content: &[u8]) -> io::Result<()> {
    let (Some(parent), Some(name)) =
        (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let dir = Dir::open(parent)?.ok_or(io::ErrorKind::NotFound)?;
    dir.place(name, content)
}

/// Writes a directory of sealed files anew: those that have the text, and those after them, which
/// have the hash of the one before.
fn rewrite(path: &Path, text: &Text) -> io::Result<()> {
    let dir = Dir::open(path)?.ok_or(io::ErrorKind::NotFound)?;
    let _alone = dir.lock(PATIENCE)?.ok_or(io::ErrorKind::TimedOut)?;
    sealed::rewrite(&dir, |bytes| {
        let clean = text.clean_json(str::from_utf8(bytes).ok()?)?;
        // A bundle also has the hash of its content.
        let bundle = serde_json::from_str::<Bundle>(&clean).map(Bundle::whole);
        let bundle = bundle.and_then(|bundle| serde_json::to_vec_pretty(&bundle));
        Some(bundle.unwrap_or_else(|_| clean.into_bytes()))
    })
}
