use std::fs::{Permissions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fs_err as fs;

/// Most bytes in a file; far above any client's configuration.
const LIMIT: u64 = 4 << 20;
/// Longest wait for another process that connects.
const PATIENCE: Duration = Duration::from_secs(5);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// A client's configuration file, which may not exist yet.
pub(super) struct ConfigFile {
    /// Path as it was asked for.
    pub path: PathBuf,
    /// Path behind symbolic links.
    target: PathBuf,
    pub text: String,
    permissions: Option<Permissions>,
    /// Lock on the file's directory, held until the file is replaced: of two writers, the second
    /// reads what the first wrote.
    _lock: Option<fs::File>,
}

impl ConfigFile {
    pub(super) fn open(path: PathBuf) -> anyhow::Result<Self> {
        let target = match fs::canonicalize(&path) {
            Ok(target) => target,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                ensure!(!path.is_symlink(), "{} is a symbolic link to nothing", path.display());
                path.clone()
            }
            Err(error) => return Err(error.into()),
        };
        let dir = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let lock = fs::File::open(dir).ok().filter(locked);
        let found = match fs::metadata(&target) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => Some(found?),
        };
        ensure!(
            found.as_ref().is_none_or(|found| found.is_file()),
            "{} is not a file",
            path.display()
        );
        let text = read(&target)?;
        Ok(Self {
            path,
            text,
            target,
            permissions: found.map(|found| found.permissions()),
            _lock: lock,
        })
    }

    /// Replaces the file, whole or not at all: the client may be reading, and a crash must not
    /// leave it without configuration. Returns `false`, and writes nothing, if somebody else
    /// has changed it meanwhile.
    pub(super) fn replace(&self, text: &str) -> anyhow::Result<bool> {
        let dir = self.target.parent().unwrap_or(Path::new("."));
        let place = || format!("cannot write {}", self.target.display());
        let mut file = tempfile::Builder::new()
            .prefix(".callboard-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(dir)
            .with_context(place)?;
        file.write_all(text.as_bytes()).with_context(place)?;
        if let Some(permissions) = &self.permissions {
            file.as_file().set_permissions(permissions.clone()).with_context(place)?;
        }
        file.as_file().sync_all().with_context(place)?;
        if read(&self.target)? != self.text {
            return Ok(false);
        }
        file.persist(&self.target).with_context(place)?;
        fs::File::open(dir)?.sync_all().with_context(place)?;
        Ok(true)
    }
}

impl ConfigFile {
    /// Removes the file, and its directory if that is then empty. Returns `false` and removes
    /// nothing if another program has changed the file since it was read.
    pub(super) fn delete(&self) -> anyhow::Result<bool> {
        if read(&self.target)? != self.text {
            return Ok(false);
        }
        fs::remove_file(&self.target)?;
        if let Some(dir) = self.target.parent()
            && dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
        {
            // A directory with other files stays.
            drop(std::fs::remove_dir(dir));
        }
        Ok(true)
    }
}

/// Whether the lock was taken, so that others that connect wait. Without it, because the file
/// system has no locks or somebody keeps this one, the work goes on: a change is noticed before the
/// file is replaced.
fn locked(dir: &fs::File) -> bool {
    let began = Instant::now();
    loop {
        match dir.file().try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => sleep(BETWEEN_TRIES),
            Err(_) => return false,
        }
    }
}

/// The text of the file; empty if there is none.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    match fs::File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        file => file?.take(LIMIT + 1).read_to_end(&mut bytes)?,
    };
    if bytes.len() as u64 > LIMIT {
        bail!("{} has more than {LIMIT} bytes; nothing was written", path.display());
    }
    String::from_utf8(bytes)
        .with_context(|| format!("{} is not UTF-8; nothing was written", path.display()))
}
