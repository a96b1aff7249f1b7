//! Names of tasks and agents that are written otherwise than on the board, and what was meant where
//! there is none of that name.

use std::slice;

use super::connect::quoted;
use super::report::{blame_and_data, say};
use super::tasks::every_brief;
use super::{Declined, Session, own_words, parser, place_of_subcommand};
use crate::ops::{self, get_all_tasks};
use crate::state::guard::HUMAN;
use crate::state::limit::CANDIDATES;
use crate::state::message::Message;
use crate::state::task::Named;
use crate::view::told::listed;

/// How similar a title must be to be named, of 1 for the same.
const SIMILAR: f64 = 0.85;
/// Words that are in many titles and name no task.
const NO_NAMES: &str = "all and another any both each every everything first for from into last latest many mine more \
                        most new newest next none old oldest one other others rest some that the them these this \
                        those with";

impl Session {
    /// The tasks that are meant by names, one of which is refused.
    pub(super) fn meant(
        &self,
        given: &[String],
        refusal: anyhow::Error,
    ) -> anyhow::Result<Vec<Named>> {
        if !is_unknown(&refusal) {
            return Err(refusal);
        }
        given.iter().map(|one| self.one_meant(one, &refusal)).collect()
    }

    /// The task of a name that may be written another way, or why there is none.
    fn one_meant(&self, given: &str, refusal: &anyhow::Error) -> anyhow::Result<Named> {
        for name in [vec![given.to_owned()], spellings(given)].concat() {
            match self.exactly(&name) {
                Ok(found) => return Ok(found),
                Err(error) if is_unknown(&error) => (),
                Err(error) => return Err(error),
            }
        }
        let own = self.found(slice::from_ref(&given.to_owned())).err();
        if let Some(own) = own.filter(|_| self.json) {
            return Err(own);
        }
        let declined = |why: String| Declined(anyhow::anyhow!(why)).into();
        if let Some(name) = Message::number_of(given).map(|_| given.to_uppercase()) {
            let answer = self.wording.command(&format!("answer {name} TEXT"));
            return Err(declined(format!("{name} is a question: {answer} answers it")));
        }
        if let [agent] = self.agents_like(given)?.as_slice() {
            let line = |words: &str| self.wording.command(&format!("{words} {agent}"));
            let (show, log, stop) = (line("show"), line("log"), line("stop"));
            let why = format!("`{agent}` is an agent: {show}, {log}, {stop}");
            return Err(declined(why));
        }
        let (has_words, titled) = self.titled(given)?;
        match titled.as_slice() {
            [] => {}
            [one] if has_words && self.may_guess() => return Ok(one.clone()),
            some => {
                let names: Vec<_> =
                    some.iter().take(CANDIDATES).map(|task| format!("\n  {task}")).collect();
                let more = some.len().saturating_sub(CANDIDATES);
                let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
                let names = names.concat();
                return Err(declined(format!(
                    "no task is called `{given}`; these may be meant, name one by its number:{names}{more}"
                )));
            }
        }
        // The refusal may be of another of several names.
        match self.found(slice::from_ref(&given.to_owned())) {
            Err(error) => Err(error),
            Ok(_) => Err(declined(format!("{refusal:#}"))),
        }
    }

    /// Whether a task may be named by a word of its title: a person looks at what is answered.
    fn may_guess(&self) -> bool {
        self.agent.is_none() && !self.json && !self.is_careful
    }

    /// Tasks whose titles have all words of what was given, else those with a similar title; and
    /// whether it is the former.
    fn titled(&self, given: &str) -> anyhow::Result<(bool, Vec<Named>)> {
        let wanted = words_of(given);
        let names_none = |word: &String| {
            word.chars().count() < 3 || NO_NAMES.split(' ').any(|other| other == word)
        };
        if wanted.iter().all(names_none) {
            return Ok((false, Vec::new()));
        }
        let briefs = every_brief(self, get_all_tasks::Params::default())?;
        let has_all = |title: &str| {
            let words = words_of(title);
            wanted.iter().all(|word| words.contains(word))
        };
        let found: Vec<_> =
            briefs.iter().filter(|task| has_all(&task.title)).map(Named::from).collect();
        if !found.is_empty() {
            return Ok((true, found));
        }
        let given = given.to_lowercase();
        let is_similar = |title: &str| {
            let whole = strsim::normalized_damerau_levenshtein(&given, &title.to_lowercase());
            let part = words_of(title)
                .into_iter()
                .any(|word| word.len() > 4 && strsim::osa_distance(&given, &word) == 1);
            whole >= SIMILAR || part
        };
        let similar: Vec<_> =
            briefs.iter().filter(|task| is_similar(&task.title)).map(Named::from).collect();
        Ok((false, similar))
    }

    /// Ids of the agents that a name may mean: the one of this name, or those that begin with it.
    fn agents_like(&self, given: &str) -> anyhow::Result<Vec<String>> {
        let name = given.trim_start_matches('@').to_lowercase();
        let all = self.every_agent()?;
        if let Some(exact) = all.iter().find(|id| *id == given.trim_start_matches('@')) {
            return Ok(vec![exact.clone()]);
        }
        let same: Vec<_> = all.iter().filter(|id| id.to_lowercase() == name).cloned().collect();
        if !same.is_empty() || name.len() < 2 {
            return Ok(same);
        }
        Ok(all.into_iter().filter(|id| id.to_lowercase().starts_with(&name)).collect())
    }

    fn every_agent(&self) -> anyhow::Result<Vec<String>> {
        self.keep_board()?;
        let all = self.every_page::<ops::GetAgents>("agents", &Default::default())?;
        let ids = all.agents.iter().map(|item| item.agent.id.to_string());
        Ok(ids.filter(|id| id != HUMAN).collect())
    }

    /// Whether an agent has this name, in whatever case.
    pub(super) fn has_agent_called(&self, given: &str) -> bool {
        let name = given.trim_start_matches('@');
        let all = self.has_board().then(|| self.every_agent().ok()).flatten();
        all.is_some_and(|all| all.iter().any(|id| id.eq_ignore_ascii_case(name)))
    }

    /// Whether exactly one agent may be meant.
    pub(super) fn has_agent(&self, given: &str) -> bool {
        self.has_board() && self.agents_like(given).is_ok_and(|found| found.len() == 1)
    }

    /// The agent that a person named behind `line`. A name that is not known stays as it is.
    pub(super) fn agent_named(&self, given: &str, line: &str) -> anyhow::Result<String> {
        if given == HUMAN || !self.has_board() {
            return Ok(given.to_owned());
        }
        if given.eq_ignore_ascii_case("me") {
            return Ok(self.agent.clone().unwrap_or_else(|| HUMAN.to_owned()));
        }
        let declined = |why: String| Err(Declined(anyhow::anyhow!(why)).into());
        match self.agents_like(given)?.as_slice() {
            [one] => Ok(one.clone()),
            [] => {
                if let Some(why) = self.instead_of_agent(given, line)? {
                    return declined(why);
                }
                Ok(given.to_owned())
            }
            several => declined(format!("`{given}` may be {}; name one of them", listed(several))),
        }
    }

    pub(super) fn agents_named(&self, given: &[String], line: &str) -> anyhow::Result<Vec<String>> {
        given.iter().map(|one| self.agent_named(one, line)).collect()
    }

    /// Whom a message is for: groups stay as they are.
    pub(super) fn recipient(&self, given: String) -> anyhow::Result<String> {
        if given == "all" || given.contains(':') {
            return Ok(given);
        }
        if ["everyone", "everybody", "@all", "@everyone", "*"].contains(&given.as_str()) {
            return Ok("all".to_owned());
        }
        self.agent_named(&given, "send")
    }

    /// What is meant by a name that no agent has: a task, or an agent that is written otherwise.
    fn instead_of_agent(&self, given: &str, line: &str) -> anyhow::Result<Option<String>> {
        let of = |agent: &str| self.wording.command(&format!("{line} {agent}"));
        if let Ok(tasks) = self.found(&[given.to_owned()]) {
            let held = self.held_by_whom(&tasks)?;
            return Ok(Some(match held {
                Some(agent) => format!("`{given}` is a task, which {agent} holds: {}", of(&agent)),
                None => format!(
                    "`{given}` is a task, which no agent holds; `callboard agents` lists the agents"
                ),
            }));
        }
        let all = self.every_agent()?;
        let distance = |id: &String| strsim::osa_distance(id, given);
        let least = all.iter().map(distance).min().filter(|least| *least <= 2 && given.len() > 3);
        let near = all.iter().filter(|id| Some(distance(id)) == least);
        let near: Vec<_> = near.map(|id| of(id)).collect();
        Ok((!near.is_empty())
            .then(|| format!("no agent `{given}`; did you mean {}?", near.join(" or "))))
    }

    fn held_by_whom(&self, tasks: &[Named]) -> anyhow::Result<Option<String>> {
        let Some(task) = tasks.first() else { return Ok(None) };
        let params = ops::get_task::Params { task_id: task.id.to_string(), ..Default::default() };
        let task = self.ask::<ops::GetTask>(&params)?.reply.task.task;
        let holder = task.claimed_by.filter(|_| task.status.is_held());
        Ok(holder.map(|agent| agent.to_string()))
    }
}

/// Commands that list what agents did, and the lines that list it of one.
const LISTS: [(&str, &str); 6] = [
    ("tasks", "tasks --of"),
    ("log", "log"),
    ("history", "history --of"),
    ("watch", "watch --of"),
    ("report", "report --of"),
    ("runs", "runs --of"),
];

impl Session {
    /// Names the line with a filter where --agent stands behind a list, as filters do.
    pub(super) fn name_filter(&self) {
        let words: Vec<_> = own_words().collect();
        let typed = place_of_subcommand(&words).and_then(|place| words.split_at_checked(place));
        if let Some((_, [name, behind @ ..])) = typed.filter(|_| !self.json)
            && let Some(line) = filter_meant(name, behind)
        {
            let line = self.wording.of_nobody().command(&line);
            say(&format!("callboard: --agent says who asks, and leaves nothing out; {line} does"));
        }
    }
}

/// The line that lists what --agent is to list, if nothing else says of whom.
fn filter_meant(name: &str, behind: &[String]) -> Option<String> {
    let name = parser().find_subcommand(name)?.get_name().to_owned();
    let (_, line) = LISTS.iter().find(|(list, _)| *list == name)?;
    let at = behind.iter().position(|word| word == "--agent" || word.starts_with("--agent="))?;
    let (attached, next) = (behind[at].split_once('='), behind.get(at + 1));
    let agent = attached.map(|(_, agent)| agent).or(next.map(String::as_str))?;
    let is_said = behind.iter().any(|word| word == "--of" || word.starts_with("--of="));
    let has_other =
        name == "log" && behind.iter().any(|word| !word.starts_with('-') && word != agent);
    (!is_said && !has_other).then(|| format!("{line} {}", quoted(agent)))
}

/// Other ways to write the name of a task: `T12`, `task 12` and `#012` are #12, `p1.m2` is P1.M2.
fn spellings(given: &str) -> Vec<String> {
    let lower = given.to_lowercase();
    let rest = ["task-", "task ", "task", "issue ", "issue-", "t-", "t", "no.", "nr."]
        .iter()
        .find_map(|lead| lower.strip_prefix(lead))
        .unwrap_or(&lower);
    let number = rest.trim_start_matches('#').trim_start_matches('0');
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    let number = is_number.then(|| format!("#{number}"));
    let others = [given.to_uppercase(), lower.clone()].into_iter().filter(|other| other != given);
    number.into_iter().chain(others).collect()
}

fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn is_unknown(error: &anyhow::Error) -> bool {
    blame_and_data(error).1["code"] == "unknown_task"
}

#[cfg(test)]
mod tests {
    use super::filter_meant;

    #[test]
    fn agent_behind_a_list_is_meant_as_a_filter() {
        for (line, expected) in [
            ("tasks --agent bob", Some("tasks --of bob")),
            ("ls --agent=bob", Some("tasks --of bob")),
            ("log --limit 3 --agent bob", None),
            ("log --agent bob", Some("log bob")),
            ("history --agent bob", Some("history --of bob")),
            ("report --agent bob", Some("report --of bob")),
            ("tasks --of ada --agent bob", None),
            ("tasks", None),
            ("claim --agent bob", None),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(filter_meant(&words[0], &words[1..]).as_deref(), expected, "{line}");
        }
    }
}
