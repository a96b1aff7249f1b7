//! Names for agents that have given themselves none: short, and telling. `claude-1` is the first
//! Claude Code in the main worktree, `claude-parser-2` the second one in a linked worktree
//! `shop-parser` of `shop`.

use std::path::Path;

/// Clients whose short name does not follow from the rule, by how their names begin.
const KNOWN: [(&str, &str); 5] = [
    ("cursor", "cursor"),
    ("visual studio code", "vscode"),
    ("vscode", "vscode"),
    ("github", "copilot"),
    ("lm studio", "lmstudio"),
];
/// Words that say nothing of which client it is.
const OF_CLIENTS: [&str; 12] = [
    "mcp", "client", "cli", "code", "ai", "agent", "desktop", "app", "sdk", "com", "the", "server",
];
/// Words that say nothing of which worktree it is.
const OF_WORKTREES: [&str; 5] = ["wt", "worktree", "worktrees", "tree", "agent"];
/// Most words and bytes of a client's name, and of a worktree's.
const WORDS: usize = 2;
const LONGEST: usize = 16;
const NOBODY: &str = "agent";

/// The name without its number. `main` is the main worktree's root; the worktree is named only if
/// it is another.
pub fn prefix(client: Option<&str>, worktree: Option<&Path>, main: Option<&Path>) -> String {
    let client =
        client.map(short).filter(|name| !name.is_empty()).unwrap_or_else(|| NOBODY.to_owned());
    let linked = worktree.filter(|worktree| main.is_some_and(|main| main != *worktree));
    let label = linked.map(|worktree| label(worktree, main, &client)).unwrap_or_default();
    if label.is_empty() { client } else { format!("{client}-{label}") }
}

/// The client's name without the words that most clients have.
fn short(client: &str) -> String {
    let client = client.to_lowercase();
    if let Some((_, name)) = KNOWN.iter().find(|(start, _)| client.starts_with(start)) {
        return (*name).to_owned();
    }
    let all = words(&client);
    let telling: Vec<_> =
        all.iter().filter(|word| !OF_CLIENTS.contains(&word.as_str())).cloned().collect();
    joined(if telling.is_empty() { &all } else { &telling })
}

/// What the worktree's name says beside its project's and the client's.
fn label(worktree: &Path, main: Option<&Path>, client: &str) -> String {
    let name =
        |path: &Path| words(&path.file_name().unwrap_or_default().to_string_lossy().to_lowercase());
    let known = main.map(name).unwrap_or_default();
    let is_telling = |word: &String| {
        !OF_WORKTREES.contains(&word.as_str())
            && !known.contains(word)
            && !words(client).contains(word)
    };
    joined(&name(worktree).into_iter().filter(is_telling).collect::<Vec<_>>())
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn joined(words: &[String]) -> String {
    let all = words.iter().take(WORDS).cloned().collect::<Vec<_>>().join("-");
    let short: String = all.chars().take(LONGEST).collect();
    short.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_called_as_people_call_them() {
        let cases = [
            ("claude-code", "claude"),
            ("claude-ai", "claude"),
            ("codex-mcp-client", "codex"),
            ("gemini-cli-mcp-client", "gemini"),
            ("opencode", "opencode"),
            ("github-copilot-developer", "copilot"),
            ("copilot-cli", "copilot"),
            ("cursor-vscode", "cursor"),
            ("Visual Studio Code - Insiders", "vscode"),
            ("Zed", "zed"),
            ("Roo Code", "roo"),
            ("Kiro", "kiro"),
            ("mcp", "mcp"),
            ("mcp-client", "mcp-client"),
            ("a-very-long-name-of-somebody", "a-very"),
            ("Überlang", "berlang"),
            ("averyveryverylongname", "averyveryverylon"),
            ("日本", "agent"),
            ("", "agent"),
        ];
        for (client, name) in cases {
            assert_eq!(prefix(Some(client), None, None), name, "{client}");
        }
        assert_eq!(prefix(None, None, None), "agent");
    }

    #[test]
    fn a_linked_worktree_is_named_by_what_it_adds() {
        let cases = [
            ("claude-code", "/p/shop", "/p/shop", "claude"),
            ("claude-code", "/p/shop-parser", "/p/shop", "claude-parser"),
            ("claude-code", "/p/wt-claude-a", "/p/shop", "claude-a"),
            ("gemini-cli-mcp-client", "/p/wt-gemini", "/p/shop", "gemini"),
            (
                "codex-mcp-client",
                "/p/shop/.worktrees/fix_login-form-2",
                "/p/shop",
                "codex-fix-login",
            ),
            ("claude-code", "/p/wt-日本", "/p/shop", "claude"),
        ];
        for (client, worktree, main, name) in cases {
            assert_eq!(
                prefix(Some(client), Some(Path::new(worktree)), Some(Path::new(main))),
                name,
                "{worktree}"
            );
        }
        assert_eq!(prefix(Some("x"), Some(Path::new("/p/w")), None), "x");
    }
}
