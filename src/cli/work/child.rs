//! One run of the command under a supervisor: started, listened to, and ended with all that it
//! started.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child as Process, Command};
use tokio::select;
use tokio::time::{Instant, sleep, timeout_at};

use super::output::{self, Output, Printed, Stream};
use crate::cli::supervise::{
    Assignment, Exit, Order, RUN, Report, Usage, descendants, parent_of_living,
};
use crate::config::TOKEN_VARIABLE;

const CHUNK: usize = 64 << 10;
/// Time that output may still arrive after nothing of the command is left.
const LINGER: Duration = Duration::from_secs(2);
/// Longest report of a supervisor, in bytes; anything longer is no report.
const LONGEST_REPORT: usize = 64 << 10;

/// A supervisor and the command that it runs.
pub(super) struct Child {
    process: Process,
    run: String,
    reports: BufReader<OwnedReadHalf>,
    report: Vec<u8>,
    orders: OwnedWriteHalf,
    /// The supervisor has sent its last report.
    is_over: bool,
    end: Option<End>,
    used: Usage,
    out_open: bool,
    err_open: bool,
    linger_until: Option<Instant>,
}

/// How a run of the command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exit(Exit),
    NotStarted {
        reason: String,
    },
    /// An earlier run of the same task does not end.
    Busy {
        reason: String,
    },
    /// The supervisor is gone and did not say how the command ended.
    Lost,
}

/// The next thing that happened to the run.
pub(super) enum Happened {
    Output,
    /// Checkpoints that the command marked, or why a marked line holds none.
    Marked(Vec<output::Marked>),
    Started {
        pid: u32,
    },
    Over,
}

impl Child {
    /// Starts the supervisor. Neither it nor the command gets the token of a server, unless
    /// `pass_token`.
    pub(super) async fn start(assignment: &Assignment, pass_token: bool) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new(own_program());
        // It is in a group of its own from the start: a Ctrl-C typed before it has a session must
        // not end it.
        command.arg("supervise").stdin(Stdio::from(OwnedFd::from(theirs))).process_group(0);
        if !pass_token {
            command.env_remove(TOKEN_VARIABLE);
        }
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(false).spawn()?;
        let (read, mut orders) = UnixStream::from_std(ours)?.into_split();
        let line = serde_json::to_string(assignment)? + "\n";
        if let Err(error) = orders.write_all(line.as_bytes()).await {
            process.start_kill()?;
            return Err(error);
        }
        let run = assignment.environment.get(RUN).cloned().unwrap_or_default();
        Ok(Self {
            process,
            run,
            reports: BufReader::new(read),
            report: Vec::new(),
            orders,
            is_over: false,
            end: None,
            used: Usage::default(),
            out_open: true,
            err_open: true,
            linger_until: None,
        })
    }

    pub(super) async fn order(&mut self, order: Order) {
        let line = serde_json::to_string(&order).unwrap_or_default() + "\n";
        // Its reports show whether it is still there.
        drop(self.orders.write_all(line.as_bytes()).await);
    }

    /// Waits for the next thing to happen. It can be cancelled without loss: everything read is in
    /// `output`.
    pub(super) async fn next(&mut self, output: &mut Output) -> Happened {
        let (mut out, mut err) = ([0; CHUNK / 4], [0; CHUNK / 4]);
        let marked = output.take_marked();
        if !marked.is_empty() {
            return Happened::Marked(marked);
        }
        if self.is_over && !self.out_open && !self.err_open {
            return Happened::Over;
        }
        let linger = self.linger_until;
        let (stdout, stderr) = (self.process.stdout.as_mut(), self.process.stderr.as_mut());
        select! {
            read = read_some(stdout, &mut out), if self.out_open => match read {
                Ok(size @ 1..) => output.read(Stream::Out, &out[..size]),
                _ => self.out_open = false,
            },
            read = read_some(stderr, &mut err), if self.err_open => match read {
                Ok(size @ 1..) => output.read(Stream::Err, &err[..size]),
                _ => self.err_open = false,
            },
            read = self.reports.read_until(b'\n', &mut self.report), if !self.is_over => match read {
                Ok(1..) if self.report.len() <= LONGEST_REPORT => {
                    let report = serde_json::from_slice(&self.report);
                    self.report.clear();
                    match report {
                        Ok(Report::Started { pid }) => return Happened::Started { pid },
                        Ok(Report::NotStarted { reason }) => self.end = Some(End::NotStarted { reason }),
                        Ok(Report::Busy { reason }) => self.end = Some(End::Busy { reason }),
                        Ok(Report::Used(used)) => self.used = used,
                        Ok(Report::Ended(exit)) => self.end = Some(End::Exit(exit)),
                        Err(_) => {}
                    }
                }
                _ => {
                    self.is_over = true;
                    self.linger_until = Some(Instant::now() + LINGER);
                }
            },
            () = until(linger), if linger.is_some() => (self.out_open, self.err_open) = (false, false),
        }
        Happened::Output
    }

    /// What the run has used at most; known when it is over.
    pub(super) fn used(&self) -> Usage {
        self.used
    }

    /// How the run ended; to be called after [`Happened::Over`]. Nothing of it is left.
    pub(super) async fn end(mut self, output: &mut Output) -> (End, Printed) {
        drop(self.orders);
        drop(timeout_at(Instant::now() + LINGER, self.process.wait()).await);
        drop(self.process.start_kill());
        let end = self.end.unwrap_or(End::Lost);
        if end == End::Lost {
            end_orphans(&self.run).await;
        }
        (end, output.finish())
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn read_some(
    pipe: Option<&mut (impl AsyncReadExt + Unpin)>,
    buffer: &mut [u8],
) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => Ok(0),
    }
}

/// Path of this very program, even if another version has been installed at its path since.
fn own_program() -> std::path::PathBuf {
    let this = Path::new("/proc/self/exe");
    if this.exists() {
        this.to_owned()
    } else {
        std::env::current_exe().unwrap_or_else(|_| "callboard".into())
    }
}

/// Ends what a killed supervisor has left. It becomes children of this process, which is the next
/// subreaper.
async fn end_orphans(run: &str) {
    let mark = format!("{RUN}={run}");
    for _ in 0..200 {
        let orphans: Vec<Pid> =
            descendants().into_iter().filter(|pid| is_marked(*pid, &mark)).collect();
        if orphans.is_empty() {
            return;
        }
        for pid in &orphans {
            let _ = kill_process(*pid, Signal::KILL);
        }
        sleep(Duration::from_millis(10)).await;
        let is_ours =
            |pid: &&Pid| parent_of_living(pid.as_raw_nonzero().get().unsigned_abs()).is_none();
        for pid in orphans.iter().filter(is_ours) {
            let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
        }
    }
}

fn is_marked(pid: Pid, mark: &str) -> bool {
    let environment =
        std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}
