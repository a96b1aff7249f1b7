//! `config.toml` of a board: the policy, with defaults for what it leaves out.

use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::bom;
use crate::private::{self, PrivateError};
use crate::state::policy::Policy;

pub const FILE: &str = "config.toml";
/// Environment variable with the token of a server.
pub(crate) const TOKEN_VARIABLE: &str = "CALLBOARD_TOKEN";
const LARGEST: u64 = 64 * 1024;

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Name of the state file in the board's directory.
    #[serde(deserialize_with = "state_file")]
    pub state_file: String,
    pub policy: Policy,
    /// Write even where file locks may not work.
    pub allow_network_filesystem: bool,
    /// Not read: agents can write here, and it starts processes. The user's own configuration has it.
    #[serde(skip_serializing)]
    pub notify: Option<serde::de::IgnoredAny>,
    /// Calls per second of one token of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<NonZeroU32>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            state_file: STATE_FILE.to_owned(),
            policy: Policy::default(),
            allow_network_filesystem: false,
            notify: None,
            rate: None,
        }
    }
}

/// Name of the state file where nothing else is set.
pub const STATE_FILE: &str = "mcp-state.json";
const LONGEST_NAME: usize = 64;
/// Beginnings of names that a board gives to what it moves aside.
const OF_BOARDS: [&str; 4] = ["replaced-", "diverged-", "backup-", "before-restore-"];

/// Checks the name of a state file: a plain one that no other file of a board has.
pub fn check_state_file(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_name = name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
        && name.strip_suffix(".json").is_some_and(|stem| !stem.is_empty())
        && !OF_BOARDS.iter().any(|start| name.starts_with(start));
    if is_name {
        return Ok(());
    }
    let given: String = name.chars().take(LONGEST_NAME).filter(|c| !c.is_control()).collect();
    Err(format!(
        "`{given}` cannot be the state file's name: it is one name without a directory, of at \
         most {LONGEST_NAME} letters, digits, `.`, `_` and `-`, that ends in .json and does not \
         begin like what a board moves aside ({}); for example board.json",
        OF_BOARDS.join(", ")
    ))
}

fn state_file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    check_state_file(&name).map_err(D::Error::custom)?;
    Ok(name)
}

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error(transparent)]
    Private(#[from] PrivateError),
    #[error("{} cannot be read: {source}", path.display())]
    Unread { path: PathBuf, source: io::Error },
    #[error("{} is not valid: {detail}; mend it or remove the file to have the defaults", path.display())]
    Invalid { path: PathBuf, detail: String },
    #[error("{} would not be valid, so it is not written: {detail}", path.display())]
    Refused { path: PathBuf, detail: String },
    #[error("{} cannot be written: {source}", path.display())]
    Unwritten { path: PathBuf, source: io::Error },
    #[error(
        "{} holds for all processes on the board and does not say what this one asks for ({}); change the file, or \
         leave the option out", path.display(), asked.trim().replace('\n', ", ")
    )]
    SaysOther { path: PathBuf, asked: String },
}

/// Makes the file with what `ask` sets, as far as that differs from the defaults. A file that is
/// there must say it already.
pub fn record(board: &Path, ask: impl Fn(&mut Config)) -> Result<(), ConfigError> {
    let path = board.join(FILE);
    let unwritten = |source| ConfigError::Unwritten { path: path.clone(), source };
    let found = load(board)?;
    let mut asked = found.clone();
    ask(&mut asked);
    if asked == found {
        return Ok(());
    }
    let new = text(&asked, &Config::default());
    parse(board, &new).map_err(|error| match error {
        ConfigError::Invalid { path, detail } => ConfigError::Refused { path, detail },
        other => other,
    })?;
    let says_other = || ConfigError::SaysOther { path: path.clone(), asked: text(&asked, &found) };
    if read(board)?.is_some() {
        return Err(says_other());
    }
    let mut file = tempfile::Builder::new().prefix(".tmp").tempfile_in(board).map_err(unwritten)?;
    file.write_all(new.as_bytes()).map_err(unwritten)?;
    match file.persist_noclobber(&path) {
        // Another process has made it meanwhile.
        Err(error)
            if error.error.kind() == io::ErrorKind::AlreadyExists && load(board)? != asked =>
        {
            Err(says_other())
        }
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => {
            Err(unwritten(error.error))
        }
        _ => Ok(()),
    }
}

/// The text of a file that says in what `config` differs from `other`.
fn text(config: &Config, other: &Config) -> String {
    let table = |config: &Config| toml::Table::try_from(config).unwrap_or_default();
    without(table(config), &table(other)).to_string()
}

/// `table` without what `other` says, too.
fn without(table: toml::Table, other: &toml::Table) -> toml::Table {
    let differs = |(name, value): (String, toml::Value)| match (value, other.get(&name)) {
        (toml::Value::Table(inner), Some(toml::Value::Table(others))) => {
            let inner = without(inner, others);
            (!inner.is_empty()).then_some((name, toml::Value::Table(inner)))
        }
        (value, others) => (Some(&value) != others).then_some((name, value)),
    };
    table.into_iter().filter_map(differs).collect()
}

pub fn load(board: &Path) -> Result<Config, ConfigError> {
    Ok(Followed::load(board)?.config)
}

/// The board's configuration, read again when the file changes.
#[derive(Default)]
pub struct Followed {
    config: Config,
    /// Text of the file; `None` if there was none.
    text: Option<String>,
    /// The file as it was read; `None` while it may not have been completely saved.
    seen: Option<Found>,
    /// The file that is there now, and since when.
    waiting: Option<(Found, Instant)>,
    /// When the file was last looked for.
    looked_at: Option<Instant>,
    /// The file that was already reported as unusable.
    told: Option<Found>,
}

/// What changes when a file is saved: device, inode, length and time of change. `None` if there is
/// no file.
type Found = Option<(u64, u64, u64, (i64, i64))>;

/// How long a change must be over before the file is read: some editors empty a file before they
/// write it, and whoever deletes a board may begin with this file. Also longer than the resolution
/// of file times.
const REST: Duration = Duration::from_secs(2);
/// Shortest time between two looks: every operation would look, and a change need not be seen
/// sooner.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

impl Followed {
    pub fn load(board: &Path) -> Result<Self, ConfigError> {
        // Before the file is read, so that a change meanwhile is noticed later.
        let found = find(board);
        let text = read(board)?;
        let config =
            text.as_ref().map_or_else(|| Ok(Config::default()), |text| parse(board, text))?;
        let seen = has_rested(found).then_some(found);
        Ok(Self { config, text, seen, ..Self::default() })
    }

    /// Reads the file once its last change is some time ago. An unusable file is reported once, and
    /// the configuration read before stays in force.
    pub fn look(&mut self, board: &Path) -> Result<(), ConfigError> {
        if self.looked_at.is_some_and(|looked_at| looked_at.elapsed() < BETWEEN_LOOKS) {
            return Ok(());
        }
        self.looked_at = Some(Instant::now());
        let found = find(board);
        if self.seen == Some(found) {
            self.waiting = None;
            return Ok(());
        }
        let since = match self.waiting {
            Some((waiting, since)) if waiting == found => since,
            _ => Instant::now(),
        };
        self.waiting = Some((found, since));
        if !has_rested(found) && since.elapsed() < REST {
            return Ok(());
        }
        let usable = read(board).and_then(|text| {
            let config =
                text.as_ref().map_or_else(|| Ok(Config::default()), |text| parse(board, text));
            Ok((config?, text))
        });
        match usable {
            Ok((config, text)) => {
                (self.config, self.text, self.seen, self.told) = (config, text, Some(found), None);
                Ok(())
            }
            Err(error) => {
                if matches!(error, ConfigError::Invalid { .. }) {
                    self.seen = Some(found);
                }
                match self.told.replace(found) {
                    Some(told) if told == found => Ok(()),
                    _ => Err(error),
                }
            }
        }
    }

    pub fn policy(&self) -> &Policy {
        &self.config.policy
    }

    pub fn rate(&self) -> Option<NonZeroU32> {
        self.config.rate
    }

    pub fn state_file(&self) -> &str {
        &self.config.state_file
    }

    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

fn find(board: &Path) -> Found {
    let found = board.join(FILE).symlink_metadata().ok()?;
    Some((found.dev(), found.ino(), found.len(), (found.ctime(), found.ctime_nsec())))
}

/// True if the last change is long enough ago; false if there is no file, because then nobody
/// knows.
fn has_rested(found: Found) -> bool {
    let Some((.., (seconds, nanos))) = found else { return false };
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(seconds), u32::try_from(nanos)) else {
        return false;
    };
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
    changed.elapsed().is_ok_and(|rested| rested >= REST)
}

fn read(board: &Path) -> Result<Option<String>, ConfigError> {
    let Some(file) = private::read(board, FILE)? else { return Ok(None) };
    let mut text = String::new();
    match file.take(LARGEST).read_to_string(&mut text) {
        Ok(read) if read as u64 == LARGEST => Err(ConfigError::Invalid {
            path: board.join(FILE),
            detail: format!("it is larger than {LARGEST} bytes"),
        }),
        Ok(_) => Ok(Some(text)),
        Err(source) if source.kind() == io::ErrorKind::InvalidData => {
            let detail = "it is not text in UTF-8".to_owned();
            Err(ConfigError::Invalid { path: board.join(FILE), detail })
        }
        Err(source) => Err(ConfigError::Unread { path: board.join(FILE), source }),
    }
}

/// Reads the text of the file of `board`.
pub fn parse(board: &Path, text: &str) -> Result<Config, ConfigError> {
    let text = bom::skip(text);
    toml::from_str(text).map_err(|error| ConfigError::Invalid {
        path: board.join(FILE),
        detail: fault(text, &error),
    })
}

/// What is wrong with a text in TOML: the line, what stands there, and what is taken there.
pub(crate) fn fault(text: &str, error: &toml::de::Error) -> String {
    let message = in_words(error.message());
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else { return message };
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default();
    // The value may be a secret.
    let key = line.split_once('=').map(|(key, _)| format!(", `{}`", key.trim()));
    format!("line {}{}: {message}", number + 1, key.unwrap_or_default())
}

/// `message` with the line in which the key stands that it names first.
pub(crate) fn with_line(text: &str, message: String) -> String {
    let key = message.split('`').nth(1).unwrap_or_default();
    let sets = |line: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    match text.lines().position(sets) {
        Some(number) => format!("line {}: {message}", number + 1),
        None => message,
    }
}

/// The parser's message without names of types.
pub(crate) fn in_words(message: &str) -> String {
    let message = message.trim_end();
    let wrong = ["invalid type: ", "invalid value: "];
    let found = wrong.iter().find_map(|start| message.strip_prefix(start));
    let Some((found, wanted)) = found.and_then(|found| found.split_once(", expected ")) else {
        return message.replace("wanted string or table", "it takes a word in quotation marks");
    };
    let found = found.strip_suffix(" as i128").unwrap_or(found);
    let found = found.replace("sequence", "a list").replace("map", "a table");
    let wanted = match wanted {
        "u32" => "a whole number from 0 to 4294967295",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u64" | "usize" => "a whole number, 0 or more",
        "i64" => "a whole number",
        "a boolean" => "true or false",
        "a string" => "a text in quotation marks",
        "a sequence" => "a list in brackets",
        wanted if wanted.starts_with("struct ") => "a table of settings",
        wanted => wanted,
    };
    format!("it takes {wanted}, not {found}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_by_line_and_in_words() {
        for (text, expected) in [
            (
                "\nrate = 0",
                "line 2, `rate`: it takes a whole number from 1 to 4294967295, not integer `0`",
            ),
            ("policy = 3", "line 1, `policy`: it takes a table of settings, not integer `3`"),
            ("[policy]\nreview = 4", "line 2, `review`: it takes a word in quotation marks"),
            (
                "allow_network_filesystem = 1",
                "line 1, `allow_network_filesystem`: it takes true or false, not integer `1`",
            ),
            ("[policy]\nlease_minutes = 99999999999999999999", "line 2, `lease_minutes`: it takes"),
        ] {
            let error = parse(Path::new("/b"), text).unwrap_err().to_string();
            assert!(error.contains(&format!("not valid: {expected}")), "{text}: {error}");
            assert!(!error.contains('\n') && !error.contains("u32"), "{text}: {error}");
        }
    }
}
