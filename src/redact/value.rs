//! Values: whether one looks like a secret, like words, or like the place of a secret.

use std::sync::LazyLock;

use regex::Regex;

use super::MARK;
use super::telling::Habit;

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

pub(super) fn is_secret(value: &str, habit: Habit, quoted: bool) -> bool {
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
pub(super) fn is_wordy(value: &str) -> bool {
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
