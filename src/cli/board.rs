//! The board that a command works on: a replica in this process, or the board of a server.

use std::env;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::{Session, usage_error};
use crate::config::TOKEN_VARIABLE;
use crate::http::TOKEN_FILE;
use crate::rpc::client::{Address, Client, Token, Who};
use crate::state::id::AgentId;
use crate::user;

const LARGEST_TOKEN_FILE: u64 = 16 * 1024;

pub(super) enum Board {
    /// A replica of the board in this process.
    Here(crate::Board),
    There(Client),
}

impl Board {
    pub(super) async fn call(&self, operation: &str, arguments: Value) -> anyhow::Result<Value> {
        match self {
            Self::Here(board) => Ok(board.call_json(operation, arguments).await?),
            Self::There(client) => Ok(client.call(operation, arguments).await?),
        }
    }
}

/// Operations that may create a board; all other commands need one that exists.
pub(super) const BEGINNINGS: [&str; 10] = [
    "init_coordination",
    "create_task",
    "create_tasks_batch",
    "import_plan",
    "register_agent",
    "create_run",
    "add_discovery",
    "save_checkpoint",
    "save_bundle",
    "refine_bundle",
];

/// The server that the command line or the environment names.
#[derive(Clone)]
pub(super) struct Server {
    pub address: Address,
    token: Option<Token>,
}

impl Server {
    /// None if commands use the board of a directory: by default, and if --dir is given without
    /// --server.
    pub(super) fn named(arguments: &super::Arguments, board: &Path) -> Option<Self> {
        let variable = env::var("CALLBOARD_SERVER")
            .ok()
            .filter(|url| !url.is_empty() && arguments.dir.is_none());
        let (url, name) = match (&arguments.server, variable) {
            (Some(url), _) => (url.clone(), "--server"),
            (None, Some(url)) => (url, "CALLBOARD_SERVER"),
            (None, None) => return None,
        };
        // The URL is not repeated: what is wrong with it may be a secret inside it.
        let address: Address =
            url.parse().unwrap_or_else(|error| usage_error(format!("{name}: {error}")));
        let token = token(arguments.token_file.as_deref(), &address, board);
        Some(Self { address, token })
    }

    pub(super) fn client(&self, session: &Session) -> anyhow::Result<Client> {
        session.client(self.address.clone(), self.token.clone(), user::person().as_deref())
    }
}

impl Session {
    /// A client of the server at `address`. It says who calls: the person, or the agent.
    pub(super) fn client(
        &self,
        address: Address,
        token: Option<Token>,
        person: Option<&str>,
    ) -> anyhow::Result<Client> {
        let agent = self.acting_agent()?;
        let inside = self.surroundings.as_ref().map(|around| &around.inside);
        let mark = inside.and_then(|inside| inside.mark.as_deref());
        let who = Who { agent: agent.as_ref().map(AgentId::as_str), person, mark };
        Ok(Client::new(address, token, who, &self.place())?)
    }
}

/// The token for a server. The one in this board's directory is used only for servers on this
/// machine.
fn token(file: Option<&Path>, address: &Address, board: &Path) -> Option<Token> {
    if let Some(file) = file {
        let text = read(file).unwrap_or_else(|error| usage_error(format!("--token-file: {error}")));
        return Some(checked(&text, &format!("--token-file: {}", file.display())));
    }
    match env::var(TOKEN_VARIABLE) {
        Ok(text) if !text.is_empty() => Some(checked(&text, TOKEN_VARIABLE)),
        _ if address.is_loopback() => {
            read(&board.join(TOKEN_FILE)).ok().and_then(|text| Token::of(&text))
        }
        _ => None,
    }
}

fn checked(text: &str, name: &str) -> Token {
    Token::of(text)
        .unwrap_or_else(|| usage_error(format!("{name} holds no token, which is one word")))
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    fs_err::File::open(file)?.take(LARGEST_TOKEN_FILE).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops;

    #[test]
    fn every_beginning_is_an_operation() {
        for name in BEGINNINGS {
            assert!(ops::find(name).is_some(), "{name}");
        }
    }
}
