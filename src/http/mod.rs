//! The HTTP listener: `/mcp` (MCP over Streamable HTTP), `/rpc` (JSON-RPC over HTTP and WebSocket),
//! `/runs`, `/healthz`, `/readyz`, `/metrics`, and pages for browsers.
//!
//! Every request passes the `gate` first. Slow clients are cut off: a request's head and body must
//! arrive in time, and what is written must be read.

mod cors;
mod gate;
mod listener;
mod places;
mod rates;
mod running;
mod runs;
mod stream;
mod subprotocol;
mod token;
pub mod tokens;
mod visitors;

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jsonrpsee::server::RegisterMethodError;
use rustix::process::{Resource, getrlimit};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::select;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

pub use gate::{Admission, CALLER, Gate, MCP, RPC};
pub use listener::{ListenError, Listener, is_free, listen};
pub use rates::Rates;
pub use running::Running;
pub use token::{FILE_NAME as TOKEN_FILE, Token, TokenError};
pub use tokens::Keyring;

use places::{Place, Places};
use stream::Shared;

use crate::mcp;
use crate::participant::{Form, Handle};
use crate::rpc::{self, Checked};
use crate::state::limit::CONNECTIONS;
use crate::web;

/// Longest time for a request's head to arrive, counted from the end of the request before it.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// Longest time for a client to read some of what was written to it.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// Longest time for the answers to a client that sends nothing more, and may be gone.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Time after a signal for answers in progress, and then for streams to end.
const ANSWER_GRACE: Duration = Duration::from_millis(1_500);
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// Interval at which tokens are checked while nobody presents one.
const REFRESH: Duration = Duration::from_secs(1);
/// Files that the server has open or opens briefly, in addition to its connections.
const BOARD_FILES: usize = 64;
/// Media type that a reader of the second form of metrics names.
const OPEN_METRICS: &str = "application/openmetrics-text";
/// Pause when the system has no more sockets or memory for now.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Handlers of the paths, behind the gate. The router serves only some of them: what it does per
/// request is noticeable in a call.
struct Doors<H: mcp::Answering> {
    handle: Handle,
    gate: Arc<Gate>,
    mcp: mcp::Door<H>,
    rpc: rpc::Door,
    /// None if the server asks for no token: visitors could not be told apart.
    pages: Option<Arc<web::Door>>,
    others: Router,
}

impl<H: mcp::Answering> Doors<H> {
    fn new(
        handle: &Handle,
        mcp: mcp::Door<H>,
        rpc: rpc::Door,
        pages: Option<Arc<web::Door>>,
        gate: Arc<Gate>,
    ) -> Self {
        let others = Router::new()
            .route(gate::OPEN[0], get(async || "ok\n"))
            .route(gate::OPEN[1], get(ready))
            .route("/metrics", get(metrics))
            .merge(runs::router())
            .with_state(handle.clone());
        Self { handle: handle.clone(), gate, mcp, rpc, pages, others }
    }

    async fn answer(&self, request: Request) -> Response {
        let response = match &self.pages {
            Some(pages) if visitors::is_for_pages(&request) => {
                Box::pin(visitors::pass(&self.gate, pages, request)).await
            }
            _ => gate::pass(&self.gate, request, |request| self.lead(request)).await,
        };
        self.handle.answered(response.status().as_u16());
        response
    }

    async fn lead(&self, request: Request) -> Response {
        match request.uri().path() {
            // This future is many times as large as the others, and without the box each would be
            // moved as if it were as large.
            gate::MCP => {
                let body = request.extensions().get().map(|Checked(body): &Checked| body.clone());
                Box::pin(self.mcp.handle(request, body)).await
            }
            gate::RPC => self.rpc.handle(request).await,
            gate::LINK => self.link(&request),
            _ => match self.others.clone().call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
        }
    }

    /// A link that lets the bearer of a token in with a browser.
    fn link(&self, request: &Request) -> Response {
        let bearer = request.extensions().get::<gate::Bearer>();
        match (bearer, &self.pages) {
            (Some(gate::Bearer(token)), Some(pages)) if request.method() == Method::POST => {
                match pages.link(token) {
                    Ok(link) => axum::Json(json!({"link": link})).into_response(),
                    Err(error) => {
                        (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response()
                    }
                }
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

/// Whether calls can be answered now as they should be.
async fn ready(State(handle): State<Handle>) -> Response {
    let (status, body) = match handle.probe("health_check").await {
        Ok(health) => {
            let is_ready = health["ready"] == true;
            let mut body = json!({"status": if is_ready { "ready" } else { "degraded" }});
            // Without their texts, which name processes and paths: this needs no token.
            for field in ["kinds", "clock_ahead_seconds"] {
                if let Some(value) = health.get(field) {
                    body[field] = value.clone();
                }
            }
            (if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body)
        }
        Err(error) => {
            tracing::warn!(error = %error.message(), "not ready");
            let text = "the board cannot be used; the server's log says why";
            (StatusCode::SERVICE_UNAVAILABLE, json!({"status": text}))
        }
    };
    (status, axum::Json(body)).into_response()
}

/// Metrics for Prometheus, in its own form unless the reader names the other.
async fn metrics(State(handle): State<Handle>, headers: HeaderMap) -> Response {
    let names_open =
        |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains(OPEN_METRICS));
    let (form, kind) = if headers.get_all(ACCEPT).iter().any(names_open) {
        (Form::Open, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    } else {
        (Form::Plain, "text/plain; version=0.0.4; charset=utf-8")
    };
    match handle.metrics(form).await {
        Ok(text) => ([(CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.message()).into_response(),
    }
}

/// Answers on `listener` until `interruption`, and then for a few seconds more.
///
/// # Errors
/// If two operations have the same name.
pub async fn serve<H: mcp::Answering>(
    listener: Listener,
    handle: Handle,
    server: H,
    pages: Option<Arc<web::Door>>,
    gate: Gate,
    interruption: impl Future<Output = ()>,
) -> Result<(), RegisterMethodError> {
    let stop = CancellationToken::new();
    let mcp = mcp::Door::new(server, &gate.admission.hosts, &gate.admission.origins, stop.clone());
    let gate = Arc::new(gate);
    let looking = Arc::clone(&gate);
    let (rpc, rpc_stop) = rpc::Door::new(handle.clone(), Arc::new(move || looking.look()))?;
    let calls = rpc.calls.clone();
    let refreshing = tokio::spawn(refresh(Arc::clone(&gate)));
    let open_pages = pages.clone();
    let doors = Arc::new(Doors::new(&handle, mcp, rpc, pages, gate));
    let (connections, closing) = (TaskTracker::new(), CancellationToken::new());
    let limit = places();
    let places = Places::new(limit);
    let mut interruption = pin!(interruption);
    loop {
        let accepted = select! {
            accepted = listener.accept() => accepted,
            () = &mut interruption => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some((place, made_room)) = places.take(peer.ip()) else {
            tracing::warn!(limit, "too many connections; a new one was closed");
            continue;
        };
        if made_room {
            tracing::warn!(limit, %peer, "too many connections; a silent one was closed for this");
        }
        let (doors, closing) = (Arc::clone(&doors), closing.clone());
        connections.spawn(async move {
            if let Err(error) = converse(stream, doors, closing, Arc::new(place)).await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    refreshing.abort();
    drop((listener, doors));
    handle.stop_waiting();
    open_pages.iter().for_each(|pages| pages.close());
    closing.cancel();
    connections.close();
    calls.close();
    drop(timeout(ANSWER_GRACE, async { tokio::join!(connections.wait(), calls.wait()) }).await);
    stop.cancel();
    // An error means that it has already stopped.
    let _ = rpc_stop.stop();
    if timeout(CLOSE_GRACE, async { tokio::join!(connections.wait(), rpc_stop.stopped()) })
        .await
        .is_err()
    {
        tracing::warn!("some clients did not close their connections");
    }
    Ok(())
}

/// Of the connection that a request came on: cancelled when its client sends nothing more.
#[derive(Clone)]
struct HalfClosed(CancellationToken);

/// Number of connections at once: each is a file, and the board needs some, too.
fn places() -> usize {
    let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
    files.saturating_sub(BOARD_FILES).clamp(1, CONNECTIONS.max)
}

/// Checks tokens regularly, so that whatever does not pass the gate again ends soon after its
/// token.
async fn refresh(gate: Arc<Gate>) {
    loop {
        sleep(REFRESH).await;
        gate.look();
        gate.rates.look();
    }
}

/// Answers one connection's requests until it ends or is asked to. A WebSocket then continues in
/// the same slot.
async fn converse<H: mcp::Answering>(
    stream: TcpStream,
    doors: Arc<Doors<H>>,
    closing: CancellationToken,
    place: Arc<Place>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    // Without it, Nagle's algorithm holds back a reply's last segment until the one before is
    // acknowledged: 40 ms.
    stream.set_nodelay(true)?;
    let stream = Shared::new(stream);
    let (watched, seat) = (stream.clone(), Arc::clone(&place.seat));
    let over = seat.over.clone();
    let half_closed = CancellationToken::new();
    let ends = HalfClosed(half_closed.clone());
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_PATIENCE));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).half_close(true);
    let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
        let doors = Arc::clone(&doors);
        request.extensions_mut().insert(Arc::clone(&seat));
        request.extensions_mut().insert(ends.clone());
        if request.uri().path() == gate::RPC && request.headers().contains_key(UPGRADE) {
            // A WebSocket's extensions are kept until it is closed, so the slot stays taken.
            request.extensions_mut().insert(Arc::clone(&place));
        }
        async move { Ok::<_, Infallible>(doors.answer(request.map(Body::new)).await) }
    });
    let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), answer);
    let mut connection = pin!(connection.with_upgrades());
    select! {
        ended = &mut connection => return Ok(ended?),
        () = over.cancelled() => return Ok(()),
        () = watched.ended() => {
            half_closed.cancel();
            return timeout(LAST_ANSWERS, connection).await.map_or(Ok(()), |ended| Ok(ended?));
        }
        () = closing.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    Ok(connection.await?)
}
