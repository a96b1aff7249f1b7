//! Secrets recognised by their form: the prefixes and shapes that their issuers document.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::Finding;

struct Shape {
    kind: &'static str,
    /// Texts, divided by `|`, of which one is in every match of the pattern, in whatever case.
    signs: &'static str,
    /// Regular expression; the first group is the secret, or else the whole match.
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
    shape(
        "aws key id",
        "AKIA|ASIA|ABIA|ACCA",
        r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)",
    ),
    shape(
        "github token",
        "ghp_|gho_|ghu_|ghs_|ghr_",
        r"(?-u:\b)gh[pousr]_[A-Za-z0-9]{36,255}(?-u:\b)",
    ),
    shape("github token", "github_pat_", r"(?-u:\b)github_pat_[A-Za-z0-9_]{22,255}(?-u:\b)"),
    checked(
        "gitlab token",
        "glpat-|glptt-|gldt-|glrt-|glrtr-|glcbt-|glft-|glimt-|glagent-|gloas-|glsoat-|glffct-",
        r"(?-u:\b)gl(?:pat|ptt|dt|rt|rtr|cbt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{20,}",
        has_digit_or_case,
    ),
    shape("slack token", "xox", r"(?-u:\b)xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    shape("slack token", "xapp-", r"(?-u:\b)xapp-[0-9]-[A-Z0-9]+-[0-9]+-[A-Za-z0-9]+"),
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
        "stripe key",
        "k_live_|k_test_|k_prod_",
        r"(?-u:\b)[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}",
    ),
    shape("webhook secret", "whsec_", r"(?-u:\b)whsec_[A-Za-z0-9+/=]{24,}"),
    shape("anthropic key", "sk-ant-", r"(?-u:\b)sk-ant-[A-Za-z0-9_-]{20,}"),
    shape("openrouter key", "sk-or-", r"(?-u:\b)sk-or-v1-[0-9a-f]{32,}"),
    checked(
        "openai key",
        "sk-",
        r"(?-u:\b)sk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,}",
        has_digit_and_case,
    ),
    shape("google key", "AIza", r"(?-u:\b)AIza[A-Za-z0-9_-]{35}"),
    shape("google token", "ya29.", r"(?-u:\b)ya29\.[A-Za-z0-9_-]{20,}"),
    shape("google token", "1//0", r"(?-u:\b)1//0[A-Za-z0-9_-]{30,}"),
    shape("google client secret", "GOCSPX-", r"(?-u:\b)GOCSPX-[A-Za-z0-9_-]{20,}"),
    shape(
        "json web token",
        "eyJ",
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){0,2}",
    ),
    shape("npm token", "npm_", r"(?-u:\b)npm_[A-Za-z0-9]{36}(?-u:\b)"),
    shape("pypi token", "pypi-", r"(?-u:\b)pypi-[A-Za-z0-9_-]{50,}"),
    shape("crates.io token", "cio", r"(?-u:\b)cio[A-Za-z0-9]{32}(?-u:\b)"),
    shape("rubygems token", "rubygems_", r"(?-u:\b)rubygems_[0-9a-f]{48}(?-u:\b)"),
    shape(
        "azure key",
        "AccountKey=|SharedAccessKey=",
        r"(?i:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})",
    ),
    shape("azure signature", "sig=", r"[?&]sig=([A-Za-z0-9+/%]{40,}(?:%3[Dd]|=)?)"),
    shape("azure client secret", "Q~", r"(?-u:\b)([A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.-]{31,34})"),
    shape("vault token", "hvs.|hvb.|hvr.", r"(?-u:\b)hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    shape("digitalocean token", "_v1_", r"(?-u:\b)do[opr]_v1_[0-9a-f]{64}"),
    shape("hugging face token", "hf_", r"(?-u:\b)hf_[A-Za-z0-9]{34,}(?-u:\b)"),
    shape("twilio key", "SK", r"(?-u:\b)SK[0-9a-f]{32}(?-u:\b)"),
    shape("sendgrid key", "SG.", r"(?-u:\b)SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}"),
    shape("mailgun key", "key-", r"(?-u:\b)key-[0-9a-f]{32}(?-u:\b)"),
    shape("telegram token", ":AA", r"(?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    shape(
        "shopify token",
        "shpat_|shpca_|shppa_|shpss_",
        r"(?-u:\b)shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}(?-u:\b)",
    ),
    shape("linear key", "lin_", r"(?-u:\b)lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    shape(
        "notion token",
        "ntn_|secret_",
        r"(?-u:\b)(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}(?-u:\b))",
    ),
    shape("databricks token", "dapi", r"(?-u:\b)dapi[0-9a-f]{32}(?:-[0-9])?(?-u:\b)"),
    shape("docker token", "dckr_", r"(?-u:\b)dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    shape("atlassian token", "ATATT3|ATCTT3", r"(?-u:\b)AT[AC]TT3[A-Za-z0-9_=-]{50,}"),
    shape("age key", "AGE-SECRET-KEY-", r"(?-u:\b)AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    shape("groq key", "gsk_", r"(?-u:\b)gsk_[A-Za-z0-9]{40,}"),
    shape("xai key", "xai-", r"(?-u:\b)xai-[A-Za-z0-9]{60,}"),
    shape("perplexity key", "pplx-", r"(?-u:\b)pplx-[A-Za-z0-9]{40,}"),
    shape("replicate token", "r8_", r"(?-u:\b)r8_[A-Za-z0-9]{37}(?-u:\b)"),
    shape("supabase token", "sbp_|sb_secret_", r"(?-u:\b)sb(?:p|_secret)_[A-Za-z0-9_-]{20,}"),
    shape("postman key", "PMAK-", r"(?-u:\b)PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    shape("new relic key", "NRAK-", r"(?-u:\b)NRAK-[A-Z0-9]{27}"),
    shape("grafana token", "glsa_", r"(?-u:\b)gls[a]_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}"),
    shape("grafana token", "glc_eyJ", r"(?-u:\b)glc_eyJ[A-Za-z0-9+/=]{30,}"),
    shape("netlify token", "nfp_|nfc_|nfk_|nfu_|nfb_", r"(?-u:\b)nf[pckub]_[A-Za-z0-9]{36}"),
    shape("sentry token", "sntryu_|sntrys_", r"(?-u:\b)sntry[su]_[A-Za-z0-9+/=_]{40,}"),
    shape("doppler token", "dp.", r"(?-u:\b)dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,}"),
    shape("cloudflare key", "v1.0-", r"(?-u:\b)v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    shape("fly token", "fm1_|fm2_", r"(?-u:\b)fm[12]_[A-Za-z0-9+/=_-]{60,}"),
    shape("planetscale token", "pscale_", r"(?-u:\b)pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}"),
    shape("callboard token", "cbt_", r"(?-u:\b)cbt_[0-9a-f]{64}(?-u:\b)"),
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
        r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'<>`?#]*:([^\s/@"'<>`]+)@[A-Za-z0-9\[]"#,
        |password| !super::value::is_reference(password) && password.len() > 2,
    ),
    checked(
        "password",
        "-u|--user|--proxy-user",
        r#"(?:^|[ \t'"])(?:-u|--user|--proxy-user)[ =]['"]?[A-Za-z0-9._@+-]+:([^\s'"]+)"#,
        |password| !super::value::is_reference(password) && password.len() > 2,
    ),
];

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
    let signs = AhoCorasick::builder().ascii_case_insensitive(true).build(signs).ok()?;
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
            let Some(secret) = captures.get(1).or_else(|| captures.get(0)) else { continue };
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

fn has_digit_and_case(text: &str) -> bool {
    let tail = text.trim_start_matches("sk-").trim_start_matches("None-");
    let has = |is: fn(&u8) -> bool| tail.as_bytes().iter().any(is);
    let digits = tail.bytes().filter(u8::is_ascii_digit).count();
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && digits > 0 || digits >= 6
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
