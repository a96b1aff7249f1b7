//! Which operation is meant by a name that none has. A near name may be of the opposite (`unclaim_task` is not
//! `claim_task`), so what is done, to what, is looked at first.

use super::names::{near, plain, words};
use crate::ops::all;

/// What is done, in the words of other tools, and the operations that do it: to tasks first, then to other things, each
/// behind the words for that thing.
const VERBS: &[(&str, &[(&str, &str)])] = &[
    (
        "unclaim release unassign drop return giveback yield relinquish unlock free",
        &[("task", "release_task"), ("file", "release_files")],
    ),
    (
        "claim next take pick pull acquire fetchnext grab pop dequeue checkout",
        &[("task", "claim_task"), ("run", "claim_run")],
    ),
    ("complete finish done close resolve submit markdone", &[("task", "complete_task")]),
    ("fail abort giveup reportfailure", &[("task", "fail_task")]),
    ("start begin", &[("task", "start_task"), ("run", "create_run"), ("session", "create_run")]),
    (
        "cancel delete remove abandon discard archive",
        &[
            ("task", "cancel_task"),
            ("checkpoint", "delete_checkpoints"),
            ("plan", "remove_plan"),
            ("agent", "forget_agent"),
            ("run", "stop_run"),
            ("file", "release_files"),
            ("reservation", "release_files"),
        ],
    ),
    ("retry reopen restart requeue rerun", &[("task", "retry_task")]),
    ("reset redo", &[("task", "reset_tasks")]),
    ("assign delegate", &[("task", "assign_task")]),
    ("approve accept", &[("task", "approve_task")]),
    ("reject sendback requestchanges", &[("task", "reject_task")]),
    (
        "set",
        &[("task", "update_task"), ("goal", "init_coordination"), ("plan", "init_coordination")],
    ),
    (
        "add create new make insert post write todowrite save",
        &[
            ("task", "create_task"),
            ("discovery", "add_discovery"),
            ("message", "send_message"),
            ("run", "create_run"),
            ("session", "create_run"),
            ("checkpoint", "save_checkpoint"),
            ("snapshot", "create_snapshot"),
            ("bundle", "save_bundle"),
            ("agent", "register_agent"),
            ("artifact", "attach_artifact"),
            ("plan", "import_plan"),
            ("file", "reserve_files"),
            ("question", "ask_human"),
        ],
    ),
    (
        "update edit modify change rename patch",
        &[
            ("task", "update_task"),
            ("run", "update_run"),
            ("plan", "import_plan"),
            ("agent", "register_agent"),
        ],
    ),
    (
        "list query search find show get read view fetch all",
        &[
            ("task", "get_all_tasks"),
            ("agent", "get_agents"),
            ("discovery", "get_discoveries"),
            ("message", "get_messages"),
            ("event", "get_history"),
            ("run", "list_runs"),
            ("session", "list_sessions"),
            ("checkpoint", "list_checkpoints"),
            ("snapshot", "list_snapshots"),
            ("plan", "list_plans"),
            ("bundle", "list_bundles"),
            ("result", "get_results"),
            ("status", "get_status"),
            ("goal", "get_master_plan"),
            ("history", "get_history"),
        ],
    ),
    ("register join connect login", &[("agent", "register_agent"), ("", "register_agent")]),
    ("unregister deregister leave kick", &[("agent", "forget_agent"), ("", "forget_agent")]),
    ("stop kill", &[("agent", "stop_agent"), ("run", "stop_run"), ("task", "cancel_task")]),
    (
        "ask askuser askhuman prompt clarify",
        &[
            ("person", "ask_human"),
            ("question", "ask_human"),
            ("", "ask_human"),
            ("message", "send_message"),
        ],
    ),
    (
        "send notify tell reply broadcast",
        &[("message", "send_message"), ("", "send_message"), ("agent", "send_message")],
    ),
    ("lock reserve", &[("file", "reserve_files")]),
    (
        "ping heartbeat keepalive alive progress",
        &[
            ("", "heartbeat"),
            ("task", "heartbeat"),
            ("progress", "heartbeat"),
            ("status", "heartbeat"),
        ],
    ),
    (
        "wait watch subscribe poll",
        &[("event", "wait_for_events"), ("", "wait_for_events"), ("task", "claim_task")],
    ),
    (
        "init initialize setup",
        &[
            ("", "init_coordination"),
            ("plan", "init_coordination"),
            ("coordination", "init_coordination"),
            ("project", "init_coordination"),
        ],
    ),
    (
        "import load",
        &[("plan", "import_plan"), ("bundle", "load_bundle"), ("checkpoint", "get_checkpoint")],
    ),
    (
        "restore rollback revert",
        &[("snapshot", "restore_snapshot"), ("", "undo"), ("checkpoint", "get_checkpoint")],
    ),
];

/// Words for what operations are about.
const THINGS: &[(&str, &str)] = &[
    ("task tasks todo todos issue issues ticket tickets job jobs work item items", "task"),
    ("agent agents worker workers", "agent"),
    ("message messages inbox mail", "message"),
    ("discovery discoveries finding findings note notes", "discovery"),
    ("file files lock locks", "file"),
    ("reservation reservations lease", "reservation"),
    ("checkpoint checkpoints", "checkpoint"),
    ("snapshot snapshots backup", "snapshot"),
    ("run runs", "run"),
    ("session sessions", "session"),
    ("plan plans", "plan"),
    ("goal", "goal"),
    ("event events log", "event"),
    ("history", "history"),
    ("result results output", "result"),
    ("status summary overview stats", "status"),
    ("bundle bundles", "bundle"),
    ("artifact artifacts attachment", "artifact"),
    ("user human person", "person"),
    ("question questions input", "question"),
    ("progress", "progress"),
    ("coordination board", "coordination"),
    ("project workspace", "project"),
];

/// Words that say nothing of what is done.
const EMPTY: &str =
    "callboard mcp tool tools functions a an the my for to me as mark of up in one by id";

/// The operations that a name may mean; none if it says nothing that is known.
fn meant(given: &str) -> Vec<&'static str> {
    // Clients put the server's name before the tool's: `mcp__callboard__x`, `callboard.x`, `callboard/x`.
    let own = given.rsplit("__").next().unwrap_or(given);
    let names = || all().iter().map(|entry| entry.name);
    let whole = plain(own);
    let bare = whole.strip_prefix("callboard").unwrap_or(&whole);
    if let Some(name) = names().find(|name| plain(name) == bare || plain(name) == whole) {
        return vec![name];
    }
    let words = words(own);
    let words =
        words.iter().filter(|word| !word.is_empty() && !EMPTY.split(' ').any(|one| one == *word));
    let words: Vec<&str> = words.map(String::as_str).collect();
    let thing = words.iter().find_map(|word| {
        let is_word = |(names, _): &&(&str, &str)| names.split(' ').any(|one| one == *word);
        THINGS.iter().find(is_word).map(|(_, thing)| *thing)
    });
    let does =
        |word: &str| VERBS.iter().find(|(verbs, _)| verbs.split(' ').any(|verb| verb == word));
    let joined = words.concat();
    // `get` and `set` say least, so any other verb comes first: `get_next_task`.
    let verb =
        words.iter().filter(|word| !["get", "set", "fetch", "all", "add", "new"].contains(word));
    let verb = does(&joined).or_else(|| verb.filter_map(|word| does(word)).next());
    let verb = verb.or_else(|| words.iter().find_map(|word| does(word)));
    if let Some((_, operations)) = verb {
        let of =
            |thing: &str| operations.iter().find(|(of, _)| *of == thing).map(|(_, name)| *name);
        let found = match thing {
            Some(thing) => of(thing),
            None => of("").or_else(|| of("task")),
        };
        return found.into_iter().collect();
    }
    let is_short = bare.len() < SHORTEST;
    let like: Vec<_> =
        names().filter(|name| !is_short && plain(name).contains(bare)).take(3).collect();
    near(own, names()).map_or(like, |name| vec![name])
}

/// Fewest letters that are looked for in the names of operations, and most that are repeated.
const SHORTEST: usize = 3;
const LONGEST: usize = 64;

/// That there is no such operation, or tool, and which may be meant.
pub(crate) fn no_operation(what: &str, given: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || "_-./".contains(*c);
    let given: String = given.chars().filter(plain).take(LONGEST).collect();
    match meant(&given).as_slice() {
        [] => format!("there is no {what} `{given}`"),
        close => format!("there is no {what} `{given}`; did you mean {}?", close.join(" or ")),
    }
}
