//! What people type, by what they mean by it.
//!
//! A meaning is either a line that is run, which begins with `>`, or a text whose parts in
//! backquotes are lines without `callboard`. In both, `{1:TASK}` stands for the first argument,
//! `{2..:TEXT}` for the second and what follows, as one, `{*:TASK}` for all. Without that argument,
//! a text names the word behind the colon; a line that is run leaves it out.

/// A meaning of words that are no commands: alone, with arguments, and with an agent as the first
/// of them. An empty one is like the one before it.
pub(super) struct Row {
    pub(super) words: &'static str,
    pub(super) alone: &'static str,
    pub(super) with: &'static str,
    pub(super) agent: &'static str,
}

const fn row(
    words: &'static str,
    alone: &'static str,
    with: &'static str,
    agent: &'static str,
) -> Row {
    Row { words, alone, with, agent }
}

impl Row {
    pub(super) fn meaning(&self, has_arguments: bool, is_agent: bool) -> &'static str {
        let found = match (has_arguments, is_agent) {
            (true, true) => [self.agent, self.with, self.alone],
            (true, false) => [self.with, self.alone, ""],
            (false, _) => [self.alone, self.with, ""],
        };
        found.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }
}

/// Things that there are several of, and what is done with them in words that other tools use.
pub(super) struct Noun {
    pub(super) words: &'static str,
    pub(super) list: &'static str,
    pub(super) show: &'static str,
    pub(super) add: &'static str,
    pub(super) remove: &'static str,
}

const fn noun(
    words: &'static str,
    list: &'static str,
    show: &'static str,
    add: &'static str,
    remove: &'static str,
) -> Noun {
    Noun { words, list, show, add, remove }
}

/// What is done with things, in the words of other tools.
pub(super) const LIST: &str = "list ls lists all index enumerate";
pub(super) const SHOW: &str =
    "show view get describe info inspect cat detail display print look peek read see open about";
pub(super) const ADD: &str = "add new create make insert append generate";
pub(super) const REMOVE: &str =
    "rm remove delete del drop destroy erase trash discard unset revoke forget purge";

const CANCEL: &str = "`cancel {*:TASK}` ends a task that is no longer wanted";
const FORGET: &str = "`agents forget {1:AGENT}` takes an agent that has gone off the list; \
                      `stop {1:AGENT} --now` first ends what it holds";
const APPROVE: &str = "`approve {*:TASK}` accepts work that waits for review";
const REJECT: &str = "`reject {1:TASK} {2..:REASON}` sends work in review back";
const SEND: &str = "`send {1:AGENT} {2..:TEXT}` tells an agent; `send all TEXT` tells all";
const RETRY: &str = "`retry {*:TASK}` makes a failed or cancelled task available again; \
                     `reject TASK REASON` sends one in review back";
const RESUME: &str = "`resume {1:AGENT}` lets an agent go on that was stopped or paused";
const INVITE: &str = "`connect claude` lets agents of a client in, `token add NAME` those of \
                      another machine; `help clients` has the others";
const WORK: &str = "`work --agents 3 -- COMMAND` runs agents, one command for each task; those in \
                    editors and terminals come by themselves after `connect claude`";
pub(super) const MOVE: &str = "`edit {1:TASK} --priority 1` puts a task first; its place is in the \
                               plan: `plan import PLAN.md` takes a changed one in";
pub(super) const NOTIFY: &str = "`notify` shows what you are told of and in which file that is set, \
                      `watch` prints events as they happen";
const SETTINGS: &str = "`help settings` says what can be set, and in which file";
const LAST: &str = "`edit {1:TASK} --priority 10` puts a task last; `edit {1:TASK} --depends \
                    OTHER` lets it wait for another";
const COMMENT: &str = "`send task:{1:TASK} {2..:TEXT}` tells the agent that holds the task; \
                       `edit {1:TASK} --description TEXT` changes what the task says";
const COSTS: &str = "callboard keeps no costs; `report` has durations and tries, `checkpoint list` \
                     what workflows may spend";
pub(super) const DATES: &str = "tasks have no dates; `edit {1:TASK} --priority 1` puts one first, and \
                     `report` says how long tasks take";

pub(super) const NOUNS: &[Noun] = &[
    noun(
        "task issue ticket item job card story chore bug feature subtask",
        ">tasks {*}",
        ">show {*}",
        ">add {*}",
        CANCEL,
    ),
    noun(
        "agent worker bot user member people person teammate robot node pod container assistant",
        ">agents {*}",
        ">show {*}",
        INVITE,
        FORGET,
    ),
    noun(
        "token key secret credential apikey api-key",
        ">token list",
        ">token list",
        "`token add {1:NAME}` makes a token and prints it",
        "`token revoke {1:NAME}` ends a token",
    ),
    noun(
        "question decision inquiry",
        ">answer",
        ">show {*}",
        SEND,
        "`answer {1:Q1} {2..:TEXT}` answers a question",
    ),
    noun(
        "review pr mr approval merge-request pull-request in-review",
        ">tasks --status review {*}",
        "`diff {1:TASK}` shows the work; `approve {*:TASK}` accepts it, `reject {1:TASK} REASON` \
         sends it back",
        "`add TEXT --review` adds a task whose result is reviewed",
        REJECT,
    ),
    noun(
        "message mail msg",
        ">messages {*}",
        SEND,
        SEND,
        "`messages --done {1:ID}` puts a message away",
    ),
    noun(
        "discovery finding learning",
        ">discoveries {*}",
        ">discoveries --search {*}",
        ">discoveries add {*}",
        ">discoveries",
    ),
    noun("event", ">history {*}", ">log {*}", ">log", ">log"),
    noun(
        "attachment artefact",
        "`artifact list {1:TASK}` lists the files of a task",
        "`artifact list {1:TASK}` lists the files of a task",
        "`artifact attach {1:TASK} {2:FILE}` keeps a file with a task",
        "`artifact list {1:TASK}` lists the files of a task",
    ),
    noun(
        "dependency dep blocker",
        ">tasks --blocked",
        ">explain {*}",
        "`edit {1:TASK} --depends {2:OTHER}` lets a task wait for another",
        "`edit {1:TASK} --no-depends` lets a task wait for nothing",
    ),
    noun(
        "tag label",
        "`tasks --tag {1:TAG}` lists the tasks with a tag",
        "`edit {1:TASK} --tag {2:TAG}` adds a tag; `tasks --tag TAG` lists the tasks with one",
        "`edit {1:TASK} --tag {2:TAG}` adds a tag",
        "`edit {1:TASK} --no-tags` removes the tags",
    ),
    noun(
        "config cfg conf configuration setting preference settings option rc",
        SETTINGS,
        SETTINGS,
        SETTINGS,
        SETTINGS,
    ),
    noun(
        "notification notifier alert webhook subscription slack email",
        ">notify",
        ">notify",
        NOTIFY,
        NOTIFY,
    ),
    noun(
        "comment note annotation remark",
        ">messages {*}",
        COMMENT,
        COMMENT,
        "`messages --done {1:ID}` puts a message away",
    ),
    noun(
        "project workspace repo repository team",
        ">status {*}",
        ">status {*}",
        "`init {*:GOAL}` makes a board in this directory",
        "a board is its directory .coordination; `help back` says how it is kept and removed",
    ),
    noun(
        "phase milestone epic sprint roadmap outline hierarchy gantt wbs",
        ">tree {*}",
        ">tree {*}",
        "`add {1:TEXT} --path P1` adds a task at a place of the plan",
        ">tree",
    ),
    noun(
        "worktree branch checkout",
        "`agents` says who does what; `show TASK` names the branch and `diff TASK` shows the work",
        "`agents` says who does what; `diff {1:TASK}` shows the work on a task",
        "`work --help` says how agents get worktrees of their own",
        "`help git` says what becomes of worktrees",
    ),
    noun(
        "file lock reservation lease",
        "`guard FILE` says who holds a file; `agents` lists who does what",
        "`guard {1:FILE}` says who holds a file",
        "`call reserve_files --help` reserves files for an agent",
        "`call release_files --help` gives files back",
    ),
];

pub(super) const ROWS: &[Row] = &[
    // Seeing
    row(
        "stat progress summary overview dashboard home recap digest standup situation stuck \
         problem bottleneck trouble count total whats-up sup eta when finish-time remaining forecast \
         percent st attention",
        ">status {*}",
        ">show {*}",
        "",
    ),
    row(
        "inspect cat detail display look peek read see about lookup print view-task",
        ">status",
        ">show {*}",
        "",
    ),
    row(
        "open unfinished pending unresolved remaining-tasks",
        ">tasks --status open {*}",
        ">show {*}",
        "",
    ),
    row(
        "todo ready available queue next backlog upcoming free claimable actionable unclaimed \
         unassigned",
        ">tasks --ready {*}",
        "",
        "",
    ),
    row(
        "doing wip in-progress inprogress active running current ongoing started busy working in-work",
        ">tasks --status doing {*}",
        "",
        "",
    ),
    row(
        "completed closed finished resolved shipped merged",
        ">tasks --status done {*}",
        ">show {*}",
        "",
    ),
    row("failed failure error broken crashed dead", ">tasks --failed {*}", ">show {*}", ""),
    row("cancelled canceled dropped", ">tasks --status cancelled {*}", ">show {*}", ""),
    row("blocked stalled", ">tasks --blocked {*}", ">explain {1}", ""),
    row("waiting delayed scheduled", ">tasks --blocked --waiting {*}", ">explain {1}", ""),
    row("why reason cause depends-on waits-for", ">tasks --blocked", ">explain {1}", ">show {1}"),
    row("mine my me-tasks my-tasks assigned owned held", ">tasks --of human {*}", "", ""),
    row(
        "recent latest last newest news activity timeline journal feed trail happened",
        ">log {*}",
        "",
        "",
    ),
    row("audit audit-log changelog reflog", ">history {*}", ">log {*}", ""),
    row("blame record", ">log", ">log {1}", ""),
    row(
        "tail follow stream listen logs-follow",
        "`watch` prints events as they happen, `log` those that were",
        "`log {1:AGENT}` says what it did, `watch` prints events as they happen",
        "`log {1:AGENT}` says what it did, `watch --of {1:AGENT}` what it does",
    ),
    row(
        "top monitor live htop",
        "`ui` shows the board live and takes keys, `status --watch` shows it anew with each change",
        "`edit {1:TASK} --priority 1` puts a task first; `ui` shows the board live",
        "`log {1:AGENT}` says what an agent did; `ui` shows the board live",
    ),
    row(
        "burndown velocity throughput performance chart statistics analytics duration",
        ">report",
        "",
        "",
    ),
    row("cost spend budget money spent usage-report", COSTS, "", ""),
    row("graph dot mermaid dag diagram", ">tasks --graph", "", ""),
    row("patch changeset commits changes", ">log", ">diff {1}", ">log {1}"),
    row("output outcome answer-of", ">results", ">results {*}", ""),
    row(
        "search find grep query filter look-for lookfor locate ack rg",
        "`tasks --search WORDS` finds tasks",
        ">tasks --search {1..}",
        "",
    ),
    row(
        "permission permit waiting-for-me",
        ">agents",
        "an agent that waits for permission asks for it in its own terminal; `agents` says which do",
        "",
    ),
    row(
        "allow grant authorize unblock-agent",
        "an agent that waits for permission asks for it in its own terminal; `agents` says which do",
        "",
        "",
    ),
    row(
        "whoami me id user-name",
        "you are the person in charge, unless --agent ID names an agent; `agents` lists those",
        "",
        "",
    ),
    // Changing tasks
    row(
        "pri prio priority prioritize prioritise bump urgent first promote raise rank reorder boost expedite",
        "`edit {1:TASK} --priority 1` puts a task first",
        "",
        "",
    ),
    row(
        "demote lower deprioritize postpone defer later snooze shelve park skip backburner depri",
        LAST,
        "",
        "",
    ),
    row(
        "hold drain cordon",
        "`pause` stops new claims; `edit TASK --priority 10` moves a task to the end",
        "`edit {1:TASK} --priority 10` moves a task to the end; `pause` stops new claims",
        "`pause {1:AGENT}` gives an agent no more tasks",
    ),
    row("uncordon undrain", RESUME, RESUME, RESUME),
    row("move mv reparent relocate", MOVE, "", ""),
    row("rename retitle title", "`edit {1:TASK} --title {2..:TEXT}`", "", ""),
    row("redescribe rewrite amend", "`edit {1:TASK} --description {2..:TEXT}`", "", ""),
    row("untag unlabel", "`edit {1:TASK} --no-tags`", "", ""),
    row(
        "block depend link needs require chain wait-for",
        "`edit {1:TASK} --depends {2:OTHER}` lets a task wait for another",
        "",
        "`pause {1:AGENT}` gives an agent no more tasks",
    ),
    row(
        "unblock undepend unlink",
        "`edit {1:TASK} --no-depends` lets a task wait for nothing; `explain {1:TASK}` says what \
         it waits for",
        "",
        RESUME,
    ),
    row(
        "split break-down breakdown decompose expand",
        "`add TEXT --path P1.M1.T1` adds a task at a place, a part of what is above it; `show \
         {1:TASK}` has the path",
        "",
        "",
    ),
    row(
        "duplicate copy cp clone",
        "`show {1:TASK}` has the text of a task, `add TEXT` adds another",
        "",
        "",
    ),
    row("annotate", COMMENT, "", ""),
    row(
        "ask",
        ">answer",
        "`send AGENT {1..:TEXT} --request` asks an agent; `answer` lists what agents ask you",
        "`send {1:AGENT} {2..:TEXT} --request` asks an agent",
    ),
    row(
        "redo",
        "`history` shows what was undone, to be done again; `retry {*:TASK}` begins a failed task again",
        "",
        RESUME,
    ),
    row("due deadline schedule reschedule calendar reminder remind date", DATES, "", ""),
    row(
        "rm delete remove del drop discard trash destroy erase canel cancle cancell cancal",
        "`cancel TASK` ends a task that is no longer wanted; `agents forget ID` takes an agent \
         off the list",
        CANCEL,
        FORGET,
    ),
    row(
        "abort",
        CANCEL,
        CANCEL,
        "`stop {1:AGENT}` asks an agent to stop, `stop {1:AGENT} --now` releases its task at once",
    ),
    row(
        "wontfix dismiss ignore obsolete",
        "`cancel {*:TASK} --reason TEXT` ends a task that is no longer wanted",
        "",
        FORGET,
    ),
    row(
        "restart resubmit rerun reopen requeue reactivate revive uncancel undelete unclose \
         repeat re-run re-open",
        RETRY,
        "",
        RESUME,
    ),
    row(
        "respond",
        ">answer",
        "`answer {1:Q1} {2..:TEXT}` answers a question, `send AGENT TEXT` sends a message",
        "`send {1:AGENT} {2..:TEXT}` tells an agent; `answer` lists what agents ask you",
    ),
    row("now what today", ">status", "", ""),
    row("idle assignment roster presence online", ">agents", "", ">show {1}"),
    row(
        "do mark",
        ">tasks --ready",
        "`done {1:TASK} TEXT` completes a task that you hold, `claim {1:TASK}` takes it",
        "",
    ),
    row("try again", ">retry", RETRY, RESUME),
    row(
        "accept merge lgtm ok okay confirm pass sign-off signoff ship shipit land",
        APPROVE,
        "",
        "",
    ),
    row("deny decline refuse send-back sendback bounce request-changes disapprove", REJECT, "", ""),
    // Agents
    row(
        "kill halt interrupt terminate abort-agent sigterm sigkill",
        "`stop AGENT` asks an agent to stop, `stop AGENT --now` releases its task at once; \
         `pause` stops all claims",
        "`cancel {*:TASK}` ends a task; `stop AGENT` asks the agent that holds it to stop",
        "`stop {1:AGENT}` asks an agent to stop, `stop {1:AGENT} --now` releases its task at once",
    ),
    row(
        "ban evict kick disconnect expel fire suspend freeze lockdown",
        "`pause` stops all claims; `stop AGENT` asks an agent to stop",
        "`pause {1:AGENT}` gives an agent no more tasks, `stop {1:AGENT}` asks it to stop",
        "",
    ),
    row("thaw unfreeze unlock-board wake wakeup go", "`resume` allows claims again", RESUME, ""),
    row("forget unregister deregister", FORGET, "", ""),
    row("unassign unreserve", "`assign {1:TASK}` without an agent opens a task to all", "", ""),
    row(
        "unclaim untake give-back giveback yield surrender",
        "`release {1:TASK}` gives a task back to the queue",
        "",
        "",
    ),
    row(
        "handoff hand-off handover hand-over delegate transfer pass-to dispatch route",
        "`assign {1:TASK} {2:AGENT}` keeps a task for an agent; `release {1:TASK}` first, if \
         another holds it",
        "",
        "",
    ),
    row("tell say-to dm whisper talk chat ping-agent write contact nudge poke", SEND, "", ""),
    row(
        "say broadcast announce wall shout yell tell-all post",
        "`send all {1..:TEXT}` tells all agents",
        "",
        "",
    ),
    row(
        "attach ssh exec shell console enter connect-to",
        "`send {1:AGENT} TEXT` tells an agent, `log {1:AGENT}` says what it did; its session is \
         in its own terminal",
        "",
        "",
    ),
    row("spawn scale launch hire fleet swarm daemon run-server up spin-up boot", WORK, "", ""),
    row(
        "down exit quit logout shutdown poweroff",
        "nothing runs in the background; `pause` stops claims, `stop AGENT` asks an agent to stop",
        "",
        "`stop {1:AGENT}` asks an agent to stop",
    ),
    row(
        "invite enroll enrol share join register login signin sign-in auth authenticate",
        INVITE,
        "",
        "",
    ),
    // The board and the program
    row("subscribe unsubscribe mute unmute silence unsilence toast desktop", NOTIFY, "", ""),
    row(
        "env environment variable",
        "`help settings` says what can be set; `man` lists the variables",
        "",
        "",
    ),
    row(
        "setup install bootstrap configure onboard enable",
        "`init GOAL` makes a board, `connect claude` lets a client's agents in",
        "`connect {1:claude}` lets a client's agents in, `init GOAL` makes a board",
        "",
    ),
    row("version ver release-notes", ">--version", "", ""),
    row(
        "upgrade self-update selfupdate update-self",
        "callboard is updated as it was installed; `--version` says which one this is",
        "",
        "",
    ),
    row(
        "command documentation doc manual example tutorial quickstart guide intro \
         introduction getting-started faq wiki readme learn howto how-to usage tip h halp topic",
        ">help",
        ">help {1}",
        ">help",
    ),
    row(
        "check health healthcheck fsck ping debug diagnose diagnostic validate lint self-test \
         selftest test troubleshoot doctor-board",
        ">doctor",
        "",
        ">show {1}",
    ),
    row(
        "repair fix recover heal",
        "`doctor` checks the board, `doctor --repair` repairs it",
        "",
        "",
    ),
    row(
        "save",
        "`snapshot create` keeps the present state, `backup FILE` writes all to one file",
        "",
        "",
    ),
    row(
        "dump print-all print-state json",
        "`state` prints everything as JSON, `export` lists the formats for other tools",
        "",
        "",
    ),
    row(
        "load ingest read-plan seed",
        "`import FILE` brings tasks in",
        "`import {1:FILE}` brings tasks in",
        "",
    ),
    row(
        "sync push pull commit fetch publish upload download synchronize flush",
        "nothing has to be synchronised: all agents on this machine share the board; `serve` \
         serves it to others, `backup FILE` keeps a copy",
        "",
        "",
    ),
    row(
        "archive prune clean clear gc vacuum tidy compact cleanup clean-up housekeeping flush-old",
        "finished tasks retire by themselves; `tasks --status done` lists those that have not",
        "",
        "",
    ),
    row(
        "alias shortcut macro",
        "there are no aliases of your own; `completions bash` completes commands and names",
        "",
        "",
    ),
    row(
        "gui browser site page webui web-ui website kanban",
        "`web` opens the board in a browser",
        "",
        "",
    ),
    row(
        "server api open-board start-server httpd",
        "`serve` serves the board over HTTP, `web` opens it in a browser",
        "",
        "",
    ),
    row("unlock", "`call release_files --help` gives files back that an agent reserved", "", ""),
];

/// Words behind a command that cannot stand there, by the commands: what was meant.
pub(super) const BEHIND: &[(&str, &str, &str)] = &[
    (
        "stop",
        "all everything everyone everybody",
        "`pause` gives nobody a new task; `stop AGENT` asks an agent to stop what it does",
    ),
    ("pause", "all everything everyone everybody board", ">pause"),
    ("resume", "all everything everyone everybody board", ">resume"),
    (
        "approve",
        "all everything",
        "`approve` lists what waits for review, and the line that accepts it",
    ),
    (
        "notify",
        "on off enable disable mute unmute set add remove rm config desktop email slack webhook",
        NOTIFY,
    ),
    ("agents", "add new create spawn start invite register", INVITE),
    ("undo", "last it that again", ">undo"),
    ("tree", "list ls show all", ">tree"),
    ("backup", "create make new start run save", "`backup FILE` writes all to one file"),
    (
        "backup",
        "list ls show all",
        "a backup is a file where it was written; `snapshot list` lists the snapshots",
    ),
    ("snapshot", "save take keep store", "`snapshot create` keeps the present state"),
    ("notify", "list ls show get info", ">notify"),
    (
        "token",
        "used use usage spent cost spend consumed consumption count total budget left remaining",
        COSTS,
    ),
    ("agents", "has holds owns", "`guard {2:FILE}` says who holds a file"),
    ("run", "list ls all", ">runs"),
    ("plan", "show get view describe print cat info status", ">plan list"),
    ("plan", "add new create load", "`plan import {2:PLAN.md}` takes a plan in"),
    ("snapshot", "show get view describe info inspect", ">snapshot list"),
    (
        "artifact",
        "add new create upload put",
        "`artifact attach {2:TASK} {3:FILE}` keeps a file with a task",
    ),
    (
        "completions",
        "install setup",
        "`completions bash` prints the script; source it in your shell's start file",
    ),
];

/// What is meant by a command without the argument that it needs, by the word that was typed.
pub(super) const MISSING: &[(&str, &str)] = &[
    ("run", ">runs"),
    ("work", "`work -- COMMAND` runs the command for each task; `help work` has examples"),
    (
        "set update modify",
        "`edit TASK --priority 1` changes a task; `help settings` says what else can be set",
    ),
    (
        "done close finish",
        "`done TASK TEXT` completes a task that you hold; `tasks --status done` lists what is done",
    ),
    (
        "start",
        "nothing has to be started; `work --agents 3 -- COMMAND` runs agents, `--agent NAME start TASK` says that one begins a task",
    ),
    ("init", "`init GOAL` makes a board here; the goal says what all the tasks are for"),
];
