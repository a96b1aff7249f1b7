//! Files named on the command line.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use fs_err::File;

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
pub(crate) fn read_one(path: &Path) -> Result<String, String> {
    let bytes = read_file(path)?;
    text_of(bytes).ok_or_else(|| "it is not text".to_owned())
}

/// The text of a file in UTF-8, with everything that is in the file.
pub(crate) fn read_whole(name: &str) -> String {
    String::from_utf8(read_bytes(name))
        .unwrap_or_else(|_| usage_error(format!("{name} is not text in UTF-8")))
}

fn read_bytes(name: &str) -> Vec<u8> {
    let read = match name {
        "-" => {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().take(LARGEST_INPUT + 1).read_to_end(&mut bytes);
            read.map(|_| bytes).map_err(|error| error.to_string()).and_then(not_too_large)
        }
        path => read_file(Path::new(path)),
    };
    read.unwrap_or_else(|why| usage_error(format!("cannot read {name}: {why}")))
}

fn not_too_large(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if bytes.len() as u64 > LARGEST_INPUT {
        return Err(format!("it has more than {LARGEST_INPUT} bytes"));
    }
    Ok(bytes)
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<(Option<Stamp>, Vec<u8>)> {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        file.take(LARGEST_INPUT + 1).read_to_end(&mut bytes)?;
        Ok((stamp, bytes))
    };
    // By its path, as another file may have taken its place.
    let now = || Ok(Stamp::of(&fs::metadata(path)?));
    read_still(read, now, || sleep(PAUSE))
        .map_err(|error| error.to_string())
        .and_then(not_too_large)
}

/// What differs if a file was written.
#[derive(Debug, PartialEq)]
struct Stamp([u64; 4], [i64; 4]);

impl Stamp {
    /// None of what is not a file, such as a pipe.
    fn of(file: &Metadata) -> Option<Self> {
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        file.is_file()
            .then(|| Self([file.dev(), file.ino(), file.len(), file.mode().into()], times))
    }
}

/// Times that a file is read which something writes meanwhile, and the time between them.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// What is read of a file between two looks at it that are equal.
fn read_still<S: PartialEq>(
    mut read: impl FnMut() -> io::Result<(S, Vec<u8>)>,
    mut now: impl FnMut() -> io::Result<S>,
    mut pause: impl FnMut(),
) -> io::Result<Vec<u8>> {
    for _ in 0..TRIES {
        let (before, bytes) = read()?;
        if before == now()? {
            return Ok(bytes);
        }
        pause();
    }
    Err(io::Error::other("something keeps writing it; try again when that has ended"))
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What is read of a file that is written so often after it was read, and how often it was read.
    fn written(often: usize) -> (Option<Vec<u8>>, usize) {
        let (version, reads) = (Cell::new(0), Cell::new(0));
        let read = || {
            reads.set(reads.get() + 1);
            let seen = version.get();
            version.set(seen + usize::from(seen < often));
            Ok((seen, seen.to_string().into_bytes()))
        };
        (read_still(read, || Ok(version.get()), || {}).ok(), reads.get())
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_read_again_or_refused() {
        assert_eq!(written(0), (Some(b"0".to_vec()), 1));
        assert_eq!(written(2), (Some(b"2".to_vec()), 3), "it is whole, and of one version");
        assert_eq!(written(TRIES), (None, TRIES));
    }
}
