//! callboard: the coordination server for AI coding agents. Any number of agents share one task
//! queue and one agent registry; every acknowledged operation is durable, and
//! `.coordination/mcp-state.json` shows the whole state.
//!
//! A program of your own opens a board as [`Board`], calls the operations of [`ops`] by their
//! types, listens to events, and reads or saves the state; [`board::Options`] says how it is
//! opened. It takes part like any `callboard` process. `examples/embed.rs` registers, claims and
//! completes.

// What follows is for those who change callboard itself.
//
// # The shape
//
// No daemon runs. Each process (an IDE's `callboard mcp`, `callboard serve`, a command of the CLI)
// is a *participant*: it holds a replica of the `state` in memory, and the exclusive append to the
// `journal` decides who wins.
//
// A call comes in through `mcp`, `rpc` or `cli`, is looked up in the list of `ops`, and goes to the
// participant's writer: a thread of its own, whose place a caller takes for its call when it is the
// only one. The writer takes the journal's lock, catches up with what others appended, lets the
// operation *decide* on events, *applies* them, appends them to the journal in one transaction and
// frees the lock. A round for all that was committed meanwhile follows: the journal is synced, the
// state file (`statefile`) replaced, and only then they are answered; refusals wait for their
// batch, too. What was recorded goes to the feed, which listeners read.
//
// # Where a change goes
//
// | to change | look at |
// |---|---|
// | what is recorded of a thing | `state`: `task`, `agent`, `message` and the like, which no rule is in; `document` for all of it |
// | a rule, a status, a limit | `state`: pure; `guard`, `claim`, `rank`, `parts`, `reviewing`, `graph`, `deadline`, `room`, `limit`, and `apply` for what events mean |
// | a kind of event, or a field in one or in the state file | `state::event`, with a line in `state::level::newer`; `level` has the rules, `needed` in it applies them; `participant::living` what each process knows |
// | who acts in a call, and what agents are called that give themselves no name | `ops::identity`; `cli::inside` for shells of agents; `participant::nickname`; `user` for people's names |
// | messages and file reservations | `state::inbox`, `state::holding` with `pattern`; `cli::guard` for hooks |
// | what a tool takes, decides or answers | its file in `ops`; a new one is one file and one line in the list |
// | what is understood of a call's arguments | `ops::understand`: `shape` (from the schema), `wrapped`, `names` (other names), `outcome` (what else a call says of a task's end), `advice` and `words` (of refusals), `called` (names of operations); `ops::naming` for names of tasks, which the state knows |
// | sessions and runs: who runs one, where, and who receives its end | `state::run` (`runner`, `follow`, `sessions`); `journal::sqlite` for their tables |
// | discoveries, and which agents get them | `state::finding` |
// | how calls become durable | `participant`: `commit` (what comes next, a pure value: `batch`, `round`), `driver` (carries it out; `decide`: what a batch records; `actors`), `disk` (what it needs), `files` (the real one, on `board`) |
// | how calls come in, wait, are read | `participant`: `handle` (the way in), `message`, `writer` (the thread; `messages`, `reads`, `neighbours`), `waiting`, `beside` and `turns` (long reads), `feed`, `hints` (of what others do), `upkeep`, `archive` (the past) |
// | how a process opens a board, and is seen on it | `participant`: `opening`, `access`, `attendance` (time, sign of life, what is due), `presence`, `living`, `lock` |
// | what the state file is called | `config`, `statefile`: `home`; `participant`: `naming` (agreement, renaming) |
// | what health says | `ops::health_check`; `participant`: `obstacles` (looked for once a second), `room` (on the disk), `holder` (of a lock) |
// | what happens to a damaged or deleted board | `participant`: `recovery` (at start, `doctor --repair`), `vanished` (while it runs) |
// | what a plan may look like | `plan`: `json`, `markdown` (`lines`, `outline`), `places`, `phrases`, `export`, `rewrite` (of the imported text); `state::plan` for what a new version means (`same_words`, `recognise`, `which` of several plans, `order` of claims), `state::hierarchy` for paths, `state::parts` for parents |
// | what is read from and written for other tools | `exchange`: a file per format and a line in `FORMATS`; `reading` (checks), `view` (the board), `verify`; `cli::exchange` for their files |
// | how far executions have come, and what they may spend | `state::progress`; `artifact` for the files that work leaves |
// | what is on disk | `journal` (events in SQLite), `statefile` (the projection and older formats), `snapshot`, `bundle`; the last two are `sealed` files |
// | how the state file looks | `statefile`: `whole` (the order of its fields), `derived` (what follows from the state), `head` |
// | how the state file is written in place | `statefile`: `projection` (which form), on `flat` or `whole`; `slots` (what stands where: `layout`, `slot`, `parts`, `books`, `read`), `spare`, `lease` |
// | what a person is told of, and how | `notify`: `notice` (of which events), `settings`, `ledger` (what is still to be told), `channel` (ways), `deliver`; `user` for the user's configuration; `cli::notify` |
// | what waits for a person, how far the board is | `state::attention`, `state::standing` |
// | what a person sees first: its lists, their order, the words of what waits; how a task stands, in words | `view` (a file per part; `standing`), for `status` and every other screen |
// | what `callboard ui` shows, and what its keys do | `ui`: `screen` and `keys` (pure), `action` (a letter each), `views` (a file per view), `draw`, `first` (also printed by `status`); `cli::ui` reads the board for it |
// | what a person may change by hand | `ops::hand_edit` (the rules), `statefile::edit` (the difference), `participant::editing` (when) and `edits` (the verdict) |
// | what MCP clients see | `mcp`: `server` (all transports), `tools` (their schemas), `elicitation` (what their users are asked), `stdio`, `http`, `subscriptions` |
// | what JSON-RPC clients see | `rpc`: methods in `post`, `socket` (WebSockets), `events` and `subscriptions`, `discover` (OpenRPC), `client` |
// | who may connect over HTTP, and where | `http`: `gate` (host, origin, token, form, size), `token`, `listener` (addresses) |
// | what a person sees and does in a browser | `web`: `mod` (addresses), `login` and `site` (who gets in, and where), `entrance` (headers), `shell` and `pages` (what is shown), `live` (what changes in open pages), `drawings` (of the graph) |
// | what a person types | `cli`: one file per command; `line` (options and the list of commands), `session` (board and printing), `report` (errors, exit codes); `print` and `wording` for what all of them say |
// | what is understood of a line that is guessed | `cli::guess`: `table` (words), `options`; `cli::meant` for names of tasks and agents |
// | what hooks and clients' configurations do | `cli::hook`, `cli::connect`; `cli::init` for setting a project up |
// | what `callboard bench` measures | `cli::bench`: a file per part, `goals` |
// | how `callboard work` runs commands | `cli::work`: `enlist` (its agents), `worker` (the loop), `ledger` (what is kept), `child` and `cli`'s `supervise` (processes) |
// | which files are trusted | `private`, `participant::directory`; `filesystem` for where they lie |
// | how texts are cleaned when they come in, before a model reads them, and before a terminal shows them | `harmless`: control characters, `tags` of hosts, and `shown`; `bom`: the byte order mark |
// | how much of a list a reply shows, and in which words | `ops::page`, `ops::reader`, `ops::spoken`; `ops::task_filter` for tasks |
// | what a purge takes out, and from where | `participant::purge` (`text`, `files`), `journal::sqlite::purge` |
// | what counts as a secret | `redact`: tables of `issuer` (prefixes), `shape` (other forms), `named` (a name before it), `table` (a column), `spoken`, `command`, `cookie`; `telling`, `value`, `letters` judge; `view` (wide and escaped forms); a corpus in `tests/data/redaction` |
// | what a program that embeds the board sees | `board`: `options`, `answer`, `events`, `file`; `ops::typed` |
// | where the board is, and how it is set | `location`, `worktree` (`link`: broken ones, `tables`: where only git reads references), `config` |
// | in which worktree and at which commit agents work | `participant::whereabouts`; `worktree` reads git's files, `git` runs it |
// | time, signals, JSON read strictly, crashes for tests | `clock`, `signal`, `strict`, `failpoint` |
// | when freed memory goes back to the system | `memory` |
//
// Imports go one way: `cli` → `http` → `mcp`, `rpc`, `web`, `board` → `participant` → `ops` → `plan`,
// `view` → `state`, `cli` → `exchange` → `plan`, and `cli` → `ui` → `ops`. `journal`, `statefile`,
// `snapshot`, `bundle` and `artifact` know `state` and the small modules of the table's end.
// `tests/suite/tidy.rs` holds them to it.
//
// # Words
//
// | word | meaning |
// |---|---|
// | participant | a process on the board; it has an id and, if it stays, a presence file that it keeps locked |
// | replica | the state in a participant's memory, made of the journal's events |
// | event, `seq` | one change of the board, and its number; events rise by one without a gap |
// | decide, apply | to choose the events of a call, from the state and nothing else; to change the state by an event |
// | commit | to take calls from arrival to reply; as a value, what is pending, held, under way and waited for |
// | disk | what a commit needs of the world: journal, locks, state file, presence, time |
// | batch | calls that are decided, applied and appended together, under the journal's lock |
// | append | to write a batch to the journal; other participants can read it then, and a power loss can take it back |
// | sync | to make what is appended durable |
// | round | one sync and one replacement of the state file for all batches since the last; then answers leave |
// | held | said of an answer that waits for its round |
// | parked | said of a call that waits for a better answer, such as a claim without a ready task |
// | feed | the events in order, for listeners in the same process |
// | presence, grace | the proof that a participant lives; the time after its end in which an agent may come back |
// | lease | the time for which a task is held; a heartbeat renews it |
// | level | which events and fields a version can read; what a living participant cannot read is not written |
// | retire | to replace a finished task by a stub, which keeps what others need of it |
// | archive | the past: snapshots, and the events of the journal, older ones compressed |
// | projection | the state file, as a picture of the state at one event |
// | slot, spare | the place of an entity in a large state file; the file that was in place before, which is written next |
// | left | said of a state file that a projection wrote; any other is a hand edit |
// | regain | to put a board back whose files were removed while participants live |
//
// # Invariants
//
// Tests assert these, `State::check` all but 4 and 5 after every step:
//
// 1. One live attempt per held task, and its agent lists the task as current; no other agent does.
// 2. A task is `claimed` or `in_progress` if and only if a lease exists.
// 3. The dependency graph has no cycle and no missing id (the stub of a retired task counts).
// 4. Replaying the journal up to the state file's `seq` gives the state that it shows, field for
//    field.
// 5. `seq` rises by one per event; the state file's `seq` never goes backwards.
// 6. The ready index equals the definition of ready.
// 7. Every counter equals what the events say.
// 8. What is kept to find things quickly (of messages, discoveries, reservations, sessions,
//    workflows) equals what is made of the state anew.

mod artifact;
pub mod board;
mod bom;
mod bundle;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod clock;
pub mod config;
mod exchange;
mod failpoint;
#[doc(hidden)]
pub mod filesystem;
mod git;
#[doc(hidden)]
pub mod harmless;
#[doc(hidden)]
pub mod http;
#[doc(hidden)]
pub mod journal;
mod location;
#[doc(hidden)]
pub mod mcp;
mod memory;
mod notify;
pub mod ops;
#[doc(hidden)]
pub mod participant;
#[doc(hidden)]
pub mod plan;
mod private;
#[doc(hidden)]
pub mod redact;
#[doc(hidden)]
pub mod rpc;
mod sealed;
#[doc(hidden)]
pub mod signal;
#[doc(hidden)]
pub mod snapshot;
pub mod state;
#[doc(hidden)]
pub mod statefile;
#[doc(hidden)]
pub mod strict;
mod ui;
mod user;
#[doc(hidden)]
pub mod view;
#[doc(hidden)]
pub mod web;
#[doc(hidden)]
pub mod worktree;

pub use board::{Board, Error};
