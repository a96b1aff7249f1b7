//! Secrets in what agents write, replaced by `[redacted: kind]` before anything is decided or kept.
//!
//! A text is searched as it is meant (`view`: without the characters that no reader sees, with wide
//! and escaped signs as plain ones). In it, `issuer` finds the prefixes that issuers give their
//! secrets, `shape` other forms; `named` finds values after a name such as `api_key` in code, JSON,
//! YAML and environments, `table` those below one, `spoken` those after names of people's own,
//! `command` arguments of commands, `cookie` those of headers; `telling`, `value`, `letters` and
//! `plain` judge names, values and words. In objects the values of fields with such names are
//! masked, names are texts, too, and of bodies of requests (`body`) only size and hash are kept.
//! All take time linear in the text.

mod body;
mod command;
mod cookie;
mod document;
mod issuer;
mod letters;
mod named;
mod plain;
mod shape;
mod spoken;
mod table;
mod telling;
mod value;
mod view;

use std::ops::Range;

use serde_json::{Map, Number, Value};

pub use document::document;
use telling::Telling;
use view::View;

use crate::harmless;
use crate::state::digest::sha256;

/// Fewest bytes of a text that can hold a secret; shorter ones could not be told from words.
const SHORTEST: usize = 8;

/// Beginning of every mark.
pub const MARK: &str = "[redacted: ";

/// How often a text is searched. A secret that begins inside another one shows only when that is
/// gone; the bound keeps the time linear in texts made to hold endless chains of them.
const PASSES: usize = 8;

/// A secret found in a text.
struct Finding {
    place: Range<usize>,
    kind: &'static str,
}

/// Fields that name things by which they are found again: in them, only secrets with a telling form
/// are redacted, not what follows a telling name.
const NAMES: [&str; 11] = [
    "id",
    "task",
    "line",
    "task_id",
    "agent_id",
    "dependencies",
    "add_dependencies",
    "remove_dependencies",
    "branch",
    "commit",
    "hostname",
];

/// Field that tells calls apart.
const KEY: &str = "idempotency_key";

/// Fields whose content has fields of the caller's own, which name nothing on the board.
const FREE: [&str; 6] = ["metadata", "data", "settings", "prompts", "metrics", "persona_states"];

/// `text` without its secrets, and their number; `None` if it has none.
pub fn text(text: &str) -> Option<(String, usize)> {
    redacted(text, true)
}

/// A name that git or a client uses, made harmless and without what has a secret's form; `None` if
/// it needs no change.
pub fn name(name: &str) -> Option<String> {
    let harmless = harmless::text(name);
    let clean = redacted(harmless.as_deref().unwrap_or(name), false);
    clean.map(|(clean, _)| clean).or(harmless)
}

fn redacted(text: &str, by_name: bool) -> Option<(String, usize)> {
    let (mut clean, mut count) = redacted_once(text, by_name)?;
    for _ in 1..PASSES {
        let Some((cleaner, more)) = redacted_once(&clean, by_name) else { break };
        clean = cleaner;
        count += more;
    }
    Some((clean, count))
}

fn redacted_once(text: &str, by_name: bool) -> Option<(String, usize)> {
    if text.len() < SHORTEST {
        return None;
    }
    let view = View::of(text);
    let mut found = findings(view.as_ref().map_or(text, |view| &view.text), by_name);
    if let Some(view) = view {
        found.iter_mut().for_each(|finding| finding.place = view.original(&finding.place));
    }
    if found.is_empty() {
        return None;
    }
    found.sort_by_key(|finding| (finding.place.start, finding.place.end));
    let (mut clean, mut kept_to, mut count) = (String::with_capacity(text.len()), 0, 0);
    for finding in found {
        if finding.place.start >= kept_to {
            clean.push_str(&text[kept_to..finding.place.start]);
            clean.push_str(&mark(finding.kind));
            count += 1;
        }
        // A finding that reaches further than the one before is removed together with it.
        kept_to = kept_to.max(finding.place.end);
    }
    clean.push_str(&text[kept_to..]);
    Some((clean, count))
}

fn findings(text: &str, by_name: bool) -> Vec<Finding> {
    let mut found = found_in(text, by_name);
    // Behind an escaped line break, as in JSON within a string, a new word begins.
    if text.contains(r"\n") {
        found.extend(found_in(&text.replace(r"\n", r"\ "), by_name));
    }
    found
}

fn found_in(text: &str, by_name: bool) -> Vec<Finding> {
    let mut found = issuer::findings(text);
    found.extend(shape::findings(text));
    if by_name {
        found.extend(named::findings(text));
        found.extend(spoken::findings(text));
        found.extend(command::findings(text));
        found.extend(cookie::findings(text));
        found.extend(table::findings(text));
    }
    found
}

/// The boundary of a character at `at` or before it.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

/// The boundary of a character at `at` or behind it.
fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

fn mark(kind: &str) -> String {
    format!("{MARK}{kind}]")
}

/// `bytes` without their secrets, and their number; `None` if they have none. Bytes that are no
/// UTF-8 stay as they are, and may be part of a secret.
pub fn bytes(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut lifted = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match lowered(c) {
                // A private-use character of the text itself is lifted byte by byte.
                Some(_) => lifted.extend(c.encode_utf8(&mut [0; 4]).bytes().filter_map(lift)),
                None => lifted.push(c),
            }
        }
        lifted.extend(chunk.invalid().iter().copied().filter_map(lift));
    }
    let (clean, count) = text(&lifted)?;
    let mut kept = Vec::with_capacity(clean.len());
    for c in clean.chars() {
        match lowered(c) {
            Some(byte) => kept.push(byte),
            None => kept.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Some((kept, count))
}

/// The last private-use characters stand for bytes that are no text.
const LIFTED: u32 = 0x10_FF00;

/// Bytes to be lifted are never ASCII.
fn lift(byte: u8) -> Option<char> {
    char::from_u32(LIFTED + u32::from(byte))
}

fn lowered(c: char) -> Option<u8> {
    u32::from(c).checked_sub(LIFTED).and_then(|byte| u8::try_from(byte).ok())
}

/// Redacts every text in `value` and returns the number of secrets.
pub fn value(value: &mut Value) -> usize {
    within(value, Rule::TOP)
}

/// How a value is searched, depending on the names of the fields that contain it.
#[derive(Clone, Copy)]
enum Rule {
    /// The field's name says that the value is a secret. It is masked, unless it says where the
    /// secret is kept, or that there is none.
    Masked(Telling),
    /// The field holds what went over a network, of which only size and hash are kept.
    Body,
    /// The field tells calls apart, so that two that differ must not become the same.
    Key,
    Within(Place),
}

#[derive(Clone, Copy)]
struct Place {
    by_name: bool,
    /// What the name of an outer field says is somewhere inside.
    around: Option<Telling>,
    /// Inside a field of the caller's own fields.
    is_free: bool,
    /// Inside a request or response.
    is_exchange: bool,
}

impl Rule {
    const TOP: Self = Self::Within(Place::TOP);

    /// The rule for the fields of an object; `beside` is what one field says about another.
    fn of_fields(self, beside: Option<Telling>) -> Self {
        match self {
            Self::Masked(telling) => {
                Self::Within(Place { around: beside.or(Some(telling)), ..Place::TOP })
            }
            Self::Within(place) => Self::Within(Place { around: beside.or(place.around), ..place }),
            Self::Body | Self::Key => self,
        }
    }

    /// The rule for one of those fields, whose value may be the text `string`.
    fn of_field(self, name: &str, string: Option<&str>) -> Self {
        if let Some(telling) = Telling::of(name) {
            return Self::Masked(telling);
        }
        let Self::Within(place) = self else { return self };
        if body::is_body(name, place.is_exchange) {
            return Self::Body;
        }
        if name == KEY && !place.is_free {
            return Self::Key;
        }
        let is_name = NAMES.contains(&name) && !place.is_free;
        // Texts with colons do not count as random, because times have them.
        let is_random = |string: &str| {
            !is_name && !string.contains(':') && !value::is_file(string) && value::is_random(string)
        };
        match place.around {
            Some(telling) if telling::has_no_meaning(name) || string.is_some_and(is_random) => {
                Self::Masked(telling)
            }
            _ => Self::Within(Place {
                by_name: place.by_name && !is_name,
                is_free: place.is_free || FREE.contains(&name),
                is_exchange: body::is_exchange(name),
                ..place
            }),
        }
    }

    fn of_string(self, string: &str) -> Option<(String, usize)> {
        match self {
            Self::Masked(telling)
                if value::stands_for_one(string) || telling.is_said_of_a_part(string) =>
            {
                None
            }
            Self::Masked(telling) => Some((mark(telling.kind), 1)),
            Self::Body => body::replaced(string),
            Self::Key => {
                let (clean, count) = within_text(string, true)?;
                let hash = sha256(string);
                Some((format!("{clean} #{}", &hash[..8]), count))
            }
            Self::Within(place) => within_text(string, place.by_name),
        }
    }

    fn of_number(self, number: &Number) -> Option<(String, usize)> {
        match self {
            Self::Masked(telling) if telling.may_be(number) => Some((mark(telling.kind), 1)),
            _ => None,
        }
    }
}

impl Place {
    const TOP: Self = Self { by_name: true, around: None, is_free: false, is_exchange: false };
}

/// A text without its secrets. What is a document in JSON is searched as one first, because fields
/// tell more about secrets than plain text does.
fn within_text(text: &str, by_name: bool) -> Option<(String, usize)> {
    let of_document = by_name.then(|| document(text)).flatten();
    let (once, count) = of_document.unzip();
    let clean = redacted(once.as_deref().unwrap_or(text), by_name);
    match clean {
        Some((clean, more)) => Some((clean, more + count.unwrap_or_default())),
        None => once.zip(count),
    }
}

fn within(value: &mut Value, rule: Rule) -> usize {
    if matches!(rule, Rule::Body) && matches!(value, Value::Array(_) | Value::Object(_)) {
        return body::replace(value);
    }
    let clean = match value {
        Value::String(string) => rule.of_string(string),
        Value::Number(number) => rule.of_number(number),
        Value::Array(items) => return items.iter_mut().map(|item| within(item, rule)).sum(),
        Value::Object(fields) => return within_fields(fields, rule),
        Value::Null | Value::Bool(_) => None,
    };
    let Some((clean, count)) = clean else { return 0 };
    *value = Value::from(clean);
    count
}

fn within_fields(fields: &mut Map<String, Value>, rule: Rule) -> usize {
    let rule = rule.of_fields(named_beside(|name| fields.get(name).map(Value::as_str)));
    let field =
        |(name, value): (&String, &mut Value)| within(value, rule.of_field(name, value.as_str()));
    fields.iter_mut().map(field).sum::<usize>() + redact_names(fields)
}

/// What a name says that stands beside its value, as in lists of variables and headers. `field`
/// says whether a field exists and what its text is.
fn named_beside<'f>(field: impl Fn(&str) -> Option<Option<&'f str>>) -> Option<Telling> {
    field("value")?;
    Telling::of(["name", "key"].into_iter().find_map(field)??)
}

/// Redacts the names of fields; names that become equal are numbered.
fn redact_names(fields: &mut Map<String, Value>) -> usize {
    if fields.keys().all(|name| redacted(name, true).is_none()) {
        return 0;
    }
    let mut count = 0;
    let mut renamed = Map::new();
    for (name, value) in std::mem::take(fields) {
        let (clean, found) = redacted(&name, true).unwrap_or((name, 0));
        count += found;
        renamed.insert(distinct(clean, |name| renamed.contains_key(name)), value);
    }
    *fields = renamed;
    count
}

fn distinct(name: String, is_there: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name} {number}"));
    let mut all = std::iter::once(name.clone()).chain(numbered);
    all.find(|name| !is_there(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Put together at run time, so that nobody takes this file for a leak.
    fn github() -> String {
        ["gh", "p_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat()
    }

    #[test]
    fn secret_is_replaced_and_what_stands_around_it_stays() {
        let (clean, count) = text(&format!("push with {} to origin", github())).unwrap();
        assert_eq!((clean.as_str(), count), ("push with [redacted: github token] to origin", 1));
    }

    #[test]
    fn fields_with_telling_names_are_masked_whatever_they_hold() {
        let mut given = json!({"data": {"api_key": "abc", "user": {"password": ["p", "q"]}, "tokens": 5, "token": 7}});
        assert_eq!(value(&mut given), 3);
        let masked = json!({"api_key": "[redacted: api key]", "user": {"password": ["[redacted: password]", "[redacted: password]"]}, "tokens": 5, "token": 7});
        assert_eq!(given["data"], masked);
    }

    #[test]
    fn what_is_redacted_is_redacted_once() {
        let mut given = json!({"metadata": {"token": "abc"}, "description": format!("token={} and {}", github(), github())});
        assert_eq!(value(&mut given), 3);
        let once = given.clone();
        assert_eq!(value(&mut given), 0);
        assert_eq!(given, once);
    }

    #[test]
    fn secret_behind_another_that_its_pattern_begins_in_is_found() {
        let (once, count) = text("db://b:first-pass@chttp://me:second-pass@proxy:3128").unwrap();
        assert_eq!(
            (once.as_str(), count),
            ("db://b:[redacted: password]@chttp://me:[redacted: password]@proxy:3128", 2)
        );
        assert_eq!(text(&once), None);
    }

    #[test]
    fn mark_names_nothing_behind_it() {
        let (once, _) = text(&format!("{}: 9f8e7d6c5b4a39281706", github())).unwrap();
        assert_eq!(once, "[redacted: github token]: 9f8e7d6c5b4a39281706");
        assert_eq!(text(&once), None);
    }

    #[test]
    fn fields_with_telling_names_keep_only_what_is_a_reference_as_a_whole() {
        let secrets = [
            json!({"token": "$ecret12345abcde"}),
            json!({"PASSWORD": "(pa55word!)"}),
            json!({"DB_PASSWORD": "@dm1nPass!"}),
            json!({"api_key": "example-9f8e7d6c5b4a3928"}),
            json!({"secret": {"value": "hunter2hunter3"}}),
            json!({"secrets": {"db": {"live": "hunter2hunter3"}, "note": ["in the vault"]}}),
            json!({"credentials": {"robot": "a1b2C3d4e5F6g7"}}),
            json!({"password": 12345678}),
            json!({"password2": "xxxxHunter2"}),
            json!({"token": "${TOKEN:-a1b2c3d4e5f6}"}),
            json!({"password": "${DB_PASSWORD:hunter2}"}),
            json!({"db_pass2": "hunter2"}),
            json!({"passwords": ["hunter2"]}),
            json!({"auth": "admin:hunter2"}),
            json!({"auth": "Basic YWRtaW46aHVudGVyMg=="}),
            json!({"env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "HOME", "value": "hunter2"}]}),
        ];
        for given in secrets {
            let mut clean = given.clone();
            assert_eq!(value(&mut clean), 1, "{given}");
            let once = clean.clone();
            assert_eq!((value(&mut clean), &clean), (0, &once), "{given}");
        }
        let references = [
            "$TOKEN",
            "${TOKEN}",
            "Bearer ${input:callboard-token}",
            "{env:API_KEY}",
            "${{ secrets.TOKEN }}",
            "{{ vault.token }}",
            "$(pass show ci)",
            "%TOKEN%",
            "process.env.TOKEN",
            "os.environ[\"TOKEN\"]",
            "env:TOKEN",
            "op://ci/token/value",
            "file:/run/secrets/token",
            "<your token>",
            "required",
            "********",
            "",
        ];
        for reference in references {
            let given = json!({"token": reference, "secret": {"value": reference}});
            let mut kept = given.clone();
            assert_eq!((value(&mut kept), kept), (0, given));
        }
        let counts = json!({"tokens": 1200, "max_tokens": 5, "token": 7, "password": 3, "passwords": 12345, "auth": {"type": "basic",
            "expires_at": "2026-11-22T21:35:40Z", "id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}, "token_used": true, "tests": {"pass": 15000},
            "Auth": "passed, 92%",
            "parts": {"auth": ["src/auth/login.rs", "1 of 12 failed"]}, "credentials": {"file": "config/cred2024.json", "task": "task-h187xe0001"}});
        let mut kept = counts.clone();
        assert_eq!((value(&mut kept), kept), (0, counts));
    }

    #[test]
    fn secrets_are_no_names_of_fields_and_two_of_them_stay_two() {
        let other = github().replace('A', "Z");
        let mut given = json!({"metrics": {github(): 1, "runs": 2, other: 3}});
        assert_eq!(value(&mut given), 2);
        let masked =
            json!({"[redacted: github token]": 1, "runs": 2, "[redacted: github token] 2": 3});
        assert_eq!(given["metrics"], masked);
        assert_eq!(value(&mut given), 0);
    }

    #[test]
    fn a_document_stays_as_it_is_written_but_for_its_secrets() {
        let (github, other) = (github(), github().replace('A', "Z"));
        let given = format!(
            r#"{{"token" : "a1b2c3", "n":12345678901234567890123, "f": [0.10,0.1234567890123456789,1e5],
  "n": -0, "\u0061pi_key":"\u0061b", "token": 12345678, "s": "\u00e4\/ {github}", "{github}": 1, "{github}":2,
  "{other}":[{{"value": "hunter2", "name": "DB_PASSWORD"}}, {{"secret": {{"value": "hunter2hunter3"}}}}]}}"#
        );
        let expected = r#"{"token" : "[redacted: token]", "n":12345678901234567890123, "f": [0.10,0.1234567890123456789,1e5],
  "n": -0, "\u0061pi_key":"[redacted: api key]", "token": "[redacted: token]", "s": "ä/ [redacted: github token]", "[redacted: github token]": 1, "[redacted: github token]":2,
  "[redacted: github token] 2":[{"value": "[redacted: password]", "name": "DB_PASSWORD"}, {"secret": {"value": "[redacted: secret]"}}]}"#;
        let (clean, count) = document(&given).unwrap();
        assert_eq!((clean.as_str(), count), (expected, 9));
        assert_eq!(document(&clean), None);
        for other in [
            "\"password=hunter2hunter3\"",
            "{\"password\": \"hunter2hunter3\"} {}",
            &"[".repeat(100_000),
        ] {
            assert_eq!(document(other), None);
        }
    }

    #[test]
    fn stretches_of_text_among_other_bytes_are_redacted_and_the_bytes_stay() {
        let given =
            [b"\xff\xfe ", github().as_bytes(), b" \xe4 DB_PASSWORD=a1b2c3d4e5f6\n\x80"].concat();
        let (clean, count) = bytes(&given).unwrap();
        let expected = [
            &b"\xff\xfe [redacted: github token] \xe4 DB_PASSWORD="[..],
            b"[redacted: password]\n\x80",
        ]
        .concat();
        assert_eq!((clean, count), (expected, 2));
        let latin =
            [b"\xff \xf4\x8f\xbf\x84 ", "\u{10ff84}".as_bytes(), b" DB_PASSWORD=h\xe4llo2xyz \xe4"]
                .concat();
        let expected = [&latin[..11], b" DB_PASSWORD=[redacted: password] \xe4"].concat();
        assert_eq!(bytes(&latin), Some((expected, 1)), "also of a secret that is none");
        assert_eq!(bytes(b"\x00\x01\xff nothing here"), None);
    }

    #[test]
    fn references_to_secrets_are_no_secrets() {
        let mut given =
            json!({"metadata": {"api_key": "${API_KEY}", "token": "", "password": "<password>"}});
        let before = given.clone();
        assert_eq!(value(&mut given), 0);
        assert_eq!(given, before);
    }

    #[test]
    fn names_are_judged_by_their_form_alone() {
        assert_eq!(
            name(&format!("fix/{}\u{202e}", github())).as_deref(),
            Some("fix/[redacted: github token]\u{fffd}")
        );
        assert_eq!(name("a\u{7}b").as_deref(), Some("a\u{fffd}b"));
        assert_eq!(name("/home/me/token=a1b2c3d4e5f6a7b8"), None);
    }

    #[test]
    fn ids_are_judged_by_their_form_alone_and_paths_as_texts() {
        let mut given = json!({"task_id": "token=a1b2c3d4e5f6a7b8", "dependencies": [github()],
            "files_modified": ["src/token=a1b2c3d4e5f6a7b8.rs", "src/auth/token.rs"],
            "idempotency_key": "deploy password=hunter22", "metadata": {"id": "pw: hunter22"}});
        assert_eq!(value(&mut given), 4);
        let kept = json!({"task_id": "token=a1b2c3d4e5f6a7b8", "dependencies": ["[redacted: github token]"],
            "files_modified": ["src/token=[redacted: token]", "src/auth/token.rs"],
            "idempotency_key": "deploy password=[redacted: password] #8e574908",
            "metadata": {"id": "pw: [redacted: password]"}});
        assert_eq!(given, kept);
    }

    #[test]
    fn names_of_fields_are_texts_too() {
        let mut given = json!({"metadata": {"password: hunter22": 1}});
        assert_eq!(value(&mut given), 1);
        assert_eq!(given["metadata"], json!({"password: [redacted: password]": 1}));
    }

    #[test]
    fn text_that_is_a_document_is_searched_as_one() {
        let mut given = json!({"description": "{\"db\": {\"password\": \"sword fish\"}}"});
        assert_eq!(value(&mut given), 1);
        assert_eq!(given["description"], "{\"db\": {\"password\": \"[redacted: password]\"}}");
    }

    #[test]
    fn unseen_characters_hide_no_secret() {
        for unseen in ['\u{200b}', '\u{202e}', '\u{7}', '\u{0}', '\u{fffd}', '\u{ad}', '\u{2060}'] {
            let github = github();
            let (begin, end) = github.split_at(12);
            let (clean, _) = text(&format!("push with {begin}{unseen}{end} to origin")).unwrap();
            assert_eq!(clean, "push with [redacted: github token] to origin", "{unseen:?}");
        }
    }
}
