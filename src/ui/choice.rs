//! Names to choose from: those that have what is typed, and last what is typed itself.

use crate::view::Board;

/// A name that can be chosen, and what is said of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub name: String,
    pub about: String,
}

pub(super) struct Choice {
    all: Vec<Candidate>,
    /// The name that keys went to; none if the cursor follows what is typed.
    marked: Option<String>,
}

/// Addresses of messages that are not an agent's name.
const ADDRESSES: [(&str, &str); 3] =
    [("all", "every agent"), ("role:worker", "every worker"), ("role:leader", "every leader")];

impl Candidate {
    fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        Self { name: name.into(), about: about.into() }
    }

    /// The agents that are there, and what they work on.
    pub(crate) fn there(board: &Board) -> Vec<Self> {
        let about = |task: &crate::view::Named| format!("{} {}", task.name(), task.title);
        let rows = board.agents.rows.iter();
        rows.map(|row| {
            let about = row.task.as_ref().map_or_else(|| "idle".to_owned(), about);
            Self::new(row.id.as_str(), about)
        })
        .collect()
    }

    /// An agent whose session has ended.
    pub(crate) fn ended(name: &str) -> Self {
        Self::new(name, "ended")
    }

    pub(super) fn addresses() -> impl Iterator<Item = Self> {
        ADDRESSES.into_iter().map(|(name, about)| Self::new(name, about))
    }
}

impl Choice {
    pub(super) fn of(all: Vec<Candidate>) -> Self {
        Self { all, marked: None }
    }

    /// Takes a list that is newer. The cursor stays where it was put.
    pub(super) fn learn(&mut self, all: Vec<Candidate>) {
        self.all = all;
    }

    /// What fits the text: names that begin with it, then those that have it elsewhere, and the
    /// text itself unless it is a name.
    pub(super) fn fitting(&self, typed: &str) -> Vec<Candidate> {
        let wanted = typed.to_lowercase();
        let place = |one: &Candidate| one.name.to_lowercase().find(&wanted);
        let (first, others): (Vec<_>, Vec<_>) = self
            .all
            .iter()
            .filter(|one| place(one).is_some())
            .partition(|one| place(one) == Some(0));
        let mut fitting: Vec<_> = first.into_iter().chain(others).cloned().collect();
        if !typed.is_empty() && fitting.iter().all(|one| one.name != typed) {
            fitting.push(Candidate::new(typed, "as it is typed"));
        }
        fitting
    }

    /// The place of the cursor: where keys put it, else on the name that is typed whole, else on
    /// the first. None as long as nothing is typed.
    pub(super) fn cursor(&self, typed: &str, fitting: &[Candidate]) -> Option<usize> {
        let place = |name: &str| fitting.iter().position(|one| one.name == name);
        let marked = self.marked.as_deref().and_then(place);
        let whole = || place(typed).filter(|_| self.all.iter().any(|one| one.name == typed));
        marked.or_else(|| if typed.is_empty() { None } else { whole().or(Some(0)) })
    }

    /// The name that is meant.
    pub(super) fn name(&self, typed: &str) -> Option<String> {
        let fitting = self.fitting(typed);
        let cursor = self.cursor(typed, &fitting)?;
        fitting.get(cursor).map(|one| one.name.clone())
    }

    pub(super) fn step(&mut self, typed: &str, is_down: bool) {
        let fitting = self.fitting(typed);
        let last = fitting.len().saturating_sub(1);
        let next = match (self.cursor(typed, &fitting), is_down) {
            (None, true) => 0,
            (None, false) => last,
            (Some(cursor), true) => (cursor + 1).min(last),
            (Some(cursor), false) => cursor.saturating_sub(1),
        };
        self.marked = fitting.get(next).map(|one| one.name.clone());
    }

    /// Takes note that the text is another.
    pub(super) fn typed(&mut self) {
        self.marked = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice() -> Choice {
        Choice::of(["ada", "bob", "bobby", "abo"].map(|name| Candidate::new(name, "")).into())
    }

    fn fitting(typed: &str) -> Vec<String> {
        choice().fitting(typed).into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn names_that_begin_with_the_text_come_first_and_the_text_last() {
        assert_eq!(fitting(""), ["ada", "bob", "bobby", "abo"]);
        assert_eq!(fitting("BO"), ["bob", "bobby", "abo", "BO"]);
        assert_eq!(fitting("bob"), ["bob", "bobby"]);
        assert_eq!(fitting("carl"), ["carl"]);
    }

    #[test]
    fn what_is_typed_whole_is_meant_and_else_the_first_or_where_keys_went() {
        let mut choice = choice();
        assert_eq!(choice.name(""), None);
        assert_eq!(choice.name("bo").as_deref(), Some("bob"));
        assert_eq!(choice.name("abo").as_deref(), Some("abo"));
        choice.step("bo", true);
        assert_eq!(choice.name("bo").as_deref(), Some("bobby"));
        (0..9).for_each(|_| choice.step("bo", true));
        assert_eq!(choice.name("bo").as_deref(), Some("bo"), "the text itself");
        choice.typed();
        assert_eq!(choice.name("bo").as_deref(), Some("bob"));
        choice.typed();
        choice.step("", true);
        choice.learn(vec![Candidate::new("zoe", ""), Candidate::new("ada", "")]);
        assert_eq!(choice.name("").as_deref(), Some("ada"), "the list is newer");
    }
}
