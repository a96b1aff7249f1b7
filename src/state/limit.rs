//! All limits of the board, in one table. Exceeding one is refused, naming the limit and the actual
//! size.

use super::refusal::Refusal;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    pub what: &'static str,
    pub max: usize,
    pub unit: &'static str,
    /// What a caller over the limit can do.
    pub way_out: &'static str,
}

const SMALLER: &str = "make it smaller or split it";

macro_rules! limits {
    ($($name:ident = $what:literal, $max:expr, $unit:literal $(or $way_out:literal)?;)*) => {
        $(pub const $name: Limit = Limit {
            what: $what,
            max: $max,
            unit: $unit,
            way_out: [$($way_out,)? SMALLER][0],
        };)*
        pub const ALL: &[Limit] = &[$($name),*];
    };
}

limits! {
    ID = "id", 64, "bytes";
    GOAL = "goal", 8 * 1024, "bytes";
    MASTER_PLAN = "master_plan", 256 * 1024, "bytes";
    TITLE = "title", 200, "bytes";
    DESCRIPTION = "description", 16 * 1024, "bytes";
    HINTS = "hints", 16 * 1024, "bytes";
    OUTPUT = "output", 64 * 1024, "bytes";
    DATA = "data", 64 * 1024, "bytes";
    METADATA = "metadata", 16 * 1024, "bytes";
    METADATA_KEPT = "metadata of an item that comes from elsewhere", 128 * 1024, "bytes";
    DEPTH = "nesting of data and metadata", 32, "levels";
    ERROR = "error", 16 * 1024, "bytes";
    NOTE = "note", 2 * 1024, "bytes";
    REASON = "reason", 2 * 1024, "bytes";
    AWAITED = "what an agent waits for, or where", 200, "bytes";
    SNAPSHOT_LABEL = "snapshot label", 200, "bytes";
    CONTENT = "discovery content", 16 * 1024, "bytes";
    LABEL = "tag or capability", 100, "bytes";
    LABELS = "tags or capabilities of one thing", 50, "entries";
    PATH = "file path", 1024, "bytes";
    // SQLite opens no path of more than 512 bytes, with the names of the journal's files.
    BOARD_PATH = "path of the board's directory", 470, "bytes" or "name one with a shorter path with --dir";
    FILES = "files of one task", 500, "entries";
    DEPENDENCIES = "dependencies of one task", 200, "entries";
    BATCH = "tasks or operations in one batch", 5_000, "entries";
    TASKS = "live tasks", 1_000_000, "entries" or "wait until some are done and retire, or cancel what is not needed";
    PLAN = "plan", 8 * 1024 * 1024, "bytes";
    PLAN_ITEMS = "items of one plan", 20_000, "entries";
    PLAN_NAME = "name of a plan", 1024, "bytes";
    PLANS = "plans", 100, "entries" or "take one that is over off the board: `callboard plan remove NAME`";
    CARRIED = "items carried by one import", 1_000, "entries";
    READ = "files of one import together", 64 * 1024 * 1024, "bytes";
    READ_FILES = "files of one import", 20_000, "files";
    IMPORT_METADATA = "metadata of one import", 1024 * 1024, "bytes";
    PLAN_DEPTH = "levels of a plan", 5, "levels";
    // Each level is a call within the last one, and deeper ones end the process with a full stack.
    JSON_DEPTH = "nesting of items in JSON", 100, "levels";
    AGENTS = "agents", 10_000, "entries"
        or "who was not heard of for half an hour makes room, unless it holds or has to read something: wait, or act as one that is there, see get_agents";
    REFERENCES = "references", 500, "entries";
    QUERY = "query", 500, "bytes";
    SUPERSEDED = "discoveries superseded by one", 20, "entries";
    DISCOVERIES = "discoveries", 20_000, "entries"
        or "those that are superseded make room: name older ones in supersedes, or say it in the output of your task";
    MESSAGE = "message text", 8 * 1024, "bytes";
    OPTIONS = "options of one question", 10, "entries";
    OPTION = "option of a question", 200, "bytes";
    MESSAGES = "messages", 20_000, "entries"
        or "what all have read makes room, so each reader has to acknowledge with get_messages";
    INBOX = "unread messages of one reader", 200, "entries";
    RECIPIENTS = "recipients of one message", 1_000, "agents";
    ACKNOWLEDGED = "messages acknowledged in one call", 200, "entries";
    BUNDLE = "context bundle", 256 * 1024, "bytes";
    BUNDLE_SCOPE = "scope of context bundles", 200, "bytes";
    BUNDLE_SCOPES = "scopes with context bundles", 1_000, "entries"
        or "delete the directory below bundles/ of a scope that nobody uses any more: `callboard bundle list` has them";
    CHECKPOINT = "state of one checkpoint", 1024 * 1024, "bytes";
    ARTIFACT = "artifact", 8 * 1024 * 1024, "bytes";
    ARTIFACTS = "artifacts of one task", 50, "entries"
        or "attach it under a name that is there: it takes the place of that one";
    WORKFLOWS = "workflows", 500, "entries"
        or "one that is over can go: `callboard checkpoint delete WORKFLOW --all`";
    BUDGET = "budget or what was spent", 1 << 53, "units";
    RESERVATIONS = "reservations", 5_000, "entries"
        or "give up those you need no more with release_files, or wait until some end";
    RESERVED_FILES = "files of one reservation", 100, "entries";
    RESERVED_BY_AGENT = "files that one agent reserves", 500, "entries"
        or "give up those you need no more with release_files, or name their directory instead";
    RESERVED_MINUTES = "minutes of one reservation", 1_440, "minutes";
    KEPT_MINUTES = "minutes for which a task is kept for an agent", 1_440, "minutes";
    RUN_SESSIONS = "sessions of runs", 100_000, "entries"
        or "those make room whose runs have all retired and that no results wait for: keep_finished in config.toml says how many runs stay";
    STOPPING = "runs that are being stopped", 100, "entries";
    ATTEMPTS = "max_attempts", 100, "attempts";
    HELD = "max_concurrent", 100, "tasks";
    PAGE = "page size (limit)", 1_000, "entries";
    WAIT = "wait_seconds", 50, "seconds";
    SPAN = "timeout_seconds, silent_minutes or estimated_minutes", 10_000_000, "units";
    IDEMPOTENCY_KEY = "idempotency_key", 200, "bytes";
    ARGUMENTS = "arguments of one call", 16 * 1024 * 1024, "bytes";
    // A checkpoint of the largest state fits, with what is around it.
    BODY = "body of one HTTP request or WebSocket message", 2 * 1024 * 1024, "bytes";
    LINE = "line of MCP on standard input", 17 * 1024 * 1024, "bytes";
    IN_FLIGHT = "requests in flight on one WebSocket, or of MCP on standard input (one more for each MiB of one)", 256, "requests";
    CONNECTIONS = "connections to one server", 4_096, "connections";
    SESSIONS = "MCP sessions of one server, before 2026-07-28", 1_024, "sessions";
    SUBSCRIPTIONS = "subscriptions on one connection", 16, "subscriptions";
    RPC_BATCH = "calls in one JSON-RPC batch", 64, "calls";
    REPLIES = "replies to one JSON-RPC batch (or one on a WebSocket)", 128 * 1024 * 1024, "bytes"
        or "send this call again in another batch";
    TOKENS = "tokens of one board", 200, "entries"
        or "end one that nobody needs: `callboard token revoke NAME`, `callboard token list` has them";
    WAITING = "calls that wait in one process", 8_192, "calls";
    QUEUED = "calls that one process has not looked at", 1_024, "calls";
    READING = "long reads of one process at once", 4, "calls";
    READING_OF_ONE = "long reads of one token at once", 2, "calls";
    FETCHING = "calls that read snapshots or bundles at once", 4, "calls";
}

/// Minutes for which a code logs a browser in, and codes of one server that wait to be used.
pub const CODE_MINUTES: u64 = 15;
pub const CODES: usize = 100;
/// Days for which a browser stays logged in.
pub const COOKIE_DAYS: i64 = 30;
/// Pages of one visitor that a server keeps up to date at once.
pub const OPEN_PAGES: usize = 200;
/// Drawings of the graph that one server keeps.
pub const DRAWINGS: usize = 16;
/// Calls per second of one token, unless it or `config.toml` says otherwise.
pub const RATE: u32 = 1_000;
/// Minutes for which a task is kept for an agent, unless the call says otherwise.
pub const KEPT: u32 = 30;
/// Fewest characters of an id or a title that stand for the whole.
pub const SHORTEST_PART: usize = 3;
/// Tasks that are named if several may be meant.
pub const CANDIDATES: usize = 10;
/// Bytes of JSON of one reply to a model; an entry of a list that is larger alone is cut.
pub const REPLY: usize = 32_000;
/// Those of them that are for other fields than lists.
pub const BESIDE_LISTS: usize = 500;
/// Bytes of one text in a list for a model, where another operation has it whole.
pub const TEXT_SHOWN: usize = 300;
/// Entries of a list inside an entry of a list for a model, and fields of an object there.
pub const ENTRIES_SHOWN: usize = 10;
pub const FIELDS_SHOWN: usize = 30;
/// Bytes of JSON by which a claim says what its task is for.
pub const SURROUNDINGS: usize = 200;
/// Tasks above a claimed one whose titles the claim names; a task of a plan has at most three.
pub const ABOVE_SHOWN: usize = 3;
/// Tasks of a cycle that are named, and those that one task is said to wait for.
pub const CYCLE_SHOWN: usize = 10;
pub const BLOCKERS_SHOWN: usize = 20;
/// Attempts kept with a live task; older ones are in the journal.
pub const ATTEMPTS_KEPT: usize = 20;
/// Versions of the plan whose hashes are kept; older ones are in the journal.
pub const PLANS_KEPT: usize = 20;
/// Messages kept that everybody has read; the oldest go first.
pub const READ_MESSAGES_KEPT: usize = 500;
/// Replaced versions listed of one artifact; the oldest go first.
pub const VERSIONS_KEPT: usize = 20;
/// Context bundles kept in one scope; the oldest go first.
pub const BUNDLES_KEPT: usize = 1_000;
/// Checkpoints kept of one workflow at most, whatever `max_checkpoints_per_workflow` says.
pub const CHECKPOINTS_KEPT: usize = 100;
/// Bytes of one workflow's checkpoints together; the oldest go first, and the two newest stay.
pub const CHECKPOINTS_BYTES: usize = 4 * 1024 * 1024;
/// Restores whose undone events are remembered; the oldest are forgotten first.
pub const RESTORES_KEPT: usize = 100;
/// Idempotency keys that are remembered; the oldest is forgotten first.
pub const KEYS_REMEMBERED: usize = 10_000;

impl Limit {
    pub fn check(&self, actual: usize) -> Result<(), Refusal> {
        if actual <= self.max {
            Ok(())
        } else {
            Err(Refusal::OverLimit { limit: *self, actual, argument: None })
        }
    }

    /// A warning in words, with the way out, if nine tenths are used.
    pub fn nearly(&self, actual: usize) -> Option<String> {
        let Self { what, max, unit, way_out } = self;
        (actual >= max / 10 * 9)
            .then(|| format!("{what}: {actual} of at most {max} {unit}; {way_out}"))
    }

    pub fn check_text(&self, text: &str) -> Result<(), Refusal> {
        self.check(text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_made_smaller_is_not_to_be() {
        let of_board = [
            AGENTS,
            BUNDLE_SCOPES,
            DISCOVERIES,
            MESSAGES,
            RESERVATIONS,
            RUN_SESSIONS,
            TASKS,
            TOKENS,
            WORKFLOWS,
        ];
        for limit in of_board.into_iter().chain([ARTIFACTS]) {
            let full = limit.check(limit.max + 1).expect_err("there is one too many").to_string();
            assert!(full.ends_with(limit.way_out) && !full.contains("smaller"), "{full}");
        }
        assert!(TITLE.check(201).expect_err("it is too long").to_string().ends_with(SMALLER));
    }
}
