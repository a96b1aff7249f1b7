//! Redacts JSON in its written form: only the texts of secrets are replaced, so that numbers,
//! layout and repeated names stay.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::{self, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::{Rule, body, distinct, named_beside, redacted};

const JSON: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_trailing_commas: false,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// `text`, an object or array in JSON, without its secrets, and their number; `None` if it is no
/// such document or has none.
pub fn document(text: &str) -> Option<(String, usize)> {
    let document = parse_to_ast(text, &CollectOptions::default(), &JSON).ok()?.value?;
    if !matches!(document, Value::Object(_) | Value::Array(_)) {
        return None;
    }
    let mut found = Found { text, replaced: Vec::new(), count: 0 };
    found.look(&document, Rule::TOP);
    if found.count == 0 {
        return None;
    }
    let (mut clean, mut kept_to) = (String::with_capacity(text.len()), 0);
    for (place, instead) in found.replaced {
        clean.push_str(&text[kept_to..place.start]);
        clean.push_str(&serde_json::Value::from(instead).to_string());
        kept_to = place.end;
    }
    clean.push_str(&text[kept_to..]);
    Some((clean, found.count))
}

/// Strings and numbers to be replaced by strings, in their order.
struct Found<'t> {
    text: &'t str,
    replaced: Vec<(Range<usize>, String)>,
    count: usize,
}

impl Found<'_> {
    fn replace(&mut self, place: common::Range, (instead, count): (String, usize)) {
        self.replaced.push((place.start..place.end, instead));
        self.count += count;
    }

    fn look(&mut self, value: &Value, rule: Rule) {
        match value {
            Value::StringLit(string) => {
                if let Some(clean) = rule.of_string(&string.value) {
                    self.replace(string.range, clean);
                }
            }
            Value::NumberLit(number) => {
                let value = serde_json::from_str(number.value).ok();
                if let Some(clean) = value.and_then(|value| rule.of_number(&value)) {
                    self.replace(number.range, clean);
                }
            }
            Value::Array(_) | Value::Object(_) if matches!(rule, Rule::Body) => {
                let place = value.range();
                let clean = body::replaced(&self.text[place.start..place.end]);
                clean.into_iter().for_each(|clean| self.replace(place, clean));
            }
            Value::Array(array) => array.elements.iter().for_each(|item| self.look(item, rule)),
            Value::Object(object) => self.look_at_fields(object, rule),
            Value::BooleanLit(_) | Value::NullKeyword(_) => {}
        }
    }

    fn look_at_fields(&mut self, object: &Object, rule: Rule) {
        let field = |name: &str| {
            object.properties.iter().rfind(|field| field.name.as_str() == name).map(text_of)
        };
        let rule = rule.of_fields(named_beside(field));
        let mut names: HashSet<_> =
            object.properties.iter().map(|field| field.name.as_str().to_owned()).collect();
        // A name that occurs twice still does afterwards.
        let mut renamed = HashMap::new();
        for field in &object.properties {
            let name = field.name.as_str();
            if let Some((clean, count)) = redacted(name, true) {
                let clean = renamed
                    .entry(name)
                    .or_insert_with(|| distinct(clean, |name| names.contains(name)));
                names.insert(clean.clone());
                self.replace(field.name.range(), (clean.clone(), count));
            }
            self.look(&field.value, rule.of_field(name, text_of(field)));
        }
    }
}

fn text_of<'f>(field: &'f ObjectProp) -> Option<&'f str> {
    if let Value::StringLit(string) = &field.value { Some(&string.value) } else { None }
}
