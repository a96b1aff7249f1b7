//! JSON-RPC 2.0: every operation is a method of the same name, over HTTP and WebSocket. A WebSocket
//! client can also subscribe to events.

mod certificate;
pub mod client;
pub mod discover;
mod events;
mod masked;
mod post;
mod socket;
mod subscriptions;
mod turned;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::ALLOW;
use axum::response::{IntoResponse, Response};
use jsonrpsee::RpcModule;
use jsonrpsee::server::ws::is_upgrade_request;
use jsonrpsee::server::{Methods, RegisterMethodError, ServerHandle, StopHandle, stop_channel};
use jsonrpsee::types::error::{INVALID_PARAMS_CODE, METHOD_NOT_FOUND_CODE};
use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde_json::{Map, Value};
use tokio_util::task::TaskTracker;

use crate::ops;
use crate::participant::{CallError, Caller, Handle};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::strict;

/// Error codes beyond JSON-RPC's own. Programs should read `error.data.code`.
pub const REFUSED: i32 = -32_000;
pub const FAILED: i32 = -32_001;

const DISCOVER: &str = "rpc.discover";
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
    /// The methods of subscriptions.
    methods: Methods,
    look: Look,
    stopped: StopHandle,
    /// The calls in progress on its WebSockets.
    pub calls: TaskTracker,
}

impl Door {
    /// Also returns what ends its WebSockets. `look` is called before each message on one, since
    /// they pass no gate; it cancels callers whose tokens are no longer good.
    ///
    /// # Errors
    /// If two operations have the same name.
    pub fn new(handle: Handle, look: Look) -> Result<(Self, ServerHandle), RegisterMethodError> {
        let (stopped, stop) = stop_channel();
        let mut module = RpcModule::new(handle.clone());
        events::register(&mut module)?;
        let document = Arc::new(discover::document());
        Ok((
            Self {
                handle,
                document,
                methods: module.into(),
                look,
                stopped,
                calls: TaskTracker::new(),
            },
            stop,
        ))
    }

    pub async fn handle(&self, request: Request) -> Response {
        let extensions = request.extensions();
        if let Some(Checked(body)) = extensions.get().cloned() {
            let caller = extensions.get::<Caller>().cloned().unwrap_or_default();
            return post::answer(self, &body, &caller).await;
        }
        if is_upgrade_request(&request) {
            return socket::open(self, request);
        }
        let why = "calls are sent by POST, as Content-Type: application/json, or over a WebSocket";
        (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")], why).into_response()
    }
}

/// The parameters by name. Messages on a WebSocket have passed no gate, so they are checked here.
fn arguments(operation: &'static str, params: &Params) -> Result<Value, Refusal> {
    let text = params.as_str().unwrap_or("{}");
    strict::check(text.as_bytes()).map_err(|error| bad_arguments(operation, error.to_string()))?;
    read_arguments(operation, params)
}

fn read_arguments(operation: &'static str, params: &Params) -> Result<Value, Refusal> {
    let fields: Result<Map<String, Value>, _> =
        serde_json::from_str(params.as_str().unwrap_or("{}"));
    fields.map(Value::Object).map_err(|_| {
        bad_arguments(operation, "params must be an object with the arguments by name".to_owned())
    })
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
        CallError::Refused(Refusal::BadArguments { .. } | Refusal::BadArgument { .. }) => {
            INVALID_PARAMS_CODE
        }
        CallError::Refused(_) => REFUSED,
        CallError::Failed(_) | CallError::Gone => FAILED,
    };
    ErrorObjectOwned::owned(code, error.message(), Some(error.data()))
}
