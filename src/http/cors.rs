//! What browsers ask before pages of other sites may call and read answers (CORS, a part of the
//! Fetch standard): granted to the origins that `--allow-origin` lists, and to no others.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;

use crate::mcp::SESSION;

/// Headers that pages may send. All others of MCP's own are allowed, too, when they are asked for.
const HEADERS: &str = "authorization, content-type, last-event-id, mcp-session-id, \
                       mcp-protocol-version, mcp-method, mcp-name";
const OF_MCP: &str = "mcp-";
const METHODS: &str = "GET, POST, DELETE";
/// Seconds for which a browser need not ask again.
const MAX_AGE: &str = "3600";

/// The origins of `--allow-origin`.
#[derive(Clone, Debug)]
pub(super) struct Pages(Vec<String>);

impl Pages {
    /// Origins in lower case.
    pub(super) fn new(origins: Vec<String>) -> Self {
        Self(origins)
    }

    /// The origin of a request, if it is one of these.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut given = headers.get_all(ORIGIN).iter();
        let (Some(origin), None) = (given.next(), given.next()) else { return None };
        let name = origin.to_str().ok()?.to_ascii_lowercase();
        self.0.contains(&name).then(|| origin.clone())
    }

    /// Lets the page of this origin read a response, whatever its status.
    pub(super) fn grant(&self, origin: Option<HeaderValue>, response: &mut Response) {
        let headers = response.headers_mut();
        if !self.0.is_empty() {
            headers.append(VARY, HeaderValue::from_name(ORIGIN));
        }
        if let Some(origin) = origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(SESSION));
        }
    }
}

/// Whether a browser asks if a request may be sent. It shows no token then.
pub(super) fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight from an origin that is listed.
pub(super) fn preflight(asked: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    let allowed = HeaderValue::from_str(&allowed(asked))
        .unwrap_or_else(|_| HeaderValue::from_static(HEADERS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    response
}

fn allowed(asked: &HeaderMap) -> String {
    let mut allowed = HEADERS.to_owned();
    let asked = asked
        .get_all(ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok());
    for name in asked
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok())
    {
        if name.as_str().starts_with(OF_MCP)
            && !allowed.split(", ").any(|known| known == name.as_str())
        {
            allowed.push_str(", ");
            allowed.push_str(name.as_str());
        }
    }
    allowed
}
