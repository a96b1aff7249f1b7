//! `callboard bench`: what operations cost on this machine, compared with what its disk needs and
//! what other queues do.
//!
//! Each round measures every part, so that other load on the machine affects all of them alike.

mod calibration;
mod commit;
mod doors;
mod drive;
mod engine;
mod figure;
mod goals;
mod last_words;
mod machine;
mod others;
#[cfg(feature = "peers")]
mod peers;
mod place;
mod plot;
mod report;
mod startup;
mod waiting;
mod web_socket;

use std::fmt;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

use super::{Outcome, REFUSED, Session, print, runtime, say, usage_error};
use crate::signal;
use figure::Figures;
use place::{Allowed, Place};
use report::Report;

/// Options of `callboard bench`. The boards that are measured are made below `--dir`, which all
/// commands take, and removed afterwards.
#[derive(clap::Args)]
#[command(
    after_help = "Boards are made in a new directory below --dir. Without --dir, it is made in the first of these that is \
    on a disk: the system's directory for temporary files, /var/tmp, the current directory. It is removed at the end, also \
    when you interrupt the command. No board that you have is touched.\n\nExamples:\n  \
    callboard bench --quick\n  \
    callboard bench --only commit --rounds 20\n  \
    callboard bench --peers --svg cost.svg --json > bench.json"
)]
pub(super) struct Arguments {
    /// Use small boards and few samples, for a first look
    #[arg(long)]
    quick: bool,
    /// Number of rounds, each of which measures everything [default: 5; 2 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Measure only this part; may be repeated
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Also measure the other queues that are installed: beanstalkd, Redis, PostgreSQL, NATS
    /// JetStream. Only a build with `--features peers` has their clients
    #[arg(long)]
    peers: bool,
    /// Draw the cost of a claim on larger and larger boards into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Exit with 1 if a goal is missed or none was measured; with --peers, also if none was
    /// compared with another queue
    #[arg(long)]
    check: bool,
    /// Also measure on a file system in memory, such as tmpfs, where nothing lasts
    #[arg(long)]
    allow_memory: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Part {
    /// What the disk takes for an append, a replaced file and a SQLite commit
    Calibration,
    /// Claims decided and applied in memory
    Engine,
    /// Durable claims in one process
    Commit,
    /// The program over stdio, HTTP and WebSocket
    Doors,
    /// Eight processes on one directory
    Processes,
    /// The first reply of a new process, and its memory
    Start,
    /// What HTTP adds to a call
    Added,
    /// Calls beside many callers that wait or listen
    Waiting,
}

impl Part {
    fn is_durable(self) -> bool {
        self != Self::Engine
    }

    fn is_drawn(self) -> bool {
        matches!(self, Self::Calibration | Self::Commit)
    }

    fn measure(self, bench: &mut Bench) -> anyhow::Result<Box<dyn Measure>> {
        Ok(match self {
            Self::Calibration => Box::new(calibration::Calibration::new(bench)?),
            Self::Engine => Box::new(engine::Engine::default()),
            Self::Commit => Box::new(commit::Commits::new(bench)?),
            Self::Doors => Box::new(doors::Doors),
            Self::Processes => Box::new(doors::Processes),
            Self::Start => Box::new(startup::Startup::new(bench)?),
            Self::Added => Box::new(waiting::OverHttp::new(bench)?),
            Self::Waiting => Box::new(waiting::Waiting::new()?),
        })
    }
}

/// Sizes of boards and numbers of samples.
struct Size {
    rounds: u32,
    /// Single calls of each kind per round.
    samples: usize,
    /// Time that many clients work per round.
    span: Duration,
    clients: Vec<usize>,
    /// Sizes, in tasks, of the boards on which single claims are measured.
    tasks: Vec<usize>,
    /// Sizes, in tasks, of the engine's states, and the claims decided on each.
    engine: Vec<usize>,
    decided: usize,
    /// Size, in tasks, of the board on which many clients work.
    work: usize,
    /// Size, in tasks, of the board on which processes are started.
    started: usize,
    /// Numbers of waiting claims.
    waiting: Vec<usize>,
    /// Number of listeners, and of events that each reads.
    listeners: (usize, usize),
}

impl Size {
    fn of(arguments: &Arguments) -> Self {
        let size = if arguments.quick {
            Self {
                rounds: 2,
                samples: 10,
                span: Duration::from_millis(200),
                clients: vec![1, 8],
                tasks: vec![100, 1_000],
                engine: vec![1_000, 10_000],
                decided: 200,
                work: 1_000,
                started: 1_000,
                waiting: vec![0, 64],
                listeners: (16, 1_000),
            }
        } else {
            Self {
                rounds: 5,
                samples: 40,
                span: Duration::from_secs(1),
                clients: vec![1, 8, 64],
                tasks: vec![100, 1_000, 10_000, 100_000],
                engine: vec![1_000, 100_000, 1_000_000],
                decided: 2_000,
                work: 10_000,
                started: 100_000,
                waiting: vec![0, 64, 1_024, 8_000],
                listeners: (1_000, 10_000),
            }
        };
        Self { rounds: arguments.rounds.unwrap_or(size.rounds), ..size }
    }
}

/// State shared by all measurements.
struct Bench {
    size: Size,
    place: Place,
    figures: Figures,
    /// The other queues, and why some are missing.
    found: Vec<others::Found>,
    refusals: Vec<drive::Refusal>,
    bar: ProgressBar,
}

impl Bench {
    fn new(size: Size, place: Place, bar: ProgressBar) -> Self {
        Self {
            size,
            place,
            figures: Figures::default(),
            found: Vec::new(),
            refusals: Vec::new(),
            bar,
        }
    }

    /// Shows on a terminal what is measured now.
    fn begin(&self, what: impl fmt::Display) {
        self.bar.inc(1);
        self.bar.set_message(what.to_string());
    }
}

/// A part of the benchmark.
trait Measure {
    /// Takes the samples of one round.
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()>;
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    if arguments.peers && !cfg!(feature = "peers") {
        usage_error(
            "--peers needs the clients of the other queues: cargo build --release --features peers",
        );
    }
    if arguments.peers && !arguments.only.is_empty() && !arguments.only.contains(&Part::Doors) {
        usage_error("--peers is compared with the doors; add --only doors or leave --only out");
    }
    let parts: Vec<_> = Part::value_variants()
        .iter()
        .copied()
        .filter(|part| arguments.only.is_empty() || arguments.only.contains(part))
        .collect();
    if let Some(path) = &arguments.svg {
        if !parts.iter().any(|part| part.is_drawn()) {
            usage_error(
                "--svg draws what --only commit and --only calibration measure; add one or leave \
                 --only out",
            );
        }
        check_writable(path)
            .with_context(|| format!("nothing can be drawn into {}", path.display()))?;
    }
    let allowed = Allowed {
        memory: arguments.allow_memory || !parts.iter().any(|part| part.is_durable()),
        network: session.allow_network_filesystem,
    };
    let place = Place::new(session.dir_given.as_deref(), allowed)?;
    let bar = if io::stderr().is_terminal() { bar() } else { ProgressBar::hidden() };
    clear_away_at_signal(place.path(), bar.clone())?;
    let mut bench = Bench::new(Size::of(&arguments), place, bar);
    let report = measure(&parts, arguments.peers, &mut bench);
    bench.bar.finish_and_clear();
    let mut report = report?;
    if let Some(path) = &arguments.svg {
        let drawn = plot::svg(&plot::curves(&bench.figures));
        fs_err::write(path, drawn).context("the drawing cannot be written")?;
    }
    if session.json {
        print::json(&report.value(&bench))?
    } else {
        report.page(&bench, session.coloured()).print()?
    }
    match report.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(if arguments.check { checked(&report) } else { ExitCode::SUCCESS }),
    }
}

fn checked(report: &Report) -> ExitCode {
    if report.goals.is_empty() {
        say("callboard: there is no goal for what was measured, so none is met; leave --only \
             out, or name other parts");
    }
    if !report.not_measured.is_empty() {
        say(&format!(
            "callboard: neither met nor missed, because not measured: {}",
            report.not_measured.join("; ")
        ));
    }
    if report.passes() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) }
}

/// Fails early if the drawing could not be written, before hours are spent on measuring.
fn check_writable(path: &Path) -> anyhow::Result<()> {
    ensure!(!path.is_dir(), "it is a directory");
    let parent =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.exists() {
        drop(fs_err::OpenOptions::new().append(true).open(path)?)
    } else {
        drop(tempfile::tempfile_in(parent).with_context(|| format!("{}", parent.display()))?)
    }
    Ok(())
}

/// Removes the boards when a signal interrupts the benchmark. Servers end with this process.
fn clear_away_at_signal(boards: &Path, bar: ProgressBar) -> anyhow::Result<()> {
    let boards = boards.to_owned();
    let runtime = runtime()?;
    let entered = runtime.enter();
    let signal = signal::ending()?;
    drop(entered);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let signal = runtime.block_on(signal);
        bar.finish_and_clear();
        let error = place::become_nothing(&boards, 128 + signal);
        say(&format!("callboard: {} could not be removed: {error}", boards.display()));
        std::process::exit(128 + signal);
    })?;
    Ok(())
}

#[cfg(test)]
impl Bench {
    fn small() -> Self {
        let arguments = Arguments {
            quick: true,
            rounds: None,
            only: Vec::new(),
            peers: false,
            svg: None,
            check: false,
            allow_memory: true,
        };
        let place = Place::new(None, Allowed { memory: true, network: false }).expect("a place");
        Self::new(Size::of(&arguments), place, ProgressBar::hidden())
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn measure(parts: &[Part], with_peers: bool, bench: &mut Bench) -> anyhow::Result<Report> {
    let load_before = machine::load();
    let mut measures = Vec::new();
    for part in parts {
        let name =
            part.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        measures.push(part.measure(bench).map_err(|error| failed_in(&name, &error))?);
        // The other queues are measured right after the doors that they are compared with.
        if with_peers && *part == Part::Doors {
            #[cfg(feature = "peers")]
            measures.push(Box::new(peers::Peers::new(bench)?));
        }
    }
    let failure = rounds(&mut measures, bench)?;
    Ok(Report::of(bench, load_before, failure))
}

/// Runs all rounds. An error in the first fails the call; a later one ends the rounds, and is
/// returned as the reason why there are fewer.
fn rounds(
    measures: &mut [Box<dyn Measure>],
    bench: &mut Bench,
) -> anyhow::Result<Option<anyhow::Error>> {
    let rounds = bench.size.rounds;
    for round in 1..=rounds {
        bench.figures.begin_round();
        let steps = bench.bar.position();
        if let Err(error) = measures.iter_mut().try_for_each(|measure| measure.round(bench)) {
            let error = failed_in(&format!("{}, round {round}", bench.bar.message()), &error);
            if round == 1 {
                return Err(error);
            }
            bench.figures.forget_round();
            bench.size.rounds = round - 1;
            return Ok(Some(error));
        }
        if round == 1 {
            // The first round has shown how many steps each takes.
            let each = bench.bar.position() - steps;
            bench.bar.set_length(steps + each * u64::from(rounds));
            if let Ok(style) =
                ProgressStyle::with_template("{bar:30} {percent:>3} % {elapsed:>4} {wide_msg}")
            {
                bench.bar.set_style(style);
            }
        }
    }
    Ok(None)
}

/// The error in words only: the broken pipe to a server must not look like a reader of our own
/// output that left.
fn failed_in(what: &str, error: &anyhow::Error) -> anyhow::Error {
    anyhow!("{what}: {error:#}")
}

#[cfg(test)]
mod tests {
    use figure::{Key, Unit};

    use super::*;

    /// A measurement that fails in the round with this number.
    struct Failing(u32);

    impl Measure for Failing {
        fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
            bench.begin("a part");
            bench.figures.value(Key::new("part", "name"), Unit::Calls, f64::from(self.0));
            self.0 -= 1;
            match self.0 {
                0 => Err(io::Error::from(io::ErrorKind::BrokenPipe).into()),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn failure_leaves_the_whole_rounds_before_it() {
        let mut bench = Bench::small();
        bench.size.rounds = 5;
        let failure = rounds(&mut [Box::new(Failing(3))], &mut bench)
            .expect("two were whole")
            .expect("one was not");
        assert_eq!(failure.to_string(), "a part, round 3: broken pipe");
        assert!(!crate::cli::is_broken_pipe(&failure));
        assert_eq!((bench.size.rounds, bench.figures.list()[0].count()), (2, 2));
        let report = Report::of(&bench, None, Some(failure)).value(&bench);
        assert_eq!(report["failure"], "a part, round 3: broken pipe");
        let failure = rounds(&mut [Box::new(Failing(1))], &mut bench)
            .expect_err("there is nothing to report");
        assert_eq!(failure.to_string(), "a part, round 1: broken pipe");
    }
}
