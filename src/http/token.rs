//! The server's own bearer token: 256 bits in a private file, which all servers of the board read
//! and none sends anywhere.

use std::fs::Metadata;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use subtle::ConstantTimeEq;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::bom;
use crate::private::{self, PrivateError};
use crate::state::digest::{hex, sha256};

pub const FILE_NAME: &str = "serve.token";
/// Prefix of a token, by which it can be recognized wherever it turns up.
pub(super) const PREFIX: &str = "cbt_";
/// Number of hexadecimal digits for 256 bits.
const DIGITS: usize = 64;
/// Most bytes of the file: the token, perhaps a byte order mark before it, and a line end.
const LONGEST: u64 = (PREFIX.len() + DIGITS + 5) as u64;

#[derive(Debug, Error)]
pub enum TokenError {
    #[error(transparent)]
    Private(#[from] PrivateError),
    #[error("{} {what}; remove it and start again, or make a new one with --new-token", path.display())]
    Unsafe { path: PathBuf, what: &'static str },
    #[error("cannot {action} {}: {source}", path.display())]
    Failed { action: &'static str, path: PathBuf, source: io::Error },
}

/// The token in the file, as last read. Another server may replace it, so the file is checked again
/// and again.
pub struct Token {
    path: PathBuf,
    known: Mutex<Known>,
}

struct Known {
    text: String,
    /// None if the file holds no acceptable token.
    version: Option<Version>,
    /// Cancelled when the token is no longer good.
    over: CancellationToken,
}

/// Time for which a token that was found good need not be checked again. Whoever revokes one waits
/// as long.
pub(super) const GOOD_FOR: Duration = Duration::from_millis(10);

/// Device, inode and time of the last change: a difference means another file or other content.
type Version = (u64, u64, i64, i64);

fn version(metadata: &Metadata) -> Version {
    (metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
}

impl Token {
    /// The board's token, created if there is none or if `new` asks for it.
    pub fn open(dir: &Path, new: bool) -> Result<Self, TokenError> {
        let path = dir.join(FILE_NAME);
        if new || std::fs::symlink_metadata(&path).is_err() {
            make(&path, new)?;
        }
        let known = Mutex::new(read(&path)?);
        Ok(Self { path, known })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> String {
        self.lock().text.clone()
    }

    /// Reads the file if it has changed.
    pub fn look(&self) {
        let mut known = self.lock();
        let current = std::fs::symlink_metadata(&self.path).map(|metadata| version(&metadata)).ok();
        if known.version.is_none() || current != known.version {
            match read(&self.path) {
                Ok(read) if read.text == known.text && known.version.is_some() => {
                    known.version = read.version
                }
                Ok(read) => std::mem::replace(&mut *known, read).over.cancel(),
                Err(error) => {
                    // Warned about only once, since the file is checked again and again.
                    if known.version.take().is_some() {
                        tracing::warn!(%error, "no token is accepted");
                    }
                    known.over.cancel();
                }
            }
        }
    }

    /// If `presented` is the token that the file held when last checked: a handle that is cancelled
    /// when it is no longer good. The comparison takes constant time.
    pub fn accepts(&self, presented: &[u8]) -> Option<CancellationToken> {
        let known = self.lock();
        let is_same: bool = known.text.as_bytes().ct_eq(presented).into();
        (is_same && known.version.is_some()).then(|| known.over.clone())
    }

    /// The same for the hash of a token.
    pub fn is_hashed(&self, hash: &str) -> Option<CancellationToken> {
        let known = self.lock();
        let is_same = sha256(&known.text) == hash;
        (is_same && known.version.is_some()).then(|| known.over.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the file atomically, so that nobody reads half a token. If two processes do so at once,
/// one of them creates it.
fn make(path: &Path, replace: bool) -> Result<(), TokenError> {
    let failed =
        |action| move |source| TokenError::Failed { action, path: path.to_owned(), source };
    let mut bytes = [0; DIGITS / 2];
    getrandom::fill(&mut bytes)
        .map_err(|error| failed("make a token for")(io::Error::other(error)))?;
    let text = format!("{PREFIX}{}", hex(&bytes));
    let dir = path.parent().unwrap_or(Path::new("."));
    // Only its owner can read it, from the first moment.
    let mut file = tempfile::Builder::new()
        .prefix(".serve-token-")
        .tempfile_in(dir)
        .map_err(failed("write"))?;
    writeln!(file, "{text}").and_then(|()| file.as_file().sync_all()).map_err(failed("write"))?;
    let placed = if replace { file.persist(path) } else { file.persist_noclobber(path) };
    match placed {
        Err(error) if replace || error.error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("write")(error.error))
        }
        _ => {
            if replace {
                thread::sleep(GOOD_FOR);
            }
            Ok(())
        }
    }
}

fn read(path: &Path) -> Result<Known, TokenError> {
    let failed = |source| TokenError::Failed { action: "read", path: path.to_owned(), source };
    let refuse = |what| Err(TokenError::Unsafe { path: path.to_owned(), what });
    let missing = || TokenError::Failed {
        action: "read",
        path: path.to_owned(),
        source: io::ErrorKind::NotFound.into(),
    };
    let file =
        private::read(path.parent().unwrap_or(Path::new(".")), FILE_NAME)?.ok_or_else(missing)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.mode() & 0o077 != 0 {
        return refuse("can be read by others");
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(failed)?;
    let text = bom::skip(&text).trim_end().to_owned();
    // Older tokens have no prefix.
    let digits = text.strip_prefix(PREFIX).unwrap_or(&text);
    if digits.len() != DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return refuse("does not hold a token");
    }
    Ok(Known { text, version: Some(version(&metadata)), over: CancellationToken::new() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn token_is_kept_until_a_new_one_is_asked_for_which_others_then_take() {
        let dir = tempfile::tempdir().unwrap();
        let first = Token::open(dir.path(), false).unwrap();
        let old = first.text();
        assert_eq!(Token::open(dir.path(), false).unwrap().text(), old);
        assert!(first.accepts(old.as_bytes()).is_some());
        let new = Token::open(dir.path(), true).unwrap().text();
        assert_ne!(new, old);
        first.look();
        assert!(first.accepts(old.as_bytes()).is_none());
        assert!(first.accepts(new.as_bytes()).is_some());
        assert!(first.accepts(&new.as_bytes()[1..]).is_none());
        assert_eq!(std::fs::metadata(first.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn token_has_the_form_that_is_redacted_and_an_older_one_is_good() {
        use std::os::unix::fs::OpenOptionsExt;
        let dir = tempfile::tempdir().unwrap();
        let text = Token::open(dir.path(), false).unwrap().text();
        let told = crate::redact::text(&format!("the server says {text}"));
        assert_eq!(told, Some(("the server says [redacted: callboard token]".to_owned(), 1)));
        let older = "0123456789abcdef".repeat(4);
        let mut file = std::fs::OpenOptions::new();
        let mut file =
            file.write(true).truncate(true).mode(0o600).open(dir.path().join(FILE_NAME)).unwrap();
        writeln!(file, "{older}").unwrap();
        assert!(Token::open(dir.path(), false).unwrap().accepts(older.as_bytes()).is_some());
    }

    #[test]
    fn token_that_others_could_know_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::open(dir.path(), false).unwrap();
        std::fs::set_permissions(token.path(), PermissionsExt::from_mode(0o644)).unwrap();
        assert!(matches!(Token::open(dir.path(), false), Err(TokenError::Unsafe { .. })));
        std::fs::remove_file(token.path()).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", token.path()).unwrap();
        assert!(Token::open(dir.path(), false).is_err());
        token.look();
        assert!(token.accepts(token.text().as_bytes()).is_none(), "the file is gone");
    }
}
