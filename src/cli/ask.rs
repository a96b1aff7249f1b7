//! Calls by the types of their operations.
//!
//! The reply may come from a server of another version: fields that are not known here are ignored,
//! and those that it lacks have their defaults. `--json` prints the reply as it came.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Session, runtime};
use crate::board::Answer;
use crate::ops::Operation;
use crate::ops::apply_batch::{self, Item};
use crate::participant::Stay;
use crate::state::limit;

/// A reply that this process cannot read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the reply to {operation} cannot be read ({fault}), so the server is another version of \
     callboard; update the older of the two"
)]
pub(super) struct Unfit {
    operation: &'static str,
    fault: serde_json::Error,
}

impl Session {
    /// Calls one operation, for a command that does nothing else.
    pub(super) fn ask<O>(&self, params: &O::Params) -> anyhow::Result<Answer<O::Reply>>
    where
        O: Operation,
        O::Reply: DeserializeOwned,
    {
        answered::<O>(self.call(O::NAME, arguments(params)?)?)
    }

    /// All pages of a list operation as one reply; `list` is the name of the field with the items.
    pub(super) fn every_page<O>(
        &self,
        list: &str,
        params: &O::Params,
    ) -> anyhow::Result<Answer<O::Reply>>
    where
        O: Operation,
        O::Reply: DeserializeOwned,
    {
        answered::<O>(self.call_pages(O::NAME, list, arguments(params)?)?)
    }

    /// The same by the operation's name, as JSON.
    pub(super) fn call_pages(
        &self,
        operation: &str,
        list: &str,
        mut query: Value,
    ) -> anyhow::Result<Value> {
        let (board, runtime) = (self.board(Stay::Brief)?, runtime()?);
        let (mut items, mut warning) = (Vec::new(), self.opened.swap_warning(None));
        query["limit"] = Value::from(limit::PAGE.max);
        loop {
            let mut page = runtime.block_on(board.call(operation, query.clone()))?;
            items.append(page[list].as_array_mut().unwrap_or(&mut Vec::new()));
            // What a process has to say of the board comes with its first reply.
            warning = warning.or_else(|| page.get("warning").cloned());
            match page["next"].take() {
                Value::Null => {
                    let mut reply = json!({list: items});
                    warning.into_iter().for_each(|warning| reply["warning"] = warning);
                    return Ok(reply);
                }
                next => query["after"] = next,
            }
        }
    }
}

/// A call as a step of a batch.
pub(super) fn step<O: Operation>(params: &O::Params) -> serde_json::Result<Item> {
    Ok(Item { name: O::NAME.to_owned(), arguments: serde_json::from_value(arguments(params)?)? })
}

/// The replies to a batch whose steps all called operation `O`.
pub(super) fn results<O>(batch: &apply_batch::Reply) -> anyhow::Result<Vec<O::Reply>>
where
    O: Operation,
    O::Reply: DeserializeOwned,
{
    batch
        .results
        .iter()
        .map(|result| Ok(answered::<O>(Value::Object(result.clone()))?.reply))
        .collect()
}

/// The parameters without those that are left out: an older server refuses names that it does not
/// know.
fn arguments(params: &impl serde::Serialize) -> serde_json::Result<Value> {
    let mut arguments = serde_json::to_value(params)?;
    if let Some(fields) = arguments.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    Ok(arguments)
}

fn answered<O>(json: Value) -> anyhow::Result<Answer<O::Reply>>
where
    O: Operation,
    O::Reply: DeserializeOwned,
{
    match O::Reply::deserialize(&json) {
        Ok(reply) => Ok(Answer::new(reply, json)),
        Err(fault) => Err(Unfit { operation: O::NAME, fault }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops;

    #[test]
    fn reply_of_another_version_is_read_as_far_as_it_is_known() {
        let json = json!({"success": true, "status": "failed", "attempts_left": 0, "later": [1]});
        let answer = answered::<ops::FailTask>(json.clone()).expect("a reply");
        assert_eq!((answer.attempts_left, answer.retry_at), (0, None));
        assert_eq!(answer.json(), &json);
    }

    #[test]
    fn reply_that_does_not_fit_names_the_operation_in_one_line() {
        let answer = answered::<ops::FailTask>(json!({"success": true, "status": "new"}));
        let text = answer.err().map(|error| error.to_string()).unwrap_or_default();
        for part in ["fail_task", "`new`", "the server is another version of callboard"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    #[test]
    fn parameters_that_are_left_out_are_not_sent() {
        let params = ops::fail_task::Params { task_id: "a".to_owned(), ..Default::default() };
        let sent = arguments(&params).expect("JSON");
        assert_eq!(sent, json!({"task_id": "a", "error": "", "final": false}));
    }
}
