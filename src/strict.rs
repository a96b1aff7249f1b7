//! JSON from strangers: no key twice in one object, and limited nesting.
//!
//! RFC 8259 leaves open what a repeated key means, so two readers of one message may see different
//! things.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Most arrays and objects nested in each other.
pub const MAX_DEPTH: usize = 64;

/// Checks a text; an error says what is wrong.
pub fn check(text: &[u8]) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    Level(0).deserialize(&mut deserializer).and_then(|()| deserializer.end())
}

/// Nesting depth of the value that is read.
#[derive(Clone, Copy)]
struct Level(usize);

/// Most keys of an object that are compared one by one; for so few a set costs more.
const FEW: usize = 16;

/// A key; copied only if it is written with escapes.
#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl Level {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.0 == MAX_DEPTH {
            return Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(Self(self.0 + 1))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let (mut few, mut others) = (Vec::new(), HashSet::new());
        while let Some(key) = fields.next_key::<Key>()? {
            if few.contains(&key) || others.contains(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key {:?} stands twice in one object",
                    key.0
                )));
            }
            if few.len() < FEW {
                few.push(key);
            } else {
                others.insert(key);
            }
            fields.next_value_seed(inner)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_readers_may_read_differently_is_refused() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for (text, complaint) in [
            (r#"{"a":1,"b":{"a":[{},{"c":null}]},"d":-1.5,"e":true}"#.to_owned(), ""),
            (deep(MAX_DEPTH), ""),
            (r#"{"a":1,"a":2}"#.to_owned(), "stands twice"),
            (r#"[{"b":{"a":1,"\u0061":2}}]"#.to_owned(), "stands twice"),
            (deep(MAX_DEPTH + 1), "nested deeper"),
            (deep(100_000), "nested deeper"),
            ("{} {}".to_owned(), "trailing"),
            ("{".to_owned(), "EOF"),
        ] {
            let checked =
                check(text.as_bytes()).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(
                checked.contains(complaint) && checked.is_empty() == complaint.is_empty(),
                "{complaint}: {checked}"
            );
        }
    }
}
