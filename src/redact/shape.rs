//! Secrets recognised by their form: the prefixes and shapes that their issuers document.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

use super::Finding;
use super::issuer::is_mixed;
use super::plain::may_be_phrase;
use super::value::{has, is_made, is_reference};

struct Shape {
    kind: &'static str,
    /// Texts, divided by `|`, of which one is in every match of the pattern, in whatever case.
    signs: &'static str,
    /// Regular expression; the group is the secret, or else the whole match.
    pattern: &'static str,
    is_real: fn(&str) -> bool,
}

const fn shape(kind: &'static str, signs: &'static str, pattern: &'static str) -> Shape {
    Shape { kind, signs, pattern, is_real: |_| true }
}

const fn checked(
    kind: &'static str,
    signs: &'static str,
    pattern: &'static str,
    is_real: fn(&str) -> bool,
) -> Shape {
    Shape { kind, signs, pattern, is_real }
}

const SHAPES: &[Shape] = &[
    checked(
        "private key",
        "PRIVATE KEY",
        r"(?s)-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----.*?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
        |text| longest_run(text) >= 24,
    ),
    // A key cut off before its end.
    shape(
        "private key",
        "PRIVATE KEY",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr])+[A-Za-z0-9+/=]{24,}(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{16,})*",
    ),
    // A key without its head, and one without head and end: the bytes that begin the formats.
    shape(
        "private key",
        "PRIVATE KEY",
        r"(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr]|[>|+#]\s)+)+-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
    ),
    shape(
        "private key",
        "IBAAK|IBADAN|hkiG9w0BBQ0|CAQEE|AgEBB|AgEAM|MC4CAQAwBQYDK2Vw|b3BlbnNzaC1rZXktdjE",
        r"(?-u:\b)(?:MII[A-Za-z0-9+/]{2}[AQgw]IBA(?:AK[BC]|DAN)|MI[A-Za-z0-9+/]{6,12}[A-Za-z0-9+/]{0,8}hkiG9w0BBQ0|M[HG][A-Za-z0-9+/]{1,4}(?:CAQEE|AgEBB|AgEAM[A-D])|MC4CAQAwBQYDK2Vw|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/=]{16,}(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{16,})*",
    ),
    // The same in Base64 once more, as clusters and pipelines keep keys.
    shape(
        "private key",
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi(?:B(?:SU0Eg|SU0EgUF|QUklW|FQy|PUEVO|ERVB|FTkN)|[A-Za-z0-9+/]{0,24}UFJJVkFU|[A-Za-z0-9+/]{0,24}QUklWQVRF)[A-Za-z0-9+/=\s]{24,}",
    ),
    shape(
        "password hash",
        "$1$|$2a$|$2b$|$2y$|$5$|$6$|$7$|$y$|$gy$|$apr1$|$argon2|$krb5",
        r"\$(?:1|2[aby]|5|6|7|g?y|apr1|argon2(?:id|i|d)|krb5(?:tgs|asrep))\$[A-Za-z0-9./$,=+@:*-]{20,}",
    ),
    shape("salesforce token", "00D", r"(?-u:\b)00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,}"),
    shape(
        "clickup or klaviyo key",
        "pk_",
        r"(?-u:\b)pk_(?:[0-9]{7,9}_[0-9A-Z]{32}|[0-9a-f]{34})(?-u:\b)",
    ),
    shape(
        "private key",
        "Private-Lines",
        r"Private-Lines: [0-9]{1,3}(?:\s|\\[nr])+((?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr])*)+)",
    ),
    shape(
        "slack webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{20,})",
    ),
    shape(
        "discord webhook",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/[0-9]{10,}/([A-Za-z0-9_-]{40,})",
    ),
    shape(
        "webhook",
        "webhook.office.com|outlook.office.com/webhook|hooks.zapier.com|/hooks/catch/|chat.googleapis.com",
        r"(?:webhook\.office\.com/webhookb2/|outlook\.office\.com/webhook/|hooks\.zapier\.com/hooks/catch/|hook\.[a-z0-9.]+\.make\.com/|chat\.googleapis\.com/v1/spaces/)([A-Za-z0-9@/_?&=%.-]{16,})",
    ),
    shape("discord token", ".", DISCORD),
    shape("twilio key", "SK", r"(?-u:\b)SK[0-9a-f]{32}(?-u:\b)"),
    shape("mailgun key", "key-", r"(?-u:\b)key-[0-9a-f]{32}(?-u:\b)"),
    shape("mailchimp key", "-us", r"(?-u:\b)[0-9a-f]{32}-us[0-9]{1,2}(?-u:\b)"),
    checked(
        "aws key",
        "AKIA|ASIA",
        r"(?s)(?-u:\b)A[KS]IA[A-Z0-9]{16}(?-u:\b).{0,80}?[^A-Za-z0-9/+]([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)",
        |key| has_digit_or_case(key) && has(key, u8::is_ascii_uppercase),
    ),
    shape(
        "twilio key",
        "AC",
        r"(?s)(?-u:\b)AC[0-9a-f]{32}(?-u:\b).{1,80}?(?-u:\b)([0-9a-f]{32})(?-u:\b)",
    ),
    shape(
        "braintree token",
        "access_token$",
        r"access_token\$[a-z]{4,12}\$[0-9a-z]{16}\$[0-9a-f]{32}",
    ),
    checked(
        "ngrok token",
        "_",
        r"(?-u:\b)([12c][A-Za-z0-9]{26}_[0-9A-Za-z][A-Za-z0-9]{20})(?-u:\b)",
        |token| token.split('_').all(is_mixed),
    ),
    checked(
        "azure devops token",
        "pat|token|azure|devops|vsts|://|-u",
        r"(?-u:\b)([a-z2-7]{52})(?-u:\b)",
        |token| has(token, u8::is_ascii_digit) && has(token, u8::is_ascii_lowercase),
    ),
    checked(
        "okta token",
        "SSWS|okta",
        r#"(?i)(?:SSWS[\s'":=]+|okta[\w.'" -]{0,30}[:=\s>]{1,3}['"]?)(00[A-Za-z0-9_-]{34,46})(?:[^A-Za-z0-9_-]|$)"#,
        is_made,
    ),
    checked(
        "confluent key",
        "confluent",
        r#"(?i)confluent[\w.'" -]{0,30}[:=\s>]{1,4}['"]?([A-Za-z0-9+/]{64}|[A-Z0-9]{16})(?:[^A-Za-z0-9+/]|$)"#,
        |key| has(key, u8::is_ascii_digit) && is_made(key),
    ),
    checked(
        "password",
        "IDENTIFIED|PASSWORD|-- ",
        r#"(?i)(?-u:\b)(?:IDENTIFIED(?: WITH \S{1,40})? (?:BY|AS)(?: PASSWORD)?|(?:CREATE|ALTER) (?:USER|ROLE)[^;'"\n]{1,80}PASSWORD)[ =]{1,3}['"]([^'"\n]{3,})['"]"#,
        |password| !is_reference(password),
    ),
    shape("telegram token", ":AA", r"(?:(?-u:\b)|bot)[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    shape("terraform token", "atlasv1", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    shape("airtable token", "pat", r"(?-u:\b)pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    shape("asana token", ":", r"(?-u:\b)[12]/[0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}"),
    shape("1password key", "A3-", r"(?-u:\b)A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}"),
    shape("new relic key", "NRAL", r"(?-u:\b)[0-9a-f]{36}(?:NRAL|FFFFNRAL)"),
    shape("maxmind key", "_mmk", r"(?-u:\b)[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    shape("firebase key", "AAAA", r"(?-u:\b)AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{100,}"),
    shape("github token", "v1.", r"(?-u:\b)v1\.[0-9a-f]{40}(?-u:\b)"),
    shape("zoho token", "1000.", r"(?-u:\b)1000\.[0-9a-f]{32}\.[0-9a-f]{32}"),
    shape(
        "harness token",
        "pat.|sat.",
        r"(?-u:\b)[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}",
    ),
    shape(
        "json web token",
        "eyJ",
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){0,2}",
    ),
    shape(
        "azure key",
        "AccountKey=|SharedAccessKey=",
        r"(?i:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})",
    ),
    shape("azure signature", "sig=", r"[?&]sig=([A-Za-z0-9+/%]{40,}(?:%3[Dd]|=)?)"),
    shape("azure client secret", "Q~", r"(?-u:\b)([A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.-]{31,34})"),
    shape(
        "azure key",
        "JQQJ9|AzSe|AzCa|AzFu|+ASt|+AMC|+ARm|+AEh|+ASb|ACDb|AZDO|AIoT",
        r"(?:^|[^A-Za-z0-9+/])([A-Za-z0-9+/]{38,90}(?:JQQJ9[0-9]|AzSe|AzCa|AzFu|\+ASt|\+AMC|\+ARm|\+AEh|\+ASb|ACDb|AZDO|\+?AIoT)[A-Za-z0-9+/]{4,30}={0,2})(?:$|[^A-Za-z0-9+/=])",
    ),
    checked(
        "signature",
        "X-Amz-|X-Goog-|Signature=|sig=|sign=|code=|key=|ticket=|hmac=",
        r"(?i)[?&;](?:x-(?:amz|goog|oss|cos)-(?:signature|security-token|credential)|signature|sig|sign|hmac|ticket|code|key|hdnts|hmac|policy)=([A-Za-z0-9%+/_.~-]{16,}={0,2})",
        is_made,
    ),
    shape(
        "one-time secret",
        "otpauth",
        r"(?i)otpauth(?:-migration)?://[^\s\x22'<>]*?[?&](?:secret|data)=([A-Z2-7a-z%0-9+/=]{8,})",
    ),
    checked(
        "password",
        "machine|default",
        r"(?s)(?-u:\b)(?:machine\s+\S+\s+(?:login\s+\S+\s+)?|default\s+login\s+\S+\s+)(?:account\s+\S+\s+)?password\s+(\S+)",
        |password| !is_reference(password),
    ),
    checked(
        "password",
        ":543|:330|:1433|:1521|:6432|:27017|:*:",
        r"(?m)^[\w.*-]+:(?:54[0-9]{2}|330[0-9]|1433|1521|6432|27017|\*):[\w.*-]+:[\w.*-]+:(\S+)$",
        |password| !is_reference(password),
    ),
    checked(
        "bearer token",
        "bearer",
        r#"(?i:(?-u:\b)bearer)(?:[ \t]|%20)+["'<]?([A-Za-z0-9._~+/=:-]{16,})"#,
        has_digit_or_case,
    ),
    checked(
        "basic credentials",
        "basic",
        r"(?i:authorization)[\x22' \t\\]*[:=][\x22' \t\\]*(?i:basic)[ \t]+([A-Za-z0-9+/_-]{7,}={0,2})",
        |_| true,
    ),
    checked(
        "authorization",
        "authorization",
        r"(?i:authorization)[\x22' \t\\]*[:=][\x22' \t\\]*(?i:token|apikey|api-key|key|digest)[ \t]+([A-Za-z0-9._~+/=-]{12,})",
        has_digit_or_case,
    ),
    checked(
        "password",
        "://",
        r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'<>`?#]*:([^\s/"'<>`]+)@[A-Za-z0-9\[]"#,
        |password| !is_reference(password) && password.len() > 2,
    ),
    // With a slash in it, unless it is a port with a path behind it.
    checked(
        "password",
        "://",
        r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'<>`?#]*:([^\s/@"'<>`]+/[^\s@"'<>`?]*)@[A-Za-z0-9\[]"#,
        |password| {
            let port = password.split('/').next().unwrap_or_default();
            !is_reference(password) && !port.bytes().all(|byte| byte.is_ascii_digit())
        },
    ),
    checked(
        "password",
        "@tcp(|@unix(|:thin:|sqlplus",
        r#"(?:[\w.-]+:([^\s@/"'`]{3,})@(?:tcp|unix)\(|(?::thin:|sqlplus(?: -\w+)* )\w+/([^\s@/"'`]{3,})@)"#,
        |password| !is_reference(password),
    ),
    checked(
        "passphrase",
        "phrase|mnemonic",
        r#"(?i)(?:pass[ _-]?phrase|mnemonic|(?:seed|recovery|secret)[ _-]?(?:phrase|words))\w*["'*]{0,3}\s{0,3}(?:[:=]|is|->)\s{0,3}["'`*]{1,3}([^"'`\n]{8,300})["'`*]"#,
        may_be_phrase,
    ),
    shape(
        "seed phrase",
        "phrase|mnemonic|seed|recovery|words",
        r#"(?i)(?:mnemonic|(?:seed|recovery|backup|secret|wallet)(?:[ _-](?:phrase|words|seed))?)["'*]{0,3}\s{0,3}(?:[:=]|is|are|->)\s{0,3}["'`]?((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b"#,
    ),
    checked(
        "token",
        "://",
        r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]{1,20}://([^\s/:@"'<>`?#]{8,})(?::[^\s/@"'<>`]*)?@[A-Za-z0-9\[]"#,
        |token| is_made(token) && !is_reference(token),
    ),
    checked(
        "password",
        "-u|--user|--proxy-user",
        r#"(?:^|[ \t'"])(?:-u|--user|--proxy-user)[ =]['"]?[A-Za-z0-9._@+-]+:([^\s'"]+)"#,
        |password| {
            !is_reference(password)
                && has(password, u8::is_ascii_digit)
                && has(password, u8::is_ascii_alphabetic)
        },
    ),
];

const DISCORD: &str = r"(?-u:\b)(?:[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}|mfa\.[A-Za-z0-9_-]{60,})";

/// Finds in one pass which shapes a text may contain, so that few patterns are tried and fewer
/// compiled.
struct Scout {
    signs: AhoCorasick,
    /// The shape of each sign.
    shapes: Vec<usize>,
    /// Fewest bytes of a text that the shape's pattern can match, because `sk-` is in every
    /// `task-1`.
    shortest: Vec<OnceLock<usize>>,
    patterns: Vec<OnceLock<Option<Regex>>>,
}

/// Always present, because the signs are constants; a test builds it.
static SCOUT: LazyLock<Option<Scout>> = LazyLock::new(|| {
    let all = SHAPES.iter().enumerate();
    let signs =
        all.flat_map(|(index, shape)| shape.signs.split('|').map(move |sign| (index, sign)));
    let (shapes, signs): (Vec<_>, Vec<_>) = signs.unzip();
    let signs = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(signs)
        .ok()?;
    let shortest = SHAPES.iter().map(|_| OnceLock::new()).collect();
    Some(Scout {
        signs,
        shapes,
        shortest,
        patterns: SHAPES.iter().map(|_| OnceLock::new()).collect(),
    })
});

pub(super) fn findings(text: &str) -> Vec<Finding> {
    let Some(scout) = &*SCOUT else { return Vec::new() };
    let mut possible = [false; SHAPES.len()];
    scout
        .signs
        .find_overlapping_iter(text)
        .for_each(|sign| possible[scout.shapes[sign.pattern()]] = true);
    let mut found = Vec::new();
    let may_match = |index: usize| {
        possible[index]
            && text.len() >= *scout.shortest[index].get_or_init(|| shortest(&SHAPES[index]))
    };
    for (index, shape) in SHAPES.iter().enumerate().filter(|(index, _)| may_match(*index)) {
        let Some(pattern) = scout.patterns[index].get_or_init(|| Regex::new(shape.pattern).ok())
        else {
            continue;
        };
        for captures in pattern.captures_iter(text) {
            let Some(secret) = captures.iter().skip(1).flatten().next().or_else(|| captures.get(0))
            else {
                continue;
            };
            if (shape.is_real)(secret.as_str()) {
                found.push(Finding { place: secret.range(), kind: shape.kind });
            }
        }
    }
    found
}

fn shortest(shape: &Shape) -> usize {
    let pattern = regex_syntax::parse(shape.pattern).ok();
    pattern.and_then(|pattern| pattern.properties().minimum_len()).unwrap_or_default()
}

/// True if the text has a digit or both cases: names made of words have lower-case letters and
/// hyphens only.
fn has_digit_or_case(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c: char| !(c.is_ascii_alphanumeric() || "+/=".contains(c)));
    runs.map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for shape in SHAPES {
            Regex::new(shape.pattern).unwrap_or_else(|error| panic!("{}: {error}", shape.kind));
        }
        assert!(SCOUT.is_some());
    }
}
