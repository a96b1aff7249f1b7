//! `callboard web`: the board in a browser.

use std::env;
use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode, Stdio};

use serde_json::json;

use super::report::say;
use super::{Outcome, Session, print, runtime, serve};
use crate::http::{Running, Token, is_free};
use crate::rpc::client::{self, Address, Client};
use crate::state::limit::CODE_MINUTES;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callboard web\n  \
    callboard web --link\n  \
    callboard web --link --server URL --token-file FILE")]
pub(super) struct Arguments {
    /// Print a link that logs a browser in, and start no server
    #[arg(long)]
    link: bool,
    /// Open the browser even if this is not a terminal
    #[arg(long, conflicts_with = "link")]
    open: bool,
    /// Do not open the browser
    #[arg(long, conflicts_with = "open")]
    no_open: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    let opens =
        arguments.open || !arguments.link && !arguments.no_open && io::stdout().is_terminal();
    if let Some(client) = running(session)? {
        let link = runtime()?.block_on(client.link())?;
        told(session, &link, false)?;
        if opens {
            open(&link);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.link {
        let start = session.wording.command("web");
        anyhow::bail!("no server of this board runs; start one with {start}");
    }
    serve::run_for_browser(session, free_address(), |link| {
        told(session, link, true)?;
        if opens {
            open(link);
        }
        Ok(())
    })
}

/// A client of the server that is named, or that runs for this board.
fn running(session: &Session) -> anyhow::Result<Option<Client>> {
    if let Some(server) = &session.server {
        return Ok(Some(server.client(session)?));
    }
    let Some(url) = Running::find(session.dir()) else { return Ok(None) };
    let address: Address = url.parse()?;
    let token = client::Token::of(&Token::open(session.dir(), false)?.text());
    session.client(address, token, None).map(Some)
}

/// The usual address, or a free port if another server has it.
fn free_address() -> SocketAddr {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, serve::PORT));
    if is_free(usual) { usual } else { SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) }
}

fn told(session: &Session, link: &str, started: bool) -> anyhow::Result<()> {
    if session.json {
        return Ok(print::json(&json!({"link": link, "started": started}))?);
    }
    let end = if started { "; Ctrl-C ends the server" } else { "" };
    let mut page = session.page(crate::participant::board_time(session.dir()));
    page.line(link);
    page.line(format_args!("(works once, within {CODE_MINUTES} minutes{end})"));
    if let Some(aside) = elsewhere(link) {
        page.line(aside);
    }
    Ok(page.print()?)
}

/// What to do where a browser does not find the host of a link, which not all systems know.
pub(super) fn elsewhere(link: &str) -> Option<&'static str> {
    link.contains(".localhost:").then_some(
        "(a browser that does not find this name takes 127.0.0.1 in its place; servers that agents \
         start there then see your cookie, too)",
    )
}

/// Opens the person's browser, if there is a screen to show it on.
fn open(link: &str) {
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(|name| is_set(name));
    let program = match env::var("BROWSER") {
        Ok(browser) if !browser.is_empty() => browser,
        _ if cfg!(target_os = "macos") => "open".to_owned(),
        _ => "xdg-open".to_owned(),
    };
    if !has_screen {
        return say("callboard: no browser can be opened here; open the link in yours");
    }
    let mut command = Command::new(&program);
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env_remove(crate::config::TOKEN_VARIABLE);
    if let Err(error) = command.spawn() {
        say(&format!("callboard: {program} cannot be run ({error}); open the link yourself"));
    }
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}
