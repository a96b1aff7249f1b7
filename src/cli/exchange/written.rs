//! Writes the files of an export. What something else has written is only replaced on request, so
//! the board remembers what exports wrote.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use crate::cli::{Declined, Session, usage_error};
use crate::participant::directory::EXPORTS;
use crate::private::{self, Dir};
use crate::state::digest::sha256;

/// Most files of others that are named.
const NAMED: usize = 5;

#[derive(Default)]
pub(super) struct Outcome {
    pub written: Vec<String>,
    pub unchanged: Vec<String>,
    pub removed: Vec<String>,
}

/// Writes all files and removes those that are `left`, or does nothing if one of them was not written
/// by callboard and `force` is not given.
pub(super) fn write(
    session: &Session,
    format: &str,
    root: &Path,
    files: Vec<(PathBuf, String)>,
    left: &[PathBuf],
    force: bool,
) -> anyhow::Result<Outcome> {
    let mut record = Record::read(session);
    let mut others = Vec::new();
    let mut due = Vec::new();
    let mut outcome = Outcome::default();
    for (path, text) in &files {
        let name = path.to_string_lossy().into_owned();
        match fs_err::read(path) {
            Ok(there) if there == text.as_bytes() => outcome.unchanged.push(name),
            Ok(there) if !force && !record.is_ours(&name, &there) => others.push(name),
            Ok(_) => due.push((path, text)),
            Err(_) if path.is_dir() => {
                usage_error(format!("{name} is a directory: name a file in it"))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => due.push((path, text)),
            Err(error) => return Err(Declined(error.into()).into()),
        }
    }
    let left: Vec<&PathBuf> = left.iter().filter(|path| path.is_file()).collect();
    for path in &left {
        let name = path.to_string_lossy().into_owned();
        let is_ours = fs_err::read(path).is_ok_and(|there| record.is_ours(&name, &there));
        if !force && !is_ours {
            others.push(name);
        }
    }
    if !others.is_empty() {
        let more = others.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = others.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let what = format!(
            "{names}{more}: written or changed by something else; --force replaces them; nothing \
             was written"
        );
        return Err(Declined(anyhow!(what)).into());
    }
    for (path, text) in due {
        let directory = path.parent().unwrap_or(root);
        fs_err::create_dir_all(directory).map_err(|error| Declined(error.into()))?;
        let mut new = tempfile::Builder::new();
        // Less what the umask takes away, as for any file of the project.
        let new = new.permissions(Permissions::from_mode(0o666)).tempfile_in(directory);
        let new = new.with_context(|| format!("no file can be made in {}", directory.display()))?;
        fs_err::write(new.path(), text)?;
        new.persist(path).with_context(|| format!("{} cannot be written", path.display()))?;
        outcome.written.push(path.to_string_lossy().into_owned());
    }
    let kept: Vec<String> =
        files.iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    let root = root.to_string_lossy();
    outcome.removed = record.remove_gone(format, &root, &kept);
    for path in left {
        // What an earlier export wrote is gone already.
        if path.is_file() {
            fs_err::remove_file(path)?;
            outcome.removed.push(path.to_string_lossy().into_owned());
        }
    }
    record.keep(format, &root, &files);
    record.write(session)?;
    Ok(outcome)
}

/// Hashes of files that exports have written, by their paths and formats.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Record(BTreeMap<String, Entry>);

#[derive(serde::Serialize, serde::Deserialize)]
struct Entry {
    format: String,
    /// The file or directory that the export was asked for.
    #[serde(default)]
    root: String,
    sha256: String,
}

impl Record {
    fn read(session: &Session) -> Self {
        let file = private::read(session.dir(), EXPORTS).ok().flatten();
        file.and_then(|file| serde_json::from_reader(std::io::BufReader::new(file)).ok())
            .unwrap_or_default()
    }

    fn is_ours(&self, name: &str, there: &[u8]) -> bool {
        self.0.get(name).is_some_and(|entry| entry.sha256 == sha256(there))
    }

    /// Removes what an earlier export to the same root has written and this one has not, unless it
    /// was changed since.
    fn remove_gone(&mut self, format: &str, root: &str, kept: &[String]) -> Vec<String> {
        let mut removed = Vec::new();
        let is_earlier = |entry: &Entry| entry.format == format && entry.root == root;
        let gone = self.0.iter().filter(|(name, entry)| is_earlier(entry) && !kept.contains(name));
        for (name, entry) in gone {
            let is_ours = fs_err::read(name).is_ok_and(|there| sha256(there) == entry.sha256);
            if is_ours && fs_err::remove_file(name).is_ok() {
                removed.push(name.clone());
            }
        }
        removed.iter().for_each(|name| _ = self.0.remove(name));
        removed
    }

    fn keep(&mut self, format: &str, root: &str, files: &[(PathBuf, String)]) {
        for (path, text) in files {
            let entry =
                Entry { format: format.to_owned(), root: root.to_owned(), sha256: sha256(text) };
            self.0.insert(path.to_string_lossy().into_owned(), entry);
        }
    }

    /// A server's board is elsewhere: there is nothing to remember it in.
    fn write(&self, session: &Session) -> anyhow::Result<()> {
        if session.server.is_none()
            && let Some(directory) = Dir::open(session.dir())?
        {
            directory.place(EXPORTS, &serde_json::to_vec_pretty(self)?)?;
        }
        Ok(())
    }
}
