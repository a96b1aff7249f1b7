use std::fmt;

/// Name of the server in every client's configuration.
pub(super) const SERVER: &str = "callboard";

/// Keys of a server behind a URL, in any client. None of them is valid beside a command.
const REMOTE_KEYS: &[&str] =
    &["url", "httpUrl", "serverUrl", "headers", "http_headers", "bearer_token_env_var"];

/// Keys of a server that the client starts, or other keys for a URL. `type` is required by some
/// clients.
const LOCAL_KEYS: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "env_vars",
    "envFile",
    "cwd",
    "url",
    "httpUrl",
    "serverUrl",
];

/// The settings of one server, in the order in which a new entry lists them.
pub(super) struct Entry {
    settings: Vec<(&'static str, Setting, Rule)>,
    /// Keys of the other kind of server, which are removed unless they have a setting here.
    unwanted: &'static [&'static str],
    pub secret: Option<Secret>,
}

/// A secret that the client asks for once and keeps where it keeps secrets.
#[derive(Clone, Copy)]
pub(super) struct Secret {
    pub id: &'static str,
    pub description: &'static str,
}

enum Rule {
    Required,
    /// Written only where the user has not set it.
    Suggested,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Setting {
    Text(String),
    List(Vec<String>),
    Number(u32),
    Flag(bool),
    /// One key of a table in which other keys stay.
    Field(&'static str, String),
}

/// A configuration that holds the entry.
pub(super) struct Edited {
    pub text: String,
    /// The entry was not there before.
    pub new: bool,
    /// What differed in the entry before.
    pub changes: Vec<String>,
}

/// An entry in a file whose format is preserved.
pub(super) trait Table {
    /// A value in one line, for people.
    fn shown(&self, key: &str) -> Option<String>;
    fn holds(&self, key: &str, setting: &Setting) -> bool;
    fn set(&mut self, key: &str, setting: &Setting);
    fn remove(&mut self, key: &str);
}

impl Entry {
    /// An entry for a server that the client starts.
    pub(super) fn local() -> Self {
        Self { settings: Vec::new(), unwanted: REMOTE_KEYS, secret: None }
    }

    /// An entry for a server behind a URL.
    pub(super) fn remote() -> Self {
        Self { settings: Vec::new(), unwanted: LOCAL_KEYS, secret: None }
    }

    pub(super) fn ask(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    pub(super) fn require(mut self, key: &'static str, setting: impl Into<Setting>) -> Self {
        self.settings.push((key, setting.into(), Rule::Required));
        self
    }

    pub(super) fn suggest(mut self, key: &'static str, setting: impl Into<Setting>) -> Self {
        self.settings.push((key, setting.into(), Rule::Suggested));
        self
    }

    pub(super) fn required(&self) -> impl Iterator<Item = (&'static str, &Setting)> {
        let required = self.settings.iter().filter(|(.., rule)| matches!(rule, Rule::Required));
        required.map(|(key, setting, _)| (*key, setting))
    }

    /// Merges the settings into the table. Everything else in it is the user's and stays. Returns
    /// what differed.
    pub(super) fn merge_into(&self, table: &mut impl Table) -> Vec<String> {
        let mut changes = Vec::new();
        for (key, setting, rule) in &self.settings {
            let before = table.shown(key);
            if table.holds(key, setting) || (before.is_some() && matches!(rule, Rule::Suggested)) {
                continue;
            }
            table.set(key, setting);
            changes.push(match before {
                Some(before) => format!("{key}: {before}, now {setting}"),
                None => format!("{key}: {setting} added"),
            });
        }
        let own = |key: &str| self.settings.iter().any(|(name, ..)| *name == key);
        for key in self.unwanted.iter().filter(|key| !own(key)) {
            if table.shown(key).is_some() {
                table.remove(key);
                changes.push(format!("{key}: removed"));
            }
        }
        changes
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(list) => write!(f, "{list:?}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Field(name, text) => write!(f, "{name} {text:?}"),
        }
    }
}

impl From<&str> for Setting {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Setting {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for Setting {
    fn from(list: Vec<String>) -> Self {
        Self::List(list)
    }
}

impl From<bool> for Setting {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u32> for Setting {
    fn from(number: u32) -> Self {
        Self::Number(number)
    }
}
