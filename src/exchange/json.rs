//! JSON whose parts know the lines that they stand in.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::record::Record;
use super::report::Fault;
use crate::plan::Lines;
use crate::state::limit;

pub(super) struct Json<'a> {
    pub path: Arc<str>,
    text: &'a str,
    lines: Lines,
}

impl<'a> Json<'a> {
    pub(super) fn new(path: &str, text: &'a str) -> Self {
        Self { path: path.into(), text, lines: Lines::of(text) }
    }

    /// The whole text, if it is JSON.
    pub(super) fn whole(&self) -> Result<&'a RawValue, Fault> {
        let start = self.text.len() - self.text.trim_start().len();
        serde_json::from_str(&self.text[start..])
            .map_err(|error| self.fault(self.lines.at(start), &error))
    }

    pub(super) fn line(&self, raw: &RawValue) -> usize {
        self.lines.at(raw.get().as_ptr() as usize - self.text.as_ptr() as usize)
    }

    pub(super) fn parsed<T: Deserialize<'a>>(&self, raw: &'a RawValue) -> Result<T, Fault> {
        serde_json::from_str(raw.get()).map_err(|error| self.fault(self.line(raw), &error))
    }

    /// The value, with nothing borrowed from the text.
    pub(super) fn reparsed<T: DeserializeOwned>(&self, raw: &RawValue) -> Result<T, Fault> {
        serde_json::from_str(raw.get()).map_err(|error| self.fault(self.line(raw), &error))
    }

    pub(super) fn record(&self, raw: &'a RawValue) -> Result<Record, Fault> {
        Ok(self.record_and_parts(raw, "", 1)?.0)
    }

    /// An object, and the entries of the list in its field `parts`, each with its own line. `level`
    /// is 1 for an object that is not a part of another.
    pub(super) fn record_and_parts(
        &self,
        raw: &'a RawValue,
        parts: &str,
        level: usize,
    ) -> Result<(Record, Vec<&'a RawValue>), Fault> {
        let most = limit::JSON_DEPTH.max;
        if level > most {
            let problem = format!("it is nested deeper than {most} levels");
            return Err(Fault { path: self.path.to_string(), line: self.line(raw), problem });
        }
        let mut json = serde_json::Deserializer::from_str(raw.get());
        let read = Split(parts).deserialize(&mut json).and_then(|read| json.end().map(|()| read));
        let (fields, parts) = read.map_err(|error| self.fault(self.line(raw), &error))?;
        let parts = match parts.filter(|parts| parts.get() != "null") {
            Some(parts) => self.parsed(parts)?,
            None => Vec::new(),
        };
        Ok((Record::new(&self.path, self.line(raw), fields), parts))
    }

    /// The fault of an unreadable text that begins in `line`.
    fn fault(&self, line: usize, error: &serde_json::Error) -> Fault {
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
        let line = line + error.line().saturating_sub(1);
        Fault { path: self.path.to_string(), line, problem: format!("it cannot be read: {what}") }
    }
}

/// Reads an object, with the field of this name as raw text.
struct Split<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for Split<'_> {
    type Value = (Map<String, Value>, Option<&'de RawValue>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Split<'_> {
    type Value = (Map<String, Value>, Option<&'de RawValue>);

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let (mut fields, mut parts) = (Map::new(), None);
        while let Some(key) = map.next_key::<String>()? {
            if fields.contains_key(&key) || parts.is_some() && key == self.0 {
                return Err(M::Error::custom(format!("the field {key} stands there twice")));
            }
            if key == self.0 {
                parts = Some(map.next_value()?);
            } else {
                fields.insert(key, map.next_value()?);
            }
        }
        Ok((fields, parts))
    }
}
