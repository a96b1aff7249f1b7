//! beanstalkd, by its line protocol; with `-f 0` it syncs its log at every write.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use anyhow::{Context, bail};
use fs_err as fs;

use super::{Missing, Peer, Running, Started, directory, free_port, program, version};
use crate::cli::bench::drive::Worker;
use crate::cli::bench::place::{Place, leashed};

/// Requests that are sent before their answers are read.
const AT_ONCE: usize = 100;

struct Beanstalkd {
    program: PathBuf,
    base: PathBuf,
    fills: usize,
    running: Option<Running>,
}

pub(super) fn start(place: &mut Place) -> anyhow::Result<Started> {
    let Some(program) = program("beanstalkd", &[]) else {
        return Ok(Started::Missing(Missing::Program("beanstalkd")));
    };
    let version = version(&program, "-v");
    let base = directory(place, "beanstalkd")?;
    Ok(Started::Here(Box::new(Beanstalkd { program, base, fills: 0, running: None }), version))
}

impl Beanstalkd {
    fn client(&self) -> anyhow::Result<Client> {
        let running = self.running.as_ref().context("it is not running")?;
        Ok(Client { stream: running.connect()?, line: String::new(), job: String::new() })
    }
}

impl Peer for Beanstalkd {
    /// beanstalkd cannot drop all jobs, so a new one is started instead.
    fn fill(&mut self, tasks: usize) -> anyhow::Result<()> {
        self.running = None;
        let log = |fill: usize| self.base.join(fill.to_string());
        if self.fills > 0 {
            fs::remove_dir_all(log(self.fills))?;
        }
        self.fills += 1;
        let log = log(self.fills);
        fs::create_dir(&log)?;
        let port = free_port()?;
        let mut command = leashed(&self.program);
        command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-f", "0", "-b"]).arg(log);
        self.running = Some(Running::start(&self.program, command, port)?);
        let mut client = self.client()?;
        for first in (0..tasks).step_by(AT_ONCE) {
            let numbers = first..tasks.min(first + AT_ONCE);
            let mut requests = String::new();
            for number in numbers.clone() {
                let body = format!("do thing {number}, and do it well");
                requests += &format!("put 5 0 1800 {}\r\n{body}\r\n", body.len());
            }
            client.stream.get_mut().write_all(requests.as_bytes())?;
            for _ in numbers {
                client.answer("INSERTED ")?;
            }
        }
        Ok(())
    }

    fn connect(&self, _number: usize) -> anyhow::Result<Box<dyn Worker>> {
        Ok(Box::new(self.client()?))
    }
}

struct Client {
    stream: BufReader<TcpStream>,
    line: String,
    job: String,
}

impl Client {
    fn read(&mut self) -> anyhow::Result<&str> {
        self.line.clear();
        self.stream.read_line(&mut self.line)?;
        Ok(self.line.trim_end())
    }

    /// What follows `start` in the answer.
    fn answer(&mut self, start: &str) -> anyhow::Result<&str> {
        let line = self.read()?;
        match line.strip_prefix(start) {
            Some(rest) => Ok(rest),
            None => bail!("beanstalkd answers `{line}`"),
        }
    }
}

impl Worker for Client {
    fn claim(&mut self) -> anyhow::Result<bool> {
        self.stream.get_mut().write_all(b"reserve-with-timeout 0\r\n")?;
        let line = self.read()?;
        if line == "TIMED_OUT" {
            return Ok(false);
        }
        let reserved = line.strip_prefix("RESERVED ").and_then(|rest| rest.split_once(' '));
        self.job = reserved.with_context(|| format!("beanstalkd answers `{line}`"))?.0.to_owned();
        // Skips the body, which is one line.
        self.read()?;
        Ok(true)
    }

    fn complete(&mut self) -> anyhow::Result<()> {
        let request = format!("delete {}\r\n", self.job);
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.answer("DELETED").map(drop)
    }
}
