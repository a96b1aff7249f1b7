//! A transport for rmcp over standard input and output that outlives whatever a client writes.
//!
//! rmcp's own drops what is no message without an answer. This one answers (a parse error, an invalid request) and
//! goes on, bounds what one client can make the process hold, and reads on a thread of its own: a read on tokio's
//! blocking pool cannot be given up, and would keep the process from ending.

use std::future::pending;
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::thread;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions, GetMeta, JsonRpcError,
    JsonRpcMessage, JsonRpcRequest, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::select;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// In bytes, without the newline.
const MAX_LINE: usize = 4 << 20;
/// Requests without an answer yet, on one connection; far above what a host runs in parallel.
const MAX_IN_FLIGHT: usize = 256;
/// Messages between a thread and the session. Small, because each may be `MAX_LINE` long.
const QUEUE: usize = 8;

/// A message, or the answer to a line that is none.
type Incoming = Result<ClientJsonRpcMessage, Box<JsonRpcError>>;

pub struct Stdio {
    input: mpsc::Receiver<Incoming>,
    output: mpsc::Sender<Vec<u8>>,
    written: oneshot::Receiver<()>,
    /// Cancelled by the transport when the client is gone, or by others to end the reading.
    ended: CancellationToken,
    in_flight: Arc<Semaphore>,
    initialized: bool,
    /// The `initialize` request that has no answer yet.
    initializing: Option<RequestId>,
}

impl Stdio {
    /// Starts the two threads. They are not joined: they end with the pipes or with the process.
    pub fn open(ended: CancellationToken) -> io::Result<Self> {
        let (incoming, input) = mpsc::channel(QUEUE);
        let (output, outgoing) = mpsc::channel(QUEUE);
        let (all_written, written) = oneshot::channel();
        thread::Builder::new().name("mcp-stdin".into()).spawn(move || {
            if let Err(error) = read_all(&mut io::stdin().lock(), &incoming) {
                tracing::warn!(%error, "standard input failed");
            }
        })?;
        thread::Builder::new().name("mcp-stdout".into()).spawn(move || {
            if let Err(error) = write_all(&mut io::stdout(), outgoing) {
                tracing::warn!(%error, "standard output failed");
            }
            let _ = all_written.send(());
        })?;
        Ok(Self {
            input,
            output,
            written,
            ended,
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            initialized: false,
            initializing: None,
        })
    }

    /// Loses nothing when dropped half-way, as rmcp does with it: no await follows the taking of a message.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        // What follows on `initialize` must find the client it named.
        if self.initializing.is_some() {
            return pending().await;
        }
        loop {
            // First a place for an answer: a client that does not read is not read either.
            let place = self.output.clone().reserve_owned().await.ok()?;
            let incoming = select! {
                biased;
                () = self.ended.cancelled() => None,
                () = self.output.closed() => None,
                incoming = self.input.recv() => incoming,
            };
            match incoming?.and_then(|message| self.admit(message)) {
                Ok(message) => return Some(message),
                Err(refusal) => drop(place.send(line(&refusal))),
            }
        }
    }

    fn admit(&mut self, mut message: ClientJsonRpcMessage) -> Incoming {
        let JsonRpcMessage::Request(JsonRpcRequest { id, request, .. }) = &mut message else {
            return Ok(message);
        };
        let place = self.place_for(request).map_err(|error| Box::new(JsonRpcError::new(Some(id.clone()), error)))?;
        // It goes where the request goes, and is free again when that is dropped.
        request.extensions_mut().insert(Arc::new(place));
        if matches!(request, ClientRequest::InitializeRequest(_)) {
            self.initialized = true;
            self.initializing = Some(id.clone());
        }
        Ok(message)
    }

    fn place_for(&self, request: &ClientRequest) -> Result<OwnedSemaphorePermit, ErrorData> {
        let opens = matches!(request, ClientRequest::InitializeRequest(_) | ClientRequest::PingRequest(_));
        let missing = request.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28);
        if !self.initialized && !opens && !missing.is_empty() {
            let text = format!("without `initialize`, `_meta` must hold {}", missing.join(" and "));
            return Err(ErrorData::invalid_params(text, None));
        }
        self.in_flight.clone().try_acquire_owned().map_err(|_| {
            let text = format!("{MAX_IN_FLIGHT} requests are waiting for their answers; cancel some or wait");
            ErrorData::new(ErrorCode(-32000), text, None)
        })
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if answered.is_some() && answered == self.initializing.as_ref() {
            self.initializing = None;
        }
        let output = self.output.clone();
        // Queued here, not in the future: rmcp polls those in any order, and the answer to `initialize` must be first.
        let queued = serde_json::to_vec(&message).map(|mut line| {
            line.push(b'\n');
            output.try_send(line)
        });
        async move {
            match queued? {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(line)) => output.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into()),
                Err(TrySendError::Closed(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let message = self.next().await;
        if message.is_none() {
            self.ended.cancel();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        // The writer ends when the last sender is gone.
        self.output = mpsc::channel(1).0;
        let _ = (&mut self.written).await;
        Ok(())
    }
}

fn read_all(input: &mut impl BufRead, incoming: &mpsc::Sender<Incoming>) -> io::Result<()> {
    let mut line = Vec::new();
    while read_line(input, &mut line)? {
        let message = if line.len() > MAX_LINE {
            Some(Err(invalid_request(None, format!("a message has at most {MAX_LINE} bytes"))))
        } else {
            parse(&line)
        };
        if message.is_some_and(|message| incoming.blocking_send(message).is_err()) {
            break;
        }
    }
    Ok(())
}

/// Reads a line without its newline; `false` at the end of input. Of a line that is too long it keeps one byte more
/// than `MAX_LINE`, and reads past the rest.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > MAX_LINE {
        input.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

/// `None` for what gets no answer: an empty line, or a notification that nobody understands.
fn parse(line: &[u8]) -> Option<Incoming> {
    let text = line.trim_ascii();
    if text.is_empty() {
        return None;
    }
    // Through `Value`, which refuses deep nesting and keeps the id of what is no message.
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(error) => {
            let error = ErrorData::parse_error(format!("not JSON: {error}"), None);
            return Some(Err(Box::new(JsonRpcError::new(None, error))));
        }
    };
    if value.is_array() {
        return Some(Err(invalid_request(None, "batches are not accepted; send one message per line".into())));
    }
    if let Some(call) = tool_call(&value) {
        return Some(Ok(call));
    }
    let is_notification = value.get("method").is_some() && value.get("id").is_none();
    let id = value.get("id").and_then(|id| RequestId::deserialize(id).ok());
    match ClientJsonRpcMessage::deserialize(value) {
        Ok(message) => Some(Ok(message)),
        Err(_) if is_notification => None,
        Err(error) => Some(Err(invalid_request(id, error.to_string()))),
    }
}

/// What nearly every message is, so that it is not first tried as everything else that a client may send.
fn tool_call(message: &Value) -> Option<ClientJsonRpcMessage> {
    if message["jsonrpc"] != "2.0" || message["method"] != "tools/call" || message.as_object()?.len() != 4 {
        return None;
    }
    let (id, request) = (RequestId::deserialize(&message["id"]).ok()?, CallToolRequest::deserialize(message).ok()?);
    Some(JsonRpcMessage::Request(JsonRpcRequest::new(id, ClientRequest::CallToolRequest(request))))
}

fn invalid_request(id: Option<RequestId>, text: String) -> Box<JsonRpcError> {
    Box::new(JsonRpcError::new(id, ErrorData::invalid_request(text, None)))
}

/// With `"id": null` where the id is unknown, as JSON-RPC 2.0 has it; rmcp leaves the field out.
fn line(refusal: &JsonRpcError) -> Vec<u8> {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": refusal.id, "error": refusal.error})).into_bytes()
}

fn write_all(output: &mut impl Write, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = lines.blocking_recv() {
        output.write_all(&line)?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8]) -> Vec<usize> {
        let (mut input, mut line, mut lengths) = (input, Vec::new(), Vec::new());
        while read_line(&mut input, &mut line).unwrap() {
            lengths.push(line.len());
        }
        lengths
    }

    fn refusal(line: &str) -> (i32, Option<RequestId>) {
        let refusal = parse(line.as_bytes()).unwrap().unwrap_err();
        (refusal.error.code.0, refusal.id)
    }

    #[test]
    fn line_of_exactly_the_limit_is_kept_and_a_longer_one_is_read_past() {
        let mut input = vec![b'x'; MAX_LINE];
        input.push(b'\n');
        input.extend(vec![b'y'; 3 * MAX_LINE]);
        input.extend(b"\nlast");
        assert_eq!(lines(&input), [MAX_LINE, MAX_LINE + 1, 4]);
    }

    #[test]
    fn what_is_no_json_is_a_parse_error_without_an_id() {
        let deep = "[".repeat(100_000);
        for line in ["nonsense", "{\"id\":1", "[1,", "{} {}", &deep] {
            assert_eq!(refusal(line), (-32700, None), "{line:.20}");
        }
        let invalid_utf8 = parse(b"{\"id\":\"\xff\"}").unwrap().unwrap_err();
        assert_eq!(invalid_utf8.error.code.0, -32700);
    }

    #[test]
    fn json_that_is_no_message_is_an_invalid_request_with_the_id_it_names() {
        assert_eq!(refusal("[]"), (-32600, None));
        assert_eq!(refusal(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), (-32600, None));
        assert_eq!(refusal("7"), (-32600, None));
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), (-32600, None));
        assert_eq!(refusal(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#), (-32600, Some(RequestId::Number(7))));
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7}"#), (-32600, Some(RequestId::Number(7))));
    }

    #[test]
    fn calls_are_read_as_they_are_among_all_messages() {
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t"}});
        let with = |pointer: &str, value: Value| {
            let mut changed = call.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            changed.pointer_mut(parent).unwrap()[key] = value;
            changed
        };
        let meta = json!({"progressToken": "p", "x/y": [1]});
        let same = [
            call.clone(),
            with("/id", json!("a")),
            with("/params/arguments", json!({"task_id": "é", "deep": {"a": [null, 1.5, -3, true]}})),
            with("/params/_meta", meta),
            with("/params/unknown", json!(1)),
            with("/params/requestState", json!("s")),
        ];
        for message in same {
            let expected = ClientJsonRpcMessage::deserialize(&message).unwrap();
            let found = tool_call(&message).unwrap();
            assert_eq!(serde_json::to_value(&found).unwrap(), serde_json::to_value(&expected).unwrap());
            let meta = |message: &ClientJsonRpcMessage| match message {
                JsonRpcMessage::Request(request) => request.request.get_meta().clone(),
                _ => panic!("no request"),
            };
            assert_eq!(meta(&found), meta(&expected), "{message}");
        }
        let others = [
            with("/id", json!(null)),
            with("/jsonrpc", json!("1.0")),
            with("/method", json!("tools/list")),
            with("/result", json!({})),
            with("/params/name", json!(1)),
            with("/params", json!([])),
        ];
        others.iter().for_each(|message| assert!(tool_call(message).is_none(), "{message}"));
    }

    #[test]
    fn empty_lines_and_broken_notifications_get_no_answer() {
        for line in ["", " \r", r#"{"method":"notifications/cancelled","params":[]}"#] {
            assert!(parse(line.as_bytes()).is_none(), "{line}");
        }
    }
}
