//! The client for `/rpc`: a board that another machine or another process serves.

mod browser;

use std::fmt::{self, Write as _};
use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use hyper::Uri;
use hyper::header::AUTHORIZATION;
use hyper_util::client::legacy;
use jsonrpsee::core::client::{ClientT, Error as RpcError, Subscription, SubscriptionClientT};
use jsonrpsee::core::http_helpers::HttpError;
use jsonrpsee::http_client::transport::{Error as TransportError, HttpBackend};
use jsonrpsee::http_client::{
    HeaderMap, HeaderValue, HttpClient, HttpClientBuilder, RpcLogger, RpcService,
};
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::types::error::{INVALID_PARAMS_CODE, METHOD_NOT_FOUND_CODE};
use jsonrpsee::ws_client::{PingConfig, WsClient, WsClientBuilder};
use serde_json::{Map, Value, json};
use thiserror::Error;
use tower::ServiceBuilder;

pub use browser::LINK;

use super::certificate::Fault;
use super::events::{SUBSCRIBE, UNSUBSCRIBE};
use super::turned::{Hearing, Reasons, Turned};
use super::{LARGEST_REPLY, REFUSED};
use crate::bom;
use crate::participant::CallError;
use crate::state::limit;
use crate::state::task::Place;

/// Path for JSON-RPC calls.
pub const RPC: &str = "/rpc";
/// Path for MCP.
pub const MCP: &str = "/mcp";
/// Header that says who calls, if the call itself names nobody, and from where.
pub const CALLER: &str = "callboard-caller";
/// Header with the name of the person who calls. Not part of [`CALLER`], because older servers
/// refuse fields there that they do not know.
pub const PERSON: &str = "callboard-person";
/// Header of a command that runs inside an agent and knows no name for it: what shows that.
pub const INSIDE: &str = "callboard-inside";
/// Longer than the longest wait, plus the time that a server may need for the lock and the disk.
const TIMEOUT: Duration = Duration::from_secs(limit::WAIT.max as u64 + 25);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const LONGEST_TOKEN: usize = 4_096;

/// The address of a server to which a token may be sent safely.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    is_encrypted: bool,
    host: Host,
    port: Option<u16>,
    path: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Host {
    Ip(IpAddr),
    /// A name of letters, digits, `.`, `-` and `_`.
    Name(String),
}

#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum AddressError {
    #[error("it is not an URL like http://127.0.0.1:8425")]
    NotAnUrl,
    #[error("only http and https are spoken")]
    BadScheme,
    #[error(
        "a user name, a password or a query does not belong in it; the token goes into a file, \
         see --token-file"
    )]
    HasSecret,
    #[error(
        "http would show the token to the network; use https, or an ssh tunnel (`ssh -L 8425:127.0.0.1:8425 HOST`, then \
         http://127.0.0.1:8425)"
    )]
    NotEncrypted,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        // The parser drops a fragment, so it is looked for first.
        if text.contains('#') {
            return Err(AddressError::HasSecret);
        }
        let uri: Uri = text.parse().map_err(|_| AddressError::NotAnUrl)?;
        let authority = uri.authority().ok_or(AddressError::NotAnUrl)?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(AddressError::HasSecret);
        }
        let is_encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(AddressError::BadScheme),
            None => return Err(AddressError::NotAnUrl),
        };
        let host = host(authority.host())?;
        let path = uri.path().trim_end_matches('/');
        // `callboard serve` prints these URLs, too.
        let path =
            path.strip_suffix(RPC).or_else(|| path.strip_suffix(MCP)).unwrap_or(path).to_owned();
        let address = Self { is_encrypted, host, port: authority.port_u16(), path };
        if address.is_encrypted || address.is_loopback() {
            Ok(address)
        } else {
            Err(AddressError::NotEncrypted)
        }
    }
}

fn host(text: &str) -> Result<Host, AddressError> {
    let ip = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = ip.parse() {
        return Ok(Host::Ip(ip));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name = text.to_ascii_lowercase();
    if !name.is_empty() && name.chars().all(is_name) {
        Ok(Host::Name(name))
    } else {
        Err(AddressError::NotAnUrl)
    }
}

impl Address {
    /// Whether the address itself says that the server is on this machine.
    pub fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Ip(ip) => ip.is_loopback(),
            Host::Name(name) => name == "localhost",
        }
    }

    fn with_scheme(&self, scheme: &str) -> String {
        let secure = if self.is_encrypted { "s" } else { "" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}{secure}://{}{port}{}", self.host, self.path)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_scheme("http"))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Self::Ip(ip) => write!(f, "{ip}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A bearer token; never displayed.
#[derive(Clone)]
pub struct Token(HeaderValue);

impl Token {
    /// None if the text cannot be a token: it has spaces or control characters, or is empty or too
    /// long.
    pub fn of(text: &str) -> Option<Self> {
        let text = bom::skip(text).trim();
        if text.is_empty()
            || text.len() > LONGEST_TOKEN
            || !text.chars().all(|c| c.is_ascii_graphic())
        {
            return None;
        }
        let mut value = HeaderValue::from_str(&format!("Bearer {text}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

/// Why a call to a server has no reply.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The board's own error. `data` is the same as on this machine.
    #[error("{}", data["message"].as_str().unwrap_or("the server gives no reason"))]
    Answered { blame: Blame, data: Value },
    #[error(
        "{address} cannot be reached ({detail}); start it with `callboard serve`, or use the \
         board of this directory: leave --server out, or unset CALLBOARD_SERVER"
    )]
    Unreachable { address: Address, detail: String },
    #[error("the certificate of {address} is refused: {fault}")]
    Untrusted { address: Address, fault: Fault },
    #[error(
        "{address} takes no call without a token; name the file that `callboard serve` printed \
         with --token-file, or set CALLBOARD_TOKEN"
    )]
    NoToken { address: Address },
    #[error(
        "{address} does not take this token; name the file that `callboard serve` printed with \
         --token-file, or set CALLBOARD_TOKEN to what is in it"
    )]
    BadToken { address: Address },
    #[error("{address} does not answer to the name {}; start it with `--allow-host {}`, or use http://127.0.0.1 there", address.host, address.host)]
    Forbidden { address: Address },
    #[error(
        "the call is larger than {address} takes; split it into smaller ones, or do it where the \
         board is, without --server"
    )]
    TooLarge { address: Address },
    #[error(
        "whether the call was done is unknown: {address} gave no answer ({detail}); look before \
         you repeat it"
    )]
    Unknown { address: Address, detail: String },
    #[error("{address} answered with HTTP status {status}; it is busy, try again")]
    Busy { address: Address, status: u16 },
    #[error("{address} is no callboard server, or one of another version: {detail}")]
    NotAServer { address: Address, detail: String },
}

/// Whose fault an error is, and so who can fix it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Blame {
    /// The operation does not exist.
    Name,
    /// The board refuses the call.
    Call,
    /// The board or the server cannot be used.
    Board,
}

impl ClientError {
    pub fn blame(&self) -> Blame {
        match self {
            Self::Answered { blame, .. } => *blame,
            _ => Blame::Board,
        }
    }

    /// The error for programs, like the `data` of a call on this machine.
    pub fn data(&self) -> Value {
        let code = match self {
            Self::Answered { data, .. } => return data.clone(),
            Self::Unreachable { .. } => "server_unreachable",
            Self::Untrusted { .. } => "server_untrusted",
            Self::NoToken { .. } | Self::BadToken { .. } => "unauthorized",
            Self::Forbidden { .. } => "host_forbidden",
            Self::TooLarge { .. } => "too_large",
            Self::Unknown { .. } => "unknown_outcome",
            Self::Busy { .. } => "overloaded",
            Self::NotAServer { .. } => "not_a_server",
        };
        json!({"code": code, "message": self.to_string()})
    }

    /// Whether the server may be back soon.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Unknown { .. } | Self::Busy { .. })
    }
}

/// On whose behalf a client calls.
#[derive(Clone, Copy, Default)]
pub struct Who<'a> {
    pub agent: Option<&'a str>,
    pub person: Option<&'a str>,
    /// What shows that it runs inside an agent.
    pub mark: Option<&'a str>,
}

/// A server's board, and on whose behalf it is called.
#[derive(Clone)]
pub struct Client {
    address: Address,
    headers: HeaderMap,
    http: HttpClient<RpcLogger<RpcService<Hearing<HttpBackend>>>>,
}

impl Client {
    /// Creates a client; it connects at the first call.
    pub fn new(
        address: Address,
        token: Option<Token>,
        who: Who<'_>,
        place: &Place,
    ) -> Result<Self, ClientError> {
        let mut headers = HeaderMap::new();
        if let Some(Token(value)) = token {
            headers.insert(AUTHORIZATION, value);
        }
        headers.insert(CALLER, caller(who.agent, place));
        for (header, text) in [(PERSON, who.person), (INSIDE, who.mark)] {
            if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
                headers.insert(header, value);
            }
        }
        let http = HttpClientBuilder::default()
            .set_headers(headers.clone())
            .set_http_middleware(ServiceBuilder::new().layer(Reasons))
            .request_timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .max_request_size(u32::try_from(limit::ARGUMENTS.max).unwrap_or(u32::MAX))
            .max_response_size(LARGEST_REPLY)
            .build(format!("{address}{RPC}"));
        match http {
            Ok(http) => Ok(Self { address, headers, http }),
            Err(error) => Err(ClientError::NotAServer { address, detail: error.to_string() }),
        }
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    pub async fn call(&self, operation: &str, arguments: Value) -> Result<Value, ClientError> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        self.http.request(operation, arguments).await.map_err(|error| match error {
            // jsonrpsee answers this itself, without our data.
            RpcError::Call(error)
                if error.code() == METHOD_NOT_FOUND_CODE && error.data().is_none() =>
            {
                let data = CallError::UnknownOperation(operation.to_owned()).data();
                ClientError::Answered { blame: Blame::Name, data }
            }
            error => self.error(error),
        })
    }

    /// Events after `since_seq`, each once and in order, as long as the connection holds.
    pub async fn subscribe(&self, arguments: Map<String, Value>) -> Result<Events, ClientError> {
        let connection: WsClient = WsClientBuilder::default()
            .set_headers(self.headers.clone())
            .request_timeout(TIMEOUT)
            .connection_timeout(CONNECT_TIMEOUT)
            .max_response_size(LARGEST_REPLY)
            // A redirection could send the token anywhere, so only the first address is used.
            .max_redirections(1)
            .enable_ws_ping(PingConfig::new())
            .build(format!("{}{RPC}", self.address.with_scheme("ws")))
            .await
            .map_err(|error| self.error(error))?;
        let subscribed = connection.subscribe(SUBSCRIBE, arguments, UNSUBSCRIBE).await;
        let subscription = subscribed.map_err(|error| self.error(error))?;
        Ok(Events { subscription, _connection: connection })
    }

    fn error(&self, error: RpcError) -> ClientError {
        let address = self.address.clone();
        match error {
            RpcError::Call(error) => answered(&error),
            RpcError::RequestTimeout => {
                ClientError::Unknown { address, detail: "timeout".to_owned() }
            }
            RpcError::Transport(error) => match error.downcast::<TransportError>() {
                Ok(error) => self.transport_error(*error),
                // An error of the WebSocket, over which only reads go, which can be repeated.
                Err(error) => unreached(address, error.to_string()),
            },
            RpcError::RestartNeeded(error) => {
                ClientError::Unreachable { address, detail: error.to_string() }
            }
            other => ClientError::NotAServer { address, detail: other.to_string() },
        }
    }

    fn transport_error(&self, error: TransportError) -> ClientError {
        let address = self.address.clone();
        match error {
            TransportError::RequestTooLarge => ClientError::TooLarge { address },
            TransportError::Http(HttpError::Stream(error)) => match error.downcast::<Turned>() {
                Ok(turned) => self.turned(*turned),
                Err(error) => {
                    let detail = root_cause(error.as_ref());
                    let connecting = error
                        .downcast_ref::<legacy::Error>()
                        .is_some_and(legacy::Error::is_connect);
                    if connecting {
                        unreached(address, detail)
                    } else {
                        ClientError::Unknown { address, detail }
                    }
                }
            },
            TransportError::Http(error @ HttpError::TooLarge) => {
                ClientError::Unknown { address, detail: error.to_string() }
            }
            other => ClientError::NotAServer { address, detail: other.to_string() },
        }
    }

    /// A rejected request as an error, in the server's own words if it has any for this caller or
    /// call.
    fn turned(&self, Turned { status, error }: Turned) -> ClientError {
        let address = self.address.clone();
        if let Some(data) = error.as_ref().and_then(board_data) {
            let blame = if status == 401 { Blame::Board } else { Blame::Call };
            return ClientError::Answered { blame, data };
        }
        match (status, error) {
            (400, Some(error)) => {
                let message = format!("{address} does not take this call: {}", error.message());
                ClientError::Answered {
                    blame: Blame::Call,
                    data: json!({"code": "bad_request", "message": message}),
                }
            }
            (401, _) if self.headers.contains_key(AUTHORIZATION) => {
                ClientError::BadToken { address }
            }
            (401, _) => ClientError::NoToken { address },
            (403, _) => ClientError::Forbidden { address },
            (413, _) => ClientError::TooLarge { address },
            (408 | 429 | 503, _) => ClientError::Busy { address, status },
            // From a proxy whose server is unavailable, or became so during the call.
            (500 | 502 | 504, _) => {
                ClientError::Unknown { address, detail: format!("HTTP status {status}") }
            }
            _ => ClientError::NotAServer {
                address,
                detail: format!("it answered with HTTP status {status}"),
            },
        }
    }
}

/// An error for a failed connection. Of a TLS error, only the text is available.
fn unreached(address: Address, detail: String) -> ClientError {
    match detail.split_once("invalid peer certificate: ") {
        Some((_, detail)) => ClientError::Untrusted { address, fault: Fault::of(detail) },
        None => ClientError::Unreachable { address, detail },
    }
}

/// A subscription's events.
pub struct Events {
    subscription: Subscription<Value>,
    /// Dropping it ends the subscription.
    _connection: WsClient,
}

impl Events {
    /// The next event; none if the connection is cut, or the server has stopped waiting for this
    /// reader.
    pub async fn next(&mut self) -> Option<Value> {
        self.subscription.next().await?.ok()
    }
}

/// The board's error, as it would be on this machine.
fn answered(error: &ErrorObjectOwned) -> ClientError {
    let blame = match error.code() {
        METHOD_NOT_FOUND_CODE => Blame::Name,
        INVALID_PARAMS_CODE | REFUSED => Blame::Call,
        _ => Blame::Board,
    };
    let data =
        board_data(error).unwrap_or_else(|| json!({"code": "failed", "message": error.message()}));
    ClientError::Answered { blame, data }
}

fn board_data(error: &ErrorObjectOwned) -> Option<Value> {
    let data: Value = serde_json::from_str(error.data()?.get()).ok()?;
    (data["code"].is_string() && data["message"].is_string()).then_some(data)
}

/// What the operating system reported, or else the innermost error.
fn root_cause(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    let mut innermost: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            "connection refused".to_owned()
        }
        _ => innermost.to_string(),
    }
}

/// The value of the caller header, escaped because headers are ASCII and paths need not be.
fn caller(agent: Option<&str>, place: &Place) -> HeaderValue {
    let mut fields = json!({});
    for (name, value) in [
        ("agent", agent),
        ("worktree", place.worktree.as_deref()),
        ("branch", place.branch.as_deref()),
        ("head", place.head.as_deref()),
    ] {
        if let Some(value) = value {
            fields[name] = Value::from(value);
        }
    }
    let mut ascii = String::new();
    for c in fields.to_string().chars() {
        if c.is_ascii() && !c.is_ascii_control() {
            ascii.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(ascii, "\\u{unit:04x}"));
        }
    }
    HeaderValue::from_str(&ascii).unwrap_or_else(|_| HeaderValue::from_static("{}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<String, AddressError> {
        text.parse::<Address>().map(|address| address.to_string())
    }

    #[test]
    fn an_address_may_end_as_those_that_are_told() {
        for text in [
            "http://127.0.0.1:8425",
            "http://127.0.0.1:8425/",
            "http://127.0.0.1:8425/rpc",
            "http://127.0.0.1:8425/rpc/",
            "http://127.0.0.1:8425/mcp",
        ] {
            assert_eq!(address(text).as_deref(), Ok("http://127.0.0.1:8425"), "{text}");
        }
        assert_eq!(
            address("https://Example.org/team/rpc").as_deref(),
            Ok("https://example.org/team")
        );
        assert_eq!(address("http://[::1]:1/rpc").as_deref(), Ok("http://[::1]:1"));
        assert_eq!(address("http://localhost").as_deref(), Ok("http://localhost"));
    }

    #[test]
    fn an_address_never_holds_a_secret() {
        for text in [
            "http://user@127.0.0.1",
            "http://a:b@127.0.0.1",
            "http://127.0.0.1/?token=x",
            "https://h/#token",
        ] {
            assert_eq!(address(text), Err(AddressError::HasSecret), "{text}");
        }
    }

    #[test]
    fn a_token_goes_over_plain_http_to_this_machine_only() {
        for text in [
            "http://example.org",
            "http://127.0.0.1.example.org",
            "http://0.0.0.0:1",
            "http://localhost.",
            "http://10.0.0.1",
        ] {
            assert_eq!(address(text), Err(AddressError::NotEncrypted), "{text}");
        }
        for text in ["", "127.0.0.1:8425", "/rpc", "http://", "http://a b"] {
            assert_eq!(address(text), Err(AddressError::NotAnUrl), "{text}");
        }
        for text in ["ws://127.0.0.1", "ftp://127.0.0.1"] {
            assert_eq!(address(text), Err(AddressError::BadScheme), "{text}");
        }
    }

    #[test]
    fn a_token_is_one_word_and_not_shown() {
        assert!(Token::of("\u{feff} abc\n").is_some_and(
            |Token(value)| value == "Bearer abc" && !format!("{value:?}").contains("abc")
        ));
        for text in ["", " ", "a b", "a\nb", "ä", &"x".repeat(5_000)] {
            assert!(Token::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_caller_is_ascii_and_says_the_same() {
        let place = Place {
            worktree: Some("/wörk/日本\u{7f}\n".to_owned()),
            branch: None,
            head: Some("abc".to_owned()),
        };
        let header = caller(Some("ada"), &place);
        let text = header.to_str().expect("ASCII");
        let read: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(read, json!({"agent": "ada", "worktree": "/wörk/日本\u{7f}\n", "head": "abc"}));
    }

    #[test]
    fn an_error_without_data_is_still_told() {
        let error = ErrorObjectOwned::owned(-32_008, "Response is too big", None::<()>);
        let ClientError::Answered { blame, data } = answered(&error) else { panic!("no answer") };
        assert_eq!(
            (blame, data),
            (Blame::Board, json!({"code": "failed", "message": "Response is too big"}))
        );
    }
}
