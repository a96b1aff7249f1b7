//! What an argument may be, read from the operation's schema.

use serde_json::{Map, Value};

use crate::ops::schema::variants;

#[derive(Debug, PartialEq)]
pub(crate) enum Shape {
    Text,
    Choice(Vec<String>),
    Whole {
        least: i128,
        most: i128,
    },
    Number,
    Flag,
    List(Box<Shape>),
    Record(Record),
    /// Values by names of the caller's choice.
    Map(Box<Shape>),
    /// Any JSON.
    Any,
}

/// An object with known fields.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Record(pub Vec<Field>);

#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub shape: Shape,
    pub required: bool,
    /// An old name, which is taken and not spoken of.
    pub deprecated: bool,
}

impl Record {
    pub(crate) fn of(schema: &Map<String, Value>) -> Self {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let fields = properties.map(|(name, schema)| Field {
            name: name.clone(),
            shape: Shape::of(schema),
            required: is_required(name),
            deprecated: schema["deprecated"] == true,
        });
        Self(fields.collect())
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.0.iter().find(|field| field.name == name)
    }

    /// The fields that callers see: not the deprecated ones.
    pub(crate) fn current(&self) -> impl Iterator<Item = &Field> + Clone {
        self.0.iter().filter(|field| !field.deprecated)
    }
}

impl Shape {
    pub(crate) fn of(schema: &Value) -> Self {
        let alternatives = schema["anyOf"].as_array().into_iter().flatten();
        if let Some(one) = alternatives.into_iter().find(|one| one["type"] != "null") {
            return Self::of(one);
        }
        let choices = choices(schema);
        if !choices.is_empty() {
            return Self::Choice(choices);
        }
        match kind(schema) {
            Some("string") => Self::Text,
            Some("integer") => whole(schema),
            Some("number") => Self::Number,
            Some("boolean") => Self::Flag,
            Some("array") => Self::List(Box::new(Self::of(&schema["items"]))),
            Some("object") => object(schema),
            _ => Self::Any,
        }
    }
}

/// The type, apart from null.
fn kind(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    }
}

/// The names in an enumeration.
fn choices(schema: &Value) -> Vec<String> {
    variants(schema).iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// The range of an integer's type.
fn whole(schema: &Value) -> Shape {
    let (least, most) = match schema["format"].as_str() {
        Some("uint8") => (0, i128::from(u8::MAX)),
        Some("uint32") => (0, i128::from(u32::MAX)),
        Some("uint64" | "uint") => (0, i128::from(u64::MAX)),
        Some("int32") => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    Shape::Whole { least: schema["minimum"].as_i64().map_or(least, i128::from), most }
}

fn object(schema: &Value) -> Shape {
    match (schema.as_object(), schema["properties"].is_object()) {
        (Some(fields), true) => Shape::Record(Record::of(fields)),
        _ => Shape::Map(Box::new(Shape::of(&schema["additionalProperties"]))),
    }
}
