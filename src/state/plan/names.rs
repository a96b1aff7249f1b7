//! Which item a text names: by its path, its id, its title, or by words that no other title has.

use std::collections::HashMap;

use super::words::{plain, words};

/// What the items of a plan are called.
#[derive(Default)]
pub struct Names {
    by_path: HashMap<String, Vec<usize>>,
    by_id: HashMap<String, Vec<usize>>,
    by_title: HashMap<String, Vec<usize>>,
    /// The single words of each title.
    titles: Vec<Vec<String>>,
    by_word: HashMap<String, Vec<usize>>,
}

#[derive(Debug, PartialEq)]
pub enum Named {
    One(usize),
    Several(Vec<usize>),
    None,
}

/// Words that a title is known without.
const FILLERS: [&str; 7] = ["the", "a", "an", "task", "step", "item", "of"];
/// Most words of a text that may name a title by some of its words.
const MOST_WORDS: usize = 12;

impl Names {
    pub fn push(&mut self, path: Option<&str>, title: &str) {
        let number = self.titles.len();
        if let Some(path) = path {
            self.by_path.entry(path.to_owned()).or_default().push(number);
        }
        if let Some(id) = leading_id(title) {
            self.by_id.entry(id.to_lowercase()).or_default().push(number);
        }
        let title = words(title);
        let single = singles(&title);
        let mut own: Vec<&String> = single.iter().collect();
        own.sort_unstable();
        own.dedup();
        for word in own {
            self.by_word.entry(word.clone()).or_default().push(number);
        }
        self.by_title.entry(title).or_default().push(number);
        self.titles.push(single);
    }

    /// The items whose path or whole title this is.
    pub fn exact(&self, given: &str) -> Named {
        let given = given.trim();
        let found = self.by_path.get(given).or_else(|| self.by_title.get(&words(given)));
        found.map_or(Named::None, |found| named(found.clone()))
    }

    /// The item that `given` names, for an item that does not name itself.
    pub fn find(&self, given: &str, itself: Option<usize>) -> Named {
        let given = bare(given);
        let exact = self.exact(given);
        if exact != Named::None {
            return exact;
        }
        if let Some(found) = self.by_id.get(&given.trim_end_matches(['.', ':', ')']).to_lowercase())
        {
            return named(found.clone());
        }
        let title = words(given.trim_end_matches(['.', '!']));
        if let Some(found) = self.by_title.get(&title) {
            return named(found.clone());
        }
        let wanted = singles(&title);
        let core: Vec<String> =
            wanted.iter().filter(|word| !FILLERS.contains(&word.as_str())).cloned().collect();
        for wanted in [&wanted, &core] {
            let found = self.with_words(wanted, itself, true);
            if !found.is_empty() {
                return named(found);
            }
        }
        named(self.with_words(&core, itself, false))
    }

    /// Items whose titles have all these words, together or anywhere.
    fn with_words(&self, wanted: &[String], itself: Option<usize>, together: bool) -> Vec<usize> {
        if wanted.is_empty() || wanted.len() > MOST_WORDS {
            return Vec::new();
        }
        let near = wanted
            .iter()
            .map(|word| self.by_word.get(word))
            .min_by_key(|found| found.map_or(0, Vec::len));
        let has_all = |number: &&usize| {
            let title = &self.titles[**number];
            if together {
                title.windows(wanted.len()).any(|some| some == wanted)
            } else {
                wanted.iter().all(|word| title.contains(word))
            }
        };
        let found = near.flatten().into_iter().flatten().filter(|number| Some(**number) != itself);
        found.filter(has_all).copied().collect()
    }
}

fn named(found: Vec<usize>) -> Named {
    match found.as_slice() {
        [] => Named::None,
        [one] => Named::One(*one),
        _ => Named::Several(found),
    }
}

/// The text without quotes and marks around it.
fn bare(text: &str) -> &str {
    let marks = |c: char| c.is_whitespace() || "\"'`“”„‘’«»*_".contains(c);
    text.trim_matches(marks)
}

fn singles(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && !"+#_".contains(c));
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Words before a number that is the id of what it stands before.
const NUMBERED: [&str; 5] = ["id", "task", "item", "ticket", "story"];

/// The id that a title begins with: `T001`, `TASK-4.1`, `1.2`, `01-02`, `#3`, or `7` in `Task 7: …`.
pub fn leading_id(title: &str) -> Option<String> {
    let plain = plain(title);
    if let Some(number) = numbered(&plain) {
        return Some(number.to_owned());
    }
    let first = plain
        .split_whitespace()
        .next()?
        .trim_matches(['[', ']', '(', ')'])
        .trim_end_matches([':', '.', ')']);
    is_id(first).then(|| first.to_owned()).filter(|_| plain.split_whitespace().nth(1).is_some())
}

/// The number in `Task 7: …`.
fn numbered(text: &str) -> Option<&str> {
    let mut parts =
        text.trim_matches(|c: char| "*_`".contains(c) || c.is_whitespace()).splitn(3, ' ');
    let (word, number) = (parts.next()?, parts.next()?);
    let is_before = NUMBERED.iter().any(|known| word.eq_ignore_ascii_case(known));
    let number =
        number.strip_suffix([':', '.', ')']).filter(|_| is_before && parts.next().is_some())?;
    let is_number = number
        .split(['.', '-'])
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_number.then_some(number)
}

fn is_id(word: &str) -> bool {
    let is_number = |text: &str| {
        !text.is_empty()
            && text
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    if let Some(number) = word.strip_prefix('#') {
        return is_number(number);
    }
    if let Some((one, other)) = word.split_once('-')
        && [one, other].iter().all(|part| part.len() < 4 && is_number(part))
    {
        return true;
    }
    let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
    let number = word[letters..].trim_start_matches('-');
    match letters {
        0 => is_number(word) && word.contains('.'),
        1..=10 => is_number(number) && (word[letters..].starts_with('-') || number.len() > 2),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_named_by_what_only_it_is_called() {
        let mut names = Names::default();
        let titles = [
            "Port `customers` table and repository",
            "Port `invoices` table",
            "Dry run on staging",
            "T001 Make the schema",
            "1.2 Make the page",
            "#3 Fix it",
            "Ship",
            "Ship",
            "**ID 23: Sign in**",
            "ID 23.1: Packages",
            "01-02: Dig",
        ];
        titles.iter().for_each(|title| names.push(None, title));
        names.push(Some("P9"), "Last");
        for (given, expected) in [
            ("customers", Named::One(0)),
            ("the customers table", Named::One(0)),
            ("repository customers", Named::One(0)),
            ("port invoices table", Named::One(1)),
            ("\"Port invoices table\"", Named::One(1)),
            ("dry run", Named::One(2)),
            ("T001", Named::One(3)),
            ("t001", Named::One(3)),
            ("1.2", Named::One(4)),
            ("#3", Named::One(5)),
            ("23", Named::One(8)),
            ("23.1", Named::One(9)),
            ("01-02", Named::One(10)),
            ("P9", Named::One(11)),
            ("table", Named::Several(vec![0, 1])),
            ("ship", Named::Several(vec![6, 7])),
            ("2 weeks", Named::None),
            ("", Named::None),
        ] {
            assert_eq!(names.find(given, None), expected, "{given}");
        }
        assert_eq!(names.find("invoices", Some(1)), Named::None);
    }
}
