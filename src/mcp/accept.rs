//! What a client accepts, by the rules of RFC 9110: `*/*` and `application/*` include a media type,
//! the most specific range decides, a weight of 0 excludes, and without a header everything is
//! accepted. rmcp looks for the two names only.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// Both media types in which MCP answers.
pub(super) const BOTH: &str = "application/json, text/event-stream";

/// Which kinds of answers the client accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Accepted {
    pub json: bool,
    pub stream: bool,
}

pub(super) fn of(headers: &HeaderMap) -> Accepted {
    let values = headers.get_all(ACCEPT).iter().map(|value| value.to_str().unwrap_or_default());
    let header = values.collect::<Vec<_>>().join(",");
    let ranges: Vec<_> = split(&header, ',').filter_map(range).collect();
    let is_accepted = |kind: &str, subtype: &str| {
        let rank = |(name, _): &&(&str, bool)| rank(name, kind, subtype);
        let best = ranges.iter().filter_map(|range| rank(&range)).max();
        let decide = || ranges.iter().any(|range| range.1 && rank(&range) == best);
        ranges.is_empty() || best.is_some() && decide()
    };
    Accepted {
        json: is_accepted("application", "json"),
        stream: is_accepted("text", "event-stream"),
    }
}

/// A media range without its parameters, and whether its weight is more than 0. A weight that is
/// not a number counts as none.
fn range(text: &str) -> Option<(&str, bool)> {
    let mut parts = split(text, ';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let weight = parts
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(key, _)| key.trim().eq_ignore_ascii_case("q"));
    let is_zero = weight.is_some_and(|(_, weight)| weight.trim().parse() == Ok(0.0_f32));
    Some((name, !is_zero))
}

/// How specific a range is that includes the media type.
fn rank(range: &str, kind: &str, subtype: &str) -> Option<u8> {
    let (range_kind, range_subtype) = range.split_once('/')?;
    match (range_kind.eq_ignore_ascii_case(kind), range_subtype) {
        (true, other) if other.eq_ignore_ascii_case(subtype) => Some(2),
        (true, "*") => Some(1),
        _ if range == "*/*" => Some(0),
        _ => None,
    }
}

/// Splits where a character stands outside quotes.
fn split(text: &str, at: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c| {
        let is_literal = std::mem::take(&mut is_escaped);
        is_escaped = is_quoted && !is_literal && c == '\\';
        is_quoted ^= c == '"' && !is_literal;
        c == at && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_weights_and_what_is_left_out() {
        let accepted = |header: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in header {
                headers.append(ACCEPT, value.parse().unwrap());
            }
            let Accepted { json, stream } = of(&headers);
            (json, stream)
        };
        assert_eq!(accepted(&[]), (true, true));
        for all in [
            "",
            "*/*",
            "*/*;q=0.1",
            "text/html, */*",
            BOTH,
            "Application/JSON,TEXT/Event-Stream",
            "application/*, text/*",
            "application/json;profile=\"a,b;q=0\", text/event-stream; q=1",
            "*/*;q=x",
            "*/*;q=0, application/*, text/event-stream",
        ] {
            assert_eq!(accepted(&[all]), (true, true), "{all}");
        }
        for json in [
            "application/json",
            "application/*",
            "application/json;q=0.001",
            "*/*, text/event-stream;q=0",
            "*/*, text/*;q=0.000",
            "text/event-stream;q=0, application/json",
        ] {
            assert_eq!(accepted(&[json]), (true, false), "{json}");
        }
        assert_eq!(accepted(&["text/event-stream"]), (false, true));
        assert_eq!(accepted(&["application/json", "text/event-stream"]), (true, true));
        for none in ["text/html", "application/xml", "*/*;q=0", "application", "*"] {
            assert_eq!(accepted(&[none]), (false, false), "{none}");
        }
    }
}
