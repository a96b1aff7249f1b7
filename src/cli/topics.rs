//! `callboard help TOPIC`: what belongs to no single command.

use super::line::own_words;

/// Topics, each with what it is about and its text.
pub(super) const TOPICS: [(&str, &str, &str); 6] = [
    ("clients", "how an agent is put to work, in each client", include_str!("topics/clients.txt")),
    ("http", "the server, its page, other machines, proxies", include_str!("topics/http.txt")),
    ("git", "worktrees, clones, git, moving and removing", include_str!("topics/git.txt")),
    ("promises", "what holds whatever happens", include_str!("topics/promises.txt")),
    ("back", "undo, history, snapshots, backups", include_str!("topics/back.txt")),
    ("settings", "config.toml, and where limits stand", include_str!("topics/settings.txt")),
];

/// The text of the topic that this process is asked for, if it is.
pub(super) fn asked() -> Option<&'static str> {
    let words: Vec<_> = own_words().filter(|word| !word.starts_with('-')).collect();
    let [help, topic] = words.as_slice() else { return None };
    let found = TOPICS.iter().find(|(name, ..)| help == "help" && name == topic);
    found.map(|(.., text)| *text)
}

/// The topics as the help of `callboard` lists them.
pub(super) fn listed() -> String {
    let lines = TOPICS.iter().map(|(name, about, _)| format!("\n  help {name:<10} {about}"));
    format!("Topics:{}", lines.collect::<String>())
}
