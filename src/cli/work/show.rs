//! What is shown of the work: lines for people, with progress bars on a terminal, or one JSON
//! object per event.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::bundle::News;
use super::ledger::Tally;
use crate::cli::plan_files::PlanFile;
use crate::cli::{Session, print};
use crate::redact;
use crate::state::id::{AgentId, TaskId};
use crate::state::workflow::{Budget, Spent};

const TICK: Duration = Duration::from_millis(200);
/// Most lines that wait for the reader. If it does not read, further ones are dropped, and the work
/// goes on.
const WAITING: usize = 1_024;
/// Time that a reader gets for the last lines.
const LINGER: Duration = Duration::from_secs(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event<'e> {
    Began {
        workflow: &'e str,
        agents: usize,
        continued: bool,
        command: &'e [String],
    },
    /// Whether the command gets the bundle that was asked for.
    Bundle(News<'e>),
    /// The file of a plan is not what was imported.
    PlanFile(&'e PlanFile),
    /// Failed tasks that are available again, as the person asked.
    Again {
        tasks: &'e [TaskId],
    },
    /// A task that was held before an interruption.
    TakenUp {
        agent: &'e AgentId,
        task: &'e TaskId,
        attempt: u32,
    },
    Claimed {
        agent: &'e AgentId,
        task: &'e TaskId,
        title: &'e str,
        attempt: u32,
    },
    Running {
        agent: &'e AgentId,
        task: &'e TaskId,
        r#try: u32,
        pid: u32,
        log: String,
    },
    /// A try without a limit takes long: it may hang.
    Long {
        agent: &'e AgentId,
        task: &'e TaskId,
        seconds: u64,
    },
    /// The most that the processes of a try had together.
    Used {
        agent: &'e AgentId,
        task: &'e TaskId,
        r#try: u32,
        memory_bytes: u64,
        open_files: u64,
    },
    Checkpoint {
        agent: &'e AgentId,
        task: &'e TaskId,
    },
    Retrying {
        agent: &'e AgentId,
        task: &'e TaskId,
        category: &'static str,
        error: &'e str,
        pause_seconds: f64,
    },
    Done {
        agent: &'e AgentId,
        task: &'e TaskId,
        seconds: f64,
        tokens: u64,
    },
    Failed {
        agent: &'e AgentId,
        task: &'e TaskId,
        category: &'static str,
        error: &'e str,
        status: &'e str,
        attempts_left: u64,
    },
    Released {
        agent: &'e AgentId,
        task: &'e TaskId,
        reason: &'e str,
    },
    Lost {
        agent: &'e AgentId,
        task: &'e TaskId,
        reason: &'e str,
    },
    Waiting {
        agent: &'e AgentId,
        r#for: &'e str,
    },
    Paused {
        seconds: f64,
        failures: u32,
    },
    Stopping {
        reason: &'e str,
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<&'static str>,
        /// Nothing runs any more: the end follows, which says the same.
        #[serde(skip)]
        is_last: bool,
    },
    Problem {
        message: &'e str,
    },
    Ended(&'e Summary),
}

#[derive(Serialize)]
pub(super) struct Summary {
    pub workflow: String,
    /// Why the work ended.
    pub reason: String,
    /// Everything that there was to do is done.
    pub finished: bool,
    pub seconds: f64,
    #[serde(flatten)]
    pub tally: Tally,
    /// Number of events that were dropped because the reader was too slow.
    #[serde(skip_serializing_if = "is_none")]
    pub untold: u64,
    pub remaining: Remaining,
    pub spent: Spent,
    #[serde(skip_serializing_if = "Budget::is_empty")]
    pub budget_left: Budget,
    /// Command that leads on, if something is left: it continues the work, and retries what failed
    /// where nothing else can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Number of tasks left in the scope, also those that other agents work on.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Remaining {
    pub ready: u64,
    pub blocked: u64,
    pub waiting_retry: u64,
    pub held: u64,
    pub in_review: u64,
    pub failed: u64,
}

fn is_none(number: &u64) -> bool {
    *number == 0
}

pub(super) struct Show {
    json: bool,
    bars: Option<SyncSender<Move>>,
    lines: Option<SyncSender<String>>,
    /// Closed when everything is written.
    written: Receiver<()>,
    untold: Cell<u64>,
}

/// A change to the progress bars.
enum Move {
    Total { done: u64, of: u64 },
    Agent(AgentId, String),
}

/// Progress bars, on a thread of their own: a terminal may accept no output.
struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    agents: BTreeMap<AgentId, ProgressBar>,
}

impl Show {
    pub(super) fn new(session: &Session) -> io::Result<Self> {
        let is_watched = !session.json && io::stderr().is_terminal();
        let all = is_watched.then(MultiProgress::new);
        // If the lines go elsewhere, they do not disturb the bars, and an unread line must not
        // block them.
        let around = all.clone().filter(|_| io::stdout().is_terminal());
        let (ends, written) = channel();
        let lines =
            on_a_thread("output", ends.clone(), move |lines| write(&lines, around.as_ref()))?;
        let bars =
            all.map(|all| on_a_thread("bars", ends, move |moves| Bars::new(all).follow(moves)));
        Ok(Self {
            json: session.json,
            bars: bars.transpose()?,
            lines: Some(lines),
            written,
            untold: Cell::default(),
        })
    }

    pub(super) fn tell(&self, event: &Event) {
        let line = if self.json {
            let mut told = serde_json::to_value(event).unwrap_or_default();
            redact::value(&mut told);
            print::harmless_json(&told.to_string())
        } else {
            match sentence(event) {
                Some(text) => {
                    print::harmless(&redact::text(&text).map_or(text, |(clean, _)| clean))
                }
                None => return self.move_bars(event),
            }
        };
        let patience = if matches!(event, Event::Ended(_)) { LINGER } else { Duration::ZERO };
        self.send(line, patience);
        self.move_bars(event);
    }

    fn send(&self, mut line: String, patience: Duration) {
        let start = Instant::now();
        let Some(lines) = &self.lines else { return };
        while let Err(TrySendError::Full(back)) = lines.try_send(line) {
            if start.elapsed() >= patience {
                return self.untold.set(self.untold.get() + 1);
            }
            line = back;
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    pub(super) fn untold(&self) -> u64 {
        self.untold.get()
    }

    fn move_bars(&self, event: &Event) {
        let (agent, text) = match event {
            Event::Claimed { agent, task, title, .. } => (agent, format!("{task} {title}")),
            Event::Running { agent, task, r#try, .. } => {
                (agent, format!("{task}, try {try}", r#try = r#try))
            }
            Event::Retrying { agent, task, category, .. } => {
                (agent, format!("{task}: {category}, waits to try again"))
            }
            Event::Waiting { agent, r#for } => (agent, format!("waits for {for}", r#for = r#for)),
            Event::Done { agent, .. }
            | Event::Failed { agent, .. }
            | Event::Released { agent, .. } => (agent, String::new()),
            _ => return,
        };
        self.move_to(Move::Agent(AgentId::clone(agent), print::headline(&text)));
    }

    /// Updates how much of the scope is done.
    pub(super) fn progress(&self, done: u64, of: u64) {
        self.move_to(Move::Total { done, of });
    }

    fn move_to(&self, to: Move) {
        if let Some(bars) = &self.bars {
            // What a terminal does not accept, nobody sees.
            let _ = bars.try_send(to);
        }
    }
}

/// Runs `work` on a thread; what is sent goes to it. `ends` is dropped when it has finished.
fn on_a_thread<T: Send + 'static>(
    name: &str,
    ends: Sender<()>,
    work: impl FnOnce(Receiver<T>) + Send + 'static,
) -> io::Result<SyncSender<T>> {
    let (sender, given) = sync_channel(WAITING);
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        work(given);
        drop(ends);
    })?;
    Ok(sender)
}

impl Drop for Show {
    fn drop(&mut self) {
        (self.lines, self.bars) = (None, None);
        // A closed channel, an error here, also says that it has ended.
        let _ = self.written.recv_timeout(LINGER);
    }
}

/// Writes lines until the reader leaves, having read enough.
fn write(lines: &Receiver<String>, around: Option<&MultiProgress>) {
    for line in lines {
        let write = || writeln!(io::stdout().lock(), "{line}");
        let written = match around {
            Some(bars) => bars.suspend(write),
            None => write(),
        };
        if written.is_err() {
            return;
        }
    }
}

impl Bars {
    fn new(all: MultiProgress) -> Self {
        let total = all.add(ProgressBar::new(0));
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} tasks {elapsed}") {
            total.set_style(style);
        }
        total.enable_steady_tick(TICK);
        Self { all, total, agents: BTreeMap::new() }
    }

    fn follow(mut self, moves: Receiver<Move>) {
        for to in moves {
            match to {
                Move::Total { done, of } => {
                    self.total.set_length(of);
                    self.total.set_position(done);
                }
                Move::Agent(agent, text) => self.show(agent, text),
            }
        }
        self.agents.values().for_each(ProgressBar::finish_and_clear);
        self.total.finish_and_clear();
    }

    fn show(&mut self, agent: AgentId, text: String) {
        let prefix = agent.to_string();
        let bar = self.agents.entry(agent).or_insert_with(|| {
            let bar = self.all.add(ProgressBar::new_spinner());
            if let Ok(style) =
                ProgressStyle::with_template("{spinner} {prefix} {wide_msg} {elapsed:>4}")
            {
                bar.set_style(style);
            }
            bar.enable_steady_tick(TICK);
            bar.with_prefix(prefix)
        });
        bar.reset_elapsed();
        bar.set_message(text);
    }
}

/// The event as a line for people; none if only a bar or a program needs it.
fn sentence(event: &Event) -> Option<String> {
    Some(match event {
        Event::Began { workflow, agents, continued, command } => {
            let how = if *continued { "continuing" } else { "working for" };
            format!("{how} workflow {workflow}, {agents} agents: {}", command.join(" "))
        }
        Event::Bundle(news) => news.sentence(),
        Event::PlanFile(file) => file.says.clone(),
        Event::Again { tasks } => {
            let ids: Vec<_> = tasks.iter().map(TaskId::as_str).collect();
            format!("available again, after they failed: {}", named(&ids))
        }
        Event::TakenUp { agent, task, attempt } => {
            format!("{agent}: took up {task}, attempt {attempt}, where it was left")
        }
        Event::Claimed { agent, task, title, attempt } => {
            format!("{agent}: claimed {task}, attempt {attempt}: {}", print::headline(title))
        }
        Event::Running { .. }
        | Event::Waiting { .. }
        | Event::Used { .. }
        | Event::Checkpoint { .. } => return None,
        Event::Long { agent, task, seconds } => format!(
            "{agent}: {task} has run for {} and may hang; --timeout TIME ends a try that takes \
             longer",
            if *seconds < 60 { format!("{seconds} s") } else { format!("{} min", seconds / 60) }
        ),
        Event::Retrying { agent, task, category, error, pause_seconds } => {
            format!(
                "{agent}: {task} failed ({category}): {}; tries again in {pause_seconds:.0} s",
                print::headline(error)
            )
        }
        Event::Done { agent, task, seconds, tokens: 0 } => {
            format!("{agent}: completed {task} in {seconds:.1} s")
        }
        Event::Done { agent, task, seconds, tokens } => {
            format!("{agent}: completed {task} in {seconds:.1} s with {tokens} tokens")
        }
        Event::Failed { agent, task, category, error, status, attempts_left } => {
            let error = print::headline(error);
            match *status {
                "available" => format!(
                    "{agent}: {task} failed ({category}): {error}; it will be tried again, \
                     {attempts_left} attempts are left"
                ),
                "failed" => format!("{agent}: gave {task} up ({category}): {error}"),
                status => {
                    format!("{agent}: {task} failed ({category}): {error}; it is {status} now")
                }
            }
        }
        Event::Released { agent, task, reason } => format!("{agent}: released {task}: {reason}"),
        Event::Lost { agent, task, reason } => {
            format!("{agent}: {task} is not its own any more: {reason}")
        }
        Event::Paused { seconds, failures } => {
            format!(
                "the command failed {failures} times in a row; nothing is run for {seconds:.0} s"
            )
        }
        Event::Stopping { is_last: true, .. } => return None,
        Event::Stopping { reason, hint: None, .. } => format!("stopping: {reason}"),
        Event::Stopping { reason, hint: Some(hint), .. } => format!("stopping: {reason}; {hint}"),
        Event::Problem { message } => format!("problem: {message}"),
        Event::Ended(summary) => return Some(closing(summary)),
    })
}

/// Most tasks that one line names.
const NAMED: usize = 10;

/// The first of `tasks`, and how many more there are.
pub(super) fn named(tasks: &[&str]) -> String {
    let more = tasks.len().saturating_sub(NAMED);
    let first = tasks[..tasks.len() - more].join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

fn closing(summary: &Summary) -> String {
    let Summary { tally, remaining, spent, .. } = summary;
    let mut lines = vec![format!("ended after {:.1} s: {}", summary.seconds, summary.reason)];
    lines.push(format!(
        "done: {} completed, {} given up ({} for good), {} released, {} lost; {} tries, {} of \
         them again, {} taken up",
        tally.done,
        tally.given_up,
        tally.parked,
        tally.released,
        tally.lost,
        tally.tries,
        tally.retries,
        tally.recovered
    ));
    lines.push(format!(
        "remaining: {} ready, {} blocked, {} waiting for a retry, {} held, {}{} failed or cancelled",
        remaining.ready,
        remaining.blocked,
        remaining.waiting_retry,
        remaining.held,
        match remaining.in_review {
            0 => String::new(),
            1 => "1 waits for review, ".to_owned(),
            more => format!("{more} wait for review, "),
        },
        remaining.failed
    ));
    lines.push(format!(
        "spent by workflow {} in all: {} attempts, {} tokens, {} s",
        summary.workflow, spent.attempts, spent.tokens, spent.seconds
    ));
    if tally.peak_memory_bytes > 0 {
        lines.push(format!(
            "most of one try: {:.1} MB of memory, {} open files",
            tally.peak_memory_bytes as f64 / 1e6,
            tally.peak_open_files
        ));
    }
    if let Some(next) = &summary.next {
        lines.push(format!("next: {next}"));
    }
    lines.join("\n")
}
