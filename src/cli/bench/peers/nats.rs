//! A work queue of NATS JetStream, over the text protocol of NATS. `sync_interval: always` syncs
//! before every answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, bail, ensure};
use fs_err as fs;
use serde_json::{Value, json};

use super::{Missing, Peer, Running, Started, directory, free_port, program, version};
use crate::cli::bench::drive::Worker;
use crate::cli::bench::place::{Place, leashed};

/// First release in which `sync_interval` may be `always`.
const SINCE: (u32, u32) = (2, 10);
/// Requests that are sent before their answers are read.
const AT_ONCE: usize = 100;
const STREAM: &str = "TASKS";
const CONSUMER: &str = "workers";

struct Nats(Running);

pub(super) fn start(place: &mut Place) -> anyhow::Result<Started> {
    let Some(program) = program("nats-server", &[]) else {
        return Ok(Started::Missing(Missing::Program("nats-server")));
    };
    let version = version(&program, "--version");
    if release(&version).is_some_and(|release| release < SINCE) {
        return Ok(Started::Missing(Missing::Other(format!(
            "{version} cannot sync every write (`sync_interval: always`); put {}.{} or newer first in PATH, from \
             https://nats.io/download if your distribution has none",
            SINCE.0, SINCE.1
        ))));
    }
    let (port, directory) = (free_port()?, directory(place, "nats")?);
    let configuration = directory.join("nats.conf");
    let store = serde_json::to_string(&directory.join("store"))?;
    fs::write(
        &configuration,
        format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {store}, sync_interval: always }}\n"
        ),
    )?;
    let mut command = leashed(&program);
    command.arg("-c").arg(configuration);
    Ok(Started::Here(Box::new(Nats(Running::start(&program, command, port)?)), version))
}

/// The release of a version line: `nats-server: v2.10.27` has release 2.10.
fn release(version: &str) -> Option<(u32, u32)> {
    let (_, numbers) = version.split_once(": v")?;
    let mut numbers = numbers.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

impl Peer for Nats {
    fn fill(&mut self, tasks: usize) -> anyhow::Result<()> {
        let mut client = Client::connect(&self.0)?;
        // It does not exist the first time.
        client.manage(&format!("STREAM.DELETE.{STREAM}"), &json!({}))?;
        let stream = json!({"name": STREAM, "subjects": ["tasks"], "retention": "workqueue", "storage": "file"});
        let created = client.manage(&format!("STREAM.CREATE.{STREAM}"), &stream)?;
        ensure!(created["error"].is_null(), "NATS answers {created}");
        let waiting = 30_000_000_000_u64;
        let consumer = json!({"stream_name": STREAM, "config": {
            "durable_name": CONSUMER, "ack_policy": "explicit", "ack_wait": waiting, "max_ack_pending": 10_000,
        }});
        let created =
            client.manage(&format!("CONSUMER.DURABLE.CREATE.{STREAM}.{CONSUMER}"), &consumer)?;
        ensure!(created["error"].is_null(), "NATS answers {created}");
        for first in (0..tasks).step_by(AT_ONCE) {
            let numbers = first..tasks.min(first + AT_ONCE);
            for number in numbers.clone() {
                client.publish("tasks", &format!("do thing {number}, and do it well"))?;
            }
            client.flush()?;
            for _ in numbers {
                let answer = client.message()?;
                ensure!(answer.body.contains("\"seq\""), "NATS answers {}", answer.body);
            }
        }
        Ok(())
    }

    fn connect(&self, _number: usize) -> anyhow::Result<Box<dyn Worker>> {
        Ok(Box::new(Client::connect(&self.0)?))
    }
}

struct Client {
    stream: BufReader<TcpStream>,
    unsent: String,
    inbox: String,
    /// Subject on which the task that was claimed last is acknowledged.
    task: String,
}

struct Message {
    /// Subject for an answer, if one is wanted.
    reply_to: Option<String>,
    /// Status in the message's header, if it has one.
    status: Option<String>,
    body: String,
}

impl Client {
    fn connect(running: &Running) -> anyhow::Result<Self> {
        let stream = running.connect()?;
        let inbox = format!("_INBOX.{}", stream.get_ref().local_addr()?.port());
        let mut client = Self { stream, unsent: String::new(), inbox, task: String::new() };
        let line = client.line()?;
        ensure!(line.starts_with("INFO "), "NATS greets with `{line}`");
        client.unsent = format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}}\r\n\
             SUB {} 1\r\n",
            client.inbox
        );
        client.flush()?;
        Ok(client)
    }

    fn publish(&mut self, subject: &str, body: &str) -> anyhow::Result<()> {
        let message = format!("PUB {subject} {} {}\r\n{body}\r\n", self.inbox, body.len());
        self.unsent += &message;
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.get_mut().write_all(self.unsent.as_bytes())?;
        self.unsent.clear();
        Ok(())
    }

    fn ask(&mut self, subject: &str, body: &str) -> anyhow::Result<Message> {
        self.publish(subject, body)?;
        self.flush()?;
        self.message()
    }

    fn manage(&mut self, what: &str, arguments: &Value) -> anyhow::Result<Value> {
        let answer = self.ask(&format!("$JS.API.{what}"), &arguments.to_string())?;
        serde_json::from_str(&answer.body)
            .with_context(|| format!("NATS answers `{}`", answer.body))
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        ensure!(!line.is_empty(), "NATS has closed the connection");
        Ok(line.trim_end().to_owned())
    }

    fn message(&mut self) -> anyhow::Result<Message> {
        loop {
            let line = self.line()?;
            let words: Vec<_> = line.split(' ').collect();
            let (reply_to, header, size) = match words[..] {
                ["PING"] => {
                    self.stream.get_mut().write_all(b"PONG\r\n")?;
                    continue;
                }
                ["PONG" | "+OK"] | ["INFO", ..] => continue,
                ["MSG", _, _, size] => (None, 0, size.parse()?),
                ["MSG", _, _, reply_to, size] => (Some(reply_to), 0, size.parse()?),
                ["HMSG", _, _, header, size] => (None, header.parse()?, size.parse()?),
                ["HMSG", _, _, reply_to, header, size] => {
                    (Some(reply_to), header.parse()?, size.parse()?)
                }
                _ => bail!("NATS answers `{line}`"),
            };
            let mut bytes: Vec<u8> = vec![0; size];
            self.stream.read_exact(&mut bytes)?;
            self.stream.read_exact(&mut [0; 2])?;
            let body = String::from_utf8_lossy(&bytes.split_off(header)).into_owned();
            let status = String::from_utf8_lossy(&bytes);
            let status =
                status.lines().next().and_then(|line| line.split(' ').nth(1)).map(str::to_owned);
            return Ok(Message { reply_to: reply_to.map(str::to_owned), status, body });
        }
    }
}

impl Worker for Client {
    fn claim(&mut self) -> anyhow::Result<bool> {
        let next = format!("$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{CONSUMER}");
        let message = self.ask(&next, r#"{"batch":1,"no_wait":true}"#)?;
        match (message.reply_to, message.status.as_deref()) {
            (Some(reply_to), _) => {
                self.task = reply_to;
                Ok(true)
            }
            (None, Some("404" | "408")) => Ok(false),
            (None, status) => bail!("NATS answers {status:?} {}", message.body),
        }
    }

    /// Acknowledges and waits for the answer, so that the acknowledgement is known to be recorded.
    fn complete(&mut self) -> anyhow::Result<()> {
        let task = self.task.clone();
        let answer = self.ask(&task, "+ACK")?;
        ensure!(answer.status.is_none(), "NATS answers {:?} to an acknowledgement", answer.status);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(release("nats-server: v2.10.27"), Some((2, 10)));
        assert!(release("nats-server: v2.9.10") < Some(SINCE));
        assert_eq!(release("nats-server: unknown"), None);
    }
}
