//! Secrets recognised by the prefix that their issuers give them, such as `ghp_` and `sk_live_`.
//!
//! The prefixes are facts that issuers and public scanners (gitleaks, trufflehog, detect-secrets,
//! kingfisher) document. What follows a prefix must look made by a machine, and only its least
//! length counts, because issuers make their tokens longer over the years.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::value::{bits_per_byte, has, is_chaotic, is_made, is_opaque};
use super::{Finding, floor};

struct Issuer {
    kind: &'static str,
    /// Prefixes, divided by spaces.
    prefixes: &'static str,
    /// Characters that may follow beside letters, digits, `_` and `-`.
    also: &'static str,
    /// Fewest letters and digits after the prefix.
    least: usize,
    is_real: fn(&str) -> bool,
}

const fn issuer(
    kind: &'static str,
    least: usize,
    also: &'static str,
    prefixes: &'static str,
) -> Issuer {
    Issuer { kind, prefixes, also, least, is_real: is_drawn }
}

/// Prefixes that also begin the names of other things, which `is_real` tells apart.
const fn strict(
    kind: &'static str,
    least: usize,
    prefixes: &'static str,
    is_real: fn(&str) -> bool,
) -> Issuer {
    Issuer { kind, prefixes, also: "", least, is_real }
}

/// How many bytes behind a prefix decide whether it begins a secret, so that the time is linear in
/// texts full of prefixes.
const JUDGED: usize = 256;

/// Characters of Base64, and those that divide the parts of a token.
const BASE64: &str = "+/=.";

const ISSUERS: &[Issuer] = &[
    issuer("github token", 20, "", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_"),
    issuer(
        "gitlab token",
        18,
        ".",
        "glpat- glptt- gldt- glrt- glrtr- glcbt- glft- glimt- glagent- gloas- glsoat- glffct- \
         glwt- GR1348941",
    ),
    issuer(
        "slack token",
        10,
        "%",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxb- xoxe.xoxp- xapp- xwfp-",
    ),
    issuer("stripe key", 14, "", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_"),
    issuer("webhook secret", 20, BASE64, "whsec_"),
    issuer("anthropic key", 18, "", "sk-ant-"),
    issuer("openrouter key", 20, "", "sk-or-"),
    issuer("openai key", 20, "", "sk-proj- sk-svcacct- sk-admin- sk-None- sess-"),
    strict("openai key", 20, "sk-", has_digits_and_case),
    issuer("google key", 30, "", "AIza AQ."),
    issuer("google token", 20, "", "ya29. 1//0 1%2F%2F0 4/0A 4%2F0A GOCSPX-"),
    issuer("mapbox token", 50, ".", "sk.eyJ tk.eyJ pk.eyJ"),
    issuer("confluent key", 40, BASE64, "cflt"),
    strict("aws key id", 16, "AKIA ASIA ABIA ACCA AROA AIDA A3TX", is_upper),
    issuer("aws key", 40, BASE64, "ABSK bedrock-api-key- Atza| Atzr|"),
    issuer("aws key", 26, "", "da2- amzn.mws. amzn1.oa2-cs."),
    issuer("hugging face token", 28, "", "hf_ api_org_"),
    issuer("npm token", 30, "", "npm_"),
    issuer("pypi token", 40, "", "pypi-"),
    strict("crates.io token", 32, "cio", |tail| is_made(tail) && tail.len() == 32),
    strict("nuget key", 43, "oy2", |tail| is_made(tail) && tail.len() == 43),
    issuer("registry token", 24, "", "rubygems_ CLOJARS_ dckr_pat_ dckr_oat_ jfrt_ packagist_"),
    strict("artifactory token", 59, "AKCp cmVmd", is_made),
    issuer("vault token", 20, "", "hvs. hvb. hvr."),
    issuer("digitalocean token", 40, "", "dop_v1_ doo_v1_ dor_v1_"),
    issuer("sendgrid key", 40, ".", "SG."),
    issuer("mail key", 40, "", "xkeysib- xsmtpsib-"),
    issuer("shopify token", 28, "", "shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shltm_"),
    issuer("linear key", 28, "", "lin_api_ lin_oauth_ lin_wh_"),
    issuer("notion token", 40, "", "ntn_ secret_"),
    issuer("figma token", 20, "", "figd_ figo_ figu_ figp_ figor_ figoh_ figdr_"),
    issuer("databricks token", 32, "", "dapi"),
    issuer("atlassian token", 24, "=", "ATATT3 ATCTT3 ATSTT3 ATBB ATOA BBDC-"),
    strict("trello token", 64, "ATTA", is_made),
    issuer("age key", 50, "", "AGE-SECRET-KEY- AGE-PLUGIN-"),
    issuer("doppler token", 36, ".", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said."),
    issuer("fly token", 40, BASE64, "fo1_ fm1_ fm1a_ fm1r_ fm2_"),
    issuer("vercel token", 20, "", "vcp_ vci_ vca_ vcr_ vck_"),
    issuer("netlify token", 30, "", "nfp_ nfc_ nfk_ nfu_ nfb_ nfo_"),
    issuer("cloudflare key", 30, "", "v1.0- cfk_ cfat_ cfut_ cfo_"),
    issuer("grafana token", 30, BASE64, "glsa_ glc_ eyJrIjoi"),
    issuer("new relic key", 18, "", "NRAK- NRII- NRIQ- NRJS- NRAA- NRRA- NRBR- NRSP-"),
    issuer("sentry token", 36, BASE64, "sntrys_ sntryu_ sntrya_ sntryi_"),
    issuer("planetscale token", 28, "=.", "pscale_tkn_ pscale_pw_ pscale_oauth_"),
    issuer("supabase token", 18, "", "sbp_ sb_secret_ sbp_oauth_"),
    issuer("groq key", 36, "", "gsk_"),
    issuer("xai key", 40, "", "xai-"),
    issuer("perplexity key", 36, "", "pplx-"),
    strict("replicate token", 37, "r8_", is_made),
    issuer(
        "model provider key",
        24,
        "",
        "sk-lf- lsv2_pt_ lsv2_sk_ ls__ pcsk_ nvapi- jina_ tvly- fc- csk- tgp_v1_ fw_ e2b_ \
         sk-helicone- sk-kimi- wandb_v1_ bb_live_ dtn_",
    ),
    issuer("postman key", 40, "", "PMAK- PMAT-"),
    issuer("1password token", 40, BASE64, "ops_eyJ"),
    issuer("hubspot token", 28, "", "pat-na1- pat-na2- pat-eu1- pat-ap1-"),
    issuer("telegraph key", 40, "", "phx_ phs_ CCIPAT_ CCIPRJ_ bkua_ bkaj_ tskey- dnkey-"),
    issuer("datadog key", 28, "", "ddp_ ddw_ ddapp_ pub_dd_"),
    issuer("dynatrace token", 60, ".", "dt0c01. dt0s01. dt0a01. dt0s02. dt0s16."),
    issuer(
        "sonar or sourcegraph token",
        36,
        "",
        "squ_ sqp_ sqa_ sqco_ sgp_ slk_ pul- pnu_ pnb_ rdme_ tfp_ sha256~",
    ),
    issuer("square token", 22, "", "sq0atp- sq0csp- sq0idp- EAAA"),
    strict("facebook token", 60, "EAAC EAAM EAAG EAAB EAAJ EAAS", is_mixed),
    issuer(
        "payment key",
        26,
        "",
        "FLWSECK- FLWSECK_TEST- FLWSECK_LIVE- EZAK EZTK shippo_live_ shippo_test_ duffel_live_ \
         duffel_test_ access-sandbox- access-production- access-development-",
    ),
    issuer("razorpay key", 14, "", "rzp_live_ rzp_test_"),
    issuer(
        "platform token",
        28,
        "",
        "HRKU- CFPAT- BBFF- aio_ ion_ odt_ fio-u- p8e- ico- napi_ rnd_ tk-us-",
    ),
    issuer("dropbox token", 60, ".", "sl."),
    issuer("yandex key", 34, ".", "AQVN YCAJE YCM t1. y0_ y1_ y2_ y3_"),
    strict("alibaba or tencent key", 16, "LTAI AKID", is_mixed),
    issuer("posthog key", 40, "", "phc_"),
    issuer("resend key", 28, "", "re_"),
    issuer("callboard token", 40, "", "cbt_"),
    issuer("secret", 12, "+/=.~%", "secret-token:"),
    // Of issuers that are not named here.
    strict(
        "key",
        20,
        "sk_ sk- pat_ pat- pst_ tok_ tkn_ token_ token- apikey_ apikey- api_key_ api-key- secret- \
         secretkey_ pw_ oauth_ personal_ svc_ rt_ refresh_ access_",
        |tail| longest_part(tail).len() >= 20 && is_opaque(tail),
    ),
    strict(
        "key",
        22,
        "live_ live- prod_ prod- key_ key- api_ api- auth_ bot_ test_ sandbox_ v1_ v2_",
        is_mixed,
    ),
];

struct Known {
    prefixes: AhoCorasick,
    /// The issuer of each prefix.
    issuers: Vec<&'static Issuer>,
}

/// Always present, because the prefixes are constants; a test builds it.
static KNOWN: LazyLock<Option<Known>> = LazyLock::new(|| {
    let all = ISSUERS.iter();
    let all = all.flat_map(|issuer| issuer.prefixes.split(' ').map(move |prefix| (issuer, prefix)));
    let (issuers, prefixes): (Vec<_>, Vec<_>) = all.unzip();
    let built = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(prefixes);
    Some(Known { prefixes: built.ok()?, issuers })
});

pub(super) fn findings(text: &str) -> Vec<Finding> {
    let Some(known) = &*KNOWN else { return Vec::new() };
    let (mut found, mut searched_to) = (Vec::new(), 0);
    for prefix in known.prefixes.find_iter(text) {
        if prefix.start() < searched_to || !begins(&text[..prefix.start()]) {
            continue;
        }
        let issuer = known.issuers[prefix.pattern().as_usize()];
        let rest = &text[prefix.end()..];
        let judged = tail(&rest[..floor(rest, JUDGED)], issuer.also);
        if is_long(judged, issuer.least) && (issuer.is_real)(judged) {
            searched_to = prefix.end() + tail(rest, issuer.also).len();
            found.push(Finding { place: prefix.start()..searched_to, kind: issuer.kind });
        }
    }
    found
}

/// True if a token may begin behind `before`: also behind an escaped line break or character, as
/// in JSON within a string and in addresses.
fn begins(before: &str) -> bool {
    let bytes = before.as_bytes();
    if !bytes.last().is_some_and(u8::is_ascii_alphanumeric) {
        return true;
    }
    let hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    match bytes {
        [.., b'\\', b'n' | b't' | b'r' | b'f' | b'b' | b'0'] => true,
        [.., b'%', a, b] => hex(&[*a, *b]),
        [.., b'\\', b'u', a, b, c, d] => hex(&[*a, *b, *c, *d]),
        _ => false,
    }
}

fn tail<'t>(text: &'t str, also: &str) -> &'t str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c) || also.contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text[..end].trim_end_matches(['.', '-', '/', '%'])
}

fn is_long(tail: &str, least: usize) -> bool {
    tail.bytes().filter(u8::is_ascii_alphanumeric).take(least).count() == least
}

fn is_upper(tail: &str) -> bool {
    tail.len() == 16 && tail.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

fn has_digits_and_case(tail: &str) -> bool {
    let digits = tail.bytes().filter(u8::is_ascii_digit).count();
    is_made(tail)
        && (has(tail, u8::is_ascii_uppercase) && has(tail, u8::is_ascii_lowercase) && digits > 0
            || digits >= 6)
}

/// The longest part between `_` and `-`.
fn longest_part(tail: &str) -> &str {
    tail.split(['_', '-']).max_by_key(|part| part.len()).unwrap_or_default()
}

/// True if a machine made it, or it is one long part of two kinds of characters, as chance has it
/// now and then.
fn is_drawn(tail: &str) -> bool {
    let part = longest_part(tail);
    let kinds = [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit];
    let kinds = kinds.iter().filter(|is| has(part, **is)).count();
    is_made(tail) || part.len() >= 14 && kinds > 1 && bits_per_byte(part) >= 0.9
}

/// True if one part is long, random and of both cases and digits, as no hash or name is.
pub(super) fn is_mixed(tail: &str) -> bool {
    let part = longest_part(tail);
    part.len() >= 20
        && [u8::is_ascii_digit, u8::is_ascii_uppercase, u8::is_ascii_lowercase]
            .iter()
            .all(|is| has(part, *is))
        && is_chaotic(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_searched_for() {
        assert!(KNOWN.as_ref().is_some_and(|known| known.issuers.len() > 200));
    }

    #[test]
    fn prefix_begins_a_word_or_follows_an_escaped_character() {
        for before in ["", " ", "é", "_", "\"", r"line\n", "a%20", "k%3D", r"\u003d"] {
            assert!(begins(before), "{before:?}");
        }
        for before in ["a", "x1", "n", "20", r"\q", "%2"] {
            assert!(!begins(before), "{before:?}");
        }
    }
}
