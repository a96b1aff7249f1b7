//! Other durable queues that are installed here, doing the same work: as many tasks are claimed and
//! completed, and each step is safe on disk before it is answered. For a claim, beanstalkd and NATS
//! write nothing, so they do less.
//!
//! Each is started in a directory of its own on a free port of this machine, called by blocking
//! clients like ours in its own protocol, and stopped again.

mod beanstalkd;
mod nats;
mod postgres;
mod redis;

use std::env;
use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fs_err as fs;
use rustix::process::{Pid, Signal, kill_process};

use super::drive::{Names, Worker, connect, drive, in_words};
use super::last_words::LastWords;
use super::others::{BEANSTALKD, Found, NATS, PART, POSTGRES, REDIS};
use super::place::{Place, unleash};
use super::{Bench, Measure};

/// Longest wait until a server accepts connections.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between asking a server to stop and killing it.
const GRACE: Duration = Duration::from_secs(5);

/// A queue to compare with.
trait Peer {
    /// Removes all tasks and adds `tasks` new ones.
    fn fill(&mut self, tasks: usize) -> anyhow::Result<()>;

    fn connect(&self, number: usize) -> anyhow::Result<Box<dyn Worker>>;
}

/// A kind of queue: its names, and how to start it.
struct Kind {
    names: Names,
    package: &'static str,
    start: fn(&mut Place) -> anyhow::Result<Started>,
}

/// A running queue and its version, or why there is none.
enum Started {
    Here(Box<dyn Peer>, String),
    Missing(Missing),
}

enum Missing {
    /// The program is not installed.
    Program(&'static str),
    /// Another reason, and what to do about it.
    Other(String),
}

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

pub(super) struct Peers(Vec<(&'static Names, Box<dyn Peer>)>);

impl Peers {
    pub(super) fn new(bench: &mut Bench) -> anyhow::Result<Self> {
        const ALL: &[Kind] = &KINDS;
        let mut here = Vec::new();
        for kind in ALL {
            bench.begin(format_args!("{} is started", kind.names.rate));
            let name = kind.names.rate;
            let started =
                (kind.start)(&mut bench.place).with_context(|| format!("{name} does not start"));
            bench.found.push(match started {
                Ok(Started::Here(peer, version)) => {
                    here.push((&kind.names, peer));
                    Found { name, version: Some(version), missing: None }
                }
                Ok(Started::Missing(Missing::Program(program))) => {
                    let advice = format!(
                        "{program} is not installed; for instance: apt-get install {}",
                        kind.package
                    );
                    Found { name, version: None, missing: Some(advice) }
                }
                Ok(Started::Missing(Missing::Other(reason))) => {
                    Found { name, version: None, missing: Some(reason) }
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
            self.0.retain_mut(|(names, peer)| {
                bench.begin(format_args!("{}, {clients} clients", names.rate));
                let failed = measured(names, peer.as_mut(), clients, bench).err();
                if let Some(error) = &failed
                    && let Some(found) =
                        bench.found.iter_mut().find(|found| found.name == names.rate)
                {
                    // What it did before stays in the figures.
                    let error = in_words(error);
                    found.missing = Some(format!(
                        "it failed with {clients} clients and was left out from there: {error}"
                    ));
                }
                failed.is_none()
            });
        }
        Ok(())
    }
}

fn measured(
    names: &Names,
    peer: &mut dyn Peer,
    clients: usize,
    bench: &mut Bench,
) -> anyhow::Result<()> {
    let tasks = bench.size.work;
    peer.fill(tasks).context("it cannot be filled")?;
    let workers =
        (0..clients).map(|number| peer.connect(number)).collect::<anyhow::Result<Vec<_>>>()?;
    drive(workers, bench.size.span)?.record(bench, names, tasks);
    Ok(())
}

/// Path of a program: in a directory of PATH, in the usual ones for servers, or in one of `beside`.
fn program(name: &str, beside: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let directories = env::split_paths(&path).chain(usual).chain(beside.iter().cloned());
    directories.map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// First line of the version that a program reports.
fn version(program: &Path, option: &str) -> String {
    let output = Command::new(program).arg(option).stdin(Stdio::null()).output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.lines().next().unwrap_or("unknown").chars().take(100).collect()
}

/// A port on which nobody listened a moment ago.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// A server of our own, which ends when this value is dropped.
struct Running {
    process: Child,
    port: u16,
}

impl Running {
    /// Starts the server, and waits until it accepts connections.
    fn start(program: &Path, mut command: Command, port: u16) -> anyhow::Result<Self> {
        let program = program.display();
        // Some programs complain on standard output, some on standard error.
        let (output, input) = io::pipe()?;
        command.stdout(input.try_clone()?).stderr(input);
        let process = command.spawn().with_context(|| program.to_string())?;
        // Otherwise this process, too, would hold the pipe's writing end open.
        drop(command);
        let mut running = Self { process, port };
        let mut last_words = LastWords::of(output);
        let start = Instant::now();
        while !running.listens()? {
            let trouble = match running.process.try_wait()? {
                Some(status) => format!("it has ended: {status}"),
                None if start.elapsed() > PATIENCE => format!("not in {} s", PATIENCE.as_secs()),
                None => {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                }
            };
            drop(running);
            bail!("{program} does not listen, {trouble}\n{}", last_words.lines());
        }
        Ok(running)
    }

    /// Whether it accepts connections. If it has ended, somebody else listens there.
    fn listens(&mut self) -> io::Result<bool> {
        Ok(TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            && self.process.try_wait()?.is_none())
    }

    fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        connect(("127.0.0.1", self.port))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        unleash(&mut self.process.stdin);
        // First ask it to end: PostgreSQL has processes of its own to end.
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

/// Creates a new directory.
fn directory(place: &mut Place, name: &str) -> anyhow::Result<PathBuf> {
    let path = place.fresh(name);
    fs::create_dir(&path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bench::place::leashed;

    struct Broken;

    impl Peer for Broken {
        fn fill(&mut self, _: usize) -> anyhow::Result<()> {
            bail!("the disk is full")
        }

        fn connect(&self, _: usize) -> anyhow::Result<Box<dyn Worker>> {
            bail!("it was not to be asked")
        }
    }

    #[test]
    fn server_that_ends_says_why_on_whichever_output() {
        let shell = Path::new("/bin/sh");
        let port = free_port().expect("a port");
        let mut command = leashed(shell);
        command.args(["-c", "echo 'the disk is full'; echo 'I give up' >&2; exit 3"]);
        let error =
            Running::start(shell, command, port).err().expect("it does not listen").to_string();
        for part in ["/bin/sh does not listen", "exit status: 3", "the disk is full\nI give up"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn port_of_somebody_else_is_not_taken_for_that_of_a_server_that_has_ended() {
        let somebody = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = somebody.local_addr().expect("bound").port();
        let mut process = Command::new("true").spawn().expect("a process");
        process.wait().expect("it ends");
        assert!(!Running { process, port }.listens().expect("it is known"));
    }

    /// A queue that is lost after some tasks.
    struct Mortal;

    struct Client(usize);

    impl Peer for Mortal {
        fn fill(&mut self, _: usize) -> anyhow::Result<()> {
            Ok(())
        }

        fn connect(&self, _: usize) -> anyhow::Result<Box<dyn Worker>> {
            Ok(Box::new(Client(5)))
        }
    }

    impl Worker for Client {
        fn claim(&mut self) -> anyhow::Result<bool> {
            self.0 = self.0.checked_sub(1).context("it has closed the connection")?;
            Ok(true)
        }

        fn complete(&mut self) -> anyhow::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn queue_that_is_lost_in_a_round_has_no_figures_of_it() {
        let mut bench = Bench::small();
        bench.found.push(Found { name: REDIS, version: Some("1".to_owned()), missing: None });
        Peers(vec![(&KINDS[1].names, Box::new(Mortal))])
            .round(&mut bench)
            .expect("the others go on");
        let missing = bench.found[0].missing.as_deref().unwrap_or_default();
        assert!(missing.ends_with("it has closed the connection"), "{missing}");
        assert!(bench.figures.list().is_empty());
    }

    #[test]
    fn queue_that_fails_is_told_and_left_out() {
        let mut bench = Bench::small();
        bench.found.push(Found { name: REDIS, version: Some("1".to_owned()), missing: None });
        let mut peers = Peers(vec![(&KINDS[1].names, Box::new(Broken))]);
        for _ in 0..2 {
            peers.round(&mut bench).expect("the others go on");
        }
        let missing = bench.found[0].missing.as_deref().unwrap_or_default();
        assert!(
            missing.contains("with 1 clients") && missing.ends_with("the disk is full"),
            "{missing}"
        );
        assert!(peers.0.is_empty());
    }
}
