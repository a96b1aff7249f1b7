//! Texts that were typed and not sent. The form that a text was typed into offers it again.

use super::form::Topic;

/// Most texts that are kept; the oldest goes first.
const KEPT: usize = 50;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draft {
    pub topic: Topic,
    pub text: String,
}

#[derive(Default)]
pub(super) struct Drafts(Vec<Draft>);

impl Drafts {
    pub(super) fn of(&self, topic: &Topic) -> Option<&str> {
        self.0.iter().find(|draft| draft.topic == *topic).map(|draft| draft.text.as_str())
    }

    /// Keeps the text in place of the one that there was. An empty one only removes that.
    pub(super) fn keep(&mut self, draft: Draft) {
        self.remove(&draft.topic);
        if draft.text.trim().is_empty() {
            return;
        }
        if self.0.len() >= KEPT {
            self.0.remove(0);
        }
        self.0.push(draft);
    }

    /// Keeps a text that was refused, unless another was typed since.
    pub(super) fn put_back(&mut self, draft: Draft) {
        if self.of(&draft.topic).is_none() {
            self.keep(draft);
        }
    }

    pub(super) fn remove(&mut self, topic: &Topic) {
        self.0.retain(|draft| draft.topic != *topic);
    }
}
