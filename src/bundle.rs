//! `bundles/<scope>/`: context bundles, each in a file of its own that nobody changes once it is
//! there.
//!
//! A file holds the JSON of a [`Bundle`]; its name begins with the time and ends with the first
//! digits of its SHA-256. `prev_sha` is the whole SHA-256 of the bundle before it in the same
//! scope. `latest.json` names the newest bundle and is only a pointer: when it and the files
//! disagree, the files are right. A damaged file is renamed to `*.quarantined-N` by whoever finds
//! it, and the one before it counts. Writers hold the lock of the scope's directory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::private::{Dir, PrivateError};
use crate::sealed::{self, Latest, ReadError};
use crate::state::bundle::{
    Asked, Bundle, BundleName, Content, Listed, Listing, Loaded, Problem, Saved, Scope, Told,
    VERSION, Verification,
};
use crate::state::limit::{self, BUNDLES_KEPT};
use crate::state::refusal::Refusal;
use crate::state::time::Timestamp;
use crate::{harmless, redact};

/// Directory of the bundles, in the board's directory.
pub(crate) const DIRECTORY: &str = "bundles";
/// How long to wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(20);
const QUARANTINED: &str = ".quarantined-";
/// Most problems that one report names.
const PROBLEMS: usize = 100;
/// Most bytes that are read of a file; a sound one has little more than its limit.
const MAX_BYTES: u64 = 2 * limit::BUNDLE.max as u64;

/// The bundles in one directory.
pub(crate) struct Bundles {
    path: PathBuf,
}

/// The bundles of one scope.
struct Kept {
    dir: Dir,
    folder: String,
    /// `None` if the directory was found by listing, not by its scope.
    scope: Option<Scope>,
}

struct Sound {
    name: BundleName,
    bundle: Bundle,
    sha256: String,
    bytes: usize,
}

/// Why a file is not the bundle that its name promises.
enum Unsound {
    Damaged(String),
    /// Written by a newer version; not damaged, but not understood here.
    Newer,
    Io(io::Error),
}

/// Result of looking for the newest bundle.
#[derive(Default)]
struct Look {
    newest: Option<Sound>,
    damaged: Vec<(BundleName, String)>,
    /// True if there is one, but `latest.json` does not name it.
    misled: bool,
}

impl Bundles {
    pub(crate) fn at(path: &Path) -> Self {
        // With a slash at its end, a symbolic link would be followed.
        Self { path: path.components().collect() }
    }

    pub(crate) fn answer(&self, asked: &Asked, now: Timestamp) -> Result<Told, Refusal> {
        match asked {
            Asked::Save { scope, content, dry_run } => {
                let (content, redacted) = cleaned(content)?;
                let scope = scope_of(scope.as_deref(), &content)?;
                content.check()?;
                let saved = self.save(&scope, *dry_run, now, |_| Ok(content))?;
                Ok(Told::Saved(Saved { redacted, ..saved }))
            }
            Asked::Refine { scope, change, text, prev_sha, dry_run } => {
                let (change, of_change) = cleaned(change)?;
                let scope = scope_of(scope.as_deref(), &change)?;
                let mut text = Value::from(text.clone());
                harmless::value(&mut text);
                let redacted = of_change + redact::value(&mut text);
                let text = text.as_str().filter(|text| !text.trim().is_empty());
                if text.is_none() && change.is_empty() {
                    return Err(Refusal::Empty {
                        what: "the refinement (text, prompts, settings and context)",
                    });
                }
                let saved = self.save(&scope, *dry_run, now, |newest| {
                    refined(newest, &scope, &change, text, prev_sha)
                })?;
                Ok(Told::Saved(Saved { redacted, ..saved }))
            }
            Asked::Load { scope, content, dry_run } => {
                let scope = scope_of(scope.as_deref(), &cleaned(content)?.0)?;
                self.load(&scope, *dry_run).map(Box::new).map(Told::Loaded)
            }
            Asked::List { scope, after, limit } => {
                self.list(given(scope)?.as_ref(), after.as_deref(), *limit).map(Told::Listed)
            }
            Asked::Verify { scope } => self.verify(given(scope)?.as_ref()).map(Told::Verified),
        }
    }

    /// Number of scopes that have bundles, as far as can be seen.
    pub(crate) fn scopes(&self) -> usize {
        self.open()
            .ok()
            .flatten()
            .and_then(|base| folders(&base).ok())
            .map_or(0, |folders| folders.len())
    }

    /// The directory of all bundles; `None` if there are none yet.
    fn open(&self) -> Result<Option<Dir>, Refusal> {
        let dir = Dir::open(&self.path).map_err(refused)?;
        dir.as_ref().map_or(Ok(()), Dir::inspect).map_err(refused)?;
        Ok(dir)
    }

    fn make(&self) -> Result<Dir, Refusal> {
        if let Some(dir) = self.open()? {
            return Ok(dir);
        }
        let missing = || self.failed(io::ErrorKind::NotFound.into());
        let name = self.path.file_name().and_then(|name| name.to_str()).ok_or_else(missing)?;
        let parent = self
            .path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let parent = parent.canonicalize().map_err(|error| failed(parent, &error))?;
        let (dir, _) = Dir::open(&parent)
            .map_err(refused)?
            .ok_or_else(missing)?
            .make_dir(name)
            .map_err(refused)?;
        dir.inspect().map_err(refused)?;
        Ok(dir)
    }

    fn kept(&self, scope: &Scope) -> Result<Option<Kept>, Refusal> {
        let Some(base) = self.open()? else { return Ok(None) };
        let Some(dir) = base.dir(&scope.folder()).map_err(refused)? else { return Ok(None) };
        dir.inspect().map_err(refused)?;
        Ok(Some(Kept { dir, folder: scope.folder(), scope: Some(scope.clone()) }))
    }

    fn make_kept(&self, scope: &Scope) -> Result<Kept, Refusal> {
        let base = self.make()?;
        let folder = scope.folder();
        if base.dir(&folder).map_err(refused)?.is_none() {
            limit::BUNDLE_SCOPES
                .check(folders(&base).map_err(|error| self.failed(error))?.len() + 1)?;
        }
        let (dir, _) = base.make_dir(&folder).map_err(refused)?;
        dir.keep_private().map_err(refused)?;
        Ok(Kept { dir, folder, scope: Some(scope.clone()) })
    }

    /// Bundles of the given scope, or of all.
    fn kept_of(&self, scope: Option<&Scope>) -> Result<Vec<Kept>, Refusal> {
        if let Some(scope) = scope {
            return Ok(self.kept(scope)?.into_iter().collect());
        }
        let Some(base) = self.open()? else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for folder in folders(&base).map_err(|error| self.failed(error))? {
            if let Some(dir) = base.dir(&folder).map_err(refused)? {
                dir.inspect().map_err(refused)?;
                all.push(Kept { dir, folder, scope: None });
            }
        }
        Ok(all)
    }

    fn failed(&self, error: io::Error) -> Refusal {
        failed(&self.path, &error)
    }

    fn save(
        &self,
        scope: &Scope,
        dry_run: bool,
        now: Timestamp,
        content: impl FnOnce(Option<&Sound>) -> Result<Content, Refusal>,
    ) -> Result<Saved, Refusal> {
        if dry_run {
            let kept = self.kept(scope)?;
            let look = kept.as_ref().map_or_else(|| Ok(Look::default()), Kept::look)?;
            let content = content(look.newest.as_ref())?;
            let quarantined = kept.iter().flat_map(|kept| kept.problems(&look)).collect();
            return saved(scope, look.newest, content, now, None)
                .map(|saved| Saved { quarantined, ..saved });
        }
        let kept = self.make_kept(scope)?;
        let _lock = kept.lock()?;
        let look = kept.look()?;
        let quarantined = kept.problems(&look);
        let content = content(look.newest.as_ref())?;
        kept.mend(&look)?;
        saved(scope, look.newest, content, now, Some(&kept))
            .map(|saved| Saved { quarantined, ..saved })
    }

    fn load(&self, scope: &Scope, dry_run: bool) -> Result<Loaded, Refusal> {
        let nothing = || Loaded {
            success: true,
            restored: false,
            scope: scope.as_str().to_owned(),
            bundle: None,
            path: None,
            sha256: None,
            quarantined: Vec::new(),
            warning: None,
        };
        let Some(kept) = self.kept(scope)? else { return Ok(nothing()) };
        let mut look = kept.look()?;
        let mut warning = None;
        if !dry_run && (look.misled || !look.damaged.is_empty()) {
            // Another process may just be saving; under the lock it is certain.
            let mended = match kept.lock() {
                Ok(_lock) => {
                    look = kept.look()?;
                    kept.mend(&look)
                }
                Err(refusal) => Err(refusal),
            };
            // What is sound can be loaded all the same.
            let told = |refusal| {
                format!("what is wrong with the bundles of this scope stays as it is: {refusal}")
            };
            warning = mended.err().map(told);
        }
        let quarantined = kept.problems(&look);
        let Some(mut newest) = look.newest else {
            return Ok(Loaded { quarantined, warning, ..nothing() });
        };
        // The file may come from elsewhere, so its content is cleaned again.
        newest.bundle.content = cleaned(&newest.bundle.content)?.0;
        Ok(Loaded {
            restored: true,
            bundle: Some(newest.bundle),
            path: Some(kept.path(&newest.name)),
            sha256: Some(newest.sha256),
            quarantined,
            warning,
            ..nothing()
        })
    }

    /// Lists bundles, newest first in each scope.
    fn list(
        &self,
        scope: Option<&Scope>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Listing, Refusal> {
        let mut listing = Listing { bundles: Vec::new(), next: None };
        let after = after.map(|after| after.split_once('/').unwrap_or((after, "")));
        for kept in self.kept_of(scope)? {
            let begun = match after {
                Some((folder, _)) if kept.folder.as_str() < folder => continue,
                Some((folder, name)) if kept.folder == folder => Some(name),
                _ => None,
            };
            for name in kept.names()?.into_iter().rev() {
                if begun.is_some_and(|begun| name.as_str() >= begun) {
                    continue;
                }
                if listing.bundles.len() == limit {
                    listing.next = listing.bundles.last().map(|last| last.path.clone());
                    return Ok(listing);
                }
                listing.bundles.push(kept.listed(name)?);
            }
        }
        Ok(listing)
    }

    /// Compares every file with its name and with the chain. Changes nothing.
    fn verify(&self, scope: Option<&Scope>) -> Result<Verification, Refusal> {
        let mut report = Verification::default();
        for kept in self.kept_of(scope)? {
            report.scopes += 1;
            kept.verify(&mut report)?;
        }
        report.sound = report.problems.is_empty();
        report.problems.truncate(PROBLEMS);
        report.quarantined.truncate(PROBLEMS);
        Ok(report)
    }
}

impl Kept {
    fn lock(&self) -> Result<File, Refusal> {
        let lock = self.dir.lock(PATIENCE).map_err(|error| self.failed(error))?;
        lock.ok_or_else(|| {
            self.failed(io::Error::new(
                io::ErrorKind::TimedOut,
                "another process writes there and does not end",
            ))
        })
    }

    fn names(&self) -> Result<Vec<BundleName>, Refusal> {
        sealed::names(&self.dir).map_err(|error| self.failed(error))
    }

    fn path(&self, name: &BundleName) -> String {
        format!("{}/{name}", self.folder)
    }

    fn failed(&self, error: io::Error) -> Refusal {
        failed(self.dir.path(), &error)
    }

    fn newer(&self, name: &BundleName) -> Refusal {
        let detail = format!(
            "{} was written by a newer callboard, so this one must be updated",
            self.path(name)
        );
        Refusal::BundlesFailed { detail }
    }

    fn read(&self, name: &BundleName) -> Result<Sound, Unsound> {
        let (bytes, sha256) =
            sealed::read(&self.dir, name, MAX_BYTES).map_err(|error| match error {
                ReadError::NotFound => Unsound::Io(io::ErrorKind::NotFound.into()),
                ReadError::Damaged(detail) => Unsound::Damaged(detail),
                ReadError::Io(error) => Unsound::Io(error),
            })?;
        let unread = |error: serde_json::Error| {
            Unsound::Damaged(format!("it cannot be understood: {error}"))
        };
        let value: Value = serde_json::from_slice(&bytes).map_err(unread)?;
        if value["version"].as_str().is_some_and(|version| version != VERSION) {
            return Err(Unsound::Newer);
        }
        let bundle: Bundle = serde_json::from_value(value).map_err(unread)?;
        let folder =
            Scope::of(Some(&bundle.scope_key), &bundle.content).map(|scope| scope.folder());
        if folder.as_deref() != Ok(&self.folder)
            || self.scope.as_ref().is_some_and(|own| own.as_str() != bundle.scope_key)
        {
            return Err(Unsound::Damaged("it is of another scope".to_owned()));
        }
        if !bundle.is_whole() {
            return Err(Unsound::Damaged("its source_hash is not that of its content".to_owned()));
        }
        Ok(Sound { name: name.clone(), bundle, sha256, bytes: bytes.len() })
    }

    /// What is wrong with the link from `sound` to the bundle before it; `older` are all the names
    /// before its own.
    fn broken_link(&self, sound: &Sound, older: &[BundleName]) -> Result<Option<String>, Refusal> {
        let Some(prev) = &sound.bundle.prev_sha else {
            return Ok(
                (!older.is_empty()).then(|| "it names none before it, and there are".to_owned())
            );
        };
        if older.is_empty() {
            // The bundle before it was pruned.
            return Ok(None);
        }
        for name in older.iter().filter(|name| prev.starts_with(name.hash())) {
            match self.read(name) {
                Ok(found) if found.sha256 != *prev => {}
                // A damaged one is still the one linked to, under its name or moved aside.
                _ => return Ok(None),
            }
        }
        let all = self.dir.names().map_err(|error| self.failed(error))?;
        let moved =
            all.iter().filter_map(|name| BundleName::parse(name.split_once(QUARANTINED)?.0));
        if moved.into_iter().any(|name| prev.starts_with(name.hash())) {
            return Ok(None);
        }
        Ok(Some(format!(
            "the bundle before it ({}…) is missing",
            prev.chars().take(8).collect::<String>()
        )))
    }

    /// Finds the newest sound bundle, and the damaged ones after it. Changes nothing.
    fn look(&self) -> Result<Look, Refusal> {
        let names = self.names()?;
        let mut look = Look::default();
        for (index, name) in names.iter().enumerate().rev() {
            let problem = match self.read(name) {
                Ok(sound) => match self.broken_link(&sound, &names[..index])? {
                    None => {
                        look.newest = Some(sound);
                        break;
                    }
                    Some(problem) => problem,
                },
                Err(Unsound::Damaged(problem)) => problem,
                Err(Unsound::Newer) => return Err(self.newer(name)),
                // The file was moved aside or pruned meanwhile.
                Err(Unsound::Io(error)) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(Unsound::Io(error)) => return Err(self.failed(error)),
            };
            look.damaged.push((name.clone(), problem));
        }
        look.misled = look.newest.as_ref().is_some_and(|newest| self.misleads(newest));
        Ok(look)
    }

    /// True if `latest.json` is unreadable or ours, and does not name `newest`.
    fn misleads(&self, newest: &Sound) -> bool {
        let right = pointer_to(newest);
        let is_ours = |found: &Latest<String>| {
            BundleName::parse(&found.path).is_some() || found.sha256 == right.sha256
        };
        self.pointer().is_none_or(|found| is_ours(&found) && found != right)
    }

    fn pointer(&self) -> Option<Latest<String>> {
        sealed::latest(&self.dir)
    }

    fn problems(&self, look: &Look) -> Vec<Problem> {
        let problem = |(name, problem): &(BundleName, String)| Problem {
            file: self.path(name),
            problem: problem.clone(),
        };
        look.damaged.iter().take(PROBLEMS).map(problem).collect()
    }

    /// Moves damaged files aside and lets `latest.json` name the newest sound one. Other files in
    /// the directory may be somebody else's and stay. The caller holds the lock.
    fn mend(&self, look: &Look) -> Result<(), Refusal> {
        for (name, problem) in &look.damaged {
            let aside = self.dir.quarantine(name.as_str()).map_err(|error| self.failed(error))?;
            tracing::warn!(folder = self.folder, %name, %aside, problem, "a damaged bundle was moved aside");
        }
        let mended = match &look.newest {
            Some(newest) if look.misled => sealed::clear_unfinished(&self.dir)
                .and_then(|()| sealed::point(&self.dir, &newest.name, &newest.sha256, VERSION)),
            _ => Ok(()),
        };
        mended.map_err(|error| self.failed(error))
    }

    fn listed(&self, name: BundleName) -> Result<Listed, Refusal> {
        let (path, created_at) = (self.path(&name), name.at());
        let listed = Listed {
            path,
            bytes: 0,
            created_at,
            problem: None,
            scope: None,
            model_id: None,
            sha256: None,
            prev_sha: None,
        };
        Ok(match self.read(&name) {
            Ok(Sound { bundle, sha256, bytes, .. }) => Listed {
                bytes: bytes as u64,
                scope: Some(bundle.scope_key),
                model_id: bundle.content.model_id,
                sha256: Some(sha256),
                prev_sha: bundle.prev_sha,
                ..listed
            },
            Err(Unsound::Damaged(problem)) => Listed { problem: Some(problem), ..listed },
            Err(Unsound::Newer) => {
                Listed { problem: Some("it was written by a newer callboard".to_owned()), ..listed }
            }
            Err(Unsound::Io(error)) => return Err(self.failed(error)),
        })
    }

    fn verify(&self, report: &mut Verification) -> Result<(), Refusal> {
        let names = self.names()?;
        let mut newest = None;
        for (index, name) in names.iter().enumerate() {
            report.bundles += 1;
            let problem = match self.read(name) {
                Ok(sound) => {
                    let problem = self.broken_link(&sound, &names[..index])?;
                    newest = Some(sound);
                    problem
                }
                Err(Unsound::Damaged(problem)) => Some(problem),
                Err(Unsound::Newer) => Some("it was written by a newer callboard".to_owned()),
                Err(Unsound::Io(error)) => Some(error.to_string()),
            };
            report
                .problems
                .extend(problem.map(|problem| Problem { file: self.path(name), problem }));
        }
        let (file, pointer) = (format!("{}/{}", self.folder, sealed::LATEST), self.pointer());
        match (pointer, newest.as_ref()) {
            (Some(found), Some(newest)) if found == pointer_to(newest) => {}
            (None, None) => {}
            (None, Some(_)) => {
                let problem =
                    "it is missing or cannot be understood; the next load writes it".to_owned();
                report.problems.push(Problem { file, problem });
            }
            (Some(found), newest) => {
                let next = if newest.is_none() {
                    "; there is none, and the next save has it name one"
                } else {
                    ""
                };
                let found = harmless_name(&found.path);
                let problem = format!("it names {found}, which is not the newest sound one{next}");
                report.problems.push(Problem { file, problem });
            }
        }
        let all = self.dir.names().map_err(|error| self.failed(error))?;
        let aside = all.iter().filter(|name| name.contains(QUARANTINED));
        report
            .quarantined
            .extend(aside.map(|name| format!("{}/{}", self.folder, harmless_name(name))));
        Ok(())
    }
}

/// What a report repeats of a name that somebody else may have written.
fn harmless_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(128).collect()
}

fn pointer_to(sound: &Sound) -> Latest<String> {
    Latest {
        version: VERSION.to_owned(),
        path: sound.name.to_string(),
        sha256: sound.sha256.clone(),
    }
}

/// Writes the bundle that follows `newest`, if its content differs. Without `kept` (a dry run)
/// writes nothing.
fn saved(
    scope: &Scope,
    newest: Option<Sound>,
    content: Content,
    now: Timestamp,
    kept: Option<&Kept>,
) -> Result<Saved, Refusal> {
    let mut reply = Saved {
        success: true,
        saved: false,
        already: false,
        dry_run: kept.is_none(),
        scope: scope.as_str().to_owned(),
        path: None,
        sha256: None,
        prev_sha: None,
        bytes: 0,
        redacted: 0,
        quarantined: Vec::new(),
    };
    if let Some(newest) = newest.as_ref().filter(|newest| newest.bundle.content == content) {
        reply.path = Some(format!("{}/{}", scope.folder(), newest.name));
        reply.prev_sha.clone_from(&newest.bundle.prev_sha);
        return Ok(Saved {
            already: true,
            sha256: Some(newest.sha256.clone()),
            bytes: newest.bytes,
            ..reply
        });
    }
    // Its name sorts after all others, however much the clocks of two processes differ.
    let at = newest.as_ref().map_or(now, |newest| now.max(newest.name.at() + 1));
    reply.prev_sha = newest.map(|newest| newest.sha256);
    let bundle = Bundle::new(scope, content, reply.prev_sha.clone(), at);
    let mut bytes = serde_json::to_vec_pretty(&bundle).unwrap_or_default();
    bytes.push(b'\n');
    limit::BUNDLE.check(bytes.len())?;
    reply.bytes = bytes.len();
    let Some(kept) = kept else { return Ok(reply) };
    let (name, sha256) = sealed::put(&kept.dir, at, &bytes, VERSION, "bundle")
        .map_err(|error| kept.failed(error))?;
    let names = kept.names()?;
    for name in &names[..names.len().saturating_sub(BUNDLES_KEPT)] {
        kept.dir.remove(name.as_str()).map_err(|error| kept.failed(error))?;
    }
    Ok(Saved { saved: true, path: Some(kept.path(&name)), sha256: Some(sha256), ..reply })
}

/// The stored content with `change` and `text` applied.
fn refined(
    newest: Option<&Sound>,
    scope: &Scope,
    change: &Content,
    text: Option<&str>,
    expected: &Option<String>,
) -> Result<Content, Refusal> {
    let newest =
        newest.ok_or_else(|| Refusal::NothingToRefine { scope: scope.as_str().to_owned() })?;
    if let Some(given) = expected.as_ref().filter(|given| **given != newest.sha256) {
        return Err(Refusal::BundleMoved {
            given: given.chars().take(64).collect(),
            newest: newest.sha256.clone(),
        });
    }
    let content = newest.bundle.content.clone().refined(change, text);
    content.check().map(|()| content)
}

fn given(scope: &Option<String>) -> Result<Option<Scope>, Refusal> {
    scope.as_deref().map(|scope| scope_of(Some(scope), &Content::default())).transpose()
}

/// A scope is written down and tells bundles apart, so it must not hold a secret and cannot be
/// redacted.
fn scope_of(given: Option<&str>, content: &Content) -> Result<Scope, Refusal> {
    let clean = given.map(|given| harmless::text(given).unwrap_or_else(|| given.to_owned()));
    if clean
        .as_deref()
        .is_some_and(|clean| redact::text(clean).is_some() || clean.contains(redact::MARK))
    {
        return Err(Refusal::SecretScope);
    }
    Scope::of(clean.as_deref(), content)
}

/// The content without secrets and deceptive characters, and the number of secrets.
fn cleaned(content: &Content) -> Result<(Content, usize), Refusal> {
    let unread = |error: serde_json::Error| Refusal::BundlesFailed { detail: error.to_string() };
    let mut value = serde_json::to_value(content).map_err(unread)?;
    harmless::value(&mut value);
    let redacted = redact::value(&mut value);
    Ok((serde_json::from_value(value).map_err(unread)?, redacted))
}

fn folders(base: &Dir) -> io::Result<Vec<String>> {
    let mut names = base.names()?;
    names.retain(|name| Scope::is_folder(name));
    names.sort();
    Ok(names)
}

fn refused(error: PrivateError) -> Refusal {
    Refusal::BundlesFailed { detail: error.to_string() }
}

fn failed(path: &Path, error: &io::Error) -> Refusal {
    // An error about a private file already names its place.
    if error.get_ref().is_some_and(|inner| inner.is::<PrivateError>()) {
        Refusal::BundlesFailed { detail: error.to_string() }
    } else {
        Refusal::BundlesFailed { detail: format!("{}: {error}", path.display()) }
    }
}
