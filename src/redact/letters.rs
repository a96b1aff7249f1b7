//! Whether letters stand as chance puts them. In words of people and of programs, most pairs of
//! letters are among the few that are common.

use std::sync::LazyLock;

/// For each first letter the ones that commonly follow it.
const COMMON: &str = "\
    abcdgiklmnprstuvy baelorsu caehiklortu daeiors eacdefgilmnprstvwx faefilo gehinr \
    haeiot iacdefglmnoprstv kes ladeilostuy maeiop nacdeginostu obcdfklmnoprstuvw \
    paeiloprstu qu racdegikmnorstuvy sacehiopstuy tacehilorstuy ubceilmnprst vaei waehio";

/// The same as a bit for each letter that follows.
static FOLLOWERS: LazyLock<[u32; 26]> = LazyLock::new(|| {
    let mut followers = [0; 26];
    for row in COMMON.split(' ').map(str::as_bytes) {
        row[1..].iter().for_each(|one| followers[usize::from(row[0] - b'a')] |= 1 << (one - b'a'));
    }
    followers
});

/// Fewest letters of which that can be said.
const LEAST: usize = 8;
/// Letters of which it can be said with confidence.
const ENOUGH: usize = 12;

/// Whether the letters of the text are drawn by chance.
pub(super) fn are_drawn(text: &str) -> bool {
    let letters = text.bytes().filter(u8::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase());
    let letters: Vec<u8> = letters.collect();
    let place = |letter: u8| usize::from(letter - b'a');
    let is_common = |pair: &&[u8]| FOLLOWERS[place(pair[0])] >> place(pair[1]) & 1 == 1;
    let common = letters.windows(2).filter(is_common).count();
    let most = if letters.len() < ENOUGH { 10 } else { 13 };
    letters.len() >= LEAST && common * 20 < (letters.len() - 1) * most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_from_letters_drawn_by_chance() {
        for words in [
            "getCurrentUserIdentity",
            "required",
            "correct-horse-battery",
            "JavaScriptObject",
            "PLACEHOLDER",
            "supersecret",
            "configuration",
            "my-app-service",
            "short",
        ] {
            assert!(!are_drawn(words), "{words}");
        }
        for drawn in ["kqzvbnwtrplm", "PvahxFanyWFHDAmKlBVw", "yddcsdgyvzrzisjt", "guNuAoyDPIFooYq"]
        {
            assert!(are_drawn(drawn), "{drawn}");
        }
    }
}
