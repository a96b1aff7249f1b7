//! An operation as the list has it, and the JSON Schemas that are made of its types.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::operation::{AgentArgument, Annotations, AskGit, Operation, Toolset};
use super::prepared::{Prepared, prepare};
use super::register_agent::RegisterAgent;
use super::schema;
use crate::state::refusal::Refusal;

type Prepare = fn(Value, Vec<String>) -> Result<Box<dyn Prepared>, Refusal>;

/// An operation with its types erased, for the list.
pub struct Entry {
    pub name: &'static str,
    pub description: &'static str,
    pub annotations: Annotations,
    pub toolset: Toolset,
    pub agent: AgentArgument,
    pub of_workers: Option<&'static [&'static str]>,
    pub checked_out: Option<AskGit>,
    params_schema: fn() -> Map<String, Value>,
    exact_schema: fn() -> Map<String, Value>,
    reply_schema: fn() -> Map<String, Value>,
    prepare: Prepare,
}

impl Entry {
    pub const fn of<O: Operation>() -> Self {
        Self {
            name: O::NAME,
            description: O::DESCRIPTION,
            annotations: O::ANNOTATIONS,
            toolset: O::TOOLSET,
            agent: O::AGENT,
            of_workers: O::OF_WORKERS,
            checked_out: O::CHECKED_OUT,
            params_schema: schema::of::<O::Params>,
            exact_schema: schema::exact::<O::Params>,
            reply_schema: schema::of_reply::<O::Reply>,
            prepare: prepare::<O>,
        }
    }

    /// JSON Schema of the arguments. `agent_required` adds `agent_id` to the required ones of an
    /// agent's operation; `register_agent` never requires it, because it can make an id up.
    pub fn input_schema(&self, agent_required: bool) -> Map<String, Value> {
        let mut schema = (self.params_schema)();
        if agent_required
            && self.agent == AgentArgument::Required
            && self.name != RegisterAgent::NAME
        {
            schema::require(&mut schema, "agent_id");
        }
        schema
    }

    /// Names of the arguments in one line, for error messages.
    pub fn arguments(&self) -> String {
        schema::summary(&(self.params_schema)())
    }

    /// The schema of the arguments with the ranges of integers.
    pub(super) fn exact_schema(&self) -> Map<String, Value> {
        (self.exact_schema)()
    }

    pub fn output_schema(&self) -> Map<String, Value> {
        (self.reply_schema)()
    }

    /// Schema of arguments and reply together, as in `schemas/` and in `callboard call --schema`.
    pub fn schema(&self) -> Value {
        let (mut arguments, mut reply) = (self.input_schema(true), self.output_schema());
        // References count from the root of the document.
        let definitions = schema::take_definitions(&mut arguments).into_iter();
        let definitions: Map<_, _> =
            definitions.chain(schema::take_definitions(&mut reply)).collect();
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.name,
            "description": self.description,
            "type": "object",
            "properties": {"arguments": arguments, "reply": reply},
        });
        if !definitions.is_empty() {
            schema[schema::DEFINITIONS] = Value::Object(definitions);
        }
        schema
    }

    pub fn prepare(&self, arguments: Value) -> Result<Box<dyn Prepared>, Refusal> {
        self.prepare_joined(arguments, Vec::new())
    }

    /// Prepares arguments. `joined` has the JSON pointers of lists that came as one text with commas.
    pub(super) fn prepare_joined(
        &self,
        arguments: Value,
        joined: Vec<String>,
    ) -> Result<Box<dyn Prepared>, Refusal> {
        (self.prepare)(arguments, joined)
    }
}

/// JSON Schema of an input that is not an operation's arguments: a plan.
pub fn schema_of<T: JsonSchema>(title: &str) -> Value {
    titled(schema::of::<T>(), title)
}

/// JSON Schema of a file that callboard writes: the state file.
pub fn schema_of_written<T: JsonSchema>(title: &str) -> Value {
    titled(schema::of_reply::<T>(), title)
}

fn titled(mut schema: Map<String, Value>, title: &str) -> Value {
    schema
        .insert("$schema".to_owned(), Value::from("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), Value::from(title));
    Value::Object(schema)
}
