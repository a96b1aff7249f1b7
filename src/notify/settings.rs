//! What a person wants to be told of, and how: `[notify]` in the configuration of the user, outside
//! of any project. Agents can write in a board's directory, and this starts processes.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use hyper::Uri;
use serde::Deserialize;
use serde::de::Error as _;

use super::notice::Kind;
use crate::config::in_words;

/// `[notify]` as it is written. Each way is a value, or a table with events of its own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    events: Option<BTreeSet<Kind>>,
    command: Option<toml::Value>,
    desktop: Option<toml::Value>,
    webhook: Option<toml::Value>,
    /// File with the secret of the webhook's signature, relative to the configuration.
    secret_file: Option<PathBuf>,
    /// Environment variable with that secret.
    secret_variable: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandTable {
    run: Vec<String>,
    events: Option<BTreeSet<Kind>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DesktopTable {
    events: Option<BTreeSet<Kind>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookTable {
    url: String,
    secret_file: Option<PathBuf>,
    secret_variable: Option<String>,
    events: Option<BTreeSet<Kind>>,
}

/// One way in which a person is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Channel {
    pub way: Way,
    pub events: BTreeSet<Kind>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Way {
    /// A program and its arguments, which reads the notice as JSON.
    Command(Vec<String>),
    Desktop,
    Webhook {
        url: Uri,
        secret: Option<Secret>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Secret {
    File(PathBuf),
    Variable(String),
}

impl Way {
    /// Name of the way, in the log and in the ledger's file.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Desktop => "desktop",
            Self::Webhook { .. } => "webhook",
        }
    }
}

impl Written {
    /// Checks what is written in the file in `dir`.
    pub(crate) fn channels(self, dir: &Path) -> Result<Vec<Channel>, toml::de::Error> {
        let events = self.events.unwrap_or_else(Kind::usual);
        let channel = |way, own: Option<_>| Channel { way, events: own.unwrap_or(events.clone()) };
        let mut channels = Vec::new();
        match self.command {
            None => {}
            Some(toml::Value::Table(table)) => {
                let table = CommandTable::deserialize(table).map_err(inside("command"))?;
                channels.push(channel(Way::Command(program(table.run)?), table.events));
            }
            Some(words) => {
                channels.push(channel(
                    Way::Command(program(words.try_into().map_err(|_| wrong_command())?)?),
                    None,
                ));
            }
        }
        match self.desktop {
            None | Some(toml::Value::Boolean(false)) => {}
            Some(toml::Value::Table(table)) => {
                let table = DesktopTable::deserialize(table).map_err(inside("desktop"))?;
                channels.push(channel(Way::Desktop, table.events));
            }
            Some(toml::Value::Boolean(true)) => {
                channels.push(channel(Way::Desktop, None));
            }
            Some(_) => {
                return Err(toml::de::Error::custom(
                    "`desktop` is true or false, or a table as in { events = [\"question\"] }",
                ));
            }
        }
        let secret = secret(self.secret_file, self.secret_variable, dir)?;
        match self.webhook {
            None if secret.is_some() => {
                return Err(toml::de::Error::custom("there is a secret, and no `webhook`"));
            }
            None => {}
            Some(toml::Value::Table(table)) => {
                let table = WebhookTable::deserialize(table).map_err(inside("webhook"))?;
                let own = self::secret(table.secret_file, table.secret_variable, dir)?;
                let way = Way::Webhook { url: address(&table.url)?, secret: own.or(secret) };
                channels.push(channel(way, table.events));
            }
            Some(toml::Value::String(url)) => {
                let url = address(&url)?;
                channels.push(channel(Way::Webhook { url, secret }, None));
            }
            Some(_) => {
                return Err(toml::de::Error::custom(
                    "`webhook` is an address in quotation marks, as \"https://example.org/hook\", or \
                     a table with `url`",
                ));
            }
        }
        Ok(channels)
    }
}

fn program(words: Vec<String>) -> Result<Vec<String>, toml::de::Error> {
    if words.first().is_none_or(String::is_empty) {
        return Err(wrong_command());
    }
    Ok(words)
}

fn wrong_command() -> toml::de::Error {
    toml::de::Error::custom(
        "`command` is a list: a program and its arguments, as in [\"sh\", \"/home/me/tell.sh\"]",
    )
}

/// What is wrong in the table of a way.
fn inside(way: &'static str) -> impl Fn(toml::de::Error) -> toml::de::Error {
    move |error| toml::de::Error::custom(format!("`{way}`: {}", in_words(error.message())))
}

fn secret(
    file: Option<PathBuf>,
    variable: Option<String>,
    dir: &Path,
) -> Result<Option<Secret>, toml::de::Error> {
    match (file, variable) {
        (Some(_), Some(_)) => {
            Err(toml::de::Error::custom("give `secret_file` or `secret_variable`, not both"))
        }
        (Some(file), None) => Ok(Some(Secret::File(dir.join(file)))),
        (None, variable) => Ok(variable.map(Secret::Variable)),
    }
}

/// The address of a receiver: https, or http to this machine, where no network sees it.
fn address(text: &str) -> Result<Uri, toml::de::Error> {
    let wrong =
        |why| Err(toml::de::Error::custom(format!("`webhook` is no address to use: {why}")));
    let Ok(uri) = text.parse::<Uri>() else { return wrong("it is not an URL") };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return wrong("it is not an URL like https://example.org/hook");
    };
    if authority.as_str().contains('@') {
        return wrong("a user name or a password does not belong in it; sign with `secret_file`");
    }
    let host = authority.host().trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    match scheme {
        "https" => Ok(uri),
        "http" if is_loopback => Ok(uri),
        "http" => wrong("http shows the text to the network; use https, or 127.0.0.1"),
        _ => wrong("only https is spoken, and http to 127.0.0.1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(text: &str) -> Result<Vec<Channel>, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        written.channels(Path::new("/c")).map_err(|error| error.to_string())
    }

    #[test]
    fn each_way_is_a_value_or_a_table_with_events_of_its_own() {
        let all = channels(
            "events = ['question']\ncommand = ['tell', '-x']\ndesktop = { events = ['finished'] }\n\
             webhook = 'https://h.example/a?b=c'\nsecret_file = 'key'",
        );
        let (question, finished) =
            (BTreeSet::from([Kind::Question]), BTreeSet::from([Kind::Finished]));
        let url = "https://h.example/a?b=c".parse().unwrap();
        let secret = Some(Secret::File("/c/key".into()));
        let words = ["tell", "-x"].map(str::to_owned).to_vec();
        assert_eq!(
            all.unwrap(),
            [
                Channel { way: Way::Command(words.clone()), events: question.clone() },
                Channel { way: Way::Desktop, events: finished },
                Channel { way: Way::Webhook { url, secret }, events: question.clone() },
            ]
        );
        let table = channels("command = { run = ['tell', '-x'], events = ['question'] }").unwrap();
        assert_eq!(table, [Channel { way: Way::Command(words), events: question }]);
        assert_eq!(channels("desktop = true").unwrap()[0].events, Kind::usual());
        assert_eq!(channels("desktop = false").unwrap(), []);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_what_to_write() {
        for (text, words) in [
            ("webhook = 'http://h.example/'", "use https"),
            ("webhook = 'ftp://127.0.0.1/'", "only https"),
            ("webhook = 'https://a:b@h.example/'", "secret_file"),
            ("webhook = '/x'", "https://example.org"),
            ("webhook = 7", "an address in quotation marks"),
            ("webhook = { url = 'https://h.example', event = [] }", "event"),
            ("command = []", "a program and its arguments"),
            ("command = 'tell me'", "a program and its arguments"),
            ("command = ['']", "a program and its arguments"),
            ("desktop = 'yes'", "true or false"),
            ("command = { run = 3 }", "`command`: it takes a list in brackets"),
            ("secret_file = 'a'\nsecret_variable = 'B'\nwebhook = 'https://h.example'", "not both"),
            ("secret_file = 'a'", "no `webhook`"),
            ("events = ['questions']", "question"),
            ("sms = true", "sms"),
        ] {
            let error = channels(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        for here in
            ["http://127.0.0.1:8/x", "http://[::1]:8/", "http://localhost/", "http://127.9.9.9/"]
        {
            assert!(channels(&format!("webhook = '{here}'")).is_ok(), "{here}");
        }
    }
}
