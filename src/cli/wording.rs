//! The board names its operations, as agents call them; whoever types is told the commands.

use crate::ops::{self, AgentArgument};

const COMMANDS: [(&str, &str); 41] = [
    ("claim_task", "claim"),
    ("start_task", "start"),
    ("complete_task", "complete"),
    ("fail_task", "fail"),
    ("release_task", "release"),
    ("cancel_task", "cancel"),
    ("retry_task", "retry"),
    ("create_task", "add"),
    ("create_tasks_batch", "add --batch"),
    ("get_task", "show"),
    ("get_all_tasks", "tasks"),
    ("get_results", "tasks --status done"),
    ("get_status", "status"),
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
    ("explain_task", "explain"),
    ("reset_tasks", "reset"),
];

/// A worker would be refused, so that its name has no place before them.
const OF_LEADERS: [&str; 7] = [
    "cancel_task",
    "retry_task",
    "reset_tasks",
    "import_plan",
    "create_snapshot",
    "restore_snapshot",
    "delete_checkpoints",
];

/// Arguments that messages name, and the options for them.
const ARGUMENTS: [(&str, &str); 4] = [
    ("wait_seconds: ", "--wait "),
    (" {task_id}", " and its id"),
    (" with all: true", " --all"),
    (" with scope ", " --scope "),
];

/// `text` with every operation that has a command of its own replaced by it, or else by `callboard call`. What stands
/// between backquotes is somebody's name for something and stays.
pub fn in_commands(text: &str, agent: Option<&str>) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut told = String::with_capacity(text.len());
    for (index, part) in parts.iter().enumerate() {
        if index % 2 == 0 {
            told.push_str(&plain(part, agent));
            continue;
        }
        // What the command is to be done to is its argument.
        match told.strip_suffix("` ").filter(|before| ends_with_own_command(before)).map(str::len) {
            Some(end) => told.replace_range(end.., " "),
            None => told.push('`'),
        }
        told.push_str(part);
        told.push_str(if index + 1 < parts.len() { "`" } else { "" });
    }
    told
}

/// `callboard call` takes JSON.
fn ends_with_own_command(text: &str) -> bool {
    let command = text.rsplit('`').next().unwrap_or_default();
    command.starts_with("callboard ") && !command.split(' ').any(|word| word == "call")
}

fn plain(text: &str, agent: Option<&str>) -> String {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_name) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_name(c)).unwrap_or(from.len()));
        told.push_str(before);
        // Also what others may do to what is theirs.
        let is_a_leaders = told.rsplit(';').next().is_some_and(|clause| clause.contains("a leader can"));
        let agent = agent.filter(|_| !is_a_leaders && !OF_LEADERS.contains(&word));
        told.push_str(&command(word, agent).unwrap_or_else(|| word.to_owned()));
        rest = after;
    }
    told.push_str(rest);
    ARGUMENTS.iter().fold(told, |told, (argument, option)| told.replace(argument, option))
}

/// Names of one word are words of the language, too.
fn command(word: &str, agent: Option<&str>) -> Option<String> {
    let operation = ops::find(word).filter(|_| word.contains('_'))?;
    let agent = agent.filter(|_| operation.agent != AgentArgument::None);
    let agent = agent.map(|agent| format!("--agent {agent} ")).unwrap_or_default();
    Some(match COMMANDS.iter().find(|(name, _)| *name == word) {
        Some((_, command)) => format!("`callboard {agent}{command}`"),
        None => format!("`callboard {agent}call {word}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_become_commands() {
        let told = |text| in_commands(text, None);
        assert_eq!(told("claim another with claim_task"), "claim another with `callboard claim`");
        assert_eq!(told("no task `a`; see get_all_tasks for those"), "no task `a`; see `callboard tasks` for those");
        let path = "no task `P1`; that is a path; get_all_tasks with scope P1 has it";
        assert_eq!(told(path), "no task `P1`; that is a path; `callboard tasks` --scope P1 has it");
        assert_eq!(told("call claim_task again with wait_seconds: 50"), "call `callboard claim` again with --wait 50");
        assert_eq!(told("call register_agent first"), "call `callboard call register_agent` first");
        assert_eq!(told("claim it with claim_task {task_id}"), "claim it with `callboard claim` and its id");
        assert_eq!(told("retry_task `a`, or explain_task"), "`callboard retry a`, or `callboard explain`");
        assert_eq!(told("update_task `a` its text"), "`callboard call update_task` `a` its text");
    }

    #[test]
    fn who_acts_is_named_where_it_matters() {
        assert_eq!(in_commands("claim_task", Some("w")), "`callboard --agent w claim`");
        assert_eq!(in_commands("get_all_tasks", Some("w")), "`callboard tasks`");
        assert_eq!(
            in_commands("retry_task `a`; claim_task", Some("w")),
            "`callboard retry a`; `callboard --agent w claim`"
        );
        let told = in_commands("a leader can raise it with save_checkpoint; claim_task another", Some("w"));
        assert_eq!(told, "a leader can raise it with `callboard checkpoint save`; `callboard --agent w claim` another");
    }

    #[test]
    fn names_and_words_stay() {
        for text in
            ["no agent `claim_task`", "pause, resume and heartbeat", "claim_tasks", "my_claim_task", "ünïcode `"]
        {
            assert_eq!(in_commands(text, None), text);
        }
    }

    #[test]
    fn every_command_of_the_table_has_its_operation() {
        for (name, _) in COMMANDS {
            assert!(ops::find(name).is_some(), "{name}");
        }
    }
}
