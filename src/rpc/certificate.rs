//! Why a server's certificate is refused, in words for the person who set the server up. A TLS
//! error comes as text only.

use std::fmt;

use crate::state::time::Timestamp;

/// What is wrong with a certificate.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Its issuer is unknown, or did not sign it.
    UnknownIssuer,
    /// It may sign others but not serve: what `openssl req -x509` makes by itself.
    Authority,
    /// It is for other names, in the words of the error.
    Name(String),
    Expired(Option<Timestamp>),
    NotYetValid(Option<Timestamp>),
    Revoked,
    Other(String),
}

impl Fault {
    /// Reads the text of rustls's error.
    pub fn of(detail: &str) -> Self {
        match detail {
            _ if detail.starts_with("certificate not valid for name") => {
                Self::Name(detail.to_owned())
            }
            _ if detail.starts_with("certificate expired") => {
                Self::Expired(time_after(detail, "not valid after "))
            }
            _ if detail.starts_with("certificate not valid yet") => {
                Self::NotYetValid(time_after(detail, "not valid before "))
            }
            _ if detail.contains("CaUsedAsEndEntity") => Self::Authority,
            // The second is for an authority of the same name that is another.
            "UnknownIssuer" | "BadSignature" => Self::UnknownIssuer,
            "Revoked" => Self::Revoked,
            _ => Self::Other(detail.to_owned()),
        }
    }
}

/// The time that follows `words`, in seconds since 1970.
fn time_after(detail: &str, words: &str) -> Option<Timestamp> {
    let (_, rest) = detail.split_once(words)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(Timestamp::from_millis(digits.parse::<i64>().ok()?.checked_mul(1_000)?))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when =
            |time: &Option<Timestamp>| time.map(|time| format!(" {time}")).unwrap_or_default();
        match self {
            Self::UnknownIssuer => f.write_str(
                "no authority that is trusted here has signed it; if it is your own, name the \
                 file of its authority in SSL_CERT_FILE",
            ),
            Self::Authority => f.write_str(
                "it is an authority's own, which may sign others but not serve; make one for the \
                 server, with basicConstraints CA:FALSE",
            ),
            Self::Name(names) => {
                write!(f, "{names}; call the server by a name that the certificate holds")
            }
            Self::Expired(time) => {
                write!(f, "it expired{}; renew it, or set this machine's clock", when(time))
            }
            Self::NotYetValid(time) => {
                write!(f, "it is valid only from{}; wait, or set this machine's clock", when(time))
            }
            Self::Revoked => {
                f.write_str("its authority has revoked it; the server needs a new one")
            }
            Self::Other(detail) => {
                write!(
                    f,
                    "{detail}; check the server's certificate, and SSL_CERT_FILE if its authority \
                     is your own"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_says_what_and_what_to_do() {
        let expired = "certificate expired: verification time 1764103906 (UNIX), but certificate \
                       is not valid after 1738368000 (25735906 seconds ago)";
        let early = "certificate not valid yet: verification time 1 (UNIX), but certificate is \
                     not valid before 1738368000 (1738367999 seconds in future)";
        let name =
            "certificate not valid for name \"a\"; certificate is only valid for DnsName(\"b\")";
        for (detail, words) in [
            ("UnknownIssuer", ["no authority", "SSL_CERT_FILE"]),
            ("BadSignature", ["no authority", "SSL_CERT_FILE"]),
            ("Other(OtherError(CaUsedAsEndEntity))", ["an authority's own", "CA:FALSE"]),
            (name, ["DnsName(\"b\")", "by a name"]),
            (expired, ["expired 2025-02-01T00:00:00", "renew"]),
            ("certificate expired", ["it expired;", "clock"]),
            (early, ["from 2025-02-01T00:00:00", "clock"]),
            ("Revoked", ["revoked", "new one"]),
            ("UnsupportedSignatureAlgorithm", ["UnsupportedSignatureAlgorithm", "check"]),
        ] {
            let told = Fault::of(detail).to_string();
            words.iter().for_each(|word| assert!(told.contains(word), "{detail}: {told}"));
            assert_eq!(told.lines().count(), 1);
        }
    }
}
