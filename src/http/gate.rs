//! Checks that every request passes before anything answers it: host, origin, token, form and size.
//!
//! A web page can make its visitor's browser send requests to this machine, under names that
//! resolve to it: hence the lists of hosts and origins, even on loopback. Other users of the
//! machine can connect, too: hence the token.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::LengthLimitError;
use jsonrpsee::types::error::{INVALID_REQUEST_CODE, PARSE_ERROR_CODE};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::HalfClosed;
use super::cors::{self, Pages};
use super::places::Seat;
use super::rates::Rates;
use super::runs;
use super::subprotocol::{self, Offered};
use super::tokens::{Keyring, Verdict};
use crate::bom;
use crate::mcp::Watched;
use crate::ops::{Door, Inside, Principal};
use crate::participant::{AgentChoice, CallError, Caller};
use crate::rpc::Checked;
use crate::rpc::client::INSIDE;
pub(super) use crate::rpc::client::LINK;
use crate::rpc::client::PERSON;
pub use crate::rpc::client::{CALLER, MCP, RPC};
use crate::state::digest::sha256;
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::state::limit::{self, BODY};
use crate::state::refusal::Refusal;
use crate::state::task::Place;
use crate::strict;

/// Longest time for a body to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// Paths that anybody may request; they tell nothing but whether the server works.
pub(super) const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// Whether there is nothing but a host, and a port in digits.
fn is_whole(authority: &Authority) -> bool {
    let rest = authority.as_str().strip_prefix(authority.host());
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    rest.is_some_and(|rest| {
        rest.is_empty()
            || rest
                .strip_prefix(':')
                .is_some_and(|port| is_port(port) && port.parse::<u16>().is_ok())
    })
}

/// Hosts and origins whose requests are accepted.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Names and addresses of this server, as clients write them in a URL.
    pub hosts: Vec<String>,
    /// Origins (`scheme://host:port`) of web pages that may call: the server's own and those of
    /// `pages`.
    pub origins: Vec<String>,
    pages: Pages,
}

impl Admission {
    /// Accepts this machine's own names and those given.
    pub fn new(address: SocketAddr, hosts: &[String], origins: &[String]) -> Self {
        let mut names = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec();
        if !address.ip().is_unspecified() {
            names.push(Self::host_of(address));
        }
        names.extend(hosts.iter().map(|host| host.to_ascii_lowercase()));
        let own = names.iter().map(|name| format!("http://{name}:{}", address.port()));
        let pages: Vec<_> = origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
        let origins = own.chain(pages.iter().cloned()).collect();
        Self { hosts: names, origins, pages: Pages::new(pages) }
    }

    fn host_of(address: SocketAddr) -> String {
        let text = address.to_string();
        text.rsplit_once(':').map_or(text.clone(), |(host, _)| host.to_owned())
    }

    /// Whether there is exactly one host, and it is ours. Any port is accepted, since a tunnel may
    /// end at another.
    fn knows_host(&self, request: &Request) -> bool {
        let mut given = request.headers().get_all(HOST).iter();
        let authority = match (given.next(), given.next()) {
            (Some(host), None) => {
                host.to_str().ok().and_then(|host| host.parse::<Authority>().ok())
            }
            _ => None,
        };
        let known = |authority: &Authority| {
            let host = authority.host().to_ascii_lowercase();
            is_whole(authority) && self.hosts.contains(&host)
        };
        authority.is_some_and(|authority| known(&authority))
            && request.uri().authority().is_none_or(known)
    }

    pub(super) fn check_host(&self, request: &Request) -> Result<(), Turned> {
        if self.knows_host(request) {
            return Ok(());
        }
        let why = "the Host header names no host of this server; --allow-host NAME admits one";
        Err(Turned::away(StatusCode::FORBIDDEN, why))
    }

    /// Whether there is no origin, or exactly one, which is listed.
    fn knows_origin(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(ORIGIN).iter();
        match (given.next(), given.next()) {
            (None, _) => true,
            (Some(origin), None) => origin.to_str().is_ok_and(|origin| {
                let origin = origin.to_ascii_lowercase();
                self.origins.contains(&origin)
            }),
            _ => false,
        }
    }
}

pub struct Gate {
    pub admission: Admission,
    /// None accepts everybody, for conformance tests of the transport.
    pub keys: Option<Keyring>,
    pub rates: Rates,
}

/// The content of the header [`CALLER`]: JSON, every field optional.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CallerHeader {
    agent: Option<String>,
    worktree: Option<String>,
    branch: Option<String>,
    head: Option<String>,
}

/// Why a request was rejected, worded for the author of the client.
pub(super) struct Turned {
    status: StatusCode,
    code: i32,
    why: String,
    /// For programs, if the reason concerns this caller: like the `data` of the board's own
    /// errors.
    data: Option<Value>,
}

impl Turned {
    pub(super) fn away(status: StatusCode, why: impl fmt::Display) -> Self {
        Self { status, code: INVALID_REQUEST_CODE, why: why.to_string(), data: None }
    }

    /// Rejects a request whose token is known but no longer good.
    fn late(code: &str, why: &str) -> Self {
        Self {
            data: Some(json!({"code": code, "message": why})),
            ..Self::away(StatusCode::UNAUTHORIZED, why)
        }
    }

    /// Rejects a request for a reason of the board's.
    fn refused(status: StatusCode, refusal: Refusal) -> Self {
        let turned = Self::away(status, &refusal);
        Self { data: Some(CallError::Refused(refusal).data()), ..turned }
    }
}

impl IntoResponse for Turned {
    fn into_response(self) -> Response {
        let Self { status, code, why, data } = self;
        let retry_after = data.as_ref().and_then(|data| data["retry_after"].as_u64());
        let mut error =
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": why}});
        if let Some(data) = data {
            error["error"]["data"] = data;
        }
        let mut response = (status, axum::Json(error)).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        // The rest of the request is not read.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// The layer in front of everything: rejects the request, or passes it on.
pub(super) async fn pass<F: Future<Output = Response>>(
    gate: &Gate,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let Admission { pages, .. } = &gate.admission;
    let page = pages.origin(request.headers());
    let offered = subprotocol::take(&mut request);
    let is_named = offered.is_named;
    let mut response =
        if page.is_some() && cors::is_preflight(&request) && gate.admission.knows_host(&request) {
            cors::preflight(request.headers())
        } else {
            answer(gate, request, offered, next).await
        };
    if is_named && response.status() == StatusCode::SWITCHING_PROTOCOLS {
        subprotocol::choose(&mut response);
    }
    pages.grant(page, &mut response);
    response
}

async fn answer<F: Future<Output = Response>>(
    gate: &Gate,
    request: Request,
    offered: Offered,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let uri = request.uri().clone();
    match gate.admit(request, offered).await {
        Ok((request, gone)) => {
            let reader = gone.clone().drop_guard();
            let response = next(request).await;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                // The connection goes on as a WebSocket, whose end cancels its calls.
                drop(reader.disarm());
                return response;
            }
            response.map(|body| Body::new(Watched::new(body, gone, reader)))
        }
        Err(turned) => {
            tracing::debug!(
                path = uri.path(),
                status = turned.status.as_u16(),
                why = turned.why,
                "request turned away"
            );
            turned.into_response()
        }
    }
}

impl Gate {
    /// Cancels whatever continues with a token that is no longer good.
    pub fn look(&self) {
        self.keys.iter().for_each(Keyring::look);
    }

    async fn admit(
        &self,
        mut request: Request,
        offered: Offered,
    ) -> Result<(Request, CancellationToken), Turned> {
        self.admission.check_host(&request)?;
        if !self.admission.knows_origin(request.headers()) {
            let why = "web pages of this Origin may not call; --allow-origin ORIGIN admits one";
            return Err(Turned::away(StatusCode::FORBIDDEN, why));
        }
        if OPEN.contains(&request.uri().path()) {
            return Ok((request, CancellationToken::new()));
        }
        if !offered.tokens.is_empty() && !offered.is_named {
            let why = "a token as a subprotocol needs a second one beside it that the server can \
                       choose: `callboard`";
            return Err(Turned::away(StatusCode::BAD_REQUEST, why));
        }
        let anybody = || Verdict::Owner { over: CancellationToken::new() };
        let judged = self
            .keys
            .as_ref()
            .map_or_else(anybody, |keys| judge(request.headers(), &offered.tokens, keys));
        let (guest, over) = match judged {
            Verdict::Owner { over } => (None, over),
            Verdict::Guest { principal, over } => (Some(principal), over),
            Verdict::Expired { name } => {
                let why = format!(
                    "the token `{name}` has expired; ask whoever runs the server for another"
                );
                return Err(Turned::late("token_expired", &why));
            }
            Verdict::Stranger => {
                let why = "the header `Authorization: Bearer TOKEN` is missing or wrong; the \
                           token is in serve.token, in the board's directory, or was printed by \
                           `callboard token add`";
                return Err(Turned::away(StatusCode::UNAUTHORIZED, why));
            }
        };
        let caller = self.caller(&request, guest, &over)?;
        if request.uri().path() == LINK
            && let Some(hash) = presented(request.headers()).map(sha256)
        {
            request.extensions_mut().insert(Bearer(hash));
        }
        // Later layers may log what they see, so the token is removed. Only requests for runs have
        // a query that is read.
        request.headers_mut().remove(AUTHORIZATION);
        if let Some(query) = request.uri().query().filter(|_| runs::has_query(request.uri().path()))
        {
            let query = runs::Query(query.to_owned());
            request.extensions_mut().insert(query);
        }
        if request.uri().query().is_some() || request.uri().authority().is_some() {
            *request.uri_mut() = request.uri().path().parse().unwrap_or_default();
        }
        let gone = caller.gone.clone();
        request.extensions_mut().insert(caller);
        if request.method() == Method::POST {
            request = checked(request).await?;
            // The token may have been revoked while the body arrived.
            self.look();
            if over.is_cancelled() {
                return Err(Turned::late(
                    "token_over",
                    "the token has been revoked or has expired",
                ));
            }
        }
        Ok((request, gone))
    }

    /// On whose behalf an admitted request is made. `over` is cancelled with the token.
    pub(super) fn caller(
        &self,
        request: &Request,
        guest: Option<Arc<Principal>>,
        over: &CancellationToken,
    ) -> Result<Caller, Turned> {
        let extensions = request.extensions();
        extensions.get::<Arc<Seat>>().inspect(|seat| seat.admit());
        let half_closed = extensions.get().map(|HalfClosed(token)| token.clone());
        let rate = self.rates.get(guest.as_deref());
        if let Some(rate) = &rate {
            rate.has_one(Instant::now())
                .map_err(|refusal| Turned::refused(StatusCode::TOO_MANY_REQUESTS, refusal))?;
        }
        let mut caller = caller(request.headers())?;
        (caller.remote, caller.rate) = (true, rate);
        caller.half_closed = half_closed.unwrap_or_default();
        caller.gone = over.child_token();
        if let Some(principal) = guest {
            if let Some(own) = &principal.agent {
                caller.agent = own_agent(caller.agent, own, &principal.token)?;
            }
            caller.principal = Some(principal);
        } else {
            caller.person = person(request.headers())?;
        }
        Ok(caller)
    }
}

/// The hash of the token with which a request was admitted.
#[derive(Clone)]
pub(super) struct Bearer(pub String);

/// The token in the header of a request.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    let authorization = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, presented) = authorization.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(presented)
}

/// Judges the one token that a request presents, in its header or as a subprotocol.
fn judge(headers: &HeaderMap, offered: &[String], keys: &Keyring) -> Verdict {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    match (given.next(), given.next(), offered) {
        (Some(_), None, []) => {
            presented(headers).map_or(Verdict::Stranger, |token| keys.judge(token))
        }
        (None, None, [token]) => keys.judge(token.as_bytes()),
        _ => Verdict::Stranger,
    }
}

/// The agent to act as. The command line names `human` unless told otherwise, so that name is
/// replaced by the token's agent.
fn own_agent(named: AgentChoice, own: &AgentId, token: &str) -> Result<AgentChoice, Turned> {
    match named {
        AgentChoice::Named(other) if other != *own && other.as_str() != HUMAN => {
            let refusal = Refusal::TokenAgent { token: token.to_owned(), agent: own.clone() };
            Err(Turned::refused(StatusCode::FORBIDDEN, refusal))
        }
        _ => Ok(AgentChoice::Named(own.clone())),
    }
}

/// The name that the board's owner gives to the person who calls.
fn person(headers: &HeaderMap) -> Result<Option<Arc<str>>, Turned> {
    let Some(header) = headers.get(PERSON) else { return Ok(None) };
    let name = AgentId::checked(&String::from_utf8_lossy(header.as_bytes()));
    let name = name.map_err(|refusal| {
        Turned::away(
            StatusCode::BAD_REQUEST,
            format_args!("the header {PERSON} is wrong: {refusal}"),
        )
    })?;
    Ok(Some(Arc::from(name.as_str())).filter(|name: &Arc<str>| **name != *HUMAN))
}

fn caller(headers: &HeaderMap) -> Result<Caller, Turned> {
    let wrong = |why: String| {
        Turned::away(StatusCode::BAD_REQUEST, format_args!("the header {CALLER} is wrong: {why}"))
    };
    let door = match headers.get(INSIDE) {
        Some(mark) => {
            let mark = String::from_utf8_lossy(mark.as_bytes()).into_owned();
            limit::LABEL.check_text(&mark).map_err(|refusal| wrong(refusal.to_string()))?;
            Door::Agent(Inside { mark: Some(mark), processes: Vec::new() })
        }
        None => Door::Person,
    };
    let Some(header) = headers.get(CALLER) else { return Ok(Caller { door, ..Caller::default() }) };
    let given: CallerHeader =
        serde_json::from_slice(header.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    let agent = match &given.agent {
        Some(agent) => AgentChoice::Named(
            AgentId::checked(agent).map_err(|refusal| wrong(refusal.to_string()))?,
        ),
        None => AgentChoice::None,
    };
    for text in [&given.worktree, &given.branch, &given.head].into_iter().flatten() {
        limit::PATH.check_text(text).map_err(|refusal| wrong(refusal.to_string()))?;
    }
    let place = Place { worktree: given.worktree, branch: given.branch, head: given.head };
    Ok(Caller { agent, door, place, ..Caller::default() })
}

/// The request with its body read and checked.
async fn checked(request: Request) -> Result<Request, Turned> {
    let json = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(is_json);
    if !json {
        let why = "the body must be JSON, sent as Content-Type: application/json";
        return Err(Turned::away(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let (mut parts, body) = read(request).await?;
    let marked = body.len();
    let body = body.slice_ref(bom::skip_bytes(&body));
    if body.len() < marked {
        parts.headers.remove(CONTENT_LENGTH);
    }
    if parts.uri.path() == MCP && body.trim_ascii_start().starts_with(b"[") {
        return Err(Turned::away(
            StatusCode::BAD_REQUEST,
            "MCP knows no batches; send one message a request",
        ));
    }
    strict::check(&body).map_err(|error| {
        let turned = Turned::away(StatusCode::BAD_REQUEST, &error);
        // JSON that is no acceptable message is not a parse error.
        if error.is_data() { turned } else { Turned { code: PARSE_ERROR_CODE, ..turned } }
    })?;
    parts.extensions.insert(Checked(body.clone()));
    Ok(Request::from_parts(parts, Body::from(body)))
}

/// Reads the body of a request, within the limits of size and time.
pub(super) async fn read(request: Request) -> Result<(Parts, Bytes), Turned> {
    let too_large = || {
        let why = format!("the body has more than {} bytes; split the call into several", BODY.max);
        Turned::away(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    let announced = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > BODY.max as u64) {
        return Err(too_large());
    }
    let (parts, body) = request.into_parts();
    match timeout(BODY_PATIENCE, to_bytes(body, BODY.max)).await {
        Ok(Ok(body)) => Ok((parts, body)),
        Ok(Err(error)) if error.source().is_some_and(|cause| cause.is::<LengthLimitError>()) => {
            Err(too_large())
        }
        Ok(Err(error)) => {
            let why = format!("the body could not be read: {error}");
            Err(Turned::away(StatusCode::BAD_REQUEST, why))
        }
        Err(_) => Err(Turned::away(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}
