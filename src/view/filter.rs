//! Which rows of the lists a person wants to see. Numbers stay those of all tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::AgentRow;
use super::blocked::Group;
use super::card::Named;
use super::sorted::{Numbered, Sorted};
use super::waits::Wait;
use crate::state::task::Task;

/// All that is given must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Filter {
    /// Part of a title, a number, a path, an id or a name
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Agent that holds the task, did it last, or that it is kept for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        self.text.is_none() && self.tag.is_none() && self.agent.is_none()
    }

    pub(super) fn fits(&self, one: &Numbered<'_>) -> bool {
        if self.is_empty() {
            return true;
        }
        let (task, number) = (one.task, format!("#{}", one.number));
        let path = task.path.as_deref().unwrap_or_default();
        self.has_text(&[task.headline(), &number, path, task.id.as_str()])
            && self.tag.as_ref().is_none_or(|tag| task.tags.contains(tag))
            && self.agent.as_ref().is_none_or(|agent| concerns(task, agent))
    }

    fn has_text(&self, texts: &[&str]) -> bool {
        let Some(wanted) = &self.text else { return true };
        let wanted = wanted.to_lowercase();
        texts.iter().any(|text| text.to_lowercase().contains(&wanted))
    }

    pub(super) fn waits(&self, sorted: &Sorted<'_>, waits: &mut Vec<Wait>) {
        waits.retain(|wait| {
            let agent = wait.agent.as_ref().map_or("", |agent| agent.as_str());
            self.fits_named(sorted, wait.task.as_ref())
                || self.fits_agent(agent, &[&wait.name, &wait.text, agent])
        });
    }

    pub(super) fn agents(&self, sorted: &Sorted<'_>, rows: &mut Vec<AgentRow>) {
        rows.retain(|row| {
            let agent = row.id.as_str();
            self.fits_named(sorted, row.task.as_ref()) || self.fits_agent(agent, &[agent])
        });
    }

    pub(super) fn groups(&self, sorted: &Sorted<'_>, groups: &mut Vec<Group>) {
        groups.retain(|group| {
            let mut tasks = group.by.iter().chain(&group.first);
            self.is_empty() || tasks.any(|task| self.fits_named(sorted, Some(task)))
        });
    }

    fn fits_named(&self, sorted: &Sorted<'_>, task: Option<&Named>) -> bool {
        let known = task.and_then(|task| sorted.task(&task.id));
        known.is_some_and(|one| self.fits(&one))
    }

    fn fits_agent(&self, agent: &str, texts: &[&str]) -> bool {
        self.tag.is_none()
            && self.agent.as_ref().is_none_or(|wanted| wanted == agent)
            && self.has_text(texts)
    }
}

fn concerns(task: &Task, agent: &str) -> bool {
    let kept = task.kept_for.as_ref().map(|kept| &kept.agent);
    let last = task.attempts.last().map(|attempt| &attempt.agent);
    [task.claimed_by.as_ref(), kept, last].into_iter().flatten().any(|one| one.as_str() == agent)
}
