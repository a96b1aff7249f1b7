//! Runs as resources: `GET /runs`, `GET /runs/{id}`, `POST /runs`, for clients that speak neither
//! MCP nor JSON-RPC. Each calls an operation, with arguments from the query or the body and its
//! reply as the body.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::participant::{CallError, Caller, Handle};
use crate::rpc::{Checked, bad_arguments};
use crate::state::refusal::Refusal;

pub(super) const PATH: &str = "/runs";

/// The query of a request for runs, which the gate has removed from the URL.
#[derive(Clone)]
pub(super) struct Query(pub String);

pub(super) fn router() -> Router<Handle> {
    Router::new().route(PATH, get(list).post(create)).route("/runs/{id}", get(one))
}

/// Whether the query of a request for this path is read.
pub(super) fn has_query(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn list(State(handle): State<Handle>, request: Request) -> Response {
    let (arguments, caller) = (queried(&request), caller(&request));
    drop(request);
    answer(handle, "list_runs", Value::Object(arguments), caller, StatusCode::OK).await
}

async fn one(State(handle): State<Handle>, Path(id): Path<String>, request: Request) -> Response {
    let (mut arguments, caller) = (queried(&request), caller(&request));
    drop(request);
    arguments.insert("run_id".to_owned(), Value::from(id));
    answer(handle, "get_run", Value::Object(arguments), caller, StatusCode::OK).await
}

async fn create(State(handle): State<Handle>, request: Request) -> Response {
    let body =
        request.extensions().get::<Checked>().map(|Checked(body)| body.clone()).unwrap_or_default();
    let (arguments, caller) = (serde_json::from_slice(&body).unwrap_or_default(), caller(&request));
    drop(request);
    if !matches!(arguments, Value::Object(_) | Value::Null) {
        let detail = "the body must be an object with the arguments by name".to_owned();
        return refused(&CallError::Refused(bad_arguments("create_run", detail)));
    }
    answer(handle, "create_run", arguments, caller, StatusCode::CREATED).await
}

fn caller(request: &Request) -> Caller {
    request.extensions().get().cloned().unwrap_or_default()
}

async fn answer(
    handle: Handle,
    operation: &'static str,
    arguments: Value,
    caller: Caller,
    success: StatusCode,
) -> Response {
    match handle.call(operation, arguments, &caller).await {
        Ok(reply) => (success, axum::Json(reply)).into_response(),
        Err(error) => refused(&error),
    }
}

fn refused(error: &CallError) -> Response {
    let mut response =
        (status_of(error), axum::Json(json!({"error": error.data()}))).into_response();
    if let CallError::Refused(Refusal::RateLimited { retry_after, .. }) = error {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*retry_after));
    }
    response
}

fn status_of(error: &CallError) -> StatusCode {
    match error {
        CallError::Refused(refusal) => match refusal {
            Refusal::UnknownRun { .. } | Refusal::UnknownSession { .. } => StatusCode::NOT_FOUND,
            Refusal::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Refusal::TokenRole { .. } | Refusal::TokenAgent { .. } => StatusCode::FORBIDDEN,
            Refusal::SessionExists { .. }
            | Refusal::SessionBusy { .. }
            | Refusal::KeyReused { .. } => StatusCode::CONFLICT,
            _ => StatusCode::BAD_REQUEST,
        },
        CallError::UnknownOperation(_) => StatusCode::NOT_FOUND,
        CallError::Failed(_) | CallError::Gone => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The query as arguments, with numbers where the operations expect them. The operations refuse
/// what they do not accept.
fn queried(request: &Request) -> Map<String, Value> {
    let Some(Query(query)) = request.extensions().get() else { return Map::new() };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let decoded =
        |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let arguments = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name), decoded(value));
        let number =
            value.parse::<u64>().ok().filter(|_| matches!(name.as_str(), "limit" | "wait_seconds"));
        let value = number.map_or_else(|| Value::from(value), Value::from);
        (name, value)
    });
    arguments.collect()
}
