//! Bodies of requests and responses: what they hold is foreign, and of no use to whoever reads a
//! board later, so only their size and hash are kept.

use serde_json::Value;

use super::telling::words;
use crate::state::digest::sha256;

/// Beginning of what stands for a body.
const MARK: &str = "[body: ";

/// Names of fields that hold a body, as words.
const BODIES: [&str; 14] = [
    "request body",
    "response body",
    "raw request",
    "raw response",
    "raw body",
    "request payload",
    "response payload",
    "request raw",
    "response raw",
    "raw request body",
    "raw response body",
    "http body",
    "request content",
    "response content",
];
/// Names of fields that hold what was sent or received, with a body in it.
const EXCHANGES: [&str; 6] =
    ["request", "response", "http request", "http response", "last request", "last response"];
/// Names of the body in one of those.
const INNER: [&str; 5] = ["body", "payload", "content", "raw", "text"];

pub(super) fn is_body(name: &str, is_in_exchange: bool) -> bool {
    let words = words(name).join(" ");
    BODIES.contains(&words.as_str()) || is_in_exchange && INNER.contains(&words.as_str())
}

pub(super) fn is_exchange(name: &str) -> bool {
    EXCHANGES.contains(&words(name).join(" ").as_str())
}

/// What stands for `body`; `None` if it stands for one already, or there is none.
pub(super) fn replaced(body: &str) -> Option<(String, usize)> {
    let is_mark = body.starts_with(MARK) && body.ends_with(']');
    (!body.is_empty() && !is_mark)
        .then(|| (format!("{MARK}{} bytes, sha256 {}]", body.len(), sha256(body.as_bytes())), 1))
}

/// Replaces a body that is JSON itself.
pub(super) fn replace(body: &mut Value) -> usize {
    let Some((mark, count)) = replaced(&body.to_string()) else { return 0 };
    *body = Value::from(mark);
    count
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_bodies_only_size_and_hash_are_kept() {
        let mut given = json!({"request_body": "name=ada", "rawResponse": {"a": [1]}, "status": 200,
            "response": {"status": 200, "body": "hello", "headers": {"x": "y"}}, "body": "of a letter"});
        assert_eq!(super::super::value(&mut given), 3);
        assert_eq!(
            given["request_body"],
            format!("[body: 8 bytes, sha256 {}]", sha256(b"name=ada"))
        );
        assert_eq!(
            given["rawResponse"],
            format!("[body: 9 bytes, sha256 {}]", sha256(br#"{"a":[1]}"#))
        );
        assert_eq!(
            given["response"]["body"],
            format!("[body: 5 bytes, sha256 {}]", sha256(b"hello"))
        );
        assert_eq!(
            (&given["body"], &given["response"]["headers"]["x"]),
            (&json!("of a letter"), &json!("y"))
        );
        let once = given.clone();
        assert_eq!((super::super::value(&mut given), given), (0, once));
    }

    #[test]
    fn of_a_document_too() {
        let (clean, count) =
            super::super::document(r#"{"request_body" : {"a": 1}, "n": 1.50}"#).unwrap();
        let hash = sha256(br#"{"a": 1}"#);
        assert_eq!(
            (clean, count),
            (format!(r#"{{"request_body" : "[body: 8 bytes, sha256 {hash}]", "n": 1.50}}"#), 1)
        );
    }
}
