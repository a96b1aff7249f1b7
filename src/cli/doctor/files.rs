//! The state file, the files of living processes, and what crashes have left.

use std::io;
use std::path::{Path, PathBuf};

use super::super::scratch;
use super::Check;
use super::journal::Examined;
use crate::bundle::{self, Bundles};
use crate::participant::{archive, directory, living, presence, recovery};
use crate::snapshot::Snapshots;
use crate::state::bundle::{Asked, Told};
use crate::state::event::VERSION;
use crate::state::level;
use crate::state::time::Timestamp;
use crate::statefile::{self, FILE_NAME, Found, Head, Home};

const REPAIR: &str = "restore journal or state file from a backup; or `callboard doctor \
                      --repair`, which goes on from the newest sound snapshot, if there is one \
                      (--dry-run says how)";

/// Checks the state file; `shown` is its head, read while nobody wrote.
pub(super) fn state(home: &Home, shown: io::Result<Option<Head>>, journal: &Examined) -> Check {
    Check { name: home.name().to_owned().into(), ..examined(home, shown, journal) }
}

fn examined(home: &Home, shown: io::Result<Option<Head>>, journal: &Examined) -> Check {
    let document = match statefile::load(home) {
        Ok(None) => return missing(home, journal),
        Ok(Some(Found::Sound(document))) => document,
        Ok(Some(Found::Foreign { document, .. })) => {
            let found = format!("of the broker before callboard, {} tasks", document.tasks.len());
            return match journal {
                Examined::None => Check::warn(
                    FILE_NAME,
                    found,
                    "the first writing call imports it and keeps a copy",
                ),
                _ => Check::warn(
                    FILE_NAME,
                    found,
                    "the next call keeps it as *.quarantined-N and writes ours anew",
                ),
            };
        }
        Ok(Some(Found::Unsound { reason })) => return unsound(&reason, journal),
        Err(error) => return Check::fail(FILE_NAME, "cannot be used", error.to_string()),
    };
    let file = shown.ok().flatten().map_or(document.board.seq, |head| head.seq);
    match journal {
        Examined::None => Check::warn(
            FILE_NAME,
            "sound, but there is no journal",
            "the next writing call starts one from it",
        ),
        Examined::Unreadable => Check::ok(FILE_NAME, format!("sound, at event {file}")),
        Examined::Sound { board_id, .. }
            if board_id.as_deref() != Some(&document.board.board_id) =>
        {
            Check::warn(
                FILE_NAME,
                "of another board",
                "the next call keeps it as *.quarantined-N and writes ours anew",
            )
        }
        Examined::Sound { head, .. } => at(file, *head),
    }
}

fn at(file: u64, head: u64) -> Check {
    if file > head {
        let found = format!("at event {file}, but the journal ends at {head}: it has lost its end");
        let fix = "`callboard doctor --repair` goes on from the state file, after a backup \
                   (--dry-run says how); or put the whole journal back, if you have it";
        return Check::fail(FILE_NAME, found, fix);
    }
    if file < head {
        let found = format!("sound, but at event {file} of {head}");
        return Check::warn(
            FILE_NAME,
            found,
            "a process is about to write it, or was ended before it could; the next writing call \
             does",
        );
    }
    Check::ok(FILE_NAME, format!("sound, at event {file} like the journal"))
}

fn missing(dir: &Path, journal: &Examined) -> Check {
    match journal {
        Examined::None => match recovery::evidence(dir).as_slice() {
            [] => Check::ok(FILE_NAME, "none; the first writing call makes it"),
            left => {
                let found =
                    format!("missing like the journal, but there was a board: {}", left.join(", "));
                let fix = "the next writing call goes on from what of that is sound; `callboard \
                           doctor --repair --dry-run` says how";
                Check::warn(FILE_NAME, found, fix)
            }
        },
        Examined::Sound { .. } => {
            Check::warn(FILE_NAME, "missing", "the next writing call makes it from the journal")
        }
        Examined::Unreadable => Check::fail(FILE_NAME, "missing", REPAIR),
    }
}

fn unsound(reason: &str, journal: &Examined) -> Check {
    let found = format!("not as it was written: {reason}");
    match journal {
        Examined::Sound { .. } => {
            let fix = "the next call takes over what may be edited by hand, or keeps the file \
                       under another name, and writes it anew from the journal";
            Check::warn(FILE_NAME, found, fix)
        }
        _ => Check::fail(FILE_NAME, found, REPAIR),
    }
}

pub(super) fn participants(dir: &Path) -> Check {
    let (present, gone): (Vec<_>, Vec<_>) = names(&dir.join(directory::RUN))
        .into_iter()
        .partition(|name| presence::is_present(dir, name));
    let found = match present.as_slice() {
        [] => "none".to_owned(),
        _ => format!("{} ({})", present.len(), present.join(", ")),
    };
    let living = living::living(dir);
    if living.iter().any(|one| one.level < VERSION) {
        let state = archive::present(dir).unwrap_or_default();
        let older = level::named(&state.older(&living, VERSION));
        let fix = "restart them: until then, callboard refuses what they could not read";
        return Check::warn(
            "living processes",
            format!("{found}; of an older version: {older}"),
            fix,
        );
    }
    match gone.len() {
        0 => Check::ok("living processes", found),
        // Normal: an agent's leases end some time after its process.
        count => Check::ok(
            "living processes",
            format!("{found}; {count} ended without goodbye, to be cleared"),
        ),
    }
}

/// Checks for leftovers. Nobody writes now, so an unfinished file will stay unfinished.
pub(super) fn leftovers(dir: &Path) -> Check {
    let is_evidence = |name: &String| {
        ["quarantined-", "rejected-", "orphaned-", "put-back-"]
            .iter()
            .any(|mark| name.contains(mark))
    };
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unfinished: Vec<_> = scratch::leftovers(dir).iter().map(name).collect();
    let evidence: Vec<_> = names(dir).into_iter().filter(is_evidence).collect();
    match (unfinished.is_empty(), evidence.is_empty()) {
        (true, true) => Check::ok("leftovers", "none"),
        (false, _) => {
            let fix = "a process was ended while writing; `callboard doctor --repair` removes them";
            Check::warn("leftovers", unfinished.join(", "), fix)
        }
        _ => {
            let fix = "kept because they were damaged, edited by hand in ways that are not taken \
                       over (then the reason is in the .txt beside), or old ones that had been \
                       put back; look, then remove them";
            Check::warn("leftovers", evidence.join(", "), fix)
        }
    }
}

/// Checks every snapshot against its name and against the one before it.
pub(super) fn snapshots(dir: &Path) -> Check {
    const NAME: &str = "snapshots";
    let report = match Snapshots::of(dir).and_then(|snapshots| snapshots.verify()) {
        Ok(report) => report,
        Err(error) => {
            return Check::fail(
                NAME,
                format!("cannot be read: {error}"),
                "make it a directory that you own",
            );
        }
    };
    let newest = report
        .newest_sound
        .map_or_else(|| "none sound".to_owned(), |name| format!("newest sound {name}"));
    if report.sound {
        let pruned =
            report.pruned_before.map(|name| format!(", older than {name} were removed with time"));
        let found = match report.snapshots {
            0 => "none".to_owned(),
            count => format!("{count}, chain verified, {newest}{}", pruned.unwrap_or_default()),
        };
        return Check::ok(NAME, found);
    }
    let problems = report.problems.iter().map(|one| format!("{}: {}", one.file, one.problem));
    let found = format!("{}; {newest}", problems.collect::<Vec<_>>().join("; "));
    Check::warn(
        NAME,
        found,
        "recovery and `callboard snapshot restore` pass over what is not sound; `callboard \
         snapshot create`",
    )
}

/// Checks every context bundle against its name and against the one before it.
pub(super) fn bundles(dir: &Path, now: Timestamp) -> Check {
    const NAME: &str = "bundles";
    let report = match Bundles::at(&dir.join(bundle::DIRECTORY))
        .answer(&Asked::Verify { scope: None }, now)
    {
        Ok(Told::Verified(report)) => report,
        Ok(_) => return Check::ok(NAME, "none"),
        Err(refusal) => {
            let fix =
                "make bundles/ a directory that you own, with nothing in it that others can write";
            return Check::fail(NAME, refusal.to_string(), fix);
        }
    };
    let found = match report.bundles {
        0 => "none".to_owned(),
        count => format!("{count} in {} scopes", report.scopes),
    };
    let list = |names: &[String]| match names {
        [] => String::new(),
        names => format!("; moved aside as damaged: {}", names.join(", ")),
    };
    let aside = list(&report.quarantined);
    if report.sound {
        let chain = if report.bundles > 0 { ", chain verified" } else { "" };
        let found = format!("{found}{chain}{aside}");
        return match aside.as_str() {
            "" => Check::ok(NAME, found),
            _ => Check::warn(
                NAME,
                found,
                "the ones before them load; look at those in bundles/, then remove them",
            ),
        };
    }
    let problems: Vec<_> =
        report.problems.iter().map(|one| format!("{}: {}", one.file, one.problem)).collect();
    let fix = "the next `callboard bundle --state-scope SCOPE load` or save moves aside what is \
               damaged, and the one before it counts; then save or refine it anew";
    Check::warn(NAME, format!("{found}; {}{aside}", problems.join("; ")), fix)
}

/// Reports past recoveries, as long as their log exists.
pub(super) fn recoveries(dir: &Path) -> Check {
    match recovery::logged(dir).as_slice() {
        [] => Check::ok("recoveries", "none"),
        [.., last] => Check::warn(
            "recoveries",
            last,
            format!("read {}, then remove it", dir.join(recovery::LOG).display()),
        ),
    }
}

/// Names in the directory, sorted; none if it cannot be read.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
