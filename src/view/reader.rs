//! Who reads, and what they call those who act.

use crate::state::id::AgentId;

/// Who reads a page or a screen: what they did themselves is said to be theirs. By default nobody
/// in particular.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    own: Vec<AgentId>,
}

impl Reader {
    /// `own` are the names under which the history has what the reader does.
    pub fn new(own: Vec<AgentId>) -> Self {
        Self { own }
    }

    /// Whether the reader is who acted.
    pub fn is(&self, actor: &AgentId) -> bool {
        self.own.contains(actor)
    }

    /// `you`, the name of another person, or the id of an agent.
    pub fn calls<'a>(&self, actor: &'a AgentId) -> &'a str {
        if self.is(actor) { "you" } else { actor.shown() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_is_you_and_others_have_their_names() {
        let own = ["ada", "human"].map(|name| match name {
            "human" => AgentId::trusted(name),
            name => AgentId::of_person(name),
        });
        let (ada, nobody) = (Reader::new(own.into()), Reader::default());
        for (actor, by_ada, by_nobody) in [
            (AgentId::of_person("ada"), "you", "ada"),
            (AgentId::of_person("bob"), "bob", "bob"),
            (AgentId::trusted("human"), "you", "human"),
            (AgentId::trusted("ada"), "ada", "ada"),
        ] {
            assert_eq!((ada.calls(&actor), nobody.calls(&actor)), (by_ada, by_nobody));
        }
    }
}
