//! Decides on a hand edit of the state file, by the rules of `update_task` and `init_coordination`:
//! all of it or nothing.

use std::collections::BTreeMap;

use super::{input, update_task};
use crate::state::State;
use crate::state::edit::{Changed, Edit, TaskEdit};
use crate::state::event::{EditedTask, Event, TaskChange};
use crate::state::limit;
use crate::state::refusal::Refusal;
use crate::state::task::{Context, Place};

/// Why an edit is rejected: one line for each change that is not allowed.
type Reasons = Vec<String>;

/// The event that adopts `edit`; `None` if everything already is as the edit wants it.
pub fn decide(edit: &Edit, state: &State) -> Result<Option<Event>, Reasons> {
    let mut verdict = Verdict::default();
    let board = state.board();
    let goal = verdict.wanted("goal", &edit.goal, &board.goal.to_string(), edit.base_seq);
    let goal = goal
        .and_then(|goal| verdict.checked("goal", input::checked_text("goal", &limit::GOAL, &goal)));
    let plan = verdict.wanted(
        "master_plan",
        &edit.master_plan,
        &board.master_plan.to_string(),
        edit.base_seq,
    );
    let master_plan = plan.and_then(|plan| {
        verdict.checked("master_plan", limit::MASTER_PLAN.check_text(&plan).map(|()| plan))
    });
    let tasks: Vec<_> = edit
        .tasks
        .iter()
        .filter_map(|one| edited(one, state, edit.base_seq, &mut verdict))
        .collect();
    let rewired: BTreeMap<_, _> = tasks
        .iter()
        .filter_map(|one| Some((&one.task, one.change.dependencies.as_deref()?)))
        .collect();
    verdict.checked("dependencies", state.check_rewired(&rewired));
    if !verdict.reasons.is_empty() {
        return Err(verdict.reasons);
    }
    if goal.is_none() && master_plan.is_none() && tasks.is_empty() {
        return Ok(None);
    }
    Ok(Some(Event::StateEdited { base_seq: edit.base_seq, goal, master_plan, tasks }))
}

#[derive(Default)]
struct Verdict {
    reasons: Reasons,
}

impl Verdict {
    /// The new value of a field, unless it already has that value. If somebody changed it after
    /// `base_seq`, adds a reason.
    fn wanted<T: Clone + PartialEq>(
        &mut self,
        path: &str,
        changed: &Option<Changed<T>>,
        current: &T,
        base_seq: u64,
    ) -> Option<T> {
        let changed = changed.as_ref().filter(|changed| changed.to != *current)?;
        if changed.from != *current {
            self.reasons.push(format!(
                "{path}: somebody has changed it since event {base_seq}, which the file shows"
            ));
            return None;
        }
        Some(changed.to.clone())
    }

    fn checked<T>(&mut self, path: &str, checked: Result<T, Refusal>) -> Option<T> {
        checked.map_err(|refusal| self.reasons.push(format!("{path}: {refusal}"))).ok()
    }
}

/// The change to one task; `None` if nothing is left to change.
fn edited(
    edit: &TaskEdit,
    state: &State,
    base_seq: u64,
    verdict: &mut Verdict,
) -> Option<EditedTask> {
    let of = |field: &str| format!("tasks[{}].{field}", edit.id);
    let task = verdict.checked(&format!("tasks[{}]", edit.id), state.known_task(&edit.id))?;
    let mut change = TaskChange::default();
    let title = verdict.wanted(&of("title"), &edit.title, &task.title, base_seq);
    let untitled = title == Some(None);
    change.title =
        verdict.checked(&of("title"), input::checked_title(title.flatten().as_deref())).flatten();
    let description = task.description.to_string();
    if let Some(text) =
        verdict.wanted(&of("description"), &edit.description, &description, base_seq)
    {
        change.description = verdict.checked(&of("description"), input::checked_description(&text));
    }
    if let Some(given) =
        verdict.wanted(&of("priority"), &edit.priority, &i64::from(task.priority), base_seq)
    {
        change.priority = verdict.checked(&of("priority"), input::checked_priority(given));
    }
    let dependencies: Vec<_> = task.dependencies.iter().map(ToString::to_string).collect();
    if let Some(ids) =
        verdict.wanted(&of("dependencies"), &edit.dependencies, &dependencies, base_seq)
    {
        let checked = update_task::dependencies(&ids)
            .and_then(|ids| state.check_still_ready(task, &ids).map(|()| ids));
        change.dependencies = verdict.checked(&of("dependencies"), checked);
    }
    let context = task.context.clone().unwrap_or_default();
    if let Some(new) = verdict.wanted(&of("context"), &edit.context, &context, base_seq) {
        change.context = verdict.checked(&of("context"), checked_context(new, &context.files));
    }
    if let Some(tags) = verdict.wanted(&of("tags"), &edit.tags, &task.tags, base_seq) {
        change.tags = verdict.checked(&of("tags"), input::checked_labels(&tags));
    }
    if change == TaskChange::default() && !untitled {
        return None;
    }
    verdict.checked(&format!("tasks[{}]", edit.id), update_task::check_unfinished(task))?;
    Some(EditedTask { task: edit.id.clone(), change, untitled })
}

/// Checks only the files that the edit adds: those already there may lie outside the project, which
/// older boards allowed.
fn checked_context(context: Context, before: &[String]) -> Result<Context, Refusal> {
    let new: Vec<_> = context.files.iter().filter(|file| !before.contains(file)).cloned().collect();
    input::checked_patterns("files", &new, &Place::default())?;
    let metadata = input::checked_metadata(context.metadata)?;
    let checked = input::context(&context.files, context.hints.as_deref(), metadata)?;
    Ok(Context { parent_task: context.parent_task, ..checked })
}
