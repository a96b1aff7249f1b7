//! JSON-RPC 2.0: every operation is a method of the same name, over HTTP and WebSocket. A WebSocket client can also
//! subscribe to events.

mod certificate;
pub mod client;
pub mod discover;
mod events;
mod notifications;
mod post;
mod turned;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jsonrpsee::core::middleware::RpcServiceBuilder;
use jsonrpsee::server::{
    BatchRequestConfig, Methods, PingConfig, RegisterMethodError, Server, ServerConfig, ServerHandle, StopHandle,
    TowerServiceBuilder, stop_channel,
};
use jsonrpsee::types::error::{INVALID_PARAMS_CODE, METHOD_NOT_FOUND_CODE};
use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, RpcModule};
use serde_json::{Map, Value};
use tower::Service;
use tower::layer::util::{Identity, Stack};

use self::notifications::Messages;
use crate::ops;
use crate::participant::{CallError, Caller, Handle};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::strict;

/// Error codes beyond JSON-RPC's own. Programs should read `error.data.code`.
pub const REFUSED: i32 = -32_000;
pub const FAILED: i32 = -32_001;

const DISCOVER: &str = "rpc.discover";
/// Most messages that wait for the reader of one WebSocket.
const BUFFERED: u32 = 64;
/// Interval of pings on a WebSocket, and the time without an answer after which it is closed.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_PATIENCE: Duration = Duration::from_secs(40);

/// Most bytes in the reply to one call. A page of the largest tasks is some 40 MiB.
const LARGEST_REPLY: u32 = limit::REPLIES.max as u32;

/// Checks which tokens are still good.
pub type Look = Arc<dyn Fn() + Send + Sync>;

/// A request's body, checked to have no duplicate keys and no excessive nesting.
#[derive(Clone)]
pub struct Checked(pub Bytes);

/// Handler for the requests under one path.
#[derive(Clone)]
pub struct Door {
    handle: Handle,
    /// The answer to `rpc.discover`.
    document: Arc<Value>,
    server: TowerServiceBuilder<Stack<Messages, Identity>, Identity>,
    methods: Methods,
    stopped: StopHandle,
}

impl Door {
    /// Also returns what ends its WebSockets. `look` is called before each message on one, since they pass no gate; it
    /// cancels callers whose tokens are no longer good.
    ///
    /// # Errors
    /// If two operations have the same name.
    pub fn new(handle: Handle, look: Look) -> Result<(Self, ServerHandle), RegisterMethodError> {
        let connections = u32::try_from(limit::CONNECTIONS.max).unwrap_or(u32::MAX);
        let body = u32::try_from(limit::BODY.max).unwrap_or(u32::MAX);
        let config = ServerConfig::builder()
            .max_connections(connections)
            .max_request_body_size(body)
            .max_response_body_size(LARGEST_REPLY)
            .max_subscriptions_per_connection(limit::SUBSCRIPTIONS.max as u32)
            .set_batch_request_config(BatchRequestConfig::Limit(limit::RPC_BATCH.max as u32))
            .set_message_buffer_capacity(BUFFERED)
            .enable_ws_ping(
                PingConfig::new().ping_interval(PING_INTERVAL).inactive_limit(PING_PATIENCE).max_failures(1),
            );
        let (stopped, stop) = stop_channel();
        let heeding = RpcServiceBuilder::new().layer(Messages { handle: handle.clone(), look });
        let server = Server::builder().set_config(config.build()).set_rpc_middleware(heeding).to_service_builder();
        let document = Arc::new(discover::document());
        let methods = methods(handle.clone(), &document)?;
        Ok((Self { handle, document, server, methods, stopped }, stop))
    }

    pub async fn handle(&self, request: Request) -> Response {
        let extensions = request.extensions();
        if let Some(Checked(body)) = extensions.get().cloned() {
            let caller = extensions.get::<Caller>().cloned().unwrap_or_default();
            return post::answer(self, &body, &caller).await;
        }
        // One service per request, because jsonrpsee distinguishes connections by it.
        let mut server = self.server.clone().build(self.methods.clone(), self.stopped.clone());
        match server.call(request).await {
            Ok(response) => response.map(Body::new),
            Err(error) => {
                tracing::warn!(%error, "a JSON-RPC request failed");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// The methods for WebSockets.
fn methods(handle: Handle, document: &Arc<Value>) -> Result<Methods, RegisterMethodError> {
    let mut module = RpcModule::new(handle);
    for entry in ops::all() {
        module.register_async_method(entry.name, move |params, handle, extensions| async move {
            call(entry.name, &params, &handle, &extensions).await.map_err(|error| error_object(&error))
        })?;
    }
    events::register(&mut module)?;
    let document = Arc::clone(document);
    module.register_method(DISCOVER, move |_, _, _| document.as_ref().clone())?;
    Ok(module.into())
}

async fn call(
    operation: &'static str,
    params: &Params<'_>,
    handle: &Handle,
    extensions: &Extensions,
) -> Result<Value, CallError> {
    let arguments = arguments(operation, params)?;
    let caller = extensions.get::<Caller>().cloned().unwrap_or_default();
    handle.call(operation, arguments, &caller).await
}

/// The parameters by name. Messages on a WebSocket have passed no gate, so they are checked here.
fn arguments(operation: &'static str, params: &Params) -> Result<Value, Refusal> {
    let text = params.as_str().unwrap_or("{}");
    strict::check(text.as_bytes()).map_err(|error| bad_arguments(operation, error.to_string()))?;
    read_arguments(operation, params)
}

fn read_arguments(operation: &'static str, params: &Params) -> Result<Value, Refusal> {
    let fields: Result<Map<String, Value>, _> = serde_json::from_str(params.as_str().unwrap_or("{}"));
    fields
        .map(Value::Object)
        .map_err(|_| bad_arguments(operation, "params must be an object with the arguments by name".to_owned()))
}

pub fn bad_arguments(operation: &'static str, detail: String) -> Refusal {
    let expected = match operation {
        events::SUBSCRIBE => events::ARGUMENTS.to_owned(),
        operation => ops::find(operation).map(ops::Entry::arguments).unwrap_or_default(),
    };
    Refusal::BadArguments { operation, argument: None, detail, expected }
}

/// The answer to a call in a batch if the replies before it have reached the limit in bytes.
fn refused_as_full(replies: usize) -> Option<ErrorObjectOwned> {
    limit::REPLIES.check(replies).err().map(|refusal| error_object(&refusal.into()))
}

fn error_object(error: &CallError) -> ErrorObjectOwned {
    let code = match error {
        CallError::UnknownOperation(_) => METHOD_NOT_FOUND_CODE,
        CallError::Refused(Refusal::BadArguments { .. } | Refusal::BadArgument { .. }) => INVALID_PARAMS_CODE,
        CallError::Refused(_) => REFUSED,
        CallError::Failed(_) | CallError::Gone => FAILED,
    };
    ErrorObjectOwned::owned(code, error.message(), Some(error.data()))
}
