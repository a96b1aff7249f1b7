//! The supervisor: a small process between `callboard work` and the command that it runs, which
//! nothing of the command outlives.
//!
//! Its standard input is a socket to the worker: one line with the [`Assignment`], then [`Order`]s;
//! the answers are [`Report`]s, one per line. When the socket ends, the worker is dead, even by
//! SIGKILL, and all that was started is ended. As the reaper of its descendants (a child
//! subreaper), it also finds those that left the process group or the session.

mod limits;
mod usage;

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgid, getpid, getppid, kill_process,
    kill_process_group, setpgid, setsid, wait,
};
use serde::{Deserialize, Serialize};

use super::Outcome;
pub(super) use limits::Limits;
use usage::Meter;
pub(super) use usage::Usage;

/// Time that processes get to end after they were asked to.
const GRACE: Duration = Duration::from_secs(3);
/// Time that processes get to end after the command itself has ended.
const GRACE_OF_REST: Duration = Duration::from_millis(500);
/// Time after which processes are left alone: the kernel may not let go of them.
const LONGEST_REST: Duration = Duration::from_secs(10);
/// Time that an earlier run of the same task gets to end.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Environment variable that marks the command and all that it starts.
pub(super) const RUN: &str = "CALLBOARD_RUN";

/// Common start of the marks of all runs of one task. It names the lock by device and inode: the
/// same path may be another board's where processes see other file systems.
pub(super) fn mark(lock: &fs::Metadata) -> String {
    format!("{}-{}-", lock.dev(), lock.ino())
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    /// Lock file, locked until nothing of the command is left that can be ended, so that whoever
    /// follows a killed worker waits for that. None if it could not be created.
    pub lock: Option<PathBuf>,
    pub limits: Limits,
    /// Text for the command's standard input.
    pub input: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Ask the command to end, and kill it after a while.
    Terminate,
    Kill,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    Started {
        pid: u32,
    },
    NotStarted {
        reason: String,
    },
    Busy {
        reason: String,
    },
    /// Comes before the end.
    Used(Usage),
    Ended(Exit),
}

/// How the command ended. Nothing of it is left that can be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Exit {
    Code(i32),
    Signal(i32),
}

pub(super) fn run() -> Outcome {
    // Leave the worker's process group and terminal: what is typed there is for the worker. The
    // leader of a group can start no session, so this process first joins the worker's group
    // for a moment.
    let workers = getppid().and_then(|worker| getpgid(Some(worker)).ok());
    let _ = setpgid(None, workers);
    let _ = setsid();
    reap_descendants()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut orders = BufReader::new(socket.try_clone()?);
    let mut line = String::new();
    orders.read_line(&mut line)?;
    let assignment: Assignment = serde_json::from_str(&line)?;
    let (sender, given) = channel();
    thread::Builder::new().name("socket".into()).spawn(move || read_orders(orders, &sender))?;
    // The lock is held as long as this file is open, to the end.
    let lock = assignment
        .lock
        .as_ref()
        .map(|lock| File::options().read(true).append(true).open(lock))
        .transpose()?;
    match lock.as_ref().map_or(Ok(Turn::Ours), |lock| wait_for(lock, &given))? {
        Turn::NotWanted => {
            tell(&socket, &Report::Ended(Exit::Signal(Signal::TERM.as_raw())));
            return Ok(ExitCode::SUCCESS);
        }
        Turn::Ours if lock.as_ref().is_some_and(|lock| !end_earlier(lock)) => {
            let reason = "a process of another run of the same task is still there and cannot be \
                          ended"
                .to_owned();
            tell(&socket, &Report::Busy { reason });
            return Ok(ExitCode::SUCCESS);
        }
        Turn::Ours => {}
        Turn::Never => {
            let reason = "another run of the same task is still there and does not end; see who \
                          holds its lock";
            tell(&socket, &Report::Busy { reason: reason.to_owned() });
            return Ok(ExitCode::SUCCESS);
        }
    }
    let child = match start(&assignment) {
        Ok(child) => child,
        Err(error) => {
            tell(&socket, &Report::NotStarted { reason: error.to_string() });
            return Ok(ExitCode::SUCCESS);
        }
    };
    let command = Pid::from_child(&child);
    tell(&socket, &Report::Started { pid: child.id() });
    let meter = Meter::start()?;
    feed(child, assignment.input)?;
    thread::Builder::new().name("orders".into()).spawn(move || obey(&given, command))?;
    let exit = reap(command);
    end_rest();
    tell(&socket, &Report::Used(meter.most()));
    tell(&socket, &Report::Ended(exit));
    Ok(ExitCode::SUCCESS)
}

/// Result of waiting for an earlier run of the same task.
enum Turn {
    Ours,
    /// The worker is dead, or no longer wants the run.
    NotWanted,
    Never,
}

/// Waits while a run that a killed worker started for the same task is ended; not for ever, as it
/// may hang in the kernel.
fn wait_for(lock: &File, given: &Receiver<Order>) -> io::Result<Turn> {
    let start = Instant::now();
    loop {
        let is_ours = match lock.try_lock() {
            Ok(()) => true,
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => false,
        };
        let patience = if is_ours { Duration::ZERO } else { BETWEEN_LOOKS };
        match given.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) if is_ours => return Ok(Turn::Ours),
            Err(RecvTimeoutError::Timeout) if start.elapsed() < PATIENCE => {}
            Err(RecvTimeoutError::Timeout) => return Ok(Turn::Never),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(Turn::NotWanted),
        }
    }
}

/// Ends a run whose worker and supervisor were both killed: it goes on alone, and nobody hears of
/// its end. The holder of the task's lock may do this, as it alone has the task. False if something
/// of the run stays.
fn end_earlier(lock: &File) -> bool {
    let Ok(lock) = lock.metadata() else { return false };
    let run = format!("{RUN}={}", mark(&lock));
    let ended =
        end_those(|environment| environment.iter().any(|entry| entry.starts_with(run.as_bytes())));
    ended || !Path::new("/proc/self").exists()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn reap_descendants() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn reap_descendants() -> io::Result<()> {
    Ok(())
}

fn start(assignment: &Assignment) -> io::Result<Child> {
    let [program, arguments @ ..] = assignment.command.as_slice() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(&assignment.environment).current_dir(&assignment.directory);
    assignment.limits.start(command.stdin(Stdio::piped()).process_group(0))
}

/// Writes the input on a thread, because a command need not read it.
fn feed(mut child: Child, input: String) -> io::Result<()> {
    let Some(mut pipe) = child.stdin.take() else { return Ok(()) };
    thread::Builder::new()
        .name("input".into())
        .spawn(move || drop(pipe.write_all(input.as_bytes())))
        .map(drop)
}

/// Sends a report; if the worker is gone, nobody is left to hear it.
fn tell(mut socket: &UnixStream, report: &Report) {
    let line = serde_json::to_string(report).unwrap_or_default() + "\n";
    drop(socket.write_all(line.as_bytes()));
}

fn obey(given: &Receiver<Order>, command: Pid) {
    if given.recv() == Ok(Order::Terminate) {
        let _ = kill_process_group(command, Signal::TERM);
        wait_for_another(given);
    }
    end_for_ever();
}

fn read_orders(orders: BufReader<UnixStream>, sender: &Sender<Order>) {
    for line in orders.lines().map_while(Result::ok) {
        let Ok(order) = serde_json::from_str(&line) else { return };
        if sender.send(order).is_err() {
            return;
        }
    }
}

/// Waits until the time of grace is over, or a harder order or the worker's end cuts it short.
fn wait_for_another(given: &Receiver<Order>) {
    let end = Instant::now() + GRACE;
    while let Ok(Order::Terminate) | Err(RecvTimeoutError::Timeout) =
        given.recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        if Instant::now() >= end {
            return;
        }
    }
}

/// Kills the descendants until the main thread, when nothing is left, ends the process.
fn end_for_ever() -> ! {
    loop {
        for pid in descendants() {
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Waits for the command, and reaps any other descendant that ends before.
fn reap(command: Pid) -> Exit {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => return exit(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Exit::Signal(Signal::KILL.as_raw()),
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}

/// Ends what the command has left running, which would hold its files and outlive its task.
fn end_rest() {
    let start = Instant::now();
    let mut asked = false;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => continue,
            Ok(None) => {}
            Err(_) => return,
        }
        let signal = if start.elapsed() < GRACE_OF_REST { Signal::TERM } else { Signal::KILL };
        if !asked || signal == Signal::KILL {
            // Processes of another user cannot be ended.
            let mut left = descendants();
            left.retain(|pid| kill_process(*pid, signal) != Err(Errno::PERM));
            if left.is_empty() || start.elapsed() > LONGEST_REST {
                return;
            }
            asked = true;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Kills all other processes for whose environment (one slice per entry) `is_one` holds, until none
/// is left. Returns whether none is left, as far as this system shows.
pub(super) fn end_those(is_one: impl Fn(&[&[u8]]) -> bool) -> bool {
    let is_one = |pid: &Pid| {
        let environment =
            fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        *pid != getpid() && is_one(&environment.split(|byte| *byte == 0).collect::<Vec<_>>())
    };
    let start = Instant::now();
    while start.elapsed() < LONGEST_REST {
        let Ok(entries) = fs::read_dir("/proc") else { return false };
        let pids = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
        let left: Vec<_> = pids.filter(is_one).collect();
        if left.is_empty() {
            return true;
        }
        for pid in left {
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    false
}

/// All living processes below this one.
pub(super) fn descendants() -> Vec<Pid> {
    below(process::id())
}

/// All living processes below `top`, as /proc shows them.
fn below(top: u32) -> Vec<Pid> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of_living(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut open) = (Vec::new(), vec![top]);
    while let Some(parent) = open.pop() {
        for pid in children.remove(&parent).unwrap_or_default() {
            found.extend(i32::try_from(pid).ok().and_then(Pid::from_raw));
            open.push(pid);
        }
    }
    found
}

/// The parent of a living process, from `/proc/PID/stat`: `pid (name) state ppid …`, in which the
/// name may hold anything.
pub(super) fn parent_of_living(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.next()?.parse().ok()
}
