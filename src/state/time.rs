//! Points in time and spans, in milliseconds. On disk and in replies a point is RFC 3339 in UTC.

use std::fmt;
use std::ops::{Add, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since 1970-01-01T00:00:00Z, written as `2026-03-01T12:00:00.000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema)]
#[schemars(with = "String")]
pub struct Timestamp(i64);

/// The last millisecond that RFC 3339 can write.
const LATEST: i64 = 253_402_207_200_000;

impl Timestamp {
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, LATEST))
    }

    pub fn millis(self) -> i64 {
        self.0
    }

    /// Milliseconds from `earlier` to here; 0 when it is not earlier.
    pub fn since(self, earlier: Self) -> i64 {
        (self.0 - earlier.0).max(0)
    }
}

impl Add<i64> for Timestamp {
    type Output = Self;
    fn add(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }
}

impl Sub<i64> for Timestamp {
    type Output = Self;
    fn sub(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_sub(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Self::from_millis(time.as_millisecond()))
    }
}

pub const SECOND: i64 = 1_000;
pub const MINUTE: i64 = 60 * SECOND;
