//! Where the state file is: the board's directory, and the file's name, which the board's
//! configuration may set.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config;

/// Name of the state file unless the board's configuration sets another.
pub const FILE_NAME: &str = config::STATE_FILE;

/// A board's directory that knows the name of the state file in it. What reads or writes that file
/// takes one; from a mere path it is made by reading the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    dir: Arc<Path>,
    name: Arc<str>,
}

impl Home {
    pub fn new(dir: &Path, name: &str) -> Self {
        Self { dir: dir.into(), name: name.into() }
    }

    /// With the name that the configuration sets. One that cannot be read sets none; opening the
    /// board refuses it.
    pub fn of(dir: &Path) -> Self {
        Self::new(dir, &config::load(dir).unwrap_or_default().state_file)
    }

    /// The state file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The state file's path.
    pub fn file(&self) -> PathBuf {
        self.dir.join(&*self.name)
    }
}

impl Deref for Home {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.dir
    }
}

impl From<&Home> for Home {
    fn from(home: &Home) -> Self {
        home.clone()
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Home {
    fn from(dir: &P) -> Self {
        Self::of(dir.as_ref())
    }
}
