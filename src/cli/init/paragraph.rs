//! The paragraph on the board in a project's AGENTS.md or CLAUDE.md.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fs_err as fs;

/// Lines around the paragraph, by which it is found again.
const BEGIN: &str = "<!-- callboard -->";
const END: &str = "<!-- /callboard -->";

/// Files that agents' clients read, in the order of preference.
const FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The paragraph. `board` holds the options that name the board, each followed by a space.
pub(super) fn text(board: &str) -> String {
    format!(
        "\
## Tasks

All agents on this project share one task board, callboard. With its MCP tools: `register_agent` \
         once, and its agent_id in
every call; then `claim_task` (wait_seconds 50), bring in the commits that its handoff names, do \
         that one task and commit,
`heartbeat` with a note at each milestone, `complete_task` with what was done, or `fail_task` with \
         the error; claim again
until its verdict is `finished` or `paused`. Without the tools, the same from a shell, NAME being \
         yours alone:

    callboard {board}--agent NAME claim --wait 50
    callboard {board}--agent NAME heartbeat --note 'where I am'
    callboard {board}--agent NAME complete TASK 'what was done'
    callboard {board}--agent NAME fail TASK 'what went wrong'

`callboard {board}tasks` and `callboard {board}status` show the board. Work only on what you hold; \
         never edit `.coordination/` by hand."
    )
}

/// The project's files that the paragraph belongs into: those that are there, or one to be made.
/// One that is a link to another is that other.
pub(in crate::cli) fn files(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in FILES.map(|name| root.join(name)).into_iter().filter(|path| path.is_file()) {
        let same = |one: &PathBuf| matches!((fs::canonicalize(one), fs::canonicalize(&path)), (Ok(a), Ok(b)) if a == b);
        if !found.iter().any(same) {
            found.push(path);
        }
    }
    if found.is_empty() { vec![root.join(FILES[0])] } else { found }
}

/// What a file says with the paragraph in it; none if it says so already. A paragraph that `init`
/// wrote before is replaced; the rest stays.
pub(super) fn put_into(file: &str, paragraph: &str) -> Option<String> {
    let marked = format!("{BEGIN}\n{paragraph}\n{END}");
    let place = file
        .find(BEGIN)
        .and_then(|start| Some((start, start + file[start..].find(END)? + END.len())));
    let text = match place {
        Some((start, end)) => format!("{}{marked}{}", &file[..start], &file[end..]),
        None if file.trim().is_empty() => format!("{marked}\n"),
        None => format!("{}\n\n{marked}\n", file.trim_end()),
    };
    (text != file).then_some(text)
}

/// Replaces the file's text in one step.
pub(in crate::cli) fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    // Links stay links.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let dir = target.parent().unwrap_or(Path::new("."));
    let mut written = tempfile::Builder::new().prefix(".callboard-").tempfile_in(dir)?;
    written.write_all(text.as_bytes())?;
    let permissions = match fs::metadata(&target) {
        Ok(found) => found.permissions(),
        Err(_) => std::os::unix::fs::PermissionsExt::from_mode(0o644),
    };
    written.as_file().set_permissions(permissions)?;
    written.persist(&target).with_context(|| format!("cannot write {}", target.display()))?;
    Ok(())
}

/// What a file says without the paragraph; none if it has none.
pub(in crate::cli) fn take_from(file: &str) -> Option<String> {
    let start = file.find(BEGIN)?;
    let end = start + file[start..].find(END)? + END.len();
    let (before, after) = (file[..start].trim_end(), file[end..].trim_start());
    let gap = if before.is_empty() || after.is_empty() { "" } else { "\n\n" };
    let text = format!("{before}{gap}{after}");
    Some(if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paragraph_is_taken_out_and_the_rest_stays() {
        for file in ["", "# Mine\n", "# Mine\n\nText.\n"] {
            let with = put_into(file, "one").expect("a change");
            assert_eq!(take_from(&with).as_deref(), Some(file));
            assert_eq!(take_from(file), None);
        }
        let between = "# Mine\n\n<!-- callboard -->\none\n<!-- /callboard -->\n\n# After\n";
        assert_eq!(take_from(between).as_deref(), Some("# Mine\n\n# After\n"));
    }

    #[test]
    fn the_paragraph_is_put_in_once_and_the_rest_stays() {
        let first = put_into("# Mine\n\nText.\n", "one").expect("a change");
        assert_eq!(first, "# Mine\n\nText.\n\n<!-- callboard -->\none\n<!-- /callboard -->\n");
        assert_eq!(put_into(&first, "one"), None);
        let more = format!("{first}\n# After\n");
        let second = put_into(&more, "two").expect("a change");
        assert_eq!(second, more.replace("one", "two"));
        assert_eq!(
            put_into("", "one").expect("a change"),
            "<!-- callboard -->\none\n<!-- /callboard -->\n"
        );
    }
}
