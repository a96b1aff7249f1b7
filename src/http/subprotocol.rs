//! The token of a page that opens a WebSocket. Browsers send no header of a page's own with it, but
//! they send the names of subprotocols: the page offers `callboard` and `callboard.bearer.TOKEN`,
//! and the server chooses `callboard`. The second name is removed here, so that it is repeated
//! nowhere.

use axum::extract::Request;
use axum::http::header::{SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;

use crate::rpc::client::RPC;

/// The name that the server chooses.
pub(super) const NAME: &str = "callboard";
const BEARER: &str = "callboard.bearer.";

/// What a client offers.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Offered {
    /// Whether [`NAME`] is among it. Without it a browser would close the connection that it has
    /// just opened.
    pub is_named: bool,
    /// The text behind [`BEARER`], once for each time.
    pub tokens: Vec<String>,
}

/// Takes the offer out of a request, if it opens a WebSocket.
pub(super) fn take(request: &mut Request) -> Offered {
    if request.uri().path() != RPC || !request.headers().contains_key(UPGRADE) {
        return Offered::default();
    }
    let offered = read(request.headers());
    request.headers_mut().remove(SEC_WEBSOCKET_PROTOCOL);
    offered
}

fn read(headers: &HeaderMap) -> Offered {
    let values =
        headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let mut offered = Offered::default();
    for name in values.flat_map(|names| names.split(',')).map(str::trim) {
        offered.is_named |= name == NAME;
        offered.tokens.extend(name.strip_prefix(BEARER).map(str::to_owned));
    }
    offered
}

/// Tells a client that has offered it which name was chosen.
pub(super) fn choose(response: &mut Response) {
    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(NAME));
}
