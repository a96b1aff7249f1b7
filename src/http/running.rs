//! Which servers of a board run on this machine: each keeps a file locked that says where it is.
//! Only the lock proves that the address is still a server's; another process may listen there by
//! now, and must not be sent a token.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::participant::directory::RUN;
use crate::private::{Dir, Purpose};

const PREFIX: &str = "serve-";
const LONGEST: u64 = 1_024;

/// Says that a server runs, for as long as it does.
pub struct Running {
    path: PathBuf,
    _locked: File,
}

impl Running {
    /// Says that a server of the board in `dir` is at `url`, with this port.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note(dir: &Path, port: u16, url: &str) -> io::Result<Self> {
        let name = format!("{PREFIX}{port}");
        let run = Dir::open(&dir.join(RUN))?.ok_or(io::ErrorKind::NotFound)?;
        let mut file = run.open_file(&name, Purpose::Keep)?.ok_or(io::ErrorKind::NotFound)?;
        Self::clear(&run, &name);
        // A server that had the port before may not have ended yet.
        file.lock()?;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(url.as_bytes())?;
        Ok(Self { path: dir.join(RUN).join(name), _locked: file })
    }

    /// Removes what servers left that were killed.
    fn clear(run: &Dir, own: &str) {
        let names = run.names().unwrap_or_default();
        for name in names.iter().filter(|name| name.starts_with(PREFIX) && *name != own) {
            if let Ok(Some(file)) = run.open_file(name, Purpose::Read)
                && file.try_lock().is_ok()
            {
                // What stays is not locked, and so says nothing.
                _ = run.remove(name);
            }
        }
    }

    /// The address of a server that runs for the board in `dir`.
    pub fn find(dir: &Path) -> Option<String> {
        let run = Dir::open(&dir.join(RUN)).ok()??;
        let mut names = run.names().ok()?;
        names.sort();
        names.iter().filter(|name| name.starts_with(PREFIX)).find_map(|name| {
            let file = run.open_file(name, Purpose::Read).ok()??;
            // Asks with a shared lock, so that two may ask at once.
            if file.try_lock_shared().is_ok() {
                return None;
            }
            let mut url = String::new();
            file.take(LONGEST).read_to_string(&mut url).ok()?;
            Some(url).filter(|url| !url.is_empty())
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What cannot be removed is not locked any more, and so says nothing.
        _ = std::fs::remove_file(&self.path);
    }
}
