//! What executions have kept: checkpoints in the state, artifacts beside it.

use std::io::Read;
use std::path::Path;

use super::Check;
use crate::private::{self, PrivateError};
use crate::state::artifact::{Artifact, DIRECTORY};
use crate::state::digest::sha256;
use crate::state::document::Document;
use crate::state::id::TaskId;
use crate::state::limit;
use crate::statefile::{self, Found};

/// Most problems that are named.
const NAMED: usize = 5;

/// The checks; none for a board without checkpoints and artifacts.
pub(super) fn checks(dir: &Path) -> Vec<Check> {
    let Ok(Some(Found::Sound(document))) = statefile::load(dir) else { return Vec::new() };
    checkpoints(&document).into_iter().chain(artifacts(dir, &document)).collect()
}

fn checkpoints(document: &Document) -> Option<Check> {
    const NAME: &str = "checkpoints";
    if document.workflows.is_empty() {
        return None;
    }
    let damaged = document.checkpoints.values().filter(|one| one.damage().is_some());
    let damaged: Vec<_> =
        damaged.map(|one| format!("number {} of {}", one.number, one.workflow_id)).collect();
    let found = format!("{} in {} workflows", document.checkpoints.len(), document.workflows.len());
    Some(if damaged.is_empty() {
        Check::ok(NAME, format!("{found}, all sound"))
    } else {
        Check::warn(
            NAME,
            format!("{found}, damaged: {}", named(&damaged)),
            "the ones before them are used; `callboard checkpoint delete WORKFLOW --number N` \
         removes a damaged one",
        )
    })
}

fn artifacts(dir: &Path, document: &Document) -> Option<Check> {
    const NAME: &str = "artifacts";
    let all =
        document.tasks.iter().flat_map(|task| task.artifacts.iter().map(|one| (&task.id, one)));
    let all: Vec<_> = all.collect();
    if all.is_empty() {
        return None;
    }
    let wrong: Vec<_> = all.iter().filter_map(|(task, one)| wrong(dir, task, one)).collect();
    let found = format!(
        "{} of {} tasks",
        all.len(),
        document.tasks.iter().filter(|one| !one.artifacts.is_empty()).count()
    );
    Some(if wrong.is_empty() {
        Check::ok(NAME, format!("{found}, all as they were attached"))
    } else {
        Check::warn(
            NAME,
            format!("{found}, {}", named(&wrong)),
            "attach them again, or put the files back if you have them",
        )
    })
}

fn wrong(dir: &Path, task: &TaskId, one: &Artifact) -> Option<String> {
    let told = |what: &str| Some(format!("{task}/{} {what}", one.name));
    let read = || -> Result<Option<Vec<u8>>, PrivateError> {
        let Some(file) = private::read(&dir.join(DIRECTORY).join(task.as_str()), &one.file())?
        else {
            return Ok(None);
        };
        let mut content = Vec::new();
        let whole = file.take(limit::ARTIFACT.max as u64 + 1).read_to_end(&mut content);
        Ok(whole.is_ok().then_some(content))
    };
    match read() {
        Ok(None) => told("is missing"),
        Ok(Some(content)) if sha256(&content) == one.sha256 => None,
        Ok(Some(_)) => told("is not as it was attached"),
        Err(_) => told("cannot be read"),
    }
}

fn named(wrong: &[String]) -> String {
    let more = wrong.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", wrong[..wrong.len().min(NAMED)].join(", "))
}
