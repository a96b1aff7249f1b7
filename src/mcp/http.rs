//! MCP over Streamable HTTP, with both protocol eras at one address.
//!
//! Since 2026-07-28, each request stands alone and is answered with JSON. Before, a client opens a
//! session, and its requests are answered as event streams. A session holds nothing but the
//! client's subscriptions. The server forgets a session if it was idle for long, if others need its
//! place, or when it restarts. The client can continue a forgotten session: it is then notified of
//! those resources that every board has, as if it had subscribed to them, but must subscribe again
//! to a task or a tag. It belongs to the token that its first request presents.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use rmcp::ServerHandler;
use rmcp::model::{
    ClientCapabilities, ErrorData, Implementation, InitializeRequestParams, JsonRpcError, RequestId,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{
    SessionManager, SessionState, SessionStore, SessionStoreError,
};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::accept::{self, Accepted};
use super::{Watched, opening, stdio};
use crate::participant::Caller;
use crate::state::limit::{BODY, SESSIONS};

/// Time without a request or a notification after which a session is forgotten.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// Interval of comments on idle event streams, by which either side notices that the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Client name for the continuation of a forgotten session.
pub(super) const FORGOTTEN: &str = "forgotten";
/// Header with the id of a session, and the length of an id, which is a UUID.
pub const SESSION: &str = "mcp-session-id";
const SESSION_LENGTH: usize = 36;
/// Header by which a client resumes a broken stream.
const LAST_EVENT: &str = "last-event-id";
const VERSION: &str = "mcp-protocol-version";
/// First revision without sessions. Revisions are dates, which compare as text.
const MODERN: &str = "2026-07-28";

/// What can answer: the server for this board, or the fixtures of a conformance test.
pub trait Answering: ServerHandler + Clone + Sync {}

impl<H: ServerHandler + Clone + Sync> Answering for H {}

/// Handler for the requests under one path.
pub struct Door<H: Answering> {
    service: StreamableHttpService<H, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    uses: Arc<Mutex<HashMap<Arc<str>, Use>>>,
    /// Lock for making room for a session.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// Name of the token that a client uses; `None` for the board's owner.
type Bearer = Option<Arc<str>>;

/// When a session was last used, and the responses of it that are being read: while one is, the
/// session is in use.
struct Use {
    /// Whose session it is; `None` until its first request. Others can neither use nor end it.
    bearer: Option<Bearer>,
    last: Instant,
    read: Vec<Reading>,
    /// End of the stream on which rmcp sends unsolicited messages.
    stream: CancellationToken,
}

/// A response in progress, and the id of its request. It is cancelled when the reader leaves.
struct Reading {
    gone: CancellationToken,
    id: Option<RequestId>,
}

impl Use {
    fn new() -> Self {
        let stream = CancellationToken::new();
        stream.cancel();
        Self { bearer: None, last: Instant::now(), read: Vec::new(), stream }
    }

    fn is_open(&self) -> bool {
        self.read.iter().any(|reading| !reading.gone.is_cancelled())
    }

    fn is_open_to(&self, id: &RequestId) -> bool {
        self.read
            .iter()
            .any(|reading| reading.id.as_ref() == Some(id) && !reading.gone.is_cancelled())
    }
}

impl<H: Answering> Clone for Door<H> {
    fn clone(&self) -> Self {
        let (service, sessions) = (self.service.clone(), Arc::clone(&self.sessions));
        Self { service, sessions, uses: Arc::clone(&self.uses), turn: Arc::clone(&self.turn) }
    }
}

impl<H: Answering> Door<H> {
    /// Cancelling `stop` ends streams that would otherwise never end.
    pub fn new(server: H, hosts: &[String], origins: &[String], stop: CancellationToken) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(IDLE);
        // A call ends with its connection, so there is nothing to come back for. Clients fail on
        // the empty event that says when to.
        sessions.session_config.sse_retry = None;
        let sessions = Arc::new(sessions);
        // The gate has checked hosts and origins already; checking again does no harm.
        let mut config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_sse_retry(None)
            .with_max_request_body_bytes(BODY.max)
            .with_cancellation_token(stop)
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins)
            .enforce_origin_validation();
        config.session_store = Some(Arc::new(Ended::default()));
        let service =
            StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
        Self { service, sessions, uses: Arc::default(), turn: Arc::default() }
    }

    /// Answers a request. `body` is its body, if the gate has read it.
    pub async fn handle(&self, mut request: Request, body: Option<Bytes>) -> Response {
        let is_initialize = match prepare(&mut request, body.as_deref()) {
            Ok(is_initialize) => is_initialize,
            Err(refusal) => return *refusal,
        };
        let ends_session = request.method() == Method::DELETE;
        if request.method() == Method::GET && !resumes_an_answer(request.headers()) {
            // An event that a restarted server has not sent, rmcp would answer with a stream that
            // ends at once.
            request.headers_mut().remove(LAST_EVENT);
        }
        let headers = request.headers();
        let is_modern = is_modern(headers);
        let named = headers.get(SESSION).and_then(session_name);
        let caller = request.extensions().get::<Caller>();
        let gone = caller.map(|caller| caller.gone.clone()).unwrap_or_default();
        let principal = caller.and_then(|caller| caller.principal.as_deref());
        let bearer = principal.map(|principal| Arc::from(principal.token.as_str()));
        if ends_session && !is_modern && named.as_ref().is_some_and(|name| self.is_forgotten(name))
        {
            // Only its client may keep it from being continued, and which client that is has been
            // forgotten, too.
            return StatusCode::NO_CONTENT.into_response();
        }
        // A handshake opens a session, whatever version it names.
        let is_legacy = !is_modern || is_initialize;
        if is_legacy && !self.make_room(named.as_deref()).await {
            let why = format!(
                "{} sessions are open and in use; end some (DELETE), or try again later",
                SESSIONS.max
            );
            return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        }
        let mut stream = None;
        if let Some(name) = &named {
            let id = body.as_deref().and_then(request_id);
            if let Err(refusal) = self.used(name, &bearer, &gone, id).await {
                return *refusal;
            }
            if request.method() == Method::GET && !resumes_an_answer(headers) {
                stream = Some(self.open_stream(name));
            }
        }
        let mut response = self.service.handle(request).await.map(Body::new);
        if let Some((over, reader)) = stream {
            response = response.map(|body| Body::new(Watched::new(body, over, reader)));
        }
        if let Some(name) = response.headers().get(SESSION).and_then(session_name)
            && named.as_ref() != Some(&name)
        {
            // A session that was just created has no open request.
            drop(self.used(&name, &bearer, &gone, None).await);
        }
        if ends_session && response.status() == StatusCode::ACCEPTED {
            // Nothing is left to be done, and some clients accept only this status.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        match body.and_then(|body| refusal(response.status(), &body)) {
            Some(refusal) => {
                (StatusCode::BAD_REQUEST, axum::Json(stdio::object(&refusal))).into_response()
            }
            None => response,
        }
    }

    /// Makes room for the session of this name unless it exists: forgets the one that was idle
    /// longest, which its client need not notice. False if all are in use.
    async fn make_room(&self, name: Option<&str>) -> bool {
        // Concurrent handshakes would all find the same idle session.
        let _turn = self.turn.lock().await;
        loop {
            let idlest = {
                let sessions = self.sessions.sessions.read().await;
                if sessions.len() < SESSIONS.max
                    || name.is_some_and(|name| sessions.contains_key(name))
                {
                    return true;
                }
                let mut uses = self.uses();
                uses.retain(|name, _| sessions.contains_key(name));
                // Sessions whose handshake is in progress or was given up.
                for name in sessions.keys() {
                    uses.entry(Arc::clone(name)).or_insert_with(Use::new);
                }
                let idle = uses.iter().filter(|(_, one)| !one.is_open());
                idle.min_by_key(|(_, one)| one.last).map(|(name, _)| Arc::clone(name))
            };
            let Some(idlest) = idlest else { return false };
            if let Err(error) = self.sessions.close_session(&idlest).await {
                tracing::debug!(%error, "a session had ended already");
                return true;
            }
        }
    }

    /// Whether nothing is known of the session, as after a restart.
    fn is_forgotten(&self, name: &Arc<str>) -> bool {
        self.uses().get(name).is_none_or(|one| one.bearer.is_none())
    }

    /// Records the use of a session. Refuses that of another client's. Refuses a request with the
    /// id of another open one: rmcp would send one's answer to the other's reader.
    async fn used(
        &self,
        name: &Arc<str>,
        bearer: &Bearer,
        gone: &CancellationToken,
        id: Option<RequestId>,
    ) -> Result<(), Box<Response>> {
        let sessions = self.sessions.sessions.read().await;
        let mut uses = self.uses();
        if uses.len() > 2 * SESSIONS.max {
            uses.retain(|name, _| sessions.contains_key(name));
        }
        let one = uses.entry(Arc::clone(name)).or_insert_with(Use::new);
        if one.bearer.get_or_insert_with(|| bearer.clone()) != bearer {
            let why = "the session belongs to another token; begin one of your own with initialize";
            let error = ErrorData::invalid_request(why, None);
            return Err(Box::new(refused(StatusCode::NOT_FOUND, id, error)));
        }
        one.last = Instant::now();
        if let Some(id) = id.as_ref().filter(|id| one.is_open_to(id)) {
            let (id, error) = (Some(id.clone()), stdio::id_in_use(id));
            return Err(Box::new(refused(StatusCode::BAD_REQUEST, id, error)));
        }
        one.read.retain(|reading| !reading.gone.is_cancelled());
        one.read.push(Reading { gone: gone.clone(), id });
        Ok(())
    }

    /// Opens a session's stream for unsolicited messages. rmcp keeps all but the first silent,
    /// since clients that open several would otherwise keep ending each other's. Returns what
    /// ends the new stream, and what to drop with its body. A silent stream ends when the first
    /// one does, so that its client reconnects and gets messages: it may have lost the first
    /// connection and be back before the loss is noticed.
    fn open_stream(&self, name: &Arc<str>) -> (CancellationToken, DropGuard) {
        let mut uses = self.uses();
        let stream = &mut uses.entry(Arc::clone(name)).or_insert_with(Use::new).stream;
        if !stream.is_cancelled() {
            return (stream.clone(), CancellationToken::new().drop_guard());
        }
        *stream = CancellationToken::new();
        (CancellationToken::new(), stream.clone().drop_guard())
    }

    fn uses(&self) -> MutexGuard<'_, HashMap<Arc<str>, Use>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session named by a header, if it has the form that the server uses. Any such name may open a
/// session, not only those that were issued.
fn session_name(header: &HeaderValue) -> Option<Arc<str>> {
    header.to_str().ok().filter(|name| is_session_name(name)).map(Arc::from)
}

fn is_session_name(name: &str) -> bool {
    name.len() == SESSION_LENGTH
        && name.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Whether the client resumes the answer to a request rather than the stream of unsolicited
/// messages.
fn resumes_an_answer(headers: &HeaderMap) -> bool {
    headers.get(LAST_EVENT).is_some_and(|event| event.as_bytes().contains(&b'/'))
}

fn request_id(body: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Message<'a> {
        id: RequestId,
        #[serde(borrow, rename = "method")]
        _method: Cow<'a, str>,
    }
    serde_json::from_slice::<Message>(body).ok().map(|message| message.id)
}

fn method(body: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
    }
    serde_json::from_slice::<Message>(body).ok().map(|message| message.method)
}

/// Brings a request into the form that rmcp reads, or refuses it. Returns whether it is a
/// handshake.
fn prepare(request: &mut Request, body: Option<&[u8]>) -> Result<bool, Box<Response>> {
    let method = body.and_then(method).unwrap_or_default();
    check_accepted(request, &method)?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept::BOTH));
    if method == "tools/call" && body.is_some_and(lacks_names) {
        let mut message: Value =
            serde_json::from_slice(body.unwrap_or_default()).unwrap_or_default();
        if opening::name_arguments(&mut message) {
            replace_body(request, &message);
        }
    }
    if method != "initialize" {
        return Ok(false);
    }
    // This revision no longer has the method, so its params do not matter.
    if is_modern(request.headers()) {
        return Ok(true);
    }
    let mut message: Value = serde_json::from_slice(body.unwrap_or_default()).unwrap_or_default();
    match opening::complete(&mut message) {
        Ok(false) => {}
        Ok(true) => {
            replace_body(request, &message);
        }
        Err(why) => {
            let id = RequestId::deserialize(&message["id"]).ok();
            return Err(Box::new(refused(
                StatusCode::BAD_REQUEST,
                id,
                ErrorData::invalid_params(why, None),
            )));
        }
    }
    Ok(true)
}

fn replace_body(request: &mut Request, message: &Value) {
    request.headers_mut().remove(CONTENT_LENGTH);
    *request.body_mut() = Body::from(message.to_string());
}

/// Whether the arguments of a tool call are a text or a list.
fn lacks_names(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let message = serde_json::from_slice::<Message>(body).ok();
    let arguments = message.and_then(|message| message.params.arguments);
    arguments.is_some_and(|arguments| arguments.get().starts_with(['"', '[']))
}

/// Checks that the client accepts the kind of answer that it will get.
fn check_accepted(request: &Request, method: &str) -> Result<(), Box<Response>> {
    let Accepted { json, stream } = accept::of(request.headers());
    let (is_accepted, wanted) = match *request.method() {
        Method::GET => (stream, "text/event-stream"),
        Method::POST if !is_modern(request.headers()) || method == "initialize" => {
            (stream, accept::BOTH)
        }
        Method::POST if method == "subscriptions/listen" => (stream, accept::BOTH),
        Method::POST => (json, accept::BOTH),
        _ => (true, ""),
    };
    if is_accepted {
        return Ok(());
    }
    let why = format!("the Accept header excludes the answer; send `Accept: {wanted}`");
    Err(Box::new(refused(StatusCode::NOT_ACCEPTABLE, None, ErrorData::invalid_request(why, None))))
}

fn is_modern(headers: &HeaderMap) -> bool {
    headers.get(VERSION).is_some_and(|version| version.as_bytes() >= MODERN.as_bytes())
}

fn refused(status: StatusCode, id: Option<RequestId>, error: ErrorData) -> Response {
    (status, axum::Json(stdio::object(&JsonRpcError::new(id, error)))).into_response()
}

/// A JSON-RPC error in place of rmcp's plain text: why the body is not a valid message.
fn refusal(status: StatusCode, body: &[u8]) -> Option<Box<JsonRpcError>> {
    if status != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return None;
    }
    match stdio::parse(body) {
        Some(message) => message.err(),
        None => Some(stdio::invalid_request(None, "the body is no notification of MCP".to_owned())),
    }
}

/// Sessions that their clients have ended. Any other name continues a session, as if it had been
/// stored: a name is no secret and grants nothing; the token does.
#[derive(Default)]
struct Ended(Mutex<VecDeque<String>>);

#[async_trait::async_trait]
impl SessionStore for Ended {
    async fn load(&self, session: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let ended = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .any(|ended| ended == session);
        let client = Implementation::new(FORGOTTEN, "0");
        let params = InitializeRequestParams::new(ClientCapabilities::default(), client);
        Ok((is_session_name(session) && !ended).then(|| SessionState::new(params)))
    }

    async fn store(&self, _: &str, _: &SessionState) -> Result<(), SessionStoreError> {
        Ok(())
    }

    async fn delete(&self, session: &str) -> Result<(), SessionStoreError> {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push_back(session.chars().take(SESSION_LENGTH).collect());
        if ended.len() > SESSIONS.max {
            ended.pop_front();
        }
        Ok(())
    }
}
