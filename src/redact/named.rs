//! Secrets that only their names reveal: `DB_PASSWORD=…`, `"api_key": "…"`, `--token …`.
//!
//! A name alone is not enough in a text, where `password: String` and `secret = os.environ["KEY"]`
//! are code: the value must also look like something that nobody would write for people to read.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde_json::Number;

use super::{Finding, MARK};

/// A name, what is between, an opening quote, and the value.
const PAIR: &str = r#"(?P<name>(?:(?i:api|access|secret|private|auth)[ ])?[A-Za-z0-9_.\-]*(?i:pass|pwd|secret|token|key|cred|auth)[A-Za-z0-9_.\-]*)["'`\\\]\)]{0,4}[ \t]{0,8}(?:<[A-Za-z ]{1,20}>[ \t]{0,4})?(?P<between>:[ \t]{0,4}[&A-Za-z_'<>\[\], ]{1,40}=|:=|=>|={1,3}|:|[ \t](?i:is|was):?[ \t]|>)[ \t]{0,8}(?:[bBrRuUfF]{0,2}(?P<quote>\\?["'`]))?(?P<value>[^\s\x00"'`\\]+)"#;
/// The same for a command-line option whose value is a separate word.
const OPTION: &str = r#"--(?P<name>[A-Za-z0-9-]*(?i:pass|pwd|secret|token|key|cred|auth)[A-Za-z0-9-]*)(?P<between>[ \t]+)(?P<quote>["'])?(?P<value>[^\s\x00"'`\\]+)"#;

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [PAIR, OPTION].into_iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// How much a value must look like a secret, given its name.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    /// Chosen by people.
    Password,
    /// Made by machines.
    Token,
}

/// Words of which every telling name contains one.
static SIGNS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let signs = ["pass", "pwd", "secret", "token", "key", "cred", "auth"];
    AhoCorasick::builder().ascii_case_insensitive(true).build(signs).ok()
});

pub(super) fn findings(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if SIGNS.as_ref().is_some_and(|signs| !signs.is_match(text)) {
        return found;
    }
    for pattern in &*PATTERNS {
        for pair in pattern.captures_iter(text) {
            let (Some(name), Some(value)) = (pair.name("name"), pair.name("value")) else {
                continue;
            };
            let Some((kind, habit)) = judged(name.as_str()) else { continue };
            if is_in_mark(&text.as_bytes()[..name.start()]) {
                continue;
            }
            let is_prose = pair
                .name("between")
                .is_some_and(|between| between.as_str().trim_end().ends_with(['s', ' ']));
            let quoted = pair.name("quote").is_some();
            let whole = value.as_str();
            let length = if quoted { whole.len() } else { unquoted_length(whole) };
            let (bare, rest) = whole.split_at(length);
            let next = rest.chars().next().or_else(|| text[value.end()..].chars().next());
            let is_markup = pair.name("between").is_some_and(|between| between.as_str() == ">");
            let is_field = quoted && is_quoted(text, name.range());
            let is_code = !quoted && !is_markup && next.is_some_and(|next| "([{<".contains(next))
                || quoted && !is_field && bare.contains(['{', '(']);
            let habit = if is_prose { Habit::Token } else { habit };
            let stands_for_one = if is_field { stands_for_one(bare) } else { is_reference(bare) };
            if !is_code && !stands_for_one && is_secret(bare, habit, quoted) {
                found.push(Finding { place: value.start()..value.start() + length, kind });
            }
        }
    }
    found
}

/// True if a quoted name stands before a quoted value: that is a field of JSON or the like, not
/// prose.
fn is_quoted(text: &str, name: Range<usize>) -> bool {
    let quotes = ['"', '\''];
    text[..name.start].ends_with(quotes)
        && text[name.end..].trim_start_matches('\\').starts_with(quotes)
}

/// True inside a mark `[redacted: …]`. Its words say nothing about what follows; otherwise a
/// redacted text would change again.
fn is_in_mark(before: &[u8]) -> bool {
    const LONGEST: usize = 40;
    let near = &before[before.len().saturating_sub(LONGEST)..];
    let open = near.windows(MARK.len()).rposition(|part| part == MARK.as_bytes());
    open.is_some_and(|open| !near[open..].contains(&b']'))
}

/// Length of the part of a bare word that is the value, not the sentence or code around it.
fn unquoted_length(word: &str) -> usize {
    let end = word
        .find(['(', ')', '[', ']', '{', '}', '<', '>', ';', ',', '&', '|'])
        .unwrap_or(word.len());
    word[..end].trim_end_matches(['.', ':', '!', '?']).len()
}

/// What a field's name says about its value.
#[derive(Clone, Copy)]
pub(super) struct Telling {
    pub kind: &'static str,
    habit: Habit,
    /// A number with this name counts successes.
    counts: bool,
    /// The name means a part of a program as often as a credential.
    is_part: bool,
}

impl Telling {
    pub(super) fn of(name: &str) -> Option<Self> {
        let counts = name.to_ascii_lowercase().ends_with("pass");
        let is_part = name.eq_ignore_ascii_case("auth");
        judged(name).map(|(kind, habit)| Self { kind, habit, counts, is_part })
    }

    /// True for paths, verdicts and ratios, which say something about a part of a program;
    /// credentials are more than words.
    pub(super) fn is_said_of_a_part(&self, value: &str) -> bool {
        self.is_part && !value.contains(':') && is_wordy(value)
    }

    /// True if the number may be a secret; smaller ones count something.
    pub(super) fn may_be(&self, number: &Number) -> bool {
        const SMALLEST_PASSWORD: u64 = 1_000;
        const SMALLEST_TOKEN: u64 = 10_000_000;
        let smallest =
            if self.habit == Habit::Password { SMALLEST_PASSWORD } else { SMALLEST_TOKEN };
        !self.counts && number.as_u64().is_some_and(|number| number >= smallest)
    }
}

/// True if the name of the outer field says what the value is.
pub(super) fn has_no_meaning(name: &str) -> bool {
    WITHOUT_MEANING.iter().any(|word| name.eq_ignore_ascii_case(word))
        || name.bytes().all(|byte| byte.is_ascii_digit())
}

fn judged(name: &str) -> Option<(&'static str, Habit)> {
    let words = words(name);
    let mut words = words.as_slice();
    while let [rest @ .., last] = words
        && !rest.is_empty()
        && (WITHOUT_MEANING.contains(&last.as_str())
            || last.bytes().all(|byte| byte.is_ascii_digit()))
    {
        words = rest;
    }
    let (numbered, before) = words.split_last()?;
    let last = numbered.trim_end_matches(|c: char| c.is_ascii_digit());
    let before = before.last().map_or("", String::as_str);
    let ends = |ends: &[&str]| ends.iter().any(|end| last.ends_with(end));
    if ends(&["password", "passwd", "passphrase", "passwort"]) || ["pwd", "pw"].contains(&last) {
        return Some(("password", Habit::Password));
    }
    // A second pass is no password.
    let is_pass = if before.is_empty() { numbered == "pass" } else { last == "pass" };
    if is_pass
        && !["by", "com", "tres", "first", "second", "last", "one", "each", "next"]
            .contains(&before)
    {
        return Some(("password", Habit::Password));
    }
    if ends(&["passwords", "passphrases"]) {
        return Some(("password", Habit::Token));
    }
    if ["secret", "secrets"].iter().any(|end| last.ends_with(end)) {
        return Some(("secret", Habit::Token));
    }
    if ["credential", "credentials", "creds"].contains(&last) {
        return Some(("credential", Habit::Token));
    }
    if last.ends_with("token") && !PLACES.contains(&before) {
        return Some(("token", Habit::Token));
    }
    if ends(&["apikey", "secretkey", "accesskey", "privatekey", "authkey"]) {
        return Some(("api key", Habit::Token));
    }
    if last == "key" && KEYS.contains(&before) {
        return Some((if before == "private" { "private key" } else { "api key" }, Habit::Token));
    }
    if last == "base" && before == "key" && words.iter().any(|word| word == "secret") {
        return Some(("secret", Habit::Token));
    }
    // `auth` with a number is the name of a protocol or a company.
    let is_auth =
        numbered == "auth" && (words.len() == 1 || before == "basic") || last == "authorization";
    is_auth.then_some(("authorization", Habit::Token))
}

/// Words at the end of a name that do not say what it names.
const WITHOUT_MEANING: [&str; 11] = [
    "value",
    "raw",
    "plain",
    "plaintext",
    "prod",
    "production",
    "dev",
    "staging",
    "live",
    "old",
    "new",
];
/// Words before `key` that make it a secret.
const KEYS: [&str; 20] = [
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "signing",
    "encryption",
    "master",
    "account",
    "hmac",
    "license",
    "service",
    "admin",
    "app",
    "client",
    "subscription",
    "deploy",
    "webhook",
    "jwt",
    "integration",
];
/// Words before `token` that make it a place in a list or text.
const PLACES: [&str; 21] = [
    "page",
    "next",
    "prev",
    "previous",
    "continuation",
    "cursor",
    "pagination",
    "resume",
    "sync",
    "cancel",
    "cancellation",
    "stop",
    "eos",
    "bos",
    "pad",
    "mask",
    "unk",
    "sep",
    "cls",
    "progress",
    "per",
];

/// Words of a name: `apiKey`, `API_KEY` and `api-key` are api and key.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = None;
    let mut letters = name.chars().peekable();
    while let Some(c) = letters.next() {
        let next_is_lower = letters.peek().is_some_and(char::is_ascii_lowercase);
        let starts = c.is_ascii_uppercase()
            && before.is_some_and(|b: char| {
                b.is_ascii_lowercase() || b.is_ascii_uppercase() && next_is_lower
            });
        if starts || !c.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
        before = Some(c);
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Words in place of a secret that say that there is none, or what it should be.
const FOR_NONE: [&str; 22] = [
    "null",
    "none",
    "nil",
    "true",
    "false",
    "string",
    "required",
    "optional",
    "undefined",
    "password",
    "passwd",
    "pass",
    "secret",
    "token",
    "user",
    "pwd",
    "text",
    "hidden",
    "masked",
    "unset",
    "missing",
    "invalid",
];

/// True if the whole value names a secret that is kept elsewhere, or stands for none.
pub(super) fn stands_for_one(value: &str) -> bool {
    const REFERENCE: &str = concat!(
        r"^(?i:(?:bearer|basic|token) +)?",
        r"(?:\$(?:env:)?[A-Z_][A-Z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_.]*\}|\$?\{\{[^{}]*\}\}|\$\([^()]*\)|\{[A-Za-z_.]+\}",
        r"|\$?\{(?:env|input|file|vault|secrets?)[.:][A-Za-z0-9_./~-]+\}",
        r"|%[A-Z_][A-Z0-9_]*%|<[A-Za-z_ -]+>",
        r"|(?i:process\.env|import\.meta\.env|os\.environ|env|secrets|vars)",
        r#"(?:[.:][A-Za-z_][A-Za-z0-9_]*|\[["']?[A-Za-z_][A-Za-z0-9_]*["']?\])"#,
        r#"|os\.(?:getenv|environ\.get)\(["'][A-Za-z_][A-Za-z0-9_]*["']\)"#,
        r"|op://\S+|(?:arn|vault|ssm|file):[A-Za-z0-9_/.:#-]+)$",
    );
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(REFERENCE).ok());
    let value = value.trim();
    FOR_NONE.contains(&value.to_ascii_lowercase().as_str())
        || value.bytes().all(|byte| b"xX*.-_".contains(&byte))
        || value
            .strip_prefix(MARK)
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|kind| !kind.contains(']'))
        || PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(value))
}

/// True if the value stands for a secret that is kept elsewhere, or for none.
pub(super) fn is_reference(value: &str) -> bool {
    const IN_ANY: [&str; 15] = [
        "changeme",
        "change-me",
        "change_me",
        "placeholder",
        "your-",
        "your_",
        "xxxx",
        "****",
        "....",
        "redacted",
        "dummy",
        "insert-",
        "replace-",
        "replace_",
        "…",
    ];
    let value = value.trim();
    let lower = value.to_ascii_lowercase();
    value.is_empty()
        || value.starts_with(['$', '<', '{', '[', '%', '('])
        || FOR_NONE.contains(&lower.as_str())
        || IN_ANY.iter().any(|part| lower.contains(part))
        || [
            "env:", "env.", "os.", "process.", "file:", "vault:", "op://", "arn:", "ssm:",
            "secrets.", "vars.", "@",
        ]
        .iter()
        .any(|start| lower.starts_with(start))
        || lower.contains("example") && value.len() < 30
        || lower.bytes().all(|byte| {
            byte == b'x' || byte == b'*' || byte == b'.' || byte == b'-' || byte == b'_'
        })
}

fn is_secret(value: &str, habit: Habit, quoted: bool) -> bool {
    if is_place(value) {
        return false;
    }
    match habit {
        Habit::Password => is_password(value, quoted),
        Habit::Token => is_random(value),
    }
}

/// True for a path or address.
fn is_place(value: &str) -> bool {
    let inside = |rest: &str| rest.contains(['/', '.']) && is_wordy(rest);
    value.contains("://")
        || ["./", "../", "~/"].iter().any(|start| value.starts_with(start))
        || value.strip_prefix('/').is_some_and(inside)
}

fn is_password(value: &str, quoted: bool) -> bool {
    let count = |is: fn(&u8) -> bool| value.as_bytes().iter().filter(|byte| is(byte)).count();
    let (digits, letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    if value.len() < 6 {
        return false;
    }
    if digits == value.len() {
        return true;
    }
    if letters == 0 {
        return quoted && value.len() >= 8;
    }
    if is_technical(value) || !quoted && is_member(value) {
        return false;
    }
    let inner = value.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let marked = inner.bytes().any(|byte| b"!@#$%^&*?~+=".contains(&byte))
        || value.ends_with(['!', '#', '$']) && digits > 0;
    digits > 0 || marked
}

/// True for a member in code: `user.password2`, `Config::secret1`, `self.key_1`.
fn is_member(value: &str) -> bool {
    (value.contains('.') || value.contains("::") || value.contains("->")) && is_wordy(value)
}

/// True if every part is a word, or a word with a number of at most two digits after it.
fn is_wordy(value: &str) -> bool {
    parts(value).all(|part| {
        let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - word.len();
        TECHNICAL.contains(&part.to_ascii_lowercase().as_str())
            || word.is_empty() && digits <= 4
            || digits <= 2
                && word.len() <= 24
                && word.chars().all(|c| c.is_alphabetic())
                && !is_jumbled(word)
    })
}

fn is_technical(value: &str) -> bool {
    parts(value).all(|part| TECHNICAL.contains(&part.to_ascii_lowercase().as_str()))
}

fn parts(value: &str) -> impl Iterator<Item = &str> {
    value.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty())
}

const TECHNICAL: [&str; 36] = [
    "sha1",
    "sha256",
    "sha384",
    "sha512",
    "md5",
    "base64",
    "base32",
    "base64url",
    "utf8",
    "utf16",
    "argon2",
    "argon2id",
    "bcrypt",
    "scrypt",
    "pbkdf2",
    "rs256",
    "hs256",
    "es256",
    "hs512",
    "rs512",
    "ed25519",
    "x509",
    "x25519",
    "aes128",
    "aes256",
    "p256",
    "secp256k1",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "string255",
    "varchar255",
    "oauth2",
    "http2",
    "ipv4",
];

/// True if upper and lower case change as in no name.
fn is_jumbled(word: &str) -> bool {
    let changes = word
        .as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let changes = changes.count();
    changes >= 3 && word.len() / (changes + 1) < 3
}

/// True if the value is long, mixed, and not made of words.
pub(super) fn is_random(value: &str) -> bool {
    const SHORTEST: usize = 12;
    const BITS: f64 = 2.6;
    if value.len() < SHORTEST || value.contains(['(', '{']) || is_wordy(value) {
        return false;
    }
    let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    (mixed || is_jumbled(value)) && bits_per_byte(value) >= BITS
}

/// Shannon entropy of the bytes.
fn bits_per_byte(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let length = text.len() as f64;
    let share = |count: &u32| f64::from(*count) / length;
    -counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| share(count) * share(count).log2())
        .sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), 2);
    }

    #[test]
    fn names_of_secrets_are_told_from_names_of_other_things() {
        for name in [
            "password",
            "DB_PASSWORD",
            "apiKey",
            "x-api-key",
            "client_secret",
            "GITHUB_TOKEN",
            "authToken",
            "accessKey",
            "AWS_SECRET_ACCESS_KEY",
            "pgpassword",
            "token_prod",
            "SECRET_KEY_BASE",
            "PGPASSWORD",
            "Authorization",
            "PASSWORD1",
            "password2",
            "api_key_2",
            "DB_PASS2",
        ] {
            assert!(Telling::of(name).is_some(), "{name}");
        }
        for name in [
            "password_hash",
            "token_budget",
            "max_tokens",
            "tokens_used",
            "next_page_token",
            "public_key",
            "idempotency_key",
            "primary_key",
            "key",
            "secretary",
            "bypass",
            "author",
            "secret_name",
            "passed",
            "monkey",
            "oauth2",
            "auth0",
            "pass2",
        ] {
            assert!(Telling::of(name).is_none(), "{name}");
        }
    }
}
