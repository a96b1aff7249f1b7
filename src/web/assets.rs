//! The files of the pages, which are in the program: style sheet, scripts, icon.
//!
//! Those in `assets/vendor` are of the npm package `htmx.org` 4.0.1, under the licence beside them
//! (0BSD).

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::state::digest::sha256;

pub(super) const PREFIX: &str = "/assets/";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The scripts of a page. They are one file, because htmx looks at the page as soon as it can, and
/// what guards it (hx-csp) has to be there by then.
pub(super) const SCRIPTS: [&str; 1] = ["page.js"];
const PAGE_SCRIPT: &str = concat!(
    include_str!("assets/vendor/htmx.min.js"),
    ";\n",
    include_str!("assets/vendor/hx-csp.min.js"),
    ";\n",
    include_str!("assets/vendor/hx-sse.min.js"),
    ";\n",
    include_str!("assets/live.js"),
    include_str!("assets/board.js"),
);
pub(super) const STYLE: &str = "board.css";
pub(super) const LOGIN_SCRIPT: &str = "login.js";
pub(super) const ICON: &str = "icon.svg";

struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const fn asset(name: &'static str, kind: &'static str, bytes: &'static [u8]) -> Asset {
    Asset { name, kind, bytes }
}

const ALL: [Asset; 5] = [
    asset(SCRIPTS[0], SCRIPT, PAGE_SCRIPT.as_bytes()),
    asset(STYLE, "text/css; charset=utf-8", include_bytes!("assets/board.css")),
    asset(LOGIN_SCRIPT, SCRIPT, include_bytes!("assets/login.js")),
    asset(ICON, "image/svg+xml", include_bytes!("assets/icon.svg")),
    asset(
        "htmx-LICENSE",
        "text/plain; charset=utf-8",
        include_bytes!("assets/vendor/htmx-LICENSE"),
    ),
];

/// The address of an asset.
pub(super) fn href(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The asset of this name. Browsers ask whether it has changed each time: a newer server may run on
/// the same port a moment later.
pub(super) fn answer(name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ALL.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = format!("\"{}\"", &sha256(asset.bytes)[..16]);
    let is_known =
        headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let (status, body) = if is_known {
        (StatusCode::NOT_MODIFIED, Body::empty())
    } else {
        (StatusCode::OK, Body::from(asset.bytes))
    };
    let headers = [
        (CONTENT_TYPE, asset.kind.to_owned()),
        (ETAG, tag),
        (CACHE_CONTROL, "no-cache".to_owned()),
    ];
    (status, headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_vendored_is_as_it_was_published() {
        // `sha256sum` of the files in the package.
        let vendored: [(&[u8], &str); 4] = [
            (
                include_bytes!("assets/vendor/htmx.min.js"),
                "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
            ),
            (
                include_bytes!("assets/vendor/hx-csp.min.js"),
                "a7e1e6711ae6c3e50ad300fba7936cbe8d07599cdae313414a179ddd6b26e143",
            ),
            (
                include_bytes!("assets/vendor/hx-sse.min.js"),
                "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
            ),
            (
                include_bytes!("assets/vendor/htmx-LICENSE"),
                "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
            ),
        ];
        for (bytes, hash) in vendored {
            assert_eq!(sha256(bytes), hash);
        }
    }

    #[test]
    fn first_load_is_small() {
        let all: usize = ALL.iter().map(|asset| asset.bytes.len()).sum();
        assert!(all < 100_000, "{all} bytes, and the page itself comes to it");
    }
}
