//! The top level of a JSON object that is not read as a whole: it is too long, or no JSON for some text deep within. A
//! client waits for the answer to a request, so whose answer a complaint is should be known.

use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::Value;

use crate::strict;

/// Bytes; the members of a request beside its parameters have fewer.
const LONGEST: usize = 1024;
/// Arrays and objects within each other that are told apart.
const DEEPEST: usize = 1 << 20;

/// What was seen without the contents of nested arrays and objects: `{"id":7,"params":{}}`.
#[derive(Default)]
pub struct Skeleton {
    text: Vec<u8>,
    /// The ends of what is open.
    open: Vec<u8>,
    in_string: bool,
    is_escaped: bool,
    /// It is no JSON object, or one with too much on its top level.
    is_lost: bool,
}

impl Skeleton {
    pub fn of(bytes: &[u8]) -> Self {
        let mut skeleton = Self::default();
        skeleton.see(bytes);
        skeleton
    }

    /// Takes the next bytes.
    pub fn see(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_lost {
                return;
            }
            self.take(*byte);
        }
    }

    fn take(&mut self, byte: u8) {
        let mut depth = self.open.len();
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_string => self.is_escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => {
                self.open.push(if byte == b'{' { b'}' } else { b']' });
                self.is_lost = depth == DEEPEST;
            }
            b'}' | b']' => {
                self.is_lost = self.open.pop() != Some(byte);
                depth = self.open.len();
            }
            _ => {}
        }
        if depth <= 1 {
            self.text.push(byte);
            self.is_lost |= self.text.len() > LONGEST;
        }
    }

    /// Of the request that was seen, if it was one, whole.
    pub fn request_id(&self) -> Option<RequestId> {
        if self.is_lost || !self.open.is_empty() || strict::check(&self.text).is_err() {
            return None;
        }
        let message: Value = serde_json::from_slice(&self.text).ok()?;
        message["method"].as_str()?;
        RequestId::deserialize(message.get("id")?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_request_has_an_id() {
        let id = |text: &str| Skeleton::of(text.as_bytes()).request_id();
        let request = r#"{"method":"m","params":{"id":1,"a":["}","\\\"]",{}],"b":"\ud800"},"id":7}"#;
        assert_eq!(id(request), Some(RequestId::Number(7)));
        let long = format!(r#"{{"method":"{}","id":7}}"#, "m".repeat(LONGEST));
        let others = [
            r#"{"method":"m","params":{"id":7}}"#,
            r#"{"method":"m","id":7"#,
            r#"{"method":"m","id":7,"id":8}"#,
            r#"{"method":"m","id":7} {}"#,
            r#"{"method":"m","params":{"a":[}},"id":7}"#,
            r#"{"method":"m","id":"\ud800"}"#,
            r#"{"method":"m","id":null}"#,
            r#"{"result":{},"id":7}"#,
            r#"[{"method":"m","id":7}]"#,
            &long,
            "",
        ];
        others.iter().for_each(|text| assert_eq!(id(text), None, "{text:.40}"));
    }
}
