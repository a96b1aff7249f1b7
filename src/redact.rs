//! Secrets in what agents write, replaced by `[redacted: kind]` before anything is decided or kept.
//!
//! Three rules. `shape`: forms that issuers give their secrets. `named`: values behind a name such as `api_key` in
//! prose, code, JSON, YAML and environments. And in objects, the values of fields with such names. All take time linear in
//! the text.

mod named;
mod shape;

use std::ops::Range;

use serde_json::Value;

/// Shorter texts hold no secret that could be told from a word.
const SHORTEST: usize = 8;

/// How every mark begins.
pub const MARK: &str = "[redacted: ";

/// How often a text is looked through. A secret whose pattern begins inside of another's shows only when that one is gone;
/// the bound keeps the time linear in texts made to hold endless chains of them.
const PASSES: usize = 8;

/// What a text must not keep.
struct Finding {
    place: Range<usize>,
    kind: &'static str,
}

/// Fields that name things: what merely stands behind a telling name stays in them.
const NAMES: [&str; 19] = [
    "id",
    "task_id",
    "agent_id",
    "dependencies",
    "add_dependencies",
    "remove_dependencies",
    "idempotency_key",
    "path",
    "paths",
    "files",
    "context_files",
    "files_modified",
    "files_created",
    "worktree",
    "branch",
    "commit",
    "scope",
    "hostname",
    "project_dir",
];

/// `text` without its secrets, and how many there were; none when it has none.
pub fn text(text: &str) -> Option<(String, usize)> {
    redacted(text, true)
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
    let mut found = shape::findings(text);
    if by_name {
        found.extend(named::findings(text));
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
        // One that reaches further than the one before takes the rest with it.
        kept_to = kept_to.max(finding.place.end);
    }
    clean.push_str(&text[kept_to..]);
    Some((clean, count))
}

fn mark(kind: &str) -> String {
    format!("{MARK}{kind}]")
}

/// Redacts every text in `value`, and says how many secrets there were.
pub fn value(value: &mut Value) -> usize {
    within(value, true)
}

fn within(value: &mut Value, by_name: bool) -> usize {
    match value {
        Value::String(string) => match redacted(string, by_name) {
            Some((clean, count)) => {
                *string = clean;
                count
            }
            None => 0,
        },
        Value::Array(items) => items.iter_mut().map(|item| within(item, by_name)).sum(),
        Value::Object(fields) => fields
            .iter_mut()
            .map(|(name, value)| match named::kind_of(name) {
                Some(kind) => masked(value, kind),
                None => within(value, by_name && !NAMES.contains(&name.as_str())),
            })
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// A field whose name says what it holds.
fn masked(value: &mut Value, kind: &'static str) -> usize {
    match value {
        Value::String(string) if named::is_reference(string) => within(value, true),
        Value::String(string) => {
            *string = mark(kind);
            1
        }
        Value::Array(items) => items.iter_mut().map(|item| masked(item, kind)).sum(),
        Value::Object(_) => within(value, true),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Put together, so that nobody takes this file for a leak.
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
        let mut given =
            json!({"metadata": {"token": "abc"}, "description": format!("token={} and {}", github(), github())});
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
    fn references_to_secrets_are_no_secrets() {
        let mut given = json!({"metadata": {"api_key": "${API_KEY}", "token": "", "password": "<password>"}});
        let before = given.clone();
        assert_eq!(value(&mut given), 0);
        assert_eq!(given, before);
    }

    #[test]
    fn ids_and_paths_are_judged_by_their_form_alone() {
        let mut given =
            json!({"task_id": "token=a1b2c3d4e5f6a7b8", "files_modified": ["src/token=a1b2c3d4e5f6a7b8.rs", github()]});
        assert_eq!(value(&mut given), 1);
        assert_eq!(given["files_modified"][1], "[redacted: github token]");
    }
}
