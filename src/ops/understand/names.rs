//! Which argument is meant by a name that the operation does not have.

use strsim::damerau_levenshtein;

use super::shape::Record;

/// Arguments that models know by other names.
const SYNONYMS: [(&str, &str); 23] = [
    ("depends_on", "dependencies"),
    ("deps", "dependencies"),
    ("blocked_by", "dependencies"),
    ("summary", "output"),
    ("result", "output"),
    ("labels", "tags"),
    ("timeout", "timeout_seconds"),
    ("task", "task_id"),
    ("id", "task_id"),
    ("status", "status_filter"),
    ("files", "context_files"),
    ("message", "text"),
    ("message", "content"),
    ("message", "note"),
    ("text", "content"),
    ("content", "text"),
    ("error_message", "error"),
    ("retry", "retryable"),
    ("permanent", "final"),
    ("tool", "name"),
    ("operation", "name"),
    ("args", "arguments"),
    ("params", "arguments"),
];

/// Words in names of arguments that would decide on a task's order, its owner or its limits.
const ORDER: [&str; 14] = [
    "after",
    "before",
    "order",
    "parent",
    "subtask",
    "subtasks",
    "prerequisite",
    "prerequisites",
    "requires",
    "needs",
    "blocks",
    "dependents",
    "sequence",
    "follows",
];
const URGENCY: [&str; 7] =
    ["critical", "importance", "rank", "severity", "urgency", "urgent", "weight"];
const OWNER: [&str; 11] = [
    "agent",
    "assign",
    "assigned",
    "assignee",
    "assignees",
    "assignment",
    "claimed",
    "holder",
    "owner",
    "owners",
    "worker",
];
const LIMITS: [&str; 16] = [
    "attempts", "budget", "cost", "deadline", "due", "duration", "expires", "limit", "max", "min",
    "minutes", "retries", "retry", "seconds", "tokens", "ttl",
];

/// Arguments that clients add to every call. They mean nothing to an operation that lacks them.
const ADDED: [&str; 2] = ["wait_for_previous", "agent_id"];

/// Fewest letters that are read as the beginning of a name.
const SHORTEST: usize = 3;

/// What to do about an argument that the operation does not have.
pub(crate) enum Unknown {
    /// It is another name of this argument.
    Meant(String),
    /// Left out, and the reply says so.
    Ignored,
    /// Refused, with what to do instead.
    Refused(String),
}

impl Record {
    /// The field that `given` means: its own name in another spelling, or a synonym.
    fn meant(&self, given: &str) -> Option<&str> {
        let plain = plain(given);
        let written = self.0.iter().find(|field| self::plain(&field.name) == plain);
        let other = SYNONYMS.iter().filter(|(name, _)| self::plain(name) == plain);
        let mut other = other.filter_map(|(_, field)| self.field(field));
        written.or_else(|| other.next()).map(|field| field.name.as_str())
    }

    /// Whether clients add `given` to every call, and no field is meant by it.
    pub(crate) fn is_added(&self, given: &str) -> bool {
        self.meant(given).is_none() && ADDED.iter().any(|name| plain(name) == plain(given))
    }

    /// The field whose name is nearest to `given`, if that may be a slip of the pen or is short for
    /// it.
    pub(crate) fn near(&self, given: &str) -> Option<&str> {
        let names = || self.current().map(|field| field.name.as_str());
        let short = plain(given);
        let is_short_for = |name: &&str| short.len() >= SHORTEST && plain(name).starts_with(&short);
        near(given, names()).or_else(|| names().find(is_short_for))
    }

    /// What an argument is that none of the fields is called. `changes` says whether leaving one
    /// out by mistake would change something on the board, `binding` whether every field
    /// counts.
    pub(crate) fn unknown(&self, given: &str, changes: bool, binding: bool) -> Unknown {
        if let Some(field) = self.meant(given) {
            return Unknown::Meant(field.to_owned());
        }
        if !changes {
            return Unknown::Ignored;
        }
        if let Some(field) = self.near(given) {
            return Unknown::Refused(format!("no such argument; did you mean {field}?"));
        }
        if binding {
            let names: Vec<_> = self.current().map(|field| field.name.as_str()).collect();
            return Unknown::Refused(format!("no such field; there are {}", names.join(", ")));
        }
        self.instead(given).map_or(Unknown::Ignored, Unknown::Refused)
    }

    /// What to give instead of an argument about order, owner or limits, if there is anything.
    fn instead(&self, given: &str) -> Option<String> {
        let words = words(given);
        let is_about = |of: &[&str]| words.iter().any(|word| of.contains(&word.as_str()));
        let has = |name: &&&str| self.field(name).is_some();
        if is_about(&ORDER) && self.field("dependencies").is_some() {
            return Some("no such argument; give the tasks to do first as dependencies".to_owned());
        }
        if is_about(&URGENCY) && self.field("priority").is_some() {
            return Some("no such argument; priority is 1 (first) to 10 (last)".to_owned());
        }
        if is_about(&OWNER) && self.field("demands").is_some() {
            return Some(
                "no such argument; who may take it is said by demands, such as {\"tags\": \
                 [\"gpu\"]}"
                    .to_owned(),
            );
        }
        let limits = ["timeout_seconds", "max_attempts", "minutes", "max_concurrent"];
        let limits: Vec<_> = limits.iter().filter(has).copied().collect();
        (is_about(&LIMITS) && !limits.is_empty())
            .then(|| format!("no such argument; limits are {}", limits.join(" and ")))
    }
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

/// The name without the marks that separate words, in lower case: `taskId` and `task-id` are
/// `task_id`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words of a name: `max_retries` and `maxRetries` have two.
fn words(name: &str) -> Vec<String> {
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
