//! What is kept of a command's output: a bounded log, the last lines, and the last line if it is a
//! JSON object.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::log::Log;
use crate::ops::input::depth;
use crate::state::limit;
use crate::{harmless, redact};

/// Prefix of a line with a checkpoint for callboard.
pub(super) const MARK: &str = "::callboard::checkpoint ";
/// Bytes of a line that are examined; the rest of a longer one is only logged.
const LONGEST_LINE: usize = 256 << 10;
/// Those of a line with a checkpoint.
const LONGEST_MARKED: usize = MARK.len() + limit::CHECKPOINT.max;
/// Bytes that no private key exceeds.
const LONGEST_KEY: usize = 32 << 10;
/// Lines kept for the message of a failure, and bytes kept of each.
const LAST_LINES: usize = 20;
const LINE_KEPT: usize = 400;
/// Bytes of standard output kept as the result.
const TEXT_KEPT: usize = 16 << 10;

/// Fields of `usage` in which a model's tokens are reported; none counts tokens of another.
const USED: [&str; 4] =
    ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];

/// A state that a command marked, or why the marked line holds none.
pub(super) type Marked = Result<Map<String, Value>, String>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

pub(super) struct Output {
    log: Log,
    /// Whole lines for the log, and parts of lines that are too long.
    pending: Vec<u8>,
    out: Lines,
    err: Lines,
    last_lines: VecDeque<String>,
    /// The end of standard output, line by line.
    text: VecDeque<String>,
    text_bytes: usize,
    cut: bool,
    /// Checkpoints that the command marked and that were not taken yet.
    marked: Vec<Marked>,
}

/// What is kept of a command's output after its end.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub text: String,
    /// The last line of standard output, if it is a JSON object.
    pub object: Option<Map<String, Value>>,
    /// The last lines of both streams.
    pub last_lines: String,
}

/// Splits a stream into lines, and keeps a bounded part of each.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
    is_too_long: bool,
}

impl Output {
    pub(super) fn new(log: Log) -> Self {
        Self {
            log,
            pending: Vec::new(),
            out: Lines::default(),
            err: Lines::default(),
            last_lines: VecDeque::new(),
            text: VecDeque::new(),
            text_bytes: 0,
            cut: false,
            marked: Vec::new(),
        }
    }

    pub(super) fn read(&mut self, stream: Stream, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.read_part(stream, &bytes[..end]);
            self.finish_line(stream);
            bytes = &bytes[end + 1..];
        }
        self.read_part(stream, bytes);
        let held = self.pending.split_off(begun_key(&self.pending));
        self.flush();
        self.pending = held;
    }

    /// Reads part of a line. What exceeds the longest line goes only to the log.
    fn read_part(&mut self, stream: Stream, bytes: &[u8]) {
        let lines = match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        let was_too_long = lines.is_too_long;
        let beyond = lines.push(bytes);
        if beyond.is_empty() {
            return;
        }
        if !was_too_long {
            self.pending.extend_from_slice(&lines.begun);
        }
        self.pending.extend_from_slice(beyond);
    }

    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.pending);
        let text = String::from_utf8_lossy(&bytes);
        match redact::text(&text) {
            Some((clean, _)) => self.log.write(clean.as_bytes()),
            None => self.log.write(text.as_bytes()),
        }
    }

    fn lines(&mut self, stream: Stream) -> &mut Lines {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    fn finish_line(&mut self, stream: Stream) {
        let line = std::mem::take(self.lines(stream));
        let text = String::from_utf8_lossy(&line.begun);
        let text = text.trim_end();
        let clean = without_secrets(text);
        if !line.is_too_long {
            self.pending
                .extend_from_slice(clean.as_ref().map_or(line.begun.as_slice(), String::as_bytes));
        }
        self.pending.push(b'\n');
        if text.is_empty() {
            return;
        }
        if let Some(json) = text.strip_prefix(MARK) {
            let state = serde_json::from_str(json).map_err(|error| error.to_string());
            self.marked.push(if line.is_too_long {
                Err(format!(
                    "the line is longer than {} bytes, which one checkpoint may have",
                    limit::CHECKPOINT.max
                ))
            } else {
                state
            });
            return;
        }
        let text = clean.as_deref().unwrap_or(text);
        self.last_lines.push_back(shortened(text, LINE_KEPT));
        if self.last_lines.len() > LAST_LINES {
            self.last_lines.pop_front();
        }
        if stream == Stream::Out {
            self.keep_text(text.to_owned());
        }
    }

    /// Keeps a line for the result. The newest line stays whole, because it may be the object.
    fn keep_text(&mut self, line: String) {
        self.text_bytes += line.len() + 1;
        self.text.push_back(line);
        while self.text_bytes > TEXT_KEPT && self.text.len() > 1 {
            self.cut = true;
            let oldest = self.text.pop_front().unwrap_or_default();
            let end = last_bytes(&oldest, oldest.len().saturating_sub(self.text_bytes - TEXT_KEPT));
            self.text_bytes -= oldest.len() + 1;
            if !end.is_empty() {
                self.text_bytes += end.len() + 1;
                self.text.push_front(end.to_owned());
            }
        }
    }

    pub(super) fn note(&mut self, text: &str) {
        self.log.write(format!("[callboard] {text}\n").as_bytes());
    }

    pub(super) fn take_marked(&mut self) -> Vec<Marked> {
        std::mem::take(&mut self.marked)
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// Everything kept; the last line need not end with a newline.
    pub(super) fn finish(&mut self) -> Printed {
        for stream in [Stream::Out, Stream::Err] {
            if !self.lines(stream).begun.is_empty() {
                self.finish_line(stream);
            }
        }
        self.flush();
        let object =
            self.text.back().and_then(|line| serde_json::from_str::<Map<String, Value>>(line).ok());
        if object.is_some() {
            self.text.pop_back();
        }
        let lines: Vec<_> = self.text.iter().map(String::as_str).collect();
        let begun = if self.cut { "…\n" } else { "" };
        let text = last_bytes(&lines.join("\n"), TEXT_KEPT).to_owned();
        let last_lines: Vec<_> = self.last_lines.iter().map(String::as_str).collect();
        Printed {
            text: harmless::text(&text)
                .map_or_else(|| format!("{begun}{text}"), |clean| format!("{begun}{clean}")),
            object,
            last_lines: last_lines.join("\n"),
        }
    }
}

impl Lines {
    /// Returns the part of `bytes` that exceeds the longest line.
    fn push<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        // Whether it is marked is known when as much as the mark is there.
        let unknown = MARK.len().saturating_sub(self.begun.len()).min(bytes.len());
        let (start, bytes) = bytes.split_at(unknown);
        self.begun.extend_from_slice(start);
        let is_marked = self.begun.starts_with(MARK.as_bytes());
        let longest = if is_marked { LONGEST_MARKED } else { LONGEST_LINE };
        let (kept, beyond) = bytes.split_at(bytes.len().min(longest - self.begun.len()));
        self.begun.extend_from_slice(kept);
        self.is_too_long |= !beyond.is_empty();
        beyond
    }
}

/// Offset of a private key that has begun but not ended: line by line, nobody would recognize it.
fn begun_key(pending: &[u8]) -> usize {
    let begin = memchr::memmem::rfind(pending, b"-----BEGIN ").filter(|begin| {
        let rest = &pending[*begin..];
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let has = |text: &[u8], part: &[u8]| memchr::memmem::find(text, part).is_some();
        has(line, b"PRIVATE KEY") && !has(rest, b"-----END ") && rest.len() < LONGEST_KEY
    });
    begin.unwrap_or(pending.len())
}

/// A line that is a JSON object, without its secrets, which its fields' names reveal better than
/// its text; none if it has none.
fn without_secrets(line: &str) -> Option<String> {
    let (mark, json) = line.strip_prefix(MARK).map_or(("", line), |json| (MARK, json));
    let mut object = serde_json::from_str::<Map<String, Value>>(json).ok().map(Value::Object)?;
    (redact::value(&mut object) > 0).then(|| format!("{mark}{object}"))
}

fn shortened(text: &str, bytes: usize) -> String {
    let text = harmless::text(text).unwrap_or_else(|| text.to_owned());
    if text.len() <= bytes {
        return text;
    }
    format!("{}…", first_bytes(&text, bytes))
}

/// The beginning of the text, as much as fits, cut between characters.
pub(super) fn first_bytes(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn last_bytes(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The text and the data of a task's result.
pub(super) fn result(mut printed: Printed) -> (String, Option<Value>) {
    let text = ["output", "result"]
        .into_iter()
        .find_map(|name| Some(printed.object.as_ref()?.get(name)?.as_str()?.to_owned()));
    let data = printed.object.take().map(Value::Object);
    let is_fit = data.as_ref().is_none_or(|data| {
        data.to_string().len() <= limit::DATA.max && depth(data) <= limit::DEPTH.max
    });
    let mut output = text.unwrap_or(printed.text);
    if !is_fit {
        output.push_str(
            "\n(the object on the last line is too large or too deep to keep; the log has it)",
        );
    }
    if output.trim().is_empty() {
        output =
            if data.is_some() { "see data" } else { "(the command printed nothing)" }.to_owned();
    }
    (bounded(&output, limit::OUTPUT.max), data.filter(|_| is_fit))
}

/// The tokens used: `tokens`, or the sum of what agents' own clients report as their models'
/// `usage`, cached tokens included. Never more than a workflow can be charged.
pub(super) fn tokens(object: &Map<String, Value>) -> u64 {
    let number = |value: &Value| {
        value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64))
    };
    let most = limit::BUDGET.max as u64;
    if let Some(tokens) = object.get("tokens").and_then(number) {
        return tokens.min(most);
    }
    let used = |name: &&str| object.get("usage")?.get(name).and_then(number);
    USED.iter().filter_map(used).fold(0, u64::saturating_add).min(most)
}

pub(super) fn bounded(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}…", first_bytes(text, bytes.saturating_sub('…'.len_utf8())))
}

#[cfg(test)]
mod tests {
    use super::super::log::Shelf;
    use super::*;
    use crate::state::id::TaskId;

    fn printed(parts: &[&[u8]]) -> (Printed, Vec<Marked>, String) {
        let base = tempfile::tempdir().expect("a directory");
        let shelf = Shelf::open(base.path(), &TaskId::trusted("t")).expect("a shelf");
        let mut output = Output::new(shelf.log(1, 1).expect("a log"));
        parts.iter().for_each(|part| output.read(Stream::Out, part));
        let printed = output.finish();
        let log = std::fs::read_to_string(output.log().path()).expect("a log");
        (printed, output.take_marked(), log)
    }

    #[test]
    fn the_last_line_is_the_object_and_the_rest_the_text() {
        let (printed, marked, log) = printed(&[b"one\ntw", b"o\n{\"a\": ", b"1}"]);
        assert_eq!((printed.text.as_str(), marked.len()), ("one\ntwo", 0));
        assert_eq!(printed.object.expect("an object")["a"], 1);
        assert_eq!(log, "one\ntwo\n{\"a\": 1}\n");
    }

    #[test]
    fn tokens_are_those_that_are_told_or_all_that_the_model_read_and_wrote() {
        let counted = |object: Value| tokens(object.as_object().expect("an object"));
        let usage = serde_json::json!({"input_tokens": 3, "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 100, "output_tokens": 7, "server_tool_use": {"web_search_requests": 1}});
        assert_eq!(counted(serde_json::json!({"usage": usage})), 130);
        assert_eq!(counted(serde_json::json!({"usage": usage, "tokens": 5.0})), 5);
        // Other clients count cached tokens as part of the input.
        let usage =
            serde_json::json!({"input_tokens": 40, "cached_input_tokens": 9, "output_tokens": 2});
        assert_eq!(counted(serde_json::json!({"usage": usage})), 42);
        assert_eq!(counted(serde_json::json!({"usage": null})), 0);
    }

    #[test]
    fn marked_lines_are_taken_out() {
        let (printed, marked, _) =
            printed(&[b"::callboard::checkpoint {\"step\": 3}\n::callboard::checkpoint {\nx\n"]);
        assert_eq!(printed.text, "x");
        assert_eq!(marked[0].as_ref().expect("an object")["step"], 3);
        assert!(marked[1].is_err());
    }

    #[test]
    fn what_is_no_text_and_what_has_no_end_is_bounded() {
        let long = vec![b'x'; 3 << 20];
        let (printed, _, log) = printed(&[b"\xff\xfe\x00\x1b[31mred\n", &long, &long]);
        assert!(printed.text.len() <= TEXT_KEPT + 8, "{}", printed.text.len());
        assert!(printed.last_lines.contains("red") && !printed.last_lines.contains('\u{1b}'));
        assert!(log.len() > LONGEST_LINE);
    }

    #[test]
    fn secrets_are_not_logged() {
        let (_, _, log) =
            printed(&[b"export API_KEY=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789\n"]);
        assert!(!log.contains("abcdefghijklmnop"), "{log}");
        let lines = b"::callboard::checkpoint {\"step\": 1, \"secret\": {\"value\": \"hunter-two\"}}\n{\"password\": [\"hunter-two\"]}";
        let (printed, marked, log) = printed(&[lines]);
        assert!(
            !log.contains("hunter") && log.contains("::callboard::checkpoint {\"step\":1,"),
            "{log}"
        );
        assert_eq!(
            marked[0].as_ref().expect("an object")["secret"]["value"],
            "hunter-two",
            "what is saved is cleaned there"
        );
        assert!(
            !printed.last_lines.contains("hunter") && printed.object.is_some(),
            "{}",
            printed.last_lines
        );
    }

    #[test]
    fn private_key_that_comes_line_by_line_is_not_logged() {
        let (begin, end) = (
            ["-----BEGIN PRI", "VATE KEY-----\n"].concat(),
            ["-----END PRI", "VATE KEY-----\n"].concat(),
        );
        let body = "A1b2C3d4".repeat(8) + "\n";
        let lines = ["before\n", &begin, &body, &body, &end, "after\n"].map(str::as_bytes);
        assert_eq!(printed(&lines).2, "before\n[redacted: private key]\nafter\n");
        let (_, _, cut_off) = printed(&lines[..4]);
        assert_eq!(cut_off, "before\n[redacted: private key]\n");
        let (_, _, none) = printed(&[begin.as_bytes(), &b"x\n".repeat(LONGEST_KEY), b"after\n"]);
        assert!(none.ends_with("x\nafter\n"));
    }
}
