//! Many clients at once, each on a thread of its own, that claim and complete tasks as fast as they
//! are answered. It is the same for every transport and every other queue.

use std::io::{self, BufReader};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use serde::Serialize;

use super::Bench;
use super::figure::{Key, Unit, micros};

/// Longest wait for an answer; whoever has not answered by then will not.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A connection on which no read or write waits for ever.
pub(super) fn connect(address: impl ToSocketAddrs) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

/// Waits until a pipe has something to read or is closed.
pub(super) fn await_answer(pipe: impl AsFd, patience: Duration) -> anyhow::Result<()> {
    let patience = Timespec::try_from(patience)?;
    let mut awaited = [PollFd::new(&pipe, PollFlags::IN)];
    ensure!(retry_on_intr(|| poll(&mut awaited, Some(&patience)))? > 0, "{}", no_answer());
    Ok(())
}

/// An error in words. After a timeout on a socket, the system only says to try again.
pub(super) fn in_words(error: &anyhow::Error) -> String {
    let kind = error.downcast_ref().map(io::Error::kind);
    match kind {
        Some(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => no_answer(),
        _ => format!("{error:#}"),
    }
}

fn no_answer() -> String {
    format!("no answer in {} s", PATIENCE.as_secs())
}

/// One client of a queue.
pub(super) trait Worker: Send {
    /// Claims a task; false if there is none.
    fn claim(&mut self) -> anyhow::Result<bool>;

    /// Completes the task that was claimed last.
    fn complete(&mut self) -> anyhow::Result<()>;
}

pub(super) struct Run {
    /// Number of tasks that each worker has completed.
    pub done: Vec<usize>,
    claims: Vec<Duration>,
    completions: Vec<Duration>,
    elapsed: Duration,
    /// Number of refused calls, and the first refusal.
    refused: usize,
    refusal: Option<anyhow::Error>,
}

/// A refusal: the next call may succeed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(pub String);

#[derive(Default)]
struct Own {
    claims: Vec<Duration>,
    completions: Vec<Duration>,
    refused: usize,
    refusal: Option<anyhow::Error>,
    /// Any other error, which fails the whole run: the others' figures would be those of a slow
    /// queue.
    failure: Option<anyhow::Error>,
    end: Option<Instant>,
}

/// Runs the workers for `span`, or until there are no more tasks.
pub(super) fn drive(mut workers: Vec<Box<dyn Worker>>, span: Duration) -> anyhow::Result<Run> {
    // One-time work, such as connecting, is not measured.
    for worker in &mut workers {
        if worker.claim()? {
            worker.complete()?;
        }
    }
    let (ready, start) = (Barrier::new(workers.len() + 1), Barrier::new(workers.len() + 1));
    let (all, began) = thread::scope(|scope| {
        let work = |mut worker: Box<dyn Worker>| {
            let (ready, start) = (&ready, &start);
            scope.spawn(move || {
                ready.wait();
                start.wait();
                work(worker.as_mut(), span)
            })
        };
        let threads: Vec<_> = workers.into_iter().map(work).collect();
        ready.wait();
        let began = Instant::now();
        start.wait();
        let join = |thread: thread::ScopedJoinHandle<'_, Own>| {
            thread.join().map_err(|_| anyhow!("a client has panicked"))
        };
        (threads.into_iter().map(join).collect::<anyhow::Result<Vec<_>>>(), began)
    });
    let mut all = all?;
    if let Some(failure) = all.iter_mut().find_map(|own| own.failure.take()) {
        return Err(failure);
    }
    let refusal = all.iter_mut().find_map(|own| own.refusal.take());
    if all.iter().all(|own| own.completions.is_empty())
        && let Some(refusal) = refusal
    {
        return Err(refusal);
    }
    let elapsed = all.iter().filter_map(|own| own.end).max().unwrap_or(began) - began;
    Ok(Run {
        done: all.iter().map(|own| own.completions.len()).collect(),
        claims: all.iter().flat_map(|own| own.claims.iter().copied()).collect(),
        completions: all.iter().flat_map(|own| own.completions.iter().copied()).collect(),
        elapsed,
        refused: all.iter().map(|own| own.refused).sum(),
        refusal,
    })
}

fn work(worker: &mut dyn Worker, span: Duration) -> Own {
    let mut own = Own::default();
    let start = Instant::now();
    while start.elapsed() < span {
        let asked = Instant::now();
        let found = worker.claim();
        let claimed = Instant::now();
        if let Ok(false) = found {
            break;
        }
        match found.and_then(|_| worker.complete()) {
            Ok(()) => {
                own.claims.push(claimed - asked);
                own.completions.push(claimed.elapsed());
            }
            Err(error) if error.is::<Refused>() => {
                own.refused += 1;
                own.refusal.get_or_insert(error);
            }
            Err(error) => {
                own.failure = Some(error);
                break;
            }
        }
    }
    own.end = Some(Instant::now());
    own
}

impl Run {
    pub(super) fn operations(&self) -> usize {
        self.claims.len() + self.completions.len()
    }

    /// Records operations per second and the times of single claims, as figures of `part` under
    /// `names`.
    pub(super) fn record(&self, bench: &mut Bench, names: &Names, tasks: usize) {
        let key = |name| Key::new(names.part, name).tasks(tasks).clients(self.done.len());
        let rate = self.operations() as f64 / self.elapsed.as_secs_f64().max(1e-9);
        bench.figures.value(key(names.rate), Unit::PerSecond, rate);
        bench.figures.add(key(names.claim), Unit::Micros, self.claims.iter().copied().map(micros));
        if let Some(refusal) = &self.refusal {
            let refused = Key { part: "refused", ..key(names.rate) };
            bench.figures.value(refused, Unit::Calls, self.refused as f64);
            if bench.refusals.iter().all(|other| other.key != refused) {
                bench.refusals.push(Refusal { key: refused, said: refusal.to_string() });
            }
        }
    }
}

/// The first of the refusals that the figure of the same name counts.
#[derive(Serialize)]
pub(super) struct Refusal {
    #[serde(flatten)]
    pub key: Key,
    pub said: String,
}

/// Names of the figures of a queue.
pub(super) struct Names {
    pub part: &'static str,
    pub rate: &'static str,
    pub claim: &'static str,
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn silence_is_not_waited_for_without_end() {
        let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let connection = connect(silent.local_addr().expect("bound")).expect("it listens");
        assert_eq!(connection.get_ref().read_timeout().expect("it is known"), Some(PATIENCE));
        assert_eq!(connection.get_ref().write_timeout().expect("it is known"), Some(PATIENCE));
        let (output, input) = io::pipe().expect("a pipe");
        let waited = await_answer(&output, Duration::from_millis(1));
        assert!(waited.is_err_and(|error| error.to_string() == "no answer in 60 s"));
        drop(input);
        assert!(await_answer(&output, PATIENCE).is_ok(), "it has ended");
        let silence =
            anyhow::Error::from(io::Error::from(io::ErrorKind::WouldBlock)).context("asked");
        assert_eq!(
            (in_words(&silence), in_words(&anyhow!("no").context("asked"))),
            ("no answer in 60 s".to_owned(), "asked: no".to_owned())
        );
    }

    struct Countdown {
        left: Arc<AtomicUsize>,
        open: usize,
    }

    impl Worker for Countdown {
        fn claim(&mut self) -> anyhow::Result<bool> {
            let taken = self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                .is_ok();
            self.open += usize::from(taken);
            Ok(taken)
        }

        fn complete(&mut self) -> anyhow::Result<()> {
            self.open = self.open.checked_sub(1).ok_or_else(|| anyhow!("nothing was claimed"))?;
            Ok(())
        }
    }

    #[test]
    fn every_task_is_done_once_and_then_all_stop() {
        let left = Arc::new(AtomicUsize::new(1_000));
        let workers: Vec<Box<dyn Worker>> = (0..8)
            .map(|_| Box::new(Countdown { left: Arc::clone(&left), open: 0 }) as Box<dyn Worker>)
            .collect();
        let run = drive(workers, Duration::from_secs(60)).expect("all work");
        // Each has done one before.
        assert_eq!(run.done.iter().sum::<usize>(), 992);
        assert_eq!(run.operations(), 2 * 992);
    }

    /// A worker that refuses some or all calls.
    struct Moody {
        calls: usize,
        refuses: fn(usize) -> bool,
    }

    impl Worker for Moody {
        fn claim(&mut self) -> anyhow::Result<bool> {
            self.calls += 1;
            if (self.refuses)(self.calls) {
                return Err(Refused("not now".to_owned()).into());
            }
            Ok(self.calls < 1_000)
        }

        fn complete(&mut self) -> anyhow::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn refusals_are_counted_unless_there_is_nothing_else() {
        let moody =
            |refuses| -> Vec<Box<dyn Worker>> { vec![Box::new(Moody { calls: 0, refuses })] };
        let run =
            drive(moody(|call| call % 2 == 0), Duration::from_secs(60)).expect("it does something");
        assert_eq!((&run.done, run.refused), (&vec![499], 500));
        let mut bench = Bench::small();
        for _ in 0..2 {
            run.record(&mut bench, &Names { part: "doors", rate: "a door", claim: "claim" }, 1);
        }
        let told: Vec<_> = bench
            .refusals
            .iter()
            .map(|refusal| (refusal.key.name, refusal.said.as_str()))
            .collect();
        assert_eq!(told, [("a door", "not now")]);
        let run = drive(moody(|call| call > 1), Duration::from_millis(1));
        assert!(run.is_err_and(|error| error.to_string() == "not now"));
    }

    /// A worker whose connection is lost after some calls.
    struct Mortal(usize);

    impl Worker for Mortal {
        fn claim(&mut self) -> anyhow::Result<bool> {
            self.0 =
                self.0.checked_sub(1).ok_or_else(|| anyhow!("it has closed the connection"))?;
            Ok(true)
        }

        fn complete(&mut self) -> anyhow::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_lost_on_the_way_is_not_slow() {
        let workers: Vec<Box<dyn Worker>> = vec![Box::new(Mortal(5))];
        let error =
            drive(workers, Duration::from_secs(60)).err().expect("it did not get to the end");
        assert_eq!(error.to_string(), "it has closed the connection");
    }
}
