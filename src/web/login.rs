//! Logging in: a one-time code is exchanged for a cookie.
//!
//! A cookie is bound to a token by the token's hash and signed with the owner's token: it survives
//! a restart of the server, and ends with either token. It is for the host name of this board's
//! pages alone, see `site`.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::state::digest::{hex, sha256};
use crate::state::limit::{CODE_MINUTES, CODES, COOKIE_DAYS};
use crate::state::time::{MINUTE, Timestamp};

/// Letters and digits that are not mistaken for each other.
const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";
const CODE_LETTERS: usize = 24;
const DAY: i64 = 24 * 60 * MINUTE;

/// Gives the owner's token as it is now.
pub type Secret = Arc<dyn Fn() -> String + Send + Sync>;

/// Codes that wait to be used, and cookies.
pub(super) struct Logins {
    secret: Secret,
    cookie: String,
    codes: Mutex<HashMap<String, Code>>,
}

struct Code {
    /// Hash of the token that the code stands for.
    token: String,
    until: Instant,
}

pub(super) fn random_letters(count: usize) -> io::Result<String> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(letters(&bytes))
}

pub(super) fn letters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

/// A signature of `text` for one purpose.
pub(super) fn signature(secret: &str, purpose: &str, text: &str) -> Vec<u8> {
    // A key of any length is accepted.
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes());
    mac.map_or_else(
        |_| Vec::new(),
        |mac| {
            let text = format!("callboard {purpose} 1\n{text}");
            mac.chain_update(text).finalize().into_bytes().to_vec()
        },
    )
}

impl Logins {
    /// `label` is the board's in host names; the cookie has its name.
    pub(super) fn new(secret: Secret, label: &str) -> Self {
        Self { secret, cookie: format!("callboard-{label}"), codes: Mutex::default() }
    }

    /// A new code that stands for the token with this hash, once and for some minutes.
    pub(super) fn code(&self, token: &str, now: Instant) -> io::Result<String> {
        let code = random_letters(CODE_LETTERS)?;
        let until = now + Duration::from_secs(60 * CODE_MINUTES);
        let mut codes = self.codes();
        codes.retain(|_, code| code.until > now);
        if codes.len() >= CODES {
            let oldest = codes.iter().min_by_key(|(_, code)| code.until);
            oldest.map(|(hash, _)| hash.clone()).and_then(|hash| codes.remove(&hash));
        }
        codes.insert(sha256(&code), Code { token: token.to_owned(), until });
        Ok(code)
    }

    /// The hash of the token that a code stands for. The code is used up.
    pub(super) fn redeem(&self, code: &str, now: Instant) -> Option<String> {
        let used = self.codes().remove(&sha256(code.trim()))?;
        (used.until > now).then_some(used.token)
    }

    fn codes(&self) -> MutexGuard<'_, HashMap<String, Code>> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `Set-Cookie` of a visitor with this token.
    pub(super) fn cookie(&self, token: &str, now: Timestamp) -> io::Result<String> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let until = (now + COOKIE_DAYS * DAY).millis();
        let content = format!("{until}.{token}.{}", hex(&nonce));
        let signed = hex(&signature(&(self.secret)(), "cookie", &content));
        let age = COOKIE_DAYS * DAY / 1000;
        Ok(format!(
            "{}={content}.{signed}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}",
            self.cookie
        ))
    }

    /// The `Set-Cookie` that takes the cookie away.
    pub(super) fn no_cookie(&self) -> String {
        format!("{}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0", self.cookie)
    }

    /// The hash of the token that a request's cookie is bound to.
    pub(super) fn visitor(&self, headers: &HeaderMap, now: Timestamp) -> Option<String> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut ours = cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|one| one.trim().strip_prefix(self.cookie.as_str())?.strip_prefix('='));
        // Another page of the same host could have set a second one.
        ours.find_map(|value| self.checked(value, now))
    }

    fn checked(&self, value: &str, now: Timestamp) -> Option<String> {
        let (content, signed) = value.rsplit_once('.')?;
        let secret = (self.secret)();
        let own = hex(&signature(&secret, "cookie", content));
        let is_own: bool = subtle::ConstantTimeEq::ct_eq(own.as_bytes(), signed.as_bytes()).into();
        let mut fields = content.split('.');
        let (until, token) = (fields.next()?.parse::<i64>().ok()?, fields.next()?);
        let is_good = is_own && !secret.is_empty() && now.millis() < until;
        is_good.then(|| token.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins() -> Logins {
        Logins::new(Arc::new(|| "secret".to_owned()), "app")
    }

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(60 * count)
    }

    #[test]
    fn code_is_good_once_and_until_its_time_is_over() {
        let (logins, start) = (logins(), Instant::now());
        let last = start + minutes(CODE_MINUTES) - Duration::from_millis(1);
        let code = logins.code("token", start).unwrap();
        assert_eq!(logins.redeem(&code, last).as_deref(), Some("token"));
        assert_eq!(logins.redeem(&code, start), None, "it was used");
        let late = logins.code("token", start).unwrap();
        assert_eq!(logins.redeem(&late, start + minutes(CODE_MINUTES)), None);
        assert_eq!(logins.redeem(&late, start), None, "who came too late has used it up");
    }

    #[test]
    fn codes_that_are_over_make_room_and_then_the_oldest_does() {
        let (logins, start) = (logins(), Instant::now());
        let old = logins.code("old", start).unwrap();
        let later = start + minutes(CODE_MINUTES);
        let codes: Vec<_> = (0..CODES).map(|_| logins.code("new", later).unwrap()).collect();
        assert_eq!(logins.codes().len(), CODES, "the old one is gone");
        assert_eq!(logins.redeem(&old, start), None);
        let one_more = logins.code("newest", later + minutes(1)).unwrap();
        assert_eq!(logins.codes().len(), CODES);
        let good = codes.iter().filter(|code| logins.redeem(code, later).is_some()).count();
        assert_eq!(good, CODES - 1);
        assert_eq!(logins.redeem(&one_more, later).as_deref(), Some("newest"));
    }

    #[test]
    fn cookie_ends_with_its_days() {
        let (logins, start) = (logins(), Timestamp::from_millis(1_000));
        let cookie = logins.cookie("token", start).unwrap();
        let sent = cookie.split(';').next().unwrap().parse().unwrap();
        let headers = HeaderMap::from_iter([(COOKIE, sent)]);
        let visitor = |now| logins.visitor(&headers, now);
        let end = start + COOKIE_DAYS * DAY;
        assert_eq!(visitor(end - 1).as_deref(), Some("token"));
        assert_eq!(visitor(end), None);
    }
}
