//! Names that tell that a value is a secret: `DB_PASSWORD`, `api_key`, `authToken`.

use serde_json::Number;

use super::plain::is_in;
use super::value::{is_code, is_wordy};

/// How much a value must look like a secret, given its name.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Habit {
    /// Chosen by people.
    Password,
    /// Made by machines.
    Token,
    /// Made by machines, and longer than what else has such a name.
    Opaque,
    /// Digits, such as a PIN.
    Code,
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

    /// True if the name means something else in front of this value: a part of a program, of
    /// which paths, verdicts and ratios are said, or a pin that is no number.
    pub(super) fn is_said_of_a_part(&self, value: &str) -> bool {
        self.is_part && !value.contains(':') && is_wordy(value)
            || self.habit == Habit::Code && !is_code(value)
    }

    /// True if the number may be a secret; smaller ones count something.
    pub(super) fn may_be(&self, number: &Number) -> bool {
        const SMALLEST_PASSWORD: u64 = 1_000;
        const SMALLEST_TOKEN: u64 = 10_000_000;
        let smallest = if self.habit == Habit::Token { SMALLEST_TOKEN } else { SMALLEST_PASSWORD };
        !self.counts && number.as_u64().is_some_and(|number| number >= smallest)
    }
}

/// True if the name of the outer field says what the value is.
pub(super) fn has_no_meaning(name: &str) -> bool {
    WITHOUT_MEANING.iter().any(|word| name.eq_ignore_ascii_case(word))
        || name.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn judged(name: &str) -> Option<(&'static str, Habit)> {
    if !name.is_ascii() || is_in(FOREIGN, &name.to_ascii_lowercase()) {
        let is_foreign = is_in(FOREIGN, &name.to_lowercase());
        return is_foreign.then_some(("password", Habit::Password));
    }
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
    let is_password = ["pwd", "pw", "passcode", "mnemonic"].contains(&last)
        || last == "phrase" && ["pass", "seed", "recovery"].contains(&before);
    if is_password || ends(&["password", "passwd", "passphrase", "passwort"]) {
        return Some(("password", Habit::Password));
    }
    if ["pin", "pincode", "otp", "totp"].contains(&last) {
        return Some(("code", Habit::Code));
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
    if last == "key" && is_in(KEYS, before) {
        return Some((if before == "private" { "private key" } else { "api key" }, Habit::Token));
    }
    // The key of a service that is not known here.
    let owner = if last == "key" { before } else { last.strip_suffix("key").unwrap_or_default() };
    if !owner.is_empty() && !is_in(OTHER_KEYS, owner) {
        return Some(("api key", Habit::Opaque));
    }
    if last == "pat" && !before.is_empty() {
        let is_known = is_in(TOKENS, before);
        return Some(("token", if is_known { Habit::Token } else { Habit::Opaque }));
    }
    if last == "base" && before == "key" && words.iter().any(|word| word == "secret") {
        return Some(("secret", Habit::Token));
    }
    // `auth` with a number is the name of a protocol or a company.
    let is_auth =
        numbered == "auth" && (words.len() == 1 || before == "basic") || last == "authorization";
    is_auth.then_some(("authorization", Habit::Token))
}

/// Names of passwords in other languages that are one word, in lower case.
const FOREIGN: &str = "\
    contraseña contrasena clave senha palavra-passe palavra_passe motdepasse mot_de_passe mdp \
    passwort kennwort wachtwoord parola lösenord losenord adgangskode passord salasana hasło haslo \
    heslo jelszó jelszo geslo lozinka лозинка пароль гасло κωδικός şifre sifre kata_sandi סיסמה \
    密码 密碼 口令 パスワード 비밀번호 암호";

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
const KEYS: &str = "\
    api access secret private auth signing encryption master account hmac license service admin app \
    client subscription deploy webhook jwt integration shared signature cipher crypto aes bearer \
    security recaptcha maps stripe openai anthropic sendgrid mailgun mailchimp datadog algolia \
    firebase azure aws gcp github gitlab twilio plaid sentry cohere groq mistral deepgram pinecone";

/// Words before `pat` that make it a personal access token.
const TOKENS: &str = "github gh gitlab azure ado devops vsts git my airtable";
/// Words before `key` that make it something by which other things are found.
const OTHER_KEYS: &str = "\
    a an any array block board bucket by cache cargo certificate check clear column common component composite \
    config content context cookie current custom data deduplication dedup dict document domain each \
    element entity entry env etag event every field file filter first foreign form function global \
    group h hash header home hot i18n id idempotency index input issue item its job json key label \
    last layout list local lock locale log map match message meta metadata mon mutex my name natural new next no node \
    not object old option order other package page param parent partition path primary project \
    property pub public query queue react record redis reducer ref request resource restore rollup \
    route routing row s3 schema search section sequence session set shard sort spec state step \
    storage store string style table tag target task template that the this tmp trace translation tur \
    type unique url user value var vault view widget window worker wrong xml your host ssh gpg pgp cosign";

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
pub(super) fn words(name: &str) -> Vec<String> {
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
