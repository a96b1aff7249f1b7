//! What a call says of the end of a task beside its own arguments, such as `status: "failed"` in `complete_task`. It goes
//! with the operation, or another operation was meant.

use serde_json::{Map, Value, json};

use super::names::{is_among, plain};
use crate::ops::{
    ApproveTask, CancelTask, ClaimTask, CompleteTask, CreateTask, FailTask, Heartbeat, Operation,
    RejectTask, ReleaseTask, StartTask, UpdateTask,
};

/// What has become, or is to become, of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Failed,
    /// Somebody else may have it.
    Free,
    Held,
    Cancelled,
    Review,
    /// Something that no operation does, or that cannot be read.
    Other,
}

/// Names under which an outcome stands in a word.
const WORDS: &str =
    "status state outcome newstatus taskstatus finalstatus resultstatus verdict resolution";
/// Names of flags that are true of what has been done, and of what has failed.
const DONE: &str = "success successful succeeded ok done completed complete iscomplete isdone finished passed approved approve accepted accept";
const FAILED: &str = "failed failure iserror haserror haserrors";
/// Names of texts that are there if something has failed.
const ERRORS: &str = "error errors errormessage exception failurereason";

/// What words say, without what separates their parts.
const MEANINGS: &[(&str, Outcome)] = &[
    (
        "done completed complete finished success successful succeeded ok passed closed resolved merged fixed approved accepted true",
        Outcome::Done,
    ),
    (
        "failed fail failure error errored unsuccessful broken rejected declined false",
        Outcome::Failed,
    ),
    ("available open todo pending ready released new backlog queued", Outcome::Free),
    ("inprogress started running working active claimed doing assigned", Outcome::Held),
    ("cancelled canceled wontfix wontdo abandoned obsolete deleted removed", Outcome::Cancelled),
    ("review inreview needsreview readyforreview", Outcome::Review),
];

/// What operations make of a task themselves.
const OWN: &[(&str, &[Outcome])] = &[
    (CompleteTask::NAME, &[Outcome::Done]),
    (FailTask::NAME, &[Outcome::Failed]),
    (ReleaseTask::NAME, &[Outcome::Free]),
    (CancelTask::NAME, &[Outcome::Cancelled]),
    (StartTask::NAME, &[Outcome::Held]),
    (ClaimTask::NAME, &[Outcome::Held, Outcome::Free]),
    (Heartbeat::NAME, &[Outcome::Held]),
    (CreateTask::NAME, &[Outcome::Free]),
    (UpdateTask::NAME, &[]),
    (ApproveTask::NAME, &[Outcome::Done]),
    (RejectTask::NAME, &[Outcome::Failed, Outcome::Free]),
];

/// What the argument says of a task's end, if it is about that.
fn said(name: &str, value: &Value) -> Option<Outcome> {
    let is = |names: &str| is_among(name, names);
    let word = match value {
        Value::String(text) => plain(text),
        Value::Bool(flag) => flag.to_string(),
        _ => String::new(),
    };
    let meaning = MEANINGS.iter().find(|(words, _)| is_among(&word, words));
    let meaning = meaning.map_or(Outcome::Other, |(_, outcome)| *outcome);
    if is(WORDS) || is(DONE) || is("result") && meaning != Outcome::Other {
        return Some(meaning);
    }
    if is(FAILED) {
        return Some(match meaning {
            Outcome::Done => Outcome::Failed,
            Outcome::Failed => Outcome::Done,
            _ => Outcome::Other,
        });
    }
    let is_none = ["none", "null", "na", "no", "false"].contains(&word.as_str());
    is(ERRORS).then_some(if is_none { Outcome::Done } else { Outcome::Failed })
}

/// What is to be said against an argument about a task's end: `None` if it is not about that, an empty text if it says
/// what `operation` does, else what to call instead. `given` are all arguments of the call.
pub(super) fn against(
    operation: &str,
    name: &str,
    value: &Value,
    given: &Map<String, Value>,
) -> Option<String> {
    let (_, own) = OWN.iter().find(|(of, _)| *of == operation)?;
    let outcome = said(name, value)?;
    if own.contains(&outcome) {
        return Some(String::new());
    }
    let call = |name: &str, text: Option<(&str, &str)>| in_full(name, text, given);
    let text = text_of(name, value, given);
    let fail = || call(FailTask::NAME, Some(("error", &text)));
    let release = || call(ReleaseTask::NAME, Some(("reason", &text)));
    let complete = || call(CompleteTask::NAME, Some(("output", &text)));
    let is_ended = [CompleteTask::NAME, FailTask::NAME, ReleaseTask::NAME].contains(&operation);
    let instead = match outcome {
        Outcome::Done if operation == RejectTask::NAME => call(ApproveTask::NAME, None),
        _ if operation == ApproveTask::NAME => call(RejectTask::NAME, Some(("reason", &text))),
        Outcome::Done => complete(),
        Outcome::Failed if operation == ReleaseTask::NAME => fail(),
        Outcome::Failed => format!("{}, or {}", fail(), release()),
        Outcome::Free if operation == UpdateTask::NAME => {
            format!("release_task gives a held task back, retry_task a failed one: {}", release())
        }
        Outcome::Free => release(),
        Outcome::Held if operation == CreateTask::NAME => "claim_task once it is there".to_owned(),
        Outcome::Held if is_ended => "heartbeat says how far you are".to_owned(),
        Outcome::Held => "claim_task takes a task, start_task begins it".to_owned(),
        Outcome::Cancelled => "cancel_task (leaders), or release_task gives it back".to_owned(),
        Outcome::Review => {
            "complete_task; it waits for approval if review is required (create_task, update_task)"
                .to_owned()
        }
        Outcome::Other if is_ended => {
            format!("complete_task if it is done, {}, or release_task", fail())
        }
        Outcome::Other => {
            "complete_task, fail_task, release_task and cancel_task change it".to_owned()
        }
    };
    Some(format!("does not go with {operation}; instead: {instead}"))
}

/// Most bytes of a text that is repeated in a call that is proposed.
const REPEATED: usize = 160;

/// What the caller has said of the end.
fn text_of(name: &str, value: &Value, given: &Map<String, Value>) -> String {
    const TEXTS: [&str; 11] = [
        "error",
        "reason",
        "error_message",
        "message",
        "output",
        "summary",
        "result",
        "note",
        "details",
        "comment",
        "feedback",
    ];
    let own = value.as_str().filter(|_| is_among(name, ERRORS));
    let other = || TEXTS.iter().find_map(|name| given.get(*name)?.as_str());
    let text = own.or_else(other).map(str::trim).filter(|text| !text.is_empty()).unwrap_or("…");
    crate::ops::claim_task::shortened(text, REPEATED)
}

/// The call with the agent and task of this one.
fn in_full(name: &str, text: Option<(&str, &str)>, given: &Map<String, Value>) -> String {
    let mut arguments = Map::new();
    for (field, names) in
        [("agent_id", ["agent_id", "agentId", "agent"]), ("task_id", ["task_id", "taskId", "id"])]
    {
        if let Some(value) =
            names.iter().find_map(|name| given.get(*name)).filter(|value| !value.is_null())
        {
            arguments.insert(field.to_owned(), value.clone());
        }
    }
    arguments.extend(text.map(|(field, text)| (field.to_owned(), json!(text))));
    format!("{name} {}", Value::Object(arguments))
}
