//! `config.toml` of a board: the policy, with defaults for what it leaves out.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::private::{self, PrivateError};
use crate::state::policy::Policy;

pub const FILE: &str = "config.toml";
const LARGEST: u64 = 64 * 1024;

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub policy: Policy,
    /// Write also where locks may not work.
    pub allow_network_filesystem: bool,
}

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error(transparent)]
    Private(#[from] PrivateError),
    #[error("{} cannot be read: {source}", path.display())]
    Unread { path: PathBuf, source: io::Error },
    #[error("{} is not valid: {detail}; mend it or remove the file to have the defaults", path.display())]
    Invalid { path: PathBuf, detail: String },
}

pub fn load(board: &Path) -> Result<Config, ConfigError> {
    Ok(Followed::load(board)?.config)
}

/// What a board's file says, read again when it is another.
#[derive(Default)]
pub struct Followed {
    config: Config,
    /// None if there was no file.
    text: Option<String>,
    seen: Option<Stamp>,
}

/// What differs once a file was saved again: device, inode, length, and when it changed.
type Stamp = (u64, u64, u64, (i64, i64));

impl Followed {
    pub fn load(board: &Path) -> Result<Self, ConfigError> {
        // Before the file is read, so that a change meanwhile is seen later.
        let seen = stamp(board);
        let Some(text) = read(board)? else { return Ok(Self::default()) };
        Ok(Self { config: parse(board, &text)?, text: Some(text), seen })
    }

    /// Reads what was saved since. What cannot be used is told once, and what was read before holds; so it does when there
    /// is no file or an empty one, as while somebody saves it.
    pub fn look(&mut self, board: &Path) -> Result<(), ConfigError> {
        let found = stamp(board);
        if found.is_none() || found == self.seen {
            return Ok(());
        }
        self.seen = found;
        if let Some(text) = read(board)?.filter(|text| !text.trim_ascii().is_empty()) {
            self.config = parse(board, &text)?;
            self.text = Some(text);
        }
        Ok(())
    }

    pub fn policy(&self) -> &Policy {
        &self.config.policy
    }

    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

fn stamp(board: &Path) -> Option<Stamp> {
    let found = board.join(FILE).symlink_metadata().ok()?;
    Some((found.dev(), found.ino(), found.len(), (found.ctime(), found.ctime_nsec())))
}

fn read(board: &Path) -> Result<Option<String>, ConfigError> {
    let Some(file) = private::read(board, FILE)? else { return Ok(None) };
    let mut text = String::new();
    match file.take(LARGEST).read_to_string(&mut text) {
        Ok(_) => Ok(Some(text)),
        Err(source) => Err(ConfigError::Unread { path: board.join(FILE), source }),
    }
}

fn parse(board: &Path, text: &str) -> Result<Config, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError::Invalid { path: board.join(FILE), detail: error.to_string() })
}
