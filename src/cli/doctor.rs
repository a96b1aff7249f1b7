//! `callboard doctor`: checks everything that a board needs, and changes nothing without
//! `--repair`.

mod files;
mod journal;
mod kept;
mod lock;
mod repair;
mod writing;

use std::borrow::Cow;
use std::env::consts::{ARCH, OS};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use super::connect::quoted;
use super::plan_files::{FileState, PlanFile};
use super::print::Tone;
use super::{FAILED, Outcome, Session};
use crate::filesystem::{self, Class};
use crate::participant::board_time;
use crate::participant::living::living;
use crate::participant::{self, directory, presence};
use crate::statefile::{self, Found};
use crate::user;
use crate::{config, journal::sqlite};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Repair a damaged board as far as possible, after a copy of its journal, state file and
    /// snapshots, and remove unfinished files of killed processes
    #[arg(long)]
    repair: bool,
    /// Print what --repair would do, and change nothing
    #[arg(long, requires = "repair")]
    dry_run: bool,
}

#[derive(Serialize)]
struct Check {
    name: Cow<'static, str>,
    verdict: Verdict,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, found: found.into(), fix: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            verdict: Verdict::Warn,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    fn fail(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            verdict: Verdict::Fail,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    if arguments.repair {
        return repair::run(session, arguments.dry_run);
    }
    let checks = checks(session);
    let has_failed = checks.iter().any(|check| check.verdict == Verdict::Fail);
    session.show(&json!({"healthy": !has_failed, "checks": checks}), |page| {
        for check in &checks {
            let (word, tone) = match check.verdict {
                Verdict::Ok => ("ok  ", Tone::Good),
                Verdict::Warn => ("warn", Tone::Busy),
                Verdict::Fail => ("fail", Tone::Bad),
            };
            page.marked(word, tone, format_args!("{}: {}", check.name, check.found));
            if let Some(fix) = &check.fix {
                page.line(format_args!("     {}", session.wording.in_commands(fix)));
            }
        }
    })?;
    Ok(ExitCode::from(if has_failed { FAILED } else { 0 }))
}

/// Whether the processes on the board run as another user than the person: only then is the person
/// kept apart from malice, too.
fn apart(dir: &Path) -> Check {
    let own = rustix::process::geteuid().as_raw();
    let users: Vec<_> = living(dir)
        .iter()
        .filter_map(|one| Some(presence::user_of(dir, one.id.as_str())? == own))
        .collect();
    let same = users.iter().filter(|is_own| **is_own).count();
    let found = match (users.len(), same) {
        (0, _) => "no process is here now".to_owned(),
        (all, 0) => format!("all {all} processes here run as other users than you"),
        (all, same) => format!(
            "{same} of {all} processes here run as your user: agents act as themselves, which \
             holds against mistakes, not against malice; `callboard help promises` says what does"
        ),
    };
    Check::ok("agents apart", found)
}

fn checks(session: &Session) -> Vec<Check> {
    let dir = session.dir();
    let mut checks = vec![location(session)];
    if session.location.check_link().is_err() {
        return checks;
    }
    let directory = directory(dir);
    let usable = directory.verdict != Verdict::Fail && dir.is_dir();
    checks.extend([directory, above(dir), file_system(dir)]);
    if usable {
        checks.extend([writing::check(dir), configuration(dir)]);
        checks.extend(board(dir));
        checks.extend([files::snapshots(dir), files::bundles(dir, board_time(dir))]);
        checks.extend(kept::checks(dir));
        checks.push(apart(dir));
        checks.extend(plan_files(session));
        checks.push(files::recoveries(dir));
    }
    checks.extend([told(), versions()]);
    checks
}

/// Whether what the user has set for being told can be used.
fn told() -> Check {
    const NAME: &str = "notify";
    match user::load() {
        Ok(Some(user)) if !user.channels.is_empty() => {
            let ways: Vec<_> = user.channels.iter().map(|channel| channel.way.name()).collect();
            Check::ok(NAME, ways.join(", "))
        }
        Ok(_) => Check::ok(NAME, "no way is set in which you are told of questions and failures"),
        Err(error) => Check::fail(NAME, "not usable", error.to_string()),
    }
}

fn location(session: &Session) -> Check {
    let place = format!("{} ({})", session.dir().display(), session.location.source);
    match session.may_create() {
        Ok(()) => Check::ok("place", place),
        Err(error) => Check::fail("place", place, error.to_string()),
    }
}

fn directory(dir: &Path) -> Check {
    const NAME: &str = "directory";
    match std::fs::symlink_metadata(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Check::warn(
            NAME,
            "it does not exist",
            "`callboard init GOAL` makes it, and so does the first writing call",
        ),
        Err(error) => Check::fail(
            NAME,
            error.to_string(),
            "see to the permissions of the directories above it",
        ),
        Ok(metadata) => {
            match directory::inspect(dir).and_then(|()| directory::refuse_occupied(dir)) {
                Err(error) => Check::fail(NAME, describe(&metadata), error.to_string()),
                Ok(()) if metadata.mode() & 0o077 != 0 => {
                    let fix = format!("others can read the board; `chmod 700 {}`", dir.display());
                    Check::warn(NAME, describe(&metadata), fix)
                }
                Ok(()) => Check::ok(NAME, describe(&metadata)),
            }
        }
    }
}

/// Checks who can write above the board: whoever can may replace the board's directory.
fn above(dir: &Path) -> Check {
    const NAME: &str = "directories above";
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let parent =
        dir.ancestors().skip(1).find_map(|above| above.canonicalize().ok()).unwrap_or_default();
    let open = parent.ancestors().filter_map(|above| {
        let metadata = std::fs::symlink_metadata(above).ok()?;
        Some(format!("{} ({})", above.display(), openness(&metadata)?))
    });
    let open: Vec<_> = open.collect();
    if open.is_empty() {
        return Check::ok(NAME, "only their owners can write to them");
    }
    let fix = "others could put another board in the place of this one; `chmod go-w` them, or \
               move the board with --dir";
    Check::warn(NAME, open.join(", "), fix)
}

/// Who, apart from this user and root, can rename entries of the directory.
fn openness(metadata: &Metadata) -> Option<&'static str> {
    const STICKY: u32 = 0o1000;
    let (mode, owner) = (metadata.mode(), metadata.uid());
    let own_group = rustix::process::getegid().as_raw();
    match () {
        () if owner != 0 && owner != rustix::process::geteuid().as_raw() => {
            Some("owned by another user")
        }
        // With the sticky bit, users can rename only their own entries.
        () if mode & STICKY != 0 => None,
        () if mode & 0o002 != 0 => Some("writable by everybody"),
        // Many systems give each user a group of their own, so that group is not a risk.
        () if mode & 0o020 != 0 && metadata.gid() != own_group => Some("writable by a group"),
        () => None,
    }
}

fn describe(metadata: &Metadata) -> String {
    format!("mode {:03o}, owned by user {}", metadata.mode() & 0o777, metadata.uid())
}

fn file_system(dir: &Path) -> Check {
    const NAME: &str = "file system";
    let found = filesystem::kind(dir);
    let why = match found.class {
        Class::Local => return Check::ok(NAME, found.name),
        Class::Network => "on a network only one machine may use the board",
        Class::CrossKernel => "a virtual machine and its host must not use the board at once",
        Class::Memory => "the board will be gone after a restart",
        Class::Unknown => "locks and mapped memory may not work on it",
    };
    Check::warn(
        NAME,
        found.name,
        format!("{why}; a local disk is safe: move the board with --dir or COORDINATION_DIR"),
    )
}

/// Checks the files of the plans; none for a board without a plan.
fn plan_files(session: &Session) -> Vec<Check> {
    const NAME: &str = "plan file";
    let Ok(Some(Found::Sound(document))) = statefile::load(session.dir()) else {
        return Vec::new();
    };
    if document.board.plans.is_empty() {
        return Vec::new();
    }
    let found = super::plan_files::changed(session, &document.board.plans);
    if found.is_empty() {
        return vec![Check::ok(
            NAME,
            "none has changed since its import; tables in CSV are not compared",
        )];
    }
    let check = |file: PlanFile| {
        let found = match file.state {
            FileState::Changed => {
                format!("{} has changed since version {}", file.file, file.version)
            }
            FileState::Gone => format!("{} is gone, of version {}", file.file, file.version),
        };
        let export = || {
            let command = session.wording.command(&format!("plan export {}", quoted(&file.name)));
            format!("put it back, or write the plan out with {command}")
        };
        Check::warn(
            NAME,
            found,
            file.command.map_or_else(export, |command| format!("`{command}` takes it over")),
        )
    };
    found.into_iter().map(check).collect()
}

fn configuration(dir: &Path) -> Check {
    match config::load(dir) {
        Ok(config) if config.notify.is_some() => Check::warn(
            config::FILE,
            "[notify] in it is ignored: agents can write there, and it starts programs",
            "move it to your own configuration; `callboard notify` says where that is",
        ),
        Ok(_) if dir.join(config::FILE).exists() => Check::ok(config::FILE, "read"),
        Ok(_) => Check::ok(config::FILE, "none, so the defaults hold"),
        Err(error) => Check::fail(config::FILE, "not usable", error.to_string()),
    }
}

/// All checks of a board: what must be read while nobody writes comes first, under the lock.
fn board(dir: &Path) -> Vec<Check> {
    let (lock_check, locked) = lock::acquire(dir);
    let Some(locked) = locked else { return vec![lock_check, files::participants(dir)] };
    let copied = journal::copy(dir);
    let home = participant::home(dir);
    let shown = statefile::seq_of(&home);
    let leftovers = files::leftovers(dir);
    drop(locked);
    let file = shown.as_ref().ok().and_then(Option::as_ref).map(|head| head.seq);
    let (journal_checks, journal) = journal::examine(dir, copied, file);
    let mut checks = vec![lock_check];
    checks.extend(journal_checks);
    checks.push(files::state(&home, shown, &journal));
    checks.extend([files::participants(dir), leftovers]);
    checks
}

fn versions() -> Check {
    let (ours, sqlite) = (env!("CARGO_PKG_VERSION"), rusqlite::version());
    let format = sqlite::FORMAT;
    Check::ok(
        "versions",
        format!("callboard {ours}, SQLite {sqlite}, journal format {format}, {ARCH}-{OS}"),
    )
}
