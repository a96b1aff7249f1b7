//! Tokens that the board's owner hands out, in `tokens.toml`: their hashes, never the tokens.
//!
//! Format 1: `version = 1` and for each `[[token]]` its `name`, `role`, `agent?`, `sha256` of the
//! token's text in hexadecimal digits, `created`, `expires?` and `rate?`.

use std::fs::Metadata;
use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::REFRESH;
use super::token::{GOOD_FOR, PREFIX, Token};
use crate::bom;
use crate::ops::Principal;
use crate::participant::directory::DirectoryError;
use crate::participant::lock::BoardLock;
use crate::participant::{self, BoardError};
use crate::private::{self, PrivateError};
use crate::state::agent::Role;
use crate::state::digest::{hex, sha256};
use crate::state::id::AgentId;
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::time::{MINUTE, Timestamp};

pub const FILE_NAME: &str = "tokens.toml";
const VERSION: u32 = 1;
const DAY: i64 = 24 * 60 * MINUTE;
const LARGEST: u64 = 256 * 1024;

#[derive(Debug, Error)]
pub enum TokensError {
    #[error(transparent)]
    Private(#[from] PrivateError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Board(#[from] BoardError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0} {what}; run `chmod 600 {0}`", path.display())]
    Unsafe { path: PathBuf, what: &'static str },
    #[error("{} is not valid: {detail}; mend it, or move it away and add the tokens anew", path.display())]
    Invalid { path: PathBuf, detail: String },
    #[error("cannot {action} {}: {source}; check the disk and the permissions, then try again", path.display())]
    Failed { action: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "there is a token `{name}` already; choose another --name, or revoke it first: `callboard \
         token revoke {name}`"
    )]
    Taken { name: String },
    #[error("there is no token `{name}`; `callboard token list` shows those there are")]
    Unknown { name: String },
    #[error("a token's name must be 1 to 64 letters, digits and . _ -")]
    BadName,
}

impl TokensError {
    /// Whether another request could succeed.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Taken { .. } | Self::Unknown { .. } | Self::BadName)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub name: String,
    pub role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    sha256: String,
    pub created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<NonZeroU32>,
}

impl Entry {
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    #[serde(default, rename = "token", skip_serializing_if = "Vec::is_empty")]
    tokens: Vec<Entry>,
}

/// Properties of a new token. Without `name`, one is chosen; without `days`, it never expires;
/// without `rate`, it has the board's.
pub struct Wish {
    pub name: Option<String>,
    pub role: Role,
    pub agent: Option<AgentId>,
    pub days: Option<u32>,
    pub rate: Option<NonZeroU32>,
}

/// Creates a token and returns its text, which is not stored.
pub fn add(dir: &Path, wish: Wish) -> Result<(Entry, String), TokensError> {
    changed(dir, |tokens| {
        let created = participant::board_time(dir);
        // Expired tokens stay as long as there is room, so that whoever presents one is told that
        // it has expired.
        if tokens.len() >= limit::TOKENS.max {
            tokens.retain(|token| !token.is_over(created));
        }
        limit::TOKENS.check(tokens.len() + 1)?;
        let name = match wish.name {
            Some(name) => checked(name)?,
            None => free_name(tokens, wish.role, wish.agent.as_ref()),
        };
        if tokens.iter().any(|token| token.name == name) {
            return Err(TokensError::Taken { name });
        }
        let failed = |error: getrandom::Error| {
            let (action, path) = ("make a token for", dir.join(FILE_NAME));
            TokensError::Failed { action, path, source: io::Error::other(error) }
        };
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(failed)?;
        let text = format!("{PREFIX}{}", hex(&bytes));
        let expires = wish.days.map(|days| created + i64::from(days) * DAY);
        let (role, agent, rate) = (wish.role, wish.agent, wish.rate);
        let entry = Entry { name, role, agent, sha256: sha256(&text), created, expires, rate };
        tokens.push(entry.clone());
        Ok((entry, text))
    })
}

/// Revokes a token. On return, no server begins a call with it, and, unless the machine is busy,
/// its waiting calls and streams have ended.
pub fn revoke(dir: &Path, name: &str) -> Result<Entry, TokensError> {
    let revoked =
        changed(dir, |tokens| match tokens.iter().position(|token| token.name == name) {
            Some(place) => Ok(tokens.remove(place)),
            None => Err(TokensError::Unknown { name: name.chars().take(limit::ID.max).collect() }),
        })?;
    thread::sleep(GOOD_FOR + REFRESH);
    Ok(revoked)
}

pub fn list(dir: &Path) -> Result<Vec<Entry>, TokensError> {
    Ok(read(dir)?.1)
}

fn checked(name: String) -> Result<String, TokensError> {
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if name.is_empty() || name.len() > limit::ID.max || !is_name {
        Err(TokensError::BadName)
    } else {
        Ok(name)
    }
}

/// A free name for a token: the agent's id, or one such as `worker-1`.
fn free_name(tokens: &[Entry], role: Role, agent: Option<&AgentId>) -> String {
    let is_free = |name: &String| !tokens.iter().any(|token| token.name == *name);
    let own = agent.and_then(|agent| checked(agent.to_string()).ok()).filter(is_free);
    let mut numbered = (1..).map(|number| format!("{}-{number}", role.as_str()));
    own.or_else(|| numbered.find(is_free)).unwrap_or_default()
}

/// Reads, changes and writes the file under the board's lock.
fn changed<T>(
    dir: &Path,
    change: impl FnOnce(&mut Vec<Entry>) -> Result<T, TokensError>,
) -> Result<T, TokensError> {
    let path = dir.join(FILE_NAME);
    let failed =
        |action| move |source| TokensError::Failed { action, path: dir.join(FILE_NAME), source };
    let lock = BoardLock::open(dir)?;
    participant::acquire(&lock)?;
    let outcome = read(dir).and_then(|(_, mut tokens)| {
        let outcome = change(&mut tokens)?;
        let document = toml::to_string(&Document { version: VERSION, tokens });
        let text = document.map_err(|error| failed("write")(io::Error::other(error)))?;
        // Only its owner can read it, from the first moment.
        let mut file = tempfile::Builder::new()
            .prefix(".tokens-")
            .tempfile_in(dir)
            .map_err(failed("write"))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(failed("write"))?;
        file.persist(&path).map_err(|error| failed("write")(error.error))?;
        Ok(outcome)
    });
    lock.release();
    outcome
}

/// Device, inode, size, and the times of the last change of content and of metadata: a corrected
/// mode counts, too.
type Version = (u64, u64, u64, [i64; 4]);

fn version(metadata: &Metadata) -> Version {
    let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
    (metadata.dev(), metadata.ino(), metadata.size(), times)
}

fn read(dir: &Path) -> Result<(Option<Version>, Vec<Entry>), TokensError> {
    let path = dir.join(FILE_NAME);
    let failed = |source| TokensError::Failed { action: "read", path: dir.join(FILE_NAME), source };
    let Some(file) = private::read(dir, FILE_NAME)? else { return Ok((None, Vec::new())) };
    let metadata = file.metadata().map_err(failed)?;
    if metadata.mode() & 0o077 != 0 {
        return Err(TokensError::Unsafe { path, what: "can be read by others" });
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(failed)?;
    // The faulty text is not repeated, as it contains hashes.
    let document: Document = toml::from_str(bom::skip(&text)).map_err(|error| {
        TokensError::Invalid { path: path.clone(), detail: error.message().to_owned() }
    })?;
    if document.version != VERSION {
        let detail = format!("version {} is not known to this callboard", document.version);
        return Err(TokensError::Invalid { path, detail });
    }
    Ok((Some(version(&metadata)), document.tokens))
}

/// All good tokens: the server's own, and those that were handed out.
pub struct Keyring {
    pub owner: Arc<Token>,
    dir: PathBuf,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    version: Option<Version>,
    /// Version of a file that could not be read, which has been reported.
    unread: Option<Version>,
    guests: Vec<Guest>,
    looked_at: Option<Instant>,
}

#[derive(Clone)]
struct Guest {
    entry: Entry,
    principal: Arc<Principal>,
    /// Cancelled when the token is no longer good.
    over: CancellationToken,
}

/// Whose token was presented. `over` is cancelled when it is no longer good.
pub enum Verdict {
    Owner { over: CancellationToken },
    Guest { principal: Arc<Principal>, over: CancellationToken },
    Expired { name: String },
    Stranger,
}

impl Keyring {
    pub fn open(dir: &Path, owner: Token) -> Result<Self, TokensError> {
        let keyring = Self { owner: Arc::new(owner), dir: dir.to_owned(), known: Mutex::default() };
        let (version, entries) = read(dir)?;
        let guests = entries.into_iter().map(Guest::of).collect();
        *keyring.lock() = Known { version, guests, ..Known::default() };
        Ok(keyring)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges by what was read a moment ago if that accepts the token, and otherwise by the files
    /// as they are.
    pub fn judge(&self, presented: &[u8]) -> Verdict {
        if self.is_recent()
            && let verdict @ (Verdict::Owner { .. } | Verdict::Guest { .. }) =
                self.compare(presented)
        {
            return verdict;
        }
        self.refresh();
        self.compare(presented)
    }

    /// Cancels what has ended, by what was read a moment ago or by the files as they are.
    pub fn look(&self) {
        if !self.is_recent() {
            self.refresh();
        }
    }

    fn is_recent(&self) -> bool {
        self.lock().looked_at.is_some_and(|at| at.elapsed() < GOOD_FOR)
    }

    /// Compares with every token in constant time, whichever it is.
    fn compare(&self, presented: &[u8]) -> Verdict {
        let owner = self.owner.accepts(presented);
        let known = self.lock();
        let hash = if known.guests.is_empty() { String::new() } else { sha256(presented) };
        let mut found = u32::MAX;
        for (index, guest) in (0..).zip(&known.guests) {
            let same: Choice = guest.entry.sha256.as_bytes().ct_eq(hash.as_bytes());
            found.conditional_assign(&index, same);
        }
        if let Some(over) = owner {
            return Verdict::Owner { over };
        }
        verdict(known.guests.get(found as usize))
    }

    /// Judges the token with this hash. The hash is no secret, so the caller must have proved by
    /// other means, such as a signed cookie, whose it is.
    pub fn judge_hash(&self, hash: &str) -> Verdict {
        self.look();
        if let Some(over) = self.owner.is_hashed(hash) {
            return Verdict::Owner { over };
        }
        verdict(self.lock().guests.iter().find(|guest| guest.entry.sha256 == hash))
    }

    /// Reads the files if they have changed, and cancels what has ended. If a file cannot be read,
    /// none of its tokens is accepted.
    pub fn refresh(&self) {
        let looked_at = Some(Instant::now());
        self.owner.look();
        let now = participant::board_time(&self.dir);
        let mut known = self.lock();
        let found = std::fs::symlink_metadata(self.dir.join(FILE_NAME))
            .ok()
            .map(|metadata| version(&metadata));
        if found != known.version {
            let before = std::mem::take(&mut *known);
            let (version, entries) = read(&self.dir).unwrap_or_else(|error| {
                if found.is_none() || found != before.unread {
                    tracing::warn!(%error, "no token but the owner's is accepted");
                }
                known.unread = found;
                // Without a version, it is read again until that succeeds: the reason may pass
                // without a change of the file.
                (None, Vec::new())
            });
            let guests = entries.into_iter().map(|entry| {
                let same = |guest: &&Guest| {
                    guest.entry.sha256 == entry.sha256
                        && guest.entry.expires == entry.expires
                        && *guest.principal == principal(&entry)
                };
                before.guests.iter().find(same).cloned().unwrap_or_else(|| Guest::of(entry.clone()))
            });
            (known.version, known.guests) = (version, guests.collect());
            let is_kept = |old: &Guest| {
                known.guests.iter().any(|guest| Arc::ptr_eq(&guest.principal, &old.principal))
            };
            before.guests.iter().filter(|old| !is_kept(old)).for_each(|old| old.over.cancel());
        }
        known.looked_at = looked_at;
        known
            .guests
            .iter()
            .filter(|guest| guest.entry.is_over(now))
            .for_each(|guest| guest.over.cancel());
    }
}

fn verdict(guest: Option<&Guest>) -> Verdict {
    match guest {
        None => Verdict::Stranger,
        Some(guest) if guest.over.is_cancelled() => {
            Verdict::Expired { name: guest.entry.name.clone() }
        }
        Some(guest) => {
            Verdict::Guest { principal: Arc::clone(&guest.principal), over: guest.over.clone() }
        }
    }
}

impl Guest {
    fn of(entry: Entry) -> Self {
        Self { principal: Arc::new(principal(&entry)), entry, over: CancellationToken::new() }
    }
}

fn principal(entry: &Entry) -> Principal {
    let Entry { name, role, agent, rate, .. } = entry.clone();
    Principal { token: name, role, agent, rate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::participant::directory;

    #[test]
    fn tokens_that_are_over_make_room() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join(".coordination");
        directory::prepare(&dir).unwrap();
        let wish = |name: &str| Wish {
            name: Some(name.to_owned()),
            role: Role::Worker,
            agent: None,
            days: None,
            rate: None,
        };
        let (first, _) = add(&dir, wish("first")).unwrap();
        changed(&dir, |tokens| {
            let more = (1..limit::TOKENS.max)
                .map(|number| Entry { name: number.to_string(), ..first.clone() });
            tokens.extend(more);
            Ok(())
        })
        .unwrap();
        let full = add(&dir, wish("one-more")).unwrap_err().to_string();
        assert!(full.contains("callboard token revoke NAME"), "{full}");
        changed(&dir, |tokens| {
            tokens[7].expires = Some(first.created);
            Ok(())
        })
        .unwrap();
        add(&dir, wish("one-more")).unwrap();
        assert_eq!(list(&dir).unwrap().len(), limit::TOKENS.max);
    }

    #[test]
    fn token_counts_from_when_it_was_made_until_it_was_revoked() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join(".coordination");
        directory::prepare(&dir).unwrap();
        let keyring = Keyring::open(&dir, Token::open(&dir, false).unwrap()).unwrap();
        let wish = Wish {
            name: Some("ci".to_owned()),
            role: Role::Worker,
            agent: None,
            days: None,
            rate: None,
        };
        let (_, text) = add(&dir, wish).unwrap();
        assert!(matches!(keyring.judge(text.as_bytes()), Verdict::Guest { .. }));
        revoke(&dir, "ci").unwrap();
        assert!(matches!(keyring.judge(text.as_bytes()), Verdict::Stranger));
        let old = keyring.owner.text();
        let Verdict::Owner { over } = keyring.judge(old.as_bytes()) else { panic!("the owner") };
        let new = Token::open(&dir, true).unwrap().text();
        assert!(matches!(keyring.judge(old.as_bytes()), Verdict::Stranger));
        assert!(over.is_cancelled());
        assert!(matches!(keyring.judge(new.as_bytes()), Verdict::Owner { .. }));
    }
}
