//! Names that tell that a value is a secret: `DB_PASSWORD`, `api_key`, `authToken`.

use serde_json::Number;

use super::value::is_wordy;

/// How much a value must look like a secret, given its name.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Habit {
    /// Chosen by people.
    Password,
    /// Made by machines.
    Token,
}

/// What a field's name says about its value.
#[derive(Clone, Copy)]
pub(super) struct Telling {
    pub kind: &'static str,
    pub habit: Habit,
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

pub(super) fn judged(name: &str) -> Option<(&'static str, Habit)> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
