//! Names of subagents. Several share one MCP process, whose calls do not say which of them makes
//! one. Clients tell their hooks an id of each, so the hook that starts a subagent makes a name
//! from it that all later hooks find again.

use crate::state::State;
use crate::state::agent::Agent;
use crate::state::digest::sha256;
use crate::state::id::{AgentId, Chance};
use crate::state::limit;

/// Digits that tell the subagents of one board apart.
const DIGITS: usize = 5;
/// Name before them if the agent that started the subagent is not known.
const NO_PARENT: &str = "subagent";

/// The end of a subagent's name on the board, made from the client's own id for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tag(String);

impl Tag {
    pub(crate) fn of(client_id: &str) -> Self {
        let seed = u64::from_str_radix(&sha256(client_id)[..16], 16).unwrap_or_default();
        Self(Chance::new(seed).base32(DIGITS))
    }

    /// The name of the subagent that `parent` has started.
    pub(crate) fn name(&self, parent: Option<&AgentId>) -> AgentId {
        let mut parent = parent.map_or(NO_PARENT, AgentId::as_str);
        // A subagent of a subagent is named like its siblings.
        if let Some((before, _)) = split(parent) {
            parent = before;
        }
        AgentId::trusted(format!("{}.{}", cut(parent), self.0))
    }

    /// The subagent's agent, if it has registered.
    pub(crate) fn agent<'s>(&self, state: &'s State) -> Option<&'s std::sync::Arc<Agent>> {
        state
            .agents()
            .find(|agent| split(agent.id.as_str()).is_some_and(|(_, digits)| digits == self.0))
    }
}

/// Whether the agent has the name of a subagent whose parent `is_known`. A person may have given it
/// such a name, too.
pub(super) fn is_one(agent: &Agent, is_known: impl Fn(&str) -> bool) -> bool {
    split(agent.id.as_str()).is_some_and(|(parent, _)| parent == NO_PARENT || is_known(parent))
}

/// A parent's name, cut so that there is room for the digits.
pub(super) fn cut(parent: &str) -> &str {
    &parent[..parent.len().min(limit::ID.max - DIGITS - 1)]
}

fn split(name: &str) -> Option<(&str, &str)> {
    let is_digit = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase() && !"ilou".contains(c);
    name.rsplit_once('.')
        .filter(|(_, digits)| digits.len() == DIGITS && digits.chars().all(is_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subagent_has_a_name_of_its_own_that_is_found_again() {
        let parent = AgentId::trusted("claude-1");
        let (one, other) = (Tag::of("a1b2"), Tag::of("a1b3"));
        assert_ne!(one, other);
        assert_eq!(one, Tag::of("a1b2"));
        let name = one.name(Some(&parent));
        assert!(
            name.as_str().starts_with("claude-1.")
                && name.as_str().len() == "claude-1.".len() + DIGITS,
            "{name}"
        );
        assert_eq!(other.name(Some(&name)), other.name(Some(&parent)), "a subagent of a subagent");
        assert_eq!(split(name.as_str()).map(|(before, _)| before), Some("claude-1"));
        for no_subagent in ["claude-1", "node.js", "a.boils", "a.12345x", "v1.2345"] {
            assert_eq!(split(no_subagent), None, "{no_subagent}");
        }
    }

    #[test]
    fn a_long_name_makes_room_for_the_digits() {
        let parent = AgentId::trusted("a".repeat(limit::ID.max));
        assert!(AgentId::checked(Tag::of("x").name(Some(&parent)).as_str()).is_ok());
    }
}
