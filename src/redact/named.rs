//! Secrets that only their names reveal: `DB_PASSWORD=…`, `"api_key": "…"`, `--token …`.
//!
//! A name alone is not enough in a text, where `password: String` and `secret = os.environ["KEY"]`
//! are code: the value must also look like something that nobody would write for people to read.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::{Captures, Regex};

use super::plain::{ends_alone, may_be_password, may_be_said, may_be_token};
use super::telling::{Habit, judged};
use super::value::{has, is_opaque, is_reference, is_secret, stands_for_one, unquoted_length};
use super::{Finding, MARK, ceil, floor};

/// Parts of names of which every telling name contains one.
const SIGNS: [&str; 14] = [
    "pat", "pass", "pwd", "pw", "pin", "otp", "secret", "token", "key", "cred", "auth", "mnemonic",
    "phrase", "clave",
];
/// Most bytes of a value; more of it are no password, and no token of these names is longer.
const LONGEST_VALUE: usize = 4096;
/// Most bytes of a name that are looked at, from its end.
const LONGEST_NAME: usize = 100;

/// A value, after a quote, up to where a text or a word ends.
const VALUE: &str =
    r#"(?:[bBrRuUfF]{0,2}(?P<quote>"""|'''|\\{0,7}["'`“„«]))?(?P<value>[^\s\x00"'`\\“”„«»]+)"#;

/// Patterns of what may follow a name.
struct Following {
    /// A sign, such as `=`, and a value.
    pair: Regex,
    /// A value as a separate word, behind an option or a command that sets.
    option: Regex,
    /// A field `value`, behind a field `name`.
    beside: Regex,
    /// A quoted word as the only argument of a call, or at the end of a line that the name begins.
    called: Regex,
    told: Regex,
    /// What stands before the name of a separate value.
    before_option: Regex,
    /// What stands before a name that is a field's value.
    before_beside: Regex,
}

/// Always present, because the patterns are constants; a test builds it.
static FOLLOWING: LazyLock<Option<Following>> = LazyLock::new(|| {
    let pair = r#"^["'`\\\]\)*]{0,6}[ \t]{0,8}(?:[<(][A-Za-z ]{1,20}[>)][ \t]{0,4})?(?P<between>:[ \t]{0,4}[&A-Za-z_'<>\[\], ]{1,40}=|(?:string|String|str|varchar)[ \t]{0,4}=|=>|->|→|[:?.+|]{0,3}={1,3}|:[ \t]{0,4}[|>][+-]?[ \t]{0,4}\n|[:：](?:[ \t]{0,4}\|)?|%3[DdAa]|\||(?:[ ][\w:.-]{1,20}="[^"\n]{0,40}"){1,3}>|[ \t](?i:is|was|set to|changed to|reset to|equals|is now):?[ \t]|>|,)[\s*]{0,40}"#;
    let option = r#"^["']?(?:,[ \t]{0,4})?(?P<between>[ \t]+|","|', ')"#;
    let beside = r#"^\\{0,3}["']?(?:[,;]\s{0,40}|\s{1,40})\\{0,3}["']?(?i:value|v|content)\\{0,3}["']?[ \t]?(?P<between>[:=])[ \t]?"#;
    let with_value = |pattern: &str| Regex::new(&format!("{pattern}{VALUE}")).ok();
    Some(Following {
        pair: with_value(pair)?,
        option: with_value(option)?,
        beside: with_value(beside)?,
        called: Regex::new(&format!(r#"^(?P<between>\(){VALUE}["'`]\)"#)).ok()?,
        told: Regex::new(&format!(r#"^(?P<between>[ \t]{{1,8}}){VALUE}["'`](?:$|[\r\n;])"#)).ok()?,
        before_option: Regex::new(
            r#"(?:(?:^|[\s"'`(\[,=])--?|\b(?:setx?|setenv|ENV|ARG)[ \t]+(?:-\w+[ \t]+)?)["']?[/\w.:@-]*$"#,
        )
        .ok()?,
        before_beside: Regex::new(
            r#"\b(?i:name|key|k)\\{0,3}["']?[ \t]?[:=][ \t]?\\{0,3}["']?$"#,
        )
        .ok()?,
    })
});

static SCOUT: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(SIGNS).ok());

/// Whether a telling name may be in the text.
pub(super) fn may_name(text: &str) -> bool {
    SCOUT.as_ref().is_some_and(|scout| scout.is_match(text))
}

pub(super) fn findings(text: &str) -> Vec<Finding> {
    let (Some(scout), Some(following)) = (&*SCOUT, &*FOLLOWING) else { return Vec::new() };
    let (mut found, mut named_to) = (Vec::new(), 0);
    for sign in scout.find_iter(text) {
        if sign.start() < named_to {
            continue;
        }
        let name = name_around(text, sign.range(), named_to);
        named_to = name.end;
        let end_of_name = ceil(text, name.end.saturating_sub(LONGEST_NAME)).max(name.start);
        if let Some((kind, habit)) = judged(&text[end_of_name..name.end])
            && !is_in_mark(&text.as_bytes()[..name.start])
        {
            let pairs = following.pairs(text, &name);
            let pairs = pairs.filter_map(|captures| Pair::of(text, &name, &captures, kind, habit));
            let before = found.len();
            found.extend(pairs.filter_map(Pair::finding));
            if let Some(last) = found[before..].iter().map(|one: &Finding| one.place.end).max() {
                named_to = last;
            }
        }
    }
    found
}

/// The word around a sign, and a word before it that belongs to the name.
fn name_around(text: &str, sign: Range<usize>, from: usize) -> Range<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let end = text[sign.end..].find(|c| !is_part(c)).map_or(text.len(), |more| sign.end + more);
    let word = text[from..sign.start]
        .rfind(|c| !is_part(c))
        .map_or(from, |at| from + at + text[from + at..].chars().next().map_or(1, char::len_utf8));
    let word = word.max(end.saturating_sub(LONGEST_NAME).min(sign.start));
    // A property of Java: `-Dpassword=…`.
    let word = if text[word..].starts_with("-D") { word + 2 } else { ceil(text, word) };
    let before = text[from..word].trim_end_matches(' ');
    let first = FIRST_WORDS.iter().find(|first| {
        before.len() + 1 == word - from
            && before.len() >= first.len()
            && before.is_char_boundary(before.len() - first.len())
            && before[before.len() - first.len()..].eq_ignore_ascii_case(first)
    });
    word - first.map_or(0, |first| first.len() + 1)..end
}

/// Words that are part of a name of two words.
const FIRST_WORDS: [&str; 8] =
    ["api", "access", "secret", "private", "auth", "pass", "seed", "recovery"];

impl Following {
    fn pairs<'t>(&self, text: &'t str, name: &Range<usize>) -> impl Iterator<Item = Captures<'t>> {
        let end = floor(text, name.end + LONGEST_VALUE);
        let rest = &text[name.end..end];
        let before = &text[ceil(text, name.start.saturating_sub(60))..name.start];
        let with_name = &text[ceil(text, name.start.saturating_sub(60))..name.end];
        let option = (rest.starts_with([' ', '\t', '"', '\'', ','])
            && self.before_option.is_match(with_name))
        .then(|| self.option.captures(rest));
        let beside =
            self.before_beside.is_match(before).then(|| self.beside.captures(rest)).flatten();
        let is_quoted = |sign: &str| {
            rest.strip_prefix(sign).is_some_and(|rest| rest.starts_with(['"', '\'', '`']))
        };
        let line = before.trim_end_matches([' ', '\t']);
        let is_begun = line.is_empty() || line.ends_with('\n') || line.ends_with("#define");
        let is_member = text[name.clone()].starts_with('.') || before.ends_with(['.', '>', ':']);
        let apart = match () {
            () if is_quoted("(") && is_member => self.called.captures(rest),
            () if is_quoted(" ") && is_begun => self.told.captures(rest),
            () => None,
        };
        [self.pair.captures(rest), option.flatten(), beside, apart].into_iter().flatten()
    }
}

/// What a name, a value and what stands between and around them say.
struct Pair<'t> {
    text: &'t str,
    name: Range<usize>,
    between: &'t str,
    value: Range<usize>,
    is_quoted: bool,
    kind: &'static str,
    habit: Habit,
}

impl<'t> Pair<'t> {
    fn of(
        text: &'t str,
        name: &Range<usize>,
        captures: &Captures<'t>,
        kind: &'static str,
        habit: Habit,
    ) -> Option<Self> {
        let value = captures.name("value")?;
        let is_quoted = captures.name("quote").is_some();
        let length = if is_quoted { value.len() } else { unquoted_length(value.as_str()) };
        let start = name.end + value.start();
        let between = captures.name("between")?.as_str();
        let value = start..start + length;
        Some(Self { text, name: name.clone(), between, value, is_quoted, kind, habit })
    }

    fn finding(self) -> Option<Finding> {
        let bare = &self.text[self.value.clone()];
        let next = self.rest().chars().next();
        let is_code =
            !self.is_quoted && !self.is_markup() && next.is_some_and(|c| "([{<".contains(c))
                || self.is_quoted && !self.is_field() && bare.contains(['{', '(']);
        let stands_for_one =
            if self.is_field() { stands_for_one(bare) } else { is_reference(bare) };
        let habit =
            if self.is_prose() && self.habit != Habit::Code { Habit::Token } else { self.habit };
        let is_secret = is_secret(bare, habit, self.is_quoted)
            || self.habit == Habit::Password && self.is_plain(bare)
            || self.habit == Habit::Token && self.is_chosen(bare);
        let counts = self.habit == Habit::Password
            && self.text[self.name.clone()].ends_with("pass")
            && bare.bytes().all(|byte| byte.is_ascii_digit());
        // A list of names is not a name with its value.
        let is_list =
            self.between == "," && !self.is_set() && !(self.is_field() && is_opaque(bare));
        (!is_code && !stands_for_one && !counts && !is_list && !self.is_in_path() && is_secret)
            .then(|| Finding { place: self.value.clone(), kind: self.kind })
    }

    /// True if people chose it where this one stands: words and digits, or letters and signs.
    fn is_chosen(&self, word: &str) -> bool {
        let is_code = !self.is_quoted && word.contains(['.', '(', '[']);
        !is_code && !self.is_prose() && may_be_token(word)
    }

    /// True if a function of the language that is written gives the name its value.
    fn is_set(&self) -> bool {
        let before = self.text[..self.name.start].trim_end_matches(['"', '\'', ' ']);
        let Some(called) = before.strip_suffix('(') else { return false };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let called = called[called.trim_end_matches(is_name).len()..].to_ascii_lowercase();
        ["set", "define", "put", "env", "header"].iter().any(|verb| called.contains(verb))
    }

    /// True for a part of an address or another name of parts, as `arn:…:secret:…`.
    fn is_in_path(&self) -> bool {
        self.between == ":" && self.text[..self.name.start].ends_with([':', '/'])
    }

    /// True if a word is a password where this one stands.
    fn is_plain(&self, word: &str) -> bool {
        let rest = self.rest();
        let is_spaced = self.text[..self.value.start].ends_with([' ', '\t', '"', '\'']);
        let between = self.between.trim();
        let may_be = if self.is_prose() { may_be_said(word) } else { may_be_password(word) };
        may_be
            && match between {
                _ if self.is_quoted => {
                    rest.trim_start_matches('\\').starts_with(['"', '\'', '`', '”', '»'])
                }
                _ if self.is_markup() => rest.starts_with('<'),
                // Without spaces, this is an environment, an address or a log rather than code.
                "=" if !is_spaced => {
                    rest.is_empty()
                        || rest.starts_with(|c: char| c.is_whitespace() || "&\"'`\\".contains(c))
                        || rest.starts_with(';')
                            && (self.begins_a_field() || self.is_of_environment())
                }
                "=" => self.begins_a_line() && (rest.is_empty() || rest.starts_with(['\n', '\r'])),
                "|" | "," => false,
                _ => ends_alone(rest),
            }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.value.end..]
    }

    fn is_prose(&self) -> bool {
        self.between.trim_end().ends_with(|c: char| c.is_ascii_lowercase())
    }

    fn is_markup(&self) -> bool {
        self.between.ends_with('>') && !["=>", "->"].contains(&self.between)
    }

    /// True if a quoted name stands before a quoted value: that is a field of JSON or the like,
    /// not prose.
    fn is_field(&self) -> bool {
        let quotes = ['"', '\''];
        self.is_quoted
            && self.text[..self.name.start].ends_with(quotes)
            && self.text[self.name.end..].trim_start_matches('\\').starts_with(quotes)
    }

    fn is_of_environment(&self) -> bool {
        !has(&self.text[self.name.clone()], u8::is_ascii_lowercase)
    }

    fn begins_a_field(&self) -> bool {
        let before = &self.text[..self.name.start];
        before.is_empty() || before.ends_with([';', '"', '\'', '\n'])
    }

    fn begins_a_line(&self) -> bool {
        let before = self.text[..self.name.start].trim_end_matches([' ', '\t', '+']);
        before.is_empty() || before.ends_with(['\n', 'n'])
    }
}

/// True inside a mark `[redacted: …]`. Its words say nothing about what follows; otherwise a
/// redacted text would change again.
pub(super) fn is_in_mark(before: &[u8]) -> bool {
    const LONGEST: usize = 40;
    let near = &before[before.len().saturating_sub(LONGEST)..];
    let open = near.windows(MARK.len()).rposition(|part| part == MARK.as_bytes());
    open.is_some_and(|open| !near[open..].contains(&b']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(FOLLOWING.is_some() && SCOUT.is_some());
    }
}
