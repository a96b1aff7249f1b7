use std::sync::Arc;

use serde_json::{Map, Value};

use super::report::{Fault, Report};
use crate::plan::Node;

/// The fields of one thing in a file. Each is taken by its name; what is not taken is kept, and
/// counted.
pub(super) struct Record {
    pub path: Arc<str>,
    pub line: usize,
    fields: Map<String, Value>,
}

impl Record {
    pub(super) fn new(path: &Arc<str>, line: usize, fields: Map<String, Value>) -> Self {
        Self { path: Arc::clone(path), line, fields }
    }

    pub(super) fn fault(&self, problem: impl Into<String>) -> Fault {
        Fault { path: self.path.to_string(), line: self.line, problem: problem.into() }
    }

    /// The value of a field; none if it says nothing.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.shift_remove(name).filter(|value| !value.is_null())
    }

    /// Takes a field that has this value.
    pub(super) fn take_if(&mut self, name: &str, value: &Value) {
        if self.fields.get(name) == Some(value) {
            self.fields.shift_remove(name);
        }
    }

    /// The value of a field that holds a text, or a number that stands for one.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Fault> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match plain(&value) {
            Some(text) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
            None => Err(self.fault(format!("{name} is {}: it has to be a text", kind(&value)))),
        }
    }

    /// The value of a field that must be there.
    pub(super) fn needed(&mut self, name: &str) -> Result<String, Fault> {
        let text = self.text(name)?;
        text.ok_or_else(|| self.fault(format!("it has no {name}: give it one")))
    }

    /// The value of a field that holds a list of texts.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>, Fault> {
        let values = self.values(name)?;
        let texts: Option<Vec<String>> = values.iter().map(plain).collect();
        let texts =
            texts.ok_or_else(|| self.fault(format!("{name} has an entry that is not a text")))?;
        Ok(texts.into_iter().filter(|text| !text.trim().is_empty()).collect())
    }

    /// The value of a field that holds a list; a single value is a list of one.
    pub(super) fn values(&mut self, name: &str) -> Result<Vec<Value>, Fault> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => Ok(values),
            Some(Value::Object(_)) => {
                Err(self.fault(format!("{name} is an object: it has to be a list")))
            }
            Some(Value::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
            Some(one) => Ok(vec![one]),
        }
    }

    /// Keeps the fields that were not taken in the item's metadata.
    pub(super) fn rest(self, node: &mut Node, report: &mut Report) {
        for (name, value) in self.fields.into_iter().filter(|(_, value)| says_something(value)) {
            report.kept(&name);
            node.metadata.insert(name, value);
        }
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// A value that stands for a text.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
        _ => "nothing",
    }
}
