//! Cookies: of a header, each value that a machine made; of sessions, wherever they stand.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::value::{is_random, is_reference};
use super::{Finding, ceil, floor};

/// What stands before the cookies of a header, an option or an assignment.
const HEADER: &str = r#"(?i)(?:\b(?:set-)?cookies?["'\]]{0,2}\s{0,2}[:=,]\s{0,2}|--cookie[ =]|[ \t]-b[ \t]+)\\?["'`]?(?P<cookies>[\w.$%-]+=[^\n"'`\\]*)"#;
/// Names that servers give to the cookies of sessions.
const SESSION: &str = r#"(?i)\b(?P<cookies>(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|ASPSESSIONID\w*|connect\.sid|\w*_session|sessionid|session_token|auth_token|__(?:Secure|Host)-[\w.-]+|wordpress_logged_in_\w+|XSRF-TOKEN|cf_clearance)[=:][^\s;,"'`&\\]{16,})"#;

/// The patterns, each with texts of which one is in every match.
static PATTERNS: LazyLock<Vec<(AhoCorasick, Regex)>> = LazyLock::new(|| {
    let pattern = |signs: &[&str], pattern: &str| {
        let signs = AhoCorasick::builder().ascii_case_insensitive(true).build(signs).ok()?;
        Some((signs, Regex::new(pattern).ok()?))
    };
    let named = [
        "sessid",
        "sessionid",
        "connect.sid",
        "_session=",
        "_session:",
        "_session\"",
        "session_token",
        "auth_token",
        "__secure-",
        "__host-",
        "logged_in_",
        "xsrf-token",
        "cf_clearance",
    ];
    let all = [pattern(&["cookie", " -b", "\t-b"], HEADER), pattern(&named, SESSION)];
    all.into_iter().flatten().collect()
});

pub(super) fn findings(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (signs, pattern) in &*PATTERNS {
        let mut searched_to = 0;
        for sign in signs.find_iter(text) {
            if sign.start() >= searched_to {
                let line = line_around(text, sign.start(), searched_to);
                searched_to = line.end.max(sign.end());
                let cookies = pattern.captures_iter(&text[line.clone()]);
                let cookies = cookies.filter_map(|captures| captures.name("cookies"));
                cookies.for_each(|cookies| {
                    values(
                        text,
                        line.start + cookies.start()..line.start + cookies.end(),
                        &mut found,
                    )
                });
            }
        }
    }
    found
}

/// The line of a sign, as far as it matters.
fn line_around(text: &str, sign: usize, from: usize) -> Range<usize> {
    const BEFORE: usize = 60;
    const AFTER: usize = 8_000;
    let start = ceil(text, sign.saturating_sub(BEFORE)).max(from).min(sign);
    let start = text[start..sign].rfind('\n').map_or(start, |end| start + end + 1);
    let end = floor(text, sign + AFTER);
    start..text[sign..end].find('\n').map_or(end, |length| sign + length)
}

/// Finds the values among `cookies` that a machine made.
fn values(text: &str, cookies: Range<usize>, found: &mut Vec<Finding>) {
    let mut begin = cookies.start;
    for cookie in text[cookies].split_inclusive(';') {
        let cookie_end = begin + cookie.trim_end_matches([';', ' ']).len();
        let value = cookie.split_once(['=', ':']).map_or("", |(_, value)| value);
        let value = value.trim_end_matches([';', ' ']);
        begin += cookie.len();
        if is_random(value) && !is_reference(value) {
            found.push(Finding { place: cookie_end - value.len()..cookie_end, kind: "cookie" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_sessions_are_found_and_settings_stay() {
        assert_eq!(PATTERNS.len(), 2);
        let found = |text: &str| findings(text).len();
        assert_eq!(found("Cookie: theme=dark; sid=a1b2c3d4e5f6a7b8; lang=en"), 1);
        assert_eq!(found("Set-Cookie: id=Zx81kQp09TTw; Path=/; Max-Age=3600; HttpOnly"), 1);
        assert_eq!(found("JSESSIONID=9F8E7D6C5B4A39281706A5B4C3D2E1F0"), 1);
        assert_eq!(found("cookie: { secure: true, sameSite: 'lax' }"), 0);
        assert_eq!(found("git checkout -b feature/cookies-2"), 0);
    }
}
