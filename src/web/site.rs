//! Where the pages of a board are.
//!
//! Browsers send cookies to every port of a host, and agents run web servers on this machine.
//! Hence the pages have a host name of their own, which ends in a few letters that depend on the
//! owner's token: no link to another port can be made for it by those who do not know it, and two
//! boards of one name are two hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::login::{letters, signature};
use crate::location::BOARD_DIR;

/// Most letters of the board's name in a host name, of which a label may have 63.
const LONGEST_NAME: usize = 40;
const TAIL_LETTERS: usize = 6;

/// Where browsers find the pages.
#[derive(Clone, Debug)]
pub struct Site {
    /// Name of the board, as people call it.
    pub name: String,
    /// What no other board on this machine is called.
    pub label: String,
    /// Host names of the pages' own.
    pub hosts: Vec<String>,
    /// The address of the first page, without a slash at its end.
    pub url: String,
}

impl Site {
    /// The site of the board in `dir` on a server that listens on `address`. `names` are host names
    /// under which other machines reach it.
    pub fn new(dir: &Path, secret: &str, address: SocketAddr, names: &[String]) -> Self {
        let name = board_name(dir);
        let label = host_label(&name, secret);
        let host = format!("{label}.localhost");
        let port = address.port();
        // Browsers look for names below `localhost` at no other address of the loopback.
        let ip = address.ip();
        let is_near = ip.is_unspecified()
            || [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].contains(&ip);
        let url = match (names.first(), is_near) {
            (Some(name), _) if !ip.is_loopback() => format!("http://{name}:{port}"),
            (None, false) => format!("http://{address}"),
            _ => format!("http://{host}:{port}"),
        };
        Self { name, label, hosts: vec![host], url }
    }

    /// The address that logs in with a code, which stays in the browser: no server and no log sees
    /// what is behind a `#`.
    pub fn link(&self, code: &str) -> String {
        format!("{}{}#{code}", self.url, super::LOGIN)
    }
}

/// What people call the board in `dir`: the project's directory.
fn board_name(dir: &Path) -> String {
    let named = match dir.file_name() {
        Some(name) if name == BOARD_DIR => dir.parent().and_then(Path::file_name),
        name => name,
    };
    named.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The first label of the host name of a board's pages.
fn host_label(name: &str, secret: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(LONGEST_NAME)
        .collect();
    let mut parts: Vec<_> = plain.split('-').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        parts.push("board");
    }
    let tail = letters(&signature(secret, "host", "")[..TAIL_LETTERS]);
    parts.push(&tail);
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(dir: &str) -> String {
        let label = host_label(&board_name(Path::new(dir)), "secret");
        label[..label.len() - TAIL_LETTERS - 1].to_owned()
    }

    #[test]
    fn every_name_of_a_directory_becomes_a_label() {
        for (dir, expected) in [
            ("/home/ada/Parser/.coordination", "parser"),
            ("/home/ada/parser/board", "board"),
            ("/srv/My project (new)/.coordination", "my-project-new"),
            ("/srv/über_ß/.coordination", "ber"),
            ("/srv/日本/.coordination", "board"),
            ("/.coordination", "board"),
            ("/srv/---/.coordination", "board"),
        ] {
            assert_eq!(label(dir), expected, "{dir}");
        }
        let long = host_label(&"x-".repeat(300), "secret");
        assert!(long.len() <= 63 && !long.ends_with('-'), "{long}");
    }

    #[test]
    fn boards_of_one_name_are_two_hosts() {
        assert_ne!(host_label("app", "one"), host_label("app", "two"));
        assert_eq!(host_label("app", "one"), host_label("app", "one"));
    }

    #[test]
    fn address_is_one_that_the_browser_reaches() {
        let url = |address: &str, names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let site =
                Site::new(Path::new("/p/app/.coordination"), "s", address.parse().unwrap(), &names);
            site.url.replace(&site.label, "LABEL")
        };
        let near = "http://LABEL.localhost:8425";
        assert_eq!(url("127.0.0.1:8425", &[]), near);
        assert_eq!(url("[::1]:8425", &["board.example"]), near);
        assert_eq!(url("0.0.0.0:8425", &[]), near);
        assert_eq!(url("0.0.0.0:8425", &["board.example"]), "http://board.example:8425");
        assert_eq!(url("10.0.0.7:8425", &[]), "http://10.0.0.7:8425");
        assert_eq!(url("127.0.0.2:8425", &[]), "http://127.0.0.2:8425");
    }
}
