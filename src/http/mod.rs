//! The one listener: `/mcp` (MCP over Streamable HTTP), `/rpc` (JSON-RPC over HTTP and WebSocket), `/healthz`, `/readyz`,
//! `/metrics`.
//!
//! Every request passes the `gate` first. Whoever is slow is cut off: a request's head and body must arrive in time, and
//! what is written must be read.

mod gate;
mod token;
pub mod tokens;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use jsonrpsee::server::RegisterMethodError;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use gate::{Admission, CALLER, Gate, MCP, RPC};
pub use token::{FILE_NAME as TOKEN_FILE, Token, TokenError};
pub use tokens::Keyring;

use crate::mcp;
use crate::participant::{Caller, Handle};
use crate::rpc;
use crate::state::limit::CONNECTIONS;

/// For a request's head to arrive, counted from the end of the request before it.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// For a client to read some of what was written to it.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// After a signal: for answers that are on their way, then for streams to end.
const ANSWER_GRACE: Duration = Duration::from_millis(1_500);
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// How often tokens are looked at while nobody presents one.
const REFRESH: Duration = Duration::from_secs(1);
/// When the system has no more sockets or memory for now.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(
        "{address} is not on this machine only; whoever can reach it needs just the token, and the traffic is not \
             encrypted. Pass --allow-remote if that is meant, and --allow-host NAME for each name that clients use"
    )]
    Remote { address: SocketAddr },
    #[error("cannot listen on {address}: {source}; is another server there? Choose a port with --listen")]
    Failed { address: SocketAddr, source: io::Error },
}

/// Takes the address, which others can reach only if `allow_remote` says so.
pub async fn listen(address: SocketAddr, allow_remote: bool) -> Result<TcpListener, ListenError> {
    if !address.ip().is_loopback() && !allow_remote {
        return Err(ListenError::Remote { address });
    }
    TcpListener::bind(address).await.map_err(|source| ListenError::Failed { address, source })
}

/// What the paths lead to.
fn router<H: mcp::Answering>(handle: &Handle, mcp: mcp::Door<H>, rpc: rpc::Door, gate: Arc<Gate>) -> Router {
    let mcp = any(move |request: axum::extract::Request| {
        let mcp = mcp.clone();
        async move { mcp.handle(request).await }
    });
    let rpc = any(move |request: axum::extract::Request| {
        let rpc = rpc.clone();
        async move { rpc.handle(request).await }
    });
    Router::new()
        .route(gate::MCP, mcp)
        .route(gate::RPC, rpc)
        .route(gate::OPEN[0], get(async || "ok\n"))
        .route(gate::OPEN[1], get(ready))
        .route("/metrics", get(metrics))
        .with_state(handle.clone())
        .layer(from_fn_with_state(gate, gate::pass))
}

/// Whether calls can be answered now.
async fn ready(State(handle): State<Handle>) -> Response {
    let (status, text) = match handle.call("get_status", json!({}), &Caller::default()).await {
        Ok(_) => (StatusCode::OK, "ready"),
        Err(error) => {
            tracing::warn!(error = %error.message(), "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the board cannot be used; the server's log says why")
        }
    };
    (status, axum::Json(json!({"status": text}))).into_response()
}

/// For Prometheus.
async fn metrics(State(handle): State<Handle>) -> Response {
    match handle.metrics().await {
        Ok(text) => {
            ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.message()).into_response(),
    }
}

/// Answers on `listener` until `interruption`, then for a few seconds more.
///
/// # Errors
/// When two operations have one name.
pub async fn serve<H: mcp::Answering>(
    listener: TcpListener,
    handle: Handle,
    server: H,
    gate: Gate,
    interruption: impl Future<Output = ()>,
) -> Result<(), RegisterMethodError> {
    let stop = CancellationToken::new();
    let mcp = mcp::Door::new(server, &gate.admission.hosts, &gate.admission.origins, stop.clone());
    let (rpc, rpc_stop) = rpc::Door::new(handle.clone())?;
    let gate = Arc::new(gate);
    let refreshing = tokio::spawn(refresh(Arc::clone(&gate)));
    let router = router(&handle, mcp, rpc, gate);
    let (connections, closing) = (TaskTracker::new(), CancellationToken::new());
    let places = Arc::new(Semaphore::new(CONNECTIONS.max));
    let mut interruption = pin!(interruption);
    loop {
        let accepted = select! {
            accepted = listener.accept() => accepted,
            () = &mut interruption => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!(limit = CONNECTIONS.max, "too many connections; a new one was closed");
            continue;
        };
        let (router, closing) = (router.clone(), closing.clone());
        connections.spawn(async move {
            if let Err(error) = converse(stream, router, closing).await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    refreshing.abort();
    drop((listener, router));
    handle.stop_waiting();
    closing.cancel();
    connections.close();
    drop(timeout(ANSWER_GRACE, connections.wait()).await);
    stop.cancel();
    // An error says that it has stopped.
    let _ = rpc_stop.stop();
    if timeout(CLOSE_GRACE, async { tokio::join!(connections.wait(), rpc_stop.stopped()) }).await.is_err() {
        tracing::warn!("some clients did not close their connections");
    }
    Ok(())
}

/// What goes on without passing the gate again ends soon after its token.
async fn refresh(gate: Arc<Gate>) {
    loop {
        sleep(REFRESH).await;
        if let Some(keys) = &gate.keys {
            keys.refresh();
        }
    }
}

/// Answers one connection's requests, until it ends or is asked to.
async fn converse(
    stream: TcpStream,
    router: Router,
    closing: CancellationToken,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    // Without it the kernel holds a reply's last segment back until the one before is acknowledged: 40 ms.
    stream.set_nodelay(true)?;
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_PATIENCE));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE);
    let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router));
    let mut connection = pin!(connection.with_upgrades());
    select! {
        ended = &mut connection => return Ok(ended?),
        () = closing.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    Ok(connection.await?)
}
