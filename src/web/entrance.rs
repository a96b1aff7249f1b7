//! What all pages have in common at the door: which posts are a page's own, and the headers that
//! keep a browser from doing for a page what it should not.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;

/// Says which page a request comes from; no script can set it.
const FETCH_SITE: &str = "sec-fetch-site";
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Whether a request was sent by a page of this origin.
pub(super) fn is_own(headers: &HeaderMap) -> bool {
    let one = |name: &str| {
        let mut given = headers.get_all(name).iter();
        match (given.next(), given.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    };
    let (Some(origin), Some(host)) = (one(ORIGIN.as_str()), one(HOST.as_str())) else {
        return false;
    };
    let is_of_host = ["http://", "https://"].iter().any(|scheme| {
        origin.strip_prefix(scheme).is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    });
    let is_same = if headers.contains_key(FETCH_SITE) {
        one(FETCH_SITE) == Some("same-origin")
    } else {
        // Browsers leave it out where others could read along: at a plain http address of another
        // machine.
        !is_near(host) && !origin.starts_with("https://")
    };
    is_of_host && is_same
}

/// Whether a browser takes the host for this machine.
fn is_near(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return true };
    let name = authority.host().trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name == "[::1]"
        || name.starts_with("127.")
}

/// The response with what a browser needs to know of all pages.
pub(super) fn dressed(mut response: Response, nonce: &str) -> Response {
    let policy = format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
         require-trusted-types-for 'script'; trusted-types htmx"
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    let fixed = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With the first alone, browsers would send `Origin: null` with a form. The second tells
        // other sites as little.
        (REFERRER_POLICY, "no-referrer, same-origin"),
        (X_FRAME_OPTIONS, "DENY"),
        (RESOURCE_POLICY, "same-origin"),
        (OPENER_POLICY, "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(pairs: &[(&'static str, &'static str)]) -> bool {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        is_own(&pairs.collect())
    }

    #[test]
    fn posts_of_a_page_are_known_by_origin_and_site() {
        let (host, origin) =
            (("host", "app.localhost:8425"), ("origin", "http://app.localhost:8425"));
        let site = ("sec-fetch-site", "same-origin");
        assert!(own(&[host, origin, site]));
        assert!(!own(&[host, origin]), "no browser leaves it out here");
        assert!(!own(&[host, site]));
        for other in ["same-site", "cross-site", "none"] {
            assert!(!own(&[host, origin, ("sec-fetch-site", other)]), "{other}");
        }
        for foreign in [
            "null",
            "http://app.localhost:9000",
            "http://localhost:8425",
            "http://app.localhost:8425.evil.example",
            "ftp://app.localhost:8425",
            "app.localhost:8425",
        ] {
            assert!(!own(&[host, ("origin", foreign), site]), "{foreign}");
        }
    }

    #[test]
    fn at_another_machine_the_origin_alone_tells() {
        let (host, origin) =
            (("host", "board.example:8425"), ("origin", "http://board.example:8425"));
        assert!(own(&[host, origin]));
        assert!(!own(&[host, origin, ("sec-fetch-site", "same-site")]));
        let (host, origin) = (("host", "board.example"), ("origin", "https://board.example"));
        assert!(own(&[host, origin, ("sec-fetch-site", "same-origin")]));
        assert!(!own(&[host, origin]), "over https it is always sent");
    }
}
