//! What a person does in a page: forms whose fields are the arguments of an operation. Whether it
//! may be done is the operation's to say.
//!
//! A form names the event that its page shows, so that one which was decided on an older state of
//! a task is refused. Forms that create something have an idempotency key made of what they say:
//! sent twice, they act once.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::{Door, Notice, Visit};
use crate::ops::{
    CreateTask, FindTasks, GetHistory, GetMessages, GetTask, Operation, SendMessage, Undo,
    UpdateTask,
};
use crate::participant::{AgentChoice, CallError, Caller};
use crate::state::State;
use crate::state::digest::sha256;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, TaskId};
use crate::state::refusal::{Refusal, cycle_text};
use crate::view::{Latest, Named, latest};

pub(super) const PREFIX: &str = "/do/";

/// Events after which an action on their task is another than the one that was meant.
const DECISIVE: [&str; 19] = [
    "cancelled",
    "claimed",
    "completed",
    "failed",
    "lease_expired",
    "plan_imported",
    "released",
    "retried",
    "reviewed",
    "run_failed",
    "started",
    "state_edited",
    "state_restored",
    "stop_requested",
    "task_kept",
    "task_opened",
    "task_updated",
    "tasks_reset",
    "tasks_retired",
];
const DEPENDENCIES: &str = "dependencies";
/// Most changes that a refusal names.
const NAMED: usize = 5;

/// A form as it was sent.
pub(super) struct Form {
    fields: Vec<(String, String)>,
    key: String,
}

impl Form {
    pub(super) fn read(visit: &Visit, body: &[u8]) -> Self {
        let viewer = visit.viewer().unwrap_or_default();
        let said = [viewer.as_bytes(), visit.path.as_bytes(), body].join(&b'\n');
        let fields = form_urlencoded::parse(body);
        let fields = fields.map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")));
        Self { fields: fields.collect(), key: format!("web-{}", &sha256(said)[..32]) }
    }

    fn field(&self, wanted: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(name, _)| name == wanted);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The first field of this name that says something: a button may say what a line leaves open.
    pub(super) fn given(&self, wanted: &str) -> Option<&str> {
        let found = self.fields.iter().filter(|(name, _)| name == wanted);
        found.map(|(_, value)| value.trim()).find(|value| !value.is_empty())
    }

    /// Where the form's page is.
    pub(super) fn back(&self) -> &str {
        let is_here = |path: &&str| {
            let is_graphic = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
            is_graphic && path.starts_with('/') && !path.starts_with("//")
        };
        self.given("back").filter(is_here).unwrap_or("/")
    }

    /// The arguments of an operation: of each pair the field, and what the operation calls it.
    /// Empty fields are left out.
    fn arguments(&self, names: &[(&str, &str)]) -> Map<String, Value> {
        let given = |(field, name): &(&str, &str)| {
            Some(((*name).to_owned(), Value::from(self.given(field)?)))
        };
        names.iter().filter_map(given).collect()
    }

    fn number(&self, name: &str) -> Option<Value> {
        let text = self.given(name)?;
        // What is no number is left for the operation to refuse.
        Some(text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from))
    }

    /// The entries of a field, with a comma or the end of a line behind each: titles have spaces.
    fn list(&self, name: &str) -> Vec<&str> {
        let entries = self.field(name).into_iter().flat_map(|text| text.split([',', '\n']));
        entries.map(str::trim).filter(|one| !one.is_empty()).collect()
    }
}

/// The call that an action stands for, and what is said when it is done.
struct Act {
    operation: &'static str,
    arguments: Map<String, Value>,
    done: &'static str,
}

/// The call of the action with this name; none if there is no such action.
fn act(name: &str, form: &Form) -> Option<Act> {
    let of_task = |operation, more: &[(&str, &str)], done| {
        let names = [&[("task", "task_id")], more].concat();
        let mut arguments = form.arguments(&names);
        arguments.extend(form.number("attempt").map(|attempt| ("attempt".to_owned(), attempt)));
        Some(Act { operation, arguments, done })
    };
    let of_agent = |operation, more: &[(&str, &str)], done| {
        Some(Act { operation, arguments: form.arguments(more), done })
    };
    match name {
        "add" => Some(Act { operation: CreateTask::NAME, arguments: added(form), done: "added" }),
        "edit" => {
            Some(Act { operation: UpdateTask::NAME, arguments: edited(form), done: "changed" })
        }
        "assign" if form.given("to").is_some() => {
            of_task("assign_task", &[("to", "to")], "assigned")
        }
        "assign" => of_task("assign_task", &[], "open to all agents"),
        "cancel" => of_task("cancel_task", &[("reason", "reason")], "cancelled"),
        "retry" => of_task("retry_task", &[], "available again"),
        "approve" => of_task("approve_task", &[("comment", "comment")], "approved"),
        "reject" => of_task("reject_task", &[("reason", "reason")], "sent back"),
        "release" => of_task("release_task", &[("reason", "reason")], "released"),
        "answer" => Some(sent(form, &[("message", "reply_to"), ("text", "text")], "answered")),
        "message" => {
            Some(sent(form, &[("to", "to"), ("text", "text"), ("about", "task_id")], "sent"))
        }
        "read" => {
            let read: Vec<_> = form.given("message").into_iter().collect();
            let arguments = Map::from_iter([("acknowledge".to_owned(), json!(read))]);
            Some(Act { operation: GetMessages::NAME, arguments, done: "read" })
        }
        "undo" => {
            let event = form.number("event").map(|event| ("seq".to_owned(), event));
            let arguments = event.into_iter().collect();
            Some(Act { operation: Undo::NAME, arguments, done: "undone" })
        }
        "pause" | "resume" => {
            let mut arguments = form.arguments(&[("reason", "reason")]);
            // Without an agent, all claims are meant.
            let agent = form.given("agent").map(|agent| ("agents".to_owned(), json!([agent])));
            arguments.extend(agent);
            let (operation, done) =
                if name == "pause" { ("pause", "paused") } else { ("resume", "resumed") };
            Some(Act { operation, arguments, done })
        }
        "stop" => {
            let mut act = of_agent(
                "stop_agent",
                &[("agent", "agent"), ("reason", "reason")],
                "asked to stop",
            )?;
            if form.given("now").is_some() {
                act.arguments.insert("now".to_owned(), Value::from(true));
                act.done = "stopped";
            }
            Some(act)
        }
        _ => None,
    }
}

fn added(form: &Form) -> Map<String, Value> {
    let mut arguments = form.arguments(&[("title", "title"), ("description", "description")]);
    // A title alone is all that many tasks need.
    if let Some(title) = form.given("title") {
        arguments.entry("description").or_insert(Value::from(title));
    }
    arguments.extend(form.number("priority").map(|priority| ("priority".to_owned(), priority)));
    arguments.insert(DEPENDENCIES.to_owned(), json!(form.list("after")));
    arguments.insert("tags".to_owned(), json!(form.list("tags")));
    arguments.insert("idempotency_key".to_owned(), Value::from(form.key.as_str()));
    arguments
}

/// Only fields that the form has are changed.
fn edited(form: &Form) -> Map<String, Value> {
    let mut arguments =
        form.arguments(&[("task", "task_id"), ("title", "title"), ("description", "description")]);
    arguments.extend(form.number("priority").map(|priority| ("priority".to_owned(), priority)));
    if form.field("after").is_some() {
        replace(&mut arguments, DEPENDENCIES, json!(form.list("after")));
    }
    // A tag with a comma in it stays one as long as the field is left as it was.
    if form.field("tags") != form.field("tags_before") {
        replace(&mut arguments, "tags", json!(form.list("tags")));
    }
    arguments
}

/// Gives a list of the task another value.
fn replace(arguments: &mut Map<String, Value>, name: &str, list: Value) {
    if list == json!([]) {
        let cleared = arguments.entry("clear").or_insert_with(|| json!([]));
        cleared.as_array_mut().into_iter().for_each(|cleared| cleared.push(Value::from(name)));
    } else {
        arguments.insert(name.to_owned(), list);
    }
}

fn sent(form: &Form, names: &[(&str, &str)], done: &'static str) -> Act {
    let mut arguments = form.arguments(names);
    arguments.insert("idempotency_key".to_owned(), Value::from(form.key.as_str()));
    Act { operation: SendMessage::NAME, arguments, done }
}

/// What an action came to.
pub(super) struct Outcome {
    pub status: StatusCode,
    pub notice: Notice,
}

impl Outcome {
    fn refused(status: StatusCode, text: String) -> Self {
        Self { status, notice: Notice { text, is_refusal: true } }
    }
}

impl From<CallError> for Outcome {
    fn from(error: CallError) -> Self {
        let status = match error {
            CallError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::refused(status, error.message())
    }
}

impl Door {
    /// Does what a form says; none if there is no such action.
    pub(super) async fn act(&self, visit: &Visit, name: &str, form: &Form) -> Option<Outcome> {
        let caller = acting(visit.caller.as_ref()?);
        let act = match name {
            "reorder" => self.moved(form).await,
            "link" | "unlink" => self.linked(&caller, name == "link", form).await,
            name => Ok(act(name, form)?),
        };
        let outcome = match act {
            Ok(act) => self.acted(&caller, act, form).await,
            Err(outcome) => Err(outcome),
        };
        Some(outcome.unwrap_or_else(|outcome| outcome))
    }

    async fn acted(&self, caller: &Caller, act: Act, form: &Form) -> Result<Outcome, Outcome> {
        if let (Some(task), Some(seq)) = (form.given("task"), form.given("seq")) {
            self.check_unchanged(caller, task, seq).await?;
        }
        let mut arguments = act.arguments;
        if let Some(named) = arguments.get_mut(DEPENDENCIES) {
            *named = self.ids(caller, named.take()).await?;
        }
        let is_personal = [SendMessage::NAME, GetMessages::NAME].contains(&act.operation);
        if is_personal && !caller.names_agent() {
            arguments.insert("agent_id".to_owned(), Value::from(HUMAN));
        }
        let reply = match self.handle.call(act.operation, Value::Object(arguments), caller).await {
            Ok(reply) => reply,
            Err(error) => return Err(self.objection(error).await?),
        };
        let number = reply["task"]["number"].as_u64().map(|number| format!("#{number}"));
        let what = number.or_else(|| form.given("task").or(form.given("agent")).map(str::to_owned));
        let text = match what {
            Some(what) => format!("{what}: {}", act.done),
            None => act.done.to_owned(),
        };
        Ok(Outcome { status: StatusCode::OK, notice: Notice { text, is_refusal: false } })
    }

    /// The ids of tasks that a person names by numbers, paths or titles.
    async fn ids(&self, caller: &Caller, named: Value) -> Result<Value, Outcome> {
        if named == json!([]) {
            return Ok(named);
        }
        let found = self.handle.call(FindTasks::NAME, json!({"references": named}), caller).await?;
        let found = found["tasks"].as_array().into_iter().flatten();
        Ok(found.map(|task| task["id"].clone()).collect())
    }

    /// One dependency more than the task has, or one less.
    async fn linked(&self, caller: &Caller, more: bool, form: &Form) -> Result<Act, Outcome> {
        let mut arguments = form.arguments(&[("task", "task_id")]);
        let asked = Value::Object(arguments.clone());
        let task = self.handle.call(GetTask::NAME, asked, caller).await?;
        let mut all = task["task"][DEPENDENCIES].as_array().cloned().unwrap_or_default();
        let one = Value::from(form.given("needs").unwrap_or_default());
        let done = if more {
            all.push(one);
            "waits for one task more"
        } else {
            all.retain(|id| *id != one);
            "waits for one task less"
        };
        replace(&mut arguments, DEPENDENCIES, Value::from(all));
        Ok(Act { operation: UpdateTask::NAME, arguments, done })
    }

    /// Why an operation has refused. A cycle is told by what people call its tasks.
    async fn objection(&self, error: CallError) -> Result<Outcome, Outcome> {
        let CallError::Refused(Refusal::DependencyCycle { cycle }) = error else {
            return Ok(error.into());
        };
        let called = move |state: &State| -> Vec<_> {
            let named = cycle.iter().map(|id| Named::find(state, id));
            named.map(|task| format!("{} {}", task.name(), task.title)).collect()
        };
        let text = format!(
            "nothing was changed, because tasks would wait for each other in a cycle: {}",
            cycle_text(&self.handle.look(called).await?)
        );
        Ok(Outcome::refused(StatusCode::UNPROCESSABLE_ENTITY, text))
    }

    /// A task's new place among those that are ready is another priority.
    async fn moved(&self, form: &Form) -> Result<Act, Outcome> {
        let id = |field| form.given(field).and_then(|id| TaskId::checked(id).ok());
        let (task, before) = (id("task"), id("before"));
        let found = self.handle.look(move |state| {
            let task = task?;
            Some((task.clone(), state.priority_before(&task, before.as_ref())?))
        });
        let Some((task, priority)) = found.await? else {
            let text = "no priority places it there: tasks of one priority come in the order in \
                        which they were made. Give the other a later priority first";
            return Err(Outcome::refused(StatusCode::UNPROCESSABLE_ENTITY, text.to_owned()));
        };
        let arguments = json!({"task_id": task, "priority": priority});
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        Ok(Act { operation: UpdateTask::NAME, arguments, done: "moved, by its priority" })
    }

    /// Refuses an action on a task that has changed since the page was made.
    async fn check_unchanged(&self, caller: &Caller, task: &str, seq: &str) -> Result<(), Outcome> {
        let Ok(seq) = seq.parse::<u64>() else {
            let text = "the form does not say which state it was made for; load the page again";
            return Err(Outcome::refused(StatusCode::BAD_REQUEST, text.to_owned()));
        };
        let wanted = json!({"task_id": task, "since_seq": seq, "kinds": DECISIVE, "limit": NAMED});
        let reply = self.handle.call(GetHistory::NAME, wanted, caller).await?;
        let events = reply["events"].as_array().cloned().unwrap_or_default();
        if events.is_empty() {
            return Ok(());
        }
        let told = self.handle.look(move |state| latest(state, &events)).await?;
        let changes: Vec<_> = told.iter().map(change).collect();
        let text = format!(
            "nothing was done: the task has changed since this page was made ({}); look again, \
             then decide",
            changes.join("; ")
        );
        Err(Outcome::refused(StatusCode::CONFLICT, text))
    }
}

fn change(one: &Latest) -> String {
    let actor = one.actor.as_ref().map(|actor| format!("{} ", actor.shown())).unwrap_or_default();
    format!("{actor}{} {}", one.word, one.text)
}

/// The caller, as the person unless a token says who it is.
fn acting(caller: &Caller) -> Caller {
    let mut acting = caller.clone();
    if caller.principal.is_none() {
        acting.agent = AgentChoice::Named(AgentId::trusted(HUMAN));
    }
    acting
}
