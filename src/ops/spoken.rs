//! What the board says to a model: only tools that its client shows it, and a shell command for
//! every other operation.

use std::borrow::Cow;

use serde_json::Value;

use super::{AgentArgument, Entry, Reader, find};

/// Operations that have a command of their own; the others are reached by `callboard call`.
const COMMANDS: [(&str, &str); 58] = [
    ("claim_task", "claim"),
    ("start_task", "start"),
    ("complete_task", "complete"),
    ("fail_task", "fail"),
    ("release_task", "release"),
    ("cancel_task", "cancel"),
    ("retry_task", "retry"),
    ("approve_task", "approve"),
    ("reject_task", "reject"),
    ("create_task", "add"),
    ("create_tasks_batch", "add --batch"),
    ("get_task", "show"),
    ("get_all_tasks", "tasks"),
    ("get_results", "results"),
    ("update_task", "edit"),
    ("assign_task", "assign"),
    ("stop_agent", "stop"),
    ("forget_agent", "agents forget"),
    ("get_status", "status"),
    ("get_board", "status"),
    ("get_report", "report"),
    ("undo", "undo"),
    ("get_agents", "agents"),
    ("add_discovery", "discoveries add"),
    ("get_discoveries", "discoveries"),
    ("send_message", "send"),
    ("get_messages", "messages"),
    ("init_coordination", "init"),
    ("wait_for_events", "watch"),
    ("get_history", "history"),
    ("create_snapshot", "snapshot create"),
    ("list_snapshots", "snapshot list"),
    ("diff_snapshots", "snapshot diff"),
    ("restore_snapshot", "snapshot restore"),
    ("verify_snapshots", "snapshot verify"),
    ("save_bundle", "bundle save"),
    ("load_bundle", "bundle load"),
    ("refine_bundle", "bundle refine"),
    ("list_bundles", "bundle list"),
    ("verify_bundles", "bundle verify"),
    ("save_checkpoint", "checkpoint save"),
    ("get_checkpoint", "checkpoint show"),
    ("list_checkpoints", "checkpoint list"),
    ("delete_checkpoints", "checkpoint delete"),
    ("attach_artifact", "artifact attach"),
    ("import_plan", "plan import"),
    ("export_plan", "plan export"),
    ("diff_plans", "plan diff"),
    ("list_plans", "plan list"),
    ("remove_plan", "plan remove"),
    ("explain_task", "explain"),
    ("reset_tasks", "reset"),
    ("get_master_plan", "plan versions"),
    ("list_runs", "runs"),
    ("get_run", "run"),
    ("stop_run", "run --stop"),
    ("list_sessions", "sessions"),
    ("get_session", "sessions"),
];

/// Operations that only leaders may use: a worker would be refused, so its name does not go before
/// them.
const OF_LEADERS: [&str; 11] = [
    "cancel_task",
    "retry_task",
    "reset_tasks",
    "import_plan",
    "remove_plan",
    "create_snapshot",
    "restore_snapshot",
    "delete_checkpoints",
    "assign_task",
    "stop_agent",
    "forget_agent",
];

/// To whom something is said.
pub struct Listener<'a> {
    pub reader: Reader,
    /// The command line that runs callboard in the listener's shell.
    pub command: Option<&'a str>,
    pub agent: Option<&'a str>,
}

/// Fields of replies in which the board itself speaks.
const SPOKEN: [&str; 5] = ["message", "next", "more", "warning", "why"];
/// Fields that hold such fields.
const INSIDE: [&str; 4] = ["handoff", "checkpoint", "unread_messages", "reasons"];

impl Listener<'_> {
    /// Rewords what the board says in a reply or a refusal. What others wrote stays, and so do the
    /// cursors of lists.
    pub fn reword(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.reword(item)),
            Value::Object(fields) => {
                let is_page = fields.contains_key("shown");
                for (name, value) in fields {
                    match value {
                        Value::String(text)
                            if SPOKEN.contains(&name.as_str()) && !(is_page && name == "next") =>
                        {
                            *text = self.reworded(text).into_owned();
                        }
                        inner if INSIDE.contains(&name.as_str()) => self.reword(inner),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// `text` with every operation that the listener does not see replaced by a command. What
    /// stands between backquotes is a command already, or the name of something.
    pub fn reworded<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.reader.is_model() {
            return Cow::Borrowed(text);
        }
        let parts = text.split('`').enumerate();
        let parts = parts.map(|(index, part)| match index % 2 {
            0 => Cow::Owned(in_commands(part, |entry, _| self.command_for(entry))),
            _ => Cow::Borrowed(part),
        });
        Cow::Owned(parts.collect::<Vec<_>>().join("`"))
    }

    fn command_for(&self, entry: &Entry) -> Option<String> {
        if self.reader.sees(entry.toolset) {
            return None;
        }
        let agent =
            self.agent.filter(|_| acts_as_agent(entry)).map(|agent| format!("--agent {agent} "));
        let (command, agent) = (self.command.unwrap_or("callboard"), agent.unwrap_or_default());
        Some(format!("`{command} {agent}{}`", subcommand(entry)))
    }
}

/// `text` with the names of operations replaced by what `command` makes of them and of the text
/// before them. Names of one word stay: they are words of the language, too.
pub(crate) fn in_commands(text: &str, command: impl Fn(&Entry, &str) -> Option<String>) -> String {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_name) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_name(c)).unwrap_or(from.len()));
        told.push_str(before);
        let operation = find(word).filter(|_| word.contains('_'));
        match operation.and_then(|entry| command(entry, &told)) {
            Some(command) => told.push_str(&command),
            None => told.push_str(word),
        }
        rest = after;
    }
    told.push_str(rest);
    told
}

/// The subcommand for an operation: its own, or else `call` with its name.
pub fn subcommand(entry: &Entry) -> String {
    let own = COMMANDS.iter().find(|(name, _)| *name == entry.name);
    own.map_or_else(|| format!("call {}", entry.name), |(_, command)| (*command).to_owned())
}

/// True if the command needs `--agent`: an agent's operation that is not for leaders alone.
pub fn acts_as_agent(entry: &Entry) -> bool {
    entry.agent != AgentArgument::None && !OF_LEADERS.contains(&entry.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ops::{Toolset, all};

    fn listener(toolset: Toolset) -> Listener<'static> {
        Listener {
            reader: Reader::Model(toolset),
            command: Some("callboard --dir /b"),
            agent: Some("w"),
        }
    }

    #[test]
    fn hidden_operations_become_commands() {
        let told = |text| listener(Toolset::Worker).reworded(text).into_owned();
        assert_eq!(told("claim another with claim_task"), "claim another with claim_task");
        assert_eq!(told("see get_all_tasks for those"), "see `callboard --dir /b tasks` for those");
        assert_eq!(
            told("a leader can retry_task `get_status`"),
            "a leader can `callboard --dir /b retry` `get_status`"
        );
        assert_eq!(told("get_messages has it"), "`callboard --dir /b --agent w messages` has it");
        assert_eq!(told("resume, my_get_status"), "resume, my_get_status");
        assert_eq!(listener(Toolset::Core).reworded("see get_all_tasks"), "see get_all_tasks");
        for entry in all() {
            assert_eq!(listener(Toolset::Full).reworded(entry.name), entry.name);
            let program = Listener { reader: Reader::Program, command: None, agent: None };
            assert_eq!(program.reworded(entry.name), entry.name);
        }
    }

    #[test]
    fn only_what_the_board_says_is_reworded() {
        let given = json!({
            "message": "get_status", "next": "get_status", "task": {"description": "get_status", "next": "get_status"},
            "handoff": {"more": "get_status", "discoveries": ["get_status"]},
        });
        let mut told = given.clone();
        listener(Toolset::Worker).reword(&mut told);
        let status = "`callboard --dir /b status`";
        assert_eq!(told["message"], status);
        assert_eq!((&told["next"], &told["handoff"]["more"]), (&json!(status), &json!(status)));
        assert_eq!(
            (&told["task"], &told["handoff"]["discoveries"]),
            (&given["task"], &given["handoff"]["discoveries"])
        );
        let mut page = json!({"shown": 1, "next": "get_status"});
        listener(Toolset::Worker).reword(&mut page);
        assert_eq!(page["next"], "get_status", "a cursor is no text");
    }

    #[test]
    fn every_command_of_the_table_has_its_operation() {
        for (name, _) in COMMANDS {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
