//! Whether this user can write every file that a call writes, and whether there is room for it.

use std::fs;
use std::path::Path;

use super::Check;
use crate::journal::sqlite;
use crate::participant;
use crate::participant::directory::LOCKS;
use crate::participant::room::{OF_A_CALL, denied, fits, is_full};

const NAME: &str = "writing";

pub(super) fn check(dir: &Path) -> Check {
    let [log, index] = ["-wal", "-shm"].map(|suffix| format!("{}{suffix}", sqlite::FILE_NAME));
    let names = LOCKS.into_iter().chain([sqlite::FILE_NAME, &log, &index]);
    let closed: Vec<_> =
        names.filter_map(|name| Some(format!("{name} ({})", denied(&dir.join(name))?))).collect();
    if !closed.is_empty() {
        let fix = format!(
            "`chmod -R u+rwX {}` as its owner, or mount the file system for writing",
            dir.display()
        );
        return Check::fail(
            NAME,
            format!("not to {}, so that no call can write", closed.join(", ")),
            fix,
        );
    }
    let size =
        fs::symlink_metadata(participant::home(dir).file()).map_or(0, |metadata| metadata.len());
    let fix = "free some: calls that find no room fail, and nothing that was acknowledged is lost";
    match fits(dir, OF_A_CALL).map(|()| fits(dir, size + OF_A_CALL)) {
        Ok(Err(error)) if is_full(&error) => {
            Check::warn(NAME, "there is no room for another state file", fix)
        }
        Ok(_) => Check::ok(NAME, "allowed, and there is room for a call"),
        Err(error) if is_full(&error) => {
            Check::fail(NAME, "there is no room for what a call may write", fix)
        }
        Err(error) => {
            let fix = format!(
                "`chmod u+rwx {}` as its owner, or mount the file system for writing",
                dir.display()
            );
            let found = format!(
                "no file can be made in the directory ({}), as the state file is at each call",
                error.kind()
            );
            Check::fail(NAME, found, fix)
        }
    }
}
