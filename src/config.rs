//! `config.toml` of a board: the policy, with defaults for what it leaves out.

use std::io::{self, Read};
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

/// The file as it is; none if it is not there or cannot be read.
pub fn text(board: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    private::read(board, FILE).ok()??.take(LARGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

pub fn load(board: &Path) -> Result<Config, ConfigError> {
    let path = board.join(FILE);
    let Some(file) = private::read(board, FILE)? else { return Ok(Config::default()) };
    let mut text = String::new();
    match file.take(LARGEST).read_to_string(&mut text) {
        Ok(_) => toml::from_str(&text).map_err(|error| ConfigError::Invalid { path, detail: error.to_string() }),
        Err(source) => Err(ConfigError::Unread { path, source }),
    }
}
