//! Files named on the command line.

use std::io::{self, Read};

use super::usage_error;
use crate::bom;
use crate::ops::LARGEST_INPUT;

/// The text of a file named on the command line, without a byte order mark; `-` is standard input.
/// UTF-16 is read, too.
pub(crate) fn read_input(name: &str) -> String {
    bom::skipped(read_marked(name))
}

/// As [`read_input`], with the byte order mark.
pub(crate) fn read_marked(name: &str) -> String {
    decoded(read_bytes(name)).unwrap_or_else(|| {
        usage_error(format!("{name} is not text in UTF-8, or in UTF-16 with a byte order mark"))
    })
}

/// The text of a file without a byte order mark, if it is text.
pub(super) fn text_of(bytes: Vec<u8>) -> Option<String> {
    decoded(bytes).map(bom::skipped)
}

/// The text of one of many files, or why it cannot be read.
pub(crate) fn read_one(path: &std::path::Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST_INPUT + 1).read_to_end(&mut bytes));
    match file {
        Err(error) => Err(error.to_string()),
        Ok(size) if size as u64 > LARGEST_INPUT => {
            Err(format!("it has more than {LARGEST_INPUT} bytes"))
        }
        Ok(_) => text_of(bytes).ok_or_else(|| "it is not text".to_owned()),
    }
}

/// The text of a file in UTF-8, with everything that is in the file.
pub(crate) fn read_whole(name: &str) -> String {
    String::from_utf8(read_bytes(name))
        .unwrap_or_else(|_| usage_error(format!("{name} is not text in UTF-8")))
}

fn read_bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = match name {
        "-" => io::stdin().lock().take(LARGEST_INPUT + 1).read_to_end(&mut bytes),
        path => fs_err::File::open(path)
            .and_then(|file| file.take(LARGEST_INPUT + 1).read_to_end(&mut bytes)),
    };
    match read {
        Ok(size) if size as u64 > LARGEST_INPUT => {
            usage_error(format!("{name} has more than {LARGEST_INPUT} bytes"))
        }
        Ok(_) => bytes,
        Err(error) => usage_error(format!("cannot read {name}: {error}")),
    }
}

/// The text of a file: UTF-8, or UTF-16 that says so by the mark at its beginning.
fn decoded(bytes: Vec<u8>) -> Option<String> {
    let words = |of: fn([u8; 2]) -> u16| {
        bytes[2..].chunks_exact(2).map(|two| of([two[0], two[1]])).collect::<Vec<_>>()
    };
    let is_pairs = bytes.len() > 2 && bytes.len().is_multiple_of(2);
    let text = match bytes.get(..2) {
        Some([0xff, 0xfe]) if is_pairs => String::from_utf16(&words(u16::from_le_bytes)).ok(),
        Some([0xfe, 0xff]) if is_pairs => String::from_utf16(&words(u16::from_be_bytes)).ok(),
        _ => String::from_utf8(bytes).ok(),
    };
    text.filter(|text| !text.contains('\0'))
}
