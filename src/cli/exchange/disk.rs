//! Finds and reads the files of a format below a directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::cli::{Declined, read_one};
use crate::exchange::{Format, below, fits};
use crate::state::limit;

/// The files of a format below a directory, by their names there, and those that cannot be read;
/// none if there are none.
pub(super) fn files(directory: &Path, format: &Format) -> anyhow::Result<Option<Files>> {
    let named = directory.to_string_lossy();
    let mut names = Vec::new();
    for place in format.places {
        for place in below(place, &named) {
            let mut walk = Walk {
                root: fs_err::canonicalize(directory)?,
                most: limit::READ_FILES.max,
                names: Vec::new(),
            };
            walk.look_into(directory, "", place);
            names.append(&mut walk.names);
        }
    }
    names.sort();
    names.dedup();
    if names.len() > limit::READ_FILES.max {
        let most = limit::READ_FILES.max;
        return Err(Declined(anyhow!(
            "{named} has more than {most} files of {}: name a smaller directory",
            format.name
        ))
        .into());
    }
    let (mut files, mut unread) = (BTreeMap::new(), Vec::new());
    let mut bytes = 0;
    for name in names {
        let text = match read_one(&directory.join(&name)) {
            Ok(text) => text,
            Err(why) => {
                unread.push((name, why));
                continue;
            }
        };
        bytes += text.len();
        if bytes > limit::READ.max {
            return Err(Declined(anyhow!(
                "{named} has more than {} bytes of {}: name a smaller directory",
                limit::READ.max,
                format.name
            ))
            .into());
        }
        files.insert(name, text);
    }
    Ok(Some((files, unread)).filter(|(files, _)| !files.is_empty()))
}

type Files = (BTreeMap<String, String>, Vec<(String, String)>);

/// The first file of a format in a project.
pub(super) fn first(root: &Path, format: &Format) -> Option<String> {
    let found = |place: &&str| {
        let mut walk = Walk { root: fs_err::canonicalize(root).ok()?, most: 1, names: Vec::new() };
        walk.look_into(root, "", place);
        walk.names.into_iter().next()
    };
    format.places.iter().filter(|place| place.contains('/')).find_map(found)
}

struct Walk {
    /// Nothing outside of this is read, whatever symbolic links say.
    root: PathBuf,
    most: usize,
    names: Vec<String>,
}

impl Walk {
    /// Adds the files below `directory` that fit a place. Only directories that the place names are
    /// looked into.
    fn look_into(&mut self, directory: &Path, prefix: &str, place: &str) {
        let (pattern, rest) =
            place.split_once('/').map_or((place, None), |(pattern, rest)| (pattern, Some(rest)));
        let names: Vec<String> = if pattern.contains('*') {
            self.listed(directory, pattern)
        } else {
            vec![pattern.to_owned()]
        };
        for name in names {
            if self.names.len() > self.most {
                return;
            }
            let path = directory.join(&name);
            let Ok(real) = fs::canonicalize(&path) else { continue };
            let whole = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            match rest {
                _ if !real.starts_with(&self.root) => {}
                Some(rest) if real.is_dir() => self.look_into(&path, &whole, rest),
                None if real.is_file() => self.names.push(whole),
                _ => {}
            }
        }
    }

    fn listed(&self, directory: &Path, pattern: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        let names = entries
            .take(limit::READ_FILES.max + 1)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| fits(pattern, name)).collect();
        names.sort();
        names
    }
}
