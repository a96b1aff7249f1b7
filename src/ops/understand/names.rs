//! Which argument is meant by a name that the operation does not have.

use strsim::damerau_levenshtein;

use super::shape::{Field, Record};

/// Other names of arguments, and the arguments that they may mean, the likeliest first. Of those that the operation has,
/// the first whose value fits is meant.
const SYNONYMS: &[(&str, &str)] = &[
    ("id", "task_id run_id session_id workflow_id agent seq plan snapshot name"),
    (
        "task todo todo_id ticket ticket_id issue issue_id item_id job_id task_ref task_number",
        "task_id",
    ),
    (
        "title name task_name task_title",
        "task_id title agent plan snapshot workflow_id goal agent_id",
    ),
    ("subject heading headline", "title"),
    ("summary", "output title note text content description reason"),
    ("desc description task_description", "description prompt content note reason"),
    (
        "body details instructions spec specification what objective",
        "description prompt text content goal",
    ),
    ("prompt", "prompt description question"),
    ("content", "content text description output note"),
    ("text", "text content description question note"),
    ("message msg", "text content note question output error comment reason"),
    ("comment comments", "comment reason note text content"),
    ("note notes", "note hints output comment reason text"),
    ("reason why cause", "reason error comment note"),
    ("error_message failure_reason exception", "error"),
    ("feedback explanation", "comment reason"),
    ("result results answer response outcome_text report", "output"),
    ("question ask", "question text"),
    ("choices answers", "options"),
    ("finding insight learning discovery", "content"),
    ("context guidance hint tips", "hints"),
    ("progress status_message activity", "note"),
    ("depends_on depends deps blocked_by prerequisites predecessors requires", "dependencies"),
    ("parent_id parent_task parent_task_id part_of epic epic_id", "parent"),
    ("reference temp_id", "ref"),
    ("labels label tag", "tags"),
    ("skills skill ability abilities capability", "capabilities"),
    (
        "files file paths path file_path file_paths filepath filename filenames patterns",
        "files context_files files_modified",
    ),
    ("relevant_files related_files", "context_files"),
    ("modified_files changed_files files_changed modified", "files_modified"),
    ("created_files new_files files_added created", "files_created"),
    ("reservation reservation_id reservation_ids", "reservations"),
    ("status state", "status_filter statuses status note"),
    ("status_filter", "statuses"),
    ("search q query keyword keywords term search_text", "query text"),
    ("priority_min", "min_priority"),
    ("priority_max", "max_priority"),
    ("sort_by order_by sort_order", "sort"),
    ("desc_order reverse", "descending"),
    ("count max_results num_results per_page page_size top size max n first", "limit"),
    (
        "cursor next next_cursor page_token next_page_token starting_after continuation",
        "after since_seq",
    ),
    ("since from_seq after_seq last_seq next_seq", "since_seq since created_since"),
    ("event event_id event_seq number", "seq number"),
    ("event_types types event_kinds kind", "kinds"),
    ("phase milestone prefix section", "scope"),
    ("timeout wait wait_time max_wait timeout_seconds", "wait_seconds timeout_seconds"),
    ("timeout_sec timeout_secs", "timeout_seconds wait_seconds"),
    ("duration ttl ttl_minutes duration_minutes", "minutes"),
    ("estimate estimated_time estimate_minutes", "estimated_minutes"),
    ("retry can_retry should_retry is_retryable recoverable", "retryable"),
    ("permanent fatal", "final"),
    ("agent who worker agent_name worker_id worker_name", "agent agents agent_id"),
    ("claimed_by claimed_by_agent assignee assigned_to owner held_by holder", "agent"),
    ("target target_agent agent_ids workers", "agent agents to"),
    ("recipient recipients receiver to_agent", "to"),
    ("from sender by actor", "agent_id"),
    ("type", "role kind category"),
    ("plan masterplan project_plan", "master_plan"),
    ("ack message_ids message_id mark_read mark_as_read", "acknowledge"),
    ("task_id id ids tasks task", "task_ids references"),
    ("items todos task_list", "tasks"),
    ("workflow workflow_name", "workflow_id"),
    ("snapshot_id snapshot_name", "snapshot"),
    ("tool operation op method action", "name"),
    ("args params parameters input inputs kwargs", "arguments"),
    ("calls steps ops actions batch requests", "operations"),
    ("preview simulate what_if", "dry_run"),
    ("worktree cwd working_directory directory", "project_dir"),
    ("branch_name git_branch", "branch"),
    ("commit_hash commit_sha sha git_commit", "commit"),
    ("metrics metadata extra", "data metadata"),
];

/// The same, where an operation means something of its own by a name.
const OWN: &[(&str, &str, &str)] = &[
    ("assign_task", "agent assignee assigned_to owner worker who agent_name", "to"),
    ("pause", "agent agent_name worker who target", "agents"),
    ("resume", "agent agent_name worker who target", "agents"),
    ("claim_task", "claimed_by assignee owner agent", "agent_id"),
    ("claim_task", "path", "scope"),
    ("get_all_tasks", "path", "scope"),
    ("attach_artifact", "title filename file_name", "name"),
    ("attach_artifact", "file file_path", "path"),
    ("attach_artifact", "data body", "text"),
    ("create_run", "task description instructions message", "prompt"),
    ("ask_human", "context", "question"),
    ("reject_task", "feedback comment comments message", "reason"),
    ("approve_task", "feedback reason message", "comment"),
];

/// Words in names of arguments that would decide on a task's order, its owner or its limits.
const ORDER: &str = "after before order needs blocks dependents sequence follows";
const PARTS: &str = "subtasks subtask children parts steps checklist";
const URGENCY: &str = "critical importance rank severity urgency urgent weight";
const OWNER: &str =
    "agent assign assigned assignee assignees assignment claimed holder owner owners worker";
const LIMITS: &str = "attempts budget cost deadline due duration expires limit max min minutes retries retry seconds tokens ttl";

/// Arguments that clients, not models, add to every call: Gemini CLI, Antigravity, Cline and OpenHands.
const ADDED: &str = "wait_for_previous wait_for_previous_tools tool_action tool_summary task_progress security_risk";

/// Fewest letters that are read as the beginning of a name.
const SHORTEST: usize = 3;

/// Whether `name`, in whatever spelling, is one of the names between spaces.
pub(super) fn is_among(name: &str, names: &str) -> bool {
    let given = plain(name);
    names.split(' ').any(|one| plain(one) == given)
}

impl Record {
    /// The field that is called so, in whatever spelling.
    pub(super) fn called(&self, given: &str) -> Option<&Field> {
        self.field(given).or_else(|| self.0.iter().find(|field| plain(&field.name) == plain(given)))
    }

    /// The fields that `given` may be another name of in a call of `operation`, the likeliest first.
    pub(super) fn synonyms(&self, operation: &str, given: &str) -> Vec<&Field> {
        let own = OWN.iter().filter(|(of, names, _)| *of == operation && is_among(given, names));
        let own = own.map(|(.., field)| *field);
        let shared = SYNONYMS.iter().filter(|(names, _)| is_among(given, names));
        let shared = shared.flat_map(|(_, fields)| fields.split(' '));
        own.chain(shared).filter_map(|name| self.field(name)).collect()
    }

    /// Whether an object with these fields becomes something on the board that keeps what it does not know.
    pub(super) fn creates(&self) -> bool {
        self.field("metadata").is_some() && self.field("task_id").is_none()
    }

    /// The field whose name is nearest to `given`, if that may be a slip of the pen or is short for it.
    pub(crate) fn near(&self, given: &str) -> Option<&str> {
        let names = || self.current().map(|field| field.name.as_str());
        let short = plain(given);
        let is_short_for = |name: &&str| short.len() >= SHORTEST && plain(name).starts_with(&short);
        near(given, names()).or_else(|| names().find(is_short_for))
    }

    /// What to give instead of an argument about order, parts, owner or limits of a task, if there is anything.
    pub(super) fn instead(&self, given: &str) -> Option<String> {
        let words = words(given);
        let is_about = |of: &str| words.iter().any(|word| of.split(' ').any(|one| one == word));
        let has = |name: &str| self.field(name).is_some();
        if is_about(PARTS) && has("dependencies") {
            return Some(PARTS_ARE.to_owned());
        }
        if is_about(ORDER) && has("dependencies") {
            return Some("no such argument; give the tasks to do first as dependencies".to_owned());
        }
        if is_about(URGENCY) && has("priority") {
            return Some("no such argument; priority is 1 (first) to 10 (last)".to_owned());
        }
        if is_about(OWNER) && has("demands") {
            let instead = "demands say who may take it; assign_task keeps it for one agent";
            return Some(format!("no such argument; {instead}"));
        }
        let limits = ["timeout_seconds", "max_attempts", "minutes", "max_concurrent"];
        let limits: Vec<_> = limits.into_iter().filter(|limit| has(limit)).collect();
        (is_about(LIMITS) && !limits.is_empty())
            .then(|| format!("no such argument; limits are {}", limits.join(" and ")))
    }
}

/// How parts of a task are made.
const PARTS_ARE: &str =
    "parts are tasks of their own: create_tasks_batch with parent, the id of this task, in each";

/// Whether clients add `given` to every call.
pub(super) fn is_added(given: &str) -> bool {
    is_among(given, ADDED)
}

/// The one of `known` that is nearest to `given`, if a third of the letters or fewer are wrong.
pub(crate) fn near<'k>(given: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let given: String = plain(given).chars().take(64).collect();
    let most = (given.len() / 3).clamp(1, 3);
    let distances = known.map(|name| (damerau_levenshtein(&given, &plain(name)), name));
    distances
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The name without the marks that separate words, in lower case: `taskId` and `task-id` are `task_id`.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words of a name: `max_retries` and `maxRetries` have two.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c.is_uppercase() || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}
