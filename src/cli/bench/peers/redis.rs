//! A stream of Redis with a consumer group, over the RESP protocol. `appendfsync always` syncs
//! before every answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, bail};

use super::{Missing, Peer, Running, Started, directory, free_port, program, version};
use crate::cli::bench::drive::Worker;
use crate::cli::bench::place::{Place, leashed};

/// Requests that are sent before their answers are read.
const AT_ONCE: usize = 500;
const STREAM: &str = "tasks";
const GROUP: &str = "workers";

struct Redis(Running);

pub(super) fn start(place: &mut Place) -> anyhow::Result<Started> {
    let Some(program) = program("redis-server", &[]) else {
        return Ok(Started::Missing(Missing::Program("redis-server")));
    };
    let version = version(&program, "--version");
    let port = free_port()?;
    let mut command = leashed(&program);
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "yes",
    ]);
    // Prevents a rewrite of the log in the middle of a round.
    command.args(["--auto-aof-rewrite-percentage", "0"]);
    command
        .args(["--appendfsync", "always", "--daemonize", "no", "--dir"])
        .arg(directory(place, "redis")?);
    Ok(Started::Here(Box::new(Redis(Running::start(&program, command, port)?)), version))
}

impl Redis {
    fn client(&self, number: usize) -> anyhow::Result<Client> {
        Ok(Client {
            stream: self.0.connect()?,
            name: format!("worker-{number}"),
            task: String::new(),
        })
    }
}

impl Peer for Redis {
    fn fill(&mut self, tasks: usize) -> anyhow::Result<()> {
        let mut client = self.client(0)?;
        client.ask(&["FLUSHALL"])?;
        for first in (0..tasks).step_by(AT_ONCE) {
            let numbers = first..tasks.min(first + AT_ONCE);
            let mut requests = String::new();
            for number in numbers.clone() {
                let body = format!("do thing {number}, and do it well");
                requests += &request(&["XADD", STREAM, "*", "description", &body]);
            }
            client.stream.get_mut().write_all(requests.as_bytes())?;
            for _ in numbers {
                client.answer()?;
            }
        }
        client.ask(&["XGROUP", "CREATE", STREAM, GROUP, "0"]).map(drop)
    }

    fn connect(&self, number: usize) -> anyhow::Result<Box<dyn Worker>> {
        Ok(Box::new(self.client(number)?))
    }
}

struct Client {
    stream: BufReader<TcpStream>,
    name: String,
    task: String,
}

#[derive(Debug)]
enum Answer {
    Text(String),
    Number(i64),
    List(Vec<Answer>),
    Nothing,
}

impl Answer {
    /// The text at `path` in nested lists.
    fn at(&self, path: &[usize]) -> Option<&str> {
        match (self, path) {
            (Self::Text(text), []) => Some(text),
            (Self::List(items), [first, rest @ ..]) => items.get(*first)?.at(rest),
            _ => None,
        }
    }
}

fn request(words: &[&str]) -> String {
    let words =
        words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect::<Vec<_>>();
    format!("*{}\r\n{}", words.len(), words.concat())
}

impl Client {
    fn ask(&mut self, words: &[&str]) -> anyhow::Result<Answer> {
        self.stream.get_mut().write_all(request(words).as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).context("Redis has closed the connection")?;
        let size = || rest.parse::<i64>().with_context(|| format!("Redis answers `{line}`"));
        Ok(match kind {
            "+" => Answer::Text(rest.to_owned()),
            ":" => Answer::Number(size()?),
            "$" => match usize::try_from(size()?) {
                Err(_) => Answer::Nothing,
                Ok(size) => {
                    let mut text = vec![0; size + 2];
                    self.stream.read_exact(&mut text)?;
                    text.truncate(size);
                    Answer::Text(String::from_utf8_lossy(&text).into_owned())
                }
            },
            "*" => match usize::try_from(size()?) {
                Err(_) => Answer::Nothing,
                Ok(count) => {
                    Answer::List((0..count).map(|_| self.answer()).collect::<anyhow::Result<_>>()?)
                }
            },
            _ => bail!("Redis answers `{line}`"),
        })
    }
}

impl Worker for Client {
    fn claim(&mut self) -> anyhow::Result<bool> {
        let name = self.name.clone();
        match self.ask(&[
            "XREADGROUP",
            "GROUP",
            GROUP,
            &name,
            "COUNT",
            "1",
            "STREAMS",
            STREAM,
            ">",
        ])? {
            Answer::Nothing => Ok(false),
            // The answer lists streams; each has a name and entries, and each entry an id and
            // fields.
            answer => {
                self.task = answer
                    .at(&[0, 1, 0, 0])
                    .with_context(|| format!("Redis answers {answer:?}"))?
                    .to_owned();
                Ok(true)
            }
        }
    }

    fn complete(&mut self) -> anyhow::Result<()> {
        let task = self.task.clone();
        match self.ask(&["XACK", STREAM, GROUP, &task])? {
            Answer::Number(1) => Ok(()),
            answer => bail!("Redis answers {answer:?} to XACK"),
        }
    }
}
