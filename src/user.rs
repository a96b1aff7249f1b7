//! The configuration of the user, outside of any project: `$XDG_CONFIG_HOME/callboard/config.toml`,
//! else `~/.config/callboard/config.toml`.

use std::env;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use fs_err as fs;
use serde::Deserialize;
use thiserror::Error;

use crate::config::{fault, with_line};
use crate::notify::settings::{Channel, Written};
use crate::state::id::{AgentId, HUMAN};

const LARGEST: u64 = 64 << 10;
/// Sets the person's name for one process.
const ME: &str = "CALLBOARD_ME";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    me: Option<String>,
    notify: Option<Written>,
}

/// What the user has set.
#[derive(Debug)]
pub(crate) struct User {
    pub path: PathBuf,
    /// When the file was changed last; `None` if there is no file.
    pub changed: Option<SystemTime>,
    /// The name under which the person acts.
    pub me: Option<AgentId>,
    pub channels: Vec<Channel>,
}

#[derive(Debug, Error)]
pub(crate) enum UserError {
    #[error("{} cannot be read: {source}", path.display())]
    Unread { path: PathBuf, source: io::Error },
    #[error("{} can be changed by others, and what it says starts programs; run `chmod go-w` on it", path.display())]
    Writable { path: PathBuf },
    #[error("{} belongs to another user, and what it says starts programs; make it your own", path.display())]
    Foreign { path: PathBuf },
    #[error("{} is larger than 64 kB, so it is no configuration", path.display())]
    TooLarge { path: PathBuf },
    #[error("{} is not valid: {detail}; mend it", path.display())]
    Invalid { path: PathBuf, detail: String },
}

/// A directory of the user by the XDG base directory specification; a relative one is none.
fn base(variable: &str, usual: &str) -> Option<PathBuf> {
    let set = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    set.or_else(|| Some(env::home_dir()?.join(usual)))
}

pub(crate) fn path() -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config")?.join("callboard/config.toml"))
}

/// Where programs keep what is neither configuration nor data.
pub(crate) fn state_home() -> Option<PathBuf> {
    base("XDG_STATE_HOME", ".local/state")
}

/// Reads the configuration; without a file nothing is set.
pub(crate) fn load() -> Result<Option<User>, UserError> {
    let Some(path) = path() else { return Ok(None) };
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Some(User { path, changed: None, me: None, channels: Vec::new() }));
        }
        Err(source) => return Err(UserError::Unread { path, source }),
    };
    if metadata.len() > LARGEST {
        return Err(UserError::TooLarge { path });
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(UserError::Writable { path });
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() && metadata.uid() != 0 {
        return Err(UserError::Foreign { path });
    }
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(UserError::Invalid { path, detail: "it is not text in UTF-8".to_owned() });
        }
        Err(source) => return Err(UserError::Unread { path, source }),
    };
    let dir = path.parent().map(PathBuf::from).unwrap_or_default();
    let invalid = |detail: String| UserError::Invalid { path: path.clone(), detail };
    let file = toml::from_str::<File>(&text).map_err(|error| invalid(fault(&text, &error)))?;
    let me = file.me.as_deref().map(AgentId::checked).transpose();
    let me = me.map_err(|refusal| invalid(with_line(&text, format!("`me`: {refusal}"))))?;
    let channels = file.notify.unwrap_or_default().channels(&dir);
    let channels =
        channels.map_err(|error| invalid(with_line(&text, error.message().to_owned())))?;
    Ok(Some(User { path, changed: metadata.modified().ok(), me, channels }))
}

/// The name of the person who uses this process: of `CALLBOARD_ME`, else of the configuration, else
/// the system's user. `None` if it is to be `human`, which is nobody in particular.
pub(crate) fn person() -> Option<Arc<str>> {
    let set = || AgentId::checked(&env::var(ME).ok()?).ok();
    let configured = || load().ok().flatten()?.me;
    let system = || AgentId::checked(&plain(&whoami::username().ok()?)).ok();
    let name = set().or_else(configured).or_else(system)?;
    Some(Arc::from(name.as_str())).filter(|name: &Arc<str>| **name != *HUMAN)
}

/// Why the name in `CALLBOARD_ME` is not used, if it is not.
pub(crate) fn refused_name() -> Option<String> {
    let set = env::var_os(ME).filter(|set| !set.is_empty())?;
    let why = match set.to_str() {
        Some(name) => AgentId::checked(name).err()?.to_string(),
        None => "it is not text in UTF-8".to_owned(),
    };
    Some(format!("{ME} is not used as your name: {why}"))
}

/// The name with `-` for what names on a board cannot have, as in `DOMAIN\user`.
fn plain(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._:@+".contains(c) { c } else { '-' };
    name.chars().map(allowed).collect::<String>().trim_matches('-').to_owned()
}
