//! A call whose arguments have been parsed.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::archive::{Archive, Fetched};
use super::call::Call;
use super::naming::Open;
use super::operation::{AgentArgument, Annotations, Decision, Operation, Steps};
use super::reader::Reader;
use super::schema;
use super::typed::Slot;
use crate::state::State;
use crate::state::event::Event;
use crate::state::refusal::Refusal;
use crate::{harmless, redact};

/// A call whose arguments have been parsed.
pub trait Prepared: Send + Sync {
    fn name(&self) -> &'static str;
    fn annotations(&self) -> Annotations;
    fn agent_argument(&self) -> AgentArgument;
    fn agent_id(&self) -> Option<&str>;
    fn idempotency_key(&self) -> Option<&str>;
    /// The parameters without the idempotency key, to tell whether a repeated call is the same
    /// call.
    fn params(&self) -> Value;
    /// Number of secrets that were redacted from the arguments.
    fn redacted(&self) -> usize;
    fn wait_seconds(&self) -> u64;
    fn waits(&self, state: &State, call: &Call) -> bool;
    /// See [`Operation::GOES_ON`].
    fn goes_on(&self) -> bool;
    fn is_long(&self, reader: Reader) -> bool;
    /// See [`Operation::REST`].
    fn rest(&self) -> &'static str;
    fn steps(&self) -> Result<Option<&Steps>, Refusal>;
    fn fetches(&self) -> bool;
    /// See [`Operation::PLACED`]; of a batch, whether a step is.
    fn is_placed(&self) -> bool;
    fn done_files(&self) -> Vec<&str>;
    fn admit(&self, state: &State, call: &Call) -> Result<(), Refusal>;
    fn fetch(&self, archive: &dyn Archive) -> Result<Fetched, Refusal>;
    fn decide(&self, state: &State, call: &Call) -> Decision;
    fn reply(&self, state: &State, call: &Call) -> Result<Value, Refusal>;
    /// The same call with the ids of tasks instead of their other names; none if it has only ids. It
    /// is made once, because a call that waits remembers what it has seen.
    fn with_ids(&self, state: &State, call: &Call) -> Result<Option<&WithIds>, Refusal>;
    fn delivered(&self, state: &State, call: &Call) -> Vec<Event>;
}

/// A call in which tasks go by their ids, and what the reply says of that.
pub struct WithIds {
    pub prepared: Arc<dyn Prepared>,
    pub said: Option<String>,
}

impl WithIds {
    pub(super) fn call(&self) -> &dyn Prepared {
        self.prepared.as_ref()
    }
}

pub(super) struct Parsed<O: Operation> {
    params: O::Params,
    /// What the state has to say about names in the arguments.
    pub(super) open: Open,
    with_ids: OnceLock<WithIds>,
    redacted: usize,
    /// Parsed with the call, so that it takes no time under the board's lock.
    steps: Result<Option<Steps>, Refusal>,
    /// Where the caller finds the reply as it is; `None` if the caller wants only its JSON.
    pub(super) reply: Option<Slot<O>>,
}

impl<O: Operation> Parsed<O> {
    fn all_steps(&self) -> impl Iterator<Item = &dyn Prepared> {
        self.steps.iter().flatten().flatten().map(Box::as_ref)
    }
}

/// Prepares a call. `joined` are the lists that came as one text with commas.
pub(super) fn prepare<O: Operation>(
    arguments: Value,
    joined: Vec<String>,
) -> Result<Box<dyn Prepared>, Refusal> {
    let open = Open::of(O::NAME, &arguments, joined);
    Ok(Box::new(Parsed { open, ..parse::<O>(arguments)? }))
}

/// A text as operations that record it receive it: without what is harmful or secret.
pub(crate) fn received(text: &str) -> String {
    let mut value = Value::from(text);
    harmless::value(&mut value);
    redact::value(&mut value);
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn parse<O: Operation>(arguments: Value) -> Result<Parsed<O>, Refusal> {
    let mut arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    O::note_form(&mut arguments);
    harmless::value(&mut arguments);
    // A read stores nothing, so there is nothing to redact.
    let redacted = if O::ANNOTATIONS.read_only { 0 } else { redact::value(&mut arguments) };
    match serde_path_to_error::deserialize(arguments) {
        Ok(params) => {
            let (steps, open) = (O::steps(&params), Open::default());
            let with_ids = OnceLock::new();
            Ok(Parsed { steps, params, open, with_ids, redacted, reply: None })
        }
        Err(error) => Err(Refusal::BadArguments {
            operation: O::NAME,
            argument: Some(error.path().to_string()).filter(|path| path != "."),
            detail: error.to_string(),
            expected: schema::summary(&schema::of::<O::Params>()),
        }),
    }
}

impl<O: Operation> Prepared for Parsed<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn annotations(&self) -> Annotations {
        O::ANNOTATIONS
    }

    fn agent_argument(&self) -> AgentArgument {
        O::AGENT
    }

    fn agent_id(&self) -> Option<&str> {
        O::agent_id(&self.params)
    }

    fn idempotency_key(&self) -> Option<&str> {
        O::idempotency_key(&self.params)
    }

    fn params(&self) -> Value {
        let mut params = serde_json::to_value(&self.params).unwrap_or_default();
        if let Some(params) = params.as_object_mut() {
            params.remove("idempotency_key");
        }
        params
    }

    fn redacted(&self) -> usize {
        self.redacted
    }

    fn wait_seconds(&self) -> u64 {
        O::wait_seconds(&self.params)
    }

    fn waits(&self, state: &State, call: &Call) -> bool {
        O::waits(&self.params, state, call)
    }

    fn goes_on(&self) -> bool {
        O::GOES_ON
    }

    fn is_long(&self, reader: Reader) -> bool {
        O::ANNOTATIONS.read_only && O::is_long(&self.params, reader)
    }

    fn rest(&self) -> &'static str {
        O::REST
    }

    fn steps(&self) -> Result<Option<&Steps>, Refusal> {
        self.steps.as_ref().map(Option::as_ref).map_err(Refusal::clone)
    }

    fn fetches(&self) -> bool {
        O::FETCHES
    }

    fn is_placed(&self) -> bool {
        O::PLACED || self.all_steps().any(|step| step.is_placed())
    }

    fn done_files(&self) -> Vec<&str> {
        let of_steps = self.all_steps().flat_map(|step| step.done_files());
        O::done_files(&self.params).into_iter().chain(of_steps).collect()
    }

    fn admit(&self, state: &State, call: &Call) -> Result<(), Refusal> {
        O::admit(&self.params, state, call)
    }

    fn fetch(&self, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        O::fetch(&self.params, archive)
    }

    fn decide(&self, state: &State, call: &Call) -> Decision {
        O::decide(&self.params, state, call)
    }

    fn with_ids(&self, state: &State, call: &Call) -> Result<Option<&WithIds>, Refusal> {
        let made = self.with_ids.get();
        if made.is_some() || self.open.is_settled(state) {
            return Ok(made);
        }
        let mut arguments = serde_json::to_value(&self.params).unwrap_or_default();
        let said = self.open.settle(&mut arguments, state, call)?;
        let parsed = parse::<O>(arguments)?;
        let reply = self.reply.clone();
        let prepared = Parsed { redacted: self.redacted, reply, ..parsed };
        Ok(Some(self.with_ids.get_or_init(|| WithIds { prepared: Arc::new(prepared), said })))
    }

    fn delivered(&self, state: &State, call: &Call) -> Vec<Event> {
        O::delivered(&self.params, state, call)
    }

    fn reply(&self, state: &State, call: &Call) -> Result<Value, Refusal> {
        let reply = O::reply(&self.params, state, call)?;
        let value = serde_json::to_value(&reply).unwrap_or_default();
        if let Some(slot) = &self.reply {
            slot.put(reply);
        }
        Ok(value)
    }
}
