//! Names for agents that have given themselves none: short, and telling. `claude-1` is the first
//! Claude Code in the main worktree, `claude-parser-2` the second one in a linked worktree
//! `shop-parser` of `shop`.

use std::path::Path;

use crate::state::id::AgentId;
use crate::state::reserved::is_reserved;

/// Clients whose short name does not follow from the rule, by how their names begin.
const KNOWN: [(&str, &str); 8] = [
    // What OpenAI's SDK for JavaScript makes of a server's command or address.
    ("stdio: ", "openai"),
    ("sse: ", "openai"),
    ("streamable-http: ", "openai"),
    ("cursor", "cursor"),
    ("visual studio code", "vscode"),
    ("vscode", "vscode"),
    ("github", "copilot"),
    ("lm studio", "lmstudio"),
];
/// Words that say nothing of which client it is.
const OF_CLIENTS: [&str; 15] = [
    "mcp", "client", "cli", "code", "ai", "agent", "desktop", "app", "sdk", "com", "the", "server",
    "adapters", "core", "example",
];
/// The whole name of clients that are made with the Python SDK and give themselves none.
const PYTHON: (&str, &str) = ("mcp", "python");
/// Words that say nothing of which worktree it is.
const OF_WORKTREES: [&str; 5] = ["wt", "worktree", "worktrees", "tree", "agent"];
/// Most words and bytes of a client's name, and of a worktree's.
const WORDS: usize = 2;
const LONGEST: usize = 16;
const NOBODY: &str = "agent";

/// The name without its number. `main` is the main worktree's root; the worktree is named only if
/// it is another.
pub fn prefix(client: Option<&str>, worktree: Option<&Path>, main: Option<&Path>) -> String {
    let client = client.map(short).unwrap_or_default();
    let client = if client.is_empty() { NOBODY.to_owned() } else { client };
    let linked = worktree.filter(|worktree| main.is_some_and(|main| main != *worktree));
    let label = linked.map(|worktree| label(worktree, main, &client)).unwrap_or_default();
    let named = |client: &str| match label.as_str() {
        "" => client.to_owned(),
        label => format!("{client}-{label}"),
    };
    let name = named(&client);
    let is_free = |name: &str| !is_reserved(name) && AgentId::checked(name).is_ok();
    if is_free(&name) { name } else { named(NOBODY) }
}

/// The client's name or, if that does not tell which client it is, its title.
pub fn telling(name: String, title: Option<String>) -> String {
    let tells = |text: &str| !short(text).is_empty();
    if tells(&name) { name } else { title.filter(|title| tells(title)).unwrap_or(name) }
}

/// The client's name without the words that most clients have; empty if there are no others.
fn short(client: &str) -> String {
    let client = client.to_lowercase();
    if client == PYTHON.0 {
        return PYTHON.1.to_owned();
    }
    if let Some((_, name)) = KNOWN.iter().find(|(start, _)| client.starts_with(start)) {
        return (*name).to_owned();
    }
    let telling = words(&client).into_iter().filter(|word| !OF_CLIENTS.contains(&word.as_str()));
    joined(&telling.collect::<Vec<_>>())
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
    use crate::state::reserved::RESERVED;

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
            ("mcp", "python"),
            ("mcp-client", "agent"),
            ("example-client", "agent"),
            ("@langchain/mcp-adapters", "langchain"),
            ("langchain-mcp", "langchain"),
            ("@cline/core", "cline"),
            ("Cline", "cline"),
            ("stdio: /opt/bin/callboard mcp", "openai"),
            ("fastmcp-client", "fastmcp"),
            ("MCP Inspector", "inspector"),
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
    fn a_title_tells_the_client_where_the_name_does_not() {
        let cases = [
            ("mcp-client", Some("Night Shift"), "night-shift"),
            ("mcp-client", Some("MCP Client"), "agent"),
            ("mcp-client", None, "agent"),
            ("zed", Some("Night Shift"), "zed"),
        ];
        for (name, title, wanted) in cases {
            let client = telling(name.to_owned(), title.map(str::to_owned));
            assert_eq!(prefix(Some(&client), None, None), wanted, "{name} {title:?}");
        }
    }

    #[test]
    fn no_client_and_no_worktree_makes_a_name_that_agents_are_refused() {
        let mut clients: Vec<String> = RESERVED.iter().map(|name| (*name).to_owned()).collect();
        clients.extend(["all", "role", "task", "mcp", "client"].map(str::to_owned));
        for name in clients.clone() {
            clients.extend([
                name.to_uppercase(),
                format!("{name}-mcp-client"),
                format!("The {name} 1"),
                format!("{name}2"),
                name.replace('o', "0").replace('a', "4"),
                name.chars().flat_map(|c| [c, '-']).collect(),
            ]);
            for cut in 1..name.len() {
                clients.push(name[..cut].to_owned());
            }
        }
        let mut checked = 0;
        for client in &clients {
            for place in clients.iter().map(String::as_str).chain(["shop", "tem", "an", "rd"]) {
                let worktree = Path::new("/p").join(place.replace('/', "_"));
                let main = Some(Path::new("/p/main"));
                for worktree in [None, Some(worktree.as_path())] {
                    let id = format!("{}-1", prefix(Some(client), worktree, main));
                    let is_taken = AgentId::checked(&id).is_err() || is_reserved(&id);
                    assert!(!is_taken, "{client} in {worktree:?} is called {id}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 10_000, "{checked}");
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
