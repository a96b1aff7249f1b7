//! An entity's JSON, made once: its number in the checksum is computed from the compact form, and
//! the file shows the same indented.

use std::io;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The nesting depth of a field of the document, and of an entity in one.
const FIELD: usize = 1;
const ENTITY: usize = 2;
const INDENTATION: usize = 2;
/// A capacity that is enough for most entities, in bytes.
const USUAL: usize = 1 << 10;

#[derive(Debug)]
pub(super) struct Rendering {
    compact: Vec<u8>,
}

impl Rendering {
    pub(super) fn of(entity: &impl Serialize) -> io::Result<Self> {
        let mut compact = Vec::with_capacity(USUAL);
        serde_json::to_writer(&mut compact, entity)?;
        Ok(Self { compact })
    }

    pub(super) fn value(&self) -> io::Result<Value> {
        Ok(serde_json::from_slice(&self.compact)?)
    }

    /// The number in the checksum of the entity that `section` has under `key`.
    pub(super) fn sum(&self, section: &str, key: &str) -> u128 {
        let mut digest = Sha256::new();
        for part in [section, key] {
            digest.update(part);
            digest.update([0]);
        }
        digest.update(&self.compact);
        let hash: [u8; 32] = digest.finalize().into();
        hash.iter().take(16).fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
    }

    /// The indented text, after its key if the section is a map, and with `first` before its first
    /// field.
    pub(super) fn text(&self, key: Option<&str>, first: &str) -> io::Result<String> {
        let mut text = Vec::with_capacity(2 * self.compact.len());
        if let Some(key) = key {
            serde_json::to_writer(&mut text, key)?;
            text.extend_from_slice(b": ");
        }
        in_lines(&self.compact, ENTITY, first, &mut text);
        String::from_utf8(text).map_err(io::Error::other)
    }

    /// Appends the indented text as the field `name` of the document, with a comma behind it.
    pub(super) fn push_field(&self, name: &str, text: &mut Vec<u8>) {
        text.extend_from_slice(format!("\n  \"{name}\": ").as_bytes());
        in_lines(&self.compact, FIELD, "", text);
        text.push(b',');
    }

    /// The rendering with the field `name` behind the field `before`, whose value is a string.
    pub(super) fn with_field_behind(
        &self,
        before: &str,
        name: &str,
        value: &str,
    ) -> io::Result<Self> {
        // Within a string, a quotation mark has a backslash before it and no comma.
        let mark = format!(",\"{before}\":\"");
        let start = memchr::memmem::find(&self.compact, mark.as_bytes());
        let start =
            start.ok_or_else(|| io::Error::other(format!("there is no {before}")))? + mark.len();
        let end = start + string_length(&self.compact[start..]);
        let field = format!(",\"{name}\":{}", serde_json::to_string(value)?);
        Ok(Self {
            compact: [&self.compact[..end], field.as_bytes(), &self.compact[end..]].concat(),
        })
    }
}

/// The number of one entity in the checksum.
pub(super) fn sum_of(section: &str, key: &str, entity: &impl Serialize) -> io::Result<u128> {
    Ok(Rendering::of(entity)?.sum(section, key))
}

/// What an entity adds to the checksum: its number times 2·order + 1, so that no two entities that
/// have an order can swap places.
pub(super) fn contribution(sum: u128, order: u64) -> u128 {
    sum.wrapping_mul(2 * u128::from(order) + 1)
}

/// A checksum as it stands in the file.
pub(super) fn hex(checksum: u128) -> String {
    format!("{checksum:032x}")
}

/// Indents compact JSON as `serde_json`'s pretty formatter does.
fn in_lines(compact: &[u8], mut depth: usize, mut first: &str, lines: &mut Vec<u8>) {
    let mut rest = compact;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => {
                let (string, behind) = after.split_at(string_length(after));
                lines.push(byte);
                lines.extend_from_slice(string);
                rest = behind;
            }
            b'{' | b'[' => {
                lines.push(byte);
                if let Some((closing @ (b'}' | b']'), behind)) = after.split_first() {
                    lines.push(*closing);
                    rest = behind;
                    continue;
                }
                depth += 1;
                lines.extend_from_slice(std::mem::take(&mut first).as_bytes());
                break_line(depth, lines);
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                break_line(depth, lines);
                lines.push(byte);
            }
            b',' => {
                lines.push(byte);
                break_line(depth, lines);
            }
            b':' => lines.extend_from_slice(b": "),
            _ => lines.push(byte),
        }
    }
}

fn break_line(depth: usize, lines: &mut Vec<u8>) {
    lines.push(b'\n');
    lines.resize(lines.len() + depth * INDENTATION, b' ');
}

/// The length of a string after its opening quotation mark, including the closing one.
fn string_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        match text[at + found] {
            b'"' => return at + found + 1,
            _ => at = (at + found + 2).min(text.len()),
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(value: &Value) -> String {
        Rendering::of(value).unwrap().text(None, "").unwrap()
    }

    #[test]
    fn lines_are_those_of_the_pretty_formatter() {
        let values = [
            json!(null),
            json!({}),
            json!([]),
            json!({"a": {}, "b": [], "c": [{}, [], [[1, -2.5e9]]], "d": {"e": {"f": true, "g": null}}}),
            json!({"\"": "\\", "{": "}[]:,", "tail\\": "\\\"", "ü\n": "\u{1f980}\u{0}", "": ""}),
            json!(["\\\\", "a\"b", "\\"]),
        ];
        for value in values {
            let pretty = serde_json::to_string_pretty(&value).unwrap().replace('\n', "\n    ");
            assert_eq!(shown(&value), pretty);
        }
    }

    #[test]
    fn key_and_first_field_stand_before_the_others() {
        let rendering = Rendering::of(&json!({"id": "a", "of": {"id": "b"}})).unwrap();
        let text = rendering.text(Some("k\"ey"), "\n      \"order\": 7,").unwrap();
        let expected = "\"k\\\"ey\": {\n      \"order\": 7,\n      \"id\": \"a\",\n      \"of\": {\n        \"id\": \"b\"\n      }\n    }";
        assert_eq!(text, expected);
    }
}
