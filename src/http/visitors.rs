//! Requests of browsers for pages: who asks is known by a cookie, which opens nothing else.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;

use super::gate::{self, Gate, OPEN, Turned};
use super::tokens::Verdict;
use crate::mcp::Watched;
use crate::participant::Caller;
use crate::web;

/// Whether a page answers the request. A request with a token is a program's, whatever it accepts.
pub(super) fn is_for_pages(request: &Request) -> bool {
    web::Door::is_for_pages(request)
        && !OPEN.contains(&request.uri().path())
        && !request.headers().contains_key(AUTHORIZATION)
}

pub(super) async fn pass(gate: &Gate, door: &Arc<web::Door>, request: Request) -> Response {
    match admit(gate, door, request).await {
        Ok((parts, body, caller)) => {
            let gone =
                caller.as_ref().map_or_else(CancellationToken::new, |caller| caller.gone.clone());
            let reader = gone.clone().drop_guard();
            let response = door.answer(&parts, &body, caller).await;
            response.map(|body| Body::new(Watched::new(body, gone, reader)))
        }
        Err(turned) => turned.into_response(),
    }
}

async fn admit(
    gate: &Gate,
    door: &Arc<web::Door>,
    request: Request,
) -> Result<(Parts, Bytes, Option<Caller>), Turned> {
    gate.admission.check_host(&request)?;
    let judged = door.visitor(request.headers()).zip(gate.keys.as_ref());
    let caller = match judged.map(|(token, keys)| keys.judge_hash(&token)) {
        Some(Verdict::Owner { over }) => Some(gate.caller(&request, None, &over)?),
        Some(Verdict::Guest { principal, over }) => {
            Some(gate.caller(&request, Some(principal), &over)?)
        }
        Some(Verdict::Expired { .. } | Verdict::Stranger) | None => None,
    };
    match *request.method() {
        Method::GET | Method::HEAD => Ok((request.into_parts().0, Bytes::new(), caller)),
        Method::POST => {
            let (parts, body) = gate::read(request).await?;
            Ok((parts, body, caller))
        }
        _ => {
            let why = "pages are read with GET, and their forms are sent with POST";
            Err(Turned::away(StatusCode::METHOD_NOT_ALLOWED, why))
        }
    }
}
