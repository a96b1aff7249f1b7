//! JSON-RPC over a WebSocket (RFC 6455), as far as a client needs it that waits for each answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, bail};

use super::doors::{Client, MethodAnswer, Reply, method};

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const LAST: u8 = 0x80;
const MASKED: u8 = 0x80;

pub(super) struct WebSocket(BufReader<TcpStream>);

impl WebSocket {
    /// Opens a WebSocket on a new connection; `head` holds the header lines that authorize it.
    pub(super) fn open(mut stream: BufReader<TcpStream>, head: &str) -> anyhow::Result<Self> {
        let request = format!(
            "GET /rpc HTTP/1.1\r\n{head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let mut status = String::new();
        stream.read_line(&mut status)?;
        if !status.starts_with("HTTP/1.1 101") {
            bail!("no WebSocket: {}", status.trim());
        }
        let mut line = String::from("-");
        while !line.trim().is_empty() {
            line.clear();
            stream.read_line(&mut line)?;
        }
        Ok(Self(stream))
    }

    fn send(&mut self, kind: u8, payload: &[u8]) -> anyhow::Result<()> {
        // A mask of zeros is valid; only browsers need a random one.
        const MASK: [u8; 4] = [0; 4];
        let mut frame = vec![LAST | kind];
        match u16::try_from(payload.len()).context("the message is too long")? {
            size @ 0..126 => frame.push(MASKED | size.to_be_bytes()[1]),
            size => {
                frame.push(MASKED | 126);
                frame.extend(size.to_be_bytes());
            }
        }
        frame.extend(MASK);
        frame.extend(payload);
        Ok(self.0.get_mut().write_all(&frame)?)
    }

    /// Receives the next message.
    fn receive(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut message = Vec::new();
        loop {
            let [kind, size] = self.exactly()?;
            let size = match size {
                126 => u64::from(u16::from_be_bytes(self.exactly()?)),
                127 => u64::from_be_bytes(self.exactly()?),
                size => u64::from(size),
            };
            let start = message.len();
            (&mut self.0).take(size).read_to_end(&mut message)?;
            match kind & 0x0f {
                CLOSE => bail!("the server has closed the WebSocket"),
                PING => {
                    let payload = message.split_off(start);
                    self.send(PONG, &payload)?;
                }
                PONG => message.truncate(start),
                _ if kind & LAST != 0 => return Ok(message),
                _ => {}
            }
        }
    }

    fn exactly<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Client for WebSocket {
    fn call(&mut self, operation: &str, arguments: &str) -> anyhow::Result<Reply> {
        self.send(TEXT, method(operation, arguments).as_bytes())?;
        let message = self.receive()?;
        let answer: MethodAnswer = serde_json::from_slice(&message)
            .with_context(|| String::from_utf8_lossy(&message).into_owned())?;
        answer.reply(operation)
    }
}
