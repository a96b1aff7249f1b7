use std::collections::BTreeMap;

/// The files of one import.
#[derive(Default)]
pub(crate) struct Tree {
    /// Path of the file or directory that was named, as the board keeps paths; none for standard
    /// input.
    pub path: Option<String>,
    pub is_directory: bool,
    /// Fields, and the names of the columns that have them, as the caller says.
    pub map: Vec<(String, String)>,
    /// Texts by their names: below the directory, or the file's own.
    pub files: BTreeMap<String, String>,
    /// Files of the directory that cannot be read, and why.
    pub unread: Vec<(String, String)>,
}

impl Tree {
    /// One file.
    pub(crate) fn file(path: Option<String>, text: String) -> Self {
        let name =
            path.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or("-").to_owned();
        Self { path, files: BTreeMap::from([(name, text)]), ..Self::default() }
    }

    /// The text, if it is one file.
    pub(crate) fn only(&self) -> Option<&str> {
        self.files.values().next().filter(|_| self.files.len() == 1).map(String::as_str)
    }

    /// Path of a file, as the board keeps paths.
    pub(crate) fn path_of(&self, name: &str) -> Option<String> {
        let path = self.path.as_ref()?;
        match (self.is_directory, path.as_str()) {
            (false, _) => Some(path.clone()),
            (true, "" | ".") => Some(name.to_owned()),
            (true, path) => Some(format!("{}/{name}", path.trim_end_matches('/'))),
        }
    }
}

/// Whether a path ends as `place` says.
pub(crate) fn fits_path(place: &str, path: &str) -> bool {
    let mut parts = path.rsplit('/');
    place.rsplit('/').all(|pattern| parts.next().is_some_and(|part| fits(pattern, part)))
}

/// What remains of a place for a directory that may lie inside of it: `tasks/*.md` for
/// `backlog/tasks/*.md` below `x/backlog`. The whole place is the first.
pub(crate) fn below<'p>(place: &'p str, directory: &str) -> Vec<&'p str> {
    let ends = place.match_indices('/').map(|(at, _)| at);
    let inside = ends.filter(|at| fits_path(&place[..*at], directory)).map(|at| &place[at + 1..]);
    std::iter::once(place).chain(inside).collect()
}

/// Whether a name fits a pattern, in which one `*` stands for anything.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}
