//! The top level of a JSON object that is not parsed as a whole, because it is too long or invalid
//! somewhere inside. A client waits for the answer to its request, so an error should name the
//! request's id.

use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::Value;

use crate::{bom, strict};

/// Most bytes that are kept; the members of a request other than its parameters have fewer.
const LONGEST: usize = 1024;
/// Deepest nesting of arrays and objects that is followed.
const DEEPEST: usize = 1 << 20;

/// What was seen, without the contents of nested arrays and objects: `{"id":7,"params":{}}`.
#[derive(Default)]
pub(super) struct Skeleton {
    text: Vec<u8>,
    /// Closing brackets of the open arrays and objects, outermost first.
    open: Vec<u8>,
    in_string: bool,
    is_escaped: bool,
    /// The text is no JSON object, or its top level is too long.
    is_lost: bool,
}

impl Skeleton {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut skeleton = Self::default();
        skeleton.see(bytes);
        skeleton
    }

    /// Processes the next bytes.
    pub(super) fn see(&mut self, bytes: &[u8]) {
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

    /// The id, if what was seen is a whole request.
    pub(super) fn request_id(&self) -> Option<RequestId> {
        let text = bom::skip_bytes(&self.text);
        if self.is_lost || !self.open.is_empty() || strict::check(text).is_err() {
            return None;
        }
        let message: Value = serde_json::from_slice(text).ok()?;
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
        let request =
            r#"{"method":"m","params":{"id":1,"a":["}","\\\"]",{}],"b":"\ud800"},"id":7}"#;
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
