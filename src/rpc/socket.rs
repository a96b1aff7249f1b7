//! WebSockets on `/rpc`. jsonrpsee has the methods and the subscriptions; messages are framed and
//! read here, because it takes a request whose id is a negative number or a fraction for a
//! notification.
//!
//! The caller of a message was admitted when the WebSocket was opened, which may be long ago. Calls
//! end with the connection; notifications that have begun are finished.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Extensions, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use jsonrpsee::core::server::MethodSink;
use jsonrpsee::server::StopHandle;
use jsonrpsee::types::Id;
use jsonrpsee::types::error::reject_too_big_request;
use serde_json::value::RawValue;
use soketto::connection::Error;
use soketto::data::ByteSlice125;
use soketto::handshake::http::Server;
use soketto::{Incoming, Receiver, Sender};
use tokio::io::BufStream;
use tokio::select;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{interval, timeout};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};
use tokio_util::task::AbortOnDropHandle;

use super::masked::Masked;
use super::subscriptions::Subscriptions;
use super::{Door, LARGEST_REPLY, post};
use crate::bom;
use crate::state::limit::{BODY, IN_FLIGHT};

/// Most messages that wait for the reader of one WebSocket.
const BUFFERED: usize = 64;
/// Interval of pings, and the time without an answer after which the connection is closed.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_PATIENCE: Duration = Duration::from_secs(40);

type Stream = Compat<Masked<BufStream<TokioIo<Upgraded>>>>;

/// Answers the request that opens a WebSocket, and serves it from then on.
pub(super) fn open(door: &Door, request: Request) -> Response {
    let mut handshake = Server::new();
    let response = match handshake.receive_request(&request) {
        Ok(response) => response.map(|()| Body::empty()),
        Err(error) => {
            return (StatusCode::BAD_REQUEST, format!("no WebSocket can be opened: {error}"))
                .into_response();
        }
    };
    let (door, extensions) = (door.clone(), request.extensions().clone());
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async move {
        if let Err(error) = converse(door, extensions, handshake, upgrade).await {
            tracing::debug!(%error, "a WebSocket ended early");
        }
    });
    response
}

async fn converse(
    door: Door,
    extensions: Extensions,
    handshake: Server,
    upgrade: OnUpgrade,
) -> io::Result<()> {
    let upgraded = upgrade.await.map_err(io::Error::other)?;
    let mut connection =
        handshake.into_builder(Masked::new(BufStream::new(TokioIo::new(upgraded))).compat());
    connection.set_max_message_size(BODY.max);
    let (sender, receiver) = connection.finish();
    let (messages, outgoing) = mpsc::channel(BUFFERED);
    let sink = MethodSink::new_with_limit(messages, LARGEST_REPLY);
    let stopped = door.stopped.clone();
    // Dropping it ends the calls whose answers could not be sent any more.
    let writing = AbortOnDropHandle::new(tokio::spawn(write(sender, outgoing, stopped)));
    let (subscriptions, places) =
        (Subscriptions::new(&door, extensions.clone()), Arc::new(Semaphore::new(IN_FLIGHT.max)));
    let reader = Reader { subscriptions, door, extensions, sink, places };
    select! {
        read = reader.read(receiver) => read.map_err(io::Error::other)?,
        written = writing => written??,
    }
    Ok(())
}

struct Reader {
    door: Door,
    /// Those of the request that opened the WebSocket: its caller, and its place among the
    /// connections, which is taken as long as they are kept.
    extensions: Extensions,
    subscriptions: Subscriptions,
    sink: MethodSink,
    /// For the calls in progress.
    places: Arc<Semaphore>,
}

impl Reader {
    /// Reads until the client closes the connection or is silent for too long.
    async fn read(self, mut receiver: Receiver<Stream>) -> Result<(), Error> {
        loop {
            let mut message = Vec::new();
            let Ok(received) = timeout(PING_PATIENCE, receiver.receive(&mut message)).await else {
                return Ok(());
            };
            match received {
                Ok(Incoming::Data(_)) => self.answer(message).await,
                Ok(Incoming::Pong(_)) => {}
                Ok(Incoming::Closed(_)) | Err(Error::Closed) => return Ok(()),
                Err(Error::MessageTooLarge { .. }) => {
                    let limit = u32::try_from(BODY.max).unwrap_or(u32::MAX);
                    if self.sink.send_error(Id::Null, reject_too_big_request(limit)).await.is_err()
                    {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Answers a message beside the next ones. Waits while too many are in progress.
    async fn answer(&self, message: Vec<u8>) {
        (self.door.look)();
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
        let (door, sink, extensions) =
            (self.door.clone(), self.sink.clone(), self.extensions.clone());
        let subscriptions = self.subscriptions.clone();
        self.door.calls.spawn(async move {
            let _place = place;
            let caller = extensions.get().cloned().unwrap_or_default();
            let text = bom::skip_bytes(&message);
            let answer = select! {
                () = sink.closed() => return,
                answer = post::message(&door, text, &caller, Some((&subscriptions, &sink))) => answer,
            };
            let json = answer.map(|answer| answer.and_then(raw)).transpose();
            match json {
                // Sending fails once the connection is closed.
                Ok(Some(json)) => drop(sink.send(json).await),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "a reply could not be written"),
            }
        });
    }
}

fn raw(text: Vec<u8>) -> serde_json::Result<Box<RawValue>> {
    let text = String::from_utf8(text).map_err(serde::de::Error::custom)?;
    RawValue::from_string(text)
}

/// Writes what comes until the other end has gone or the server stops, and then closes the
/// connection.
async fn write(
    mut sender: Sender<Stream>,
    mut outgoing: mpsc::Receiver<Box<RawValue>>,
    stopped: StopHandle,
) -> io::Result<()> {
    let mut stopped = Box::pin(stopped.shutdown());
    let mut pings = interval(PING_INTERVAL);
    loop {
        let sent = select! {
            biased;
            message = outgoing.recv() => match message {
                Some(message) => sender.send_text_owned(String::from(Box::<str>::from(message))).await,
                None => break,
            },
            _ = pings.tick() => sender.send_ping(nothing()?).await,
            () = &mut stopped => break,
        };
        sent.map_err(io::Error::other)?;
        sender.flush().await.map_err(io::Error::other)?;
    }
    sender.close().await.map_err(io::Error::other)
}

/// The content of a ping.
fn nothing() -> io::Result<ByteSlice125<'static>> {
    let nothing: &[u8] = &[];
    ByteSlice125::try_from(nothing).map_err(io::Error::other)
}
