use super::super::topics::TOPICS;
use super::options::OWN;
use super::table::{NOUNS, ROWS};
use super::*;

/// Words that say by themselves that something is to be taken away.
const DESTRUCTIVE_WORDS: &str = "rm delete remove del drop abort discard trash destroy erase canel cancle cancell cancal kill \
     halt interrupt terminate abort-agent sigterm sigkill wontfix dismiss ignore obsolete forget \
     unregister deregister";

/// All texts of the tables, with the words that lead to them.
fn texts() -> Vec<(&'static str, &'static str)> {
    let of_rows =
        ROWS.iter().flat_map(|row| [row.alone, row.with, row.agent].map(|text| (row.words, text)));
    let of_nouns = NOUNS.iter().flat_map(|noun| {
        let removes = ("remove delete", noun.remove);
        [(noun.words, noun.list), (noun.words, noun.show), (noun.words, noun.add), removes]
    });
    let behind = BEHIND.iter().map(|(_, words, text)| (*words, *text));
    let missing = MISSING.iter().map(|(words, text)| (*words, *text));
    let own =
        OWN.iter().filter(|(.., text)| text.contains('`')).map(|(_, names, text)| (*names, *text));
    let all = of_rows.chain(of_nouns).chain(behind).chain(missing).chain(own);
    all.filter(|(_, text)| !text.is_empty()).collect()
}

/// The lines that a text has, as they are typed without arguments.
fn lines(text: &str) -> Vec<Vec<String>> {
    let filled_in =
        |line: &str| line.split(' ').flat_map(|word| filled(word, &[], false)).collect();
    match text.strip_prefix('>') {
        Some(line) => vec![filled_in(line)],
        None => text.split('`').skip(1).step_by(2).map(filled_in).collect(),
    }
}

#[test]
fn every_line_that_a_text_names_can_be_typed() {
    let root = parser();
    let line = Line::of(&root, &strings(&["callboard"]));
    for (words, text) in texts() {
        for named in lines(text) {
            // A line that is run may need what was typed.
            let named =
                if text.starts_with('>') { [named, strings(&["x"])].concat() } else { named };
            let alone = &named[..named.len() - usize::from(text.starts_with('>'))];
            // Topics are read before the commands are.
            let is_topic = matches!(alone, [help, topic] if help == "help"
                && TOPICS.iter().any(|(name, ..)| name == topic));
            assert!(is_topic || line.parses(&named) || line.parses(alone), "{words}: {named:?}");
        }
    }
}

#[test]
fn nothing_is_taken_away_by_a_guess_of_something_else() {
    for (words, text) in texts() {
        let is_one = words.split_whitespace().any(|word| is_one_of(DESTRUCTIVE_WORDS, word));
        for named in lines(text) {
            let is_destructive =
                DESTRUCTIVE.contains(&named[0].as_str()) || named.contains(&"forget".to_owned());
            assert!(is_one || !is_destructive, "{words}: {named:?}");
        }
    }
}

#[test]
fn no_word_has_two_meanings_or_is_a_command() {
    let root = parser();
    let mut seen = Vec::new();
    for word in ROWS.iter().flat_map(|row| row.words.split_whitespace()) {
        assert!(!seen.contains(&word), "{word} stands twice");
        assert!(root.find_subcommand(word).is_none(), "{word} is a command");
        seen.push(word);
    }
    let nouns = NOUNS.iter().flat_map(|noun| noun.words.split_whitespace());
    for word in nouns {
        assert!(!seen.contains(&word), "{word} stands twice");
        seen.push(word);
    }
}

#[test]
fn slips_of_the_finger_lead_to_no_command_that_takes_something_away() {
    let root = parser();
    for (typed, expected) in [
        ("stauts", Some("status")),
        ("taks", Some("tasks")),
        ("agnets", Some("agents")),
        ("aprove", Some("approve")),
        ("hlep", Some("help")),
        ("purg", None),
        ("rest", None),
        ("uninstal", None),
        ("zzzz", None),
    ] {
        let line = strings(&["callboard", typed]);
        let Meant::Hint(text) = Line::of(&root, &line).misspelled(typed, &[]) else {
            panic!("{typed}")
        };
        let named =
            expected.map_or("`callboard help`".to_owned(), |name| format!("`callboard {name}`"));
        assert!(text.contains(&named), "{typed}: {text}");
    }
}
