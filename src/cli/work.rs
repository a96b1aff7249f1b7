//! `callboard work`: turns any command into a durable worker. Its agents claim tasks, run the
//! command for each, retry where that may help, and save their progress on the board, so that an
//! interruption loses nothing.

mod again;
mod breaker;
mod bundle;
mod checkout;
mod child;
mod enlist;
mod failure;
mod git;
mod ledger;
mod log;
mod output;
mod own;
mod shop;
mod show;
mod worker;

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

use super::connect::quoted;
use super::print::Page;
use super::{
    Outcome, REFUSED, Session, place_of_subcommand, plan_files, runtime, supervise, usage_error,
};
use crate::ops::input::check_scope;
use crate::participant::{AgentChoice, CallError, Caller, Handle, Stay, directory};
use crate::state::State;
use crate::state::claim::in_scope;
use crate::state::digest::sha256;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, TaskId, WorkflowId};
use crate::state::refusal::Refusal;
use crate::state::workflow::{Budget, Spent};
use again::Again;
use bundle::Handed;
use checkout::{Before, Checkout};
use enlist::{Enlisted, agents_of, enlist, ids, known, name};
use ledger::Ledger;
use shop::{Reason, Settings, Shop, Urgency};
use show::{Event, Remaining, Show, Summary};
use worker::Worker;

/// Most tasks that a dry run lists.
const NAMED: usize = 10;
/// Least memory, in bytes, that a process may be limited to: with less, none starts.
const LEAST_MEMORY: u64 = 16 << 20;
/// Exit code after a second signal.
const INTERRUPTED: u8 = 130;

const HELP: &str = "\
Input of the command:
  Standard input is one line of JSON: task, attempt, try, agent_id, workflow_id, handoff, \
                    checkpoint, persona_state, attempts, bundle.
  In the environment: CALLBOARD_TASK_ID, CALLBOARD_TASK_TITLE, CALLBOARD_TASK_DESCRIPTION, \
                    CALLBOARD_TASK_PATH, CALLBOARD_ATTEMPT, CALLBOARD_TRY, CALLBOARD_AGENT and \
                    CALLBOARD_WORKFLOW.
  COORDINATION_DIR is the board's directory.
  CALLBOARD_TOKEN, the token of a server, is taken out unless --pass-token is given.

Output of the command:
  Exit code 0 completes the task with what was printed.
  A JSON object on the last line of standard output becomes the result's data.
  `tokens` in that object counts against the budget.
  `error` {category, message} in that object makes the try a failure; the category is timeout, \
                    transient, rate_limited or permanent.
  A line `::callboard::checkpoint {…}` keeps its object for the next try, whichever agent makes it.
  All output goes to logs/TASK/ in the board's directory; of a try that prints much, the beginning \
                    and the end stay.

Failures, by the command's exit code:
  75 is transient: the next try may succeed.
  124 is a timeout.
  64 to 68, 72, 77, 78, 126 and 127 are permanent: the task is not tried again, and waits for a \
                    person.
  Any other code is transient, unless what was printed tells of a rate limit or a timeout.
  A leader or a changed plan can ask for the end of a task: the command is ended and the task \
                    given back, which is no failure.

Bundles, with --state-scope:
  `bundle` in the input is the newest sound bundle of that scope (`callboard bundle save`): its \
                    prompts, settings and context, model_id, base_url, and `restored`.
  CALLBOARD_MODEL_ID, CALLBOARD_BASE_URL, CALLBOARD_STATE_SCOPE and CALLBOARD_BUNDLE_SHA256 (for \
                    `callboard bundle refine --prev-sha`) say the same in the environment.
  --model-id and --base-url (or CALLBOARD_MODEL_ID and CALLBOARD_BASE_URL where the work is \
                    started), --prompt and --setting override it.
  A damaged bundle is moved aside, and the one before it is used.
  Without a sound bundle, the work says so and goes on; `restored` is false.

Worktrees, with --worktree:
  Each agent works in worktrees/AGENT in the board's directory, on the branch callboard/AGENT, \
                    which begins at HEAD.
  A completed task becomes a commit on that branch.
  A commit that a task made elsewhere, or took off the branch, is kept as refs/callboard/done/TASK \
                    if nothing names it.
  What was not completed is kept as refs/callboard/TASK/ATTEMPT.
  What a dead worker left is kept as refs/callboard/left/AGENT/TIME.
  Where git cannot keep all of it, as with a repository inside the worktree, the whole worktree \
                    becomes worktrees/AGENT.left-N, and the agent gets a new one.
  The repository's hooks and its file system monitor do not run for any of it: an agent may have \
                    written them.
  Filters that its configuration names (such as Git LFS) do run where a task's files are committed \
                    or set back, because the files would be wrong without them.
  Commits of a task's dependencies are not merged into its branch: each task names its commit in \
                    its result, and the command merges what it builds on.

Interruption:
  The first Ctrl-C or SIGTERM lets running tasks end and claims no more.
  The second ends the command with all that it started, and gives its task back.
  After any interruption, even SIGKILL, --workflow ID --continue goes on where the work stopped.

Exit codes:\x20
  0   all went as it was asked
  1   tasks failed for good, a budget is spent or nothing can be done
  2   the command line is wrong
  3   the board cannot be used
  130 ended by a second signal";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// Command with its arguments, quoted as for a shell, although no shell runs it
    #[arg(long, value_name = "CMD", required_unless_present = "command")]
    exec: Option<String>,
    /// Number of tasks worked on at once, each by an agent of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    agents: u16,
    /// Claim only tasks at or below this path
    #[arg(long, value_name = "PATH")]
    scope: Option<String>,
    /// What the agents can do, for tasks that demand it; separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    capabilities: Vec<String>,
    /// Name of this workflow, whose agents are ID-1, ID-2, … [default: a free name]
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Continue the workflow that --workflow names
    #[arg(long = "continue", requires = "workflow")]
    continued: bool,
    /// Retry all tasks that this workflow's agents failed; with --continue, a failed task whose own
    /// path --scope names is retried without it
    #[arg(long, requires = "continued")]
    retry_failed: bool,
    /// Number of times that an agent retries a task before it leaves it to others; at most 1 after
    /// a timeout
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=100))]
    retries: u32,
    /// Pause before the second try; it doubles with each try, and is 15 times as long after a rate
    /// limit
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    backoff: Duration,
    /// Longest time for one try, such as 90s, 15m or 2h
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,
    /// Time after which a try without --timeout is pointed out; an option for tests
    #[arg(long, hide = true, value_name = "TIME", default_value = "10m", value_parser = time)]
    long_after: Duration,
    /// Number of tokens that the workflow may use in all, as the command's last line reports them
    #[arg(long, value_name = "N")]
    token_budget: Option<u64>,
    /// Number of tries that the workflow may make in all
    #[arg(long, value_name = "N")]
    attempt_budget: Option<u64>,
    /// Time that the workflow's tries may take in all
    #[arg(long, value_name = "TIME", value_parser = time)]
    time_budget: Option<Duration>,
    /// Stop after N tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tasks: Option<u32>,
    /// Claim nothing more after this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    max_duration: Option<Duration>,
    /// Pause all work after N failures in a row; 0 never pauses
    #[arg(long, value_name = "N", default_value_t = 5)]
    breaker: u32,
    /// Continue with other tasks when one has failed for good
    #[arg(long)]
    continue_on_error: bool,
    /// Give each agent a git worktree and branch of its own, and commit there what a task changed
    #[arg(long)]
    worktree: bool,
    #[command(flatten)]
    bundle: bundle::Wanted,
    /// Most memory of each process of the command, such as 512M or 2G; on Linux
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_limit: Option<u64>,
    /// Most files that each process of the command may have open
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(16..))]
    open_files: Option<u64>,
    /// Give the command CALLBOARD_TOKEN, which it does not get otherwise
    #[arg(long)]
    pass_token: bool,
    /// Print what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Command with its arguments, after --
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Parses a duration: `90`, `90s`, `1m30s`, `2h`.
fn time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().ok().map(Duration::from_secs);
    let span =
        || text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    let time = seconds.or_else(span).ok_or("write it as 90s, 15m or 2h")?;
    if time > Duration::from_secs(365 * 24 * 3600) {
        Err("at most a year".to_owned())
    } else {
        Ok(time)
    }
}

/// Parses a number of bytes: `1000000000`, `512M`, `2G`.
fn size(text: &str) -> Result<u64, String> {
    let units = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
    let unit = units.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, *bits)));
    let (number, bits) = unit.unwrap_or((text, 0));
    let number = number.parse::<u64>().map_err(|_| "write it as 512M or 2G".to_owned())?;
    let bytes = number.checked_mul(1 << bits).ok_or("that is more than can be counted")?;
    if bytes < LEAST_MEMORY { Err("at least 16M".to_owned()) } else { Ok(bytes) }
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Outcome {
    let command = command(arguments);
    refuse_missing(&command[0], &session.cwd);
    if let Some(workflow) = &arguments.workflow {
        WorkflowId::checked(workflow)
            .and_then(|_| AgentId::checked(&format!("{workflow}-{}", arguments.agents)))
            .map_err(CallError::Refused)?;
        refuse_unfit_branch(arguments, workflow);
    }
    let runtime = runtime()?;
    if arguments.dry_run {
        return runtime.block_on(dry_run(session, arguments, &command));
    }
    session.may_create()?;
    directory::prepare(session.dir())?;
    supervise::reap_descendants()?;
    let ended = LocalSet::new().block_on(&runtime, work(session, arguments, command));
    runtime.shutdown_background();
    session.say_made();
    ended
}

/// The command as a list of words: from `--exec`, from behind `--`, or from both, one after the
/// other.
fn command(arguments: &Arguments) -> Vec<String> {
    let exec = arguments.exec.as_deref().unwrap_or_default();
    let Some(mut words) = shlex::split(exec) else {
        usage_error("--exec: a quotation mark is not closed");
    };
    if let Some(word) = words
        .iter()
        .find(|word| matches!(word.as_str(), "|" | "||" | "&&" | ";" | "&" | ">" | ">>" | "<"))
    {
        usage_error(format!(
            "--exec: no shell runs the command, so `{word}` means nothing; say --exec \"sh -c \
             '…'\""
        ));
    }
    words.extend(arguments.command.iter().cloned());
    if words.first().is_none_or(String::is_empty) {
        usage_error("the command is empty; `callboard work -- COMMAND` names one");
    }
    words
}

/// Refuses a missing program before anything is claimed: every task would fail.
fn refuse_missing(program: &str, current: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_found = if program.contains('/') {
        is_program(&current.join(program))
    } else {
        std::env::split_paths(&path).any(|dir| is_program(&dir.join(program)))
    };
    if !is_found {
        usage_error(format!("there is no program `{program}`, or it may not be run"));
    }
}

/// Refuses a workflow name that git does not take: with --worktree, an agent's name is part of its
/// branch's name.
fn refuse_unfit_branch(arguments: &Arguments, workflow: &str) {
    let agent = format!("{workflow}-{}", arguments.agents);
    if arguments.worktree && checkout::name_of(&agent) != agent {
        usage_error(format!(
            "--workflow: with --worktree `{workflow}` begins names of branches, and git takes no \
             `:` and no `..` there; give another"
        ));
    }
}

/// Refuses a scope without tasks: it is probably mistyped, and "all are done" would mislead.
async fn refuse_empty_scope(handle: &Handle, arguments: &Arguments) -> anyhow::Result<()> {
    let Some(scope) = arguments.scope.clone().filter(|scope| scope != "all") else { return Ok(()) };
    let asked = scope.clone();
    let found = handle
        .look(move |state| check_scope(Some(&asked), state).map(|()| state.is_scope(&asked)))
        .await?;
    let has_tasks = found.map_err(CallError::Refused)?;
    if has_tasks { Ok(()) } else { Err(CallError::Refused(Refusal::EmptyScope { scope }).into()) }
}

async fn dry_run(session: &Session, arguments: &Arguments, command: &[String]) -> Outcome {
    let handle = session.participant(Stay::Brief)?;
    refuse_empty_scope(&handle, arguments).await?;
    let handed = Handed::load(session.dir(), &arguments.bundle, true)?;
    let scope = arguments.scope.clone();
    let (mut tasks, total) = handle
        .look(move |state| {
            let ready =
                state.ready_in_order().into_iter().filter(|task| in_scope(task, scope.as_deref()));
            let mut ready: Vec<_> =
                ready.map(|task| (task.id.clone(), task.headline().to_owned())).collect();
            let total = ready.len();
            ready.truncate(NAMED);
            (ready, total)
        })
        .await?;
    let workflow = name(session, arguments, &handle).await?;
    let retried = if arguments.continued {
        again(arguments, &known(&handle, &workflow).await?).tasks(&handle).await?
    } else {
        Vec::new()
    };
    let agents: Vec<_> = ids(&workflow, arguments.agents).iter().map(ToString::to_string).collect();
    let first: Vec<_> =
        tasks.drain(..).map(|(id, title)| json!({"task": id, "title": title})).collect();
    let plan = json!({
        "dry_run": true, "command": command, "directory": session.cwd.to_string_lossy(), "workflow": workflow, "agents": agents,
        "scope": arguments.scope, "ready": total, "first": first, "worktree": arguments.worktree,
        "retries": arguments.retries, "backoff_seconds": arguments.backoff.as_secs_f64(), "bundle": handed.news(),
        "retried": retried,
    });
    session.show(&plan, |page: &mut Page| {
        page.line(format_args!("would run {command:?} in {}", session.cwd.display()));
        page.line(format_args!("as {}, {} tasks ready", agents.join(", "), total));
        if let Some(news) = handed.news() {
            page.line(news.sentence());
        }
        if !retried.is_empty() {
            let ids: Vec<_> = retried.iter().map(TaskId::as_str).collect();
            page.line(format_args!("would retry what failed: {}", show::named(&ids)));
        }
        for task in &first {
            page.line(format_args!(
                "  {} {}",
                task["task"].as_str().unwrap_or_default(),
                task["title"].as_str().unwrap_or_default()
            ));
        }
        page.line("nothing was done");
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn work(session: &Session, arguments: &Arguments, command: Vec<String>) -> Outcome {
    let handle = session.participant(Stay::Presence)?;
    refuse_empty_scope(&handle, arguments).await?;
    let handed = Handed::load(session.dir(), &arguments.bundle, false)?;
    let enlisted = enlist(session, arguments, &handle).await?;
    let Enlisted { workflow, agents, others, known } = enlisted;
    let all: Vec<_> = agents.iter().chain(&others).cloned().collect();
    let show = Show::new(session)?;
    let (stop, _) = watch::channel(Urgency::Work);
    let execution = known
        .as_ref()
        .and_then(|known| serde_json::from_value(known["checkpoint"]["state"].clone()).ok());
    let was_known = known.as_ref().is_some_and(|known| known["workflow"].is_object());
    let fingerprint = fingerprint(&command);
    show.tell(&Event::Began {
        workflow: &workflow,
        agents: agents.len(),
        continued: was_known,
        command: &command,
    });
    if let Some(news) = handed.news() {
        show.tell(&Event::Bundle(news));
    }
    let plans = handle.look(|state| state.board().plans.clone()).await?;
    for file in plan_files::changed(session, &plans) {
        show.tell(&Event::PlanFile(&file));
    }
    let settings = Settings {
        board: session.dir().to_owned(),
        command,
        current: session.cwd.clone(),
        scope: arguments.scope.clone(),
        retries: arguments.retries,
        backoff: arguments.backoff,
        timeout: arguments.timeout,
        long_after: arguments.long_after,
        max_tasks: arguments.max_tasks,
        continue_on_error: arguments.continue_on_error,
        pass_token: arguments.pass_token,
        limits: supervise::Limits {
            memory: arguments.memory_limit,
            open_files: arguments.open_files,
        },
        breaker: arguments.breaker,
        handed,
    };
    let ledger = Ledger::new(execution, &fingerprint, all.len());
    let shop = Rc::new(Shop {
        handle,
        workflow,
        set_aside: RefCell::new(ledger.set_aside().into()),
        ledger: RefCell::new(ledger),
        settings,
        show,
        stop,
        reason: RefCell::default(),
        taken: Cell::new(0),
        claiming: Cell::new(0),
        run: format!("{:x}", RandomState::new().hash_one(std::process::id())),
        batches: Cell::new(0),
        seconds_left: Cell::new(None),
        attempts_begun: Cell::new(0),
        attempts_bound: Cell::new(None),
        running: RefCell::default(),
        is_spent: Cell::new(false),
    });
    let start = Instant::now();
    let mut workers = Vec::new();
    for agent in all {
        let checkout = checkout(session, arguments, &agent)?;
        shop.tell_problem(checkout.be_there(agent.as_str(), shop.now(), &Before::default())?);
        let shop = Rc::clone(&shop);
        workers.push(Worker { agent, checkout, shop, begun: RefCell::default() });
    }
    begin(&shop, arguments).await?;
    if let Some(known) = known.as_ref().filter(|_| arguments.continued) {
        again(arguments, known).retry(&shop.handle, &shop.show).await?;
    }
    tokio::task::spawn_local(listen(Rc::clone(&shop)));
    if let Err(error) = log::sweep(session.dir()) {
        tracing::warn!(%error, "old logs stay");
    }
    if let Some(most) = arguments.max_duration {
        let shop = Rc::clone(&shop);
        tokio::task::spawn_local(async move {
            if shop.pause(most, Urgency::Enough).await {
                shop.stop(
                    Urgency::Enough,
                    format!("its time of {} s is over", most.as_secs_f64()),
                    true,
                );
            }
        });
    }
    // Never work on more tasks at once than was asked for: tasks that surplus agents still hold are
    // ended first, in turn.
    let mut others = workers.split_off(agents.len());
    let mut working = JoinSet::new();
    for (place, mut worker) in workers.into_iter().enumerate() {
        let share = others.len().div_ceil(agents.len() - place);
        let earlier: Vec<_> = others.drain(..share).collect();
        working.spawn_local(async move {
            for other in earlier {
                other.end_what_it_holds().await?;
            }
            worker.work().await
        });
    }
    let mut failed = None;
    while let Some(ended) = working.join_next().await {
        if let Err(error) = ended.map_err(anyhow::Error::from).and_then(|worked| worked) {
            shop.show.tell(&Event::Problem { message: &format!("{error:#}") });
            shop.stop(Urgency::Finish, "the board could not be used", false);
            failed = failed.or(Some(error));
        }
    }
    let is_well = end(session, &shop, arguments, start.elapsed()).await?;
    match failed {
        Some(error) => Err(error),
        None => Ok(exit_code(&shop, is_well)),
    }
}

fn exit_code(shop: &Shop, is_well: bool) -> ExitCode {
    let is_good = shop.reason.borrow().as_ref().is_none_or(|reason| reason.is_good);
    let parked = shop.ledger.borrow().tally.parked;
    match *shop.stop.borrow() {
        Urgency::Cut | Urgency::Kill => ExitCode::from(INTERRUPTED),
        _ if is_good && is_well && parked == 0 => ExitCode::SUCCESS,
        _ => ExitCode::from(REFUSED),
    }
}

/// Ends in the workflow's state what its agents have lost since it was saved: others may have done
/// it.
async fn forget_lost(shop: &Shop) -> anyhow::Result<()> {
    let in_work = shop.ledger.borrow().in_work();
    let looked = move |state: &State| {
        let is_lost = |(agent, task, attempt): &(AgentId, TaskId, u32)| {
            let open = state.task(task).and_then(|task| task.open_attempt());
            !open.is_some_and(|open| open.agent == *agent && open.number == *attempt)
        };
        in_work.into_iter().filter(is_lost).collect::<Vec<_>>()
    };
    for (agent, task, _) in shop.handle.look(looked).await? {
        shop.ledger.borrow_mut().ended(&agent, &task, false, shop.now());
    }
    Ok(())
}

/// What is retried of the workflow that `known` describes.
fn again<'a>(arguments: &'a Arguments, known: &Value) -> Again<'a> {
    Again {
        scope: arguments.scope.as_deref(),
        failed_by: arguments.retry_failed.then(|| agents_of(known)),
    }
}

/// The caller for what the person who starts the work decides, such as the budget.
fn person() -> Caller {
    Caller { agent: AgentChoice::Named(AgentId::trusted(HUMAN)), ..Caller::default() }
}

async fn begin(shop: &Shop, arguments: &Arguments) -> anyhow::Result<()> {
    let budget = Budget {
        tokens: arguments.token_budget,
        attempts: arguments.attempt_budget,
        // Whole seconds are counted, rounded up so that a fraction is not zero.
        seconds: arguments
            .time_budget
            .map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0)),
    };
    shop.find_pending().await?;
    let mut saving = shop.saving(None, None, Spent::default());
    if !budget.is_empty() {
        saving["budget"] = serde_json::to_value(budget)?;
    }
    saving["scope"] = json!(arguments.scope);
    let saved = shop.call(&person(), "save_checkpoint", saving).await?;
    if let Some(exhausted) = saved["exhausted"].as_str() {
        let text =
            format!("the workflow's budget is spent: {exhausted}; a higher one lets it go on");
        shop.stop(Urgency::Finish, text, false);
    }
    shop.show_progress().await;
    Ok(())
}

fn checkout(session: &Session, arguments: &Arguments, agent: &AgentId) -> anyhow::Result<Checkout> {
    if arguments.worktree {
        Checkout::own(&session.cwd, session.dir(), agent.as_str())
    } else {
        Ok(Checkout::shared(&session.cwd, arguments.agents == 1))
    }
}

/// Handles signals: the first lets running tasks end, the second ends them, the third kills them,
/// the fourth exits at once.
async fn listen(shop: Rc<Shop>) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
    let [Ok(mut interrupt), Ok(mut terminate)] = kinds.map(signal) else { return };
    for level in [Urgency::Finish, Urgency::Cut, Urgency::Kill] {
        select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        let text = "it was asked to stop".to_owned();
        let hint = Some("what runs comes to its end; a second signal ends it");
        shop.stop_for(level, Reason { text, hint, is_good: true });
    }
    select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    std::process::exit(i32::from(INTERRUPTED));
}

/// Hash of the command, so that one command is not judged by another's failures.
fn fingerprint(command: &[String]) -> String {
    sha256(command.join("\0"))[..16].to_owned()
}

/// Saves and prints what was done and what remains. False if nothing is left but failures.
async fn end(
    session: &Session,
    shop: &Shop,
    arguments: &Arguments,
    took: Duration,
) -> anyhow::Result<bool> {
    shop.find_pending().await?;
    let status = shop.call(&person(), "get_status", json!({"scope": arguments.scope})).await?;
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let (tasks, queue) = (&status["tasks"], &status["queue"]);
    let in_review = number(&status["of_in_progress"]["review"]);
    let remaining = Remaining {
        ready: number(&queue["ready"]),
        blocked: number(&queue["blocked"]),
        waiting_retry: number(&queue["waiting_retry"]),
        held: number(&tasks["claimed"]) + number(&tasks["in_progress"]) - in_review,
        in_review,
        failed: number(&tasks["failed"]),
    };
    let can_go_on = remaining.ready + remaining.waiting_retry + remaining.held > 0;
    let is_left = can_go_on || remaining.blocked + in_review > 0;
    let failed: Vec<_> = status["needs_attention"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|parked| parked["task"].as_str())
        .collect();
    let parked = failed.len() as u64 + shop.ledger.borrow().tally.parked;
    if shop.is_spent.get() && !is_left && parked == 0 {
        let text = "nothing is left to do, and the workflow's budget is spent".to_owned();
        shop.reason.replace(Some(Reason { text, hint: None, is_good: true }));
    }
    let reason = shop.reason.borrow().clone();
    let nothing = Reason { text: "nothing is left to do".to_owned(), hint: None, is_good: true };
    let mut reason = reason.unwrap_or(nothing);
    if reason.is_good && !is_left && !failed.is_empty() {
        reason.text = format!("nothing is left to do but what failed: {}", show::named(&failed));
    }
    // The same command line would stop at once.
    let needs_budget = shop.is_spent.get() && is_left;
    if needs_budget {
        let more =
            format!("; to go on, add --workflow {} --continue and a higher budget", shop.workflow);
        reason.text.push_str(&more);
    }
    let is_unread = status["unread"].is_array();
    let finished = reason.is_good && !is_left && parked == 0 && !is_unread;
    forget_lost(shop).await?;
    let (phase, state) = match (is_left || is_unread, failed.is_empty()) {
        (true, _) => ("executing", "stopped"),
        (false, false) => ("failed", "failed"),
        (false, true) => ("finished", if finished { "completed" } else { "stopped" }),
    };
    shop.ledger.borrow_mut().phase(phase, state);
    let saved =
        shop.call(&person(), "save_checkpoint", shop.saving(None, None, Spent::default())).await?;
    let tally = shop.ledger.borrow().tally.clone();
    let retries = !failed.is_empty() && (tally.parked > 0 || !can_go_on);
    let next = ((is_left || retries) && !needs_budget).then(|| {
        let goes_on = continuing(&shop.workflow);
        if !retries {
            return goes_on;
        }
        let ids: Vec<_> = failed.iter().map(|id| quoted(id)).collect();
        format!("{} && {goes_on}", session.wording.line(&format!("retry {}", ids.join(" "))))
    });
    let summary = Summary {
        workflow: shop.workflow.clone(),
        reason: reason.text,
        finished,
        seconds: took.as_secs_f64(),
        tally,
        untold: shop.show.untold(),
        remaining,
        spent: serde_json::from_value(saved["spent"].clone()).unwrap_or_default(),
        budget_left: serde_json::from_value(saved["remaining"].clone()).unwrap_or_default(),
        next,
    };
    if finished && arguments.workflow.is_none() {
        // The workflow was given no name to come back to, and nothing is left to come back for.
        shop.call(
            &person(),
            "delete_checkpoints",
            json!({"workflow_id": shop.workflow, "all": true}),
        )
        .await?;
    }
    shop.show.tell(&Event::Ended(&summary));
    Ok(is_left || parked == 0)
}

/// This command line, with the options that continue the workflow.
fn continuing(workflow: &str) -> String {
    let given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let given: Vec<_> = given.collect();
    // What follows `--` belongs to the command.
    let own: Vec<_> = given.iter().take_while(|one| *one != "--").collect();
    let has = |option: &str| {
        own.iter().any(|one| *one == option || one.starts_with(&format!("{option}=")))
    };
    let mut more = Vec::new();
    if !has("--workflow") {
        more.extend(["--workflow".to_owned(), workflow.to_owned()]);
    }
    if !has("--continue") {
        more.push("--continue".to_owned());
    }
    let (before, behind) =
        given.split_at(place_of_subcommand(&given).map_or(given.len(), |place| place + 1));
    let words = [&["callboard".to_owned()], before, &more, behind].concat();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}
