//! What a search finds: tasks, agents, discoveries.

use std::sync::Arc;

use super::Rows;
use super::card::Named;
use crate::state::State;
use crate::state::discovery::Discovery;
use crate::state::id::AgentId;
use crate::state::task::Task;
use crate::state::time::Timestamp;

/// Most entries of each kind.
const SHOWN: usize = 50;
/// Characters before a hit, and all of an excerpt.
const BEFORE: usize = 40;
const EXCERPT: usize = 160;

#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub tasks: Rows<(Named, Option<String>)>,
    pub agents: Rows<AgentId>,
    pub discoveries: Rows<Arc<Discovery>>,
    pub now: Timestamp,
    pub seq: u64,
}

impl Found {
    /// What has all words of `text`, whatever their case.
    pub fn of(state: &State, text: &str, now: Timestamp) -> Self {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let has = |text: &str| {
            let text = text.to_lowercase();
            !words.is_empty() && words.iter().all(|word| text.contains(word))
        };
        let task = |task: &&Arc<Task>| {
            let number = state.number_of(&task.id).map(|number| format!("#{number}"));
            has(&format!(
                "{} {} {} {} {}",
                task.headline(),
                task.description,
                task.id,
                task.path.as_deref().unwrap_or_default(),
                number.unwrap_or_default()
            ))
        };
        let named =
            |task: &Arc<Task>| (Named::find(state, &task.id), excerpt(&task.description, &words));
        Self {
            tasks: rows(state.tasks().filter(task).map(named)),
            agents: rows(
                state.agents().map(|agent| agent.id.clone()).filter(|id| has(id.as_str())),
            ),
            discoveries: rows(state.discoveries().filter(|one| has(&one.content)).cloned()),
            now,
            seq: state.seq(),
        }
    }
}

fn rows<T>(mut all: impl Iterator<Item = T>) -> Rows<T> {
    let rows = all.by_ref().take(SHOWN).collect();
    Rows { rows, more: all.count() }
}

/// The surroundings of the first word that the text has.
fn excerpt(text: &str, words: &[String]) -> Option<String> {
    let found = words.iter().find_map(|word| text.to_lowercase().find(word.as_str()))?;
    // Lower case may be longer or shorter, so the place is one of characters.
    let place = text.to_lowercase()[..found].chars().count();
    let begin = place.saturating_sub(BEFORE);
    let shown: String = text.chars().skip(begin).take(EXCERPT).collect();
    let mut words: Vec<_> = shown.split_whitespace().collect();
    // Where it is cut, it is most likely cut within a word.
    if begin > 0 && words.len() > 1 {
        words[0] = "…";
    }
    if text.chars().nth(begin + EXCERPT).is_some() && words.len() > 1 {
        words.pop();
        words.push("…");
    }
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_cut_between_words_and_says_so() {
        let found = |text: &str| excerpt(text, &["needle".to_owned()]);
        let long = format!("{} needle {}", "before ".repeat(10), "after ".repeat(40));
        let cut = found(&long).unwrap();
        assert!(cut.starts_with("… before ") && cut.ends_with(" after …"), "{cut}");
        assert!(cut.contains(" before needle after "), "{cut}");
        assert_eq!(found("a Needle alone").as_deref(), Some("a Needle alone"));
        assert_eq!(found("nothing"), None);
    }
}
