//! What a client writes to a hook's standard input.

use std::collections::HashMap;
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::bom;

/// Bytes of the input that are kept; a tool's output may be long.
const LARGEST_INPUT: usize = 4 << 20;
/// Bytes of one text that are kept: more than any path has.
const LONGEST_TEXT: usize = 64 << 10;

/// The fields that are used; clients send more. Each is read by itself: one of another type, one
/// that is too deep or one that comes twice must not keep the guard from the others.
#[derive(Default)]
pub(super) struct Input {
    pub cwd: Option<PathBuf>,
    pub stop_hook_active: Option<bool>,
    /// The client's own id of the subagent in which the hook runs; none in the main conversation.
    agent_id: Value,
    hook_event_name: Value,
    /// Work that continues after the turn and wakes the session.
    background_tasks: Value,
    pub tool_name: Value,
    pub tool_input: Value,
    pub notification_type: Value,
    pub message: Value,
    /// What Gemini CLI says of the prompt that it shows.
    pub details: Value,
    timestamp: Value,
}

type Fields = HashMap<String, Box<RawValue>>;

impl Input {
    /// Reads one JSON value from standard input, whether or not the pipe is closed after it, and
    /// calls `heard` after each piece. None if the value is not a JSON object.
    pub(super) fn read(heard: impl Fn()) -> Option<Self> {
        let mut stdin = io::stdin().lock();
        if stdin.is_terminal() {
            return Some(Self::default());
        }
        let mut object = Object::default();
        while !object.is_whole {
            let came = match stdin.fill_buf() {
                Ok(came) => came,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            if came.is_empty() {
                break;
            }
            heard();
            let length = came.len();
            came.iter().for_each(|byte| object.take(*byte));
            stdin.consume(length);
        }
        Self::of(&object.into_text())
    }

    pub(super) fn of(text: &str) -> Option<Self> {
        let fields: Fields = serde_json::from_str(bom::skip(text)).ok()?;
        let value = |name| fields.get(name).map(|raw| lenient(raw)).unwrap_or_default();
        Some(Self {
            cwd: value("cwd").as_str().map(PathBuf::from),
            stop_hook_active: match value("stop_hook_active") {
                Value::Null => None,
                given => Some(given != false),
            },
            agent_id: value("agent_id"),
            hook_event_name: value("hook_event_name"),
            background_tasks: value("background_tasks"),
            tool_name: value("tool_name"),
            tool_input: value("tool_input"),
            notification_type: value("notification_type"),
            message: value("message"),
            details: value("details"),
            timestamp: value("timestamp"),
        })
    }

    /// The files that a tool is about to change: only tools that change one have such a field.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        let given = ["file_path", "notebook_path"].map(|name| &self.tool_input[name]);
        given.into_iter().flat_map(each).filter_map(Value::as_str)
    }

    pub(super) fn is_after_tool(&self) -> bool {
        self.hook_event_name == "PostToolUse"
    }

    pub(super) fn subagent(&self) -> Option<&str> {
        self.agent_id.as_str().filter(|id| !id.is_empty())
    }

    pub(super) fn has_subagents(&self) -> bool {
        let mut tasks = self.background_tasks.as_array().into_iter().flatten();
        tasks.any(|task| matches!(task["type"].as_str(), Some("subagent" | "workflow")))
    }

    /// Whether the client is about to ask its user. Copilot CLI, which alone gives a time with this
    /// event, sends it before it knows whether it will ask.
    pub(super) fn asks_permission(&self) -> bool {
        self.hook_event_name == "PermissionRequest" && self.timestamp.is_null()
    }

    /// Whether the input says what exactly the user is asked.
    pub(super) fn is_detailed(&self) -> bool {
        self.asks_permission() || self.details.is_object()
    }
}

/// A JSON object as it comes in, until it ends. What is too long is cut so that the rest can be
/// read: texts at their end, and the object before the member that goes beyond the limit.
#[derive(Default)]
struct Object {
    kept: Vec<u8>,
    /// What closes the objects and lists that are open.
    open: Vec<u8>,
    is_in_text: bool,
    /// Bytes that still belong to an escape, as in `\n` and `\u00e9`.
    escape: u8,
    /// Whether the byte before was the backslash of an escape.
    is_marked: bool,
    /// Whether this character is kept.
    is_kept: bool,
    /// Bytes of this text that were kept.
    length: usize,
    /// Where the last whole member ended, and how many objects and lists were open there.
    member: (usize, usize),
    is_cut: bool,
    is_whole: bool,
}

impl Object {
    fn take(&mut self, byte: u8) {
        if self.is_whole {
            return;
        }
        if self.is_in_text {
            return self.take_of_text(byte);
        }
        match byte {
            b'"' => (self.is_in_text, self.length) = (true, 0),
            b'{' => self.open.push(b'}'),
            b'[' => self.open.push(b']'),
            b'}' | b']' => {
                self.open.pop();
                self.is_whole = self.open.is_empty();
            }
            b',' if !self.is_cut => self.member = (self.kept.len(), self.open.len()),
            _ => {}
        }
        self.keep(byte);
    }

    /// The client may write to the end, so what is left out is read, too.
    fn keep(&mut self, byte: u8) {
        if self.is_cut {
            return;
        }
        self.kept.push(byte);
        if self.kept.len() > LARGEST_INPUT && !self.is_whole {
            self.kept.truncate(self.member.0);
            self.kept.extend(self.open[..self.member.1].iter().rev());
            self.is_cut = true;
        }
    }

    fn take_of_text(&mut self, byte: u8) {
        if self.escape == 0 {
            if byte == b'"' {
                self.is_in_text = false;
                return self.keep(byte);
            }
            self.is_kept = self.length < LONGEST_TEXT;
            self.escape = u8::from(byte == b'\\');
            self.is_marked = self.escape > 0;
        } else if self.is_marked && byte == b'u' {
            (self.escape, self.is_marked) = (4, false);
        } else {
            (self.escape, self.is_marked) = (self.escape - 1, false);
        }
        // An escape is kept or left out as a whole.
        if self.is_kept {
            self.length += 1;
            self.keep(byte);
        }
    }

    fn into_text(self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// The entries of a list, or the one value.
fn each(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// The value. Of an object that cannot be read as a whole, the fields that can.
fn lenient(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| {
        let fields: Fields = serde_json::from_str(raw.get()).unwrap_or_default();
        let read = |(name, raw): (String, Box<RawValue>)| {
            Some((name, serde_json::from_str(raw.get()).ok()?))
        };
        Value::Object(fields.into_iter().filter_map(read).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Object {
        let mut object = Object::default();
        text.bytes().for_each(|byte| object.take(byte));
        object
    }

    #[test]
    fn an_object_ends_with_its_last_bracket() {
        let text = r#" {"a": "}\"\\", "b": [{"c": "\u00e9\n"}], "d": {}}"#;
        let before = taken(&text[..text.len() - 1]);
        assert!(!before.is_whole);
        let whole = taken(&format!("{text}{{\"of the next\": 1"));
        assert!(whole.is_whole);
        assert_eq!(whole.into_text(), text);
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_escapes() {
        for unit in ["a", "\\\"", "\\u00e9", "\\\\", "é"] {
            let long = unit.repeat(LONGEST_TEXT);
            let text = taken(&format!(r#"{{"long": "{long}", "file": "a.rs"}}"#)).into_text();
            let value: Value = serde_json::from_str(&text).expect(unit);
            assert_eq!(value["file"], "a.rs", "{unit}");
            assert!(text.len() < LONGEST_TEXT + 100, "{unit}: {}", text.len());
        }
    }

    #[test]
    fn what_is_too_long_is_cut_before_a_member() {
        let many = "[1, {\"a\": \"b\"}], ".repeat(LARGEST_INPUT / 10);
        let text = format!(r#"{{"tool_input": {{"file_path": "a.rs", "edits": [{many}"#);
        let cut = taken(&text);
        assert!(!cut.is_whole);
        let value: Value = serde_json::from_str(&cut.into_text()).expect("whole");
        assert_eq!(value["tool_input"]["file_path"], "a.rs");
    }
}
