//! Slots, found again by their lines.

use std::ops::Range;

use super::layout::Field;
use crate::state::changed::Entity;

/// A slot as it was found.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub at: u64,
    pub length: u32,
    /// Length of the text in it.
    pub text: u32,
    /// None if no entity has it any more. The number is the entity's order, 0 in a field without
    /// orders.
    pub owner: Option<(Entity, u64)>,
}

/// What comes before the text in a slot, with and without another text before it.
pub(crate) const NEXT: &[u8; 5] = b"\n   ,";
pub(crate) const FIRST: &[u8; 5] = b"\n    ";
pub(crate) const ORDER: &str = "\n      \"order\": ";

/// The slots in `bytes`, which are at offset `at` of the file; `None` when they are not made of
/// slots.
///
/// Each begins with a line break, or with a tab if it has no owner, so that it shows as the end of
/// the line before it: in a text a tab is escaped. Every further line of a text is indented deeper
/// or begins with a closing bracket, so a line with an opening brace or quotation mark at the
/// indentation of entities begins a slot.
pub(crate) fn slots(field: Field, bytes: &[u8], at: u64) -> Option<Vec<Found>> {
    let mut found: Vec<(Range<usize>, bool)> = Vec::new();
    let mut rest = 0;
    if bytes.first().is_some_and(|first| !matches!(first, b'\n' | b'\t')) {
        return None;
    }
    while rest < bytes.len() {
        let line_end = memchr::memchr2(b'\n', b'\t', &bytes[rest + 1..])
            .map_or(bytes.len(), |length| rest + 1 + length);
        let line = &bytes[rest..line_end];
        let opens =
            matches!(line.get(5), Some(b'{' | b'"')) && matches!(&line[..5], b"\n    " | b"\n   ,");
        let is_empty = line[0] == b'\t';
        if is_empty && line[1..].iter().any(|byte| *byte != b' ') {
            return None;
        }
        if opens || is_empty {
            found.push((rest..line_end, opens));
        } else {
            let (last, is_live) = found.last_mut()?;
            if !*is_live {
                return None;
            }
            last.end = line_end;
        }
        rest = line_end;
    }
    let of_slot = |(range, is_live): (Range<usize>, bool)| {
        let text = bytes[range.clone()].trim_ascii_end().len().saturating_sub(FIRST.len());
        let (length, text) = (u32::try_from(range.len()).ok()?, u32::try_from(text).ok()?);
        let slot = Found { at: at + range.start as u64, length, text, owner: None };
        let owner = if is_live { Some(owner(field, &bytes[range])?) } else { None };
        Some(Found { owner, ..slot })
    };
    found.into_iter().map(of_slot).collect()
}

fn owner(field: Field, slot: &[u8]) -> Option<(Entity, u64)> {
    let text = slot.get(FIRST.len()..)?;
    let (id, order) = if field.has_order() {
        let text = text.strip_prefix(b"{")?.strip_prefix(ORDER.as_bytes())?;
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let order = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
        (text[digits..].strip_prefix(b",\n      \"id\": ")?, order)
    } else if field.is_map() {
        (text, 0)
    } else {
        (text.strip_prefix(b"{\n      \"id\": ")?, 0)
    };
    // The id is a key or a value, and ends at the first quotation mark that is not escaped.
    let mut texts =
        serde_json::Deserializer::from_slice(id).into_iter::<std::borrow::Cow<'_, str>>();
    let id = texts.next()?.ok()?;
    Some((field.entity(&id), order))
}

pub(super) fn push_slot(bytes: &mut Vec<u8>, text: Option<&[u8]>, is_first: bool, length: usize) {
    let end = bytes.len() + length;
    bytes.reserve(length);
    match text {
        Some(text) => {
            bytes.extend_from_slice(if is_first { FIRST } else { NEXT });
            bytes.extend_from_slice(text);
        }
        None => bytes.push(b'\t'),
    }
    bytes.resize(end, b' ');
}
