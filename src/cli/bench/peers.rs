//! Other durable queues that are installed here, at the same work: as many tasks that are claimed and completed, each step
//! safe on the disk before it is answered. Of a claim beanstalkd and NATS write nothing, so that they do less than that.
//!
//! Each is started in a directory of its own on a free port of this machine, spoken to by blocking clients like ours, in
//! its own protocol, and stopped again.

mod beanstalkd;
mod nats;
mod postgres;
mod redis;

use std::env;
use std::io::{self, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fs_err as fs;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::drive::{Names, Worker, drive};
use super::place::Place;
use super::{Bench, Measure};

pub const PART: &str = "peers";

/// Until a server takes connections.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between asking a server to stop and making it.
const GRACE: Duration = Duration::from_secs(5);

/// A queue to compare with.
trait Peer {
    /// Makes away with all tasks and puts in `tasks` new ones.
    fn fill(&mut self, tasks: usize) -> anyhow::Result<()>;

    fn connect(&self, number: usize) -> anyhow::Result<Box<dyn Worker>>;
}

/// How to have one, and what it is called.
struct Kind {
    names: Names,
    package: &'static str,
    start: fn(&mut Place) -> anyhow::Result<Started>,
}

/// A peer, or why there is none.
enum Started {
    Here(Box<dyn Peer>, String),
    Missing(String),
}

pub const BEANSTALKD: &str = "beanstalkd -f 0";
pub const REDIS: &str = "Redis stream, appendfsync always";
pub const POSTGRES: &str = "PostgreSQL, SKIP LOCKED";
pub const NATS: &str = "NATS JetStream, sync always";

const KINDS: [Kind; 4] = [
    Kind {
        names: Names { part: PART, rate: BEANSTALKD, claim: "claim, beanstalkd (not durable)" },
        package: "beanstalkd",
        start: beanstalkd::start,
    },
    Kind {
        names: Names { part: PART, rate: REDIS, claim: "claim, Redis" },
        package: "redis-server",
        start: redis::start,
    },
    Kind {
        names: Names { part: PART, rate: POSTGRES, claim: "claim, PostgreSQL" },
        package: "postgresql",
        start: postgres::start,
    },
    Kind {
        names: Names { part: PART, rate: NATS, claim: "claim, NATS (not durable)" },
        package: "nats-server",
        start: nats::start,
    },
];

/// What became of a queue that was to be compared with.
#[derive(Serialize)]
pub struct Found {
    pub name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why it was not measured, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

pub struct Peers(Vec<(&'static Names, Box<dyn Peer>)>);

impl Peers {
    pub fn new(bench: &mut Bench) -> anyhow::Result<Self> {
        const ALL: &[Kind] = &KINDS;
        let mut here = Vec::new();
        for kind in ALL {
            bench.begin(format_args!("{} is started", kind.names.rate));
            let name = kind.names.rate;
            let started = (kind.start)(&mut bench.place).with_context(|| format!("{name} does not start"));
            bench.found.push(match started {
                Ok(Started::Here(peer, version)) => {
                    here.push((&kind.names, peer));
                    Found { name, version: Some(version), missing: None }
                }
                Ok(Started::Missing(reason)) => {
                    let advice = format!("{reason}; for instance: apt-get install {}", kind.package);
                    Found { name, version: None, missing: Some(advice) }
                }
                Err(error) => Found { name, version: None, missing: Some(format!("{error:#}")) },
            });
        }
        Ok(Self(here))
    }
}

impl Measure for Peers {
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        for clients in bench.size.clients.clone() {
            for (names, peer) in &mut self.0 {
                bench.begin(format_args!("{}, {clients} clients", names.rate));
                let tasks = bench.size.work;
                let filled = peer.fill(tasks).with_context(|| format!("{} cannot be filled", names.rate));
                filled?;
                let workers = (0..clients).map(|number| peer.connect(number)).collect::<anyhow::Result<Vec<_>>>()?;
                let run = drive(workers, bench.size.span).with_context(|| names.rate)?;
                run.record(bench, names, tasks);
            }
        }
        Ok(())
    }
}

/// Where the program is: in one of the directories of PATH, or in one of `beside`.
fn program(name: &str, beside: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let directories = env::split_paths(&path).chain(usual).chain(beside.iter().cloned());
    directories.map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// The first line that a program says of its version.
fn version(program: &Path, option: &str) -> String {
    let output = Command::new(program).arg(option).stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").chars().take(100).collect()
}

/// A port that nobody listened on a moment ago.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// A server of our own, which ends with this value.
struct Running {
    process: Child,
    port: u16,
}

impl Running {
    /// Ready when it takes connections.
    fn start(command: &mut Command, port: u16) -> anyhow::Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Self { process: command.spawn().with_context(|| program.clone())?, port };
        let complaints = running.process.stderr.take();
        // What it complains about must not fill the pipe.
        let complaints = complaints.map(|mut stderr| {
            thread::spawn(move || {
                let mut text = Vec::new();
                drop(stderr.read_to_end(&mut text));
                text
            })
        });
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = running.process.try_wait()?;
            if ended.is_some() || start.elapsed() > PATIENCE {
                drop(running);
                let text = complaints.and_then(|thread| thread.join().ok()).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                bail!("{program} does not listen: {}", text.lines().last().unwrap_or("it says nothing"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(running)
    }

    fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Politely at first: PostgreSQL has processes of its own to end.
        let _ = kill_process(Pid::from_child(&self.process), Signal::INT);
        let asked = Instant::now();
        while asked.elapsed() < GRACE {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A new directory.
fn directory(place: &mut Place, name: &str) -> anyhow::Result<PathBuf> {
    let path = place.fresh(name);
    fs::create_dir(&path)?;
    Ok(path)
}
