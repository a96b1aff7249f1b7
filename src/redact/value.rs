//! Values: whether one looks like a secret, like words, or like the place of a secret.

use std::sync::LazyLock;

use regex::Regex;

use super::plain::names_a_secret;
use super::telling::Habit;
use super::{MARK, letters};

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
        || is_literal(value)
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

/// True for a number or type of code.
fn is_literal(value: &str) -> bool {
    const LONGEST: usize = 18;
    value.len() <= LONGEST
        && ["0x", "0X", "0o", "0b", "__"].iter().any(|start| value.starts_with(start))
}

pub(super) fn is_secret(value: &str, habit: Habit, quoted: bool) -> bool {
    if is_place(value) {
        return false;
    }
    match habit {
        Habit::Password => is_password(value, quoted) || is_drawn(value),
        Habit::Token => is_random(value) || is_drawn(value),
        Habit::Opaque => is_opaque(value),
        Habit::Code => is_code(value),
    }
}

/// True if its letters are drawn by chance and it is no code.
fn is_drawn(value: &str) -> bool {
    !value.contains(['(', '{', '.', ':', '<'])
        && !names_a_secret(value)
        && letters::are_drawn(value)
}

fn is_date(value: &str) -> bool {
    value.len() == 10
        && value.bytes().enumerate().all(|(at, c)| (c == b'-') == (at == 4 || at == 7))
}

/// True if one part is long and drawn by chance.
pub(super) fn is_opaque(value: &str) -> bool {
    const SHORTEST: usize = 16;
    let chance =
        |part: &str| part.len() >= SHORTEST && has(part, u8::is_ascii_digit) && is_chaotic(part);
    parts(value).any(chance) && is_random(value)
}

/// True for a code that people type in: digits, perhaps in groups or behind letters.
pub(super) fn is_code(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    (4..=12).contains(&digits)
        && value.len() <= digits + 4
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | ' '))
        && !is_date(value)
}

/// True for a path or address.
fn is_place(value: &str) -> bool {
    let inside = |rest: &str| rest.contains(['/', '.']) && is_wordy(rest);
    value.contains("://")
        || ["./", "../", "~/"].iter().any(|start| value.starts_with(start))
        || value.strip_prefix('/').is_some_and(inside)
}

/// True for a path with the ending of a file's name.
pub(super) fn is_file(value: &str) -> bool {
    let ending = value.rsplit_once('.').map_or("", |(_, ending)| ending);
    value.contains('/')
        && (1..=5).contains(&ending.len())
        && ending.bytes().all(|c| c.is_ascii_alphanumeric())
}

fn is_password(value: &str, quoted: bool) -> bool {
    let count = |is: fn(&u8) -> bool| value.as_bytes().iter().filter(|byte| is(byte)).count();
    let (digits, letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    if digits == value.len() {
        return digits >= 6;
    }
    if value.len() < 5 {
        return false;
    }
    if letters == 0 {
        return quoted && value.len() >= 8;
    }
    if is_technical(value) || is_rule(value) || !quoted && is_member(value) {
        return false;
    }
    let inner = value.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let marked = inner.bytes().any(|byte| b"!@#$%^&*?~+=".contains(&byte))
        || value.ends_with(['!', '#', '$']) && digits > 0;
    digits > 0 || marked
}

/// True for what a form demands of a field: `required|min:8`.
fn is_rule(value: &str) -> bool {
    value.contains('|') && is_wordy(value)
}

/// Length of the part of a bare word that is the value, not the sentence or code around it.
pub(super) fn unquoted_length(word: &str) -> usize {
    let end = word
        .find(['(', ')', '[', ']', '{', '}', '<', '>', ';', ',', '&', '|'])
        .unwrap_or(word.len());
    word[..end].trim_end_matches(['.', ':', '!', '?']).len()
}

/// True for a member in code: `user.password2`, `Config::secret1`, `self.key_1`.
fn is_member(value: &str) -> bool {
    (value.contains('.') || value.contains("::") || value.contains("->")) && is_wordy(value)
}

/// Most letters of a word.
const LONGEST_WORD: usize = 24;

/// True if every part is a word, or a word with a number of at most two digits after it.
pub(super) fn is_wordy(value: &str) -> bool {
    parts(value).all(|part| {
        let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - word.len();
        TECHNICAL.contains(&part.to_ascii_lowercase().as_str())
            || word.is_empty() && digits <= 4
            || digits <= 2
                && word.len() <= LONGEST_WORD
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
    const SHORTEST: usize = 8;
    value.len() >= SHORTEST && !value.contains(['(', '{']) && is_made(value)
}

/// True if no word or name has this form, as long as it is long enough.
pub(super) fn is_made(value: &str) -> bool {
    const BITS: f64 = 2.5;
    let mixed = has(value, u8::is_ascii_digit) && has(value, u8::is_ascii_alphabetic);
    let endless = || parts(value).any(|part| part.len() > LONGEST_WORD);
    (mixed || is_jumbled(value) || endless()) && !is_wordy(value) && bits_per_byte(value) >= BITS
}

/// True if letters of both cases and digits follow each other as in no name, even one that has
/// digits in it.
pub(super) fn is_chaotic(word: &str) -> bool {
    const MEAN_RUN: usize = 4;
    let class = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let pairs = word.as_bytes().windows(2).map(|pair| (class(pair[0]), class(pair[1])));
    // A capital begins the word of the letters behind it.
    let changes = pairs.filter(|pair| pair.0 != pair.1 && *pair != (1, 2)).count();
    word.len() < MEAN_RUN * (changes + 1)
}

pub(super) fn has(text: &str, is: fn(&u8) -> bool) -> bool {
    text.as_bytes().iter().any(is)
}

/// Shannon entropy of the bytes.
pub(super) fn bits_per_byte(text: &str) -> f64 {
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
