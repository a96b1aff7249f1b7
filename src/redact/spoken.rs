//! Secrets behind names that no program has: `contraseña: …`, `PIN 4711`, `creds: admin/…`, `API key
//! …`. What sentences say of passwords is not looked for; `purge` takes out what slips through.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::named::is_in_mark;
use super::plain::{ends_alone, may_be_said};
use super::telling::Habit;
use super::value::{has, is_chaotic, is_code, is_opaque, is_reference, is_secret, unquoted_length};
use super::{Finding, floor};

/// Words for a password in other languages, in lower case.
const FOREIGN: &str = "\
    contraseña|contrasena|clave|senha|palavra-passe|mot de passe|motdepasse|mdp|passwort|kennwort|\
    losungswort|wachtwoord|parola d'ordine|parola|lösenord|losenord|adgangskode|passord|salasana|\
    hasło|haslo|heslo|jelszó|jelszo|geslo|lozinka|лозинка|пароль|пароля|гасло|κωδικός|şifre|sifre|\
    mật khẩu|kata sandi|katasandi|סיסמה|סיסמא|كلمة المرور|كلمة السر|पासवर्ड|รหัสผ่าน|密码|密碼|口令|暗号|\
    パスワード|비밀번호|암호";

/// What people call a secret in English.
const ENGLISH: &str = "\
    password|passphrase|passcode|passwd|pass phrase|pass code|pw|pwd|pass|secret|secret key|token|\
    access token|api token|api key|access key|key|credential|credentials|creds|pin|pin code|\
    pin number";

/// What stands before a name and a password together.
const LOGINS: &str =
    "cred|creds|credential|credentials|login|logins|log in|log in with|log in as|login with";

/// Names of codes that are mostly digits.
const CODES: &str = "\
    pin|pin code|pin number|pincode|passcode|otp|totp|2fa|mfa|2fa code|mfa code|otp code|\
    verification code|security code|one-time code|one-time password|recovery code|backup code|\
    authentication code|auth code|login code|access code|door code|unlock code";

/// Quotes and marks around a value.
const OPEN: &str = r#"["'`*«“„‘_]{0,3}"#;
const VALUE: &str = r#"(?P<value>[^\s"'`«»“”„‘’<>，。]+)"#;

/// How people go on after a name.
struct Rule {
    list: &'static str,
    after: Regex,
    judged: fn(&Said) -> bool,
}

/// A value and where it stands.
struct Said<'t> {
    value: &'t str,
    rest: &'t str,
    habit: Habit,
    is_quoted: bool,
}

impl Said<'_> {
    /// True if the value has a secret's form, whatever stands around it.
    fn is_secret(&self) -> bool {
        is_secret(self.value, self.habit, self.is_quoted)
    }

    /// True also of a word that is said alone, if the name is one of passwords.
    fn is_told(&self) -> bool {
        let is_alone = self.is_quoted || ends_alone(self.rest);
        self.is_secret() || self.habit == Habit::Password && is_alone && may_be_said(self.value)
    }
}

fn rule(list: &'static str, after: &str, judged: fn(&Said) -> bool) -> Option<Rule> {
    Some(Rule { list, after: Regex::new(&format!("^(?i){after}")).ok()?, judged })
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules = [
        // A word of another language is in no code, but may begin a sentence.
        rule(
            FOREIGN,
            &format!(
                r#"["'`*_»”]{{0,3}}(?:\s?\([^()\n]{{0,30}}\))?\s?(?:[:：=]|=>|->|→)\s?{OPEN}{VALUE}"#
            ),
            |said| said.is_told(),
        ),
        rule(
            LOGINS,
            &format!(r"\s*(?:are|is|:|=|with|as)?\s+{OPEN}[\w.@+-]+{OPEN}\s?[/:]\s?{OPEN}{VALUE}"),
            |said| is_secret(said.value, Habit::Password, said.is_quoted),
        ),
        // Without any sign between, only what chance has made is a secret.
        rule(ENGLISH, &format!(r"[ \t]+{OPEN}{VALUE}"), |said| {
            said.value.len() >= 20 && is_opaque(said.value) || is_drawn(said.value)
        }),
        rule(
            CODES,
            &format!(
                r#"["'`*_]{{0,3}}\s?(?:[:：=]|=>|->|→|is:?|was:?|for [\w .-]{{1,30}}(?::| is)|)\s{{0,2}}{OPEN}(?P<value>[A-Za-z]{{0,2}}[0-9](?:[0-9A-Z]|[ -][0-9]){{3,11}})\b"#
            ),
            |said| is_code(said.value),
        ),
    ];
    rules.into_iter().flatten().collect()
});

/// The names that rules begin with, and the list that each is of.
static NAMES: LazyLock<Option<(AhoCorasick, Vec<&'static str>)>> = LazyLock::new(|| {
    let lists = [FOREIGN, ENGLISH, CODES, LOGINS];
    let all = lists.iter().flat_map(|list| list.split('|').map(move |word| (*list, word)));
    // Letters beyond ASCII are searched for in both cases.
    let all = all.flat_map(|(list, word)| cases(word).map(|word| (list, word)));
    let (lists, words): (Vec<_>, Vec<_>) = all.unzip();
    Some((AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()?, lists))
});

fn cases(word: &str) -> [String; 3] {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    [word.to_owned(), word.to_uppercase(), first.chain(letters).collect()]
}

pub(super) fn findings(text: &str) -> Vec<Finding> {
    let Some((names, lists)) = &*NAMES else { return Vec::new() };
    let mut found = Vec::new();
    for name in names.find_overlapping_iter(text) {
        if !is_word(text, name.range()) || is_in_mark(&text.as_bytes()[..name.start()]) {
            continue;
        }
        let list = lists[name.pattern().as_usize()];
        let rules = RULES.iter().filter(|rule| rule.list == list);
        found.extend(rules.filter_map(|rule| rule.finding(text, name.range())));
    }
    found
}

/// True if no letters stand around; some languages write none between words.
fn is_word(text: &str, name: Range<usize>) -> bool {
    let has_spaces = text[name.clone()].chars().all(|c| u32::from(c) < 0x0e00);
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    !has_spaces
        || !text[..name.start].ends_with(is_letter) && !text[name.end..].starts_with(is_letter)
}

impl Rule {
    fn finding(&self, text: &str, name: Range<usize>) -> Option<Finding> {
        const FAR: usize = 400;
        let rest = &text[name.end..floor(text, name.end + FAR)];
        let captures = self.after.captures(rest)?;
        let value = captures.name("value")?;
        let quotes = ['"', '\'', '`', '«', '“', '„', '‘', '*', '»', '”', '’'];
        let is_opened = rest[..value.start()].ends_with(quotes);
        let length = if is_opened { value.len() } else { unquoted_length(value.as_str()) };
        let start = name.end + value.start();
        let value = start..start + length;
        let said = Said {
            value: &text[value.clone()],
            rest: &text[value.end..],
            habit: habit(&text[name]),
            is_quoted: is_opened && text[value.end..].starts_with(quotes),
        };
        let kind = if said.habit == Habit::Token { "token" } else { "password" };
        (!is_reference(said.value) && (self.judged)(&said))
            .then_some(Finding { place: value, kind })
    }
}

/// True for what has digits and letters of both cases in no order, however short.
fn is_drawn(value: &str) -> bool {
    const SHORTEST: usize = 10;
    let kinds = [u8::is_ascii_digit, u8::is_ascii_uppercase, u8::is_ascii_lowercase];
    value.len() >= SHORTEST
        && kinds.iter().all(|is| has(value, *is))
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && is_chaotic(value)
}

fn habit(name: &str) -> Habit {
    let name = name.to_lowercase();
    let is_token = ["token", "key", "secret", "cred"].iter().any(|one| name.contains(one));
    if name.contains("pin") {
        Habit::Code
    } else if is_token {
        Habit::Token
    } else {
        Habit::Password
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles() {
        assert_eq!(RULES.len(), 4);
        assert!(NAMES.is_some());
    }

    #[test]
    fn passwords_are_told_from_what_is_said_about_them() {
        let found =
            |text: &str| findings(text).first().map(|one| text[one.place.clone()].to_owned());
        for text in [
            "contraseña: ⟦secreto⟧",
            "Passwort: ⟦Sommerregen⟧",
            "mot de passe : ⟦soleil⟧",
            "数据库密码：⟦swordfish⟧",
            "パスワード：「⟦hunter⟧」",
            "log in with admin / ⟦swordfish42⟧",
            "the pin code is ⟦4711⟧",
            "with the token ⟦mOUVJUDnG3DVeWpVmo6XU6lsot4F8S⟧",
        ] {
            let (before, rest) = text.split_once('⟦').unwrap();
            let (secret, after) = rest.split_once('⟧').unwrap();
            let text = format!("{before}{secret}{after}").replace(['「', '」'], "\"");
            assert_eq!(found(&text).as_deref(), Some(secret), "{text}");
        }
        for text in [
            "use the password reset flow",
            "with password authentication disabled",
            "Passwort: muss mindestens acht Zeichen haben",
            "密码: 请输入密码",
            "enter the password again",
            "the pin of the socket",
            "set the password to null",
            "with the token bucket algorithm",
        ] {
            assert_eq!(found(text), None);
        }
    }
}
