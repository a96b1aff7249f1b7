//! Compares the files of the board's plans with what was imported.

use std::fs::{self, OpenOptions, canonicalize};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;
use serde::Serialize;

use super::Session;
use super::connect::quoted;
use super::input::text_of;
use crate::exchange::{self, Tree};
use crate::ops::{self, LARGEST_INPUT};
use crate::plan;
use crate::state::document::PlanVersion;
use crate::state::plan::newest_of_each;

/// A file that is not what was imported.
#[derive(Debug, Serialize)]
pub(super) struct PlanFile {
    /// Name of the plan
    pub name: String,
    /// Path in the project
    pub file: String,
    pub state: FileState,
    /// Version on the board
    pub version: String,
    /// Command that takes the file over
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The same in a sentence
    pub says: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileState {
    Changed,
    Gone,
}

/// The files of `plans`, versions of plans with the newest last, that lie in the session's project
/// and are not what was imported. None for the board of a server, whose project is elsewhere.
pub(super) fn changed(session: &Session, plans: &[PlanVersion]) -> Vec<PlanFile> {
    let Some(root) = root(session).filter(|_| session.server.is_none()) else { return Vec::new() };
    let import = |source: &str| {
        let path = root.join(source);
        let path = path.strip_prefix(&session.cwd).unwrap_or(&path);
        session.wording.line(&format!("plan import {}", quoted(&path.to_string_lossy())))
    };
    let found = newest_of_each(plans).into_iter().filter_map(|plan| compared(&root, plan, import));
    found
        .filter(|file| file.state == FileState::Changed || !session.is_in_project(&file.file))
        .collect()
}

/// Root of the worktree that the session is in or, outside of git, the directory that the board is
/// in.
fn root(session: &Session) -> Option<PathBuf> {
    let worktree = session.place().worktree.map(PathBuf::from);
    canonicalize(worktree.as_deref().or_else(|| session.dir().parent())?).ok()
}

fn compared(root: &Path, plan: &PlanVersion, import: impl Fn(&str) -> String) -> Option<PlanFile> {
    let (source, sha256) = (plan.source.as_deref()?, plan.sha256.as_str());
    let found = match read(root, source) {
        Reading::Text(text) if is_version(&text, source, sha256) => return None,
        Reading::Text(_) => FileState::Changed,
        // Versions without a name are older than paths: of them only the file's name is known.
        Reading::Gone if plan.name.is_some() => FileState::Gone,
        Reading::Gone | Reading::Untrusted => return None,
    };
    let command = (found == FileState::Changed).then(|| import(source));
    let version = plan.session().to_owned();
    let says = match &command {
        Some(command) => {
            format!(
                "{source} has changed since it was imported as version {version}; `{command}` \
                 takes it over"
            )
        }
        None => format!(
            "{source} is gone, which was imported as version {version}; the plan stays on the \
             board"
        ),
    };
    Some(PlanFile {
        name: plan.name().to_owned(),
        file: source.to_owned(),
        state: found,
        version,
        command,
        says,
    })
}

/// Whether the file says what the version says: in its own text, or in the plan that is made of
/// another tool's file.
fn is_version(text: &str, source: &str, sha256: &str) -> bool {
    let is_it = |text: &str| plan::version(&ops::received(text)) == sha256;
    if is_it(text) {
        return true;
    }
    let tree = Tree::file(Some(source.to_owned()), text.to_owned());
    let Some(format) = exchange::detect(source, &tree).map(|(format, _)| format) else {
        return false;
    };
    // Which columns of a table were read is not known.
    let is_table = format.name == exchange::CSV;
    is_table
        || format
            .read
            .and_then(|read| read(&tree).ok())
            .is_some_and(|mut read| is_it(&read.plan_text().0))
}

enum Reading {
    Text(String),
    Gone,
    /// Not read: the path was given by the caller of the import, and may lead anywhere.
    Untrusted,
}

/// Reads the file at the plain path `source` below `root`: a regular one of bounded size, through
/// no link that leads out.
fn read(root: &Path, source: &str) -> Reading {
    let path = Path::new(source);
    if path.as_os_str().is_empty()
        || !path.components().all(|part| matches!(part, Component::Normal(_)))
    {
        return Reading::Untrusted;
    }
    let path = root.join(path);
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Reading::Gone;
    }
    let is_inside = |path: &PathBuf| path.starts_with(root);
    let Some(real) = canonicalize(&path).ok().filter(is_inside) else { return Reading::Untrusted };
    regular(&real).ok().flatten().and_then(text_of).map_or(Reading::Untrusted, Reading::Text)
}

/// The content of a regular file that is no larger than a plan may be.
fn regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_INPUT + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= LARGEST_INPUT))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "- [ ] Write the lexer\n";

    fn told(root: &Path, source: &str, text: &str) -> Option<(FileState, String)> {
        let plan =
            json!({"name": source, "source": source, "sha256": plan::version(text), "items": 1});
        let plan = serde_json::from_value(plan).unwrap();
        compared(root, &plan, |file| format!("import {}", quoted(file)))
            .map(|file| (file.state, file.says))
    }

    #[test]
    fn changed_and_gone_files_are_told_with_the_command() {
        let place = tempfile::tempdir().unwrap();
        let root = canonicalize(place.path()).unwrap();
        fs::create_dir(root.join("docs")).unwrap();
        fs::write(root.join("docs/a plan.md"), TEXT).unwrap();
        assert_eq!(told(&root, "docs/a plan.md", TEXT), None);
        let (state, says) = told(&root, "docs/a plan.md", "- [ ] Write the parser\n").unwrap();
        assert!(state == FileState::Changed && says.contains("import 'docs/a plan.md'"), "{says}");
        let (state, says) = told(&root, "docs/gone.md", TEXT).unwrap();
        assert!(state == FileState::Gone && says.contains("docs/gone.md is gone"), "{says}");
        let older = json!({"source": "gone.md", "sha256": plan::version(TEXT), "items": 1});
        let older = serde_json::from_value(older).unwrap();
        assert!(compared(&root, &older, str::to_owned).is_none(), "where it was is not known");
    }

    #[test]
    fn what_import_leaves_out_is_no_change() {
        let place = tempfile::tempdir().unwrap();
        let root = canonicalize(place.path()).unwrap();
        let token = ["ghp_", &"a1".repeat(18)].concat();
        let text = format!("- [ ] Write the lexer with {token}\u{200b}\r\n");
        let utf16 = |text: &str| {
            [vec![0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat()
        };
        for bytes in
            [text.clone().into_bytes(), format!("\u{feff}{text}").into_bytes(), utf16(&text)]
        {
            fs::write(root.join("plan.md"), bytes).unwrap();
            assert_eq!(told(&root, "plan.md", &ops::received(&text)), None);
        }
    }

    #[test]
    fn nothing_is_read_that_is_no_plain_file_of_the_project() {
        let place = tempfile::tempdir().unwrap();
        let root = canonicalize(place.path()).unwrap().join("project");
        fs::create_dir_all(root.join("directory")).unwrap();
        fs::write(root.join("../outside.md"), "- [ ] Other\n").unwrap();
        std::os::unix::fs::symlink("../outside.md", root.join("link.md")).unwrap();
        std::os::unix::fs::symlink("..", root.join("up")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        fs::File::create(root.join("large")).unwrap().set_len(LARGEST_INPUT + 1).unwrap();
        let outside = root.join("../outside.md").to_string_lossy().into_owned();
        for source in [
            "../outside.md",
            "directory/../../outside.md",
            "link.md",
            "up/outside.md",
            "directory",
            "pipe",
            "large",
            "",
            &outside,
        ] {
            assert_eq!(told(&root, source, TEXT), None, "{source}");
        }
    }
}
