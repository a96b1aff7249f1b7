//! Names that no agent gets, because they read as the person whose board it is or as the board
//! itself, in messages, in the history and among the agents. Ids are ASCII, so a look-alike can
//! only be made of ASCII characters.

use super::guard::HUMAN;

pub const RESERVED: [&str; 12] = [
    HUMAN,
    "person",
    "theperson",
    "owner",
    "me",
    "you",
    "user",
    "admin",
    "auto",
    "system",
    "callboard",
    "board",
];

/// Whether the id reads as one of the reserved names: in other letters, with punctuation or a
/// number, or with characters that look like those of the name.
pub fn is_reserved(id: &str) -> bool {
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    let unnumbered = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    let read = [skeleton(id), skeleton(unnumbered)];
    RESERVED.iter().any(|name| read.contains(&skeleton(name)))
}

/// Whether the id reads as the name of a person.
pub fn reads_as(id: &str, name: &str) -> bool {
    skeleton(id) == skeleton(name)
}

/// The letters as a reader takes them, the same for all that look alike.
fn skeleton(text: &str) -> String {
    let letters = text.chars().filter_map(|c| match c.to_ascii_lowercase() {
        '0' => Some('o'),
        '1' | 'l' => Some('i'),
        '3' => Some('e'),
        '4' | '@' => Some('a'),
        '5' => Some('s'),
        '7' => Some('t'),
        '8' => Some('b'),
        'v' => Some('u'),
        c => Some(c).filter(char::is_ascii_alphanumeric),
    });
    letters.collect::<String>().replace("rn", "m").replace("nn", "m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_as_the_person_or_the_board_is_reserved() {
        for id in [
            "human",
            "Human",
            "HUMAN",
            "human.",
            "human-",
            "hu-man",
            "h.u.m.a.n",
            "hurnan",
            "hum4n",
            "hum@n",
            "hvman",
            "human-1",
            "human2",
            "auto",
            "AUTO",
            "aut0",
            "auto_",
            "system",
            "System:",
            "5ystem",
            "sys7em",
            "systern",
            "0wner",
            "person",
            "callb0ard",
            "ca11board",
            "CallBoard",
            "board",
        ] {
            assert!(is_reserved(id), "{id}");
        }
    }

    #[test]
    fn other_names_are_free() {
        for id in [
            "humanist",
            "automat",
            "system-tests",
            "swift-otter",
            "worker-1",
            "agent-1",
            "claude-1",
            "planner",
            "boss",
            "board-writer",
            "callboard-docs",
            "a",
            "1",
            "hu",
        ] {
            assert!(!is_reserved(id), "{id}");
        }
    }
}
