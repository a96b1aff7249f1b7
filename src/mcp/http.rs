//! MCP over Streamable HTTP, both eras at one address.
//!
//! From 2026-07-28 on each request stands alone and is answered with JSON. Before, a client opens a session and its
//! requests are answered as event streams. A session holds nothing but the client's subscriptions; one that the server
//! has forgotten, because it was idle while others came or for long, or because the server was started anew, goes on, and is
//! told of those resources that every board has, as if it had subscribed to them; to a task or a tag it must subscribe again.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use rmcp::ServerHandler;
use rmcp::model::{ClientCapabilities, ErrorData, Implementation, InitializeRequestParams, JsonRpcError, RequestId};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionManager, SessionState, SessionStore, SessionStoreError};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Watched, stdio};
use crate::participant::Caller;
use crate::state::limit::{BODY, SESSIONS};

/// Without a request or a notification a session is forgotten after so long.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// Comments on idle event streams, by which either side finds out that the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What a client is called whose session was forgotten.
pub const FORGOTTEN: &str = "forgotten";
/// The header by which a client names its session, and the form of the names: a UUID.
pub const SESSION: &str = "mcp-session-id";
const SESSION_LENGTH: usize = 36;
/// The header by which a client goes on with a stream that broke off.
const LAST_EVENT: &str = "last-event-id";
const VERSION: &str = "mcp-protocol-version";
/// The first revision without sessions; revisions are dates, which compare as texts do.
const MODERN: &str = "2026-07-28";

/// What can stand behind the door: this board, or the fixtures of a conformance test.
pub trait Answering: ServerHandler + Clone + Sync {}

impl<H: ServerHandler + Clone + Sync> Answering for H {}

/// Takes requests under one path.
pub struct Door<H: Answering> {
    service: StreamableHttpService<H, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    uses: Arc<Mutex<HashMap<Arc<str>, Use>>>,
    /// Of those who make room for a session.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// When a session was used last, and what of it is read: one that is read is in use.
struct Use {
    last: Instant,
    read: Vec<Reading>,
    /// The end of the stream on which the library says what nobody asked for.
    stream: CancellationToken,
}

/// An answer, and the id of the request that it is to. Its reader's end cancels it.
struct Reading {
    gone: CancellationToken,
    id: Option<RequestId>,
}

impl Use {
    fn new() -> Self {
        let stream = CancellationToken::new();
        stream.cancel();
        Self { last: Instant::now(), read: Vec::new(), stream }
    }

    fn is_open(&self) -> bool {
        self.read.iter().any(|reading| !reading.gone.is_cancelled())
    }

    fn is_open_to(&self, id: &RequestId) -> bool {
        self.read.iter().any(|reading| reading.id.as_ref() == Some(id) && !reading.gone.is_cancelled())
    }
}

impl<H: Answering> Clone for Door<H> {
    fn clone(&self) -> Self {
        let (service, sessions) = (self.service.clone(), Arc::clone(&self.sessions));
        Self { service, sessions, uses: Arc::clone(&self.uses), turn: Arc::clone(&self.turn) }
    }
}

impl<H: Answering> Door<H> {
    /// Cancelling `stop` ends what would go on without end.
    pub fn new(server: H, hosts: &[String], origins: &[String], stop: CancellationToken) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(IDLE);
        let sessions = Arc::new(sessions);
        // Hosts and origins were looked at before; it does no harm to look again.
        let mut config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_max_request_body_bytes(BODY.max)
            .with_cancellation_token(stop)
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins)
            .enforce_origin_validation();
        config.session_store = Some(Arc::new(Ended::default()));
        let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
        Self { service, sessions, uses: Arc::default(), turn: Arc::default() }
    }

    /// `body` is the request's, if that was read before.
    pub async fn handle(&self, request: Request, body: Option<Bytes>) -> Response {
        let ends_session = request.method() == Method::DELETE;
        let headers = request.headers();
        let is_modern = headers.get(VERSION).is_some_and(|version| version.as_bytes() >= MODERN.as_bytes());
        let named = headers.get(SESSION).and_then(session_name);
        let gone = request.extensions().get::<Caller>().map(|caller| caller.gone.clone()).unwrap_or_default();
        // A handshake opens one whatever version it names.
        let is_legacy = !is_modern || body.as_deref().is_some_and(is_initialize);
        if is_legacy && !self.make_room(named.as_deref()).await {
            let why = format!("{} sessions are open and in use; end some (DELETE), or try again later", SESSIONS.max);
            return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        }
        let mut stream = None;
        if let Some(name) = &named {
            let id = body.as_deref().and_then(request_id);
            if let Err(refusal) = self.used(name, &gone, id).await {
                return (StatusCode::BAD_REQUEST, axum::Json(stdio::object(&refusal))).into_response();
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
            // A name that was just given has no request open.
            drop(self.used(&name, &gone, None).await);
        }
        if ends_session && response.status() == StatusCode::ACCEPTED {
            // Nothing is left to be done, and some clients take no other word for it.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        match body.and_then(|body| refusal(response.status(), &body)) {
            Some(refusal) => (StatusCode::BAD_REQUEST, axum::Json(stdio::object(&refusal))).into_response(),
            None => response,
        }
    }

    /// For the session of this name, if it is none of those that are kept: the one that was idle longest is forgotten, which
    /// its client need not notice. False when all are in use.
    async fn make_room(&self, name: Option<&str>) -> bool {
        // Handshakes that come at once would all find the same one.
        let _turn = self.turn.lock().await;
        loop {
            let idlest = {
                let sessions = self.sessions.sessions.read().await;
                if sessions.len() < SESSIONS.max || name.is_some_and(|name| sessions.contains_key(name)) {
                    return true;
                }
                let mut uses = self.uses();
                uses.retain(|name, _| sessions.contains_key(name));
                // Of a handshake that is under way, or was given up.
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

    /// Refuses a request whose id another has that is open: the library would send the answer of one to the other's reader.
    async fn used(
        &self,
        name: &Arc<str>,
        gone: &CancellationToken,
        id: Option<RequestId>,
    ) -> Result<(), Box<JsonRpcError>> {
        let sessions = self.sessions.sessions.read().await;
        let mut uses = self.uses();
        if uses.len() > 2 * SESSIONS.max {
            uses.retain(|name, _| sessions.contains_key(name));
        }
        let one = uses.entry(Arc::clone(name)).or_insert_with(Use::new);
        one.last = Instant::now();
        if let Some(id) = id.as_ref().filter(|id| one.is_open_to(id)) {
            return Err(Box::new(JsonRpcError::new(Some(id.clone()), stdio::id_in_use(id))));
        }
        one.read.retain(|reading| !reading.gone.is_cancelled());
        one.read.push(Reading { gone: gone.clone(), id });
        Ok(())
    }

    /// Of a session's streams the library leaves all but the first in silence: clients that open several would else end one
    /// another's without end. Answers what ends the new one, and what is to be dropped with its body. A silent one ends when
    /// the first one does, so that its client comes back and is told: it may have lost that connection, and be here before
    /// the loss is known.
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

/// A name of the form that the server gives. Any such may open a session, not only those that were given.
fn session_name(header: &HeaderValue) -> Option<Arc<str>> {
    header.to_str().ok().filter(|name| is_session_name(name)).map(Arc::from)
}

fn is_session_name(name: &str) -> bool {
    name.len() == SESSION_LENGTH && name.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// The rest of the answer to a request, and not what the server says unasked.
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

fn is_initialize(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
    }
    serde_json::from_slice::<Message>(body).is_ok_and(|message| message.method == "initialize")
}

/// In the words of the protocol what rmcp answers in a sentence: why the body is no message, or no `initialize`.
fn refusal(status: StatusCode, body: &[u8]) -> Option<Box<JsonRpcError>> {
    match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => match stdio::parse(body) {
            Some(message) => message.err(),
            None => Some(stdio::invalid_request(None, "the body is no notification of MCP".to_owned())),
        },
        StatusCode::BAD_REQUEST => {
            let message: Value =
                serde_json::from_slice(body).ok().filter(|one: &Value| one["method"] == "initialize")?;
            let error = InitializeRequestParams::deserialize(&message["params"]).err()?;
            let error = ErrorData::invalid_params(format!("initialize: {error}"), None);
            Some(Box::new(JsonRpcError::new(RequestId::deserialize(&message["id"]).ok(), error)))
        }
        _ => None,
    }
}

/// The sessions that their clients have ended. Every other name is good for a session, as if it had been kept: names are
/// no secret and give no right, the token does.
#[derive(Default)]
struct Ended(Mutex<VecDeque<String>>);

#[async_trait::async_trait]
impl SessionStore for Ended {
    async fn load(&self, session: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|ended| ended == session);
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
