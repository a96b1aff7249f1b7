use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Annotations, Call, Operation, Prepared, Steps, Toolset, WRITE, find, no_operation};
use crate::state::limit;
use crate::state::refusal::{BatchError, Refusal};
use crate::state::{Created, State};

pub struct ApplyBatch;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Writing operations, done in order (at most 5000); not reset_tasks, nor those on snapshots,
    /// bundles or artifacts
    pub operations: Vec<Item>,
    pub idempotency_key: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Name of the operation, such as update_task
    pub name: String,
    /// Arguments of the operation, without idempotency_key
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    pub applied: usize,
    /// Events recorded by the batch
    pub items_written: usize,
    /// Durable writes that separate calls would have taken, less the one that was made
    pub writes_saved: usize,
    /// Reply of each operation; for a repeated call the ids of what it created and changed
    pub results: Vec<Map<String, Value>>,
}

impl Operation for ApplyBatch {
    const NAME: &'static str = "apply_batch";
    const DESCRIPTION: &'static str =
        "Do several writing operations in one durable write, all or none.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Full;
    type Params = Params;
    type Reply = Reply;

    fn idempotency_key(params: &Params) -> Option<&str> {
        params.idempotency_key.as_deref()
    }

    fn steps(params: &Params) -> Result<Option<Steps>, Refusal> {
        if params.operations.is_empty() {
            return Err(Refusal::Empty { what: "operations" });
        }
        limit::BATCH.check(params.operations.len())?;
        let steps = params.operations.iter().enumerate().map(|(index, item)| {
            step(item).map_err(|refusal| (index, name(item), Box::new(refusal)))
        });
        let (steps, refused): (Vec<_>, Vec<_>) = steps.partition(Result::is_ok);
        if refused.is_empty() {
            Ok(Some(steps.into_iter().flatten().collect()))
        } else {
            Err(refused_all(refused.into_iter().filter_map(Result::err).collect()))
        }
    }

    fn reply(params: &Params, _: &State, call: &Call) -> Result<Reply, Refusal> {
        Ok(Reply {
            success: true,
            applied: params.operations.len(),
            items_written: call.events,
            writes_saved: if call.repeated { 0 } else { params.operations.len() - 1 },
            results: if call.repeated {
                call.created.iter().map(Created::told).collect()
            } else {
                Vec::new()
            },
        })
    }
}

/// Most letters of an operation's name that are repeated.
const LONGEST_NAME: usize = 32;
/// Refused operations of a batch that are named, each with the reason.
const ERRORS_NAMED: usize = 20;

/// One refusal for all operations that were refused, given by position.
pub fn refused_all(mut refused: Vec<(usize, String, Box<Refusal>)>) -> Refusal {
    let more = refused.len().saturating_sub(ERRORS_NAMED);
    refused.truncate(ERRORS_NAMED);
    if refused.len() == 1
        && let Some((index, name, refusal)) = refused.pop()
    {
        return Refusal::BatchItem { index, name, refusal };
    }
    let errors = refused.into_iter().map(|(index, name, refusal)| {
        let message = refusal.to_string();
        BatchError { index, name, refusal, message }
    });
    Refusal::BatchItems { errors: errors.collect(), more }
}

fn step(item: &Item) -> Result<Box<dyn Prepared>, Refusal> {
    let entry = find(&item.name).ok_or_else(|| unknown(item))?;
    if entry.annotations.read_only || entry.name == ApplyBatch::NAME {
        return Err(Refusal::NotInBatch { name: name(item) });
    }
    let prepared = entry.prepare(Value::Object(item.arguments.clone()))?;
    if prepared.fetches() {
        return Err(Refusal::NotInBatch { name: name(item) });
    }
    if prepared.idempotency_key().is_some() {
        return Err(Refusal::KeyOfItem);
    }
    Ok(prepared)
}

fn unknown(item: &Item) -> Refusal {
    Refusal::BadArgument {
        argument: "name".to_owned(),
        wanted: no_operation("operation", &item.name),
    }
}

/// The operation's name, short enough to repeat in a message.
fn name(item: &Item) -> String {
    item.name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        .take(LONGEST_NAME)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_of_a_batch_are_read_once_when_the_call_comes_in() {
        let import = json!({"name": "import_plan", "arguments": {"text": "- [ ] a\n"}});
        let batch =
            find(ApplyBatch::NAME).unwrap().prepare(json!({"operations": [import]})).unwrap();
        let (first, again) = (batch.steps().unwrap().unwrap(), batch.steps().unwrap().unwrap());
        assert_eq!((first.len(), first.as_ptr()), (1, again.as_ptr()));
    }
}
