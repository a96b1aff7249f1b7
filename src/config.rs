//! `config.toml` of a board: the policy, with defaults for what it leaves out.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::state::policy::Policy;

pub const FILE: &str = "config.toml";
const LARGEST: u64 = 64 * 1024;

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub policy: Policy,
}

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("{} cannot be read: {source}", path.display())]
    Unread { path: PathBuf, source: io::Error },
    #[error("{} is not valid: {detail}; mend it or remove the file to have the defaults", path.display())]
    Invalid { path: PathBuf, detail: String },
}

pub fn load(board: &Path) -> Result<Config, ConfigError> {
    let path = board.join(FILE);
    let file = match fs_err::File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(source) => return Err(ConfigError::Unread { path, source }),
    };
    let mut text = String::new();
    match file.take(LARGEST).read_to_string(&mut text) {
        Ok(_) => toml::from_str(&text).map_err(|error| ConfigError::Invalid { path, detail: error.to_string() }),
        Err(source) => Err(ConfigError::Unread { path, source }),
    }
}
