//! The tasks that a call names and whose stubs have left the state. The journal finds them by id,
//! wherever in its arguments a call has one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::archive::Fetched;
use super::call::Call;
use super::get_task::retired_by;
use super::prepared::Prepared;
use crate::state::State;
use crate::state::document::Retired;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;

/// The stubs that the call needs and the state lacks.
pub(super) fn stubs(
    prepared: &dyn Prepared,
    state: &State,
    call: &Call,
) -> Result<BTreeMap<TaskId, Retired>, Refusal> {
    let mut named = BTreeSet::new();
    collect(&prepared.params(), &mut named);
    if let Fetched::Earlier { document, .. } = call.fetched {
        named.extend(document.tasks.iter().map(|task| task.id.clone()));
    }
    let mut stubs = BTreeMap::new();
    for id in named.into_iter().filter(|id| state.status_of(id).is_none()) {
        if let Some(seq) = call.retired_at(&id, state)? {
            let (task, had_parts) = retired_by(seq, &id, call)?;
            stubs.insert(id, Retired::of(&task, had_parts, seq));
        }
    }
    Ok(stubs)
}

/// Collects the strings that may be ids of tasks.
fn collect(value: &Value, ids: &mut BTreeSet<TaskId>) {
    match value {
        Value::String(text) => ids.extend(TaskId::checked(text).ok()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, ids)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, ids)),
        _ => {}
    }
}
