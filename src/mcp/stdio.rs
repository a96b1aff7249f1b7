//! A transport for rmcp over standard input and output that survives whatever a client writes.
//!
//! rmcp's own transport drops invalid messages without an answer. This one answers them (a parse
//! error, an invalid request), goes on, and limits what one client can make the process hold.

mod input;

use std::collections::HashMap;
use std::future::pending;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions,
    GetMeta, JsonRpcError, JsonRpcMessage, JsonRpcRequest, ProtocolVersion, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::select;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::opening;
use super::skeleton::Skeleton;
use crate::bom;
use crate::state::limit::IN_FLIGHT;
use input::{Incoming, Input};

/// Lines between the session and the writing thread. Few, because each may be as long as a line may
/// be.
const QUEUE: usize = 2;
/// Bytes of a request for each of which it counts once more among those in flight, so that a few
/// large ones exhaust the limit.
const HEAVY: usize = 1 << 20;
/// Offset that means the current position of standard input or output, whether it can seek or not.
#[cfg(target_os = "linux")]
const HERE: u64 = u64::MAX;

/// A line for the writing thread.
struct Outgoing {
    line: Vec<u8>,
    _unwritten: Arc<()>,
}

/// Requests without an answer yet, each with its number in order of arrival.
type Open = Arc<Mutex<HashMap<RequestId, u64>>>;

/// The place of a request among those in flight, freed when the request is dropped.
struct Place {
    _permits: OwnedSemaphorePermit,
    id: RequestId,
    number: u64,
    open: Open,
}

impl Drop for Place {
    /// Frees the id of a request that was cancelled and so gets no answer.
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(&self.id) == Some(&self.number) {
            open.remove(&self.id);
        }
    }
}

pub(super) struct Stdio {
    input: Input,
    output: mpsc::Sender<Outgoing>,
    /// Held by each line that is not written yet.
    unwritten: Arc<()>,
    written: oneshot::Receiver<()>,
    /// Cancelled by the transport when the client is gone, or by others to stop reading.
    ended: CancellationToken,
    in_flight: Arc<Semaphore>,
    open: Open,
    /// Number of requests so far.
    requests: u64,
    initialized: bool,
    /// The `initialize` request that is not answered yet.
    initializing: Option<RequestId>,
}

impl Stdio {
    /// Starts the threads. They are not joined: they end with the pipes or with the process.
    pub(super) fn open(ended: CancellationToken) -> io::Result<Self> {
        let (output, outgoing) = mpsc::channel(QUEUE);
        let (all_written, written) = oneshot::channel();
        thread::Builder::new().name("mcp-stdout".into()).spawn(move || {
            if let Err(error) = write_all(&mut io::stdout(), outgoing) {
                tracing::warn!(%error, "standard output failed");
            }
            let _ = all_written.send(());
        })?;
        Ok(Self {
            input: Input::open()?,
            output,
            unwritten: Arc::default(),
            written,
            ended,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT.max)),
            open: Open::default(),
            requests: 0,
            initialized: false,
            initializing: None,
        })
    }

    /// The next message. It can be dropped at any await without loss, as rmcp does: none follows
    /// the taking of a message.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        // Messages after `initialize` must see the client that it named.
        if self.initializing.is_some() {
            return pending().await;
        }
        loop {
            // A place for an answer is reserved first: while a client does not read, its input is
            // not read either.
            let place = self.output.clone().reserve_owned().await.ok()?;
            let incoming = select! {
                biased;
                () = self.ended.cancelled() => None,
                () = self.output.closed() => None,
                incoming = self.input.next() => incoming,
            };
            let (incoming, bytes) = incoming?;
            match incoming.and_then(|message| self.admit(message, bytes)) {
                Ok(message) => return Some(message),
                Err(refusal) => drop(place.send(self.outgoing(line(&refusal)))),
            }
        }
    }

    fn outgoing(&self, line: Vec<u8>) -> Outgoing {
        Outgoing { line, _unwritten: Arc::clone(&self.unwritten) }
    }

    fn admit(&mut self, mut message: ClientJsonRpcMessage, bytes: usize) -> Incoming {
        let JsonRpcMessage::Request(JsonRpcRequest { id, request, .. }) = &mut message else {
            return Ok(message);
        };
        let place = self.place_for(id, request, bytes);
        let place = place.map_err(|error| Box::new(JsonRpcError::new(Some(id.clone()), error)))?;
        // The place is freed when the request is dropped.
        request.extensions_mut().insert(Arc::new(place));
        if matches!(request, ClientRequest::InitializeRequest(_)) {
            self.initialized = true;
            self.initializing = Some(id.clone());
        }
        Ok(message)
    }

    fn place_for(
        &mut self,
        id: &RequestId,
        request: &ClientRequest,
        bytes: usize,
    ) -> Result<Place, ErrorData> {
        let opens =
            matches!(request, ClientRequest::InitializeRequest(_) | ClientRequest::PingRequest(_));
        let missing = request.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28);
        if !self.initialized && !opens && !missing.is_empty() {
            let text = format!("without `initialize`, `_meta` must hold {}", missing.join(" and "));
            return Err(ErrorData::invalid_params(text, None));
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.contains_key(id) {
            return Err(id_in_use(id));
        }
        let weight = u32::try_from(1 + bytes / HEAVY).unwrap_or(u32::MAX);
        let permits = self.in_flight.clone().try_acquire_many_owned(weight).map_err(|_| {
            let text = format!(
                "{} requests are waiting for their answers, or fewer large ones; cancel some or \
                 wait",
                IN_FLIGHT.max
            );
            ErrorData::new(ErrorCode(-32000), text, None)
        })?;
        self.requests += 1;
        open.insert(id.clone(), self.requests);
        Ok(Place {
            _permits: permits,
            id: id.clone(),
            number: self.requests,
            open: Arc::clone(&self.open),
        })
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if answered.is_some() && answered == self.initializing.as_ref() {
            self.initializing = None;
        }
        if let Some(id) = answered {
            // Once a client has read the answer, it may reuse the id.
            self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
        let output = self.output.clone();
        // The line is written or queued here, not in the future: rmcp polls futures in any order,
        // and the answer to `initialize` must be first.
        let queued = serde_json::to_vec(&message).map(|mut line| {
            line.push(b'\n');
            // Waking the thread would take longer than writing.
            let is_next = !output.is_closed() && Arc::get_mut(&mut self.unwritten).is_some();
            line.drain(..if is_next { write_now(&line) } else { 0 });
            if line.is_empty() { Ok(()) } else { output.try_send(self.outgoing(line)) }
        });
        async move {
            match queued? {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(line)) => {
                    output.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
                }
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
        // The writer ends when the last sender is dropped.
        self.output = mpsc::channel(1).0;
        let _ = (&mut self.written).await;
        Ok(())
    }
}

/// Parses a line. `None` if it gets no answer: an empty line, or an unknown notification.
pub(super) fn parse(line: &[u8]) -> Option<Incoming> {
    let text = bom::skip_bytes(line).trim_ascii();
    if text.is_empty() {
        return None;
    }
    // Parsing to a `Value` first refuses deep nesting, and keeps the id of an invalid message.
    let mut value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(error) => {
            let error = ErrorData::parse_error(format!("not JSON: {error}"), None);
            return Some(Err(Box::new(JsonRpcError::new(Skeleton::of(text).request_id(), error))));
        }
    };
    if value.is_array() {
        return Some(Err(invalid_request(
            None,
            "batches are not accepted; send one message per line".into(),
        )));
    }
    opening::name_arguments(&mut value);
    if let Some(call) = tool_call(&value) {
        return Some(Ok(call));
    }
    let is_notification = value.get("method").is_some() && value.get("id").is_none();
    let id = value.get("id").and_then(|id| RequestId::deserialize(id).ok());
    if let Err(why) = opening::complete(&mut value) {
        return Some(Err(Box::new(JsonRpcError::new(id, ErrorData::invalid_params(why, None)))));
    }
    match ClientJsonRpcMessage::deserialize(value) {
        Ok(message) => Some(Ok(message)),
        Err(_) if is_notification => None,
        Err(error) => Some(Err(invalid_request(id, error.to_string()))),
    }
}

/// Parses a tool call, which nearly every message is, without first trying everything else that a
/// client may send.
fn tool_call(message: &Value) -> Option<ClientJsonRpcMessage> {
    if message["jsonrpc"] != "2.0"
        || message["method"] != "tools/call"
        || message.as_object()?.len() != 4
    {
        return None;
    }
    let (id, request) =
        (RequestId::deserialize(&message["id"]).ok()?, CallToolRequest::deserialize(message).ok()?);
    Some(JsonRpcMessage::Request(JsonRpcRequest::new(id, ClientRequest::CallToolRequest(request))))
}

pub(super) fn invalid_request(id: Option<RequestId>, text: String) -> Box<JsonRpcError> {
    Box::new(JsonRpcError::new(id, ErrorData::invalid_request(text, None)))
}

pub(super) fn id_in_use(id: &RequestId) -> ErrorData {
    let text = format!("a request with the id {id} has no answer yet; give each an id of its own");
    ErrorData::invalid_request(text, None)
}

fn line(refusal: &JsonRpcError) -> Vec<u8> {
    format!("{}\n", object(refusal)).into_bytes()
}

/// The error as JSON-RPC 2.0 requires it, with `"id": null` if the id is unknown; rmcp omits the
/// field.
pub(super) fn object(refusal: &JsonRpcError) -> Value {
    json!({"jsonrpc": "2.0", "id": refusal.id, "error": refusal.error})
}

fn write_all(output: &mut impl Write, mut lines: mpsc::Receiver<Outgoing>) -> io::Result<()> {
    while let Some(outgoing) = lines.blocking_recv() {
        output.write_all(&outgoing.line)?;
        output.flush()?;
    }
    Ok(())
}

/// Writes to standard output without blocking, and returns the number of bytes written. On an error
/// that is 0; whoever writes the rest meets it again.
#[cfg(target_os = "linux")]
fn write_now(line: &[u8]) -> usize {
    use rustix::io::{ReadWriteFlags, pwritev2};

    pwritev2(io::stdout(), &[io::IoSlice::new(line)], HERE, ReadWriteFlags::NOWAIT).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn write_now(_: &[u8]) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> (i32, Option<RequestId>) {
        let refusal = parse(line.as_bytes()).unwrap().unwrap_err();
        (refusal.error.code.0, refusal.id)
    }

    #[test]
    fn what_is_no_json_is_a_parse_error_under_the_id_of_the_request_if_it_shows() {
        let deep = "[".repeat(100_000);
        for line in ["nonsense", "{\"id\":1", "[1,", "{} {}", &deep] {
            assert_eq!(refusal(line), (-32700, None), "{line:.20}");
        }
        let deep = format!(
            r#"{{"id":7,"method":"x","params":{}{}}}"#,
            "[".repeat(1_000),
            "]".repeat(1_000)
        );
        for line in
            [r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"text":"\ud800"}}"#, &deep]
        {
            assert_eq!(refusal(line), (-32700, Some(RequestId::Number(7))), "{line:.20}");
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
        assert_eq!(
            refusal(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#),
            (-32600, Some(RequestId::Number(7)))
        );
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7}"#), (-32600, Some(RequestId::Number(7))));
    }

    #[test]
    fn calls_are_read_as_they_are_among_all_messages() {
        let call =
            json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t"}});
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
            with(
                "/params/arguments",
                json!({"task_id": "é", "deep": {"a": [null, 1.5, -3, true]}}),
            ),
            with("/params/_meta", meta),
            with("/params/unknown", json!(1)),
            with("/params/requestState", json!("s")),
        ];
        for message in same {
            let expected = ClientJsonRpcMessage::deserialize(&message).unwrap();
            let found = tool_call(&message).unwrap();
            assert_eq!(
                serde_json::to_value(&found).unwrap(),
                serde_json::to_value(&expected).unwrap()
            );
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
