use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use axum::http::Uri;
use axum::http::uri::Authority;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use super::connect::quoted;
use super::mcp::Tools;
use super::{Outcome, Session};
use crate::http::{self, Admission, Gate, Keyring, MCP, RPC, Rates, Running, Token};
use crate::mcp::Server;
use crate::participant::directory;
use crate::participant::{Caller, Stay};
use crate::signal;
use crate::state::digest::sha256;
use crate::state::limit::CODE_MINUTES;
use crate::user;
use crate::web::{self, Secret, Site};

/// What people ask about clients and proxies.
const BEYOND: &str = "Clients show the token that is printed; those that log in by OAuth only, \
                      such as Claude.ai and ChatGPT connectors, cannot connect. Behind nginx, a \
                      WebSocket needs three lines: `proxy_http_version 1.1;`, `proxy_set_header \
                      Upgrade $http_upgrade;` and `proxy_set_header Connection upgrade;`.";

#[derive(clap::Args)]
#[command(after_help = BEYOND)]
pub(super) struct Arguments {
    /// Address and port to listen on; port 0 takes a free port. 127.0.0.1 and [::1] are taken
    /// together, because browsers look for the page at both
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8425")]
    listen: SocketAddr,
    /// Make a new server token; the old one stops working
    #[arg(long)]
    new_token: bool,
    /// Listen on an address that other machines reach; traffic is not encrypted, and the token is
    /// the only protection
    #[arg(long)]
    allow_remote: bool,
    /// Accept requests for this host name, too; may be repeated
    #[arg(long, value_name = "NAME", value_parser = host)]
    allow_host: Vec<String>,
    /// Let web pages from this origin, such as `https://example.org`, call and read answers; may be repeated. They still
    /// need a token. Browsers set no header on a WebSocket: open it with the subprotocols
    /// `callboard` and `callboard.bearer.TOKEN`
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    allow_origin: Vec<String>,
    /// Tools to list; tools that are not listed can still be called
    #[arg(long, value_enum, default_value = "core")]
    toolset: Tools,
    /// Serve what the MCP conformance suite asks for, without a token
    #[cfg(feature = "conformance")]
    #[arg(long, hide = true, conflicts_with = "allow_remote")]
    conformance: bool,
}

/// Checks a host name in the form in which it is compared: with a port, say, it would never match.
fn host(text: &str) -> Result<String, &'static str> {
    let authority: Option<Authority> = text.parse().ok();
    let name = authority
        .filter(|authority| authority.host() == text)
        .map(|authority| authority.host().to_owned());
    name.ok_or("a host name or address alone, without a port, as in board.example or [::1]")
}

/// Checks an origin in the form in which browsers send it: without a path and without the scheme's
/// default port.
fn origin(text: &str) -> Result<String, &'static str> {
    let wrong = "a scheme, a host and perhaps a port, as in https://example.org";
    let uri: Uri = text.parse().map_err(|_| wrong)?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(wrong);
    };
    let is_bare = uri.path_and_query().is_none_or(|path| path == "/");
    // Nothing may precede the host, such as a user's name, and a port must be a number.
    let Some(port) = authority.as_str().strip_prefix(authority.host()).filter(|_| is_bare) else {
        return Err(wrong);
    };
    let is_port = port.is_empty() || authority.port_u16().is_some();
    let port =
        if matches!((scheme, port), ("http", ":80") | ("https", ":443")) { "" } else { port };
    if is_port { Ok(format!("{scheme}://{}{port}", authority.host())) } else { Err(wrong) }
}

/// The port that servers have unless they are told another.
pub(super) const PORT: u16 = 8425;

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    begin(session, &arguments, |reached, token, link| announce(session, reached, token, link))
}

/// Serves for a person with a browser, who is told the link by `tell`.
pub(super) fn run_for_browser(
    session: &Session,
    listen: SocketAddr,
    tell: impl FnOnce(&str) -> anyhow::Result<()>,
) -> Outcome {
    let arguments = Arguments {
        listen,
        new_token: false,
        allow_remote: false,
        allow_host: Vec::new(),
        allow_origin: Vec::new(),
        toolset: Tools::Core,
        #[cfg(feature = "conformance")]
        conformance: false,
    };
    begin(session, &arguments, |_, _, link| tell(link))
}

fn begin(
    session: &Session,
    arguments: &Arguments,
    tell: impl FnOnce(&Reached, &Token, &str) -> anyhow::Result<()>,
) -> Outcome {
    session.may_create()?;
    if let Some(objection) = session.objection() {
        anyhow::bail!(objection);
    }
    directory::prepare(session.dir())?;
    allow_connections();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        signal::outlive_size_limit()?;
        let interruption = signal::interruption()?;
        let listener = http::listen(arguments.listen, arguments.allow_remote)?;
        let address = listener.local_addr()?;
        let token = Token::open(session.dir(), arguments.new_token)?;
        let site = Site::new(session.dir(), &token.text(), address, &arguments.allow_host);
        let hosts = [arguments.allow_host.as_slice(), &site.hosts].concat();
        let admission = Admission::new(address, &hosts, &arguments.allow_origin);
        let keys = Keyring::open(session.dir(), token)?;
        let owner = Arc::clone(&keys.owner);
        let secret: Secret = Arc::new(move || owner.text());
        let handle = session.participant(Stay::Lasting)?;
        let person = user::person();
        let pages = Arc::new(web::Door::new(handle.clone(), session.dir(), site, secret, person));
        let reached = Reached::new(address, &arguments.allow_host);
        let _running = Running::note(session.dir(), address.port(), &reached.near)
            .map_err(|error| tracing::warn!(%error, "`callboard web` will not find this server"))
            .ok();
        tell(&reached, &keys.owner, &pages.link(&sha256(keys.owner.text()))?)?;
        super::notify::begin(session.dir(), &handle);
        let server = Server::new(handle.clone(), Caller::default(), arguments.toolset.into())
            .used_by(user::person());
        #[cfg(feature = "conformance")]
        if arguments.conformance {
            let open = Gate { admission, keys: None, rates: Rates::default() };
            let fixtures = crate::mcp::Fixtures::new(server);
            http::serve(listener, handle, fixtures, None, open, interruption).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let rates = Rates::of(session.dir());
        let gate = Gate { admission, keys: Some(keys), rates };
        http::serve(listener, handle, server, Some(pages), gate, interruption).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Raises the limit of open files to the maximum: each connection needs one.
fn allow_connections() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// How clients reach the server.
struct Reached {
    /// A URL with a host that is accepted.
    url: String,
    /// One for programs on this machine.
    near: String,
    /// Arguments of `ssh` on another machine that make a tunnel to the server, if others can
    /// connect.
    tunnel: Option<String>,
    port: u16,
}

impl Reached {
    fn new(address: SocketAddr, allowed: &[String]) -> Self {
        let (ip, port) = (address.ip(), address.port());
        // Clients cannot connect to the unspecified address.
        let own = match ip {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        let own = SocketAddr::new(own, port);
        let url = match allowed.first().filter(|_| !ip.is_loopback()) {
            Some(name) => format!("http://{name}:{port}"),
            None => format!("http://{own}"),
        };
        let near = format!("http://{own}");
        let tunnel = (!ip.is_loopback()).then(|| format!("ssh -N -L {port}:{own} HOST"));
        Self { url, near, tunnel, port }
    }
}

/// Prints where the server is, and what clients need to call it.
fn announce(session: &Session, reached: &Reached, token: &Token, link: &str) -> anyhow::Result<()> {
    let Reached { url, tunnel, port, .. } = reached;
    let (mcp, rpc) = (format!("{url}{MCP}"), format!("{url}{RPC}"));
    let file = token.path().display();
    let mut out = io::stdout().lock();
    if session.json {
        let (text, file) = (token.text(), token.path().to_string_lossy());
        let announced = json!({"url": url, "mcp": mcp, "rpc": rpc, "token": text, "token_file": file, "link": link});
        writeln!(out, "{announced}")?;
        return Ok(out.flush()?);
    }
    let text = token.text();
    let configuration = json!({"mcpServers": {"callboard": {
        "type": "http", "url": mcp, "headers": {"Authorization": format!("Bearer {text}")},
    }}});
    let aside =
        super::web::elsewhere(link).map(|aside| format!("\n          {aside}")).unwrap_or_default();
    let fresh = session.wording.command("web --link");
    let connect = session.wording.command(&format!("connect CLIENT --url {mcp}"));
    // The command line sends its token unencrypted to no other machine, hence the tunnel.
    let way = match tunnel {
        Some(tunnel) => format!(
            "From a shell on another machine, HOST being this one, and with the token above:\n  \
             {tunnel} &\n  export CALLBOARD_SERVER=http://127.0.0.1:{port} CALLBOARD_TOKEN=TOKEN\n"
        ),
        None => format!(
            "From a shell:\n  export CALLBOARD_SERVER={url} CALLBOARD_TOKEN=\"$(cat {})\"\n",
            quoted(&token.path().to_string_lossy())
        ),
    };
    write!(
        out,
        "serving the board in {dir}\n\
         browser   {link}\n\
        \x20         (works once, within {CODE_MINUTES} minutes; {fresh} prints another){aside}\n\
         MCP       {mcp}\n\
         JSON-RPC  {rpc}, also as a WebSocket\n\
         token     {text}\n\
        \x20         (from {file}; --new-token makes another)\n\n\
         In the configuration of an MCP client:\n{configuration:#}\n\n\
         {way}  callboard status\n\n\
         {connect} writes a client's configuration. Ctrl-C ends the server.\n",
        dir = session.dir().display(),
    )?;
    Ok(out.flush()?)
}
