//! Points in time and spans, in milliseconds. On disk and in replies, points are RFC 3339 in UTC.

use std::fmt;
use std::ops::{Add, Range, Sub};

use jiff::civil::DateTime;
use jiff::tz::Offset;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Time in UTC to the millisecond, such as `2026-03-01T12:00:00.000Z`
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema)]
#[schemars(with = "String")]
pub struct Timestamp(i64);

/// The last time that RFC 3339 can express, in milliseconds since 1970.
const LATEST: i64 = 253_402_207_200_000;

impl Timestamp {
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, LATEST))
    }

    /// `None` for the first moment of 1970, which stands for an unknown time.
    pub fn known(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    pub fn millis(self) -> i64 {
        self.0
    }

    /// Milliseconds since `earlier`; 0 if that is later.
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
        match self.text() {
            Some(text) => f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?),
            None => write!(f, "{} ms", self.0),
        }
    }
}

/// Form of the text, and where its numbers are.
const TEXT: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
const PLACES: [Range<usize>; 7] = [0..4, 5..7, 8..10, 11..13, 14..16, 17..19, 20..23];

impl Timestamp {
    /// Written by hand, because each event and each slot of the state file has several times and a
    /// general formatter is noticeably slower.
    fn text(self) -> Option<[u8; TEXT.len()]> {
        let time = Offset::UTC.to_datetime(jiff::Timestamp::from_millisecond(self.0).ok()?);
        let parts = [
            i32::from(time.year()),
            i32::from(time.month()),
            i32::from(time.day()),
            i32::from(time.hour()),
            i32::from(time.minute()),
            i32::from(time.second()),
            i32::from(time.millisecond()),
        ];
        let mut text = *TEXT;
        for (place, mut rest) in PLACES.into_iter().zip(parts) {
            for digit in text[place].iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
        Some(text)
    }

    /// Reads a time as other programs write it; without a zone it is taken for UTC.
    pub fn of_text(text: &str) -> Option<Self> {
        let in_utc = || Offset::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok();
        let time = text.parse::<jiff::Timestamp>().ok().or_else(in_utc)?;
        Some(Self::from_millis(time.as_millisecond()))
    }

    /// Reads what [`text`](Self::text) writes, and nothing else.
    fn from_text(text: &[u8]) -> Option<Self> {
        let text: &[u8; TEXT.len()] = text.try_into().ok()?;
        let is_separated = PLACES.iter().all(|place| text[place.end] == TEXT[place.end]);
        let mut parts = [0_i16; PLACES.len()];
        for (place, part) in PLACES.into_iter().zip(&mut parts) {
            for digit in &text[place] {
                *part = *part * 10 + i16::from(char::from(*digit).to_digit(10)? as u8);
            }
        }
        let [year, month, day, hour, minute, second, millis] = parts;
        let small = |part: i16| i8::try_from(part).ok();
        let nanos = i32::from(millis) * 1_000_000;
        let (month, day) = (small(month)?, small(day)?);
        // Leap seconds are left to the general reader.
        let time =
            DateTime::new(year, month, day, small(hour)?, small(minute)?, small(second)?, nanos)
                .ok()?;
        let time = Offset::UTC.to_timestamp(time).ok()?;
        is_separated.then(|| Self::from_millis(time.as_millisecond()))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.text().as_ref().map(|text| std::str::from_utf8(text)) {
            Some(Ok(text)) => serializer.serialize_str(text),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text)
    }
}

struct Text;

impl de::Visitor<'_> for Text {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a time as in RFC 3339")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
        if let Some(time) = Timestamp::from_text(text.as_bytes()) {
            return Ok(time);
        }
        let time: jiff::Timestamp = text.parse().map_err(E::custom)?;
        Ok(Timestamp::from_millis(time.as_millisecond()))
    }
}

pub const SECOND: i64 = 1_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const DAY: i64 = 24 * 60 * MINUTE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_the_general_formatter_writes_it() {
        let day_and_a_bit = 24 * 60 * MINUTE + 7 * MINUTE + 13 * SECOND + 17;
        for millis in (0..LATEST).step_by(31 * day_and_a_bit as usize).chain([LATEST]) {
            let time = Timestamp::from_millis(millis);
            let text =
                jiff::Timestamp::from_millisecond(millis).map(|time| format!("{time:.3}")).unwrap();
            assert_eq!(
                (time.to_string(), Timestamp::from_text(text.as_bytes())),
                (text, Some(time))
            );
        }
    }

    #[test]
    fn what_is_written_otherwise_is_read_as_the_general_parser_reads_it() {
        for text in [
            "2026-03-01T12:00:00Z",
            "2026-03-01T12:00:00.5Z",
            "2026-03-01T13:00:00.000+01:00",
            "2026-03-01t12:00:00.000z",
            "2026-02-30T12:00:00.000Z",
            "2026-13-01T12:00:00.000Z",
            "2026-03-01T24:00:00.000Z",
            "2026-06-30T23:59:60.000Z",
            "2026-03-01 12:00:00.000Z",
            "2026-03-01T12:00:00,000Z",
            "2026-03-01T12:00:00.000z",
            "2026-03-01T12:00:0a.000Z",
            "0000-01-01T00:00:00.000Z",
            "",
        ] {
            let general = text.parse::<jiff::Timestamp>().ok();
            let general = general.map(|time| Timestamp::from_millis(time.as_millisecond()));
            assert_eq!(serde_json::from_value::<Timestamp>(text.into()).ok(), general, "{text}");
        }
    }
}
