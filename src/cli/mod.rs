//! The command line: one file per command. Commands act as `human`, a leader, unless `--agent`
//! names an agent.

mod add;
mod agents;
mod artifact;
mod ask;
mod assign;
mod backup;
mod bench;
mod board;
mod bundle;
mod call;
mod cancel;
mod checkpoint;
mod claim;
mod complete;
mod completions;
mod connect;
mod diff;
mod discoveries;
mod doctor;
mod edit;
mod exchange;
mod explain;
mod fail;
mod figures;
mod forget;
mod grounds;
mod guard;
mod guess;
mod heartbeat;
mod help;
mod history;
mod hook;
mod init;
mod input;
mod inside;
mod line;
mod log;
mod man;
mod mcp;
mod meant;
mod messages;
mod notify;
mod number;
mod offer;
mod pause;
mod plan;
mod plan_files;
mod print;
mod progress;
mod purge;
mod reference;
mod release;
mod report;
mod reset;
mod restore;
mod results;
mod resume;
mod retry;
mod review;
mod runs;
mod scratch;
mod serve;
mod session;
mod show;
mod snapshot;
mod start;
mod state;
mod status;
mod stop;
mod story;
mod supervise;
mod target;
mod tasks;
mod token;
mod topics;
mod tree;
mod ui;
mod undo;
mod uninstall;
mod watch;
mod web;
mod wording;
mod work;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::FromArgMatches;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing_subscriber::EnvFilter;

pub(crate) use input::{read_input, read_marked, read_one, read_whole};
use line::{
    AUTO, Arguments, Command, LOCAL, LogFormat, command, of_word, own_words, page_size, parser,
    place_of_subcommand, wait_seconds, whole,
};
use report::{
    Declined, FAILED, REFUSED, Telling, blame_and_data, exit_with, report, say, usage_error,
};
use session::{Session, runtime};
use wording::Wording;

use crate::participant::recovery;
use crate::{redact, user};

/// The exit code of a command, or why it failed.
pub type Outcome = anyhow::Result<ExitCode>;

/// Files that any command can open: a shell may allow fewer, and the runtime cannot start then.
const FILES: u64 = 256;

pub fn main() -> ExitCode {
    allow_files(FILES);
    if let Some(text) = topics::asked() {
        // A pager may be closed before it has read all.
        _ = io::stdout().lock().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    let is_alone = is_alone();
    let words = env::args_os().chain(is_alone.then(|| "status".into()));
    let matches = guess::parsed(words.collect()).unwrap_or_else(|error| in_words(&error));
    let mut arguments =
        Arguments::from_arg_matches(&matches).unwrap_or_else(|error| exit_with(&error));
    if is_alone && !Session::new(&arguments).is_ok_and(|session| session.has_board()) {
        return help();
    }
    arguments.local = LOCAL.into_iter().find(|name| matches.subcommand_name() == Some(name));
    // What a short command does to the board, it says itself.
    let is_short = !matches!(
        arguments.command,
        Command::Work(_)
            | Command::Watch(_)
            | Command::Mcp(_)
            | Command::Serve(_)
            | Command::Web(_)
            | Command::Hook(_)
            | Command::Bench(_)
    );
    let is_screen = matches!(arguments.command, Command::Ui(_)) && io::stderr().is_terminal();
    start_log(arguments.log_format, is_short, is_screen);
    let is_hook = matches!(arguments.command, Command::Hook(_));
    let telling = match &arguments.command {
        _ if arguments.json => Telling::Json,
        // Whoever calls operations by name is told operations, not commands.
        Command::Call(_) => Telling::Operations,
        _ => Telling::Commands(Wording::of(&arguments)),
    };
    if let Some(refused) = user::refused_name().filter(|_| is_short) {
        say(&format!("callboard: {}", telling.worded(&refused)));
    }
    let ended = run(arguments);
    for report in recovery::untold().iter().filter(|_| is_short) {
        say(&format!("callboard: {}", telling.worded(report)));
    }
    match ended {
        Ok(code) => code,
        // A failing hook must not get in the way of the session that runs it.
        Err(_) if is_hook => ExitCode::SUCCESS,
        // The reader of our output has left, having read enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => report(&error, &telling),
    }
}

/// Exits with what is wrong with the command line.
fn in_words(error: &clap::Error) -> ! {
    let is_text = |word: &std::ffi::OsString| word.to_str().is_some();
    match env::args_os().skip(1).find(|word| !is_text(word)) {
        Some(word) if error.use_stderr() => {
            let word = word.to_string_lossy().into_owned();
            usage_error(format!("`{word}` is not text in UTF-8, as arguments have to be"))
        }
        _ => exit_with(error),
    }
}

/// Whether `callboard` was typed without a command.
fn is_alone() -> bool {
    let words: Vec<String> = own_words().collect();
    let asks = ["-h", "--help", "-V", "--version", "-v", "-?"];
    place_of_subcommand(&words).is_none() && !words.iter().any(|word| asks.contains(&word.as_str()))
}

fn help() -> ExitCode {
    match parser().print_help() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILED),
    }
}

fn run(mut arguments: Arguments) -> Outcome {
    if let (Some(name), Some(_)) = (arguments.local, &arguments.server) {
        usage_error(format!("`callboard {name}` is about this machine; leave --server out"));
    }
    // As an argument of a call it would be redacted, and would then be no valid id.
    if arguments.agent.as_deref().is_some_and(|agent| redact::text(agent).is_some()) {
        usage_error(
            "--agent has the form of a secret, and everybody reads the names of agents; choose \
             another",
        );
    }
    if let (Command::Work(_), Some(_)) = (&arguments.command, &arguments.agent) {
        usage_error(
            "`callboard work` names its agents itself, after --workflow ID: ID-1, ID-2, …; leave \
             --agent out",
        );
    }
    if let (Command::Serve(_) | Command::Web(_), Some(_)) = (&arguments.command, &arguments.agent) {
        usage_error("a server is for many agents, each of whom says who it is; leave --agent out");
    }
    if let Command::Supervise = arguments.command {
        // It needs nothing of what follows, not even an existing current directory.
        return supervise::run();
    }
    // Help must work whatever is wrong with the directory or the environment.
    match &arguments.command {
        Command::Completions(asked) => return completions::run(asked),
        Command::Man(asked) => return man::run(asked),
        Command::Call(asked) if asked.is_for_help() => return call::help(asked, arguments.json),
        _ => {}
    }
    if let Command::Offer(asked) = &arguments.command {
        arguments.dir = asked.dir();
    }
    let session = Session::new(&arguments)?;
    session.check_link(&arguments.command)?;
    session.expect_something(&arguments.command)?;
    let is_told = arguments.server.is_none()
        && !matches!(arguments.command, Command::Notify(_) | Command::Offer(_));
    let calls = matches!(arguments.command, Command::Call(_));
    session.name_filter();
    let ended = carry_out(&session, arguments.command);
    let ended = ended.map_err(|error| session.in_numbers(error, calls));
    if is_told {
        notify::follow(session.dir());
    }
    ended
}

fn carry_out(session: &Session, command: Command) -> Outcome {
    match command {
        Command::Init(arguments) => init::run(session, arguments),
        Command::Add(arguments) => add::run(session, arguments),
        Command::Status(arguments) => status::run(session, arguments),
        Command::Ui(arguments) => ui::run(session, &arguments),
        Command::Tasks(arguments) => tasks::run(session, arguments),
        Command::Tree(arguments) => tree::run(session, arguments),
        Command::Agents(arguments) => forget::run(session, arguments),
        Command::Show(arguments) => show::run(session, arguments),
        Command::Claim(arguments) => claim::run(session, arguments),
        Command::Start(arguments) => start::run(session, arguments),
        Command::Complete(arguments) => complete::run(session, arguments),
        Command::Fail(arguments) => fail::run(session, arguments),
        Command::Release(arguments) => release::run(session, arguments),
        Command::Cancel(arguments) => cancel::run(session, arguments),
        Command::Report(arguments) => figures::run(session, arguments),
        Command::Uninstall(arguments) => uninstall::run(session, arguments),
        Command::Undo(arguments) => undo::run(session, arguments),
        Command::Retry(arguments) => retry::run(session, arguments),
        Command::Approve(arguments) => review::approve(session, arguments),
        Command::Reject(arguments) => review::reject(session, arguments),
        Command::Edit(arguments) => edit::run(session, arguments),
        Command::Log(arguments) => story::run(session, arguments),
        Command::Diff(arguments) => diff::run(session, arguments),
        Command::Results(arguments) => results::run(session, arguments),
        Command::Reset(arguments) => reset::run(session, arguments),
        Command::Explain(arguments) => explain::run(session, arguments),
        Command::Plan(arguments) => plan::run(session, arguments),
        Command::Import(arguments) => exchange::import::run(session, arguments),
        Command::Export(arguments) => exchange::export::run(session, arguments),
        Command::Verify(arguments) => exchange::verify::run(session, arguments),
        Command::Heartbeat(arguments) => heartbeat::run(session, arguments),
        Command::Pause(arguments) => pause::run(session, arguments),
        Command::Resume(arguments) => resume::run(session, arguments),
        Command::Assign(arguments) => assign::run(session, arguments),
        Command::Stop(arguments) => stop::run(session, arguments),
        Command::Work(arguments) => work::run(session, &arguments),
        Command::Supervise => supervise::run(),
        Command::Watch(arguments) => watch::run(session, arguments),
        Command::Discoveries(arguments) => discoveries::run(session, arguments),
        Command::Messages(arguments) => messages::run(session, arguments),
        Command::Send(arguments) => messages::send(session, arguments),
        Command::Answer(arguments) => messages::answer(session, arguments),
        Command::Reply(arguments) => messages::reply(session, arguments),
        Command::Runs(arguments) => runs::run(session, arguments),
        Command::Run(arguments) => runs::one(session, arguments),
        Command::Sessions(arguments) => runs::sessions(session, arguments),
        Command::History(arguments) => history::run(session, arguments),
        Command::State(arguments) => state::run(session, arguments),
        Command::Snapshot(arguments) => snapshot::run(session, arguments),
        Command::Bundle(arguments) => bundle::run(session, arguments),
        Command::Checkpoint(arguments) => checkpoint::run(session, arguments),
        Command::Artifact(arguments) => artifact::run(session, arguments),
        Command::Backup(arguments) => backup::run(session, arguments),
        Command::Restore(arguments) => restore::run(session, arguments),
        Command::Notify(arguments) => notify::run(session, &arguments),
        Command::Purge(arguments) => purge::run(session, &arguments),
        Command::Doctor(arguments) => doctor::run(session, &arguments),
        Command::Bench(arguments) => bench::run(session, arguments),
        Command::Mcp(arguments) => mcp::run(session, arguments),
        Command::Serve(arguments) => serve::run(session, arguments),
        Command::Web(arguments) => web::run(session, &arguments),
        Command::Token(arguments) => token::run(session, arguments),
        Command::Call(arguments) => call::run(session, arguments),
        Command::Guard(arguments) => guard::run(session, &arguments),
        Command::Hook(arguments) => hook::run(session, &arguments),
        Command::Connect(arguments) => session.connect(&arguments),
        Command::Offer(arguments) => offer::run(session, &arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// Raises the limit of open files to `wanted`, or as far as the system lets this process.
fn allow_files(wanted: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current.is_some_and(|current| current < wanted) {
        // What cannot be opened is said then.
        _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// Logs to standard error: standard output belongs to the protocol and to replies. A terminal that
/// shows a screen takes no log.
fn start_log(format: LogFormat, is_short: bool, is_screen: bool) {
    let filter = EnvFilter::try_from_env("CALLBOARD_LOG").unwrap_or_else(|_| {
        let filter = "warn,rmcp=error,rmcp::service=off,rustls_platform_verifier=off";
        let more = if is_short { ",callboard::participant::recovery=error" } else { "" };
        EnvFilter::new(format!("{filter}{more}"))
    });
    let filter = if is_screen { EnvFilter::new("off") } else { filter };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| log::Lines)
        .with_ansi(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
