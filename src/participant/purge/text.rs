//! The text that is to be forgotten, and the forms that it has in what is kept.

use serde_json::{Map, Value};
use thiserror::Error;

/// Stands in place of the text.
const MARK: &str = "[purged]";
/// Fewest bytes of a text: shorter ones are part of too much.
pub const SHORTEST: usize = 6;

#[derive(Debug, Error)]
pub enum TextError {
    #[error("the text has {0} bytes; one of fewer than {SHORTEST} is part of too much else")]
    TooShort(usize),
}

/// A text that is to be forgotten.
#[derive(Clone)]
pub struct Text {
    /// The text as it is, in a string of JSON, and in one within a string of JSON; the longest
    /// first.
    forms: Vec<String>,
    /// Other texts that follow from it, each with what it becomes.
    following: Vec<(String, String)>,
}

impl Text {
    pub fn new(text: &str) -> Result<Self, TextError> {
        if text.len() < SHORTEST {
            return Err(TextError::TooShort(text.len()));
        }
        let once = escaped(text);
        let mut forms = vec![escaped(&once), once, text.to_owned()];
        forms.dedup();
        Ok(Self { forms, following: Vec::new() })
    }

    pub(super) fn with(mut self, following: Vec<(String, String)>) -> Self {
        self.following = following;
        self
    }

    /// `text` without it; none if it is not in there.
    pub(super) fn clean(&self, text: &str) -> Option<String> {
        let forms = self.forms.iter().map(|form| (form.as_str(), MARK));
        let following = self.following.iter().map(|(old, new)| (old.as_str(), new.as_str()));
        let found = forms.chain(following).filter(|(form, _)| text.contains(form));
        found.fold(None, |clean: Option<String>, (form, instead)| {
            Some(clean.as_deref().unwrap_or(text).replace(form, instead))
        })
    }

    /// JSON without it, in whatever way its characters are escaped there.
    pub(super) fn clean_json(&self, json: &str) -> Option<String> {
        let mut value: Value = serde_json::from_str(json).ok()?;
        self.clean_value(&mut value).then(|| value.to_string())
    }

    fn clean_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.clean(text) {
                Some(clean) => {
                    *text = clean;
                    true
                }
                None => false,
            },
            Value::Array(items) => {
                items.iter_mut().fold(false, |changed, item| self.clean_value(item) | changed)
            }
            Value::Object(fields) => self.clean_fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn clean_fields(&self, fields: &mut Map<String, Value>) -> bool {
        let mut changed =
            fields.values_mut().fold(false, |changed, value| self.clean_value(value) | changed);
        if fields.keys().any(|name| self.clean(name).is_some()) {
            let named = std::mem::take(fields).into_iter();
            let named = named.map(|(name, value)| (self.clean(&name).unwrap_or(name), value));
            *fields = named.collect();
            changed = true;
        }
        changed
    }

    /// Whether the bytes have it.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        self.forms.iter().any(|form| memchr::memmem::find(bytes, form.as_bytes()).is_some())
    }

    /// The bytes with it blotted out, which keeps their number.
    pub(super) fn blotted(&self, bytes: &[u8]) -> Vec<u8> {
        let mut blotted = bytes.to_vec();
        for form in &self.forms {
            let places: Vec<_> = memchr::memmem::find_iter(bytes, form.as_bytes()).collect();
            places.iter().for_each(|at| blotted[*at..at + form.len()].fill(b'*'));
        }
        blotted
    }
}

/// The text as it stands between the quotes of a string of JSON.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_in_every_form() {
        let text = Text::new("a\"b\\c d").unwrap();
        assert_eq!(text.clean("x a\"b\\c d y").as_deref(), Some("x [purged] y"));
        let json = serde_json::json!({"k": "x a\"b\\c d y", "a\"b\\c d": [serde_json::json!({"in": "a\"b\\c d"}).to_string()], "n": 1});
        let clean = text.clean_json(&json.to_string()).unwrap();
        assert_eq!(clean, r#"{"k":"x [purged] y","[purged]":["{\"in\":\"[purged]\"}"],"n":1}"#);
        assert!(text.is_in(json.to_string().as_bytes()) && !text.is_in(clean.as_bytes()));
        assert_eq!(text.blotted(b"x a\"b\\c d y"), b"x ******* y");
        assert_eq!(text.clean_json(r#"{"n":1.50}"#), None);
    }

    #[test]
    fn text_that_is_part_of_everything_is_refused() {
        assert!(Text::new("abc").is_err() && Text::new("abcdef").is_ok());
    }
}
